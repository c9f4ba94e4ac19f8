"""Vertices by a property that is a value of the rows are the same by the index of the property and over all values."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import graphdb
from graphdb.relational.projection.lookups import LOOKED_FOR
from graphdb.snapshot.key_index import KeyIndexes
from tests.fuzz import scaled

Keys = dict[int, tuple[int | None, str | None]]


@pytest.fixture
def graph() -> Iterator[tuple[graphdb.Database, Keys]]:
    """Vertices with numbers, of which each has a key and a name that others have, too, or none."""
    dice = random.Random(3)
    keys: Keys = {n: (dice.choice([None, *range(40)]), dice.choice([None, "a", "b", "", "Ω'"])) for n in range(120)}
    with graphdb.connect(device="cpu", threads=1) as database:
        rows = [{"n": n, "k": k, "s": s} for n, (k, s) in keys.items()]
        database.query("UNWIND $rows AS row CREATE (:V {n: row.n, k: row.k, s: row.s})", rows=rows)
        yield database, keys


def _asked(database: graphdb.Database, keys: Keys, dice: random.Random, most: int) -> None:
    field, name = dice.choice([(0, "k"), (1, "s")])
    known = [key[field] for key in keys.values()]
    wanted = [dice.choice([*known, None, -1 if name == "k" else "absent"]) for _ in range(dice.randint(1, most))]
    text = dice.choice(
        [
            f"UNWIND $rows AS row MATCH (v:V {{{name}: row.x}}) RETURN row.i, v.n",
            f"UNWIND $rows AS row WITH row.i AS i, row.x AS x MATCH (v:V) WHERE x = v.{name} RETURN i, v.n",
            f"UNWIND $rows AS row WITH row.i AS i, [row.x, row.x] AS x MATCH (v:V) WHERE v.{name} IN x RETURN i, v.n",
        ]
    )
    rows = [{"i": i, "x": x} for i, x in enumerate(wanted)]
    found = sorted(database.query(text, rows=rows).fetchall())
    assert found == sorted(
        (i, n) for i, x in enumerate(wanted) for n, key in keys.items() if x is not None and key[field] == x
    ), text


def test_by_the_index_or_not(graph: tuple[graphdb.Database, Keys], monkeypatch: pytest.MonkeyPatch) -> None:
    database, keys = graph
    dice, asked = random.Random(4), []
    find = KeyIndexes.find

    def spy(self: KeyIndexes, *arguments: object) -> object:
        asked.append(find(self, *arguments))  # type: ignore[arg-type]
        return asked[-1]

    monkeypatch.setattr(KeyIndexes, "find", spy)
    for _ in range(scaled(40)):
        _asked(database, keys, dice, 30)
    assert sum(found is not None for found in asked) > scaled(40) // 3
    for turn in range(scaled(20)):
        n = dice.randrange(120)
        keys[n] = (dice.randrange(40), f"name {turn}")
        database.query("MATCH (v:V {n: $n}) SET v.k = $k, v.s = $s", n=n, k=keys[n][0], s=keys[n][1])
        _asked(database, keys, dice, 5)
    del keys[7]
    database.query("MATCH (v:V {n: 7}) DELETE v")
    for _ in range(scaled(20)):
        _asked(database, keys, dice, 30)


def test_more_values_than_an_index_is_asked_for(graph: tuple[graphdb.Database, Keys]) -> None:
    database, keys = graph
    rows = [{"i": i} for i in range(4 * LOOKED_FOR)]
    text = "UNWIND $rows AS row MATCH (v:V {n: row.i}) RETURN row.i, v.n ORDER BY v.n"
    for _ in range(4):
        assert database.query(text, rows=rows).fetchall() == [(n, n) for n in keys]
    assert database.query(text, rows=rows[:3]).fetchall() == [(0, 0), (1, 1), (2, 2)]


def test_within_a_transaction(graph: tuple[graphdb.Database, Keys]) -> None:
    database, _ = graph
    text = "UNWIND [{x: 500}, {x: 3}] AS row MATCH (v:V {n: row.x}) RETURN v.n"
    for _ in range(4):
        assert database.query(text).fetchall() == [(3,)]
    database.sql("BEGIN")
    database.query("CREATE (:V {n: 500})")
    assert sorted(database.query(text).fetchall()) == [(3,), (500,)]
    database.sql("ROLLBACK")
    assert database.query(text).fetchall() == [(3,)]
