"""Dates, times and durations in SQL: what DuckDB's types hold exactly.

A date is a DATE, a local time a TIME, a local date and time a TIMESTAMP, to the microsecond.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from graphdb.errors import NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.typed import Typed
from graphdb.values import DATE, DATETIME, INTEGER, TIME, ZONED, Base, Type, sql_type

if TYPE_CHECKING:
    from graphdb.expressions import Compiler
    from graphdb.functions import Functions

CLOCKS = frozenset("date time localtime datetime localdatetime duration".split())
"""What functions of dates and times begin with."""

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


def part(value: Typed, name: str, node: ast.Property) -> Typed:
    """Return a component of a date or time.

    Raises
    ------
    NotSupportedError
        SQL does not know the component.
    """
    template = _PARTS.get(value.type.base, {}).get(name)
    if template is None or value.many:
        raise NotSupportedError(f"'{name}' of {value.type} is not supported in SQL", position=node.span.start)
    return Typed(f"CAST({template.format(value.sql)} AS BIGINT)", INTEGER)


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


def _make(target: Type) -> Callable[[Compiler, ast.FunctionCall], Typed]:
    """Return ``date`` and its kin: of text in the query's own text, or of another date or time."""

    def compile(c: Compiler, node: ast.FunctionCall) -> Typed:
        if len(node.arguments) == 1:
            argument = node.arguments[0]
            text = argument.value if isinstance(argument, ast.Literal) else None
            if isinstance(text, str) and _ISO[target].fullmatch(text) and _exists(text):
                return Typed(f"CAST({c.compile(argument).sql} AS {sql_type(target)})", target)
            if text is None:
                value = c.one(argument)
                if value.type.base in _MADE_OF[target]:
                    return Typed(f"CAST({value.sql} AS {sql_type(target)})", target)
        raise NotSupportedError(f"this use of {node.name} is not supported in SQL", position=node.span.start)

    return compile


def moment(c: Compiler, node: ast.Expression) -> Typed | None:
    """Return a point in time that is written out, as a comparison takes it; None for anything else.

    A local time is compared with one without a zone as if it were local, which RDF's times are as often as not.
    """
    match node:
        case ast.FunctionCall(name, (ast.Literal(str() as text) as argument,)) if name.lower() == "datetime":
            if (found := _MOMENT.fullmatch(text)) is not None:
                type = ZONED if found["zone"] else DATETIME
                return Typed(f"CAST({c.compile(argument).sql} AS {sql_type(type)})", type)
    return None


FUNCTIONS: Functions = {
    "date": (_make(DATE), 0, 1),
    "localtime": (_make(TIME), 0, 1),
    "localdatetime": (_make(DATETIME), 0, 1),
}
