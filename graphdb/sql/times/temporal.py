"""Compiles dates and times.

A date is a DATE, a local time a TIME, a local date and time a TIMESTAMP, to the microsecond.  A point in time is a
TIMESTAMPTZ; at an offset from UTC, one with the offset beside it.  Times of day at an offset, and all that has
nanoseconds, are structs (:mod:`graphdb.sql.exact`).  What a clock shows at an offset is computed of microseconds
since 1970, because DuckDB's own way to it is a calendar of all zones.  What only text and parameters say, Python makes
once.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence

from graphdb.common.errors import GraphDBError, NotSupportedError
from graphdb.common.values.temporal import (
    AT_OFFSETS,
    DATED,
    DateTime,
    Duration,
    LocalDateTime,
    LocalTime,
    Temporal,
    Time,
)
from graphdb.common.values.temporal_python import from_python, to_python
from graphdb.common.values.types import (
    DATE,
    DATETIME,
    INTEGER,
    STRING,
    TIME,
    VALUE,
    ZONED,
    Base,
    Type,
    sql_type,
)
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.sql import exact
from graphdb.sql.compiler import Compile, Compiler, Forms
from graphdb.sql.times import in_zones
from graphdb.sql.value import SqlValue, at_offset, instant, offset_of

_OF_DATE: Mapping[str, str] = {
    "year": "year({0})",
    "quarter": "quarter({0})",
    "month": "month({0})",
    "week": "weekofyear({0})",
    "weekYear": "isoyear({0})",
    "day": "day({0})",
    "ordinalDay": "dayofyear({0})",
    "weekDay": "isodow({0})",
    "dayOfWeek": "isodow({0})",
    "dayOfQuarter": "(CAST({0} AS DATE) - CAST(date_trunc('quarter', {0}) AS DATE) + 1)",
}
"""The components of a day."""

_OF_CLOCK: Mapping[str, str] = {
    "hour": "hour({0})",
    "minute": "minute({0})",
    "second": "second({0})",
    "millisecond": "(microsecond({0}) % 1000000 // 1000)",
    "microsecond": "(microsecond({0}) % 1000000)",
    "nanosecond": "(microsecond({0}) % 1000000 * 1000)",
}
"""The components of a time of day."""

_PARTS: Mapping[Base, Mapping[str, str]] = {
    Base.DATE: _OF_DATE,
    Base.TIME: _OF_CLOCK,
    Base.DATETIME: {**_OF_DATE, **_OF_CLOCK},
}

EPOCHS = {"epochSeconds": 10**6, "epochMillis": 10**3}
"""Components that count from 1970 on, and their microseconds."""

_AT_OFFSETS = (Base.ZONED, Base.MOMENT)
"""Types of points in time."""

HAVE_PARTS = (*_PARTS, *_AT_OFFSETS, Base.EXACT, Base.VALUE)


def part(value: SqlValue, name: str, node: ast.Property) -> SqlValue:
    """Return a component of a date or time.

    Raises
    ------
    NotSupportedError
        SQL does not know the component.
    """
    kind = exact.kind_of(value.type)
    if kind in AT_OFFSETS and not value.many:
        if name in EPOCHS and kind is DateTime:
            return SqlValue(_floor(f"epoch_us({instant(exact.less_exact(value)).sql})", EPOCHS[name]), INTEGER)
        if name in ("timezone", "offset"):
            text = offset_text(value)
            by_name = name == "timezone" and value.type.by_name
            return SqlValue(f"coalesce({exact.zone_of(value)}, {text})" if by_name else text, STRING)
        if name in ("offsetSeconds", "offsetMinutes"):
            minutes = " // 60" if name == "offsetMinutes" else ""
            found = f"CAST({offset_of(value)}{minutes} AS BIGINT)"
            return SqlValue(f"CASE WHEN {value.sql} IS NOT NULL THEN {found} END", INTEGER)
    rest = ""
    if kind is not None and value.type.base not in _PARTS and not value.many:
        rest = f" + {exact.nanoseconds_of(value)}" if value.type.base is Base.EXACT and name == "nanosecond" else ""
        value = SqlValue(exact.clock_of(value), DATETIME if kind in DATED else TIME)
    template = _PARTS.get(value.type.base, {}).get(name)
    if template is None or value.many:
        raise NotSupportedError(f"'{name}' of {value.type} is not supported in SQL", position=node.span.start)
    return SqlValue(f"CAST({template.format(value.sql)}{rest} AS BIGINT)", INTEGER)


def _floor(number: str, unit: int) -> str:
    """Return SQL of how many whole units there are in a number: of a negative one, one more than its size has."""
    return f"(({number} - (({number} % {unit} + {unit}) % {unit})) // {unit})"


# --- points in time --------------------------------------------------------------------------------------------


def local(value: SqlValue) -> SqlValue:
    """Return the local date and time that a clock shows at a point in time, at its offset; other values as they are."""
    return SqlValue(exact.clock_of(value), DATETIME) if value.type.base in _AT_OFFSETS else value


def at_same_offset(value: SqlValue, clock: str) -> SqlValue:
    """Return the point in time when a clock shows a local date and time (SQL), at the offset of another point."""
    if value.type.base is Base.ZONED:
        return SqlValue(f"make_timestamptz(epoch_us({clock}))", ZONED)
    offset = offset_of(value)
    return at_offset(f"make_timestamptz(epoch_us({clock}) - {offset} * 1000000::BIGINT)", offset)


def offset_text(value: SqlValue) -> str:
    """Return SQL of the offset of a time, as ``Z`` or ``+01:00``."""
    if value.type.base is Base.ZONED:
        return f"CASE WHEN {value.sql} IS NOT NULL THEN 'Z' END"
    offset = offset_of(value)
    clock = f"abs({offset}) // 3600, abs({offset}) // 60 % 60"
    sign = f"CASE WHEN {offset} < 0 THEN '-' ELSE '+' END"
    seconds = f"CASE WHEN {offset} % 60 <> 0 THEN format(':{{:02d}}', abs({offset}) % 60) ELSE '' END"
    return f"CASE WHEN {offset} = 0 THEN 'Z' ELSE {sign} || format('{{:02d}}:{{:02d}}', {clock}) || {seconds} END"


# --- constants -------------------------------------------------------------------------------------------------

_CLOCKS = (".transaction", ".statement", ".realtime")
_MAKERS = frozenset("date time localtime localdatetime datetime duration".split())
"""Functions that make temporal values, before a dot after which something else is made of them."""
_FOLDED = (ast.Literal, ast.Parameter, ast.MapLiteral, ast.ListLiteral, ast.Binary, ast.Unary, ast.Property)


def folded(c: Compiler, node: ast.Expression) -> object:
    """Return the value of an expression of constants that makes a temporal value, as the evaluator has it.

    It is None where the value depends on more than the text and the parameters, or is none: an error is the row's that
    asks for it.
    """
    made = False
    for each in walk(node):
        if isinstance(each, ast.FunctionCall):
            name = each.name.lower()
            if name.partition(".")[0] not in _MAKERS or not each.arguments or name.endswith(_CLOCKS):
                return None
            made = True
        elif isinstance(each, ast.Expression) and not isinstance(each, _FOLDED):
            return None
        elif isinstance(each, ast.Parameter):
            made = made or isinstance(c.arguments.get(each.name), datetime.date)
    if not made or c.computing is None:
        return None
    try:
        return c.computing().constant(node)
    except (GraphDBError, ArithmeticError):
        return None


def constant(c: Compiler, node: ast.Expression) -> SqlValue | None:
    """Return an expression of constants that makes a date or time; None for any other, or if SQL has no type for it."""
    value = folded(c, node)
    if not isinstance(value, Temporal) or isinstance(value, Duration):
        return None
    try:
        return c.constant(to_python(value), node)
    except NotSupportedError:
        return None


def known(form: Compile) -> Compile:
    """Return a form of a function that is a constant where its arguments are, and SQL does not compute it."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        try:
            return form(c, node)
        except NotSupportedError:
            value = constant(c, node)
            if value is None:
                raise
            return value

    return compile


