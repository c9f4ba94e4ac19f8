"""What a step's bindings count, where nothing but their number is asked for.

A list's length, less what a binding must differ from; what two lists share; for each binding of a step the product of
what its children count, many bindings at a time.
"""

from __future__ import annotations

from typing import Any

from graphdb.incremental.frame import (
    BOTH,
    CHECK_CELLS,
    CHECKS,
    CODES,
    GRAPH,
    INT,
    LEG_CELLS,
    LEGS,
    LONG,
    NEIGHBOURS,
    PAIRED,
    PAIRED_COUNT,
    PAIRED_VERTICES,
    PAIRS,
    SEED_SOURCE,
    SEED_TARGET,
    SPAN_CELLS,
    SPANS,
    UNEQUAL,
    UNIT,
    VALUES,
    VERTEX,
)
from graphdb.incremental.kernels.hoisting_kernels import open_counted
from graphdb.incremental.kernels.leaf_kernels import count_leaf, other_slot
from graphdb.incremental.kernels.list_kernels import row_of
from graphdb.incremental.kernels.step_kernels import (
    FAR_LONGER,
    admits,
    block_of,
    counted_of,
    covers,
    joins,
    next_block,
    next_edge,
    open_step,
    skip,
    stack_of,
    step_of,
)
from graphdb.storage.compile.kernels import fetch, kernel, load, store
from graphdb.storage.graph.pcsr_kernels import find


@kernel
def seed_place(search: int, begin: int, end: int, near: int, like: Any) -> int:
    """The place of the changed edge under way in a vertex's list, of which just one entry is changed; else ``end``."""
    graph = load(search, GRAPH, LONG)
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    source, target = load(search, SEED_SOURCE, LONG), load(search, SEED_TARGET, LONG)
    if near != source and near != target:
        return end
    far = target if near == source else source
    at = find(neighbours, begin, end, far, like)
    return at if at < end and load(neighbours, at, like) == far and load(codes, at, INT) & BOTH != BOTH else end


@kernel
def occurs(graph: int, span: int, begin: int, end: int, value: int, like: Any) -> int:
    """Whether a list has a value: 0 or 1."""
    neighbours, marks, offset = load(graph, NEIGHBOURS, LONG), load(span, 3, LONG), value - load(span, 4, LONG)
    if marks != 0 and offset >= 0 and offset < load(span, 5, LONG):
        return load(marks, offset >> 6, LONG) >> (offset & 63) & 1
    at = find(neighbours, begin, end, value, like)
    return at < end and load(neighbours, at, like) == value


@kernel
def count_list(search: int, level: int, like: Any) -> int:
    """How many values an opened step of one leg has, which must differ from others, but not from twins."""
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    step, stack = step_of(search, level), stack_of(search, level)
    begin, end, slot = load(stack, 0, LONG), load(stack, 1, LONG), load(step, 1, LONG)
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    span = load(search, SPANS, LONG) + load(step, 2, LONG) * SPAN_CELLS * 8
    mixed = load(span, 2, LONG)
    leg = load(search, LEGS, LONG) + load(step, 2, LONG) * LEG_CELLS * 8
    near, late = load(values, load(leg, 1, LONG), LONG), load(leg, 2, LONG)
    if begin == end:
        return 0
    count = end - begin - mixed
    if mixed != 0:
        at = seed_place(search, begin, end, near, like) if mixed == 1 else end
        if at < end:
            count += admits(search, load(codes, at, INT), near, load(neighbours, at, like), late)
        else:
            for at in range(begin, end):
                if load(codes, at, INT) & BOTH != BOTH:
                    count += admits(search, load(codes, at, INT), near, load(neighbours, at, like), late)
            store(stack, 0, end, LONG)  # as far as it was looked at
    first = load(step, 4, LONG)
    for i in range(first, load(step, 8, LONG)):
        if count <= 0:
            return 0
        other = other_slot(search, i, slot)
        value = load(values, other, LONG)
        repeated = False
        for j in range(first, i):
            repeated = repeated or load(values, other_slot(search, j, slot), LONG) == value
        if not repeated and mixed == 0:
            count -= occurs(graph, span, begin, end, value, like)
        elif not repeated:
            at = find(neighbours, begin, end, value, like)
            if at < end and load(neighbours, at, like) == value:
                count -= admits(search, load(codes, at, INT), near, value, late)
    return count


