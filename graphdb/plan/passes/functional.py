"""Patterns all of whose rows are the edges of one label: each further vertex is the only one that an edge leads to.

Where a vertex has one edge of a label at most, as messages have one creator, the label is a function.  A tree of such
edges away from one edge, ``(x)<-[:HAS_CREATOR]-(m)-[:REPLY_OF]->(n)-[:HAS_CREATOR]->(y)``, has at most one match for
each data edge that this one takes.  Its rows are a gather for each further vertex: a search takes several times as long
for each of them, and first builds the lists that it goes through.  Where candidates leave a small share of the rows, a
search is quicker.  Statistics say all this, so that no order has to be found, nor sampled.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph
from graphdb.plan.candidates.implied import ends_within
from graphdb.plan.checks import NotBothEqual, Unequal
from graphdb.plan.injectivity import distinctness
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import FunctionalScan, FunctionalStep, PhysicalPlan
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.degree_sketch import IN, OUT
from graphdb.storage.graph.pcsr import Direction
from graphdb.storage.graph.source import LabelStatistics

LEAST = 1 << 14
"""Edges from which on a search takes long enough."""

SHARE = 1 / 8
"""The share of the rows that candidates must leave, as far as it is known: a search takes so many times longer for each
that it finds."""


def functional_plan(pattern: PatternGraph, graph: DataGraph) -> PhysicalPlan | None:
    """Plan to go through the edges of one label, and to gather all other vertices; None of other patterns."""
    if not _is_tree(pattern) or not all(_is_one_label(edge, graph) for edge in pattern.edges):
        return None
    roots = sorted(range(len(pattern.edges)), key=lambda number: _rows(pattern.edges[number], graph))
    found = ((number, steps) for number in roots if (steps := _away_from(pattern, graph, number)) is not None)
    root, steps = next(found, (-1, []))
    if root < 0 or _rows(pattern.edges[root], graph) < LEAST:
        return None
    checks = distinctness(pattern, graph.type_label, lambda edge: edge.directed)
    if not all(isinstance(check, Unequal | NotBothEqual) for check in checks):
        return None
    candidates, share = [vertex.candidates for vertex in pattern.vertices], 1.0
    for vertex, given in enumerate(candidates):
        if given is None:
            continue
        ends = list(_ends_at(pattern, vertex, root, steps))
        if all(ends_within(graph, (label,), way, pattern.vertices[vertex]) for label, way in ends):
            candidates[vertex] = None
            continue
        there = (_vertices_at(graph.statistics((label,)), way) for label, way in ends)
        share *= min(1.0, len(given) / max(1, *there))
    if share < SHARE:
        return None
    first = pattern.edges[root]
    scan = FunctionalScan(
        edge=root,
        edges=graph.statistics(first.labels).triples,
        partition=graph.partition(first.labels, "out"),
        directed=first.directed,
        ends=(first.source, first.target),
        steps=tuple(
            FunctionalStep(number, before, after, way == "out", graph.partition(pattern.edges[number].labels, way))
            for number, before, after, way in steps
        ),
        candidates=tuple(candidates),
        checks=tuple(check for check in checks if isinstance(check, Unequal | NotBothEqual)),
        vertices=tuple(vertex.name for vertex in pattern.vertices),
        relations=tuple((edge.labels or ())[0] for edge in pattern.edges),
    )
    one = replace(pattern.vertices[0], candidates=np.zeros(1, np.int64))
    clause = Clause(MatchMode.REPEATABLE_ELEMENTS, (0,))
    plan = make_plan(PatternGraph((one,), (), (clause,), outputs=(one.name,)), graph)
    own = sum(each.nbytes for each in candidates if each is not None)
    return replace(
        plan, functional=scan, outputs=pattern.outputs, duplicates=pattern.duplicates, own_bytes=own, origin=None
    )


def _is_tree(pattern: PatternGraph) -> bool:
    """Whether all rows are wanted of vertices that edges join as a tree, and nothing but these."""
    names = {vertex.name for vertex in pattern.vertices}
    wanted = {"keep": 1, "count": 2}.get(pattern.duplicates, len(names) + 1)  # by one vertex, matches are counted
    if pattern.count_only or pattern.limit is not None or not wanted <= len(pattern.outputs):
        return False
    if pattern.edge_tests or not names.issuperset(pattern.outputs):
        return False
    if any(clause.mode is MatchMode.INDUCED for clause in pattern.clauses):
        return False
    return len(pattern.edges) > 1 and len(pattern.vertices) == len(pattern.edges) + 1


def _is_one_label(edge: PatternEdge, graph: DataGraph) -> bool:
    """Whether a pattern edge takes the triples of one label between resources, one for each pair."""
    if edge.labels is None or len(edge.labels) != 1 or edge.parallel or edge.among is not None:
        return False
    known = graph.source.statistics(edge.labels[0])
    return bool(known.triples) and known.resource_triples == known.triples


def _rows(edge: PatternEdge, graph: DataGraph) -> int:
    """Return how many rows come of the edges that a pattern edge takes, at most."""
    return graph.statistics(edge.labels).triples * (1 if edge.directed else 2)


def _away_from(pattern: PatternGraph, graph: DataGraph, root: int) -> list[tuple[int, int, int, Direction]] | None:
    """Return the other edges, each with the vertex that is bound before, the one that it binds, and the direction.

    None where some are no function there.
    """
    bound = {pattern.edges[root].source, pattern.edges[root].target}
    left, steps = {*range(len(pattern.edges))} - {root}, list[tuple[int, int, int, Direction]]()
    while left:
        number = next((each for each in sorted(left) if _joins(pattern.edges[each], bound)), -1)
        if number < 0:
            return None
        edge = pattern.edges[number]
        forward = edge.source in bound
        known = graph.statistics(edge.labels)
        if not edge.directed or (known.max_out_degree if forward else known.max_in_degree) > 1:
            return None
        before, after = (edge.source, edge.target) if forward else (edge.target, edge.source)
        steps.append((number, before, after, "out" if forward else "in"))
        bound.add(after)
        left.remove(number)
    return steps if len(bound) == len(pattern.vertices) else None


def _joins(edge: PatternEdge, bound: set[int]) -> bool:
    return (edge.source in bound) != (edge.target in bound)


def _ends_at(
    pattern: PatternGraph, vertex: int, root: int, steps: list[tuple[int, int, int, Direction]]
) -> Iterator[tuple[int, int]]:
    """Yield the label, and the end of its edges, by which a vertex is bound: both where an edge goes either way."""
    first = pattern.edges[root]
    number = next((step[0] for step in steps if step[2] == vertex), root)
    edge = pattern.edges[number]
    (label,) = edge.labels or (-1,)
    if edge.source == vertex or (number == root and not first.directed):
        yield label, OUT
    if edge.target == vertex or (number == root and not first.directed):
        yield label, IN


def _vertices_at(known: LabelStatistics, way: int) -> int:
    return known.subjects if way == OUT else known.objects
