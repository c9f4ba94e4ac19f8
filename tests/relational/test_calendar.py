"""Parts of days, and the first days of months, weeks and the like: those of Python's calendar, however many rows ask."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

import numpy as np
import pytest

from graphdb.common import arrow
from graphdb.relational.vectors.typed import temporal

EPOCH = date(1970, 1, 1)

PARTS: dict[str, Callable[[date], int]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "day": lambda day: day.day,
    "dayOfWeek": lambda day: day.isoweekday(),
}
BEGINS: dict[str, Callable[[date], date]] = {
    "begin of year": lambda day: day.replace(month=1, day=1),
    "begin of quarter": lambda day: day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1),
    "begin of month": lambda day: day.replace(day=1),
    "begin of week": lambda day: day - timedelta(days=day.weekday()),
    "begin of day": lambda day: day,
}


@pytest.mark.parametrize("few", [0, 1 << 20], ids=["looked up in tables", "computed"])
@pytest.mark.parametrize(("first", "last"), [(date(1970, 1, 1), date(2030, 1, 1)), (date(1, 1, 3), date.max)])
def test_parts_of_days(monkeypatch: pytest.MonkeyPatch, few: int, first: date, last: date) -> None:
    monkeypatch.setattr(temporal, "_FEW", few)
    drawn = np.random.default_rng(5).integers((first - EPOCH).days, (last - EPOCH).days, 200)
    days = np.append(drawn, [(each - EPOCH).days for each in (first, last, EPOCH)])
    valid = np.arange(len(days)) % 7 > 0
    column = arrow.Array(arrow.DATE, len(days), valid, days.astype(np.int32))
    dates = [EPOCH + timedelta(days=day) for day in days.tolist()]
    for operator, part in PARTS.items():
        found = arrow.pylist(temporal.TEMPORAL[operator]([column]))
        assert found == [part(day) if there else None for day, there in zip(dates, valid, strict=True)], operator
    for operator, begin in BEGINS.items():
        starts = arrow.pylist(temporal.TEMPORAL[operator]([column]))
        assert starts == [begin(day) if there else None for day, there in zip(dates, valid, strict=True)], operator
