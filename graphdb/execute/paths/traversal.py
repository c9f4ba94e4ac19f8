"""The traversal of one path step, which its searches share: directions, lengths, and the edges on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.paths.path_rows import PathRows
from graphdb.plan.executor import Control
from graphdb.plan.paths import PathStep
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import OPPOSITE, Partition

Ints = NDArray[np.int64]

FAR = np.iinfo(np.int32).max
"""Longer than any path."""
BUDGET = 1 << 20
"""Neighbours that a kernel looks at before it returns: some milliseconds."""


@dataclass(frozen=True, slots=True)
class Traversal:
    """A step over a data graph.

    Attributes
    ----------
    away, back
        The partitions that paths go along, from their source and back from their target.
    vertices, nodes
        How many vertices there are, and nodes: where the step's pattern has states, a vertex in each of them.
    longest
        The most edges of a path.
    """

    step: PathStep
    control: Control
    away: Partition
    back: Partition
    vertices: int
    nodes: int
    longest: int

    @classmethod
    def of(cls, graph: DataGraph, step: PathStep, control: Control, *ends: Ints | None) -> Self:
        """Return the traversal of a step between some vertices: among resources alone, where nothing is a literal."""
        longest, vertices = FAR if step.high is None else step.high, graph.vertices
        known = [graph.source.statistics(label) for label in step.labels or ()]
        literal = any(each.triples > each.resource_triples for each in known)
        if step.along is None and not literal:
            inside = all(each is None or not len(each) or each.max() < graph.resources for each in ends)
            vertices = graph.resources if inside else vertices
        if step.along is not None:
            nodes = vertices * (1 + len(step.along.pieces))
            return cls(step, control, step.along.away, step.along.back, vertices, nodes, longest)
        away, back = (graph.partition(step.labels, way) for way in (step.direction, OPPOSITE[step.direction]))
        return cls(step, control, away, back, vertices, vertices, longest)

    @property
    def last(self) -> int:
        """The first node of the state in which paths end."""
        return self.nodes - self.vertices

    def code(self, partition: Partition) -> int:
        """The code of all edges of a partition without codes."""
        step = self.step
        direction = step.direction if partition is self.away else OPPOSITE[step.direction]
        return step.labels[0] << 1 | (direction == "in") if step.labels else 0

    def coded(self, found: PathRows, starts: Ints, walks: Ints) -> PathRows:
        """Add walks (as :class:`PathRows` has them) to rows, and which edges they take: the first of parallel ones."""
        from graphdb.execute.paths.bfs_kernels import first_codes

        codes = np.empty(len(walks) - len(found), np.int64)
        away = self.away
        first_codes(np.array(away.row, np.int64), away.neighbours, self.code(away), starts, walks, codes)
        return PathRows(found.sources, found.targets, found.lengths, None, starts, walks, codes)
