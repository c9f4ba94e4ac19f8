"""Patterns as the matcher takes them: which it refuses, each vertex with an edge, and what candidates need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphdb.common.errors import NotSupportedError
from graphdb.grammar.syntax import MatchMode
from graphdb.incremental.lists import Need
from graphdb.incremental.relations import ITSELF, Relation, Relations
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph

MOST_VERTICES = 64
"""Of a pattern: the bits of a row of the candidate table."""


def refuse(pattern: PatternGraph) -> None:
    """Raise NotSupportedError where a pattern cannot be matched incrementally."""
    joined = {end for edge in pattern.edges for end in (edge.source, edge.target)}
    if any(vertex.candidates is None for v, vertex in enumerate(pattern.vertices) if v not in joined):
        raise NotSupportedError("a vertex without edges and conditions is not matched incrementally")
    if len(pattern.vertices) > MOST_VERTICES:
        raise NotSupportedError(f"a pattern of more than {MOST_VERTICES} vertices is not matched incrementally")
    if pattern.edge_tests:
        raise NotSupportedError("patterns as conditions are not matched incrementally")
    if pattern.limit is not None:
        raise NotSupportedError("limits are not matched incrementally")


def with_edges(pattern: PatternGraph) -> PatternGraph:
    """Return a pattern whose vertices that have no edge have one to themselves: so whatever changes is an edge."""
    joined = {end for edge in pattern.edges for end in (edge.source, edge.target)}
    alone = [v for v in range(len(pattern.vertices)) if v not in joined]
    if not alone:
        return pattern
    clause = len(pattern.clauses)
    edges = tuple(PatternEdge(f" {v}", v, v, (ITSELF,), directed=True, clause=clause) for v in alone)
    return replace(
        pattern,
        edges=pattern.edges + edges,
        clauses=(*pattern.clauses, Clause(MatchMode.REPEATABLE_ELEMENTS, tuple(alone))),
    )


def needs(pattern: PatternGraph, own: Sequence[Relation], relations: Relations) -> list[list[Need]]:
    """Return what candidates need: as many entries of a relation as pattern edges must bind different ones (§IV-B)."""
    found: list[list[Need]] = []
    for v in range(len(pattern.vertices)):
        least: dict[tuple[int, int], set[int]] = {}
        for e, edge in enumerate(pattern.edges):
            repeatable = pattern.clauses[edge.clause].mode is MatchMode.REPEATABLE_ELEMENTS
            group = -1 - e if repeatable or edge.parallel else edge.clause
            if edge.source == v:
                least.setdefault((relations.numbers[own[e]], group), set()).add(e)
            if edge.target == v:
                least.setdefault((relations.numbers[own[e].reversed], group), set()).add(e)
        most: dict[int, int] = {}
        for (relation, _), edges in least.items():
            most[relation] = max(most.get(relation, 0), len(edges))
        found.append([Need(relation, entries) for relation, entries in most.items()])
    return found
