"""Vertices, edges and paths as Python values: however they are made, they equal the graph's own."""

from __future__ import annotations

import copy
import io
import pickle
import random
from collections.abc import Iterator
from pathlib import Path as File

import pytest

import graphdb
from graphdb import Node, Path, Relationship
from graphdb.results.decode import pieces
from graphdb.snapshot.terms import Lookup

EX = "http://example.org/"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"

Graph = tuple[graphdb.Database, dict[str, Node], list[Relationship]]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    """A random graph as a database, and as what a user may expect of it."""
    chance = random.Random(3)
    names = [f"{EX}v{i}" for i in range(60)]
    lines, nodes = [], {}
    for name in names:
        labels = sorted(chance.sample([EX + "A", EX + "B", EX + "C"], chance.randrange(3)))
        properties: dict[str, object] = {}
        lines += [f"<{name}> <{TYPE}> <{label}> ." for label in labels]
        if chance.random() < 0.7:
            properties[EX + "age"] = chance.randrange(90)
            lines.append(f'<{name}> <{EX}age> "{properties[EX + "age"]}"^^<{INTEGER}> .')
        nicks = sorted(chance.sample(["x", "y", "z"], chance.randrange(4)))
        if nicks:
            properties[EX + "nick"] = nicks if len(nicks) > 1 else nicks[0]
            lines += [f'<{name}> <{EX}nick> "{nick}" .' for nick in nicks]
        nodes[name] = Node(name, tuple(labels), properties)
    pairs = sorted(
        {(a, b, label) for a, b, label in ((*chance.sample(names, 2), chance.choice("pq")) for _ in range(500))}
    )
    edges = [Relationship(EX + label, a, b) for a, b, label in pairs]
    lines += [f"<{edge.start}> <{edge.type}> <{edge.end}> ." for edge in edges]
    file = tmp_path_factory.mktemp("elements") / "graph.nt"
    file.write_text("\n".join(lines) + "\n")
    with graphdb.connect() as database:
        database.load(file)
        yield database, nodes, edges


def _same(found: Node, expected: Node) -> bool:
    """Whether all of a node is as expected: equality is about its IRI alone."""
    return (found, found.labels, found.properties) == (expected, expected.labels, expected.properties)


def test_vertices_and_edges_are_those_of_the_graph(graph: Graph) -> None:
    database, nodes, edges = graph
    for _ in range(2):  # read from the database, and taken from memory
        result = database.query(f"MATCH (a)-[r:<{EX}p>|<{EX}q>]->(b) RETURN a, r, b")
        rows = result.fetchall()
        assert len(rows) > 256
        assert sorted((r.type, r.start, r.end) for _, r, _ in rows) == sorted((r.type, r.start, r.end) for r in edges)
        for a, r, b in rows:
            assert (a.iri, b.iri) == (r.start, r.end)
            assert _same(a, nodes[a.iri])
            assert _same(b, nodes[b.iri])
            assert r.properties == {}
        assert list(result) == rows
        assert result.fetchone() == rows[0]
    only = database.query(f"MATCH ()-[r:<{EX}p>|<{EX}q>]->() RETURN r").fetchall()
    assert {r for (r,) in only} == {*edges}


def test_lists_and_missing_elements(graph: Graph) -> None:
    database, nodes, edges = graph
    text = f"MATCH (a) OPTIONAL MATCH (a)-[r:<{EX}p>]->(b) RETURN a, collect(b), collect(r), a.<{EX}nick>"
    rows = database.query(text).fetchall()
    assert {a.iri for a, *_ in rows} == nodes.keys()
    for a, near, r, nick in rows:
        mine = [edge for edge in edges if edge.type == EX + "p" and edge.start == a.iri]
        assert {b.iri for b in near} == {edge.end for edge in mine}
        assert {*r} == {*mine}
        assert all(_same(b, nodes[b.iri]) for b in near)
        assert nick == nodes[a.iri].properties.get(EX + "nick")
    text = f"MATCH (a) OPTIONAL MATCH (a)-[r:<{EX}p>]->(b:<{EX}A>) RETURN a, r, b"
    for a, r, b in database.query(text).fetchall():
        assert (r is None) == (b is None)
        mine = [edge for edge in edges if edge.type == EX + "p" and edge.start == a.iri]
        there = {edge for edge in mine if EX + "A" in nodes[str(edge.end)].labels}
        assert r in there if r is not None else not there


