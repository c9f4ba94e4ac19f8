"""What is equal is one: to ``=``, ``IN``, DISTINCT, grouping and UNION alike, by every route.

The oracle is Python's exact arithmetic over the values' texts: numbers are equal if they are the same, whatever their
types; a float is what its shortest text says.
"""

from __future__ import annotations

import io
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import graphdb
from graphdb.common.values.elements import Node
from tests.fuzz import scaled
from tests.oracle.databases import loaded
from tests.oracle.routes import in_python

XSD = "http://www.w3.org/2001/XMLSchema#"

LITERALS: list[tuple[str, object]] = [
    ("1", 1),
    ('"01"^^xsd:integer', 1),
    ('"1.0"^^xsd:double', 1.0),
    ('"1"^^xsd:decimal', Decimal(1)),
    ('"1"', "1"),
    ("true", True),
    ("2", 2),
    ('"2.5"^^xsd:double', 2.5),
    ('"2.5"^^xsd:decimal', Decimal("2.5")),
    ('"0.1"^^xsd:decimal', Decimal("0.1")),
    ('"0.1"^^xsd:double', 0.1),
    ('"0.3"^^xsd:double', 0.3),
    ('"9007199254740993"^^xsd:integer', 9007199254740993),
    ('"9007199254740994"^^xsd:integer', 9007199254740994),
    ('"9007199254740994"^^xsd:double', 9007199254740994.0),
    ('"0"^^xsd:integer', 0),
    ('"-0.0"^^xsd:double', -0.0),
    ('"a"', "a"),
    ('"a"@en', "a"),
    ('"2020-01-01"^^xsd:date', date(2020, 1, 1)),
]
"""Literals in Turtle, and their values."""


def same(value: object) -> object:
    """What equal values have in common."""
    if isinstance(value, (bool, str)) or value is None:
        return type(value).__name__, value
    if isinstance(value, (list, tuple)):
        return ("list", *map(same, value))
    if isinstance(value, dict):
        return ("map", *((key, same(item)) for key, item in sorted(value.items())))
    if isinstance(value, (int, float, Decimal)):
        return Fraction(int(value)) if isinstance(value, float) and value.is_integer() else Fraction(str(value))
    return str(value)


def equals(left: object, right: object) -> bool:
    """Whether ``=`` holds: as :func:`same`, but that a float and another number are compared as floats."""
    numbers = [v for v in (left, right) if isinstance(v, (int, float, Decimal)) and not isinstance(v, bool)]
    if len(numbers) == 2 and isinstance(left, float) is not isinstance(right, float):
        return float(numbers[0]) == float(numbers[1])
    return same(left) == same(right)


@pytest.fixture(scope="module", params=range(min(scaled(1), 5)))
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, ...]]:
    """A database, and by vertex the value of ``v`` (of all types) and of ``w`` (of numbers alone)."""
    dice = random.Random(request.param + 1)
    chosen = [(dice.choice(LITERALS), dice.choice([*LITERALS[:4], *LITERALS[6:17]])) for _ in range(20)]
    lines = [f"@prefix xsd: <{XSD}> ."]
    for i, ((v, _), (w, _)) in enumerate(chosen):
        lines.append(f"<urn:x:n{i}> a <urn:x:N> ; <urn:x:id> {i} ; <urn:x:v> {v} ; <urn:x:w> {w} .")
    lines.append(f"<urn:x:none> a <urn:x:N> ; <urn:x:id> {len(chosen)} .")
    rows = [(v, w) for (_, v), (_, w) in chosen] + [(None, None)]
    with loaded(tmp_path_factory.mktemp("equal"), [lines]) as (db,):
        yield db, rows


