"""Constants that are made of maps of arguments, in conditions: computed once, and looked up, with what Python says."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import graphdb
from graphdb.evaluate.compute import Computation
from tests.fuzz import scaled

VALUES = [None, 0, 1, 2, 3, 2.0, 2.5, "a", "b", True]


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        people = [{"i": i, "k": value, "n": i % 4} for i, value in enumerate(VALUES * 2)]
        database.query("UNWIND $rows AS r CREATE (:P {i: r.i, k: r.k, n: r.n})", rows=people)
        yield database


def _equal(one: Any, other: Any) -> bool | None:
    if one is None or other is None:
        return None
    return isinstance(one, str | bool) == isinstance(other, str | bool) and one == other


def _among(value: Any, items: list[Any]) -> bool | None:
    answers = [_equal(value, item) for item in items]
    return True if True in answers else None if None in answers else False


@pytest.mark.parametrize("seed", range(scaled(12)))
def test_lists_of_maps_are_asked_for_values(db: graphdb.Database, seed: int) -> None:
    """Nulls, missing keys, values of several types, short and long lists; as conditions and as values."""
    dice = random.Random(seed)
    pool = dice.choice([[0, 1, 2], [0, 1, None], ["a", "b"], [2.0, 2.5, 0.5], [2.0, 3], VALUES])
    rows = [{"k": dice.choice(pool), "n": dice.randrange(5)} for _ in range(dice.choice([0, 1, 3, 150]))]
    for row in rows:
        if None in pool and dice.random() < 0.2:
            del row["k"]
    said = {"least": dice.randrange(5), "keys": [row["n"] for row in rows], "0": None, "2": None}
    listed = [row.get("k") for row in rows]
    some = [row.get("k") for row in rows if row["n"] > said["least"]]
    conditions = {
        "a.k IN [r IN $rows | r.k]": lambda k, n: _among(k, listed),
        "a.k IN [r IN $rows WHERE r.n > $said.least | r.k]": lambda k, n: _among(k, some),
        "any(r IN $rows WHERE r.k = a.k)": lambda k, n: _among(k, listed),
        "none(r IN $rows WHERE a.k = r.k)": lambda k, n: {True: False, False: True, None: None}[_among(k, listed)],
        "all(r IN $rows WHERE a.k <> r.k)": lambda k, n: {True: False, False: True, None: None}[_among(k, listed)],
        "a.n IN $said.keys": lambda k, n: _among(n, said["keys"]),
        "toString(a.n) IN keys($said)": lambda k, n: str(n) in said,
        "a.n < $said.least": lambda k, n: n < said["least"],
        "a.n = size($rows)": lambda k, n: n == len(rows),
    }
    for text, answer in conditions.items():
        arguments = {name: value for name, value in (("rows", rows), ("said", said)) if f"${name}" in text}
        expected = [answer(k, i % 4) for i, k in enumerate(VALUES * 2)]
        holding = [(i,) for i, found in enumerate(expected) if found]
        query = f"MATCH (a:P) WHERE {text} RETURN a.i ORDER BY a.i"
        assert db.query(query, **arguments).fetchall() == holding, text
        query = f"MATCH (a:P) WITH a WHERE {text} RETURN a.i ORDER BY a.i"
        assert db.query(query, **arguments).fetchall() == holding, text
        query = f"MATCH (a:P) RETURN {text} ORDER BY a.i"
        assert [found for (found,) in db.query(query, **arguments).fetchall()] == expected, text
    unwound = db.query("UNWIND [r IN $rows | r.k] AS k RETURN k", rows=rows).fetchall()
    assert sorted(map(repr, unwound)) == sorted(repr((value,)) for value in listed)
    inline = db.query("MATCH (a:P {n: $said.least}) RETURN count(*)", said=said).fetchall()
    assert inline == [(sum(i % 4 == said["least"] for i in range(len(VALUES) * 2)),)]


@pytest.mark.parametrize(
    "condition",
    [
        "a.n IN [r IN $rows | r.n]",
        "a.n IN $said.keys",
        "a.n = $said.least",
        "none(r IN $rows WHERE r.n = a.n)",
        "a.n IN [r IN $rows WHERE r.n > $said.least | r.n + 1]",
    ],
)
def test_no_value_is_compared_in_python(db: graphdb.Database, condition: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each was computed for every value of the property, with all maps of the argument."""
    computed = []
    add = Computation.add
    monkeypatch.setattr(Computation, "add", lambda *given, **more: computed.append(given) or add(*given, **more))
    arguments = {"rows": [{"n": i} for i in range(3)], "said": {"least": 1, "keys": [1, 2]}}
    arguments = {name: value for name, value in arguments.items() if f"${name}" in condition}
    db.query(f"MATCH (a:P) WHERE {condition} RETURN count(*)", **arguments)
    assert not computed


