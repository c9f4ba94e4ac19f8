"""Dates, points in time and durations as columns: their parts, and what lies between them.

Parts of days are looked up in tables of a part of the calendar each, which are made once; few are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.values.temporal import MONTH_SECONDS
from graphdb.relational.vectors.numbers import (
    FITS,
    Operator,
    both,
    largest,
    multiplied,
    numeric,
    ordinal,
    require,
    truncated,
)

Ints = NDArray[np.int64]

DAY = 86_400_000_000
"""Microseconds."""

_FIRST_DAY = -719_162
"""The first day of the year 1: how years before it are counted differs."""

_LAST_DAY = 2_932_896
"""The last day of the year 9999: durations go no further."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_INSTANT = arrow.DataType("tsu:UTC")
"""The type of points in time in UTC."""

_TABLE = 1 << 16
"""Days of a table."""

_FEW = 512
"""Fewer days for each table that they lie in are computed: making a table takes as long as computing 65,536."""

_TABLES = 64
"""Tables that stay, of 512 KB each: four parts of all years from 1 to 9999 are 56 times that."""

PARTS = ("months", "days", "seconds", "nanoseconds")
"""The fields of a duration."""


def _part(part: Callable[[Ints], Ints]) -> Operator:
    """A part of dates and of points in time, each at its offset: that of its day."""

    def made(operands: list[arrow.Array]) -> arrow.Array:
        (operand,) = operands
        return arrow.numbers(_looked_up(part, _days(operand), operand.valid), operand.valid)

    return made


def _looked_up(part: Callable[[Ints], Ints], days: Ints, valid: NDArray[np.bool_] | None = None) -> Ints:
    """Return a part of days since 1970, of those that are valid."""
    if valid is not None:
        days = np.where(valid, days, 0)
    if not len(days):
        return days
    first, last = int(days.min()), int(days.max())
    require(first >= _FIRST_DAY and last <= _LAST_DAY)
    begin, end = first // _TABLE, last // _TABLE
    if len(days) < _FEW * (end - begin + 1):
        return part(days)
    tables = [_table(part, number) for number in range(begin, end + 1)]
    return (tables[0] if len(tables) == 1 else np.concatenate(tables))[days - begin * _TABLE]


def part_of_days(operator: str, first: int, last: int) -> Ints:
    """Return a part of each of some days since 1970, or the day itself: int64[last - first + 1].

    Raises
    ------
    NotVectorized
        SQL has other years.
    """
    days = np.arange(first, last + 1)
    return days if operator == "date" else _looked_up(_PARTS[operator], days)


@lru_cache(_TABLES)
def _table(part: Callable[[Ints], Ints], number: int) -> Ints:
    """Return a part of each of the days of a table: int64[_TABLE]."""
    return part(np.arange(number * _TABLE, (number + 1) * _TABLE))


def _days(array: arrow.Array) -> Ints:
    """Return days since 1970; what stands in the place of nulls means nothing."""
    return ordinal(array) if arrow.is_date(array.type) else _clock(array) // DAY


def _clock(array: arrow.Array) -> Ints:
    """Return the microseconds since 1970 that clocks show at points in time, each at its offset."""
    if arrow.is_timestamp(array.type):
        require(array.type.unit == "us")
        return ordinal(array)
    require(arrow.is_struct(array.type) and array.field("moment").type.unit == "us")
    moments, offsets = ordinal(array), numeric(array.field("offset"))
    return moments + offsets * 1_000_000 if offsets.any() else moments


