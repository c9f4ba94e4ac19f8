"""All paths of one length from some vertices to others, depth first; a branch too far from all ends is not entered."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.paths.bfs_kernels import Depths, codes_at
from graphdb.execute.search.set_kernels import LONG, neighbours_of
from graphdb.storage.compile.kernels import entry, kernel, load

Ints = NDArray[np.int64]

WALK, TRAIL, SIMPLE, ACYCLIC, SIMPLE_WALK = 0, 1, 2, 3, 4
START, LEVEL, FOUND = 0, 1, 2
"""Places in ``state``: the start under way, how deep the search is (-1: it begins), how many paths it wrote."""


@kernel
def allows(mode: int, vertices: Ints, codes: Ints, level: int, other: int, code: int) -> bool:
    """Whether a mode lets the path ``vertices[: level + 1]`` go on to ``other`` over the edge ``code`` (-1: none)."""
    if mode == WALK or code < 0:
        return True
    if mode == TRAIL:
        vertex = vertices[level]
        start, end = (other, vertex) if code & 1 else (vertex, other)
        for i in range(level):
            if codes[i] >> 1 == code >> 1:
                a, b = (vertices[i + 1], vertices[i]) if codes[i] & 1 else (vertices[i], vertices[i + 1])
                if a == start and b == end:
                    return False
        return True
    closes = mode == SIMPLE or mode == SIMPLE_WALK  # the last vertex may be the first
    if closes and level > 0 and vertices[level] == vertices[0]:
        return False  # it came back to its start, which ends it
    if mode == SIMPLE and level == 1 and other == vertices[0] and codes[0] ^ 1 == code:
        return False  # the same edge back
    again = False
    for i in range(1 if closes else 0, level + 1):
        again |= vertices[i] == other
    return not again


@entry(
    "i8[:], T[:], i8, i4[:], i8, i8, i8, i8[:], b1[:], i8[:], i8[:], i8[:], i8[:, :], i8[:], i8[:, :], i8[:, :], "
    "i8[:, :], i8 -> b1"
)
def enumerate_paths(
    partition: Ints,
    neighbours: NDArray[Any],
    only: int,
    to_end: Depths,
    length: int,
    mode: int,
    fold: int,
    starts: Ints,
    longer: NDArray[np.bool_],
    nodes: Ints,
    vertices: Ints,
    codes: Ints,
    places: Ints,
    state: Ints,
    ends: Ints,
    walks: Ints,
    edges: Ints,
    budget: int,
) -> bool:
    """Write paths of ``length`` edges to where ``to_end`` is 0; return whether those are all.

    Parameters
    ----------
    only
        The code of all edges of a partition that has no codes.
    to_end
        int32 [vertices]: edges to the nearest end, -1 where no way leads to one.
    fold
        How many data vertices there are: node ``n`` of what is searched stands for vertex ``n % fold``.
    starts, longer
        int64 and bool [starts]: where paths begin, none further than ``length`` from an end, one start after the other;
        and whether longer paths of each may be, false before.
    nodes, vertices, codes, places
        int64 [length + 1] thrice, [length + 1, 3]: the path under way, and for each of its
        nodes the next entry, the end of the entries, and the next code of the entry.
    ends
        int64 [room, 2]: the first and the last node of each path.
    walks, edges
        int64 [room, length + 1] and [room, length]: all its nodes, and the codes of its edges; without rows where
        these are not wanted.
    """
    whole = len(walks) > 0
    while state[START] < len(starts):
        at, level = state[START], state[LEVEL]
        if level < 0:
            nodes[0], vertices[0], places[0, 0] = starts[at], starts[at] % fold, -1
            level = state[LEVEL] = 0
        if places[level, 0] < 0:
            begin, end = neighbours_of(partition.ctypes.data, 0, nodes[level])
            places[level, 0], places[level, 1], places[level, 2] = begin, end, 0
            if level == length:
                found = state[FOUND]
                if found == len(ends):
                    places[level, 0] = -1
                    return False
                ends[found, 0], ends[found, 1] = nodes[0], nodes[length]
                if whole:
                    for i in range(length):
                        walks[found, i] = nodes[i]
                        edges[found, i] = codes[i]
                    walks[found, length] = nodes[length]
                state[FOUND] = found + 1
                if longer[at]:
                    places[level, 0] = end
        budget -= 1
        if budget < 0:
            return False
        entry = places[level, 0]
        if entry >= places[level, 1]:
            state[LEVEL] = level - 1
            if level == 0:
                state[START] = at + 1
            continue
        other = neighbours[entry]
        low, high = codes_at(partition, entry)
        reaches = to_end[other] >= 0 and (level == length or to_end[other] < length - level)
        if not reaches or low + places[level, 2] >= high:
            if level < length and to_end[other] >= length - level:
                longer[at] = True
            places[level, 0], places[level, 2] = entry + 1, 0
            continue
        code = only if partition[4] == 0 else load(partition[5], low + places[level, 2], LONG)
        places[level, 2] += 1
        if not allows(mode, vertices, codes, level, other % fold, code):
            continue
        if level == length:
            longer[at] = True
            places[level, 0] = places[level, 1]
            continue
        codes[level] = code
        nodes[level + 1], vertices[level + 1] = other, other % fold
        places[level + 1, 0] = -1
        state[LEVEL] = level + 1
    return True
