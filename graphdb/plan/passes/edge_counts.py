"""Counts of all edges of some labels, of which statistics say how many there are: no edge is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.data_graph import DataGraph

Numbers: TypeAlias = "Callable[[int], tuple[int, int, int] | None]"
"""Of an edge label with parallel edges, how many edges there are, how many between resources, and how many that join a
vertex with itself; else None."""


def counted_plan(
    pattern: PatternGraph, graph: DataGraph, *, by_label: bool = False, numbers: Numbers = lambda _: None
) -> PhysicalPlan | None:
    """Plan to count all edges of some labels, or of any, without reading one: statistics say how many they are.

    None for other patterns.  The plan finds one vertex, which stands for all matches; where these are wanted
    ``by_label``, it has their numbers beside it.  An edge of no direction is matched both ways, unless it is a loop.
    """
    if pattern.limit is not None or len(pattern.edges) != 1 or len(pattern.vertices) != 2:
        return None
    if not (pattern.count_only or by_label):
        return None
    (edge,), ends = pattern.edges, pattern.vertices
    modes = {MatchMode.DIFFERENT_EDGES, MatchMode.REPEATABLE_ELEMENTS}
    conditions = pattern.edge_tests or pattern.unequal or any(clause.mode not in modes for clause in pattern.clauses)
    free = edge.source != edge.target and all(end.candidates is None for end in ends)
    if conditions or not free or not (edge.labels is None or set(edge.labels) <= set(graph.source.edge_labels())):
        return None
    if not graph.statistics(edge.labels).triples:
        return None
    labels, counts = _edges_of_each(edge, graph, numbers)
    one = replace(ends[edge.source], candidates=np.zeros(1, np.int64))
    clause = Clause(MatchMode.REPEATABLE_ELEMENTS, (0,))
    plan = make_plan(PatternGraph((one,), (), (clause,), count_only=True), graph)
    count = int(counts.sum())
    each, columns = (labels, counts) if by_label else None, np.empty((count, 0), np.int64)
    return replace(plan, automorphisms=count, columns=columns, known=True, by_label=each, origin=None)


def _edges_of_each(
    edge: PatternEdge, graph: DataGraph, numbers: Numbers
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return those of an edge's labels (None: any but ``rdf:type``, between resources) that have edges, and how many
    matches each has.
    """
    chosen = edge.labels if edge.labels is not None else graph.source.edge_labels()
    found = []
    for label in chosen if edge.labels is not None else [x for x in chosen if x != graph.type_label]:
        known = graph.source.statistics(label)
        edges, loops = known.resource_triples if edge.labels is None else known.triples, 0
        if edges and (numbered := numbers(label)) is not None:
            every, between, loops = numbered
            edges = between if edge.labels is None else every
        elif edges and not edge.directed:
            loops = _loops(label, graph)
        found.append((label, edges if edge.directed else 2 * edges - loops))
    array = np.array([pair for pair in found if pair[1]], np.int64).reshape(-1, 2)
    return array[:, 0].copy(), array[:, 1].copy()


def _loops(label: int, graph: DataGraph) -> int:
    """Return how many triples of an edge label join a vertex with itself: looked for once, until the label changes."""

    def found() -> NDArray[np.int64]:
        starts, ends = graph.source.edges(label)
        return np.array([np.count_nonzero(starts == ends)])

    return int(graph.derived(("number of loops", label), found)[0])
