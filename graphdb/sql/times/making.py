"""Compiles what makes dates and times: of texts, maps, numbers since 1970, and of other dates and times.

SQL reads the texts and numbers that DuckDB takes for the same as openCypher does.  A statement runs as if there were no
others, and where there are once more: Python makes what comes of these, or says what is wrong with them.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.temporal import DATED, Date, DateTime, LocalDateTime, LocalTime, Temporal, Time
from graphdb.common.values.types import DATE, DATETIME, INTEGER, STRING, TIME, ZONED, Base, Type, sql_type
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.sql import exact
from graphdb.sql.compiler import Compile, Compiler, Forms
from graphdb.sql.times.temporal import CLOCK, DAY, EPOCHS, known, local, refused
from graphdb.sql.value import SqlValue, at_offset

_ISO = {DATE: re.compile(DAY), TIME: re.compile(CLOCK), DATETIME: re.compile(f"{DAY}T{CLOCK}")}
"""Spellings that DuckDB reads as openCypher does."""


def _exists(text: str) -> bool:
    """Whether there is such a day and time."""
    try:
        return datetime.datetime.fromisoformat(text if "-" in text else f"2000-01-01T{text}") is not None
    except ValueError:
        return False


def made_of(c: Compiler, node: ast.FunctionCall, of: Sequence[SqlValue], made: SqlValue) -> SqlValue:
    """Return what SQL makes of values that are as usual, and is null of others.

    Of others the statement runs once more, and Python makes it, and says what is wrong with them.

    Raises
    ------
    NotSupportedError
        SQL must not fail, or the values are constants, or random.
    """
    noted = c.rows.noted
    if noted.careful or noted.told is not None or not c.outermost or not free_variables(node):
        raise refused(node)
    if any(value.volatile for value in of):
        raise refused(node)
    there = " AND ".join(f"{value.sql} IS NOT NULL" for value in of)
    error = c.rows.error("what makes a date or time is out of range")  # of what SQL reads
    found = f"coalesce({made.sql}, CASE WHEN {there} THEN {error} END)"
    return SqlValue(found, made.type)


def or_computed(c: Compiler, node: ast.FunctionCall, of: Sequence[SqlValue], made: SqlValue) -> SqlValue:
    """Return what SQL makes of values that are as usual, and is null of others: Python makes it of these.

    Raises
    ------
    NotSupportedError
        It is a constant, or of a list's items, or the values are random.
    """
    try:
        return made_of(c, node, of, made)
    except NotSupportedError:
        if not c.outermost or not free_variables(node) or any(value.volatile for value in of):
            raise
    there = " AND ".join(f"{value.sql} IS NOT NULL" for value in of)
    other = c.computed(node, made.type)
    return SqlValue(f"coalesce({made.sql}, CASE WHEN {there} THEN {other.sql} END)", made.type)


_PARTS_OF = {
    DATE: ("year", "month", "day"),
    DATETIME: ("year", "month", "day", "hour", "minute", "second"),
}
"""The keys of the maps that dates and times are made of by SQL, as far as they are said, in order."""


def _of_parts(c: Compiler, node: ast.FunctionCall, parts: ast.MapLiteral, target: Type) -> SqlValue:
    """Return the day, or local date and time, of a year, and of what else is said."""
    given = {key.text: value for key, value in parts.items}
    if tuple(given) != _PARTS_OF[target][: len(given)] or len(given) != len(parts.items) or not given:
        raise refused(node)
    values = [c.one(value) for value in given.values()]
    if any(value.type != INTEGER for value in values):
        raise refused(node)
    bounds = (1, 9999), (1, 12), (1, 31), (0, 23), (0, 59), (0, 59)
    near = " AND ".join(f"{value.sql} BETWEEN {a} AND {b}" for value, (a, b) in zip(values, bounds, strict=False))
    year, month, day = [value.sql for value in values[:3]] + ["1"] * (3 - len(values))
    made = f"make_date({year}, {month}, {day})"
    if target == DATETIME:
        hour, minute, second = [value.sql for value in values[3:]] + ["0"] * (6 - max(3, len(values)))
        made = f"make_timestamp({year}, {month}, {day}, {hour}, {minute}, CAST({second} AS DOUBLE))"
    found = SqlValue(f"CASE WHEN {near} THEN TRY({made}) END", target)
    return or_computed(c, node, values, found) if target == DATE else made_of(c, node, values, found)


_READ_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_READ_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_READ = {TIME: _READ_CLOCK, DATETIME: f"{_READ_DAY}T{_READ_CLOCK}"}
_READ_OFFSET = "(?:Z|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])?"


def _read_day(text: str) -> str:
    """Return SQL that reads a text as a day; null where DuckDB writes that in another way, or with a longer year."""
    day = f"TRY_CAST({text} AS DATE)"  # to write it takes DuckDB less than to look for a pattern
    return f"CASE WHEN length({text}) = 10 AND CAST({day} AS VARCHAR) = {text} THEN {day} END"


def _read(text: str, pattern: str, read: str) -> str:
    """Return SQL that reads a text of a pattern, in years that DuckDB writes as openCypher does; null of others."""
    return f"CASE WHEN regexp_full_match({text}, '{pattern}') AND {text} >= '0001' THEN {read} END"


def _moment_of_text(c: Compiler, node: ast.FunctionCall, value: SqlValue) -> SqlValue:
    """Return the point in time that a text says, at its offset."""
    text = value.sql
    ahead = f"TRY_CAST({text}[-5:-4] AS INTEGER) * 3600 + TRY_CAST({text}[-2:] AS INTEGER) * 60"
    signed = f"CASE {text}[-6] WHEN '+' THEN {ahead} WHEN '-' THEN -({ahead}) ELSE 0 END"
    offset = f"CASE WHEN suffix({text}, 'Z') THEN 0 ELSE {signed} END"  # most are of UTC
    without = (
        f"CASE WHEN suffix({text}, 'Z') THEN {text} WHEN {text}[-6] IN ('+', '-') THEN {text}[:-7] ELSE {text} END"
    )
    clock = _read(text, f"{_READ_DAY}T{_READ_CLOCK}{_READ_OFFSET}", f"TRY_CAST({without} AS TIMESTAMP)")
    found = f"make_timestamptz(epoch_us({clock}) - {offset} * 1000000::BIGINT)"
    return at_offset(made_of(c, node, [value], SqlValue(found, ZONED)).sql, offset)


_MADE_OF = {DATE: (Base.DATE, Base.DATETIME), TIME: (Base.TIME, Base.DATETIME), DATETIME: (Base.DATE, Base.DATETIME)}
"""The types that hold all that another one needs."""


def _convert(of: type[Temporal], value: SqlValue) -> SqlValue | None:
    """Return an exact time as one of another kind; None where it lacks something."""
    if of is Date:
        return SqlValue(f"CAST({exact.clock_of(value)} AS DATE)", DATE) if value.type.of in DATED else None
    return exact.converted(value, of) if value.type.of in DATED or of not in DATED else None


def _time(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    """Return ``time`` of another time: at its offset, or in UTC."""
    if len(node.arguments) == 1 and not isinstance(node.arguments[0], ast.Literal | ast.MapLiteral):
        value = c.one(node.arguments[0])
        if exact.kind_of(value.type) is not None:
            return exact.converted(value, Time)
    raise refused(node)


def _make(target: Type, of: type[Temporal]) -> Compile:
    """Return ``date`` and its kin: of text in the query's own text, or of another date or time."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        if len(node.arguments) == 1:
            argument = node.arguments[0]
            text = argument.value if isinstance(argument, ast.Literal) else None
            if isinstance(text, str) and _ISO[target].fullmatch(text) and _exists(text):
                return SqlValue(f"CAST({c.compile(argument).sql} AS {sql_type(target)})", target, atomic=True)
            if isinstance(argument, ast.MapLiteral):
                if target in _PARTS_OF:
                    return _of_parts(c, node, argument, target)
            elif text is None:
                value = local(c.one(argument))
                if value.type.base is Base.EXACT and (found := _convert(of, value)) is not None:
                    return found
                if value.type.base in _MADE_OF[target]:
                    return value.made(f"CAST({value.sql} AS {sql_type(target)})", target, atomic=value.atomic)
                if value.type == STRING and target == DATE:
                    return or_computed(c, node, [value], SqlValue(_read_day(value.sql), DATE))
                if value.type == STRING:
                    read = _read(value.sql, _READ[target], f"TRY_CAST({value.sql} AS {sql_type(target)})")
                    return made_of(c, node, [value], SqlValue(read, target))
        raise refused(node)

    return compile


