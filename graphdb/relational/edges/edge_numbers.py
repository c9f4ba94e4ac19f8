"""How many data edges lead from one vertex to another, for many pairs of vertices at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.pcsr import Partition

Ids = NDArray[np.int64]


class EdgeNumbers:
    """How many data edges of a partition lead from one vertex to another."""

    def __init__(self, partition: Partition, vertices: int) -> None:
        starts, neighbours, code_offsets, _ = partition.laid_out()
        self._vertices = vertices
        self._pairs = np.repeat(partition.keys, np.diff(starts)) * vertices + neighbours
        """Vertex and neighbour as one number, sorted."""
        self._until = np.arange(len(neighbours) + 1) if code_offsets is None else code_offsets
        """How many edges there are before each of these."""

    def __call__(self, sources: Ids, targets: Ids) -> Ids:
        """Return int64 [pairs]: the number of edges from each source to its target."""
        asked, place = np.unique(sources.astype(np.int64) * self._vertices + targets, return_inverse=True)
        begin, end = (np.searchsorted(self._pairs, asked, side) for side in ("left", "right"))
        found: Ids = (self._until[end] - self._until[begin])[place]
        return found
