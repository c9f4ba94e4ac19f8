"""EXPLAIN runs no match: neither the query's nor those of patterns that are conditions."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import graphdb
from graphdb.execute.host import HostExecutor
from graphdb.execute.paths.steps import Paths
from graphdb.relational import match_run
from graphdb.relational.edges.assignment import Chooser
from graphdb.relational.program import Searched

CONDITIONS = [
    "(a)-[:R]->()",
    "NOT (a)-[:R]->(:B {x: 2})",
    "(a)-[:S]->(b)",
    "()-[:S]->()",
    "(a)-[:R {w: 5}]->()",
    "(a)-[:R*1..3]->(:B)",
    "EXISTS { (a)-[:R]->() }",
    "EXISTS { MATCH (a)-[:R]->(c) WHERE c.x > a.x AND (c)-[:S]->() }",
    "NOT EXISTS { (a)-[:R|S]->+(:B) }",
    "COUNT { (a)-[:R]->() } > 1",
    "all(y IN [1, 2] WHERE (a)-[:R]->())",
]
PATTERNS = [
    "(a:A), (b)",
    "(a:A)-[:R]->(b)",
    "(a)-[r:R {w: 1}]->(b:B)",
    "p = ANY SHORTEST (a:A) ((x)-[r:R]->(y) WHERE r.w >= 1)+ (b:B)",
    "p = ANY SHORTEST (a:A)-[r:R {w: 1}]->+(b:B WHERE b.x > 1)",
    "(a:A)-[:R]->{1,3}(b)",
]
RESULTS = [
    "a.x",
    "count(*)",
    "a.x, (a)-[:R]->(b) AS s",
    "DISTINCT b",
    "[(a)-[:R]->(c) | c.x]",
    "b.x ORDER BY a.x LIMIT 1",
]


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query(
            "CREATE (a:A {x: 1})-[:R {w: 1}]->(b:B {x: 2})-[:S {w: 2}]->(c:A {x: 3})-[:R {w: 3}]->(a), (a)-[:S]->(c), "
            "(a)-[:R {w: 5}]->(b)"
        )
        yield database


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What ran of matches and searches, by its name."""
    names: list[str] = []
    runs = [
        (HostExecutor, "run"),
        (HostExecutor, "count"),
        (match_run, "count_by_vertex"),
        (match_run, "count_matches"),
    ]
    runs += [(Chooser, "scan"), *[(Paths, name) for name in ("between", "across", "reached")]]
    for owner, name in runs:
        original = getattr(owner, name)

        def spy(*arguments: object, original: object = original, name: str = name, **named: object) -> object:
            names.append(name)
            return original(*arguments, **named)  # type: ignore[operator]

        monkeypatch.setattr(owner, name, spy)
    return names


def test_explain_runs_no_match(db: graphdb.Database, ran: list[str]) -> None:
    chance = random.Random(5)
    queries = [f"MATCH {pattern} RETURN {result}" for pattern in PATTERNS for result in RESULTS]
    queries += [f"MATCH {chance.choice(PATTERNS)} WHERE {c} RETURN {r}" for c in CONDITIONS for r in RESULTS[:3]]
    queries += [
        f"MATCH (a:A) WHERE {chance.choice(CONDITIONS[:1])} WITH a MATCH {chance.choice(PATTERNS[1:3])} RETURN count(*)",
        "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b) WHERE (b)-[:R]->() RETURN a.x, b.x",
        "CALL { MATCH (a:A) WHERE (a)-[:S]->() RETURN a } RETURN a.x",
        "MATCH (a:A) WHERE (a)-[:S]->() SET a.seen = true",
        "MATCH (a:A) WHERE (a)-[:R]->+(:B) CREATE (a)-[:T]->(:C)",
        "MATCH (a:A), (b:B) WHERE NOT (a)-[:T]->(b) MERGE (a)-[:T]->(b)",
    ]
    for query in queries:
        report = db.explain(query)
        assert not ran, (query, ran)
        assert report
    before = db.query("MATCH (a)-[r]->(b) RETURN count(*)").scalar()
    assert ran
    assert before == 5


def test_what_explain_leaves_out_runs_afterwards(db: graphdb.Database, ran: list[str]) -> None:
    """What EXPLAIN has prepared runs: patterns that are conditions are steps of it."""
    query = "MATCH (a:A) WHERE (a)-[:R {w: 3}]->() RETURN a.x"
    report = db.explain(query)
    steps = [line.split(" on ")[0].split(",")[0] for line in report.splitlines() if line.startswith(("match", "semi"))]
    assert steps == ["semijoin with _bindings2", "match _bindings1"]
    assert not ran
    for _ in range(3):
        ran.clear()
        assert db.query(query).fetchall() == [(3,)]
        assert len(ran) == 2  # the same steps each time
    ran.clear()
    assert db.explain(query) == report
    assert not ran


def test_a_cached_plan_holds_no_matches(db: graphdb.Database, ran: list[str]) -> None:
    """What conditions match is found anew by each run, and the edges of a path once for a state of the data: the plan
    says how, not what.
    """
    queries = [
        ("MATCH (a:A) WHERE (a)-[:R]->(:B) RETURN a.x", [(1,)], 2),
        ("MATCH (a:A) WHERE (a)-[:R]->(:B) RETURN count(*)", [(1,)], 2),
        ("MATCH (a:A) WHERE EXISTS { (a)-[:R|S]->+(:B) } RETURN count(*) AS n", [(2,)], 2),
        ("MATCH p = ANY SHORTEST (a:A) ((x)-[r:R]->(y) WHERE r.w >= 1)+ (b:B) RETURN count(*) AS n", [(2,)], 1),
    ]
    for query, rows, least in queries:
        for _ in range(3):
            ran.clear()
            assert db.query(query).fetchall() == rows, query
            assert len(ran) >= least, query
        cached = db._state.plans.get(query, 0, {})
        assert cached is not None
        for step in cached.plan.steps:
            assert getattr(step, "plan", None) is None or not step.given
            assert not isinstance(step, Searched) or step.path.along is None


@pytest.mark.parametrize(
    "created",
    ["TABLE t", "OR REPLACE TEMP TABLE t", "TABLE IF NOT EXISTS t", "VIEW t", "OR REPLACE VIEW t"],
)
def test_a_table_or_view_is_explained_by_its_query_and_not_made(created: str) -> None:
    with graphdb.connect(device="cpu") as database:
        database.query("CREATE (:A {x: 1})-[:R]->(:B)")
        query = "MATCH (a:A)-[:R]->(b) RETURN a.x AS x"
        for ended in ("", ";"):
            explained = database.query(f"EXPLAIN CREATE {created} AS {query}{ended}")
            assert str(explained) == str(database.query(f"EXPLAIN {query}"))
        assert database.sql("SELECT count(*) FROM duckdb_tables() WHERE table_name = 't'").scalar() == 0
        assert database.sql("SELECT count(*) FROM duckdb_views() WHERE view_name = 't'").scalar() == 0
        with pytest.raises(graphdb.ParseError, match="expected"):
            database.query(f"PROFILE CREATE {created} AS {query}")
