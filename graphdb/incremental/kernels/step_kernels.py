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
    BOTH,
    CHECK_CELLS,
    CHECKS,
    CHUNK,
    CHUNKS,
    CODES,
    COUNTED,
    COUNTED_CELLS,
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
from graphdb.storage.compile.kernels import inlined, kernel, load, store

LONG_LIST = 48
"""Entries of a list that is searched, and not scanned, for the next value."""
FAR_LONGER = 16
"""A list that is more than so many times as long as what is looked up in it is searched, and not merged with it."""


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
def counted_of(search: int, level: int) -> int:
    """The address of what only counting reads of a step."""
    return load(search, COUNTED, LONG) + level * COUNTED_CELLS * 8


@kernel
def open_list(search: int, graph: int, number: int) -> int:
    """Find the list of a leg: how many entries it has."""
    leg, span = load(search, LEGS, LONG) + number * LEG_CELLS * 8, load(search, SPANS, LONG) + number * SPAN_CELLS * 8
    row = row_of(graph, load(leg, 0, LONG), load(load(search, VALUES, LONG), load(leg, 1, LONG), LONG))
    begin, size = load(row, 0, INT) * UNIT, load(row, 1, INT)
    there = load(row, 4, INT) if load(search, SIGN, LONG) == NEW else load(row, 3, INT)
    size = size if there > 0 else 0
    store(span, 0, begin, LONG)
    store(span, 1, begin + size, LONG)
    store(span, 2, load(row, 1, INT) - load(row, 5, INT), LONG)
    store(span, 6, begin, LONG)
    marks = load(row, 6, INT)
    if marks != 0:
        reach = load(graph, RANGES, LONG) + load(leg, 0, LONG) * RANGE_CELLS * 8
        store(span, 4, load(reach, 3, LONG), LONG)
        store(span, 5, load(reach, 4, LONG), LONG)
        marks = load(graph, MARKS, LONG) + marks * 8
    store(span, 3, marks, LONG)
    return size


@kernel
def open_step(search: int, level: int, only: int, like: Any) -> None:
    """Find the lists of a step's legs, and which of them is scanned; of a step that binds an edge, its entries.

    Where ``only`` is a slot, the lists of others are as they were when the step was opened before; else it is -1.
    """
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    step, stack = step_of(search, level), stack_of(search, level)
    legs, spans = load(search, LEGS, LONG), load(search, SPANS, LONG)
    first, last = load(step, 2, LONG), load(step, 3, LONG)
    store(stack, 6, 0, LONG)
    store(stack, 7, 0, LONG)
    store(stack, 8, 0, LONG)
    if first == last:  # any candidate
        store(stack, 0, 1, LONG)
        store(stack, 1, load(graph, VERTEX_COUNT, LONG), LONG)
        return
    # The shortest is scanned, and the next one asked first: it lets the fewest through.
    shortest, asked, length, next_length = first, -1, -1, -1
    for k in range(first, last):
        span = spans + k * SPAN_CELLS * 8
        if only >= 0 and only != load(legs, k * LEG_CELLS + 1, LONG):
            store(span, 0, load(span, 6, LONG), LONG)
            size = load(span, 1, LONG) - load(span, 0, LONG)
        else:
            size = open_list(search, graph, k)
        if length < 0 or size < length:
            asked, next_length = (shortest if length >= 0 else -1), length
            shortest, length = k, size
        elif next_length < 0 or size < next_length:
            asked, next_length = k, size
    span = spans + shortest * SPAN_CELLS * 8
    begin, end = load(span, 0, LONG), load(span, 1, LONG)
    if load(step, 0, LONG) == EDGE:
        neighbours, far = load(graph, NEIGHBOURS, LONG), load(values, load(legs, first * LEG_CELLS + 4, LONG), LONG)
        begin = gallop(neighbours, begin, end, far, like)
        last = begin
        while last < end and load(neighbours, last, like) == far:
            last += 1
        end = last
    store(stack, 0, begin, LONG)
    store(stack, 1, end, LONG)
    store(stack, 2, shortest, LONG)
    store(stack, 5, asked, LONG)


@kernel
def in_reach(span: int, first: int, last: int) -> bool:
    """Whether the bitmap of a list says of vertices in a range if it has them."""
    low, reach = load(span, 4, LONG), load(span, 5, LONG)
    return load(span, 3, LONG) != 0 and first >= low and last < low + reach


@kernel
def covers(span: int, first: int, last: int) -> bool:
    """Whether it says so, and the batch does not touch the list."""
    return load(span, 2, LONG) == 0 and in_reach(span, first, last)


@kernel
def touched_marks(span: int) -> int:
    """The address of the second bitmap of a list, of entries that the batch touches: it lies behind the first."""
    return load(span, 3, LONG) + ((load(span, 5, LONG) >> 6) + 1) * 8


