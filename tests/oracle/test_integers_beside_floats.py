"""Properties that are integers of some vertices and floating-point numbers of others: against Python's own numbers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

import graphdb

Number = int | float | None


def _numbers(kind: str) -> list[Number]:
    plain: list[Number] = [None if i % 11 == 4 else i % 7 if i % 3 else (i % 9) / 2 for i in range(300)]
    if kind == "large":
        plain[5], plain[6] = 2**53 + 1, float(2**53)
    return plain


@pytest.fixture(scope="module", params=["plain", "large", "changed"])
def data(request: pytest.FixtureRequest) -> Iterator[tuple[graphdb.Database, list[Number]]]:
    numbers = _numbers(request.param)
    with graphdb.connect(device="cpu", threads=1) as database:
        rows = [{"i": i, "m": m, "t": i % 4} for i, m in enumerate(numbers) if not isinstance(m, float)]
        reals = [{"i": i, "m": m, "t": i % 4} for i, m in enumerate(numbers) if isinstance(m, float)]
        for each in (rows, reals):
            database.query("UNWIND $rows AS r CREATE (:P {i: r.i, m: r.m, t: r.t})", rows=each)
        database.query("MATCH (a:P), (b:P) WHERE b.i = (a.i * 7 + 1) % 300 CREATE (a)-[:K]->(b)")
        if request.param == "changed":
            for _ in range(2):
                database.query("MATCH (a:P) RETURN sum(a.m), max(a.m), count(DISTINCT a.m)").fetchall()
            for i, m in ((0, 5), (1, 2.5), (4, 7), (7, None)):
                database.query("MATCH (a:P {i: $i}) SET a.m = $m", i=i, m=m)
                numbers[i] = m
        yield database, numbers


def _same(found: Any, expected: Any) -> bool:
    """Whether values are the same, and of the same types."""
    if isinstance(expected, tuple | list):
        return len(found) == len(expected) and all(map(_same, found, expected))
    if isinstance(expected, float) and isinstance(found, float):
        return math.isclose(found, expected, rel_tol=1e-12)
    return type(found) is type(expected) and bool(found == expected)


def _sum(numbers: list[Number]) -> int | float:
    there = [m for m in numbers if m is not None]
    return math.fsum(there) if any(isinstance(m, float) for m in there) else sum(there)


def test_aggregates(data: tuple[graphdb.Database, list[Number]]) -> None:
    db, numbers = data
    groups: dict[int, list[Number]] = defaultdict(list)
    for i, m in enumerate(numbers):
        groups[i % 4].append(m)
    found = db.query(
        "MATCH (a:P) RETURN a.t, sum(a.m), count(a.m), min(a.m), max(a.m), avg(a.m) ORDER BY a.t"
    ).fetchall()
    expected = []
    for t in range(4):
        there = [m for m in groups[t] if m is not None]
        expected.append((t, _sum(there), len(there), min(there), max(there), math.fsum(there) / len(there)))
    for one, other in zip(found, expected, strict=True):
        assert _same(one[:3], other[:3])
        assert one[3:5] == other[3:5]  # 7 and 7.0 are equally extreme
        assert math.isclose(one[5], other[5])
    [(total, whole)] = db.query("MATCH (a:P) WHERE a.i < 0 OR a.i % 3 > 0 RETURN sum(a.m), max(a.m)").fetchall()
    some = [m for i, m in enumerate(numbers) if i % 3]
    assert _same(total, _sum(some))
    assert whole == max(m for m in some if m is not None)


def test_computed(data: tuple[graphdb.Database, list[Number]]) -> None:
    db, numbers = data
    edges = [(a, (a * 7 + 1) % 300) for a in range(300)]
    for text, of in (
        ("b.m * 2", lambda m, n: None if n is None else n * 2),
        ("a.m - b.m", lambda m, n: None if m is None or n is None else m - n),
        ("coalesce(b.m, 0)", lambda m, n: 0 if n is None else n),
        ("coalesce(a.m, b.m, -1.5)", lambda m, n: m if m is not None else -1.5 if n is None else n),
        ("a.m + 0.5", lambda m, n: None if m is None else m + 0.5),
        ("CASE WHEN a.m > b.m THEN a.m ELSE 3 END", lambda m, n: m if m is not None and n is not None and m > n else 3),
    ):
        values = {a: of(numbers[a], numbers[b]) for a, b in edges}
        rows = dict(db.query(f"MATCH (a:P)-[:K]->(b) RETURN a.i, {text}").fetchall())
        for a, value in values.items():
            assert _same(rows[a], value), (text, a)
        summed = dict(db.query(f"MATCH (a:P)-[:K]->(b) RETURN a.t, sum({text})").fetchall())
        for t in range(4):
            assert _same(summed[t], _sum([value for a, value in values.items() if a % 4 == t])), text


def test_compared_and_ordered(data: tuple[graphdb.Database, list[Number]]) -> None:
    db, numbers = data
    edges = [(a, (a * 7 + 1) % 300) for a in range(300)]
    for operator in ("<", "<=", "=", "<>"):
        holds = [
            a
            for a, b in edges
            if (m := numbers[a]) is not None and (n := numbers[b]) is not None
            and {"<": m < n, "<=": m <= n, "=": m == n, "<>": m != n}[operator]
        ]  # fmt: skip
        text = f"MATCH (a:P)-[:K]->(b) WHERE a.m {operator} b.m"
        assert sorted(i for (i,) in db.query(f"{text} RETURN a.i").fetchall()) == holds
        assert db.query(f"{text} RETURN count(*)").fetchall() == [(len(holds),)]
        assert db.query(f"MATCH (a:P)-[:K]->(b) RETURN a.m {operator} b.m AS c, count(*) ORDER BY c").fetchall()[1][
            1
        ] == len(holds)
    keys = [(m is None, 0 if m is None else m, i) for i, m in enumerate(numbers)]
    assert db.query("MATCH (a:P) RETURN a.i, a.m ORDER BY a.m, a.i").fetchall() == [
        (i, numbers[i]) for *_, i in sorted(keys)
    ]
    first = sorted(keys, key=lambda key: (not key[0], -key[1], key[2]))[:40]
    assert db.query("MATCH (a:P) RETURN a.i, a.m ORDER BY a.m DESC, a.i LIMIT 40").fetchall() == [
        (i, numbers[i]) for *_, i in first
    ]


def test_groups(data: tuple[graphdb.Database, list[Number]]) -> None:
    db, numbers = data
    counts: dict[Any, int] = defaultdict(int)
    for m in numbers:
        counts[m] += 1
    assert dict(db.query("MATCH (a:P) RETURN a.m, count(*)").fetchall()) == counts
    assert {m for (m,) in db.query("MATCH (a:P) RETURN DISTINCT a.m").fetchall()} == {*counts}
    assert db.query("MATCH (a:P) RETURN count(DISTINCT a.m)").fetchall() == [(len(counts) - 1,)]
    pairs = {(m, i % 4) for i, m in enumerate(numbers)}
    assert {(m, t) for m, t, _ in db.query("MATCH (a:P) RETURN a.m, a.t, count(*)").fetchall()} == pairs
