"""The kernel that counts how often each choice of neighbours comes, in a hash table with open addressing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.search.set_kernels import LONG, neighbours_of
from graphdb.storage.compile.kernels import entry, load

Ints = NDArray[np.int64]

_BYTE = np.uint8(0)


@entry("i8[:, :], i8[:], i8[:], i8, i8, i8, i8[:, :], i8[:, :], i8, T")
def count_choices(
    partitions: Ints,
    marks: Ints,
    roots: Ints,
    begin: int,
    end: int,
    base: int,
    table: Ints,
    scratch: Ints,
    width: int,
    like: Any,
) -> None:
    """Count the choices of the roots ``begin … end-1``.

    Parameters
    ----------
    partitions
        int64 [lists, 6]: their rows.
    marks
        int64 [lists]: the addresses of bytes that say which neighbours may be chosen; 0 for all.
    base
        Neighbours are digits to this base of a choice's number.
    table
        int64 [a power of two, greater than the choices, 2]: choices, by one more than their numbers, and their counts.
    scratch
        int64 [4, lists].
    width, like
        The bytes of the vertex id type, and a zero of it.
    """
    lists = len(partitions)
    mask = len(table) - 1
    address, length, at, number = scratch[0], scratch[1], scratch[2], scratch[3]
    number[0] = 0
    rows = partitions.ctypes.data
    for r in range(begin, end):
        for i in range(lists):
            near, far = neighbours_of(rows, i, roots[r])
            address[i], length[i] = load(rows + i * 48, 3, LONG) + near * width, far - near
        level = 0
        at[0] = 0
        while level >= 0:
            if at[level] == length[level]:
                level -= 1
                continue
            value = load(address[level], at[level], like)
            at[level] += 1
            if marks[level] != 0 and load(marks[level], value, _BYTE) == 0:
                continue
            key = number[level] * base + value
            if level < lists - 1:
                level += 1
                number[level] = key
                at[level] = 0
                continue
            mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
            place = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(mask))
            while table[place, 0] != 0 and table[place, 0] != key + 1:
                place = (place + 1) & mask
            table[place, 0] = key + 1
            table[place, 1] += 1
