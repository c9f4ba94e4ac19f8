"""A file of DuckDB's without a graph stays as it was while it is only read."""

from __future__ import annotations

import io
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

import graphdb
from graphdb.shell import cli
from graphdb.shell.repl import Shell

READS = [
    ("MATCH (n) RETURN n", []),
    ("MATCH (n:A {k: 1})-[r:B]->(m) RETURN count(*)", [(0,)]),
    ("OPTIONAL MATCH (n)-[*1..2]->(m) RETURN n, m.name", [(None, None)]),
    ("UNWIND [1, 2] AS i RETURN i, EXISTS { ({k: i})-->() } AS e", [(1, False), (2, False)]),
    ("MATCH (n) RETURN n; SELECT max(i) FROM t", [(9,)]),
    ("SELECT count(*) FROM t, cypher('UNWIND [1, 2] AS x RETURN x')", [(20,)]),
    ("SHOW CONTINUOUS QUERIES", []),
    ("RETURN 9223372036854775807 + size([n IN [1] WHERE n > 0])", graphdb.GraphDBError),
    ("UNWIND [1, 0] AS i RETURN 1 / i", graphdb.GraphDBError),
    ("MATCH (n) RETURN m", graphdb.GraphDBError),
]


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    with duckdb.connect(tmp_path / "plain.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS i FROM range(10)")
    return tmp_path / "plain.duckdb"


def contents(file: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in file.parent.iterdir()}


def made(file: Path) -> list[Any]:
    with duckdb.connect(file) as connection:
        return connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()


def test_what_reads_leaves_a_file_as_it_was(plain: Path) -> None:
    before = contents(plain)
    with graphdb.connect(plain, threads=1) as db:
        for text, expected in READS * 2:
            if isinstance(expected, list):
                assert db.query(text).fetchall() == expected, text
                db.query(text).warnings  # noqa: B018
            else:
                with pytest.raises(expected):
                    db.query(text)
        assert "match" in db.explain("MATCH (n)-->(m) RETURN m")
        assert list(db.labels) == []
        assert db.query("SELECT count(*) FROM duckdb_tables()").scalar() == 1
        output = io.StringIO()
        Shell(db, output=output, errors=output).run_lines(["MATCH (n) RETURN count(*) AS many;", "FROM t;", ".schema"])
        assert "many" in output.getvalue()
    assert contents(plain) == before


def test_what_writes_is_written_after_what_read(plain: Path) -> None:
    with graphdb.connect(plain, threads=1) as db:
        db.query("MATCH (n) RETURN n; INSERT INTO t VALUES (10); MATCH (n) RETURN n")
        db.query("BEGIN; MATCH (n) RETURN n; INSERT INTO t VALUES (11); MATCH (n) RETURN count(*); COMMIT")
        db.query("BEGIN; INSERT INTO t VALUES (12); MATCH (n) RETURN n; ROLLBACK")
    assert made(plain) == [("t",)]
    with graphdb.connect(plain, threads=1) as db:
        assert db.query("SELECT count(*), max(i) FROM t").fetchall() == [(12, 11)]
        assert db.query("MATCH (n) RETURN count(*)").scalar() == 0
        db.query("BEGIN; MATCH (n) RETURN n; CREATE (:A {k: 1}); MATCH (n) RETURN n; COMMIT")
        db.query("MATCH (a:A) CREATE (a)-[:B]->(:A {k: 2})")
        assert db.query("MATCH (a:A)-[:B]->(b) RETURN a.k, b.k").fetchall() == [(1, 2)]
    with graphdb.connect(plain, threads=1) as db:
        assert db.query("MATCH (a) RETURN a.k ORDER BY a.k").fetchall() == [(1,), (2,)]


def test_a_table_of_what_is_read_stays(plain: Path) -> None:
    with graphdb.connect(plain, threads=1) as db:
        db.query("MATCH (n) RETURN n; CREATE TABLE u AS UNWIND [1, 2] AS x RETURN x")
    with duckdb.connect(plain) as connection:
        assert connection.execute("FROM u").fetchall() == [(1,), (2,)]


def test_several_read_at_once(plain: Path) -> None:
    before, found = contents(plain), []

    def read() -> None:
        with graphdb.connect(plain, threads=1) as db:
            found.extend(db.query("MATCH (n) RETURN count(*)").scalar() for _ in range(3))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [0] * 9
    assert contents(plain) == before


def test_a_load_that_fails_leaves_no_new_file(tmp_path: Path, plain: Path) -> None:
    before = contents(plain)
    (wrong := tmp_path / "wrong.nt").write_text("no triple\n")
    for data in ("missing.nt", str(wrong)):
        for file in ("new.duckdb", "plain.duckdb"):
            with suppress(SystemExit):
                assert cli.run(["load", str(tmp_path / file), data]) == 1
    wrong.unlink()
    assert contents(plain).keys() == before.keys()
