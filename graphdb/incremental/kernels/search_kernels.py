"""The search of a pattern's delta plans: depth-first, from every changed edge (GAMMA §IV-C, algorithm 1).

It can stop and go on: its state lies in the search's frame (:mod:`graphdb.incremental.frame`).  Who enumerates matches
takes a plan's steps one after the other; who counts them goes along their tree, and multiplies.
"""

from __future__ import annotations

from typing import Any

from graphdb.incremental.frame import (
    BINDING,
    BOTH,
    COLUMNS,
    COPIES,
    COPY_CELLS,
    DONE,
    FOUND,
    FULL,
    GAINED,
    GRAPH,
    INT,
    LAST_RECORD,
    LEG_CELLS,
    LEGS,
    LEVEL,
    LONG,
    LOST,
    MOST_COPIES,
    NEW,
    ORDER,
    PLAN,
    PLAN_CELLS,
    PLAN_NUMBERS,
    PLAN_STARTS,
    PLANS,
    PRODUCT,
    RECORD,
    RECORD_CELLS,
    RECORDS,
    SEED_LABEL,
    SEED_SOURCE,
    SEED_TARGET,
    SIGN,
    STRIDE,
    TABLE,
    TABLE_ROW,
    VALUES,
    VERTEX_COUNT,
    YIELD,
)
from graphdb.incremental.kernels.counting_kernels import count_children, count_pairs, count_step
from graphdb.incremental.kernels.hoisting_kernels import note_opened, open_counted
from graphdb.incremental.kernels.list_kernels import row_of
from graphdb.incremental.kernels.step_kernels import (
    counted_of,
    next_binding,
    open_step,
    passes,
    stack_of,
    step_of,
)
from graphdb.storage.compile.kernels import entry, kernel, load, store

SHORT = 4 * BINDING
"""Work of a step that is taken at once: to look for another one takes as long."""


@kernel
def shortest_list(search: int, graph: int, step: int) -> int:
    """How long the shortest of the lists is that a step is to bind what they share of."""
    row, values, least = step_of(search, step), load(search, VALUES, LONG), -1
    for k in range(load(row, 2, LONG), load(row, 3, LONG)):
        leg = load(search, LEGS, LONG) + k * LEG_CELLS * 8
        size = load(row_of(graph, load(leg, 0, LONG), load(values, load(leg, 1, LONG), LONG)), 1, INT)
        least = size if least < 0 else min(least, size)
    return load(graph, VERTEX_COUNT, LONG) if least < 0 else least


@kernel
def choose_order(search: int, graph: int, plan: int) -> int:
    """The order of a delta plan that is expected to be the least work, by the first step's shortest list."""
    plans = load(search, PLANS, LONG)
    orders = load(plans, plan * PLAN_CELLS + 9, LONG)
    best, least = plan, -1
    if orders > 1:
        for order in range(plan, plan + orders):
            first = load(plans, order * PLAN_CELLS + 4, LONG)
            work = shortest_list(search, graph, first) * load(plans, order * PLAN_CELLS + 10, LONG)
            if least < 0 or work < least:
                best, least = order, work
    return best


@kernel
def choose_step(search: int, step: int) -> int:
    """The step that a subtree begins with: of those that may, the one that is expected to be the least work."""
    graph, best = load(search, GRAPH, LONG), step
    other = load(counted_of(search, step), 0, LONG)
    if other >= 0:
        least = shortest_list(search, graph, step) * load(counted_of(search, step), 5, LONG)
        while other >= 0 and least > SHORT:
            work = shortest_list(search, graph, other) * load(counted_of(search, other), 5, LONG)
            if work < least:
                best, least = other, work
            other = load(counted_of(search, other), 0, LONG)
    return best


