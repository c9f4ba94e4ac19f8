"""What lies between two temporal values: openCypher's ``duration.between`` and its kin."""

from __future__ import annotations

from graphdb.common.values.temporal import (
    DAY,
    SECOND,
    DateTime,
    Duration,
    Temporal,
    _cut,
    add_months,
    at_instant,
    civil,
    shift,
    zoned,
)
from graphdb.common.values.temporal_build import Malformed


def between(unit: str, start: Temporal, end: Temporal) -> Duration:
    """Return what lies between two values: ``between`` in all units, or ``inMonths``, ``inDays``, ``inSeconds``.

    Months and days are those of the calendar where the first value is, what is left is time that passes: so the first
    value moved by what lies between is the second, whatever clocks do meanwhile.
    """
    first, second, dated = _aligned(start, end)
    apart = second.instant - first.instant
    if unit == "inseconds":
        return Duration(0, 0, *divmod(apart, SECOND))
    months, days = _whole_units(first, second, unit != "indays") if dated else (0, 0)
    if unit == "inmonths":
        return Duration(months)
    if unit == "indays":
        return Duration(0, days)
    return Duration(months, days, *divmod(second.instant - _moved(first, months, days), SECOND))


def _whole_units(first: DateTime, second: DateTime, of_months: bool) -> tuple[int, int]:
    """The whole months (none unless they are asked for) and days that do not lead past the second point in time."""
    forwards = second.instant > first.instant
    step = 1 if forwards else -1
    begin, end = (value.days * DAY + value.nanoseconds for value in (first, second))

    def passes(months: int, days: int) -> bool:
        left = second.instant - _moved(first, months, days)
        return left < 0 if forwards else left > 0

    months = _months(begin, end) if of_months else 0
    while months and passes(months, 0):  # clocks were changed
        months -= step
    days = _cut(end - (add_months(first.days, months) * DAY + first.nanoseconds), DAY)
    while days and passes(months, days):
        days -= step
    return months, days


def _moved(value: DateTime, months: int, days: int) -> int:
    """The point in time (nanoseconds since 1970) that is so many months and days from another one."""
    moved = shift(value, Duration(months, days), 1)
    assert isinstance(moved, DateTime)
    return moved.instant


def _months(first: int, second: int) -> int:
    """The whole months from one point in time to another, both in nanoseconds since 1970.

    A month is over on the same day of the next, at the same time: none lies between the 31st of January and the 29th of
    February.
    """
    start, end = first // DAY, second // DAY
    if start < end and second % DAY < first % DAY:
        end -= 1
    elif start > end and second % DAY > first % DAY:
        end += 1
    (year, month, day), (other_year, other_month, other_day) = civil(start), civil(end)
    months = (other_year - year) * 12 + other_month - month
    if months > 0 and other_day < day:
        return months - 1
    if months < 0 and other_day > day:
        return months + 1
    return months


def _aligned(start: Temporal, end: Temporal) -> tuple[DateTime, DateTime, bool]:
    """Two values as points in time, and whether both have days; what one lacks (day, offset) the other lends it.

    The second is shown by the first one's zone, or at its offset.
    """
    for value in (start, end):
        if isinstance(value, Duration):
            raise Malformed("what lies between is asked of points in time, not of durations")
    own: list[int | None] = [getattr(value, "days", None) for value in (start, end)]
    offsets: list[int | None] = [getattr(value, "offset", None) for value in (start, end)]
    lent = next((day for day in own if day is not None), 0)
    shared = next((offset for offset in offsets if offset is not None), 0)
    zone = next((value.zone for value in (start, end) if isinstance(value, DateTime) and value.zone), None)
    dated = None not in own
    points = []
    for value, day, offset in zip((start, end), own, offsets, strict=True):
        time: int = getattr(value, "nanoseconds", 0)
        if offset is None:
            offset = shared if zone is None else zoned(lent if day is None else day, time, zone).offset
        points.append(DateTime(day if dated and day is not None else 0, time, offset))
    first, second = points
    shown = start.zone if isinstance(start, DateTime) else zone
    if dated and shown is not None:
        return at_instant(first.instant, shown), at_instant(second.instant, shown), dated
    return first, at_instant(second.instant, first.offset), dated
