"""Which ends paths of any length have that a batch adds or takes away.

A path that comes has an edge that came, or a vertex of which a fact changed, and one that goes has such that went: its
first vertex reaches that, in the graph of before or of now, and from there its last vertex is reached.  So two
searches, backward and forward over the edges of both graphs, find the first and the last vertices of all such paths,
and others; whether trails, walks or simple paths are asked for does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar import syntax as ast
from graphdb.incremental.changes import NO_VERTICES
from graphdb.live.matches.far import vertex
from graphdb.live.matches.following import Following, Former
from graphdb.live.matches.matching import Batch, Take
from graphdb.live.matches.required import Reached
from graphdb.storage.arrays.small_joins import distinct
from graphdb.storage.arrays.sorted_sets import both, unique
from graphdb.storage.graph.pcsr import OPPOSITE, Direction

if TYPE_CHECKING:
    from graphdb.live.engine import Engine
    from graphdb.live.matches.delta import DeltaQuery, Net
    from graphdb.relational.snapshot import Snapshot
    from graphdb.storage.graph.data_graph import DataGraph

Ints = NDArray[np.int64]
Labels = tuple[int, ...] | None

MOST = 20_000
"""Vertices that a search may find: an end of more may be any vertex."""
_MOST_EDGES = 50 * MOST
"""Edges of the vertices that a search has found last."""
_ANY = -1
"""In the place of the vertices of an end, of which there are too many."""


class Everywhere(Exception):
    """A batch's changes are reached from very many vertices, and reach very many."""


class Reaching(Following):
    """Follows the ends of paths of any length of a query, which is a part of a ``whole``."""

    def __init__(self, reached: Reached, whole: ast.Query | ast.Composite, text: str) -> None:
        super().__init__(reached.far.steps(whole.span), whole, text)
        self.reached = reached
        self.names = [name for name in dict.fromkeys((reached.first, reached.last)) if name is not None]

    @property
    def ranges(self) -> bool:
        """See :attr:`.Following.ranges`."""
        return self.reached.far.may_be_empty

    def prepare(self, engine: Engine, snapshot: Snapshot) -> None:
        """Do nothing: it searches the graph."""

    def batch_of(self, net: Net, read: Ints, snapshot: Snapshot, resources: int) -> Batch:
        """Return a batch: edges that came, went, or have other rows of single edges, and vertices of other facts."""
        assert self.delta is not None
        return Batch(*self.delta.sides(net), self.delta.written(net), NO_VERTICES, read, False)

    def named(self, rows: Ints) -> dict[str, Ints]:
        """Return the vertices that ends have by their names, of what :meth:`find` hands over."""
        found: dict[str, Ints] = {}
        for name, ids in zip((self.reached.first, self.reached.last), rows.T, strict=True):
            if name is not None and len(ids) and ids[0] != _ANY:
                found[name] = both(found[name], unique(ids)) if name in found else unique(ids)
        return found

    def find(
        self,
        batch: Batch,
        snapshot: Snapshot,
        former: Former,
        engine: Engine,
        take: Take,
        check: Callable[[], None],
        anew: float = math.inf,
    ) -> None:
        """Hand over the ends of paths that a batch adds or takes away, and of others: int64 [most, 2].

        A column has the first ends, the other one the last ones, in any order and some of them often; or -1 for any.

        Raises
        ------
        Everywhere
            Both may be any.
        """
        assert self.delta is not None
        steps = _steps(self.delta)
        edges = distinct(np.concatenate([batch.gone, batch.come, batch.around]))
        away = _Search(snapshot.graph, steps, edges, check)
        back = _Search(snapshot.graph, [step.reversed for step in steps], edges, check)
        read = batch.read
        if not self.ranges:
            read = read[away.leave(read) | back.leave(read)]
        starts, ends = (np.concatenate([search.sources, read]) for search in (away, back))
        if not len(starts):
            return
        first, last = back.reached(starts), away.reached(ends)
        rows = np.full((max(1 if ids is None else len(ids) for ids in (first, last)), 2), _ANY, np.int64)
        for column, ids in enumerate((first, last)):
            if ids is not None:
                rows[:, column] = np.resize(ids, len(rows))
        if not self.named(rows):
            raise Everywhere("what changes reaches most vertices")
        take(rows, rows[:0])


@dataclass(frozen=True, slots=True)
class _Step:
    """A step of a path along edges of some labels; None for any."""

    labels: Labels
    direction: Direction

    @property
    def reversed(self) -> _Step:
        return _Step(self.labels, OPPOSITE[self.direction])


def _steps(delta: DeltaQuery) -> list[_Step]:
    """Return the steps of a path that goes along all edges of a pattern, each once."""
    places = {vertex(i): i for i in range(len(delta.pattern.vertices))}
    found = []
    for edge in delta.pattern.edges:
        begin, end = (places[delta.pattern.vertices[v].name] for v in (edge.source, edge.target))
        found.append(_Step(edge.labels, "both" if not edge.directed else "out" if begin < end else "in"))
    return [step for step in dict.fromkeys(found) if step.labels is None or step.labels]


class _Search:
    """Searches along steps, over a graph and ``changed`` edges of it or of the one before: int64 [edges, 3]."""

    def __init__(self, graph: DataGraph, steps: Sequence[_Step], changed: Ints, check: Callable[[], None]) -> None:
        self._graph, self._check = graph, check
        self._partitions = [graph.partition(step.labels, step.direction) for step in steps]
        pairs = [pair for step in steps for pair in _pairs(step, changed)]
        self._pairs = np.concatenate(pairs) if pairs else np.empty((0, 2), np.int64)

    @property
    def sources(self) -> Ints:
        """Where changed edges lead away from: not sorted."""
        return self._pairs[:, 0]

    def leave(self, vertices: Ints) -> NDArray[np.bool_]:
        """Return which of some sorted vertices have an edge that leads away."""
        found = np.isin(vertices, self._pairs[:, 0])
        there = vertices < self._graph.vertices
        for partition in self._partitions:
            found[there] |= partition.ranges_of(vertices[there])[1] > 0
        return found

    def reached(self, seeds: Ints) -> Ints | None:
        """Return the vertices that some reach, these among them; None for very many."""
        size = max(self._graph.vertices, int(self._pairs.max(initial=0)) + 1, int(seeds.max(initial=0)) + 1)
        seen, frontier = np.zeros(size, bool), unique(seeds)
        found, count = [frontier], len(frontier)
        seen[frontier] = True
        while len(frontier):
            self._check()
            if count > MOST:
                return None
            beyond = [self._pairs[np.isin(self._pairs[:, 0], frontier), 1]]
            there = frontier[frontier < self._graph.vertices]
            for partition in self._partitions:
                neighbours = partition.neighbours_of_all(there, _MOST_EDGES)
                if neighbours is None:
                    return None
                beyond.append(neighbours)
            frontier = unique(np.concatenate(beyond)).astype(np.int64)
            frontier = frontier[~seen[frontier]]
            seen[frontier] = True
            found.append(frontier)
            count += len(frontier)
        return np.concatenate(found)


def _pairs(step: _Step, triples: Ints) -> Iterator[Ints]:
    """Yield where a step leads over some triples: int64 [pairs, 2], from and to."""
    if step.labels is not None:
        triples = triples[np.isin(triples[:, 0], step.labels)]
    if step.direction != "in":
        yield triples[:, [1, 2]]
    if step.direction != "out":
        yield triples[:, [2, 1]]