def test_paths_are_materialized_when_they_are_asked_for(graph: Graph) -> None:
    database, nodes, edges = graph
    rows = database.query(f"MATCH p = (a)-[:<{EX}p>]->(b)-[:<{EX}q>]-(c) RETURN p, a, c").fetchall()
    assert len(rows) > 256
    known = {*edges}
    for path, a, c in rows:
        assert len(path) == 2
        assert (path.nodes[0], path.nodes[-1]) == (a, c)
        assert all(_same(node, nodes[node.iri]) for node in path.nodes)
        assert {*path.relationships} <= known
        for left, edge, right in zip(path.nodes, path.relationships, path.nodes[1:], strict=False):
            assert {edge.start, edge.end} == {left.iri, right.iri}
    walks = {
        (a.start, a.end, b.end if b.start == a.end else b.start)
        for a in edges
        for b in edges
        if a.type == EX + "p" and b.type == EX + "q" and a.end in (b.start, b.end)
    }
    assert {tuple(node.iri for node in path.nodes) for path, *_ in rows} == walks


@pytest.mark.parametrize("sources", ["=", "<>"], ids=["few", "many"])
def test_a_path_is_equal_hashes_prints_copies_and_pickles_as_one_that_was_made(graph: Graph, sources: str) -> None:
    database, *_ = graph
    steps = f"MATCH p = ANY SHORTEST (a)-[:<{EX}p>|<{EX}q>]-+(b) WHERE iri(a) {sources} $a RETURN p"
    text = f"{steps} ORDER BY length(p), iri(a), iri(b)"

    def fresh() -> Path:
        return database.query(text, a=f"{EX}v1").fetchall()[-1][0]

    given = fresh()
    made = Path(given.nodes, given.relationships)
    assert fresh() == made == fresh()
    assert hash(fresh()) == hash(made)
    assert repr(fresh()) == repr(made)
    assert str(fresh()) == str(made)
    assert pickle.loads(pickle.dumps(fresh())) == made
    assert copy.deepcopy(fresh()) == copy.copy(fresh()) == made
    match fresh():
        case Path(found, edges):
            assert (found, edges) == (made.nodes, made.relationships)
    for wrong in (fresh(), made):
        with pytest.raises(AttributeError, match="'Path' object has no attribute 'edges'"):
            wrong.edges  # type: ignore[attr-defined]  # noqa: B018
        with pytest.raises(AttributeError):
            wrong.nodes = ()  # type: ignore[misc]


def test_paths_of_a_search_are_the_same_as_values_and_as_a_table(graph: Graph) -> None:
    database, nodes, edges = graph
    for ends in (f"{EX}v1", f"{EX}v2"), (f"{EX}v1", None):
        text = (
            f"MATCH p = ANY SHORTEST (a)-[:<{EX}p>|<{EX}q>]-*(b) WHERE iri(a) = $a {'AND iri(b) = $b' * bool(ends[1])}"
        )
        given = {name: end for name, end in zip("ab", ends, strict=True) if end is not None}
        result = database.query(f"{text} RETURN p, length(p), b", **given)
        rows, table = result.fetchall(), result.to_arrow()
        assert result.fetchall() == rows == list(result)
        assert len(rows) == len(result) == table.num_rows
        assert result.fetchone() == rows[0]
        assert table.column(1).to_pylist() == [length for _, length, _ in rows]
        assert [b["id"] for b in table.column(2).to_pylist()] == [b.iri for *_, b in rows]
        for path, length, b in rows:
            assert (len(path), path.nodes[0].iri, path.nodes[-1].iri) == (length, ends[0], b.iri)
            assert all(_same(node, nodes[node.iri]) for node in path.nodes)
            assert {*path.relationships} <= {*edges}
        again = database.query(f"{text} RETURN p, length(p), b", **given)
        assert again.to_arrow() == table
        assert again.fetchall() == rows
    assert (
        database.query("MATCH p = ANY SHORTEST (a)-[:<urn:none>]-*(b) WHERE iri(a) = $a RETURN p", a=EX).fetchall()
        == []
    )


