"""Aggregates and distinct rows by delta plans: after each batch the groups are those of the query, run anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import graphdb
from graphdb.live.aggregates.groups import Groups
from tests.fuzz import scaled
from tests.live.writes import bag, check, created, opened, small_graph, strategies

MEASURES = (
    "count(*)", "count(b.k)", "count(b)", "sum(b.k)", "avg(b.k)", "min(b.k)", "max(b.k)", "min(b.s)", "max(b.f)",
    "sum(b.f)", "avg(b.f)", "count(DISTINCT b)", "count(DISTINCT b.k)", "sum(DISTINCT b.k)", "sum(a.i + b.i)",
    "avg(DISTINCT b.k)", "max(DISTINCT b.k)", "count(DISTINCT b.f)", "count(DISTINCT a.s)", "stdev(b.k)", "count(*) * 2 + 1", "size(collect(b.k))", "abs(sum(b.k))", "min(b.absent)", "sum(b.absent)",
)  # fmt: skip
KEYS = ("a", "a.k", "a.s", "b.k", "a.i % 2", "b.absent", "a.b")
PATTERNS = (
    "(a:A)-[:R]->(b)", "(a)-[:R]->(b)-[:S]->(c)", "(a:A)-[:R]-(b:B)", "(a)-[:R]->(c)<-[:R]-(b)", "(a)-[:R]->(b)",
)  # fmt: skip


def query(draw: np.random.Generator) -> str:
    """Return a query that aggregates, or returns distinct rows."""
    pattern, where = draw.choice(PATTERNS), draw.choice(["", " WHERE b.k > 0"], p=[0.7, 0.3])
    keys = draw.choice(KEYS, int(draw.integers(3)), replace=False).tolist()
    if keys and draw.random() < 0.2:
        return f"MATCH {pattern}{where} RETURN DISTINCT {', '.join(keys)}"
    measures = draw.choice(MEASURES, int(draw.integers(1, 4)), replace=False).tolist()
    columns = [f"{text} AS c{i}" for i, text in enumerate(draw.permutation(keys + measures).tolist())]
    return f"MATCH {pattern}{where} RETURN {', '.join(columns)}"


def change(draw: np.random.Generator, kinds: int = 4) -> str:
    """Return a statement that changes edges or creates vertices, or as the last of four kinds deletes some."""
    a, b = (f"({name} {{i: {draw.integers(6)}}})" for name in "ab")
    edge = draw.choice(["R", "S"])
    match int(draw.integers(kinds)):
        case 0:
            return f"MATCH {a}, {b} MERGE (a)-[:{edge}]->(b)"
        case 1:
            return f"MATCH {a}-[e:{edge}]->() WITH e LIMIT {draw.integers(1, 3)} DELETE e"
        case 2:
            value = draw.choice(["1", "2", "-3", "7"])
            return f"MATCH {a} CREATE (a)-[:{edge}]->(:B {{i: 3, k: {value}, s: 'x', f: {value}.25}})-[:S]->(a)"
    return f"MATCH {b} WITH b LIMIT 1 DETACH DELETE b"


def begin(db: graphdb.Database) -> None:
    small_graph(db, "k: x % 4, s: 's' + (x % 3), f: x * 0.1", "(2 * a.i + b.i) % 7 = 0")


@pytest.mark.parametrize("seed", range(scaled(6)))
def test_groups_follow_their_rows(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    path = tmp_path / "a.duckdb" if seed % 2 else None
    db = opened(path)
    begin(db)
    queries = {f"q{number}": query(draw) for number in range(3)}
    for name, text in queries.items():
        option = " WITH (table = true)" if draw.random() < 0.5 else ""
        db.query(f"CREATE CONTINUOUS QUERY {name}{option} AS {text}")
    stored = {name: bag(db, f"FROM {name}") for name in queries}
    for _ in range(8):
        if draw.random() < 0.2:
            db.query("BEGIN")
            for _ in range(3):
                db.query(change(draw))
            db.query("ROLLBACK" if draw.random() < 0.4 else "COMMIT")
        else:
            db.query(change(draw))
        check(db, queries, stored)
        if path is not None and draw.random() < 0.2:
            db.close()
            db = opened(path)
    db.close()


@pytest.mark.parametrize("columns", ["count(*) AS n", "a.k AS k, count(b) AS n, sum(b.k) AS s", "DISTINCT a.s AS s"])
def test_groups_without_a_table_of_the_answer(columns: str) -> None:
    draw = np.random.default_rng(1)
    with opened(None) as db:
        begin(db)
        text = f"MATCH (a)-[:R]->(b) RETURN {columns}"
        db.query(f"CREATE CONTINUOUS QUERY q WITH (table = false) AS {text}")
        found = bag(db, f"SELECT * FROM cypher($$ {text} $$)")
        for _ in range(8):
            db.query(change(draw, 3))
        found.update(bag(db, "SELECT * EXCLUDE (batch, change) FROM q_changes WHERE change = 1"))
        found.subtract(bag(db, "SELECT * EXCLUDE (batch, change) FROM q_changes WHERE change = -1"))
        assert +found == bag(db, f"SELECT * FROM cypher($$ {text} $$)")
        assert strategies(db)["compared"] == 0


@pytest.fixture
def again(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets how many groups are aggregated anew, each time that some are."""
    found: list[int] = []
    follow = Groups.follow

    def noted(self: Groups, make: Callable[[], None]) -> None:
        def counted() -> None:
            make()
            found.append(self._connection.sql("SELECT count(*) FROM temp._graphdb_again").fetchall()[0][0])

        follow(self, counted)

    monkeypatch.setattr(Groups, "follow", noted)
    return found


