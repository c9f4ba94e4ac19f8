"""Rows counted by the numbers of their values, compared with counting their values."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import Any, cast

import numpy as np
import pytest

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import ColumnOf, Operation
from graphdb.relational.vectors.counted import codes
from graphdb.snapshot.properties import Properties

EPOCH = dt.datetime(1970, 1, 1)
DAY = 86_400_000_000


def moments(draw: np.random.Generator, count: int, edges: bool) -> arrow.Array:
    """Points in time of half a century, many of them beside the beginning of a day, as structs with offsets of 0."""
    found = draw.integers(-20 * 365, 30 * 365, count) * DAY + (
        draw.integers(-2, 2, count) if edges else draw.integers(0, DAY, count)
    )
    plain = arrow.Array(arrow.DataType("tsu:UTC"), count, draw.random(count) < 0.9 if edges else None, found)
    offsets = arrow.numbers(np.zeros(count, np.int32))
    return arrow.struct_array([plain, offsets], ["moment", "offset"], draw.random(count) < 0.9)


def gathered(array: arrow.Array, first: int, ids: np.ndarray) -> arrow.DelayedArray:  # type: ignore[type-arg]
    """A column of the values of ids, of which nothing but its source is there."""
    chunks = arrow.ChunkedArray([arrow.numbers(part) for part in np.array_split(ids, 3)])
    return arrow.DelayedArray(
        array.type, len(ids), 0, lambda: pytest.fail("made"), None, arrow.Gathered(array, first, chunks)
    )


@pytest.mark.parametrize("type", [np.int32, np.int64])
@pytest.mark.parametrize("seed", range(4))
def test_counts(seed: int, type: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    rows, vertices, first = int(draw.integers(1, 30_000)), int(draw.integers(1, 500)), int(draw.integers(0, 90))
    monkeypatch.setattr(codes, "_FEWER", 0.001)
    monkeypatch.setattr(codes, "_PIECE", 7_001)
    ids = draw.integers(max(first - 3, 0), first + vertices + 3, rows).astype(type)
    some = draw.random(vertices) < 0.8
    arrays = {
        "integer": arrow.numbers(draw.integers(-5, 4, vertices), some),
        "narrow": arrow.array(draw.integers(-2, 2, vertices).astype(np.int32)),
        "truth": arrow.array(draw.random(vertices) < 0.5),
        "moment": moments(draw, vertices, edges=bool(seed % 2)),
    }
    columns: dict[str, Any] = {name: gathered(array, first, ids) for name, array in arrays.items()}
    columns["own"] = arrow.numbers(draw.integers(0, 3, rows), draw.random(rows) < 0.9)
    columns["same"] = arrow.repeated(7, rows)
    real = arrow.numbers(draw.random(vertices), some)
    columns["real"] = gathered(real, first, ids)
    columns["large"] = arrow.numbers(draw.integers(-(1 << 40), 1 << 40, rows), draw.random(rows) < 0.9)
    found = codes.Codes(arrow.table(columns), cast("Properties", None))
    part = ("year", "hour", "minute", "second")[seed]
    of_moments = Operation(part, (ColumnOf("moment"),))
    for vector in (*map(ColumnOf, ("integer", "narrow", "truth", "own", "same")), of_moments):
        assert found.take(vector)
    assert not found.take(ColumnOf("moment")), "few of these are equal"
    assert [found.add(ColumnOf(name)) for name in ("real", "large")] == [arrow.FLOAT64, arrow.INT64]
    assert found.add(ColumnOf("narrow")) is None
    places, counts, totals = found.counted(2, lambda: None)

    def value(name: str, row: int) -> Any:
        at = int(ids[row]) - first
        there = 0 <= at < vertices
        if name != "moment":
            return arrow.pylist(arrays[name].slice(at, 1))[0] if there else None
        if not there or not (arrays[name].is_valid()[at] and arrays[name].children[0].is_valid()[at]):
            return None
        microseconds = int(cast("Any", arrays[name].children[0].data)[at])
        return getattr(EPOCH + dt.timedelta(microseconds=microseconds), part)

    own = arrow.pylist(columns["own"])
    by_row = [(*(value(name, row) for name in arrays), own[row]) for row in range(rows)]
    expected = Counter(by_row)
    assert {by_row[place]: count for place, count in zip(places.tolist(), counts.tolist(), strict=True)} == expected
    assert len(places) == len(expected)
    taken = found.rows_at([*("integer", "narrow", "truth")], places)
    there = zip(*(arrow.pylist(column) for column in taken.values()), strict=True)
    assert list(there) == [by_row[place][:3] for place in places.tolist()]

    reals, large = arrow.pylist(real), arrow.pylist(columns["large"])
    for name, of in (
        ("real", lambda row: reals[int(ids[row]) - first] if 0 <= int(ids[row]) - first < vertices else None),
        ("large", lambda row: large[row]),
    ):
        values: dict[Any, list[Any]] = {}
        for row, key in enumerate(by_row):
            values.setdefault(key, []).extend(each for each in (of(row),) if each is not None)
        sums, sizes = totals[ColumnOf(name)]
        assert sizes.tolist() == [len(values[by_row[place]]) for place in places.tolist()]
        wanted = [sum(values[by_row[place]]) if values[by_row[place]] else None for place in places.tolist()]
        assert arrow.pylist(sums) == pytest.approx(wanted)