def _unit(microseconds: int, most: int) -> Operator:
    """A part of the time of a day."""

    def made(operands: list[arrow.Array]) -> arrow.Array:
        (operand,) = operands
        return arrow.numbers(_clock(operand) // microseconds % most, operand.valid)

    return made


def _date(operands: list[arrow.Array]) -> arrow.Array:
    """The dates of points in time, each at its offset."""
    (operand,) = operands
    return arrow.Array(arrow.DATE, len(operand), operand.valid, _days(operand).astype(np.int32))


def _year(days: Ints) -> Ints:
    return days.view("M8[D]").astype("M8[Y]").astype(np.int64) + 1970


def _month(days: Ints) -> Ints:
    return days.view("M8[D]").astype("M8[M]").astype(np.int64) % 12 + 1


def _quarter(days: Ints) -> Ints:
    return (_month(days) + 2) // 3


def _day(days: Ints) -> Ints:
    begins: NDArray[np.datetime64] = days.view("M8[D]").astype("M8[M]").astype("M8[D]")
    return days - begins.astype(np.int64) + 1


def _weekday(days: Ints) -> Ints:
    return (days + 3) % 7 + 1  # 1970 began on a Thursday


_PARTS: Mapping[str, Callable[[Ints], Ints]] = {
    "year": _year,
    "quarter": _quarter,
    "month": _month,
    "day": _day,
    "dayOfWeek": _weekday,
}

UNITS: Mapping[str, tuple[int, int]] = {
    "hour": (3_600_000_000, 24),
    "minute": (60_000_000, 60),
    "second": (1_000_000, 60),
}
"""The parts of the time of a day: the microseconds of one, and how many there are before they begin again."""

NARROWING = frozenset({*_PARTS, *UNITS, "date"})
"""Operators whose results are few though what they take may be anything."""


def _begin(unit: str) -> Operator:
    """The first day of the year, quarter, month or week that dates are in, or the day itself."""

    def begins(days: Ints) -> Ints:
        if unit == "week":  # 1970 began on a Thursday
            return days - (days + 3) % 7
        if unit == "day":
            return days
        months = days.view("M8[D]").astype("M8[M]").astype(np.int64) // _MONTHS[unit] * _MONTHS[unit]
        return months.view("M8[M]").astype("M8[D]").astype(np.int64)

    def made(operands: list[arrow.Array]) -> arrow.Array:
        (operand,) = operands
        found = _looked_up(begins, _days(operand), operand.valid)
        return arrow.Array(arrow.DATE, len(operand), operand.valid, found.astype(np.int32))

    return made


def _time_at_begin(unit: str) -> Operator:
    """The points in time at which the units begin that others are in, each at its offset."""
    begin = _begin(unit) if unit in TRUNCATED else None  # whose tables stay

    def made(operands: list[arrow.Array]) -> arrow.Array:
        (operand,) = operands
        if begin is None:
            clock = _clock(operand)
            return _at(operand, clock - clock % UNITS[unit][0])
        return _at(operand, ordinal(begin(operands)) * DAY)

    return made


def _at(array: arrow.Array, clock: Ints) -> arrow.Array:
    """Return points in time whose clocks show so many microseconds since 1970, of the type and offsets of others."""
    if arrow.is_timestamp(array.type):
        return arrow.Array(array.type, len(array), array.valid, clock)
    moments, offset = array.field("moment"), array.field("offset")
    found = arrow.Array(moments.type, len(array), moments.valid, clock - numeric(offset) * 1_000_000)
    return arrow.struct_array([found, offset], ["moment", "offset"], array.valid)


def _in_utc(operands: list[arrow.Array]) -> arrow.Array:
    """The points in time at which clocks show dates and local times in UTC."""
    (operand,) = operands
    require(arrow.is_date(operand.type) or operand.type.tz is None)
    return arrow.Array(_INSTANT, len(operand), operand.valid, _microseconds(operand))


_MONTHS = {"year": 12, "quarter": 3, "month": 1}

TRUNCATED = (*_MONTHS, "week", "day")
"""Units that dates are truncated to; times to :data:`UNITS`, too."""


def _number(days: Ints) -> Ints:
    """Return numbers of days that leave each month 32 of them."""
    return (_year(days) * 12 + _month(days)) * 32 + _day(days)


def _later(operands: list[arrow.Array]) -> arrow.Array:
    """Dates or local times moved by months, days and seconds: by the months to the same day, or the last one of a month
    that is shorter, and from there on.
    """
    operand, *others = operands
    valid = both(*operands)
    months, days, seconds = (part if valid is None else np.where(valid, part, 0) for part in map(numeric, others))
    require(largest(months) < _FAR and largest(days) < _FAR and largest(seconds) < _FAR * 86_400)
    clock = _checked(operand, valid)
    day = clock // DAY
    if months.any():
        whole = day.view("M8[D]").astype("M8[M]").astype(np.int64) + months
        begin, end = (each.view("M8[M]").astype("M8[D]").astype(np.int64) for each in (whole, whole + 1))
        day = begin + np.minimum(_looked_up(_day, day), end - begin) - 1
    day = day + days
    if arrow.is_date(operand.type):
        require(not seconds.any())
        found = day
    else:
        found = day * DAY + clock % DAY + seconds * 1_000_000
        day = found // DAY
    require(not len(day) or (int(day.min()) >= _FIRST_DAY and int(day.max()) <= _LAST_DAY))
    return arrow.Array(operand.type, len(operand), valid, found.astype(operand.type.dtype))


_FAR = 1 << 23
"""Months or days that times are moved by, at most."""


# --- points in time


def instants(value: datetime, count: int) -> arrow.Array:
    """Return a point in time, in UTC, so many times."""
    microseconds = (value - _EPOCH) // timedelta(microseconds=1)
    return arrow.Array(_INSTANT, count, None, np.full(count, microseconds))


def dates(value: date, count: int) -> arrow.Array:
    """Return a date so many times."""
    return arrow.Array(arrow.DATE, count, None, np.full(count, (value - _EPOCH.date()).days, np.int32))


def is_instant(type: arrow.DataType) -> bool:
    """Whether values are points in time, in microseconds: in UTC, or at some offset."""
    if arrow.is_struct(type) and [field.name for field in type.fields] == ["moment", "offset"]:
        type = type.fields[0].type
    return arrow.is_timestamp(type) and type.unit == "us" and type.tz is not None


# --- durations


def _microseconds(array: arrow.Array) -> Ints:
    """Return local times, dates among them, as microseconds since 1970."""
    if arrow.is_date(array.type):
        return ordinal(array) * DAY
    require(arrow.is_timestamp(array.type) and array.type.unit == "us")
    return ordinal(array)


def _apart(operands: list[arrow.Array]) -> tuple[Ints, NDArray[np.bool_] | None]:
    """Return the microseconds from the first to the second of two times, and where there are any."""
    valid = both(*operands)
    begin, end = (_checked(operand, valid) for operand in operands)
    return end - begin, valid


def _checked(array: arrow.Array, valid: NDArray[np.bool_] | None) -> Ints:
    """Return :func:`_microseconds` of years that have four digits; 0 where they are not valid."""
    found = _microseconds(array)
    found = found if valid is None else np.where(valid, found, 0)
    days = found // DAY
    require(not len(days) or (int(days.min()) >= _FIRST_DAY and int(days.max()) <= _LAST_DAY))
    return found


def _months_between(operands: list[arrow.Array]) -> arrow.Array:
    """Whole months from one time to another: those between its day and the one up to which all days are whole; one is
    over on the same day of the next.
    """
    apart, valid = _apart(operands)
    day = _days(operands[0])
    day = day if valid is None else np.where(valid, day, 0)
    last = day + truncated(apart, DAY)
    return arrow.numbers(truncated(_looked_up(_number, last) - _looked_up(_number, day), 32), valid)


def _days_between(operands: list[arrow.Array]) -> arrow.Array:
    apart, valid = _apart(operands)
    return arrow.numbers(truncated(apart, DAY), valid)


def _seconds_between(operands: list[arrow.Array]) -> arrow.Array:
    apart, valid = _apart(operands)
    return arrow.numbers(apart // 1_000_000, valid)


def _duration(operands: list[arrow.Array]) -> arrow.Array:
    """Durations of their parts: null where one of these is."""
    return arrow.struct_array([arrow.numbers(numeric(part)) for part in operands], PARTS, both(*operands))


def sort_keys(array: arrow.Array) -> list[arrow.Array]:
    """Return what orders durations: their mean lengths in seconds, and of those that are as long their parts."""
    require([field.name for field in array.type.fields] == [*PARTS])
    months, days, seconds, nanoseconds = map(numeric, array.children)
    lengths = [multiplied(part, np.array(per)) for part, per in ((months, MONTH_SECONDS), (days, 86_400))]
    require(sum(map(largest, (*lengths, seconds))) < FITS)
    keys = [lengths[0] + lengths[1] + seconds, nanoseconds, months, days]
    return [arrow.numbers(part, array.valid) for part in keys[:1] + [part for part in keys[1:] if part.any()]]


TEMPORAL: Mapping[str, Operator] = {
    **{operator: _part(part) for operator, part in _PARTS.items()},
    **{operator: _unit(*unit) for operator, unit in UNITS.items()},
    "date": _date,
    **{f"begin of {unit}": _begin(unit) for unit in TRUNCATED},
    **{f"time at begin of {unit}": _time_at_begin(unit) for unit in (*TRUNCATED, *UNITS)},
    "in UTC": _in_utc,
    "later": _later,
    "duration": _duration,
    "months between": _months_between,
    "days between": _days_between,
    "seconds between": _seconds_between,
}
"""Operators by their names; see :class:`graphdb.relational.vectors.algebra.Operation`."""
