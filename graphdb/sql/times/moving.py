"""Compiles days and times moved by durations: by months of the calendar, then by days, then by time that passes."""

from __future__ import annotations

from graphdb.common.values.temporal import DATED, Duration
from graphdb.common.values.types import DATETIME, TIME, Base
from graphdb.grammar import syntax as ast
from graphdb.sql import exact
from graphdb.sql.compiler import Compiler
from graphdb.sql.times import in_zones
from graphdb.sql.times.temporal import at_same_offset
from graphdb.sql.value import SqlValue, at_offset, instant, offset_of

_MOST = 1 << 62
"""Microseconds that are added at once."""


def day(date: str, d: str, sign: str) -> str:
    """Return SQL of a date moved by a duration, or back (``sign`` is ``-``): of its time the whole days count."""
    below = f"-((-({d}).seconds - CASE WHEN ({d}).nanoseconds > 0 THEN 1 ELSE 0 END) // 86400)"
    of_time = f"CASE WHEN ({d}).seconds >= 0 THEN ({d}).seconds // 86400 ELSE {below} END"
    by_months = f"CAST({date} + to_months(CAST({sign}({d}).months AS INTEGER)) AS DATE)"
    return f"CAST({by_months} + CAST({sign}(({d}).days + {of_time}) AS INTEGER) AS DATE)"


def time(c: Compiler, node: ast.Binary, value: SqlValue, by: SqlValue | Duration, operator: str) -> SqlValue:
    """Return a time of any type moved by a duration, or back: one to the microsecond where both are.

    ``node`` is the sum or difference.
    """
    add, times = c.rows.parameters.add, 1 if operator == "+" else -1
    if isinstance(by, Duration):
        microseconds, rest = divmod(times * by.total, 1000)
        passed = times * by.days * 86_400_000_000 + microseconds
        if value.type.base in (Base.ZONED, Base.MOMENT) and not by.months and not rest and abs(passed) < _MOST:
            moment = f"make_timestamptz(epoch_us({instant(value).sql}) + {add(passed, 'BIGINT')})"
            return (
                SqlValue(moment, value.type) if value.type.base is Base.ZONED else at_offset(moment, offset_of(value))
            )
        months, days = (add(times * n, "INTEGER") if n or not value.type.by_name else "" for n in (by.months, by.days))
        return _moved(c, node, value, months, days, add(microseconds, "BIGINT"), add(rest, "INTEGER") if rest else "")
    parts = by.parts[1:] or [f"({by.sql}).{name}" for name in ("months", "days", "seconds", "nanoseconds")]
    sign = "" if operator == "+" else "-"
    months, days = (f"CAST({sign}({part}) AS INTEGER)" for part in parts[:2])
    seconds, fraction = f"({sign}({parts[2]}) * 1000000)", parts[3]
    if fraction == "0":
        return _moved(c, node, value, months, days, seconds, "")
    if sign:
        seconds, fraction = f"({seconds} - ({fraction} + 999) // 1000)", f"((1000 - {fraction} % 1000) % 1000)"
    else:
        seconds, fraction = f"({seconds} + {fraction} // 1000)", f"({fraction} % 1000)"
    return _moved(c, node, value, months, days, seconds, fraction)


def _moved(
    c: Compiler, node: ast.Binary, value: SqlValue, months: str, days: str, microseconds: str, nanoseconds: str
) -> SqlValue:
    """Return a time moved by parts of a duration (SQL); ``nanoseconds`` are 0 to 999, or empty: there are none.

    Of a point in time in a zone, months and days may be empty, too.
    """
    kind = exact.kind_of(value.type)
    assert kind is not None
    rest = exact.nanoseconds_of(value)
    if nanoseconds:
        if rest != "0":
            nanoseconds = f"({rest} + {nanoseconds})"
            microseconds, nanoseconds = f"{microseconds} + {nanoseconds} // 1000", f"{nanoseconds} % 1000"
        rest = nanoseconds
    if value.type.by_name:
        calendar = (f" + to_months({months})" if months else "") + (f" + to_days({days})" if days else "")
        return in_zones.moved(c, node, value, calendar, microseconds, rest)
    clock = exact.clock_of(value)
    if kind in DATED:
        clock = f"({clock} + to_months({months}) + to_days({days}) + to_microseconds({microseconds}))"
    else:  # months and days lead to the same time
        clock = exact.time_of_day(f"epoch_us({clock}) + {microseconds}")
    if value.type.base is Base.EXACT or nanoseconds:
        return exact.exact(kind, clock, rest, offset_of(value))
    if value.type.base is Base.TIME:
        return SqlValue(f"CAST({clock} AS TIME)", TIME)
    return SqlValue(clock, DATETIME) if value.type.base is Base.DATETIME else at_same_offset(value, clock)
