"""Temporal values: dates, times and durations, to the nanosecond and for years of up to nine digits.

Python's own types hold neither (:mod:`graphdb.common.values.temporal_python`).  The calendar is the proleptic
Gregorian one (days from and to civil dates: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
"""

from __future__ import annotations

import datetime as python
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import total_ordering
from typing import ClassVar
from zoneinfo import ZoneInfo

SECOND = 10**9
"""Nanoseconds."""
DAY = 86_400 * SECOND
MONTH_SECONDS = 2_629_746
"""The mean length of a month: a 4800th of the calendar's cycle of 400 years."""
LARGEST_OFFSET = 18 * 3600
"""The offset from UTC, in seconds, up to which there are zones: as in ISO 8601's implementations in Java and Neo4j."""


def days_of(year: int, month: int, day: int) -> int:
    """Return the day's number, 1970-01-01 being 0."""
    year -= month <= 2
    era, of_era = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def civil(days: int) -> tuple[int, int, int]:
    """Return year, month and day of a day's number."""
    era, of_era = divmod(days + 719_468, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    return year + era * 400 + (month <= 2), month, of_year - (153 * shifted + 2) // 5 + 1


def month_length(year: int, month: int) -> int:
    """Return how many days a month has."""
    return days_of(year + month // 12, month % 12 + 1, 1) - days_of(year, month, 1)


def week_start(week_year: int) -> int:
    """Return the Monday that begins an ISO year."""
    fourth = days_of(week_year, 1, 4)
    return fourth - (fourth + 3) % 7


def iso_week(days: int) -> tuple[int, int, int]:
    """Return ISO year, week and day of the week (Monday is 1)."""
    year = civil(days - (days + 3) % 7 + 3)[0]
    return year, (days - week_start(year)) // 7 + 1, (days + 3) % 7 + 1


def add_months(days: int, months: int) -> int:
    """Return the same day of another month, or that month's last day."""
    year, month, day = civil(days)
    years, month = divmod(month - 1 + months, 12)
    year, month = year + years, month + 1
    return days_of(year, month, min(day, month_length(year, month)))


class Temporal:
    """The base of all temporal values, whose subclasses say how they are ordered and what parts they have."""

    kind: ClassVar[str]

    def sort_key(self) -> tuple[int, ...]:
        """Return what orders values of one type; abstract."""
        raise NotImplementedError

    def part(self, name: str) -> object:
        """Return a component by its name; KeyError where there is none."""
        raise KeyError(name)


@total_ordering
class _Ordered(Temporal):
    def __lt__(self, other: _Ordered) -> bool:
        return self.sort_key() < other.sort_key()


def _date_part(days: int, name: str) -> int:
    year, month, day = civil(days)
    quarter = (month - 1) // 3
    week_year, week, weekday = iso_week(days)
    found = {
        "year": year,
        "quarter": quarter + 1,
        "month": month,
        "week": week,
        "weekYear": week_year,
        "day": day,
        "ordinalDay": days - days_of(year, 1, 1) + 1,
        "weekDay": weekday,
        "dayOfWeek": weekday,
        "dayOfQuarter": days - days_of(year, quarter * 3 + 1, 1) + 1,
    }
    return found[name]


def _time_part(nanoseconds: int, name: str) -> int:
    seconds, fraction = divmod(nanoseconds, SECOND)
    found = {
        "hour": seconds // 3600,
        "minute": seconds // 60 % 60,
        "second": seconds % 60,
        "millisecond": fraction // 10**6,
        "microsecond": fraction // 1000,
        "nanosecond": fraction,
    }
    return found[name]


def _zone_part(offset: int, zone: str | None, name: str) -> object:
    found = {
        "timezone": zone or offset_text(offset),
        "offset": offset_text(offset),
        "offsetMinutes": _cut(offset, 60),
        "offsetSeconds": offset,
    }
    return found[name]


def _date_text(days: int) -> str:
    year, month, day = civil(days)
    written = f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"
    return f"{written}-{month:02d}-{day:02d}"


def _time_text(nanoseconds: int) -> str:
    seconds, fraction = divmod(nanoseconds, SECOND)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    if seconds % 60 or fraction:
        text += f":{seconds % 60:02d}"
    return text + (f".{fraction:09d}".rstrip("0") if fraction else "")


def offset_text(offset: int) -> str:
    """Return an offset from UTC in seconds as ``Z`` or ``+01:00``."""
    if not offset:
        return "Z"
    hours, rest = divmod(abs(offset), 3600)
    text = f"{'-' if offset < 0 else '+'}{hours:02d}:{rest // 60:02d}"
    return text + (f":{rest % 60:02d}" if rest % 60 else "")


@dataclass(frozen=True, slots=True)
class Date(_Ordered):
    """A day, by its number from 1970-01-01."""

    days: int
    kind = "date"

    def sort_key(self) -> tuple[int, ...]:
        """By day."""
        return (self.days,)

    def part(self, name: str) -> object:
        """``year``, ``month``, ``week`` …"""
        return _date_part(self.days, name)

    def __str__(self) -> str:
        return _date_text(self.days)


@dataclass(frozen=True, slots=True)
class LocalTime(_Ordered):
    """A time of day: nanoseconds since midnight."""

    nanoseconds: int
    kind = "local time"

    def sort_key(self) -> tuple[int, ...]:
        """By time."""
        return (self.nanoseconds,)

    def part(self, name: str) -> object:
        """``hour``, ``minute`` …"""
        return _time_part(self.nanoseconds, name)

    def __str__(self) -> str:
        return _time_text(self.nanoseconds)


@dataclass(frozen=True, slots=True)
class Time(_Ordered):
    """A time of day, and its offset from UTC in seconds."""

    nanoseconds: int
    offset: int
    kind = "time"

    def sort_key(self) -> tuple[int, ...]:
        """By the time in UTC."""
        return (self.nanoseconds - self.offset * SECOND, self.offset)

    def part(self, name: str) -> object:
        """``hour``, ``offset`` …"""
        try:
            return _time_part(self.nanoseconds, name)
        except KeyError:
            return _zone_part(self.offset, None, name)

    def __str__(self) -> str:
        return _time_text(self.nanoseconds) + offset_text(self.offset)


@dataclass(frozen=True, slots=True)
class LocalDateTime(_Ordered):
    """A day and a time of day."""

    days: int
    nanoseconds: int
    kind = "local date and time"

    def sort_key(self) -> tuple[int, ...]:
        """By time."""
        return (self.days, self.nanoseconds)

    def part(self, name: str) -> object:
        """``year``, ``hour`` …"""
        try:
            return _date_part(self.days, name)
        except KeyError:
            return _time_part(self.nanoseconds, name)

    def __str__(self) -> str:
        return f"{_date_text(self.days)}T{_time_text(self.nanoseconds)}"


@dataclass(frozen=True, slots=True)
class DateTime(_Ordered):
    """A day and a time of day at an offset from UTC in seconds, by a zone's rules or without."""

    days: int
    nanoseconds: int
    offset: int
    zone: str | None = None
    kind = "date and time"

    @property
    def instant(self) -> int:
        """The point in time, in nanoseconds of UTC: what is compared."""
        return self.days * DAY + self.nanoseconds - self.offset * SECOND

    def sort_key(self) -> tuple[int, ...]:
        """By the point in time, then by the offset."""
        return (self.instant, self.offset)

    def part(self, name: str) -> object:
        """``year``, ``hour``, ``timezone``, ``epochSeconds`` …"""
        readers: tuple[Callable[[], object], ...] = (
            lambda: _date_part(self.days, name),
            lambda: _time_part(self.nanoseconds, name),
            lambda: _zone_part(self.offset, self.zone, name),
        )
        for read in readers:
            try:
                return read()
            except KeyError:
                pass
        return {"epochSeconds": self.instant // SECOND, "epochMillis": self.instant // 10**6}[name]

    def __str__(self) -> str:
        zone = f"[{self.zone}]" if self.zone else ""
        return f"{_date_text(self.days)}T{_time_text(self.nanoseconds)}{offset_text(self.offset)}{zone}"


DATED = (LocalDateTime, DateTime)
"""What has a day and a time of day."""

AT_OFFSETS = (Time, DateTime)
"""What has an offset from UTC."""


@dataclass(frozen=True, slots=True)
class Duration(Temporal):
    """Months, days, seconds and nanoseconds (0 to 999,999,999), which do not convert into each other."""

    months: int = 0
    days: int = 0
    seconds: int = 0
    nanoseconds: int = 0
    kind = "duration"

    @classmethod
    def of(cls, months: Fraction | int, days: Fraction | int, nanoseconds: Fraction | int) -> Duration:
        """Return the duration of amounts that may be fractions: what is left of a month becomes days, and so on."""
        whole_months = int(months)
        days += (months - whole_months) * Fraction(MONTH_SECONDS, 86_400)
        whole_days = int(days)
        nanoseconds += (days - whole_days) * DAY
        return cls(whole_months, whole_days, *divmod(int(nanoseconds), SECOND))

    @property
    def total(self) -> int:
        """Seconds and nanoseconds in nanoseconds."""
        return self.seconds * SECOND + self.nanoseconds

    def sort_key(self) -> tuple[int, ...]:
        """By mean length."""
        return ((self.months * MONTH_SECONDS + self.days * 86_400) * SECOND + self.total,)

    def part(self, name: str) -> object:
        """``years``, ``monthsOfYear``, ``hours``, ``secondsOfMinute`` …"""
        seconds, fraction = self.seconds, self.nanoseconds
        found = {
            "years": _cut(self.months, 12),
            "quarters": _cut(self.months, 3),
            "months": self.months,
            "weeks": _cut(self.days, 7),
            "days": self.days,
            "hours": _cut(seconds, 3600),
            "minutes": _cut(seconds, 60),
            "seconds": seconds,
            "milliseconds": self.total // 10**6,
            "microseconds": self.total // 1000,
            "nanoseconds": self.total,
            "quartersOfYear": _cut(_rest(self.months, 12), 3),
            "monthsOfQuarter": _rest(self.months, 3),
            "monthsOfYear": _rest(self.months, 12),
            "daysOfWeek": _rest(self.days, 7),
            "minutesOfHour": _cut(_rest(seconds, 3600), 60),
            "secondsOfMinute": _rest(seconds, 60),
            "millisecondsOfSecond": fraction // 10**6,
            "microsecondsOfSecond": fraction // 1000,
            "nanosecondsOfSecond": fraction,
        }
        return found[name]

    def plus(self, other: Duration, sign: int = 1) -> Duration:
        """Return the sum, or with ``sign`` -1 the difference."""
        nanoseconds = self.total + sign * other.total
        months, days = self.months + sign * other.months, self.days + sign * other.days
        return Duration(months, days, *divmod(nanoseconds, SECOND))

    def times(self, factor: Fraction) -> Duration:
        """Return so many times the duration."""
        return Duration.of(self.months * factor, self.days * factor, self.total * factor)

    def __str__(self) -> str:
        date = "".join(
            f"{amount}{unit}"
            for amount, unit in ((_cut(self.months, 12), "Y"), (_rest(self.months, 12), "M"), (self.days, "D"))
            if amount
        )
        total = abs(self.total)
        sign = "-" if self.total < 0 else ""
        seconds, fraction = divmod(total, SECOND)
        parts = [
            f"{sign}{amount}{unit}" for amount, unit in ((seconds // 3600, "H"), (seconds // 60 % 60, "M")) if amount
        ]
        if seconds % 60 or fraction:
            parts.append(f"{sign}{seconds % 60}" + (f".{fraction:09d}".rstrip("0") if fraction else "") + "S")
        time = "".join(parts)
        return f"P{date}" + (f"T{time}" if time else "") if date or time else "PT0S"


def _cut(amount: int, unit: int) -> int:
    return -(-amount // unit) if amount < 0 else amount // unit


def _rest(amount: int, unit: int) -> int:
    return amount - _cut(amount, unit) * unit


# --- arithmetic ------------------------------------------------------------------------------------------------


def shift(value: Temporal, by: Duration, sign: int) -> Temporal:
    """Return a point in time moved by a duration, forwards (``sign`` 1) or back (-1)."""
    months, days, nanoseconds = sign * by.months, sign * by.days, sign * by.total
    match value:
        case Date():
            return Date(add_months(value.days, months) + days + _cut(nanoseconds, DAY))
        case LocalTime():
            return LocalTime((value.nanoseconds + nanoseconds) % DAY)
        case Time():
            return Time((value.nanoseconds + nanoseconds) % DAY, value.offset)
        case LocalDateTime():
            carried, time = divmod(value.nanoseconds + nanoseconds, DAY)
            return LocalDateTime(add_months(value.days, months) + days + carried, time)
        case DateTime():
            moved = add_months(value.days, months) + days
            if value.zone is None:
                carried, time = divmod(value.nanoseconds + nanoseconds, DAY)
                return DateTime(moved + carried, time, value.offset)
            local = zoned(moved, value.nanoseconds, value.zone, value.offset)
            return at_instant(local.sort_key()[0] + nanoseconds, value.zone)
        case Duration():
            return value.plus(by, sign)
    raise TypeError(type(value).__name__)


# --- zones -----------------------------------------------------------------------------------------------------


def zoned(days: int, nanoseconds: int, zone: str, asked: int | None = None) -> DateTime:
    """Return a local date and time in a zone, by its rules; KeyError (ZoneInfoNotFoundError) for an unknown zone.

    One that its clocks skip is as much later as they are put forward; of one that they show twice it is the one at the
    offset ``asked`` (in seconds), else the earlier.
    """
    local = days * DAY + nanoseconds
    if asked is not None and _offset_at(zone, *divmod(local - asked * SECOND, DAY), local=False) == asked:
        return DateTime(days, nanoseconds, asked, zone)
    offset = _offset_at(zone, days, nanoseconds, local=True)
    return at_instant(local - offset * SECOND, zone)


def at_instant(instant: int, zone: str | int) -> DateTime:
    """Return a point in time (nanoseconds since 1970 in UTC) in a zone, or at an offset in seconds."""
    if isinstance(zone, int):
        return DateTime(*divmod(instant + zone * SECOND, DAY), zone)
    offset = _offset_at(zone, *divmod(instant, DAY), local=False)
    return DateTime(*divmod(instant + offset * SECOND, DAY), offset, zone)


def _offset_at(zone: str, days: int, nanoseconds: int, *, local: bool) -> int:
    year, month, day = civil(days)
    info = ZoneInfo(zone)
    seconds = nanoseconds // SECOND
    # Rules repeat every 400 years, and Python's calendar ends: a year of the same shape stands in.
    year = year if 1 < year < 9999 else 2000 + year % 400
    naive = python.datetime(year, month, day, seconds // 3600, seconds // 60 % 60, seconds % 60)
    at = naive.replace(tzinfo=info) if local else naive.replace(tzinfo=python.UTC).astimezone(info)
    offset = at.utcoffset()
    return int(offset.total_seconds()) if offset is not None else 0


def exact(number: float | int | Decimal) -> Fraction:
    """Return a number as the fraction that its decimal notation is."""
    return Fraction(str(number))
