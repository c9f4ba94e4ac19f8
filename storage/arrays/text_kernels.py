"""Texts of a column, taken, joined and numbered, as machine code; and integers, numbered.

A column of texts is its bytes, and where each begins and the last one ends (int64[n + 1]).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import copy, entry, fetch, kernel, load, mix, word

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_U8, _U32 = np.uint8(0), np.uint32(0)
_MULTIPLIER, _HALF = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
_BYTES, _PAIRS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF)
_NEAR = 1 << 17
"""Slots of a table of integers that a processor's cache holds, with the integers: it waits for those of larger ones."""
_SLOT_AHEAD, _INTEGER_AHEAD = 24, 10
"""Values from which on the slot of one, and the integer whose number is there, are brought into the cache."""


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
def _half(at: int) -> np.uint64:
    """Four bytes, as the lower half of eight."""
    return np.uint64(load(at, 0, _U32))


@kernel
def _hash(source: int, length: int, key: int) -> int:
    """Return 63 bits of hash of some bytes (as in wyhash), which nobody knows who does not know the ``key``."""
    k0, k1 = word(key), word(key + 8)
    found = k0 ^ np.uint64(length)
    if length >= 8:
        i = 0
        while i + 8 < length:
            found = mix(word(source + i) ^ k1, found)
            i += 8
        rest = word(source + length - 8)
    elif length >= 4:
        rest = _half(source) << np.uint64(32) | _half(source + length - 4)
    else:
        rest = np.uint64(0)
        for i in range(length):
            rest = rest << np.uint64(8) | np.uint64(load(source, i, _U8))
    return int(np.int64(mix(rest ^ k1, found) >> np.uint64(1)))


@kernel
def _same(left: int, right: int, length: int) -> bool:
    if length >= 8:
        i = 0
        while i + 8 < length:
            if word(left + i) != word(right + i):
                return False
            i += 8
        return bool(word(left + length - 8) == word(right + length - 8))
    if length >= 4:
        return bool(_half(left) == _half(right) and _half(left + length - 4) == _half(right + length - 4))
    i = 0
    while i < length and load(left, i, _U8) == load(right, i, _U8):
        i += 1
    return bool(i == length)


@kernel
def _in_order(source: int, length: int, end: int) -> np.uint64:
    """The next eight bytes of a text as an integer in their order, zeros for those that it lacks; all texts lie before
    ``end``.
    """
    if length <= 0:
        return np.uint64(0)
    if length >= 8 or source + 8 <= end:
        found = word(source)
        found = (found & _BYTES) << np.uint64(8) | (found >> np.uint64(8)) & _BYTES
        found = (found & _PAIRS) << np.uint64(16) | (found >> np.uint64(16)) & _PAIRS
        found = found << _HALF | found >> _HALF
        if length < 8:
            missing = np.uint64(64 - 8 * length)
            found = (found >> missing) << missing
        return found
    rest = np.uint64(0)
    for i in range(8):
        rest = rest << np.uint64(8) | np.uint64(load(source, i, _U8) if i < length else 0)
    return rest


@kernel
def _compared(left: int, left_size: int, right: int, right_size: int, end: int) -> int:
    """Return -1, 0 or 1 as the bytes of one text come before, with or after those of another."""
    i, most = 8, max(left_size, right_size)
    while i < most:
        one, other = _in_order(left + i, left_size - i, end), _in_order(right + i, right_size - i, end)
        if one != other:
            return -1 if one < other else 1
        i += 8
    return 0 if left_size == right_size else -1 if left_size < right_size else 1


@entry("u1[:], i8[:], i8[:], i8[:], i8, i8, i8, u8[:], i8[:]")
def extremes_of_groups(
    data: Bytes,
    offsets: Ints,
    rows: Ints,
    numbers: Ints,
    begin: int,
    end: int,
    sign: int,
    words: NDArray[np.uint64],
    found: Ints,
) -> None:
    """Find the least (``sign`` -1) or greatest (1) text of each group in the order of bytes, of rows ``begin … end-1``.

    Parameters
    ----------
    rows, numbers : int64[n]
        The places of texts, and the group of each.
    words, found : uint64[groups], int64[groups]
        The first bytes of the text of each group that is it so far, and its place; -1 where there is none.
    """
    base = data.ctypes.data
    last = base + len(data)
    for i in range(begin, end):
        at, number = rows[i], numbers[i]
        start, size = base + offsets[at], offsets[at + 1] - offsets[at]
        first, former = _in_order(start, size, last), found[number]
        order = sign
        if former >= 0:
            if first != words[number]:
                order = -1 if first < words[number] else 1
            else:
                order = _compared(start, size, base + offsets[former], offsets[former + 1] - offsets[former], last)
        if order == sign:
            words[number], found[number] = first, at


