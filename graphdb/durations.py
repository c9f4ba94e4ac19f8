"""Durations in SQL: structs of months, days, seconds and nanoseconds, which do not convert into each other.

DuckDB's INTERVAL holds no nanoseconds and takes thirty days for a month.  The nanoseconds are 0 to 999,999,999.  What
is asked of a value several times is bound to a name first, so that expressions do not grow with every operation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from graphdb.computed import compute
from graphdb.errors import NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.temporal import MONTH_SECONDS, Duration
from graphdb.temporal_build import Malformed, build_duration, parse_duration
from graphdb.typed import Typed
from graphdb.values import DATE, DATETIME, DURATION, INTEGER, Base, sql_type

if TYPE_CHECKING:
    from graphdb.expressions import Compiler
    from graphdb.functions import Functions

_SHORT = 40
"""Characters of SQL that may be repeated."""

_BILLION = "1000000000"


def _bound(c: Compiler, value: Typed, body: Callable[[str], str]) -> str:
    """Return SQL over a value that is named in it more than once."""
    if len(value.sql) <= _SHORT:
        return body(value.sql)
    name = c.fresh()
    return f"(list_transform([{value.sql}], lambda {name}: {body(name)}))[1]"


def _packed(months: str, days: str, seconds: str, nanoseconds: str, of: str) -> str:
    """Return SQL of a duration: null where ``of`` is."""
    parts = f"months := {months}, days := {days}, seconds := {seconds}, nanoseconds := {nanoseconds}"
    return f"CASE WHEN {of} IS NOT NULL THEN CAST(struct_pack({parts}) AS {sql_type(DURATION)}) END"


def constant(c: Compiler, value: Duration) -> Typed:
    """Return SQL of a known duration."""
    parts = value.months, value.days, value.seconds, value.nanoseconds
    months, days, seconds, nanoseconds = (c.rows.parameters.add(part, "BIGINT") for part in parts)
    return Typed(_packed(months, days, seconds, nanoseconds, "1"), DURATION)


def written(node: ast.Expression) -> Duration | None:
    """Return a duration that is written out as text or as a map of numbers; None for anything else."""
    try:
        match node:
            case ast.FunctionCall(name, (ast.Literal(str() as text),)) if name.lower() == "duration":
                return parse_duration(text)
            case ast.FunctionCall(name, (ast.MapLiteral(items),)) if name.lower() == "duration":
                parts = {key.text: getattr(part, "value", None) for key, part in items}
                if all(isinstance(part, (int, float)) and not isinstance(part, bool) for part in parts.values()):
                    return build_duration(parts)
    except (Malformed, ValueError):
        pass
    return None


def text(sql: str) -> str:
    """Return SQL of a duration's text, ISO 8601: all parts of its time have the sign of the whole."""
    back = f"{sql}.seconds < 0"
    behind = f"{back} AND {sql}.nanoseconds > 0"  # -1 s and half a billion nanoseconds are half a second back
    seconds = f"(abs({sql}.seconds) - CASE WHEN {behind} THEN 1 ELSE 0 END)"
    nanoseconds = f"(CASE WHEN {behind} THEN {_BILLION} - {sql}.nanoseconds ELSE {sql}.nanoseconds END)"
    sign = f"CASE WHEN {back} THEN '-' ELSE '' END"

    def part(amount: str, unit: str, sign: str = "''") -> str:
        return f"CASE WHEN {amount} <> 0 THEN {sign} || {amount} || '{unit}' ELSE '' END"

    date = [part(f"({sql}.months // 12)", "Y"), part(f"({sql}.months % 12)", "M"), part(f"{sql}.days", "D")]
    fraction = f"CASE WHEN {nanoseconds} > 0 THEN '.' || rtrim(lpad({nanoseconds}::VARCHAR, 9, '0'), '0') ELSE '' END"
    some = f"{seconds} % 60 > 0 OR {nanoseconds} > 0"
    last = f"CASE WHEN {some} THEN {sign} || {seconds} % 60 || {fraction} || 'S' ELSE '' END"
    time = [part(f"({seconds} // 3600)", "H", sign), part(f"({seconds} // 60 % 60)", "M", sign), last]
    none = f"{sql}.months = 0 AND {sql}.days = 0 AND {sql}.seconds = 0 AND {sql}.nanoseconds = 0"
    begun = f"CASE WHEN {sql}.seconds <> 0 OR {sql}.nanoseconds > 0 THEN 'T' ELSE '' END"
    written = f"CASE WHEN {none} THEN 'PT0S' ELSE 'P' || {' || '.join([*date, begun, *time])} END"
    return f"CASE WHEN {sql} IS NOT NULL THEN {written} END"


