"""Runs a functional scan: the edges of one label, and of each row the further vertices, gathered.

See :mod:`graphdb.plan.passes.functional`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
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

_FURTHER = 4
"""Times as many where each is read once, and a row is what it leaves."""

_TIMES = 2
"""Times by which edges must be more than the vertices that they lead to: what follows from these is found first."""

_NUMBERS = 1 << 16
"""Vertices by which the rows of one source are counted, at most: these counts stay in the cache."""


def functional_rows(plan: PhysicalPlan, scan: FunctionalScan, control: Control, threads: int) -> Iterator[Block]:
    """Give the rows of a plan, those of some edges at a time, as they come.

    Raises
    ------
    QueryTimeout, QueryInterrupted
        The run took too long, or was stopped.
    """
    run = _Run(plan, scan)
    known = _Known.of(plan, scan, run)
    step = _EDGES if known is None else _FURTHER * _EDGES
    rows_of = partial(run.rows_of if known is None else known.rows_of, step)
    places = range(0, scan.edges, step)
    if threads == 1 or len(places) == 1:
        for at in places:
            control.check()
            yield from rows_of(at)
        return
    with ThreadPoolExecutor(threads, "graphdb-gather") as pool:
        for begin in range(0, len(places), threads):
            control.check()
            for blocks in pool.map(rows_of, places[begin : begin + threads]):
                yield from blocks


class _Run:
    """What all pieces of a run read."""

    def __init__(self, plan: PhysicalPlan, scan: FunctionalScan) -> None:
        self.scan = scan
        self.counts = plan.duplicates == "count"
        self.wanted = {v: name for v, name in enumerate(scan.vertices) if name in plan.outputs}
        self._steps = [(step, step.partition, np.array(step.partition.row, np.int64)) for step in scan.steps]
        self._among = [None if ids is None else _marks(ids) for ids in scan.candidates]
        self.sources = _Sources(scan.partition)

    def rows_of(self, edges: int, begin: int) -> list[Block]:
        """Return the rows of so many edges of the first label."""
        scan = self.scan
        sources, targets = self.sources.edges(begin, begin + edges)
        blocks = [self._rows(dict(zip(scan.ends, (sources, targets), strict=True)))]
        if not scan.directed:
            proper = sources != targets  # a self loop is one way to go, not two
            if not proper.all():
                sources, targets = sources[proper], targets[proper]
            blocks.append(self._rows(dict(zip(scan.ends, (targets, sources), strict=True))))
        return [block for block in blocks if block.count]

    def _rows(self, columns: dict[int, Ids]) -> Block:
        from graphdb.execute.functional_kernels import only_neighbours

        for vertex in self.scan.ends:
            columns = self._left(columns, self._allowed(vertex, columns[vertex]))
        for step, partition, row in self._steps:
            found = np.empty(len(columns[step.before]), partition.neighbours.dtype)
            missing = only_neighbours(row, partition.neighbours, columns[step.before], found)
            columns[step.after] = found
            if missing:
                columns = self._left(columns, found >= 0)
            columns = self._left(columns, self._allowed(step.after, columns[step.after]))
        for check in self.scan.checks:
            if isinstance(check, Unequal):
                columns = self._left(columns, columns[check.left] != columns[check.right])
            else:
                differ = columns[check.a] != columns[check.b]
                columns = self._left(columns, differ | (columns[check.c] != columns[check.d]))
        count = len(columns[self.scan.ends[0]])
        once = np.broadcast_to(np.int64(1), count) if self.counts else None
        return Block({name: columns[v] for v, name in self.wanted.items()}, count, once)

    def tree(self, end: int, ids: Ids) -> tuple[dict[int, Ids], NDArray[np.bool_]]:
        """Return all that follows from vertices at one end of an edge, and of which of them all is there."""
        from graphdb.execute.functional_kernels import only_neighbours

        columns, allowed = {end: ids}, self._allowed(end, ids)
        there = np.ones(len(ids), bool) if allowed is None else allowed
        for step, partition, row in self._steps:
            if step.before not in columns:
                continue
            columns[step.after] = found = np.empty(len(ids), partition.neighbours.dtype)
            before = np.maximum(columns[step.before], 0)  # of those that are not there, whatever vertex 0 has
            if only_neighbours(row, partition.neighbours, before, found):
                there &= found >= 0
            if (allowed := self._allowed(step.after, found)) is not None:
                there &= allowed
        return columns, there

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


@dataclass(frozen=True, slots=True)
class _Known:
    """What follows from all vertices that the edges of the first label lead to, where these are fewer than the edges.

    Then each edge is read once, and as many rows are written as there are.  Where matches are counted by one vertex
    beside those that follow from the source, the rows of one source that are equal become one.
    """

    run: _Run
    least: int
    """The first of these vertices."""
    columns: dict[int, Ids]
    """What follows from each, as far as it is wanted, …"""
    there: NDArray[np.bool_]
    """… and whether all is there."""
    numbers: NDArray[np.int32] | None = None
    """Numbers of what is wanted, -1 where not all is there, …"""
    first: int = 0
    """… the vertex that is number 0, …"""
    count: int = 0
    """… and how many numbers there are."""

    @classmethod
    def of(cls, plan: PhysicalPlan, scan: FunctionalScan, run: _Run) -> _Known | None:
        """Return what is known of a scan's targets; None where there are too many of them, or pairs are checked."""
        neighbours = scan.partition.contiguous().neighbours
        if not scan.directed or scan.checks or not len(neighbours):
            return None
        least, most = int(neighbours.min()), int(neighbours.max())
        if _TIMES * (most - least + 1) > scan.edges:
            return None
        found, there = run.tree(scan.ends[1], np.arange(least, most + 1, dtype=neighbours.dtype))
        columns = {vertex: ids for vertex, ids in found.items() if scan.vertices[vertex] in plan.outputs}
        if plan.duplicates == "count" and len(columns) <= 1:
            ids = next(iter(columns.values()), np.zeros(len(there), np.int64))
            some = ids[there]
            first = int(some.min(initial=np.iinfo(some.dtype).max if len(some) else 0))
            count = int(some.max(initial=first)) - first + 1
            if count <= _NUMBERS:
                numbers = np.where(there, ids - first, -1).astype(np.int32)
                return cls(run, least, columns, there, numbers, first, count)
        return cls(run, least, columns, there)

    def rows_of(self, edges: int, begin: int) -> list[Block]:
        """Return the rows of the sources whose edges begin among so many."""
        from graphdb.execute import functional_kernels as kernels

        vertices, starts, neighbours = self.run.sources.runs(begin, begin + edges)
        if not len(vertices):
            return []
        columns, there = self.run.tree(self.run.scan.ends[0], vertices)
        most = int(starts[-1] - starts[0])
        source, target = np.empty(most, np.int64), np.empty(most, np.int64)
        matches: NDArray[Any] | None = None
        given = starts, there, neighbours, self.least
        if self.numbers is None:
            rows = kernels.pairs_left(*given, self.there, source, target)
            target = target[:rows]
            others = {vertex: ids[target] for vertex, ids in self.columns.items()}
            matches = np.broadcast_to(np.int64(1), rows) if self.run.counts else None
        else:
            counts = np.empty(most, np.int64)
            rows = kernels.pairs_counted(*given, self.numbers, np.zeros(self.count, np.int64), source, target, counts)
            others = {vertex: (target[:rows] + self.first).astype(ids.dtype) for vertex, ids in self.columns.items()}
            matches = counts[:rows]
        columns = {vertex: columns[vertex][source[:rows]] for vertex in columns if vertex in self.run.wanted} | others
        wanted = self.run.wanted
        return [Block({name: columns[v] for v, name in wanted.items()}, rows, matches)] if rows else []


class _Sources:
    """The edges of a partition as pairs, a piece at a time."""

    def __init__(self, partition: Partition) -> None:
        known = partition.contiguous()
        self._neighbours = known.neighbours
        self._vertices: Ids | None = None
        self._keys = known.keys
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

    def runs(self, begin: int, end: int) -> tuple[Ids, NDArray[np.int64], Ids]:
        """Return the sources whose first edge is among some, where their targets begin and the last of them end (int64
        [sources + 1]), and the targets of all.
        """
        first, last = np.searchsorted(self._starts, [begin, min(end, len(self._neighbours))])
        if self._vertices is not None:
            return self._vertices[first:last], self._starts[first : last + 1], self._neighbours
        low, high = np.searchsorted(self._keys, [first, last])
        vertices = self._keys[low:high]
        ends = self._starts[vertices[-1:] + 1]
        return vertices.astype(self._neighbours.dtype), np.append(self._starts[vertices], ends), self._neighbours


def _marks(candidates: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of the first vertices are candidates; the last one stands for all others, which are none."""
    marks = np.zeros(int(candidates.max(initial=-1)) + 2, bool)
    marks[candidates] = True
    return marks