def test_only_a_group_that_loses_its_extreme_is_aggregated_anew(again: list[int]) -> None:
    with opened(None) as db:
        db.query("UNWIND range(0, 49) AS x CREATE (:A {i: x})-[:R]->(:B {k: x}), (:A {i: x})-[:R]->(:B {k: x + 1})")
        for key in ("a.i AS i", "a"):
            columns = f"{key}, count(*) AS n, sum(b.k) AS s, avg(b.k) AS v, min(b.k) AS least"
            text = f"MATCH (a:A)-[:R]->(b) RETURN {columns}"
            db.query(f"CREATE OR REPLACE CONTINUOUS QUERY q AS {text}")
            stored = {"q": bag(db, "FROM q")}
            db.query("MATCH (a:A {i: 7}) WITH a ORDER BY id(a) LIMIT 1 CREATE (a)-[:R]->(:B {k: 3})")
            db.query("MATCH (a:A {i: 8})-[e:R]->(b) WITH e, b ORDER BY b.k DESC LIMIT 1 DELETE e")
            assert again == []
            db.query("MATCH (a:A {i: 7})-[e:R]->(b {k: 3}) DELETE e")
            assert again == [1]
            again.clear()
            check(db, {"q": text}, stored)
        assert strategies(db)["compared"] == 0


def test_functions_of_aggregates_are_computed_again_of_their_groups() -> None:
    text = "MATCH (a)-[:R]->(b) RETURN a.k AS k, size(collect(b.i)) AS n, abs(sum(b.k)) AS s"
    with opened(None) as db:
        begin(db)
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        stored = {"q": bag(db, "FROM q")}
        for number in range(4):
            db.query(f"MATCH (a {{i: {number}}}), (b:B {{i: {5 - number}}}) MERGE (a)-[:R]->(b)")
            check(db, {"q": text}, stored)
        assert set(strategies(db)) == {"delta plans"}


def test_counts_are_not_made_anew(again: list[int]) -> None:
    draw = np.random.default_rng(2)
    with opened(None) as db:
        begin(db)
        db.query("CREATE CONTINUOUS QUERY q AS MATCH (a)-[:R]->(b) RETURN a.k AS k, count(*) AS n, sum(b.k) AS s")
        db.query("CREATE CONTINUOUS QUERY every AS MATCH (:A)-[:R]->() RETURN count(*) AS n")
        for _ in range(9):
            db.query(change(draw, 3))
        assert again == []
        assert strategies(db)["compared"] == 0
        assert db.sql("FROM every").fetchall() == db.query("MATCH (:A)-[:R]->() RETURN count(*)").fetchall()