@kernel
def touched(span: int, offset: int) -> bool:
    """Whether the batch touches an entry of a list by its second bitmap."""
    return load(touched_marks(span), offset >> 6, LONG) >> (offset & 63) & 1 != 0


@kernel
def is_bound(search: int, graph: int, leg: int, span: int, value: int, like: Any) -> bool:
    """Whether a leg's list, which the batch touches, holds a value by an entry that may be bound."""
    neighbours, codes, end = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG), load(span, 1, LONG)
    at = gallop(neighbours, load(span, 0, LONG), end, value, like)
    store(span, 0, at, LONG)
    late, near = load(leg, 2, LONG), load(load(search, VALUES, LONG), load(leg, 1, LONG), LONG)
    while at < end and load(neighbours, at, like) == value:
        if admits(search, load(codes, at, INT), near, value, late):
            return True
        at += 1
    return False


@inlined
def joins(search: int, graph: int, leg: int, span: int, value: int, like: Any) -> bool:
    """Whether a leg's list holds a value by an entry that may be bound.  Values are asked for in ascending order."""
    marks, offset = load(span, 3, LONG), value - load(span, 4, LONG)
    if marks != 0 and offset >= 0 and offset < load(span, 5, LONG):
        there = load(marks, offset >> 6, LONG) >> (offset & 63) & 1
        if there == 0 or load(span, 2, LONG) == 0 or not touched(span, offset):
            return there != 0
    neighbours, end = load(graph, NEIGHBOURS, LONG), load(span, 1, LONG)
    at = gallop(neighbours, load(span, 0, LONG), end, value, like)
    store(span, 0, at, LONG)
    if at >= end or load(neighbours, at, like) != value:
        return False
    return load(span, 2, LONG) == 0 or is_bound(search, graph, leg, span, value, like)


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


@inlined
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
def next_candidates(search: int, level: int, table_row: int, last_check: int, out: int) -> int:
    """Write the next candidates of an opened step without legs: as :func:`next_block` does."""
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    step, stack = step_of(search, level), stack_of(search, level)
    slot, bit = load(step, 1, LONG), load(step, 6, LONG)
    at, end = load(stack, 0, LONG), load(stack, 1, LONG)
    count = 0
    while at < end and count < CHUNK:
        if is_candidate(graph, table_row, at, bit):
            store(values, slot, at, LONG)
            store(out, count, at, LONG)
            count += passes(search, load(step, 4, LONG), last_check)
        at += 1
    store(stack, 0, at, LONG)
    return count


@kernel
def those_joined(search: int, graph: int, number: int, out: int, count: int, like: Any) -> int:
    """Leave of some ascending vertices those that a leg's list holds: how many there are."""
    leg, span = load(search, LEGS, LONG) + number * LEG_CELLS * 8, load(search, SPANS, LONG) + number * SPAN_CELLS * 8
    marks, low, left = load(span, 3, LONG), load(span, 4, LONG), 0
    if count == 0:
        return 0
    mixed = load(span, 2, LONG) != 0
    if in_reach(span, load(out, 0, LONG), load(out, count - 1, LONG)):
        for i in range(count):
            value = load(out, i, LONG)
            store(out, left, value, LONG)
            left += load(marks, (value - low) >> 6, LONG) >> ((value - low) & 63) & 1
        if mixed:
            count, left, marks = left, 0, touched_marks(span)
            for i in range(count):
                value = load(out, i, LONG)
                store(out, left, value, LONG)
                unsure = load(marks, (value - low) >> 6, LONG) >> ((value - low) & 63) & 1
                left += unsure == 0 or is_bound(search, graph, leg, span, value, like)
    elif mixed and marks != 0:
        for i in range(count):
            value = load(out, i, LONG)
            store(out, left, value, LONG)
            left += joins(search, graph, leg, span, value, like)
    else:
        neighbours, place, end = load(graph, NEIGHBOURS, LONG), load(span, 0, LONG), load(span, 1, LONG)
        long, codes = end - place > FAR_LONGER * count, load(graph, CODES, LONG)
        if not long and not mixed:
            i = 0
            while i < count and place < end:  # without a branch that depends on a value
                value, other = load(out, i, LONG), load(neighbours, place, like)
                store(out, left, value, LONG)
                left += value == other
                i += value <= other
                place += other < value
            count = 0
        for i in range(count):
            value = load(out, i, LONG)
            if long:
                place = gallop(neighbours, place, end, value, like)
            else:
                while place < end and load(neighbours, place, like) < value:
                    place += 1
            store(out, left, value, LONG)
            there = place < end and load(neighbours, place, like) == value
            if there and mixed and load(codes, place, INT) & BOTH != BOTH:
                store(span, 0, place, LONG)
                there = is_bound(search, graph, leg, span, value, like)
            left += there
        store(span, 0, place, LONG)
    return left


