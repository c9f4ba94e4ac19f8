"""Rows that Python writes down with values of several types are joined with the graph as each pair of them compares.

The oracle compares each row with each vertex by Python: numbers are equal whatever their types, as floats where one is a
float, and values of other types equal none.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import graphdb

LARGE = 1 << 53
"""From here on a float equals several integers."""

INTEGERS = [*range(12)]
ANY = [0, 1, 2.0, 2.5, "a", "1", True, 3, LARGE + 1, False, -0.0]


@pytest.fixture(scope="module")
def graphs() -> Any:
    """Return databases with their vertices: the second one has integers that floats do not distinguish."""
    with graphdb.connect() as small, graphdb.connect() as large:
        found = []
        for database, integers in ((small, INTEGERS), (large, [*INTEGERS[:-2], LARGE, LARGE + 1])):
            rows = [
                {"n": n, "id": each, "key": f"k{n}", "f": n / 2, "any": ANY[n % len(ANY)]}
                for n, each in enumerate(integers)
            ]
            for row in rows:
                database.query("CREATE (:P {n: $n, id: $id, key: $key, f: $f, any: $any})", row)
            database.query("MATCH (a:P), (b:P) WHERE b.n = a.n + 1 CREATE (a)-[:NEXT]->(b)")
            database.query("UNWIND $rows AS e MATCH (a:P {n: e.n}) CREATE (a)-[r:SAME]->(a) SET r = e", rows=rows)
            found.append((database, rows))
        yield found


def equal(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return False
    numbers = [isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other)]
    if all(numbers):
        return float(one) == float(other) if float in (type(one), type(other)) else one == other
    return not any(numbers) and type(one) is type(other) and one == other


def items(draw: random.Random, count: int) -> list[Any]:
    """Return values that rows ask by."""
    values = [*range(13), 2.0, 2.5, 0.5, "k1", "k3", "a", "1", True, False, None, float(LARGE), LARGE + 1, LARGE, -0.0]
    kinds = draw.choice([(int,), (int, float), (int, str), (str, float), (int, float, str, bool, type(None))])
    return [draw.choice([value for value in values if isinstance(value, kinds)]) for _ in range(count)]


Form = tuple[str, Callable[[Any, Any], Any], Callable[[Any], Any]]
"""What an expression of ``e`` is, the row of two values, and the value that it yields of such a row."""

FORMS: list[Form] = [
    ("e[0]", lambda a, b: [a, b], lambda e: e[0]),
    ("e[-1]", lambda a, b: [a, 0.5, b], lambda e: e[-1]),
    ("e[0]", lambda a, b: [a, {"w": b}, [b]], lambda e: e[0]),
    ("e[0][1]", lambda a, b: [[b, a], b], lambda e: e[0][1]),
    ("e.id", lambda a, b: {"id": a, "to": b}, lambda e: e["id"]),
    ("e.id", lambda a, b: {"id": a, "to": [b, 0.5]} if b else {"id": a}, lambda e: e["id"]),
    ("e.from.id", lambda a, b: {"from": {"id": a, "x": "x"}, "to": b}, lambda e: e["from"]["id"]),
    ("e.ends[0]", lambda a, b: {"ends": [a, b]}, lambda e: e["ends"][0]),
    ("[e.x, e.y][1]", lambda a, b: {"x": a, "y": b}, lambda e: e["y"]),
    ("{k: e.x}.k", lambda a, b: {"x": a, "y": b}, lambda e: e["x"]),
    ("coalesce(e.x, e.y)", lambda a, b: {"x": a, "y": b}, lambda e: e["y"] if e["x"] is None else e["x"]),
    ("CASE WHEN e.x IS NULL THEN 1 ELSE e.y END", lambda a, b: {"x": a, "y": b}, lambda e: 1 if e["x"] is None else e["y"]),
    ("head(e)", lambda a, b: [a, b], lambda e: e[0]),
    ("e", lambda a, b: a, lambda e: e),
    ("[x IN e | x][1]", lambda a, b: [a, b], lambda e: e[1]),
]  # fmt: skip

WAYS = [
    "UNWIND $rows AS e MATCH (a:P {{{key}: {of}}}) RETURN e, a.n",
    "UNWIND $rows AS e MATCH (a:P) WHERE {of} = a.{key} RETURN e, a.n",
    "UNWIND $rows AS e OPTIONAL MATCH (a:P {{{key}: {of}}}) WITH e, a WHERE a IS NOT NULL RETURN e, a.n",
    "UNWIND $rows AS e CALL (e) {{ MATCH (a:P {{{key}: {of}}}) RETURN a }} RETURN e, a.n",
    "UNWIND $rows AS e UNWIND COLLECT {{ MATCH (a:P {{{key}: {of}}}) RETURN a.n }} AS n RETURN e, n",
    "UNWIND $rows AS e UNWIND range(0, 11) AS n WITH e, n WHERE EXISTS {{ (a:P {{{key}: {of}}}) WHERE a.n = n }} RETURN e, n",
    "UNWIND $rows AS e MATCH (a:P) WHERE a.{key} IN [{of}, 'none', 10] AND a.{key} <> 10 RETURN e, a.n",
    "UNWIND $rows AS e MATCH (a:P {{{key}: {of}}}), (b:P) WHERE b.{key} = {of} AND a.n = b.n RETURN e, a.n",
    "UNWIND $rows AS e MATCH (a:P {{{key}: {of}}})-[:NEXT*0..1]->(b) WHERE a = b RETURN e, a.n",
    "UNWIND $rows AS e MATCH (a:P)-[r:SAME {{{key}: {of}}}]->() RETURN e, a.n",
    "UNWIND $rows AS e MATCH ()-[r:SAME]->(a) WHERE {of} = r.{key} RETURN e, r.n",
]


@pytest.mark.parametrize("form", FORMS, ids=[form[0] for form in FORMS])
def test_rows_are_joined_by_values_of_several_types(graphs: Any, form: Form) -> None:
    database, vertices = graphs[FORMS.index(form) % 2]
    of, make, value = form
    draw = random.Random(of)
    for number, key in enumerate(("id", "key", "f", "any")):
        rows = [make(a, b) for a, b in zip(items(draw, 20), items(draw, 20), strict=True)]
        for way in draw.sample(WAYS, 1 if number else 4):
            text = way.format(key=key, of=of)
            expected = Counter(
                (repr(row), each["n"])
                for row in rows
                for each in vertices
                if equal(value(row), each[key]) and ("<> 10" not in text or not equal(each[key], 10))
            )
            found = database.query(text, rows=rows).fetchall()
            assert Counter((repr(row), n) for row, n in found) == expected, (text, rows)


@pytest.mark.parametrize("form", FORMS, ids=[form[0] for form in FORMS])
def test_what_rows_ask_for_is_a_column(graphs: Any, form: Form) -> None:
    """Tested on each pair, some thousands of edges took minutes."""
    of, make, _ = form
    rows = [make(1, "k1"), make(2.5, 3), make("x", 2)]
    ways = [
        "MATCH (a:P {{id: {of}}}) MATCH (b:P {{id: {of}}}) RETURN count(*)",
        "MATCH (a:P {{any: {of}}}) RETURN count(*)",
        "OPTIONAL MATCH (a:P {{key: {of}}}) RETURN count(a)",
        "MATCH ()-[r:SAME {{key: {of}}}]->() RETURN count(r)",
        "WITH e WHERE EXISTS {{ (a:P {{id: {of}}})-[:NEXT]->() }} RETURN count(*)",
        "MATCH (a:P {{id: {of}}}), (b:P) WHERE b.id = {of} SET a.f = a.f",
    ]
    for way in ways:
        text = f"EXPLAIN UNWIND $rows AS e {way.format(of=of)}"
        plan = "\n".join(str(row[0]) for row in graphs[0][0].query(text, rows=rows).fetchall())
        by_columns = re.search(r"WHERE \(+b\.\w+ = b\.k\d\)", plan)  # of which DuckDB makes a hash join
        assert by_columns or "ON TRUE" not in plan, plan


def test_ends_by_lists_of_items(graphs: Any) -> None:
    database, vertices = graphs[0]
    draw = random.Random(3)
    for text, listed in [("e.ids", "ids"), ("e.ids[..2]", "some"), ("[e.ids[0], e.ids[1]]", "some")]:
        rows = [{"ids": items(draw, 3), "w": n} for n in range(30)]
        found = database.query(f"UNWIND $rows AS e MATCH (a:P) WHERE a.id IN {text} RETURN e.w, a.n", rows=rows)
        asked = {row["w"]: row["ids"] if listed == "ids" else row["ids"][:2] for row in rows}
        expected = [(w, v["n"]) for w, ids in asked.items() for v in vertices if any(equal(v["id"], x) for x in ids)]
        assert sorted(found.fetchall()) == sorted(expected)


@pytest.mark.parametrize(
    "values", [[1, 2, 0.5, 1.0], [1, "a", "1", True], [0.5, 1, float(LARGE), LARGE + 1], ["a", "b"]]
)
def test_what_is_merged_by_values_of_several_types(values: list[Any]) -> None:
    """Of rows that ask for equal values the first makes what the others find, however many there are."""
    draw = random.Random(1)
    rows = [[draw.choice(values), draw.choice(values), n] for n in range(70)]
    expected: list[Any] = []
    edges: list[Any] = []
    for value in [row[0] for row in rows] + [row[1] for row in rows]:  # one clause after the other
        if not any(equal(value, each) for each in expected):
            expected.append(value)
    for one, other, _ in rows:
        if not any(equal(one, a) and equal(other, b) for a, b in edges):
            edges.append((one, other))
    with graphdb.connect() as database:
        text = "UNWIND $rows AS e MERGE (a:M {k: e[0]}) MERGE (b:M {k: e[1]}) MERGE (a)-[r:K]->(b) ON CREATE SET r.w = e[2]"
        database.query(text, rows=rows)
        found = [value for (value,) in database.query("MATCH (a:M) RETURN a.k").fetchall()]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
        assert database.query("MATCH ()-[r:K]->() RETURN count(r), count(r.w)").fetchall() == [(len(edges),) * 2]
        database.query(text, rows=rows)
        assert database.query("MATCH (a:M) RETURN count(a)").fetchall() == [(len(expected),)]