def _answers(db: graphdb.Database, text: str) -> list[list[tuple[Any, ...]]]:
    """The rows of a query by every route; those of tables are of texts where types vary."""
    found = [db.query(text).fetchall(), in_python(db, text)]
    db.query(f"CREATE OR REPLACE TABLE made AS {text}")
    assert db.sql("SELECT count(*) FROM made").scalar() == len(found[0])
    assert len(db.sql(f"SELECT * FROM cypher($$ {text} $$)").fetchall()) == len(found[0])
    return found


def _grouped(rows: list[Any], of: Callable[[Any], object]) -> Counter[object]:
    return Counter(same(of(row)) for row in rows)


SHAPES: list[tuple[str, Callable[[Any], object]]] = [
    ("n.v", lambda row: row[0]),
    ("n.w", lambda row: row[1]),
    ("[n.v]", lambda row: [row[0]]),
    ("[n.v, n.w]", lambda row: [row[0], row[1]]),
    ("[[n.w], [n.v]]", lambda row: [[row[1]], [row[0]]]),
    ("{a: n.v}", lambda row: {"a": row[0]}),
    ("{a: n.v, b: [n.w]}", lambda row: {"a": row[0], "b": [row[1]]}),
    ("coalesce(n.v, n.w)", lambda row: row[0]),
    ("n {.v}", lambda row: {"v": row[0]}),
]
"""Expressions of a vertex, and what they are of its values."""


@pytest.mark.parametrize(("expression", "of"), SHAPES, ids=[expression for expression, _ in SHAPES])
def test_one_of_each(graph: tuple[Any, ...], expression: str, of: Callable[[Any], object]) -> None:
    db, rows = graph
    groups = _grouped(rows, of)
    there = {key: count for key, count in groups.items() if key != same(None)}
    for found in _answers(db, f"MATCH (n:N) RETURN DISTINCT {expression} AS x"):
        assert Counter(same(x) for (x,) in found) == Counter(dict.fromkeys(groups, 1))
    for found in _answers(db, f"MATCH (n:N) RETURN {expression} AS x, count(*) AS c"):
        assert {same(x): c for x, c in found} == groups
        assert len(found) == len(groups)
    for found in _answers(
        db, f"MATCH (n:N) RETURN count(DISTINCT {expression}) AS c, collect(DISTINCT {expression}) AS l"
    ):
        ((count, items),) = found
        assert count == len(there)
        assert Counter(map(same, items)) == Counter(dict.fromkeys(there, 1))
    text = f"MATCH (n:N) WHERE n.id < 8 RETURN {expression} AS x UNION MATCH (n:N) WHERE n.id >= 5 RETURN {expression} AS x"
    for found in _answers(db, text):
        assert Counter(same(x) for (x,) in found) == Counter(dict.fromkeys(groups, 1))
    # And once more from rows, and ordered.
    for found in _answers(db, f"MATCH (n:N) WITH DISTINCT {expression} AS x RETURN count(*) AS c"):
        assert found == [(len(groups),)]
    for found in _answers(db, f"MATCH (n:N) WITH n.id % 2 AS g, count(DISTINCT {expression}) AS c RETURN g, c"):
        expected = {g: len({same(of(row)) for i, row in enumerate(rows) if i % 2 == g} - {same(None)}) for g in (0, 1)}
        assert dict(found) == expected


def test_any_two(graph: tuple[Any, ...]) -> None:
    """``=``, ``<>`` and IN agree with what is grouped, but for integers that floats do not hold."""
    db, rows = graph
    text = "MATCH (a:N), (b:N) RETURN a.id AS i, b.id AS j, a.v = b.w AS eq, a.v <> b.w AS ne, a.v IN [b.w] AS one, "
    text += "a.v IN ['z', b.w, true] AS several, [a.v] = [b.w] AS lists, {k: a.v} = {k: b.w} AS maps"
    for found in _answers(db, text):
        assert len(found) == len(rows) ** 2
        for i, j, *answers in found:
            left, right = rows[i][0], rows[j][1]
            if left is None or right is None:
                assert answers[:2] == [None, None]
                continue
            equal = equals(left, right)
            expected = [equal, not equal, equal, equal or left is True, equal, equal]
            assert answers == expected, (left, right)


