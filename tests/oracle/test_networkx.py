"""DIFFERENT NODES and INDUCED against NetworkX's matchers (VF2): monomorphisms and induced isomorphisms."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networkx.algorithms.isomorphism import DiGraphMatcher, GraphMatcher, MultiDiGraphMatcher

import graphdb
from graphdb.execute.host import HostExecutor
from graphdb.execute.paths import bfs, bidirectional_bfs, path_rows, steps
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.fuzz import scaled

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


@settings(max_examples=scaled(100), deadline=None)
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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("longest", [None, 3])
def test_searches_from_many_rows(seed: int, longest: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """How far whatever is reached from each of some rows is, the rows themselves by the shortest way round."""
    for room in steps, bfs, bidirectional_bfs:
        monkeypatch.setattr(room, "BUDGET", 3)  # it stops in between
    for room in steps, path_rows, bidirectional_bfs:
        monkeypatch.setattr(room, "BLOCK", 5)
    dice = random.Random(seed)
    count = 4 + 3 * seed
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((dice.randrange(count), dice.randrange(count)) for _ in range(2 * count))
    with graphdb.connect(device="cpu", threads=1) as db:
        nodes = [f"(v{i}:{'PQ'[i % 2]} {{id: {i}}})" for i in range(count)]
        db.query("CREATE " + ", ".join([*nodes, *(f"(v{a})-[:K]->(v{b})" for a, b in graph.edges)]))
        for low, label, (into, mode) in itertools.product(
            [0, 1], ["", ":P"], [("->", "TRAIL"), ("->", "ACYCLIC"), ("-", "WALK")]
        ):
            arrows = ("-", "->") if into == "->" else ("<-", "-")
            way = f"{arrows[0]}[:K]{arrows[1]}{{{low},{longest or ''}}}"
            query = f"MATCH (a) WITH a MATCH p = ANY SHORTEST {mode} (a){way}(b{label}) RETURN a.id AS a, b.id AS b, length(p) AS n"
            assert "frontier: breadth first" in db.explain(query)
            along = graph if into == "->" else graph.reverse()
            expected = []
            for a in graph:
                far = nx.single_source_shortest_path_length(along, a)
                round_trip = min((far[b] + 1 for b in along.predecessors(a) if b in far), default=None)
                far = {**far, a: 0 if low == 0 else None if mode == "ACYCLIC" else round_trip}
                expected += [(a, b, n) for b, n in far.items() if n is not None and n <= (longest or count)]
            assert Counter(db.query(query)) == Counter(row for row in expected if not label or row[1] % 2 == 0)
