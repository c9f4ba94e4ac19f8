"""Nested loops over sparse vectors: how cyclic cores are counted (:mod:`graphdb.plan.nested`).

A register holds a sparse vector: a value per data vertex, zero where nothing is held, and the vertices held.  The
driver, :func:`nested`, binds one vertex per level and runs the level's instructions; the functions before it are those.
Numbers and flags are those of :mod:`graphdb.execute.count_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.count_kernels import LIMIT, item, plus, times, worth
from graphdb.execute.set_kernels import find, neighbour_at, neighbours_of
from graphdb.storage.jit import kernel, load, store

Ints = NDArray[np.int64]
Ids = NDArray[Any]

_LIMIT = float(LIMIT)
_WIDE = np.empty(0, np.int64)

_PROBES = 24
"""A list this much longer than a vector has values is searched for each value, not gone through."""


@kernel
def span(
    bundles: Ints,
    j: int,
    local: int,
    members: Ints,
    partitions: Ints,
    lows: Ints,
    highs: Ints,
    kept: Ints,
    x: int,
    like: Ids,
) -> tuple[int, int, int]:
    """The list of ``x`` in bundle ``j``: (address, begin, end); cut down where local lists have it."""
    if local >= 0 and lows[local, x] >= 0:
        return kept[local, 0], lows[local, x], highs[local, x]
    row = members[bundles[j, 0], 0]
    begin, end = neighbours_of(partitions.ctypes.data, row, x)
    address, order = partitions[row, 3], bundles[j, 2]
    if order > 0:
        begin = find(address, begin, end, x + 1, like)
    elif order < 0:
        end = find(address, begin, end, x, like)
    return address, begin, end


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
def clear(values: Ints, held: Ids, count: int) -> None:
    """Make a vector empty."""
    for i in range(count):
        values[held[i]] = 0


@kernel
def top_of(values: Ints, held: Ids, count: int) -> int:
    """Some value that none held is above."""
    top = 0
    for i in range(count):
        top |= values[held[i]]
    return top


@kernel
def total_of(values: Ints, held: Ids, count: int, modulus: int, flags: Ints) -> int:
    """The sum of a vector."""
    total = seen = 0
    for i in range(count):
        total = plus(total, values[held[i]], modulus)
        seen |= total
    if modulus == 0 and (seen < 0 or seen >= LIMIT):
        flags[1] = 1
    return total


@kernel
def raised(value: int, power: int) -> int:
    """``value ** power``, for what certainly fits."""
    result = value
    for _ in range(power - 1):
        result *= value
    return result


@kernel
def power_of(a: int, power: int, modulus: int, flags: Ints) -> int:
    """``a ** power``, for power 1 and more."""
    result = a
    for _ in range(power - 1):
        result = times(result, a, modulus, flags)
    return result


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
def load_list(
    bundles: Ints, j: int, members: Ints, partitions: Ints, lows: Ints, highs: Ints, kept: Ints, x: int,
    weight: int, values: Ints, held: Ids, modulus: int, flags: Ints, like: Ids,
) -> int:  # fmt: skip
    """A vector becomes the list of ``x``, times a weight: how much it holds."""
    address, begin, end = span(bundles, j, -1, members, partitions, lows, highs, kept, x, like)
    plain, count = bundles[j, 4] != 0, 0
    for at in range(begin, end):
        y = load(address, at, like)
        value = 1 if plain else worth(bundles, j, members, partitions, x, y, at, like)
        if value != 0 and weight != 0:
            value = times(value, load(weight, y, _WIDE), modulus, flags)
        if value != 0:
            values[y] = value
            held[count] = y
            count += 1
    return count


@kernel
def meet(
    bundles: Ints, j: int, local: int, members: Ints, partitions: Ints, lows: Ints, highs: Ints, kept: Ints, x: int,
    source: Ints, source_held: Ids, source_count: int, values: Ints, held: Ids, modulus: int, flags: Ints, like: Ids,
) -> int:  # fmt: skip
    """A vector becomes another times the list of ``x``: how much it holds."""
    address, begin, end = span(bundles, j, local, members, partitions, lows, highs, kept, x, like)
    plain, count = bundles[j, 4] != 0, 0
    if end - begin > _PROBES * source_count:
        for i in range(source_count):
            y = item(source_held, i)
            at = find(address, begin, end, y, like)
            if at < end and load(address, at, like) == y:
                value = source[y]
                if not plain:
                    value = times(value, worth(bundles, j, members, partitions, x, y, at, like), modulus, flags)
                if value != 0:
                    values[y] = value
                    held[count] = y
                    count += 1
        return count
    for at in range(begin, end):
        y = load(address, at, like)
        value = source[y]
        if value != 0 and not plain:
            value = times(value, worth(bundles, j, members, partitions, x, y, at, like), modulus, flags)
        if value != 0:
            values[y] = value
            held[count] = y
            count += 1
    return count


@kernel
def tally(
    bundles: Ints, j: int, local: int, members: Ints, partitions: Ints, lows: Ints, highs: Ints, kept: Ints, x: int,
    source: Ints, source_held: Ids, source_count: int, modulus: int, flags: Ints, like: Ids,
) -> int:  # fmt: skip
    """The sum of a vector over the list of ``x``."""
    address, begin, end = span(bundles, j, local, members, partitions, lows, highs, kept, x, like)
    plain = bundles[j, 4] != 0
    total = seen = 0
    if end - begin > _PROBES * source_count:
        for i in range(source_count):
            y = item(source_held, i)
            at = find(address, begin, end, y, like)
            if at < end and load(address, at, like) == y:
                value = source[y]
                if not plain:
                    value = times(value, worth(bundles, j, members, partitions, x, y, at, like), modulus, flags)
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
                value = times(value, worth(bundles, j, members, partitions, x, y, at, like), modulus, flags)
            total = plus(total, value, modulus)
            seen |= total
    if modulus == 0 and (seen < 0 or seen >= LIMIT):
        flags[1] = 1
    return total


@kernel
def through(
    bundles: Ints, j: int, back: int, local: int, local_back: int, members: Ints, partitions: Ints, lows: Ints,
    highs: Ints, kept: Ints, source: Ints, source_held: Ids, source_count: int, mask: Ints, mask_held: Ids,
    mask_count: int, weight: int, power: int, values: Ints, held: Ids, modulus: int, flags: Ints, like: Ids,
) -> int:  # fmt: skip
    """A vector is sent along bundle ``j``; ``mask_count`` -1 is no mask: how much the result holds.

    Either every value goes to its neighbours, or every vertex in the mask asks its own (``back``): whatever reads less.
    """
    count = 0
    if 0 <= mask_count <= 2 * source_count:
        for i in range(mask_count):
            if flags[0]:
                break
            y = item(mask_held, i)
            total = tally(
                bundles, back, local_back, members, partitions, lows, highs, kept, y,
                source, source_held, source_count, modulus, flags, like,
            )  # fmt: skip
            if total != 0:
                values[y] = times(power_of(total, power, modulus, flags), mask[y], modulus, flags)
                held[count] = y
                count += 1
        return count
    plain = bundles[j, 4] != 0
    seen = 0
    for i in range(source_count):
        if flags[0]:
            break
        x = item(source_held, i)
        address, begin, end = span(bundles, j, local, members, partitions, lows, highs, kept, x, like)
        value = source[x]
        for at in range(begin, end):
            y = load(address, at, like)
            if mask_count >= 0 and mask[y] == 0:
                continue
            joined = value
            if not plain:
                joined = times(joined, worth(bundles, j, members, partitions, x, y, at, like), modulus, flags)
                if joined == 0:
                    continue
            before = values[y]
            if before == 0:
                held[count] = y
                count += 1
            after = plus(before, joined, modulus)
            values[y] = after
            seen |= after
    if modulus == 0 and (seen < 0 or seen >= LIMIT):
        flags[1] = 1
    if power == 1 and mask_count < 0 and weight == 0:
        return count
    left = 0
    for i in range(count):
        y = item(held, i)
        value = power_of(values[y], power, modulus, flags)
        if mask_count >= 0:
            value = times(value, mask[y], modulus, flags)
        elif weight != 0:
            value = times(value, load(weight, y, _WIDE), modulus, flags)
        values[y] = value
        if value != 0:
            held[left] = y
            left += 1
    return left


@kernel
def through_quickly(
    partitions: Ints, row: int, row_back: int, order: int, local: int, local_back: int, lows: Ints, highs: Ints,
    kept: Ints, source: Ints, source_held: Ids, source_count: int, mask: Ints, mask_held: Ids, mask_count: int,
    certain: bool, pairs: Ints, closed: int, anchor: int, power: int, summed: bool, values: Ints, held: Ids,
    flags: Ints, like: Ids,
) -> int:  # fmt: skip
    """:func:`through` for one relation that only tests, without weights, where everything certainly fits.

    ``certain`` says that the local lists hold nothing but what the mask holds; ``closed`` are lists of pairs with the
    vertex ``anchor``.  ``summed`` asks for the sum of the
    result, and leaves it empty; else it is how much the result holds.
    """
    result = 0
    count = 0
    if 0 <= mask_count <= 2 * source_count:
        for i in range(mask_count):
            if flags[0]:
                break
            y = item(mask_held, i)
            if local_back >= 0 and lows[local_back, y] >= 0:
                ids, begin, end = kept[local_back, 0], lows[local_back, y], highs[local_back, y]
            else:
                entry = -1 if closed < 0 else neighbour_at(partitions.ctypes.data, pairs[closed, 0], anchor, y, like)
                if entry >= 0:
                    ids = pairs[closed, 2]
                    begin, end = load(pairs[closed, 1], entry, _WIDE), load(pairs[closed, 1], entry + 1, _WIDE)
                else:
                    ids = partitions[row_back, 3]
                    begin, end = ordered(partitions, row_back, -order, y, like)
            total = 0
            if end - begin > _PROBES * source_count:
                for k in range(source_count):
                    x = item(source_held, k)
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
                    held[count] = y
                    count += 1
        return result if summed else count
    # Who receives something is written down only where they are few: else all that may have are looked at.
    record = False
    if mask_count < 0:
        sent = 0
        for i in range(source_count):
            begin, end = neighbours_of(partitions.ctypes.data, row, item(source_held, i))
            sent += end - begin
        record = 4 * sent < len(values)
    for i in range(source_count):
        if flags[0]:
            break
        x = item(source_held, i)
        value = source[x]
        if local >= 0 and lows[local, x] >= 0:
            ids, begin, end = kept[local, 0], lows[local, x], highs[local, x]
            free = mask_count < 0 or certain
        else:
            ids = partitions[row, 3]
            begin, end = ordered(partitions, row, order, x, like)
            free = mask_count < 0
        if record:
            for at in range(begin, end):
                y = load(ids, at, like)
                before = values[y]
                values[y] = before + value
                held[count] = y
                count += before == 0
        elif free:
            for at in range(begin, end):
                values[load(ids, at, like)] += value
        elif end - begin > _PROBES * mask_count:
            for k in range(mask_count):
                y = item(mask_held, k)
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
            y = item(mask_held, i)
            if values[y] != 0:
                total = raised(values[y], power) * mask[y]
                result += total
                values[y] = 0 if summed else total
                held[count] = y
                count += 1
    elif not record and summed:
        for y in range(len(values)):
            result += raised(values[y], power)
            values[y] = 0
    elif not record:
        for y in range(len(values)):
            if values[y] != 0:
                values[y] = raised(values[y], power)
                held[count] = y
                count += 1
    else:
        for i in range(count):
            y = item(held, i)
            total = raised(values[y], power)
            result += total
            values[y] = 0 if summed else total
    return result if summed else count


@kernel
def cut_down(
    bundles: Ints, j: int, parent: int, members: Ints, partitions: Ints, lows: Ints, highs: Ints, kept: Ints, out: int,
    held: Ids, count: int, target: Ints, like: Ids,
) -> None:  # fmt: skip
    """Keep the lists of all that is held, cut down to what ``target`` holds, while there is room."""
    room, used = kept[out, 1], 0
    for i in range(count):
        x = item(held, i)
        address, begin, end = span(bundles, j, parent, members, partitions, lows, highs, kept, x, like)
        if used + end - begin > room:
            lows[out, x] = -1
            continue
        lows[out, x] = used
        for at in range(begin, end):
            y = load(address, at, like)
            if target[y] != 0:
                store(kept[out, 0], used, y, like)
                used += 1
        highs[out, x] = used


@kernel
def closed_lists(
    partitions: Ints,
    rows: Ints,
    keys: Ints,
    begin: int,
    end: int,
    order: int,
    marks: NDArray[np.int8],
    starts: Ints,
    ids: Ids,
    flags: Ints,
    like: Ids,
) -> None:
    """The lists of :class:`graphdb.plan.nested.Closed` for the vertices ``keys[begin:end]``.

    ``rows`` are the partitions of its three bundles.  Where ``ids`` is empty, ``starts[e + 1]`` becomes the length of
    entry ``e``'s list; else the list is written from ``ids[starts[e]]`` on.
    """
    first, second, back = rows[0], rows[1], rows[2]
    counting = len(ids) == 0
    for i in range(begin, end):
        if flags[0]:
            return
        b = keys[i]
        low, high = neighbours_of(partitions.ctypes.data, second, b)
        for at in range(low, high):
            marks[load(partitions[second, 3], at, like)] = 1
        entry, last = neighbours_of(partitions.ctypes.data, first, b)
        for e in range(entry, last):
            y = load(partitions[first, 3], e, like)
            left, right = ordered(partitions, back, order, y, like)
            if counting:
                found = 0
                for at in range(left, right):
                    found += marks[load(partitions[back, 3], at, like)]
                starts[e + 1] = found
            else:
                to = starts[e]
                for at in range(left, right):
                    x = load(partitions[back, 3], at, like)
                    if marks[x]:
                        ids[to] = x
                        to += 1
        for at in range(low, high):
            marks[load(partitions[second, 3], at, like)] = 0


@kernel
def nested(
    levels: Ints,
    code: Ints,
    bundles: Ints,
    members: Ints,
    partitions: Ints,
    weights: Ints,
    roots: Ints,
    root_weight: Ints,
    begin: int,
    end: int,
    values: Ints,
    held: Ids,
    counts: Ints,
    lows: Ints,
    highs: Ints,
    kept: Ints,
    pairs: Ints,
    sums: Ints,
    by_root: Ints,
    modulus: int,
    flags: Ints,
    like: Ids,
) -> None:
    """Run a program for the roots ``begin … end-1``, and add the matches to ``sums`` (see :func:`add_up`).

    With ``by_root`` (int64 [vertices]; else empty) they are added to the root's cell there instead.  The third cell of
    ``sums`` tells how many roots are done.

    Parameters
    ----------
    levels
        int64 [levels, 3]: first instruction, end, and the register that is looped over.
    code
        int64 [instructions, 14]: (what, out, a, b, bundle, back, weight, power, local, local back, certain, total,
        closed, anchor), as
        :mod:`graphdb.execute.count` writes them.
    bundles, members
        int64 [bundles, 5]: (first member, end, order, 0, plain); int64 [members, 2]: (partition, weighted).
    weights
        int64: the addresses of int64 [vertices] arrays.
    values, held, counts
        The registers: int64 [registers, vertices], zero where nothing is held; the vertices held; how many.
    lows, highs, kept
        Local lists: where a vertex's begins (-1: not kept) and ends; per local its ids' address and capacity.
    pairs
        int64 [closed lists, 3]: the partition of their entries, and the addresses of their starts and ids.
    """
    last = len(levels) - 1
    bound = np.zeros(last + 1, np.int64)
    tops = np.zeros(len(counts), np.int64)
    position = np.zeros(last + 1, np.int64)
    product = np.ones(last + 1, np.int64)
    position[0] = begin
    level = 0
    while level >= 0:
        if flags[0]:
            return
        if level == 0:
            if position[0] >= end:
                return
            sums[2] = position[0] - begin
            x = roots[position[0]]
            weight = 1 if len(root_weight) == 0 else root_weight[x]
        else:
            register = levels[level, 2]
            if position[level] >= counts[register]:
                level -= 1
                continue
            x = item(held[register], position[level])
            weight = values[register, x]
        position[level] += 1
        bound[level] = x
        matches = times(product[level], weight, modulus, flags) if weight != 0 else 0
        at = levels[level, 0]
        while matches != 0 and at < levels[level, 1]:
            what, out, a, b, j, back = code[at, 0], code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5]
            weighed, power, local, local_back = code[at, 6], code[at, 7], code[at, 8], code[at, 9]
            total_power = code[at, 11]
            at += 1
            if what <= 2:
                clear(values[out], held[out], counts[out])
                tops[out] = LIMIT
                if what == 0:
                    counts[out] = load_list(
                        bundles,
                        j,
                        members,
                        partitions,
                        lows,
                        highs,
                        kept,
                        bound[a],
                        weights[weighed] if weighed >= 0 else 0,
                        values[out],
                        held[out],
                        modulus,
                        flags,
                        like,
                    )
                elif what == 1:
                    counts[out] = meet(
                        bundles,
                        j,
                        local,
                        members,
                        partitions,
                        lows,
                        highs,
                        kept,
                        bound[b],
                        values[a],
                        held[a],
                        counts[a],
                        values[out],
                        held[out],
                        modulus,
                        flags,
                        like,
                    )
                elif quick(
                    bundles, j, counts[a], tops[a], tops[b] if b >= 0 else 1, weighed, power, modulus, len(roots)
                ):
                    found = through_quickly(
                        partitions,
                        members[bundles[j, 0], 0],
                        members[bundles[back, 0], 0],
                        bundles[j, 2],
                        local,
                        local_back,
                        lows,
                        highs,
                        kept,
                        values[a],
                        held[a],
                        counts[a],
                        values[max(b, 0)],
                        held[max(b, 0)],
                        counts[b] if b >= 0 else -1,
                        code[at - 1, 10] != 0,
                        pairs,
                        code[at - 1, 12],
                        bound[code[at - 1, 13]],
                        power,
                        total_power > 0,
                        values[out],
                        held[out],
                        flags,
                        like,
                    )
                    if total_power > 0:
                        matches = times(matches, power_of(found, total_power, 0, flags), 0, flags)
                        continue
                    counts[out] = found
                else:
                    counts[out] = through(
                        bundles,
                        j,
                        back,
                        local,
                        local_back,
                        members,
                        partitions,
                        lows,
                        highs,
                        kept,
                        values[a],
                        held[a],
                        counts[a],
                        values[max(b, 0)],
                        held[max(b, 0)],
                        counts[b] if b >= 0 else -1,
                        weights[weighed] if weighed >= 0 else 0,
                        power,
                        values[out],
                        held[out],
                        modulus,
                        flags,
                        like,
                    )
                if counts[out] == 0:
                    matches = 0
                elif total_power > 0:
                    total = total_of(values[out], held[out], counts[out], modulus, flags)
                    matches = times(matches, power_of(total, total_power, modulus, flags), modulus, flags)
                elif modulus == 0:
                    tops[out] = top_of(values[out], held[out], counts[out])
            elif what == 3:
                total = total_of(values[a], held[a], counts[a], modulus, flags)
                matches = times(matches, power_of(total, power, modulus, flags), modulus, flags)
            elif what == 4:
                total = tally(
                    bundles,
                    j,
                    local,
                    members,
                    partitions,
                    lows,
                    highs,
                    kept,
                    bound[b],
                    values[a],
                    held[a],
                    counts[a],
                    modulus,
                    flags,
                    like,
                )
                matches = 0 if total == 0 else times(matches, power_of(total, power, modulus, flags), modulus, flags)
            else:
                cut_down(
                    bundles,
                    j,
                    local,
                    members,
                    partitions,
                    lows,
                    highs,
                    kept,
                    out,
                    held[a],
                    counts[a],
                    values[b],
                    like,
                )
        if matches == 0:
            continue
        if level == last and len(by_root) > 0:
            by_root[bound[0]] += matches
            if by_root[bound[0]] < 0 or by_root[bound[0]] >= LIMIT:
                flags[1] = 1
        elif level == last:
            sums[0] += matches & 0xFFFFFFFF
            sums[1] += matches >> 32
        else:
            level += 1
            product[level] = matches
            position[level] = 0
