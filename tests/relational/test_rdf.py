"""What RDF brings to the language: terms with languages and datatypes, predicates that vary, classes below classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import graphdb
from graphdb.pattern.hierarchy import Hierarchy
from tests.fuzz import scaled

DATA = """
@prefix ex: <http://ex.org/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:ada a ex:Mathematician ; foaf:name "Ada", "Augusta"@en ; foaf:knows ex:bob ; ex:likes ex:bob ; ex:odd "x"^^ex:mine .
ex:bob a ex:Person ; foaf:name "Bob" ; foaf:knows ex:cy ; ex:score 1, 2, 3 ; ex:mixed ex:cy, "text"@de .
ex:cy a ex:Robot ; foaf:name "Cy"@fr ; ex:likes ex:ada ; ex:mixed ex:ada .
foaf:knows a ex:Relation ; rdfs:label "knows (a person)" .
ex:Mathematician rdfs:subClassOf ex:Person .
ex:Person rdfs:subClassOf ex:Agent .
ex:Agent rdfs:subClassOf ex:Person, [ rdfs:subClassOf ex:Thing ] .
ex:Robot rdfs:subClassOf ex:Agent .
"""

EX, RDF = "http://ex.org/", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD = "http://www.w3.org/2001/XMLSchema#"

WAYS = ["", "UNWIND [1] AS one ", "UNWIND [{one: 1}] AS one "]
"""What stands before a query: nothing, or rows that it starts from, numbers or values that SQL does not hold."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("rdf") / "data.ttl"
    found.write_text(DATA, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def db(path: Path) -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as opened:
        opened.load(path)
        yield opened


@pytest.fixture(scope="module")
def inferring(path: Path) -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1, subclasses=True) as opened:
        opened.load(path)
        yield opened


def _bag(db: graphdb.Database, text: str) -> Counter[str]:
    return Counter(repr(row) for row in db.query(text).fetchall())


def _expected(*rows: object) -> Counter[str]:
    return Counter(repr(row) for row in rows)


# --- terms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_languages_and_datatypes(db: graphdb.Database, way: str) -> None:
    found = _bag(db, way + "MATCH (s)-[:foaf:name]->(n) RETURN n, lang(n), datatype(n)")
    text, tagged = XSD + "string", RDF + "langString"
    assert found == _expected(("Ada", "", text), ("Augusta", "en", tagged), ("Bob", "", text), ("Cy", "fr", tagged))
    assert _bag(db, way + "MATCH (s {odd: 'x'}) RETURN datatype(s.odd)") == _expected((EX + "mine",))
    assert _bag(db, way + "MATCH (s) WHERE lang(s.foaf:name) = 'fr' RETURN iri(s)") == _expected((EX + "cy",))
    found = _bag(db, way + "MATCH ()-[:mixed]->(x) RETURN lang(x), datatype(x), iri(x), labels(x)")
    assert found == _expected(
        ("de", tagged, None, []), (None, None, EX + "cy", ["ex:Robot"]), (None, None, EX + "ada", ["ex:Mathematician"])
    )


@pytest.mark.parametrize("way", WAYS)
def test_literals_are_values(db: graphdb.Database, way: str) -> None:
    assert _bag(db, way + "MATCH (s)-[:score]->(x) WHERE x > 1 RETURN x * 10") == _expected((20,), (30,))
    assert db.query(way + "MATCH (s)-[:score]->(x) RETURN sum(x)").scalar() == 6
    assert _bag(db, way + "MATCH (s)-[:name]->(x) WHERE x CONTAINS 'u' RETURN toUpper(x)") == _expected(("AUGUSTA",))


@pytest.mark.parametrize("way", WAYS)
def test_a_property_of_several_values(db: graphdb.Database, way: str) -> None:
    assert db.query(way + "MATCH (s {score: 2}) RETURN s.score").fetchall() == [([1, 2, 3],)]
    assert db.query(way + "MATCH (s) WHERE s.score > 2 AND s.score < 2 RETURN count(*)").scalar() == 1
    assert db.query(way + "MATCH (s) WHERE NOT s.score > 2 RETURN count(*)").scalar() == 0
    with pytest.raises(graphdb.GraphDBError, match="several values"):
        db.query(way + "MATCH (s) RETURN sum(s.score)").fetchall()


