"""RDF as its people write it: prefixed vertices, INSERT DATA, terms and graphs of rdflib, questions of SPARQL."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any

import pyoxigraph
import pytest

import graphdb

ZOO = """
PREFIX ex: <http://example.org/>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
ex:tom a ex:Cat ; ex:name "Tom", "Thomas"@fr ; ex:weight 4.5 ; ex:chases ex:jerry .
ex:jerry a ex:Mouse ; ex:name "Jerry" ; ex:weight 0.1 ; ex:chases ex:tom .
ex:Cat rdfs:subClassOf ex:Animal .
"""


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.load(io.BytesIO(ZOO.encode()), format="turtle")
        yield database


def triples(db: graphdb.Database) -> set[tuple[Any, ...]]:
    """What SQL says is there."""
    return set(db.sql("SELECT subject, predicate, object, datatype, language FROM triples"))


def test_vertices_by_prefixed_names(db: graphdb.Database) -> None:
    assert db.query("MATCH (x ex:tom)-[:ex:chases]->(y) RETURN iri(y)").scalar() == "http://example.org/jerry"
    assert db.query("MATCH (x ex:tom:ex:Cat {weight: 4.5} WHERE x.weight > 1) RETURN count(*)").scalar() == 1
    assert db.query("MATCH (x) WHERE x = iri('ex:tom') RETURN x.weight").scalar() == 4.5
    assert db.query("MATCH (y) WHERE EXISTS { (y)-->(x ex:tom) } RETURN iri(y)").scalar() == "http://example.org/jerry"
    assert db.query("MATCH (x), (y) WHERE (y)-->(x ex:tom) RETURN iri(y)").scalar() == "http://example.org/jerry"
    assert "ex:chases" in db.query("EXPLAIN MATCH (x ex:tom)-[:ex:chases]->(y) RETURN y").text()
    assert db.query("RETURN iri('http://example.org/tom') = iri('ex:tom')").scalar() is True
    with pytest.raises(graphdb.BindError, match=r"unknown prefix 'exx'(.|\n)*did you mean 'ex:tom'"):
        db.query("MATCH (x exx:tom) RETURN x")
    db.query("PREFIX ex: <http://other.org/>")  # what a prefix meant before is forgotten
    assert db.query("MATCH (x ex:tom)-->(y) RETURN iri(y)").fetchall() == []


def test_vertices_are_created_with_their_iris(db: graphdb.Database) -> None:
    made = db.query("CREATE (x ex:spike:ex:Dog {name: 'Spike'})-[:ex:chases]->(y ex:tom), (z <http://e.org/z>)")
    assert made.message == "2 vertices created, 1 edge created, 1 property set, 1 label added"
    rows = db.query("MATCH (d:ex:Dog)-[:ex:chases]->(t) RETURN iri(d), d.name, t.weight").fetchall()
    assert rows == [("http://example.org/spike", "Spike", 4.5)]
    assert db.query("MATCH (z <http://e.org/z>) RETURN count(*)").scalar() == 1
    assert db.query("UNWIND [1, 2] AS i CREATE (x ex:one {number: i})").message is not None
    assert db.query("MATCH (x ex:one) RETURN count(*)").scalar() == 1
    with pytest.raises(graphdb.BindError, match="is there already"):
        db.query("MATCH (x:ex:Cat) CREATE (x ex:other)")


def test_triples_are_inserted_and_deleted(db: graphdb.Database) -> None:
    before = triples(db)
    text = 'INSERT DATA { ex:spike a ex:Dog ; ex:says \'wau; }\', """a\n#b"""@de . # }\n ex:tom ex:fears ex:spike }'
    assert db.query(text + "; RETURN 1").scalar() == 1
    ours = {(s.rpartition("/")[2], p.rpartition("/")[2], o, t) for s, p, o, _, t in triples(db) - before}
    assert ("spike", "says", "wau; }", None) in ours
    assert ("spike", "says", "a\n#b", "de") in ours
    assert len(ours) == 4
    assert db.query(text.replace("INSERT", "delete")).message == "4 triples deleted"
    assert triples(db) == before
    for wrong in ("INSERT DATA {\n  ex:tom ex:name Tom }", "INSERT DATA {\n  ex:tom 'x' 1 }"):
        with pytest.raises(graphdb.ParseError, match="line 2") as told:
            db.query(wrong)
        assert "ex:tom" in str(told.value)
    with pytest.raises(graphdb.ParseError, match="not closed"):
        db.query("INSERT DATA { ex:tom ex:name 'Tom'")
    assert triples(db) == before
    db.query("BEGIN; DELETE DATA { ex:tom ex:name 'Thomas'@fr }; ROLLBACK")
    assert triples(db) == before


