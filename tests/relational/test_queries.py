"""What queries mean, over graphs small enough to answer by hand.

Each case states a query and the rows that the README and openCypher promise; none was taken from what the code printed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphdb

XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
EX = "http://ex.org/"

DATA = f"""
<{EX}ada> {TYPE} <{EX}Person> .
<{EX}ada> {TYPE} <{EX}Woman> .
<{EX}bob> {TYPE} <{EX}Person> .
<{EX}cy> {TYPE} <{EX}Person> .
<{EX}cy> {TYPE} <{EX}Robot> .
<{EX}acme> {TYPE} <{EX}Firm> .
<{EX}ada> <{EX}knows> <{EX}bob> .
<{EX}bob> <{EX}knows> <{EX}cy> .
<{EX}cy> <{EX}knows> <{EX}ada> .
<{EX}ada> <{EX}knows> <{EX}ada> .
_:b <{EX}knows> <{EX}cy> .
<{EX}ada> <{EX}likes> <{EX}bob> .
<{EX}bob> <{EX}likes> <{EX}ada> .
<{EX}ada> <{EX}worksAt> <{EX}acme> .
<{EX}bob> <{EX}worksAt> <{EX}acme> .
<{EX}ada> <{EX}both> <{EX}acme> .
<{EX}bob> <{EX}both> "text" .
<{EX}ada> <{EX}name> "Ada" .
<{EX}bob> <{EX}name> "Bob" .
<{EX}cy> <{EX}name> "Cy" .
<{EX}acme> <{EX}name> "Acme" .
_:b <{EX}name> "Blank" .
<{EX}ada> <{EX}age> "36"^^<{XSD}integer> .
<{EX}bob> <{EX}age> "40"^^<{XSD}integer> .
<{EX}ada> <{EX}nick> "A" .
<{EX}ada> <{EX}nick> "Countess" .
<{EX}bob> <{EX}nick> "B" .
<{EX}ada> <{EX}mixed> "1"^^<{XSD}integer> .
<{EX}bob> <{EX}mixed> "one" .
<{EX}cy> <{EX}mixed> "1.5"^^<{XSD}decimal> .
<{EX}acme> <{EX}mixed> "true"^^<{XSD}boolean> .
<{EX}ada> <{EX}several> "1"^^<{XSD}integer> .
<{EX}ada> <{EX}several> "x" .
<{EX}ada> <{EX}price> "0.1"^^<{XSD}decimal> .
<{EX}bob> <{EX}price> "0.20"^^<{XSD}decimal> .
<{EX}ada> <{EX}weight> "1.5e0"^^<{XSD}double> .
<{EX}bob> <{EX}weight> "NaN"^^<{XSD}double> .
<{EX}ada> <{EX}ok> "true"^^<{XSD}boolean> .
<{EX}bob> <{EX}ok> "false"^^<{XSD}boolean> .
<{EX}ada> <{EX}born> "1815-12-10"^^<{XSD}date> .
<{EX}bob> <{EX}born> "1990-01-01"^^<{XSD}date> .
<{EX}ada> <{EX}seen> "2020-01-01T10:00:00"^^<{XSD}dateTime> .
<{EX}bob> <{EX}seen> "2020-06-01T00:00:00"^^<{XSD}dateTime> .
<{EX}ada> <{EX}zoned> "2020-01-01T10:00:00Z"^^<{XSD}dateTime> .
<{EX}bob> <{EX}zoned> "2020-01-01T11:30:00+02:00"^^<{XSD}dateTime> .
<{EX}ada> <{EX}clock> "10:30:00"^^<{XSD}time> .
<{EX}bob> <{EX}clock> "09:00:00"^^<{XSD}time> .
<{EX}ada> <{EX}motto> "hello"@en .
<{EX}ada> <{EX}motto> "bonjour"@fr .
<{EX}bob> <{EX}motto> "hi"@en .
<{EX}ada> <{EX}odd> "v"^^<{EX}myType> .
"""


def opened(tmp_path: Path, data: str = DATA, **options: Any) -> graphdb.Database:
    file = tmp_path / "data.nt"
    file.write_text(data, encoding="utf-8")
    db = graphdb.connect(**options)
    db.load(file)
    return db


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with opened(tmp_path_factory.mktemp("queries")) as database:
        yield database


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[graphdb.Database]:
    with opened(tmp_path) as database:
        yield database


def names(db: graphdb.Database, match: str, **parameters: Any) -> list[str]:
    """The sorted names of the vertices ``a`` that a MATCH finds; "-" for none."""
    return sorted(row[0] or "-" for row in db.query(f"{match} RETURN a.name", **parameters))


def value(db: graphdb.Database, expression: str, **parameters: Any) -> Any:
    return db.query(f"RETURN {expression} AS x", **parameters).scalar()


# --- who is matched --------------------------------------------------------------------------------------------


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
        with pytest.raises(graphdb.GraphDBError, match="ambiguous") as told:
            db.query("MATCH (a) RETURN a.name")
        assert "<http://one/name>" in str(told.value)
        assert "<http://two/name>" in str(told.value)
        assert db.query("MATCH (a) RETURN a.<http://two/name>").scalar() == "y"
        db.query("PREFIX one: <http://one/>")
        assert db.query("MATCH (a:one:City) RETURN a.one:name").scalar() == "x"
        assert db.query("MATCH (a:one:City {one:name: 'x'}) RETURN count(*)").scalar() == 1


# --- values ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("null AND false", False),
        ("null AND true", None),
        ("null OR true", True),
        ("null OR false", None),
        ("null XOR true", None),
        ("true XOR true XOR true", True),
        ("NOT null", None),
        ("null = null", None),
        ("null <> null", None),
        ("null IS NULL", True),
        ("1 IN [1, null]", True),
        ("2 IN [1, null]", None),
        ("null IN [1]", None),
        ("null IN []", False),
        ("1 IN null", None),
        ("[1] IN [[1], [2]]", True),
        ("1 = 'a'", False),
        ("1 <> 'a'", True),
        ("1 < 'a'", None),
        ("1 = 1.0", True),
        ("true = 1", False),
        ("false < true", True),
        ("1 < 2 < 3", True),
        ("3 > 2 > 2", False),
        ("[null] = [null]", None),
        ("[1, null] = [2, null]", False),
        ("[1] = [1.0]", True),
        ("[] = []", True),
        ("[1, 2] <> [1]", True),
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7 / 2.0", 3.5),
        ("2 ^ 10", 1024.0),
        ("2 + 3 * 4", 14),
        ("-(-3)", 3),
        ("-9223372036854775808", -(2**63)),
        ("-null", None),
        ("1 + null", None),
        ("'a' + 1", "a1"),
        ("[1] + 2", [1, 2]),
        ("[1] + [2, 3]", [1, 2, 3]),
        ("'abc' STARTS WITH 'ab'", True),
        ("1 STARTS WITH 'a'", None),
        ("'a' ENDS WITH null", None),
        ("'ABC' =~ '(?i)abc'", True),
        ("'abc' =~ 'b'", False),
        ("toInteger('12.7')", 12),
        ("toInteger(-1.5)", -1),
        ("toInteger('x')", None),
        ("toInteger('9007199254740993')", 9007199254740993),
        ("[x IN [1, '7', 'a', 2.5] | toInteger(x)]", [1, 7, None, 2]),
        ("[x IN [null, true, 'false ', 0] | toBoolean(x)]", [None, True, False, False]),
        ("toBoolean('TRUE')", True),
        ("toString(1.5)", "1.5"),
        ("round(-1.5)", -1.0),
        ("round(2.5)", 3.0),
        ("substring('hello', 1, 3)", "ell"),
        ("size('héé')", 3),
        ("size([1, 2])", 2),
        ("split('a,b', ',')", ["a", "b"]),
        ("coalesce(null, null, 3)", 3),
        (r"'it\'s'", "it's"),
    ],
)
def test_values_of_expressions(db: graphdb.Database, expression: str, expected: Any) -> None:
    found = value(db, expression)
    assert found == expected
    assert type(found) is type(expected)


def test_decimals_are_exact_and_keep_their_type(db: graphdb.Database) -> None:
    ((double, square, total),) = db.query(
        "MATCH (a {name: 'Ada'}) RETURN a.price + a.price, a.price * a.price, a.age + a.price"
    )
    assert (double, square, total) == (Decimal("0.2"), Decimal("0.01"), Decimal("36.1"))
    assert all(isinstance(v, Decimal) for v in (double, square, total))
    assert db.query("MATCH (a) RETURN sum(a.price)").scalar() == Decimal("0.3")
    assert value(db, "$x", x=Decimal("1.10")) == Decimal("1.1")


def test_decimals_keep_all_their_digits() -> None:
    """As many as DuckDB has, which are more than Python's operations leave."""
    exact = Decimal("12345678901234567890.123456789012345678")
    with graphdb.connect() as db:
        assert db.query("RETURN $x, [$x], toString($x)", x=exact).fetchall() == [(exact, [exact], str(exact))]
        db.query("CREATE (:A {x: $x, y: $y})", x=exact, y=exact.scaleb(18, Context(prec=38)))
        written = {str(exact), "12345678901234567890123456789012345678"}
        assert {row[0] for row in db.sql("SELECT object FROM triples WHERE datatype IS NOT NULL").fetchall()} == written
        assert db.query("MATCH (n:A {x: $x}) RETURN n.x", x=exact).scalar() == exact
        with pytest.raises(graphdb.TypeMismatchError, match="cannot be a property"):
            db.query("CREATE (:A {x: $x})", x=Decimal("NaN"))


