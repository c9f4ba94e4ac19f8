"""Pattern edges that are matched among the edges that fulfil their conditions, and no others.

Conditions on the properties of one edge are tested before the match (:mod:`graphdb.relational.edges.parallel_edges`).
Where a search among all edges of the labels would go through many more elements than the edges that are left, those
become an edge label of their own (:mod:`graphdb.storage.graph.derived.edge_subset`): the plan is made by their number,
the search meets no other, and what it finds is not tested again.  Where the ends of an edge may be a small part of
all vertices it joins, the edges between these are taken alone: no statistics say how many fulfil conditions there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.bind import BoundPattern, Choice
from graphdb.pattern.graph import PatternEdge, PatternGraph, Wanted
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.snapshot import Snapshot
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.derived.edge_subset import EdgeSubset

_SORTED = 4
"""A search goes through so many elements in the time that it takes to sort an edge into the lists of its ends."""

_PLANNED = 200_000
"""... through so many in the time that planning once more takes, ..."""

_ASSIGNED = 5
"""... and through so many in the time that it takes to find the edge that a triple of a match stands for."""


_FEW_ENDS = 4
"""The ends of an edge may be few if they are so much fewer than the vertices that its labels join."""

_START = 64
"""From fewer vertices a search scans fewer edges than it takes to choose among all."""


def subsets_between(
    snapshot: Snapshot, bound: BoundPattern, pattern: PatternGraph, needs: Wanted
) -> Mapping[int, EdgeSubset]:
    """Return subsets of edges for pattern edges, by their numbers, whose ends may be few: of those between these.

    None of an edge that is wanted itself, or of a pattern that is this one edge.
    """
    found: dict[int, EdgeSubset] = {}
    few = any(vertex.candidates is not None and len(vertex.candidates) < _START for vertex in pattern.vertices)
    if few or sum(choice.fulfil is not None for choice in bound.choices.values()) < 2:
        return found
    made: dict[tuple[object, ...], EdgeSubset] = {}
    for number, edge in enumerate(pattern.edges):
        choice = bound.choices.get(number)
        if choice is None or number in needs.edges or not _can_be_less(snapshot.graph, pattern, edge, choice):
            continue
        ends = [pattern.vertices[end].candidates for end in (edge.source, edge.target)]
        if any(ids is None for ids in ends) or not _are_few(snapshot.graph, edge, ends):
            continue
        sides = [ids.tobytes() for ids in ends if ids is not None]
        key = (
            id(choice.fulfil),
            choice.others,
            edge.labels,
            edge.directed,
            *(sides if edge.directed else sorted(sides)),
        )
        if key not in made:
            made[key] = _subset(snapshot, edge, choice, ends)
        found[number] = made[key]
    return found


def _are_few(graph: DataGraph, edge: PatternEdge, ends: Sequence[NDArray[np.int64] | None]) -> bool:
    known = graph.statistics(edge.labels)
    joined = (known.subjects, known.objects) if edge.directed else (max(known.subjects, known.objects),) * 2
    pairs = zip(ends, joined, strict=True)
    return any(ids is not None and len(ids) * _FEW_ENDS < vertices for ids, vertices in pairs)


def subsets_of(
    snapshot: Snapshot, bound: BoundPattern, pattern: PatternGraph, plan: PhysicalPlan
) -> Mapping[int, EdgeSubset]:
    """Return subsets of edges for pattern edges, by their numbers, where a search among all edges costs more.

    ``plan`` is that of ``pattern``, among all.
    """
    asked = {
        number: (edge, choice)
        for number, (edge, choice) in enumerate((edge, bound.choices.get(n)) for n, edge in enumerate(pattern.edges))
        if choice is not None and _can_be_less(snapshot.graph, pattern, edge, choice)
    }
    if not asked:
        return {}
    left = {
        id(choice.fulfil): np.count_nonzero(choice.fulfil) for _, choice in asked.values() if choice.fulfil is not None
    }
    shares = [
        left[id(choice.fulfil)] / max(len(choice.fulfil), 1)
        for _, choice in asked.values()
        if choice.fulfil is not None
    ]
    assigned = _ASSIGNED * plan.steps[-1].estimate * len(asked) if plan.steps else 0.0
    if (plan.cost + assigned) * (1 - min(shares)) < _PLANNED + _SORTED * sum(left.values()):
        return {}
    found: dict[int, EdgeSubset] = {}
    for number, (edge, choice) in asked.items():
        same = [other for n, (_, other) in asked.items() if n in found and _alike(bound.edges[n], other, edge, choice)]
        choice.subset = choice.subset or (same[0].subset if same else _subset(snapshot, edge, choice))
        assert choice.subset is not None
        found[number] = choice.subset
    return found


def among(pattern: PatternGraph, subsets: Mapping[int, EdgeSubset]) -> PatternGraph:
    """Return a pattern of which some edges are matched among subsets of the edges of their labels."""
    edges = (
        replace(edge, labels=(subsets[n].number,), among=subsets[n].labels) if n in subsets else edge
        for n, edge in enumerate(pattern.edges)
    )
    return replace(pattern, edges=tuple(edges))


def _can_be_less(graph: DataGraph, pattern: PatternGraph, edge: PatternEdge, choice: Choice) -> bool:
    """Whether the edges that fulfil an edge's conditions can stand in the place of its labels."""
    if choice.fulfil is None or edge.labels is None or graph.type_label in edge.labels:
        return False
    return pattern.clauses[edge.clause].mode is not MatchMode.INDUCED  # which looks at all other edges, too


