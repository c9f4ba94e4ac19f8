"""The shortest cycle through a vertex, by BFS, level by level, until two branches meet."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.executor import Control
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

_PIECE = 4096
"""Vertices of a level that one call of a kernel expands."""


@dataclass(slots=True)
class _Side:
    """A search from one vertex along a partition.

    Attributes
    ----------
    depths
        int32 [vertices]: edges from the start; -1 where it has not come.
    frontier
        int64: the vertices of the last level.
    """

    partition: Partition
    start: int
    depths: NDArray[np.int32]
    frontier: Ints
    depth: int = 0
    _found: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def at(cls, partition: Partition, start: int, vertices: int) -> _Side:
        """Begin at a vertex of a graph of so many."""
        depths = np.full(vertices, -1, np.int32)
        depths[start] = 0
        return cls(partition, start, depths, np.array([start], np.int64), 0, np.empty(vertices, np.int64))

    def step(self, control: Control) -> None:
        """Go one level further."""
        from graphdb.execute.paths.shortest_cycle_kernels import expand

        self.depth += 1
        row = np.array(self.partition.row, np.int64)
        count = 0
        for at in range(0, len(self.frontier), _PIECE):
            control.check()
            piece = self.frontier[at : at + _PIECE]
            count = expand(row, self.partition.neighbours, piece, self.depths, self.depth, self._found, count)
        self.frontier = self._found[:count].copy()


def way_round(partition: Partition, start: int, vertices: int, longest: int | None, control: Control) -> int | None:
    """Return the length of the shortest cycle through a vertex, 3 or more, that takes no edge twice; None if none.

    ``partition`` holds edges in both directions.
    """
    from graphdb.execute.paths.shortest_cycle_kernels import close

    side = _Side.at(partition, start, vertices)
    row = np.array(partition.row, np.int64)
    branches = np.full(vertices, -1, np.int64)
    best = most = (longest if longest is not None else vertices) + 1
    while len(side.frontier) and 2 * side.depth < best - 1:
        before = side.frontier
        side.step(control)
        if side.depth == 1:
            branches[side.frontier] = side.frontier
            branches[start] = start
        else:
            best = close(row, partition.neighbours, before, side.depths, branches, start, best)
    if side.depth and len(side.frontier):
        best = close(row, partition.neighbours, side.frontier, side.depths, branches, start, best)
    return None if best == most else best
