"""Breadth-first search (BFS) from some vertices, and its results: lengths, paths, and numbers of paths.

Paths that are not the shortest (the second shortest, or the shortest of two edges or more) are found by iterative
deepening: all paths of one length after the other, pruned by their distance to the end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import ExecutionError
from graphdb.execute.paths.path_rows import PathRows, of_one_length
from graphdb.execute.paths.traversal import BUDGET, FAR, Traversal
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

_ROOM = 1 << 12
"""Paths that are materialized at a time, at least."""
_VERTICES = 1 << 20
"""Vertices of paths that are materialized at a time, where many starts have some."""
_EXACT = 2.0**53


class BreadthFirstSearch:
    """A breadth-first search from one vertex along a partition, one start after the other."""

    def __init__(self, traversal: Traversal, partition: Partition) -> None:
        self._traversal, self._partition = traversal, partition
        self._row = np.array(partition.row, np.int64)
        self.depths = np.full(traversal.nodes, -1, np.int32)
        self._before, self._queue = (np.empty(traversal.nodes, np.int64) for _ in range(2))
        self._started = self._tail = 0

    @property
    def starts(self) -> Ints:
        """Where it began."""
        return self._queue[: self._started]

    @property
    def reached(self) -> Ints:
        """The vertices that it has come to, but for the starts: nearest first."""
        return self._queue[self._started : self._tail]

    def start(self, start: int | Ints, wanted: NDArray[np.bool_], missing: int, longest: int = FAR) -> None:
        """Search from a vertex or several (int64) until so many that are wanted are found, or there are no more.

        ``wanted`` is a bool for each vertex, or empty for none.
        """
        from graphdb.execute.paths.bfs_kernels import bfs, forget

        forget(self.depths, self._queue, self._tail)
        starts = np.atleast_1d(np.asarray(start, np.int64))
        self._started = len(starts)
        self.depths[starts], self._queue[: len(starts)] = 0, starts
        state = np.array([0, len(starts), missing], np.int64)
        longest = min(longest, self._traversal.longest)
        ended = len(wanted) > 0 and missing == 0
        while not ended:
            self._traversal.control.check()
            ended = bfs(
                self._row,
                self._partition.neighbours,
                self.depths,
                self._before,
                self._queue,
                state,
                wanted,
                longest,
                BUDGET,
            )
        self._tail = int(state[1])

    def found(self, start: int, ends: Ints, backwards: bool) -> Iterator[PathRows]:
        """Yield the shortest paths between the start and some vertices (int64), where it has come to them."""
        step = self._traversal.step
        ends = ends[self.depths[ends] >= 0]
        lengths = self.depths[ends].astype(np.int64)
        if step.groups and step.materialized:
            yield from self._materialized(start, ends, backwards)
            return
        starts = np.full(len(ends), start)
        sources, targets = (ends, starts) if backwards else (starts, ends)
        if step.groups:
            yield PathRows(sources, targets, lengths, self._ways(start)[ends])
        elif not step.materialized:
            yield PathRows(sources, targets, lengths)
        else:
            yield self._read(PathRows(sources, targets, lengths), ends, backwards)

    def _read(self, found: PathRows, ends: Ints, backwards: bool) -> PathRows:
        from graphdb.execute.paths.bfs_kernels import read_back

        starts = np.append(0, np.cumsum(found.lengths + 1))
        walks = np.empty(int(starts[-1]), np.int64)
        read_back(self._before, ends, starts, walks)
        if backwards:
            at = np.repeat(starts[1:] + starts[:-1] - 1, found.lengths + 1) - np.arange(len(walks))
            walks = walks[at]
        return self._traversal.coded(found, starts, walks)

    def _ways(self, start: int) -> Ints:
        """How many shortest paths lead to each vertex."""
        from graphdb.execute.paths.bfs_kernels import count_ways

        ways = np.zeros(self._traversal.nodes)
        ways[start] = 1
        for at in range(0, self._tail, _ROOM):
            self._traversal.control.check()
            end = min(at + _ROOM, self._tail)
            count_ways(self._row, self._partition.neighbours, self.depths, self._queue, at, end, ways)
        if ways.max() >= _EXACT:
            raise ExecutionError("there are more shortest paths between two vertices than can be counted exactly")
        return ways.astype(np.int64)

    def _materialized(self, start: int, ends: Ints, backwards: bool) -> Iterator[PathRows]:
        """Yield all shortest paths, materialized from each end back to the start."""
        partition = self._traversal.away if backwards else self._traversal.back
        for length, alike in _by_length(ends, self.depths[ends]):
            for _, walks, edges in self._enumerated(partition, alike, length, np.zeros(len(alike), np.bool_)):
                if backwards:
                    yield of_one_length(walks, edges)
                else:
                    yield of_one_length(walks[:, ::-1], edges[:, ::-1] ^ 1)

    # --- paths of a given length to the start, which the search goes back from

    def of_length(self, source: int, length: int, most: int | None) -> Iterator[PathRows]:
        """Yield the paths of a length from a vertex to the start, at most so many."""
        step, longer = self._traversal.step, np.zeros(1, np.bool_)
        count = 0
        for found, walks, edges in self._enumerated(self._traversal.away, np.array([source]), length, longer, most):
            count += len(found)
            if step.materialized:
                yield of_one_length(walks, edges)
        self._longer = bool(longer[0]) or count == most
        if not step.materialized and count:
            ends = np.array([source]), self._queue[:1].copy()
            yield PathRows(*ends, np.array([length]), np.array([count]))

    def deepened(self, source: int) -> Iterator[PathRows]:
        """Yield the paths from a vertex to the start, shortest first, until the step has as many as it wants."""
        step, depth = self._traversal.step, int(self.depths[source])
        if depth < 0:
            return
        length, left = max(depth, step.low), step.count
        self._longer = True
        whole = step.groups or step.ties
        while left > 0 and self._longer and length <= self._traversal.longest:
            found = 0
            for rows in self.of_length(source, length, None if whole else left):
                found += len(rows) if rows.counts is None else int(rows.counts.sum())
                yield rows
            left -= min(found, 1) if step.groups else found
            length += 1

    def every(self, sources: Ints, backwards: bool = False) -> Iterator[PathRows]:
        """Yield all paths from some vertices (int64, unique) to the starts, or ``backwards`` from the starts to these:
        one length after the other, of all at once.
        """
        step = self._traversal.step
        partition = self._traversal.back if backwards else self._traversal.away
        left = sources[self.depths[sources] >= 0]
        length = step.low
        while len(left) and length <= self._traversal.longest:
            near = self.depths[left] <= length
            here = left[near]
            longer = np.zeros(len(here), np.bool_)
            for ends, walks, edges in self._enumerated(partition, here, length, longer):
                if backwards:
                    ends, walks, edges = ends[:, ::-1], walks[:, ::-1], edges[:, ::-1] ^ 1
                if step.materialized:
                    yield of_one_length(walks, edges)
                else:
                    yield PathRows(ends[:, 0].copy(), ends[:, 1].copy(), np.full(len(ends), length))
            left = np.concatenate([here[longer], left[~near]])
            length += 1

    _longer = True

    def _enumerated(
        self, partition: Partition, starts: Ints, length: int, longer: NDArray[np.bool_], most: int | None = None
    ) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield the paths of a length from some vertices to the search's starts, at most so many: their first and last
        nodes, and where the step is materialized all nodes and the codes of all edges.

        ``longer`` says in the end from which of ``starts`` longer paths may lead.
        """
        from graphdb.execute.paths import enumeration_kernels as kernels

        traversal = self._traversal
        mode = {"WALK": kernels.WALK, "TRAIL": kernels.TRAIL, "SIMPLE": kernels.SIMPLE, "ACYCLIC": kernels.ACYCLIC}
        mode["SIMPLE WALK"] = kernels.SIMPLE_WALK
        row, only = np.array(partition.row, np.int64), traversal.code(partition)
        nodes, vertices, codes = (np.empty(length + 1, np.int64) for _ in range(3))
        places, state = np.empty((length + 1, 3), np.int64), np.array([0, -1, 0])
        room = max(_ROOM, min(len(starts), _VERTICES // (length + 1)))
        room = room if most is None else min(most, room)
        whole = room if traversal.step.materialized else 0
        found = np.empty((room, 2), np.int64)
        walks, edges = np.empty((whole, length + 1), np.int64), np.empty((whole, length), np.int64)
        done = False
        while not done and (most is None or most > 0):
            traversal.control.check()
            done = kernels.enumerate_paths(
                row,
                partition.neighbours,
                only,
                self.depths,
                length,
                mode[traversal.step.mode],
                traversal.vertices,
                starts,
                longer,
                nodes,
                vertices,
                codes,
                places,
                state,
                found,
                walks,
                edges,
                BUDGET,
            )
            full = int(state[kernels.FOUND])
            if full and (done or full == room):
                if most is not None:
                    full = min(full, most)
                    most -= full
                yield found[:full].copy(), walks[:full].copy(), edges[:full].copy()
                state[kernels.FOUND] = 0


def _by_length(ends: Ints, lengths: NDArray[np.int32]) -> Iterator[tuple[int, Ints]]:
    """Yield each length with those of some vertices that have it."""
    for length in unique(lengths).tolist():
        yield length, ends[lengths == length]