def _alike(one: PatternEdge, first: Choice, other: PatternEdge, second: Choice) -> bool:
    """Whether two pattern edges may take the same edges."""
    return first.fulfil is second.fulfil and first.others == second.others and one.labels == other.labels


def _subset(
    snapshot: Snapshot, edge: PatternEdge, choice: Choice, joining: Sequence[NDArray[np.int64] | None] = (None, None)
) -> EdgeSubset:
    """Return the edges that fulfil an edge's conditions, as triples; those between some vertices (None: any)."""
    assert edge.labels is not None
    assert choice.fulfil is not None
    table, graph = snapshot.edges.table(choice.labels), snapshot.graph
    between = _Between(graph.vertices, edge.directed, joining)
    chosen = np.flatnonzero(choice.fulfil)
    if not set(choice.labels) <= set(edge.labels):  # of which a condition, as type(r) = 'K', has left fewer
        chosen = chosen[np.isin(table.labels[table.kind[chosen]], edge.labels)]
    chosen = chosen[between(table.starts[chosen], table.ends[chosen])]
    kinds, starts, ends = table.labels[table.kind[chosen]], table.starts[chosen], table.ends[chosen]
    if choice.parallel:
        new = np.ones(len(chosen), bool)
        new[1:] = (kinds[1:] != kinds[:-1]) | (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
        kinds, starts, ends = kinds[new], starts[new], ends[new]
    runs = [(kinds, starts.astype(np.int64), ends.astype(np.int64))]
    for label in set(edge.labels) - set(choice.labels) if choice.others else ():
        s, o = graph.source.edges(label)
        there = between(s, o)
        s, o = s[there], o[there]
        runs.append((np.full(len(s), label, np.int64), s, o))
    kinds, starts, ends = (np.concatenate(column) for column in zip(*runs, strict=True))
    return graph.subset(edge.labels, edge.labels[0] if len(edge.labels) == 1 else kinds, starts, ends)


class _Between:
    """Says of edges whether they join vertices of two sets (None: any), either way where they are not directed."""

    def __init__(self, vertices: int, directed: bool, ends: Sequence[NDArray[np.int64] | None]) -> None:
        self._marks = [_marked(vertices, ids) for ids in ends]
        self._directed = directed

    def __call__(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_] | slice:
        """Return which edges do, given their ends."""
        source, target = self._marks
        if source is None and target is None:
            return slice(None)
        there = _both(source, target, starts, ends)
        return there if self._directed else there | _both(source, target, ends, starts)


def _marked(vertices: int, ids: NDArray[np.int64] | None) -> NDArray[np.bool_] | None:
    if ids is None:
        return None
    marks = np.zeros(vertices, np.bool_)
    marks[ids] = True
    return marks


def _both(
    source: NDArray[np.bool_] | None,
    target: NDArray[np.bool_] | None,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.bool_]:
    there = np.ones(len(starts), np.bool_) if source is None else source[starts]
    return there if target is None else there & target[ends]
