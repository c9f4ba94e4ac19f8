"""Columns as Arrow lays them out, in arrays of NumPy.

What Arrow packs into bits, validity and truth values, is a byte each here, so that a slice of a column is a view of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.arrow import types
from graphdb.common.arrow.types import DataType

_GATHERED = 1 << 17
"""Bytes that are gathered at a time: what it takes meanwhile stays in the processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Provenance:
    """Which rows of a table in memory a column's values are of: what else is known of these need not be searched for.

    Attributes
    ----------
    table
        The table, whatever it is: who knows it recognizes it.
    rows
        int64 [values].
    """

    table: object
    rows: NDArray[np.int64]

    def at(self, some: Any) -> Provenance:
        """Return that of the values at some places."""
        return Provenance(self.table, self.rows[some])

    @classmethod
    def together(cls, parts: Sequence[Provenance | None]) -> Provenance | None:
        """Return that of columns one after the other; None where they are not all of one table."""
        known = [provenance for provenance in parts if provenance is not None]
        if not known or len(known) < len(parts) or any(each.table is not known[0].table for each in known):
            return None
        return cls(known[0].table, _joined([each.rows for each in known]))


class Array:
    """A column.

    Attributes
    ----------
    type
        The type of its values.
    valid
        bool[n]: which of them are not null; None for all.
    data
        The values, where all have one size (see :attr:`DataType.dtype`), or the bytes of texts, one after the other
        (uint8); of a union the number of each value's member (int8).
    offsets
        int32 or int64[n + 1]: where texts and lists begin, and the last one ends.
    children
        A list's items; a struct's fields and a union's members, as long as this one; a dictionary's values.
    provenance
        Of values of one size: which rows of a table in memory they are of, where somebody said so.
    """

    __slots__ = ("__weakref__", "_length", "children", "data", "offsets", "provenance", "type", "valid")

    def __init__(
        self,
        type: DataType,
        length: int,
        valid: NDArray[np.bool_] | None = None,
        data: NDArray[Any] | None = None,
        offsets: NDArray[Any] | None = None,
        children: tuple[Array, ...] = (),
        provenance: Provenance | None = None,
    ) -> None:
        self.type, self._length, self.valid = type, length, valid
        self.data, self.offsets, self.children, self.provenance = data, offsets, children, provenance

    def __len__(self) -> int:
        return self._length

    @property
    def null_count(self) -> int:
        """How many values are null."""
        if self.type.format == "n":
            return self._length
        return 0 if self.valid is None else self._length - int(np.count_nonzero(self.valid))

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        own = sum(part.nbytes for part in (self.valid, self.offsets) if part is not None)
        if self.offsets is not None:
            begin, end = self._span
            if self.data is not None:
                return own + end - begin
            return own + self.children[0].nbytes * (end - begin) // max(len(self.children[0]), 1)
        own += 0 if self.data is None else self.data.nbytes
        return own + sum(child.nbytes for child in self.children)

    @property
    def _span(self) -> tuple[int, int]:
        """Where the bytes or the items begin and end."""
        assert self.offsets is not None
        return int(self.offsets[0]), int(self.offsets[-1])

    def is_valid(self) -> NDArray[np.bool_]:
        """Return which values are not null (bool[n])."""
        if self.type.format == "n":
            return np.zeros(self._length, bool)
        return np.ones(self._length, bool) if self.valid is None else self.valid

    # --- parts

    def slice(self, start: int, length: int | None = None) -> Array:
        """Return ``length`` values from ``start`` on, or all from there on; nothing is copied."""
        start = min(start, self._length)
        end = self._length if length is None else min(start + length, self._length)
        if (start, end) == (0, self._length):
            return self
        some, children = slice(start, end), self.children
        valid = None if self.valid is None else self.valid[some]
        data, offsets = self.data, self.offsets
        if offsets is not None:
            offsets = offsets[start : end + 1]
        elif data is not None:
            data = data[some]
        if self.type.format.startswith("+w:"):
            size = int(self.type.format[3:])
            children = (children[0].slice(start * size, (end - start) * size),)
        elif self.offsets is None and self.type.values is None:
            children = tuple(child.slice(start, end - start) for child in children)
        provenance = None if self.provenance is None else self.provenance.at(some)
        return Array(self.type, end - start, valid, data, offsets, children, provenance)

    def field(self, at: int | str) -> Array:
        """Return a field of a struct; what it has where the struct is null means nothing."""
        if isinstance(at, str):
            at = [field.name for field in self.type.fields].index(at)
        return self.children[at]

    def flatten(self) -> Array:
        """Return the items of all lists, one after the other; null has none."""
        if self.type.format.startswith("+w:"):
            size = int(self.type.format[3:])
            return self.children[0] if self.valid is None else self.children[0].take(np.repeat(self.valid, size))
        lengths = self.lengths()
        begin, end = self._span
        if self.valid is None or int(lengths.sum()) == end - begin:
            return self.children[0].slice(begin, end - begin)
        return self.drop_null().flatten()

    def lengths(self) -> NDArray[np.int64]:
        """Return how many bytes a text has, or items a list (int64[n]); null has none."""
        if self.type.format.startswith("+w:"):
            found = np.full(self._length, int(self.type.format[3:]), np.int64)
        else:
            assert self.offsets is not None
            found = np.diff(self.offsets).astype(np.int64)
        return found if self.valid is None else np.where(self.valid, found, 0)

    def take(self, at: NDArray[Any] | Array) -> Array:
        """Return the values at some places: numbers, null where one is, or a truth value for each of these here."""
        absent: NDArray[np.bool_] | None = None
        if isinstance(at, Array):
            absent = None if at.valid is None else ~at.valid
            found_at = at.data if at.type.format == "b" else at.cast(types.INT64).data
            assert found_at is not None
            at = found_at
        if at.dtype == bool:
            at = np.flatnonzero(at)
        if absent is not None:
            if not self._length:
                return nulls(len(at), self.type)
            at = np.where(absent, 0, at)
        found = self._taken(at)
        return found if absent is None else found._without(absent)

    def _without(self, absent: NDArray[np.bool_]) -> Array:
        """Return it with some values null; of structs, their fields too; of unions, their members, which say that."""
        format = self.type.format
        if format == "n":
            return self
        if types.is_union(self.type):
            members = tuple(child._without(absent) for child in self.children)
            return Array(self.type, len(self), None, self.data, self.offsets, members)
        children = tuple(child._without(absent) for child in self.children) if format == "+s" else self.children
        there = ~absent if self.valid is None else self.valid & ~absent
        return Array(self.type, len(self), there, self.data, self.offsets, children)

    def _taken(self, at: NDArray[Any]) -> Array:
        count = len(at)
        valid = None if self.valid is None else self.valid[at]
        format = self.type.format
        if format == "n":
            return Array(self.type, count)
        if self.offsets is not None:
            begins, ends = self.offsets[:-1][at], self.offsets[1:][at]
            offsets = np.zeros(count + 1, np.int64)
            np.cumsum(ends - begins, out=offsets[1:])
            if format[0] == "+":
                places = np.repeat(begins - offsets[:-1], ends - begins) + np.arange(offsets[-1])
                items = self.children[0]._taken(places)
                return Array(self.type, count, valid, None, offsets.astype(self.offsets.dtype), (items,))
            assert self.data is not None
            return narrowed(self.type, valid, gathered(self.data, begins.astype(np.int64), offsets), offsets)
        data = None if self.data is None else self.data[at]
        if format.startswith("+w:"):
            size = int(format[3:])
            places = (at[:, np.newaxis] * size + np.arange(size)).ravel()
            return Array(self.type, count, valid, None, None, (self.children[0]._taken(places),))
        children = self.children
        if self.type.values is None:
            children = tuple(child._taken(at) for child in children)
        return Array(
            self.type, count, valid, data, None, children, None if self.provenance is None else self.provenance.at(at)
        )

    def drop_null(self) -> Array:
        """Return the values that are not null."""
        if self.type.format == "n":
            return self.slice(0, 0)
        if self.valid is None:
            return self
        found = self._taken(np.flatnonzero(self.valid))
        return Array(found.type, len(found), None, found.data, found.offsets, found.children)

    def decoded(self) -> Array:
        """Return the values of a dictionary themselves; any other array as it is."""
        if self.type.values is None:
            return self
        assert self.data is not None
        values = self.children[0]
        return values.take(Array(types.INT64, len(self), self.valid, self.data.astype(np.int64)))

    # --- as other types

    def cast(self, type: DataType) -> Array:
        """Return the values as those of another type: numbers, texts with larger offsets, and nulls.

        Raises
        ------
        TypeError
            There is no such conversion.
        """
        if self.type == type:
            return self
        if self.type.values is not None:
            return self.decoded().cast(type)
        if self.type.format == "n":
            return nulls(self._length, type)
        source, target = self.type.format, type.format
        if source + target in ("uU", "zZ", "Uu", "uz", "zu", "zU", "uZ"):
            assert self.offsets is not None
            return Array(type, len(self), self.valid, self.data, self.offsets.astype("i8" if target in "UZ" else "i4"))
        if (is_number(self.type) and (is_number(type) or target == "tdD")) or (source == "tdD" and is_number(type)):
            assert self.data is not None
            return Array(type, len(self), self.valid, self.data.astype(type.dtype))
        if types.is_list(self.type) and types.is_list(type) and self.offsets is not None:
            items = self.children[0].cast(type.value_type)
            wide = "i8" if target == "+L" else "i4"
            return Array(type, len(self), self.valid, None, self.offsets.astype(wide), (items,))
        raise TypeError(f"no column of {self.type} is one of {type}")

    def to_numpy(self) -> NDArray[Any]:
        """Return values of one size as NumPy has them: dates and moments as such, and null as NaN or NaT.

        Integers with nulls become floating-point numbers.
        """
        data = self.decoded().data
        assert data is not None
        if self.type.format[0] == "t" and self.type.format[1] in "dsD":
            unit = {"tdD": "D", "tdm": "ms"}.get(self.type.format) or self.type.unit
            data = data.astype(np.int64).view(f"{'m' if self.type.format[1] == 'D' else 'M'}8[{unit}]")
        if self.null_count == 0:
            return data
        data = data.copy() if data.dtype.kind in "mMf" else data.astype(float)
        data[~self.is_valid()] = "NaT" if data.dtype.kind in "mM" else np.nan
        return data


