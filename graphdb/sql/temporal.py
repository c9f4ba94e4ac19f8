"""Compiles dates and times, as far as DuckDB's types represent them exactly.

A date is a DATE, a local time a TIME, a local date and time a TIMESTAMP, to the microsecond.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import DATE, DATETIME, INTEGER, TIME, VALUE, ZONED, Base, Type, sql_type
from graphdb.grammar import syntax as ast
from graphdb.sql.compiler import Compiler
from graphdb.sql.signatures import Forms
from graphdb.sql.value import SqlValue

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

HAVE_PARTS = (*_PARTS, Base.ZONED, Base.VALUE)


def part(value: SqlValue, name: str, node: ast.Property) -> SqlValue:
    """Return a component of a date or time.

    Raises
    ------
    NotSupportedError
        SQL does not know the component.
    """
    template = _PARTS.get(value.type.base, {}).get(name)
    if template is None or value.many:
        raise NotSupportedError(f"'{name}' of {value.type} is not supported in SQL", position=node.span.start)
    return SqlValue(f"CAST({template.format(value.sql)} AS BIGINT)", INTEGER)


# --- functions -------------------------------------------------------------------------------------------------

_DAY, _CLOCK = r"\d{4}-\d{2}-\d{2}", r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
_ISO = {DATE: re.compile(_DAY), TIME: re.compile(_CLOCK), DATETIME: re.compile(f"{_DAY}T{_CLOCK}")}
"""Spellings that DuckDB reads as openCypher does."""
_MOMENT = re.compile(rf"{_DAY}(T{_CLOCK})?(?P<zone>Z|[+-]\d{{2}}:\d{{2}})?")


def _exists(text: str) -> bool:
    """Whether there is such a day and time."""
    try:
        return datetime.datetime.fromisoformat(text if "-" in text else f"2000-01-01T{text}") is not None
    except ValueError:
        return False


_MADE_OF = {DATE: (Base.DATE, Base.DATETIME), TIME: (Base.TIME, Base.DATETIME), DATETIME: (Base.DATE, Base.DATETIME)}
"""The types that hold all that another one needs."""


def _make(target: Type) -> Callable[[Compiler, ast.FunctionCall], SqlValue]:
    """Return ``date`` and its kin: of text in the query's own text, or of another date or time."""

    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        if len(node.arguments) == 1:
            argument = node.arguments[0]
            text = argument.value if isinstance(argument, ast.Literal) else None
            if isinstance(text, str) and _ISO[target].fullmatch(text) and _exists(text):
                return SqlValue(f"CAST({c.compile(argument).sql} AS {sql_type(target)})", target, atomic=True)
            if text is None:
                value = c.one(argument)
                if value.type.base in _MADE_OF[target]:
                    return value.made(f"CAST({value.sql} AS {sql_type(target)})", target, atomic=value.atomic)
        raise NotSupportedError(f"this use of {node.name} is not supported in SQL", position=node.span.start)

    return compile


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


def moments(c: Compiler, nodes: Sequence[ast.Expression]) -> list[SqlValue]:
    """Compile what is compared with each other: points in time that are written out are values of SQL's here."""
    known = [_moment(node, c.arguments) for node in nodes]
    others = {c.value_of(c.compile(node)).type for node, found in zip(nodes, known, strict=True) if found is None}
    local = any(DATETIME in (type, type.element) for type in others)
    without = any(found is not None and not found[1] for found in known)
    if without and (VALUE in others or (local and len(nodes) > 2)):
        raise NotSupportedError("such a comparison of points in time is not supported in SQL")
    compiled = []
    for node, found in zip(nodes, known, strict=True):
        if found is None:
            compiled.append(c.compile(node))
            continue
        text, zoned = c.compile(found[0]).sql, found[1]
        if zoned:
            compiled.append(SqlValue(f"CAST({text} AS {sql_type(ZONED)})", ZONED))
        else:
            sql = f"CAST({text} AS {sql_type(DATETIME)})"
            compiled.append(SqlValue(sql, DATETIME) if local else SqlValue(f"timezone('UTC', {sql})", ZONED))
    return compiled


FORMS: Forms = {
    "date": _make(DATE),
    "localtime": _make(TIME),
    "localdatetime": _make(DATETIME),
}
