"""The loop behind :mod:`graphdb.execute.functional`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.kernels import entry
from graphdb.storage.graph.pcsr_kernels import neighbours_at_once


@entry("i8[:], T[:], T[:], T[:] -> i8")
def only_neighbours(
    partition: NDArray[np.int64], neighbours: NDArray[Any], vertices: NDArray[Any], found: NDArray[Any]
) -> int:
    """Write the only neighbour of each vertex, or -1; return how many have none.

    Parameters
    ----------
    partition, neighbours
        The row and the neighbours of a partition in which no vertex has two.
    """
    missing = 0
    for i in range(len(vertices)):
        begin, end = neighbours_at_once(partition.ctypes.data, 0, vertices[i])
        found[i] = neighbours[begin] if begin < end else -1
        if begin == end:
            missing += 1
    return missing
