"""Symmetric patterns: every automorphic match is there once, whatever is enumerated and whatever is generated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations
from math import factorial
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, EdgeTest, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan import passes
from graphdb.plan.passes import make_plan
from graphdb.storage.graph import ArraySource, DataGraph
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


@settings(EXAMPLES, max_examples=400)
@given(symmetric_cases())
def test_rows_are_the_oracles(case: Case) -> None:
    check(case, DataGraph(case.source))


@EXAMPLES
@given(symmetric_cases(), st.integers(0, 12))
def test_without_symmetry_the_rows_are_the_same(case: Case, limit: int) -> None:
    graph = DataGraph(case.source)
    rows = Counter(rows_of(case.pattern, graph))
    limited = Counter(rows_of(replace(case.pattern, limit=limit), graph))
    with mock.patch.object(passes, "PASSES", tuple(p for p in passes.PASSES if p is not passes.break_symmetry)):
        assert make_plan(case.pattern, graph).automorphisms == 1
        assert Counter(rows_of(case.pattern, graph)) == rows
    assert limited <= rows
    assert limited.total() == min(limit, rows.total())


NODES, EDGES, WALK = MatchMode.DIFFERENT_NODES, MatchMode.DIFFERENT_EDGES, MatchMode.REPEATABLE_ELEMENTS


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
        ("K22", EDGES, False, 4),  # opposite corners differ; neighbours may be the same vertex, with a loop
        ("diamond", NODES, False, 4),
        ("bow tie", NODES, False, 8),
        ("two edges", NODES, False, 8),
    ],
)
def test_groups(name: str, mode: MatchMode, directed: bool, size: int) -> None:
    """Their sizes are known from the shapes; in a graph without parallel edges."""
    s, o = np.nonzero(np.triu(np.ones((6, 6)), 1))
    plan = make_plan(shape(name, mode, directed), DataGraph(ArraySource(s, np.ones(len(s)), o, 6)))
    assert plan.automorphisms == size
