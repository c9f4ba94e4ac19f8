"""Columns made of arrays of NumPy, of Python's texts, and of other columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.arrow import types
from graphdb.common.arrow.arrays import Array, Provenance, narrowed
from graphdb.common.arrow.types import DataType, Field


def numbers(data: NDArray[Any], valid: NDArray[np.bool_] | None = None, provenance: Provenance | None = None) -> Array:
    """Return the values of an array of NumPy, null where not ``valid``; see :class:`Provenance`.

    One value for all, of a stride of 0 bytes, stays in memory once, as in :func:`repeated`.
    """
    type = types.of_numpy(data.dtype)
    if data.dtype.kind == "M":
        data = data.view(np.int64).astype(type.dtype)
    once = len(data) > 1 and data.strides == (0,)
    return Array(type, len(data), valid, data if once else np.ascontiguousarray(data), provenance=provenance)


def repeated(value: int, length: int) -> Array:
    """Return an integer for all of so many rows; it is in memory once, and its array has a stride of 0 bytes."""
    return Array(types.INT64, length, None, np.broadcast_to(np.int64(value), length))


def strings(texts: Iterable[str | None], type: DataType = types.STRING) -> Array:
    """Return texts, of which some may be None."""
    given, there = _present(list(texts), "")
    whole = "".join(given)
    data = np.frombuffer(whole.encode(), np.uint8)
    offsets = _ends(given)
    if len(whole) < len(data):  # from characters to bytes
        offsets = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))[offsets]
    return narrowed(type, there, data, offsets)


def binaries(values: Iterable[bytes | None]) -> Array:
    """Return byte strings, of which some may be None."""
    given, there = _present(list(values), b"")
    return narrowed(types.BINARY, there, np.frombuffer(b"".join(given), np.uint8), _ends(given))


def _present(values: list[Any], absent: Any) -> tuple[list[Any], NDArray[np.bool_] | None]:
    """Return values with something in the place of None, and where there was none."""
    if None not in values:
        return values, None
    there = np.array([value is not None for value in values], bool)
    return [absent if value is None else value for value in values], there


def _ends(given: Sequence[Any]) -> NDArray[np.int64]:
    offsets = np.zeros(len(given) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, given), np.int64, len(given)), out=offsets[1:])
    return offsets


def text_array(
    data: NDArray[np.uint8],
    offsets: NDArray[np.integer[Any]],
    valid: NDArray[np.bool_] | None = None,
    type: DataType = types.STRING,
) -> Array:
    """Return texts by their bytes (UTF-8), where each begins and the last ends (int[n + 1]), and which are there.

    They are of a type with larger offsets where theirs are too small.
    """
    return narrowed(type, valid, data, offsets)


def struct_array(arrays: Sequence[Array], names: Sequence[str], valid: NDArray[np.bool_] | None = None) -> Array:
    """Return structs of these fields, null where not ``valid``."""
    fields = tuple(Field(name, array.type) for name, array in zip(names, arrays, strict=True))
    return Array(DataType("+s", fields), len(arrays[0]) if arrays else 0, valid, children=tuple(arrays))


def list_array(
    offsets: NDArray[Any], items: Array, valid: NDArray[np.bool_] | None = None, type: DataType | None = None
) -> Array:
    """Return lists of items that stand side by side; ``offsets``: where each begins, and the last ends."""
    found = type or types.list_of(items.type)
    return Array(found, len(offsets) - 1, valid, None, offsets.astype("i8" if found.format == "+L" else "i4"), (items,))


def dictionary_array(numbers: Array, values: Array) -> Array:
    """Return values by their numbers."""
    type = types.dictionary(numbers.type, values.type)
    return Array(type, len(numbers), numbers.valid, numbers.data, None, (values,))


def union_array(kinds: NDArray[np.int8], members: Sequence[Array], names: Sequence[str]) -> Array:
    """Return values, each of which is that of the member of its kind (int8[n]); all members are as long."""
    fields = tuple(Field(name, array.type) for name, array in zip(names, members, strict=True))
    format = f"+us:{','.join(map(str, range(len(fields))))}"
    return Array(DataType(format, fields), len(kinds), None, kinds, None, tuple(members))