class ChunkedArray:
    """A column in pieces."""

    __slots__ = ("chunks", "type")

    def __init__(self, chunks: Sequence[Array], type: DataType | None = None) -> None:
        self.chunks = list(chunks)
        self.type = chunks[0].type if type is None else type

    def __len__(self) -> int:
        return sum(map(len, self.chunks))

    @property
    def null_count(self) -> int:
        """How many values are null."""
        return sum(chunk.null_count for chunk in self.chunks)

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return sum(chunk.nbytes for chunk in self.chunks)

    def combine_chunks(self) -> Array:
        """Return it in one piece."""
        return self.chunks[0] if len(self.chunks) == 1 else concat_arrays(self.chunks, self.type)

    def slice(self, start: int, length: int | None = None) -> ChunkedArray:
        """Return ``length`` values from ``start`` on, or all from there on."""
        left = len(self) - start if length is None else length
        found = []
        for chunk in self.chunks:
            if start < len(chunk) and left > 0:
                found.append(chunk.slice(start, left))
                left -= len(found[-1])
            start = max(start - len(chunk), 0)
        return ChunkedArray(found, self.type)

    def take(self, at: NDArray[Any] | Array) -> ChunkedArray:
        """Return the values at some places; see :meth:`Array.take`."""
        return ChunkedArray([self.combine_chunks().take(at)])

    def cast(self, type: DataType) -> ChunkedArray:
        """Return the values as those of another type; see :meth:`Array.cast`."""
        return ChunkedArray([chunk.cast(type) for chunk in self.chunks], type)

    def drop_null(self) -> ChunkedArray:
        """Return the values that are not null."""
        return ChunkedArray([chunk.drop_null() for chunk in self.chunks], self.type)

    def is_valid(self) -> NDArray[np.bool_]:
        """Return which values are not null (bool[n])."""
        return np.concatenate([np.empty(0, bool), *(chunk.is_valid() for chunk in self.chunks)])

    def to_numpy(self) -> NDArray[Any]:
        """Return values of one size as NumPy has them; see :meth:`Array.to_numpy`."""
        return self.combine_chunks().to_numpy()


