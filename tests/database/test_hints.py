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
        ("SELEC 1", "did you mean SELECT?"),
    ],
)
def test_what_is_meant_here(text: str, hint: str) -> None:
    with graphdb.connect(threads=1) as db:
        for run in (db.query, db.sql):
            with pytest.raises(graphdb.GraphDBError) as error:
                run(text)
            assert error.value.hint is not None
            assert hint in error.value.hint
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
        with pytest.raises(
            graphdb.ExecutionError, match=r"LINE 1: MATCH(.|\n)*hint: sql\(\) runs SQL, query\(\) patterns"
        ):
            db.sql("MATCH (a) RETURN a")


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