@kernel
def count_hoisted(search: int, level: int, like: Any) -> int:
    """How many values that are hoisted an opened step has, which must differ from others, and nothing else."""
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    step, stack = step_of(search, level), stack_of(search, level)
    begin, end, slot = load(stack, 0, LONG), load(stack, 1, LONG), load(step, 1, LONG)
    span, first = load(search, SPANS, LONG) + load(step, 2, LONG) * SPAN_CELLS * 8, load(step, 4, LONG)
    count = end - begin
    for i in range(first, load(step, 8, LONG)):
        value, repeated = load(values, other_slot(search, i, slot), LONG), False
        for j in range(first, i):
            repeated = repeated or load(values, other_slot(search, j, slot), LONG) == value
        if count > 0 and not repeated:
            count -= occurs(graph, span, begin, end, value, like)
    return count


@kernel
def count_common(search: int, level: int, like: Any) -> int:
    """How many values the lists of an opened step share, which must differ from others, but not from twins, and nothing
    else; -1 where three lists are to be asked one by one.
    """
    graph, values = load(search, GRAPH, LONG), load(search, VALUES, LONG)
    step, stack = step_of(search, level), stack_of(search, level)
    legs, spans = load(search, LEGS, LONG), load(search, SPANS, LONG)
    through, asked = load(stack, 2, LONG), load(stack, 5, LONG)
    leg, other_leg = legs + through * LEG_CELLS * 8, legs + asked * LEG_CELLS * 8
    span, other_span = spans + through * SPAN_CELLS * 8, spans + asked * SPAN_CELLS * 8
    first, other_first = load(span, 0, LONG), load(other_span, 0, LONG)
    if first == load(span, 1, LONG) or other_first == load(other_span, 1, LONG):
        return 0
    third = 3 * load(step, 2, LONG) + 3 - through - asked if load(step, 3, LONG) - load(step, 2, LONG) == 3 else -1
    third_span = spans + third * SPAN_CELLS * 8
    if third < 0:
        count = count_shared(search, stack, leg, span, other_leg, other_span, like)
    else:
        count = count_marked(search, stack, span, other_span, third_span, like)
    if count < 0:
        return -1
    store(stack, 0, load(stack, 1, LONG), LONG)
    slot, begin = load(step, 1, LONG), load(step, 4, LONG)
    for i in range(begin, load(step, 8, LONG)):
        if count == 0:
            return 0
        value = load(values, other_slot(search, i, slot), LONG)
        repeated = False
        for j in range(begin, i):
            repeated = repeated or load(values, other_slot(search, j, slot), LONG) == value
        if not repeated:
            store(span, 0, first, LONG)
            store(other_span, 0, other_first, LONG)
            shared = joins(search, graph, leg, span, value, like)
            shared = shared and joins(search, graph, other_leg, other_span, value, like)
            count -= shared and (third < 0 or occurs(graph, third_span, 0, 0, value, like) != 0)
    return count


@kernel
def count_marked(search: int, stack: int, span: int, second: int, third: int, like: Any) -> int:
    """How many values three lists share, of which the first is the shortest; -1 where bitmaps do not say."""
    neighbours = load(load(search, GRAPH, LONG), NEIGHBOURS, LONG)
    at, end = load(stack, 0, LONG), load(stack, 1, LONG)
    first, last = load(neighbours, at, like), load(neighbours, end - 1, like)
    if load(span, 2, LONG) != 0 or not (covers(second, first, last) and covers(third, first, last)):
        return -1
    a, b, low_a, low_b = load(second, 3, LONG), load(third, 3, LONG), load(second, 4, LONG), load(third, 4, LONG)
    count = 0
    while at < end:
        x = load(neighbours, at, like) - low_a
        y = load(neighbours, at, like) - low_b
        count += load(a, x >> 6, LONG) >> (x & 63) & load(b, y >> 6, LONG) >> (y & 63) & 1
        at += 1
    return count


@kernel
def count_shared(search: int, stack: int, leg: int, span: int, other_leg: int, other_span: int, like: Any) -> int:
    """How many values two lists share, of which the first is the shorter, by entries that may be bound."""
    graph = load(search, GRAPH, LONG)
    neighbours, codes = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG)
    at, end = load(stack, 0, LONG), load(stack, 1, LONG)
    marks, low, reach = load(other_span, 3, LONG), load(other_span, 4, LONG), load(other_span, 5, LONG)
    place, last, count = load(other_span, 0, LONG), load(other_span, 1, LONG), 0
    several, mixed = load(leg, 3, LONG) != 0, load(span, 2, LONG) != 0
    if not mixed and not several and load(other_span, 2, LONG) == 0:
        if marks != 0:
            while at < end:
                value = load(neighbours, at, like)
                offset = value - low
                if offset >= 0 and offset < reach:
                    count += load(marks, offset >> 6, LONG) >> (offset & 63) & 1
                else:
                    found = find(neighbours, place, last, value, like)
                    count += found < last and load(neighbours, found, like) == value
                at += 1
            return count
        if last - place <= FAR_LONGER * (end - at) and load(other_leg, 3, LONG) == 0:
            while at < end and place < last:
                x, y = load(neighbours, at, like), load(neighbours, place, like)
                count += x == y
                at += x <= y
                place += y <= x
            return count
    near, late = load(load(search, VALUES, LONG), load(leg, 1, LONG), LONG), load(leg, 2, LONG)
    while at < end:
        at = skip(graph, other_span, at, end, like)
        if at == end:
            break
        value = load(neighbours, at, like)
        fits = not mixed or admits(search, load(codes, at, INT), near, value, late)
        at += 1
        while several and at < end and load(neighbours, at, like) == value:
            fits = fits or admits(search, load(codes, at, INT), near, value, late)
            at += 1
        count += fits and joins(search, graph, other_leg, other_span, value, like)
    return count