def test_literals_as_vertices_are_values(db: graphdb.Database) -> None:
    rows = db.query("MATCH (a)-[:age]->(n) RETURN n, n + 1, n * 2, -n, n < 38 ORDER BY n").fetchall()
    assert rows == [(36, 37, 72, -36, True), (40, 41, 80, -40, False)]
    rows = db.query("MATCH (a)-[:price]->(n) RETURN n + 1 ORDER BY n").fetchall()
    assert rows == [(Decimal("1.1"),), (Decimal("1.2"),)]
    assert db.query("MATCH (a)-[:age]->(n) RETURN sum(n), max(n)").fetchall() == [(76, 40)]
    rows = db.query("MATCH (a)-[:motto]->(m) RETURN m, lang(m) ORDER BY m").fetchall()
    assert rows == [("bonjour", "fr"), ("hello", "en"), ("hi", "en")]
    # Two vertices that share a value are joined by the pattern alone.
    assert db.query("MATCH (a)-[:name]->(x)<-[:name]-(b) RETURN count(*)").scalar() == 0


def test_what_is_both_a_vertex_and_a_value(db: graphdb.Database) -> None:
    rows = db.query("MATCH (a)-[:both]->(x) RETURN x, toString(x), iri(x) ORDER BY a.name").fetchall()
    assert rows == [
        (graphdb.Node(EX + "acme"), EX + "acme", EX + "acme"),
        ("text", "text", None),
    ]