def chunks(column: Array | ChunkedArray) -> Iterator[Array]:
    """Yield the pieces of a column."""
    yield from column.chunks if isinstance(column, ChunkedArray) else (column,)


def is_number(type: DataType) -> bool:
    """Whether values are integers of at most 64 bits, floating-point numbers, or truth values."""
    return types.is_plain(type) and type.format in "bcCsSiIlLefg"


def gathered(data: NDArray[np.uint8], begins: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the bytes of some texts, one after the other.

    Parameters
    ----------
    begins
        int64[n]: where each begins in ``data``.
    offsets
        int64[n + 1]: where each shall begin, from 0 on, and the last one end.
    """
    total, shift = int(offsets[-1]), begins - offsets[:-1]
    if total <= _GATHERED:
        return data[np.repeat(shift, np.diff(offsets)) + np.arange(total)]
    found = np.empty(total, np.uint8)
    starts = np.searchsorted(offsets, np.arange(0, total, _GATHERED), side="right") - 1
    starts = starts[np.append(True, starts[1:] != starts[:-1])]
    for first, last in zip(starts.tolist(), [*starts[1:].tolist(), len(begins)], strict=True):
        begin, end = int(offsets[first]), int(offsets[last])
        if last == first + 1:
            found[begin:end] = data[begins[first] : begins[first] + end - begin]
        else:
            places = np.repeat(shift[first:last], np.diff(offsets[first : last + 1]))
            places += np.arange(begin, end)
            np.take(data, places, out=found[begin:end])
    return found


def nulls(length: int, type: DataType = types.NULL) -> Array:
    """Return nothing but nulls."""
    format, absent = type.format, np.zeros(length, bool)
    if format == "n":
        return Array(type, length)
    if type.values is not None:
        return Array(type, length, absent, np.zeros(length, type.dtype), children=(nulls(0, type.values),))
    if type.is_fixed:
        return Array(type, length, absent, np.zeros(length, type.dtype))
    if format in ("u", "z", "U", "Z", "+l", "+L", "+m"):
        offsets = np.zeros(length + 1, "i8" if format in ("U", "Z", "+L") else "i4")
        if format[0] == "+":
            return Array(type, length, absent, None, offsets, (nulls(0, type.fields[0].type),))
        return Array(type, length, absent, np.empty(0, np.uint8), offsets)
    if format.startswith("+u"):
        children = tuple(nulls(length, field.type) for field in type.fields)
        return Array(type, length, None, np.zeros(length, np.int8), None, children)
    size = int(format[3:]) if format.startswith("+w:") else 1
    return Array(type, length, absent, children=tuple(nulls(length * size, field.type) for field in type.fields))


def concat_arrays(arrays: Sequence[Array], type: DataType | None = None) -> Array:
    """Return several arrays of one type as one."""
    some = [array for array in arrays if len(array)]
    if len(some) == 1:
        return some[0]
    if not some:
        return arrays[0] if arrays else nulls(0, type or types.NULL)
    type = some[0].type
    length = sum(map(len, some))
    valid = None
    if any(array.valid is not None for array in some):
        valid = np.concatenate([array.is_valid() for array in some])
    if type.format == "n":
        return Array(type, length)
    data = None
    if some[0].offsets is not None:
        spans = [array._span for array in some]
        before = np.cumsum([0, *(end - begin for begin, end in spans)])
        moved = [
            array.offsets[:-1].astype(np.int64) + (at - begin)  # type: ignore[index]
            for array, (begin, _), at in zip(some, spans, before[:-1].tolist(), strict=True)
        ]
        offsets = np.concatenate([*moved, before[-1:]])
        if type.format[0] == "+":
            items = [
                array.children[0].slice(begin, end - begin) for array, (begin, end) in zip(some, spans, strict=True)
            ]
            return Array(type, length, valid, None, offsets.astype(some[0].offsets.dtype), (concat_arrays(items),))
        data = np.concatenate([array.data[begin:end] for array, (begin, end) in zip(some, spans, strict=True)])  # type: ignore[index]
        return narrowed(type, valid, data, offsets)
    if type.values is not None:
        return _concat_dictionaries(some, type, valid)
    if some[0].data is not None:
        data = _joined([array.data for array in some])  # type: ignore[misc]
    children = tuple(map(concat_arrays, zip(*(array.children for array in some), strict=True)))
    return Array(type, length, valid, data, None, children, Provenance.together([array.provenance for array in some]))


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return arrays one after the other: where they are parts of one that follow each other, as a part of it."""
    if all(part.strides == (0,) for part in parts) and len({part[0].tobytes() for part in parts}) == 1:
        return np.broadcast_to(parts[0][0], sum(map(len, parts)))
    whole = parts[0].base
    if isinstance(whole, np.ndarray) and all(part.base is whole for part in parts) and whole.flags.c_contiguous:
        ends = [part.ctypes.data + part.nbytes for part in parts]
        if (
            whole.dtype == parts[0].dtype
            and whole.ndim == 1
            and all(
                part.flags.c_contiguous and part.ctypes.data == end for part, end in zip(parts[1:], ends, strict=False)
            )
        ):
            begin = (parts[0].ctypes.data - whole.ctypes.data) // whole.itemsize
            return whole[begin : begin + sum(map(len, parts))]
    return np.concatenate(parts)


def _concat_dictionaries(some: Sequence[Array], type: DataType, valid: NDArray[np.bool_] | None) -> Array:
    """Return values of dictionaries as those of one, which has the values of all."""
    dictionaries = list({id(array.children[0]): array.children[0] for array in some}.values())
    before = np.cumsum([0, *map(len, dictionaries)])
    if before[-1] > np.iinfo(type.dtype.str).max:
        return concat_arrays([array.decoded() for array in some])
    first = {id(dictionary): begin for dictionary, begin in zip(dictionaries, before.tolist(), strict=False)}
    moved = [(array.data, first[id(array.children[0])]) for array in some]
    data = np.concatenate([indices + np.array(by, type.dtype) for indices, by in moved if indices is not None])
    return Array(type, len(data), valid, data, None, (concat_arrays(dictionaries),))


def narrowed(type: DataType, there: Any, data: NDArray[np.uint8], offsets: NDArray[np.integer[Any]]) -> Array:
    """Return texts with the smallest offsets that can be, if their type does not say that they are large."""
    if offsets[-1] >= 1 << 31:
        type = {"u": types.LARGE_STRING, "z": DataType("Z")}.get(type.format, type)
    return Array(
        type, len(offsets) - 1, there, data, offsets.astype(np.int64 if type.format in "UZ" else np.int32, copy=False)
    )
