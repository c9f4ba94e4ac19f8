"""Shortest paths along one repeated edge without conditions: kernels find depths, paths are read back from them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from graphdb.execute import shortest as breadth_first
from graphdb.execute.executor import Control
from graphdb.execute.shortest import Side
from graphdb.grammar import syntax as ast
from graphdb.interpret.automaton import Automaton, Step
from graphdb.interpret.values import Path, Vertex
from graphdb.storage.pcsr import Direction, Partition
from graphdb.storage.triples import TripleStore

if TYPE_CHECKING:
    from graphdb.interpret.context import Context
    from graphdb.interpret.search import Search

_BACK: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}


class Shortest:
    """Reads the shortest paths of a search whose pattern is one repeated edge."""

    def __init__(
        self, context: Context, search: Search, automaton: Automaton, edges: Sequence[ast.EdgePattern | ast.Subpath]
    ) -> None:
        self._context, self._search, self._automaton = context, search, automaton
        (self._edge,) = edges

    def paths(self, start: int, end: int | None, control: Control) -> Iterator[tuple[int, Path]]:
        """Yield the shortest paths of a simple pattern, and where they end: to one vertex, or to all it reaches."""
        edge = self._edge
        assert isinstance(edge, ast.EdgePattern)
        assert edge.repeat is not None
        low, high = edge.repeat.low, edge.repeat.high
        if high == 0:  # no edge is ever followed
            if end is None or end == start:
                yield start, Path((Vertex(start),), ())
            return
        step = next(step for state in self._automaton.states for step, _ in state.steps)
        graph, store = self._context.snapshot.graph, self._context.snapshot.store
        away = step.partition
        back = graph.partition(step.labels, _BACK[step.direction])
        source, *ends = self._context.vertices([start] if end is None else [start, end]).tolist()
        if end is not None and ends[0] != source:
            found = breadth_first.meet(away, back, source, ends[0], graph.vertices, high, control)
            if found is None:
                return
            there, hence, met = found
            walks = (
                (*first, *second[-2::-1])
                for middle in met.tolist()
                for first in breadth_first.walks_back(there, back, middle)
                for second in breadth_first.walks_back(hence, away, middle)
            )
            yield from ((end, path) for path in self._paths(step, walks, store))
            return
        if low == 0 and end is not None:
            yield start, Path((Vertex(start),), ())
            return
        side = breadth_first.reach(away, source, graph.vertices, high, control)
        if low == 0:
            yield start, Path((Vertex(start),), ())
        elif self._search.mode is ast.PathMode.ACYCLIC:
            pass  # it does not come back to its start
        elif step.direction == "both" and self._search.mode is not ast.PathMode.WALK:
            yield from ((start, path) for path in self._rounds(step, start, source, high, side, control))
        else:  # a way round, back to the start, is found apart: the start has depth 0
            near = back.neighbours_of(source)
            depths = side.depths[near]
            least = depths[depths >= 0].min(initial=np.iinfo(np.int32).max)
            if (depths >= 0).any() and (high is None or least < high):
                rounds = (
                    (*walk, source)
                    for last in near[depths == least].tolist()
                    for walk in breadth_first.walks_back(side, back, last)
                )
                yield from ((start, path) for path in self._paths(step, rounds, store))
        if end is None:
            reached = np.flatnonzero(side.depths > 0)
            lengths, ids = side.depths[reached].tolist(), store.to_terms(reached).tolist()
            groups = self._search.selector is not None and self._search.selector.groups
            make = self._one_path(step, side, back, store)
            for vertex, length, id in zip(reached.tolist(), lengths, ids, strict=True):
                if groups:
                    ways = breadth_first.walks_back(side, back, vertex)
                    yield from ((id, path) for path in self._paths(step, ways, store))
                else:
                    yield id, Path.later(length, make, vertex)

    def _rounds(
        self, step: Step, start: int, source: int, high: int | None, side: Side, control: Control
    ) -> Iterator[Path]:
        """Yield the shortest ways round along undirected edges: a loop, two parallel edges, or a cycle."""
        most = 1 << 30 if high is None else high
        to_self = [edge for edge, vertex in self._automaton.neighbours(step, start) if vertex == start]
        if to_self:
            yield from (Path((Vertex(start), Vertex(start)), (edge,)) for edge in to_self)
            return
        ends = [vertex for _, vertex in self._automaton.neighbours(step, start)]
        length: int | None = 2 if len(set(ends)) < len(ends) else None
        if length is None:
            vertices = self._context.snapshot.graph.vertices
            length = breadth_first.way_round(step.partition, source, vertices, high, control)
        if length is not None and length <= most:
            yield from self._search.rounds(self._automaton, start, length, side.depths)

    def _one_path(self, step: Step, side: Side, back: Partition, store: TripleStore) -> Callable[[int], Path]:
        return lambda vertex: next(self._paths(step, breadth_first.walks_back(side, back, vertex), store))

    def _paths(self, step: Step, walks: Iterator[tuple[int, ...]], store: TripleStore) -> Iterator[Path]:
        """Yield the paths along walks, one for each choice among the edges between two vertices."""
        for walk in walks:
            ids = store.to_terms(np.array(walk)).tolist()
            choices = [
                [
                    edge
                    for code in self._automaton.codes(step, a, b)
                    for edge in self._context.view.parallel(code >> 1, *((q, p) if code & 1 else (p, q)))
                ]
                for a, b, p, q in zip(walk, walk[1:], ids, ids[1:], strict=False)
            ]
            vertices = tuple(map(Vertex, ids))
            for edges in itertools.product(*choices):
                yield Path(vertices[::-1], edges[::-1]) if self._automaton.backwards else Path(vertices, edges)
