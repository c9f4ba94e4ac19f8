"""The search of a pattern's delta plans: depth-first, from every changed edge (GAMMA §IV-C, algorithm 1).

It can stop and go on: its state lies in the search's frame (:mod:`.frame`).  A step *opens* when all before it are
bound: the lists of its legs are found, and the shortest is gone through; what it holds is looked up in the others by
galloping, from where the last value was found.
"""

from __future__ import annotations

from typing import Any

from graphdb.execute.search.set_kernels import gallop
from graphdb.incremental.frame import (
    BOTH,
    CHECK_CELLS,
    CHECKS,
    CODES,
    COLUMNS,
    DONE,
    EDGE,
    EDGES_DIFFER,
    FOUND,
    FULL,
    GAINED,
    GRAPH,
    HEADS,
    INT,
    KEY_SHIFT,
    LEG_CELLS,
    LEGS,
    LEVEL,
    LONG,
    LOST,
    NEIGHBOURS,
    NEW,
    OUTPUTS,
    PLAN,
    PLAN_CELLS,
    PLAN_COUNT,
    PLANS,
    RECORD,
    RECORD_CELLS,
    RECORDS,
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
    YIELD,
)
from graphdb.incremental.list_kernels import row_of
from graphdb.storage.compile.kernels import entry, kernel, load, store
from graphdb.storage.graph.pcsr_kernels import find


@kernel
def step_of(search: int, level: int) -> int:
    """The address of a step's row."""
    return load(search, STEPS, LONG) + level * STEP_CELLS * 8


@kernel
def stack_of(search: int, level: int) -> int:
    """The address of where a step stands."""
    return load(search, STACK, LONG) + level * STACK_CELLS * 8


@kernel
def admits(code: int, late: int, sign: int) -> bool:
    """Whether an entry may be bound: those of later pattern edges in the version searched, of earlier ones in both."""
    return code & sign != 0 if late else code & BOTH == BOTH


@kernel
def same_edge(values: int, check: int) -> bool:
    """Whether two bound pattern edges (slot, source, target) bind the same data edge."""
    first, second = load(values, load(check, 1, LONG), LONG), load(values, load(check, 4, LONG), LONG)
    if first >> 1 != second >> 1:
        return False
    a, b = load(values, load(check, 2, LONG), LONG), load(values, load(check, 3, LONG), LONG)
    c, d = load(values, load(check, 5, LONG), LONG), load(values, load(check, 6, LONG), LONG)
    if first & 1:
        a, b = b, a
    if second & 1:
        c, d = d, c
    return a == c and b == d


@kernel
def passes(search: int, begin: int, end: int) -> bool:
    """Whether the values bound pass some checks."""
    checks, values = load(search, CHECKS, LONG), load(search, VALUES, LONG)
    for i in range(begin, end):
        check = checks + i * CHECK_CELLS * 8
        op = load(check, 0, LONG)
        if op == EDGES_DIFFER:
            if same_edge(values, check):
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
def next_seed(search: int) -> bool:
    """Bind the edge of the next delta plan that some changed edge fits: False where there is none left."""
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    heads, records = load(graph, HEADS, LONG), load(graph, RECORDS, LONG)
    plan, at = load(search, PLAN, LONG), load(search, RECORD, LONG)
    while True:
        if at >= 0:
            at = load(records, at * RECORD_CELLS + 5, LONG)
        while at < 0:
            plan += 1
            if plan >= load(search, PLAN_COUNT, LONG):
                return False
            at = load(heads, load(load(search, PLANS, LONG), plan * PLAN_CELLS, LONG), LONG)
        row, record = load(search, PLANS, LONG) + plan * PLAN_CELLS * 8, records + at * RECORD_CELLS * 8
        near, far = load(record, 1, LONG), load(record, 2, LONG)
        source, target, table_row = load(row, 1, LONG), load(row, 2, LONG), load(row, 8, LONG)
        if (source == target) != (near == far) and source == target:
            continue
        if not is_candidate(graph, table_row, near, source) or not is_candidate(graph, table_row, far, target):
            continue
        store(values, source, near, LONG)
        store(values, target, far, LONG)
        store(values, load(row, 3, LONG), load(record, 3, LONG), LONG)
        if passes(search, load(row, 6, LONG), load(row, 7, LONG)):
            store(search, PLAN, plan, LONG)
            store(search, RECORD, at, LONG)
            store(search, SIGN, load(record, 4, LONG), LONG)
            return True


