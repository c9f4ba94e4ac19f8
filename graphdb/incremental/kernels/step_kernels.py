"""The steps of a delta plan's search: when all before a step are bound, its lists are found.

The shortest list of a step's legs is scanned; what it holds is looked up in the others, the next shortest first: in
their bitmaps if they are long, else by galloping from where the last value was found.
"""

from __future__ import annotations

from typing import Any

from graphdb.execute.search.check_kernels import same_edge
from graphdb.execute.search.set_kernels import gallop
from graphdb.incremental.frame import (
    ABOVE,
    ALL,
    BOTH,
    CHECK_CELLS,
    CHECKS,
    CODES,
    EDGE,
    EDGES_DIFFER,
    GRAPH,
    INT,
    KEY_SHIFT,
    LEG_CELLS,
    LEGS,
    LONG,
    MARKS,
    NEIGHBOURS,
    NEW,
    RANGE_CELLS,
    RANGES,
    SEED_LABEL,
    SEED_SOURCE,
    SEED_TARGET,
    SIGN,
    SPAN_CELLS,
    SPANS,
    STACK,
    STACK_CELLS,
    STEP_CELLS,
    STEPS,
    STRIDE,
    TABLE,
    UNEQUAL,
    UNIT,
    VALUES,
    VERTEX_COUNT,
)
from graphdb.incremental.kernels.list_kernels import row_of
from graphdb.storage.compile.kernels import kernel, load, store

LONG_LIST = 48
"""Entries of a list that is searched, and not scanned, for the next value."""


@kernel
def step_of(search: int, level: int) -> int:
    """The address of a step's row."""
    return load(search, STEPS, LONG) + level * STEP_CELLS * 8


@kernel
def stack_of(search: int, level: int) -> int:
    """The address of where a step stands."""
    return load(search, STACK, LONG) + level * STACK_CELLS * 8


@kernel
def admits(search: int, code: int, near: int, far: int, late: int) -> bool:
    """Whether an entry may be bound: it is in both versions, or in the one searched and comes after the changed edge.

    Changed edges are ordered by label, source and target; the changed edge itself may be bound by later pattern edges.
    """
    if code & BOTH == BOTH:
        return True
    if code & load(search, SIGN, LONG) == 0:
        return False
    key = code >> KEY_SHIFT
    label, source, target = key >> 1, far if key & 1 else near, near if key & 1 else far
    if label != load(search, SEED_LABEL, LONG):
        return label > load(search, SEED_LABEL, LONG)
    if source != load(search, SEED_SOURCE, LONG):
        return source > load(search, SEED_SOURCE, LONG)
    return target > load(search, SEED_TARGET, LONG) or (target == load(search, SEED_TARGET, LONG) and late != 0)


@kernel
def passes(search: int, begin: int, end: int) -> bool:
    """Whether the values bound pass some checks."""
    checks, values = load(search, CHECKS, LONG), load(search, VALUES, LONG)
    for i in range(begin, end):
        check = checks + i * CHECK_CELLS * 8
        op = load(check, 0, LONG)
        if op == EDGES_DIFFER:
            if same_edge(check, values):
                return False
        elif op == ABOVE:
            if load(values, load(check, 1, LONG), LONG) <= load(values, load(check, 2, LONG), LONG):
                return False
        elif load(values, load(check, 1, LONG), LONG) == load(values, load(check, 2, LONG), LONG) and (
            op == UNEQUAL or load(values, load(check, 3, LONG), LONG) == load(values, load(check, 4, LONG), LONG)
        ):
            return False
    return True


@kernel
def is_candidate(graph: int, table_row: int, vertex: int, bit: int) -> bool:
    """Whether the candidate table has a vertex for a pattern vertex."""
    return load(load(graph, TABLE, LONG), table_row * load(graph, STRIDE, LONG) + vertex, LONG) >> bit & 1 != 0


