"""Columns of integers and floating-point numbers together, as unions: what UNION makes of both."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.values.types import MEMBERS, Base
from graphdb.relational.vectors.numbers import require
from graphdb.storage.arrays.arrow import values

_WHOLE = 1 << 53
"""Integers up to here are floating-point numbers, too."""

_MEMBERS = {"l": Base.INTEGER, "g": Base.FLOAT}
"""The members of a union that columns become, by the formats of these."""


def with_unions(table: arrow.Table, mixed: Collection[str], union: arrow.DataType) -> arrow.Table:
    """Return rows in which columns of numbers are of a union that has these; null stays null."""
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return arrow.table({name: _as_union(each, union) if name in mixed else each for name, each in columns.items()})


def _as_union(array: arrow.Array, union: arrow.DataType) -> arrow.Array:
    base = _MEMBERS.get(array.type.format)
    require(base is not None)
    assert base is not None
    names = [field.name for field in union.fields]
    number = names.index(MEMBERS[base][0])
    children = [
        array if each == number else arrow.nulls(len(array), field.type) for each, field in enumerate(union.fields)
    ]
    return arrow.union_array(np.full(len(array), number, np.int8), children, names)


def as_floats(array: arrow.Array) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers of such a column, or of floating-point numbers alone, as these, and which are not null:
    float64 and bool [rows].

    They are equal where the numbers are; 0 is 0 whatever its sign.

    Raises
    ------
    NotVectorized
        Some are not equal then, or are no such numbers.
    """
    if array.type.format == "g":
        return np.where(array.is_valid(), values(array), 0) + 0.0, array.is_valid()
    assert array.data is not None
    found, there = np.zeros(len(array)), np.zeros(len(array), bool)
    for number, field in enumerate(array.type.fields):
        at = np.flatnonzero(array.data == number)
        if not len(at):
            continue
        require(field.type.format in _MEMBERS)
        child = array.children[number].take(at)
        numbers, valid = values(child), child.is_valid()
        if field.type.format == "l":
            require(not len(numbers) or bool((np.abs(numbers[valid]) <= _WHOLE).all()))
        found[at], there[at] = np.where(valid, numbers, 0) + 0.0, valid
    return found, there