@kernel
def those_passing(search: int, slot: int, begin: int, end: int, out: int, count: int) -> int:
    """Leave of some vertices those that pass checks when a slot is bound to them: how many there are."""
    values, checks = load(search, VALUES, LONG), load(search, CHECKS, LONG)
    for number in range(begin, end):
        check, left = checks + number * CHECK_CELLS * 8, 0
        op, a, b = load(check, 0, LONG), load(check, 1, LONG), load(check, 2, LONG)
        other = load(values, b if a == slot else a, LONG)
        for i in range(count):
            value = load(out, i, LONG)
            store(out, left, value, LONG)
            if op == UNEQUAL:
                left += value != other
            elif op == ABOVE:
                left += value > other if a == slot else value < other
            else:
                store(values, slot, value, LONG)
                left += passes(search, number, number + 1)
        count = left
    return count


@kernel
def next_block(search: int, level: int, table_row: int, last_check: int, out: int, like: Any) -> int:
    """Write the next vertices that an opened step may be bound to, in the lists of all legs, before some check.

    It looks at :data:`CHUNK` of the entries that are left, or at all of them.  Returns how many vertices there are.
    """
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    step, stack = step_of(search, level), stack_of(search, level)
    first, last = load(step, 2, LONG), load(step, 3, LONG)
    if first == last:
        return next_candidates(search, level, table_row, last_check, out)
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    at, end, through = load(stack, 0, LONG), load(stack, 1, LONG), load(stack, 2, LONG)
    leg = load(search, LEGS, LONG) + through * LEG_CELLS * 8
    near, late, several = load(values, load(leg, 1, LONG), LONG), load(leg, 2, LONG), load(leg, 3, LONG)
    mixed = load(load(search, SPANS, LONG) + through * SPAN_CELLS * 8, 2, LONG) != 0
    stop, count, asked = min(end, at + CHUNK), 0, load(stack, 5, LONG)
    if not mixed and several == 0 and at < stop:
        span = load(search, SPANS, LONG) + asked * SPAN_CELLS * 8
        if asked >= 0 and covers(span, load(neighbours, at, like), load(neighbours, stop - 1, like)):
            marks, low = load(span, 3, LONG), load(span, 4, LONG)
            for i in range(at, stop):
                value = load(neighbours, i, like)
                store(out, count, value, LONG)
                count += load(marks, (value - low) >> 6, LONG) >> ((value - low) & 63) & 1
            asked = -1
        else:
            count = stop - at
            for i in range(count):
                store(out, i, load(neighbours, at + i, like), LONG)
        at = stop
    while at < stop:
        value = load(neighbours, at, like)
        fits = not mixed or admits(search, load(codes, at, INT), near, value, late)
        at += 1
        while several and at < end and load(neighbours, at, like) == value:
            fits = fits or admits(search, load(codes, at, INT), near, value, late)
            at += 1
        store(out, count, value, LONG)
        count += fits
    store(stack, 0, at, LONG)
    if asked >= 0:
        count = those_joined(search, graph, asked, out, count, like)
    if last - first > 2 and load(stack, 6, LONG) == 0:
        for k in range(first, last):
            if k != through and k != load(stack, 5, LONG):
                count = those_joined(search, graph, k, out, count, like)
    bit, left = load(step, 6, LONG), 0
    if bit >= 0 and load(stack, 6, LONG) == 0:
        table = load(graph, TABLE, LONG) + table_row * load(graph, STRIDE, LONG) * 8
        for i in range(count):
            value = load(out, i, LONG)
            store(out, left, value, LONG)
            left += load(table, value, LONG) >> bit & 1
        count = left
    return those_passing(search, load(step, 1, LONG), load(step, 4, LONG), last_check, out, count)


@kernel
def block_of(search: int, level: int) -> int:
    """The address of a step's block of vertices."""
    return load(search, CHUNKS, LONG) + level * CHUNK * 8


@kernel
def next_binding(search: int, level: int, table_row: int, like: Any) -> int:
    """Bind the next vertex, or edge, of an opened step: 0 where there is none, else 1.  Vertices wait in blocks."""
    step, stack = step_of(search, level), stack_of(search, level)
    if load(step, 0, LONG) == EDGE:
        return next_edge(search, level)
    next, block = load(stack, 7, LONG), block_of(search, level)
    if next == load(stack, 8, LONG):
        next, count = 0, 0
        while count == 0 and load(stack, 0, LONG) < load(stack, 1, LONG):
            count = next_block(search, level, table_row, load(step, 5, LONG), block, like)
        store(stack, 8, count, LONG)
        store(stack, 7, 0, LONG)
        if count == 0:
            return 0
    store(load(search, VALUES, LONG), load(step, 1, LONG), load(block, next, LONG), LONG)
    store(stack, 7, next + 1, LONG)
    return 1