def test_in_lists_of_rows(graph: tuple[Any, ...]) -> None:
    db, rows = graph
    values = [row[0] for row in rows if row[0] is not None]
    for text in (
        "MATCH (m:N) WITH collect(m.v) AS vs MATCH (n:N) RETURN n.id AS id, n.w IN vs AS x",
        "MATCH (m:N) WITH collect(m.v) AS vs MATCH (n:N) RETURN n.id AS id, n.v IN vs AS x",
        "MATCH (m:N) WITH collect(m.w) AS vs MATCH (n:N) RETURN n.id AS id, n.v IN vs AS x",
        "MATCH (m:N) WITH collect(m.v) AS vs MATCH (n:N) RETURN n.id AS id, any(v IN vs WHERE v = n.w) AS x",
        "MATCH (m:N) WITH collect({k: m.v}) AS vs MATCH (n:N) RETURN n.id AS id, {k: n.w} IN vs AS x",
    ):
        mine, among = (1 if "n.w" in text else 0), [row[1] for row in rows if row[1] is not None]
        among = among if "collect(m.w)" in text else values
        for found in _answers(db, text):
            for id, answer in found:
                value = rows[id][mine]
                if value is None:
                    assert answer is not True
                    continue
                if isinstance(value, (int, float, Decimal)) and abs(value) > 1 << 52:
                    continue  # compared as floats, they are more than equal
                if "{k: m.v}" in text and not any(same(value) == same(each) for each in among):
                    assert answer in (False, None)  # some vertex has none
                    continue
                assert answer is any(same(value) == same(each) for each in among), (text, value)


def test_what_is_in_a_list_is_equal_not_the_same() -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        for text, expected in [
            ("WITH [sqrt(-1)] AS l RETURN head(l) IN l AS x", False),
            ("MATCH (n) WITH collect(n.v) AS l UNWIND l AS v WITH l, max(v) AS v RETURN v IN l AS x", True),
            ("MATCH (n) WITH collect({a: n.z}) AS l RETURN {a: null} IN l AS x", None),
            ("WITH [1, 'a'] AS l RETURN 1.0 IN l AS x", True),
            ("RETURN [1] IN [[1.0], ['a']] AS x", True),
        ]:
            db.query("MATCH (n) DETACH DELETE n")
            db.query("CREATE ({v: 1}), ({v: 1.0})")
            assert db.query(text).scalar() is expected, text
            assert in_python(db, text) == [(expected,)], text


def _sum(left: object, right: object) -> object:
    if left is None or right is None:
        return None
    sides = [side if isinstance(side, list) else [side] for side in (left, right)]
    return [*sides[0], *sides[1]]


