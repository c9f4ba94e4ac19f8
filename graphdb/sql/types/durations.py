"""Compiles durations: structs of months, days, seconds and nanoseconds, which do not convert into each other.

DuckDB's INTERVAL has no nanoseconds and takes thirty days for a month.  The nanoseconds are 0 to 999,999,999.  What
is asked of a value several times is bound to a name first, so that expressions do not grow with every operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.duration_texts import duration_of
from graphdb.common.values.temporal import AT_OFFSETS, DATED, MONTH_SECONDS, Duration
from graphdb.common.values.temporal import exact as fraction_of
from graphdb.common.values.temporal_build import Malformed, build_duration, parse_duration
from graphdb.common.values.types import DATE, DATETIME, DURATION, INTEGER, STRING, Base, sql_type
from graphdb.grammar import syntax as ast
from graphdb.sql import exact
from graphdb.sql.compiler import Compiler, Forms
from graphdb.sql.equivalence import all_once
from graphdb.sql.types import moving
from graphdb.sql.types.temporal import folded, or_computed
from graphdb.sql.udf import compute
from graphdb.sql.value import SqlValue, named, offset_of

_BILLION = "1000000000"

_NAMES = ("months", "days", "seconds", "nanoseconds")


def _bound(c: Compiler, value: SqlValue, body: Callable[[str], SqlValue]) -> SqlValue:
    """Return what is made of a value that is named in it more than once."""
    return _all_bound(c, (value,), body)


def _all_bound(c: Compiler, values: Sequence[SqlValue], body: Callable[..., SqlValue]) -> SqlValue:
    """The same of several values."""
    if all(value.atomic for value in values):
        return body(*(value.sql for value in values))
    types = []

    def made(*names: SqlValue) -> str:
        found = body(*(name.sql for name in names))
        types.append(found.type)
        return found.sql

    return SqlValue(all_once(c, values, made), types.pop())


def _packed(months: str, days: str, seconds: str, nanoseconds: str, of: str) -> SqlValue:
    """Return a duration of its parts: null where ``of`` is."""
    parts = months, days, seconds, nanoseconds
    whole = f"CAST(struct_pack({', '.join(f'{name} := {part}' for name, part in zip(_NAMES, parts, strict=True))}) "
    whole += f"AS {sql_type(DURATION)})"
    return SqlValue(f"CASE WHEN {of} IS NOT NULL THEN {whole} END", DURATION, parts=(of, *parts))


def _parts(value: SqlValue) -> list[str]:
    """Return SQL of the parts of a duration."""
    if not value.parts:
        return [f"({value.sql}).{name}" for name in _NAMES]
    of, *parts = value.parts
    return [f"CASE WHEN {of} IS NOT NULL THEN {part} END" for part in parts]


def constant(c: Compiler, value: Duration) -> SqlValue:
    """Return SQL of a known duration."""
    parts = value.months, value.days, value.seconds, value.nanoseconds
    months, days, seconds, nanoseconds = (c.rows.parameters.add(part, "BIGINT") for part in parts)
    return _packed(months, days, seconds, nanoseconds, "1")


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
    months, days, seconds, nanoseconds = (f"{sql}.{name}" for name in _NAMES)

    def part(amount: str, unit: str, sign: str = "") -> str:
        return f"CASE WHEN {amount} = 0 THEN '' ELSE {sign}({amount}) || '{unit}' END"

    def clock(seconds: str, last: str, sign: str = "") -> str:
        return f"{part(f'{seconds} // 3600', 'H', sign)} || {part(f'{seconds} // 60 % 60', 'M', sign)} || {last}"

    behind = f"{seconds} < 0 AND {nanoseconds} > 0"  # -1 s and half a billion nanoseconds are half a second back
    whole = f"(abs({seconds}) - CASE WHEN {behind} THEN 1 ELSE 0 END)"
    below = f"(CASE WHEN {behind} THEN {_BILLION} - {nanoseconds} ELSE {nanoseconds} END)"
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
    return _bound(c, value, lambda sql: SqlValue(text(sql), STRING)).sql


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
            return or_computed(c, node, DURATION, [value], *duration_of(value.sql))
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
        seconds += f" + (({fractions}) // {_BILLION} - CASE WHEN ({fractions}) % {_BILLION} < 0 THEN 1 ELSE 0 END)"
        rest = f"((({fractions}) % {_BILLION} + {_BILLION}) % {_BILLION})"
    there = " + ".join(value.sql for value in parts.values())
    return _packed(months, days, seconds, rest, there)


def _between(unit: str) -> Callable[[Compiler, ast.FunctionCall], SqlValue]:
    """What lies between two days or times: whole months, whole days of what is left, and the rest."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        values = [c.one(argument) for argument in node.arguments]
        kinds = [exact.kind_of(value.type) for value in values]
        if any(kind is None and value.type != DATE for kind, value in zip(kinds, values, strict=True)):
            raise _refused(node)
        dated = all(kind is None or kind in DATED for kind in kinds)
        first, second = (_aligned(value, values, dated=dated) for value in values)
        rests = [exact.nanoseconds_of(value) for value in values]
        ticks = _Ticks(rests[0], rests[1], 1 if rests == ["0", "0"] else 1000)

        def lies(a: str, b: str) -> SqlValue:
            if dated:
                return _lies(c, unit, named(a, first.type), b, ticks)
            apart = f"({ticks.second(b)} - {ticks.first(a)})"
            return _packed("0", "0", *(ticks.clock(apart) if unit in ("between", "inseconds") else ("0", "0")), apart)

        return _all_bound(c, (first, second), lies)

    return compile


