"""Nested loops over sparse vectors: how cyclic cores are counted (:mod:`graphdb.plan.counting.nested_loops`).

The driver, :func:`nested`, binds one vertex per level and runs the level's instructions.  A register holds a sparse
vector (:mod:`graphdb.execute.counting.kernels.vector_kernels`).  *Local* lists are neighbour lists cut down to what can
still be matched, *closed* ones what two ends of an edge have in common with a third vertex.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.counting.kernels.count_kernels import LIMIT, item, plus, times
from graphdb.execute.counting.kernels.send_kernels import quick, through, through_quickly
from graphdb.execute.counting.kernels.vector_kernels import (
    clear,
    intersect,
    load_list,
    ordered,
    power_of,
    span,
    sum_over_list,
    top_of,
    total_of,
)
from graphdb.execute.search.set_kernels import neighbours_of
from graphdb.storage.compile.kernels import entry, kernel, load, store

Ints = NDArray[np.int64]
Ids = NDArray[Any]


@kernel
def cut_down(
    bundles: Ints, j: int, parent: int, members: Ints, partitions: Ints, lows: Ints, highs: Ints, pool: Ints, out: int,
    indices: Ids, count: int, target: Ints, like: Ids,
) -> None:  # fmt: skip
    """Store the lists of all entries, cut down to what ``target`` has, while there is room (see :func:`nested`)."""
    room, used = pool[out, 1], 0
    for i in range(count):
        x = item(indices, i)
        address, begin, end = span(bundles, j, parent, members, partitions, lows, highs, pool, x, like)
        if used + end - begin > room:
            lows[out, x] = -1
            continue
        lows[out, x] = used
        for at in range(begin, end):
            y = load(address, at, like)
            if target[y] != 0:
                store(pool[out, 0], used, y, like)
                used += 1
        highs[out, x] = used


@entry("i8[:, :], i8[:], i8[:], i8, i8, i8, i1[:], i8[:], T[:], i8[:], T[:]")
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
    """The lists of :class:`graphdb.plan.counting.programs.Closed` for the vertices ``keys[begin:end]``.

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


