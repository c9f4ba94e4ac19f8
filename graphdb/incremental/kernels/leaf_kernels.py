"""What a leaf counts for a binding of its parent, by a list that the batch does not touch, without opening it.

Such a leaf has the list of its parent's vertex, and no other.
"""

from __future__ import annotations

from typing import Any

from graphdb.incremental.frame import (
    CHECK_CELLS,
    CHECKS,
    GRAPH,
    INT,
    LEG_CELLS,
    LEGS,
    LONG,
    MARKS,
    NEIGHBOURS,
    RANGE_CELLS,
    RANGES,
    UNIT,
    VALUES,
)
from graphdb.incremental.kernels.list_kernels import row_of
from graphdb.incremental.kernels.step_kernels import step_of
from graphdb.storage.compile.kernels import kernel, load
from graphdb.storage.graph.pcsr_kernels import find


@kernel
def other_slot(search: int, number: int, slot: int) -> int:
    """The slot that a vertex is to differ from by an inequality."""
    check = load(search, CHECKS, LONG) + number * CHECK_CELLS * 8
    left, right = load(check, 1, LONG), load(check, 2, LONG)
    return right if left == slot else left


@kernel
def has_entry(graph: int, relation: int, row: int, value: int, like: Any) -> bool:
    """Whether the list of a row has a value."""
    reach = load(graph, RANGES, LONG) + relation * RANGE_CELLS * 8
    marks, offset = load(row, 6, INT), value - load(reach, 3, LONG)
    if marks != 0 and offset >= 0 and offset < load(reach, 4, LONG):
        return load(load(graph, MARKS, LONG) + marks * 8, offset >> 6, LONG) >> (offset & 63) & 1 != 0
    neighbours, begin = load(graph, NEIGHBOURS, LONG), load(row, 0, INT) * UNIT
    end = begin + load(row, 1, INT)
    at = find(neighbours, begin, end, value, like)
    return at < end and load(neighbours, at, like) == value


@kernel
def count_leaf(search: int, number: int, leg: int, vertex: int, like: Any) -> int:
    """How many bindings a leaf has by its leg, to a vertex that its parent is bound to; -1 where it is to be opened."""
    graph, step = load(search, GRAPH, LONG), step_of(search, number)
    relation = load(load(search, LEGS, LONG), leg * LEG_CELLS, LONG)
    row = row_of(graph, relation, vertex)
    count = load(row, 1, INT)
    if count == 0:
        return 0
    if count != load(row, 5, INT):
        return -1
    values, slot, begin = load(search, VALUES, LONG), load(step, 1, LONG), load(step, 4, LONG)
    count -= max(0, load(step, 7, LONG))
    for i in range(begin, load(step, 8, LONG)):
        if count <= 0:
            return 0
        value, repeated = load(values, other_slot(search, i, slot), LONG), False
        for j in range(begin, i):
            repeated = repeated or load(values, other_slot(search, j, slot), LONG) == value
        count -= not repeated and has_entry(graph, relation, row, value, like)
    return max(0, count)
