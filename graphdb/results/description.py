"""The types of a result's columns, by openCypher's names: ``INTEGER``, ``LIST OF STRING``, ``NODE``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from graphdb.common.values.temporal import DateTime, LocalDateTime, LocalTime, Temporal, Time
from graphdb.common.values.types import Base, Column, Type

if TYPE_CHECKING:
    from graphdb.common.arrow import Table

_NAMES = {
    Base.NULL: "NULL",
    Base.BOOLEAN: "BOOLEAN",
    Base.INTEGER: "INTEGER",
    Base.DECIMAL: "DECIMAL",
    Base.FLOAT: "FLOAT",
    Base.STRING: "STRING",
    Base.DATE: "DATE",
    Base.DATETIME: "LOCALDATETIME",
    Base.ZONED: "DATETIME",
    Base.MOMENT: "DATETIME",
    Base.TIME: "LOCALTIME",
    Base.DURATION: "DURATION",
    Base.NODE: "NODE",
    Base.EDGE: "RELATIONSHIP",
    Base.PATH: "PATH",
    Base.MAP: "MAP",
}

_OF_ARROW = {
    r"null": "NULL",
    r"bool": "BOOLEAN",
    r"u?int\d+": "INTEGER",
    r"decimal.*": "DECIMAL",
    r"float\d+": "FLOAT",
    r"(large_)?string(_view)?": "STRING",
    r"(large_|fixed_size_)?binary.*": "BYTES",
    r"date.*": "DATE",
    r"timestamp\[\w+\]": "LOCALDATETIME",
    r"timestamp\[.*": "DATETIME",
    r"time.*": "LOCALTIME",
    r"duration.*|.*interval.*": "DURATION",
    r"struct.*|map.*": "MAP",
    r".*list.*": "LIST",
}


def described(columns: Sequence[Column] | None, presented: Callable[[], Table]) -> list[str]:
    """Return the type of each column of a pattern query's result, or of the table that SQL gave."""
    if columns is not None:
        return [_name(column.type) for column in columns]
    return [_of_arrow(str(type)) for type in presented().schema.types]


def _name(type: Type) -> str:
    if type.base in (Base.LIST, Base.TUPLE):
        return f"LIST OF {_name(type.element)}" if type.element is not None else "LIST"
    return name_of(type.base) if type.of is None else _OF_TIMES[type.of]


def name_of(base: Base) -> str:
    """Return the name of a type that is no list's.

    >>> name_of(Base.FLOAT)
    'FLOAT'
    """
    return _NAMES.get(base, "ANY")


_OF_TIMES: dict[type[Temporal], str] = {
    LocalTime: "LOCALTIME",
    Time: "TIME",
    LocalDateTime: "LOCALDATETIME",
    DateTime: "DATETIME",
}


def _of_arrow(type: str) -> str:
    for pattern, name in _OF_ARROW.items():
        if re.fullmatch(pattern, type):
            return name
    return "ANY"
