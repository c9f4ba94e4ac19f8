"""Vertices by a property that is a value of the rows are the same by the index of the property and over all values."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

import graphdb
from graphdb.common.duckdb.connection import Connection
from graphdb.dispatch.queries import Queries
from graphdb.relational.projection.lookups import LOOKED_FOR
from graphdb.relational.running import materialized
from graphdb.snapshot.key_index import KeyIndexes
from tests.fuzz import scaled

Keys = dict[int, tuple[int | None, str | None]]


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        yield database


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


def test_values_in_maps_and_lists_of_rows_take_no_statement(
    graph: tuple[graphdb.Database, Keys], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key of maps, some of which are null, and lists of vertices, some of which are null or empty."""
    database, keys = graph
    maps = (
        "UNWIND $rows AS row WITH row.i AS i, CASE WHEN row.i % 4 <> 1 THEN {x: row.x, y: row.i} END AS m "
        "MATCH (v:V {n: m.x}) RETURN i, m.y, v.n"
    )
    lists = (
        "MATCH (a:V) WHERE a.k IS NOT NULL WITH a.k AS k, collect(a) AS l WITH k, CASE WHEN k % 4 <> 1 THEN l[1..] END AS l "
        "MATCH (v:V) WHERE v IN l RETURN k, v.n"
    )
    rows = [{"i": i, "x": x} for i, x in enumerate([3, None, 5, 7, 500, 3, None, 119, 2, 4])]
    asked: list[str] = []
    for name in ("rows", "columns"):
        ask = getattr(Connection, name)
        monkeypatch.setattr(Connection, name, lambda self, sql, *a, ask=ask: asked.append(sql) or ask(self, sql, *a))
    found = sorted(database.query(maps, rows=rows).fetchall())
    wanted = [(i, i, x) for i, x in ((r["i"], r["x"]) for r in rows) if i % 4 != 1 and x in keys]
    assert found == wanted
    of_key: dict[int, list[int]] = {}
    for n, (k, _) in keys.items():
        of_key.setdefault(-1 if k is None else k, []).append(n)
    found = sorted(database.query(lists).fetchall())
    assert all(k % 4 != 1 and n in of_key[k] for k, n in found)
    assert {k: sum(k == key for key, _ in found) for k in of_key} == {
        k: len(ns) - 1 if k >= 0 and k % 4 != 1 else 0 for k, ns in of_key.items()
    }
    assert not [sql for sql in asked if "r.value" in sql]
    assert sorted(database.query(maps.replace("m.x}", "m.x + 0}"), rows=rows).fetchall()) == wanted
    assert not [sql for sql in asked if "r.value" in sql], "what is computed is a column"
    assert sorted(database.query(maps.replace("m.x}", "[m.x][0]}"), rows=rows).fetchall()) == wanted
    assert not [sql for sql in asked if "r.value" in sql], "so is an item of a list"


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


CONSTANTS: list[tuple[str, object]] = [
    ("toInteger('5')", 5), ("$x + 1", 4), ("CASE WHEN $x = -1 THEN $y ELSE $x END", 3), ("coalesce($z, 7)", 7), ("3.0", 3),
    ("$x / 2.0", None), ("abs(-9)", 9), ("size([1, 2])", 2), ("head([$y, 1])", 11), ("$z", None), ("$z + 1", None),
    ("toString($x)", "3"), ("$s + ''", "a"), ("toLower('B')", "b"), ("trim('  ')", ""), ("left($s, 1)", "a"), ("$m.k", 6),
]  # fmt: skip
LISTS: list[tuple[str, list[object]]] = [
    ("[i IN range(1, 5) WHERE i % 2 = 1 | i * $x]", [3, 9, 15]), ("[pair IN $pairs | pair[0]]", [1, 4]), ("range(2, $x)", [2, 3]),
    ("[$x, $y, null]", [3, 11]), ("$some + [9]", [8, 9]), ("[$s, toUpper('b')]", ["a", "B"]), ("[]", []), ("split('a,b', ',')", ["a", "b"]),
    ("[3.0, '3', 4]", [3, 4, "3"]), ("tail([1, 2, 3])", [2, 3]), ("$pairs[0]", [1, 2]),
]  # fmt: skip
GIVEN = {"x": 3, "y": 11, "z": None, "s": "a", "m": {"k": 6}, "pairs": [[1, 2], [4, 5]], "some": [8]}


def _given(query: str) -> dict[str, object]:
    return {name: value for name, value in GIVEN.items() if re.search(rf"\${name}\b", query)}


