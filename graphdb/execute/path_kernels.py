"""Breadth-first search over one partition, a piece of a level at a time.

The caller keeps the depth of each vertex and the level's vertices (the frontier), and sees Ctrl-C and timeouts between
the pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.set_kernels import neighbours_of
from graphdb.storage.jit import kernel

Ints = NDArray[np.int64]


@kernel
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
        int64 [6]: :attr:`graphdb.storage.pcsr.Partition.row`.
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
