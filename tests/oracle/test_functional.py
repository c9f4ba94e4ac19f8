"""Rows gathered along functions, against brute force: trees of edges that lead to one vertex at most, away from one edge."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import graphdb
from graphdb.execute import functional as running
from graphdb.execute.functional import functional_rows
from graphdb.execute.functional_kernels import pairs_counted
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control
from graphdb.plan.passes import functional
from graphdb.plan.passes.functional import functional_plan
from graphdb.storage.graph.data_graph import DataGraph
from tests.fuzz import scaled
from tests.oracle.brute import Data, matches
from tests.oracle.strategies import source_of

ANY, OUT, IN = 1, 2, 3
"""Edge labels: of the first, a vertex has any number of edges; the others lead to, or come from, one vertex at most."""
RESOURCES = 6

pairs = st.tuples(st.integers(0, RESOURCES - 1), st.integers(0, RESOURCES - 1))
modes = st.sampled_from([mode for mode in MatchMode if mode is not MatchMode.INDUCED])


@st.composite
def functions(draw: st.DrawFn) -> Data:
    """A graph of edges of the three labels, and of one vertex label."""
    triples = {(a, ANY, b) for a, b in draw(st.sets(pairs, min_size=1, max_size=14))}
    for label in (OUT, IN):
        ends = draw(st.dictionaries(st.integers(0, RESOURCES - 1), st.integers(0, RESOURCES - 1), min_size=1))
        triples |= {(a, label, b) if label == OUT else (b, label, a) for a, b in ends.items()}
    triples |= {(a, 0, RESOURCES - 1) for a in draw(st.sets(st.integers(0, RESOURCES - 1)))}
    return Data(triples, RESOURCES, 0, 0)


@st.composite
def trees(draw: st.DrawFn, data: Data) -> PatternGraph:
    """A pattern of an edge and others that follow from its ends."""
    count, clauses = draw(st.integers(3, 4)), draw(st.integers(1, 2))
    ends = draw(st.sampled_from([(0, 1), (1, 0)]))
    root = draw(st.sampled_from([ANY, ANY, OUT, IN]))
    edges = [PatternEdge("e0", *ends, (root,), draw(st.booleans()), 0)]
    for new in range(2, count):
        before, label = draw(st.integers(0, new - 1)), draw(st.sampled_from([OUT, IN]))
        joined = (before, new) if label == OUT else (new, before)
        edges.append(PatternEdge(f"e{new - 1}", *joined, (label,), True, draw(st.integers(0, clauses - 1))))
    own = [{v for edge in edges if edge.clause == c for v in (edge.source, edge.target)} for c in range(clauses)]
    typed = sorted(a for a, label, _ in data.triples if label == 0)
    given = st.sampled_from([None, None, "some", "labelled"])
    vertices = []
    for v in range(count):
        kind, labels = draw(given), ()
        chosen = draw(st.sets(st.integers(0, RESOURCES - 1))) if kind == "some" else typed
        if kind == "labelled" and typed:
            labels = (RESOURCES - 1,)
        candidates = None if kind is None else np.array(sorted(chosen), np.int64)
        vertices.append(PatternVertex(f"v{v}", candidates, "", labels))
    numbers = draw(st.permutations(range(count)))
    vertices = [vertices[number] for number in numbers]  # numbered in any order
    place = [numbers.index(v) for v in range(count)]
    edges = [replace(edge, source=place[edge.source], target=place[edge.target]) for edge in edges]
    members = tuple(Clause(draw(modes), tuple(sorted(place[v] for v in each))) for each in own)
    unequal = tuple(draw(st.lists(st.sampled_from([(0, 1), (1, 2), (0, 2)]), max_size=1)))
    names = [vertex.name for vertex in vertices]
    outputs = tuple(draw(st.lists(st.sampled_from(names), min_size=2, unique=True)))
    duplicates: Any = draw(st.sampled_from(["keep", "count"]))
    return PatternGraph(tuple(vertices), tuple(edges), members, (), unequal, outputs=outputs, duplicates=duplicates)


cases = functions().flatmap(lambda data: st.tuples(st.just(data), trees(data)))


@settings(max_examples=scaled(250), deadline=None)
@given(
    cases,
    st.sampled_from(["direct", "hashed", "spans", None]),
    st.sampled_from([1, 2]),
    st.sampled_from([2, 64]),
    st.sampled_from([(0, 1 << 16), (0, 1), (1 << 40, 0)]),
)
def test_rows_are_those_of_all_matches(
    case: tuple[Data, PatternGraph], layer: Any, threads: int, size: int, known: tuple[int, int]
) -> None:
    """Whether what follows from the ends of edges is found before, and rows are counted, or not."""
    data, pattern = case
    note(f"triples {sorted(data.triples)} pattern {pattern}")
    graph = DataGraph(source_of(data), layer=layer)
    with mock.patch.multiple(functional, LEAST=0, SHARE=0.0):
        plan = functional_plan(pattern, graph)
    first = pattern.edges[0]
    if plan is None:  # which edges differ is decided by their ends, unless one goes either way
        assert not first.directed
        assert first.labels in [edge.labels for edge in pattern.edges[1:]]
        return
    assert plan.functional is not None
    found: Counter[tuple[int, ...]] = Counter()
    with mock.patch.multiple(running, _EDGES=size, _TIMES=known[0], _NUMBERS=known[1]):
        for block in functional_rows(plan, plan.functional, Control(), threads):
            columns = [block.columns[name].tolist() for name in pattern.outputs]
            assert all(len(column) == block.count for column in columns)
            assert (block.matches is not None) == (pattern.duplicates == "count")
            matches_of = [1] * block.count if block.matches is None else block.matches.tolist()
            for row, count in zip(zip(*columns, strict=True), matches_of, strict=True):
                found[row] += count
    assert found == Counter(tuple(row[name] for name in pattern.outputs) for row in matches(pattern, data))


@pytest.mark.parametrize("span", [20, 150, 5000])
def test_pairs_are_counted_in_their_order(span: int) -> None:
    """Of a source with any number of different ones, unless these are few of all that there are."""
    draw = np.random.default_rng(span)
    sizes = draw.integers(0, 400, 60)
    starts = np.append(0, np.cumsum(sizes))
    neighbours = draw.integers(7, 300, starts[-1]).astype(np.int32)
    sources, numbers = draw.random(60) < 0.8, draw.integers(-1, span, 293).astype(np.int32)
    source, number, counts = (np.empty(starts[-1], np.int64) for _ in range(3))
    given = starts, sources, neighbours, 7, numbers, np.zeros(span, np.int64)
    rows = pairs_counted(*given, source, number, counts)
    of_edges = zip(np.repeat(np.arange(60), sizes).tolist(), numbers[neighbours - 7].tolist(), strict=True)
    expected = Counter(pair for pair in of_edges if sources[pair[0]] and pair[1] >= 0)
    found = list(zip(source[:rows].tolist(), number[:rows].tolist(), strict=True))
    assert dict(zip(found, counts[:rows].tolist(), strict=True)) == expected
    assert len(found) == len(expected)
    assert span > 150 or found == sorted(found)


def test_a_search_is_left_what_it_does_sooner() -> None:
    """Few edges, few candidates, rows of which one does, and edges that lead to several vertices."""
    count = 4 * functional.LEAST
    triples = {(i, ANY, i // 2) for i in range(count)} | {(i, OUT, i % 100) for i in range(count)}
    graph = DataGraph(source_of(Data(triples, count, 0, None)))
    clause = (Clause(MatchMode.DIFFERENT_EDGES, (0, 1, 2)),)
    ends = tuple(PatternVertex(name) for name in "abc")
    edges = PatternEdge("e", 0, 1, (ANY,), True, 0), PatternEdge("f", 1, 2, (OUT,), True, 0)
    pattern = PatternGraph(ends, edges, clause, outputs=("a", "c"))
    assert functional_plan(pattern, graph) is not None
    assert functional_plan(replace(pattern, duplicates="count"), graph) is not None
    some = replace(ends[0], candidates=np.arange(count // 16))
    half = replace(ends[0], candidates=np.arange(count // 2))
    back = PatternEdge("f", 2, 1, (OUT,), True, 0)
    assert functional_plan(replace(pattern, vertices=(half, *ends[1:])), graph) is not None
    for other in (
        replace(pattern, vertices=(some, *ends[1:])),
        replace(pattern, edges=(edges[0], back)),
        replace(pattern, limit=10),
        replace(pattern, duplicates="drop"),
        replace(pattern, duplicates="count", outputs=("c",)),
        replace(pattern, outputs=("a", "e")),
        replace(pattern, count_only=True, outputs=()),
    ):
        assert functional_plan(other, graph) is None
    with mock.patch.object(functional, "LEAST", count + 1):
        assert functional_plan(pattern, graph) is None


QUERIES = (
    "MATCH (x)<-[:BY]-(m)-[:REPLY]-(n)-[:BY]->(y) WITH x, y, count(*) AS n RETURN x.k, y.k, n",
    "MATCH (x)<-[:BY]-(m:Even)-[:REPLY]->(n)-[:BY]->(y) RETURN x.k, m.k, n.k, y.k",
    "MATCH (a)-[:LIKES]-(b) RETURN a.k, b.k, COUNT { (a)<-[:BY]-()-[:REPLY]-()-[:BY]->(b) }",
    "MATCH (m:Message) OPTIONAL MATCH (m)-[:REPLY]->(n)-[:BY]->(y) WHERE y.k > 1 RETURN m.k, n.k, y.k",
)


def test_queries_have_the_same_rows_before_and_after_changes() -> None:
    """As those of a search, which brute force checks elsewhere; EXPLAIN and PROFILE say how they are found."""
    with graphdb.connect() as database:
        database.query("UNWIND range(0, 5) AS k CREATE (:Person {k: k})")
        database.query("UNWIND range(10, 40) AS k CREATE (:Message {k: k})")
        database.query("MATCH (m:Message) WHERE m.k % 2 = 0 SET m:Even")
        database.query("MATCH (m:Message), (p:Person) WHERE p.k = m.k * 7 % 5 CREATE (m)-[:BY]->(p)")
        database.query("MATCH (m:Message), (n:Message) WHERE n.k = m.k * 3 / 4 CREATE (m)-[:REPLY]->(n)")
        database.query("MATCH (a:Person), (b:Person) WHERE a.k < b.k CREATE (a)-[:LIKES]->(b)")

        def rows(least: int) -> list[list[tuple[Any, ...]]]:
            with mock.patch.multiple(functional, LEAST=least, SHARE=0.0):
                return [sorted(database.query(f"{text} /* {least} */").fetchall(), key=str) for text in QUERIES]

        before = rows(0)
        assert before == rows(1 << 40)
        with mock.patch.multiple(functional, LEAST=0, SHARE=0.0):
            for statement in ("EXPLAIN", "PROFILE"):
                said = str(database.query(f"{statement} {QUERIES[1]}"))
                assert "goes through 27 edges: (m)-[:REPLY]->(n)" in said
                assert "y: the only (n)-[:BY]->" in said
        database.query("MATCH (m:Message {k: 12})-[r:BY]->() DELETE r")
        database.query("MATCH (m:Message {k: 13}), (n:Message {k: 39}) CREATE (n)-[:REPLY]->(m)")
        after = rows(0)
        assert after == rows(1 << 40)
        assert after[0] != before[0]