@pytest.mark.parametrize("way", WAYS)
def test_iris(db: graphdb.Database, way: str) -> None:
    assert db.query(way + f"RETURN iri('{EX}ada') = <{EX}ada> AS same").scalar() is True
    assert db.query(way + f"RETURN iri('{EX}nobody') AS x").scalar() is None
    assert db.query(way + f"RETURN <{EX}bob>.score AS x").scalar() == [1, 2, 3]


def test_a_facet_of_what_has_none_is_refused(db: graphdb.Database) -> None:
    for text in ("MATCH (s)-[:knows]->() RETURN lang(s)", "UNWIND [1] AS x RETURN datatype(x)"):
        with pytest.raises(graphdb.TypeMismatchError, match="a property or a vertex that is a literal"):
            db.query(text)


# --- predicates that vary --------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
def test_predicates_are_vertices(db: graphdb.Database, way: str) -> None:
    found = _bag(db, way + "MATCH (s:Person)-[p]->(o) RETURN iri(p), predicate(p).rdfs:label, labels(predicate(p))")
    assert found == _expected(
        ("http://xmlns.com/foaf/0.1/knows", "knows (a person)", ["ex:Relation"]), (EX + "mixed", None, [])
    )
    found = _bag(db, way + "MATCH (q:Relation) MATCH (s)-[p]->(o) WHERE predicate(p) = q RETURN iri(s)")
    assert found == _expected((EX + "ada",), (EX + "bob",))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("type(p) STARTS WITH 'ex:'", 4),
        ("type(p) = 'foaf:knows'", 2),
        ("iri(p) CONTAINS 'foaf' OR type(p) = 'ex:likes'", 4),
        ("predicate(p).rdfs:label CONTAINS 'person'", 2),
        ("predicate(p):Relation", 2),
        ("p:knows|likes AND NOT p:likes", 2),
        ("type(p) = 'nothing'", 0),
    ],
)
def test_conditions_on_a_predicate(db: graphdb.Database, way: str, condition: str, count: int) -> None:
    """They choose among edge labels before the match; what an unnamed edge reaches stays a resource (ex:mixed)."""
    text = f"{way}MATCH (s)-[p]->(o) WHERE ({condition}) AND s:Person|Robot|Mathematician RETURN count(*)"
    assert db.query(text).scalar() == count
    unnamed = f"{way}MATCH (s)-[p]->(o) WHERE type(p) = 'ex:mixed' RETURN count(o)"
    assert db.query(unnamed).scalar() == 2


def test_the_plan_knows_the_predicates_that_are_left(db: graphdb.Database) -> None:
    plan = db.explain("MATCH (s)-[p]->(o) WHERE type(p) ENDS WITH ':knows' RETURN s, o")
    assert "-[:foaf:knows]->" in plan
    assert "ex:likes" not in plan


@pytest.mark.parametrize("way", WAYS)
def test_predicates_are_joined(db: graphdb.Database, way: str) -> None:
    text = way + "MATCH (a)-[p]->(b), (b)-[q]->(c) WHERE type(p) = type(q) AND NOT p:subClassOf RETURN iri(a), type(p)"
    assert _bag(db, text) == _expected((EX + "ada", "foaf:knows"), (EX + "bob", "ex:mixed"), (EX + "cy", "ex:likes"))


# --- classes below classes -------------------------------------------------------------------------------------


