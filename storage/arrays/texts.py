"""Columns of texts and integers, taken and numbered at the speed of memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.storage.arrays.arrow import string_places

Ints = NDArray[np.int64]


def gathered(array: arrow.Array, first: int, ids: NDArray[np.integer[Any]]) -> tuple[arrow.Array, int] | None:
    """Return the values of ids, of an array of those from ``first`` on, and how many ids are beyond the last one.

    Null where an id is below the first or beyond the last one.  None where values are not of one, four or eight bytes.
    """
    data = array.data
    if array.children or array.offsets is not None or data is None or data.dtype.itemsize not in _GATHER:
        return None
    from graphdb.storage.arrays import column_kernels as kernels

    name, items = _GATHER[data.dtype.itemsize]
    wanted = np.ascontiguousarray(ids) if ids.dtype in (np.int32, np.int64) else ids.astype(np.int64)
    valid = np.empty(0, bool) if array.valid is None else np.ascontiguousarray(array.valid)
    out, there = np.empty(len(ids), data.dtype), np.empty(len(ids), bool)
    gather = getattr(kernels, name)
    absent, beyond = gather(np.ascontiguousarray(data).view(items), valid, first, wanted, out.view(items), there)
    return arrow.Array(array.type, len(ids), there if absent else None, out), beyond


_GATHER = {1: ("gather1", np.uint8), 4: ("gather4", np.int32), 8: ("gather8", np.int64)}
"""What gathers values of so many bytes, and as what."""


def is_run(integers: NDArray[np.integer[Any]]) -> bool:
    """Whether integers, of which there are some, follow one another."""
    if not len(integers) or integers[-1] - integers[0] != len(integers) - 1:
        return False
    from graphdb.storage.arrays import column_kernels as kernels

    fits = integers.dtype in (np.int32, np.int64)
    return kernels.rises_by_one(np.ascontiguousarray(integers) if fits else integers.astype(np.int64))


def taken(array: arrow.Array, at: NDArray[np.integer[Any]]) -> arrow.Array:
    """Return the values at some places; null below 0."""
    if not arrow.is_string(array.type):
        found = gathered(array, 0, at)
        if found is not None:
            if found[1]:
                raise IndexError("there is no value at such a place")
            return found[0]
        absent = at < 0
        return array.take(arrow.numbers(at, ~absent if absent.any() else None))
    from graphdb.storage.arrays import text_kernels as kernels

    assert array.data is not None
    assert array.offsets is not None
    if not len(array):
        return arrow.nulls(len(at), array.type)
    chosen: Ints = np.ascontiguousarray(at, np.int64)
    if int(chosen.max(initial=0)) >= len(array):
        raise IndexError("there is no text at such a place")
    there, ends = chosen >= 0, np.empty(len(at) + 1, np.int64)
    kernels.measure(array.offsets, chosen, ends)
    out = np.empty(int(ends[-1]), np.uint8)
    kernels.gather(array.data, array.offsets, chosen, ends, out)
    if array.valid is not None:
        there &= array.valid[chosen]  # of a place below 0 whatever
    return arrow.text_array(out, ends, None if there.all() else there, array.type)


def filled(column: arrow.Array | arrow.ChunkedArray, other: arrow.Array | arrow.ChunkedArray) -> arrow.Array:
    """Return the values of a column, and those of another one of its type where it has none."""
    first, second = (each if isinstance(each, arrow.Array) else each.combine_chunks() for each in (column, other))
    if first.type != second.type:
        second = second.cast(first.type) if not arrow.is_null(first.type) else second
        first = first.cast(second.type)
    own = np.arange(len(first))
    return taken(arrow.concat_arrays([first, second]), np.where(first.is_valid(), own, len(first) + own))


def beginning_with(prefix: bytes, array: arrow.Array) -> Ints:
    """Return the places of the texts that begin with some bytes, sorted; null begins with none."""
    array = array.decoded()
    data, begins = string_places(array)
    found = np.flatnonzero(array.lengths() >= max(len(prefix), 1))
    for at, byte in enumerate(prefix):
        found = found[data[begins[found] + at] == byte]
    return found


def numbered_texts(array: arrow.Array) -> tuple[arrow.Array, Ints]:
    """Return the different texts in the order in which they first come, and which of them each is; -1 for null."""
    from graphdb.storage.arrays import text_kernels as kernels

    chosen = None if array.valid is None else np.flatnonzero(array.valid)
    some = array if chosen is None else array.drop_null()
    data, offsets = string_places(some)
    numbers, firsts = np.empty(len(some), np.int64), np.empty(len(some), np.int64)
    key, table = np.frombuffer(os.urandom(16), np.uint64), np.full((2 * len(some) + 2, 2), -1, np.int64)
    count = kernels.number_texts(data, offsets, key, table, numbers, firsts)
    distinct = some if count == len(some) else taken(some, firsts[:count])
    return distinct, _spread(numbers, chosen, len(array))


def numbered(array: arrow.Array) -> tuple[arrow.Array, Ints]:
    """Return the different values of a column without parts, and which of them each is; -1 for null.

    They are in the order in which they first come, and differ where their bits do: there are two zeros.
    """
    array = array.decoded()
    if array.offsets is not None:
        return numbered_texts(array)
    chosen = None if array.valid is None else np.flatnonzero(array.valid)
    some = array.drop_null()
    data = some.data
    assert data is not None
    if data.dtype.itemsize <= 8:
        integral = data.dtype.kind in "iub"
        which = number_integers(data if integral else np.ascontiguousarray(data).view(f"i{data.dtype.itemsize}"))[1]
    else:
        which = number_rows(np.ascontiguousarray(data).view(np.int64).reshape(len(data), -1).T)
    return some.take(firsts_of(which)), _spread(which, chosen, len(array))


def number_rows(columns: Iterable[NDArray[np.integer[Any]]]) -> Ints:
    """Return which of the different rows of some columns each row is, in the order in which they first come."""
    which: Ints | None = None
    for column in columns:
        found = number_integers(column)[1]
        many = int(found.max(initial=0)) + 1
        which = found if which is None else which if many == 1 else number_integers(which * many + found)[1]
    assert which is not None
    return which


def firsts_of(which: Ints) -> Ints:
    """Return where each of the numbers that :func:`number_integers` gives first stands."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(which), prepend=-1))


def number_integers(integers: NDArray[np.integer[Any]]) -> tuple[Ints, Ints]:
    """Return the different integers in the order in which they first come, and which of them each is."""
    from graphdb.storage.arrays import text_kernels as kernels

    numbers, distinct = np.empty(len(integers), np.int64), np.empty(len(integers), np.int64)
    table = np.full(2 * len(integers) + 2, -1, np.int64)
    count = kernels.number_integers(np.ascontiguousarray(integers, np.int64), table, numbers, distinct)
    return distinct[:count], numbers


def _spread(numbers: Ints, chosen: NDArray[np.int64] | None, count: int) -> Ints:
    if chosen is None:
        return numbers
    found = np.full(count, -1, np.int64)
    found[chosen] = numbers
    return found
