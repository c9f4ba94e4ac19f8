"""Cheapest paths by Dijkstra's algorithm: between pairs of vertices, or from each of some to all that are wanted.

Where several edges lead from one vertex to the next each is an edge of its own.  A path back to its own start is
searched for from each of the start's edges, which the way back must not take again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import ExecutionError
from graphdb.common.lazy import lazy
from graphdb.execute.paths.path_rows import PathRows
from graphdb.execute.paths.traversal import BUDGET
from graphdb.plan.executor import Control
from graphdb.plan.paths import MAY_GO_BACK, Ends, PathStep, Weighted
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.graph.pcsr import stable_order

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_EXACT = 2.0**53
_ROOM = 1 << 16
"""Numbers that all cheapest paths between two vertices are written to at a time."""
_NONE = np.empty(0, np.bool_)


@dataclass(frozen=True, slots=True)
class _Sorted:
    """A graph in compressed rows: the edges of vertex ``v`` are ``order[row[v]:row[v + 1]]``."""

    row: Ints
    order: Ints
    heads: Ints
    tails: Ints

    @classmethod
    def of(cls, tails: Ints, heads: Ints, vertices: int) -> _Sorted:
        """Sort edges by where they begin: int64 [edges] ends."""
        order = stable_order(tails, vertices)
        row = np.append(0, np.cumsum(np.bincount(tails, minlength=vertices))).astype(np.int64)
        return cls(row, order, heads[order], tails[order])


@dataclass(frozen=True, slots=True)
class _Rows(_Sorted):
    """The same with the costs of the edges, float64 [edges] in their order."""

    costs: Floats

    @classmethod
    def weighted(cls, edges: _Sorted, costs: Floats) -> _Rows:
        """Add costs that are in the order of the edges before these were sorted."""
        return cls(edges.row, edges.order, edges.heads, edges.tails, costs[edges.order])


class _Shape:
    """Edges as a search reads them, between vertices that are numbered from 0 on."""

    def __init__(self, ends: Ends) -> None:
        most = max((int(ids.max()) for ids in (ends.left, ends.right) if len(ids)), default=-1)
        places = np.zeros(most + 1, np.int64)
        places[ends.left] = places[ends.right] = 1
        self.vertices = np.flatnonzero(places)
        places[self.vertices] = np.arange(len(self.vertices))
        self._ends = places[ends.left], places[ends.right]

    @lazy
    def away(self) -> _Sorted:
        left, right = self._ends
        return _Sorted.of(left, right, len(self.vertices))

    @lazy
    def back(self) -> _Sorted:
        left, right = self._ends
        return _Sorted.of(right, left, len(self.vertices))


class _Graph:
    """The same with costs."""

    def __init__(self, weighted: Weighted) -> None:
        self._shape: _Shape = weighted.ends.derive(_Shape)
        self._costs = weighted.costs
        self.vertices = self._shape.vertices

    @lazy
    def away(self) -> _Rows:
        return _Rows.weighted(self._shape.away, self._costs)

    @lazy
    def back(self) -> _Rows:
        return _Rows.weighted(self._shape.back, self._costs)


@dataclass(slots=True)
class _Search:
    """One search under way: its vertices' least costs, and the edge that each was reached by."""

    rows: _Rows
    control: Control
    distances: Floats = field(init=False)
    before: Ints = field(init=False)
    _settled: NDArray[np.bool_] = field(init=False)
    _heap: tuple[Floats, Ints] = field(init=False)

    def __post_init__(self) -> None:
        vertices, edges = len(self.rows.row) - 1, len(self.rows.heads)
        self.distances, self.before = np.empty(vertices), np.empty(vertices, np.int64)
        self._settled = np.empty(vertices, np.bool_)
        self._heap = np.empty(edges + 1), np.empty(edges + 1, np.int64)

    def start(self, vertex: int, wanted: NDArray[np.bool_], missing: int, banned: int = -1) -> None:
        """Search from a vertex until so many that are wanted are settled, or to the end."""
        from graphdb.execute.paths.dijkstra_kernels import dijkstra

        self.distances.fill(np.inf)
        self.before.fill(-1)
        self._settled.fill(False)
        keys, vertices = self._heap
        keys[0], vertices[0], self.distances[vertex] = 0.0, vertex, 0.0
        state, limit, done = np.array([1, missing], np.int64), np.array([np.inf]), False
        rows = self.rows
        while not done:
            self.control.check()
            done = dijkstra(
                rows.row,
                rows.heads,
                rows.costs,
                banned,
                self.distances,
                self.before,
                self._settled,
                keys,
                vertices,
                state,
                wanted,
                limit,
                BUDGET,
            )

    def settled(self, ends: Ints) -> Ints:
        """Return those of some vertices (int64) whose least costs are final."""
        return ends[self._settled[ends]]


