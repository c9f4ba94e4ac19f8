"""``db.mine``: the statements' tables, from Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import graphdb
from graphdb.common.errors import BindError, ParameterError
from graphdb.mining import EmbeddingTable, aggregation, edge_extension

PEOPLE = """
CREATE (a:Person {name: 'A'})-[:KNOWS]->(b:Person {name: 'B'})-[:KNOWS]->(c:Person:Artist {name: 'C'})-[:KNOWS]->(a),
       (a)-[:`is in`]->(p:Place), (b)-[:`is in`]->(p), (c)-[:LIKES]->(p)
"""


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu") as db:
        db.query(PEOPLE)
        yield db


def test_the_tables_are_those_of_the_statements(db: graphdb.Database) -> None:
    pairs = [
        (db.mine.cliques(), "MINE CLIQUES OF SIZE 3..8"),
        (db.mine.cliques(4), "MINE CLIQUES OF SIZE 4"),
        (db.mine.cliques((3, 5), maximal=True, edges="KNOWS"), "MINE CLIQUES OF SIZE 3..5 MAXIMAL OVER :KNOWS"),
        (db.mine.motifs(3, edges=["KNOWS", "is in"]), "MINE MOTIFS OF SIZE 3 OVER :KNOWS|`is in`"),
        (db.mine.motifs(3, directed=True, vertices="Person"), "MINE MOTIFS OF SIZE 3 DIRECTED AMONG :Person"),
        (db.mine.frequent(2, 2), "MINE FREQUENT PATTERNS WITH SUPPORT >= 2 UP TO 2 EDGES"),
        (
            db.mine.frequent(1, 3, directed=False, matches=True, vertices=["Person", "Place"]),
            "MINE FREQUENT PATTERNS UNDIRECTED WITH SUPPORT >= 1 UP TO 3 EDGES COUNTING MATCHES AMONG :Person|Place",
        ),
        (
            db.mine.cliques(3, source="MATCH (a)-[e]->(b) WHERE a.name <> $n RETURN e // all", parameters={"n": "A"}),
            "MINE CLIQUES OF SIZE 3 FROM (MATCH (a)-[e]->(b) WHERE a.name <> 'A' RETURN e)",
        ),
    ]
    for found, text in pairs:
        wanted = db.query(text)
        assert (found.columns, found.fetchall()) == (wanted.columns, wanted.fetchall()), text
    assert [len(found) for found, _ in pairs[:3]] == [2, 1, 1]


def test_the_graph_for_the_primitives(db: graphdb.Database) -> None:
    graph = db.mine.graph(edges="KNOWS", directed=True)
    assert (len(graph), graph.edges) == (3, 3)
    assert set(graph.ids.tolist()) == {row[0] for row in db.query("MATCH (p:Person) RETURN id(p)")}
    table = edge_extension(EmbeddingTable.of_edges(graph), graph)
    assert aggregation(table, graph).counts.sum() == 3
    assert db.mine.graph(source="MATCH (a)-[e:LIKES]->(b) RETURN e").edges == 1


def test_mistakes(db: graphdb.Database) -> None:
    with pytest.raises(ParameterError, match="from 3 to 5, found 9"):
        db.mine.motifs(9)
    with pytest.raises(ParameterError, match="of 1 or more, found 0"):
        db.mine.frequent(0, 2)
    with pytest.raises(ParameterError, match="says itself"):
        db.mine.cliques(edges="KNOWS", source="MATCH (a)-[e]->() RETURN e")
    with pytest.raises(ParameterError, match="from 3 to 8, found 'x'"):
        db.mine.cliques(("x", 8))  # type: ignore[arg-type]
    with graphdb.connect() as other:
        other.load(_triples())
        with pytest.raises(BindError, match="unknown edge label 'knwos'"):
            other.mine.graph(edges="knwos")


def _triples() -> object:
    from io import BytesIO

    return BytesIO(b"<http://x/a> <http://x/knows> <http://x/b> .\n")


def test_limits_are_the_databases() -> None:
    """The primitives take what statements take: threads, memory, and the executor."""
    with graphdb.connect(device="cpu", threads=1, memory_limit="1GiB") as db:
        db.query(PEOPLE)
        limits = db.mine.limits()
        assert limits.threads == 1
        assert limits.memory is not None
        assert limits.memory < 1 << 30
        assert limits.counts.name == "cpu"
        graph = db.mine.graph()
        table = edge_extension(EmbeddingTable.of_edges(graph), graph, limits)
        assert len(aggregation(table, graph, limits=limits)) == len(aggregation(table, graph)) > 1
