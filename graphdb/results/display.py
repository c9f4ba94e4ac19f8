"""Python values as columns of a table, where SQL cannot show what it has: a column of one type, or texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

    Times and dates with an offset are of another type than those without.  Lists and maps whose
    values differ in type are made of such arrays.
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
        if types == {list}:
            return lists_of(values, array_of)
        if types == {dict} and _are_fields([value for value in values if value is not None]):
            return structs_of(values, array_of)
    return arrow.array([None if value is None else str(value) for value in values], arrow.STRING)


def lists_of(values: Sequence[Any], column_of: Callable[[list[Any]], arrow.Array]) -> arrow.Array:
    """Return lists as an array, of whose items ``column_of`` makes one."""
    items = column_of([item for value in values if value is not None for item in value])
    lengths = [0 if value is None else len(value) for value in values]
    return arrow.list_array(np.append(0, np.cumsum(np.array(lengths, np.int64))), items, valid_of(values))


def structs_of(values: Sequence[Any], column_of: Callable[[list[Any]], arrow.Array]) -> arrow.Array:
    """Return maps as structs of all their keys; what has one value here and several there has lists.

    ``column_of`` makes the array of a field's values.
    """
    names = list(dict.fromkeys(key for value in values if value is not None for key in value))
    if not names:
        return arrow.nulls(len(values))
    fields = []
    for name in names:
        found = [None if value is None else value.get(name) for value in values]
        if {type(value) for value in found} - {type(None)} > {list}:
            found = [value if value is None or isinstance(value, list) else [value] for value in found]
        fields.append(column_of(found))
    return arrow.struct_array(fields, names, valid_of(values))


def valid_of(values: Sequence[Any]) -> NDArray[np.bool_] | None:
    """Return which values are not null; None where all are not."""
    return np.array([value is not None for value in values], bool) if None in values else None


def _are_fields(maps: Sequence[dict[Any, Any]]) -> bool:
    """Whether the keys of maps can be names of a struct's fields, which SQL does not distinguish by case."""
    keys = {key for each in maps for key in each}
    return all(isinstance(key, str) for key in keys) and len({key.lower() for key in keys}) == len(keys)
