"""A graph in the database of somebody's connection of DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import graphdb


@pytest.fixture(params=["memory", "file"])
def connection(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:" if request.param == "memory" else str(tmp_path / "mine.duckdb")) as made:
        yield made


def test_tables_here_and_the_graph_there(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE TABLE ages AS FROM (VALUES ('a', 7), ('b', 8)) t(name, age)")
    threads = connection.sql("SELECT current_setting('threads')").fetchall()
    with graphdb.attach(connection, threads=1) as db:
        db.query("CREATE (:P {name: 'a'})-[:K]->(:P {name: 'b'})")
        joined = "SELECT age FROM ages JOIN cypher($$ MATCH (a)-[:K]->(b) RETURN b.name AS name $$) USING (name)"
        assert db.sql(joined).fetchall() == [(8,)]
        db.query("CREATE TABLE found AS MATCH (a:P) RETURN a.name AS name ORDER BY name")
        assert connection.sql("FROM found").fetchall() == [("a",), ("b",)]
        connection.execute("INSERT INTO ages VALUES ('c', 9)")
        assert db.sql("SELECT count(*) FROM ages").scalar() == 3
        connection.execute("BEGIN")
        connection.execute("INSERT INTO ages VALUES ('d', 9)")
        assert db.sql("SELECT count(*) FROM ages").scalar() == 3
        connection.execute("ROLLBACK")
        with pytest.raises(graphdb.GraphDBError):
            db.query("MATCH (a RETURN a")
    assert connection.sql("SELECT current_setting('threads')").fetchall() == threads
    assert connection.sql("SELECT count(*) FROM ages").fetchall() == [(3,)]
    with graphdb.attach(connection) as again:
        assert again.query("MATCH (a:P)-[:K]->(b) RETURN a.name, b.name").fetchall() == [("a", "b")]


def test_replacement_scans_of_the_connection_go_on(connection: duckdb.DuckDBPyConnection) -> None:
    pandas = pytest.importorskip("pandas")
    mine = pandas.DataFrame({"x": [1, 2]})
    assert len(mine) == 2
    with graphdb.attach(connection) as db:
        db.query("CREATE (:P)")
        assert connection.sql("SELECT sum(x) FROM mine").fetchall() == [(3,)]
        assert db.sql("SELECT sum(x) FROM mine").fetchall() == [(3,)]


def test_a_file_for_reading_only(tmp_path: Path) -> None:
    with graphdb.connect(tmp_path / "g.duckdb") as db:
        db.query("CREATE (:P {k: 1})")
    with duckdb.connect(tmp_path / "g.duckdb", read_only=True) as connection, graphdb.attach(connection) as db:
        assert db.query("MATCH (p:P) RETURN p.k").scalar() == 1
        with pytest.raises(graphdb.GraphDBError, match="read"):
            db.query("CREATE (:P)")


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_the_graph_is_in_the_current_database(kind: str, tmp_path: Path) -> None:
    """Of several that a connection has attached; so is what is read beside statements, and by another connection."""
    with duckdb.connect(str(tmp_path / "first.duckdb")) as connection:
        connection.execute(f"ATTACH '{':memory:' if kind == 'memory' else tmp_path / 'other.duckdb'}' AS \"the other\"")
        connection.execute('USE "the other"')
        with graphdb.attach(connection) as db:
            db.query("CREATE CONTINUOUS QUERY names AS MATCH (p:P) RETURN p.k AS k")
            with db.watch("names") as changes:
                db.query("UNWIND range(1, 5000) AS i CREATE (:P {k: i})")
                assert changes.next(timeout=60).added.num_rows == 5000  # type: ignore[union-attr]
            result = db.query("MATCH (p:P) RETURN p, p.k AS k")
            db.query("MATCH (p:P) DELETE p")
            assert sorted(row[1] for row in result) == list(range(1, 5001))
            db.query("CREATE (:P {k: 7})")
        tables = "SELECT DISTINCT database_name FROM duckdb_tables()"
        assert connection.sql(tables).fetchall() == [("the other",)]
        connection.execute("USE first")
        with graphdb.attach(connection) as db:
            assert db.query("MATCH (p:P) RETURN count(*)").scalar() == 0
    if kind == "file":
        with graphdb.connect(tmp_path / "other.duckdb") as db:
            assert db.query("MATCH (p:P) RETURN p.k").fetchall() == [(7,)]


def test_what_is_no_connection() -> None:
    with pytest.raises(graphdb.ParameterError, match="found str"):
        graphdb.attach("file.duckdb")  # type: ignore[arg-type]
    connection = duckdb.connect()
    connection.close()
    with pytest.raises(graphdb.StorageError, match="cannot be attached"):
        graphdb.attach(connection)
