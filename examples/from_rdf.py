"""Twelve tasks of somebody who knows RDF and SPARQL, on a small vocabulary of people.

Each answer is compared with rdflib's, to the same question in SPARQL.
Run it with ``python examples/from_rdf.py``; it takes seconds, needs rdflib, and leaves nothing behind.
"""

import tempfile
from pathlib import Path

import rdflib

import graphdb

DATA = """
@prefix ex: <http://example.org/> . @prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:Student rdfs:subClassOf foaf:Person . ex:Teacher rdfs:subClassOf foaf:Person .
ex:tom a ex:Student ; foaf:name "Tom"@en ; foaf:age 23 ; foaf:knows ex:ann, ex:bob ; ex:born "2001-03-04"^^xsd:date .
ex:ann a ex:Teacher ; foaf:name "Ann" ; foaf:age 41 ; foaf:knows ex:tom ; rdfs:label "Anna"@de, "Ann"@en .
ex:bob a foaf:Person ; foaf:name "Bob" ; foaf:knows ex:ann ; ex:address [ ex:city "Ulm" ] .
"""
GRAPHS = "@prefix ex: <http://example.org/> . ex:g1 { ex:tom ex:likes ex:tea } ex:g2 { ex:tom ex:likes ex:coffee }"
EX = "http://example.org/"


def main() -> None:
    """Do them one after the other."""
    theirs = rdflib.Graph().parse(data=DATA, format="turtle")

    def sparql(text: str) -> list[tuple[object, ...]]:
        return sorted(tuple(None if term is None else term.toPython() for term in row) for row in theirs.query(text))

    with tempfile.TemporaryDirectory() as folder, graphdb.connect(Path(folder) / "people.duckdb") as db:
        # 1. Load a file; its prefixes are known from then on.
        (Path(folder) / "people.ttl").write_text(DATA)
        assert db.load(Path(folder) / "people.ttl").triples == len(theirs)
        assert db.prefixes()["foaf"] == "http://xmlns.com/foaf/0.1/"

        # 2. One resource by its prefixed name.
        ours = db.query("MATCH (t ex:tom)-[:foaf:knows]->(x) RETURN iri(x) ORDER BY iri(x)").fetchall()
        assert ours == [(str(x),) for (x,) in sparql("SELECT ?x { ex:tom foaf:knows ?x }")]

        # 3. A basic graph pattern with a filter.
        ours = db.query("MATCH (a)-[:knows]->(b) WHERE b.age > 30 RETURN a.name, b.name ORDER BY a.name").fetchall()
        text = "SELECT ?m ?n { ?a foaf:knows ?b ; foaf:name ?m . ?b foaf:age ?y ; foaf:name ?n FILTER(?y > 30) }"
        assert ours == sparql(text)

        # 4. OPTIONAL.
        ours = db.query("MATCH (a)-[:knows]->() RETURN DISTINCT a.name, a.age").fetchall()
        assert set(ours) == set(
            sparql("SELECT DISTINCT ?n ?y { ?a foaf:knows [] ; foaf:name ?n OPTIONAL { ?a foaf:age ?y } }")
        )

        # 5. Property paths.
        ours = db.query(
            "MATCH ALL SHORTEST (b ex:bob)-[:knows]->+(x) RETURN DISTINCT x.name ORDER BY x.name"
        ).fetchall()
        assert ours == sparql("SELECT DISTINCT ?n { ex:bob foaf:knows+ ?x . ?x foaf:name ?n }")

        # 6. Languages.
        [(texts, languages)] = db.query("MATCH (a ex:ann) RETURN a.label, lang(a.label)")
        labels = theirs.objects(rdflib.URIRef(EX + "ann"), rdflib.RDFS.label)
        assert sorted(zip(texts, languages, strict=True)) == sorted((str(each), each.language) for each in labels)

        # 7. Aggregates.
        ours = db.query("MATCH (a)-[:knows]->(b) RETURN b.name AS n, count(*) AS c ORDER BY n").fetchall()
        assert ours == sparql("SELECT ?n (count(*) AS ?c) { ?a foaf:knows ?b . ?b foaf:name ?n } GROUP BY ?n")

        # 8. Everything about a resource.
        about = db.query("DESCRIBE ex:bob").fetchall()
        bob = rdflib.URIRef(EX + "bob")
        assert len(about) == len([*theirs.triples((bob, None, None))]) + len([*theirs.triples((None, None, bob))])

        # 9. SPARQL typed by habit is an error that has the same question in this language.
        try:
            db.query("SELECT ?n WHERE { ?x foaf:knows ?y . ?y foaf:name ?n }")
        except graphdb.GraphDBError as error:
            hint = error.hint or ""
        ours = db.query(hint[hint.index("MATCH") :]).fetchall()
        assert sorted(ours) == sparql("SELECT ?n WHERE { ?x foaf:knows ?y . ?y foaf:name ?n }")

        # 10. INSERT DATA and DELETE DATA, and rdflib's terms.
        db.query('INSERT DATA { ex:eve foaf:knows ex:tom ; foaf:name "Eve" }')
        db.query("DELETE DATA { ex:eve foaf:knows ex:tom }")
        eve = rdflib.URIRef(EX + "eve")
        db.add([(eve, rdflib.RDF.type, rdflib.FOAF.Person), (eve, rdflib.FOAF.age, rdflib.Literal(7))])
        assert db.query("MATCH (e ex:eve:Person) RETURN e.name, e.age").fetchall() == [("Eve", 7)]

        # 11. Named graphs.
        (Path(folder) / "likes.trig").write_text(GRAPHS)
        db.load(Path(folder) / "likes.trig")
        ours = db.query("MATCH (t ex:tom)-[e:likes]->(x) WHERE $g IN graphs(e) RETURN iri(x)", g=EX + "g1").fetchall()
        assert ours == [(EX + "tea",)]

        # 12. Out again, and what is below a class.
        db.export(Path(folder) / "out.nt", graphs="default")
        again = rdflib.Graph().parse(Path(folder) / "out.nt")
        assert len(again) == len(theirs) + 3
        db.close()
        with graphdb.connect(Path(folder) / "people.duckdb", subclasses=True) as wider:
            assert wider.query("MATCH (p:foaf:Person) RETURN count(p)").scalar() == 4
    print("12 tasks done")


if __name__ == "__main__":
    main()