def test_multi_valued_properties_in_results(db: graphdb.Database) -> None:
    rows = db.query("MATCH (a:Person) RETURN a.name, a.nick, a.several ORDER BY a.name").fetchall()
    assert rows == [("Ada", ["A", "Countess"], [1, "x"]), ("Bob", "B", None), ("Cy", None, None)]
    with pytest.raises(graphdb.GraphDBError, match="several values"):
        db.query("MATCH (a:Person) RETURN a.nick + '!'")
    rows = db.query("MATCH (a:Person) RETURN collect(a.nick) AS all, count(a.nick)").fetchall()
    assert sorted(rows[0][0]) == ["A", "B", "Countess"]


def test_dates_and_times_come_back_as_python_values(db: graphdb.Database) -> None:
    ((born, seen, zoned, clock),) = db.query("MATCH (a {name: 'Bob'}) RETURN a.born, a.seen, a.zoned, a.clock")
    assert (born, seen, clock) == (date(1990, 1, 1), datetime(2020, 6, 1), time(9))
    assert zoned == datetime(2020, 1, 1, 9, 30, tzinfo=UTC)


def test_nodes_and_relationships(db: graphdb.Database) -> None:
    ((ada, likes, bob),) = db.query("MATCH (a {name: 'Ada'})-[e:likes]->(b) RETURN a, e, b")
    assert ada.iri == EX + "ada"
    assert ada.labels == (EX + "Person", EX + "Woman")
    properties = ada.properties
    assert properties[EX + "name"] == "Ada"
    assert sorted(properties[EX + "nick"]) == ["A", "Countess"]
    assert str(properties[EX + "price"]) == "0.1"  # as a.price is
    assert likes == graphdb.Relationship(EX + "likes", ada.iri, bob.iri)
    rows = db.query("MATCH (a)-[e:both]->(x) RETURN e ORDER BY a.name").fetchall()
    assert [e.end for (e,) in rows] == [EX + "acme", "text"]
    rows = db.query("MATCH (a {name: 'Ada'})-[e:likes]-(b) RETURN iri(startNode(e)), iri(endNode(e))").fetchall()
    assert sorted(rows) == [(EX + "ada", EX + "bob"), (EX + "bob", EX + "ada")]


