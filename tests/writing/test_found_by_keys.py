"""Vertices that keys find for clauses that write: the same graph as where matches find them."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

import graphdb
from graphdb.writing.by_row.row_reader import RowReader
from tests.suites.effects import stored

PEOPLE = """UNWIND range(1, 8) AS i CREATE (:Person {id: i, name: 'p' + toString(i % 3)}), (:Tag {id: i})
WITH i WHERE i % 2 = 0 MATCH (p:Person {id: i}) SET p:Even"""

STATEMENTS = [
    "MATCH (a:Person {id: $a}) MATCH (b:Person {id: $b}) CREATE (a)-[:KNOWS {since: $n}]->(b)",
    "MATCH (a:Person), (b:Tag) WHERE a.id = $a AND $b = b.id CREATE (a)-[:LIKES]->(b)",
    "MATCH (a:Person:Even {id: $a}) SET a.seen = coalesce(a.seen, 0) + $n",
    "MATCH (a:Person {name: $name}) SET a.called = $n",
    "OPTIONAL MATCH (t:Tag) WHERE t.id IN $ids WITH collect(t) AS tags CREATE (x:Box {n: $n, size: size(tags)})"
    " FOREACH (t IN tags | CREATE (x)-[:HAS]->(t))",
    "CREATE (x:Box {id: $n}) WITH x OPTIONAL MATCH (t:Tag) WHERE t.id IN [each IN $ids | each] WITH x, collect(t) AS tags"
    " OPTIONAL MATCH (p:Person) WHERE p.id IN [$a, $b] WITH x, tags, collect(p) AS people"
    " FOREACH (t IN tags | CREATE (x)-[:HAS]->(t)) FOREACH (p IN people | CREATE (x)-[:OF {id: p.id}]->(p))",
    "CREATE (x:Person {id: $a, name: 'new'}) WITH x MATCH (p:Person {id: $a}) SET p.found = coalesce(p.found, 0) + 1",
    "CREATE (x:Fresh {id: $a}) WITH x MATCH (p:Fresh {id: $a}) SET p.found = true",
    "MATCH (a:Person {id: $a}) SET a.id = $b WITH a MATCH (b:Person {id: $b}) SET b.moved = $n",
    "MATCH (a:Person {id: $a}) SET a:Tag WITH a MATCH (b:Tag {id: $a}) SET b.tagged = $n",
    "MATCH (a:Person {id: $a}) REMOVE a:Person WITH a OPTIONAL MATCH (b:Person {id: $a}) CREATE (:Left {there: b.id})",
    "MATCH (a:Tag {id: $a}) DETACH DELETE a WITH 1 AS one OPTIONAL MATCH (b:Tag {id: $a}) CREATE (:Left {there: b.id})",
    "MATCH (a:Person {id: $a}) WITH a AS b MERGE (b)-[:ONCE]->(t:Tag {id: $b})",
    "MATCH (a:Person {id: $a}) MATCH (b:Person {id: a.id}) CREATE (a)-[:SELF]->(b)",
    "MATCH (a:Person {id: $a}) CREATE (a)-[k:KNOWS]->(c:Child {id: $n}) WITH a, c, k MATCH (t:Tag {id: $b})"
    " SET k.by = t.id CREATE (c)-[:HAS]->(t)",
    "MATCH (a:Person {id: $ids[0]}), (b:Person {id: CASE WHEN $n = 1 THEN $a ELSE $b END}) CREATE (a)-[:SEEN]->(b)",
    "UNWIND $ids AS i MATCH (a:Person {id: i}) WITH a MATCH (t:Tag {id: a.id}) CREATE (a)-[:TAGGED]->(t)",
    "UNWIND $ids AS i OPTIONAL MATCH (a:Person {id: i}) CREATE (:Left {there: a.id, i: i})",
    "UNWIND $ids AS i UNWIND [$n, 7] AS j MATCH (a:Person {id: i}) SET a.seen = j MERGE (:Box {n: i})-[:OF]->(a)",
    "UNWIND $rows AS r MATCH (a:Person {id: r.a}) MATCH (b:Tag {id: r.b}) CREATE (a)-[:RATED {as: r.as}]->(b)",
    "UNWIND $rows AS r MATCH (a:Person {id: r.a}) SET a.as = r.as WITH a, r MATCH (b:Tag {id: r.b}) SET b.as = a.as",
    "UNWIND $rows AS r MATCH (a:Tag {id: r.a}) DETACH DELETE a",
    "UNWIND $rows AS r MATCH (a:Person {id: r.a}) MERGE (a)-[:ONCE {as: r.b}]->(b:Box {n: r.b})",
    "MERGE (a:Person {id: $a}) ON CREATE SET a.name = 'made' ON MATCH SET a.called = a.name",
    "MERGE (a:Person:Even {id: $a, name: $name}) ON MATCH SET a.seen = coalesce(a.seen, 0) + $n, a.last = a.seen",
    "MERGE (:Tag {id: $b}) MERGE (t:Tag {id: $a}) SET t.id = $b WITH t MERGE (u:Tag {id: $a}) SET u.t = t.id",
    "UNWIND $ids AS i WITH i WHERE i IS NOT NULL MERGE (a:Person {id: i}) SET a.name = 'p1'",
    "UNWIND $rows AS r WITH r WHERE r.a IS NOT NULL MERGE (a:Person {id: r.a}) ON MATCH SET a.id = 1, a.as = r.as",
    "UNWIND $rows AS r MERGE (a:Person {name: $name}) SET a.as = r.as, a.n = coalesce(a.n, 0) + size(a.name)",
    "MATCH (a:Person {id: $a}) DETACH DELETE a WITH 1 AS one MERGE (b:Person {id: $a}) SET b.again = one",
    "UNWIND $rows AS r MATCH (a:Person {id: r.a}) WITH collect(a) AS people FOREACH (p IN people | SET p.seen = $n)",
]


def graph(database: graphdb.Database) -> tuple[list[Any], list[Any]]:
    """Everything there is, without the numbers of vertices."""
    vertices = database.query("MATCH (n) RETURN labels(n) AS l, properties(n) AS p").fetchall()
    edges = database.query(
        "MATCH (a)-[e]->(b) RETURN properties(a) AS a, type(e) AS t, properties(e) AS e, properties(b) AS b"
    ).fetchall()
    return sorted(map(repr, vertices)), sorted(map(repr, edges))


def nothing(*_: object, **named: object) -> None:
    """Leave all to matches."""


@pytest.mark.parametrize("seed", range(6))
def test_the_same_graph_as_by_matches(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each statement: where all tables are equal, numbers of vertices included, queries read them now and then."""
    draw, found = random.Random(seed), []
    methods = {name: getattr(RowReader, name) for name in ("read", "vertices")}

    def noted(method: Any) -> Any:
        def run(self: RowReader, *arguments: Any, **named: Any) -> Any:
            rows = method(self, *arguments, **named)
            found.append(rows is not None)
            return rows

        return run

    with graphdb.connect() as ours, graphdb.connect() as by_matches:
        for database in (ours, by_matches):
            database.query(PEOPLE)
        for number in range(30):
            text = draw.choice(STATEMENTS)
            values: dict[str, Any] = {"a": draw.randint(0, 9), "b": draw.randint(0, 9), "n": draw.randint(0, 2)}
            values["name"] = f"p{draw.randint(0, 3)}"
            values["ids"] = [draw.choice([*range(10), None]) for _ in range(draw.randint(1, 4))]
            values["rows"] = [
                {
                    "a": draw.choice([*range(10), 2.0, "p1", None]),
                    "b": draw.choice([1, 2, None]),
                    "as": draw.choice([1, "x", [2]]),
                }
                for _ in range(draw.randint(0, 4))
            ]
            given = {name: value for name, value in values.items() if re.search(rf"\${name}\b", text)}

            results = []
            for database in (ours, by_matches):
                for name, method in methods.items():
                    monkeypatch.setattr(RowReader, name, noted(method) if database is ours else nothing)
                try:
                    results.append(str(database.query(text, given).message))
                except graphdb.GraphDBError as error:
                    results.append(type(error).__name__)
            assert results[0] == results[1], (text, given)
            if number % 5 == 4 or stored(ours) != stored(by_matches):
                assert graph(ours) == graph(by_matches), (text, given)
    assert found.count(True) > 10


def test_profile_says_so() -> None:
    with graphdb.connect() as database:
        database.query(PEOPLE)
        for i in range(3):
            database.query("MATCH (a:Person {id: $i}) SET a.seen = 1", i=i)
        lines = [line for (line,) in database.query("PROFILE MATCH (a:Person {id: 1}) SET a.seen = 2").fetchall()]
    assert "    found by keys, row by row: MATCH (a:Person {id: 1})" in lines
