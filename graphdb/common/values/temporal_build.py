"""Temporal values from text and from maps, and truncated: openCypher's constructors.

What makes no value raises :class:`Malformed`, in every function here.  Text is ISO 8601, as openCypher takes it (also
without separators, and with a zone's name in brackets); days, nanoseconds and seconds are those of
:mod:`graphdb.common.values.temporal`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfoNotFoundError, available_timezones

from graphdb.common.errors import nearest
from graphdb.common.values.temporal import (
    DAY,
    LARGEST_OFFSET,
    SECOND,
    Date,
    DateTime,
    Duration,
    LocalDateTime,
    LocalTime,
    Temporal,
    Time,
    add_months,
    at_instant,
    civil,
    days_of,
    exact,
    iso_week,
    month_length,
    week_start,
    zoned,
)

_DATE = re.compile(
    r"(?P<year>[+-]\d{1,9}|\d{4})(?:-?W(?P<week>\d{2})(?:-?(?P<weekday>\d))?"
    r"|-(?P<month>\d{2})(?:-(?P<day>\d{2}))?|(?P<month2>\d{2})(?P<day2>\d{2})?(?!\d)|-?(?P<ordinal>\d{3}))?\Z"
)
_TIME = re.compile(r"(\d{2})(?::?(\d{2})(?::?(\d{2})(?:[.,](\d{1,9}))?)?)?\Z")
_ZONE = re.compile(r"(?P<offset>Z|[+-]\d{2}(?::?\d{2}(?::?\d{2})?)?)?(?:\[(?P<name>[^\]]+)\])?\Z")
_AMOUNT = r"(?:([+-]?\d+(?:[.,]\d+)?){})?"
_DURATION = re.compile(
    "([+-]?)P" + "".join(map(_AMOUNT.format, "YMWD")) + "(?:T" + "".join(map(_AMOUNT.format, "HMS")) + r")?\Z"
)
_DURATION_AS_DATE = re.compile(r"P(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,](\d+))?\Z")


class Malformed(ValueError):
    """A text or map that makes no temporal value; the message says why."""

    @property
    def hint(self) -> str | None:
        """What may have been meant."""
        return None


class UnknownZone(Malformed):
    """The name of no time zone."""

    def __init__(self, name: str) -> None:
        super().__init__(f"unknown time zone '{name}'")
        self.name = name

    @property
    def hint(self) -> str | None:
        """The zones whose names resemble it: looked for only where the error is reported."""
        return zones_like(self.name)


def zones_like(name: str) -> str | None:
    """Return a hint at the zones whose names resemble one; None where none does."""
    near = nearest(name, available_timezones())
    return f"did you mean {' or '.join(map(repr, near))}?" if near else None


# --- text ------------------------------------------------------------------------------------------------------


def parse_date(text: str) -> int:
    """Return the day that an ISO 8601 date names."""
    found = _DATE.match(text)
    if found is None:
        raise Malformed(f"'{text}' is not a date")
    year = int(found["year"])
    if found["week"]:
        return _of_week(year, int(found["week"]), int(found["weekday"] or 1))
    if found["ordinal"]:
        return _of_ordinal(year, int(found["ordinal"]))
    return _of_civil(year, int(found["month"] or found["month2"] or 1), int(found["day"] or found["day2"] or 1))


def parse_time(text: str) -> int:
    """Return the nanoseconds of the day that an ISO 8601 time names."""
    found = _TIME.match(text)
    if found is None:
        raise Malformed(f"'{text}' is not a time")
    hour, minute, second, fraction = found.groups()
    return _of_clock(int(hour), int(minute or 0), int(second or 0)) + int((fraction or "0").ljust(9, "0"))


def parse_offset(text: str) -> int:
    """Return the seconds of ``Z`` or ``+01:00``."""
    found = re.fullmatch(r"([+-])(\d{2}):?(\d{2})?:?(\d{2})?", text)
    if text in ("Z", "z"):
        return 0
    if found is None:
        raise Malformed(f"'{text}' is not an offset from UTC")
    sign, hours, minutes, seconds = found.groups()
    offset = int(hours) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    if offset > LARGEST_OFFSET:
        raise Malformed(f"'{text}' is more than 18 hours from UTC")
    return -offset if sign == "-" else offset


def _parse_zone(text: str) -> tuple[int | None, str | None]:
    found = _ZONE.match(text)
    if found is None:
        raise Malformed(f"'{text}' is not a time zone")
    return (parse_offset(found["offset"]) if found["offset"] else None), found["name"]


def parse(kind: type[Temporal], text: str) -> Temporal:
    """Return the value of one type that a text in ISO 8601 names."""
    if kind is Duration:
        return parse_duration(text)
    if kind is Date:
        return Date(parse_date(text))
    if kind is LocalTime:
        return LocalTime(parse_time(text))
    if kind is Time:
        at = next((i for i, c in enumerate(text) if c in "Z+-["), len(text))
        offset, _ = _parse_zone(text[at:])
        return Time(parse_time(text[:at]), offset or 0)
    date, _, time = text.partition("T")
    if kind is LocalDateTime:
        return LocalDateTime(parse_date(date), parse_time(time) if time else 0)
    at = next((i for i, c in enumerate(time) if c in "Z+-["), len(time))
    if not time and "[" in date:
        date, _, zone = date.partition("[")
        return with_zone(parse_date(date), 0, None, zone.rstrip("]"))
    days, nanoseconds = parse_date(date), parse_time(time[:at]) if time[:at] else 0
    offset, name = _parse_zone(time[at:])
    return with_zone(days, nanoseconds, offset, name)


def with_zone(days: int, nanoseconds: int, offset: int | None, name: str | None) -> DateTime:
    """Return a local date and time at an offset or in a zone (in UTC without either).

    With both, the zone's rules count; the offset tells which of two times is meant when its clocks are put back.
    """
    if name is None:
        return DateTime(days, nanoseconds, offset or 0)
    try:
        return zoned(days, nanoseconds, name, offset)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UnknownZone(name) from None


def parse_duration(text: str) -> Duration:
    """Return the duration that a text in ISO 8601 names, fractions and signs in any place."""
    found = _DURATION_AS_DATE.match(text)
    if found is not None:
        whole, fraction = found.groups()[:-1], found.groups()[-1]
        years, months, days, hours, minutes, seconds = map(int, whole)
        nanoseconds = ((hours * 60 + minutes) * 60 + seconds) * SECOND + int((fraction or "0").ljust(9, "0")[:9])
        return Duration.of(years * 12 + months, days, nanoseconds)
    found = _DURATION.match(text)
    if found is None or text[-1] in "PT":
        raise Malformed(f"'{text}' is not a duration")
    sign, amounts = found.groups()[0], found.groups()[1:]
    numbers = [Fraction((amount or "0").replace(",", ".")) for amount in amounts]
    return _duration(numbers, -1 if sign == "-" else 1)


def _duration(amounts: list[Fraction], sign: int = 1) -> Duration:
    years, months, weeks, days, hours, minutes, seconds = (sign * amount for amount in amounts)
    return Duration.of(years * 12 + months, weeks * 7 + days, ((hours * 60 + minutes) * 60 + seconds) * SECOND)


# --- checked components ----------------------------------------------------------------------------------------


def _of_civil(year: int, month: int, day: int) -> int:
    if not 1 <= month <= 12:
        raise Malformed(f"there is no month {month}")
    if not 1 <= day <= month_length(year, month):
        raise Malformed(f"there is no day {day} in {year}-{month:02d}")
    return days_of(year, month, day)


def _of_week(year: int, week: int, weekday: int) -> int:
    if not (1 <= week <= 53 and 1 <= weekday <= 7):
        raise Malformed(f"there is no day {weekday} of week {week}")
    if week == 53 and iso_week(week_start(year) + 52 * 7)[0] != year:
        raise Malformed(f"{year} has no week 53")
    return week_start(year) + (week - 1) * 7 + weekday - 1


def _of_ordinal(year: int, day: int) -> int:
    if not 1 <= day <= days_of(year + 1, 1, 1) - days_of(year, 1, 1):
        raise Malformed(f"there is no day {day} in {year}")
    return days_of(year, 1, 1) + day - 1


def _of_clock(hour: int, minute: int, second: int) -> int:
    if not (0 <= hour <= 23 and 0 <= minute <= 59 and 0 <= second <= 59):
        raise Malformed(f"there is no time {hour:02d}:{minute:02d}:{second:02d}")
    return ((hour * 60 + minute) * 60 + second) * SECOND


# --- maps ------------------------------------------------------------------------------------------------------

_DATE_KEYS = ("year", "month", "day", "week", "dayOfWeek", "quarter", "dayOfQuarter", "ordinalDay")
_CLOCK_KEYS = ("hour", "minute", "second", "millisecond", "microsecond", "nanosecond")


def build(kind: type[Temporal], parts: Mapping[str, Any]) -> Temporal:
    """Return the value of one type that a map of components describes.

    A ``date``, ``time`` or ``datetime`` among them gives the components that are not there.
    """
    known = {*_DATE_KEYS, *_CLOCK_KEYS, "date", "time", "datetime", "timezone", "epochSeconds", "epochMillis"}
    for key, part in parts.items():
        if key not in known:
            raise Malformed(f"'{key}' is no component of a {kind.kind}")
        whole = isinstance(part, int) and not isinstance(part, bool)
        if not whole and key not in ("date", "time", "datetime", "timezone"):
            raise Malformed(f"'{key}' needs an integer, found {part!r}")
    if kind is DateTime and ("epochSeconds" in parts or "epochMillis" in parts):
        instant = int(parts.get("epochSeconds", 0)) * SECOND + int(parts.get("epochMillis", 0)) * 10**6
        zone = parts.get("timezone", 0)
        return at_instant(instant + _fraction(parts, 0), _zone_of(zone) if isinstance(zone, str) else 0)
    date_base = parts.get("date", parts.get("datetime"))
    time_base = parts.get("time", parts.get("datetime"))
    days = _date(parts, getattr(date_base, "days", None)) if kind in (Date, LocalDateTime, DateTime) else 0
    nanoseconds = _clock(parts, getattr(time_base, "nanoseconds", None)) if kind is not Date else 0
    if kind is Date:
        return Date(days)
    if kind is LocalTime:
        return LocalTime(nanoseconds)
    if kind is LocalDateTime:
        return LocalDateTime(days, nanoseconds)
    return _zoned(kind, parts, days, nanoseconds, time_base)


def _zoned(kind: type[Temporal], parts: Mapping[str, Any], days: int, nanoseconds: int, base: Any) -> Temporal:
    """Finish a time or date-time: with a base's own zone, or brought into the zone that is asked for."""
    asked = parts.get("timezone")
    own = isinstance(base, (Time, DateTime))
    if kind is Time:
        if asked is None:
            return Time(nanoseconds, base.offset if own else 0)
        offset = _zone_of(asked)
        if isinstance(offset, str):
            offset = with_zone(getattr(base, "days", 0), nanoseconds, None, offset).offset
        moved = (offset - base.offset) * SECOND if own else 0
        return Time((nanoseconds + moved) % DAY, offset)
    if asked is None:
        if not own:
            return DateTime(days, nanoseconds, 0)
        return with_zone(days, nanoseconds, base.offset, getattr(base, "zone", None))
    zone = _zone_of(asked)
    if own:
        local = with_zone(days, nanoseconds, base.offset, getattr(base, "zone", None))
        return at_instant(local.sort_key()[0], zone)
    return with_zone(days, nanoseconds, *((zone, None) if isinstance(zone, int) else (None, zone)))