@pytest.mark.parametrize(
    "rows", [[{"n": i, "k": value} for i, value in enumerate(VALUES)], [{"n": 1}, {"n": 3, "k": 2}], []]
)
def test_what_is_returned_of_maps(
    db: graphdb.Database, rows: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the same for all rows, whatever is asked of it, with nulls and values of several types."""
    computed = []
    add = Computation.add
    monkeypatch.setattr(Computation, "add", lambda *given, **more: computed.append(given) or add(*given, **more))
    numbers, keys = [row["n"] for row in rows], [row.get("k") for row in rows]
    for text, of in (
        ("[r IN $rows | r.n]", lambda n: numbers),
        ("size([r IN $rows WHERE r.n > 1 | r.k]) + a.n", lambda n: len([i for i in numbers if i > 1]) + n),
        ("[r IN $rows | r.k][a.n]", lambda n: keys[n] if n < len(keys) else None),
        ("a.n * reduce(s = 0, r IN $rows | s + r.n)", lambda n: n * sum(numbers)),
        ("any(r IN $rows WHERE r.n = 3) AND a.n > 1", lambda n: 3 in numbers and n > 1),
    ):
        expected = [(i, of(i % 4)) for i in range(len(VALUES) * 2)]
        assert repr(db.query(f"MATCH (a:P) RETURN a.i, {text} ORDER BY a.i", rows=rows).fetchall()) == repr(expected)
        assert not computed or not rows or (text.startswith("[") and len(rows) > 2)
    total = db.query("MATCH (a:P) RETURN a.n, sum([r IN $rows | r.n][a.n]) AS s", rows=rows).fetchall()
    assert dict(total) == {n: len(VALUES) // 2 * numbers[n] if n < len(numbers) else 0 for n in range(4)}
    assert db.query("RETURN [r IN $rows | r.n + 1] AS l", rows=rows).fetchall() == [([n + 1 for n in numbers],)]


def test_what_fails_does_so_only_where_it_is_needed(db: graphdb.Database) -> None:
    """Of no rows, nothing is computed; a list that is not there says nothing."""
    rows = [{"k": 1}, 7]
    query = "MATCH (a:P {i: -1}) WITH a.k AS k, a.i AS i WHERE k IN [r IN $rows | r.k] RETURN i"
    assert db.query(query, rows=rows).fetchall() == []
    with pytest.raises(graphdb.GraphDBError, match="an integer has no properties"):
        db.query("MATCH (a:P) WHERE a.k IN [r IN $rows | r.k] RETURN a.i", rows=rows).fetchall()
    query = "MATCH (a:P) WHERE a.n IN $said.keys RETURN count(*)"
    assert db.query(query, said={"keys": None}).fetchall() == [(0,)]
    assert db.query(query, said={}).fetchall() == [(0,)]
    # other values of the same types
    assert db.query(query, said={"keys": [1]}).fetchall() == db.query(query, said={"keys": [3]}).fetchall()
    assert db.query(query, said={"keys": [9]}).fetchall() == [(0,)]
