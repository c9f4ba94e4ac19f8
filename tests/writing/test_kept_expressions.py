"""Statements that run again with other arguments: what was compiled for the first run does as what is compiled anew."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.evaluate.expressions import Compiler
from tests.writing.test_found_by_keys import PEOPLE, STATEMENTS, graph

VALUES: list[Any] = [1, "x", None, [1, 2], True, 2.5, "", datetime.date(2020, 1, 2), 1 << 40, ["a", None], []]
LISTS: list[Any] = [
    [1, 2, 1],
    ["x", "y"],
    None,
    [],
    [1, "x", True, 2.5],
    [[1, 2], [3, 4]],
    [None, [2.5, "y"]],
    [["x", 7]],
]

CREATE = """CREATE (:A {i: $i, a: $a, items: [x IN $l | x], first: head([x IN $l WHERE x[0] = $c | x[1]]),
  at: $l[0], some: CASE WHEN $a IS NULL THEN 'none' ELSE $c END, both: [$i, $i + 1], missing: $a IS NULL})"""


def expected(i: int, a: Any, items: Any, c: Any) -> dict[str, Any]:
    """What such a vertex has, by Python."""
    listed = None if items is None else [*items]
    pairs = [x for x in listed or () if isinstance(x, list) and type(x[0]) is type(c) and x[0] == c]
    found = {
        "i": i,
        "a": a,
        "items": listed,
        "first": pairs[0][1] if pairs else None,
        "at": listed[0] if listed else None,
        "some": "none" if a is None else c,
        "both": [i, i + 1],
        "missing": a is None,
    }
    return {name: value for name, value in found.items() if value is not None}


def test_arguments_of_other_types() -> None:
    database = graphdb.connect()
    for i, a in enumerate(VALUES):
        items, c = LISTS[i % len(LISTS)], VALUES[(3 * i) % len(VALUES)]
        if any(not isinstance(x, list) and x is not None for x in items or ()):  # a number has no items
            with pytest.raises(graphdb.GraphDBError, match="has no items"):
                database.query(CREATE, i=i, a=a, l=items, c=c)
            items = [[3, 4], [1, "one"]]
        database.query(CREATE, i=i, a=a, l=items, c=c)
        ((found,),) = database.query("MATCH (n:A {i: $i}) RETURN properties(n)", i=i).fetchall()
        assert found == expected(i, a, items, c)


def test_nothing_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    database, compiled = graphdb.connect(), list[Any]()
    compile = Compiler.compile
    monkeypatch.setattr(Compiler, "compile", lambda self, node: compiled.append(node) or compile(self, node))
    counts = []
    for i in range(4):  # the first brings in names
        database.query("CREATE (a:A {i: $i}) SET a += {l: [x IN $l | x + 1], k: head($l)}", i=i, l=[i, 2 * i])
        counts.append(len(compiled))
        compiled.clear()
    assert counts[0]
    assert counts[2:] == [0, 0]
    rows = database.query("MATCH (a:A) RETURN a.i, a.l, a.k ORDER BY a.i").fetchall()
    assert rows == [(i, [i + 1, 2 * i + 1], i) for i in range(4)]


@pytest.mark.parametrize("seed", range(2))
def test_as_texts_that_are_new(seed: int) -> None:
    kept, fresh, draw = graphdb.connect(), graphdb.connect(), random.Random(seed)
    for database in (kept, fresh):
        database.query(PEOPLE)
    chosen, inside = draw.sample(STATEMENTS, 4), False
    for step in range(20):
        if draw.random() < 0.15:
            word = draw.choice(["COMMIT", "ROLLBACK"]) if inside else "BEGIN"
            inside = not inside
            kept.query(word), fresh.query(word)
            continue
        text = draw.choice(chosen)
        one, other = draw.randint(1, 9), draw.choice([draw.randint(1, 9), "p1", None, 2.0])
        values: dict[str, Any] = {
            "a": one,
            "b": other,
            "n": draw.choice([step, str(step), 0.5, [step], True]),
            "name": draw.choice(["p1", "p2", 3]),
            "ids": draw.choice([[one, 2], [one], [], [2, None, 2], ["p1"]]),
            "rows": [{"a": draw.randint(1, 9), "b": draw.randint(1, 9), "as": draw.choice([1, "x", None])}],
        }
        given = {name: value for name, value in values.items() if f"${name}" in text}
        outcomes = []
        for database, asked in ((kept, text), (fresh, f"{text} // {step}")):
            try:
                outcomes.append(str(database.query(asked, given).message))
            except graphdb.GraphDBError as error:
                outcomes.append(f"{type(error).__name__}: {error.message}")
        assert outcomes[0] == outcomes[1], (text, given)
        if inside and "failed" in outcomes[0]:
            kept.query("ROLLBACK"), fresh.query("ROLLBACK")
            inside = False
        if not inside or step % 5 == 0:
            assert graph(kept) == graph(fresh), (text, given)


def test_names_that_come_and_go() -> None:
    database, text = graphdb.connect(), "CREATE (a:{label} {{i: $i, k: $k}})-[:E {{w: $k}}]->(:B {{i: $i}})"
    one, other = text.format(label="One"), text.format(label="Other")
    database.query("BEGIN")
    database.query(one, i=1, k=1)
    database.query("ROLLBACK")
    database.query(other, i=2, k="two")  # its names get the ids that those of the other had
    database.query(one, i=3, k=3)
    database.query("MATCH (a:One) DETACH DELETE a")
    database.query(one, i=4, k=[4])
    database.query(other, i=5, k=None)
    rows = database.query(
        "MATCH (a)-[e:E]->(b:B) RETURN labels(a), a.i, a.k, e.w, b.i ORDER BY b.i",
    ).fetchall()
    assert rows == [(["Other"], 2, "two", "two", 2), (["One"], 4, [4], [4], 4), (["Other"], 5, None, None, 5)]
    assert database.query("MATCH (b:B) RETURN b.i ORDER BY b.i").fetchall() == [(2,), (3,), (4,), (5,)]


def test_two_connections(tmp_path: Path) -> None:
    path, made = tmp_path / "two.duckdb", list[Any]()
    text = "MERGE (k:Key {k: $k}) ON CREATE SET k.n = 1 ON MATCH SET k.n = k.n + 1 CREATE (k)-[:AT {i: $i}]->(:Item {i: $i})"
    with graphdb.connect(path) as one, graphdb.connect(path) as other:
        for i in range(8):
            key: Any = (1, "x")[i % 4 < 2]
            (one if i % 3 else other).query(text, k=key, i=i)
            made.append(key)
        for database in (one, other):
            rows = database.query("MATCH (k:Key) RETURN k.k, k.n, COUNT { (k)-[:AT]->(:Item) }").fetchall()
            assert sorted(rows, key=str) == sorted([(k, made.count(k), made.count(k)) for k in (1, "x")], key=str)