class CheapestPaths:
    """Runs one step over weighted edges.

    Parameters
    ----------
    weighted
        The edges that match, as the step's path goes along them.
    """

    def __init__(self, step: PathStep, weighted: Weighted, control: Control) -> None:
        self._step, self._control = step, control
        self._graph: _Graph = weighted.derive(_Graph)
        self._vertices, self._codes = self._graph.vertices, weighted.ends.codes

    @lazy
    def _away(self) -> _Search:
        return _Search(self._graph.away, self._control)

    @lazy
    def _back(self) -> _Search:
        return _Search(self._graph.back, self._control)

    def between(self, sources: Ints, targets: Ints) -> Iterator[PathRows]:
        """Yield the paths between pairs of ends: int64 [pairs] each, the pairs all different."""
        backwards = len(unique(targets)) < len(unique(sources))
        starts, ends = (targets, sources) if backwards else (sources, targets)
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        runs = np.append(np.flatnonzero(np.diff(starts, prepend=-1)), len(starts))
        for begin, end in zip(runs[:-1].tolist(), runs[1:].tolist(), strict=True):
            yield from self._from(int(starts[begin]), ends[begin:end], backwards)

    def across(self, sources: Ints | None, targets: Ints | None) -> Iterator[PathRows]:
        """Yield the paths from each of some vertices to each of others: int64, unique; not both None, for all."""
        backwards = sources is None or (targets is not None and len(targets) < len(sources))
        starts, ends = (targets, sources) if backwards else (sources, targets)
        assert starts is not None
        for start in starts.tolist():
            yield from self._from(start, ends, backwards)

    def _from(self, start: int, ends: Ints | None, backwards: bool) -> Iterator[PathRows]:
        """Yield the paths from (or to) a vertex, to (or from) others; None for all."""
        own = ends is None or bool((ends == start).any())
        at = int(np.searchsorted(self._vertices, start))
        if at == len(self._vertices) or self._vertices[at] != start:
            at = -1
        if own and self._step.low == 0 and self._step.groups and at >= 0:
            self._away.start(at, self._only(at), 1)
            yield from self._every(at, at)
        elif own and self._step.low == 0:
            yield self._rows([start], [start], np.zeros(1), [np.empty(0, np.int64)], [np.array([start])])
        if at < 0:
            return
        if own and self._step.low > 0 and self._step.mode != "ACYCLIC":
            yield from self._around(at)
        there = np.arange(len(self._vertices)) if ends is None else self._known(ends)
        there = there[there != at]
        wanted = _NONE
        if ends is not None:
            wanted = np.zeros(len(self._vertices), np.bool_)
            wanted[there] = True
        search = self._back if backwards else self._away
        if not len(there):
            return
        search.start(at, wanted, len(there))
        there = search.settled(there)
        if self._step.groups:
            for end in there.tolist():
                source, target = (end, at) if backwards else (at, end)
                if backwards:
                    self._away.start(source, self._only(target), 1)
                yield from self._every(source, target)
        elif len(there):
            yield self._read(search, at, there, backwards)

    def _known(self, ends: Ints) -> Ints:
        """Return which vertices of the weighted edges some are."""
        at = np.searchsorted(self._vertices, ends)
        at[at == len(self._vertices)] = 0
        return unique(at[self._vertices[at] == ends])

    def _only(self, vertex: int) -> NDArray[np.bool_]:
        wanted = np.zeros(len(self._vertices), np.bool_)
        wanted[vertex] = True
        return wanted

    def _read(self, search: _Search, start: int, ends: Ints, backwards: bool) -> PathRows:
        """Return the one path to each of some vertices."""
        from graphdb.execute.paths.dijkstra_kernels import lengths_of, read_paths

        lengths = np.empty(len(ends), np.int64)
        lengths_of(ends, search.before, search.rows.tails, lengths)
        starts = np.append(0, np.cumsum(lengths + 1))
        near, far = np.full(len(ends), self._vertices[start]), self._vertices[ends]
        sources, targets = (far, near) if backwards else (near, far)
        costs = self._exact(search.distances[ends])
        if not self._step.materialized:
            return PathRows(sources, targets, lengths, costs=costs)
        walks, edges = np.empty(int(starts[-1]), np.int64), np.empty(int(starts[-1]) - len(ends), np.int64)
        read_paths(ends, search.before, search.rows.tails, starts, backwards, walks, edges)
        codes = self._codes[search.rows.order[edges]]
        return PathRows(sources, targets, lengths, None, starts, self._vertices[walks], codes, costs=costs)

    def _exact(self, costs: Floats) -> Floats:
        """Return the costs of paths, which are exact where those of edges are integers."""
        if self._step.cost is not None and self._step.cost.integral and len(costs) and costs.max() >= _EXACT:
            raise ExecutionError("the cost of a path is too large to be exact")
        if len(costs) and np.isinf(costs.max()):
            raise ExecutionError("the cost of a path is out of range")
        return costs

    # --- all cheapest paths, and those back to their start

    def _every(self, source: int, target: int, first: int = -1) -> Iterator[PathRows]:
        """Yield all cheapest paths between two vertices, from the first of which the search away has come.

        With ``first`` an edge that leads to ``source`` stands before each, and is not taken again.
        """
        from graphdb.execute.paths import dijkstra_kernels as kernels
        from graphdb.execute.paths import enumeration_kernels as modes

        mode = {"WALK": modes.TRAIL, "TRAIL": modes.TRAIL, "SIMPLE": modes.SIMPLE, "ACYCLIC": modes.ACYCLIC}
        back, distances = self._back.rows, self._away.distances
        cost, depth = float(distances[target]), 64
        done, state, found = False, np.zeros(3, np.int64), np.empty(_ROOM, np.int64)
        vertices, taken, places, passed = (np.full(depth, -1, np.int64) for _ in range(4))
        vertices[0] = target
        codes = self._codes[back.order] ^ 1
        while not done:
            self._control.check()
            done = kernels.tight_paths(
                back.row,
                back.heads,
                back.costs,
                codes,
                distances,
                source,
                mode.get(self._step.mode, modes.SIMPLE_WALK),
                vertices,
                taken,
                places,
                passed,
                state,
                found,
                BUDGET,
            )
            if state[2]:
                more = np.full(len(vertices), -1, np.int64)
                vertices, taken, places, passed = (np.append(each, more) for each in (vertices, taken, places, passed))
                state[2] = 0
            elif not done and state[1] + len(vertices) > len(found):
                if not state[1]:
                    found = np.empty(2 * len(found), np.int64)
                yield from self._written(found[: int(state[1])], source, target, cost, first)
                state[1] = 0
        yield from self._written(found[: int(state[1])], source, target, cost, first)

    def _written(self, found: Ints, source: int, target: int, cost: float, first: int) -> Iterator[PathRows]:
        """Yield paths that were written one after the other."""
        rows, begun, at = self._back.rows, self._away.rows, 0
        beside = [begun.order[first], begun.order[self._twin(first)]] if first >= 0 else []
        codes: list[Ints] = []
        walks: list[Ints] = []
        while at < len(found):
            length = int(found[at])
            edges = found[at + 1 : at + 1 + length][::-1]
            at += 1 + length
            own = rows.order[edges]
            walk = np.append(self._vertices[rows.heads[edges]], self._vertices[target])
            if first >= 0:
                if np.isin(own, beside[: 2 if self._twin(first) >= 0 else 1]).any():
                    continue
                own = np.append(begun.order[first], own)
                walk = np.append(self._vertices[begun.tails[first]], walk)
            codes.append(self._codes[own])
            walks.append(walk)
        if walks:
            ends = [int(walk[0]) for walk in walks], [int(walk[-1]) for walk in walks]
            total = cost + (float(self._away.rows.costs[first]) if first >= 0 else 0.0)
            yield self._rows(*ends, np.full(len(walks), total), codes, walks)

    def _rows(
        self, sources: list[int], targets: list[int], costs: Floats, codes: list[Ints], walks: list[Ints]
    ) -> PathRows:
        lengths = np.array([len(each) for each in codes], np.int64)
        ends = np.array(sources, np.int64), np.array(targets, np.int64)
        costs = self._exact(costs)
        if not self._step.materialized:
            return PathRows(*ends, lengths, costs=costs)
        starts = np.append(0, np.cumsum(lengths + 1))
        return PathRows(*ends, lengths, None, starts, np.concatenate(walks), np.concatenate(codes), costs=costs)

    def _around(self, vertex: int) -> Iterator[PathRows]:
        """Yield the cheapest path back to where it began, or all of them."""
        rows, search, only = self._away.rows, self._away, self._only(vertex)
        best: list[tuple[float, int]] = []
        for edge in range(int(rows.row[vertex]), int(rows.row[vertex + 1])):
            total = float(rows.costs[edge])
            if best and total > best[0][0]:
                continue
            if int(rows.heads[edge]) != vertex:
                search.start(int(rows.heads[edge]), only, 1, self._twin(edge))
                total += float(search.distances[vertex])
            if np.isfinite(total) and (not best or total <= best[0][0]):
                best = [*(best if best and best[0][0] == total else []), (total, edge)]
        for total, edge in best if self._step.groups else best[:1]:
            head = int(rows.heads[edge])
            here = self._vertices[vertex]
            if head == vertex:
                loop = self._codes[rows.order[edge : edge + 1]]
                yield self._rows([here], [here], np.array([total]), [loop], [np.array([here, here])])
                continue
            search.start(head, only, 1, self._twin(edge))
            if self._step.groups:
                yield from self._every(head, vertex, edge)
                continue
            way = self._read(search, head, np.array([vertex]), False)
            codes = np.append(self._codes[rows.order[edge]], way.codes)
            walk = np.append(here, way.walks)
            if not self._step.materialized:
                codes, walk = np.zeros(int(way.lengths[0]) + 1, np.int64), walk
            yield self._rows([here], [here], np.array([total]), [codes], [walk])

    def _twin(self, edge: int) -> int:
        """Return the way back over an edge, which a path may not take beside it; -1 where there is none, or it may."""
        if self._step.mode in MAY_GO_BACK:
            return -1
        rows, code = self._away.rows, self._codes[self._away.rows.order[edge]] ^ 1
        tail, head = int(rows.tails[edge]), int(rows.heads[edge])
        here = np.arange(int(rows.row[head]), int(rows.row[head + 1]))
        same = here[(rows.heads[here] == tail) & (self._codes[rows.order[here]] == code)]
        return int(same[0]) if len(same) else -1
