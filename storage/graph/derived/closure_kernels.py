"""The loops behind :mod:`graphdb.storage.graph.derived.closure`: depths in a forest, and pairs of its transitive
closure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry

Ints = NDArray[np.int64]
Depths = NDArray[np.int32]

_UNKNOWN, _UNDER_WAY = -1, -2


@entry("i8[:], i8[:], T[:], i4[:], i8[:] -> b1")
def depths_of(children: Ints, tops: Ints, parents: NDArray[Any], depths: Depths, stack: Ints) -> bool:
    """Write the parent of each vertex and how many ancestors it has; return whether the edges are a forest's.

    Parameters
    ----------
    children, tops
        int64 [edges]: vertices, and what their edges lead to.
    parents
        [vertices], -1 each; stays -1 where there is no parent.
    depths
        int32 [vertices], -1 each.
    stack
        Scratch: int64 [vertices].
    """
    for i in range(len(children)):
        child, parent = children[i], tops[i]
        if parent >= len(parents) or child >= len(parents) or parents[child] >= 0:
            return False
        parents[child] = parent
    for vertex in range(len(parents)):
        at, above = vertex, 0
        while at >= 0 and depths[at] == _UNKNOWN:
            depths[at] = _UNDER_WAY
            stack[above] = at
            above += 1
            at = parents[at]
        if at >= 0 and depths[at] == _UNDER_WAY:
            return False
        depth = -1 if at < 0 else depths[at]
        while above > 0:
            above -= 1
            depth += 1
            depths[stack[above]] = depth
    return True


@entry("T[:], i4[:], i8, i8, i8[:], T[:]")
def ancestors_of(
    parents: NDArray[Any], depths: Depths, low: int, high: int, offsets: Ints, neighbours: NDArray[Any]
) -> None:
    """Write the ancestors of each vertex, ``low`` to ``high`` edges above, sorted; 0 edges above is itself.

    ``offsets`` says where those of each vertex begin.
    """
    for vertex in range(len(parents)):
        begin, at, above = offsets[vertex], offsets[vertex + 1], vertex
        for length in range(min(depths[vertex], high) + 1):
            if length >= low:
                at -= 1  # most vertices are younger than what is above them, so that these are sorted already
                neighbours[at] = above
            above = parents[above]
        for i in range(begin + 1, offsets[vertex + 1]):
            moved = neighbours[i]
            j = i
            while j > begin and neighbours[j - 1] > moved:
                neighbours[j] = neighbours[j - 1]
                j -= 1
            neighbours[j] = moved


@entry("i4[:], i8, i8 -> i8")
def ancestors_counted(depths: Depths, low: int, high: int) -> int:
    """Return how many ancestors all vertices have together, ``low`` to ``high`` edges above."""
    count = 0
    for vertex in range(len(depths)):
        count += max(min(depths[vertex], high) - low + 1, 0)
    return count


@entry("i8[:], i8[:] -> i8, i8")
def counted_at(counts: Ints, vertices: Ints) -> tuple[int, int]:
    """Return the sum of what is counted at some vertices, and at how many that is anything."""
    total, there = 0, 0
    for i in range(len(vertices)):
        if vertices[i] < len(counts):
            total += counts[vertices[i]]
            there += 1 if counts[vertices[i]] > 0 else 0
    return total, there


@entry("T[:], i4[:], i8, i8, i8[:]")
def descendants_counted(parents: NDArray[Any], depths: Depths, low: int, high: int, counts: Ints) -> None:
    """Add up in ``counts`` (int64 [vertices]) the descendants of each vertex, ``low`` to ``high`` edges below."""
    for vertex in range(len(parents)):
        above = vertex
        for length in range(min(depths[vertex], high) + 1):
            if length >= low:
                counts[above] += 1
            above = parents[above]


@entry("T[:], i4[:], i8, i8, i8[:], T[:]")
def descendants_of(
    parents: NDArray[Any], depths: Depths, low: int, high: int, offsets: Ints, neighbours: NDArray[Any]
) -> None:
    """Write the descendants of each vertex, ``low`` to ``high`` edges below, sorted; 0 edges below is itself.

    ``offsets`` says where those of each vertex begin, and is the same in the end.
    """
    for vertex in range(len(parents)):
        above = vertex
        for length in range(min(depths[vertex], high) + 1):
            if length >= low:
                neighbours[offsets[above]] = vertex
                offsets[above] += 1
            above = parents[above]
    for vertex in range(len(offsets) - 1, 0, -1):  # each has moved to where the next one begins
        offsets[vertex] = offsets[vertex - 1]
    offsets[0] = 0


@entry("T[:], i4[:], i8[:], T[:], i4[:] -> b1")
def tops_of(parents: NDArray[Any], depths: Depths, members: Ints, tops: NDArray[Any], distances: Depths) -> bool:
    """Write which of some vertices is above each vertex, or itself, and how far; return whether none is above another.

    Parameters
    ----------
    members
        int64: those vertices.
    tops
        [vertices], -2 each, but of each member itself; becomes -1 where there is none.
    distances
        int32 [vertices]: 0 where there is none.
    """
    for vertex in range(len(parents)):
        at = vertex
        while at >= 0 and tops[at] == _UNDER_WAY:
            at = parents[at]
        top, at = -1 if at < 0 else tops[at], vertex
        while at >= 0 and tops[at] == _UNDER_WAY:
            tops[at] = top
            at = parents[at]
        distances[vertex] = depths[vertex] - depths[top] if top >= 0 else 0
    for i in range(len(members)):
        parent = parents[members[i]]
        if parent >= 0 and tops[parent] >= 0:
            return False
    return True


@entry("T[:], i4[:], i8, i8, b1, i8[:]")
def tops_counted(tops: NDArray[Any], distances: Depths, low: int, high: int, upwards: bool, counts: Ints) -> None:
    """Add up in ``counts`` (int64 [vertices]) the tops of each vertex, ``low`` to ``high`` edges above.

    If not ``upwards``, the vertices that each is the top of, so far above.
    """
    for vertex in range(len(tops)):
        if tops[vertex] >= 0 and low <= distances[vertex] <= high:
            counts[vertex if upwards else tops[vertex]] += 1


@entry("T[:], i8[:], T[:]")
def tops_above(tops: NDArray[Any], offsets: Ints, neighbours: NDArray[Any]) -> None:
    """Write the top of each vertex that has one by ``offsets``."""
    for vertex in range(len(tops)):
        if offsets[vertex + 1] > offsets[vertex]:
            neighbours[offsets[vertex]] = tops[vertex]


@entry("T[:], i4[:], i8, i8, i8[:], T[:]")
def below_tops(
    tops: NDArray[Any], distances: Depths, low: int, high: int, offsets: Ints, neighbours: NDArray[Any]
) -> None:
    """Write the vertices that are ``low`` to ``high`` edges below each top, sorted, where ``offsets`` says.

    ``offsets`` is the same in the end.
    """
    for vertex in range(len(tops)):
        if tops[vertex] >= 0 and low <= distances[vertex] <= high:
            neighbours[offsets[tops[vertex]]] = vertex
            offsets[tops[vertex]] += 1
    for vertex in range(len(offsets) - 1, 0, -1):  # each has moved to where the next one begins
        offsets[vertex] = offsets[vertex - 1]
    offsets[0] = 0


@entry("i8[:], T[:], T[:]")
def others_of(offsets: Ints, neighbours: NDArray[Any], others: NDArray[Any]) -> None:
    """Write the neighbours of each vertex other than itself, one vertex after the other: each is its own once."""
    at = 0
    for vertex in range(len(offsets) - 1):
        for i in range(offsets[vertex], offsets[vertex + 1]):
            if neighbours[i] != vertex:
                others[at] = neighbours[i]
                at += 1
