"""Sparse vectors, and what is done with one neighbour list each: filled, intersected, added up.

Numbers, and parameters that are not described here, are those of :mod:`graphdb.execute.counting.kernels.count_kernels`.

values, indices, count
    A vector: int64 [vertices], zero where there is no entry; the vertices of its entries, in ``indices[:count]``; how
    many.
lows, highs, pool
    Local lists, neighbour lists cut down to what can still be matched: int64 [locals, vertices], where a vertex's
    begins (-1: not cached) and ends; int64 [locals, 2], the address and the capacity of each local's ids.  ``local`` is
    one's row, or -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.counting.kernels.count_kernels import LIMIT, item, plus, times, worth
from graphdb.execute.search.set_kernels import LONG, find, neighbours_of
from graphdb.storage.compile.kernels import kernel, load

Ints = NDArray[np.int64]
Ids = NDArray[Any]

PROBES = 24
"""A list this much longer than a vector has values is searched for each value, not scanned."""


@kernel
def ordered(partitions: Ints, row: int, order: int, x: int, like: Ids) -> tuple[int, int]:
    """Where the neighbours of ``x`` that are greater (order 1), smaller (-1) or either (0) begin and end."""
    begin, end = neighbours_of(partitions.ctypes.data, row, x)
    if order > 0:
        begin = find(partitions[row, 3], begin, end, x + 1, like)
    elif order < 0:
        end = find(partitions[row, 3], begin, end, x, like)
    return begin, end


@kernel
def span(
    bundles: Ints, j: int, local: int, members: Ints, partitions: Ints, lows: Ints, highs: Ints, pool: Ints, x: int,
    like: Ids,
) -> tuple[int, int, int]:  # fmt: skip
    """The list of ``x`` in bundle ``j``: (address, begin, end); cut down where local lists have it."""
    if local >= 0 and lows[local, x] >= 0:
        return pool[local, 0], lows[local, x], highs[local, x]
    row = members[bundles[j, 0], 0]
    begin, end = ordered(partitions, row, bundles[j, 2], x, like)
    return partitions[row, 3], begin, end


@kernel
def clear(values: Ints, indices: Ids, count: int) -> None:
    """Make a vector empty."""
    for i in range(count):
        values[indices[i]] = 0


@kernel
def top_of(values: Ints, indices: Ids, count: int) -> int:
    """Some value that no entry is above."""
    top = 0
    for i in range(count):
        top |= values[indices[i]]
    return top


@kernel
def total_of(values: Ints, indices: Ids, count: int, modulus: int, flags: Ints) -> int:
    """The sum of a vector."""
    total = seen = 0
    for i in range(count):
        total = plus(total, values[indices[i]], modulus)
        seen |= total
    if modulus == 0 and (seen < 0 or seen >= LIMIT):
        flags[1] = 1
    return total


@kernel
def power_of(a: int, power: int, modulus: int, flags: Ints) -> int:
    """``a ** power``, for power 1 and more."""
    result = a
    for _ in range(power - 1):
        result = times(result, a, modulus, flags)
    return result


@kernel
def load_list(
    bundles: Ints, j: int, members: Ints, partitions: Ints, lows: Ints, highs: Ints, pool: Ints, x: int,
    weight: int, values: Ints, indices: Ids, modulus: int, flags: Ints, like: Ids,
) -> int:  # fmt: skip
    """A vector becomes the list of ``x``, times a weight: how much it holds."""
    address, begin, end = span(bundles, j, -1, members, partitions, lows, highs, pool, x, like)
    plain, count = bundles[j, 4] != 0, 0
    for at in range(begin, end):
        y = load(address, at, like)
        value = 1 if plain else worth(1, bundles, j, members, partitions, x, y, at, modulus, flags, like)
        if value != 0 and weight != 0:
            value = times(value, load(weight, y, LONG), modulus, flags)
        if value != 0:
            values[y] = value
            indices[count] = y
            count += 1
    return count


@kernel
def intersect(
    bundles: Ints, j: int, local: int, members: Ints, partitions: Ints, lows: Ints, highs: Ints, pool: Ints, x: int,
    source: Ints, source_indices: Ids, source_count: int, values: Ints, indices: Ids, modulus: int, flags: Ints,
    like: Ids,
) -> int:  # fmt: skip
    """A vector becomes another times the list of ``x``: how much it holds."""
    address, begin, end = span(bundles, j, local, members, partitions, lows, highs, pool, x, like)
    plain, count = bundles[j, 4] != 0, 0
    if end - begin > PROBES * source_count:
        for i in range(source_count):
            y = item(source_indices, i)
            at = find(address, begin, end, y, like)
            if at < end and load(address, at, like) == y:
                value = source[y]
                if not plain:
                    value = worth(value, bundles, j, members, partitions, x, y, at, modulus, flags, like)
                if value != 0:
                    values[y] = value
                    indices[count] = y
                    count += 1
        return count
    for at in range(begin, end):
        y = load(address, at, like)
        value = source[y]
        if value != 0 and not plain:
            value = worth(value, bundles, j, members, partitions, x, y, at, modulus, flags, like)
        if value != 0:
            values[y] = value
            indices[count] = y
            count += 1
    return count


@kernel
def sum_over_list(
    bundles: Ints, j: int, local: int, members: Ints, partitions: Ints, lows: Ints, highs: Ints, pool: Ints, x: int,
    source: Ints, source_indices: Ids, source_count: int, modulus: int, flags: Ints, like: Ids,
) -> int:  # fmt: skip
    """The sum of a vector over the list of ``x``."""
    address, begin, end = span(bundles, j, local, members, partitions, lows, highs, pool, x, like)
    plain = bundles[j, 4] != 0
    total = seen = 0
    if end - begin > PROBES * source_count:
        for i in range(source_count):
            y = item(source_indices, i)
            at = find(address, begin, end, y, like)
            if at < end and load(address, at, like) == y:
                value = source[y]
                if not plain:
                    value = worth(value, bundles, j, members, partitions, x, y, at, modulus, flags, like)
                total = plus(total, value, modulus)
                seen |= total
    elif plain and modulus == 0:
        for at in range(begin, end):
            total += source[load(address, at, like)]
            seen |= total
    else:
        for at in range(begin, end):
            y = load(address, at, like)
            value = source[y]
            if value != 0 and not plain:
                value = worth(value, bundles, j, members, partitions, x, y, at, modulus, flags, like)
            total = plus(total, value, modulus)
            seen |= total
    if modulus == 0 and (seen < 0 or seen >= LIMIT):
        flags[1] = 1
    return total
