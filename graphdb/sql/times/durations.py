"""Compiles durations: structs of months, days, seconds and nanoseconds, which do not convert into each other.

DuckDB's INTERVAL has no nanoseconds and takes thirty days for a month.  The nanoseconds are 0 to 999,999,999.  What
is asked of a value several times is bound to a name first, so that expressions do not grow with every operation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.duration_texts import duration_of
from graphdb.common.values.temporal import MONTH_SECONDS, Duration
from graphdb.common.values.temporal import exact as fraction_of
from graphdb.common.values.temporal_build import Malformed, build_duration, parse_duration
from graphdb.common.values.types import DATE, DURATION, INTEGER, STRING, Base
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.sql import exact
from graphdb.sql.compiler import Compiler, Forms
from graphdb.sql.times import in_zones, moving
from graphdb.sql.times.between import between
from graphdb.sql.times.duration_parts import BILLION, NAMES, all_bound, bound, packed, parts
from graphdb.sql.times.making import or_computed
from graphdb.sql.times.temporal import constant as folded_time
from graphdb.sql.times.temporal import folded
from graphdb.sql.udf import compute
from graphdb.sql.value import SqlValue, named


def constant(c: Compiler, value: Duration) -> SqlValue:
    """Return SQL of a known duration."""
    parts = value.months, value.days, value.seconds, value.nanoseconds
    months, days, seconds, nanoseconds = (c.rows.parameters.add(part, "BIGINT") for part in parts)
    return packed(months, days, seconds, nanoseconds, "1")


def written(c: Compiler, node: ast.Expression) -> Duration | None:
    """Return a duration that text and parameters say, as a text or as a map of numbers; None for anything else."""

    def value(node: ast.Expression) -> object:
        return c.arguments.get(node.name) if isinstance(node, ast.Parameter) else getattr(node, "value", None)

    if not isinstance(node, ast.FunctionCall) or node.name.lower() != "duration":
        return None
    try:
        match node.arguments:
            case (ast.Literal() | ast.Parameter() as given,) if isinstance(text := value(given), str):
                return parse_duration(text)
            case (ast.MapLiteral(items),):
                parts = {key.text: value(part) for key, part in items}
                if all(isinstance(part, (int, float)) and not isinstance(part, bool) for part in parts.values()):
                    return build_duration(parts)
    except (Malformed, ValueError):
        pass
    return None


def text(sql: str) -> str:
    """Return SQL of a duration's text, ISO 8601: all parts of its time have the sign of the whole."""
    months, days, seconds, nanoseconds = (f"{sql}.{name}" for name in NAMES)

    def part(amount: str, unit: str, sign: str = "") -> str:
        return f"CASE WHEN {amount} = 0 THEN '' ELSE {sign}({amount}) || '{unit}' END"

    def clock(seconds: str, last: str, sign: str = "") -> str:
        return f"{part(f'{seconds} // 3600', 'H', sign)} || {part(f'{seconds} // 60 % 60', 'M', sign)} || {last}"

    behind = f"{seconds} < 0 AND {nanoseconds} > 0"  # -1 s and half a billion nanoseconds are half a second back
    whole = f"(abs({seconds}) - CASE WHEN {behind} THEN 1 ELSE 0 END)"
    below = f"(CASE WHEN {behind} THEN {BILLION} - {nanoseconds} ELSE {nanoseconds} END)"
    sign = f"CASE WHEN {seconds} < 0 THEN '-' ELSE '' END || "
    fraction = f"CASE WHEN {below} > 0 THEN '.' || rtrim(lpad({below}::VARCHAR, 9, '0'), '0') ELSE '' END"
    some = f"{whole} % 60 > 0 OR {below} > 0"
    any = clock(whole, f"CASE WHEN {some} THEN {sign}{whole} % 60 || {fraction} || 'S' ELSE '' END", sign)
    # Most have no months, no fractions, and no sign: they are asked for no more.
    date = f"CASE WHEN {months} = 0 THEN '' ELSE {part(f'{months} // 12', 'Y')} || {part(f'{months} % 12', 'M')} END"
    time = (
        f"CASE WHEN {seconds} = 0 AND {nanoseconds} = 0 THEN '' WHEN {seconds} > 0 AND {nanoseconds} = 0 "
        f"THEN 'T' || {clock(seconds, part(f'{seconds} % 60', 'S'))} ELSE 'T' || {any} END"
    )
    none = " AND ".join(f"{part} = 0" for part in (months, days, seconds, nanoseconds))
    written = f"CASE WHEN {none} THEN 'PT0S' ELSE 'P' || {date} || {part(days, 'D')} || {time} END"
    return f"CASE WHEN {sql} IS NOT NULL THEN {written} END"


