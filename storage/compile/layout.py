"""Where NumPy's arrays have their fields: machine code reads them, without a call back into Python or NumPy.

These are the offsets of ``PyArrayObject_fields`` and ``PyArray_Descr`` of NumPy's C interface, which every extension
compiled for NumPy 2 relies on.  :func:`holds` looks whether they are so here.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

HEAD = object.__basicsize__
"""Bytes that any object begins with; its type comes last in them."""
TYPE = HEAD - 8

C_ORDER, ALIGNED = 0x1, 0x100
"""Flags of arrays."""

MISFIT = -(1 << 63)
"""What machine code returns where the arguments are not of the declared types."""


class _Array(NamedTuple):
    data: int = HEAD
    dimensions: int = HEAD + 8
    shape: int = HEAD + 16
    strides: int = HEAD + 24
    descriptor: int = HEAD + 40
    flags: int = HEAD + 48


class _Descriptor(NamedTuple):
    kind: int = HEAD + 8
    order: int = HEAD + 10
    size: int = HEAD + 24


ARRAY, DESCRIPTOR = _Array(), _Descriptor()


def holds() -> bool:
    """Whether arrays of this process have their fields there."""
    try:
        sample = np.zeros((2, 3, 5), np.int32)
    except MemoryError:
        return False
    start = id(sample)

    def read(address: int, kind: type[ctypes._SimpleCData[int]]) -> int:
        return kind.from_address(address).value

    long, byte = ctypes.c_int64, ctypes.c_uint8
    described = read(start + ARRAY.descriptor, long)
    if read(start + TYPE, long) != id(np.ndarray) or described != id(sample.dtype):
        return False
    shape, strides = read(start + ARRAY.shape, long), read(start + ARRAY.strides, long)
    return (
        read(start + ARRAY.data, long) == sample.ctypes.data
        and read(start + ARRAY.dimensions, ctypes.c_int32) == 3
        and [read(shape + 8 * i, long) for i in range(3)] == [2, 3, 5]
        and [read(strides + 8 * i, long) for i in range(3)] == list(sample.strides)
        and read(start + ARRAY.flags, ctypes.c_int32) == sample.flags.num
        and chr(read(described + DESCRIPTOR.kind, byte)) == "i"
        and chr(read(described + DESCRIPTOR.order, byte)) == "="
        and read(described + DESCRIPTOR.size, long) == 4
    )
