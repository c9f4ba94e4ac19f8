"""The pigeonhole principle: a pattern that asks for more different vertices or edges than there are has no match.

Forty edges that differ do not fit a graph of thirty, nor twelve at one vertex where no vertex has more than eleven; a
search would find that out only after all that does fit.  Large patterns alone are looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import PatternEdge, PatternGraph
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Direction

SMALLEST = 8
"""Patterns of fewer edges, and vertices, are searched as they are."""

_End = tuple[int, tuple[int, ...] | None, Direction, bool]
"""A vertex, and of edges there: labels, direction and whether parallel ones count apart."""


def overfull(pattern: PatternGraph, graph: DataGraph) -> bool:
    """Whether some clause asks for more different vertices, edges, or edges at one vertex than the data graph has."""
    if max(len(pattern.edges), len(pattern.vertices)) < SMALLEST:
        return False
    for number, clause in enumerate(pattern.clauses):
        if clause.mode is MatchMode.REPEATABLE_ELEMENTS:
            continue
        edges = [edge for edge in pattern.edges if edge.clause == number]
        if clause.mode is not MatchMode.DIFFERENT_EDGES and _too_many_vertices(edges, {*clause.vertices}, graph):
            return True
        kinds = Counter((edge.labels, edge.parallel) for edge in edges)
        if any(count >= SMALLEST and count > _most(graph, *kind) for kind, count in kinds.items()):
            return True
        ends = Counter(end for edge in edges if edge.source != edge.target for end in _ends(edge))
        if any(count >= SMALLEST and count > _most_at(graph, *end[1:]) for end, count in ends.items()):
            return True
    return False


def _too_many_vertices(edges: list[PatternEdge], different: set[int], graph: DataGraph) -> bool:
    """Whether more vertices that differ are joined by edges of some labels, in all or with one, than in the data."""
    joined: defaultdict[tuple[int, ...] | None, set[int]] = defaultdict(set)
    near: defaultdict[tuple[int, tuple[int, ...] | None], set[int]] = defaultdict(set)
    for edge in edges:
        joined[edge.labels] |= {edge.source, edge.target} & different
        near[edge.source, edge.labels] |= {edge.target} & different
        near[edge.target, edge.labels] |= {edge.source} & different
    return any(
        len(found) >= SMALLEST and len(found) > len(graph.partition(labels, "both").keys)
        for labels, found in joined.items()
    ) or any(
        len(found) >= SMALLEST and len(found) > graph.partition(labels, "both").max_degree
        for (_, labels), found in near.items()
    )


def _ends(edge: PatternEdge) -> tuple[_End, _End]:
    ways: tuple[Direction, Direction] = ("out", "in") if edge.directed else ("both", "both")
    return (edge.source, edge.labels, ways[0], edge.parallel), (edge.target, edge.labels, ways[1], edge.parallel)


def _most(graph: DataGraph, labels: tuple[int, ...] | None, parallel: bool) -> int:
    """At least so many data edges as there are of some labels, if not more."""
    if not parallel:
        return graph.statistics(labels).triples
    codes = graph.partition(labels, "out", parallel=True).codes
    return graph.statistics(labels).triples if codes is None else len(codes)


def _most_at(graph: DataGraph, labels: tuple[int, ...] | None, way: Direction, parallel: bool) -> int:
    """No vertex has more data edges of some labels in a direction."""
    if way != "both" and not parallel:
        known = graph.statistics(labels)
        return known.max_out_degree if way == "out" else known.max_in_degree
    partition = graph.partition(labels, way, parallel=parallel)
    if partition.code_offsets is None or partition.simple:
        return partition.max_degree
    return partition.max_degree * int(np.diff(partition.code_offsets).max(initial=0))
