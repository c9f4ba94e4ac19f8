"""A pattern as a value is whether it has a match: wherever a boolean may stand, by every route."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import graphdb
from tests.fuzz import scaled
from tests.oracle.routes import bag, every_route, in_python

EDGES = {(0, "R", 1), (1, "S", 2), (2, "R", 0), (3, "R", 3), (1, "R", 3), (4, "S", 1)}
VERTICES = range(6)


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query("UNWIND range(0, 5) AS i CREATE (:N {id: i})")
        for start, label, end in sorted(EDGES):
            opened.query(f"MATCH (a {{id: {start}}}), (b {{id: {end}}}) CREATE (a)-[:{label}]->(b)")
        yield opened


def _edge(dice: random.Random) -> tuple[str, set[str], int]:
    """An edge as it is written, the labels it admits, and its direction: 1, -1, or 0 for both."""
    labels = dice.choice([{"R"}, {"S"}, {"R", "S"}])
    inside = "" if len(labels) > 1 and dice.random() < 0.5 else ":" + "|".join(sorted(labels))
    return dice.choice([(f"-[{inside}]->", labels, 1), (f"<-[{inside}]-", labels, -1), (f"-[{inside}]-", labels, 0)])


def _steps(labels: set[str], direction: int) -> set[tuple[int, int]]:
    found = {(a, b) for a, label, b in EDGES if label in labels and direction >= 0}
    return found | {(b, a) for a, label, b in EDGES if label in labels and direction <= 0}


def _pattern(dice: random.Random) -> tuple[str, dict[tuple[int, int], bool]]:
    """A pattern around ``a`` and perhaps ``b``, and whether it matches for each pair of them."""
    (first, *one), last = _edge(dice), dice.choice(["()", "(b)", "(:N)", "({id: 3})"])
    ends = _steps(*one)  # type: ignore[arg-type]
    goal = {"(b)": None, "({id: 3})": 3}.get(last, -1)
    truth = {
        (a, b): any(x == a and (y == b if goal is None else goal in (-1, y)) for x, y in ends)
        for a in VERTICES
        for b in VERTICES
    }
    return f"(a){first}{last}", truth


def _value(pattern: str, truth: bool, dice: random.Random) -> tuple[str, object]:
    """An expression of the pattern as a value, and what it is."""
    return dice.choice(
        [
            (pattern, truth),
            (f"({pattern}) IS NULL", False),
            (f"({pattern}) IS NOT NULL", True),
            (f"({pattern}) = true", truth),
            (f"NOT {pattern}", not truth),
            (f"[{pattern}, false]", [truth, False]),
            (f"CASE WHEN {pattern} THEN 1 ELSE 2 END", 1 if truth else 2),
            (f"CASE {pattern} WHEN true THEN 'yes' ELSE 'no' END", "yes" if truth else "no"),
            (f"coalesce({pattern}, null)", truth),
            (f"toString({pattern})", str(truth).lower()),
            (f"{{is: {pattern}}}", {"is": truth}),
            (f"({pattern}) IN [true]", truth),
        ]
    )


def test_everywhere(db: graphdb.Database) -> None:
    dice = random.Random(5)
    for _ in range(scaled(40)):
        pattern, truth = _pattern(dice)
        seed = dice.random()
        rows = [(a, b, _value(pattern, truth[a, b], random.Random(seed))[1]) for a in VERTICES for b in VERTICES]
        value = _value(pattern, True, random.Random(seed))[0]
        text = dice.choice(
            [
                f"MATCH (a:N), (b:N) RETURN a.id AS i, b.id AS j, {value} AS v",
                f"MATCH (a:N), (b:N) WITH a, b, {value} AS v RETURN a.id AS i, b.id AS j, v",
                f"MATCH (a:N), (b:N) WITH a.id AS i, b.id AS j, {value} AS v, count(*) AS c RETURN i, j, v",
                f"MATCH (a:N), (b:N) UNWIND [{value}] AS v RETURN a.id AS i, b.id AS j, v",
            ]
        )
        expected = bag(rows)
        assert bag(db.query(text).fetchall()) == expected, text
        assert bag(in_python(db, text)) == expected, text


def test_to_keep_and_to_sort_by(db: graphdb.Database) -> None:
    keep = "MATCH (a:N), (b:N) WITH a, b, (a)-[:R]->(b) AS keep WHERE keep RETURN a.id AS i, b.id AS j"
    for route, found in every_route(db, keep).items():
        assert found == bag([(a, b) for a, label, b in EDGES if label == "R"]), route
    count = "MATCH (a:N) RETURN (a)-[:S]->() AS is, count(*) AS c ORDER BY is"
    assert db.query(count).fetchall() == in_python(db, count) == [(False, 4), (True, 2)]
    ordered = "MATCH (a:N) RETURN a.id AS i ORDER BY (a)-[:S]->(), a.id"
    assert db.query(ordered).fetchall() == in_python(db, ordered) == [(0,), (2,), (3,), (5,), (1,), (4,)]


def test_to_write() -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("CREATE (a:N {id: 0})-[:R]->(:N {id: 1})")
        db.query("MATCH (a:N) SET a.starts = (a)-->() CREATE (:Copy {of: a.id, ends: (a)<--()})")
        assert sorted(db.query("MATCH (a:N) RETURN a.id, a.starts").fetchall()) == [(0, True), (1, False)]
        assert sorted(db.query("MATCH (a:Copy) RETURN a.of, a.ends").fetchall()) == [(0, False), (1, True)]


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (a) RETURN (a)-[]->()",  # as in openCypher's scenarios
        "MATCH (a) SET a.x = head(nodes(head((a)-[:R]->()))).id",
        "MATCH (a) RETURN size((a)-->()) AS n",
        "MATCH (a) RETURN (a)-[r]->() AS x",
        "MATCH (a) RETURN (a)-->() + 1 AS x",
    ],
)
def test_its_paths_are_no_value(db: graphdb.Database, text: str) -> None:
    with pytest.raises((graphdb.ParseError, graphdb.BindError, graphdb.TypeMismatchError)):
        db.query(text)