def text_of(c: Compiler, value: SqlValue) -> str:
    """Return SQL of the text of any expression that is a duration."""
    return bound(c, value, lambda sql: SqlValue(text(sql), STRING)).sql


# --- making ----------------------------------------------------------------------------------------------------

_MONTHS = {"years": 12, "quarters": 3, "months": 1}
_DAYS = {"weeks": 7, "days": 1}
_SECONDS = {"hours": 3600, "minutes": 60, "seconds": 1}
_FRACTIONS = {"milliseconds": 10**6, "microseconds": 10**3, "nanoseconds": 1}


def _duration(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    known = written(c, node)
    if known is not None:
        return constant(c, known)
    argument = node.arguments[0]
    if not isinstance(argument, ast.MapLiteral):
        value = c.compile(argument)
        if value.type == DURATION:
            return value
        if value.type == STRING and not value.many and value.atomic:  # it is named for each part
            usual, found = duration_of(value.sql)
            return or_computed(c, node, [value], SqlValue(f"CASE WHEN {usual} THEN {found} END", DURATION))
        raise _refused(node)
    parts = {key.text: c.one(part) for key, part in argument.items}
    units = (_MONTHS, _DAYS, _SECONDS, _FRACTIONS)
    if not parts or any(value.type != INTEGER for value in parts.values()) or parts.keys() - set().union(*units):
        raise _refused(node)
    months, days, seconds, fractions = (
        " + ".join(
            parts[unit].sql if per == 1 else f"{parts[unit].sql} * {per}" for unit, per in of.items() if unit in parts
        )
        or "0"
        for of in units
    )
    rest = "0"
    if fractions != "0":
        seconds += f" + (({fractions}) // {BILLION} - CASE WHEN ({fractions}) % {BILLION} < 0 THEN 1 ELSE 0 END)"
        rest = f"((({fractions}) % {BILLION} + {BILLION}) % {BILLION})"
    there = " + ".join(value.sql for value in parts.values())
    return packed(months, days, seconds, rest, there)


def _refused(node: ast.Expression) -> NotSupportedError:
    return NotSupportedError("such a duration is not supported in SQL", position=node.span.start)


FORMS: Forms = {
    "duration": _duration,
    **{f"duration.{unit}": between(unit) for unit in ("between", "inmonths", "indays", "inseconds")},
}


# --- asking ----------------------------------------------------------------------------------------------------

_PARTS: Mapping[str, str] = {
    "years": "{months} // 12",
    "quarters": "{months} // 3",
    "months": "{months}",
    "weeks": "{days} // 7",
    "days": "{days}",
    "hours": "{seconds} // 3600",
    "minutes": "{seconds} // 60",
    "seconds": "{seconds}",
    "milliseconds": "{seconds} * 1000 + {nanoseconds} // 1000000",
    "microseconds": "{seconds} * 1000000 + {nanoseconds} // 1000",
    "nanoseconds": "{seconds} * 1000000000 + {nanoseconds}",
    "quartersOfYear": "{months} % 12 // 3",
    "monthsOfQuarter": "{months} % 3",
    "monthsOfYear": "{months} % 12",
    "daysOfWeek": "{days} % 7",
    "minutesOfHour": "{seconds} % 3600 // 60",
    "secondsOfMinute": "{seconds} % 60",
    "millisecondsOfSecond": "{nanoseconds} // 1000000",
    "microsecondsOfSecond": "{nanoseconds} // 1000",
    "nanosecondsOfSecond": "{nanoseconds}",
}


def part(c: Compiler, value: SqlValue, name: str, node: ast.Property) -> SqlValue:
    """Return a component of a duration."""
    template = _PARTS.get(name)
    if template is None:
        raise NotSupportedError(f"'{name}' of a duration is not supported in SQL", position=node.span.start)
    asked = [part for part in NAMES if f"{{{part}}}" in template]
    if asked == ["months"] and isinstance(node.base, ast.FunctionCall) and node.base.name.lower() == "duration.between":
        value = between("inmonths")(c, node.base)  # what is left of the months is not asked for

    def made(parts: list[str]) -> SqlValue:
        return SqlValue(f"({template.format(**dict(zip(NAMES, parts, strict=True)))})", INTEGER)

    if value.parts or len(asked) == 1:
        return made(parts(value))
    return bound(c, value, lambda d: made(parts(named(d, DURATION))))


def sort_keys(value: SqlValue) -> list[str]:
    """Return what orders durations: their mean lengths, and of those that are as long their parts."""
    nothing = [part == "0" for part in value.parts[1:]] or [False] * len(NAMES)
    months, days, seconds, nanoseconds = (
        "" if none else part for part, none in zip(parts(value), nothing, strict=True)
    )
    lengths = ((months, f" * {MONTH_SECONDS}"), (days, " * 86400"), (seconds, ""))
    whole = " + ".join(f"({part}){per}" for part, per in lengths if part)
    return [key for key in (whole, nanoseconds, months, days) if key] or [value.sql]


# --- computing -------------------------------------------------------------------------------------------------


def negative(c: Compiler, value: SqlValue) -> SqlValue:
    """Return the opposite of a duration."""

    def body(d: str) -> SqlValue:
        borrowed = f"CASE WHEN ({d}).nanoseconds > 0 THEN 1 ELSE 0 END"
        rest = f"({BILLION} - ({d}).nanoseconds) % {BILLION}"
        return packed(f"-({d}).months", f"-({d}).days", f"-({d}).seconds - {borrowed}", rest, d)

    return bound(c, value, body)


def arithmetic(c: Compiler, operator: str, left: SqlValue, right: SqlValue, node: ast.Binary) -> SqlValue:
    """Return a sum, difference or multiple of times and durations."""
    a, b = left.type.base, right.type.base
    if operator == "+" and a is Base.DURATION and (b is Base.DATE or b in exact.TIMES):
        return arithmetic(c, "+", right, left, ast.Binary("+", node.right, node.left, node.span))
    if operator in "+-" and b is Base.DURATION:
        if a is Base.DURATION:
            other = right if operator == "+" else negative(c, right)
            return all_bound(c, (left, other), _sum)
        if a is Base.DATE:
            sign = "" if operator == "+" else "-"
            return all_bound(c, (left, right), lambda day, d: SqlValue(moving.day(day, d, sign), DATE))
        if a in exact.TIMES:
            if left.type.by_name and not free_variables(node) and (value := folded_time(c, node)) is not None:
                return value
            known = written(c, node.right) or folded(c, node.right)
            by = known if isinstance(known, Duration) else right
            taken = [left] if left.subquery or in_zones.is_named(left) else []
            if by is right and (not right.parts or (right.subquery and left.type.by_name)):

                def moved(*names: str) -> SqlValue:
                    value = named(names[0], left.type) if taken else left
                    return moving.time(c, node, value, named(names[-1], DURATION), operator)

                return all_bound(c, (*taken, right), moved)
            return in_zones.named_once(c, [left], lambda left: moving.time(c, node, left, by, operator))
    if operator == "*" and {a, b} == {Base.DURATION, Base.INTEGER}:
        value, times_ = (left, right) if a is Base.DURATION else (right, left)
        return all_bound(c, (value, times_), _times)
    if operator in "*/" and a is Base.DURATION and (factor := _factor(c, node.right)) is not None:
        if operator == "/":
            factor = 1 / factor
        if max(abs(factor.numerator), factor.denominator) <= _MOST:
            return bound(c, left, lambda d: _share(c, d, factor))
    raise NotSupportedError(f"{operator} of {left.type} and {right.type} is not supported in SQL")


def _sum(x: str, y: str) -> SqlValue:
    nanoseconds = f"(({x}).nanoseconds + ({y}).nanoseconds)"
    return packed(
        f"({x}).months + ({y}).months",
        f"({x}).days + ({y}).days",
        f"({x}).seconds + ({y}).seconds + {nanoseconds} // {BILLION}",
        f"{nanoseconds} % {BILLION}",
        f"({x}).months + ({y}).months",
    )


def _times(d: str, k: str) -> SqlValue:
    nanoseconds = f"(({d}).nanoseconds * {k})"
    rest = f"(({nanoseconds} % {BILLION} + {BILLION}) % {BILLION})"
    seconds = f"({d}).seconds * {k} + ({nanoseconds} - {rest}) // {BILLION}"
    return packed(f"({d}).months * {k}", f"({d}).days * {k}", seconds, rest, f"({d}).months + {k}")


_MOST = 10**9
"""Up to which nanoseconds may be multiplied, in 128 bits."""


def _factor(c: Compiler, node: ast.Expression) -> Fraction | None:
    """Return a number that text or parameters say, as its digits do; None for anything else, and for zero."""
    sign = 1
    while isinstance(node, ast.Unary) and node.operator in "+-":
        sign = -sign if node.operator == "-" else sign
        node = node.operand
    given = c.arguments.get(node.name) if isinstance(node, ast.Parameter) else getattr(node, "value", None)
    if not isinstance(given, int | float | Decimal) or isinstance(given, bool) or not math.isfinite(given) or not given:
        return None
    return sign * fraction_of(given)


def _share(c: Compiler, d: str, factor: Fraction) -> SqlValue:
    """Return so many times a duration: what is left of a month becomes days, of these nanoseconds, and all is exact."""
    add = c.rows.parameters.add
    by, per = add(factor.numerator, "HUGEINT"), add(factor.denominator, "HUGEINT")
    months = f"(({d}).months * {by} // {per})"
    left = f"(({d}).months * {by} - {months} * {per})"
    length = f"(({d}).days * {by} * 86400 + {left} * {MONTH_SECONDS})"
    days = f"({length} // ({per} * 86400))"
    rest = f"({length} - {days} * {per} * 86400)"
    total = f"(({d}).seconds::HUGEINT * {BILLION} + ({d}).nanoseconds)"
    nanoseconds = f"(({total} * {by} + {rest} * {BILLION}) // {per})"
    below = f"(({nanoseconds} % {BILLION} + {BILLION}) % {BILLION})"
    return packed(months, days, f"({nanoseconds} - {below}) // {BILLION}", below, d)


def total(c: Compiler, node: ast.FunctionCall, value: SqlValue) -> SqlValue:
    """Return ``sum`` or ``avg`` of durations: the parts are added by SQL, the end is Python's, once for each group.

    The sum of none is the number 0, and a mean spills months into days, and days into seconds.
    """
    if node.distinct:
        raise NotSupportedError("the sum of distinct durations is not supported in SQL", position=node.span.start)
    parts = [f"sum(({value.sql}).{name})" for name in NAMES]
    months, days, seconds, nanoseconds = (f"CAST({part} AS HUGEINT)" for part in parts)
    number = f"count({value.sql})"
    carried, rest = f"{seconds} + {nanoseconds} // {BILLION}", f"{nanoseconds} % {BILLION}"
    added = packed(months, days, carried, rest, f"nullif({number}, 0)")
    inner = c.within(replace(c.scope, variables={"#total": added, "#count": SqlValue(number, INTEGER)}, known={}))
    first, second = ast.Variable("#total", node.span), ast.Variable("#count", node.span)
    if node.name.lower() == "avg":
        return compute(inner, ast.Binary("/", first, second, node.span), DURATION)
    none = ast.Comparison(("=",), (second, ast.Literal(0)), node.span)
    return compute(inner, ast.Case(None, (((none,), ast.Literal(0)),), first, node.span))
