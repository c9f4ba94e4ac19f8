"""The ends of a pattern's edge: what statistics say of them, corrected by what lists of neighbours in memory say.

Statistics know how many edges of a label start at persons, and how many end at cities; whether those that start at
persons are the ones that end at cities, they do not know.  Nor do they know how many neighbours the vertices have that
a condition leaves.  A look at some of the lists says both.  Nothing is read or built for that.

Constants are not looked at: the plan of one is that of the next (:mod:`graphdb.plan.passes.retarget`).  All vertices of
their label stand for them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.pattern.graph import EdgeTest, PatternEdge, PatternVertex
from graphdb.storage.arrays.sorted_sets import places
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Direction, elements_of

Ints = NDArray[np.int64]

CONSTANTS = 4
"""Candidates up to which these are taken to be constants."""
MEMBERS = 64
"""Candidates whose lists are looked at, …"""
ONE_BY_ONE = 16
"""… of hashed lists fewer, which are looked for one by one, …"""
NEIGHBOURS = 128
"""… and neighbours in these, at most: evenly spread, and the same every time."""
CERTAIN = 4
"""Neighbours that are candidates from which on their share is taken as it is found; fewer only bound the model's."""


class End(NamedTuple):
    """One end of a link: edges at vertices that have the pattern vertex's labels, such vertices, those with edges."""

    edges: float
    population: float
    active: float


class Lists(NamedTuple):
    """The lists of an end's candidates: edges in them, candidates that have one, neighbours that were looked at, and
    those of these that are candidates of the other end.
    """

    edges: float
    active: float
    seen: float
    joined: float

    def share(self, expected: float) -> float:
        """Return the share of the edges that lead to candidates of the other end; the model has it as ``expected``."""
        if not self.seen:
            return expected
        if self.joined >= CERTAIN or self.joined == self.seen:
            return self.joined / self.seen
        return min(max(expected, self.joined / (3 * self.seen)), (self.joined + 2) / self.seen)


def corrected(
    graph: DataGraph, edge: PatternEdge | EdgeTest, vertices: tuple[PatternVertex, PatternVertex], ends: tuple[End, End]
) -> tuple[End, End, float]:
    """Return the ends of an edge, and the share of pairs of their candidates that are joined: as lists say it.

    Where none are in memory, as statistics say it, if what both ends ask for is independent.
    """
    triples = max(graph.statistics(edge.labels).triples * (1.0 if edge.directed else 2.0), 1.0)
    vertices = _standing(graph, vertices[0]), _standing(graph, vertices[1])
    sizes = [
        end.population if vertex.candidates is None else float(len(vertex.candidates))
        for vertex, end in zip(vertices, ends, strict=True)
    ]
    usual = [end.edges / end.population * size for end, size in zip(ends, sizes, strict=True)]
    joined, least = usual[0] * usual[1] / triples, np.inf
    found = list(ends)
    directions: tuple[Direction, Direction] = ("out", "in") if edge.directed else ("both", "both")
    for i, (direction, end) in enumerate(zip(directions, ends, strict=True)):
        vertex, other = vertices[i], vertices[1 - i]
        if vertex.candidates is None or not len(vertex.candidates) or not graph.has_partition(edge.labels, direction):
            continue
        lists = _lists(graph, edge, direction, vertex, other)
        # A plan may outlive its candidates: that those of now have few neighbours says little of the next ones.  And
        # some of many say little of how long lists are, where a handful of others have most of the edges.
        known = lists.edges <= usual[i] or len(vertex.candidates) > MEMBERS
        edges, active = (usual[i], end.active * sizes[i] / end.population) if known else (lists.edges, lists.active)
        found[i] = End(edges, sizes[i], max(active, 0.5))
        if edges < least:
            joined, least = edges * lists.share(min(usual[1 - i] / triples, 1.0)), edges
    return found[0], found[1], joined / max(sizes[0] * sizes[1], 1.0)


def is_label(graph: DataGraph, vertex: PatternVertex) -> bool:
    """Whether a pattern vertex may be bound to all vertices of one label, and to no others."""
    if vertex.candidates is None or len(vertex.labels) != 1:
        return False
    return len(vertex.candidates) == len(graph.members(vertex.labels[0]))


def _standing(graph: DataGraph, vertex: PatternVertex) -> PatternVertex:
    """Return a pattern vertex whose candidates may be looked at."""
    if vertex.candidates is None or len(vertex.candidates) > CONSTANTS or is_label(graph, vertex):
        return vertex
    if not vertex.labels:
        return replace(vertex, candidates=None)
    label = min(vertex.labels, key=lambda each: len(graph.members(each)))
    return replace(vertex, candidates=graph.members(label), labels=(label,))


def _lists(
    graph: DataGraph, edge: PatternEdge | EdgeTest, direction: Direction, vertex: PatternVertex, other: PatternVertex
) -> Lists:
    """Look at the lists of a vertex's candidates; those of two labels are looked at once."""
    assert vertex.candidates is not None
    candidates, others = vertex.candidates, other.candidates
    if not is_label(graph, vertex) or not (others is None or is_label(graph, other)):
        return _look(graph, edge, direction, candidates, others)
    key = ("lists", edge.labels, direction, vertex.labels[0], None if others is None else other.labels[0])
    return Lists(*graph.estimate(key, lambda: np.array(_look(graph, edge, direction, candidates, others))).tolist())


def _look(
    graph: DataGraph, edge: PatternEdge | EdgeTest, direction: Direction, candidates: Ints, others: Ints | None
) -> Lists:
    partition = graph.partition(edge.labels, direction)
    members = MEMBERS if partition.layer != "hashed" else ONE_BY_ONE
    some = candidates[:: -(-len(candidates) // members)]
    if len(some) <= ONE_BY_ONE:
        begins, ends = np.array([partition.range_of(vertex) for vertex in some.tolist()]).T
        lengths = ends - begins
    else:
        begins, lengths = partition.ranges_of(some)
    total, grown = int(lengths.sum()), len(candidates) / len(some)
    edges, active = total * grown, int(np.count_nonzero(lengths)) * grown
    if others is None or not total:
        return Lists(edges, active, total, total)
    if total <= NEIGHBOURS:
        at = elements_of(begins, lengths)
    else:
        until = np.cumsum(lengths)
        wanted = np.arange(NEIGHBOURS) * total // NEIGHBOURS
        of = np.searchsorted(until, wanted, side="right")
        at = begins[of] + wanted - (until[of] - lengths[of])
    neighbours = partition.neighbours[at]
    if len(others) and int(others[-1]) - int(others[0]) + 1 == len(others):
        there = (neighbours >= others[0]) & (neighbours <= others[-1])
    else:
        there = places(others, neighbours)[1]
    return Lists(edges, active, len(neighbours), int(np.count_nonzero(there)))