@kernel
def open_step(search: int, level: int, like: Any) -> None:
    """Find the lists of a step's legs, and which of them is scanned; of a step that binds an edge, its entries."""
    graph, values, sign = load(search, GRAPH, LONG), load(search, VALUES, LONG), load(search, SIGN, LONG)
    step, legs = step_of(search, level), load(search, LEGS, LONG)
    stack, spans = stack_of(search, level), load(search, SPANS, LONG)
    first, last = load(step, 2, LONG), load(step, 3, LONG)
    if first == last:  # any candidate
        store(stack, 0, 1, LONG)
        store(stack, 1, load(graph, VERTEX_COUNT, LONG), LONG)
        return
    shortest = first
    length = -1
    for k in range(first, last):
        leg, span = legs + k * LEG_CELLS * 8, spans + k * SPAN_CELLS * 8
        row = row_of(graph, load(leg, 0, LONG), load(values, load(leg, 1, LONG), LONG))
        begin, size = load(row, 0, INT) * UNIT, load(row, 1, INT)
        there = load(row, 4, INT) if sign == NEW else load(row, 3, INT)
        store(span, 0, begin, LONG)
        store(span, 1, begin + size if there > 0 else begin, LONG)
        store(span, 2, size - load(row, 5, INT), LONG)
        marks = load(row, 6, INT)
        if marks != 0:
            reach = load(graph, RANGES, LONG) + load(leg, 0, LONG) * RANGE_CELLS * 8
            store(span, 4, load(reach, 3, LONG), LONG)
            store(span, 5, load(reach, 4, LONG), LONG)
            marks = load(graph, MARKS, LONG) + marks * 8
        store(span, 3, marks, LONG)
        if length < 0 or size < length:
            shortest, length = k, size
    asked = -1 if last - first == 1 else 2 * first + 1 - shortest
    if last - first > 2:  # the shortest of the others first: it lets the fewest through
        asked, length = -1, 0
        for k in range(first, last):
            size = load(spans, k * SPAN_CELLS + 1, LONG) - load(spans, k * SPAN_CELLS, LONG)
            if k != shortest and (asked < 0 or size < length):
                asked, length = k, size
    store(stack, 5, asked, LONG)
    span = spans + shortest * SPAN_CELLS * 8
    begin, end = load(span, 0, LONG), load(span, 1, LONG)
    if load(step, 0, LONG) == EDGE:
        neighbours = load(graph, NEIGHBOURS, LONG)
        far = load(values, load(legs + first * LEG_CELLS * 8, 4, LONG), LONG)
        begin = gallop(neighbours, begin, end, far, like)
        last = begin
        while last < end and load(neighbours, last, like) == far:
            last += 1
        end = last
    store(stack, 0, begin, LONG)
    store(stack, 1, end, LONG)
    store(stack, 2, shortest, LONG)


@kernel
def touched(span: int, offset: int) -> bool:
    """Whether the batch touches an entry of a list by its second bitmap, which lies behind the first."""
    word = (load(span, 5, LONG) >> 6) + 1 + (offset >> 6)
    return load(load(span, 3, LONG), word, LONG) >> (offset & 63) & 1 != 0


@kernel
def joins(search: int, graph: int, leg: int, span: int, value: int, like: Any) -> bool:
    """Whether a leg's list holds a value by an entry that may be bound.  Values are asked for in ascending order."""
    marks, offset = load(span, 3, LONG), value - load(span, 4, LONG)
    if marks != 0 and offset >= 0 and offset < load(span, 5, LONG):
        there = load(marks, offset >> 6, LONG) >> (offset & 63) & 1
        if there == 0 or load(span, 2, LONG) == 0 or not touched(span, offset):
            return there != 0
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    end = load(span, 1, LONG)
    at = gallop(neighbours, load(span, 0, LONG), end, value, like)
    store(span, 0, at, LONG)
    if at >= end or load(neighbours, at, like) != value:
        return False
    if load(span, 2, LONG) == 0:
        return True
    late, near = load(leg, 2, LONG), load(load(search, VALUES, LONG), load(leg, 1, LONG), LONG)
    while at < end and load(neighbours, at, like) == value:
        if admits(search, load(codes, at, INT), near, value, late):
            return True
        at += 1
    return False


@kernel
def next_edge(search: int, level: int) -> int:
    """Bind the next entry of an opened step that binds an edge: 0 where there is none, else 1."""
    graph = load(search, GRAPH, LONG)
    step, stack = (
        load(search, STEPS, LONG) + level * STEP_CELLS * 8,
        load(search, STACK, LONG) + level * STACK_CELLS * 8,
    )
    leg, values = load(search, LEGS, LONG) + load(step, 2, LONG) * LEG_CELLS * 8, load(search, VALUES, LONG)
    near, far = load(values, load(leg, 1, LONG), LONG), load(values, load(leg, 4, LONG), LONG)
    late, codes, at = load(leg, 2, LONG), load(graph, CODES, LONG), load(stack, 0, LONG)
    while at < load(stack, 1, LONG):
        code = load(codes, at, INT)
        at += 1
        if admits(search, code, near, far, late):
            store(load(search, VALUES, LONG), load(step, 1, LONG), code >> KEY_SHIFT, LONG)
            if passes(search, load(step, 4, LONG), load(step, 5, LONG)):
                store(stack, 0, at, LONG)
                return 1
    store(stack, 0, at, LONG)
    return 0


