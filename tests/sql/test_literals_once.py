"""Literals of several types, compared as vertices: SQL writes the value of each of them once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import graphdb

VALUES = [1, 1.0, 2, 2.5, "a", "1", True, None]


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu") as database:
        rows = [{"i": i, "v": value} for i, value in enumerate(VALUES) if value is not None]
        database.query("UNWIND $rows AS r CREATE (:P {i: r.i, v: r.v})", rows=rows)
        yield database


@pytest.mark.parametrize("operator", ["=", "<>", "<", ">="])
def test_as_python_compares_them(db: graphdb.Database, operator: str) -> None:
    def holds(left: object, right: object) -> bool:
        kinds = [str if isinstance(each, str) else bool if isinstance(each, bool) else float for each in (left, right)]
        if kinds[0] is not kinds[1]:
            return operator == "<>"
        compared = {"=": left == right, "<>": left != right}
        if operator in compared:
            return compared[operator]
        return left < right if operator == "<" else left >= right  # type: ignore[operator]

    text = f"MATCH (a:P)-[:v]->(x), (b:P)-[:v]->(y) WHERE x {operator} y RETURN a.i, b.i"
    expected = [
        (i, j)
        for i, left in enumerate(VALUES)
        for j, right in enumerate(VALUES)
        if i != j and left is not None and right is not None and holds(left, right)
    ]
    found = db.query(text).fetchall()
    assert sorted(found) == expected
    plan = "\n".join(line for (line,) in db.query("EXPLAIN " + text).fetchall())
    assert plan.count("union_value(string := ") == 2
