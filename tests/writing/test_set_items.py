"""Items of SET are applied in order, by sets as row by row: a later one reads what an earlier one has set."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import GraphDBError
from tests.fuzz import scaled
from tests.writing.test_writing import by_rows, graph_of, rows_of, written

Pair = tuple[graphdb.Database, graphdb.Database]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with graphdb.connect(device="cpu", threads=1) as one, graphdb.connect(device="cpu", threads=1) as other:
        yield one, other


@pytest.fixture(autouse=True)
def _all_by_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphdb.writing.reading.LEAST", 0)


VALUES = ("null", "1", "7", "-0.0", "2.5", "0.0/0.0", "'t'", "true", "[1, 2]", "date('2020-01-02')", "duration('P1D')")


def start(seed: int) -> str:
    """Return a CREATE of a random graph: vertices with an ``id`` and a ``mate`` among them, and edges with an ``id``."""
    chosen = random.Random(seed)

    def properties(id: int) -> str:
        given = {key: chosen.choice(VALUES) for key in "xyz" if chosen.random() < 0.7}
        return f"{{id: {id}, mate: {chosen.randint(0, 3)}, " + ", ".join(f"{k}: {v}" for k, v in given.items()) + "}"

    vertices = [f"(n{i}:{chosen.choice(('A', 'A:B', 'B'))} {properties(i)})".replace(", }", "}") for i in range(4)]
    edges = [
        f"(n{chosen.randint(0, 3)})-[:R {properties(i)}]->(n{chosen.randint(0, 3)})".replace(", }", "}")
        for i in range(chosen.randint(0, 4))
    ]
    return "CREATE " + ", ".join([*vertices, *edges])


READS = {
    "MATCH (a:A) WITH a ORDER BY a.id": "a",
    "MATCH (a) WITH a, a.id AS i ORDER BY i": "a",
    "MATCH (a:A) WITH a, a AS b ORDER BY a.id": "ab",
    "MATCH (a) MATCH (b {id: a.mate}) WITH a, b ORDER BY a.id": "ab",
    "MATCH (a) OPTIONAL MATCH (b:B {id: a.mate}) WITH a, b ORDER BY a.id": "ab",
    "MATCH (a)-[b]->() WITH a, b ORDER BY b.id": "ab",
    "UNWIND [1, 2, 2] AS i MATCH (a {id: i}) WITH a, i ORDER BY i": "a",
}
"""What finds rows in an order, and its variables of vertices and edges."""


@st.composite
def statements(draw: st.DrawFn) -> str:
    read = draw(st.sampled_from(list(READS)))
    known = READS[read]

    def place() -> str:
        return f"{draw(st.sampled_from(known))}.{draw(st.sampled_from('xyz'))}"

    def value(depth: int = 2) -> str:
        if depth == 0 or draw(st.booleans()):
            return draw(st.one_of(st.builds(place), st.sampled_from(VALUES)))
        form = draw(
            st.sampled_from(
                (
                    "{} + {}",
                    "coalesce({}, {})",
                    "CASE WHEN {} IS NULL THEN {} ELSE 3 END",
                    "[i IN [1, 2] | {}]",
                    "size([i IN [{}, 4] WHERE i = {}])",
                    "reduce(s = 0, a IN [1, 2] | s + {})",
                    "any(b IN [1, 2] WHERE b = {})",
                    "toString({})",
                    "{} IN [{}]",
                    "COUNT {{ MATCH (m) WHERE m.x = {} }}",
                    "{} = {}",
                )
            )
        )
        return form.format(*(value(depth - 1) for _ in range(form.count("{}"))))

    def item() -> str:
        kind, name = draw(st.integers(0, 9)), draw(st.sampled_from(known))
        if kind == 0:
            return f"{name} += {{x: {value()}, y: {value()}}}"
        if kind == 1:
            return draw(st.sampled_from((f"{name}:C", f"{name} = {{id: 1}}", f"{name} += a")))
        return f"{place()} = {value()}"

    return f"{read} SET {', '.join(item() for _ in range(draw(st.integers(2, 4))))}"


def outcome(run: Callable[[graphdb.Database, str], graphdb.Result], db: graphdb.Database, text: str) -> object:
    """Return what changed, or the kind of error."""
    try:
        return run(db, text).message
    except GraphDBError as error:
        return type(error)


@settings(max_examples=scaled(12), deadline=None)
@given(st.integers(0, 10**6), statements())
def test_random_items_both_ways(pair: Pair, seed: int, text: str) -> None:
    for db in pair:
        by_rows(db, "MATCH (n) DETACH DELETE n")
        by_rows(db, start(seed))
    one, other = pair
    found = outcome(graphdb.Database.query, one, text)
    assert found == outcome(by_rows, other, text), (start(seed), text)
    assert graph_of(one) == graph_of(other), (start(seed), text)


BY_SETS = [
    "MATCH (q) SET q.k = coalesce(q.k, 0) + 1, q.t = 'text ' + q.k",
    "MATCH (q) SET q.k = 1, q.k = q.k + 1, q.k = q.k * 10, q.t = -q.k",
    "MATCH (q) SET q += {x: 5, y: q.x}, q.z = [q.x, q.y], q.x = null, q.n = q.x IS NULL",
    "MATCH (a)-[r]->(b) SET r.x = 1.5, r.y = r.x + r.x",
    "MATCH (q) SET q.x = -0.0, q.y = toString(q.x), q.d = date('2020-01-02'), q.m = q.d.month",
    "MATCH (q) OPTIONAL MATCH (o:Nothing {x: q.x}) SET o.x = 3, q.y = coalesce(o.x, 'none')",
    "UNWIND range(1, 9) AS i CREATE (n:New {i: i}) SET n.i = n.i * 2, n.j = n.i + 1",
    "UNWIND range(1, 5) AS i MERGE (n:M {i: i}) ON CREATE SET n.a = 1, n.b = n.a + 1 ON MATCH SET n.c = 1, n.d = n.c",
    "UNWIND range(3, 8) AS i MERGE (n:M {i: i}) ON CREATE SET n.a = 1, n.b = n.a + 1 ON MATCH SET n.c = 1, n.d = n.c",
    "MATCH (q) SET q.x = COUNT { (q)-->() }, q.y = q.x + 1",
    "MATCH (q) SET q.x = 3, q.y = [i IN [1, 2] | i + q.x]",
]


def test_these_go_by_sets(pair: Pair) -> None:
    for db in pair:
        by_rows(db, "MATCH (n) DETACH DELETE n")
        by_rows(db, start(3))
    one, other = pair
    for text in BY_SETS:
        why: list[str] = []
        result = written(one, text, 0, why)
        assert not why, text
        assert result.message == by_rows(other, text).message, text
        assert graph_of(one) == graph_of(other), text


@pytest.mark.parametrize(
    "items",
    [
        "q.x = rand(), q.y = q.x",
        "q.x = i, q.y = [i IN [7, 8] | q.x + i]",
        "q.x = 1, q.y = [q IN [{x: 5}] | q.x]",
        "q.x = 1, q.y = datatype(q.x)",
        "q.x = 1, q.y = size(keys(q))",
        "q = {x: 1}, q.y = q.x",
        "q:Seen, q.y = size(labels(q))",
        "q.x = 'ab', q.<https://example.org/x> = 'c', q.y = q.x",
        "q.x = 'ab'" + ", q.x = q.x + q.x" * 12,
    ],
)
def test_what_has_no_expression_in_its_place_goes_row_by_row(pair: Pair, items: str) -> None:
    one, other = pair
    for db in pair:
        by_rows(db, "MATCH (n) DETACH DELETE n")
        by_rows(db, "CREATE (:Q {x: 0}), (:Q)")
    text = f"UNWIND [1] AS i MATCH (q:Q) SET {items}"
    why: list[str] = []
    written(one, text, 0, why)
    assert why
    if "rand()" in items:
        assert one.query("MATCH (q:Q) RETURN q.x = q.y").fetchall() == [(True,), (True,)]
        return
    by_rows(other, text)
    assert graph_of(one) == graph_of(other)
    assert rows_of(one.query("MATCH (q:Q) RETURN q.y")) == rows_of(other.query("MATCH (q:Q) RETURN q.y"))
