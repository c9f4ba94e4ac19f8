"""What lies between two points in time, moved from the first, is the second: by zones' rules and at offsets."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import graphdb
from graphdb.common.values.temporal import (
    DAY,
    SECOND,
    Date,
    DateTime,
    Duration,
    LocalDateTime,
    Temporal,
    at_instant,
    days_of,
    shift,
)
from graphdb.common.values.temporal_between import between
from tests.oracle.routes import in_python

ZONES = ["Europe/Stockholm", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "UTC"]
OFFSETS = [0, 3600, -5 * 3600, 20700, 14 * 3600]
CHANGES = [(2020, 3, 29), (2020, 10, 25), (2021, 3, 14), (2021, 11, 7), (2011, 12, 30), (2020, 4, 5), (2020, 2, 29)]
"""Days on which clocks are changed somewhere (or that some months lack)."""


def _point(dice: random.Random) -> DateTime:
    """A point in time: now and then close to a change of clocks, or at the end of a month."""
    day = days_of(*dice.choice(CHANGES)) + dice.randint(-2, 2)
    if dice.random() < 0.6:
        day = days_of(dice.randint(1999, 2024), dice.randint(1, 12), dice.choice([1, 15, 28])) + dice.randint(0, 3)
    instant = day * DAY + dice.randrange(0, 86_400, 900) * SECOND + dice.choice([0, 0, 123_456_789])
    return at_instant(instant, dice.choice([*ZONES, *OFFSETS]))  # type: ignore[arg-type]


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


def test_the_second_is_the_first_moved_by_what_lies_between() -> None:
    dice = random.Random(7)
    for _ in range(4000):
        a, b = _point(dice), _point(dice)
        found = between("between", a, b)
        moved = shift(a, found, 1)
        assert isinstance(moved, DateTime)
        assert moved.instant == b.instant, f"{a} + {found} is {moved}, not {b}"
        forward = _sign(b.instant - a.instant)
        assert all(_sign(part) in (0, forward) for part in (found.months, found.days, found.total)), (
            f"{a}, {b}: {found}"
        )
        for unit in ("inmonths", "indays"):  # never past the second
            short = shift(a, between(unit, a, b), 1)
            assert isinstance(short, DateTime)
            assert (b.instant - short.instant) * forward >= 0
        assert between("inseconds", a, b).total == b.instant - a.instant


def test_local_values_follow_the_same_law() -> None:
    dice = random.Random(8)
    for _ in range(2000):
        a, b = (days_of(dice.randint(1999, 2024), dice.randint(1, 12), 1) + dice.randint(0, 30) for _ in "ab")
        pairs: list[tuple[Temporal, Temporal]] = [(Date(a), Date(b))]
        pairs.append((LocalDateTime(a, dice.randrange(DAY)), LocalDateTime(b, dice.randrange(DAY))))
        for first, second in pairs:
            assert shift(first, between("between", first, second), 1) == second


def test_whole_days_are_those_of_the_calendar() -> None:
    """Python's zones are the oracle: as many days later at the same time of day as the clocks there show it."""
    zone = ZoneInfo("Europe/Stockholm")
    dice = random.Random(9)
    for _ in range(500):
        first = datetime(2020, 1, 1, 12, tzinfo=zone) + timedelta(days=dice.randrange(400))
        days, rest = dice.randrange(1, 27), dice.randrange(3600)
        second = ((first + timedelta(days=days)).astimezone(UTC) + timedelta(seconds=rest)).astimezone(zone)
        ends = [
            at_instant(int(value.timestamp()) * SECOND, "Europe/Stockholm").part("epochSeconds")
            for value in (first, second)
        ]
        a, b = (at_instant(int(str(end)) * SECOND, "Europe/Stockholm") for end in ends)
        assert between("indays", a, b) == Duration(0, days)


@pytest.mark.parametrize(
    ("a", "b", "lies"),
    [
        ("2020-07-01T12:00[Europe/Stockholm]", "2021-01-15T12:00[Europe/Stockholm]", "P6M14D"),
        ("2021-01-15T12:00[Europe/Stockholm]", "2020-07-01T12:00[Europe/Stockholm]", "P-6M-14D"),
        ("2020-07-01T12:00+02:00", "2021-01-15T12:00+01:00", "P6M14DT1H"),
        ("2020-03-28T02:30[Europe/Stockholm]", "2020-03-29T03:15[Europe/Stockholm]", "PT23H45M"),
        ("2020-10-24T12:00[Europe/Stockholm]", "2020-10-25T12:00+00:00", "P1DT1H"),
    ],
)
def test_in_queries(a: str, b: str, lies: str) -> None:
    text = (
        f"WITH datetime('{a}') AS a, datetime('{b}') AS b "
        "RETURN toString(duration.between(a, b)) AS lies, a + duration.between(a, b) = b AS same"
    )
    with graphdb.connect(device="cpu", threads=1) as db:
        assert db.query(text).fetchall() == in_python(db, text) == [(lies, True)]