def _iris(db: graphdb.Database, text: str) -> set[str]:
    return {iri.removeprefix(EX) for (iri,) in db.query(text)}


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (x:{}) RETURN iri(x)",
        "MATCH (x) WHERE x:{} RETURN iri(x)",
        "MATCH (x) WHERE x:{} OR x.nothing RETURN iri(x)".replace(" OR x.nothing", " OR false"),
        "UNWIND [1] AS one MATCH (x) WHERE x:{} RETURN iri(x)",
        "MATCH (y)-[:likes|knows*0..1]->(x:{}) RETURN iri(x)",
        "MATCH (x:{}) OPTIONAL MATCH (x)-[:knows]->(y) RETURN iri(x)",
        "MATCH (x) WHERE EXISTS {{ (x:{}) }} RETURN iri(x)",
    ],
)
def test_labels_with_those_below(inferring: graphdb.Database, db: graphdb.Database, text: str) -> None:
    everyone = {"ada", "bob", "cy"}
    asked = {
        "Mathematician": {"ada"},
        "Robot": {"cy"},
        "Person": everyone,  # by a cycle: an agent is a person
        "Agent": everyone,
        "Thing": everyone,  # through a class without a name
        "Agent&!Robot": {"ada", "bob"},
        "Mathematician|Robot": {"ada", "cy"},
    }
    for label, expected in asked.items():
        assert _iris(inferring, text.format(label)) == expected, label
    assert _iris(db, text.format("Person")) == {"bob"}
    with pytest.raises(graphdb.BindError, match="unknown label 'Agent'"):
        db.query(text.format("Agent"))


def test_what_is_asserted_stays_what_it_is(inferring: graphdb.Database) -> None:
    assert inferring.query(f"MATCH (x <{EX}ada>) RETURN labels(x)").scalar() == ["ex:Mathematician"]
    assert inferring.query(f"MATCH (<{EX}ada>)-[:rdf:type]->(c) RETURN count(c)").scalar() == 1


def test_explain_says_what_is_below(inferring: graphdb.Database) -> None:
    assert "Person (and below: ex:Agent, ex:Mathematician, ex:Robot)" in inferring.explain(
        "MATCH (x:Person)-[:knows]->(y) RETURN x"
    )


@settings(max_examples=scaled(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25), start=st.integers(0, 9))
def test_all_that_is_under_a_class(edges: list[tuple[int, int]], start: int) -> None:
    """Against a search with a set, cycles and all."""
    below, above = (np.array([edge[side] for edge in edges], np.int64) for side in (0, 1))
    known, waiting = {start}, [start]
    while waiting:
        here = waiting.pop()
        fresh = {low for low, high in edges if high == here} - known
        known |= fresh
        waiting += fresh
    found = Hierarchy(below, above, {}).under(start)
    assert found[0] == start
    assert sorted(found) == sorted(known)


def test_ontology_of_universities(tmp_path: Path) -> None:
    """The classes of LUBM: what is asked for is the union of what is below, as SPARQL would have it with a path."""
    file = tmp_path / "u.ttl"
    file.write_text(
        "@prefix u: <http://u.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
        "u:FullProfessor rdfs:subClassOf u:Professor . u:AssistantProfessor rdfs:subClassOf u:Professor .\n"
        "u:Professor rdfs:subClassOf u:Faculty . u:Lecturer rdfs:subClassOf u:Faculty .\n"
        "u:Faculty rdfs:subClassOf u:Employee . u:Employee rdfs:subClassOf u:Person .\n"
        "u:Student rdfs:subClassOf u:Person . u:GraduateStudent rdfs:subClassOf u:Student .\n"
        + "".join(
            f"u:x{i} a u:{kind} ; u:advises u:x{(i * 7 + 3) % 40} .\n"
            for i, kind in enumerate(
                ["FullProfessor", "AssistantProfessor", "Lecturer", "GraduateStudent", "Student"] * 8
            )
        ),
        encoding="utf-8",
    )
    with graphdb.connect(threads=1, subclasses=True) as db:
        db.load(file)
        for label in ("Professor", "Faculty", "Employee", "Person", "Student", "Lecturer"):
            by_path = f"MATCH (x)-[:rdf:type]->(k) MATCH (k)-[:subClassOf*0..]->(c <http://u.org/{label}>) "
            for pattern in ("(x:{0})", "(x:{0})-[:advises]->(y:Student)"):
                count = db.query(f"MATCH {pattern.format(label)} RETURN count(DISTINCT x)").scalar()
                more = "" if pattern == "(x:{0})" else "MATCH (x)-[:advises]->(y:Student) "
                assert count == db.query(by_path + more + "RETURN count(DISTINCT x)").scalar()
            assert db.query(f"MATCH (x:{label}) RETURN count(*)").scalar()


