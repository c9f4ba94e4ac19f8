"""``CREATE VIEW v AS MATCH …``: views of SQL whose rows are those of a pattern query, as the graph is now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import graphdb
from tests.stops import EVER

PEOPLE = "CREATE (:P {name: 'a', k: 1})-[:K]->(:P {name: 'b', k: 2})-[:K]->(:P {name: 'c', k: 3})"
VIEW = "CREATE VIEW pairs AS MATCH (a:P)-[:K]->(b) RETURN a, a.name AS a_name, b.k AS k; "


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query(PEOPLE)
        database.query(VIEW)
        yield database


def test_a_view_follows_the_graph(db: graphdb.Database) -> None:
    assert db.sql("SELECT a_name, k FROM pairs ORDER BY k").fetchall() == [("a", 2), ("b", 3)]
    db.query("MATCH (c {name: 'c'}) CREATE (c)-[:K]->(:P {k: 9})")
    assert db.query("SELECT max(k), count(*) FROM pairs").fetchall() == [(9, 3)]
    assert db.sql("SELECT x.k FROM PAIRS x JOIN pairs AS y ON x.k < y.k ORDER BY ALL").fetchall() == [(2,), (2,), (3,)]
    assert db.sql("SELECT k FROM pairs WHERE a_name = $1", ["b"]).scalar() == 3
    assert db.sql("SELECT pairs.k FROM pairs LIMIT 1").fetchall() in ([(2,)], [(3,)], [(9,)])
    db.query("CREATE TABLE copied AS SELECT * FROM pairs")
    assert db.sql("SELECT count(*) FROM copied").scalar() == 3


def test_patterns_that_look_like_comments_of_sql(db: graphdb.Database) -> None:
    db.query("CREATE VIEW near AS MATCH (a)--(b) RETURN a.name AS name, count(*) AS n; RETURN 1")
    assert sorted(db.sql("FROM near")) == [("a", 1), ("b", 2), ("c", 1)]


def test_a_limit_reaches_the_match(db: graphdb.Database) -> None:
    db.query("UNWIND range(1, 3000) AS i CREATE (:Q {i: i})")
    db.query("CREATE VIEW crossed AS MATCH (a:Q), (b:Q), (c:Q) RETURN a.i AS a, b.i AS b, c.i AS c")
    assert len(db.sql("SELECT a, c FROM crossed LIMIT 10", timeout=EVER)) == 10


def test_the_catalog_has_it_with_its_types(db: graphdb.Database) -> None:
    assert "pairs" in db.tables()
    assert [row[:2] for row in db.sql("DESCRIBE pairs")] == [("a", "VARCHAR"), ("a_name", "VARCHAR"), ("k", "BIGINT")]
    with pytest.raises(graphdb.GraphDBError, match="already exists"):
        db.query(VIEW)
    db.query("CREATE VIEW IF NOT EXISTS pairs AS MATCH (n) RETURN n.k AS k")
    assert db.sql("SELECT * FROM pairs").columns == ("a", "a_name", "k")
    db.query("CREATE OR REPLACE VIEW pairs AS MATCH (n:P) RETURN count(*) AS n")
    assert db.sql("FROM pairs").fetchall() == [(3,)]
    db.sql("DROP VIEW pairs")
    with pytest.raises(graphdb.GraphDBError, match="does not exist"):
        db.sql("FROM pairs")
    assert "pairs" not in db.tables()


def test_transactions(db: graphdb.Database) -> None:
    db.query("BEGIN")
    db.query("CREATE VIEW one AS RETURN 1 AS x")
    assert db.sql("FROM one").scalar() == 1
    db.query("ROLLBACK")
    with pytest.raises(graphdb.GraphDBError, match="does not exist"):
        db.sql("FROM one")
    db.query("BEGIN")
    db.query("CREATE (:P {name: 'z', k: 0})-[:K]->(:P {k: 10})")
    assert db.sql("SELECT max(k) FROM pairs").scalar() == 10
    db.query("ROLLBACK")
    assert db.sql("SELECT max(k) FROM pairs").scalar() == 3


def test_a_file_keeps_it_and_duckdb_alone_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "g.duckdb"
    with graphdb.connect(path) as db:
        db.query(PEOPLE)
        db.query("CREATE VIEW \"odd 'name\" AS MATCH (a:P) WHERE a.name <> 'it''s' RETURN a.name AS n")
    with graphdb.connect(path, read_only=True) as db:
        assert sorted(db.sql('FROM "odd \'name"')) == [("a",), ("b",), ("c",)]
    with duckdb.connect(path) as connection:
        assert [row[0] for row in connection.execute('DESCRIBE "odd \'name"').fetchall()] == ["n"]
        for sql in ('FROM "odd \'name"', 'SELECT count(*) FROM "odd \'name"'):
            with pytest.raises(duckdb.Error, match="view over a pattern: graphdb answers it"):
                connection.execute(sql).fetchall()


def test_two_connections_of_a_process(tmp_path: Path) -> None:
    with graphdb.connect(tmp_path / "g.duckdb") as one, graphdb.connect(tmp_path / "g.duckdb") as two:
        one.query(PEOPLE)
        assert two.sql("SELECT 1").scalar() == 1
        one.query("CREATE VIEW all_of AS MATCH (n:P) RETURN n.name AS name")
        assert len(two.sql("FROM all_of")) == 3
        two.sql("DROP VIEW all_of")
        with pytest.raises(graphdb.GraphDBError, match="does not exist"):
            one.sql("FROM all_of")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE TEMP VIEW v AS MATCH (a) RETURN a", "temporary view"),
        ("CREATE VIEW v AS MATCH (a {k: $k}) RETURN a", "view with parameters"),
        ("CREATE VIEW v AS MATCH (a) SET a.k = 1 RETURN a", "view that writes"),
        ("CREATE VIEW v AS MATCH (a:P) RETURN nothing(a)", "nothing"),
        ("CREATE VIEW _graphdb.v AS MATCH (a) RETURN a", "graphdb"),
    ],
)
def test_views_that_are_none(db: graphdb.Database, text: str, message: str) -> None:
    with pytest.raises(graphdb.GraphDBError, match=message):
        db.query(text, **({"k": 1} if "$k" in text else {}))
    assert db.tables() == ["pairs", "triples"]
    assert len(db.sql("FROM pairs")) == 2
