"""Breadth-first search over one partition, a piece of a level at a time.

The caller keeps the depth of each vertex and the level's vertices (the frontier), and sees Ctrl-C and timeouts between
the pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.search.set_kernels import neighbours_of
from graphdb.storage.compile.kernels import entry

Ints = NDArray[np.int64]


@entry("i8[:], T[:], i8[:], i4[:], i8, i8[:], i8 -> i8")
def expand(
    partition: Ints,
    neighbours: NDArray[Any],
    frontier: Ints,
    depths: NDArray[np.int32],
    depth: int,
    found: Ints,
    count: int,
) -> int:
    """Give the neighbours of ``frontier`` that have no depth yet the depth ``depth``, and append them to ``found``.

    Parameters
    ----------
    partition
        int64 [6]: :attr:`graphdb.storage.graph.pcsr.Partition.row`.
    neighbours
        The partition's own array.
    depths
        int32 [vertices]; -1 where none is known.
    found
        int64 [vertices]; ``count`` of its cells are taken.

    Returns
    -------
    int
        How many cells of ``found`` are taken now.
    """
    for i in range(len(frontier)):
        begin, end = neighbours_of(partition.ctypes.data, 0, frontier[i])
        for j in range(begin, end):
            vertex = neighbours[j]
            if depths[vertex] < 0:
                depths[vertex] = depth
                found[count] = vertex
                count += 1
    return count


@entry("i8[:], T[:], i8[:], i4[:], i8[:], i8, i8 -> i8")
def close(
    partition: Ints,
    neighbours: NDArray[Any],
    frontier: Ints,
    depths: NDArray[np.int32],
    branches: Ints,
    start: int,
    best: int,
) -> int:
    """Return the length of the shortest way round from ``start`` over an edge from ``frontier``, or ``best``.

    ``branches`` (int64 [vertices]) holds by which neighbour of the start each vertex was reached first, -1 where that
    is not known yet: then it gets that of the vertex it is reached from.  An edge between two branches closes a way
    round: the shortest cycle through a vertex is found so.
    """
    for i in range(len(frontier)):
        vertex = frontier[i]
        begin, end = neighbours_of(partition.ctypes.data, 0, vertex)
        for j in range(begin, end):
            other = neighbours[j]
            if other == start or depths[other] < 0:
                continue
            if branches[other] < 0:
                branches[other] = branches[vertex]
            elif branches[other] != branches[vertex]:
                best = min(best, depths[vertex] + depths[other] + 1)
    return best