def test_what_is_returned_can_be_computed_with_in_order_by() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("CREATE (:P {name: 'b', n: 1}), (:P {name: 'a', n: 2}), (:P {name: 'a', n: 2})")
        for way in WAYS:
            text = way + "MATCH (v) RETURN DISTINCT v.name AS x, v.n AS y ORDER BY v.n * 2 - y DESC, v.name + 'x'"
            assert db.query(text).fetchall() == [("a", 2), ("b", 1)]


def test_a_path_is_known_in_a_subquery_of_its_own_clause() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("CREATE (:P {n: 1})-[:K]->(:P {n: 2})")
        text = (
            "MATCH p = (a)-[:K]->(b) WHERE EXISTS { MATCH (a)-[:K]->(c) WHERE length(p) = c.n - a.n } RETURN count(*)"
        )
        assert db.query(text).scalar() == 1


def test_properties_of_edges_become_a_table() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("CREATE (:P {n: 1})-[:K {since: 5}]->(:P {n: 2})")
        db.query("CREATE TABLE since AS MATCH (a)-[k:K]->(b) RETURN a.n AS a, k.since AS since")
        assert db.sql("SELECT * FROM since").fetchall() == [(1, 5)]
        assert db.sql("SELECT * FROM cypher($$ UNWIND [1, 2] AS x RETURN x $$) WHERE x > 1").fetchall() == [(2,)]


@pytest.mark.parametrize(
    "text",
    [
        "RETURN range(1, 9223372036854775807) AS x",
        "RETURN reduce(s = 'x', i IN range(0, 40) | s + s) AS x",
        "RETURN reduce(s = [1], i IN range(0, 40) | s + s) AS x",
        "RETURN reduce(s = 'xx', i IN range(0, 40) | replace(s, 'x', 'xx')) AS x",
    ],
)
def test_what_grows_beyond_all_measure_is_refused(text: str) -> None:
    with graphdb.connect(threads=1) as db, pytest.raises(graphdb.MemoryLimitError, match="too long"):
        db.query(text).fetchall()


@pytest.mark.parametrize("way", WAYS)
def test_every_value_that_can_be_a_parameter_comes_back(way: str) -> None:
    zone = timezone(timedelta(hours=1))
    values: list[object] = [1, 1.5, "a", True, None, Decimal("1.5"), date(2020, 1, 1), time(10), time(10, tzinfo=zone)]
    values += [datetime(2020, 1, 1, tzinfo=zone), [1, 2], {"a": [1, {"b": None}]}]
    with graphdb.connect(threads=1) as db:
        for value in values:
            assert db.query(way + "RETURN $x AS x", x=value).scalar() == value
        assert str(db.query(way + "RETURN $x AS x", x=timedelta(days=1, seconds=2)).scalar()) == "P1DT2S"


def test_lists_among_matched_literals() -> None:
    """Literals that a pattern matches, lists among them, which SQL has no type for: returned, compared, in paths."""
    with graphdb.connect() as db:
        db.query("CREATE (:P {k: 1, nick: ['x', 'y']}), (:P {k: 2, nick: 'B'})-[:R]->(:P {k: 3})")
        assert db.query("MATCH (a)-[:nick]->(b) RETURN a.k, b ORDER BY a.k").fetchall() == [(1, ["x", "y"]), (2, "B")]
        assert db.query("MATCH (a)-[e:nick]->(b) WHERE b = 'B' RETURN b").fetchall() == [("B",)]
        assert db.query("MATCH (a)-[e:nick]->(b) WHERE b <> 'B' RETURN b").fetchall() == [(["x", "y"],)]
        ends = db.query("MATCH p = (a)-[:nick]->() RETURN nodes(p)[1] AS b ORDER BY a.k").fetchall()
        assert ends == [(["x", "y"],), ("B",)]
