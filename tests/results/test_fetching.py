"""Rows one after the other, and the names that users of DuckDB know results by."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import graphdb
from graphdb.relational.session.versions import MOST


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("UNWIND range(1, 5000) AS n CREATE (:N {n: n, half: n / 2.0})")
        yield database


@pytest.mark.parametrize(
    "text", ["MATCH (a:N) RETURN a.n AS n, a ORDER BY n", "SELECT range AS n, 'x' FROM range(5000)"]
)
def test_rows_come_one_after_the_other(db: graphdb.Database, text: str) -> None:
    whole = db.query(text).fetchall()
    result = db.query(text)
    assert result.fetchone() == whole[0]
    assert result.fetchone() == whole[1]
    assert result.fetchmany() == whole[2:3]
    assert result.fetchmany(3000) == whole[3:3003]
    assert list(result) == whole, "iteration begins anew"
    assert result.fetchall() == whole[3003:]
    assert result.fetchone() is None
    assert result.fetchmany(10) == []
    assert len(result) == 5000


def test_a_row_that_comes_later_is_as_the_query_saw_it(db: graphdb.Database) -> None:
    result = db.query("MATCH (a:N) RETURN a ORDER BY a.n")
    assert result.fetchone()[0].properties == {"n": 1, "half": 0.5}  # type: ignore[index]
    db.query("MATCH (a:N) SET a.n = -1")
    assert [row[0].properties["n"] for row in result.fetchmany(4999)] == [*range(2, 5001)]
    assert result.fetchone() is None


CHANGES = {
    "a change": ["MATCH (n) SET n.s = 'new'", "MATCH ()-[e]->() SET e.w = 'new'"],
    "deleting": ["MATCH (n) DETACH DELETE n"],
    "space that is reclaimed": ["MATCH (n) SET n.s = 'new'", "VACUUM"],
    "more versions than have a connection": ["MATCH (n:P) SET n.s = n.s + '!'"] * (MOST + 2),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("within", [False, True], ids=["outside", "within a transaction"])
def test_batches_that_come_later_are_as_the_query_saw_them(change: str, within: bool) -> None:
    """Whatever is written between two of them."""
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(1, 30) AS k CREATE (:P {k: k, s: 'old'})-[:R {w: 'old'}]->(:Q {s: 'old'})")
        text = "MATCH p = (n:P)-[e:R]->(m) RETURN n, e, m, n.k AS k, [n, m] AS l ORDER BY k"
        if within:
            db.query("BEGIN; CREATE (:P {k: 0, s: 'old'})-[:R {w: 'old'}]->(:Q {s: 'old'})")
        expected = pa.table(db.query(text)).to_pylist()
        batches = db.query(text).fetch_batches(10)
        came = [next(batches)]
        kept = []
        for statement in CHANGES[change]:
            if within and statement == "VACUUM":
                db.query("COMMIT")
            db.query(statement)
            kept.append(db.query("MATCH (n:P) RETURN n"))
        came += batches
        assert pa.concat_tables(map(pa.table, came)).to_pylist() == expected
        assert len(expected) == 30 + within


def test_counts_and_statements_without_rows(db: graphdb.Database) -> None:
    count = db.query("MATCH (a:N) RETURN count(*)")
    assert (count.fetchone(), count.fetchone()) == ((5000,), None)
    created = db.query("CREATE (:Other)")
    assert (created.fetchone(), created.fetchmany(2), created.fetchall(), created.description) == (None, [], [], None)


def test_description(db: graphdb.Database) -> None:
    db.query("CREATE (:A {n: 1})-[:R]->(:B {s: 'x'})")
    result = db.query(
        "MATCH p = (a:A)-[e:R]->(b) RETURN a, e, p, a.n AS i, 1.5 AS f, 'x' AS s, true AS t, [1, 2] AS l, {x: 1} AS m, "
        "date('2020-01-01') AS d, datetime('2020-01-01T00:00Z') AS z, duration('P1D') AS u, null AS nothing"
    )
    assert {name: type for name, type, *_ in result.description or ()} == {
        "a": "NODE", "e": "RELATIONSHIP", "p": "PATH", "i": "INTEGER", "f": "FLOAT", "s": "STRING", "t": "BOOLEAN",
        "l": "LIST OF INTEGER", "m": "MAP", "d": "DATE", "z": "DATETIME", "u": "DURATION", "nothing": "NULL",
    }  # fmt: skip
    assert db.query("MATCH (a:A) RETURN count(*) AS c").description == [("c", "INTEGER", *[None] * 5)]
    types = db.sql(
        "SELECT 1 AS i, 1.5 AS d, 1.5::DOUBLE AS f, 'x' AS s, [1] AS l, {a: 1} AS m, 'x'::BLOB AS b, now() AS z"
    )
    assert [type for _, type, *_ in types.description or ()] == [
        "INTEGER", "DECIMAL", "FLOAT", "STRING", "LIST", "MAP", "BYTES", "DATETIME",
    ]  # fmt: skip


def test_duckdbs_names(db: graphdb.Database) -> None:
    result = db.execute("MATCH (a:N) WHERE a.n < 3 RETURN a.n AS n ORDER BY n")
    assert result.df()["n"].tolist() == result.pl()["n"].to_list() == result.arrow()["n"].to_pylist() == [1, 2]
