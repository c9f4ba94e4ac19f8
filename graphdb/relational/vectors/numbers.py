"""What operators on columns share: integers of values, which rows have one, sums by groups, and what is left to SQL."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.storage.arrays.arrow import values

Operator = Callable[[list[arrow.Array]], arrow.Array]
"""Makes the values of an operation of those of its operands."""

Valid = NDArray[np.bool_] | None
"""Which values are not null; None for all."""

SPREAD = 4
"""Numbers for each row, at most, where values themselves serve as numbers."""

FITS = float(1 << 62)
"""What sums and products of integers stay below."""

_IN_ORDER = 2048
"""Floating-point numbers that are added one after the other, as SQL adds them."""

_EXACT = float(1 << 53)
"""Sums below it are exact in float64, which NumPy adds them in."""


class NotVectorized(Exception):
    """These rows are for SQL."""


def require(condition: bool) -> None:
    """Leave rows to SQL unless a condition holds.

    Raises
    ------
    NotVectorized
        It does not.
    """
    if not condition:
        raise NotVectorized


def numeric(array: arrow.Array) -> NDArray[np.int64]:
    """Return integers as int64; what stands in the place of nulls means nothing."""
    require(arrow.is_integer(array.type) and array.type != arrow.UINT64)
    return values(array).astype(np.int64, copy=False)


def ordinal(array: arrow.Array) -> NDArray[np.int64]:
    """Return integers that are ordered as the values are: of integers, truth values, dates and moments."""
    if arrow.is_struct(array.type):  # a point in time at an offset goes by its moment
        require([field.name for field in array.type.fields] == ["moment", "offset"])
        array = array.field("moment")
    plain = array.type == arrow.BOOL or arrow.is_date(array.type) or arrow.is_timestamp(array.type)
    return values(array).astype(np.int64, copy=False) if plain else numeric(array)


def truth(array: arrow.Array) -> NDArray[np.bool_]:
    """Return which truth values are true, and not null."""
    data: NDArray[np.bool_] = values(array)
    return data if array.valid is None else data & array.valid


def multiplied(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return products of integers that are not too large."""
    require(largest(left) * largest(right) < FITS)
    return left * right


def largest(data: NDArray[np.int64]) -> float:
    """Return the largest absolute value of some integers; 0 of none."""
    data = data[:1] if is_repeated(data) else data
    return float(max(abs(float(data.max())), abs(float(data.min())))) if data.size else 0.0


def is_repeated(data: NDArray[np.int64]) -> bool:
    """Whether an array is one integer for all rows, which is in memory once."""
    return data.strides == (0,)


def both(*arrays: arrow.Array) -> Valid:
    """Return which rows have no null among some values."""
    some = [array.is_valid() for array in arrays if array.null_count]
    return np.logical_and.reduce(some) if some else None


def truncated(left: NDArray[np.int64], right: NDArray[np.int64] | np.int64 | int) -> NDArray[np.int64]:
    """Return quotients of integers towards zero, as SQL has them; no divisor is 0."""
    if not isinstance(right, np.ndarray) and right > 0 and (not left.size or int(left.min()) >= 0):
        quotients: NDArray[np.int64] = left // right
        return quotients
    found: NDArray[np.int64] = np.abs(left) // np.abs(right)
    return np.where((left < 0) != (np.asarray(right) < 0), -found, found)


def sums_of_reals(numbers: NDArray[np.int64], data: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Return the sums of floating-point numbers by the numbers of their groups."""
    # A sum of a group of many rows is that of sums of pieces, which is the more exact one.
    found = np.bincount(numbers, data, count) if count > 1 or len(data) <= _IN_ORDER else np.array([data.sum()])
    return found.astype(np.float64, copy=False)


def sums(
    numbers: NDArray[np.int64], data: NDArray[np.int64] | None, count: int, sizes: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return the sums of integers by the numbers of their groups; without any, how many each group has.

    ``sizes`` says the latter where it is known.
    """
    if data is None:
        return np.array([len(numbers)]) if count == 1 else np.bincount(numbers, minlength=count)
    if not len(data):
        return np.zeros(count, np.int64)
    if count == 1 and len(data) < 1 << 31:
        return np.array([_total(data)], np.int64)
    some = data[:1] if is_repeated(data) else data
    low, high = int(some.min()), int(some.max())
    if low == high and abs(low) * len(data) < np.iinfo(np.int64).max:
        return (np.bincount(numbers, minlength=count) if sizes is None else sizes) * low
    large = max(-float(low), float(high)) * len(data) >= _EXACT
    if large and float(np.abs(data.astype(np.float64)).sum()) >= _EXACT:
        raise NotVectorized
    return np.bincount(numbers, data, count).astype(np.int64)


def _total(data: NDArray[np.int64]) -> int:
    """Return the sum of integers."""
    from graphdb.storage.arrays import column_kernels as kernels

    above, below = kernels.total(np.ascontiguousarray(data))
    found = (above << 32) + below
    if not -(1 << 63) <= found < 1 << 63:
        raise NotVectorized
    return found
