"""Which vertices, pairs and numbers of matches a MATCH finds in a graph small enough to answer by hand.

Each case states a query and the rows that the README and openCypher promise; none was taken from what the code printed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import graphdb
from tests.people import TYPE, names, opened


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with opened(tmp_path_factory.mktemp("queries")) as database:
        yield database


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ("MATCH (a)", "Acme Ada Blank Bob Cy"),
        ("MATCH (a:Person)", "Ada Bob Cy"),
        ("MATCH (a:`Person`)", "Ada Bob Cy"),
        ("MATCH (a:<http://ex.org/Person>)", "Ada Bob Cy"),
        ("MATCH (a:<http://ex.org/Nobody>)", ""),
        ("MATCH (a:!<http://ex.org/Nobody>)", "Acme Ada Blank Bob Cy"),
        ("MATCH (a:Person:Woman)", "Ada"),
        ("MATCH (a:Person&!Robot)", "Ada Bob"),
        ("MATCH (a:Firm|Robot)", "Acme Cy"),
        ("MATCH (a:(Woman|Robot)&Person)", "Ada Cy"),
        ("MATCH (a:%)", "Acme Ada Bob Cy"),
        ("MATCH (a:!%)", "Blank"),
        ("MATCH (a:!Person)", "Acme Blank"),
        ("MATCH (a) WHERE a:Person AND NOT a:Robot", "Ada Bob"),
        ("MATCH (a) WHERE NOT a:Person", "Acme Blank"),
        ("MATCH (a) WHERE a:!Person", "Acme Blank"),
        ("MATCH (a <http://ex.org/ada>)", "Ada"),
        ("MATCH (a <http://ex.org/nobody>)", ""),
        ("MATCH (a) WHERE a = <http://ex.org/ada>", "Ada"),
        ("MATCH (a) WHERE a <> <http://ex.org/ada>", "Acme Blank Bob Cy"),
        ("MATCH (a) WHERE NOT a = <http://ex.org/ada>", "Acme Blank Bob Cy"),
        ("MATCH (a) WHERE a <> <http://ex.org/nobody>", "Acme Ada Blank Bob Cy"),
        ("MATCH (a) WHERE a IN [<http://ex.org/ada>, <http://ex.org/cy>]", "Ada Cy"),
        ("MATCH (a) WHERE iri(a) = 'http://ex.org/ada'", "Ada"),
        ("MATCH (a) WHERE iri(a) <> 'http://ex.org/ada'", "Acme Blank Bob Cy"),
        ("MATCH (a) WHERE iri(a) STARTS WITH '_:'", "Blank"),
        ("MATCH (a) WHERE a = 'Ada'", ""),
        ("MATCH (a {name: 'Ada'})", "Ada"),
        ("MATCH (a {name: 'Ada', age: 36})", "Ada"),
        ("MATCH (a {name: 'Ada', age: 37})", ""),
        ("MATCH (a {nick: 'Countess'})", "Ada"),
        ("MATCH (a {name: null})", ""),
        ("MATCH (a:Person WHERE a.age > 38)", "Bob"),
        ("MATCH (a) WHERE a.age IS NULL", "Acme Blank Cy"),
        ("MATCH (a) WHERE a.age IS NOT NULL", "Ada Bob"),
        ("MATCH (a) WHERE NOT a.age > 38", "Ada"),
        ("MATCH (a) WHERE a.age > 38 OR a.age IS NULL", "Acme Blank Bob Cy"),
        ("MATCH (a) WHERE a.age > 38 XOR a.ok", "Ada Bob"),
        ("MATCH (a) WHERE a.ok", "Ada"),
        ("MATCH (a) WHERE a.mixed", "Acme"),
        ("MATCH (a) WHERE 36 <= a.age < 40", "Ada"),
        ("MATCH (a) WHERE coalesce(a.age, 0) = 0", "Acme Blank Cy"),
        ("MATCH (a) WHERE true", "Acme Ada Blank Bob Cy"),
        ("MATCH (a) WHERE null", ""),
        # A property of several values holds if one of them does.
        ("MATCH (a) WHERE a.nick = 'A'", "Ada"),
        ("MATCH (a) WHERE a.nick <> 'A'", "Ada Bob"),
        ("MATCH (a) WHERE NOT a.nick = 'A'", "Bob"),
        ("MATCH (a) WHERE a.nick IN ['B', 'C']", "Bob"),
        ("MATCH (a) WHERE 'A' IN a.nick", "Ada"),
        ("MATCH (a) WHERE a.nick STARTS WITH 'Count'", "Ada"),
        ("MATCH (a) WHERE a.nick =~ '[AB]'", "Ada Bob"),
        ("MATCH (a) WHERE a.several = 'x'", "Ada"),
        ("MATCH (a) WHERE a.several < 2", "Ada"),
        ("MATCH (a) WHERE a.several > 1", ""),
        # Values of several types compare with their own kind.
        ("MATCH (a) WHERE a.mixed = 1", "Ada"),
        ("MATCH (a) WHERE a.mixed >= 1", "Ada Cy"),
        ("MATCH (a) WHERE a.mixed = 'one'", "Bob"),
        ("MATCH (a) WHERE a.mixed <> 1", "Acme Bob Cy"),
        ("MATCH (a) WHERE a.mixed < 'z'", "Bob"),
        ("MATCH (a) WHERE a.mixed = true", "Acme"),
        ("MATCH (a) WHERE a.mixed IN [1, 'one']", "Ada Bob"),
        ("MATCH (a) WHERE a.name = 1", ""),
        ("MATCH (a) WHERE a.name < 1", ""),
        ("MATCH (a) WHERE a.price = 0.2", "Bob"),
        ("MATCH (a) WHERE a.weight = a.weight", "Ada"),
        ("MATCH (a) WHERE a.born < date('1900-01-01')", "Ada"),
        ("MATCH (a) WHERE a.born < date(a.seen)", "Ada Bob"),
        ("MATCH (a) WHERE a.born < a.seen OR a.born = a.seen OR a.born >= a.seen", ""),
        ("MATCH (a) WHERE a.zoned = datetime('2020-01-01T10:00:00')", "Ada"),
        ("MATCH (a) WHERE a.seen > datetime('2020-03-01T00:00:00')", "Bob"),
        ("MATCH (a) WHERE a.zoned < datetime('2020-01-01T10:00:00Z')", "Bob"),
        ("MATCH (a) WHERE a.clock < localtime('10:00:00')", "Bob"),
        ("MATCH (a) WHERE lang(a.motto) = 'fr'", "Ada"),
        ("MATCH (a) WHERE a.motto = 'hi'", "Bob"),
        ("MATCH (a) WHERE datatype(a.odd) = 'http://ex.org/myType'", "Ada"),
        # Patterns as conditions.
        ("MATCH (a) WHERE (a)-[:likes]->()", "Ada Bob"),
        ("MATCH (a) WHERE NOT (a)-[:likes]->()", "Acme Blank Cy"),
        ("MATCH (a) WHERE NOT NOT (a)-[:likes]->()", "Ada Bob"),
        ("MATCH (a) WHERE (a)-[:likes]->() OR a.name = 'Cy'", "Ada Bob Cy"),
        ("MATCH (a) WHERE (a)-[:likes]->() AND (a)-[:knows]->(a)", "Ada"),
        ("MATCH (a) WHERE (a)<-[:knows]-(:Robot)", "Ada"),
        ("MATCH (a) WHERE (a)-[:knows]-({name: 'Blank'})", "Cy"),
        ("MATCH (a) WHERE (a)-[:worksAt]->(:Firm {name: 'Acme'})", "Ada Bob"),
        ("MATCH (a) WHERE (a)-[:knows]->()-[:knows]->(:Woman)", "Bob Blank Cy"),
        ("MATCH (a) WHERE (<http://ex.org/ada>)-[:likes]->(a)", "Bob"),
        ("MATCH (a) WHERE ()-[:likes]->()", "Acme Ada Blank Bob Cy"),
        ("MATCH (a) WHERE NOT ()-[:likes]->(:Robot)", "Acme Ada Blank Bob Cy"),
        ("MATCH (a) WHERE (a)-[:name]->()", "Acme Ada Blank Bob Cy"),
    ],
)
def test_vertices_that_match(db: graphdb.Database, match: str, found: str) -> None:
    assert names(db, match) == sorted(found.split())


@pytest.mark.parametrize(
    ("match", "rows"),
    [
        ("MATCH (a)-[:knows]->(a)", "Ada-"),
        ("MATCH (a)-[:knows]-(a)", "Ada-"),
        ("MATCH (a {name: 'Ada'})-[:likes]-(b)", "Ada-Bob Ada-Bob"),
        ("MATCH (a {name: 'Ada'})-[:knows]-(b)", "Ada-Ada Ada-Bob Ada-Cy"),
        ("MATCH (a)-[:worksAt|both]->(b)", "Ada-Acme Ada-Acme Bob-Acme Bob-"),
        ("MATCH (a)-[:both]->(b)", "Ada-Acme Bob-"),
        ("MATCH (a)-[:likes]->(b), (a)-[:knows]->(b)", "Ada-Bob"),
        ("MATCH (a)-[:knows]->(b {age: a.age + 4})", "Ada-Bob"),
        ("MATCH (a)-[:knows]->(b WHERE b.age > a.age)", "Ada-Bob"),
        ("MATCH (a)-[e WHERE type(e) ENDS WITH 'likes']->(b)", "Ada-Bob Bob-Ada"),
        ("MATCH (a), (b) WHERE (a)-[:likes]->(b)", "Ada-Bob Bob-Ada"),
        ("MATCH (a), (b) WHERE a.age > 0 AND b.age > 0 AND NOT (a)-[:likes]->(b)", "Ada-Ada Bob-Bob"),
        ("MATCH (a), (b) WHERE (a)-[:likes]->(b) OR (b)-[:worksAt]->(a)", "Ada-Bob Bob-Ada Acme-Ada Acme-Bob"),
        ("MATCH (a)-[:both]->(b) WHERE b = 'text'", "Bob-"),
        ("MATCH (a)-[:both]->(b) WHERE b:Firm", "Ada-Acme"),
        ("MATCH (a)-[:knows]->(b) WHERE a <> b AND a.age = 36", "Ada-Bob"),
    ],
)
def test_pairs_that_match(db: graphdb.Database, match: str, rows: str) -> None:
    found = [
        f"{a}-{b or ''}" for a, b in db.query(f"{match} RETURN a.name, {'b.name' if '(b' in match else 'null AS b'}")
    ]
    assert sorted(found) == sorted(rows.split())


@pytest.mark.parametrize(
    ("match", "count"),
    [
        ("MATCH ()", 5),
        ("MATCH ()-[]->()", 10),
        ("MATCH ()-->()", 10),
        ("MATCH ()--()", 19),  # each edge both ways, the loop once
        ("MATCH ()-[:%]->()", 10),
        ("MATCH ()-[:!knows]->()", 5),  # an unnamed label never reaches literals
        ("MATCH ()-[:rdf:type]->()", 6),
        ("MATCH (a)-[:rdf:type]->(<http://ex.org/Person>)", 3),
        ("MATCH (a)-[:<http://ex.org/none>]->(b)", 0),
        ("MATCH (a)-[:nick]->(n)", 3),
        ("MATCH (a)-[:nick]-(n)", 6),
        ("MATCH (a)-[:mixed]->(n) WHERE n = 1", 1),
        ("MATCH (a)-[:mixed]->(n) WHERE n > 1.2", 1),
        ("MATCH (a)-[:knows]->(b)-[:knows]->(c)", 6),
        ("MATCH REPEATABLE ELEMENTS (a)-[:knows]->(b)-[:knows]->(c)", 7),
        ("MATCH DIFFERENT NODES (a)-[:knows]->(b)-[:knows]->(c)", 4),
        # Each mode holds within its own MATCH.
        ("MATCH (a)-[:knows]->(b) MATCH (b)-[:knows]->(c)", 7),
        ("MATCH (a)-[:knows]->(b) MATCH (a)-[:knows]->(b)", 5),
        ("MATCH (a)-[:knows]->(b), (a)-[:knows]->(b)", 0),
        ("MATCH DIFFERENT NODES (a)-[:knows]->(b) MATCH (b)-[:knows]->(c)", 5),
        ("MATCH DIFFERENT NODES (a), (b) MATCH (c)", 100),
        ("MATCH (a)-[e]->(b), (c)-[f]->(d) WHERE e = f", 0),
        ("MATCH REPEATABLE ELEMENTS (a)-[e]->(b), (c)-[f]->(d) WHERE e = f", 10),
        ("MATCH (a) WHERE a <> 'x'", 5),
        ("MATCH (a), (b) WHERE a < b", 0),
    ],
)
def test_counts(db: graphdb.Database, match: str, count: int) -> None:
    assert db.query(f"{match} RETURN count(*)").scalar() == count
    assert len(db.query(f"{match} RETURN 1 AS one")) == count


def test_bare_prefixed_and_ambiguous_names(tmp_path: Path) -> None:
    data = f'<urn:a> <http://one/name> "x" .\n<urn:a> <http://two/name> "y" .\n<urn:a> {TYPE} <http://one/City> .\n'
    with opened(tmp_path, data) as db:
        with pytest.raises(graphdb.GraphDBError, match="ambiguous") as caught:
            db.query("MATCH (a) RETURN a.name")
        assert "<http://one/name>" in str(caught.value)
        assert "<http://two/name>" in str(caught.value)
        assert db.query("MATCH (a) RETURN a.<http://two/name>").scalar() == "y"
        db.query("PREFIX one: <http://one/>")
        assert db.query("MATCH (a:one:City) RETURN a.one:name").scalar() == "x"
        assert db.query("MATCH (a:one:City {one:name: 'x'}) RETURN count(*)").scalar() == 1


def test_vertices_are_found_by_a_property_that_has_lists_elsewhere() -> None:
    with graphdb.connect(device="cpu") as database:
        database.query("CREATE (:T {k: 1, t: 'a'}), (:T {k: [1, 2], t: time('10:00+01:00')})")
        assert database.query("MATCH (n:T {k: 1}) RETURN n.k").fetchall() == [(1,)]
        assert database.query("MATCH (n:T) WHERE n.k = [1, 2] RETURN n.k").fetchall() == [([1, 2],)]
        assert database.query("MATCH (n:T {t: 'a'}) RETURN n.k").fetchall() == [(1,)]


def test_conditions_within_a_pattern_that_python_tests() -> None:
    """A condition beside a vertex fails, where its value is no truth value, as it does after WHERE: at its place."""
    with graphdb.connect() as db:
        db.query("CREATE (:P {k: 1})-[:R]->(:P {k: 2, ok: true})-[:R]->(:P {k: 3, ok: 'x'})")
        for text in ("MATCH (a WHERE a.k) RETURN a", "MATCH (a)-->(b WHERE b.k)-->() RETURN a"):
            with pytest.raises(graphdb.TypeMismatchError, match="expected a condition") as caught:
                db.query(text)
            assert caught.value.column == text.index(".k")
        assert db.query("MATCH (a)-->(b WHERE b.ok) RETURN b.k").fetchall() == [(2,)]
