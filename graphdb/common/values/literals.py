"""RDF literals from values and back: how lists and temporal values are written in the database."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from graphdb.common.arguments import encodes
from graphdb.common.errors import ParameterError
from graphdb.common.values import temporal_build as build
from graphdb.common.values.decimals import shortest
from graphdb.common.values.entities import Edge, Path, Vertex
from graphdb.common.values.temporal import (
    AT_OFFSETS,
    DATED,
    DAY,
    SECOND,
    Date,
    DateTime,
    Duration,
    LocalDateTime,
    LocalTime,
    Temporal,
    Time,
    at_instant,
)
from graphdb.common.values.temporal_python import from_python, to_python
from graphdb.common.values.terms import LIST_DATATYPE, XSD, ZONED_DATATYPE

Literal = tuple[str, str | None]
"""Lexical form and datatype (None: xsd:string)."""

_TOKEN = re.compile(
    r"\s*(?:(?P<open>\[)|(?P<close>\])|(?P<comma>,)|(?P<null>null)|(?P<boolean>true|false)"
    r'|(?P<string>"(?:[^"\\]|\\.)*")(?:\^\^<(?P<type>[^>]*)>)?'
    r"|(?P<float>-?(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|INF)|NaN)|(?P<integer>-?\d+))"
)


def literal_of(value: Any) -> Literal | None:
    """Return the literal of a value; None for what cannot be a property (a map, a vertex, a list with a map).

    Raises
    ------
    ParameterError
        A list has a string with a lone surrogate.
    """
    match value:
        case bool():
            return ("true" if value else "false"), XSD + "boolean"
        case int():
            return str(value), XSD + "integer"
        case float():
            return _float_text(value), XSD + "double"
        case Decimal() if value.is_finite():
            return shortest(value), XSD + "decimal"
        case str():
            return value, None
        case list():
            items = [_item_text(item) for item in value]
            return None if None in items else (f"[{', '.join(filter(None, items))}]", LIST_DATATYPE)
        case Temporal():
            return _temporal_literal(value)
    return None


def _float_text(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return repr(value) if math.isfinite(value) else "INF" if value > 0 else "-INF"


def _temporal_literal(value: Temporal) -> Literal:
    datatype = {Date: "date", LocalTime: "time", Time: "time", Duration: "duration"}.get(type(value), "dateTime")
    # XML Schema has no zones, and offsets of whole minutes up to fourteen hours.
    if isinstance(value, (Time, DateTime)) and (abs(value.offset) > 14 * 3600 or value.offset % 60):
        return str(value), ZONED_DATATYPE
    if isinstance(value, DateTime) and value.zone:
        return str(value), ZONED_DATATYPE
    text = str(value).removeprefix("+")  # XML Schema has no sign before years of more than four digits
    if isinstance(value, (LocalTime, Time, LocalDateTime, DateTime)):
        # XML Schema wants the seconds.
        text = re.sub(r"((?:^|T)\d{2}:\d{2})(?!:?\d)", r"\1:00", text, count=1)
    return text, XSD + datatype


def _item_text(value: Any) -> str | None:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _float_text(value)
        case str():
            if not encodes(value):  # JSON writes it, but nothing reads it again
                raise ParameterError("a string has a lone surrogate, which is no character")
            return json.dumps(value)
    literal = literal_of(value)
    if literal is None or isinstance(value, list):
        return None if literal is None else literal[0]
    return f"{json.dumps(literal[0])}^^<{literal[1]}>"


_DAY_END = re.compile(r"(^|T)24(?=:00:00(?:\.0+)?(?:Z|[+-]|$))")
"""The hour of the midnight that ends a day, which XML Schema has (1.1 Datatypes, §3.3.7.2) and openCypher has not."""


def value_of(lexical: str, datatype: str | None) -> Any:
    """Return the value of a literal that SQL does not hold; its text where it is malformed."""
    try:
        if datatype == LIST_DATATYPE:
            return _list_of(lexical)
        return _temporal_of(lexical, (datatype or "").removeprefix(XSD))
    except (build.Malformed, ValueError):
        return lexical


def moment_at(moment: datetime | str, offset: int) -> DateTime:
    """Return a point in time in UTC, which is a text where Python's calendar lacks it, at an offset in seconds."""
    found: Any = far_value_of(moment) if isinstance(moment, str) else from_python(moment)
    return at_instant(found.days * DAY + found.nanoseconds - getattr(found, "offset", 0) * SECOND, offset)


