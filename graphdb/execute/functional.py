"""Runs a functional scan: the edges of one label, and of each row the further vertices, gathered.

See :mod:`graphdb.plan.passes.functional`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.plan.checks import Unequal
from graphdb.plan.executor import Block, Control
from graphdb.plan.physical import FunctionalScan, PhysicalPlan
from graphdb.storage.graph.pcsr import Partition

Ids = NDArray[Any]

_EDGES = 1 << 16
"""Edges that are gone through at a time: what is gathered of them stays in the cache."""


def functional_rows(plan: PhysicalPlan, scan: FunctionalScan, control: Control, threads: int) -> Iterator[Block]:
    """Give the rows of a plan, those of some edges at a time, as they come.

    Raises
    ------
    QueryTimeout, QueryInterrupted
        The run took too long, or was stopped.
    """
    run = _Run(plan, scan)
    places = range(0, scan.edges, _EDGES)
    if threads == 1 or len(places) == 1:
        for at in places:
            control.check()
            yield from run.rows_of(at)
        return
    with ThreadPoolExecutor(threads, "graphdb-gather") as pool:
        for begin in range(0, len(places), threads):
            control.check()
            for blocks in pool.map(run.rows_of, places[begin : begin + threads]):
                yield from blocks


class _Run:
    """What all pieces of a run read."""

    def __init__(self, plan: PhysicalPlan, scan: FunctionalScan) -> None:
        self._scan = scan
        self._counts = plan.duplicates == "count"
        self._wanted = {v: name for v, name in enumerate(scan.vertices) if name in plan.outputs}
        self._steps = [(step, step.partition, np.array(step.partition.row, np.int64)) for step in scan.steps]
        self._among = [None if ids is None else _marks(ids) for ids in scan.candidates]
        self._sources = _Sources(scan.partition)

    def rows_of(self, begin: int) -> list[Block]:
        """Return the rows of some edges of the first label."""
        scan = self._scan
        sources, targets = self._sources.edges(begin, begin + _EDGES)
        blocks = [self._rows(dict(zip(scan.ends, (sources, targets), strict=True)))]
        if not scan.directed:
            proper = sources != targets  # a self loop is one way to go, not two
            if not proper.all():
                sources, targets = sources[proper], targets[proper]
            blocks.append(self._rows(dict(zip(scan.ends, (targets, sources), strict=True))))
        return [block for block in blocks if block.count]

    def _rows(self, columns: dict[int, Ids]) -> Block:
        from graphdb.execute.functional_kernels import only_neighbours

        for vertex in self._scan.ends:
            columns = self._left(columns, self._allowed(vertex, columns[vertex]))
        for step, partition, row in self._steps:
            found = np.empty(len(columns[step.before]), partition.neighbours.dtype)
            missing = only_neighbours(row, partition.neighbours, columns[step.before], found)
            columns[step.after] = found
            if missing:
                columns = self._left(columns, found >= 0)
            columns = self._left(columns, self._allowed(step.after, columns[step.after]))
        for check in self._scan.checks:
            if isinstance(check, Unequal):
                columns = self._left(columns, columns[check.left] != columns[check.right])
            else:
                differ = columns[check.a] != columns[check.b]
                columns = self._left(columns, differ | (columns[check.c] != columns[check.d]))
        count = len(columns[self._scan.ends[0]])
        once = np.broadcast_to(np.int64(1), count) if self._counts else None
        return Block({name: columns[v] for v, name in self._wanted.items()}, count, once)

    def _allowed(self, vertex: int, ids: Ids) -> NDArray[np.bool_] | None:
        """Return which vertices are candidates of a pattern vertex; None where all are."""
        marks = self._among[vertex]
        if marks is None:
            return None
        return marks[np.minimum(ids, len(marks) - 1)]

    @staticmethod
    def _left(columns: dict[int, Ids], left: NDArray[np.bool_] | None) -> dict[int, Ids]:
        """Return the rows that are left."""
        if left is None or left.all():
            return columns
        rows = np.flatnonzero(left)  # quicker than to take by truth values
        return {vertex: ids[rows] for vertex, ids in columns.items()}


class _Sources:
    """The edges of a partition as pairs, a piece at a time."""

    def __init__(self, partition: Partition) -> None:
        known = partition.contiguous()
        self._neighbours = known.neighbours
        self._vertices: Ids | None = None
        if known.layer == "direct":
            self._starts = known.offsets
        else:
            self._starts, self._neighbours, _, _ = known.laid_out()
            self._vertices = known.keys.astype(self._neighbours.dtype)

    def edges(self, begin: int, end: int) -> tuple[Ids, Ids]:
        """Return the sources and the targets of some of the edges."""
        end, dtype = min(end, len(self._neighbours)), self._neighbours.dtype
        first, last = np.searchsorted(self._starts, [begin, end - 1], "right") - 1  # whose edges are among them
        starts = np.clip(self._starts[first : last + 2], begin, end)
        if self._vertices is None:
            vertices = np.arange(first, last + 1, dtype=dtype)
        else:
            vertices = self._vertices[first : last + 1]
        return np.repeat(vertices, np.diff(starts)), self._neighbours[begin:end]


def _marks(candidates: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of the first vertices are candidates; the last one stands for all others, which are none."""
    marks = np.zeros(int(candidates.max(initial=-1)) + 2, bool)
    marks[candidates] = True
    return marks
