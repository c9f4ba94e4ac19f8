"""The loops that count along edges: sums of weights over neighbour lists.

All values are natural numbers.  They are int64; what passes ``LIMIT`` sets the second of the flags that a run's threads
share (the first tells them to stop), and the caller counts again modulo primes (``modulus``), from whose remainders the
exact number follows.  Modulo a prime, a value that is a multiple of it is stored as the prime itself: zero always means
that there is nothing.

Kernels that count share these parameters:

partitions
    int64 [partitions, 6]: the table of partitions (:data:`graphdb.storage.graph.pcsr_kernels.PARTITION_BYTES`).
bundles, members
    int64 [bundles, 5]: (first member, end, order, 0, plain); int64 [members, 2]: (partition, weighted).  A bundle is
    all that joins two vertices (:class:`graphdb.plan.counting.programs.Bundle`); ``j`` is one's row.
support
    int64: the vertices to go over, sorted; what is given or becomes a value for each vertex is int64 [vertices].
flags
    int64 [2]: (stop, a value passed ``LIMIT``).
like
    A scalar of the vertex ids' type, int32 or int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.search.set_kernels import LONG, neighbour_at, neighbours_of
from graphdb.storage.compile.kernels import entry, kernel, load
from graphdb.storage.graph.pcsr_kernels import neighbours_at_once

Ints = NDArray[np.int64]
Ids = NDArray[Any]

LIMIT = 1 << 61
_LIMIT = float(1 << 61)


@kernel
def item(ids: Ids, i: int) -> int:
    """An id as int64."""
    wide: int = np.int64(ids[i])  # type: ignore[assignment]
    return wide


@kernel
def times(a: int, b: int, modulus: int, flags: Ints) -> int:
    """The product of two values."""
    if modulus > 0:
        product = (a * b) % modulus
        return modulus if product == 0 and a != 0 and b != 0 else product
    if float(a) * float(b) > _LIMIT:
        flags[1] = 1
    return a * b


@kernel
def plus(a: int, b: int, modulus: int) -> int:
    """The sum of two values; the caller watches what passes ``LIMIT``."""
    total = a + b
    return total - modulus if modulus > 0 and total > modulus else total


@kernel
def worth(
    value: int, bundles: Ints, j: int, members: Ints, partitions: Ints, x: int, y: int, at: int, modulus: int,
    flags: Ints, like: Ids,
) -> int:  # fmt: skip
    """A value times how many data edges (or 1) join ``x`` and ``y``, for each member; ``at`` is the first's entry."""
    for k in range(bundles[j, 0], bundles[j, 1]):
        row = members[k, 0]
        place = at if k == bundles[j, 0] else neighbour_at(partitions.ctypes.data, row, x, y, like)
        if place < 0:
            return 0
        if members[k, 1]:
            edges = load(partitions[row, 4], place + 1, LONG) - load(partitions[row, 4], place, LONG)
            value = times(value, edges, modulus, flags)
    return value


@entry("i8[:, :], i8[:, :], i8[:, :], i8[:], i8, i8, i8[:], i8[:], i8, i8[:], T[:]")
def send(
    bundle: Ints,
    members: Ints,
    partitions: Ints,
    support: Ints,
    begin: int,
    end: int,
    child: Ints,
    out: Ints,
    modulus: int,
    flags: Ints,
    like: Ids,
) -> None:
    """``out[x]`` becomes the sum of ``child`` over the neighbours of x, for x in ``support[begin:end]``.

    ``child`` is int64 [vertices], or empty for 1 everywhere.  ``bundle`` is int64 [1, 5].
    """
    row, plain, ones = members[bundle[0, 0], 0], bundle[0, 4] != 0, len(child) == 0
    lists = partitions[row, 3]
    for i in range(begin, end):
        if flags[0]:
            return
        x = support[i]
        first, last = neighbours_of(partitions.ctypes.data, row, x)
        total = 0
        if plain and ones:
            total = last - first
            if modulus > 0 and total > 0:
                total = (total - 1) % modulus + 1
        elif plain and modulus == 0:
            seen = 0
            for at in range(first, last):
                total += child[load(lists, at, like)]
                seen |= total
            if seen < 0 or seen >= LIMIT:
                flags[1] = 1
        else:
            for at in range(first, last):
                y = load(lists, at, like)
                value = 1 if ones else child[y]
                if value != 0:
                    if not plain:
                        value = worth(value, bundle, 0, members, partitions, x, y, at, modulus, flags, like)
                    total = plus(total, value, modulus)
                    if total < 0 or total >= LIMIT:
                        flags[1] = 1
        out[x] = total