def test_null_beside_a_list() -> None:
    """A list with null is null, whichever of the two a row has, and however it is known."""
    dice = random.Random(2)
    values: list[tuple[str, object]] = [("null", None), ("[1, 2]", [1, 2]), ("[null]", [None]), ("[]", []), ("7", 7)]
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("CREATE (:N {id: 0, one: 1}), (:N {id: 1, few: [1, 2]}), (:N {id: 2})")
        for _ in range(scaled(40)):
            items = [dice.choice(values) for _ in range(3)]
            (a, left), (b, right), (d, last) = items
            if not (isinstance(left, list) or isinstance(right, list)):
                continue
            whole = _sum(_sum(left, right), last)
            literal = f"RETURN {a} + {b} + {d} AS x"
            unwound = f"UNWIND [{a}] AS p WITH p, {b} AS q RETURN p + q + {d} AS x"
            listed = f"WITH [{{p: {a}, q: {b}}}] AS rows UNWIND rows AS row RETURN row.p + row.q + {d} AS x"
            for text in (literal, listed) if isinstance(left, list) or left is None else (literal, unwound, listed):
                if whole is not None or text != unwound:
                    assert db.query(text).fetchall() == in_python(db, text) == [(whole,)], text
        for text, expected in [
            ("MATCH (n:N) RETURN n.id AS id, n.one + [0] AS x", [(0, [1, 0]), (1, None), (2, None)]),
            ("MATCH (n:N) RETURN n.id AS id, [0] + n.one AS x", [(0, [0, 1]), (1, None), (2, None)]),
            ("MATCH (n:N) RETURN n.id AS id, [0] + n.few AS x", [(0, None), (1, [0, 1, 2]), (2, None)]),
            (
                "MATCH (n:N) OPTIONAL MATCH (n)-->(m) RETURN n.id AS id, [0] + m.id AS x",
                [(0, None), (1, None), (2, None)],
            ),
            (
                "MATCH (n:N) OPTIONAL MATCH (n)-->(m) RETURN n.id AS id, [n.id] || collect(m.id) AS x",
                [(0, [0]), (1, [1]), (2, [2])],
            ),
            (
                "MATCH (n:N) RETURN n.id AS id, reduce(l = [0], x IN [1, n.one] | l + x) AS x",
                [(0, [0, 1, 1]), (1, None), (2, None)],
            ),
        ]:
            assert sorted(db.query(text).fetchall()) == sorted(in_python(db, text)) == expected, text


# --- literals as vertices --------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["literals", "mixed"])
def terms(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, ...]]:
    """A database in which ``p`` leads to literals, and in one of two to vertices as well; and what it leads to."""
    dice = random.Random(4)
    edges = []
    lines = [f"@prefix xsd: <{XSD}> ."]
    for i in range(7):
        lines.append(f"<urn:x:n{i}> a <urn:x:N> ; <urn:x:id> {i} .")
        for text, value in dice.sample(LITERALS, 3):
            edges.append((i, text, value))
        if request.param == "mixed":
            edges.append((i, f"<urn:x:n{i % 3}>", f"vertex {i % 3}"))
    edges = list(dict.fromkeys(edges))
    lines += [f"<urn:x:n{i}> <urn:x:p> {text} ." for i, text, _ in edges]
    with loaded(tmp_path_factory.mktemp("terms"), [lines]) as (db,):
        yield db, edges


def _value_of(found: Any) -> object:
    """What a row shows of a term: of a vertex, which."""
    return f"vertex {found.iri[-1]}" if isinstance(found, graphdb.Node) else found


def test_literals_go_by_value(terms: tuple[Any, ...]) -> None:
    db, edges = terms
    pairs = [(a, x, b, y) for a in edges for x in [a[2]] for b in edges for y in [b[2]]]

    joined = Counter((a[0], b[0]) for a, x, b, y in pairs if equals(x, y))
    apart = Counter((a[0], b[0]) for a, x, b, y in pairs if not equals(x, y))
    terms_alike = Counter((a[0], b[0]) for a, _, b, _ in pairs if a[1] == b[1])
    two = "MATCH REPEATABLE ELEMENTS (a:N)-[:p]->(x), (b:N)-[:p]->(y)"
    for text, expected in [
        (f"{two} WHERE x = y RETURN a.id AS i, b.id AS j", joined),
        (f"{two} WHERE x <> y RETURN a.id AS i, b.id AS j", apart),
        (f"{two} WHERE x IN [y] RETURN a.id AS i, b.id AS j", joined),
        (f"{two} WHERE [x] = [y] RETURN a.id AS i, b.id AS j", joined),
        (f"{two} WHERE sameTerm(x, y) RETURN a.id AS i, b.id AS j", terms_alike),
        ("MATCH (a:N)-[:p]->(x) MATCH (b:N)-[:p]->(y) WHERE x = y RETURN a.id AS i, b.id AS j", joined),
        ("MATCH (a:N)-[:p]->(x) WITH a, x MATCH (b:N)-[:p]->(y) WHERE x = y RETURN a.id AS i, b.id AS j", joined),
        ("MATCH (a:N)-[:p]->(x) MATCH (b:N)-[:p]->(x) RETURN a.id AS i, b.id AS j", terms_alike),
        (
            "MATCH (b:N)-[:p]->(y) WITH b, collect(y) AS ys MATCH (a:N)-[:p]->(x) WHERE x IN ys RETURN DISTINCT a.id AS i, b.id AS j",
            Counter(dict.fromkeys(joined, 1)),
        ),
    ]:
        for found in _answers(db, text):
            assert Counter(found) == expected, text


