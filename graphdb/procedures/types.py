"""The types of a procedure's signature, ``INTEGER?`` or ``LIST OF STRING``, and which values belong to them."""

from __future__ import annotations

import datetime as python
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain
from typing import Any

from graphdb.common.errors import GraphDBError
from graphdb.common.values import temporal
from graphdb.common.values.elements import Node, Path, Relationship
from graphdb.common.values.types import BOOLEAN, DATE, FLOAT, INT64, INTEGER, STRING, Type, list_of

_NONE = type(None)

_CLASSES: dict[str, tuple[type, ...]] = {
    "ANY": (object,),
    "BOOLEAN": (bool,),
    "INTEGER": (int,),
    "FLOAT": (float, int),
    "NUMBER": (int, float, Decimal),
    "STRING": (str,),
    "DATE": (python.date, temporal.Date),
    "TIME": (python.time, temporal.Time),
    "LOCALTIME": (python.time, temporal.LocalTime),
    "DATETIME": (python.datetime, temporal.DateTime),
    "LOCALDATETIME": (python.datetime, temporal.LocalDateTime),
    "DURATION": (python.timedelta, temporal.Duration),
    "MAP": (dict,),
    "LIST": (list, tuple),
    "NODE": (Node,),
    "RELATIONSHIP": (Relationship,),
    "PATH": (Path,),
}
"""Python's classes of the values of each type."""

_ZONED = {"TIME": True, "DATETIME": True, "LOCALTIME": False, "LOCALDATETIME": False}
"""Whether values of Python's temporal classes have a zone."""

_SYNONYMS = {
    "BOOL": "BOOLEAN",
    "INT": "INTEGER",
    "EDGE": "RELATIONSHIP",
    "VERTEX": "NODE",
    "ZONED DATETIME": "DATETIME",
    "LOCAL DATETIME": "LOCALDATETIME",
    "ZONED TIME": "TIME",
    "LOCAL TIME": "LOCALTIME",
}

_OF_PYTHON: dict[Any, str] = {
    bool: "BOOLEAN",
    int: "INTEGER",
    float: "FLOAT",
    str: "STRING",
    python.date: "DATE",
    python.timedelta: "DURATION",
    dict: "MAP",
    Mapping: "MAP",
    Node: "NODE",
    Relationship: "RELATIONSHIP",
    Path: "PATH",
}

_SQL = {"BOOLEAN": BOOLEAN, "INTEGER": INTEGER, "FLOAT": FLOAT, "STRING": STRING, "DATE": DATE}

_TOKEN = re.compile(r"\s*(?:([A-Za-z]+)|([?<>]))")


class NotOfType(Exception):
    """A value, the argument, is not of a type."""


@dataclass(frozen=True, slots=True)
class ValueType:
    """A type: its name as openCypher has it, whether null is of it (``?``), and of a list the type of its items."""

    name: str
    nullable: bool = False
    element: ValueType | None = None

    def __str__(self) -> str:
        mark = "?" if self.nullable else ""
        return f"{self.name}{mark} OF {self.element}" if self.element is not None else f"{self.name}{mark}"

    @property
    def sql(self) -> Type | None:
        """The type of such values in SQL; None where they are not of one."""
        if self.element is not None:
            inner = self.element.sql
            return None if inner is None else list_of(inner)
        return _SQL.get(self.name)

    def fitted(self, values: Sequence[Any]) -> Sequence[Any]:
        """Return values as those of this type, of which they are: integers become floats where those are asked for.

        Raises
        ------
        NotOfType
            One is not.
        """
        kinds = {*map(type, values)}
        if _NONE in kinds and not self.nullable:
            raise NotOfType(None)
        if kinds <= {_NONE} or self.name == "ANY":
            return values
        if self.name in _EXACT and kinds <= {_NONE, *_EXACT[self.name]}:
            found: Iterable[Any] = values
        else:
            found = [self._fitted(value) for value in values]
        if self.name == "INTEGER":
            given = [value for value in found if value is not None]
            if min(given) not in INT64 or max(given) not in INT64:
                raise NotOfType(max(given, key=abs))
        elif self.name == "FLOAT" and int in kinds:
            found = [None if value is None else float(value) for value in found]
        elif self.name == "LIST" and self.element is not None:
            lists = list(found)
            items = iter(self.element.fitted(list(chain.from_iterable(value or () for value in lists))))
            found = [None if value is None else [next(items) for _ in value] for value in lists]
        return list(found)

    def _fitted(self, value: Any) -> Any:
        """Return one value, of whatever class, as one of this type."""
        if hasattr(value, "dtype") and hasattr(value, "tolist"):  # NumPy's
            value = value.tolist()
        if value is None:
            return value
        right = isinstance(value, _CLASSES[self.name])
        if isinstance(value, bool) and self.name != "BOOLEAN":
            right = False
        if self.name == "DATE" and isinstance(value, python.datetime):
            right = False
        if self.name in _ZONED and isinstance(value, (python.time, python.datetime)):
            right = right and (value.tzinfo is not None) is _ZONED[self.name]
        if not right:
            raise NotOfType(value)
        return value