@pytest.mark.filterwarnings("ignore:Dataset.contexts is deprecated")  # rdflib says so of its own serializer
def test_terms_and_graphs_of_rdflib(db: graphdb.Database) -> None:
    rdflib = pytest.importorskip("rdflib")
    before, ex = triples(db), rdflib.Namespace("http://example.org/")
    said = [
        (ex.tom, ex.nick, rdflib.Literal('T\n"o', lang="en")),
        (ex.tom, ex.age, rdflib.Literal(3)),
        (pyoxigraph.NamedNode(ex.tom), pyoxigraph.NamedNode(ex.knows), pyoxigraph.NamedNode(ex.spike)),
    ]
    assert db.add(said) == 3
    assert db.apply(deletions=said[:1]).deletions == 1
    assert {row[1:3] for row in triples(db) - before} == {(str(ex.age), "3"), (str(ex.knows), str(ex.spike))}
    graph = rdflib.Graph()
    graph.parse(data=ZOO.replace("ex:", "zoo:"), format="turtle")
    with graphdb.connect(threads=1) as other:
        assert other.load(graph).triples == len(graph)
        assert other.prefixes()["zoo"] == str(ex)
        assert "brick" not in other.prefixes()
        assert triples(other) == before
        dataset = rdflib.Dataset()
        dataset.add((ex.tom, ex.likes, ex.milk, ex.diary))
        assert other.load(dataset).new_triples == 1


def test_classes_above_are_pointed_to(db: graphdb.Database) -> None:
    for name in ("Animal", "ex:Animal"):
        with pytest.raises(graphdb.BindError, match="subclasses=True"):
            db.query(f"MATCH (a:{name}) RETURN a")
    with pytest.raises(graphdb.BindError, match="did you mean 'Cat'"):
        db.query("MATCH (a:Cta) RETURN a")


@pytest.mark.parametrize(
    "asked",
    [
        "SELECT ?x ?n WHERE { ?x ex:chases ?y . ?y ex:name ?n }",
        "SELECT DISTINCT ?y { ?x a ex:Cat ; ex:chases ?y . ?y ex:weight ?w FILTER(?w < 1 && ?w != 0.2) . }",
        "SELECT ?w WHERE { ex:tom ex:weight ?w ; ex:chases <http://example.org/jerry> , ?z } LIMIT 7",
        "ASK { ex:tom ex:chases ex:jerry }",
        "ASK { ex:tom ex:weight 5 }",
        "SELECT ?x ?w { ?x ex:weight ?w FILTER(!(?w > 1) || ?x = ex:jerry) FILTER(?w >= 0.1) }",
    ],
)
def test_questions_of_sparql_are_translated(db: graphdb.Database, asked: str) -> None:
    with pytest.raises(graphdb.GraphDBError, match="this is SPARQL") as told:
        db.query(asked)
    ours = str(told.value).partition("the same question here: ")[2]
    expected = answered(asked)
    if isinstance(expected, bool):
        assert db.query(ours).scalar() is expected
    else:
        assert sorted([str(getattr(value, "iri", value)) for value in row] for row in db.query(ours)) == expected