@kernel
def open_step(search: int, level: int, like: Any) -> None:
    """Find the lists of a step's legs, and which of them is gone through; of a step that binds an edge, its entries."""
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    step, legs = step_of(search, level), load(search, LEGS, LONG)
    stack, spans = stack_of(search, level), load(search, SPANS, LONG)
    first, last = load(step, 2, LONG), load(step, 3, LONG)
    shortest = first
    length = -1
    for k in range(first, last):
        leg, span = legs + k * LEG_CELLS * 8, spans + k * SPAN_CELLS * 8
        row = row_of(graph, load(leg, 0, LONG), load(values, load(leg, 1, LONG), LONG))
        begin, size = load(row, 0, INT) * UNIT, load(row, 1, INT)
        store(span, 0, begin, LONG)
        store(span, 1, begin + size, LONG)
        store(span, 2, load(row, 3, INT), LONG)
        if length < 0 or size < length:
            shortest, length = k, size
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
def joins(search: int, graph: int, leg: int, span: int, value: int, like: Any) -> bool:
    """Whether a leg's list holds a value by an entry that may be bound.  Values are asked for in ascending order."""
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    end = load(span, 1, LONG)
    at = gallop(neighbours, load(span, 0, LONG), end, value, like)
    store(span, 0, at, LONG)
    if at >= end or load(neighbours, at, like) != value:
        return False
    if load(span, 2, LONG) == 0:
        return True
    late, sign = load(leg, 2, LONG), load(search, SIGN, LONG)
    while at < end and load(neighbours, at, like) == value:
        if admits(load(codes, at, INT), late, sign):
            return True
        at += 1
    return False


@kernel
def next_edge(search: int, level: int) -> bool:
    """Bind the next entry of an opened step that binds an edge."""
    graph = load(search, GRAPH, LONG)
    step, stack = (
        load(search, STEPS, LONG) + level * STEP_CELLS * 8,
        load(search, STACK, LONG) + level * STACK_CELLS * 8,
    )
    late = load(load(search, LEGS, LONG) + load(step, 2, LONG) * LEG_CELLS * 8, 2, LONG)
    codes, sign, at = load(graph, CODES, LONG), load(search, SIGN, LONG), load(stack, 0, LONG)
    while at < load(stack, 1, LONG):
        code = load(codes, at, INT)
        at += 1
        if admits(code, late, sign):
            store(load(search, VALUES, LONG), load(step, 1, LONG), code >> KEY_SHIFT, LONG)
            if passes(search, load(step, 4, LONG), load(step, 5, LONG)):
                store(stack, 0, at, LONG)
                return True
    store(stack, 0, at, LONG)
    return False


@kernel
def next_vertex(search: int, level: int, table_row: int, like: Any) -> bool:
    """Bind the next vertex of an opened step: one in the lists of all legs that passes all checks."""
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    step, stack = (
        load(search, STEPS, LONG) + level * STEP_CELLS * 8,
        load(search, STACK, LONG) + level * STACK_CELLS * 8,
    )
    legs, spans = load(search, LEGS, LONG), load(search, SPANS, LONG)
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    slot, first, last = load(step, 1, LONG), load(step, 2, LONG), load(step, 3, LONG)
    first_check, last_check, bit = load(step, 4, LONG), load(step, 5, LONG), load(step, 6, LONG)
    through, sign = load(stack, 2, LONG), load(search, SIGN, LONG)
    leg = legs + through * LEG_CELLS * 8
    late, several = load(leg, 2, LONG), load(leg, 3, LONG)
    touched = load(spans + through * SPAN_CELLS * 8, 2, LONG)
    at, end = load(stack, 0, LONG), load(stack, 1, LONG)
    while at < end:
        value = load(neighbours, at, like)
        fits = touched == 0 or admits(load(codes, at, INT), late, sign)
        at += 1
        if several:
            while at < end and load(neighbours, at, like) == value:
                fits = fits or admits(load(codes, at, INT), late, sign)
                at += 1
        if not fits or (bit >= 0 and not is_candidate(graph, table_row, value, bit)):
            continue
        store(values, slot, value, LONG)
        if not passes(search, first_check, last_check):
            continue
        k = first
        while k < last and (
            k == through or joins(search, graph, legs + k * LEG_CELLS * 8, spans + k * SPAN_CELLS * 8, value, like)
        ):
            k += 1
        if k == last:
            store(stack, 0, at, LONG)
            return True
    store(stack, 0, at, LONG)
    return False


