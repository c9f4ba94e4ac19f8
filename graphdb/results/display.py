"""Python values as columns of a table, where SQL cannot show what it has: a column of one type, or texts."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from graphdb.common import arrow
from graphdb.common.values.elements import Node, Relationship
from graphdb.common.values.types import Base, Type
from graphdb.storage.arrays import times_with_offset


def made_in_python(type: Type) -> bool:
    """Whether SQL does not show a column: of choices, exact times, keys, or maps whose keys differ by case."""
    if type.base is Base.LIST:
        return type.element is not None and made_in_python(type.element)
    if type.base is not Base.MAP:
        return type.base in (Base.ANY, Base.CHOICE, Base.EXACT)
    if not type.fields:
        return True
    names = {key.lower() for key, _ in type.fields}
    return len(names) < len(type.fields) or any(made_in_python(field) for _, field in type.fields)


def shown(value: Any) -> Any:
    """Return a Python value as a table's column holds it: a vertex as its IRI, an edge as its label and ends."""
    match value:
        case Node():
            return value.iri
        case Relationship():
            return {"type": value.type, "start": value.start, "end": str(value.end)}
        case list():
            return [_shown_inside(item) for item in value]
        case dict():
            return {key: _shown_inside(item) for key, item in value.items()}
        case bool() | int() | float() | str() | None | Decimal() | date() | datetime() | time():
            return value
    return str(value)  # a path, an exact time


def _shown_inside(value: Any) -> Any:
    """Return a value within a list or map: a time with an offset as text, for Arrow would forget the offset."""
    return value.isoformat() if isinstance(value, time) and value.tzinfo is not None else shown(value)


def array_of(values: list[Any]) -> arrow.Array:
    """Return shown values as an array: numbers of several types as those of one, other values of several as their text.

    Times and dates with an offset are of another type than those without.
    """
    kinds = {(type(value), getattr(value, "tzinfo", None) is not None) for value in values if value is not None}
    types = {kind for kind, _ in kinds}
    try:
        if types == {int, Decimal}:
            values, kinds = [None if value is None else Decimal(value) for value in values], {(Decimal, False)}
        elif float in types and len(types) > 1 and types <= {int, Decimal, float}:
            return arrow.array([None if value is None else float(value) for value in values], arrow.FLOAT64)
        if kinds == {(time, True)}:
            return times_with_offset.of_times(values)
        if kinds == {(datetime, True)}:  # moments; Arrow takes no offset of seconds
            values = [None if value is None else value.astimezone(UTC) for value in values]
        if len(kinds) <= 1:
            return arrow.array(values)
    except (arrow.ArrowTypeError, OverflowError):
        pass
    return arrow.array([None if value is None else str(value) for value in values], arrow.STRING)
