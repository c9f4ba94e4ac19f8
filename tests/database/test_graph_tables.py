"""Patterns within SQL: GRAPH_TABLE, pattern queries in parentheses, and the limit that reaches the match."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Iterator

import pytest

import graphdb


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("CREATE (:P {n: 1, name: \"it's; (so)\"})-[:K {w: 2}]->(:P {n: 2, name: 'b'})-[:K]->(:P {n: 3})")
        yield database


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            "SELECT * FROM GRAPH_TABLE (g MATCH (p:P)-[:K]->(q) COLUMNS (p.n AS n, q.n AS m)) ORDER BY n",
            [(1, 2), (2, 3)],
        ),
        ("SELECT m FROM GRAPH_TABLE (MATCH (p IS P)--(q) WHERE p.n = 1 COLUMNS (p.n, q.n AS m)) AS t", [(2,)]),
        (
            "SELECT t.n, v.x FROM graph_table(MATCH (p:P) COLUMNS (p.n AS n)) t JOIN (VALUES (2)) v(x) ON n = x",
            [(2, 2)],
        ),
        (
            "SELECT count(*) FROM GRAPH_TABLE (MATCH (p) COLUMNS (p.n AS n)), GRAPH_TABLE (MATCH (q) COLUMNS (1 AS o))",
            [(9,)],
        ),
        ("SELECT * FROM (MATCH (p)-->(q) RETURN p.n AS n, q.n AS m) ORDER BY n", [(1, 2), (2, 3)]),
        ('SELECT n FROM (MATCH (p {name: "it\'s; (so)"}) RETURN p.n AS n) t -- (MATCH (p) RETURN p', [(1,)]),
        ("SELECT n FROM (MATCH (p) WHERE p.name STARTS WITH 'it\\'s' RETURN p.n AS n) t", [(1,)]),
        ("WITH t AS (MATCH (p)--(q) RETURN q.n AS n), u AS (SELECT 1 AS n) SELECT sum(t.n) FROM t, u", [(8,)]),
        ("FROM (OPTIONAL MATCH (p:Nobody) RETURN 7 AS n)", [(7,)]),
        ("FROM (UNWIND [3, 4] AS x RETURN x) WHERE x > $least", [(4,)]),
        ("SELECT '(MATCH (p) RETURN p)' AS t", [("(MATCH (p) RETURN p)",)]),
    ],
)
def test_rows(db: graphdb.Database, sql: str, rows: list[tuple[object, ...]]) -> None:
    assert db.query(sql, {"least": 3} if "$least" in sql else None).fetchall() == rows


def test_rows_go_to_files_and_tables(db: graphdb.Database, tmp_path: pathlib.Path) -> None:
    for name in ("x.csv", "x.parquet"):
        copied = f"COPY (MATCH (p:P)--(q) WHERE p.n > $n RETURN p.n AS n, q.n AS m) TO '{tmp_path / name}'; SELECT 5"
        assert db.query(copied, n=2).scalar() == 5
        assert db.sql(f"FROM '{tmp_path / name}'").fetchall() == [(3, 2)]
    db.sql("CREATE TABLE t AS FROM GRAPH_TABLE (MATCH (p:P) COLUMNS (p.n AS n))")
    db.sql("INSERT INTO t FROM (MATCH (p:P) RETURN p.n * 10 AS n)")
    assert db.sql("SELECT sum(n) FROM t").scalar() == 66


def test_mistakes_have_their_place(db: graphdb.Database) -> None:
    with pytest.raises(graphdb.ParseError, match="needs COLUMNS") as error:
        db.sql("SELECT * FROM GRAPH_TABLE (g MATCH (p:P))")
    assert error.value.column == 15
    for sql in ("FROM GRAPH_TABLE (MATCH (p COLUMNS (p.n AS n)", "FROM (MATCH (p) RETURN p.n"):
        with pytest.raises(graphdb.ParseError, match="is not closed"):
            db.sql(sql)
    with pytest.raises(graphdb.ParseError, match="unexpected"):
        db.sql("FROM (MATCH (p) RETURN RETURN)")
    with pytest.raises(graphdb.NotSupportedError, match="only reads"):
        db.sql("FROM (MATCH (p) SET p.n = 1 RETURN p)")
    assert db.sql("FROM (MATCH (p:P) RETURN count(*) AS n)").scalar() == 3


@pytest.mark.parametrize(
    "select", ["FROM {} LIMIT 10", "SELECT * FROM {} t LIMIT 10;", "SELECT a, e FROM {} AS t LIMIT 10"]
)
@pytest.mark.parametrize(
    "form", ["cypher('{} RETURN {}')", "(MATCH {} RETURN {})", "GRAPH_TABLE (MATCH {} COLUMNS ({}))"]
)
def test_a_limit_reaches_the_match(form: str, select: str) -> None:
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(1, 60) AS n CREATE (:V {n: n})")
        db.query("MATCH (a:V), (b:V) WHERE a.n < b.n CREATE (a)-[:R]->(b)")
        path = "(a:V)-[:R]-(b)-[:R]-(c)-[:R]-(d)-[:R]-(e)"  # a billion matches
        pattern = form.format(path if "MATCH" in form else f"MATCH {path}", "a.n AS a, e.n AS e")
        started = time.monotonic()
        assert len(db.query(select.format(pattern), timeout=20)) == 10
        assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("FROM (MATCH (p:P) RETURN p.n AS n LIMIT 2) LIMIT 3", 2),
        ("SELECT DISTINCT n FROM (MATCH (p:P) RETURN 1 AS n) LIMIT 2", 1),
        ("SELECT sum(n) FROM (MATCH (p:P) RETURN p.n AS n) LIMIT 1", 1),
        ("FROM (MATCH (p:P) RETURN p.n AS n) WHERE n = 3 LIMIT 1", 1),
        ("FROM (MATCH (p:P) RETURN p.n AS n ORDER BY n DESC // all\n) LIMIT 1", 1),
        ("FROM (MATCH (p:P) RETURN p.n AS n UNION ALL MATCH (p:P) RETURN p.n AS n) LIMIT 4", 4),
        ("FROM (MATCH (p:P) RETURN p.n AS n) LIMIT 0", 0),
    ],
)
def test_other_limits_are_sqls(db: graphdb.Database, sql: str, count: int) -> None:
    assert len(db.sql(sql)) == count