def _zone_of(text: str) -> int | str:
    """Return an offset in seconds, or the name of a zone."""
    return parse_offset(text) if re.fullmatch(r"[Zz]|[+-]\d.*", text) else text


def _date(parts: Mapping[str, Any], base: int | None) -> int:
    year = parts.get("year")
    if year is None and base is None:
        raise Malformed("a date needs a year")
    year = int(civil(base)[0] if year is None else year)  # type: ignore[arg-type]
    _refuse_gaps(parts, base)
    if "week" in parts or ("dayOfWeek" in parts and base is not None):
        if base is not None:
            base_year, base_week, base_day = iso_week(base)
            year = int(parts.get("year", base_year))
            return _of_week(year, int(parts.get("week", base_week)), int(parts.get("dayOfWeek", base_day)))
        return _of_week(year, int(parts["week"]), int(parts.get("dayOfWeek", 1)))
    if "quarter" in parts or "dayOfQuarter" in parts:
        month = (int(parts["quarter"]) - 1) * 3 + 1 if "quarter" in parts else (civil(base or 0)[1] - 1) // 3 * 3 + 1
        if not 1 <= month <= 10:
            raise Malformed(f"there is no quarter {parts['quarter']}")
        day = parts.get("dayOfQuarter")
        if day is None and base is not None:
            _, base_month, base_day = civil(base)
            month += (base_month - 1) % 3
            return _of_civil(year, month, int(parts.get("day", min(base_day, month_length(year, month)))))
        first, day = days_of(year, month, 1), 1 if day is None else int(day)
        if not 1 <= day <= add_months(first, 3) - first:
            raise Malformed(f"there is no day {day} in the quarter")
        return first + day - 1
    if "ordinalDay" in parts:
        return _of_ordinal(year, int(parts["ordinalDay"]))
    _, month, day = civil(base) if base is not None else (0, 1, 1)
    month = int(parts.get("month", month))
    if base is not None and "day" not in parts and 1 <= month <= 12:
        day = min(day, month_length(year, month))
    return _of_civil(year, month, int(parts.get("day", day)))