_EXACT = {name: classes for name, classes in _CLASSES.items() if name not in (*_ZONED, "ANY")}
"""Types whose values are recognized by their class alone, as long as it is one of these and no subclass."""

ANY = ValueType("ANY", True)


def type_of(declared: object) -> ValueType:
    """Return the type that is declared, as text (``"LIST OF INTEGER?"``) or as Python's annotations have it.

    Raises
    ------
    GraphDBError
        There is no such type.
    """
    if isinstance(declared, ValueType):
        return declared
    if isinstance(declared, str):
        return _Text(declared).whole()
    if declared in (Any, object):
        return ANY
    origin, arguments = typing.get_origin(declared), typing.get_args(declared)
    if origin in (typing.Union, types.UnionType):
        others = [argument for argument in arguments if argument is not _NONE]
        inner = type_of(others[0]) if len(others) == 1 else _united(others)
        return replace(inner, nullable=inner.nullable or len(others) < len(arguments))
    if declared in (list, tuple) or origin in (list, tuple, Sequence, Iterable):
        items = [argument for argument in arguments if argument is not ...]
        return ValueType("LIST", False, type_of(items[0]) if len(items) == 1 else ANY)
    name = _OF_PYTHON.get(origin or declared)
    if name is None:
        raise GraphDBError(f"there is no type for {declared!r}", hint="write it as text, such as 'STRING?' or 'ANY?'")
    return ValueType(name)


def _united(declared: Sequence[object]) -> ValueType:
    """Return the type of what is of one of several."""
    found = {type_of(each).name for each in declared}
    return ValueType("NUMBER" if found <= {"INTEGER", "FLOAT", "NUMBER"} else "ANY")


class _Text:
    """A type that is written out."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at)
            if found is None:
                raise self._wrong()
            self._parts.append((found[1] or found[2]).upper())
            at = found.end()

    def whole(self) -> ValueType:
        """Return the type that the whole text is."""
        found = self._type()
        if self._parts:
            raise self._wrong()
        return found

    def _wrong(self) -> GraphDBError:
        known = ", ".join(_CLASSES)
        return GraphDBError(f"there is no type {self._text!r}", hint=f"types are {known}, with ? where null is allowed")

    def _type(self) -> ValueType:
        words = []
        while self._parts and self._parts[0].isalpha() and self._parts[0] != "OF":
            words.append(self._parts.pop(0))
        name = " ".join(words)
        name = _SYNONYMS.get(name, name)
        if name not in _CLASSES:
            raise self._wrong()
        nullable = self._next("?")
        if name != "LIST":
            return ValueType(name, nullable or name == "ANY")
        if self._next("OF"):
            return ValueType(name, nullable, self._type())
        if self._next("<"):
            element = self._type()
            if not self._next(">"):
                raise self._wrong()
            return ValueType(name, nullable or self._next("?"), element)
        return ValueType(name, nullable, ANY)

    def _next(self, part: str) -> bool:
        if self._parts[:1] != [part]:
            return False
        del self._parts[0]
        return True
