"""Rows of two vertices are grouped as SQL groups them, by whichever column's values come in runs."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.execute.search import group
from tests.fuzz import scaled


@settings(max_examples=scaled(60), deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(1, 9)), max_size=40),
    column=st.sampled_from([0, 1, None]),
    budget=st.sampled_from([1, 3, 1 << 20]),
)
def test_pairs_are_counted_as_a_counter_does(rows: list[tuple[int, int, int]], column: int | None, budget: int) -> None:
    if column is not None:
        rows = sorted(rows, key=lambda row: -row[column])
    expected: Counter[tuple[int, int]] = Counter()
    for a, b, n in rows:
        expected[a, b] += n
    first, second, numbers = np.array(rows, np.int64).reshape(-1, 3).T
    before, checks = first.copy(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group, "_BUDGET", budget)
        found = group.grouped(first.astype(np.int32), second, numbers, 7, lambda: checks.append(1))
    assert (first == before).all()
    if found is None:
        assert column is None
        return
    assert len(found[0]) == len(expected)
    assert {(int(a), int(b)): int(n) for a, b, n in zip(*found, strict=True)} == expected
    assert len(checks) >= bool(rows)


@settings(max_examples=scaled(60), deadline=None)
@given(
    rows=st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=40),
    swapped=st.booleans(),
    budget=st.sampled_from([1, 3, 1 << 20]),
)
def test_ascending_rows_are_left_as_they_are(rows: set[tuple[int, int]], swapped: bool, budget: int) -> None:
    """Rows that ascend by either column are different, and not copied; one row twice is two rows put together."""
    columns = list(np.array(sorted(rows), np.int32).T)[:: -1 if swapped else 1]
    numbers = np.arange(1, len(rows) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group, "_BUDGET", budget)
        found = group.grouped(*columns, numbers, 7, lambda: None)
        assert found is not None
        assert found[0] is columns[0]
        assert found[1] is columns[1]
        assert found[2] is numbers
        for at in range(len(rows)):
            again = np.insert(np.arange(len(rows)), at, at)
            merged = group.grouped(*(column[again] for column in columns), numbers[again], 7, lambda: None)
            assert merged is not None
            expected = numbers + (np.arange(len(rows)) == at) * numbers
            assert [each.tolist() for each in merged] == [each.tolist() for each in (*columns, expected)]


def test_tables_and_rows_are_grouped_alike(database: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table made of a grouped count, of vertices or their ids, and the same from rows: equal pairs reach no SQL."""
    walk = "MATCH (a)-[:r]->(b)-[:r]->(c) WHERE a <> c RETURN id(a) AS a, id(c) AS c, count(*) AS k"
    expected = Counter(database.query(walk.replace("count(*)", "1")).fetchall())
    merged = []

    def noted(*arguments: object) -> object:
        merged.append(group.grouped(*arguments))  # type: ignore[arg-type]
        return merged[-1]

    monkeypatch.setattr("graphdb.relational.query.grouped", noted)
    rows = database.query(walk).fetchall()
    database.query(f"CREATE OR REPLACE TABLE pairs AS {walk}")
    assert sorted(rows) == sorted(database.sql("SELECT * FROM pairs").fetchall())
    assert {(a, c): k for a, c, k in rows} == {(a, c): number for (a, c, _), number in expected.items()}
    assert len(merged) == 2
    assert all(found is not None for found in merged)
    assert "put together" in database.explain(f"CREATE TABLE pairs AS {walk}")


@pytest.fixture(scope="module")
def database() -> graphdb.Database:
    database = graphdb.connect()
    edges = [(a, b) for a in range(12) for b in range(12) if (a * 7 + b * 5) % 4 == 0 and a != b]
    for a in range(12):
        database.query(f"CREATE (:P {{n: {a}}})")
    for a, b in edges:
        database.query(f"MATCH (a:P {{n: {a}}}), (b:P {{n: {b}}}) CREATE (a)-[:r]->(b)")
    return database


@pytest.mark.parametrize(
    "returned", ["a, c, count(*) AS k", "count(*) AS k, c, a, count(*) AS again", "a AS x, b, count(*) AS k"]
)
@pytest.mark.parametrize("order", ["", " ORDER BY k DESC, a.n, c.n", " ORDER BY k DESC LIMIT 3"])
def test_a_grouped_count_is_what_the_rows_add_up_to(database: graphdb.Database, returned: str, order: str) -> None:
    if "b" in returned:
        order = order.replace(", a.n, c.n", "")
    walk = "MATCH (a)-[:r]->(b)-[:r]->(c) WHERE a <> c"
    keys = [item.split()[0] for item in returned.split(", ") if "count" not in item]
    pairs = Counter(tuple(row) for row in database.query(f"{walk} RETURN {keys[0]}.n, {keys[1]}.n"))
    found = database.query(f"{walk} RETURN {returned}{order}")
    at = [i for i, item in enumerate(returned.split(", ")) if "count" not in item]
    numbers = [i for i, item in enumerate(returned.split(", ")) if "count" in item]
    got = [(tuple(row[i].properties["n"] for i in at), {row[i] for i in numbers}) for row in found]
    assert len(got) == (3 if "LIMIT" in order else len(pairs))
    assert all(number == {pairs[pair]} for pair, number in got)
    assert len({pair for pair, _ in got}) == len(got)
    if "ORDER" in order:
        counts = [min(number) for _, number in got]
        assert counts == sorted(pairs.values(), reverse=True)[: len(counts)]