# --- RETURN ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("MATCH (a) RETURN count(a.age), sum(a.age), avg(a.age), min(a.age), max(a.age)", [(2, 76, 38.0, 36, 40)]),
        (
            "MATCH (a) WHERE a.age > 99 RETURN count(*), count(a.age), sum(a.age), avg(a.age), max(a.age), collect(a)",
            [(0, 0, 0, None, None, [])],
        ),
        ("MATCH (a) WHERE a.age > 99 RETURN a.name, count(*)", []),
        ("MATCH (a)-[:worksAt]->(f) RETURN f.name, count(*) AS n, max(a.age) - min(a.age)", [("Acme", 2, 4)]),
        ("MATCH (a)-[:knows]->(b) RETURN count(DISTINCT b), count(b)", [(3, 5)]),
        ("MATCH (a) RETURN count(*) / 2", [(2,)]),
        ("MATCH (a:Person) RETURN a.age IS NULL AS none, count(*) AS n ORDER BY n", [(True, 1), (False, 2)]),
        (
            "MATCH (a)-[:knows]->(b) RETURN b.name AS n, count(*) AS c ORDER BY c DESC, n LIMIT 2",
            [("Ada", 2), ("Cy", 2)],
        ),
        ("MATCH (a)-[:knows]->(b) RETURN b.name, count(*) ORDER BY count(*), b.name LIMIT 1", [("Bob", 1)]),
        ("MATCH (a:Person) RETURN a, count(*) ORDER BY a.name LIMIT 1", [(graphdb.Node(EX + "ada"), 1)]),
        (
            "MATCH (a:Person) RETURN a.name AS n, a.age AS g ORDER BY g + 0 DESC, n",
            [("Cy", None), ("Bob", 40), ("Ada", 36)],
        ),
        ("MATCH (a:Person) RETURN a.name ORDER BY a.age", [("Ada",), ("Bob",), ("Cy",)]),
        ("MATCH (a) RETURN DISTINCT a.age AS g ORDER BY g", [(36,), (40,), (None,)]),
        ("MATCH (a) RETURN DISTINCT a.age AS g ORDER BY g DESC SKIP 1 LIMIT 1", [(40,)]),
        # openCypher's order: strings, booleans, numbers, null.
        (
            "MATCH (a) RETURN a.mixed AS m ORDER BY m",
            [("one",), (True,), (1,), (Decimal("1.5"),), (None,)],
        ),
        ("MATCH (a) RETURN min(a.mixed), max(a.mixed)", [("one", Decimal("1.5"))]),
        ("MATCH (a) RETURN a.name AS a ORDER BY a LIMIT 1", [("Acme",)]),
        ("MATCH (a) RETURN a.name LIMIT 0", []),
        ("MATCH (a) RETURN count(*) SKIP 1", []),
        (
            "MATCH (a:Person) RETURN EXISTS { (a)-[:likes]->() } AS l, a.name ORDER BY a.name",
            [(True, "Ada"), (True, "Bob"), (False, "Cy")],
        ),
        ("MATCH (a:Robot) RETURN labels(a)", [([EX + "Person", EX + "Robot"],)]),
        ("MATCH (a)-[e]->() RETURN type(e) AS t, count(*) ORDER BY t LIMIT 1", [(EX + "both", 1)]),
    ],
)
def test_returned_rows(db: graphdb.Database, query: str, rows: list[tuple[Any, ...]]) -> None:
    assert db.query(query).fetchall() == rows


def test_columns_and_star(db: graphdb.Database) -> None:
    assert db.query("MATCH (b)-[e:likes]->(a) RETURN *").columns == ("b", "a", "e")
    assert db.query("MATCH (a)-[:likes]->(b) RETURN a.name, b.name AS other, count(*)").columns == (
        "a.name",
        "other",
        "count(*)",
    )
    assert db.query('MATCH (`x y`:Firm) RETURN `x y`.name AS `the "name"`').columns == ('the "name"',)
    with pytest.raises(graphdb.GraphDBError, match="two columns are called 'x'"):
        db.query("MATCH (a) RETURN a.name AS x, a.age AS x")
    with pytest.raises(graphdb.GraphDBError, match="needs a variable"):
        db.query("MATCH () RETURN *")


def test_many_rows_keep_their_order_in_every_form(tmp_path: Path) -> None:
    lines = [f"<urn:v{i:04}> <urn:p:next> <urn:v{(i * 7 + 1) % 3000:04}> .\n" for i in range(3000)]
    lines += [f'<urn:v{i:04}> <urn:p:rank> "{(i * 1117) % 3000}"^^<{XSD}integer> .\n' for i in range(3000)]
    with opened(tmp_path, "".join(lines)) as db:
        result = db.query("MATCH (a)-[:next]->(b) RETURN a.rank AS r, a, b, collect(b) AS list ORDER BY r DESC")
        expected = [2999 - i for i in range(3000)]
        assert [row[0] for row in result] == expected
        assert result.to_arrow()["r"].to_pylist() == expected
        assert all(row["list"] == [row["b"]] for row in result.to_arrow().to_pylist())
        assert list(result.to_pandas()["r"]) == expected
        nested = {
            "collect(b)": None,
            "[[a.rank]]": [[7]],
            "[{n: a.rank}]": [{"n": 7}],
            "{n: {m: a.rank}}": {"n": {"m": 7}},
        }
        for item, seventh in nested.items():
            table = db.query(f"MATCH (a)-[:next]->(b) RETURN a.rank AS r, {item} AS item ORDER BY r").to_arrow()
            assert table["r"].to_pylist() == expected[::-1]
            assert seventh is None or table["item"][7].as_py() == seventh