@kernel
def _place(hashed: int, size: int) -> int:
    """Return where a table of so many slots has what has a hash of 63 bits, or is looked at first."""
    return ((hashed & 0xFFFFFFFF) * size) >> 32


@entry("u1[:], i8[:], b1[:], u8[:], i8, i8[:, :], i8, T[:], i8[:] -> i8, i8")
def number_texts(
    data: Bytes,
    offsets: Ints,
    valid: Flags,
    key: NDArray[np.uint64],
    begin: int,
    table: Ints,
    count: int,
    numbers: NDArray[Any],
    firsts: Ints,
) -> tuple[int, int]:
    """Number the different texts in the order in which they first come, from place ``begin`` on.

    Parameters
    ----------
    valid : bool[n] or bool[0]
        Which texts are not null; all, where it is empty.
    key : uint64[2]
        Secret numbers.
    table : int64[slots, 2]
        The hash and the number of each of the ``count`` different texts that there are so far; -1 elsewhere.
    numbers, firsts : T[n], int64[n]
        Receive the number of each text, -1 for null, and where each different one comes first.

    Returns
    -------
    Before which place half of the table was full, and how many different texts there are then.
    """
    size, base, secret = len(table), data.ctypes.data, key.ctypes.data
    for i in range(begin, len(offsets) - 1):
        if len(valid) and not valid[i]:
            numbers[i] = -1
            continue
        start, length = offsets[i], offsets[i + 1] - offsets[i]
        hashed = _hash(base + start, length, secret)
        slot = _place(hashed, size)
        found = np.int64(-1)
        while table[slot, 1] != -1 and found < 0:
            if table[slot, 0] == hashed:
                first = firsts[table[slot, 1]]
                at = offsets[first]
                if offsets[first + 1] - at == length and _same(base + start, base + at, length):
                    found = table[slot, 1]
            if found < 0:
                slot = slot + 1 if slot + 1 < size else 0
        if found < 0:
            if 2 * count >= size:
                return i, count
            found = np.int64(count)
            table[slot, 0], table[slot, 1] = hashed, found
            firsts[found] = i
            count += 1
        numbers[i] = found
    return len(offsets) - 1, count


@entry("u1[:], i8[:], b1[:], u8[:], i8, i8[:, :], i8[:], i8[:], i8, u1[:], i8, i8[:], T[:] -> i8, i8, i8")
def number_and_store(
    data: Bytes,
    offsets: Ints,
    valid: Flags,
    key: NDArray[np.uint64],
    begin: int,
    table: Ints,
    places: Ints,
    sizes: Ints,
    count: int,
    store: Bytes,
    used: int,
    hashes: Ints,
    numbers: NDArray[Any],
) -> tuple[int, int, int]:
    """Number the different texts of columns that come one after the other, from place ``begin`` of one on.

    Parameters
    ----------
    valid, key, table, numbers
        As in :func:`number_texts`.
    places, sizes : int64[slots / 2]
        Where each of the ``count`` different texts that there are so far stands in memory, and how many bytes it has.
    store : uint8[]
        Receives the new ones, behind the ``used`` bytes that it has.
    hashes : int64[some]
        Room for the hashes of texts whose slots are brought into the cache ahead.

    Returns
    -------
    Before which place half of the table, or the store, was full, how many different texts there are then, and how many
    bytes of the store are used.
    """
    size, base, secret, slots = len(table), data.ctypes.data, key.ctypes.data, table.ctypes.data
    many, room, begin_of_store = len(offsets) - 1, len(store), store.ctypes.data
    first = begin
    while first < many:
        last = min(first + len(hashes), many)
        for i in range(first, last):
            if not len(valid) or valid[i]:
                hashed = _hash(base + offsets[i], offsets[i + 1] - offsets[i], secret)
                hashes[i - first] = hashed
                fetch(slots + 16 * _place(hashed, size))
        for i in range(first, last):
            if len(valid) and not valid[i]:
                numbers[i] = -1
                continue
            start, length, hashed = base + offsets[i], offsets[i + 1] - offsets[i], hashes[i - first]
            slot = _place(hashed, size)
            found = np.int64(-1)
            while table[slot, 1] != -1 and found < 0:
                if table[slot, 0] == hashed:
                    other = table[slot, 1]
                    if sizes[other] == length and _same(start, places[other], length):
                        found = other
                if found < 0:
                    slot = slot + 1 if slot + 1 < size else 0
            if found < 0:
                if 2 * count >= size or used + length > room:
                    return i, count, used
                found = np.int64(count)
                table[slot, 0], table[slot, 1] = hashed, found
                places[found], sizes[found] = begin_of_store + used, length
                copy(begin_of_store + used, start, length)
                used += length
                count += 1
            numbers[i] = found
        first = last
    return many, count, used