def test_what_was_fetched_outlives_its_data_and_its_database(tmp_path: File) -> None:
    with graphdb.connect(tmp_path / "g.duckdb") as database:
        database.query("CREATE (:P {name: 'a'})-[:knows]->(:P {name: 'b'})-[:knows]->(:P {name: 'c'})")
        found = []
        for _ in range(3):  # read, and taken from memory
            found += database.query("MATCH p = (:P {name: 'a'})-[:knows*2]->() RETURN p").fetchall()
        database.query("MATCH (n) DETACH DELETE n")
    for (path,) in found:
        assert [node.properties for node in path.nodes] == [{"name": "a"}, {"name": "b"}, {"name": "c"}]
        assert [edge.type for edge in path.relationships] == ["knows", "knows"]


def test_plain_values_ask_nothing_of_the_dictionary(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lookup, "ready", lambda *_, **__: pytest.fail("asked"))
    assert len(graph[0].query(f"MATCH (a:<{EX}A>) RETURN a.<{EX}nick>, [1, 'x'], 2.5").fetchall()) > 1


def test_tables_are_decoded_in_pieces_that_grow() -> None:
    import pyarrow as pa

    table = pa.table({"a": range(100_000)})
    sizes = [piece.num_rows for piece in pieces(table)]
    assert sum(sizes) == 100_000
    assert sizes[0] < 1000 < sizes[-2]
    wide = pa.table({"a": [[7] * 100_000] * 100})
    assert max(piece.nbytes for piece in pieces(wide)) < 20e6
    assert list(pieces(table.slice(0, 0))) == []


def test_parallel_edges_without_properties() -> None:
    with graphdb.connect() as db:
        db.query("CREATE (a:A)-[:K]->(b), (a)-[:K]->(b)")
        assert [edge.properties for (edge,) in db.query("MATCH ()-[r:K]->() RETURN r")] == [{}, {}]


def test_properties_are_found_by_bare_names() -> None:
    """A query knows ``n.name`` by its bare name; what it returns did not, and ``get`` said that there was none."""
    with graphdb.connect(threads=1) as db:
        db.query("PREFIX f: <http://f/>")
        db.query("INSERT DATA { <http://e/a> f:name 'Ada' ; <http://b#age> 36 ; <http://x/n> 1 ; <http://y/n> 2 }")
        edge = b"<http://e/a> <http://e/to> <http://e/b> {| <http://b#since> 2001 |} ."
        db.load(io.BytesIO(edge), format="turtle")
        a, e = db.query("MATCH (a)-[e]->(b) RETURN a, e").fetchall()[0]
    assert dict(a) == {"f:name": "Ada", "http://b#age": 36, "http://x/n": 1, "http://y/n": 2}
    assert list(a) == list(a.keys()) == list(a.properties)
    assert (a["name"], a.get("age"), a["http://b#age"], a["f:name"], e["since"]) == ("Ada", 36, 36, "Ada", 2001)
    assert [key in a for key in ("name", "f:name", "age", "n", "ame", "", "#age", 0)] == [True] * 3 + [False] * 5
    assert [a.get("n"), a.get("ame", 5), e.get("age")] == [None, 5, None]
    for key, meant in (("n", "'http://x/n' or 'http://y/n'"), ("nam", "'f:name'")):
        with pytest.raises(KeyError, match=f"{key}: did you mean .*{meant}"):
            a[key]
    with pytest.raises(KeyError, match=r"^0$"):
        a[0]


def test_a_bare_name_is_the_key_itself_where_there_is_one() -> None:
    node = graphdb.Node("a", (), {"name": 1, "http://x/name": 2})
    assert (node["name"], node.get("name"), "name" in node) == (1, 1, True)
