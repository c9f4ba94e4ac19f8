"""Temporal values from and to Python's own dates and times, which hold microseconds and the years 1 to 9999."""

from __future__ import annotations

import datetime as python
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from graphdb.common.errors import ParameterError
from graphdb.common.values.temporal import (
    LARGEST_OFFSET,
    SECOND,
    Date,
    DateTime,
    Duration,
    LocalDateTime,
    LocalTime,
    Temporal,
    Time,
    civil,
    days_of,
)


def to_python(value: Temporal) -> object:
    """Return the value of Python's own type where that holds all of it, else the value itself."""
    try:
        match value:
            case Date():
                return python.date(*civil(value.days))
            case LocalTime() if value.nanoseconds % 1000 == 0:
                return _python_time(value.nanoseconds)
            case Time() if value.nanoseconds % 1000 == 0:
                return _python_time(value.nanoseconds).replace(tzinfo=_python_zone(value.offset, None))
            case LocalDateTime() if value.nanoseconds % 1000 == 0:
                return python.datetime.combine(python.date(*civil(value.days)), _python_time(value.nanoseconds))
            case DateTime() if value.nanoseconds % 1000 == 0:
                local = python.datetime.combine(python.date(*civil(value.days)), _python_time(value.nanoseconds))
                found = local.replace(tzinfo=_python_zone(value.offset, value.zone))
                return found if found.utcoffset() == python.timedelta(seconds=value.offset) else found.replace(fold=1)
    except (ValueError, OverflowError, ZoneInfoNotFoundError):  # a year or a zone that Python does not have
        pass
    return value


def _python_time(nanoseconds: int) -> python.time:
    seconds, fraction = divmod(nanoseconds, SECOND)
    return python.time(seconds // 3600, seconds // 60 % 60, seconds % 60, fraction // 1000)


def is_known(zone: str) -> bool:
    """Whether Python has the rules of a zone."""
    try:
        ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _python_zone(offset: int, zone: str | None) -> python.tzinfo:
    return ZoneInfo(zone) if zone else python.timezone(python.timedelta(seconds=offset))


def offset_of(value: python.datetime | python.time) -> int | None:
    """Return the offset from UTC of a Python time in seconds; None where it has none.

    Raises
    ------
    ParameterError
        It is more than :data:`LARGEST_OFFSET`.
    """
    offset = value.utcoffset()
    if offset is not None and abs(offset.total_seconds()) > LARGEST_OFFSET:
        raise ParameterError(f"{value.isoformat()} is more than 18 hours from UTC")
    return None if offset is None else int(offset.total_seconds())


def from_python(value: object) -> Temporal | None:
    """Return the value of a Python date, time, datetime or timedelta; None for anything else.

    Raises
    ------
    ParameterError
        Its offset from UTC is more than :data:`LARGEST_OFFSET`.
    """
    match value:
        case python.datetime():
            days, nanoseconds = days_of(value.year, value.month, value.day), _nanoseconds(value)
            offset = offset_of(value)
            if offset is None:
                return LocalDateTime(days, nanoseconds)
            return DateTime(days, nanoseconds, offset, getattr(value.tzinfo, "key", None))
        case python.date():
            return Date(days_of(value.year, value.month, value.day))
        case python.time():
            offset = offset_of(value)
            if offset is None:
                return LocalTime(_nanoseconds(value))
            return Time(_nanoseconds(value), offset)
        case python.timedelta():
            return Duration(0, value.days, value.seconds, value.microseconds * 1000)
    return None


def _nanoseconds(value: python.datetime | python.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * SECOND + value.microsecond * 1000
