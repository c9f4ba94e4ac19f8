"""A database opens whatever its file is called, or is refused before anything is made."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import AccessError, StorageError
from tests.fuzz import scaled

NAMES = [
    "main.duckdb", "system.duckdb", "temp", "TEMP.duckdb", "memory.duckdb", "pg_catalog.duckdb", "triples.duckdb", "select.duckdb",
    "a.b.c", ".duckdb", "a'b .duckdb", 'a"b.duckdb', "é😀;\n%41.duckdb", "a?b.duckdb", "x:y", "_graphdb_", "a?_graphdb", "_graphdb#a", "x._graphdb",
]  # fmt: skip

TAKEN = [
    "_graphdb",
    "_graphdb.duckdb",
    "_GraphDB.db",
    "_graphdb.2024.duckdb",
    "_graphdb.",
    "._graphdb",
    ".._graphdb.db",
]


def check(path: Path) -> None:
    """Write to a new database, by statements and SQL, and read it again, from another directory too."""
    with graphdb.connect(path, device="cpu") as db:
        db.query("CREATE (:A {x: 1})-[:R]->(:B)")
        db.sql("CREATE TABLE t AS SELECT 1 AS a")
    with graphdb.connect(path, device="cpu") as db:
        assert db.query("MATCH (a:A)-[:R]->(b) RETURN a.x").scalar() == 1
        db.query("MATCH (a:A) SET a.x = 2")
        assert db.sql("SELECT a FROM t").fetchall() == [(1,)]
    with graphdb.connect(path, device="cpu", read_only=True) as db:
        assert db.query("MATCH (a:A)-[:R]->(b) RETURN a.x").scalar() == 2
        assert db.sql("SELECT object FROM triples WHERE predicate = 'urn:graphdb:x'").fetchall() == [("2",)]
        assert db.sql("SELECT * FROM cypher($$ MATCH (a:A) RETURN a.x AS x $$), t").fetchall() == [(2, 1)]
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("name", NAMES)
def test_names(tmp_path: Path, name: str) -> None:
    check(tmp_path / name)


@settings(max_examples=scaled(3), deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="/\\\0"), min_size=1, max_size=20))
def test_any_name(name: str) -> None:
    with TemporaryDirectory() as folder:
        if name not in (".", ".."):
            check(Path(folder) / name)


@pytest.mark.parametrize("name", TAKEN)
def test_our_own(tmp_path: Path, name: str) -> None:
    """The database's name would be ambiguous with that of the schema in it."""
    with pytest.raises(StorageError, match="cannot be opened: a database is called as its file is"):
        graphdb.connect(tmp_path / name, device="cpu")
    assert not [*tmp_path.iterdir()]
    check(tmp_path / "other.duckdb")
    (tmp_path / "other.duckdb").rename(tmp_path / name)
    for read_only in (False, True):
        with pytest.raises(StorageError, match="hint: name the file otherwise"):
            graphdb.connect(tmp_path / name, device="cpu", read_only=read_only)
    (tmp_path / name).rename(tmp_path / "again.duckdb")
    with graphdb.connect(tmp_path / "again.duckdb", device="cpu") as db:
        assert db.query("MATCH (a:A) RETURN a.x").scalar() == 2


def test_attached(tmp_path: Path) -> None:
    """Nor is such a file attached by its own name, which all later statements would stumble over."""
    with duckdb.connect(tmp_path / "_graphdb.duckdb") as other:
        other.execute("CREATE TABLE t AS SELECT 1 AS a")
    with graphdb.connect(device="cpu") as db:
        for prefix in ("", "duckdb:"):
            with pytest.raises(AccessError, match="would be taken for the schema of graphdb's tables"):
                db.sql(f"ATTACH IF NOT EXISTS '{prefix}{tmp_path}/_graphdb.duckdb' (READ_ONLY)")
        db.query("CREATE (:A {x: 1})")
        db.sql(f"ATTACH '{tmp_path}/_graphdb.duckdb' AS other")
        assert db.sql("SELECT a FROM other.t").fetchall() == [(1,)]
        assert db.query("MATCH (a:A) RETURN a.x").scalar() == 1