def _aligned(value: SqlValue, values: Sequence[SqlValue], *, dated: bool) -> SqlValue:
    """Return the local date and time of one of two values: what one lacks, the other lends it.

    The second is shown at the offset of the first; where one of them has no day, neither has.
    """
    kind = exact.kind_of(value.type)
    if kind is None:
        return value if dated else value.made(f"CASE WHEN {value.sql} IS NOT NULL THEN make_timestamp(0) END", DATETIME)
    if kind in AT_OFFSETS:
        first = next(each for each in values if exact.kind_of(each.type) in AT_OFFSETS)
        clock = exact.shown(value, offset_of(first))
    else:
        clock = exact.clock_of(value)
    if dated:
        return SqlValue(clock, DATETIME, atomic=value.atomic and value.type == DATETIME)
    if kind not in DATED:
        return SqlValue(clock, DATETIME)
    own = f"epoch_us({exact.clock_of(value)})"
    return SqlValue(f"make_timestamp(epoch_us({exact.time_of_day(own)}) + epoch_us({clock}) - {own})", DATETIME)


@dataclass(frozen=True, slots=True)
class _Ticks:
    """How times are numbers: of microseconds, or of nanoseconds where one of two may have some."""

    before: str
    after: str
    """Nanoseconds of the first, and of the second."""
    per: int
    """Of a microsecond."""

    def _number(self, time: str, rest: str) -> str:
        microseconds = f"epoch_us(CAST({time} AS TIMESTAMP))"
        return microseconds if self.per == 1 else f"(CAST({microseconds} AS HUGEINT) * {self.per} + {rest})"

    def first(self, time: str) -> str:
        """The number of the first time, or of that moved by months."""
        return self._number(time, self.before)

    def second(self, time: str) -> str:
        """The number of the second time."""
        return self._number(time, self.after)

    @property
    def day(self) -> str:
        """The length of a day."""
        return str(86_400_000_000 * self.per)

    def clock(self, ticks: str) -> tuple[str, str]:
        """Return seconds and nanoseconds."""
        second = 1_000_000 * self.per
        rest = f"(({ticks} % {second} + {second}) % {second})"
        return f"(({ticks} - {rest}) // {second})", f"({rest} * {1000 // self.per})"


