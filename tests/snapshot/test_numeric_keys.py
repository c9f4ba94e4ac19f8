"""Numbers of several types in one property: which are one for DISTINCT and grouping, as the data change."""

from __future__ import annotations

import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pytest

import graphdb

NUMBERS: list[object] = [
    0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1, 10**15, 3,
    0.0, 1.0, -1.0, 0.1, 2.5, 1e-7, 2.0**53, 2.0**53 + 2, 2.0**63, 1e15, 1e300, 123456.789, 3.0,
    Decimal("1.0"), Decimal("0.10"), Decimal("2.5"), Decimal("0.100000000000000006"), Decimal("0.0000001"),
    Decimal("9007199254740993"), Decimal("9007199254740992"), Decimal("123456.789"), Decimal("123456.7890000001"),
    Decimal("3"), Decimal("0"), Decimal("1000000000000000.0"), Decimal("1.000000000000000001"),
]  # fmt: skip
OTHERS = ["1", "1.0", True, False]


def same(value: object) -> object:
    """What equal numbers have in common: floats are exact where they are whole and large, else as they are written."""
    if isinstance(value, (bool, str)):
        return type(value).__name__, value
    if isinstance(value, float):
        return Fraction(value) if abs(value) >= 2**53 else Fraction(repr(value))
    assert isinstance(value, (int, Decimal))
    return Fraction(value)


def check(db: graphdb.Database, values: dict[int, object]) -> None:
    expected = Counter(map(same, values.values()))
    grouped = db.query("MATCH (a:V) RETURN a.x AS x, count(*) AS n").fetchall()
    assert {same(x): n for x, n in grouped} == expected
    assert len(grouped) == len(expected)
    distinct = [same(x) for (x,) in db.query("MATCH (a:V) RETURN DISTINCT a.x AS x").fetchall()]
    assert sorted(map(repr, distinct)) == sorted(map(repr, expected))
    pairs = {(same(x), i % 3) for i, x in values.items()}
    assert len(db.query("MATCH (a:V) WITH DISTINCT a.x AS x, a.i % 3 AS r RETURN x, r").fetchall()) == len(pairs)
    counted, items = db.query("MATCH (a:V) RETURN count(DISTINCT a.x), collect(DISTINCT a.x)").fetchall()[0]
    assert counted == len(items) == len(expected)


@pytest.mark.parametrize("seed", range(4))
def test_equal_numbers_of_several_types_are_one_as_single_vertices_change(seed: int) -> None:
    chance = random.Random(seed)
    numbers = NUMBERS if seed % 2 else [value for value in NUMBERS if isinstance(value, (float, Decimal))]
    with graphdb.connect(device="cpu") as db:
        values = {i: chance.choice(numbers) for i in range(60)}
        rows = [{"i": i, "x": value} for i, value in values.items()]
        db.query("UNWIND $rows AS row CREATE (a:V) SET a.i = row.i, a.x = row.x", rows=rows)
        check(db, values)
        for _ in range(6):
            before = dict(values)
            ending = chance.choice(["", "COMMIT", "ROLLBACK"])
            if ending:
                db.sql("BEGIN")
            for _ in range(chance.randint(1, 3)):
                i, value = chance.randrange(60), chance.choice(numbers + OTHERS * (seed > 1))
                db.query("MATCH (a:V {i: $i}) SET a.x = $x", i=i, x=value)
                values[i] = value
                if chance.random() < 0.5:
                    check(db, values)
            if ending:
                db.sql(ending)
            values = before if ending == "ROLLBACK" else values
            check(db, values)


def test_numbers_of_several_types_are_converted_once_not_by_each_query() -> None:
    with graphdb.connect(device="cpu") as db:
        db.query("CREATE (:V {x: 1.5}), (:V {x: $d}), (:V {x: 2})", d=Decimal("1.5"))
        for query in ("RETURN DISTINCT a.x", "RETURN a.x, count(*)", "RETURN count(DISTINCT a.x)"):
            assert "TRY_CAST" not in db.explain(f"MATCH (a:V) {query}")