# --- comparisons -----------------------------------------------------------------------------------------------

DAY, CLOCK = r"\d{4}-\d{2}-\d{2}", r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
_MOMENT = re.compile(rf"{DAY}(T{CLOCK})?(?P<zone>Z|[+-]\d{{2}}:\d{{2}})?")


def _moment(node: ast.Expression, arguments: Mapping[str, object]) -> tuple[ast.Expression, bool] | None:
    """Return the text of a ``datetime('…')`` that is written out (or a parameter's), and whether it says a zone."""
    match node:
        case ast.FunctionCall(name, (ast.Literal() | ast.Parameter() as argument,)) if name.lower() == "datetime":
            text = argument.value if isinstance(argument, ast.Literal) else arguments.get(argument.name)
            if isinstance(text, str) and (found := _MOMENT.fullmatch(text)) is not None:
                return argument, found["zone"] is not None
    return None


def unzoned(node: ast.Expression, arguments: Mapping[str, object]) -> bool:
    """Whether an expression is a ``datetime('…')`` that is written out without a zone.

    It is UTC's; in a comparison with a local date and time it is local, which RDF's times are as often as not.
    """
    found = _moment(node, arguments)
    return found is not None and not found[1]


def compared(c: Compiler, nodes: Sequence[ast.Expression]) -> list[SqlValue]:
    """Compile what is compared with each other: points in time that are constants are in UTC, whatever their zones."""
    if not any(isinstance(node, ast.FunctionCall | ast.Parameter | ast.Binary) for node in nodes):
        return [c.compile(node) for node in nodes]
    without = [unzoned(node, c.arguments) for node in nodes]
    values = [None if bare else _compared(c, node) for node, bare in zip(nodes, without, strict=True)]
    if not any(without):
        return [value for value in values if value is not None]
    others = {c.value_of(value).type for value in values if value is not None}
    as_local = any(_is_local(type) or (type.element and _is_local(type.element)) for type in others)
    if VALUE in others or any(type.base is Base.CHOICE for type in others) or (as_local and len(nodes) > 2):
        raise NotSupportedError("such a comparison of points in time is not supported in SQL")
    found = []
    for node, value in zip(nodes, values, strict=True):
        if value is None:
            assert isinstance(node, ast.FunctionCall)
            sql = f"CAST({c.compile(node.arguments[0]).sql} AS {sql_type(DATETIME)})"
            value = SqlValue(sql, DATETIME) if as_local else SqlValue(f"make_timestamptz(epoch_us({sql}))", ZONED)
        found.append(value)
    return found


