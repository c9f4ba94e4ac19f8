"""Columns of integers and floating-point numbers together, as unions: what UNION makes of both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.values.types import MEMBERS, Base
from graphdb.relational.vectors.numbers import multiplied, numeric, require
from graphdb.storage.arrays.arrow import values

_WHOLE = 1 << 53
"""Integers up to here are floating-point numbers, too."""

_MEMBERS = {"l": Base.INTEGER, "g": Base.FLOAT}
"""The members of a union that columns become, by the formats of these."""


def with_unions(table: arrow.Table, mixed: Collection[str], union: arrow.DataType) -> arrow.Table:
    """Return rows in which columns of numbers are of a union that has these; null stays null."""
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return arrow.table({name: as_union(each, union) if name in mixed else each for name, each in columns.items()})


def numbers_of_case(operands: Sequence[arrow.Array], union: arrow.DataType) -> arrow.Array:
    """Return what CASE has, of its conditions, each before its number, and one number at the end."""
    *branches, otherwise = operands
    conditions = [values(each) if each.valid is None else values(each) & each.valid for each in branches[::2]]
    results = [*branches[1::2], otherwise]
    which = np.select(conditions, [np.int8(i) for i in range(len(conditions))], np.int8(len(conditions)))
    return _chosen(results, which, union)


def numbers_there(operands: Sequence[arrow.Array], union: arrow.DataType) -> arrow.Array:
    """Return the first of integers and floating-point numbers, or unions of these, that is not null."""
    require(all(map(_is_number, operands)))
    there = [each.is_valid() for each in operands]
    which = np.select(there, [np.int8(i) for i in range(len(there))], np.int8(len(there) - 1))
    return _chosen(operands, which, union)


def _chosen(results: Sequence[arrow.Array], which: NDArray[np.int8], union: arrow.DataType) -> arrow.Array:
    """Return one of several numbers for each row."""
    require(len(results) < 1 << 7 and all(map(_is_number, results)))
    reals = np.array([each.type == arrow.FLOAT64 for each in results])
    choices = [which == i for i in range(len(results))]

    def of_each(columns: Sequence[Any]) -> NDArray[Any]:
        if len(columns) == 2:  # for which NumPy has what takes fewer passes
            chosen: NDArray[Any] = np.where(choices[0], *columns)
            return chosen
        return np.select(choices, columns)

    whole = of_each([np.int64(0) if r else numeric(each) for each, r in zip(results, reals, strict=True)])
    real = of_each([values(each) if r else np.float64(0) for each, r in zip(results, reals, strict=True)])
    there = of_each([each.is_valid() for each in results]) if any(each.null_count for each in results) else None
    return union_of(whole, real, reals[which], there, union)


def _is_number(array: arrow.Array) -> bool:
    """Whether values are integers of a column, or floating-point numbers."""
    return array.type == arrow.FLOAT64 or arrow.is_integer(array.type)


def union_of(
    whole: NDArray[np.int64],
    real: NDArray[np.float64],
    is_real: NDArray[np.bool_],
    there: NDArray[np.bool_] | None,
    union: arrow.DataType,
) -> arrow.Array:
    """Return integers, and floating-point numbers where ``is_real``, as a column of both."""
    names = [field.name for field in union.fields]
    members = {MEMBERS[Base.INTEGER][0]: whole, MEMBERS[Base.FLOAT][0]: real}
    numbered = {name: number for number, name in enumerate(names)}
    kinds = np.where(is_real, *(np.int8(numbered[MEMBERS[base][0]]) for base in (Base.FLOAT, Base.INTEGER)))
    children = [
        arrow.numbers(members[field.name], there) if field.name in members else arrow.nulls(len(kinds), field.type)
        for field in union.fields
    ]
    return arrow.union_array(kinds, children, names)


def sums_of_numbers(
    array: arrow.Array,
    groups: NDArray[np.int64],
    weights: NDArray[np.int64] | None,
    count: int,
    sums: Callable[[NDArray[np.int64], NDArray[np.int64] | None, int], NDArray[np.int64]],
) -> arrow.Array:
    """Return the sum of a column of both for each group: an integer where all are, which ``sums`` adds up."""
    data, there = as_floats(array)
    assert array.data is not None
    (integral,) = (i for i, each in enumerate(array.type.fields) if each.name == MEMBERS[Base.INTEGER][0])
    whole = there & (array.data == integral)
    real = there & ~whole
    some = np.flatnonzero(whole)
    integers = data[some].astype(np.int64)
    totals = sums(groups[some], integers if weights is None else multiplied(integers, weights[some]), count)
    with np.errstate(over="ignore", invalid="ignore"):
        weighted = data if weights is None else data * weights
        summed = np.array([weighted.sum()]) if count == 1 else np.bincount(groups, weighted, count)
    reals = summed.astype(np.float64, copy=False)
    require(bool(np.isfinite(reals).all()))
    return union_of(totals, reals, np.bincount(groups[real], minlength=count) > 0, None, array.type)


def as_union(array: arrow.Array, union: arrow.DataType) -> arrow.Array:
    """Return integers, or floating-point numbers, as a column that may have both."""
    base = _MEMBERS.get(array.type.format)
    require(base is not None)
    assert base is not None
    names = [field.name for field in union.fields]
    number = names.index(MEMBERS[base][0])
    children = [
        array if each == number else arrow.nulls(len(array), field.type) for each, field in enumerate(union.fields)
    ]
    return arrow.union_array(np.full(len(array), number, np.int8), children, names)


def in_floats(array: arrow.Array) -> arrow.Array:
    """Return a column of both as floating-point numbers, the nearest to each."""
    if not arrow.is_union(array.type):
        return array.cast(arrow.FLOAT64)
    assert array.data is not None
    found, there = np.zeros(len(array)), np.zeros(len(array), bool)
    for number, child in enumerate(array.children):
        at = np.flatnonzero(array.data == number)
        if len(at) and _is_number(child):
            found[at], there[at] = values(child)[at], child.is_valid()[at]
    return arrow.numbers(found, None if there.all() else there)


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
