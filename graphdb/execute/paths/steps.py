"""Shortest paths for a step of a plan: many pairs of ends, or all ends that some vertices reach, as arrays.

Between two known ends a search goes from both until they meet; from one end it is breadth first to all that is wanted.
Here is decided which of the two it is, and what a vertex has to do with itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.paths.bfs import BreadthFirstSearch
from graphdb.execute.paths.bidirectional_bfs import shortest_paths_between
from graphdb.execute.paths.path_rows import BLOCK, PathRows, gathered
from graphdb.execute.paths.traversal import BUDGET, Traversal
from graphdb.plan.executor import Control
from graphdb.plan.paths import EVERY, MAY_GO_BACK, PathStep
from graphdb.storage.arrays.sorted_sets import both, unique
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

_SHARED = 8
"""Pairs with an end in common from which one search from that end does for all of them."""


class Paths:
    """Runs one step over a data graph."""

    def __init__(self, graph: DataGraph, step: PathStep, control: Control) -> None:
        self._step, self._graph, self._control = step, graph, control
        self._traversal = Traversal.of(graph, step, control)

    # --- the two ways in

    def between(self, sources: Ints, targets: Ints) -> Iterator[PathRows]:
        """Yield the paths between pairs of ends: int64 [pairs] each, the pairs all different."""
        self._begin(sources, targets)
        return self._folded(gathered(self._between(sources, targets + self._traversal.last)))

    def across(self, sources: Ints | None, targets: Ints | None) -> Iterator[PathRows]:
        """Yield the paths from each of some vertices to each of others: int64, unique; not both None, for all."""
        self._begin(sources, targets)
        return self._folded(gathered(self._across(*self._ends(sources, targets))))

    def reached(self, sources: Ints | None, targets: Ints | None) -> PathRows:
        """Return the ends that are wanted (``step.only``) and that any of the others reaches, each once.

        Both are int64, or None for all.  The lengths and the other ends that come with them mean nothing.
        """
        backwards = self._step.only == "source"
        self._begin(sources, targets)
        sources, targets = self._ends(sources, targets)
        starts, ends = (targets, sources) if backwards else (sources, targets)
        assert starts is not None
        search = BreadthFirstSearch(self._traversal, self._traversal.back if backwards else self._traversal.away)
        search.start(starts, np.empty(0, np.bool_), 0)
        found = search.reached
        if self._step.apart:
            found = found[found % self._traversal.vertices != starts % self._traversal.vertices]
        elif self._step.low == 0:
            found = np.concatenate([starts, found])
        else:
            found = np.concatenate([self._reached_again(search, starts), found])
        found = np.sort(found) if ends is None else both(unique(found), unique(ends))
        found = found.astype(np.int64)
        found %= self._traversal.vertices
        return PathRows(found, found, np.zeros(len(found), np.int64))

    def every(self, sources: Ints | None, targets: Ints | None) -> Iterator[PathRows]:
        """Yield all paths from some vertices (None: any that has one) to others (None: wherever they lead).

        Both are int64, unique.
        """
        self._begin(sources, targets)
        sources, targets = self._ends(sources, targets)
        if sources is not None and targets is not None and len(sources) < len(targets):
            there = BreadthFirstSearch(self._traversal, self._traversal.away)
            there.start(sources, np.empty(0, np.bool_), 0)
            targets = both(unique(np.concatenate([there.starts, there.reached])), unique(targets))
        search = BreadthFirstSearch(self._traversal, self._traversal.back)
        if targets is None:
            search.depths[:] = 0
            assert sources is not None
        else:
            search.start(targets, np.empty(0, np.bool_), 0)
        starts = np.concatenate([search.starts, search.reached]) if sources is None else sources
        return self._folded(gathered(search.every(starts)))

    # --- from vertices to nodes and back

    def _begin(self, *ends: Ints | None) -> None:
        """Search between some vertices from now on."""
        self._traversal = Traversal.of(self._graph, self._step, self._control, *ends)

    def _ends(self, sources: Ints | None, targets: Ints | None) -> tuple[Ints | None, Ints | None]:
        """Return the nodes where paths start and end; None for any, where each vertex is one."""
        if not self._traversal.last:
            return sources, targets
        every = np.arange(self._traversal.vertices)
        return every if sources is None else sources, (every if targets is None else targets) + self._traversal.last

    def _folded(self, blocks: Iterator[PathRows]) -> Iterator[PathRows]:
        """Yield rows with vertices in the place of nodes, without what leads to the last state."""
        return map(self._unstated, blocks) if self._traversal.last else blocks

    def _unstated(self, found: PathRows) -> PathRows:
        ends = replace(found, targets=found.targets - self._traversal.last, lengths=found.lengths - 1)
        if not self._step.materialized:
            return ends
        assert self._step.along is not None
        last = found.starts[1:] - 1
        pieces = np.array([*self._step.along.pieces, -1])[found.walks // self._traversal.vertices]
        cuts = []
        for cut in range(self._step.along.cuts):
            before = np.append(0, np.cumsum((pieces >= 0) & (pieces <= cut)))
            cuts.append(before[found.starts[1:]] - before[found.starts[:-1]])
        return replace(
            ends,
            starts=found.starts - np.arange(len(found.starts)),
            walks=np.delete(found.walks, last) % self._traversal.vertices,
            codes=np.delete(found.codes, last - np.arange(1, len(last) + 1)),
            cuts=tuple(cuts),
        )

    def _reached_again(self, search: BreadthFirstSearch, starts: Ints) -> Ints:
        """Return those starts of a search that are reached, too: from another one, or on a way round."""
        step, traversal = self._step, self._traversal
        before = traversal.away if step.only == "source" else traversal.back
        found: list[int] = []
        if step.mode != "ACYCLIC" and (step.direction != "both" or step.mode in MAY_GO_BACK):
            for start in starts.tolist():
                depths = search.depths[before.neighbours_of(start)]
                if ((depths >= 0) & (depths < traversal.longest)).any():
                    found.append(start)
            return np.array(found, np.int64)
        alone = BreadthFirstSearch(traversal, before)
        others = np.zeros(traversal.nodes, np.bool_)
        others[starts] = True
        for start in starts.tolist():
            others[start] = False
            alone.start(start, others, min(len(starts) - 1, 1))
            around = () if step.mode == "ACYCLIC" else self._same(start)
            if others[alone.reached].any() or any(len(rows) > 0 for rows in around):
                found.append(start)
            others[start] = True
        return np.array(found, np.int64)

    def _across(self, sources: Ints | None, targets: Ints | None) -> Iterator[PathRows]:
        assert self._step.single
        backwards = sources is None or (targets is not None and len(targets) < len(sources))
        starts, ends = (targets, sources) if backwards else (sources, targets)
        assert starts is not None
        wanted = np.empty(0, np.bool_)
        if ends is not None:
            wanted = np.zeros(self._traversal.nodes, np.bool_)
            wanted[ends] = True
        counted = self._step.materialized or self._step.groups
        if not counted and (self._step.direction != "both" or self._step.low == 0):
            yield from self._each(starts, wanted, 0 if ends is None else len(ends), backwards)
            return
        search = BreadthFirstSearch(self._traversal, self._traversal.back if backwards else self._traversal.away)
        for start in starts.tolist():
            search.start(start, wanted, 0 if ends is None else len(ends) - int(wanted[start]))
            reached = search.reached
            if ends is not None:
                reached = reached[wanted[reached]]
            if ends is None or wanted[start]:
                yield from self._same(start)
            yield from search.found(start, reached, backwards)

    def _each(self, starts: Ints, wanted: NDArray[np.bool_], members: int, backwards: bool) -> Iterator[PathRows]:
        """Search from each of some vertices for what is wanted, without coming back to Python in between."""
        from graphdb.execute.paths.bfs_kernels import bfs_each

        step, nodes = self._step, self._traversal.nodes
        partition = self._traversal.back if backwards else self._traversal.away
        depths, queue = np.full(nodes, -1, np.int32), np.empty(nodes, np.int64)
        state, counts = np.zeros(6, np.int64), np.zeros(len(starts), np.int64)
        done = False
        while not done:
            ends, lengths = np.empty(nodes + BLOCK, np.int64), np.empty(nodes + BLOCK, np.int32)
            first, state[4] = int(state[0]), 0
            while not done and state[4] < BLOCK:
                self._traversal.control.check()
                done = bfs_each(
                    np.array(partition.row, np.int64),
                    partition.neighbours,
                    starts,
                    step.low,
                    step.mode != "ACYCLIC",
                    self._traversal.longest,
                    wanted,
                    members,
                    depths,
                    queue,
                    state,
                    counts,
                    ends,
                    lengths,
                    BUDGET,
                )
            here = slice(first, int(state[0]))
            near, far = np.repeat(starts[here], counts[here]), ends[: int(state[4])].copy()
            sources, targets = (far, near) if backwards else (near, far)
            yield PathRows(sources, targets, lengths[: len(far)].astype(np.int64))

    def _between(self, sources: Ints, targets: Ints) -> Iterator[PathRows]:
        step = self._step
        if step.count == EVERY and (functional := self._functional()):
            yield from self._every_between(sources, targets, functional == "in")
            return
        same = sources == targets
        if same.any():
            for vertex in sources[same].tolist():
                yield from self._same(vertex)
            sources, targets = sources[~same], targets[~same]
        if not len(sources):
            return
        alone = step.single and not step.groups
        several = [1, 1] if alone and len(sources) < _SHARED else [len(unique(ends)) for ends in (sources, targets)]
        if alone and len(sources) < _SHARED * min(several):
            yield from shortest_paths_between(self._traversal, sources, targets)
            return
        backwards = several[1] < several[0] or not step.single
        starts, ends = (targets, sources) if backwards else (sources, targets)
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        runs = np.append(np.flatnonzero(np.diff(starts, prepend=-1)), len(starts))
        search = BreadthFirstSearch(self._traversal, self._traversal.back if backwards else self._traversal.away)
        wanted = np.zeros(self._traversal.nodes if step.single else 0, np.bool_)
        for begin, end in zip(runs[:-1].tolist(), runs[1:].tolist(), strict=True):
            mine = ends[begin:end]
            if not step.single:
                search.start(int(starts[begin]), wanted, 0)
                if step.count == EVERY:
                    yield from search.every(mine)
                    continue
                for source in mine.tolist():
                    yield from search.deepened(source)
                continue
            wanted[mine] = True
            search.start(int(starts[begin]), wanted, len(mine))
            yield from search.found(int(starts[begin]), mine, backwards)
            wanted[mine] = False

    def _functional(self) -> Literal["", "out", "in"]:
        """Return in which direction each node has one neighbour at most: there walks do not branch."""
        ways: tuple[tuple[Literal["out", "in"], Partition], ...] = (
            ("out", self._traversal.away),
            ("in", self._traversal.back),
        )
        return next((way for way, partition in ways if partition.lengths().max(initial=0) <= 1), "")

    def _every_between(self, sources: Ints, targets: Ints, backwards: bool) -> Iterator[PathRows]:
        """Yield all paths between pairs of ends; from the sources, or ``backwards`` from the targets, none branches."""
        starts, ends = (targets, sources) if backwards else (sources, targets)
        search = BreadthFirstSearch(self._traversal, self._traversal.away if backwards else self._traversal.back)
        search.start(unique(ends), np.empty(0, np.bool_), 0)
        pairs = np.sort(sources * self._traversal.nodes + targets)
        for rows in search.every(unique(starts), backwards):
            found = rows.sources * self._traversal.nodes + rows.targets
            places = np.minimum(np.searchsorted(pairs, found), len(pairs) - 1)
            yield rows.only(pairs[places] == found)

    def _same(self, vertex: int) -> Iterator[PathRows]:
        """Yield the paths from a vertex to itself: of no edge, or the shortest ways round."""
        step, alone = self._step, np.array([vertex])
        if not step.single:
            search = BreadthFirstSearch(self._traversal, self._traversal.back)
            search.start(vertex, np.empty(0, np.bool_), 0)
            yield from search.every(alone) if step.count == EVERY else search.deepened(vertex)
            return
        if step.low == 0:
            count = np.ones(1, np.int64) if step.groups and not step.materialized else None
            yield PathRows(alone, alone, np.zeros(1, np.int64), count, np.array([0, 1]), alone)
            return
        length = self._way_round(vertex)
        if length is None or length > self._traversal.longest:
            return
        if not step.materialized and not step.groups:
            yield PathRows(alone, alone, np.array([length]))
            return
        search = BreadthFirstSearch(self._traversal, self._traversal.back)
        search.start(vertex, np.empty(0, np.bool_), 0, length)
        yield from search.of_length(vertex, length, None if step.groups else 1)

    def _way_round(self, vertex: int) -> int | None:
        """The length of the shortest path back to where it began; None where there is none."""
        from graphdb.execute.paths.shortest_cycles import way_round

        step, traversal = self._step, self._traversal
        if step.mode == "ACYCLIC":
            return None
        near = traversal.away.neighbours_of(vertex)
        if vertex in near:
            return 1
        if step.direction == "both":
            if step.mode in MAY_GO_BACK:
                return 2 if len(near) else None
            if not traversal.away.simple and any(len(traversal.away.codes_of(vertex, int(x))) > 1 for x in near):
                return 2
            return way_round(traversal.away, vertex, traversal.nodes, step.high, traversal.control)
        # Back from the vertex, to the nearest of those that it leads to.
        wanted = np.zeros(traversal.nodes, np.bool_)
        wanted[near] = True
        search = BreadthFirstSearch(traversal, traversal.back)
        if len(near):
            search.start(vertex, wanted, 1)
        depths = search.depths[near]
        return int(depths[depths >= 0].min()) + 1 if (depths >= 0).any() else None