@kernel
def count_children(search: int, level: int, table_row: int, like: Any) -> int:
    """Add what children count of the next bindings to an opened step's sum: how many entries were looked at."""
    values, out = load(search, VALUES, LONG), block_of(search, level)
    step, stack = step_of(search, level), stack_of(search, level)
    slot, child = load(step, 1, LONG), load(step, 10, LONG)
    work = -load(stack, 0, LONG)
    count = next_block(search, level, table_row, load(step, 5, LONG), out, like)
    work += load(stack, 0, LONG) + count
    if count > 1:
        fetch_lists(search, child, slot, out, count)
    total = 0
    for i in range(count):
        store(values, slot, load(out, i, LONG), LONG)
        product, number = 1, child
        while number >= 0 and product > 0:
            counted, leg = -1, load(counted_of(search, number), 4, LONG)
            if leg >= 0:
                counted = count_leaf(search, number, leg, load(out, i, LONG), like)
            work += 2
            if counted < 0:
                work += open_counted(search, number, table_row, like)
                begin = load(stack_of(search, number), 0, LONG)
                counted = count_step(search, number, table_row, like)
                work += load(stack_of(search, number), 0, LONG) - begin
            product *= counted
            number = load(step_of(search, number), 11, LONG)
        total += product
    store(stack, 3, load(stack, 3, LONG) + total, LONG)
    return work


@kernel
def count_pairs(search: int, level: int, table_row: int, like: Any) -> int:
    """Add the pairs of which the next bindings of an opened step are to its sum: how many entries were looked at.

    The child's vertex is joined to both of a pair.  By it, so many pairs are made with a binding as there were bindings
    before that it is joined to.
    """
    values, out = load(search, VALUES, LONG), block_of(search, level)
    step, stack = step_of(search, level), stack_of(search, level)
    slot, child = load(step, 1, LONG), load(step, 10, LONG)
    found, same = block_of(search, child), load(step, 12, LONG) == PAIRS
    below, row = stack_of(search, child), step_of(search, child)
    alone = load(row, 3, LONG) - load(row, 2, LONG) == 1
    alone = alone and load(load(search, LEGS, LONG) + load(row, 2, LONG) * LEG_CELLS * 8, 3, LONG) == 0
    for i in range(load(row, 4, LONG), load(row, 5, LONG)):
        alone = alone and load(load(search, CHECKS, LONG) + i * CHECK_CELLS * 8, 0, LONG) == UNEQUAL
    work = -load(stack, 0, LONG)
    count = next_block(search, level, table_row, load(step, 5, LONG), out, like)
    work += load(stack, 0, LONG) + count
    if count > 1:
        fetch_lists(search, child, slot, out, count)
    total = 0
    for i in range(count):
        store(values, slot, load(out, i, LONG), LONG)
        open_step(search, child, -1, like)
        work += 2 - load(below, 0, LONG)
        if alone:
            total += pair_list(search, child, same, like)
        while load(below, 0, LONG) < load(below, 1, LONG):
            joined = next_block(search, child, table_row, load(row, 5, LONG), found, like)
            total += pair_vertices(search, found, joined, same)
        work += load(below, 0, LONG)
    store(stack, 3, load(stack, 3, LONG) + total, LONG)
    if load(stack, 0, LONG) == load(stack, 1, LONG):
        forget_pairs(search)
    return work


@kernel
def pair_vertices(search: int, found: int, count: int, same: int) -> int:
    """How many pairs some vertices make with those that were bound before."""
    counts, vertices = load(search, PAIRED, LONG), load(search, PAIRED_VERTICES, LONG)
    number, total = load(search, PAIRED_COUNT, LONG), 0
    for k in range(count):
        vertex = load(found, k, LONG)
        before = load(counts, vertex, INT)
        total += 2 * before + same
        store(counts, vertex, before + 1, INT)
        store(vertices, number, vertex, LONG)
        number += before == 0
    store(search, PAIRED_COUNT, number, LONG)
    return total