def _lies(c: Compiler, unit: str, first: SqlValue, b: str, ticks: _Ticks) -> SqlValue:
    a, day = first.sql, first.sql if first.type == DATE else f"CAST({first.sql} AS DATE)"
    begin, end = ticks.first(a), ticks.second(b)
    apart = f"({end} - {begin})"
    if unit == "inseconds":
        return _packed("0", "0", *ticks.clock(apart), apart)
    if unit == "indays":
        return _packed("0", f"({apart} // {ticks.day})", "0", "0", apart)
    # Months are those between the first day and the one up to which all days are whole; one is over on the same day of
    # the next, which numbers that leave each month 32 days say by themselves.
    last = f"({day} + CAST({apart} // {ticks.day} AS INTEGER))"
    numbers = [f"((year({d}) * 12 + month({d})) * 32 + day({d}))" for d in (last, day)]
    months = SqlValue(f"(({numbers[0]} - {numbers[1]}) // 32)", INTEGER)
    if unit == "inmonths":
        return _packed(months.sql, "0", "0", "0", apart)

    def rest(m: str) -> SqlValue:
        left = f"({end} - {ticks.first(f'({a} + to_months(CAST({m} AS INTEGER)))')})"
        return _packed(m, f"({left} // {ticks.day})", *ticks.clock(f"({left} % {ticks.day})"), apart)

    return _bound(c, months, rest)


def _refused(node: ast.Expression) -> NotSupportedError:
    return NotSupportedError("such a duration is not supported in SQL", position=node.span.start)


