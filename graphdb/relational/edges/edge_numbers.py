"""How many data edges lead from one vertex to another, for many pairs of vertices at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.pcsr import Partition

Ids = NDArray[np.int64]


class EdgeNumbers:
    """How many data edges of a partition lead from one of so many vertices to another."""

    def __init__(self, partition: Partition, vertices: int) -> None:
        self._neighbours = partition.neighbours
        self._code_offsets = np.empty(0, np.int64) if partition.code_offsets is None else partition.code_offsets
        self._begins, self._ends = np.zeros((2, vertices), np.int64)
        begins, lengths = partition.ranges()
        self._begins[partition.keys], self._ends[partition.keys] = begins, begins + lengths

    def __call__(self, sources: Ids, targets: Ids) -> Ids:
        """Return int64 [pairs]: the number of edges from each source to its target."""
        from graphdb.storage.graph.edge_kernels import count_edges

        dtype, found = self._neighbours.dtype, np.empty(len(sources), np.int64)
        count_edges(
            np.ascontiguousarray(sources, dtype),
            np.ascontiguousarray(targets, dtype),
            self._begins,
            self._ends,
            self._neighbours,
            self._code_offsets,
            found,
        )
        return found