def _is_local(type: Type) -> bool:
    return exact.kind_of(type) is LocalDateTime


def _adds_durations(c: Compiler, node: ast.Expression) -> bool:
    """Whether an expression is made of points in time that SQL has, and durations: DuckDB finds what it is, too."""
    return all(not (isinstance(part, ast.FunctionCall) and part.name.lower() != "duration") for part in walk(node))


def _compared(c: Compiler, node: ast.Expression) -> SqlValue:
    value: object = None
    if isinstance(node, ast.FunctionCall | ast.Binary):
        if (written := _moment(node, c.arguments)) is not None:
            return SqlValue(f"CAST({c.compile(written[0]).sql} AS {sql_type(ZONED)})", ZONED)
        value = None if _adds_durations(c, node) else folded(c, node)
    elif isinstance(node, ast.Parameter) and isinstance(given := c.argument(node), datetime.datetime):
        value = from_python(given)
    if isinstance(value, DateTime) and value.nanoseconds % 1000 == 0:
        moment = c.rows.parameters.add(value.instant // 1000, "BIGINT")
        return SqlValue(f"make_timestamptz({moment})", ZONED, atomic=True)
    return c.compile(node)


# --- truncating ------------------------------------------------------------------------------------------------

_YEARS = {"millennium": 1000, "century": 100, "decade": 10}
_UNITS = {"year": "year", "weekyear": "isoyear", "quarter": "quarter", "month": "month", "week": "week", "day": "day"}
_UNITS_OF_CLOCKS = ("hour", "minute", "second", "millisecond", "microsecond")


def _truncate(target: Type) -> Compile:
    """Return ``date.truncate`` and its kin, where the text says the unit, and no components are set after it."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        unit = getattr(node.arguments[0], "value", None)
        if len(node.arguments) != 2 or not isinstance(unit, str):
            raise refused(node)
        value, unit = c.one(node.arguments[1]), unit.lower()
        if unit not in (*_YEARS, *_UNITS, *(() if target == DATE else _UNITS_OF_CLOCKS)):
            raise refused(node)
        if target == ZONED and value.type.by_name:
            return in_zones.named_once(
                c, [value], lambda value: in_zones.truncated(c, node, value, _cut(unit, exact.clock_of(value)))
            )
        if exact.kind_of(value.type) in DATED:
            value = exact.less_exact(value)
        if value.type.base not in (Base.DATE, Base.DATETIME, *_AT_OFFSETS):
            raise refused(node)
        cut = _cut(unit, local(value).sql)
        if target == ZONED:
            same = value if value.type.base in _AT_OFFSETS else SqlValue(value.sql, ZONED)
            return at_same_offset(same, cut)
        return SqlValue(f"CAST({cut} AS {sql_type(target)})", target)

    return compile


def _cut(unit: str, clock: str) -> str:
    """Return SQL of a day, or local date and time, cut down to a unit: a TIMESTAMP."""
    if unit in _YEARS:
        cut = f"make_date(year({clock}) - ((year({clock}) % {_YEARS[unit]} + {_YEARS[unit]}) % {_YEARS[unit]}), 1, 1)"
    elif unit in _UNITS:
        cut = f"date_trunc('{_UNITS[unit]}', {clock})"
    else:
        cut = f"date_trunc('{unit}', CAST({clock} AS TIMESTAMP))"
    return f"CAST({cut} AS TIMESTAMP)"


def _truncate_time(of: type[Temporal]) -> Compile:
    """Return ``time.truncate`` and ``localtime.truncate``, as above."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        unit = getattr(node.arguments[0], "value", None)
        if len(node.arguments) != 2 or not isinstance(unit, str):
            raise refused(node)
        value, unit = c.one(node.arguments[1]), unit.lower()
        kind = exact.kind_of(value.type)
        dated = kind in DATED or value.type.base is Base.DATE
        if unit not in (*_UNITS_OF_CLOCKS, "day", *((*_YEARS, *_UNITS) if dated else ())) or not (dated or kind):
            raise refused(node)
        clock = exact.clock_of(value) if kind else f"CAST({value.sql} AS TIMESTAMP)"
        cut = f"date_trunc('{unit if unit in _UNITS_OF_CLOCKS else 'day'}', {clock})"
        cut = exact.time_of_day(f"epoch_us({cut})")
        if of is Time:
            return exact.exact(Time, cut, "0", offset_of(value))
        return SqlValue(f"CAST({cut} AS TIME)", TIME)

    return compile


def refused(node: ast.FunctionCall) -> NotSupportedError:
    """Return the error for a call that SQL does not compute."""
    return NotSupportedError(f"this use of {node.name} is not supported in SQL", position=node.span.start)


_FORMS: Forms = {
    "date.truncate": _truncate(DATE),
    "localdatetime.truncate": _truncate(DATETIME),
    "datetime.truncate": _truncate(ZONED),
    "localtime.truncate": _truncate_time(LocalTime),
    "time.truncate": _truncate_time(Time),
}

FORMS: Forms = {name: known(form) for name, form in _FORMS.items()}
