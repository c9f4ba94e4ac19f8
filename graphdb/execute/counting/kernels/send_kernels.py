"""A vector is sent along edges: every value goes to its neighbours, or whoever may receive asks.

In general, :func:`through`; and :func:`through_quickly` where everything certainly fits int64 (:func:`quick`).
``source`` and ``mask`` are vectors; parameters are those of :mod:`graphdb.execute.counting.kernels.vector_kernels`.
``mirror`` is the root where receivers are to it what it is to them, else -1: nothing is sent to those behind it, and
what arrives before it counts twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.counting.kernels.count_kernels import LIMIT, item, plus, times, worth
from graphdb.execute.counting.kernels.vector_kernels import PROBES, ordered, power_of, span, sum_over_list
from graphdb.execute.search.set_kernels import LONG, find, neighbour_at, neighbours_of
from graphdb.storage.compile.kernels import kernel, load

Ints = NDArray[np.int64]
Ids = NDArray[Any]

_LIMIT = float(LIMIT)


@kernel
def quick(
    bundles: Ints, j: int, count: int, top: int, mask_top: int, weight: int, power: int, modulus: int, most: int
) -> bool:
    """Whether a vector can be sent, and what arrives added up, without watching for what does not fit int64."""
    bound = float(mask_top) * float(most)
    for _ in range(power):
        bound *= float(count) * float(top)
    return bundles[j, 4] != 0 and weight < 0 and modulus == 0 and bound < _LIMIT


@kernel
def raised(value: int, power: int) -> int:
    """``value ** power``, for what certainly fits."""
    result = value
    for _ in range(power - 1):
        result *= value
    return result


@kernel
def through(
    bundles: Ints, j: int, back: int, local: int, local_back: int, members: Ints, partitions: Ints, lows: Ints,
    highs: Ints, pool: Ints, source: Ints, source_indices: Ids, source_count: int, mask: Ints, mask_indices: Ids,
    mask_count: int, weight: int, mirror: int, power: int, values: Ints, indices: Ids, modulus: int, flags: Ints,
    like: Ids,
) -> int:  # fmt: skip
    """A vector is sent along bundle ``j``; ``mask_count`` -1 is no mask: how much the result holds.

    Either every value goes to its neighbours, or every vertex in the mask asks its own (``back``): whatever reads less.
    """
    count = 0
    if 0 <= mask_count <= 2 * source_count:
        for i in range(mask_count):
            if flags[0]:
                break
            y = item(mask_indices, i)
            total = sum_over_list(
                bundles, back, local_back, members, partitions, lows, highs, pool, y,
                source, source_indices, source_count, modulus, flags, like,
            )  # fmt: skip
            if total != 0:
                values[y] = times(power_of(total, power, modulus, flags), mask[y], modulus, flags)
                indices[count] = y
                count += 1
        return count
    plain = bundles[j, 4] != 0
    seen = 0
    for i in range(source_count):
        if flags[0]:
            break
        x = item(source_indices, i)
        address, begin, end = span(bundles, j, local, members, partitions, lows, highs, pool, x, like)
        if mirror >= 0:
            end = find(address, begin, end, mirror + 1, like)
        value = source[x]
        for at in range(begin, end):
            y = load(address, at, like)
            if mask_count >= 0 and mask[y] == 0:
                continue
            joined = value
            if not plain:
                joined = worth(joined, bundles, j, members, partitions, x, y, at, modulus, flags, like)
                if joined == 0:
                    continue
            before = values[y]
            if before == 0:
                indices[count] = y
                count += 1
            after = plus(before, joined, modulus)
            values[y] = after
            seen |= after
    if modulus == 0 and (seen < 0 or seen >= LIMIT):
        flags[1] = 1
    if power == 1 and mask_count < 0 and weight == 0 and mirror < 0:
        return count
    left = 0
    for i in range(count):
        y = item(indices, i)
        value = power_of(values[y], power, modulus, flags)
        if mask_count >= 0:
            value = times(value, mask[y], modulus, flags)
        elif weight != 0:
            value = times(value, load(weight, y, LONG), modulus, flags)
        if y < mirror:
            value = times(value, 2, modulus, flags)
        values[y] = value
        if value != 0:
            indices[left] = y
            left += 1
    return left


@kernel
def through_quickly(
    partitions: Ints, row: int, row_back: int, order: int, local: int, local_back: int, lows: Ints, highs: Ints,
    pool: Ints, source: Ints, source_indices: Ids, source_count: int, mask: Ints, mask_indices: Ids, mask_count: int,
    certain: bool, pairs: Ints, closed: int, anchor: int, mirror: int, power: int, summed: bool, values: Ints,
    indices: Ids, flags: Ints, like: Ids,
) -> int:  # fmt: skip
    """:func:`through` for one relation that only tests, without weights, where everything certainly fits.

    ``certain`` says that the local lists hold nothing but what the mask holds; ``closed`` are lists of pairs with the
    vertex ``anchor``.  ``summed`` asks for the sum of the result, and leaves it empty; else it is how much it holds.
    """
    result = 0
    count = 0
    if 0 <= mask_count <= 2 * source_count:
        for i in range(mask_count):
            if flags[0]:
                break
            y = item(mask_indices, i)
            if local_back >= 0 and lows[local_back, y] >= 0:
                ids, begin, end = pool[local_back, 0], lows[local_back, y], highs[local_back, y]
            else:
                entry = -1 if closed < 0 else neighbour_at(partitions.ctypes.data, pairs[closed, 0], anchor, y, like)
                if entry >= 0:
                    ids = pairs[closed, 2]
                    begin, end = load(pairs[closed, 1], entry, LONG), load(pairs[closed, 1], entry + 1, LONG)
                else:
                    ids = partitions[row_back, 3]
                    begin, end = ordered(partitions, row_back, -order, y, like)
            total = 0
            if end - begin > PROBES * source_count:
                for k in range(source_count):
                    x = item(source_indices, k)
                    at = find(ids, begin, end, x, like)
                    if at < end and load(ids, at, like) == x:
                        total += source[x]
            else:
                for at in range(begin, end):
                    total += source[load(ids, at, like)]
            if total != 0:
                total = raised(total, power) * mask[y]
                if summed:
                    result += total
                else:
                    values[y] = total
                    indices[count] = y
                    count += 1
        return result if summed else count
    # Who receives something is written down only where they are few: else all that may have are looked at.
    record = False
    if mask_count < 0:
        sent = 0
        for i in range(source_count):
            begin, end = neighbours_of(partitions.ctypes.data, row, item(source_indices, i))
            sent += end - begin
        record = 4 * sent < len(values)
    for i in range(source_count):
        if flags[0]:
            break
        x = item(source_indices, i)
        value = source[x]
        if local >= 0 and lows[local, x] >= 0:
            ids, begin, end = pool[local, 0], lows[local, x], highs[local, x]
            free = mask_count < 0 or certain
        else:
            ids = partitions[row, 3]
            begin, end = ordered(partitions, row, order, x, like)
            if mirror >= 0:
                end = find(ids, begin, end, mirror + 1, like)
            free = mask_count < 0
        if record:
            for at in range(begin, end):
                y = load(ids, at, like)
                before = values[y]
                values[y] = before + value
                indices[count] = y
                count += before == 0
        elif free:
            for at in range(begin, end):
                values[load(ids, at, like)] += value
        elif end - begin > PROBES * mask_count:
            for k in range(mask_count):
                y = item(mask_indices, k)
                at = find(ids, begin, end, y, like)
                if at < end and load(ids, at, like) == y:
                    values[y] += value
        else:
            for at in range(begin, end):
                y = load(ids, at, like)
                if mask[y] != 0:
                    values[y] += value
    if mask_count >= 0:
        for i in range(mask_count):
            y = item(mask_indices, i)
            if values[y] != 0:
                total = raised(values[y], power) * mask[y]
                result += total
                values[y] = 0 if summed else total
                indices[count] = y
                count += 1
    elif not record and summed:
        for y in range(len(values) if mirror < 0 else mirror + 1):
            result += raised(values[y], power) * (1 + (y < mirror))
            values[y] = 0
    elif not record:
        for y in range(len(values)):
            if values[y] != 0:
                values[y] = raised(values[y], power)
                indices[count] = y
                count += 1
    else:
        for i in range(count):
            y = item(indices, i)
            total = raised(values[y], power) * (1 + (y < mirror))
            result += total
            values[y] = 0 if summed else total
    return result if summed else count
