"""How many statements of DuckDB a small write takes: each costs about as much as all that Python does beside."""

from __future__ import annotations

from typing import Any

import pytest

import graphdb
from graphdb.common.duckdb.identifiers import OURS


class Counting:
    """A connection that counts what is executed on it."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw
        self.executed: list[str] = []
        self.parsed: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._raw, name)
        if name not in ("execute", "sql", "register"):
            return found

        def counted(*arguments: Any, **named: Any) -> Any:
            self.executed.append(str(getattr(arguments[0], "query", arguments[0])))
            if name == "execute" and isinstance(arguments[0], str):
                self.parsed.append(arguments[0])
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
    for i in range(2):
        database.query(text, {name: value + i for name, value in parameters.items()})  # type: ignore[operator]
    last = {name: value + 2 for name, value in parameters.items()}  # type: ignore[operator]
    return observed(database, text, last).executed


def observed(database: graphdb.Database, text: str, parameters: dict[str, object] | None = None) -> Counting:
    """Run a statement; what it executed."""
    connection = database._state.connection
    raw = connection.raw
    connection.raw = counting = Counting(raw)  # type: ignore[assignment]
    try:
        database.query(text, parameters)
    finally:
        connection.raw = raw
    return counting


def test_an_edge_with_a_property(database: graphdb.Database) -> None:
    """Nothing is read of an edge that is not there, and names and counts of labels are not read anew."""
    text = """MATCH (a:Person {id: $a}) MATCH (b:Person {id: $b})
        CREATE (a)-[e:KNOWS]->(b) SET e.since = $since"""
    found = counted(database, text, a=10, b=200, since=1000)
    assert not [sql for sql in found if sql.startswith("DELETE")]
    assert not [sql for sql in found if "FROM _graphdb.edge e" in sql or "_graphdb.prefix" in sql]
    assert not [sql for sql in found if "GROUP BY label" in sql and "_graphdb.edge" in sql]
    assert len(found) <= 15, found
    rows = database.query("MATCH (:Person {id: 12})-[e:KNOWS]->(:Person {id: 202}) RETURN e.since").fetchall()
    assert rows == [(1002,)]


def test_a_vertex(database: graphdb.Database) -> None:
    found = counted(database, "CREATE (:Person {id: $id, name: 'new'})", id=10_000)
    assert not [sql for sql in found if "FROM _graphdb.triple SEMI JOIN" in sql]
    assert len(found) <= 12, found
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


@pytest.mark.parametrize("change", ["SET n.p = 1", "REMOVE n.k", "SET n:New", "DETACH DELETE n"])
def test_vertices_that_are_no_more(change: str) -> None:
    """A small change of a small graph is as small where many vertices came and went before."""
    found = []
    for before in (2, 200):
        with graphdb.connect() as database:
            database.query(f"UNWIND range(1, {before}) AS i CREATE (:A {{k: i}})")
            database.query("MATCH (n) DETACH DELETE n")
            database.query("CREATE (:A {k: 1})-[:R {w: 2}]->(:B {k: 2})-[:S]->(:C {k: 3})")
            for i in range(5):  # by now what is looked for again and again is in memory
                database.query("MATCH (n {k: 1}) SET n:Old, n.q = $i, n.k = 1", i=i)
                database.query("MATCH (n {k: 1}) REMOVE n:Old")
            explained = database.explain("MATCH (n) RETURN n").splitlines()
            assert [line.split()[-1] for line in explained if "scan 3 vertices" in line] == ["3"]
            found.append(len(observed(database, f"MATCH (n) {change}").executed))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "text",
    [
        "UNWIND range(1, 70) AS i CREATE (:X {k: i})-[:R]->(:Y)",
        "MATCH (n:Person) SET n.seen = true",
        "MATCH (n:Person) REMOVE n.name",
        "MATCH (n:Person {id: 1}) SET n.name = 'other'",
        "MATCH (n:Person) DETACH DELETE n",
    ],
)
def test_what_is_the_same_each_time_is_parsed_once(database: graphdb.Database, text: str) -> None:
    """Of another database, too: only SQL about tables of the statement's own, which have new names, is parsed anew."""
    database.query(text)
    with graphdb.connect() as other:
        other.query("UNWIND range(1, 500) AS i CREATE (p:Person {id: i, name: 'p' + i})-[:KNOWS {since: i}]->(p)")
        parsed = observed(other, text).parsed
    assert not [sql for sql in parsed if OURS not in sql]