FORMS: Forms = {
    "duration": _duration,
    **{f"duration.{unit}": _between(unit) for unit in ("between", "inmonths", "indays", "inseconds")},
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
    asked = [part for part in _NAMES if f"{{{part}}}" in template]
    if asked == ["months"] and isinstance(node.base, ast.FunctionCall) and node.base.name.lower() == "duration.between":
        value = _between("inmonths")(c, node.base)  # what is left of the months is not asked for

    def made(parts: list[str]) -> SqlValue:
        return SqlValue(f"({template.format(**dict(zip(_NAMES, parts, strict=True)))})", INTEGER)

    if value.parts or len(asked) == 1:
        return made(_parts(value))
    return _bound(c, value, lambda d: made(_parts(named(d, DURATION))))


def sort_keys(value: SqlValue) -> list[str]:
    """Return what orders durations: their mean lengths, and of those that are as long their parts."""
    nothing = [part == "0" for part in value.parts[1:]] or [False] * len(_NAMES)
    months, days, seconds, nanoseconds = (
        "" if none else part for part, none in zip(_parts(value), nothing, strict=True)
    )
    lengths = ((months, f" * {MONTH_SECONDS}"), (days, " * 86400"), (seconds, ""))
    whole = " + ".join(f"({part}){per}" for part, per in lengths if part)
    return [key for key in (whole, nanoseconds, months, days) if key] or [value.sql]


# --- computing -------------------------------------------------------------------------------------------------


def negative(c: Compiler, value: SqlValue) -> SqlValue:
    """Return the opposite of a duration."""

    def body(d: str) -> SqlValue:
        borrowed = f"CASE WHEN ({d}).nanoseconds > 0 THEN 1 ELSE 0 END"
        rest = f"({_BILLION} - ({d}).nanoseconds) % {_BILLION}"
        return _packed(f"-({d}).months", f"-({d}).days", f"-({d}).seconds - {borrowed}", rest, d)

    return _bound(c, value, body)


def arithmetic(c: Compiler, operator: str, left: SqlValue, right: SqlValue, node: ast.Binary) -> SqlValue:
    """Return a sum, difference or multiple of times and durations."""
    a, b = left.type.base, right.type.base
    if operator == "+" and a is Base.DURATION and (b is Base.DATE or b in exact.TIMES):
        return arithmetic(c, "+", right, left, ast.Binary("+", node.right, node.left, node.span))
    if operator in "+-" and b is Base.DURATION:
        if a is Base.DURATION:
            other = right if operator == "+" else negative(c, right)
            return _all_bound(c, (left, other), _sum)
        if a is Base.DATE:
            sign = "" if operator == "+" else "-"
            return _all_bound(c, (left, right), lambda day, d: SqlValue(moving.day(day, d, sign), DATE))
        if a in exact.TIMES:
            known = written(c, node.right) or folded(c, node.right)
            by = known if isinstance(known, Duration) else right
            if by is right and not right.parts:
                taken = [left] if left.subquery else []

                def moved(*names: str) -> SqlValue:
                    value = named(names[0], left.type) if taken else left
                    return moving.time(c, value, named(names[-1], DURATION), operator)

                return _all_bound(c, (*taken, right), moved)
            return moving.time(c, left, by, operator)
    if operator == "*" and {a, b} == {Base.DURATION, Base.INTEGER}:
        value, times_ = (left, right) if a is Base.DURATION else (right, left)
        return _all_bound(c, (value, times_), _times)
    if operator in "*/" and a is Base.DURATION and (factor := _factor(c, node.right)) is not None:
        if operator == "/":
            factor = 1 / factor
        if max(abs(factor.numerator), factor.denominator) <= _MOST:
            return _bound(c, left, lambda d: _share(c, d, factor))
    raise NotSupportedError(f"{operator} of {left.type} and {right.type} is not supported in SQL")


def _sum(x: str, y: str) -> SqlValue:
    nanoseconds = f"(({x}).nanoseconds + ({y}).nanoseconds)"
    return _packed(
        f"({x}).months + ({y}).months",
        f"({x}).days + ({y}).days",
        f"({x}).seconds + ({y}).seconds + {nanoseconds} // {_BILLION}",
        f"{nanoseconds} % {_BILLION}",
        f"({x}).months + ({y}).months",
    )


def _times(d: str, k: str) -> SqlValue:
    nanoseconds = f"(({d}).nanoseconds * {k})"
    rest = f"(({nanoseconds} % {_BILLION} + {_BILLION}) % {_BILLION})"
    seconds = f"({d}).seconds * {k} + ({nanoseconds} - {rest}) // {_BILLION}"
    return _packed(f"({d}).months * {k}", f"({d}).days * {k}", seconds, rest, f"({d}).months + {k}")


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
    total = f"(({d}).seconds::HUGEINT * {_BILLION} + ({d}).nanoseconds)"
    nanoseconds = f"(({total} * {by} + {rest} * {_BILLION}) // {per})"
    below = f"(({nanoseconds} % {_BILLION} + {_BILLION}) % {_BILLION})"
    return _packed(months, days, f"({nanoseconds} - {below}) // {_BILLION}", below, d)


def total(c: Compiler, node: ast.FunctionCall, value: SqlValue) -> SqlValue:
    """Return ``sum`` or ``avg`` of durations: the parts are added by SQL, the end is Python's, once for each group.

    The sum of none is the number 0, and a mean spills months into days, and days into seconds.
    """
    if node.distinct:
        raise NotSupportedError("the sum of distinct durations is not supported in SQL", position=node.span.start)
    parts = [f"sum(({value.sql}).{name})" for name in _NAMES]
    months, days, seconds, nanoseconds = (f"CAST({part} AS HUGEINT)" for part in parts)
    number = f"count({value.sql})"
    carried, rest = f"{seconds} + {nanoseconds} // {_BILLION}", f"{nanoseconds} % {_BILLION}"
    added = _packed(months, days, carried, rest, f"nullif({number}, 0)")
    inner = c.within(replace(c.scope, variables={"#total": added, "#count": SqlValue(number, INTEGER)}, known={}))
    first, second = ast.Variable("#total", node.span), ast.Variable("#count", node.span)
    if node.name.lower() == "avg":
        return compute(inner, ast.Binary("/", first, second, node.span), DURATION)
    none = ast.Comparison(("=",), (second, ast.Literal(0)), node.span)
    return compute(inner, ast.Case(None, (((none,), ast.Literal(0)),), first, node.span))