@kernel
def next_seed(search: int) -> bool:
    """Bind the edge of the next delta plan that a changed edge fits: False where there is none left."""
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    starts, numbers = load(search, PLAN_STARTS, LONG), load(search, PLAN_NUMBERS, LONG)
    records, count = load(graph, RECORDS, LONG), load(search, LAST_RECORD, LONG)
    table_row = load(search, TABLE_ROW, LONG)
    table = load(graph, TABLE, LONG) + table_row * load(graph, STRIDE, LONG) * 8
    at, place = load(search, RECORD, LONG), load(search, PLAN, LONG)
    while at < count:
        record = records + at * RECORD_CELLS * 8
        relation, near, far = load(record, 0, LONG), load(record, 1, LONG), load(record, 2, LONG)
        key, versions = load(record, 3, LONG), load(record, 4, LONG)
        last = load(starts, relation + 1, LONG)
        place = load(starts, relation, LONG) if place < 0 else place
        place = last if versions == 0 or versions == BOTH else place
        near_bits, far_bits = (load(table, near, LONG), load(table, far, LONG)) if place < last else (0, 0)
        while place < last:
            plan = load(numbers, place, LONG)
            place += 1
            row = load(search, PLANS, LONG) + plan * PLAN_CELLS * 8
            source, target = load(row, 1, LONG), load(row, 2, LONG)
            if near_bits >> source & far_bits >> target & 1 == 0 or key & load(row, 13, LONG) != 0:
                continue
            if source == target and near != far:
                continue
            store(values, source, near, LONG)
            store(values, target, far, LONG)
            store(values, load(row, 3, LONG), key, LONG)
            if passes(search, load(row, 6, LONG), load(row, 7, LONG)):
                store(search, PLAN, place, LONG)
                store(search, RECORD, at, LONG)
                store(search, SIGN, versions, LONG)
                store(search, SEED_LABEL, key >> 1, LONG)
                store(search, SEED_SOURCE, far if key & 1 else near, LONG)
                store(search, SEED_TARGET, near if key & 1 else far, LONG)
                store(search, ORDER, choose_order(search, graph, plan), LONG)
                return True
        at += 1
        place = -1
    store(search, RECORD, at, LONG)
    return False


@kernel
def plan_of(search: int) -> int:
    """The address of the row of the plan, in the order chosen, that is under way."""
    return load(search, PLANS, LONG) + load(search, ORDER, LONG) * PLAN_CELLS * 8


@kernel
def emit(search: int, block: int, number: int) -> None:
    """Write what is bound, and its copies, into the next rows of a block; behind it of how many matches, unless 0."""
    plan, values, columns = plan_of(search), load(search, VALUES, LONG), load(search, COLUMNS, LONG)
    found, sign = load(search, FOUND, LONG), load(search, SIGN, LONG)
    cell = load(search, COPIES, LONG) + load(plan, 11, LONG) * columns * COPY_CELLS * 8
    out = block + found * (columns + 1 + (number > 0)) * 8
    for _ in range(load(plan, 12, LONG)):
        store(out, 0, sign, LONG)
        for column in range(1, columns + 1):
            value, a = load(values, load(cell, 0, LONG), LONG), load(cell, 1, LONG)
            if a >= 0 and load(values, a, LONG) != load(values, load(cell, 2, LONG), LONG):
                value ^= 1
            store(out, column, value, LONG)
            cell += COPY_CELLS * 8
        if number > 0:
            store(out, columns + 1, number, LONG)
            out += 8
        out += (columns + 1) * 8
    store(search, FOUND, found + load(plan, 12, LONG), LONG)


@kernel
def add(search: int, count: int) -> None:
    """Count matches and their copies, gained or lost by the version that they are in."""
    cell = GAINED if load(search, SIGN, LONG) == NEW else LOST
    store(search, cell, load(search, cell, LONG) + count * load(plan_of(search), 12, LONG), LONG)


@kernel
def note(search: int, block: int, count: int) -> None:
    """Count matches of what is bound: into a block, if there is one."""
    if block == 0:
        add(search, count)
    elif count > 0:
        emit(search, block, count)


@entry("i8, T, i8, i8, i8 -> i8")
def search(frame: int, like: Any, block: int, capacity: int, budget: int) -> int:
    """Go on with finding matches.

    Parameters
    ----------
    frame, like
        The search's frame, and an array of the type of the lists' neighbours.
    block, capacity
        The address of int64 [capacity, columns + 1], with space for all copies of a match: its version (``NEW``: it is
        gained, ``OLD``: it is lost) and outputs.
    budget
        Steps to open and entries to look at, before yielding.

    Returns
    -------
    int
        ``DONE``, ``FULL`` (so is the block) or ``YIELD``.
    """
    level, work = load(frame, LEVEL, LONG), 0
    while True:
        if load(frame, FOUND, LONG) + load(frame, MOST_COPIES, LONG) > capacity:
            store(frame, LEVEL, level, LONG)
            return FULL
        opened = level < 0
        if opened and not next_seed(frame):
            return DONE
        plan, table_row = plan_of(frame), load(frame, TABLE_ROW, LONG)
        first, last = load(plan, 4, LONG), load(plan, 5, LONG) - 1
        bound, following = 1, first
        if not opened:
            stack, following = stack_of(frame, level), level + 1
            at = load(stack, 0, LONG)
            bound = next_binding(frame, level, table_row, like)
            work += 1 + load(stack, 0, LONG) - at
        if bound == 0:
            level = level - 1 if level > first else -1
        elif following > last:
            emit(frame, block, 0)
        else:
            level = following
            open_step(frame, level, -1, like)
        if work >= budget:
            store(frame, LEVEL, level, LONG)
            return YIELD


