"""Continuous queries with OPTIONAL MATCH, and of single vertices, follow batches by what delta plans find of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import graphdb
from graphdb.storage.triples import TripleStore
from tests.fuzz import scaled
from tests.live.test_parallel_edges import explained
from tests.live.writes import bag, begin, check, check_history, create, opened, statement, strategies

Ints = NDArray[np.int64]

QUERIES = {
    "vertex": "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b) RETURN a.i AS i, b.i AS j, b.k AS k",
    "pair": "MATCH (a:A)-[:R]->(b) OPTIONAL MATCH (b)-[:S]->(c:A) WHERE c.k > 0 RETURN a.i AS i, b.k AS k, c.i AS j",
    "where": "MATCH (a)-[:R]->(b:B) WHERE a.k < 3 OPTIONAL MATCH (a)-[:S]->(c)-[:R]->(b) RETURN a.i AS i, c.i AS j",
    "two": "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) OPTIONAL MATCH (a)-[:S]->(c) RETURN a.i AS i, b.i AS j, c.k AS k",
    "chain": "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) OPTIONAL MATCH (b)-[:S]->(c) RETURN a.i AS i, b.i AS j, c.k AS k",
    "unless": "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) OPTIONAL MATCH (a)-[:S]->(c) WHERE b IS NULL RETURN a.i, c.i",
    "edge": "MATCH (a)-[e:R]->(b) OPTIONAL MATCH (b)-[f:R]->(a) RETURN a.i AS i, e.w AS v, f.w AS w",
    "anonymous": "MATCH (a)-[:R]->() OPTIONAL MATCH (a)<-[:S]-(:B) RETURN a.i AS i",
    "counted": "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) RETURN a.k AS k, count(b) AS n, count(*) AS m, max(b.i) AS x",
    "named": "MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b) RETURN a, count(DISTINCT b.k) AS n, min(b.i) AS m",
    "missing": "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b) RETURN b.i AS i, count(*) AS n, min(a.i) AS m",
    "distinct": "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b:B) RETURN DISTINCT a.k AS k, b.i AS i",
    "alone": "MATCH (a:A) RETURN a.i AS i, labels(a) AS l",
    "chosen": "MATCH (a:A|B) WHERE a.k > 1 RETURN a.i AS i, a.k AS k",
    "grouped": "MATCH (a:A) RETURN a.k AS k, count(*) AS n, sum(a.i) AS s, max(a.i) AS m",
    "later": "MATCH (a:New) OPTIONAL MATCH (a)-[:T]->(b:New) RETURN a.i AS i, b.fresh AS f",
}


@settings(max_examples=scaled(10), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.integers(0, 1 << 32))
@example(17293538)  # a transaction that is rolled back drops tables of properties
@example(130)  # groups that are not stored yet
@example(28362)  # a condition that asks for a vertex of another optional clause
def test_answers_follow_every_batch(seed: int) -> None:
    draw = np.random.default_rng(seed)

    def begun(db: graphdb.Database) -> dict[str, str]:
        begin(db, draw, 0)
        names = draw.choice(sorted(QUERIES), 5, replace=False).tolist()
        queries = {f"q_{name}": QUERIES[name] for name in names}
        create(db, queries)
        return queries

    with tempfile.TemporaryDirectory() as folder:
        check_history(Path(folder) / "a.duckdb", draw, begun, statement)


def test_delta_plans_are_used() -> None:
    draw = np.random.default_rng(2)
    with opened(None) as db:
        begin(db, draw, 0)
        for name, text in QUERIES.items():
            db.query(f"CREATE CONTINUOUS QUERY q_{name} AS {text}")
            assert "maintained by delta plans" in explained(db, f"q_{name}")
        for number in range(10):
            db.query(f"MATCH (a:A {{i: {number % 4}}}), (b:B {{i: {number}}}) MERGE (a)-[:R]->(b) MERGE (b)-[:S]->(a)")
            db.query(f"MATCH (a:A {{i: {number}}}) SET a.k = {number % 3}")
        assert strategies(db)["compared"] <= 2  # of properties that nothing had before
        assert strategies(db)["delta plans"] > 200


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("MATCH (:A)-[:R]->() OPTIONAL MATCH (a)-[:S]->(b) RETURN b", "no vertex with a name"),
        (
            "MATCH (a:A) OPTIONAL MATCH (a)-[:R*]->(b) OPTIONAL MATCH (b)-[:S]->(c) RETURN a, c",
            "a pattern goes on from",
        ),
        ("MATCH (a:A) OPTIONAL MATCH (c)-[:R*]->(b) RETURN a, b", "neither end of a path of any length"),
        ("MATCH (a:A) OPTIONAL MATCH (a)-[:R*0..1]->(b) RETURN a, b", "paths may have no edge"),
        ("MATCH (a:A)-[:R*]->(m)-[:R*0..1]->(b) RETURN a, b", "paths may have no edge"),
        ("MATCH (a:A) OPTIONAL MATCH p = shortestPath((a)-[:R*1..2]->(b:B)) RETURN a, p", "chooses among paths"),
        ("MATCH (a:A) RETURN [(a)-[:R]->(b) | b.i] AS l", "whose order is not determined"),
        ("MATCH (a:A) WHERE EXISTS { (:B)-[:R]->() } RETURN a", "that its row says nothing of"),
        ("MATCH (a:A) WHERE EXISTS { MATCH (a)-[:R]->(b) WITH b RETURN b } RETURN a", "other clauses than MATCH"),
        ("MATCH (a:A) WHERE any(x IN [1] WHERE (a)-[:R]->()) RETURN a", "lists have patterns"),
    ],
)
def test_others_are_compared(text: str, why: str) -> None:
    with opened(None) as db:
        begin(db, np.random.default_rng(0), 0)
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        assert why in explained(db, "q")


def test_only_what_changed_is_asked_for() -> None:
    with opened(None) as db:
        db.query("UNWIND range(0, 99) AS x CREATE (:A {i: x})-[:R]->(:B {i: x})")
        db.query(
            "CREATE CONTINUOUS QUERY q AS MATCH (a:A) OPTIONAL MATCH (a)-[:R]->(b)-[:S]->(c) RETURN a.i AS i, c.i AS j"
        )
        db.query("MATCH (a:A {i: 7})-[:R]->(b), (c:B {i: 8}) CREATE (b)-[:S]->(c)")
        assert db.sql("SELECT change, i, j FROM q_changes ORDER BY ALL").fetchall() == [(-1, 7, None), (1, 7, 8)]
        db.query("MATCH (b:B {i: 7})-[s:S]->() DELETE s")
        assert db.sql("SELECT batch, change, i, j FROM q_changes WHERE batch = 2 ORDER BY ALL").fetchall() == [
            (2, -1, 7, 8),
            (2, 1, 7, None),
        ]
        assert set(strategies(db)) == {"delta plans"}


def test_no_label_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    edges = TripleStore.edges

    def noted(store: TripleStore, label: int) -> tuple[Ints, Ints]:
        read.append(label)
        return edges(store, label)

    with opened(None) as db:
        db.query("UNWIND range(0, 99) AS x CREATE (:A {i: x})-[:R]->(:B {i: x})-[:S]->(:B {i: -x})")
        db.query("CREATE CONTINUOUS QUERY q AS MATCH (a:A)-[:R]->(b) OPTIONAL MATCH (b)-[:S]->(c) RETURN a.i, c.i")
        for number in range(6):
            if number == 3:  # by now, what the states before and after a batch need is derived
                monkeypatch.setattr(TripleStore, "edges", noted)
            db.query(f"MATCH (b:B {{i: {number}}}), (c:B {{i: -7}}) CREATE (b)-[:S]->(c)")
            db.query(f"MATCH (:B {{i: {number}}})-[s:S]->(:B {{i: -7}}) DELETE s")
        assert strategies(db) == {"delta plans": 12}
        assert not read


@pytest.mark.parametrize("optional", ["OPTIONAL MATCH (a)", "MATCH (a)"])
def test_batches_that_are_compared_reach_matchers(optional: str) -> None:
    text = f"MATCH (a:A) {optional}-[:S]->(b:B) RETURN DISTINCT a.k AS k, b.i AS i"
    with opened(None) as db:
        db.query("UNWIND range(0, 4) AS x CREATE (:A {i: x, k: x})-[:S]->(:B {i: x})")
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        stored = {"q": bag(db, "FROM q")}
        for statement in (
            "MATCH (a:A {i: 0}), (b:B {i: 1}) CREATE (a)-[:S]->(b)",
            # groups get another type, and with it an edge comes and another one goes
            "MATCH (a:A {i: 1})-[s:S]->() SET a.k = 'text' DELETE s CREATE (a)-[:S]->(:B {i: 9})",
            "MATCH (:A {i: 1})-[s:S]->() DELETE s",
            "MATCH (a:A {i: 1}), (b:B {i: 1}) CREATE (a)-[:S]->(b)",
        ):
            db.query(statement)
            check(db, {"q": text}, stored)
        assert set(strategies(db)) == {"compared", "delta plans"}