def _datetime(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    """Return ``datetime`` of a date or time, or of what has passed since 1970."""
    match node.arguments:
        case (ast.MapLiteral(((key, since),)),) if key.text in EPOCHS:
            return _since(c, since, EPOCHS[key.text], node)
        case (ast.MapLiteral() as parts,):
            return SqlValue(f"make_timestamptz(epoch_us({_of_parts(c, node, parts, DATETIME).sql}))", ZONED)
        case (argument,):
            value = c.one(argument)
            if value.type == STRING:
                return _moment_of_text(c, node, value)
            if exact.kind_of(value.type) is DateTime:
                return value
            if value.type.base is Base.EXACT and (found := _convert(DateTime, value)) is not None:
                return found
            if value.type.base in (Base.DATE, Base.DATETIME):
                return SqlValue(f"make_timestamptz(epoch_us(CAST({value.sql} AS TIMESTAMP)))", ZONED)
    raise refused(node)


_LAST = 9_200_000_000_000_000_000
"""Microseconds before and after 1970 of which DuckDB knows which day they are on."""


def _since(c: Compiler, since: ast.Expression, unit: int, node: ast.FunctionCall) -> SqlValue:
    """Return the point in time so many units after 1970, of that many microseconds each."""
    count = c.one(since)
    if count.type.base is Base.NULL:
        return SqlValue(f"CAST(NULL AS {sql_type(ZONED)})", ZONED)
    if count.type != INTEGER:
        raise refused(node)
    most = _LAST // unit
    error = c.rows.error(f"a point in time more than {most} units from 1970 is out of range")
    found = f"make_timestamptz({count.sql} * {unit}::BIGINT)"
    near = f"{count.sql} BETWEEN {-most} AND {most}"
    return SqlValue(f"CASE WHEN {near} THEN {found} WHEN {count.sql} IS NOT NULL THEN {error} END", ZONED)


def _of_millis(unit: int) -> Compile:
    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        if len(node.arguments) != 1:
            raise refused(node)
        return _since(c, node.arguments[0], unit, node)

    return compile


_FORMS: Forms = {
    "date": _make(DATE, Date),
    "localtime": _make(TIME, LocalTime),
    "time": _time,
    "localdatetime": _make(DATETIME, LocalDateTime),
    "datetime": _datetime,
    "datetime.fromepoch": _of_millis(10**6),
    "datetime.fromepochmillis": _of_millis(10**3),
}

FORMS: Forms = {name: known(form) for name, form in _FORMS.items()}