@entry("i8, i8[:, :], i8[:], i8, i8, i4[:], i8[:], i8[:], T[:]")
def send_narrow(
    row: int,
    partitions: Ints,
    support: Ints,
    begin: int,
    end: int,
    child: NDArray[np.int32],
    out: Ints,
    flags: Ints,
    like: Ids,
) -> None:
    """:func:`send` along plain edges, of values that fit 32 bits: no sum can pass 64, and the cache holds more.

    The reads of ``child`` are all over the place, and on large graphs they are what takes the time.
    """
    lists = partitions[row, 3]
    for i in range(begin, end):
        if flags[0]:
            return
        x = support[i]
        first, last = neighbours_at_once(partitions.ctypes.data, row, x)
        total = 0
        for at in range(first, last):
            total += child[load(lists, at, like)]
        out[x] = total


@entry("i8[:], i8[:], i8[:], i8, i8[:]")
def multiply(support: Ints, out: Ints, by: Ints, modulus: int, flags: Ints) -> None:
    """``out *= by`` on the support."""
    for i in range(len(support)):
        x = support[i]
        if out[x] != 0:
            out[x] = times(out[x], by[x], modulus, flags)


@entry("i8[:], i8[:], i8, i8, i8[:]")
def fall(support: Ints, out: Ints, factors: int, modulus: int, flags: Ints) -> None:
    """``out`` becomes ``out (out - 1) … (out - factors + 1)`` on the support.

    Modulo a prime it may be 0 where the number is none: what is multiplied by it is a multiple, too.
    """
    for i in range(len(support)):
        x = support[i]
        n = out[x]
        value = n
        for k in range(1, factors):
            left = (n - k) % modulus if modulus > 0 else max(n - k, 0)
            if value == 0 or left == 0:
                value = 0
                break
            value = times(value, left, modulus, flags)
        out[x] = value


@entry("i8[:, :], i8[:, :], i8[:], i8[:], i8, i8[:], T[:]")
def loop_worth(members: Ints, partitions: Ints, support: Ints, out: Ints, modulus: int, flags: Ints, like: Ids) -> None:
    """``out`` times the self loops in every member."""
    for i in range(len(support)):
        x = support[i]
        for k in range(len(members)):
            row = members[k, 0]
            place = neighbour_at(partitions.ctypes.data, row, x, x, like)
            if place < 0:
                out[x] = 0
            elif members[k, 1]:
                loops = load(partitions[row, 4], place + 1, LONG) - load(partitions[row, 4], place, LONG)
                out[x] = times(out[x], loops, modulus, flags)


@entry("i8[:], i8[:], i8[:]")
def add_up(support: Ints, values: Ints, sums: Ints) -> None:
    """Add ``values`` over the support to ``sums``: int64 [2], the low 32 bits of values, and the rest."""
    for i in range(len(support)):
        value = values[support[i]]
        sums[0] += value & 0xFFFFFFFF
        sums[1] += value >> 32


@entry("i8[:], i8[:], i8[:], i8[:]")
def add_products(support: Ints, left: Ints, right: Ints, sums: Ints) -> None:
    """Add ``left * right`` over the support to ``sums``: int64 [6], exact though products pass 64 bits.

    Values are below 2**62.  Split at bit 31, a product is three numbers below 2**63, of weight 1, 2**31 and 2**62; each
    is added as :func:`add_up` does.
    """
    for i in range(len(support)):
        x = support[i]
        a, b = left[x], right[x]
        a_high, a_low, b_high, b_low = a >> 31, a & 0x7FFFFFFF, b >> 31, b & 0x7FFFFFFF
        low, middle, high = a_low * b_low, a_high * b_low + a_low * b_high, a_high * b_high
        sums[0] += low & 0xFFFFFFFF
        sums[1] += low >> 32
        sums[2] += middle & 0xFFFFFFFF
        sums[3] += middle >> 32
        sums[4] += high & 0xFFFFFFFF
        sums[5] += high >> 32


@entry("i8, i8[:, :], i8[:], b1[:], T[:] -> i8")
def reach(row: int, partitions: Ints, support: Ints, marks: NDArray[np.bool_], like: Ids) -> int:
    """Mark (bool [vertices]) all neighbours of the support: how many were not marked before."""
    fresh = 0
    for i in range(len(support)):
        begin, end = neighbours_of(partitions.ctypes.data, row, support[i])
        for at in range(begin, end):
            y = load(partitions[row, 3], at, like)
            if not marks[y]:
                marks[y] = True
                fresh += 1
    return fresh
