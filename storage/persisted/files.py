"""Files of arrays: written whole or not at all, mapped into memory when they are read.

A file has 128 bytes that say how long its description is and what its arrays add up to, the description as JSON, and
the arrays, each at a multiple of 64 bytes.  A digest covers the description, and a sum the arrays: the sum runs at the
speed of memory, and shows what a disk lost when the machine stopped.  What was written, or added up, since the machine
was started is not added up again: it would take longer than all else that a first query does.  Against somebody who
means harm there is the folder: it is private, and so is each file (:mod:`graphdb.storage.compile.cache`).

An array that is mapped is a private copy of what is written, page by page: whoever changes one changes no file.
"""

from __future__ import annotations

import functools
import hashlib
import json
import mmap
import os
import struct
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.cache import FRESH, is_private
from graphdb.storage.persisted.packing import packed, unpacked

T = TypeVar("T")

_HEAD = struct.Struct("<16s32sQQ16s48x")
"""What it is, the digest of the description, its length, the sum of the arrays, when they were known to be whole."""
_MAGIC = b"graphdb arrays 2"
_KNOWN_AT = 64
"""Where that stands: the id of the machine's start (:func:`_start`)."""
_ALIGNED = 64

_MAPPED = 1 << 20
"""Bytes from which on a file is mapped: a smaller one is read as soon, …"""

_MOST_MAPPED = 256
"""… and so are more than so many: each mapping has a file descriptor, of which a process has some thousand."""

_maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
"""Those that there are."""


def size_of(value: Any) -> int:
    """Return about how many bytes a value takes in a file.

    Raises
    ------
    NotPackable
        It cannot be written.
    """
    return sum(array.nbytes for array in packed(value)[1])


def write(folder: Path, name: str, value: Any) -> None:
    """Write a value to a file of a private folder, in the place of what it had.

    Raises
    ------
    NotPackable
        It cannot be written.
    OSError
        The disk is full, or the folder is gone; then there is no such file, or the former one.
    """
    description, arrays = packed(value)
    arrays = [np.ascontiguousarray(array) for array in arrays]
    layout, at = [], 0
    for array in arrays:
        layout.append([array.dtype.str, list(array.shape), at])
        at = _aligned(at + array.nbytes)
    text = json.dumps({"value": description, "arrays": layout, "bytes": at}).encode()
    total = sum(_sum(_bytes(array)) for array in arrays) % (1 << 64)
    descriptor, fresh = tempfile.mkstemp(dir=folder, prefix=FRESH)  # only the user can read and write it
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(_HEAD.pack(_MAGIC, hashlib.sha256(text).digest(), len(text), total, _start()))
            file.write(text.ljust(_aligned(len(text)), b" "))
            for array in arrays:
                file.write(_bytes(array).data)
                file.write(bytes(_aligned(array.nbytes) - array.nbytes))
        os.replace(fresh, folder / name)
    except BaseException:
        with suppress(OSError):
            os.unlink(fresh)
        raise


def read(folder: Path, name: str) -> Any:
    """Return what was written by a name; None where that is missing, damaged, or may be another user's."""
    try:
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        if not is_private(found):
            return None
        with suppress(OSError):
            os.utime(descriptor)  # it was used
        memory: bytearray | mmap.mmap
        if found.st_size >= _MAPPED and may_map():
            memory = mapping(descriptor, 0, mmap.ACCESS_COPY)
        else:
            with open(descriptor, "rb", closefd=False) as file:
                memory = bytearray(file.read())
        value, added_up = _value_in(memory)
        if added_up:
            _note_whole(folder / name)
        return value
    except (OSError, ValueError, KeyError, TypeError, IndexError, struct.error):
        return None
    finally:
        os.close(descriptor)


def may_map() -> bool:
    """Whether one more file may be mapped: each mapping has a file descriptor."""
    return len(_maps) < _MOST_MAPPED


