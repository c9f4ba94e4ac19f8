"""Pattern edges that are matched among the edges that fulfil their conditions, and no others.

Conditions on the properties of one edge are tested before the match (:mod:`graphdb.relational.edges.parallel_edges`).
Where a search among all edges of the labels would go through many more elements than the edges that are left, those
become an edge label of their own (:mod:`graphdb.storage.graph.derived.edge_subset`): the plan is made by their number,
the search meets no other, and what it finds is not tested again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.bind import BoundPattern, Choice
from graphdb.pattern.graph import PatternEdge, PatternGraph
from graphdb.plan.physical import PhysicalPlan
from graphdb.relational.snapshot import Snapshot
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.derived.edge_subset import EdgeSubset

_SORTED = 4
"""A search goes through so many elements in the time that it takes to sort an edge into the lists of its ends."""

_PLANNED = 200_000
"""... and through so many in the time that planning once more takes."""


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
    if plan.cost * (1 - min(shares)) < _PLANNED + _SORTED * sum(left.values()):
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


def _subset(snapshot: Snapshot, edge: PatternEdge, choice: Choice) -> EdgeSubset:
    """Return the edges that fulfil an edge's conditions, as triples."""
    assert edge.labels is not None
    assert choice.fulfil is not None
    table, graph = snapshot.edges.table(choice.labels), snapshot.graph
    chosen = np.flatnonzero(choice.fulfil)
    kinds, starts, ends = table.labels[table.kind[chosen]], table.starts[chosen], table.ends[chosen]
    if choice.parallel:
        new = np.ones(len(chosen), bool)
        new[1:] = (kinds[1:] != kinds[:-1]) | (starts[1:] != starts[:-1]) | (ends[1:] != ends[:-1])
        kinds, starts, ends = kinds[new], starts[new], ends[new]
    runs = [(kinds, starts.astype(np.int64), ends.astype(np.int64))]
    for label in set(edge.labels) - set(choice.labels) if choice.others else ():
        s, o = graph.source.edges(label)
        runs.append((np.full(len(s), label, np.int64), s, o))
    kinds, starts, ends = (np.concatenate(column) for column in zip(*runs, strict=True))
    return graph.subset(edge.labels, edge.labels[0] if len(edge.labels) == 1 else kinds, starts, ends)
