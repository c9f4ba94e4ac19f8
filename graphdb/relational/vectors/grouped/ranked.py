"""Values by their rank in a group: percentiles, and extremes of integers beside floating-point numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import PropertyOf
from graphdb.relational.vectors.expressions import evaluated
from graphdb.relational.vectors.frames import Frame
from graphdb.relational.vectors.numbers import numeric, require, sums
from graphdb.relational.vectors.order import of_floats, places_in_order
from graphdb.relational.vectors.typed.mixed import reals_of_property
from graphdb.relational.vectors.typed.unions import Part, as_floats, in_union
from graphdb.snapshot.properties import Properties
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import taken

Ints = NDArray[np.int64]


def percentile(
    function: str, share: float, array: arrow.Array, rows: Ints, numbers: Ints, weights: Ints | None, count: int
) -> arrow.Array:
    """Return a percentile of the numbers of each group, DuckDB's but for its last bit; null of a group without any.

    Parameters
    ----------
    function
        ``percentileDisc``, one of the numbers, or ``percentileCont``, between the two nearest as a float.
    rows, numbers
        The places of numbers that are there, and which group each is of: int64 [n].
    weights
        How many matches each of these stands for: int64 [n], or None for one.

    Raises
    ------
    NotVectorized
        Some are not finite.
    """
    real = array.type == arrow.FLOAT64
    if real:
        data = values(array)[rows]
        require(bool(np.isfinite(data).all()))
        data = of_floats(data)
    else:
        data = numeric(array)[rows]
    sizes = sums(numbers, weights, count)
    if function == "percentileDisc":
        at = np.zeros(count)
        ranks = np.maximum(sizes - np.floor(sizes - sizes * share).astype(np.int64), 1) - 1
    else:
        at = np.maximum(sizes - 1, 0) * share
        ranks = np.floor(at).astype(np.int64)
    if weights is None:
        found, following = _selected(numbers, data, sizes, ranks)
    else:
        found, following = _in_order(numbers, data, weights, ranks)
    there = None if sizes.all() else sizes > 0
    if function == "percentileDisc":
        return arrow.numbers(_floats(found) if real else found, there)
    low, high = (_floats(each) if real else each.astype(np.float64) for each in (found, following))
    beyond = at - ranks
    return arrow.numbers(np.where(beyond == 0, low, low + (high - low) * beyond), there)


def _selected(numbers: Ints, data: Ints, sizes: Ints, ranks: Ints) -> tuple[Ints, Ints]:
    """Return the value of some rank among those of each group, and the next one, or the last."""
    from graphdb.storage.arrays import column_kernels as kernels

    found, following = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    given = np.ascontiguousarray(numbers), np.ascontiguousarray(data)
    kernels.select_of_groups(*given, np.cumsum(sizes) - sizes, np.empty(len(data), np.int64), ranks, found, following)
    return found, following


def _in_order(numbers: Ints, data: Ints, weights: Ints, ranks: Ints) -> tuple[Ints, Ints]:
    """Return the same of values that come several times."""
    if not len(data):
        return np.zeros_like(ranks), np.zeros_like(ranks)
    order = places_in_order([numbers, data])
    until = np.cumsum(weights[order])  # so many come up to each
    ends = np.searchsorted(numbers[order], np.arange(len(ranks)), "right")
    begins = np.append(0, until)[np.searchsorted(numbers[order], np.arange(len(ranks)))]
    last = np.maximum(ends - 1, 0)
    found, following = (
        data[order[np.minimum(np.searchsorted(until, begins + each, "right"), last)]] for each in (ranks, ranks + 1)
    )
    return found, following


def _floats(bits: Ints) -> NDArray[np.float64]:
    """Return the floating-point numbers that :func:`graphdb.relational.vectors.order.of_floats` made integers of."""
    return np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits).view(np.float64)


def extreme_number(function: str, array: arrow.Array, numbers: Ints, count: int) -> arrow.Array:
    """Return the least or greatest of the numbers of both types of each group, of equal ones the first; of a union.

    Raises
    ------
    NotVectorized
        Some are not finite, or integers that are not floating-point numbers, too.
    """
    return taken(array, _extremes(function, *as_floats(array), numbers, count))


def extreme_of_property(
    function: str, key: PropertyOf, frame: Frame, properties: Properties, numbers: Ints, count: int
) -> arrow.Array | None:
    """Return the same of a property; None of one that is not of both types."""
    reals = reals_of_property(key, frame, properties)
    if reals is None:
        return None
    at = _extremes(function, *as_floats(reals), numbers, count)
    none = bool((at < 0).any())
    found = evaluated(key, frame.at(np.maximum(at, 0)), properties)
    return found.take(arrow.numbers(np.arange(len(at)), at >= 0)) if none else found


def _extremes(function: str, data: NDArray[np.float64], there: NDArray[np.bool_], numbers: Ints, count: int) -> Ints:
    """Return the row with the least or greatest number of each group, of equal ones the first; -1 without one."""
    rows = np.flatnonzero(there)
    data, numbers = data[rows], numbers[rows]
    require(bool(np.isfinite(data).all()))
    least = function == "min"
    extremes = np.full(count, np.inf if least else -np.inf)
    (np.minimum if least else np.maximum).at(extremes, numbers, data)
    same = np.flatnonzero(data == extremes[numbers])[::-1]  # the first one is written last
    found = np.full(count, -1)
    found[numbers[same]] = rows[same]
    return found


def extreme_of_parts(
    function: str, parts: Sequence[Part], numbers: Ints, count: int, union: arrow.DataType
) -> arrow.Array:
    """Return the least or greatest number of each group, of parts of integers and of floats; of a union.

    Raises
    ------
    NotVectorized
        Numbers of both types are equally extreme, some are not finite, or too large to be floating-point ones exactly.
    """
    if all(arrow.is_integer(array.type) for array, _ in parts):
        return _extreme_integer(function, parts, numbers, count)
    least = function == "min"
    compare, none = (np.minimum, np.inf) if least else (np.maximum, -np.inf)
    found = np.full((len(parts), count), none)
    for extremes, (array, which) in zip(found, parts, strict=True):
        there = array.is_valid() if which is None else array.is_valid() & which
        real = array.type == arrow.FLOAT64
        given = values(array)[there] if real else numeric(array)[there]
        require(bool((np.isfinite(given) if real else np.abs(given) <= _WHOLE).all()))
        data = given.astype(np.float64)
        compare.at(extremes, numbers[there], data)
    chosen = found.argmin(axis=0) if least else found.argmax(axis=0)
    reals = np.array([array.type == arrow.FLOAT64 for array, _ in parts])
    same = (found == found[chosen, np.arange(count)]) & np.isfinite(found)
    require(not bool((same[reals].any(axis=0) & same[~reals].any(axis=0)).any()))
    results = []
    for number, extremes in enumerate(found):
        there = np.isfinite(extremes)
        made = extremes if reals[number] else np.where(there, extremes, 0).astype(np.int64)
        results.append((arrow.numbers(made, there), chosen == number))
    return in_union(results, union)


def _extreme_integer(function: str, parts: Sequence[Part], numbers: Ints, count: int) -> arrow.Array:
    """Return the least or greatest integer of each group, of parts of integers alone; null of a group without any."""
    limits = np.iinfo(np.int64)
    compare, none = (np.minimum, limits.max) if function == "min" else (np.maximum, limits.min)
    found, there = np.full(count, none), np.zeros(count, bool)
    for array, which in parts:
        chosen = array.valid if which is None else which if array.valid is None else array.valid & which
        some = slice(None) if chosen is None else np.flatnonzero(chosen)
        compare.at(found, numbers[some], numeric(array)[some])
        there[numbers[some]] = True
    return arrow.numbers(np.where(there, found, 0), None if there.all() else there)


_WHOLE = 1 << 53
"""Integers up to here are floating-point numbers, too."""