@entry("i8, T, i8, i8, i8 -> i8")
def count(frame: int, like: Any, block: int, capacity: int, budget: int) -> int:
    """Go on with counting what :func:`search` finds.

    Without a block (0), into ``GAINED`` and ``LOST``.  Else by what a counted program (:class:`.program.Program`)
    enumerates: int64 [capacity, columns + 2], the version, the outputs, and how many matches they are of.  Returns as
    :func:`search` does.
    """
    level, work = load(frame, LEVEL, LONG), 0
    while True:
        if block != 0 and load(frame, FOUND, LONG) + load(frame, MOST_COPIES, LONG) > capacity:
            store(frame, LEVEL, level, LONG)
            return FULL
        if level < 0 and not next_seed(frame):
            return DONE
        plan, table_row = plan_of(frame), load(frame, TABLE_ROW, LONG)
        enumerated = load(plan, 15, LONG)
        # The step to be counted next, or the one that has been counted, with what it has.
        step, counted, total = -1, -1, 0
        if level < 0:
            store(frame, PRODUCT, 1, LONG)
            if load(plan, 4, LONG) == load(plan, 5, LONG):
                note(frame, block, 1)
                continue
            step = load(plan, 4, LONG)
        elif load(step_of(frame, level), 12, LONG) != 0 and level > enumerated:
            stack = stack_of(frame, level)
            if load(step_of(frame, level), 12, LONG) == 1:
                work += 1 + count_children(frame, level, table_row, like)
            else:
                work += 1 + count_pairs(frame, level, table_row, like)
            if load(stack, 0, LONG) == load(stack, 1, LONG):
                counted, total = level, load(stack, 3, LONG)
        else:
            stack = stack_of(frame, level)
            at = load(stack, 0, LONG)
            if next_binding(frame, level, table_row, like):
                store(stack, 4, 1, LONG)
                step = load(step_of(frame, level), 10, LONG)
                if step < 0 and block != 0:  # enumerated, and nothing depends on it
                    emit(frame, block, 1)
                elif step < 0:
                    store(stack, 3, load(stack, 3, LONG) + 1, LONG)
            else:
                counted, total = level, load(stack, 3, LONG)
            work += 1 + load(stack, 0, LONG) - at
        while step >= 0 or counted >= 0:
            if step >= 0:
                step = choose_step(frame, step)
                work += open_counted(frame, step, table_row, like)
                if load(step_of(frame, step), 10, LONG) >= 0 or step <= enumerated:
                    store(stack_of(frame, step), 3, 0, LONG)
                    note_opened(frame, step)
                    level = step
                    break
                begin = load(stack_of(frame, step), 0, LONG)
                counted, total = step, count_step(frame, step, table_row, like)
                work += 2 + load(stack_of(frame, step), 0, LONG) - begin
            parent = load(step_of(frame, counted), 9, LONG)
            step = load(step_of(frame, counted), 11, LONG) if total > 0 else -1
            product = frame + PRODUCT * 8 if parent < 0 else stack_of(frame, parent) + 32
            total *= load(product, 0, LONG)
            store(product, 0, total, LONG)
            counted = -1
            if step < 0:  # all that depends on the parent's binding is counted, or some of it is nothing
                level = parent
                if parent < 0 or (block != 0 and parent == enumerated):
                    note(frame, block, total)
                else:
                    stack = stack_of(frame, parent)
                    store(stack, 3, load(stack, 3, LONG) + total, LONG)
        if work >= budget:
            store(frame, LEVEL, level, LONG)
            return YIELD