def test_literals_in_lists(terms: tuple[Any, ...]) -> None:
    """What is collected goes by value, too: as an item, as a whole, and where it is reckoned with."""
    db, edges = terms
    text = "MATCH (a:N)-[:p]->(x) WITH a, x, [x] AS one, collect(x) AS xs RETURN a.id AS i, xs = one AS l, head(xs) = x AS h, "
    text += "x IN xs AS m, CASE xs[0] WHEN x THEN 1 ELSE 2 END AS c, "
    text += "[] + xs + one = xs || one AS j, x IN xs + 'other' AS k, (xs + 'other')[0] = x AS f"
    groups = Counter((i, same(value)) for i, _, value in edges)
    for found in _answers(db, text):
        rows = [(i, count == 1, True, True, 1, True, True, True) for (i, _), count in groups.items()]
        assert Counter(found) == Counter(rows)


def test_equal_literals_are_one(terms: tuple[Any, ...]) -> None:
    db, edges = terms
    groups = Counter(same(value) for _, _, value in edges)
    for found in _answers(db, "MATCH (a:N)-[:p]->(x) RETURN DISTINCT x"):
        assert Counter(same(_value_of(x)) for (x,) in found) == Counter(dict.fromkeys(groups, 1))
    for found in _answers(db, "MATCH (a:N)-[:p]->(x) RETURN x, count(*) AS c"):
        assert {same(_value_of(x)): c for x, c in found} == groups
        assert len(found) == len(groups)
    for found in _answers(db, "MATCH (a:N)-[:p]->(x) RETURN count(DISTINCT x) AS c, collect(DISTINCT x) AS l"):
        ((count, items),) = found
        assert count == len(groups)
        assert Counter(same(_value_of(x)) for x in items) == Counter(dict.fromkeys(groups, 1))
    text = "MATCH (a:N)-[:p]->(x) WHERE a.id < 4 RETURN x UNION MATCH (a:N)-[:p]->(x) WHERE a.id > 2 RETURN x"
    for found in _answers(db, text):
        assert Counter(same(_value_of(x)) for (x,) in found) == Counter(dict.fromkeys(groups, 1))
    pairs = Counter((i, same(value)) for i, _, value in edges)
    for found in _answers(db, "MATCH (a:N)-[:p]->(x) RETURN a.id AS i, x, count(*) AS c"):
        assert Counter({(i, same(_value_of(x))): c for i, x, c in found}) == pairs
    for found in _answers(db, "MATCH (a:N)-[:p]->(x) RETURN a, x, count(*) AS c"):
        assert Counter({(int(a.iri[-1]), same(_value_of(x))): c for a, x, c in found}) == pairs


