"""Set operations on sorted lists that are known by their address: search, merge, gallop, bits.

Lists hold vertex ids, as int32 or int64: ``like`` is a scalar of that type and ``width`` its bytes.  Every loop that
writes stores first and moves on only where the value stays, so there is no branch to mispredict; an output may be the
first input itself.  What reads a partition alone is in :mod:`graphdb.storage.graph.pcsr_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry, kernel, load, store
from graphdb.storage.graph.pcsr_kernels import LONG as LONG
from graphdb.storage.graph.pcsr_kernels import PARTITION_BYTES as PARTITION_BYTES
from graphdb.storage.graph.pcsr_kernels import find as find
from graphdb.storage.graph.pcsr_kernels import neighbour_at as neighbour_at
from graphdb.storage.graph.pcsr_kernels import neighbours_of as neighbours_of

Ints = NDArray[np.int64]

BYTE = np.uint8(0)
COLUMN = np.uint32(0)

GALLOP = 24
"""Lists whose lengths differ by more than this factor are intersected by searching, not by merging."""


@kernel
def gallop(address: int, begin: int, end: int, value: int, like: Any) -> int:
    """:func:`find`, in time logarithmic in how far it has to go."""
    step = 1
    while begin + step < end and load(address, begin + step, like) < value:
        step <<= 1
    return find(address, begin + (step >> 1), min(begin + step + 1, end), value, like)


@kernel
def holds(address: int, length: int, value: int, like: Any) -> bool:
    """Whether a sorted list holds a value."""
    at = find(address, 0, length, value, like)
    return at < length and load(address, at, like) == value


@kernel
def intersect(a: int, n: int, b: int, m: int, out: int, like: Any) -> int:
    """Intersect two sorted lists into ``out`` (which may be ``a``): the length."""
    if n == 0 or m == 0:
        return 0
    found = 0
    if m > GALLOP * n:
        low = 0
        for i in range(n):
            value = load(a, i, like)
            low = gallop(b, low, m, value, like)
            if low == m:
                break
            store(out, found, value, like)
            found += load(b, low, like) == value
        return found
    if n > GALLOP * m:
        low = 0
        for j in range(m):
            value = load(b, j, like)
            low = gallop(a, low, n, value, like)
            if low == n:
                break
            # found <= low: what is still to be read is never overwritten
            if load(a, low, like) == value:
                store(out, found, value, like)
                found += 1
        return found
    i = j = 0
    while i < n and j < m:
        x, y = load(a, i, like), load(b, j, like)
        store(out, found, x, like)
        found += x == y
        i += x <= y
        j += y <= x
    return found


@kernel
def count_common(a: int, n: int, b: int, m: int, like: Any) -> int:
    """How many values two sorted lists share."""
    if n > m:
        a, n, b, m = b, m, a, n
    if n == 0:
        return 0
    found = 0
    if m > GALLOP * n:
        low = 0
        for i in range(n):
            value = load(a, i, like)
            low = gallop(b, low, m, value, like)
            if low == m:
                break
            found += load(b, low, like) == value
        return found
    i = j = 0
    while i < n and j < m:
        x, y = load(a, i, like), load(b, j, like)
        found += x == y
        i += x <= y
        j += y <= x
    return found


@kernel
def subtract(a: int, n: int, b: int, m: int, out: int, like: Any) -> int:
    """The values of ``a`` that are not in ``b``, into ``out`` (which may be ``a``): how many."""
    found, low = 0, 0
    if m > GALLOP * n:
        for i in range(n):
            value = load(a, i, like)
            if low < m:
                low = gallop(b, low, m, value, like)
            store(out, found, value, like)
            found += low == m or load(b, low, like) != value
        return found
    for i in range(n):
        value = load(a, i, like)
        while low < m and load(b, low, like) < value:
            low += 1
        store(out, found, value, like)
        found += low == m or load(b, low, like) != value
    return found


@kernel
def keep_bits(a: int, n: int, bits: int, out: int, like: Any) -> int:
    """The values of ``a`` whose bit is set, into ``out`` (which may be ``a``): how many."""
    found = 0
    for i in range(n):
        value = load(a, i, like)
        store(out, found, value, like)
        found += load(bits, value >> 3, BYTE) >> (value & 7) & 1
    return found


@kernel
def count_bits(a: int, n: int, bits: int, like: Any) -> int:
    """How many values of ``a`` have their bit set."""
    found = 0
    for i in range(n):
        value = load(a, i, like)
        found += load(bits, value >> 3, BYTE) >> (value & 7) & 1
    return found


@kernel
def mark_bits(a: int, n: int, bits: int, like: Any) -> None:
    """Set the bits of the values of ``a``."""
    for i in range(n):
        value = load(a, i, like)
        store(bits, value >> 3, load(bits, value >> 3, BYTE) | 1 << (value & 7), BYTE)


@kernel
def clear_bits(a: int, n: int, bits: int, like: Any) -> None:
    """Clear the bits that :func:`mark_bits` set for the same list, and only they were set."""
    for i in range(n):
        store(bits, load(a, i, like) >> 3, 0, BYTE)


@kernel
def keep_signatures(a: int, n: int, column: int, required: int, out: int, like: Any) -> int:
    """The values of ``a`` whose signature holds all required bits, into ``out`` (which may be ``a``): how many."""
    found = 0
    for i in range(n):
        value = load(a, i, like)
        store(out, found, value, like)
        found += load(column, value, COLUMN) & required == required
    return found


@kernel
def keep_listed(a: int, n: int, listed: int, m: int, out: int, like: Any) -> int:
    """The values of ``a`` that stand in the list ``listed`` (int64, in order, each once), into ``out`` (maybe ``a``).

    Lists without gaps, as of the vertices of a label that were loaded together, need not be read.
    """
    if m == 0:
        return 0
    first, last = load(listed, 0, LONG), load(listed, m - 1, LONG)
    found, low = 0, 0
    if last - first == m - 1:
        for i in range(n):
            value = load(a, i, like)
            store(out, found, value, like)
            found += first <= value and value <= last
        return found
    for i in range(n):
        value = load(a, i, like)
        low = gallop(listed, low, m, value, LONG)
        if low == m:
            break
        store(out, found, value, like)
        found += load(listed, low, LONG) == value
    return found


@kernel
def drop_value(a: int, n: int, at: int, out: int, like: Any) -> None:
    """Copy ``a`` without its element ``at`` to ``out`` (which may be ``a``)."""
    if a != out:
        for i in range(at):
            store(out, i, load(a, i, like), like)
    for i in range(at + 1, n):
        store(out, i - 1, load(a, i, like), like)


@entry("i8, i8, i8[:], i8, i8, T[:, :]")
def list_pairs(partitions: int, row: int, vertices: Ints, at: int, skip: int, pairs: NDArray[Any]) -> None:
    """Write vertices from the one at a place on, each beside each of its neighbours, of the first without ``skip``.

    Parameters
    ----------
    pairs : T[2, n]
        What is written; so many there are.
    """
    neighbours = load(partitions + row * PARTITION_BYTES, 3, LONG)
    done, count, like = 0, pairs.shape[1], pairs[0, 0]
    while done < count:
        vertex = vertices[at]
        begin, end = neighbours_of(partitions, row, vertex)
        begin += skip
        some = min(end - begin, count - done)
        for i in range(some):
            pairs[0, done + i] = vertex
            pairs[1, done + i] = load(neighbours, begin + i, like)
        done += some
        at += 1
        skip = 0


@entry("i8, i8, i8[:], i8[:]")
def add_degrees(partitions: int, row: int, vertices: Ints, sums: Ints) -> None:
    """Add to each sum how many neighbours its vertex has."""
    for i in range(len(vertices)):
        begin, end = neighbours_of(partitions, row, vertices[i])
        sums[i] += end - begin