def text_of(c: Compiler, value: Typed) -> str:
    """Return SQL of the text of any expression that is a duration."""
    return _bound(c, value, text)


# --- making ----------------------------------------------------------------------------------------------------

_MONTHS = {"years": 12, "quarters": 3, "months": 1}
_DAYS = {"weeks": 7, "days": 1}
_SECONDS = {"hours": 3600, "minutes": 60, "seconds": 1}
_FRACTIONS = {"milliseconds": 10**6, "microseconds": 10**3, "nanoseconds": 1}


def _duration(c: Compiler, node: ast.FunctionCall) -> Typed:
    known = written(node)
    if known is not None:
        return constant(c, known)
    argument = node.arguments[0]
    if not isinstance(argument, ast.MapLiteral):
        value = c.compile(argument)
        if value.type == DURATION:
            return value
        raise _refused(node)
    parts = {key.text: c.one(part) for key, part in argument.items}
    units = (_MONTHS, _DAYS, _SECONDS, _FRACTIONS)
    if not parts or any(value.type != INTEGER for value in parts.values()) or parts.keys() - set().union(*units):
        raise _refused(node)
    months, days, seconds, fractions = (
        " + ".join(f"{parts[unit].sql} * {per}" for unit, per in of.items() if unit in parts) or "0" for of in units
    )
    carried = f"(({fractions}) // {_BILLION} - CASE WHEN ({fractions}) % {_BILLION} < 0 THEN 1 ELSE 0 END)"
    if fractions == "0":
        carried = "0"
    rest = f"((({fractions}) % {_BILLION} + {_BILLION}) % {_BILLION})"
    there = " + ".join(value.sql for value in parts.values())
    return Typed(_packed(months, days, f"{seconds} + {carried}", rest, there), DURATION)


def _between(unit: str) -> Callable[[Compiler, ast.FunctionCall], Typed]:
    """What lies between two days or local times: whole months, whole days of what is left, and the rest."""

    def compile(c: Compiler, node: ast.FunctionCall) -> Typed:
        values = [c.one(argument) for argument in node.arguments]
        if not all(value.type in (DATE, DATETIME) for value in values):
            raise _refused(node)
        times = [Typed(f"CAST({value.sql} AS TIMESTAMP)", DATETIME) for value in values]
        return Typed(_bound(c, times[0], lambda a: _bound(c, times[1], lambda b: _lies(c, unit, a, b))), DURATION)

    return compile


def _lies(c: Compiler, unit: str, a: str, b: str) -> str:
    there = f"{a} + ({b} - {a})"
    if unit == "inseconds":
        return _packed("0", "0", *_clock(f"(epoch_us({b}) - epoch_us({a}))"), there)
    if unit == "indays":
        return _packed("0", f"datesub('day', {a}, {b})", "0", "0", there)
    apart = f"((year({b}) - year({a})) * 12 + month({b}) - month({a}))"
    moved = f"{a} + to_months(CAST({apart} AS INTEGER))"
    over = f"CASE WHEN {apart} > 0 AND {moved} > {b} THEN 1 WHEN {apart} < 0 AND {moved} < {b} THEN -1 ELSE 0 END"
    months = Typed(f"({apart} - {over})", INTEGER)
    if unit == "inmonths":
        return _packed(months.sql, "0", "0", "0", there)

    def rest(m: str) -> str:
        start = f"({a} + to_months(CAST({m} AS INTEGER)))"
        days = f"datesub('day', {start}, {b})"
        left = f"(epoch_us({b}) - epoch_us({start}) - {days} * 86400000000)"
        return _packed(m, days, *_clock(left), there)

    return _bound(c, months, rest)