def test_numbers_at_the_edges_of_exactness() -> None:
    """Where an integer or a decimal is a float, and just beside it; NaN is one group, and so are both zeros."""
    beside = [sign * (2**power + step) for power in (53, 54, 62) for step in (-1, 0, 1, 2) for sign in (1, -1)]
    values: list[Any] = [0, 1, -1, -(2**63), 2**63 - 1, *beside, *map(float, beside), 0.0, -0.0, 0.1, 1.0, -(2.0**63)]
    values += [Decimal(text) for text in ("0", "1", "0.1", "0.100000000000000001", "9007199254740993", str(2**62))]
    values += ["1", "NaN", True, math.nan, -math.nan, math.inf, -math.inf]

    def group_of(value: object) -> object:
        finite = not isinstance(value, float) or math.isfinite(value)
        return same(value) if finite else ("float", "nan" if value != value else str(value))

    groups = Counter(map(group_of, values))
    with graphdb.connect(device="cpu") as db:
        db.query("UNWIND $values AS v CREATE (:N {v: v})", values=values)
        for text in ("MATCH (n:N) RETURN n.v AS v, count(*) AS c", "MATCH (n:N) RETURN DISTINCT n.v AS v, 1 AS c"):
            for found in _answers(db, text):
                assert len(found) == len(groups)
                counts = Counter({group_of(v): c for v, c in found})
                assert counts == (groups if "count" in text else Counter(dict.fromkeys(groups, 1)))
        for found in _answers(db, "MATCH (n:N) RETURN count(DISTINCT n.v) AS c, size(collect(DISTINCT n.v)) AS d"):
            assert found == [(len(groups), len(groups))]


KINDS: list[list[Any]] = [
    [1, 2, 0, 2**53 + 1, 2**62],
    [1.0, 2.5, 0.0, -0.0, 0.1, float(2**53), 2.0**62, 1e300],
    [Decimal(text) for text in ("1", "2.5", "0.1", "0.10000000000000001", "9007199254740993", "123456789.123457")],
    ["1", "a"],
    [True, False],
    [date(2020, 1, 1)],
]
"""Values by type, some of them equal to ones of another."""


@pytest.mark.parametrize("seed", range(scaled(3)))
def test_properties_of_some_types(seed: int) -> None:
    """What a property's types prove is made use of while they do: also of types that come later, and behind clauses."""
    dice = random.Random(seed)
    with graphdb.connect(device="cpu", threads=1) as db:
        values: list[Any] = []
        for kinds in (dice.sample(KINDS, 2), dice.sample(KINDS, 2), KINDS):
            new = [dice.choice(dice.choice(kinds)) for _ in range(8)]
            db.query("UNWIND $rows AS v CREATE (:N {v: v})", rows=new)
            values += new
            groups = Counter(map(same, values))
            for text in (
                "MATCH (n:N) RETURN n.v AS v, count(*) AS c",
                "MATCH (n:N) WITH n.v AS v ORDER BY v LIMIT 1000 RETURN v, count(*) AS c",
                "MATCH (n:N) WITH n.v AS v, n AS n RETURN v, count(DISTINCT n) AS c",
                "MATCH (n:N) RETURN DISTINCT n.v AS v, 1 AS c",
                "MATCH (n:N) RETURN n.v AS v, 1 AS c UNION MATCH (n:N) RETURN n.v AS v, 1 AS c",
                "MATCH (n:N) CALL { WITH n RETURN n.v AS v } RETURN v, count(*) AS c",
            ):
                for found in (db.query(text).fetchall(), in_python(db, text)):
                    expected = groups if "count" in text else Counter(dict.fromkeys(groups, 1))
                    assert len(found) == len(groups), text
                    assert Counter({same(v): c for v, c in found}) == expected, text
                    assert {type(v) for v, _ in found} <= set(map(type, values))
            text = "MATCH (n:N) RETURN count(DISTINCT n.v) AS c, collect(DISTINCT n.v) AS l, count(DISTINCT [n.v]) AS d"
            for found in (db.query(text).fetchall(), in_python(db, text)):
                ((count, items, lists),) = found
                assert (count, lists) == (len(groups), len(groups))
                assert Counter(map(same, items)) == Counter(dict.fromkeys(groups, 1))


