"""How many statements of DuckDB a small write takes: each costs about as much as all that Python does beside."""

from __future__ import annotations

from typing import Any

import pytest

import graphdb


class Counting:
    """A connection that counts what is executed on it."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.executed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._raw, name)
        if name not in ("execute", "sql", "register"):
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            self.executed.append(str(getattr(arguments[0], "query", arguments[0])))
            return found(*arguments, **named)

        return counted


@pytest.fixture
def database() -> graphdb.Database:
    made = graphdb.connect()
    made.query("UNWIND range(1, 500) AS i CREATE (:Person {id: i, name: 'p' + i})")
    made.query("MATCH (a:Person), (b:Person) WHERE b.id = a.id + 1 CREATE (a)-[:KNOWS {since: a.id}]->(b)")
    return made


def counted(database: graphdb.Database, text: str, **parameters: object) -> list[str]:
    """Run a statement for the third time, with other parameters each time; what the last one executed."""
    state = database._state
    for i in range(2):
        database.query(text, {name: value + i for name, value in parameters.items()})  # type: ignore[operator]
    raw = state.connection.raw
    state.connection.raw = counting = Counting(raw)  # type: ignore[assignment]
    try:
        database.query(text, {name: value + 2 for name, value in parameters.items()})  # type: ignore[operator]
    finally:
        state.connection.raw = raw
    return counting.executed


def test_an_edge_with_a_property(database: graphdb.Database) -> None:
    """Nothing is read of an edge that is not there, and names and counts of labels are not read anew."""
    text = """MATCH (a:Person {id: $a}) MATCH (b:Person {id: $b})
        CREATE (a)-[e:KNOWS]->(b) SET e.since = $since"""
    executed = counted(database, text, a=10, b=200, since=1000)
    assert not [sql for sql in executed if sql.startswith("DELETE")]
    assert not [sql for sql in executed if "FROM _graphdb.edge e" in sql or "_graphdb.prefix" in sql]
    assert not [sql for sql in executed if "GROUP BY label" in sql and "_graphdb.edge" in sql]
    assert len(executed) <= 15, executed
    found = database.query("MATCH (:Person {id: 12})-[e:KNOWS]->(:Person {id: 202}) RETURN e.since").fetchall()
    assert found == [(1002,)]


def test_a_vertex(database: graphdb.Database) -> None:
    executed = counted(database, "CREATE (:Person {id: $id, name: 'new'})", id=10_000)
    assert not [sql for sql in executed if "FROM _graphdb.triple SEMI JOIN" in sql]
    assert len(executed) <= 12, executed
    assert database.query("MATCH (p:Person {name: 'new'}) RETURN count(*)").fetchall() == [(3,)]


def test_an_edge_that_is_there_twice(database: graphdb.Database) -> None:
    """What is known not to be there is not looked for; what is there gets a parallel edge."""
    text = "MATCH (a:Person {id: $a}), (b:Person {id: $b}) CREATE (a)-[:KNOWS {since: -1}]->(b)"
    for _ in range(2):
        database.query(text, a=1, b=2)
        database.query(text, a=5, b=9)
    rows = database.query("MATCH (a:Person)-[e:KNOWS]->(b) WHERE a.id IN [1, 5] RETURN a.id, b.id, e.since").fetchall()
    assert sorted(rows) == [(1, 2, -1), (1, 2, -1), (1, 2, 1), (5, 6, 5), (5, 9, -1), (5, 9, -1)]
    database.query("MATCH (:Person {id: 5})-[e:KNOWS]->(:Person {id: 9}) DELETE e")
    database.query(text, a=5, b=9)
    rows = database.query("MATCH (a:Person {id: 5})-[e:KNOWS]->(b) RETURN b.id, e.since").fetchall()
    assert sorted(rows) == [(6, 5), (9, -1)]