@entry("i8[:, :], i8[:, :]")
def put_hashes(former: Ints, table: Ints) -> None:
    """Write what a table of :func:`number_texts` has into one with more slots."""
    size = len(table)
    for i in range(len(former)):
        if former[i, 1] != -1:
            slot = _place(former[i, 0], size)
            while table[slot, 1] != -1:
                slot = slot + 1 if slot + 1 < size else 0
            table[slot, 0], table[slot, 1] = former[i, 0], former[i, 1]


@kernel
def _slot(value: int, size: int) -> int:
    """Return where a table of so many slots has an integer, or is looked at first.

    By the upper half of a product, which all its bits reach (Fibonacci hashing; Knuth, The Art of Computer Programming
    3, §6.4).
    """
    return int(np.int64(np.uint64(value) * _MULTIPLIER >> _HALF)) * size >> 32


@entry("i8[:], b1[:], i8, i4[:], i8, T[:], i8[:] -> i8, i8")
def number_integers(
    values: Ints, valid: Flags, begin: int, table: NDArray[np.int32], count: int, numbers: NDArray[Any], distinct: Ints
) -> tuple[int, int]:
    """Number the different integers in the order in which they first come, from place ``begin`` on.

    ``table`` (int32[slots]) has the numbers of the ``count`` integers that there are so far, -1 elsewhere, and
    ``distinct`` (int64[slots / 2]) these integers.  ``numbers`` (T[n]) receives the number of each value; ``valid`` and
    what is returned are as in :func:`number_texts`.
    """
    size = len(table)
    slots, integers = table.ctypes.data, distinct.ctypes.data
    last = len(values) - _SLOT_AHEAD if size > _NEAR else 0
    for i in range(begin, len(values)):
        if i < last:
            fetch(slots + 4 * _slot(values[i + _SLOT_AHEAD], size))
            fetch(integers + 8 * int(table[_slot(values[i + _INTEGER_AHEAD], size)]))  # at -1 nothing is read
        if len(valid) and not valid[i]:
            numbers[i] = -1
            continue
        value = values[i]
        slot = _slot(value, size)
        while table[slot] != -1 and distinct[table[slot]] != value:
            slot = slot + 1 if slot + 1 < size else 0
        found = np.int64(table[slot])
        if found == -1:
            if 2 * count >= size:
                return i, count
            found = np.int64(count)
            table[slot] = found
            distinct[count] = value
            count += 1
        numbers[i] = found
    return len(values), count


@entry("i8[:], i4[:]")
def put_integers(distinct: Ints, table: NDArray[np.int32]) -> None:
    """Write the numbers of different integers into an empty table of :func:`number_integers`."""
    size = len(table)
    for number in range(len(distinct)):
        slot = _slot(distinct[number], size)
        while table[slot] != -1:
            slot = slot + 1 if slot + 1 < size else 0
        table[slot] = number


@entry("i8[:], i8[:], i8[:], i4[:], i8[:], i8[:] -> i8")
def number_pairs(
    buckets: Ints, values: Ints, begins: Ints, table: NDArray[np.int32], numbers: Ints, firsts: Ints
) -> int:
    """Number the different pairs of a bucket and a value in the order in which they first come; return how many.

    Each bucket has a table of its own: rows of a bucket that stand together find it in the processor's cache.

    Parameters
    ----------
    begins : int64[buckets + 1]
        Where the slots of each bucket begin in ``table``: it has more of them than rows.
    table : int32[slots]
        -1 everywhere; receives rows.
    numbers, firsts : int64[n], int64[n]
        What is written: the number of each row's pair, and the first row of each pair.
    """
    count = 0
    for i in range(len(values)):
        bucket, value = buckets[i], values[i]
        begin, end = begins[bucket], begins[bucket + 1]
        slot = begin + _slot(value, end - begin)
        while table[slot] != -1 and values[table[slot]] != value:
            slot = slot + 1 if slot + 1 < end else begin
        found = np.int64(table[slot])
        if found == -1:
            table[slot] = i
            firsts[count] = i
            numbers[i] = count
            count += 1
        else:
            numbers[i] = numbers[found]
    return count
