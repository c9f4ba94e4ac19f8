"""Texts of a column, taken, joined and numbered, as machine code; and integers, numbered.

A column of texts is its bytes, and where each begins and the last one ends (int64[n + 1]).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import copy, entry, kernel, load, mix, word

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

_U8 = np.uint8(0)
_MULTIPLIER = 0x9E3779B1


@entry("T[:], i8[:], i8[:]")
def measure(offsets: NDArray[Any], at: Ints, ends: Ints) -> None:
    """Write where each of the texts at some places begins, and the last one ends, if one follows the other.

    Parameters
    ----------
    at : int64[m]
        The places; there is no text at one below 0.
    ends : int64[m + 1]
        What is written.
    """
    end = 0
    ends[0] = 0
    for i in range(len(at)):
        if at[i] >= 0:
            end += offsets[at[i] + 1] - offsets[at[i]]
        ends[i + 1] = end


@entry("u1[:], T[:], i8[:], i8[:], u1[:]")
def gather(data: Bytes, offsets: NDArray[Any], at: Ints, ends: Ints, out: Bytes) -> None:
    """Write the texts at some places one after the other, as :func:`measure` says where."""
    source, target = data.ctypes.data, out.ctypes.data
    for i in range(len(at)):
        if at[i] >= 0:
            begin = offsets[at[i]]
            copy(target + ends[i], source + begin, offsets[at[i] + 1] - begin)


@entry("u1[:], i8[:], i8[:], i8[:], u1[:], i8")
def put(data: Bytes, offsets: Ints, at: Ints, begins: Ints, out: Bytes, behind: int) -> None:
    """Write the texts at some places (none for one below 0) to where each shall begin, and the byte ``behind`` it."""
    source, target = data.ctypes.data, out.ctypes.data
    for i in range(len(at)):
        if at[i] >= 0:
            begin = offsets[at[i]]
            size = offsets[at[i] + 1] - begin
            copy(target + begins[i], source + begin, size)
            out[begins[i] + size] = behind


@kernel
def _hash(source: int, length: int, key: int) -> int:
    """Return 63 bits of hash of some bytes (as in wyhash), which nobody knows who does not know the ``key``."""
    k0, k1 = word(key), word(key + 8)
    found = k0 ^ np.uint64(length)
    i = 0
    while i + 8 <= length:
        found = mix(word(source + i) ^ k1, found)
        i += 8
    rest = np.uint64(0)
    while i < length:
        rest = rest << np.uint64(8) | np.uint64(load(source, i, _U8))
        i += 1
    return int(np.int64(mix(rest ^ k1, found) >> np.uint64(1)))


@kernel
def _same(left: int, right: int, length: int) -> bool:
    i = 0
    while i + 8 <= length:
        if word(left + i) != word(right + i):
            return False
        i += 8
    while i < length:
        if load(left, i, _U8) != load(right, i, _U8):
            return False
        i += 1
    return True


@entry("u1[:], i8[:], u8[:], i8[:, :], i8[:], i8[:] -> i8")
def number_texts(data: Bytes, offsets: Ints, key: NDArray[np.uint64], table: Ints, numbers: Ints, firsts: Ints) -> int:
    """Number the different texts in the order in which they first come; return how many there are.

    Parameters
    ----------
    key : uint64[2]
        Secret numbers.
    table : int64[slots, 2]
        For more texts than there are, all -1.
    numbers, firsts : int64[n]
        Receive the number of each text, and where each different one comes first.
    """
    size, base, secret, count = len(table), data.ctypes.data, key.ctypes.data, 0
    for i in range(len(offsets) - 1):
        begin, length = offsets[i], offsets[i + 1] - offsets[i]
        hashed = _hash(base + begin, length, secret)
        slot = ((hashed & 0xFFFFFFFF) * size) >> 32
        found = -1
        while table[slot, 1] != -1 and found < 0:
            if table[slot, 0] == hashed:
                first = firsts[table[slot, 1]]
                if offsets[first + 1] - offsets[first] == length and _same(base + begin, base + offsets[first], length):
                    found = table[slot, 1]
            if found < 0:
                slot = slot + 1 if slot + 1 < size else 0
        if found < 0:
            found = count
            table[slot, 0], table[slot, 1] = hashed, found
            firsts[found] = i
            count += 1
        numbers[i] = found
    return count


@entry("i8[:], i8[:], i8[:], i8[:] -> i8")
def number_integers(values: Ints, table: Ints, numbers: Ints, distinct: Ints) -> int:
    """Number the different integers in the order in which they first come; return how many there are.

    ``table`` (int64[slots], all -1) has room for more values than there are; ``numbers`` and ``distinct`` (int64[n])
    receive the number of each value, and the different ones.
    """
    size, count = len(table), 0
    for i in range(len(values)):
        value = values[i]
        slot = (((value ^ (value >> 32)) * _MULTIPLIER & 0xFFFFFFFF) * size) >> 32
        while table[slot] != -1 and distinct[table[slot]] != value:
            slot = slot + 1 if slot + 1 < size else 0
        if table[slot] == -1:
            table[slot] = count
            distinct[count] = value
            count += 1
        numbers[i] = table[slot]
    return count