def test_all_tables_are_filled_by_one_statement(database: graphdb.Database) -> None:
    """New vertices, literals, triples, edges, their properties and what is counted of them are inserted together."""
    text = """MATCH (a:Person {id: $a})
        CREATE (a)-[:KNOWS {since: $since}]->(p:Person {id: $id, name: 'somebody ' + toString($id)})"""
    for i in range(12):  # by now what vertices had before is in memory
        found = observed(database, text, {"a": 20 + i, "since": 70_000 + i, "id": 80_000 + i}).executed
    assert len([sql for sql in found if "INSERT INTO" in sql]) == 1, found
    rows = database.query("MATCH (a:Person)-[e:KNOWS {since: 70011}]->(p) RETURN a.id, p.id, p.name").fetchall()
    assert rows == [(31, 80_011, "somebody 80011")]


def test_what_a_key_found_is_not_read(database: graphdb.Database) -> None:
    """The property by which an index found a vertex is known, and so is that of a vertex which was just made."""
    database.query("UNWIND range(1, 5) AS i CREATE (:Tag {id: i})")
    text = """MATCH (p:Person {id: $p}) CREATE (x:Person {id: $id})-[:OF]->(p) WITH x
        OPTIONAL MATCH (t:Tag) WHERE t.id IN [pair IN $pairs | pair[0]] WITH x, collect(t) AS tags
        FOREACH (t IN tags | CREATE (x)-[:HAS {number: head([pair IN $pairs WHERE pair[0] = t.id | pair[1]])}]->(t))
        FOREACH (t IN tags | CREATE (t)-[:OF]->(x))"""
    for i in range(8):
        pairs = [[1 + i % 4, 7], [2 + i % 4, 8]]
        found = observed(database, text, {"p": i + 1, "id": 90_000 + i, "pairs": pairs}).executed
    assert not [sql for sql in found if "JOIN _graphdb.literal" in sql or "SELECT id, integer" in sql], found
    rows = database.query("MATCH (p:Person {id: 90007})-[h:HAS]->(t:Tag) RETURN h.number, t.id").fetchall()
    assert sorted(rows) == [(7, 4), (8, 5)]


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("MATCH (p:Person {id: $i}) SET p.score = $i", 2),
        ("MATCH (p:Person {id: $i}) SET p.name = 'other ' + toString($i)", 3),
        ("MATCH (p:Person {id: $i}) SET p += {name: 'another', score: $i}", 3),
        ("MERGE (p:Person {id: $i}) RETURN p.name", 0),
        ("MERGE (p:Person {id: $i}) ON MATCH SET p.score = p.id", 2),
        ("MATCH (p:Person {id: $i})-[e:KNOWS]->() SET e.since = 1", 6),
        ("MATCH (p:Person {id: $i})-[e:KNOWS]->() DELETE e", 9),
    ],
)
def test_what_is_set_is_not_read(database: graphdb.Database, text: str, most: int) -> None:
    """Neither the other properties of a vertex, nor tables that have no rows, nor what is largest where others are."""
    database.query("MATCH (p:Person) SET p.name = CASE WHEN p.id > 250 THEN 'many' ELSE toString(p.id % 7) END")
    for i in range(20, 40):  # by now what is looked for again and again is in memory
        database.query(text, i=i)
    found = observed(database, text, {"i": 40}).executed
    assert len(found) <= most, "\n".join(found)


def test_edges_of_a_statement_are_read_together(database: graphdb.Database) -> None:
    database.query("MATCH (a:Person {id: 1}), (b:Person) WHERE b.id > 480 CREATE (a)-[:KNOWS {since: b.id}]->(b)")
    texts = {
        "MATCH (:Person {id: 1})-[e:KNOWS]->() SET e.seen = true": 1,
        "MATCH (a:Person {id: 1}) DETACH DELETE a": 0,
    }
    for text, reads in texts.items():  # what goes is not read
        found = observed(database, text).executed
        assert len([sql for sql in found if "FROM _graphdb.edge e" in sql]) == reads, "\n".join(found)
    assert database.query("MATCH (:Person {id: 1}) RETURN count(*)").scalar() == 0
    assert database.query("MATCH ()-[e:KNOWS]->() RETURN count(*), count(e.seen)").fetchall() == [(498, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "UNWIND range(1, 300) AS i CREATE (:X {k: i})-[:R]->(:Y)",
        "MATCH (n:Person) SET n.seen = true",
        "MATCH (n:Person) REMOVE n.name",
        "UNWIND range(1, 600) AS i MERGE (p:Person {id: i}) SET p.seen = i",
    ],
)
def test_what_hundreds_of_rows_change_is_not_counted_by_sql(database: graphdb.Database, text: str) -> None:
    """SQL that counts it takes DuckDB some 50 ms to plan."""
    assert "written by sets" in database.explain(text)
    assert not [sql for sql in observed(database, text).executed if "MERGE INTO" in sql or "_graphdb_touched" in sql]