def _clock(microseconds: str) -> tuple[str, str]:
    """Return seconds and nanoseconds of microseconds."""
    rest = f"(({microseconds} % 1000000 + 1000000) % 1000000)"
    return f"(({microseconds} - {rest}) // 1000000)", f"({rest} * 1000)"


def _refused(node: ast.Expression) -> NotSupportedError:
    return NotSupportedError("such a duration is not supported in SQL", position=node.span.start)


FUNCTIONS: Functions = {
    "duration": (_duration, 1, 1),
    **{f"duration.{unit}": (_between(unit), 2, 2) for unit in ("between", "inmonths", "indays", "inseconds")},
}


# --- asking ----------------------------------------------------------------------------------------------------

_PARTS: Mapping[str, str] = {
    "years": "{0}.months // 12",
    "quarters": "{0}.months // 3",
    "months": "{0}.months",
    "weeks": "{0}.days // 7",
    "days": "{0}.days",
    "hours": "{0}.seconds // 3600",
    "minutes": "{0}.seconds // 60",
    "seconds": "{0}.seconds",
    "milliseconds": "{0}.seconds * 1000 + {0}.nanoseconds // 1000000",
    "microseconds": "{0}.seconds * 1000000 + {0}.nanoseconds // 1000",
    "quartersOfYear": "{0}.months % 12 // 3",
    "monthsOfQuarter": "{0}.months % 3",
    "monthsOfYear": "{0}.months % 12",
    "daysOfWeek": "{0}.days % 7",
    "minutesOfHour": "{0}.seconds % 3600 // 60",
    "secondsOfMinute": "{0}.seconds % 60",
    "millisecondsOfSecond": "{0}.nanoseconds // 1000000",
    "microsecondsOfSecond": "{0}.nanoseconds // 1000",
    "nanosecondsOfSecond": "{0}.nanoseconds",
}


def part(c: Compiler, value: Typed, name: str, node: ast.Property) -> Typed:
    """Return a component of a duration."""
    template = _PARTS.get(name)
    if template is None:
        raise NotSupportedError(f"'{name}' of a duration is not supported in SQL", position=node.span.start)
    if template.count("{0}") == 1:
        return Typed(f"({template.format(f'({value.sql})')})", INTEGER)
    return Typed(_bound(c, value, lambda d: f"({template.format(f'({d})')})"), INTEGER)


def sort_keys(value: Typed) -> list[str]:
    """Return what orders durations: their mean lengths, and of those that are as long their parts."""
    parts = [f"({value.sql}).{name}" for name in ("months", "days", "seconds", "nanoseconds")]
    months, days, seconds, nanoseconds = parts
    return [f"({months} * {MONTH_SECONDS} + {days} * 86400 + {seconds})", nanoseconds, months, days]


# --- computing -------------------------------------------------------------------------------------------------


def negative(c: Compiler, value: Typed) -> Typed:
    """Return the opposite of a duration."""

    def body(d: str) -> str:
        borrowed = f"CASE WHEN ({d}).nanoseconds > 0 THEN 1 ELSE 0 END"
        rest = f"({_BILLION} - ({d}).nanoseconds) % {_BILLION}"
        return _packed(f"-({d}).months", f"-({d}).days", f"-({d}).seconds - {borrowed}", rest, d)

    return Typed(_bound(c, value, body), DURATION)


