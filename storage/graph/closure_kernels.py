"""The loops behind :mod:`graphdb.storage.graph.closure`: depths in a forest, and pairs of its transitive closure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry
from graphdb.storage.graph.pcsr_kernels import neighbours_of

Ints = NDArray[np.int64]
Depths = NDArray[np.int32]

_UNKNOWN, _UNDER_WAY = -1, -2


@entry("i8[:], T[:], i8[:], i8[:], i4[:], i8[:] -> b1")
def depths_of(
    partition: Ints, neighbours: NDArray[Any], keys: Ints, parents: Ints, depths: Depths, stack: Ints
) -> bool:
    """Write the parent of each vertex and how many ancestors it has; return whether no path leads back to its start.

    Parameters
    ----------
    partition, neighbours
        The row and the neighbours of a partition in which each of ``keys`` has one neighbour: its parent.
    parents
        int64 [vertices], -1 each; stays -1 where there is no parent.
    depths
        int32 [vertices], -1 each.
    stack
        Scratch: int64 [vertices].
    """
    for i in range(len(keys)):
        begin, _ = neighbours_of(partition.ctypes.data, 0, keys[i])
        parents[keys[i]] = neighbours[begin]
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


@entry("i8[:], i4[:], i8, i8, i8[:], i8[:]")
def ancestors_of(parents: Ints, depths: Depths, low: int, high: int, vertices: Ints, ancestors: Ints) -> None:
    """Write each vertex with its ancestors ``low`` to ``high`` edges above, nearest first; 0 edges above is itself."""
    filled = 0
    for vertex in range(len(parents)):
        last = min(depths[vertex], high)
        at = vertex
        for length in range(last + 1):
            if length >= low:
                vertices[filled] = vertex
                ancestors[filled] = at
                filled += 1
            at = parents[at]
