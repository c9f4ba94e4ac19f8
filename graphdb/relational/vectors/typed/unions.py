"""Columns of integers and floating-point numbers together, as unions: what UNION makes of both.

Sums take such a column in parts instead, each of one type: a result of CASE where its condition holds, an item of a
list that is unwound.  The sums of the parts are added, and no column of both is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.values.types import MEMBERS, Base
from graphdb.relational.vectors.numbers import (
    FITS,
    is_repeated,
    largest,
    multiplied,
    numeric,
    require,
)
from graphdb.storage.arrays.arrow import values

_WHOLE = 1 << 53
"""Integers up to here are floating-point numbers, too."""

_ALL = np.empty(0, np.bool_)
"""What says that all rows are there."""

_MEMBERS = {"l": Base.INTEGER, "g": Base.FLOAT}
"""The members of a union that columns become, by the formats of these."""


Part: TypeAlias = "tuple[arrow.Array, NDArray[np.bool_] | None]"
"""Numbers of one type, and which rows have theirs among them: bool [rows], or None for all."""


def with_unions(table: arrow.Table, mixed: Collection[str], union: arrow.DataType) -> arrow.Table:
    """Return rows in which columns of numbers are of a union that has these; null stays null."""
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return arrow.table({name: as_union(each, union) if name in mixed else each for name, each in columns.items()})


def parts_of_case(operands: Sequence[arrow.Array]) -> list[Part]:
    """Return what CASE has, of its conditions, each before its number, and one number at the end; no row is in two."""
    *branches, otherwise = operands
    conditions = [values(each) if each.valid is None else values(each) & each.valid for each in branches[::2]]
    return _chosen([*branches[1::2], otherwise], conditions)


def parts_there(operands: Sequence[Part]) -> list[Part]:
    """Return the first of integers and floating-point numbers that is not null; no row is in two parts."""
    arrays = [array for array, _ in operands]
    there = [array.is_valid() if which is None else which & array.is_valid() for array, which in operands[:-1]]
    if operands[-1][1] is not None:
        arrays[-1] = arrow.numbers(values(arrays[-1]), operands[-1][1] & arrays[-1].is_valid())
    require(all(map(_is_number, arrays)))
    return _chosen(arrays, there)


def _chosen(results: Sequence[arrow.Array], conditions: Sequence[NDArray[np.bool_]]) -> list[Part]:
    """Return the numbers of the first of some conditions that holds, and further numbers where none does."""
    require(all(map(_is_number, results)))
    chosen, rest = [], np.ones(len(results[0]), bool)
    for condition in conditions:
        chosen.append(rest & condition)
        rest &= ~condition
    return list(zip(results, [*chosen, rest], strict=True))


def parts_of_union(array: arrow.Array) -> list[Part]:
    """Return the integers and the floating-point numbers of a union that has no others."""
    assert array.data is not None
    kinds = [(child, array.data == kind) for kind, child in enumerate(array.children)]
    require(all(child.type.format in _MEMBERS or not which.any() for child, which in kinds))
    return [(child, which) for child, which in kinds if child.type.format in _MEMBERS]


def in_union(parts: Sequence[Part], union: arrow.DataType) -> arrow.Array:
    """Return the numbers of parts, each row in one of them at most, as a column of both types."""
    choices = [array.is_valid() if which is None else which for array, which in parts]
    results = [array for array, _ in parts]
    reals = [each.type == arrow.FLOAT64 for each in results]

    def of_each(columns: Sequence[Any]) -> NDArray[Any]:
        if len(columns) == 2:  # for which NumPy has what takes fewer passes
            chosen: NDArray[Any] = np.where(choices[0], columns[0], columns[1])
            return chosen
        return np.select(choices, columns)

    whole = of_each([np.int64(0) if r else numeric(each) for each, r in zip(results, reals, strict=True)])
    real = of_each([values(each) if r else np.float64(0) for each, r in zip(results, reals, strict=True)])
    there = of_each([each.is_valid() for each in results]) if any(each.null_count for each in results) else None
    return union_of(whole, real, of_each([np.bool_(r) for r in reals]), there, union)


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


def sums_of_parts(
    parts: Sequence[Part],
    groups: NDArray[np.int64],
    weights: NDArray[np.int64] | None,
    count: int,
    union: Callable[[], arrow.DataType],
) -> arrow.Array:
    """Return the sum of each group of rows whose numbers are those of all parts; null adds nothing.

    Where parts are of both types, it is an integer where all of a group's numbers are, else a floating-point number, in
    a column of the type that ``union`` returns.

    Parameters
    ----------
    groups, weights
        int64 [rows]: the group of each, below ``count``, and how many matches it stands for (None: one).

    Raises
    ------
    NotVectorized
        SQL has to add them: a sum is too large, or not finite.
    """
    from graphdb.storage.arrays import column_kernels as kernels

    groups = np.ascontiguousarray(groups)
    whole, real, reals = np.zeros(count, np.int64), np.zeros(count), np.zeros(count, np.int64)
    for array, chosen in parts:
        there = array.valid if chosen is None else chosen if array.valid is None else chosen & array.valid
        some = _ALL if there is None else np.ascontiguousarray(there)
        if array.type == arrow.FLOAT64:
            data = values(array) if weights is None else values(array) * weights
            kernels.add_reals(groups, some, np.ascontiguousarray(data), real, reals)
            continue
        integers = numeric(array)
        if len(integers) and is_repeated(integers) and not integers[0]:
            continue  # which rows have 0 makes no difference
        integers = integers if weights is None else multiplied(integers, weights)
        require(_sum_fits(integers))
        added = np.zeros(count, np.int64)
        kernels.add_integers(groups, some, np.ascontiguousarray(integers), added)
        require(largest(added) + largest(whole) < FITS)
        whole += added
    require(bool(np.isfinite(real).all()))
    types = {array.type == arrow.FLOAT64 for array, _ in parts}
    if len(types) == 1:
        return arrow.numbers(real if types.pop() else whole)
    return union_of(whole, real + whole, reals > 0, None, union())


def _sum_fits(integers: NDArray[np.int64]) -> bool:
    """Whether no sum of some of the integers is too large."""
    most = largest(integers)
    return most * len(integers) < FITS or float(np.abs(integers.astype(np.float64)).sum()) < FITS


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
    if len(array) and bool((array.data == array.data[0]).all()):  # a piece of one type
        child: arrow.Array = array.children[int(array.data[0])]
        if _is_number(child):
            return child.cast(arrow.FLOAT64)
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
