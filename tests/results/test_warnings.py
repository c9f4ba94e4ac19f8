"""Warnings: names that a query reads and nothing has, in a graph of one's own."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import graphdb
from graphdb.shell.repl import Shell


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("CREATE (:Person {name: 'a', age: 1})-[:KNOWS {since: 2}]->(:Person {name: 'b'})")
        yield database


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MATCH (p:Persn) RETURN p", ["label 'Persn' 10 'Person'"]),
        ("MATCH (p:Persn) RETURN count(*)", ["label 'Persn' 10 'Person'"]),
        ("MATCH (p:Person|Persn) RETURN p", ["label 'Persn' 17 'Person'"]),
        ("MATCH (p) WHERE p:Persn RETURN p", ["label 'Persn' 19 'Person'"]),
        ("MATCH (p:Person) RETURN p.nam", ["property 'nam' 27 'name'"]),
        ("MATCH (p {agee: 1}) RETURN p", ["property 'agee' 11 'age'"]),
        ("MATCH ()-[k:KNOW]->() RETURN k", ["edge label 'KNOW' 13 'KNOWS'"]),
        ("MATCH ()-[k:KNOWS]->() RETURN k.Since", ["property 'Since' 33 'since'"]),
        ("MATCH (p) WHERE EXISTS { (p)-[:KNEW]->() } RETURN p", ["edge label 'KNEW' 32 'KNOWS'"]),
        ("MATCH (p:A) MATCH (q:A) RETURN p.b", ["label 'A' 10 None", "label 'A' 22 None", "property 'b' 34 None"]),
        ("MATCH (p:Person)-[k:KNOWS]->(q) WHERE p.age > 0 RETURN q.name, k.since", []),
        ("MATCH (p:Person) WITH {x: 1} AS p RETURN p.y", []),
        ("MATCH (p:Person) SET p.new = 1", []),
        ("MERGE (p:Other {n: 1}) RETURN p.n", []),
        ("CREATE (:A)-[:B {c: 1}]->(:D)", []),
        ("RETURN date('2020-01-01').year", []),
        ("SELECT 1", []),
        ("FROM cypher('MATCH (p:Persn) RETURN p')", ["label 'Persn' 10 'Person'"]),
        ("SELECT p.n FROM (MATCH (p:Person) RETURN p.nam AS n) p", ["property 'nam' 27 'name'"]),
        (
            "SELECT count(*) FROM cypher($$MATCH (p:A) RETURN p$$), GRAPH_TABLE (g MATCH (q:A) COLUMNS (q.name AS n))",
            ["label 'A' 10 None", "label 'A' 10 None"],
        ),
        ("FROM cypher('MATCH (p:Person) RETURN p.name')", []),
    ],
)  # fmt: skip
def test_each_name_has_its_place_and_what_may_be_meant(db: graphdb.Database, text: str, expected: list[str]) -> None:
    for _ in range(2):  # a repeated count is taken from another cache
        found = []
        for warning in db.query(text).warnings:
            first, *_, last = warning.splitlines()
            what, _, place = first.removeprefix("unknown ").partition(" (line 1, column ")
            meant = last.removeprefix("hint: did you mean ").removesuffix("?") if last.startswith("hint") else None
            found.append(f"{what} {place.removesuffix(')')} {meant}")
        assert found == expected
        if text.startswith(("FROM", "SELECT")):
            assert db.sql(text).warnings == db.query(text).warnings


def test_a_name_that_comes_later_is_no_slip_any_more(db: graphdb.Database) -> None:
    assert db.query("MATCH (c:City) RETURN c").warnings
    db.query("CREATE (:City)")
    assert not db.query("MATCH (c:City) RETURN c").warnings


def test_what_a_statement_takes_away_was_known(db: graphdb.Database) -> None:
    db.query("CREATE (:City {name: 'Ulm'})")
    assert not db.query("MATCH (c:City {name: 'Ulm'}) DETACH DELETE c").warnings
    assert db.query("MATCH (c:City) DETACH DELETE c").warnings
    assert not db.query("CREATE (:Town); MATCH (t:Town) DELETE t").warnings


def test_to_ask_for_those_of_sql_writes_nothing(tmp_path: Path) -> None:
    """A file of DuckDB's without a graph has no tables of the graph before there is one."""
    with duckdb.connect(tmp_path / "plain.duckdb") as plain:
        plain.execute("CREATE TABLE t AS SELECT 1 AS x")
    with graphdb.connect(tmp_path / "plain.duckdb") as db:
        for run in (db.query, db.sql):
            assert run("FROM t").warnings == []
        assert db.sql("SELECT table_name FROM duckdb_tables()").fetchall() == [("t",)]


def test_shell_and_notebook_show_them(db: graphdb.Database) -> None:
    output, errors = io.StringIO(), io.StringIO()
    shell = Shell(db, output=output, errors=errors)
    assert shell.accept("MATCH (p:Persn) RETURN p.name;")
    assert "warning: unknown label 'Persn'" in errors.getvalue()
    assert "did you mean 'Person'?" in errors.getvalue()
    html = db.query("MATCH (p:Persn) RETURN p.name")._repr_html_()
    assert html is not None
    assert "warning: unknown label &#x27;Persn&#x27;" in html
    result = db.query("MATCH (p:Persn) RETURN p.name")
    db.close()
    assert "warning" not in (result._repr_html_() or ""), "there is nobody left to ask"


def test_a_name_of_tables_before_one_of_rdf_is_a_warning() -> None:
    with graphdb.connect(threads=1) as db:
        db.load(
            io.BytesIO(b'<http://x/ada> <http://x/name> "Ada" .\n<http://x/ada> <http://x/age> 36 .\n'), format="ttl"
        )
        assert db.query("MATCH (p) RETURN p.name").warnings == []
        db.load(io.BytesIO(b"id:ID,name\n1,Bo\n"), format="csv")
        [warning] = db.query("MATCH (p) WHERE p.age = 36 RETURN p.name").warnings
        assert warning.startswith("'name' is the name that tables and CREATE made, not what was loaded as RDF (line 1,")
        theirs = warning.rpartition("hint: for that write ")[2]
        found = db.query(f"MATCH (p) WHERE p.age = 36 RETURN p.{theirs}")
        assert (found.fetchall(), found.warnings) == ([("Ada",)], [])
