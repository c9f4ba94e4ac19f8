"""Patterns of one vertex: their matches are their candidates, in blocks, within limits and shares."""

from __future__ import annotations

import pytest

import graphdb
from graphdb.execute.search import scans
from graphdb.execute.search.chunks import ParallelRun, SingleThreadRun

COUNT = 50


@pytest.fixture
def numbers(monkeypatch: pytest.MonkeyPatch) -> graphdb.Database:
    """Numbers in a database whose scans yield seven at a time, and which does not search for them."""

    def search(*_: object) -> None:
        raise AssertionError("a scan is no search")

    monkeypatch.setattr(scans, "_ROWS", 7)
    for run in (SingleThreadRun, ParallelRun):
        monkeypatch.setattr(run, "__init__", search)
    database = graphdb.connect(threads=2)
    database.query("UNWIND $rows AS i CREATE (:N {i: i})", rows=list(range(COUNT)))
    database.query("CREATE (:M {i: 3})")
    return database


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("MATCH (n:N) RETURN count(*)", [(COUNT,)]),
        ("MATCH (n:N) WHERE n.i < 20 RETURN count(n)", [(20,)]),
        ("MATCH (n:N) WHERE n.i >= 20 RETURN n.i ORDER BY n.i", [(i,) for i in range(20, COUNT)]),
        ("MATCH (n:N) WHERE n.i < 5 RETURN DISTINCT n.i AS i ORDER BY i", [(i,) for i in range(5)]),
        ("MATCH (n) RETURN count(*)", [(COUNT + 1,)]),
        ("MATCH (n:N) WHERE n.i > 1000 RETURN n.i", []),
        ("MATCH (n:N) WITH n LIMIT 9 RETURN count(*)", [(9,)]),
        ("MATCH (n:N) WHERE n.i < 20 WITH count(*) AS c MATCH (m:M) RETURN c, m.i", [(20, 3)]),
        ("MATCH (n:N) WHERE EXISTS { MATCH (m:M) WHERE m.i = n.i } RETURN n.i", [(3,)]),
    ],
)
def test_rows(numbers: graphdb.Database, text: str, want: list[tuple[int, ...]]) -> None:
    assert numbers.query(text).fetchall() == want


@pytest.mark.parametrize("limit", [0, 1, 7, 8, 49, 50, 60])
def test_a_limit(numbers: graphdb.Database, limit: int) -> None:
    found = numbers.query(f"MATCH (n:N) RETURN n.i LIMIT {limit}").fetchall()
    assert len(found) == len({*found}) == min(limit, COUNT)


def test_profile_counts_them(numbers: graphdb.Database) -> None:
    lines = [line for (line,) in numbers.query("PROFILE MATCH (n:N) WHERE n.i < 20 RETURN n.i").fetchall()]
    (row,) = [line for line in lines if "scan 20 vertices" in line]
    estimated, found, _ = row.split()[-3:]
    assert (estimated, found) == ("20", "20")
