"""Columns of integers beside floating-point numbers, as columns of one type each: these are gathered and computed with.

A column of both is a union, with an array for each type that a value may be of: to gather all of these takes ten times
as long.  What is made here stays as long as the column is in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from graphdb.common import arrow
from graphdb.snapshot.columns import ValueColumn
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import taken

_EXACT = 1 << 53
"""Integers up to here are floating-point numbers, too."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers of such a column: null where a vertex has none of the type."""

    whole: ValueColumn
    real: ValueColumn
    both: ValueColumn | None
    """All as floating-point numbers; None where some integers are not equal to one."""


def numbers_of(column: ValueColumn) -> Numbers | None:
    """Return the numbers of a column of integers and floating-point numbers; None of others, or of changed ones."""
    if column.changed is not None or not arrow.is_union(column.values.type):
        return None
    if column.values not in _known:
        _known[column.values] = _numbers(column)
    return _known[column.values]


_known: WeakKeyDictionary[arrow.Array, Numbers | None] = WeakKeyDictionary()


def _numbers(column: ValueColumn) -> Numbers | None:
    kinds, children = column.values.data, column.values.children
    assert kinds is not None
    whole, real = np.zeros(len(kinds), np.int64), np.zeros(len(kinds))
    is_whole, is_real = np.zeros(len(kinds), bool), np.zeros(len(kinds), bool)
    for number, child in enumerate(children):
        which = kinds == number
        if not which.any():
            continue
        if child.type.format not in ("l", "g"):
            return None
        data, there = (real, is_real) if child.type.format == "g" else (whole, is_whole)
        np.logical_and(which, child.is_valid(), out=there)
        data[there] = values(child)[there]
    small = not is_whole.any() or max(-int(whole.min()), int(whole.max())) <= _EXACT

    def of(array: arrow.Array) -> ValueColumn:
        if column.places is None:
            return replace(column, values=array)
        return replace(column, values=taken(array, column.places), places=None)

    there = is_whole | is_real
    both = of(arrow.numbers(real + whole, None if there.all() else there)) if small else None
    return Numbers(of(arrow.numbers(whole, is_whole)), of(arrow.numbers(real, is_real)), both)