def _refuse_gaps(parts: Mapping[str, Any], base: int | None) -> None:
    if base is None and "day" in parts and not {"month", "quarter"} & parts.keys():
        raise Malformed("a day needs a month")
    if base is None and "dayOfWeek" in parts and "week" not in parts:
        raise Malformed("a day of the week needs a week")


def _clock(parts: Mapping[str, Any], base: int | None) -> int:
    if base is None and "hour" not in parts and {"minute", "second", *_CLOCK_KEYS[3:]} & parts.keys():
        raise Malformed("a time needs an hour")
    seconds, fraction = divmod(base or 0, SECOND)
    hour = int(parts.get("hour", seconds // 3600))
    minute = int(parts.get("minute", seconds // 60 % 60))
    second = int(parts.get("second", seconds % 60))
    return _of_clock(hour, minute, second) + _fraction(parts, fraction)


def _fraction(parts: Mapping[str, Any], base: int) -> int:
    """The nanoseconds of the second: milli-, micro- and nanoseconds each replace their own digits of the base."""
    given = [key for key in _CLOCK_KEYS[3:] if key in parts]
    if not given:
        return base
    digits = {"millisecond": base // 10**6, "microsecond": base // 1000 % 1000, "nanosecond": base % 1000}
    if int(parts.get("nanosecond", 0)) > 999:
        digits["microsecond"] = 0
    if int(parts.get("microsecond", 0)) > 999 or int(parts.get("nanosecond", 0)) > 999_999:
        digits["millisecond"] = 0
    digits |= {key: int(parts[key]) for key in given}
    total = digits["millisecond"] * 10**6 + digits["microsecond"] * 1000 + digits["nanosecond"]
    if not 0 <= total < SECOND:
        raise Malformed("a fraction of a second is less than a second")
    return total


_UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds")


def build_duration(parts: Mapping[str, Any]) -> Duration:
    """Return the duration of a map of amounts, which may be fractions."""
    for unit, amount in parts.items():
        if isinstance(amount, bool) or not isinstance(amount, (int, float, Decimal)):
            raise Malformed(f"'{unit}' needs a number, found {amount!r}")
    amounts = {unit: exact(amount) for unit, amount in parts.items()}
    amounts["months"] = amounts.get("months", Fraction(0)) + 3 * amounts.pop("quarters", Fraction(0))
    small = {"milliseconds": 1000, "microseconds": 10**6, "nanoseconds": SECOND}
    seconds = amounts.get("seconds", Fraction(0)) + sum(
        (amounts.pop(unit, Fraction(0)) / per for unit, per in small.items()), Fraction(0)
    )
    for unit in amounts:
        if unit not in _UNITS:
            raise Malformed(f"'{unit}' is no unit of a duration")
    amounts["seconds"] = seconds
    return _duration([amounts.get(unit, Fraction(0)) for unit in _UNITS])


def convert(kind: type[Temporal], value: Temporal) -> Temporal:
    """Return a value as one of another type: what it has of it, and nothing for the rest."""
    if type(value) is kind:
        return value
    parts: dict[str, Any] = {}
    if hasattr(value, "days") and not isinstance(value, Duration):
        parts["date"] = value
    if hasattr(value, "nanoseconds") and not isinstance(value, Duration):
        parts["time"] = value
    if not parts or ("date" not in parts and kind in (Date, LocalDateTime, DateTime)):
        raise Malformed(f"a {value.kind} makes no {kind.kind}")
    if kind in (LocalTime, Time) and "time" not in parts:
        raise Malformed(f"a {value.kind} makes no {kind.kind}")
    return build(kind, parts)


# --- truncation ------------------------------------------------------------------------------------------------


def truncate(kind: type[Temporal], unit: str, value: Temporal, parts: Mapping[str, Any]) -> Temporal:
    """Return a value cut down to a unit, then with the components in ``parts``."""
    days: int | None = None if isinstance(value, Duration) else getattr(value, "days", None)
    nanoseconds = getattr(value, "nanoseconds", 0)
    unit = unit.lower()
    units = {"hour": 3600 * SECOND, "minute": 60 * SECOND, "second": SECOND, "millisecond": 10**6, "microsecond": 1000}
    if unit in units:
        if kind is Date:
            raise Malformed(f"a date cannot be truncated to the {unit}")
        nanoseconds -= nanoseconds % units[unit]
    else:
        nanoseconds = 0
        if days is not None:
            days = _truncated(unit, days)
        elif unit != "day":
            raise Malformed(f"a {value.kind} cannot be truncated to the {unit}")
    if days is None and kind in (Date, LocalDateTime, DateTime):
        raise Malformed(f"a {value.kind} makes no {kind.kind}")
    offset, zone = getattr(value, "offset", None), getattr(value, "zone", None)
    changed: dict[str, Any] = {key: part for key, part in parts.items() if key != "timezone"}
    if days is not None:
        changed["date"] = Date(days)
    changed["time"] = LocalTime(nanoseconds)
    if "timezone" in parts:
        changed["timezone"] = parts["timezone"]
        return build(kind, changed)
    if kind is DateTime and (offset is not None or zone is not None):
        local = build(LocalDateTime, changed)
        assert isinstance(local, LocalDateTime)
        return with_zone(local.days, local.nanoseconds, offset, zone)
    if kind is Time and offset is not None:
        local_time = build(LocalTime, changed)
        assert isinstance(local_time, LocalTime)
        return Time(local_time.nanoseconds, offset)
    if kind in (LocalTime, Time):
        changed.pop("date", None)
    return build(kind, changed)


def _truncated(unit: str, days: int) -> int:
    year, month, _ = civil(days)
    years = {"millennium": 1000, "century": 100, "decade": 10, "year": 1}
    if unit in years:
        return days_of(year - year % years[unit], 1, 1)
    if unit == "weekyear":
        return week_start(iso_week(days)[0])
    if unit == "quarter":
        return days_of(year, (month - 1) // 3 * 3 + 1, 1)
    if unit == "month":
        return days_of(year, month, 1)
    if unit == "week":
        return days - (days + 3) % 7
    if unit == "day":
        return days
    raise Malformed(f"'{unit}' is no unit of time")