def test_sorting_by_nothing_known_is_told_even_when_only_counting(db: graphdb.Database) -> None:
    with pytest.raises(graphdb.GraphDBError, match="nosuch"):
        db.query("MATCH (a) RETURN count(*) ORDER BY nosuch")


# --- parameters ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (1, 1),
        (1.5, 1.5),
        (True, True),
        (None, None),
        ("é\U0001f600", "é\U0001f600"),
        ("x" * 1_000_000, "x" * 1_000_000),
        ("'; DROP TABLE t; --", "'; DROP TABLE t; --"),
        (date(2020, 1, 2), date(2020, 1, 2)),
        (datetime(2020, 1, 2, 3), datetime(2020, 1, 2, 3)),
        (time(1, 2), time(1, 2)),
        (Decimal("1.25"), Decimal("1.25")),
        ([1, None, "a"], [1, None, "a"]),
        ([], []),
        ((1, 2), [1, 2]),
        ([[1], [2]], [[1], [2]]),
        (np.int64(3), 3),
        (np.float32(1.5), 1.5),
        (np.bool_(True), True),
        (np.str_("x"), "x"),
        ([np.int64(1)], [1]),
        (np.array([1, 2]), [1, 2]),
        (np.datetime64("2020-01-02"), date(2020, 1, 2)),
        (np.datetime64("2020-01-02T03:00:00", "ns"), datetime(2020, 1, 2, 3)),
    ],
    ids=lambda given: repr(given)[:30],
)
def test_parameters_come_back(db: graphdb.Database, given: Any, expected: Any) -> None:
    found = value(db, "$x", x=given)
    assert found == expected
    assert type(found) is type(expected)


def test_vertices_as_parameters(db: graphdb.Database) -> None:
    ((ada,),) = db.query("MATCH (a {name: 'Ada'}) RETURN a")
    assert names(db, "MATCH (a) WHERE a = $x", x=ada) == ["Ada"]
    assert names(db, "MATCH (a) WHERE a IN $x", x=[ada]) == ["Ada"]
    assert names(db, "MATCH (a)-[:likes]->(b) WHERE b = $x", x=ada) == ["Bob"]
    ((blank,),) = db.query("MATCH (a {name: 'Blank'}) RETURN a")
    assert names(db, "MATCH (a) WHERE a = $x", x=blank) == ["Blank"]


def test_parameters_for_pages_and_lists(db: graphdb.Database) -> None:
    rows = db.query("MATCH (a) RETURN a.name ORDER BY a.name SKIP $s LIMIT $n", s=1, n=2).fetchall()
    assert rows == [("Ada",), ("Blank",)]
    assert names(db, "MATCH (a) WHERE a.age IN $ages", ages=list(range(5000))) == ["Ada", "Bob"]
    assert db.query("MATCH (a {name: $name}) RETURN a.age", {"name": "Ada"}).scalar() == 36


# --- results elsewhere -----------------------------------------------------------------------------------------


def test_create_table_as(fresh: graphdb.Database) -> None:
    fresh.query("CREATE TABLE people AS MATCH (a:Person) RETURN a, a.name, a.mixed, a.nick ORDER BY a.name")
    rows = fresh.sql("SELECT a, name, mixed::VARCHAR, nick FROM people ORDER BY name").fetchall()
    assert rows[0] == (EX + "ada", "Ada", "1", ["A", "Countess"])
    fresh.query("CREATE TABLE IF NOT EXISTS people AS MATCH (a:Firm) RETURN a.name")
    assert fresh.sql("SELECT count(*) FROM people").scalar() == 3
    fresh.query("CREATE OR REPLACE TABLE people AS MATCH (a:Person) WHERE a.age > $least RETURN a.name", least=37)
    assert fresh.sql("SELECT * FROM people").fetchall() == [("Bob",)]
    fresh.query('CREATE TEMP TABLE "odd ""name""" AS MATCH (a:Firm) RETURN a.name')
    assert fresh.sql('SELECT * FROM "odd ""name"""').scalar() == "Acme"
    fresh.query("CREATE TABLE none AS MATCH (a:Person) WHERE a.age > 99 RETURN a, a.age AS age")
    assert fresh.sql("SELECT * FROM none").columns == ("a", "age")


