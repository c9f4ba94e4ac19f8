"""Counts of all edges of some labels, of which statistics say how many there are: no edge is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph
from graphdb.plan.estimates.ends import is_label
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.degree_sketch import IN, OUT

Numbers: TypeAlias = "Callable[[int], tuple[int, int, int] | None]"
"""Of an edge label with parallel edges, how many edges there are, how many between resources, and how many that join a
vertex with itself; else None."""


def counted_plan(
    pattern: PatternGraph, graph: DataGraph, *, by_label: bool = False, numbers: Numbers = lambda _: None
) -> PhysicalPlan | None:
    """Plan to count all edges of some labels, or of any, without reading one: statistics say how many they are.

    None for other patterns: ends may be all vertices of a label, where statistics say how many edges are at these.  The
    plan finds one vertex, which stands for all matches; where these are wanted
    ``by_label``, it has their numbers beside it.  An edge of no direction is matched both ways, unless it is a loop.
    """
    if pattern.limit is not None or len(pattern.edges) != 1 or len(pattern.vertices) != 2:
        return None
    if not (pattern.count_only or by_label):
        return None
    (edge,), ends = pattern.edges, pattern.vertices
    modes = {MatchMode.DIFFERENT_EDGES, MatchMode.REPEATABLE_ELEMENTS}
    conditions = pattern.edge_tests or pattern.unequal or any(clause.mode not in modes for clause in pattern.clauses)
    free = edge.source != edge.target and all(end.candidates is None or is_label(graph, end) for end in ends)
    if conditions or not free or not (edge.labels is None or set(edge.labels) <= set(graph.source.edge_labels())):
        return None
    if not graph.statistics(edge.labels).triples:
        return None
    classes = [None if end.candidates is None else end.labels[0] for end in (ends[edge.source], ends[edge.target])]
    if (found := _edges_of_each(edge, classes, graph, numbers)) is None:
        return None
    labels, counts = found
    one = replace(ends[edge.source], candidates=np.zeros(1, np.int64))
    clause = Clause(MatchMode.REPEATABLE_ELEMENTS, (0,))
    plan = make_plan(PatternGraph((one,), (), (clause,), count_only=True), graph)
    count = int(counts.sum())
    each, columns = (labels, counts) if by_label else None, np.empty((count, 0), np.int64)
    return replace(plan, automorphisms=count, columns=columns, known=True, by_label=each, origin=None)


def _edges_of_each(
    edge: PatternEdge, classes: Sequence[int | None], graph: DataGraph, numbers: Numbers
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return those of an edge's labels (None: any but ``rdf:type``, between resources) that have edges, and how many
    matches each has between vertices of ``classes``, vertex labels; None where statistics do not say.
    """
    chosen = edge.labels if edge.labels is not None else graph.source.edge_labels()
    ways = [classes] if edge.directed else [classes, classes[::-1]]
    found = []
    for label in chosen if edge.labels is not None else [x for x in chosen if x != graph.type_label]:
        known = graph.source.statistics(label)
        edges, loops = known.resource_triples if edge.labels is None else known.triples, 0
        if not edges:
            continue
        counts = [_between(label, edges, way, graph) for way in ways]
        if None in counts:
            return None
        there = [count for count in counts if count]
        whole = there == [edges] * len(ways)
        if there and (numbered := numbers(label)) is not None:
            if set(there) != {edges}:
                return None
            every, between, loops = numbered
            there = [between if edge.labels is None else every] * len(there)
        elif there and not edge.directed:
            loops = _loops(label, graph)
        if edge.directed:
            loops = 0
        elif loops and not whole:
            return None
        found.append((label, sum(there) - loops))
    array = np.array([pair for pair in found if pair[1]], np.int64).reshape(-1, 2)
    return array[:, 0].copy(), array[:, 1].copy()


def _between(label: int, edges: int, classes: Sequence[int | None], graph: DataGraph) -> int | None:
    """Return how many of so many edges of a label start, and end, at vertices of vertex labels (None: at any); None
    where statistics do not say, which know how many are at one end.
    """
    least = edges
    for direction, class_id in zip((OUT, IN), classes, strict=True):
        if class_id is None:
            continue
        there = graph.at_class(label, direction, class_id)
        if there is None or graph.source.statistics(label).triples != edges:  # literals are counted there, too
            return None
        if 0 < there[0] < edges and 0 < least < edges:
            return None
        least = min(least, there[0])
    return least


def _loops(label: int, graph: DataGraph) -> int:
    """Return how many triples of an edge label join a vertex with itself: looked for once, until the label changes."""

    def found() -> NDArray[np.int64]:
        starts, ends = graph.source.edges(label)
        return np.array([np.count_nonzero(starts == ends)])

    return int(graph.derived(("number of loops", label), found)[0])
