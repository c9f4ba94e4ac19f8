"""Ranges: rows in blocks, whatever their bounds and steps, and no longer lists than there is room for."""

from __future__ import annotations

import random

import pytest

import graphdb
from graphdb.errors import ExecutionError, MemoryLimitError, QueryTimeout

FAR = 2**63 - 1


@pytest.fixture(scope="module")
def db() -> graphdb.Database:
    return graphdb.connect(device="cpu", memory_limit="1GB")


def expected(first: int, last: int, step: int) -> list[int]:
    return list(range(first, last + (1 if step > 0 else -1), step))


def test_rows_of_ranges_are_those_of_python(db: graphdb.Database) -> None:
    chance = random.Random(7)
    cases = [(1, 3, 1), (1, 0, 1), (5, 1, -2), (0, 1023, 1), (0, 1024, 1), (0, 4096, 2), (1, 5000, 1), (5000, 1, -1)]
    cases += [(FAR - 3000, FAR, 1), (-FAR, -FAR - 1, -1), (-FAR, FAR, 2**51), (FAR, -FAR, -(2**60)), (-FAR, FAR, FAR)]
    for _ in range(40):
        step = chance.choice([1, -1, 3, -7, 1000, 2**40])
        first = chance.randint(-100, 100)
        cases.append((first, first + chance.randint(-2, 5000) * step, step))
    for first, last, step in cases:
        given = {"first": first, "last": last, "step": step}
        found = db.query("UNWIND range($first, $last, $step) AS n RETURN n", given).fetchall()
        assert [n for (n,) in found] == expected(first, last, step), given
        maps = {"rows": [[first, last, step]]}
        found = db.query("UNWIND $rows AS r UNWIND range(r[0], r[1], r[2]) AS n RETURN n", maps).fetchall()
        assert [n for (n,) in found] == expected(first, last, step), given


def test_rows_keep_what_is_beside_them_and_their_order(db: graphdb.Database) -> None:
    found = db.query("UNWIND range(1, 3000) AS a UNWIND range(a, 3000, 1000) AS b RETURN a, b, a * b AS c").fetchall()
    assert found == [(a, b, a * b) for a in range(1, 3001) for b in range(a, 3001, 1000)]


@pytest.mark.parametrize("last", [10**9, 10**12, FAR])
@pytest.mark.parametrize(
    "query",
    [
        "UNWIND range(1, {}) AS n RETURN count(*)",
        "UNWIND range(1, $last) AS n RETURN count(*)",
        "UNWIND [{}] AS last UNWIND range(1, last) AS n RETURN count(*)",
        "RETURN size(range(1, {}))",
        "RETURN reduce(s = 0, n IN range(1, {}) | s + n)",
        "RETURN size([n IN range(1, {}) WHERE n % 2 = 0 | n])",
    ],
)
def test_what_is_too_long_is_told_before_it_is_made(db: graphdb.Database, query: str, last: int) -> None:
    given = {"last": last} if "$last" in query else {}
    with pytest.raises(MemoryLimitError, match="range of more than 10,000,000 items"):
        db.query(query.format(last), given, timeout=5)


@pytest.mark.parametrize("bounds", ["1, 5, 0", "null, 5", "1, null", "1, 5, null"])
def test_wrong_bounds_are_told(db: graphdb.Database, bounds: str) -> None:
    for query in (f"UNWIND range({bounds}) AS n RETURN n", f"UNWIND [1] AS one UNWIND range({bounds}) AS n RETURN n"):
        with pytest.raises(ExecutionError, match="range needs"):
            db.query(query)


def test_nested_ranges_stop(db: graphdb.Database) -> None:
    """Each vector of rows would have lists of 20 GB."""
    with pytest.raises(QueryTimeout):
        db.query(
            "UNWIND range(1, 3000000) AS a UNWIND range(1, a + 9000000 - 3000000) AS b RETURN max(a * b)", timeout=0.5
        )
    assert db.query("RETURN 1").scalar() == 1
