"""Columns of texts and integers, taken and numbered at the speed of memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.stopping import check_stop
from graphdb.storage.arrays.arrow import string_places

Ints = NDArray[np.int64]

_ALL = np.empty(0, np.bool_)
"""What says that all values are valid."""

_SAMPLE = 1 << 12
"""Texts among which most repeat if most of all do, and a handful of thousands differ."""

_AT_ONCE = 1 << 18
"""Values that are numbered between two looks at whether to stop."""

_BYTES_AT_ONCE = 1 << 26
"""Bytes of texts, likewise."""

_AHEAD = 64
"""Texts whose hashes are computed before the first of them is looked for."""

_FIRST_STORE, _LARGEST_STORE = 1 << 18, 1 << 25
"""Bytes of the first piece of memory for different texts, and of any at most; the next one is twice as large."""

_FEW = 1 << 15
"""Different values that there is room for at first: a table for as many as there may be is slow where most repeat."""


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
    provenance = None if array.provenance is None or absent else array.provenance.at(wanted - first)
    return arrow.Array(array.type, len(ids), there if absent else None, out, provenance=provenance), beyond


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
        if arrow.is_struct(array.type) and array.children and len(at) and int(at.min()) >= 0:
            valid = None if array.valid is None else array.valid[at]
            return arrow.Array(array.type, len(at), valid, children=tuple(taken(child, at) for child in array.children))
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
    if first.valid is None:
        return first
    if first.data is not None and second.data is not None and arrow.is_integer(first.type):
        there = None if second.valid is None else first.valid | second.valid
        return arrow.Array(first.type, len(first), there, np.where(first.valid, first.data, second.data))
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


def numbered_texts(
    array: arrow.Array, type: type[np.signedinteger[Any]] = np.int64
) -> tuple[arrow.Array, NDArray[Any]]:
    """Return the different texts in the order in which they first come, and which of them each is; -1 for null."""
    from graphdb.storage.arrays import text_kernels as kernels

    data, offsets = string_places(array)
    numbers, firsts = np.empty(len(array), type), np.empty(len(array), np.int64)
    given = _valid(array), np.frombuffer(os.urandom(16), np.uint64)
    table = np.full((2 * min(len(array), _FEW) + 2, 2), -1, np.int64)
    at = count = 0
    while at < len(array):
        check_stop()
        end = end_of_some(offsets, at)
        at, count = kernels.number_texts(data, offsets[: end + 1], *given, at, table, count, numbers, firsts)
        if at < end:
            former, table = table, np.full((4 * len(table), 2), -1, np.int64)
            kernels.put_hashes(former, table)
    return array if count == len(array) else taken(array, firsts[:count]), numbers


def end_of_some(offsets: NDArray[np.integer[Any]], begin: int, size: int | None = None) -> int:
    """Return where some texts from ``begin`` on end: a number of them, or of bytes, between two looks at stops."""
    end = min(begin + _AT_ONCE, len(offsets) - 1)
    size = int(offsets[begin]) + (_BYTES_AT_ONCE if size is None else size)
    return end if offsets[end] <= size else max(int(np.searchsorted(offsets, size, "right")) - 1, begin + 1)


def codes_of_texts(array: arrow.Array) -> tuple[arrow.Array, int] | None:
    """Return numbers of the texts of a column that stays in memory, the same for equal ones, null for null, and a bound
    of them; int32.  None where most texts differ.

    They are numbered once, as long as the array is there.
    """
    if not arrow.is_string(array.type):
        return None
    if array not in _codes:
        some = array.slice(0, min(len(array), _SAMPLE)).decoded()
        few = 2 * len(numbered_texts(some)[0]) <= len(some)
        _codes[array] = _coded(array) if few else None
    return _codes[array]


def _coded(array: arrow.Array) -> tuple[arrow.Array, int] | None:
    different, numbers = numbered_texts(array.decoded(), np.int32)
    return (arrow.numbers(numbers, array.valid), len(different)) if 2 * len(different) <= len(array) else None


_codes: WeakKeyDictionary[arrow.Array, tuple[arrow.Array, int] | None] = WeakKeyDictionary()


def numbered(array: arrow.Array, type: type[np.signedinteger[Any]] = np.int64) -> tuple[arrow.Array, NDArray[Any]]:
    """Return the different values of a column without parts, and which of them each is; -1 for null.

    They are in the order in which they first come, and differ where their bits do: there are two zeros.
    """
    array = array.decoded()
    if array.offsets is not None:
        return numbered_texts(array, type)
    if is_word(array.type):
        different, numbers = Different(len(array)), np.empty(len(array), type)
        different.number_array(array, numbers)
        return different.array(array.type), numbers
    some = array.drop_null()
    assert some.data is not None
    which = number_rows(np.ascontiguousarray(some.data).view(np.int64).reshape(len(some), -1).T)
    numbers = np.full(len(array), -1, type)
    numbers[array.is_valid()] = which
    return some.take(firsts_of(which)), numbers


def is_word(type: arrow.DataType) -> bool:
    """Whether values of a type take eight bytes at most: :class:`Different` numbers them."""
    return type.values is None and type.is_fixed and type.dtype.itemsize <= 8


def _valid(array: arrow.Array) -> NDArray[np.bool_]:
    """Return which values of an array are not null; nothing, where all are."""
    return _ALL if array.valid is None else np.ascontiguousarray(array.valid)


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
    numbers = np.empty(len(integers), np.int64)
    different = Different(len(integers))
    different.number(integers, numbers)
    return different.values, numbers


def number_pairs(buckets: Ints, values: Ints, bound: int) -> tuple[Ints, Ints]:
    """Return which of the different pairs of a bucket (below ``bound``) and a value each row is, and where each of them
    first stands, in this order.
    """
    from graphdb.storage.arrays import text_kernels as kernels

    buckets, values = np.ascontiguousarray(buckets, np.int64), np.ascontiguousarray(values, np.int64)
    begins = np.zeros(bound + 1, np.int64)
    np.cumsum(np.bincount(buckets, minlength=bound) * 2, out=begins[1:])
    numbers, firsts = np.empty(len(values), np.int64), np.empty(len(values), np.int64)
    table = np.full(2 * len(values), -1, np.int32)
    count = kernels.number_pairs(buckets, values, begins, table, numbers, firsts)
    return numbers, firsts[:count]


class Different:
    """Integers, or other values by their bits, numbered in the order in which they first come, array after array.

    ``most`` is how many may come, where that is known.
    """

    def __init__(self, most: int = _FEW) -> None:
        few = min(most, _FEW) + 1
        self._table, self._values, self._count = np.full(2 * few, -1, np.int32), np.empty(few, np.int64), 0

    @property
    def values(self) -> Ints:
        """The different ones."""
        return self._values[: self._count]

    def array(self, type: arrow.DataType) -> arrow.Array:
        """Return the different ones, where they came in arrays of such a type."""
        values = self.values.astype(_bits(type.dtype))
        return arrow.Array(type, len(values), None, values.view(type.dtype))

    def number_array(self, array: arrow.Array, numbers: NDArray[np.integer[Any]]) -> None:
        """Write which of the different values each of an array is (int32 or int64), -1 for null."""
        array = array.decoded()
        assert array.data is not None
        bits = np.ascontiguousarray(array.data).view(_bits(array.data.dtype))
        self.number(bits, numbers, _valid(array))

    def number(
        self,
        integers: NDArray[np.integer[Any]],
        numbers: NDArray[np.integer[Any]],
        valid: NDArray[np.bool_] = _ALL,
    ) -> None:
        """Write which of the different integers each is (int32 or int64), -1 where it is not ``valid``."""
        from graphdb.storage.arrays import text_kernels as kernels

        given, at = np.ascontiguousarray(integers, np.int64), 0
        while at < len(given):
            check_stop()
            some = given[: at + _AT_ONCE]
            at, self._count = kernels.number_integers(some, valid, at, self._table, self._count, numbers, self._values)
            if at == len(some):
                continue
            former = self.values
            self._table = np.full(4 * len(self._table), -1, np.int32)
            self._values = np.empty(4 * len(self._values), np.int64)
            self._values[: len(former)] = former
            kernels.put_integers(former, self._table)


class DifferentTexts:
    """Texts, numbered in the order in which they first come, array after array; the different ones are copied."""

    def __init__(self) -> None:
        self._key = np.frombuffer(os.urandom(16), np.uint64)
        self._table = np.full((2 * _FEW, 2), -1, np.int64)
        self._places, self._sizes, self._count = np.empty(_FEW, np.int64), np.empty(_FEW, np.int64), 0
        self._stores, self._begins, self._used = [np.empty(_FIRST_STORE, np.uint8)], [0], 0

    def number(self, array: arrow.Array, numbers: NDArray[np.integer[Any]]) -> None:
        """Write which of the different texts each of an array is (int32 or int64), -1 for null."""
        from graphdb.storage.arrays import text_kernels as kernels

        data, offsets = string_places(array)
        valid, hashes, at = _valid(array), np.empty(_AHEAD, np.int64), 0
        while at < len(array):
            check_stop()
            end = end_of_some(offsets, at)
            at, self._count, self._used = kernels.number_and_store(
                data, offsets[: end + 1], valid, self._key, at, self._table, self._places, self._sizes, self._count,
                self._stores[-1], self._used, hashes, numbers,
            )  # fmt: skip
            if at == end:
                continue
            if 2 * self._count >= len(self._table):
                former, self._table = self._table, np.full((4 * len(self._table), 2), -1, np.int64)
                kernels.put_hashes(former, self._table)
                self._places, self._sizes = (
                    np.append(some, np.empty(3 * len(some), np.int64)) for some in (self._places, self._sizes)
                )
            else:
                self._add_store(int(offsets[at + 1] - offsets[at]))

    def _add_store(self, needed: int) -> None:
        """Go on in a new piece of memory, which has so many bytes at least."""
        size = min(2 * len(self._stores[-1]), _LARGEST_STORE)
        self._stores.append(np.empty(max(size, needed), np.uint8))
        self._begins.append(self._count)
        self._used = 0

    def values(self) -> arrow.ChunkedArray:
        """Return the different ones, in pieces."""
        ends = [*self._begins[1:], self._count]
        chunks = []
        for store, begin, end in zip(self._stores, self._begins, ends, strict=True):
            offsets = np.zeros(end - begin + 1, np.int64)
            np.cumsum(self._sizes[begin:end], out=offsets[1:])
            chunks.append(arrow.text_array(store[: int(offsets[-1])], offsets))
        return arrow.ChunkedArray(chunks, arrow.STRING)


def _bits(type: np.dtype[Any]) -> np.dtype[Any]:
    """Return the integers that values of a type are as bits."""
    return type if type.kind in "iu" else np.dtype(f"i{type.itemsize}")
