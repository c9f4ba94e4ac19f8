"""All pairs of some rows with others, of which conditions leave those within intervals of a sorted column.

Of the conditions that compare something of one side with something of the other those are taken that leave the fewest
pairs: the values of one side are sorted, and each row of the other finds its interval by binary search.  Equations are
intervals of one value.  No pair is made that they do not leave.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import Operation, Vector, names_of
from graphdb.relational.vectors.expressions import evaluated
from graphdb.relational.vectors.frames import Frame, Maker, made_once
from graphdb.relational.vectors.numbers import numeric, ordinal, require
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import numbered_texts

Ints = NDArray[np.int64]

_MOST = 1 << 20
"""Pairs that are made, at most."""

_FEW = 8
"""Pairs for each row of both sides that are not worth to look for fewer."""

_SPREAD = 4
"""Integers for each value, at most, where intervals are looked up by these themselves."""

_WHOLE = 1 << 53
"""Integers up to here are floating-point numbers, too."""

ROW = "row"
"""The column of pairs that says which of the rows each is of."""

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Product:
    """All pairs of some rows with others."""

    rows: arrow.Table
    others: arrow.Table
    retained: tuple[str, ...]
    """The columns of the rows that the pairs have, …"""
    added: Mapping[str, str]
    """… and the names of further ones, with the columns of the others that they are."""


class _Compared(NamedTuple):
    """A condition: what it compares of the rows, by which operator, with what of the others."""

    mine: Vector
    operator: str
    theirs: Vector


def pairs(product: Product, where: Sequence[Vector], properties: Properties) -> tuple[Frame, tuple[Vector, ...]]:
    """Return pairs that include all those which fulfil some conditions, and the conditions that are still to be tested.

    Raises
    ------
    NotVectorized
        There are too many of them, or no condition compares both sides.
    """
    left = Frame.of(arrow.table({name: product.rows.column(name) for name in product.retained}))
    right = Frame.of(arrow.table({name: product.others.column(at) for name, at in product.added.items()}))
    conditions = [part for condition in where for part in _parts(condition)]
    by_theirs: dict[Vector, dict[Vector, _Compared]] = {}
    for condition in conditions:
        if (compared := _compared(condition, product.retained, product.added)) is not None:
            by_theirs.setdefault(compared.theirs, {})[condition] = compared
    require(bool(by_theirs))
    by_equation = sorted(by_theirs.values(), key=lambda each: all(one.operator != "=" for one in each.values()))
    chosen = by_equation[0]
    low, high, order = _intervals([*chosen.values()], left, right, properties)
    total = int((high - low).sum())
    for each in by_equation[1:]:
        if total <= _FEW * (len(left) + len(right)):
            break
        others = _intervals([*each.values()], left, right, properties)
        if (fewer := int((others[1] - others[0]).sum())) < total:
            chosen, total, (low, high, order) = each, fewer, others
    require(total <= _MOST)
    counts = high - low
    mine = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    theirs = order[np.repeat(low - (ends - counts), counts) + np.arange(total)]

    def maker_of(name: str) -> Maker:
        if name == ROW:
            return made_once(lambda: arrow.numbers(mine))
        side, places = (left, mine) if name in product.retained else (right, theirs)
        return made_once(lambda: side.some(name, places))

    return Frame(total, maker_of), tuple(condition for condition in conditions if condition not in chosen)


def _parts(condition: Vector) -> Iterator[Vector]:
    """Yield the conditions all of which hold where one does."""
    if isinstance(condition, Operation) and condition.operator == "AND":
        for operand in condition.operands:
            yield from _parts(operand)
    else:
        yield condition


def _compared(condition: Vector, mine: Collection[str], theirs: Collection[str]) -> _Compared | None:
    """Return what a condition compares, one side being of the rows alone and the other of the others."""
    match condition:
        case Operation("=" | "<" | "<=" | ">" | ">=" | "same text" as operator, (one, other)):
            operator = "=" if operator == "same text" else operator
            first, second = names_of(one), names_of(other)
            if first and second and first <= {*mine} and second <= {*theirs}:
                return _Compared(one, operator, other)
            if first and second and first <= {*theirs} and second <= {*mine}:
                return _Compared(other, _MIRRORED[operator], one)
    return None


def _intervals(
    compared: Sequence[_Compared], left: Frame, right: Frame, properties: Properties
) -> tuple[Ints, Ints, Ints]:
    """Return for each of the rows from where up to where the others fulfil conditions on one value of theirs, in the
    order of that; and that order.
    """
    theirs = evaluated(compared[0].theirs, right, properties)
    low, high = np.zeros(len(left), np.int64), np.full(len(left), len(right))
    order: Ints | None = None
    for each in compared:
        mine = evaluated(each.mine, left, properties)
        keys, others, there, others_there = _comparable(mine, theirs)
        order = np.flatnonzero(others_there)
        if each.operator == "=" and len(compared) == 1 and (found := _equal(keys, others, there, order)) is not None:
            return found
        order = order[np.argsort(others[order], kind="stable")]
        sorted_keys = others[order]
        high = np.minimum(high, len(order))
        if each.operator in ("=", "<", "<="):  # theirs are not less than mine
            begins = np.searchsorted(sorted_keys, keys, "right" if each.operator == "<" else "left")
            low = np.maximum(low, begins)
        if each.operator in ("=", ">", ">="):
            ends = np.searchsorted(sorted_keys, keys, "left" if each.operator == ">" else "right")
            high = np.minimum(high, ends)
        high = np.where(there, high, 0)
    assert order is not None
    return low, np.maximum(high, low), order


def _equal(
    keys: NDArray[Any], others: NDArray[Any], there: NDArray[np.bool_], some: Ints
) -> tuple[Ints, Ints, Ints] | None:
    """Return what :func:`_intervals` does for an equation of integers in a small range; None for others.

    ``there`` says which of the keys can be compared, and ``some`` which of the others.
    """
    if keys.dtype != np.int64 or others.dtype != np.int64 or not len(some):
        return None
    theirs = others[some]
    least, span = int(theirs.min()), int(theirs.max()) - int(theirs.min()) + 1
    if span > _SPREAD * (len(keys) + len(theirs)):
        return None
    theirs = theirs - least
    ends = np.append(0, np.cumsum(np.bincount(theirs, minlength=span)))
    order = some[np.argsort(theirs.astype(np.min_scalar_type(span)), kind="stable")]
    within = there & (keys >= least) & (keys < least + span)
    at = np.where(within, keys - least, 0)
    return np.where(within, ends[at], 0), np.where(within, ends[at + 1], 0), order


def _comparable(
    mine: arrow.Array, theirs: arrow.Array
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return numbers in the order of the values of two columns, and which of these can be compared: NaN is not."""
    there, others_there = mine.is_valid(), theirs.is_valid()
    if arrow.is_string(mine.type):
        require(arrow.is_string(theirs.type) and mine.type == theirs.type)
        numbers = numbered_texts(arrow.concat_arrays([mine.decoded(), theirs.decoded()]))[1]
        return numbers[: len(mine)], numbers[len(mine) :], there, others_there
    if arrow.FLOAT64 in (mine.type, theirs.type):
        keys, others = map(_real, (mine, theirs))
        return keys, others, there & ~np.isnan(keys), others_there & ~np.isnan(others)
    both_integers = arrow.is_integer(mine.type) and arrow.is_integer(theirs.type)
    require(both_integers or mine.type == theirs.type)
    return ordinal(mine), ordinal(theirs), there, others_there


def _real(array: arrow.Array) -> NDArray[np.float64]:
    if array.type == arrow.FLOAT64:
        floats: NDArray[np.float64] = values(array)
        return floats
    found = numeric(array)
    require(not len(found) or max(abs(int(found.min())), abs(int(found.max()))) <= _WHOLE)
    return found.astype(np.float64)