@kernel
def pair_list(search: int, level: int, same: int, like: Any) -> int:
    """Do so for all that an opened step of one leg binds, which must differ from others, and from nothing else.

    Its candidates are not asked for: what closes no pair is counted in none.
    """
    graph, step, stack = load(search, GRAPH, LONG), step_of(search, level), stack_of(search, level)
    slot, first, last, number = load(step, 1, LONG), load(step, 4, LONG), load(step, 5, LONG), load(step, 2, LONG)
    leg, span = load(search, LEGS, LONG) + number * LEG_CELLS * 8, load(search, SPANS, LONG) + number * SPAN_CELLS * 8
    neighbours, codes, mixed = load(graph, NEIGHBOURS, LONG), load(graph, CODES, LONG), load(span, 2, LONG)
    values = load(search, VALUES, LONG)
    near, late = load(values, load(leg, 1, LONG), LONG), load(leg, 2, LONG)
    counts, vertices = load(search, PAIRED, LONG), load(search, PAIRED_VERTICES, LONG)
    number, total = load(search, PAIRED_COUNT, LONG), 0
    other = load(values, other_slot(search, first, slot), LONG) if first < last else -1
    for at in range(load(stack, 0, LONG), load(stack, 1, LONG)):
        vertex = load(neighbours, at, like)
        fits = vertex != other and (mixed == 0 or admits(search, load(codes, at, INT), near, vertex, late))
        for i in range(first + 1, last):
            fits = fits and load(values, other_slot(search, i, slot), LONG) != vertex
        if fits:
            before = load(counts, vertex, INT)
            total += 2 * before + same
            store(counts, vertex, before + 1, INT)
            store(vertices, number, vertex, LONG)
            number += before == 0
    store(search, PAIRED_COUNT, number, LONG)
    store(stack, 0, load(stack, 1, LONG), LONG)
    return total


@kernel
def forget_pairs(search: int) -> None:
    """Have no vertex counted for pairs."""
    counts, vertices = load(search, PAIRED, LONG), load(search, PAIRED_VERTICES, LONG)
    for i in range(load(search, PAIRED_COUNT, LONG)):
        store(counts, load(vertices, i, LONG), 0, INT)
    store(search, PAIRED_COUNT, 0, LONG)


@kernel
def fetch_lists(search: int, step: int, slot: int, out: int, count: int) -> None:
    """Have the lists that a step and its siblings ask for be on their way to the cache, for some bindings of a slot."""
    graph, legs = load(search, GRAPH, LONG), load(search, LEGS, LONG)
    neighbours = load(graph, NEIGHBOURS, LONG)
    while step >= 0:
        for k in range(load(step_of(search, step), 2, LONG), load(step_of(search, step), 3, LONG)):
            leg = legs + k * LEG_CELLS * 8
            if load(leg, 1, LONG) == slot:
                for i in range(count):
                    fetch(row_of(graph, load(leg, 0, LONG), load(out, i, LONG)))
                for i in range(count):
                    row = row_of(graph, load(leg, 0, LONG), load(out, i, LONG))
                    fetch(neighbours + load(row, 0, INT) * UNIT * 4)  # of ids of 64 bits elsewhere: nothing is gained
        step = load(step_of(search, step), 11, LONG)


@kernel
def count_step(search: int, level: int, table_row: int, like: Any) -> int:
    """How many bindings an opened step has, one less for each twin before it."""
    step = step_of(search, level)
    twins, legs = load(step, 7, LONG), load(step, 3, LONG) - load(step, 2, LONG)
    if twins >= 0 and legs == 1:
        return max(0, count_list(search, level, like) - twins)
    count, stack = -1, stack_of(search, level)
    if load(step, 0, LONG) == VERTEX:
        alike = load(step, 12, LONG) != 0
        if load(stack, 6, LONG):
            alike = load(counted_of(search, level), 2, LONG) != 0
        if alike and load(stack, 6, LONG):
            count = count_hoisted(search, level, like)
        elif alike:
            count = count_common(search, level, like)
        if count < 0:
            count, out, last_check = 0, block_of(search, level), load(step, 8, LONG)
            while load(stack, 0, LONG) < load(stack, 1, LONG):
                count += next_block(search, level, table_row, last_check, out, like)
        return max(0, count - max(0, twins))
    count = 0
    while next_edge(search, level):
        count += 1
    return count
