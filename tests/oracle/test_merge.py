"""MERGE by sets against MERGE row by row: the same rows, changes and graph, on random graphs."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import GraphDBError
from graphdb.writing.run import Writing
from tests.fuzz import scaled

ids = st.integers(0, 5)
vertices = st.lists(st.tuples(ids, st.sampled_from(["P", "Q"])), max_size=6)
edges = st.lists(st.tuples(ids, ids, st.sampled_from(["R", "S"])), max_size=6)
given_rows = st.lists(ids, max_size=8)

SOURCES = (
    "UNWIND $rows AS i",
    "UNWIND $rows AS i MATCH (a:P {id: i})",
    "MATCH (a:P) WITH a, a.id AS i",
    "UNWIND $rows AS i MATCH (a:P {id: i}), (b:Q)",
)
PATTERNS = (
    "(n:P {id: i})",
    "(n:Q {id: i % 3, sort: 'new'})",
    "(n:P {id: i})-[r:R]->(m:Q {id: i + 1})",
    "(a)-[r:R]->(n:New {id: i % 2})",
    "(a)<-[r:S {w: i % 2}]-(n:P)",
    "(a)-[r:R]->(b)",
    "(b)-[r:S]-(a)",
    "(a)-[r:R]->(a)",
)
SETS = (
    "",
    "ON CREATE SET n.made = i",
    "ON MATCH SET n.seen = coalesce(n.seen, 0) + 1",
    "ON CREATE SET n.x = 1, n:Made ON MATCH SET n.seen = true",
    "ON CREATE SET r.made = i ON MATCH SET r.seen = i",
    "ON MATCH SET a.id = i + 1",
)
ENDS = ("", " RETURN count(*)", " RETURN i, n.id, n.made, n.seen", " SET n.after = i")


def statements() -> list[str]:
    """All that bind what they name."""
    found = []
    for source in SOURCES:
        for pattern in PATTERNS:
            for sets in SETS:
                for end in ENDS:
                    needs = {name for name in "ab" if f"({name})" in pattern or f"{name}.id = i + 1" in sets}
                    named = {name for name in "nr" if f"({name}:" in pattern or f"[{name}:" in pattern}
                    used = {name for name in "nr" if f"{name}." in sets + end or f"{name}:" in sets}
                    if all(f"({name}:" in source for name in needs) and used <= named:
                        found.append(f"{source} MERGE {pattern} {sets}{end}")
    return found


STATEMENTS = statements()


def filled(vertices: list[Any], edges: list[Any]) -> graphdb.Database:
    """A database with some vertices, and edges between the first ones of their numbers."""
    db = graphdb.connect()
    made = ", ".join(f"(v{i}:{label} {{id: {id}}})" for i, (id, label) in enumerate(vertices))
    place = {id: i for i, (id, _) in reversed([*enumerate(vertices)])}
    known = [(place[a], place[b], label) for a, b, label in edges if a in place and b in place]
    made += "".join(f", (v{a})-[:{label} {{w: {i % 2}}}]->(v{b})" for i, (a, b, label) in enumerate(known))
    if made:
        db.query(f"CREATE {made}")
    return db


def graph(db: graphdb.Database) -> list[Counter[Any]]:
    """All vertices and edges, by value: what they are called is not compared."""

    def plain(value: Any) -> Any:
        return repr(sorted(value)) if isinstance(value, list) else repr(value)

    report = "labels(x), properties(x)"
    queries = (
        f"MATCH (x) RETURN {report}",
        "MATCH (a)-[x]->(b) RETURN properties(a), type(x), properties(x), properties(b)",
    )
    return [Counter(tuple(map(plain, row)) for row in db.query(query).fetchall()) for query in queries]


def ran(db: graphdb.Database, text: str, rows: list[int]) -> Any:
    try:
        result = db.query(text, **({"rows": rows} if "$rows" in text else {}))
    except GraphDBError as error:
        return type(error), str(error)
    return result.message, Counter(map(repr, result.fetchall())) if result.columns else None


@pytest.fixture(autouse=True)
def _all_by_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphdb.writing.reading.LEAST", 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=scaled(12), deadline=None)
@given(vertices, edges, given_rows, st.lists(st.sampled_from(STATEMENTS), min_size=1, max_size=2))
def test_sets_do_what_rows_do(vertices: list[Any], edges: list[Any], rows: list[int], texts: list[str]) -> None:
    with filled(vertices, edges) as sets, filled(vertices, edges) as by_rows:
        for text in texts:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("graphdb.writing.reading.LEAST", ALL)
                expected = ran(by_rows, text, rows)
            assert ran(sets, text, rows) == expected, text
            assert graph(sets) == graph(by_rows), text


ALL = 1 << 60
"""More rows than any statement has: all go one by one."""


@pytest.mark.parametrize(
    "text",
    [
        "UNWIND $rows AS i MERGE (n:P {id: i}) ON CREATE SET n.x = 1 ON MATCH SET n.seen = true RETURN n.id",
        "UNWIND $rows AS i MATCH (a:P {id: i}) MERGE (a)-[r:R]->(b:Q {id: i % 2}) ON MATCH SET r.w = i",
        "MATCH (a:P), (b:Q) MERGE (a)-[r:R {w: 1}]->(b) ON CREATE SET r.new = true",
    ],
)
def test_these_go_by_sets(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Else the comparison would compare rows with rows."""
    done: list[list[str]] = []
    run = Writing.run

    def noted(writing: Writing) -> Any:
        result = run(writing)
        done.append(writing.row_by_row)
        return result

    with filled([(1, "P"), (2, "Q")], [(1, 2, "R")]) as db:
        monkeypatch.setattr(Writing, "run", noted)
        db.query(text, **({"rows": [1, 2, 2, 1, 3]} if "$rows" in text else {}))
    assert done == [[]]


