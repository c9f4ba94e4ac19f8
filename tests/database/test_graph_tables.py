"""Patterns within SQL: GRAPH_TABLE, pattern queries in parentheses, and the limit that reaches the match."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

import graphdb
from tests.stops import PATIENCE, Stopwatch


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
    "select",
    [
        "FROM {} LIMIT 10",
        "SELECT a, e FROM {} AS t LIMIT 10;",
        "SELECT * FROM (SELECT e FROM {} LIMIT 50) LIMIT 8 OFFSET 2",
        "SELECT t.e FROM {} t WHERE t.A >= 30 AND 50 <> e LIMIT 10",
        "SELECT a FROM {} WHERE e = $least LIMIT 10",
    ],
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
        watch = Stopwatch()
        parameters = {"least": 7} if "$least" in select else {}
        assert len(db.query(select.format(pattern), parameters, timeout=PATIENCE)) == (8 if "OFFSET" in select else 10)
        assert watch.seconds() < 10


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


MIXED = """
UNWIND [[1, 'a', 1.5], [2, 'b', 2], [3, 'B', 'c'], [4, null, null], [-5, '5', 0.0 / 0.0]] AS row
CREATE (:M {n: row[0], s: row[1], m: row[2], `odd key`: row[0]})-[:E]->(:M {n: row[0] + 10, s: 'z'})
"""
OVER_ROWS = [
    "SELECT n FROM {} WHERE n > 1",
    "SELECT n, s FROM {} t WHERE t.n <= 3 AND s <> 'a'",
    "SELECT s FROM {} WHERE s < 'b' OR n = 4",
    "SELECT count(*) FROM {} WHERE s = '5'",
    "SELECT count(*) FROM {} WHERE n = '3'",
    "SELECT count(*) FROM {} WHERE m = 2",
    "SELECT count(*) FROM {} WHERE f >= 2",
    'SELECT sum("odd") FROM {} WHERE -5 < N AND k = 12',
    "SELECT s, count(*) FROM {} WHERE n > $1 GROUP BY ALL",
    "SELECT t FROM {} t WHERE n = 2",
    "SELECT a FROM {} t(a, b, c, d, e, f) WHERE b = 'a'",
    "SELECT #1 FROM {} WHERE n = 2",
    "SELECT x.n FROM {} x JOIN (VALUES (3), (4)) y(n) USING (n) WHERE x.n > 3",
    "SELECT n FROM {} NATURAL JOIN (VALUES ('b')) y(s)",
    "WITH r AS (SELECT n, s FROM {} WHERE n > 1) SELECT max(n) FROM r UNION ALL SELECT count(*) FROM r WHERE s = 'b'",
    "SELECT (SELECT max(n) FROM {} WHERE s = y.s) FROM (VALUES ('a'), ('B')) y(s)",
    "SELECT y.n FROM (VALUES (1), (2)) y(n) WHERE EXISTS (FROM {} WHERE n = y.n AND s = 'b')",
    "SELECT count(*) FROM (SELECT DISTINCT s FROM {} WHERE k > 3)",
]


@pytest.mark.parametrize("sql", OVER_ROWS)
def test_what_is_pushed_to_the_match_changes_no_answer(sql: str) -> None:
    """The same SQL over a table of all rows, and over the pattern."""
    pattern = "MATCH (a:M)-[:E]->(b) WHERE a.n < 4 OR b.n > 0 RETURN a.n AS n, a.s AS s, a.m AS m, 1.0 * a.n AS f, a.`odd key` AS odd, b.n AS k"
    with graphdb.connect(threads=1) as db:
        db.query(MIXED)
        db.query(f"CREATE TABLE whole AS {pattern}")
        db.query(f"CREATE VIEW seen AS {pattern}")
        parameters = {"1": 1} if "$1" in sql else None
        expected = sorted(map(str, db.sql(sql.format("whole"), parameters)))
        for table in ("seen", f"({pattern})", f"cypher($$ {pattern} $$)"):
            assert sorted(map(str, db.sql(sql.format(table), parameters))) == expected


def test_columns_that_nothing_reads_are_not_computed() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("CREATE (:P {n: 0, d: date('2020-01-01')})")
        assert db.sql("SELECT n FROM (MATCH (p:P) RETURN p.n AS n, 1 / p.n AS wrong)").scalar() == 0
        assert db.sql("SELECT n FROM (MATCH (p:P) RETURN p.n AS n, p.d AS d) WHERE d = '2020-01-01'").scalar() == 0
        with pytest.raises(graphdb.GraphDBError, match="zero"):
            db.sql("SELECT * FROM (MATCH (p:P) RETURN p.n AS n, 1 / p.n AS wrong)")
