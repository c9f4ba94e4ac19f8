"""Rows joined by integers, and extremes of the values of rows, against what Python makes of them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from graphdb.common import arrow
from graphdb.relational.vectors.algebra import Inner
from graphdb.relational.vectors.frames import Frame
from graphdb.relational.vectors.grouped.ranked import extreme_of_parts
from graphdb.relational.vectors.lookups import inner_joined
from graphdb.relational.vectors.typed.unions import Part


@pytest.mark.parametrize("kind", ["each", "some", "several", "far apart", "none"])
def test_pairs_of_equal_keys(kind: str) -> None:
    draw = np.random.default_rng(9)
    theirs = {
        "each": draw.permutation(50),
        "some": draw.permutation(90)[:40],
        "several": draw.integers(0, 30, 60),
        "far apart": draw.permutation(50) * 100_003,
        "none": np.empty(0, np.int64),
    }[kind]
    mine = draw.integers(0, 50, 120) * (100_003 if kind == "far apart" else 1)
    rows = Frame.of(arrow.table({"k": mine, "row": np.arange(120)}))
    others = Frame.of(arrow.table({"k": theirs, "other": np.arange(len(theirs)) + 1000}))
    found = inner_joined(Inner("a", "b", ("k", "k"), (("added", "other"),)), rows, others, 1 << 20)
    pairs = [(i, j + 1000) for i, key in enumerate(mine) for j, other in enumerate(theirs) if key == other]
    assert list(zip(arrow.pylist(found.column("row")), arrow.pylist(found.column("added")), strict=True)) == pairs
    last = np.arange(len(pairs))[-3:]
    assert arrow.pylist(found.at(last).column("row")) == [i for i, _ in pairs[-3:]]


@pytest.mark.parametrize("function", ["min", "max"])
def test_extremes_of_integers_in_parts(function: str) -> None:
    draw = np.random.default_rng(4)
    numbers = draw.integers(0, 7, 60)
    numbers[numbers == 3] = 2  # a group without rows
    parts: list[Part] = [
        (arrow.numbers(draw.integers(-(1 << 62), 1 << 62, 60)), None),
        (arrow.numbers(draw.integers(-9, 9, 60), draw.random(60) < 0.5), draw.random(60) < 0.6),
        (arrow.numbers(np.zeros(60, np.int64), numbers != 5), numbers == 5),
    ]
    found = extreme_of_parts(function, parts[1:], numbers, 7, cast("arrow.DataType", None))
    beside = extreme_of_parts(function, parts, numbers, 7, cast("arrow.DataType", None))
    for result, of in ((found, parts[1:]), (beside, parts)):
        groups: dict[int, list[Any]] = {}
        for array, which in of:
            for i, value in enumerate(arrow.pylist(array)):
                if value is not None and (which is None or which[i]):
                    groups.setdefault(int(numbers[i]), []).append(value)
        extreme = min if function == "min" else max
        assert arrow.pylist(result) == [extreme(groups[i]) if i in groups else None for i in range(7)]