@kernel
def count_list(search: int, level: int, like: Any) -> int:
    """How many values an opened step of one leg has, all in both versions, with nothing but inequalities."""
    graph = load(search, GRAPH, LONG)
    step, stack = (
        load(search, STEPS, LONG) + level * STEP_CELLS * 8,
        load(search, STACK, LONG) + level * STACK_CELLS * 8,
    )
    begin, end, slot = load(stack, 0, LONG), load(stack, 1, LONG), load(step, 1, LONG)
    neighbours, count = load(graph, NEIGHBOURS, LONG), end - begin
    if count == 0:
        return 0
    first = load(step, 4, LONG)
    for i in range(first, load(step, 5, LONG)):
        value = other_value(search, i, slot)
        repeated = False
        for j in range(first, i):
            repeated = repeated or other_value(search, j, slot) == value
        if not repeated:
            at = find(neighbours, begin, end, value, like)
            count -= at < end and load(neighbours, at, like) == value
    return count


@kernel
def other_value(search: int, number: int, slot: int) -> int:
    """The value that a vertex is to differ from by an inequality."""
    check = load(search, CHECKS, LONG) + number * CHECK_CELLS * 8
    left, right = load(check, 1, LONG), load(check, 2, LONG)
    return load(load(search, VALUES, LONG), right if left == slot else left, LONG)


@kernel
def emit(search: int, block: int) -> None:
    """Write a match behind the others: the version that it is in, and the outputs."""
    values, outputs, columns = load(search, VALUES, LONG), load(search, OUTPUTS, LONG), load(search, COLUMNS, LONG)
    found = load(search, FOUND, LONG)
    row = block + found * (columns + 1) * 8
    store(row, 0, load(search, SIGN, LONG), LONG)
    for column in range(columns):
        store(row, column + 1, load(values, load(outputs, column, LONG), LONG), LONG)
    store(search, FOUND, found + 1, LONG)


@kernel
def add(search: int, count: int) -> None:
    """Count matches, gained or lost by the version that they are in."""
    cell = GAINED if load(search, SIGN, LONG) == NEW else LOST
    store(search, cell, load(search, cell, LONG) + count, LONG)


@entry("i8, T, i8, i8, b1, i8 -> i8")
def run(search: int, like: Any, block: int, capacity: int, counting: bool, budget: int) -> int:
    """Go on with a search of all delta plans.

    Parameters
    ----------
    search, like
        The search's frame, and an array of the type of the lists' neighbours.
    block, capacity
        The address of int64 [capacity, columns + 1]: a match's version (``NEW``: it is gained, ``OLD``: it is lost) and
        outputs.  ``counting`` writes none.
    budget
        Steps to open and to go on with, before yielding.

    Returns
    -------
    int
        ``DONE``, ``FULL`` (so is the block) or ``YIELD``.
    """
    level, plans = load(search, LEVEL, LONG), load(search, PLANS, LONG)
    work = 0
    while True:
        if not counting and load(search, FOUND, LONG) == capacity:
            store(search, LEVEL, level, LONG)
            return FULL
        opened = level < 0
        if opened and not next_seed(search):
            store(search, LEVEL, -1, LONG)
            return DONE
        plan = plans + load(search, PLAN, LONG) * PLAN_CELLS * 8
        first, last, table_row = load(plan, 4, LONG), load(plan, 5, LONG) - 1, load(plan, 8, LONG)
        if opened:
            if last < first:
                add(search, 1)
                if not counting:
                    emit(search, block)
                continue
            level = first
            open_step(search, level, like)
        work += 1
        step = step_of(search, level)
        if counting and level == last and load(step, 7, LONG):
            leg = load(step, 2, LONG)
            if load(load(search, SPANS, LONG), leg * SPAN_CELLS + 2, LONG) == 0:
                add(search, count_list(search, level, like))
                level = level - 1 if level > first else -1
                continue
        if load(step, 0, LONG) == EDGE:
            bound = next_edge(search, level)
        else:
            bound = next_vertex(search, level, table_row, like)
        if not bound:
            level = level - 1 if level > first else -1
        elif level < last:
            level += 1
            open_step(search, level, like)
        else:
            add(search, 1)
            if not counting:
                emit(search, block)
        if work >= budget:
            store(search, LEVEL, level, LONG)
            return YIELD
