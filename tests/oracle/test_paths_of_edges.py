"""Paths along edges that are told apart (by their properties, or as parallel ones) against the interpreter's search."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.paths.run import PathRun
from tests.oracle.test_path_plans import refuse, rows

SOME = settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
edge = st.tuples(st.integers(0, 3), st.sampled_from("EF"), st.integers(0, 3), st.integers(0, 2))
multigraphs = st.lists(edge, min_size=2, max_size=8)

QUERIES = """MATCH p = (a)-[:E]->(b) RETURN p
MATCH p = (a)-[*1..2]-(b) RETURN p, length(p)
MATCH p = (a)-[r:E*1..2]-(b) RETURN r, [e IN relationships(p) | e.w]
MATCH p = (a {id: 0})-[:E|F*0..2]->(b) RETURN nodes(p), [e IN relationships(p) WHERE e.w > 0 | id(e)]
MATCH (a)-[r]->(b) RETURN id(r), elementId(r), a.id ORDER BY id(r) LIMIT 100
MATCH (a)-[r:E]->(b) WITH collect(id(r)) AS ids MATCH (c)-[s]->() WHERE id(s) IN ids RETURN c.id, s.w""".splitlines()


def created(edges: list[tuple[int, str, int, int]]) -> graphdb.Database:
    database = graphdb.connect(threads=1)
    database.query("UNWIND range(0, 3) AS i CREATE (:N {id: i, half: i / 2})")
    for label in "EF":
        database.query(
            f"UNWIND $edges AS e MATCH (a:N {{id: e[0]}}), (b:N {{id: e[1]}}) CREATE (a)-[:{label} {{w: e[2]}}]->(b)",
            edges=[[a, b, w] for a, name, b, w in edges if name == label],
        )
    return database


@SOME
@given(multigraphs)
def test_planned_paths_are_those_of_the_search(edges: list[tuple[int, str, int, int]]) -> None:
    with created(edges) as database:
        planned = {text: rows(database, text) for text in QUERIES}
        database.query("PREFIX forget: <http://what.was/prepared>")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(PathRun, "prepare", refuse)
            for text, found in planned.items():
                assert found == rows(database, text), text


def test_these_queries_are_planned() -> None:
    with created([(0, "E", 1, 0), (0, "E", 1, 2), (1, "F", 2, 1), (2, "E", 0, 1)]) as database:
        for text in QUERIES:
            assert "interpreted" not in database.explain(text), text
            table = f"CREATE OR REPLACE TABLE kept AS {text}"
            count = len(database.query(text))
            database.query(table)
            assert len(database.sql("FROM kept")) == count