def mapping(descriptor: int, size: int, access: int) -> mmap.mmap:
    """Map a file."""
    _maps.add(memory := mmap.mmap(descriptor, size, access=access))
    return memory


def unmapped_bytes(value: Any) -> int:
    """Return about how many bytes of a value's arrays are in memory alone, and not mapped from a file.

    Raises
    ------
    NotPackable
        It has other parts than arrays.
    """
    return sum(array.nbytes for array in packed(value)[1] if not _is_mapped(array))


def _is_mapped(array: NDArray[Any]) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    return isinstance(base, mmap.mmap)


def mapped(folder: Path, value: T) -> T | None:
    """Return a value whose arrays lie in a file without a name, which goes with them; None where they cannot.

    The system writes such a file as it likes, and may take back the memory that its pages are in.  Arrays that are
    mapped stay where they are.

    Raises
    ------
    NotPackable
        The value cannot be written.
    OSError
        The disk is full, or nothing can be written there.
    """
    description, arrays = packed(value)
    written = [array for array in arrays if not _is_mapped(array)]
    size = sum(_aligned(array.nbytes) for array in written)
    if sum(_aligned(array.nbytes) for array in arrays) < _MAPPED or not (size == 0 or may_map()):
        return None
    if not size:
        return value
    with tempfile.TemporaryFile(dir=folder) as file:
        for array in map(np.ascontiguousarray, written):
            file.write(_bytes(array).data)
            file.write(bytes(_aligned(array.nbytes) - array.nbytes))
        file.flush()
        memory = mapping(file.fileno(), size, mmap.ACCESS_COPY)
    found, at = [], 0
    for array in arrays:
        if _is_mapped(array):
            found.append(array)
            continue
        found.append(_array(memory, 0, array.dtype.str, array.shape, at))
        at += _aligned(array.nbytes)
    return cast(T, unpacked(description, found))


def _note_whole(path: Path) -> None:
    """Write into a file that its arrays were found to be whole."""
    with suppress(OSError):  # they are added up again
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if is_private(os.fstat(descriptor)):
                os.pwrite(descriptor, _start(), _KNOWN_AT)
        finally:
            os.close(descriptor)


@functools.cache
def _start() -> bytes:
    """Return the id that the system gave the machine's last start; zeros where it gives none."""
    with suppress(OSError, ValueError):
        return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip().replace("-", ""))
    return bytes(16)


def _value_in(memory: bytearray | mmap.mmap) -> tuple[Any, bool]:
    """Return the value of a file's content, and whether its arrays were added up; raise where it is damaged."""
    magic, digest, length, total, known = _HEAD.unpack_from(memory)
    text = memory[_HEAD.size : _HEAD.size + length]
    if magic != _MAGIC or hashlib.sha256(text).digest() != digest:
        raise ValueError("the description is damaged")
    found = json.loads(bytes(text))
    begin = _HEAD.size + _aligned(length)
    if len(memory) != begin + found["bytes"]:
        raise ValueError("the file is not complete")
    unknown = known != _start() or not any(known)
    if unknown and _sum(np.frombuffer(memory, np.uint8, offset=begin)) != total:
        raise ValueError("an array is damaged")
    return unpacked(found["value"], [_array(memory, begin, *each) for each in found["arrays"]]), unknown


def _array(memory: bytearray | mmap.mmap, begin: int, dtype: str, shape: Sequence[int], at: int) -> NDArray[Any]:
    type, count = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.empty(shape, type)
    return np.frombuffer(memory, type, count, begin + at).reshape(shape)


def _bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    return array.reshape(-1).view(np.uint8)


def _sum(data: NDArray[np.uint8]) -> int:
    """Return the sum of bytes as words of 64 bits, the last one filled up with zeros."""
    whole = len(data) // 8 * 8
    words = int(data[:whole].view(np.uint64).sum(dtype=np.uint64))
    return (words + int.from_bytes(data[whole:].tobytes(), "little")) % (1 << 64)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