@kernel
def skip(graph: int, span: int, at: int, end: int, like: Any) -> int:
    """The first place from ``at`` on, before ``end``, of an entry that is in the list of a span, too."""
    neighbours, marks = load(graph, NEIGHBOURS, LONG), load(span, 3, LONG)
    if marks != 0:
        low, reach = load(span, 4, LONG), load(span, 5, LONG)
        while at < end:
            offset = load(neighbours, at, like) - low
            if offset < 0 or offset >= reach or load(marks, offset >> 6, LONG) >> (offset & 63) & 1 != 0:
                return at
            at += 1
        return at
    place, last = load(span, 0, LONG), load(span, 1, LONG)
    long = last - place > LONG_LIST
    while at < end and place < last:
        value = load(neighbours, at, like)
        if long:
            place = gallop(neighbours, place, last, value, like)
        else:
            while place < last and load(neighbours, place, like) < value:
                place += 1
        if place < last and load(neighbours, place, like) == value:
            break
        at += 1
    store(span, 0, place, LONG)
    return at if place < last else end


@kernel
def next_candidate(search: int, level: int, table_row: int, most: int, out: int) -> int:
    """Bind the next candidate of an opened step without legs: as :func:`next_vertex` does."""
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    step, stack = step_of(search, level), stack_of(search, level)
    slot, bit = load(step, 1, LONG), load(step, 6, LONG)
    at, end = load(stack, 0, LONG), load(stack, 1, LONG)
    count = 0
    while at < end and count < most:
        if is_candidate(graph, table_row, at, bit):
            store(values, slot, at, LONG)
            if passes(search, load(step, 4, LONG), load(step, 5, LONG)):
                if out != 0:
                    store(out, count, at, LONG)
                count += 1
        at += 1
    store(stack, 0, at, LONG)
    return count


@kernel
def next_vertex(search: int, level: int, table_row: int, most: int, out: int, like: Any) -> int:
    """Bind the next vertices of an opened step, in the lists of all legs, that pass all checks.

    Returns how many there are, ``most`` at most, and writes them to ``out`` unless that is 0.  All are only counted:
    then checks of twins are left out.
    """
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    step, stack = step_of(search, level), stack_of(search, level)
    legs, spans = load(search, LEGS, LONG), load(search, SPANS, LONG)
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    slot, first, last = load(step, 1, LONG), load(step, 2, LONG), load(step, 3, LONG)
    if first == last:
        return next_candidate(search, level, table_row, most, out)
    first_check, last_check, bit = load(step, 4, LONG), load(step, 8 if most == ALL else 5, LONG), load(step, 6, LONG)
    through = load(stack, 2, LONG)
    leg = legs + through * LEG_CELLS * 8
    near, late, several = load(values, load(leg, 1, LONG), LONG), load(leg, 2, LONG), load(leg, 3, LONG)
    mixed = load(spans + through * SPAN_CELLS * 8, 2, LONG) != 0
    table = load(graph, TABLE, LONG) + table_row * load(graph, STRIDE, LONG) * 8
    at, end = load(stack, 0, LONG), load(stack, 1, LONG)
    asked, count = load(stack, 5, LONG), 0
    while at < end:
        if asked >= 0:
            at = skip(graph, spans + asked * SPAN_CELLS * 8, at, end, like)
            if at == end:
                break
        value = load(neighbours, at, like)
        fits = not mixed or admits(search, load(codes, at, INT), near, value, late)
        at += 1
        if several:
            while at < end and load(neighbours, at, like) == value:
                fits = fits or admits(search, load(codes, at, INT), near, value, late)
                at += 1
        if not fits or (bit >= 0 and load(table, value, LONG) >> bit & 1 == 0):
            continue
        k = first
        while k < last and (
            k == through or joins(search, graph, legs + k * LEG_CELLS * 8, spans + k * SPAN_CELLS * 8, value, like)
        ):
            k += 1
        if k < last:
            continue
        store(values, slot, value, LONG)
        if first_check == last_check or passes(search, first_check, last_check):
            if out != 0:
                store(out, count, value, LONG)
            count += 1
            if count == most:
                break
    store(stack, 0, at, LONG)
    return count


@kernel
def next_binding(search: int, level: int, table_row: int, like: Any) -> int:
    """Bind the next vertex, or edge, of an opened step: 0 where there is none, else 1."""
    if load(step_of(search, level), 0, LONG) == EDGE:
        return next_edge(search, level)
    return next_vertex(search, level, table_row, 1, 0, like)
