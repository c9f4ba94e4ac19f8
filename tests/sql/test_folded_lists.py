"""``reduce``, comprehensions and quantifiers over lists of any items: SQL folds them as the evaluator does."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import graphdb
from tests.fuzz import scaled
from tests.oracle.routes import in_python

LISTS = {
    "[(p)-[:K]->(q) | q.k]": ("x", "integer"),
    "[(p)-[:K]->(q) | q.w]": ("x", "float"),
    "[(p)-[:K]->(q) | {who: q, n: q.k, w: q.w}]": ("x.n", "map"),
    "[(p)-[e:K]->(q) | {edge: e, who: q}]": ("x.who.k", "map"),
    "[(p)-[:K]->(q) | [q.k, p.k]]": ("x[0]", "list"),
    "[(p)-[:K]->(q) | q]": ("x.k", "vertex"),
    "[t = (p)-[:K]->(q) | t]": ("length(x)", "path"),
    "[(p)-[:K]->(q) | q {.k, .w}]": ("x.k", "map"),
}
STEPS = (
    ("0", "s + {0}"),
    ("0", "CASE WHEN {0} > s THEN {0} ELSE s END"),
    ("0.0", "s + {0} * 0.5"),
    ("''", "s + toString({0}) + ','"),
    ("true", "s AND {0} > 2"),
    ("[]", "s + [{0}]"),
    ("[0, 1]", "[s[1], s[0] + {0}]"),
    ("{{a: 0, b: 1}}", "{{a: s.a + {0}, b: s.b + 1}}"),
    ("date('2020-01-01')", "s + duration({{days: {0}}})"),
    ("p.k", "s * 2 - {0}"),
    ("null", "coalesce(s, 0) + {0}"),
    ("0", "s + toFloat({0})"),
)
INSIDE = (
    ("[(p)-[:K]->(q) | {who: q, n: q.k}]", "[x IN {0} | x.who.k]"),
    ("[(p)-[:K]->(q) | {who: q, n: q.k}]", "[x IN {0} WHERE x.who.w > 1 | x.n]"),
    ("[(p)-[:K]->(q) | {who: q, n: q.k}]", "any(x IN {0} WHERE x.who.k > p.k)"),
    ("[(p)-[:K]->(q) | {who: q, n: q.k}]", "single(x IN {0} WHERE x.who:P)"),
    ("[(p)-[e:K]->(q) | {edge: e, who: q}]", "[x IN {0} | type(x.edge) + toString(x.edge.w)]"),
    ("[(p)-[e:K]->(q) | {edge: e, who: q}]", "all(x IN {0} WHERE x.edge.w >= x.who.k)"),
    ("[(p)-[:K]->(q) | [p, q]]", "[x IN {0} | x[1].k]"),
    ("[t = (p)-[:K]->(q) | t]", "[x IN {0} | nodes(x)[1].k]"),
    ("[t = (p)-[:K*1..2]->(q) | t]", "none(x IN {0} WHERE relationships(x)[0].w > 2)"),
)


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    dice = random.Random(5)
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("UNWIND range(0, 9) AS k CREATE (:P {k: k, w: k * 0.25})")
        pairs = [{"a": a, "b": b, "w": (a + b) % 5} for a in range(8) for b in range(10) if dice.random() < 0.25]
        database.query(
            "UNWIND $pairs AS r MATCH (a:P {k: r.a}), (b:P {k: r.b}) CREATE (a)-[:K {w: r.w}]->(b)", pairs=pairs
        )
        yield database


def _rows(rows: list[tuple[object, ...]]) -> list[str]:
    """Rows as texts, whose lists are in no order: which neighbour comes first nobody says."""
    return sorted(map(repr, rows))


def _folds(db: graphdb.Database, listed: str, folded: str) -> None:
    """A list has the same items in the same order either way, where it is a column first."""
    start = f"MATCH (p:P) WITH p, {listed} AS xs"
    for text in (
        f"{start} RETURN p.k, {folded.format('xs')}",
        f"{start} WHERE size(xs) <= 1 RETURN p.k, {folded.format(listed)}",
    ):
        assert _rows(db.query(text).fetchall()) == _rows(in_python(db, text)), text
        plan = "\n".join(line for (line,) in db.query(f"EXPLAIN {text}").fetchall())
        changes = (
            "coalesce(s, 0)" in text or "toFloat" in text or "[]" in text or "| q.w]" in text
        )  # values that change their type
        assert changes or "computed" not in plan, text


def test_reduce_into_values_of_any_type(db: graphdb.Database) -> None:
    pairs = [(listed, item, step) for listed, (item, _) in LISTS.items() for step in STEPS]
    dice = random.Random(6)
    for listed, item, (start, step) in dice.sample(pairs, min(scaled(80), len(pairs))):
        begin, body = start.replace("{{", "{").replace("}}", "}"), step.format(item)
        _folds(
            db,
            listed,
            f"reduce(s = {begin}, x IN LIST | {body})".replace("{", "{{").replace("}", "}}").replace("LIST", "{0}"),
        )


@pytest.mark.parametrize(("listed", "made"), INSIDE)
def test_vertices_and_edges_inside_items(db: graphdb.Database, listed: str, made: str) -> None:
    _folds(db, listed, made)


@pytest.mark.parametrize(
    "step",
    [
        "s + s",
        "CASE WHEN i = 'a' THEN s + 'y' + s ELSE s END",
        "replace(s, 'x', 'xx')",
        "reduce(t = '', j IN [1, 2, 3] | t + s)",
    ],
)
def test_what_may_double_ends_with_an_error(step: str) -> None:
    """In SQL it would fill the memory: texts of as many items as these double for each."""
    with graphdb.connect(threads=1) as db, pytest.raises(graphdb.MemoryLimitError, match="too long"):
        db.query(f"RETURN reduce(s = 'x', i IN $items | {step}) AS x", items=["a"] * 50)


def test_what_grows_by_its_items_is_folded_in_sql() -> None:
    with graphdb.connect(threads=1) as db:
        text = "UNWIND [['a', 'b'], ['c']] AS l RETURN reduce(s = '', i IN l | CASE WHEN s = '' THEN i ELSE s + ',' + i END) AS x"
        assert db.query(text).fetchall() == [("a,b",), ("c",)]
        assert "Python" not in str(db.query(f"EXPLAIN {text}"))