@pytest.mark.parametrize(("field", "name"), [(0, "k"), (1, "s")])
def test_keys_that_constants_compute(graph: tuple[graphdb.Database, Keys], field: int, name: str) -> None:
    database, keys = graph
    for _ in range(4):  # values are passed over, then sorted, then found
        for text, value in CONSTANTS:
            wanted = sorted(n for n, key in keys.items() if value is not None and key[field] == value)
            for query in (
                f"MATCH (v:V {{{name}: {text}}}) RETURN v.n",
                f"MATCH (v:V) WHERE {text} = v.{name} RETURN v.n",
                f"UNWIND [1] AS one OPTIONAL MATCH (v:V {{{name}: {text}}}) WITH v WHERE v IS NOT NULL RETURN v.n",
            ):
                given = _given(query)
                assert sorted(n for (n,) in database.query(query, given).fetchall()) == wanted, query
        for text, values in LISTS:
            query = f"MATCH (v:V) WHERE v.{name} IN {text} RETURN v.n"
            given = _given(query)
            wanted = sorted(n for n, key in keys.items() if key[field] is not None and key[field] in values)
            assert sorted(n for (n,) in database.query(query, given).fetchall()) == wanted, query


def test_a_constant_is_looked_up_by_the_index(
    graph: tuple[graphdb.Database, Keys], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, _ = graph
    asked: list[object] = []
    find = KeyIndexes.find

    def spy(self: KeyIndexes, label: object, values: object) -> object:
        asked.append(values)
        return find(self, label, values)  # type: ignore[arg-type]

    monkeypatch.setattr(KeyIndexes, "find", spy)
    for x in range(5):
        text = "MATCH (v:V {n: CASE WHEN $x = -1 THEN 0 ELSE $x END}) RETURN v.n"
        assert database.query(text, x=x).fetchall() == [(x,)]
        assert sorted(
            database.query("MATCH (v:V) WHERE v.n IN [i IN $some | i[0]] RETURN v.n", some=[[x], [x + 1]]).fetchall()
        ) == [(x,), (x + 1,)]
    assert asked == [values for x in range(5) for values in ([x], [x, x + 1])]


def test_a_constant_that_fails(graph: tuple[graphdb.Database, Keys]) -> None:
    database, _ = graph
    for _ in range(4):
        with pytest.raises(graphdb.GraphDBError):
            database.query("MATCH (v:V {n: 1 / $zero}) RETURN v.n", zero=0)
        with pytest.raises(graphdb.GraphDBError):
            database.query("MATCH (v:V {n: $absent + 1}) RETURN v.n")


def test_short_lists_are_columns_and_their_statements_are_prepared_once(
    db: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of whatever values: those of a list that no plan is for are prepared anew."""
    db.query("UNWIND range(1, 20) AS i CREATE (:V {id: i, name: 'n' + i, w: i / 2.0, even: i % 2 = 0})")
    rows = [{"id": i, "name": f"n{i}", "w": i / 2.0, "even": i % 2 == 0} for i in range(1, 21)]
    prepared: list[str] = []
    anew = Queries.prepare_anew

    def counted(self: Queries, run: Any, query: Any, text: str, arguments: Any) -> Any:
        prepared.append(text)
        return anew(self, run, query, text, arguments)

    monkeypatch.setattr(Queries, "prepare_anew", counted)
    alike = {
        "id": [[3, 4, 4, 99], [7], [0, -1], [2**62, 5]],
        "name": [["n3", "n30", ""], ["n1"], ["é"]],
        "w": [[1.5, 0.1], [2.0]],
        "even": [[True], [False, True]],
    }
    others: list[list[object]] = [[], [None], [1, None, 2], [1, "n1"], [1, 2.0, True], [2**63 - 1, 2, None]]
    for key in alike:
        text = f"UNWIND $items AS x MATCH (v:V {{{key}: x}}) RETURN v.id, x"
        for items in [*alike[key], *others]:
            found = db.query(text, items=items).fetchall()
            expected = [
                (row["id"], item)
                for item in items
                for row in rows
                if row[key] == item and isinstance(row[key], bool) == isinstance(item, bool)
            ]
            assert sorted(map(repr, found)) == sorted(map(repr, expected)), (key, items)
            if items == alike[key][-1]:
                assert prepared.count(text) == 1


def test_an_optional_match_at_the_begin_needs_no_sql(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.query("UNWIND range(1, 9) AS i CREATE (:V {id: i})")
    text = "OPTIONAL MATCH (v:V {id: $id}) RETURN v.id"
    for id in range(4):
        assert db.query(text, id=id).fetchall() == [(id or None,)]
    monkeypatch.setattr(materialized, "small_rows", lambda *_: pytest.fail("SQL was run"))
    for id in (5, 10, 6):
        assert db.query(text, id=id).fetchall() == [(id if id < 10 else None,)]