def answered(asked: str) -> bool | list[list[str]]:
    """The answer of a SPARQL engine; its objects do not outlive this: they may be dropped by their own thread alone."""
    store = pyoxigraph.Store()
    store.load(ZOO.encode(), format=pyoxigraph.RdfFormat.TURTLE)
    answer: Any = store.query("PREFIX ex: <http://example.org/>\n" + asked)
    return bool(answer) if asked.startswith("ASK") else sorted([value.value for value in row] for row in answer)


@pytest.mark.parametrize(
    "pattern",
    [
        "?x ex:chases+ ?y",
        "?x ^ex:chases ?y",
        "?x !ex:chases ?y",
        "?x ex:a ?y OPTIONAL { ?y ex:name ?n }",
        "?x ex:a [ ex:b 'b'@en ]",
        "?x ex:a ?y FILTER(?y + 1 > 2)",
        "?x ?p " * 700,
    ],
)
def test_other_questions_of_sparql_are_named(db: graphdb.Database, pattern: str) -> None:
    with pytest.raises(graphdb.GraphDBError, match="this is SPARQL; here"):
        db.query(f"SELECT ?x WHERE {{ {pattern} }}")


def test_questions_of_sparql_without_rdflib(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdflib.plugins.sparql.parser", None)
    with pytest.raises(graphdb.GraphDBError, match="this is SPARQL; here"):
        db.query("SELECT ?x WHERE { ?x ex:chases ?y }")


NAMES = [f"<http://example.org/{name}>" for name in "akbgcdhm"]
A, K, B, G, C, D, H, M = NAMES
QUADS = "".join(
    f"{' '.join(terms)} .\n"
    for terms in [(A, K, B, G), (A, K, B, H), (A, K, C), (A, K, D, G), (A, K, D), (B, K, B, H), (B, M, B, G)]
)


def test_edges_are_asked_for_their_named_graphs() -> None:
    store = pyoxigraph.Store()
    store.load(QUADS.encode(), format=pyoxigraph.RdfFormat.N_QUADS)
    ex = "http://example.org/"
    with graphdb.connect(threads=1) as db:
        db.load(io.BytesIO(QUADS.encode()), format="nquads")
        triple = "iri(a), iri(e), iri(b)"
        for graph in ("g", "h", "none"):
            answer: Any = store.query(f"SELECT ?s ?p ?o WHERE {{ GRAPH <{ex}{graph}> {{ ?s ?p ?o }} }}")
            expected = sorted(tuple(term.value for term in row) for row in answer)
            for condition in ("$g IN graphs(e)", "any(each IN graphs(e) WHERE each = $g)"):
                found = db.query(f"MATCH (a)-[e]->(b) WHERE {condition} RETURN {triple}", g=ex + graph)
                assert sorted(found) == expected
        [[lists]] = db.query(
            "MATCH p = (a)-[:k]->(b) WHERE b = iri($d) RETURN [e IN relationships(p) | graphs(e)]", d=f"{ex}d"
        )
        assert lists == [[f"{ex}g"]]
        assert db.query("OPTIONAL MATCH (a)-[e:k]->(b) WHERE 1 = 2 RETURN graphs(e)").scalar() is None
        with pytest.raises(graphdb.GraphDBError, match="graphs needs an edge"):
            db.query("MATCH (a) RETURN graphs(a)")
        db.query("MATCH (a)-[e:m]->(b) DELETE e")
        assert db.query("MATCH (a)-[e]->(b) WHERE $g IN graphs(e) RETURN count(*)", g=f"{ex}g").scalar() == 2


def test_a_prefixed_name_in_back_quotes_is_no_prefixed_name() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("PREFIX ex: <http://e.org/>; INSERT DATA { ex:a ex:age 3 }")
        with pytest.raises(graphdb.BindError) as raised:
            db.query("MATCH (x) RETURN x.`ex:age`")
        assert raised.value.hint == "without back-quotes: ex:age"
        assert db.query("MATCH (x) RETURN x.ex:age").scalar() == 3