ROW_AFTER_ROW = {
    "MERGE (a)-[r:R]-(b)": True,
    "MERGE (a)-[r:R {w: r % 2}]-(b) ON CREATE SET r.new = true": True,
    "MERGE (a)-[:R]->(b)-[:R]->(a)": False,
    "MERGE (n:P {id: i})-[:R]-(m:P {id: j})": False,
    "MERGE (n:P {id: i}) ON CREATE SET n.id = j": False,
    "MERGE (n:P {id: i}) ON CREATE SET n['id'] = j": False,
    "MERGE (n:P {id: i}) ON CREATE SET n += asked": False,
    "MERGE (n:P {id: i}) ON CREATE SET n += other": True,
    "MERGE (n:P {id: i}) ON CREATE SET n = other": False,
    "MERGE (n:P {id: asked.id}) ON CREATE SET n = asked ON MATCH SET n += asked": True,
    "MERGE (n {x: 1})-[:R]->(m {x: 2}) ON CREATE SET n.x = 2": False,
    "MERGE (n:N {w: coalesce(a.w, 0)}) ON CREATE SET a.w = j": False,
    "MERGE (n:P {id: i})-[:R]-(m:Q {id: j}) ON CREATE SET n:Q, m:P": False,
    "MERGE (n:P {id: i})-[:R]-(m:<urn:graphdb:P> {id: j})": False,
    "MERGE (n:P {id: i})-[:R]->(:M)<-[:R]-(m:P {id: j})": False,
    "MERGE (n {id: i})-[:R]->(m {id: j})-[:R]->(n)": False,
    "MERGE (a)-[:R]->(:M)<-[:R]-(b)": False,
    "MERGE (a)-[:R]->(:M)-[:R]->(b)": True,
    "MERGE (a)-[:R]->(n)-[:R]->(m)": False,
    "MERGE (n:N {id: i})-[:R]->(b)-[:S]->(m:M)": False,
    "MERGE (n:N {id: i}) ON CREATE SET n.id = j ON MATCH SET n.c = COUNT { (n)--() }": False,
    "MERGE (n:N {id: i}) ON CREATE SET n.id = j + COUNT { (a)-->() } ON MATCH SET n.d = coalesce(n.d, 0) + 1": False,
}
"""What rows may find though others made it for other ends; whether it goes by sets."""


ROWS_OF_PAIRS = """
UNWIND $rows AS pair WITH pair[0] AS i, pair[1] AS j, {id: pair[1]} AS asked, {x: pair[1]} AS other
MATCH (a:P {id: i}), (b:P {id: j})
"""


@pytest.mark.parametrize("merge", ROW_AFTER_ROW)
def test_rows_go_one_after_the_other(monkeypatch: pytest.MonkeyPatch, merge: str) -> None:
    """As many statements of one row each are the oracle."""
    rows = [[1, 2], [2, 1], [3, 3], [2, 3], [1, 2], [3, 2], [3, 1]]
    text = ROWS_OF_PAIRS + merge.replace("r % 2", "(i + j) % 2")
    vertices: list[Any] = [(1, "P"), (2, "P"), (3, "P")]
    by_sets, by_rows, one_by_one = (filled(vertices, [(2, 3, "R")]) for _ in range(3))
    with by_sets, by_rows, one_by_one:
        assert ("written by sets" in by_sets.explain(text, rows=rows)) is ROW_AFTER_ROW[merge]
        by_sets.query(text, rows=rows)
        monkeypatch.setattr("graphdb.writing.reading.LEAST", ALL)
        by_rows.query(text, rows=rows)
        for row in rows:
            one_by_one.query(text, rows=[row])
        assert graph(by_sets) == graph(by_rows) == graph(one_by_one)


@pytest.mark.parametrize("sets", [True, False], ids=["sets", "rows"])
def test_numbers_are_found_as_match_finds_them(monkeypatch: pytest.MonkeyPatch, sets: bool) -> None:
    if not sets:
        monkeypatch.setattr("graphdb.writing.reading.LEAST", ALL)
    with graphdb.connect() as db:
        db.query("UNWIND $rows AS x MERGE (n:N {x: x})", rows=[math.nan, 1.0, math.nan, 1.0])
        db.query("UNWIND $rows AS x MERGE (n:N {y: x})", rows=[Decimal("0.1"), 0.1, 0.5, Decimal("0.5")])
        assert db.query("MATCH (n:N) RETURN count(n.x), count(n.y)").fetchall() == [(3, 2)]


def test_null_is_refused_with_its_place() -> None:
    with graphdb.connect() as db:
        with pytest.raises(graphdb.ExecutionError, match=r"null 'id'.*line 1, column 35"):
            db.query("UNWIND [1, null] AS i MERGE (n:P {id: i}) RETURN n")
        assert db.query("MATCH (n) RETURN count(*)").fetchall() == [(0,)]