def test_cypher_in_sql(db: graphdb.Database) -> None:
    people = "cypher($$ MATCH (a:Person) RETURN a.name AS n, a.age AS age $$)"
    assert db.sql(f"SELECT n FROM {people} WHERE age > 38").fetchall() == [("Bob",)]
    assert db.sql(f"SELECT 'é', count(*) FROM {people} x JOIN {people} y ON x.n < y.n").fetchall() == [("é", 3)]
    assert db.sql("SELECT * FROM cypher('MATCH (a {name: ''Ada''}) RETURN a.age')").scalar() == 36
    assert db.sql("SELECT 'cypher($$ no $$)' AS text, 1 AS cypher").fetchall() == [("cypher($$ no $$)", 1)]
    assert db.query(f"SELECT count(*) FROM {people}").scalar() == 3
    assert db.sql("SELECT * FROM cypher /* a comment */ ($$ MATCH (a:Firm) RETURN a.name $$)").scalar() == "Acme"


def test_results_by_their_python_names(db: graphdb.Database) -> None:
    found = db.query("MATCH (a:Person) RETURN a, a.name, a.mixed")
    assert found is not None
    assert db.sql("SELECT count(*) FROM found WHERE name < 'B'").scalar() == 1
    assert db.sql("WITH found AS (SELECT 7 AS x) SELECT x FROM found").scalar() == 7


def test_arrow_and_frames_take_everything(db: graphdb.Database) -> None:
    result = db.query(
        "MATCH (a:Person)-[e:likes]->(b) RETURN a, e, a.mixed, a.nick, [a, b] AS l, collect(e) AS es, a.price, a.zoned, "
        "null AS none, labels(b) AS ls ORDER BY a.name"
    )
    first = result.to_arrow().to_pylist()[0]
    assert first["a"] == EX + "ada"
    assert first["e"] == {"type": EX + "likes", "start": EX + "ada", "end": EX + "bob"}
    assert first["l"] == [EX + "ada", EX + "bob"]
    assert first["es"] == [first["e"]]
    assert first["ls"] == [EX + "Person"]
    frame = result.to_pandas()
    assert list(frame["a"]) == [EX + "ada", EX + "bob"]
    assert list(frame["a.mixed"]) == ["1", "one"]
    assert result.to_polars()["a.price"].to_list() == [Decimal("0.10"), Decimal("0.20")]


def test_arrow_tells_no_list_from_an_empty_one(db: graphdb.Database) -> None:
    text = "UNWIND [{a: 1}, {a: 2}, {a: 3}] AS m WITH m.a AS a RETURN CASE a WHEN 1 THEN [{k: a}] WHEN 2 THEN [] END AS l, "
    text += "CASE WHEN a > 1 THEN {k: [{j: a}], o: null} END AS m ORDER BY a"
    assert db.query(text).to_arrow().to_pylist() == [
        {"l": [{"k": 1}], "m": None},
        {"l": [], "m": {"k": [{"j": 2}], "o": None}},
        {"l": None, "m": {"k": [{"j": 3}], "o": None}},
    ]


def test_columns_of_lists_of_several_types_are_lists_to_all_who_take_them(db: graphdb.Database) -> None:
    text = "UNWIND [[1, 'x'], [2, null], [1, 'x']] AS p WITH toInteger(p[0]) AS a, toString(p[1]) AS b WITH [a, b, a > 1] AS l, "
    text += "count(*) AS n RETURN l, n, size(l) AS s, l[0] AS i, 'x' IN l AS x, [l, l] AS ll ORDER BY i"
    rows = [
        ([1, "x", False], 2, 3, 1, True, [[1, "x", False]] * 2),
        ([2, None, True], 1, 3, 2, None, [[2, None, True]] * 2),
    ]
    result = db.query(text)
    assert result.fetchall() == rows
    assert [(row["l"], row["ll"]) for row in result.to_arrow().to_pylist()] == [(row[0], row[5]) for row in rows]
    db.query(f"CREATE TABLE mixed AS {text}")
    assert db.sql("SELECT l FROM mixed ORDER BY i").fetchall() == [(row[0],) for row in rows]
    either = "MATCH (p:Person) RETURN [p.age, p.name] AS l UNION MATCH (p:Person) RETURN [p.name, p.age] AS l"
    ages = db.query("MATCH (p:Person) RETURN DISTINCT p.age, p.name").fetchall()
    assert sorted(map(str, db.query(either))) == sorted(str((list(l),)) for a, n in ages for l in ((a, n), (n, a)))


def test_frames_take_lists_of_several_types(db: graphdb.Database) -> None:
    result = db.query("MATCH (a) WHERE a.several IS NOT NULL RETURN a.several AS s")
    assert list(result.to_pandas()["s"][0]) == ["1", "x"]
    try:
        polars = result.to_polars()
    except BaseException as error:  # Polars panics outside the Exception tree
        pytest.fail(f"to_polars: {type(error).__name__}")
    assert polars["s"].to_list() == [["1", "x"]]


