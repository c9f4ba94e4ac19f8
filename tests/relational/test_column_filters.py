"""Conditions that property columns decide: rows against the same conditions in Python, over random vertices.

Properties that all have, and that few have, far apart; whole numbers and points in time; labels
and conditions beside them, and other candidates near by.  ``GRAPHDB_FUZZ`` multiplies the number of examples.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest

import graphdb
from graphdb.relational.filtering import candidates
from graphdb.snapshot.properties import Properties
from tests.fuzz import scaled

COUNT = 400
START = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
Item = dict[str, Any]


def _item(number: int, dice: random.Random) -> Item:
    offset = dt.timezone(dt.timedelta(hours=dice.choice([0, 0, 2, -5])))
    return {
        "id": number,
        "n": dice.choice([None, *range(-3, 30)]),
        "rare": dice.randrange(5) if number % 97 == 3 else None,
        "at": None if dice.random() < 0.2 else (START + dt.timedelta(hours=dice.randrange(50))).astimezone(offset),
        "big": dice.choice([-(1 << 62), 1 << 62, 0, None]),
        "text": dice.choice([None, "a", "b"]),
        "label": dice.choice(["A", "B"]),
        "next": dice.randrange(COUNT),
    }


@pytest.fixture(scope="module")
def loaded() -> Iterator[tuple[graphdb.Database, list[Item]]]:
    dice = random.Random(7)
    items = [_item(number, dice) for number in range(COUNT)]
    with graphdb.connect(device="cpu", threads=1) as database:
        keys = ["id", "n", "rare", "at", "big", "text", "label", "next"]
        rows = [
            {key: item[key].isoformat() if key == "at" and item[key] else item[key] for key in keys} for item in items
        ]
        database.query(
            "UNWIND $rows AS r CREATE (v:A {id: r.id, n: r.n, rare: r.rare, at: datetime(r.at), big: r.big, text: r.text})",
            {"rows": [row for row in rows if row["label"] == "A"]},
        )
        database.query(
            "UNWIND $rows AS r CREATE (v:B {id: r.id, n: r.n, rare: r.rare, at: datetime(r.at), big: r.big, text: r.text})",
            {"rows": [row for row in rows if row["label"] == "B"]},
        )
        pairs = [{"id": item["id"], "next": item["next"]} for item in items]
        database.query("UNWIND $p AS p MATCH (a {id: p.id}), (b {id: p.next}) CREATE (a)-[:K]->(b)", {"p": pairs})
        yield database, items


_OPERATORS = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
}


def _condition(dice: random.Random, given: dict[str, Any], subject: str) -> tuple[str, Any]:
    """A condition in Cypher, and what it is of an item."""
    key = dice.choice(["n", "n", "rare", "at", "at", "big", "text"])
    if key == "text" or dice.random() < 0.15:
        return f"{subject}.{key} IS NOT NULL", lambda item: item[key] is not None

    def constant() -> tuple[str, Any]:
        name = f"p{len(given)}"
        match key:
            case "at":
                value: Any = START + dt.timedelta(hours=dice.randrange(50))
                value = value.astimezone(dt.timezone(dt.timedelta(hours=dice.choice([0, 3]))))
            case "big":
                value = dice.choice([0, 1 << 62, (1 << 63) - 1, 1.5])
            case _:
                value = dice.choice([dice.randrange(-3, 30), dice.randrange(30) + 0.5, True, None])
        if key != "at" and isinstance(value, int) and dice.random() < 0.5:
            return (str(value).lower(), value)
        given[name] = value
        return f"${name}", value

    def holds(left: Any, operator: str, right: Any) -> bool:
        if left is None or right is None:
            return False
        if isinstance(left, bool) != isinstance(right, bool):  # what cannot be compared is unknown, or not equal
            return operator == "<>"
        return bool(_OPERATORS[operator](left, right))

    one, (text, value) = dice.choice(list(_OPERATORS)), constant()
    if dice.random() < 0.3:
        two, (later, last) = dice.choice(list(_OPERATORS)), constant()
        return (
            f"{text} {one} {subject}.{key} {two} {later}",
            lambda item: holds(value, one, item[key]) and holds(item[key], two, last),
        )
    if dice.random() < 0.3:
        return f"{text} {one} {subject}.{key}", lambda item: holds(value, one, item[key])
    return f"{subject}.{key} {one} {text}", lambda item: holds(item[key], one, value)


@pytest.mark.parametrize("seed", range(scaled(80)))
def test_conditions(loaded: tuple[graphdb.Database, list[Item]], seed: int) -> None:
    database, items = loaded
    dice = random.Random(seed)
    given: dict[str, Any] = {}
    found = [_condition(dice, given, "v") for _ in range(dice.choice([1, 2, 2, 3]))]
    label = dice.choice(["", ":A", ":B"])
    where = " AND ".join(text for text, _ in found)
    wanted = [
        item for item in items if (not label or item["label"] == label[1:]) and all(holds(item) for _, holds in found)
    ]
    query = f"MATCH (v{label}) WHERE {where} RETURN v.id AS id ORDER BY id"
    assert [id for (id,) in database.query(query, given)] == [item["id"] for item in wanted], query
    start = dice.randrange(COUNT)
    near = f"MATCH (a {{id: {start}}})-[:K]->(v{label}) WHERE {where} RETURN v.id"
    reached = items[start]["next"]
    with mock.patch.object(candidates, "_BROAD", 10):
        assert database.query(near, given).fetchall() == [(reached,)] * (items[reached] in wanted), near


@pytest.mark.parametrize("seed", range(scaled(20)))
def test_conditions_of_columns_that_are_too_large(
    loaded: tuple[graphdb.Database, list[Item]], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Properties, "array", lambda *_: None)
    test_conditions(loaded, 1000 + seed)


def test_writes_are_seen() -> None:
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("UNWIND range(1, 50) AS i CREATE (:A {id: i, n: i % 5, m: i})")
        query = "MATCH (v:A) WHERE v.n >= 3 AND v.m IS NOT NULL AND 10 < v.m <= 20 RETURN count(*)"
        assert database.query(query).fetchall() == [(4,)]
        database.query("MATCH (v:A {id: 13}) SET v.m = null")
        assert database.query(query).fetchall() == [(3,)]
        database.query("MATCH (v:A {id: 11}) SET v.n = 4")
        assert database.query(query).fetchall() == [(4,)]
        database.query("CREATE (:A {id: 60, n: 3, m: 15})")
        assert database.query(query).fetchall() == [(5,)]
        database.query("MATCH (v:A {id: 60}) SET v.m = 2.5")
        assert database.query(query).fetchall() == [(4,)]


@pytest.mark.parametrize("seed", range(scaled(30)))
def test_conditions_of_edges(loaded: tuple[graphdb.Database, list[Item]], edges: graphdb.Database, seed: int) -> None:
    _, items = loaded
    dice = random.Random(2000 + seed)
    given: dict[str, Any] = {}
    found = [_condition(dice, given, "e") for _ in range(dice.choice([1, 2, 2]))]
    wanted = [item["id"] for item in items if all(holds(item) for _, holds in found)]
    where = " AND ".join(text for text, _ in found)
    query = f"MATCH (a)-[e:K]->(b) WHERE {where} RETURN a.id AS id ORDER BY id"
    assert [id for (id,) in edges.query(query, given)] == wanted, query
    both = f"MATCH (a)-[e:K|L]->(b) WHERE {where} RETURN count(*)"
    assert edges.query(both, given).fetchall() == [(len(wanted),)], both


@pytest.fixture(scope="module")
def edges(loaded: tuple[graphdb.Database, list[Item]]) -> Iterator[graphdb.Database]:
    """Each item as an edge from the vertex of its number to the next one, and edges without properties."""
    _, items = loaded
    keys = ["n", "rare", "big", "text"]
    rows = [
        {"id": item["id"], "at": item["at"] and item["at"].isoformat(), **{key: item[key] for key in keys}}
        for item in items
    ]
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("UNWIND range(0, $count) AS i CREATE (:A {id: i})", {"count": COUNT})
        database.query(
            "UNWIND $rows AS r MATCH (a {id: r.id}), (b {id: r.id + 1}) CREATE (a)-[:L]->(b), "
            "(a)-[:K {n: r.n, rare: r.rare, at: datetime(r.at), big: r.big, text: r.text}]->(b)",
            {"rows": rows},
        )
        yield database


@pytest.mark.parametrize("kind", ["dense", "sparse", "distinct"])
def test_conditions_on_texts_see_each_value_once(kind: str) -> None:
    """Repeated texts, of vertices that lie together or far apart, and texts that are all others, before and after changes."""
    step = {"dense": 1, "sparse": 7, "distinct": 1}[kind]
    texts = {
        i: None if i % step or i % 5 == 4 else f"t{i}" if kind == "distinct" else ["a", "ab", "", "Ω", "ba"][i * i % 5]
        for i in range(300)
    }
    conditions: dict[str, Callable[[str], bool]] = {
        "n.t CONTAINS 'b'": lambda t: "b" in t,
        "n.t STARTS WITH $a AND n.t <> 'ab'": lambda t: t.startswith("a") and t != "ab",
        "size(n.t) = 0 OR n.t ENDS WITH '7'": lambda t: not t or t.endswith("7"),
        "NOT n.t CONTAINS 'a'": lambda t: "a" not in t,
        "n.t =~ '.*[Ω3].*'": lambda t: "Ω" in t or "3" in t,
    }
    with graphdb.connect() as db:
        db.query(
            "UNWIND $rows AS row CREATE (:N {i: row.i, t: row.t})", rows=[{"i": i, "t": t} for i, t in texts.items()]
        )

        def compare() -> None:
            for condition, holds in conditions.items():
                given = {"a": "a"} if "$a" in condition else {}
                found = db.query(f"MATCH (n:N) WHERE {condition} RETURN n.i AS i ORDER BY i", given).fetchall()
                assert found == [(i,) for i, t in texts.items() if t is not None and holds(t)], condition

        compare()
        db.query("MATCH (n:N {i: 0}) SET n.t = 'bab7'")
        db.query("MATCH (n:N {i: 35}) REMOVE n.t")
        texts[0], texts[35] = "bab7", None
        compare()


def test_durations_of_small_integers_are_tested_before_the_match() -> None:
    """They cannot fail, as a map that may name no month can."""
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query(
            "UNWIND range(1, 40) AS i CREATE (:P {i: i, at: localdatetime('2024-01-01T00:00:00') + duration({days: i})})"
        )
        text = "MATCH (p:P) WHERE p.at > localdatetime('2024-01-20T00:00:00') - duration({days: 3, hours: 1}) RETURN p.i ORDER BY p.i"
        assert database.query(text).fetchall() == [(i,) for i in range(16, 41)]
        (scan,) = (line for (line,) in database.query("EXPLAIN " + text).fetchall() if "scan" in line)
        assert "p.at > localdatetime" in scan
        text = "MATCH (p:P) WHERE p.at + duration({days: 2}) >= localdatetime('2024-02-10T00:00:00') RETURN p.i ORDER BY p.i"
        assert database.query(text).fetchall() == [(i,) for i in range(38, 41)]
        text = "MATCH (p:P) WHERE p.at > localdatetime({year: 2024, month: 13 - p.i / 40 * 12}) RETURN p.i"
        with pytest.raises(graphdb.GraphDBError):
            database.query(text).fetchall()
