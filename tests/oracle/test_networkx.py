"""DIFFERENT NODES and INDUCED against NetworkX's matchers (VF2): monomorphisms and induced isomorphisms."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import DiGraphMatcher, GraphMatcher, MultiDiGraphMatcher

from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.passes import make_plan
from graphdb.storage.graph import ArraySource, DataGraph

Edge = tuple[int, int]
Rows = list[tuple[int, ...]]


def run(data: list[tuple[int, int, int]], vertices: int, edges: list[Edge], directed: bool, mode: MatchMode) -> Rows:
    """All rows (one column per pattern vertex) of a pattern whose edges take any label."""
    s, p, o = np.array(data).reshape(-1, 3).T
    count = 1 + max(end for edge in edges for end in edge)
    pattern = PatternGraph(
        tuple(PatternVertex(f"v{i}") for i in range(count)),
        tuple(PatternEdge(f"e{i}", a, b, None, directed, 0) for i, (a, b) in enumerate(edges)),
        (Clause(mode, tuple(range(count))),),
        outputs=tuple(f"v{i}" for i in range(count)),
    )
    plan = make_plan(pattern, DataGraph(ArraySource(s, p, o, vertices)))
    blocks = HostExecutor(2, inline_cost=0).run(plan)
    return [row for block in blocks for row in zip(*(block.columns[n].tolist() for n in pattern.outputs), strict=True)]


PATTERNS: list[list[Edge]] = [
    [(0, 1), (1, 2), (2, 0)],
    [(0, 1), (1, 2), (0, 2)],
    [(0, 1), (1, 2), (2, 3), (3, 0)],
    [(0, 1), (0, 2), (0, 3)],
    [(0, 1), (1, 2), (2, 3), (1, 3)],
    [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (1, 4)],
]


def keys(mapping: dict[int, int]) -> tuple[int, ...]:
    """NetworkX's mapping (data vertex → pattern vertex) as a row."""
    return tuple(vertex for _, vertex in sorted((pattern, vertex) for vertex, pattern in mapping.items()))


@pytest.mark.parametrize("edges", PATTERNS)
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("seed", [1, 2])
def test_simple_graphs(edges: list[Edge], directed: bool, seed: int) -> None:
    data = nx.gnp_random_graph(12, 0.35, seed=seed, directed=directed)
    wanted = nx.DiGraph(edges) if directed else nx.Graph(edges)
    matcher = (DiGraphMatcher if directed else GraphMatcher)(data, wanted)
    triples = [(a, 20, b) for a, b in data.edges]
    monomorphisms = sorted(map(keys, matcher.subgraph_monomorphisms_iter()))
    assert sorted(run(triples, 12, edges, directed, MatchMode.DIFFERENT_NODES)) == monomorphisms
    induced = sorted(map(keys, matcher.subgraph_isomorphisms_iter()))
    assert sorted(run(triples, 12, edges, directed, MatchMode.INDUCED)) == induced


@settings(max_examples=100, deadline=None)
@given(
    st.sets(st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 6)), min_size=1, max_size=22),
    st.lists(st.tuples(st.integers(0, 1), st.integers(1, 2)), min_size=2, max_size=4),
)
def test_induced_in_multigraphs(data: set[tuple[int, int, int]], edges: list[Edge]) -> None:
    """Parallel edges and loops included: the matched vertices are NetworkX's (edges may go to each other in any way)."""
    edges = [(0, 1), (1, 2), *edges]
    wanted, graph = nx.MultiDiGraph(edges), nx.MultiDiGraph([(s, o) for s, _, o in data])
    matcher = MultiDiGraphMatcher(graph, wanted)
    expected = set(map(keys, matcher.subgraph_isomorphisms_iter()))
    assert set(run(sorted(data), 7, edges, True, MatchMode.INDUCED)) == expected