def test_into_and_scalar(fresh: graphdb.Database) -> None:
    result = fresh.query("MATCH (a:Person) RETURN a.name ORDER BY a.name")
    assert result.into('we"ird') == 3
    assert fresh.sql('SELECT count(*) FROM "we""ird"').scalar() == 3
    with pytest.raises(graphdb.GraphDBError, match="exists"):
        result.into('we"ird')
    assert result.into('we"ird', replace=True) == 3
    for query in ("MATCH (a) RETURN a", "MATCH (a) RETURN a LIMIT 0", "RETURN 1, 2", "PREFIX x: <http://x/>"):
        with pytest.raises(graphdb.GraphDBError):
            fresh.query(query).scalar()
    with pytest.raises(graphdb.GraphDBError):
        fresh.query("PREFIX x: <http://x/>").into("nothing")


# --- the life of a database ------------------------------------------------------------------------------------


def test_an_empty_database_answers(tmp_path: Path) -> None:
    with graphdb.connect() as db:
        assert db.query("MATCH (a) RETURN count(*)").scalar() == 0
        result = db.query("MATCH (a)-[e]->(b) WHERE (a)-->() RETURN a, e, labels(b) AS l")
        assert (result.columns, result.fetchall()) == (("a", "e", "l"), [])
        assert result.to_arrow().num_rows == 0
        assert db.query("MATCH (a:%) RETURN a").fetchall() == []
        assert db.sql("SELECT count(*) FROM triples").scalar() == 0
        assert db.query("MATCH (a:Person) RETURN a").fetchall() == []


def test_everything_is_there_after_reopening(tmp_path: Path) -> None:
    file = tmp_path / "kept.duckdb"
    data = tmp_path / "data.nt"
    data.write_text(DATA, encoding="utf-8")
    query = "MATCH (a:ex:Person)-[:knows]->(b) RETURN a.name, b.name, a.mixed, a.zoned, a.price ORDER BY a.name, b.name"
    with graphdb.connect(file) as db:
        db.load(data)
        db.query("PREFIX ex: <http://ex.org/>; CREATE TABLE kept AS MATCH (a:ex:Person) RETURN a, a.mixed, null AS n")
        before = db.query(query).fetchall()
    with graphdb.connect(file) as db:
        assert db.query(query).fetchall() == before
        assert db.sql("SELECT count(*) FROM kept").scalar() == 3


def test_several_databases_at_once(tmp_path: Path) -> None:
    with opened(tmp_path) as one, opened(tmp_path, '<urn:a> <urn:p:name> "x" .\n') as other:
        assert one.query("MATCH (a) RETURN count(*)").scalar() == 5
        assert other.query("MATCH (a) RETURN a.name").scalar() == "x"


def test_a_second_connection_to_the_file_sees_a_load(tmp_path: Path) -> None:
    """Or it is refused: but it must not answer from what was before."""
    data = tmp_path / "data.nt"
    data.write_text(DATA, encoding="utf-8")
    with graphdb.connect(tmp_path / "two.duckdb") as one:
        try:
            two = graphdb.connect(tmp_path / "two.duckdb")
        except graphdb.GraphDBError:
            return
        with two:
            assert two.query("MATCH (a) RETURN count(*)").scalar() == 0
            one.load(data)
            assert two.query("MATCH (a) RETURN count(*)").scalar() == 5


def test_results_after_more_was_loaded(fresh: graphdb.Database, tmp_path: Path) -> None:
    result = fresh.query("MATCH (a {name: 'Ada'})-[e:likes]->(b) RETURN a, b, e")
    more = tmp_path / "more.nt"
    more.write_text("".join(f"<urn:a{i}> <urn:p> <http://ex.org/ada> .\n" for i in range(100)))
    fresh.load(more)
    ((a, b, e),) = result.fetchall()
    assert (a.iri, b.iri, e.type) == (EX + "ada", EX + "bob", EX + "likes")


def test_threads_may_query_at_once(db: graphdb.Database) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        name, friends = [("Ada", ["Ada", "Bob"]), ("Bob", ["Cy"]), ("Cy", ["Ada"])][number % 3]
        try:
            for _ in range(10):
                rows = db.query("MATCH (a {name: $n})-[:knows]->(b) RETURN b.name, b ORDER BY b.name", n=name)
                if [row[0] for row in rows] != friends:
                    wrong.append((name, rows.fetchall()))
                if db.sql("SELECT count(*) FROM cypher($$ MATCH (a:Person) RETURN a.name $$)").scalar() != 3:
                    wrong.append("sql")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_transactions_in_sql(fresh: graphdb.Database, tmp_path: Path) -> None:
    more = tmp_path / "more.nt"
    more.write_text("<urn:a> <urn:p:new> <urn:b> .\n")
    fresh.query("BEGIN")
    assert fresh.query("MATCH (a) RETURN count(*)").scalar() == 5
    fresh.query("CREATE TABLE t AS MATCH (a:Firm) RETURN a.name")
    fresh.query("PREFIX gone: <http://gone.org/>")
    with pytest.raises(graphdb.GraphDBError, match="transaction"):
        fresh.load(more)
    fresh.query("ROLLBACK")
    assert "t" not in fresh.tables()
    assert "gone" not in fresh.prefixes()
    assert fresh.query("MATCH (a) RETURN count(*)").scalar() == 5
    fresh.load(more)
    assert fresh.query("MATCH (a)-[:new]->(b) RETURN count(*)").scalar() == 1


