"""The catalog: one connection, one transaction, and SQLAlchemy only where something is written."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import duckdb
import pytest

from graphdb.common.errors import StorageError
from graphdb.storage.catalog import PREFIXES, SCHEMA_VERSION, Catalog, _share
from graphdb.storage.file import schema


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def test_new_database(connection: duckdb.DuckDBPyConnection) -> None:
    catalog = Catalog(connection)
    assert not catalog.exists()
    catalog.create()
    assert catalog.exists()
    assert catalog.schema_version == SCHEMA_VERSION
    assert catalog.prefixes() == PREFIXES
    assert catalog.labels() == ([], [])
    assert catalog.next_source() == 0
    assert connection.execute("FROM main.triples").fetchall() == []


def test_the_tables_are_those_that_the_schema_says(connection: duckdb.DuckDBPyConnection) -> None:
    Catalog(connection).create()
    with duckdb.connect() as other:
        other.execute("CREATE SCHEMA _graphdb")
        with _share(other).connect() as sql:
            schema.metadata.create_all(sql, checkfirst=False)
        columns, keys = (
            [
                each.execute(f"SELECT {what} WHERE schema_name = '_graphdb' ORDER BY ALL").fetchall()
                for each in (connection, other)
            ]
            for what in (
                "table_name, column_index, column_name, data_type, is_nullable, column_default FROM duckdb_columns()",
                "table_name, constraint_type, constraint_column_names FROM duckdb_constraints()",
            )
        )
    assert columns[0] == columns[1]
    assert keys[0] == keys[1]
    assert len(columns[0]) > 50 < len(keys[0])


def test_types_are_the_documented_ones(connection: duckdb.DuckDBPyConnection) -> None:
    Catalog(connection).create()
    columns = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE schema_name = '_graphdb' AND table_name = 'literal'"
    ).fetchall()
    assert dict(columns) == {
        "id": "BIGINT",
        "text": "VARCHAR",
        "datatype": "VARCHAR",
        "language": "VARCHAR",
        "kind": "UTINYINT",
        "integer": "BIGINT",
        "number": "DOUBLE",
        "moment": "BIGINT",
        "lexical": "VARCHAR",
    }
    tables = connection.execute("SELECT table_name FROM duckdb_tables() WHERE schema_name = '_graphdb'").fetchall()
    assert {name for (name,) in tables} == {table.name for table in schema.metadata.tables.values()}


def test_prefixes_and_meta(connection: duckdb.DuckDBPyConnection) -> None:
    catalog = Catalog(connection)
    catalog.create()
    catalog.set_prefix("ex", "http://example.org/'\"; DROP SCHEMA _graphdb;")
    catalog.set_prefix("ex", "http://example.org/")
    catalog.set_prefix("", "http://default/")
    assert catalog.prefixes() == PREFIXES | {"ex": "http://example.org/", "": "http://default/"}
    assert catalog.meta("absent") is None
    assert catalog.meta("schema_version") == str(SCHEMA_VERSION)


def test_writes_join_the_open_transaction(connection: duckdb.DuckDBPyConnection) -> None:
    """SQLAlchemy and DuckDB see one transaction, which neither of them ends."""
    catalog = Catalog(connection)
    catalog.transactions.begin(connection.begin)
    catalog.create()
    catalog.set_prefix("ex", "http://example.org/")
    catalog.transactions.rollback(connection.rollback)
    assert not catalog.exists()
    catalog.create()
    catalog.transactions.begin(connection.begin)
    connection.execute("INSERT INTO _graphdb.prefix VALUES ('raw', 'http://raw/')")
    catalog.set_prefix("raw", "http://changed/")
    assert catalog.prefixes()["raw"] == "http://changed/"
    catalog.transactions.rollback(connection.rollback)
    assert "raw" not in catalog.prefixes()


def test_failed_create_leaves_nothing(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE SCHEMA _graphdb")
    connection.execute("CREATE TABLE _graphdb.triple (mine INTEGER)")
    catalog = Catalog(connection)
    with pytest.raises(StorageError, match="_graphdb"):
        catalog.create()
    assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("triple",)]


def test_no_version_is_an_error(connection: duckdb.DuckDBPyConnection) -> None:
    catalog = Catalog(connection)
    catalog.create()
    connection.execute("DELETE FROM _graphdb.meta")
    with pytest.raises(StorageError, match="schema version"):
        _ = catalog.schema_version


@pytest.mark.parametrize("name", ["graphdb", "main", "a b"])
def test_any_file_name_works(tmp_path: pathlib.Path, name: str) -> None:
    """DuckDB names the catalog after the file; that must not be confused with our schema."""
    connection = duckdb.connect(tmp_path / f"{name}.duckdb")
    catalog = Catalog(connection)
    catalog.create()
    catalog.set_prefix("ex", "http://example.org/")
    connection.execute("INSERT INTO _graphdb.resource VALUES (0, 'ex:a')")
    connection.execute("INSERT INTO _graphdb.triple VALUES (0, 0, 0)")
    assert connection.execute("SELECT subject FROM main.triples").fetchall() == [("ex:a",)]
    connection.close()
    assert Catalog(duckdb.connect(tmp_path / f"{name}.duckdb")).prefixes()["ex"] == "http://example.org/"


def test_reading_imports_neither_sqlalchemy_nor_numba(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "test.duckdb"
    connection = duckdb.connect(file)
    Catalog(connection).create()
    connection.close()
    program = (
        "import sys, duckdb\n"
        "from graphdb.storage.catalog import Catalog\n"
        "import graphdb.storage.loaders.load\n"
        "catalog = Catalog(duckdb.connect(sys.argv[1]))\n"
        "assert catalog.exists() and catalog.schema_version > 1\n"
        "catalog.prefixes(), catalog.labels(), catalog.meta('x')\n"
        "print([name for name in ('sqlalchemy', 'numba', 'pyarrow') if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", program, file], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_what_is_done_daily_does_not_import_pandas(tmp_path: pathlib.Path) -> None:
    """It takes longer than a query, and may be installed for others."""
    pytest.importorskip("pandas")
    (tmp_path / "a.nt").write_text('<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:name> "A" .\n<urn:a> <urn:name> "B"@en .\n')
    program = (
        "import sys, graphdb\n"
        "with graphdb.connect('db') as db:\n"
        "    db.load('a.nt')\n"
        "    assert db.query('MATCH (a)-[:p]->(b) RETURN a.name, b').fetchall()\n"
        "    db.query('MATCH (a)-[:p]->(b) CREATE (b)-[:q]->(:New {x: 1})')\n"
        "    db.load('a.nt')\n"
        "print('pandas' in sys.modules)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert run.stdout.strip() == "False"
