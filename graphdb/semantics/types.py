"""Static types: what follows from a query's text alone; what only the data decides is ``any``."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from graphdb.common.values.temporal import Temporal
from graphdb.procedures.types import ValueType


@dataclass(frozen=True, slots=True)
class Static:
    """A type by its name; ``element`` of a list."""

    base: str
    element: Static | None = None

    def __str__(self) -> str:
        article = "an" if self.base[0] in "aei" else "a"
        return "null" if self.base == "null" else f"{article} {self.base}"


ANY, NULL, BOOLEAN, INTEGER = Static("any"), Static("null"), Static("boolean"), Static("integer")
FLOAT, NUMBER, STRING, LIST = Static("float"), Static("number"), Static("string"), Static("list")
MAP, VERTEX, EDGE, PATH = Static("map"), Static("vertex"), Static("edge"), Static("path")
TEMPORAL = Static("temporal")

NUMBERS = ("integer", "float", "number")
OPEN = ("any", "null")
"""Types that leave open what a value is."""


def list_of(element: Static) -> Static:
    """Return the type of lists of one type."""
    return Static("list", element)


def common(types: list[Static]) -> Static:
    """Return the type that all of some types are: ``any`` where they differ."""
    known = {type for type in types if type.base != "null"}
    if not known:
        return NULL if types else ANY
    if len(known) == 1:
        return known.pop()
    if all(type.base in NUMBERS for type in known):
        return NUMBER
    return LIST if all(type.base == "list" for type in known) else ANY


def type_of_value(value: Any) -> Static:
    """Return the type of a literal's or parameter's value."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return INTEGER
        case float():
            return FLOAT
        case str():
            return STRING
        case dict():
            return MAP
        case list() | tuple():
            return list_of(common([type_of_value(item) for item in value]))
        case Temporal():
            return TEMPORAL
    return NUMBER if isinstance(value, Decimal) else ANY


Scope = dict[str, Static]
"""What is known of the type of each name."""

_STATIC = {"NODE": "vertex", "RELATIONSHIP": "edge", "PATH": "path", "MAP": "map", "ANY": "any"}
_STATIC |= {name: name.lower() for name in ("BOOLEAN", "INTEGER", "FLOAT", "NUMBER", "STRING")}
"""Types of a signature as the checks before anything runs call them; what is missing is temporal."""

_ADMITS = {"float": ("float", "integer", "number"), "number": ("float", "integer", "number")}


def static(type: ValueType) -> Static:
    """Return a type of a signature as the checks have it."""
    if type.element is not None:
        return list_of(static(type.element))
    return Static(_STATIC.get(type.name, "temporal"))


def admits(type: ValueType, found: Static) -> bool:
    """Whether what is known of an argument leaves it a value of a type."""
    if found == NULL:
        return type.nullable
    wanted = static(type)
    if found == ANY or wanted == ANY:
        return True
    if found.base == "number":
        return wanted.base in ("integer", "float", "number")
    return found.base in _ADMITS.get(wanted.base, (wanted.base,))
