"""The smallest plan that there is, to try whether an executor works."""

from __future__ import annotations

import numpy as np

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph


def smallest_plan() -> PhysicalPlan:
    """Triangles in a clique of four vertices: four, each in six ways."""
    source, target = np.triu_indices(4, 1)
    graph = DataGraph(ArraySource(source, np.full(len(source), 4), target, 5))
    names = ("a", "b", "c")
    pattern = PatternGraph(
        tuple(map(PatternVertex, names)),
        tuple(PatternEdge(f"e{i}", a, b, (4,), False, 0) for i, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)])),
        (Clause(MatchMode.DIFFERENT_NODES, (0, 1, 2)),),
        outputs=names,
        count_only=False,
    )
    return make_plan(pattern, graph, counting="never")