def arithmetic(c: Compiler, operator: str, left: Typed, right: Typed, node: ast.Binary) -> Typed:
    """Return a sum, difference or multiple of times and durations."""
    a, b = left.type.base, right.type.base
    if operator == "+" and a is Base.DURATION and b in (Base.DATE, Base.DATETIME):
        return arithmetic(c, "+", right, left, ast.Binary("+", node.right, node.left, node.span))
    if operator in "+-" and b is Base.DURATION:
        if a is Base.DURATION:
            other = right if operator == "+" else negative(c, right)
            return Typed(_bound(c, left, lambda x: _bound(c, other, lambda y: _sum(x, y))), DURATION)
        if a is Base.DATE:
            sign = "" if operator == "+" else "-"
            return Typed(_bound(c, right, lambda d: _moved(left.sql, d, sign)), DATE)
        known = written(node.right)
        if a is Base.DATETIME and known is not None and known.nanoseconds % 1000 == 0:
            add, times = c.rows.parameters.add, 1 if operator == "+" else -1
            months, days = (add(times * n, "INTEGER") for n in (known.months, known.days))
            rest = add(times * known.total // 1000, "BIGINT")
            return Typed(f"({left.sql} + to_months({months}) + to_days({days}) + to_microseconds({rest}))", DATETIME)
    if operator == "*" and {a, b} == {Base.DURATION, Base.INTEGER}:
        value, times_ = (left, right) if a is Base.DURATION else (right, left)
        return Typed(_bound(c, value, lambda d: _bound(c, times_, lambda k: _times(d, k))), DURATION)
    raise NotSupportedError(f"{operator} of {left.type} and {right.type} is not supported in SQL")


def _sum(x: str, y: str) -> str:
    nanoseconds = f"(({x}).nanoseconds + ({y}).nanoseconds)"
    return _packed(
        f"({x}).months + ({y}).months",
        f"({x}).days + ({y}).days",
        f"({x}).seconds + ({y}).seconds + {nanoseconds} // {_BILLION}",
        f"{nanoseconds} % {_BILLION}",
        f"({x}).months + ({y}).months",
    )


def _times(d: str, k: str) -> str:
    nanoseconds = f"(({d}).nanoseconds * {k})"
    rest = f"(({nanoseconds} % {_BILLION} + {_BILLION}) % {_BILLION})"
    seconds = f"({d}).seconds * {k} + ({nanoseconds} - {rest}) // {_BILLION}"
    return _packed(f"({d}).months * {k}", f"({d}).days * {k}", seconds, rest, f"({d}).months + {k}")


def _moved(date: str, d: str, sign: str) -> str:
    """A date moved by months, then by days; of its time the whole days count."""
    below = f"-((-({d}).seconds - CASE WHEN ({d}).nanoseconds > 0 THEN 1 ELSE 0 END) // 86400)"
    of_time = f"CASE WHEN ({d}).seconds >= 0 THEN ({d}).seconds // 86400 ELSE {below} END"
    by_months = f"CAST({date} + to_months(CAST({sign}({d}).months AS INTEGER)) AS DATE)"
    return f"CAST({by_months} + CAST({sign}(({d}).days + {of_time}) AS INTEGER) AS DATE)"


def total(c: Compiler, node: ast.FunctionCall, value: Typed) -> Typed:
    """Return ``sum`` or ``avg`` of durations: the parts are added by SQL, the end is Python's, once for each group.

    The sum of none is the number 0, and a mean spills months into days, and days into seconds.
    """
    if node.distinct:
        raise NotSupportedError("the sum of distinct durations is not supported in SQL", position=node.span.start)
    parts = [f"sum(({value.sql}).{name})" for name in ("months", "days", "seconds", "nanoseconds")]
    months, days, seconds, nanoseconds = (f"CAST({part} AS HUGEINT)" for part in parts)
    number = f"count({value.sql})"
    carried, rest = f"{seconds} + {nanoseconds} // {_BILLION}", f"{nanoseconds} % {_BILLION}"
    added = Typed(_packed(months, days, carried, rest, f"nullif({number}, 0)"), DURATION)
    inner = c.within(replace(c.scope, variables={"#total": added, "#count": Typed(number, INTEGER)}, known={}))
    first, second = ast.Variable("#total", node.span), ast.Variable("#count", node.span)
    if node.name.lower() == "avg":
        return compute(inner, ast.Binary("/", first, second, node.span), DURATION)
    none = ast.Comparison(("=",), (second, ast.Literal(0)), node.span)
    return compute(inner, ast.Case(None, (((none,), ast.Literal(0)),), first, node.span))