@pytest.mark.parametrize("seed", range(scaled(3)))
def test_aggregates_of_distinct_numbers(seed: int) -> None:
    """Of 1 and 1.0 one is added up, and both of two integers that are one float."""
    dice = random.Random(seed)
    for kinds in (KINDS[:1], KINDS[1:2], KINDS[2:3], KINDS[:2], KINDS[1:3], KINDS[:3:2], KINDS[:3]):
        chosen = [[v for v in dice.choice(kinds[:3]) if -2 < v < 2**57] for _ in range(9)]
        values = [dice.choice([*own, 2**53, 2**53 + 1] if own == KINDS[0] else own) for own in chosen]
        once = [*{same(value): value for value in values}.values()]
        exact = sorted(Fraction(str(v)) if not float(v).is_integer() else Fraction(int(v)) for v in once)
        mean = sum(exact) / len(exact)
        deviation = math.sqrt(sum((x - mean) ** 2 for x in exact) / max(len(exact) - 1, 1))
        at = (len(exact) - 1) / 4
        below, above = exact[math.floor(at)], exact[math.ceil(at)]
        quarter = below + (above - below) * Fraction(at - math.floor(at))
        expected = [sum(exact), mean, deviation, quarter]
        text = (
            "sum(DISTINCT x) AS s, avg(DISTINCT x) AS a, stdev(DISTINCT x) AS d, percentileCont(DISTINCT x, 0.25) AS p"
        )
        with graphdb.connect(device="cpu", threads=1) as db:
            db.query("UNWIND $values AS v CREATE (:N {v: v})", values=values)
            for query in (
                f"MATCH (n:N) WITH n.v AS x RETURN {text}",
                f"MATCH (n:N) RETURN {text.replace('x)', 'n.v)').replace('x,', 'n.v,')}",
            ):
                for found in (db.query(query).fetchone(), *in_python(db, query)):
                    assert [float(v) for v in found] == pytest.approx([float(v) for v in expected], rel=1e-12), query


def test_a_resource_is_no_value() -> None:
    """Of what leads to resources and literals, a resource equals no value (SPARQL 1.1 §17.4.1.7), and stays itself."""
    lines = '<e:a> <e:p> <e:b> .\n<e:a> <e:p> _:x .\n<e:a> <e:p> "text" .\n<e:c> <e:p> "other" .\n'
    lines += '<e:c> <e:p> "4"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
    resource, text, other, four = "a resource", "text", "other", 4
    objects = [resource, resource, text, other, four]
    expected: dict[str, Callable[[object], object]] = {
        "o = 'text'": lambda o: o == text,
        "o <> 'text'": lambda o: o != text,
        "NOT o = 4": lambda o: o != four,
        "o IN ['text', 4]": lambda o: o in (text, four),
        "NOT o IN ['text', 4]": lambda o: o not in (text, four),
        "o = $nothing": lambda o: None,
        "coalesce(o, 'none')": lambda o: o,
        "coalesce(null, o)": lambda o: o,
        "nullIf(o, 'text')": lambda o: None if o == text else o,
        "CASE WHEN true THEN o ELSE 1 END": lambda o: o,
        "CASE o WHEN 'text' THEN 1 ELSE 2 END": lambda o: 1 if o == text else 2,
        "CASE WHEN o <> 'text' THEN o END": lambda o: None if o == text else o,
    }
    with graphdb.connect(threads=1) as db:
        db.load(io.BytesIO(lines.encode()), "nt")
        for form, value in expected.items():
            given = {"nothing": None} if "$" in form else {}
            want = sorted(repr(value(o)) for o in objects)
            query = f"MATCH (s)-[:<e:p>]->(o) RETURN {form} AS x"
            for found in (db.query(query, given).fetchall(), in_python(db, query, given)):
                assert sorted(repr(resource if isinstance(x, Node) else x) for (x,) in found) == want, form
            kept = db.query(f"MATCH (s)-[:<e:p>]->(o) WHERE ({form}) = true RETURN o", given).fetchall()
            assert len(kept) == want.count("True"), form
