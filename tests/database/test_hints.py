"""Statements of other databases: an error that says what is meant here, and SQL's own that shows what is the user's."""

from __future__ import annotations

import pytest

import graphdb
from tests.stops import Stopwatch


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("CREATE NODE TABLE Person(id INT64, PRIMARY KEY(id))", "LOAD 'people.csv' AS LABEL Person"),
        ("CREATE REL TABLE Knows(FROM Person TO Person)", "a graph needs no tables"),
        ("COPY Person FROM 'people.csv'", "LOAD 'people.csv' AS LABEL Person"),
        ("CREATE INDEX ON :Person(name)", "need no index"),
        ("CREATE INDEX names FOR (p:Person) ON (p.name)", "need no index"),
        ("CREATE CONSTRAINT c FOR (p:P) REQUIRE p.id IS UNIQUE", "need"),
        ("SHOW LABELS", "CALL db.labels()"),
        ("SHOW RELATIONSHIP TYPES", "CALL db.relationshipTypes()"),
        ("SHOW INDEXES", "there are none"),
        ("SELECT count(*) FROM load_errors", "no load has skipped anything"),
        ("CALL show_tables() RETURN *", "CALL db.labels()"),
        ("SELECT ?x WHERE { ?x <http://x/p> ?y }", "the same question here: MATCH (x)-[:<http://x/p>]->(y) RETURN x"),
        ("-- all\nSELECT * { ?s ?p ?o } LIMIT 10", "this is SPARQL"),
        ("ASK { ?s ?p ?o }", "this is SPARQL"),
        ("INSERT { ?x a <http://x/b> } WHERE { ?x a <http://x/a> }", "this is SPARQL"),
        ("BASE <http://x/> SELECT * WHERE { ?s ?p ?o }", "this is Turtle or SPARQL"),
        ("@prefix x: <http://x/> .", "LOAD 'data.ttl'"),
        ("<urn:a> a <urn:c> .", "INSERT DATA"),
        ("SELEC 1", "did you mean SELECT?"),
        ("CREATE VERTEX Person", "a vertex stands in brackets"),
        ("CREATE Person {name: 'Ada'}", "a vertex stands in brackets"),
        ("CREATE DATABASE world", "a database is a file"),
        ("USE neo4j", "a database is a file"),
        ("USE neo4j MATCH (n) RETURN n", "a database is a file"),
        ("CYPHER 25 MATCH (n) RETURN n", "leave CYPHER and its options out"),
        ("USING PERIODIC COMMIT 9 LOAD CSV FROM 'a.csv' AS r CREATE ()", "LOAD 'people.csv' AS LABEL Person"),
        ("START n=node(*) RETURN n", "MATCH (n)"),
        ("g.V().has('name', 'Ada')", "this is Gremlin"),
        ('db.query("MATCH (n) RETURN n")', "this is Python"),
        (".tables", "commands with a dot are the shell's"),
        ("LOAD EXTENSION json", "LOAD json"),
        ("LOAD FROM 'people.csv' RETURN *", "SELECT * FROM 'people.csv'"),
        ('LOAD FROM "people.csv" (header=true) RETURN name', "SELECT * FROM 'people.csv'"),
        ("LOAD WITH HEADERS (name STRING) FROM 'people.csv' RETURN *", "SELECT * FROM 'people.csv'"),
        ("LOAD FROM 'people.csv' AS LABEL Person", "files are named without FROM"),
        ("LOAD FROM people", "rows come from a query in parentheses"),
        ("EXPLAIN ANALYZE MATCH (n) RETURN n", "PROFILE MATCH"),
        ("EXPORT DATABASE 'folder' (format=\"csv\")", ".export"),
        ("TERMINATE TRANSACTIONS 'x'", "Ctrl-C"),
        ("CALL show_functions()", "docs/language/functions.md"),
        ("CREATE TABLE MATCH (n) RETURN n", "CREATE TABLE friends AS MATCH"),
        ("SELECT (MATCH (n) RETURN count(*))", "behind FROM"),
        ("INSERT INTO t MATCH (n) RETURN n", "behind FROM"),
        ("SELECT cypher('MATCH (n) RETURN n')", "FROM cypher"),
        ("SELECT 1 IN cypher('MATCH (n) RETURN n')", "FROM cypher"),
        ("SELECT nop FROM cypher('RETURN 1 AS nope')", "nope"),
    ],
)
def test_what_is_meant_here(text: str, hint: str) -> None:
    with graphdb.connect(threads=1) as db:
        for run in (db.query, db.sql):
            with pytest.raises(graphdb.GraphDBError) as error:
                run(text)
            assert error.value.hint is not None
            assert hint in error.value.hint
            assert error.value.column is not None, "it has no place"
            assert "_graphdb" not in str(error.value)
        if error.value.hint.endswith("()"):
            db.query(error.value.hint)