def test_distinct_values_are_not_read_again(again: list[int], tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    queries = {
        "grouped": "MATCH (a)-[:R]->(b) RETURN a.k AS k, count(DISTINCT b) AS n, sum(DISTINCT b.k) AS s, count(*) AS m",
        "whole": "MATCH (a)-[:R]->(b) RETURN count(DISTINCT b.k) AS n, avg(DISTINCT b.k) AS v, count(DISTINCT a) AS m",
    }
    with opened(tmp_path / "a.duckdb") as db:
        begin(db)
        stored = created(db, queries)
    for _ in range(2):
        with opened(tmp_path / "a.duckdb") as db:
            for _ in range(5):
                db.query(change(draw))
                check(db, queries, stored)
            assert strategies(db)["compared"] == 0
    assert again == []
    with opened(tmp_path / "a.duckdb") as db:
        for name in queries:
            db.query(f"DROP CONTINUOUS QUERY {name}")
        left = "SELECT table_name FROM duckdb_tables() WHERE table_name SIMILAR TO '(groups|values)_.*'"
        assert db._state.connection.rows(left) == []


def test_groups_of_another_kind_are_made_anew(tmp_path: Path) -> None:
    query = "MATCH (a:A)-[:R]->(b) RETURN a.k AS k, count(DISTINCT b.k) AS n"
    with opened(tmp_path / "a.duckdb") as db:
        begin(db)
        db.query(f"CREATE CONTINUOUS QUERY q AS {query}")
        stored = {"q": bag(db, "FROM q")}
        with db._state.connection.guard() as raw:  # as if by an older version
            raw.execute("COMMENT ON TABLE _graphdb.groups_1 IS 'other'")
            raw.execute("DROP TABLE _graphdb.values_1_x0")
    with opened(tmp_path / "a.duckdb") as db:
        for number in range(3):
            db.query(f"MATCH (a:A {{i: {number}}}), (b:B {{i: {5 - number}}}) MERGE (a)-[:R]->(b)")
            check(db, {"q": query}, stored)
        assert strategies(db)["compared"] == 1


def test_explain_says_how_groups_follow() -> None:
    with opened(None) as db:
        begin(db)
        text = "MATCH (a:A)-[:R]->(b) RETURN a.k AS k, count(*) AS n, avg(b.k) AS v, min(b.k) AS m, sum(b.f) AS f"
        lines = [line for (line,) in db.query(f"EXPLAIN CREATE CONTINUOUS QUERY q AS {text}").fetchall()]
        assert lines[1].startswith("maintained by delta plans")
        assert lines[-6:-1] == [
            "  groups by a.k",
            "    count(*): counted",
            "    avg(b.k): added up",
            "    min(b.k): compared, and computed again of a group that loses its least value",
            "    sum(b.f): computed again of each group that changes",
        ]


def test_explain_says_what_is_made_of_groups() -> None:
    with opened(None) as db:
        begin(db)
        text = "MATCH (a:A)-[:R]->(b) WITH a, max(b.k) AS m WHERE m > 1 RETURN a.i AS i, m"
        lines = [line for (line,) in db.query(f"EXPLAIN CREATE CONTINUOUS QUERY q AS {text}").fetchall()]
        assert lines[-4:-1] == [
            "  groups by a, a.i",
            "    max(b.k): compared, and computed again of a group that loses its greatest value",
            "  rows are computed of the groups that change",
        ]


def test_values_of_several_types_are_compared_for_as_long_as_there_are_some() -> None:
    with opened(None) as db:
        begin(db)
        text = "MATCH (a:A)-[:R]->(b) RETURN a.k AS k, count(*) AS n, sum(b.k) AS s"
        db.query(f"CREATE CONTINUOUS QUERY q AS {text}")
        stored = {"q": bag(db, "FROM q")}
        for value in ("2.5", "'x'"):
            db.query(f"MATCH (b:B {{i: 1}}) CREATE (:A {{i: 77, k: {value}}})-[:R]->(b)")
            check(db, {"q": text}, stored)
        lines = [line for (line,) in db.query("EXPLAIN CONTINUOUS QUERY q").fetchall()]
        assert "because it is grouped by values of several types" in lines[1]
        db.query("MATCH (a:A {i: 77}) DETACH DELETE a")
        for _ in range(2):
            db.query("MATCH (a:A {i: 2}), (b:B {i: 3}) CREATE (a)-[:R]->(b)-[:R]->(:B {k: 1})")
            check(db, {"q": text}, stored)
