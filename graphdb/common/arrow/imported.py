"""Columns of others, by Arrow's C interface, as arrays of NumPy without a copy.

A producer hands over structures of addresses, and a function that gives the memory back: it is called when the last
view is gone.  Producers run without the interpreter's lock, and can be interrupted.
https://arrow.apache.org/docs/format/CDataInterface.html and …/CDataInterface/PyCapsuleInterface.html
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.arrow.arrays import Array, gathered
from graphdb.common.arrow.types import ArrowError, DataType, Field, Schema

_Address = ctypes.c_void_p


class _CSchema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", _Address),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", _Address),
        ("dictionary", _Address),
        ("release", _Address),
        ("private_data", _Address),
    )


class _CArray(ctypes.Structure):
    _fields_ = (
        ("length", ctypes.c_int64),
        ("null_count", ctypes.c_int64),
        ("offset", ctypes.c_int64),
        ("n_buffers", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("buffers", _Address),
        ("children", _Address),
        ("dictionary", _Address),
        ("release", _Address),
        ("private_data", _Address),
    )


class _CStream(ctypes.Structure):
    _fields_ = (
        ("get_schema", _Address),
        ("get_next", _Address),
        ("get_last_error", _Address),
        ("release", _Address),
        ("private_data", _Address),
    )


_RELEASE = ctypes.CFUNCTYPE(None, _Address)
_GET = ctypes.CFUNCTYPE(ctypes.c_int, _Address, _Address)
_LAST_ERROR = ctypes.CFUNCTYPE(_Address, _Address)

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = _Address, (ctypes.py_object, ctypes.c_char_p)

_STREAM, _SCHEMA, _ARRAY = b"arrow_array_stream", b"arrow_schema", b"arrow_array"


class _Owner:
    """Gives an array that somebody else made back to them, when nothing looks at it any more."""

    __slots__ = ("__weakref__", "array")

    def __init__(self, array: _CArray) -> None:
        self.array = array
        weakref.finalize(self, _release, array).atexit = False


def _release(struct: _CArray | _CStream | _CSchema) -> None:
    if struct.release:
        _RELEASE(struct.release)(ctypes.addressof(struct))


class Stream:
    """A stream of batches that somebody else makes; who uses it as a context manager ends it early.

    Parameters
    ----------
    capsule
        Of the name ``arrow_array_stream``.
    failure
        Makes an error of what the producer says is wrong.
    """

    def __init__(self, capsule: object, failure: Callable[[str], Exception] = ArrowError) -> None:
        # It stays where it is, and its capsule's: an interrupt while it moves would leave it to nobody, for ever open.
        self._capsule = capsule
        self._stream = _CStream.from_address(_pointer(capsule, _STREAM))
        self._failure = failure
        found = _CSchema()
        self._ask(self._stream.get_schema, found)
        try:
            self._type = _type(found)
            self.schema = Schema(_without_views(self._type).fields)
        finally:
            _release(found)

    def _ask(self, function: int, into: ctypes.Structure) -> None:
        if not self._stream.release:
            raise ArrowError("the stream is closed")
        at = ctypes.addressof(self._stream)
        if _GET(function)(at, ctypes.addressof(into)):
            said = _LAST_ERROR(self._stream.get_last_error)(at)
            text = ctypes.string_at(said) if said else b"a stream of columns broke off"
            raise self._failure(text.decode(errors="replace"))

    def __iter__(self) -> Iterator[list[Array]]:
        """Yield the columns of one batch after the other."""
        while True:
            found = _CArray()
            owner = _Owner(found)
            self._ask(self._stream.get_next, found)
            if not found.release:
                self.close()
                return
            yield list(_array(self._type, found, owner, 0, found.length).children)

    def close(self) -> None:
        """Give the stream back."""
        _release(self._stream)  # which says there that it is


def end_stream(capsule: object) -> None:
    """Give back the stream in a capsule, whoever still holds it; nothing happens where that is done already."""
    _release(_CStream.from_address(_pointer(capsule, _STREAM)))


def imported_array(capsules: tuple[object, object]) -> Array:
    """Return an array of its capsules ``arrow_schema`` and ``arrow_array``."""
    schema = _CSchema.from_address(_pointer(capsules[0], _SCHEMA))
    source = _CArray.from_address(_pointer(capsules[1], _ARRAY))
    struct = _CArray()
    ctypes.memmove(ctypes.byref(struct), ctypes.byref(source), ctypes.sizeof(_CArray))
    source.release = None
    return _array(_type(schema), struct, _Owner(struct), 0, struct.length)


def _addresses(at: int, count: int) -> list[int]:
    return [place or 0 for place in (_Address * count).from_address(at)] if count else []


def _type(schema: _CSchema) -> DataType:
    fields = tuple(
        Field((child.name or b"").decode(), _type(child))
        for child in map(_CSchema.from_address, _addresses(schema.children, schema.n_children))
    )
    values = _type(_CSchema.from_address(schema.dictionary)) if schema.dictionary else None
    said = _metadata(schema.metadata)
    extension, metadata = (said.get(f"ARROW:extension:{key}", "") for key in ("name", "metadata"))
    return DataType(schema.format.decode(), fields, values, extension, metadata)


@functools.cache
def _without_views(type: DataType) -> DataType:
    """Return a type with texts in the place of views of texts: these are copied."""
    fields = tuple(Field(field.name, _without_views(field.type)) for field in type.fields)
    values = None if type.values is None else _without_views(type.values)
    return replace(type, format={"vu": "U", "vz": "Z"}.get(type.format, type.format), fields=fields, values=values)


def _metadata(at: int | None) -> dict[str, str]:
    """Return keys with their values: a count, and each with its length."""
    if not at:
        return {}
    said: list[str] = []

    def number() -> int:
        nonlocal at
        assert at is not None
        at += 4
        return int(ctypes.c_int32.from_address(at - 4).value)

    for _ in range(2 * number()):
        size = number()
        said.append(ctypes.string_at(at, size).decode(errors="replace"))
        at += size
    return dict(zip(said[::2], said[1::2], strict=True))


def _view(owner: _Owner, at: int, dtype: Any, count: int) -> NDArray[Any]:
    """Return some memory as an array, which keeps its owner."""
    dtype = np.dtype(dtype)
    if not at or not count:
        return np.empty(count, dtype) if not count else np.zeros(count, dtype)
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(at)
    memory._owner = owner
    found: NDArray[Any] = np.frombuffer(memory, dtype)
    found.flags.writeable = False
    return found


def _bits(owner: _Owner, at: int, first: int, length: int) -> NDArray[np.bool_]:
    begin = first >> 3
    found = _view(owner, at + begin, np.uint8, ((first + length + 7) >> 3) - begin)
    return np.unpackbits(found, bitorder="little", count=(first & 7) + length)[first & 7 :].view(np.bool_)


def _array(type: DataType, array: _CArray, owner: _Owner, first: int, length: int) -> Array:
    """Return ``length`` values of an array, from ``first`` behind its own offset on."""
    first += array.offset
    buffers = _addresses(array.buffers, array.n_buffers)
    children = list(map(_CArray.from_address, _addresses(array.children, array.n_children)))
    format, source = type.format, type
    type = _without_views(type)
    valid = None
    if buffers and buffers[0] and array.null_count and length and not format.startswith("+u"):
        valid = _bits(owner, buffers[0], first, length)
        if valid.all():
            valid = None
    if format == "n":
        return Array(type, length)
    if format == "b":
        return Array(type, length, valid, _bits(owner, buffers[1], first, length))
    if type.is_fixed:
        data = _view(owner, buffers[1], type.dtype, first + length)[first:]
        values = None
        if source.values is not None:
            struct = _CArray.from_address(array.dictionary)
            values = (_array(source.values, struct, owner, 0, struct.length),)
        return Array(type, length, valid, data, children=values or ())
    if format in ("u", "z", "U", "Z", "+l", "+L", "+m"):
        offsets = _view(owner, buffers[1], "i8" if format in ("U", "Z", "+L") else "i4", first + length + 1)[first:]
        if not len(offsets) or not length:
            offsets = np.zeros(1, offsets.dtype)
        if format[0] == "+":
            struct = children[0]
            items = _array(source.fields[0].type, struct, owner, 0, struct.length)
            return Array(type, length, valid, None, offsets, (items,))
        return Array(type, length, valid, _view(owner, buffers[2], np.uint8, int(offsets[-1])), offsets)
    if format in ("vu", "vz"):
        return _of_views(type, buffers, owner, first, length, valid)
    if format.startswith("+w:"):
        size = int(format[3:])
        items = _array(source.fields[0].type, children[0], owner, first * size, length * size)
        return Array(type, length, valid, None, None, (items,))
    if format == "+s" or format.startswith("+us:"):
        parts = tuple(
            _array(field.type, child, owner, first, length)
            for field, child in zip(source.fields, children, strict=True)
        )
        kinds = _view(owner, buffers[0], np.int8, first + length)[first:] if format != "+s" else None
        return Array(type, length, valid, kinds, None, parts)
    raise ArrowError(f"columns of the type {type} are not read")


def _of_views(
    type: DataType, buffers: list[int], owner: _Owner, first: int, length: int, valid: NDArray[np.bool_] | None
) -> Array:
    """Return texts that are views: a length, and up to 12 bytes, or where in which buffer they are."""
    views = _view(owner, buffers[1], np.int32, 4 * (first + length)).reshape(-1, 4)[first:]
    sizes = _view(owner, buffers[-1], np.int64, len(buffers) - 3)
    parts = [_view(owner, at, np.uint8, int(size)) for at, size in zip(buffers[2:-1], sizes, strict=True)]
    before = np.cumsum([views.nbytes, *map(len, parts)])
    lengths = views[:, 0].astype(np.int64) if valid is None else np.where(valid, views[:, 0], 0)
    short = lengths <= 12
    begins = np.where(short, 16 * np.arange(length) + 4, before[np.where(short, 0, views[:, 2])] + views[:, 3])
    offsets = np.append(0, np.cumsum(lengths))
    data = gathered(np.concatenate([np.ascontiguousarray(views).view(np.uint8).ravel(), *parts]), begins, offsets)
    return Array(type, length, valid, data, offsets)
