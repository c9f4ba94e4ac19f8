"""Symmetric patterns: every automorphic match is there once, whatever is enumerated and whatever is generated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, takewhile
from math import factorial
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.execute.counting import cliques
from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, EdgeTest, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.passes import pipeline
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.fuzz import scaled
from tests.oracle.brute import Data
from tests.oracle.strategies import Case, graphs, source_of
from tests.oracle.test_matching import EXAMPLES, check, rows_of

Edges = list[tuple[int, int]]

SHAPES: dict[str, tuple[int, Edges]] = {
    **{f"clique {k}": (k, list(combinations(range(k), 2))) for k in (2, 3, 4)},
    **{f"cycle {k}": (k, [(i, (i + 1) % k) for i in range(k)]) for k in (3, 4, 5)},
    **{f"star {k}": (k + 1, [(0, i + 1) for i in range(k)]) for k in (2, 3)},
    **{f"path {k}": (k, [(i, i + 1) for i in range(k - 1)]) for k in (3, 4)},
    "K22": (4, [(0, 2), (0, 3), (1, 2), (1, 3)]),
    "K23": (5, [(a, b) for a in (0, 1) for b in (2, 3, 4)]),
    "diamond": (4, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]),
    "two edges": (4, [(0, 1), (2, 3)]),
    "bow tie": (5, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (2, 4)]),
}


def shape(name: str, mode: MatchMode, directed: bool, labels: tuple[int, ...] | None = (1,)) -> PatternGraph:
    count, edges = SHAPES[name]
    return PatternGraph(
        tuple(PatternVertex(f"v{i}") for i in range(count)),
        tuple(PatternEdge(f"e{i}", a, b, labels, directed, 0) for i, (a, b) in enumerate(edges)),
        (Clause(mode, tuple(range(count))),),
        outputs=tuple(f"v{i}" for i in range(count)),
    )


@st.composite
def symmetric_cases(draw: st.DrawFn) -> Case:
    """A symmetric pattern, now and then with candidate sets, inequalities, tests and outputs that break symmetry."""
    name = draw(st.sampled_from(sorted(SHAPES)))
    data = draw(graphs() if SHAPES[name][0] < 5 else dense())
    labels = draw(st.sampled_from([(1,), (1,), (1,), (1, 2), None]))
    pattern = shape(name, draw(st.sampled_from(list(MatchMode))), draw(st.booleans()), labels)
    count = len(pattern.vertices)
    vertex = st.integers(0, count - 1)
    if draw(st.sampled_from([False, False, True])):
        sets = [np.array(sorted(draw(st.sets(st.integers(0, data.vertices - 1)))), np.int64) for _ in range(2)]
        which = draw(st.lists(st.sampled_from([0, 0, 1, None]), min_size=count, max_size=count))
        vertices = tuple(
            PatternVertex(v.name, None if w is None else sets[w].copy())
            for v, w in zip(pattern.vertices, which, strict=True)
        )
        pattern = replace(pattern, vertices=vertices)
    if draw(st.sampled_from([False, False, True])):
        pattern = replace(pattern, unequal=(draw(st.tuples(vertex, vertex)),))
    if draw(st.sampled_from([False, False, True])):
        test = EdgeTest(draw(vertex), draw(vertex), (2,), draw(st.booleans()), draw(st.booleans()))
        pattern = replace(pattern, edge_tests=(test,))
    if draw(st.sampled_from([False, False, True])):
        first = pattern.edges[0]
        pattern = replace(pattern, edges=(replace(first, labels=(2,)), *pattern.edges[1:]))
    names = [v.name for v in pattern.vertices] + [e.name for e in pattern.edges]
    outputs = draw(st.one_of(st.just(pattern.outputs), st.lists(st.sampled_from(names), unique=True).map(tuple)))
    return Case(source_of(data), data, replace(pattern, outputs=outputs))


@st.composite
def dense(draw: st.DrawFn) -> Data:
    """Five vertices and one edge label: few assignments, many matches."""
    pair = st.tuples(st.integers(0, 4), st.just(1), st.integers(0, 4))
    return Data(draw(st.sets(pair, min_size=6, max_size=20)), 5, 0, None)


@settings(EXAMPLES, max_examples=scaled(400))
@given(symmetric_cases())
def test_rows_are_the_oracles(case: Case) -> None:
    check(case, DataGraph(case.source))


@EXAMPLES
@given(symmetric_cases(), st.integers(0, 12))
def test_without_symmetry_the_rows_are_the_same(case: Case, limit: int) -> None:
    graph = DataGraph(case.source)
    rows = Counter(rows_of(case.pattern, graph))
    limited = Counter(rows_of(replace(case.pattern, limit=limit), graph))
    with mock.patch.object(pipeline, "PASSES", tuple(p for p in pipeline.PASSES if p is not pipeline.break_symmetry)):
        assert make_plan(case.pattern, graph).automorphisms == 1
        assert Counter(rows_of(case.pattern, graph)) == rows
    assert limited <= rows
    assert limited.total() == min(limit, rows.total())


NODES, EDGES, WALK = MatchMode.DIFFERENT_NODES, MatchMode.DIFFERENT_EDGES, MatchMode.REPEATABLE_ELEMENTS


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize(
    ("name", "mode", "directed", "size"),
    [
        ("clique 4", NODES, False, factorial(4)),
        ("clique 4", NODES, True, 1),
        ("cycle 5", NODES, False, 10),
        ("cycle 5", NODES, True, 5),
        ("star 3", NODES, True, factorial(3)),
        ("star 3", EDGES, True, factorial(3)),  # the leaves differ, since the edges do
        ("star 3", WALK, True, 1),
        ("path 3", EDGES, False, 2),
        ("path 4", NODES, False, 2),
        ("K23", NODES, False, factorial(2) * factorial(3)),
        ("K22", NODES, False, 8),
        ("K22", EDGES, False, 8),
        ("clique 3", WALK, False, 6),
        ("diamond", NODES, False, 4),
        ("bow tie", NODES, False, 8),
        ("two edges", NODES, False, 8),
    ],
)
def test_groups(name: str, mode: MatchMode, directed: bool, size: int, loops: bool) -> None:
    """Their sizes are known from the shapes, in a graph without parallel edges; with loops, joined vertices may be one."""
    s, o = np.nonzero(np.triu(np.ones((6, 6)), 0 if loops else 1))
    plan = make_plan(shape(name, mode, directed), DataGraph(ArraySource(s, np.ones(len(s)), o, 6)))
    # Opposite corners of a square still differ, since the edges do; the corners of a triangle walked along need not.
    with_loops = {("K22", EDGES): 4, ("clique 3", WALK): 1}
    assert plan.automorphisms == (with_loops.get((name, mode), size) if loops else size)


@settings(EXAMPLES, max_examples=scaled(60))
@given(st.integers(3, 7), st.integers(8, 70), st.floats(0.2, 0.95), st.booleans(), st.integers(0, 9))
def test_cliques_are_counted_over_the_oriented_graph(k: int, n: int, density: float, loops: bool, seed: int) -> None:
    """The same count as NetworkX's enumeration of all cliques; loops are in nobody's way."""
    rng = np.random.default_rng(seed)
    n = min(n, {3: 70, 4: 26}.get(k, 14))
    s, o = np.nonzero(np.triu(rng.random((n, n)) < density, 0 if loops else 1))
    pattern = replace(
        PatternGraph(
            tuple(PatternVertex(f"v{i}") for i in range(k)),
            tuple(PatternEdge(f"e{i}", a, b, (1,), False, 0) for i, (a, b) in enumerate(combinations(range(k), 2))),
            (Clause(NODES, tuple(range(k))),),
        ),
        count_only=True,
    )
    plan = make_plan(pattern, DataGraph(ArraySource(s, np.ones(len(s)), o, n)))
    assert plan.clique is not None or not len(plan.steps[0].scan)  # there are too few edges for a clique
    proper = nx.Graph([(a, b) for a, b in zip(s.tolist(), o.tolist(), strict=True) if a != b])
    rising = takewhile(lambda clique: len(clique) <= k, nx.enumerate_all_cliques(proper))
    wanted = sum(len(clique) == k for clique in rising) * factorial(k)
    sizes = {"_INLINE_WORK": 1 if seed % 2 else 1 << 60, "_CHUNK": 1, "_BUDGET": 1 if seed % 3 else 1 << 22}
    with mock.patch.multiple(cliques, **sizes):
        assert HostExecutor(2).count(plan) == wanted