def test_settings_of_sql_do_not_change_what_patterns_mean(fresh: graphdb.Database) -> None:
    fresh.sql("SET default_null_order = 'nulls_first'; SET default_order = 'DESC'; SET TimeZone = 'America/New_York'")
    fresh.sql("CREATE SCHEMA s; USE s")
    assert fresh.query("MATCH (a:Person) RETURN a.name ORDER BY a.age, a.name").fetchall() == [
        ("Ada",),
        ("Bob",),
        ("Cy",),
    ]
    assert names(fresh, "MATCH (a) WHERE a.zoned < datetime('2020-01-01T10:00:00Z')") == ["Bob"]
    fresh.sql("ATTACH ':memory:' AS elsewhere; USE elsewhere")
    assert names(fresh, "MATCH (a:Person)") == ["Ada", "Bob", "Cy"]


def test_unicode_names_and_long_strings(tmp_path: Path) -> None:
    long = "å" * 300_000
    data = f'<http://ex.org/é> <http://ex.org/größe> "{long}" .\n<http://ex.org/é> {TYPE} <http://ex.org/日本> .\n'
    with opened(tmp_path, data) as db:
        assert db.query("MATCH (n:日本) RETURN n.größe AS wie_groß").scalar() == long
        assert db.query("MATCH (n:`日本`) WHERE n.`größe` = $x RETURN count(*)", x=long).scalar() == 1
        assert db.query("MATCH (n <http://ex.org/é>) RETURN size(n.größe)").scalar() == 300_000


def test_dates_before_our_era_and_numbers_beyond_64_bits_can_be_read(tmp_path: Path) -> None:
    """Real data has both; Python's dates begin with the year 1, so that such a value may come as text."""
    data = (
        f'<urn:a> <urn:p:died> "-0044-03-15"^^<{XSD}date> .\n<urn:a> <urn:p:at> "-0044-03-15T12:00:00"^^<{XSD}dateTime> .\n'
        f'<urn:a> <urn:p:big> "123456789012345678901234567890"^^<{XSD}integer> .\n<urn:a> <urn:p:died> "none" .\n'
    )
    with opened(tmp_path, data) as db:
        assert db.query("MATCH (a)-[:died]->(d) RETURN count(*)").scalar() == 2
        assert db.query("MATCH (a) WHERE a.at < datetime('0001-01-01T00:00:00') RETURN count(*)").scalar() == 1
        assert len(db.query("MATCH (a) RETURN a.big").fetchall()) == 1
        assert len(db.query("MATCH (a) RETURN a").fetchall()) == 1
        assert len(db.query("MATCH (a)-[:died]->(d) RETURN d").fetchall()) == 2
        assert "44" in str(db.query("MATCH (a) RETURN a.at").scalar())
        assert "44" in str(db.query("MATCH (a) RETURN a.died").scalar())


def test_a_timeout_tells_the_time_that_was_given(db: graphdb.Database) -> None:
    cross = ", ".join(f"(v{i})" for i in range(12))
    with pytest.raises(graphdb.QueryTimeout) as told:
        db.query(f"MATCH {cross} RETURN v0.name, v11.name", timeout=0.5)
    assert "0.5 s" in str(told.value)
    assert db.query("MATCH (a) RETURN count(*)").scalar() == 5


def test_equal_parameters_of_different_types_are_told_apart(db: graphdb.Database) -> None:
    """A prepared query comes back for the same text, not for an argument that is only equal."""
    for given in (1, 1.0, True, 0.0, -0.0, Decimal(1)):
        found = db.query("RETURN $x AS x", x=given).scalar()
        assert (type(found), str(found)) == (type(given), str(given))


def test_labels_and_values_are_sorted_whatever_sql_prefers(fresh: graphdb.Database) -> None:
    query = "MATCH (a:Person) RETURN a"
    before = [node for (node,) in fresh.query(query)]
    fresh.sql("SET default_order = 'DESC'")
    after = [node for (node,) in fresh.query(query)]
    # By their text: a NaN among the values does not equal itself.
    assert sorted(map(repr, after)) == sorted(map(repr, before))
    assert all(node.labels == tuple(sorted(node.labels)) for node in after)
