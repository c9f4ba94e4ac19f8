"""Expressions over one column whose values are few, as a table of their results: ``a.age > 30`` has two for 80 ages.

Rows are then told apart by the results alone, and several such conditions have few combinations, however many values
they are computed of.  Where values are many, but each is that of several rows, as a name is that of all edges of a
person, the expression is computed once for each value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import ColumnOf, OfItems, Operation, PropertyOf, Vector
from graphdb.relational.vectors.expressions import evaluated
from graphdb.relational.vectors.frames import Frame
from graphdb.relational.vectors.grouped.numbering import numbered_values
from graphdb.relational.vectors.numbers import NotVectorized
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.texts import taken

Table = tuple[NDArray[np.int32], int]
"""The number of the result for each value from the least on, and a bound of these, null's among them."""

_GAIN = 2
"""Times by which results have to be fewer than values."""

_REMEMBERED, _MOST = 1 << 25, 64
"""Bytes of tables that are remembered of one column, and how many there are at most."""

_VALUE = ColumnOf("value")

_known: WeakKeyDictionary[arrow.Array, dict[Vector, Table | None]] = WeakKeyDictionary()
"""Tables, by the columns that they are of: the same is asked again and again."""


def results_of_values(
    vector: Operation,
    leaf: ColumnOf | PropertyOf,
    given: arrow.Array,
    integers: arrow.Array,
    bounds: tuple[int, int],
    properties: Properties,
) -> Table | None:
    """Return the number of an expression's result for each value of a column; None where results are not fewer.

    Parameters
    ----------
    leaf
        The only column, or property, that the expression is computed of, whose values are ``given``.
    integers, bounds
        What stands for each of them: itself, or the number of a text; and the least and the greatest of these.
    """
    return _remembered(vector, leaf, given, lambda: _values(given, integers, bounds), properties)


def results_in_place(
    vector: Operation, leaf: ColumnOf | PropertyOf, given: arrow.Array, properties: Properties
) -> Table | None:
    """Return the number of an expression's result in the place of each value of a column, as many as they are; None
    where results are not fewer.
    """
    return None if given.children else _remembered(vector, leaf, given, lambda: given, properties)


def _remembered(
    vector: Operation,
    leaf: ColumnOf | PropertyOf,
    given: arrow.Array,
    values: Callable[[], arrow.Array],
    properties: Properties,
) -> Table | None:
    vector = _with(vector, leaf)
    tables = _known.setdefault(given, {})
    if vector not in tables:
        if sum(each[0].nbytes for each in tables.values() if each is not None) >= _REMEMBERED or len(tables) >= _MOST:
            tables.clear()
        tables[vector] = _made(vector, values(), properties)
    return tables[vector]


def _made(vector: Vector, values: arrow.Array, properties: Properties) -> Table | None:
    try:
        results = evaluated(vector, Frame.of(arrow.table({_VALUE.name: values})), properties)
        if arrow.is_struct(results.type) or results.children:
            return None
        numbers, bound = numbered_values(results)
    except NotVectorized:  # of some value that no row may have
        return None
    return (numbers.astype(np.int32), bound + 1) if _GAIN * (bound + 1) <= len(values) else None


def _values(given: arrow.Array, integers: arrow.Array, bounds: tuple[int, int]) -> arrow.Array:
    """Return the value of each integer between the bounds."""
    count = bounds[1] - bounds[0] + 1
    if arrow.is_string(given.type):
        at = np.zeros(count, np.int64)
        there = np.flatnonzero(integers.is_valid())
        assert integers.data is not None
        at[integers.data[there] - bounds[0]] = there
        return taken(given, at)
    each: NDArray[Any] = np.arange(bounds[0], bounds[1] + 1)
    return arrow.Array(given.type, count, None, each.astype(given.type.dtype))


def _with(vector: Any, leaf: Vector) -> Any:
    """Return an expression over the column of values in the place of another, or of a property."""
    if vector == leaf:
        return _VALUE
    if isinstance(vector, Operation):
        return replace(vector, operands=tuple(_with(operand, leaf) for operand in vector.operands))
    if isinstance(vector, OfItems):
        parts = {name: _with(getattr(vector, name), leaf) for name in ("lists", "where", "result", "start")}
        return replace(vector, **parts)
    return vector
