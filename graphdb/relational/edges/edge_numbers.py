"""How many data edges lead from one vertex to another, for many pairs of vertices at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.graph.pcsr import Partition

Ids = NDArray[np.int64]


class EdgeNumbers:
    """How many data edges of a set lead from one vertex to another.

    Parameters
    ----------
    begins, ends
        int64 [vertices]: where the neighbours of each vertex stand.
    neighbours
        Vertex ids [pairs], sorted for each vertex.
    code_offsets
        int64 [pairs + 1]: how many edges there are before those to each of these; empty where each is one edge.
    """

    def __init__(self, begins: Ids, ends: Ids, neighbours: NDArray[Any], code_offsets: Ids) -> None:
        self._begins, self._ends = begins, ends
        self._neighbours, self._code_offsets = neighbours, code_offsets

    @classmethod
    def of(cls, partition: Partition, vertices: int) -> EdgeNumbers:
        """Return the numbers of the edges of a partition, whose vertices are so many."""
        begins, ends = np.zeros((2, vertices), np.int64)
        begin, lengths = partition.ranges()
        begins[partition.keys], ends[partition.keys] = begin, begin + lengths
        offsets = np.empty(0, np.int64) if partition.code_offsets is None else partition.code_offsets
        return cls(begins, ends, partition.neighbours, offsets)

    @classmethod
    def between(cls, starts: NDArray[Any], ends: NDArray[Any], vertices: int) -> EdgeNumbers:
        """Return the numbers of edges with these ends [edges], in any order, of which several may be parallel."""
        order = np.lexsort((ends, starts))
        starts, ends = starts[order], ends[order]
        first = np.ones(len(starts), bool)
        first[1:] = (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
        every = np.arange(vertices)
        begin, end = (np.searchsorted(starts[first], every, side) for side in ("left", "right"))
        return cls(begin, end, ends[first], np.append(np.flatnonzero(first), len(starts)))

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
