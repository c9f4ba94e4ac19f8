"""A condition of WITH asks of what is projected, written out again or by its name, whatever WITH does to the rows."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import graphdb
from tests.fuzz import scaled
from tests.oracle.routes import bag, every_route, in_python

ROWS = [
    {"id": i, "name": name, "v": v, "w": w}
    for i, (name, v, w) in enumerate(
        [("a", 1, 0.5), ("b", 2, 1.5), ("a", 2, 0.5), (None, 3, None), ("c", None, 2.0), ("b", 2, -1.0), ("a", 1, 0.5)]
    )
]


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query("UNWIND $rows AS row CREATE (n:N) SET n = row", rows=ROWS)
        opened.query("MATCH (a:N), (b:N) WHERE a.id < b.id CREATE (a)-[:R]->(b)")
        yield opened


KEYS = [
    "n.name",
    "n.v",
    "n.v + 1",
    "n.v / 2",
    "n.v / 2.0",
    "size(n.name)",
    "toUpper(n.name)",
    "[n.v, n.name]",
    "n.name = 'a'",
    "n",
]
AGGREGATES = ["count(*)", "sum(n.v)", "count(DISTINCT n.name)", "max(n.w)", "collect(n.id)", "min(n.v) + 1"]
TESTS = [
    "{} IS NOT NULL",
    "{} IS NULL",
    "{} = {}",
    "NOT ({} <> {})",
    "{} IN [{}, null]",
    "coalesce({}, 1) = 1",
    "any(x IN [{}] WHERE x = {})",
]
VALUES = {
    "n": "n.v > 1",
    "n.v": "{} > 1",
    "n.v + 1": "{} > 2",
    "count(*)": "{} > 1",
    "sum(n.v)": "{} > 2",
    "n.name": "{} <> 'a'",
}


def _query(dice: random.Random) -> tuple[str, str]:
    """A query whose WITH has a condition on what it projects: written out again, and by the names it gives."""
    keys = dice.sample(KEYS, dice.randint(1, 3))
    totals = dice.sample(AGGREGATES, dice.randint(0, 2))
    distinct = "DISTINCT " if not totals or dice.random() < 0.3 else ""
    items = {item: f"c{i}" for i, item in enumerate([*keys, *totals])}
    conditions = []
    for item in dice.sample(list(items), dice.randint(1, len(items))):
        template = VALUES[item] if item in VALUES and dice.random() < 0.5 else dice.choice(TESTS)
        if template == "n.v > 1":
            conditions.append((template, f"{items['n']}.v > 1"))
        else:
            conditions.append((template.replace("{}", f"({item})"), template.replace("{}", items[item])))
    word = dice.choice([" AND ", " OR "])
    projected = ", ".join(f"{item} AS {name}" for item, name in items.items())
    ordered = " ORDER BY c0 SKIP 0" if dice.random() < 0.2 else ""
    head, tail = f"MATCH (n:N) WITH {distinct}{projected}{ordered} WHERE ", f" RETURN {', '.join(items.values())}"
    return tuple(head + word.join(each[i] for each in conditions) + tail for i in range(2))  # type: ignore[return-value]


def test_written_out_again_is_as_by_its_name(db: graphdb.Database) -> None:
    dice = random.Random(3)
    answered = 0
    for _ in range(scaled(50)):
        written, named = _query(dice)
        expected = bag(in_python(db, named))
        assert bag(db.query(named).fetchall()) == expected, named
        assert bag(db.query(written).fetchall()) == expected, written
        assert bag(in_python(db, written)) == expected, written
        answered += bool(expected)
    assert answered > scaled(30)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("MATCH (a:N) WITH DISTINCT a.name AS name WHERE a.name = 'a' RETURN name", [("a",)]),
        (
            "MATCH (a:N) WITH a.name AS name, count(*) AS c WHERE a.name = 'a' AND count(*) > 1 RETURN name, c",
            [("a", 3)],
        ),
        ("MATCH (a:N) WITH DISTINCT a AS b WHERE a.id = 1 RETURN b.v AS v", [(2,)]),
        # A name is what WITH makes of it.
        (
            "MATCH (a:N), (b:N) WITH DISTINCT a AS b, b AS a WHERE a.id = 1 AND b.id = 2 RETURN a.id AS a, b.id AS b",
            [(1, 2)],
        ),
        ("MATCH (a:N) WITH DISTINCT a.id AS id WHERE any(a IN [{id: 2}] WHERE a.id = id) RETURN id", [(2,)]),
        ("MATCH (a:N) WITH a.id AS id WHERE a.id = 3 AND a.v = 3 RETURN id", [(3,)]),
    ],
)
def test_names_and_expressions(db: graphdb.Database, text: str, rows: list[tuple[object, ...]]) -> None:
    expected = bag(rows)
    assert every_route(db, text) == dict.fromkeys(("default", "in Python", "cypher()", "table"), expected)


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (a:N) WITH DISTINCT a.name AS name WHERE a.v = 1 RETURN name",
        "MATCH (a:N) WITH a.name AS name, count(*) AS c WHERE count(a.v) > 1 RETURN name",
        "MATCH (a:N) WITH DISTINCT a.v / 2 AS half WHERE a.v / 2.0 > 1 RETURN half",
        "MATCH (a:N) WITH DISTINCT a.id AS id WHERE any(id IN [7] WHERE a.id = 1) RETURN id",
        "MATCH (a:N) RETURN DISTINCT a.v / 2 AS half ORDER BY a.v / 2.0",
    ],
)
def test_what_is_not_projected_is_no_more(db: graphdb.Database, text: str) -> None:
    with pytest.raises((graphdb.BindError, graphdb.ParseError)):
        db.query(text)