def test_a_label_is_no_table() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("CREATE (:Person), (:`Big City`)")
        for text in ("SELECT * FROM person", "UPDATE Person SET a = 1", 'SELECT * FROM "Big City"'):
            with pytest.raises(graphdb.ExecutionError) as error:
                db.query(text)
            assert error.value.hint is not None
            assert len(db.query(error.value.hint.split(": ", 1)[1])) == 1
        with pytest.raises(graphdb.ExecutionError) as error:
            db.query("SELECT * FROM Persons")  # DuckDB has nearer tables, its own
        assert "Did you mean" not in str(error.value)


def test_errors_of_sql_stay_as_they_are() -> None:
    with graphdb.connect(threads=1) as db:
        for text in (
            "SELECT * FROM nothing",
            "CREATE TABLE (",
            "SELECT $$ ?x { $$ FROM nothing",
            "SELECT {'a': 1} = $$x$$ FROM nothing",
        ):
            with pytest.raises(graphdb.ExecutionError) as error:
                db.sql(text)
            assert error.value.hint is None
        with pytest.raises(graphdb.ExecutionError, match=r"MATCH(.|\n)*hint: sql\(\) runs SQL, query\(\) patterns"):
            db.sql("MATCH (a) RETURN a")


@pytest.mark.parametrize(
    ("text", "line", "at"),
    [
        ("SELECT 1 +\n FROM (SELECT 2)", 2, "FROM"),
        ("SELECT 'é', nope", 1, "nope"),
        ("SELECT * FROM nothing", 1, "nothing"),
        ("SELECT 1, 2,\n   'x'::INT", 2, "::INT"),
        ("SELECT " + "1 + " * 60 + "nope" + " + 1" * 60, 1, "nope"),
        ("SELECT x + 'a' FROM cypher('RETURN 1 AS x')", 1, "'a'"),
        ("SELECT a.x FROM cypher('RETURN 1 AS x') a, cypher('RETURN 2 AS y') b WHERE b.y = 'b'", 1, "'b'"),
    ],
)
def test_errors_of_sql_show_their_place(text: str, line: int, at: str) -> None:
    with graphdb.connect(threads=1) as db:
        with pytest.raises(graphdb.ExecutionError) as error:
            db.sql(text)
        assert error.value.line == line
        assert error.value.column is not None
        assert text.split("\n")[line - 1][error.value.column - 1 :].startswith(at)
        assert "LINE" not in str(error.value)


@pytest.mark.parametrize("before", [" " * 5000, "-- x\n" * 2000, "/* x */ " * 2000])
def test_what_stands_before_a_statement_takes_no_time(before: str) -> None:
    with graphdb.connect(threads=1) as db:
        watch = Stopwatch()
        for text in ("SELECT * FROM nothing", "CREATE (", "CREATE " + "a " * 5000, "SELECT " + "{ " * 20000):
            for run in (db.sql, db.query):
                with pytest.raises(graphdb.GraphDBError):
                    run(before + text)
        assert db.query(before + "SELECT 1").scalar() == 1
        assert watch.seconds() < 10


def test_the_users_tables_are_shown() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("CREATE (:A)")
        db.query("CREATE TABLE t AS MATCH (a:A) RETURN count(*) AS n")
        assert db.query("SHOW TABLES").fetchall() == [("t",), ("triples",)]
        assert {row[2] for row in db.query("SHOW ALL TABLES").fetchall() if row[1] == "main"} == {"t", "triples"}


def test_lists_that_do_not_fit_in_memory() -> None:
    """Are named: nothing else of such a query needs more memory than there is."""
    for gathers in ("WITH collect(x) AS l", "WITH x % 3 AS k, collect(toString(x)) AS l"):
        with graphdb.connect(device="cpu", threads=1, memory_limit="200MB") as db:
            text = f"UNWIND range(1, 4000000) AS x {gathers} RETURN l[5], size(l)"
            with pytest.raises(graphdb.MemoryLimitError, match="lists that collect\\(\\) gathers") as raised:
                db.query(text).fetchall()
            assert raised.value.column == text.index("collect") + 1
