"""Dijkstra's algorithm with a binary heap, and the paths that it has found (Dijkstra 1959; lazy deletion).

A graph is in compressed rows: the edges of vertex ``v`` are ``row[v]`` to ``row[v + 1]`` of ``heads`` and ``costs``
(float64, not negative).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.paths.enumeration_kernels import allows
from graphdb.storage.compile.kernels import entry, kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Marks = NDArray[np.bool_]

SIZE, MISSING = 0, 1
"""Places in ``state``: entries of the heap, and how many of the wanted vertices are still missing."""


@kernel
def _push(keys: Floats, vertices: Ints, size: int, key: float, vertex: int) -> None:
    at = size
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] <= key:
            break
        keys[at], vertices[at] = keys[above], vertices[above]
        at = above
    keys[at], vertices[at] = key, vertex


@kernel
def _pop(keys: Floats, vertices: Ints, size: int) -> None:
    """Take the least entry away; the last of ``size`` entries takes a place among the others."""
    key, vertex = keys[size - 1], vertices[size - 1]
    at, below = 0, 1
    while below < size - 1:
        if below + 1 < size - 1 and keys[below + 1] < keys[below]:
            below += 1
        if keys[below] >= key:
            break
        keys[at], vertices[at] = keys[below], vertices[below]
        at, below = below, 2 * below + 1
    keys[at], vertices[at] = key, vertex


@entry("i8[:], i8[:], f8[:], i8, f8[:], i8[:], b1[:], f8[:], i8[:], i8[:], b1[:], f8[:], i8 -> b1")
def dijkstra(
    row: Ints,
    heads: Ints,
    costs: Floats,
    banned: int,
    distances: Floats,
    before: Ints,
    settled: Marks,
    keys: Floats,
    vertices: Ints,
    state: Ints,
    wanted: Marks,
    limit: Floats,
    budget: int,
) -> bool:
    """Go on with a search; return whether it has ended.

    Parameters
    ----------
    banned
        An edge that no path may take; -1 for none.
    distances, before, settled
        [vertices]: the least cost so far (infinite: none), the edge that it ends with, whether it is final.
    keys, vertices
        The heap: [edges + 1] each.
    wanted
        bool [vertices]: the search ends when all of these are settled; or empty, for all.
    limit
        float64 [1]: how far the last of them is, once they are settled; what is as near is settled, too.
    """
    size, missing, work = state[SIZE], state[MISSING], 0
    while size > 0 and work <= budget:
        key, vertex = keys[0], vertices[0]
        if key > limit[0]:
            state[SIZE] = 0
            return True
        _pop(keys, vertices, size)
        size -= 1
        work += 1
        if settled[vertex]:
            continue
        settled[vertex] = True
        if len(wanted) > 0 and wanted[vertex]:
            missing -= 1
            if missing == 0:
                limit[0] = key
        work += row[vertex + 1] - row[vertex]
        for edge in range(row[vertex], row[vertex + 1]):
            other, cost = heads[edge], key + costs[edge]
            if edge != banned and cost < distances[other]:
                distances[other] = cost
                before[other] = edge
                _push(keys, vertices, size, cost, other)
                size += 1
    state[SIZE], state[MISSING] = size, missing
    return bool(size == 0)


@entry("i8[:], i8[:], i8[:], i8[:]")
def lengths_of(ends: Ints, before: Ints, tails: Ints, lengths: Ints) -> None:
    """Write how many edges the path has that leads to each of some vertices."""
    for i in range(len(ends)):
        vertex, length = ends[i], 0
        while before[vertex] >= 0:
            vertex = tails[before[vertex]]
            length += 1
        lengths[i] = length


@entry("i8[:], i8[:], i8[:], i8[:], b1, i8[:], i8[:]")
def read_paths(ends: Ints, before: Ints, tails: Ints, starts: Ints, backwards: bool, walks: Ints, edges: Ints) -> None:
    """Write the vertices and edges of the paths to some vertices, from their starts on, or ``backwards``.

    Path ``i`` has the vertices ``walks[starts[i]:starts[i + 1]]``; its edges begin at ``edges[starts[i] - i]``.
    """
    for i in range(len(ends)):
        vertex = ends[i]
        first, last = starts[i], starts[i + 1] - 1
        for step in range(last - first + 1):
            walks[first + step if backwards else last - step] = vertex
            if step < last - first:
                edges[first - i + step if backwards else last - i - 1 - step] = before[vertex]
                vertex = tails[before[vertex]]


@entry("i8[:], i8[:], f8[:], i8[:], f8[:], i8, i8, i8[:], i8[:], i8[:], i8[:], i8[:], i8[:], i8 -> b1")
def tight_paths(
    row: Ints,
    heads: Ints,
    costs: Floats,
    codes: Ints,
    distances: Floats,
    start: int,
    mode: int,
    vertices: Ints,
    taken: Ints,
    places: Ints,
    passed: Ints,
    state: Ints,
    found: Ints,
    budget: int,
) -> bool:
    """Go on with writing all cheapest paths, depth first back along edges that no cheaper way avoids.

    ``row`` and ``heads`` lead back from the end; ``distances`` are those from ``start``.  Each path is written to
    ``found`` as its number of edges and the edges, the last one first.  Returns whether those are all; else there is
    no more room, or the budget is spent.

    Parameters
    ----------
    vertices, taken, places, passed
        The path under way, which begins at the end: its vertices, the codes of its edges, the next edge of each vertex,
        the edges themselves: [depth + 1] each.  Where it gets longer than that, ``state[2]`` is 1.
    state
        int64 [3]: how deep the search is (-1 at its end), how much of ``found`` is filled.
    """
    work = 0
    while state[0] >= 0:
        level = state[0]
        vertex = vertices[level]
        if places[level] < 0:
            if vertex == start:
                if state[1] + level + 1 > len(found):
                    return False
                found[state[1]] = level
                for i in range(level):
                    found[state[1] + 1 + i] = passed[i]
                state[1] += level + 1
            places[level] = row[vertex]
        work += 1
        if work > budget:
            return False
        edge = places[level]
        if edge == row[vertex + 1]:
            state[0] = level - 1
            continue
        other = heads[edge]
        if distances[other] + costs[edge] == distances[vertex] and allows(
            mode, vertices, taken, level, other, codes[edge]
        ):
            if level + 2 > len(vertices):
                state[2] = 1
                return False
            places[level] = edge + 1
            taken[level], passed[level] = codes[edge], edge
            vertices[level + 1], places[level + 1] = other, -1
            state[0] = level + 1
        else:
            places[level] = edge + 1
    return True
