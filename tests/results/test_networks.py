"""The vertices and edges of a result as graphs of NetworkX and igraph, and as arrays."""

from __future__ import annotations

import random
from collections.abc import Iterator

import networkx
import numpy as np
import pytest

import graphdb
from tests.fuzz import scaled


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        yield database


@pytest.fixture
def small(db: graphdb.Database) -> graphdb.Database:
    db.query(
        "CREATE (a:P {name: 'a'})-[:K {w: 1}]->(b:P {name: 'b', type: 'x'}), (a)-[:K {w: 2}]->(b), (b)-[:L]->(a), "
        "(b)-[:K]->(:Q {labels: 'mine'})"
    )
    return db


def test_a_network_of_a_result(small: graphdb.Database) -> None:
    graph = small.query("MATCH (a)-[e:K]->(b:P) RETURN a, e, b").to_networkx()
    assert isinstance(graph, networkx.MultiDiGraph)
    ends = small.query("MATCH (a {name: 'a'}), (b {name: 'b'}) RETURN a, b").fetchall()[0]
    a, b = (node.iri for node in ends)
    assert dict(graph.nodes(data=True)) == {
        a: {"labels": ["P"], "name": "a"},
        b: {"labels": ["P"], "name": "b", "type": "x"},
    }
    assert sorted((s, e, d["type"], d["w"]) for s, e, d in graph.edges(data=True)) == [(a, b, "K", 1), (a, b, "K", 2)]


def test_vertices_alone_paths_lists_and_edges_alone(small: graphdb.Database) -> None:
    assert small.query("MATCH (a:P) RETURN a").to_networkx().number_of_nodes() == 2
    for returned in ("p", "nodes(p), relationships(p)", "{e: relationships(p)} AS m", "[relationships(p), 1] AS l"):
        graph = small.query(f"MATCH p = (:P {{name: 'a'}})-[:K*2]->(:Q) RETURN {returned}").to_networkx()
        assert (graph.number_of_nodes(), graph.number_of_edges()) == (3, 3), returned
    q = small.query("MATCH (q:Q)<-[e]-() RETURN e").to_networkx()
    assert [attributes for _, attributes in q.nodes(data=True) if attributes["labels"] == ["Q"]] == [
        {"labels": ["Q"], "urn:graphdb:labels": "mine"}
    ]


def test_the_whole_graph_is_the_one_of_the_database(small: graphdb.Database) -> None:
    whole = small.to_networkx()
    found = small.query("MATCH (a) OPTIONAL MATCH (a)-[e]->() RETURN a, e").to_networkx()
    same = networkx.is_isomorphic(
        whole,
        found,
        node_match=dict.__eq__,
        edge_match=lambda a, b: sorted(map(repr, a.values())) == sorted(map(repr, b.values())),
    )
    assert same
    assert set(whole) == set(found)


def test_rows_of_statements_that_write_and_of_ended_transactions(db: graphdb.Database) -> None:
    made = db.query("CREATE (a:P {k: 1})-[e:K]->(b:P) RETURN a, e").to_networkx()
    assert (made.number_of_nodes(), made.number_of_edges()) == (2, 1)
    assert {"labels": ["P"], "k": 1} in dict(made.nodes(data=True)).values()
    db.query("BEGIN")
    db.query("CREATE (:T)-[:K]->(:T)")
    result = db.query("MATCH (a:T)-[e]->(b) RETURN a, e, b")
    db.query("ROLLBACK")
    assert result.to_networkx().number_of_edges() == 1
    with pytest.raises(graphdb.ExecutionError, match="have no numbers"):
        result.edge_index()


@pytest.mark.parametrize("text", ["RETURN 1 AS x", "MATCH (a:P) RETURN a.name"])
@pytest.mark.parametrize("method", ["to_networkx", "edge_index"])
def test_rows_without_elements(small: graphdb.Database, text: str, method: str) -> None:
    with pytest.raises(graphdb.ExecutionError, match="no vertices, edges or paths"):
        getattr(small.query(text), method)()


def test_igraph(small: graphdb.Database) -> None:
    pytest.importorskip("igraph")
    graph = small.query("MATCH (a)-[e:K]->(b:P) RETURN a, e, b").to_igraph()
    assert graph.is_directed()
    assert sorted(graph.vs["name"]) == ["a", "b"]
    assert sorted(graph.es["w"]) == [1, 2]
    assert graph.es["type"] == ["K", "K"]
    assert graph.vs["labels"] == [["P"], ["P"]]


@pytest.mark.parametrize("number", range(scaled(10)))
def test_arrays_of_random_graphs(db: graphdb.Database, number: int) -> None:
    draw = random.Random(number)
    count = draw.randint(1, 20)
    db.query("UNWIND range(0, $n - 1) AS i CREATE (:V {i: i})", n=count)
    edges = [(draw.randrange(count), draw.randrange(count), draw.choice("RS")) for _ in range(draw.randint(0, 40))]
    for type in "RS":
        pairs = [[a, b] for a, b, of in edges if of == type]
        db.query(
            f"UNWIND $pairs AS p MATCH (a:V {{i: p[0]}}), (b:V {{i: p[1]}}) CREATE (a)-[:{type}]->(b)", pairs=pairs
        )
    for text in ("MATCH (a:V) OPTIONAL MATCH (a)-[e]->(b) RETURN a, e, b", "MATCH p = (a:V)-[*0..1]->() RETURN p"):
        found = db.query(text).edge_index()
        number_of = dict(db.query("MATCH (a:V) RETURN id(a), a.i").fetchall())
        name = [number_of[id] for id in found.vertices.tolist()]
        assert sorted(name) == list(range(count))
        assert found.edge_index.dtype == np.int64
        assert found.edge_index.shape == (2, len(edges))
        ends = found.edge_index.T.tolist()
        types = [found.types[i] for i in found.edge_type.tolist()]
        assert sorted((name[a], name[b], type) for (a, b), type in zip(ends, types, strict=True)) == sorted(edges)
        assert sorted(found.edges.tolist()) == sorted(id for (id,) in db.query("MATCH ()-[e]->() RETURN id(e)"))