@entry(
    "i8[:, :], i8[:, :], i8[:, :], i8[:, :], i8[:, :], i8[:], i8[:], i8[:], i8, i8, i8[:, :], T[:, :], i8[:], "
    "i8[:, :], i8[:, :], i8[:, :], i8[:, :], i8[:, :], i8[:], i8[:], i8, i8[:], T[:]"
)
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
    indices: Ids,
    counts: Ints,
    lows: Ints,
    highs: Ints,
    pool: Ints,
    state: Ints,
    pairs: Ints,
    sums: Ints,
    by_root: Ints,
    modulus: int,
    flags: Ints,
    like: Ids,
) -> None:
    """Run a program for the roots ``begin … end-1``, and add the matches to ``sums``, as ``add_up`` does.

    With ``by_root`` (int64 [vertices]; else empty) they are added to the root's cell there instead.  The third cell of
    ``sums`` tells how many roots are done.

    Parameters
    ----------
    levels
        int64 [levels, 3]: first instruction, end, and the register that is looped over.
    code
        int64 [instructions, 15]: (what, out, a, b, bundle, back, weight, power, local, local back, certain, total,
        closed, anchor), as :mod:`graphdb.execute.counting.loops` writes them.
    bundles, members
        int64 [bundles, 5]: (first member, end, order, 0, plain); int64 [members, 2]: (partition, weighted).
    weights
        int64: the addresses of int64 [vertices] arrays.
    values, indices, counts
        The registers: int64 [registers, vertices], zero where there is no entry; the vertices of the entries; how many.
    lows, highs, pool
        Local lists: where a vertex's begins (-1: not stored) and ends; per local its ids' address and capacity.
    state
        int64 [4, levels or registers, whichever are more]: scratch.
    pairs
        int64 [closed lists, 3]: the partition of their entries, and the addresses of their starts and ids.
    """
    last = len(levels) - 1
    bound, position, product, tops = state[0], state[1], state[2], state[3]
    position[0], product[0] = begin, 1
    tops[:] = 0
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
            x = item(indices[register], position[level])
            weight = values[register, x]
        position[level] += 1
        bound[level] = x
        matches = times(product[level], weight, modulus, flags) if weight != 0 else 0
        at = levels[level, 0]
        while matches != 0 and at < levels[level, 1]:
            what, out, a, b, j, back = code[at, 0], code[at, 1], code[at, 2], code[at, 3], code[at, 4], code[at, 5]
            weighed, power, local, local_back = code[at, 6], code[at, 7], code[at, 8], code[at, 9]
            total_power, mirror = code[at, 11], bound[0] if code[at, 14] != 0 else -1
            at += 1
            if what <= 2:
                clear(values[out], indices[out], counts[out])
                tops[out] = LIMIT
                if what == 0:
                    counts[out] = load_list(
                        bundles, j, members, partitions, lows, highs, pool, bound[a],
                        weights[weighed] if weighed >= 0 else 0, values[out], indices[out], modulus, flags, like,
                    )  # fmt: skip
                elif what == 1:
                    counts[out] = intersect(
                        bundles, j, local, members, partitions, lows, highs, pool, bound[b], values[a], indices[a],
                        counts[a], values[out], indices[out], modulus, flags, like,
                    )  # fmt: skip
                elif quick(
                    bundles, j, counts[a], tops[a], tops[b] if b >= 0 else 1, weighed, power, modulus, 2 * len(roots)
                ):
                    found = through_quickly(
                        partitions, members[bundles[j, 0], 0], members[bundles[back, 0], 0], bundles[j, 2], local,
                        local_back, lows, highs, pool, values[a], indices[a], counts[a], values[max(b, 0)],
                        indices[max(b, 0)], counts[b] if b >= 0 else -1, code[at - 1, 10] != 0, pairs, code[at - 1, 12],
                        bound[code[at - 1, 13]], mirror, power, total_power > 0, values[out], indices[out], flags, like,
                    )  # fmt: skip
                    if total_power > 0:
                        matches = times(matches, power_of(found, total_power, 0, flags), 0, flags)
                        continue
                    counts[out] = found
                else:
                    counts[out] = through(
                        bundles, j, back, local, local_back, members, partitions, lows, highs, pool, values[a],
                        indices[a], counts[a], values[max(b, 0)], indices[max(b, 0)], counts[b] if b >= 0 else -1,
                        weights[weighed] if weighed >= 0 else 0, mirror, power, values[out], indices[out], modulus,
                        flags, like,
                    )  # fmt: skip
                if counts[out] == 0:
                    matches = 0
                elif total_power > 0:
                    total = total_of(values[out], indices[out], counts[out], modulus, flags)
                    matches = times(matches, power_of(total, total_power, modulus, flags), modulus, flags)
                elif modulus == 0:
                    tops[out] = top_of(values[out], indices[out], counts[out])
            elif what == 3:
                total = total_of(values[a], indices[a], counts[a], modulus, flags)
                matches = times(matches, power_of(total, power, modulus, flags), modulus, flags)
            elif what == 4:
                total = sum_over_list(
                    bundles, j, local, members, partitions, lows, highs, pool, bound[b], values[a], indices[a],
                    counts[a], modulus, flags, like,
                )  # fmt: skip
                matches = 0 if total == 0 else times(matches, power_of(total, power, modulus, flags), modulus, flags)
            else:
                cut_down(
                    bundles, j, local, members, partitions, lows, highs, pool, out, indices[a], counts[a], values[b],
                    like,
                )  # fmt: skip
        if matches == 0:
            continue
        if level == last and len(by_root) > 0:
            by_root[bound[0]] = plus(by_root[bound[0]], matches, modulus)
            if by_root[bound[0]] < 0 or by_root[bound[0]] >= LIMIT:
                flags[1] = 1
        elif level == last:
            sums[0] += matches & 0xFFFFFFFF
            sums[1] += matches >> 32
        else:
            level += 1
            product[level] = matches
            position[level] = 0