def far_value_of(text: str) -> Temporal:
    """Return the day, or date and time, of a year that Python's calendar lacks, as DuckDB or NumPy write it."""
    found = _FAR.fullmatch(text)
    assert found is not None, text
    year, day, before, clock = found.groups()
    date = f"{1 - int(year) if before else int(year):+05d}{day}"
    value: Temporal = _temporal_of(f"{date}T{clock}", "dateTime") if clock else _temporal_of(date, "date")
    return value


_FAR = re.compile(r"(-?\d+)(-\d{2}-\d{2})( \(BC\))?(?:[ T](.+))?")


def exact_of(
    of: type[Temporal], clock: datetime | str, nanoseconds: int, offset: int, zone: str | None = None
) -> Temporal:
    """Return a time of the parts that SQL has: what a clock shows is a text where Python's calendar lacks it."""
    shown = moment_at(clock, 0)
    parts: dict[str, Any] = {"nanoseconds": shown.nanoseconds + nanoseconds}
    if of in DATED:
        parts["days"] = shown.days
    if of in AT_OFFSETS:
        parts["offset"] = offset
    if zone is not None:
        parts["zone"] = zone
    return of(**parts)


def python_value_of(lexical: str, datatype: str | None) -> Any:
    """Return the same as a user sees it: of Python's own types where nothing is lost."""
    return exported(value_of(lexical, datatype))


def exported(value: Any, element: Callable[[Any], object] | None = None) -> Any:
    """Return a value as a user sees it; ``element`` returns what a user sees of a vertex, edge or path."""
    match value:
        case Temporal():
            return to_python(value)
        case list():
            return [exported(item, element) for item in value]
        case dict():
            return {key: exported(item, element) for key, item in value.items()}
        case Vertex() | Edge() | Path() if element is not None:
            return element(value)
    return value


def _temporal_of(lexical: str, name: str) -> Any:
    if name in ("date", "dateTime") and lexical[:5].isdigit():  # ISO 8601 has one
        lexical = f"+{lexical}"
    zoned = re.search(r"(Z|[+-]\d{2}:\d{2}(:\d{2})?)(\[|$)", lexical.partition("T")[2] or lexical)
    kinds: dict[str, type[Temporal]] = {
        "date": Date,
        "time": Time if zoned else LocalTime,
        "dateTime": DateTime if zoned else LocalDateTime,
        "duration": Duration,
        ZONED_DATATYPE: DateTime if "T" in lexical else Time,
    }
    kind = kinds.get(name)
    if kind is None:
        return Decimal(lexical) if name == "decimal" else lexical
    if name in ("dateTime", "time") and (end := _DAY_END.search(lexical)) is not None:
        midnight: Any = build.parse(kind, lexical[: end.end() - 2] + "00" + lexical[end.end() :])
        return replace(midnight, days=midnight.days + 1) if name == "dateTime" else midnight
    return build.parse(kind, lexical)


def _list_of(text: str) -> list[Any]:
    lists: list[list[Any]] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise build.Malformed(f"'{text}' is not a list")
        at = found.end()
        match found.lastgroup:
            case "open":
                lists.append([])
                continue
            case "comma":
                continue
            case "close":
                value: Any = lists.pop()
                if not lists:
                    return list(value)
            case "null":
                value = None
            case "boolean":
                value = found["boolean"] == "true"
            case "integer":
                value = int(found["integer"])
            case "float":
                value = float(found["float"].replace("INF", "inf"))
            case _:
                value = json.loads(found["string"])
                if found["type"]:
                    value = _temporal_of(value, found["type"].removeprefix(XSD))
        lists[-1].append(value)
    raise build.Malformed(f"'{text}' is not a list")
