"""Values of one size, gathered from columns by their places, and rows counted by small numbers, as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, fetch, kernel

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

_AHEAD = 64
"""Values from which on the one that is gathered then is brought into the cache."""

_LOOKED_AT = 1024
"""Integers that are compared between two looks at whether one was wrong: a loop without a way out is vectorized."""


@kernel
def _gather(data: Any, valid: Any, first: int, ids: Any, out: Any, there: Any) -> tuple[int, int]:
    count, checked, absent, beyond = len(data), len(valid) > 0, 0, 0
    source, size = data.ctypes.data, data.itemsize
    for i in range(len(ids)):
        if i + _AHEAD < len(ids):
            fetch(source + (ids[i + _AHEAD] - first) * size)
        at = ids[i] - first
        if at >= 0 and at < count:
            out[i] = data[at]
            there[i] = not checked or valid[at]
        else:
            out[i] = 0
            there[i] = False
            if at >= count:
                beyond += 1
        if not there[i]:
            absent += 1
    return absent, beyond


@entry("i8[:], b1[:], i8, T[:], i8[:], b1[:] -> i8, i8")
def gather8(
    data: Ints, valid: NDArray[np.bool_], first: int, ids: NDArray[Any], out: Ints, there: NDArray[np.bool_]
) -> tuple[int, int]:
    """Gather values of eight bytes; return how many are absent, and of these how many beyond the last one.

    Parameters
    ----------
    data : int64[places]
        The values of the ids from ``first`` on.
    valid : bool[places]
        Which of them are not null; empty for all.
    ids : int32 or int64[n]
        Those wanted.
    out, there : int64[n], bool[n]
        What is written: the values, and which are there.
    """
    return _gather(data, valid, first, ids, out, there)


@entry("i4[:], b1[:], i8, T[:], i4[:], b1[:] -> i8, i8")
def gather4(
    data: NDArray[np.int32],
    valid: NDArray[np.bool_],
    first: int,
    ids: NDArray[Any],
    out: NDArray[np.int32],
    there: NDArray[np.bool_],
) -> tuple[int, int]:
    """Gather values of four bytes, as :func:`gather8` does."""
    return _gather(data, valid, first, ids, out, there)


@entry("u1[:], b1[:], i8, T[:], u1[:], b1[:] -> i8, i8")
def gather1(
    data: Bytes, valid: NDArray[np.bool_], first: int, ids: NDArray[Any], out: Bytes, there: NDArray[np.bool_]
) -> tuple[int, int]:
    """Gather values of one byte, as :func:`gather8` does."""
    return _gather(data, valid, first, ids, out, there)


@entry("T[:] -> b1")
def rises_by_one(integers: NDArray[Any]) -> bool:
    """Whether each integer is one more than that before it."""
    begin, wrong = 1, 0
    while begin < len(integers) and wrong == 0:
        end = min(begin + _LOOKED_AT, len(integers))
        for i in range(begin, end):
            if integers[i] != integers[i - 1] + 1:
                wrong += 1
        begin = end
    return wrong == 0


@entry("i8[:], i8[:] -> b1")
def pairs_ascend(firsts: Ints, seconds: Ints) -> bool:
    """Whether pairs of integers are sorted, and each is there once."""
    begin, wrong = 1, 0
    while begin < len(firsts) and wrong == 0:
        end = min(begin + _LOOKED_AT, len(firsts))
        for i in range(begin, end):
            is_next = (firsts[i] > firsts[i - 1]) | ((firsts[i] == firsts[i - 1]) & (seconds[i] > seconds[i - 1]))
            wrong += not is_next
        begin = end
    return wrong == 0


@entry("i8[:], i8[:], i8[:], i8[:]")
def mark_bits(rows: Ints, names: Ints, bits: Ints, found: Ints) -> None:
    """Set in the number of each row the bits of its names, by these; names beyond the last one have none."""
    for i in range(len(rows)):
        if names[i] < len(bits):
            found[rows[i]] |= bits[names[i]]


@entry("i8[:], i8, i8, i8[:]")
def pack(values: Ints, least: int, span: int, numbers: Ints) -> None:
    """Make numbers (int64[n]) of rows those of the same rows with one value more: one of ``span`` from ``least`` on."""
    for i in range(len(values)):
        numbers[i] = numbers[i] * span + (values[i] - least)


@entry("i8[:] -> i8, i8")
def total(values: Ints) -> tuple[int, int]:
    """Return sums of fewer than 2**31 integers: that of their parts above 32 bits, and that of what is below."""
    above, below = 0, 0
    for i in range(len(values)):
        above += values[i] >> 32
        below += values[i] & 0xFFFFFFFF
    return above, below


@entry("i8[:], i8, i8[:], i8[:]")
def tally(numbers: Ints, least: int, counts: Ints, last: Ints) -> None:
    """Count rows by their numbers (int64[n], from ``least`` on) into ``counts``, and write where each comes last."""
    for i in range(len(numbers)):
        counts[numbers[i] - least] += 1
        last[numbers[i] - least] = i


@entry("i8[:], i8[:]")
def first_places(numbers: Ints, firsts: Ints) -> None:
    """Write where each of some numbers (int64[n]) comes first; what does not come stays as it is."""
    for i in range(len(numbers) - 1, -1, -1):
        firsts[numbers[i]] = i


@entry("i8[:], b1[:], f8[:], f8[:], i8[:]")
def add_reals(
    numbers: Ints, there: NDArray[np.bool_], values: NDArray[np.float64], sums: NDArray[np.float64], counts: Ints
) -> None:
    """Add the values (float64[n]) of rows that are ``there`` (bool[n]; empty for all) by their numbers (int64[n]), and
    how many these are.
    """
    if len(there) == 0:
        for i in range(len(numbers)):
            sums[numbers[i]] += values[i]
            counts[numbers[i]] += 1
    for i in range(len(there)):
        sums[numbers[i]] += values[i] if there[i] else 0.0
        counts[numbers[i]] += np.int64(there[i])


@entry("i8[:], b1[:], i8[:], i8[:]")
def add_integers(numbers: Ints, there: NDArray[np.bool_], values: Ints, sums: Ints) -> None:
    """Add the values (int64[n]) of rows that are ``there`` (bool[n]; empty for all) by their numbers (int64[n])."""
    if len(there) == 0:
        for i in range(len(numbers)):
            sums[numbers[i]] += values[i]
    for i in range(len(there)):
        sums[numbers[i]] += values[i] if there[i] else np.int64(0)


@kernel
def _place(numbers: Any, values: Any, ends: Any, placed: Any) -> None:
    """Put the values of each group together, from where ``ends`` says that they begin, which becomes where they end."""
    for i in range(len(numbers)):
        placed[ends[numbers[i]]] = values[i]
        ends[numbers[i]] += 1


@entry("i8[:], i8[:], i8[:], i8[:], i4[:], i8[:]")
def tally_distinct(
    numbers: Ints, values: Ints, ends: Ints, placed: Ints, seen: NDArray[np.int32], counts: Ints
) -> None:
    """Count the different values of the rows with each number.

    Parameters
    ----------
    numbers, values : int64[n]
        Of each row.
    ends : int64[groups]
        Where the rows of each number begin, if those of one number stand together; becomes where they end.
    placed : int64[n]
        What receives the values of one number after those of another.
    seen : int32[span]
        -1 for each value that there may be; becomes the last number that has it.
    counts : int64[groups]
        What is written.
    """
    _place(numbers, values, ends, placed)
    at = 0
    for number in range(len(ends)):
        count = 0
        while at < ends[number]:
            if seen[placed[at]] != number:
                seen[placed[at]] = np.int32(number)
                count += 1
            at += 1
        counts[number] = count


@entry("i8[:], i8[:], i8, u1[:], i8[:]")
def tally_marked(numbers: Ints, values: Ints, span: int, marks: Bytes, counts: Ints) -> None:
    """Count the different values (below ``span``) of the rows with each number, by marks of all pairs of both.

    Parameters
    ----------
    numbers, values : int64[n]
        Of each row.
    marks, counts : uint8[groups * span], int64[groups]
        Zeros; what is written.
    """
    for i in range(len(numbers)):
        at = numbers[i] * span + values[i]
        counts[numbers[i]] += 1 - np.int64(marks[at])
        marks[at] = 1


@kernel
def _select(values: Any, begin: int, end: int, at: int) -> None:
    """Put the value that sorting a part of an array would put at a place there, lesser ones before it (quickselect:
    Hoare, *Algorithm 65: Find*, CACM 1961).
    """
    low, high = begin, end - 1
    while low < high:
        pivot = values[(low + high) >> 1]
        left, right = low, high
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if at <= right:
            high = right
        elif at >= left:
            low = left
        else:
            return


@entry("i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:]")
def select_of_groups(
    numbers: Ints, values: Ints, ends: Ints, placed: Ints, ranks: Ints, found: Ints, following: Ints
) -> None:
    """Find the value of some rank among those of each group.

    Parameters
    ----------
    numbers, values : int64[n]
        Of each row.
    ends : int64[groups]
        Where the rows of each number begin, if those of one number stand together; becomes where they end.
    placed : int64[n]
        What receives the values of one number after those of another.
    ranks : int64[groups]
        From 0; those of groups without rows mean nothing.
    found, following : int64[groups]
        What is written: the value of that rank, and of the next, or the last one.
    """
    _place(numbers, values, ends, placed)
    begin = 0
    for number in range(len(ends)):
        end = ends[number]
        if begin < end:
            at = begin + ranks[number]
            _select(placed, begin, end, at)
            found[number] = placed[at]
            least = placed[min(at + 1, end - 1)]
            for i in range(at + 1, end):
                least = min(least, placed[i])
            following[number] = least
        begin = end


@entry("i8[:], i4[:], i8[:], i8[:] -> i8")
def number_below(values: Ints, table: NDArray[np.int32], numbers: Ints, firsts: Ints) -> int:
    """Number the different values in the order in which they first come; return how many there are.

    Parameters
    ----------
    values : int64[n]
        Below ``bound``.
    table : int32[bound]
        -1; becomes the number of each value.
    numbers : int64[n]
        Receives the number of each row's value.
    firsts : int64[...]
        Receives where each number first comes.
    """
    count = 0
    for i in range(len(values)):
        found = np.int64(table[values[i]])
        if found < 0:
            found = np.int64(count)
            table[values[i]] = np.int32(count)
            firsts[count] = i
            count += 1
        numbers[i] = found
    return count


@entry("i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8[:]")
def sums_of_pairs(
    mine: Ints,
    mine_ends: Ints,
    mine_order: Ints,
    theirs: Ints,
    weights: Ints,
    their_ends: Ints,
    their_order: Ints,
    sums: Ints,
    out: Ints,
) -> None:
    """Write for each of ``mine`` the sum of the weights of ``theirs`` that are the same pair of integers.

    The sums of all pairs with one first integer are made in an array by the second, which stays in the cache (a sparse
    accumulator: Gilbert, Moler and Schreiber, SIAM J. Matrix Anal. Appl. 13(1), 1992, section 3.1.3).

    Parameters
    ----------
    mine, theirs : int64[n], int64[m]
        The second integers.
    weights : int64[m]
        What each of ``theirs`` counts; empty where that is 1.
    mine_order, their_order : int64[n], int64[m]
        Their places in the order of the first integers, and
    mine_ends, their_ends : int64[bound]
        where those of each end in it.
    sums : int64[bound of the second integers]
        Scratch, zeros.
    out : int64[n]
        What is written.
    """
    counted = len(weights) > 0
    begin, first = 0, 0
    for at in range(len(mine_ends)):
        end, last = mine_ends[at], their_ends[at]
        if begin < end:
            for i in range(first, last):
                place = their_order[i]
                sums[theirs[place]] += weights[place] if counted else 1
            for i in range(begin, end):
                out[mine_order[i]] = sums[mine[mine_order[i]]]
            for i in range(first, last):
                sums[theirs[their_order[i]]] = 0
        begin, first = end, last


_TESTED = 16
"""Pairs that are tested for each that may be found, at most."""

_FACTOR = 0x1E3779B97F4A7C15
"""Multiplicative hashing (Knuth, The Art of Computer Programming, 6.4)."""


@entry("i8[:], i8, i4[:], i4[:]")
def chain_by_hash(keys: Ints, shift: int, heads: NDArray[np.int32], following: NDArray[np.int32]) -> None:
    """Chain integers whose hashes, which have ``64 - shift`` bits, are the same.

    Parameters
    ----------
    keys : int64[n]
        The integers.
    heads : int32[hashes]
        -1; becomes where the first integer with each hash stands.
    following : int32[n]
        Receives where the next one with the same hash stands; -1 after the last.
    """
    mask = (1 << (64 - shift)) - 1
    for i in range(len(keys) - 1, -1, -1):
        bucket = ((keys[i] * _FACTOR) >> shift) & mask
        following[i] = heads[bucket]
        heads[bucket] = np.int32(i)


@entry("i8[:], i8[:], i8[:], i8[:], i8, i8, i4[:], i4[:], i8, i8[:], i8[:] -> i8")
def equal_pairs(
    keys: Ints,
    others: Ints,
    low: Ints,
    high: Ints,
    mirrored: int,
    shift: int,
    heads: NDArray[np.int32],
    following: NDArray[np.int32],
    most: int,
    mine: Ints,
    theirs: Ints,
) -> int:
    """Write the places of all pairs of equal integers, as far as there is room; return how many they are, or more than
    ``most`` where they are more, or many more would have to be tested.

    Parameters
    ----------
    keys, others : int64[n], int64[m]
        The integers of both sides.
    low, high : int64[n], int64[m]
        Others of both, of which the former have to be less, or greater where ``mirrored`` is not 0; empty where not.
    heads, following
        Those of the others chained, as :func:`chain_by_hash` does.
    mine, theirs : int64[room]
        What is written, in the order of both.
    """
    mask = (1 << (64 - shift)) - 1
    count, tested = 0, 0
    for i in range(len(keys)):
        at = np.int64(heads[((keys[i] * _FACTOR) >> shift) & mask])
        while at >= 0:
            if others[at] == keys[i] and (len(low) == 0 or (low[i] > high[at] if mirrored != 0 else low[i] < high[at])):
                if count < len(mine):
                    mine[count], theirs[count] = i, at
                count += 1
            at = np.int64(following[at])
            tested += 1
        if count > most or tested > _TESTED * most:
            return most + 1
    return count
