"""Values of expressions, and of properties and literals in results, over a graph small enough to answer by hand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from typing import Any

import pytest

import graphdb
from tests.people import EX, opened, value


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with opened(tmp_path_factory.mktemp("queries")) as database:
        yield database


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
        db.query("CREATE (:A {x: $x})", x=exact)
        written = db.sql("SELECT object FROM triples WHERE datatype IS NOT NULL").fetchall()
        assert written == [(str(exact),)]
        assert db.query("MATCH (n:A {x: $x}) RETURN n.x", x=exact).scalar() == exact
        for other in (exact.scaleb(18, Context(prec=38)), Decimal("NaN")):  # the one would be read as a float
            with pytest.raises(graphdb.ParameterError, match="does not fit a decimal"):
                db.query("CREATE (:A {x: $x})", x=other)


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
