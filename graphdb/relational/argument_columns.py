"""Lists that are arguments, as columns: what UNWIND makes rows of comes to SQL as one array.

Values of one type are an array of it, lists and maps have arrays of what is in them.  Values of several types are
structs with a field for each, and the number of the one that each is of; SQL makes the type that it has for them of
these (:mod:`graphdb.sql.joined`).  So rows that Python writes down, as ``[[1, 2, 0.5], …]`` or maps with numbers, texts
and lists in them, are joined with the graph by their columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from graphdb.common import arrow
from graphdb.common.errors import NotSupportedError
from graphdb.common.stopping import check_stop
from graphdb.common.values.types import (
    BOOLEAN,
    DATE,
    DATETIME,
    FLOAT,
    INTEGER,
    NULL,
    STRING,
    TIME,
    Base,
    Type,
    list_of,
)
from graphdb.sql.constants import from_numpy
from graphdb.sql.joined import alternatives, cast, joined
from graphdb.sql.value import SqlValue, bases_of, column, named

_SCALARS: dict[type, tuple[Type, arrow.DataType]] = {
    bool: (BOOLEAN, arrow.BOOL),
    int: (INTEGER, arrow.INT64),
    float: (FLOAT, arrow.FLOAT64),
    str: (STRING, arrow.STRING),
    date: (DATE, arrow.DATE),
    datetime: (DATETIME, arrow.TIMESTAMP),
    time: (TIME, arrow.TIME),
}
"""Python types whose values are a column of one type; points in time with a zone are not."""

_LONG = 1000
"""Items from which on any list is worth a column of its own: DuckDB takes the items of a parameter one by one.

A shorter one of :data:`_ALIKE` is, too: what is compiled is right for other lists, and its rows need no SQL.  A list of
maps always is, and one of lists of several types: Python would compute whatever is asked of the ones, and
compare it row by row, and SQL would have to name the type of each item of the others."""

_ALIKE = ({int}, {str}, {float}, {bool})
"""The types of the items of short lists that are columns."""

_KINDS = 24
"""Kinds of values of a column, at most."""


class _Column(NamedTuple):
    """An array, and the type of its values: a choice where they are of several types, whatever these are."""

    array: arrow.Array
    type: Type


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list that a query takes from an argument: all of it, or a part, as Python cuts it."""

    name: str
    type: Type
    """Of its items."""
    begin: int | None = None
    end: int | None = None

    def column(self, arguments: Mapping[str, object]) -> arrow.Array | None:
        """Return the list of some arguments as an array; None where its items are of another type."""
        found = part_of_list(arguments.get(self.name), self.begin, self.end)
        return found[0] if found is not None and found[1] == self.type else None


def part_of_list(value: Any, begin: int | None = None, end: int | None = None) -> tuple[arrow.Array, Type] | None:
    """Return a list that is worth a column of its own, or a part of a long one, as an array; None for any other value.

    The type is that of its items as they are in the array: see :func:`item_of_column`.
    """
    if (begin, end) != (None, None):
        if not isinstance(value, (list, tuple)) or len(value) < _LONG:
            return None
        part = value[begin:end]
        return _items(part) if part else None
    if not isinstance(value, (list, tuple)):
        return _column(value) if getattr(value, "ndim", 0) == 1 and len(value) >= _LONG else None
    kinds = {*map(type, value)}
    any_type = len(value) >= _LONG or kinds in _ALIKE
    if {dict, list, tuple}.isdisjoint(kinds) and not any_type:
        return None
    found = _items(value)
    return found if found is not None and (any_type or _has_several(found.type)) else None


def _items(values: Sequence[Any]) -> _Column | None:
    return _maps(values, in_any_order=True) if {*map(type, values)} == {dict} else _column(values)


def item_of_column(name: str, type: Type) -> SqlValue:
    """Return the items of a column as SQL has values of their types.

    Raises
    ------
    NotSupportedError
        It has no type for them.
    """
    wanted = _joined(type)
    value = column(name, type)
    return value if wanted == type else SqlValue(cast(value, wanted), wanted, bases=_bases(type))


def _has_several(type: Type) -> bool:
    """Whether values are maps, or of several types, or have such inside."""
    return type.base in (Base.MAP, Base.CHOICE) or (type.element is not None and _has_several(type.element))


def _joined(type: Type) -> Type:
    """Return the type in which SQL has values of a column's type."""
    if type.base is Base.LIST:
        return list_of(_joined(type.element or NULL))
    if type.base is Base.MAP:
        return replace(type, fields=tuple((key, _joined(field)) for key, field in type.fields))
    return joined(map(_joined, alternatives(type))) if type.base is Base.CHOICE else type


def _bases(type: Type) -> frozenset[Base] | None:
    """Return the members of unions that occur in a column, or in the lists in it."""
    if type.base is Base.LIST:
        return _bases(type.element or NULL)
    return bases_of([named("", each) for each in alternatives(type)])


def _column(values: Any) -> _Column | None:
    """Return values as a column; None where some are of a kind that columns do not have."""
    if hasattr(values, "dtype") and values.dtype != object:
        found = arrow.array(values)
        plain = next((plain for plain, held in _SCALARS.values() if held == found.type), None)
        return None if plain is None else _Column(found, plain)
    check_stop()
    kinds = {*map(type, values)}
    if not kinds <= _KNOWN:
        values = list(map(from_numpy, values))
        kinds = {*map(type, values)}
        if not kinds <= _KNOWN:
            return None
    kinds.discard(_ABSENT)
    if not kinds:
        return _Column(arrow.nulls(len(values), arrow.INT32), NULL)
    if len(kinds) == 1:
        [kind] = kinds
        if kind in _SCALARS:
            return _scalars(values, kind)
        return _maps(values) if kind is dict else _lists(values)
    return _lists(values) if kinds == {list, tuple} else _several(values, list(map(_kind, values)))


_ABSENT = type(None)
_KNOWN = {*_SCALARS, _ABSENT, list, tuple, dict}


def _scalars(values: Sequence[Any], kind: type) -> _Column | None:
    """Return values of one Python type, and nulls."""
    plain, held = _SCALARS[kind]
    if kind in (datetime, time) and any(value is not None and value.tzinfo is not None for value in values):
        return None
    try:
        return _Column(arrow.array(values, held), plain)
    except (arrow.ArrowTypeError, OverflowError, UnicodeEncodeError):  # the error is that of any value
        return None


def _lists(values: Sequence[Any]) -> _Column | None:
    """Return lists of values."""
    there = np.array([value is not None for value in values], bool)
    given = values if there.all() else [() if value is None else value for value in values]
    found = _column(list(chain.from_iterable(given)))
    if found is None:
        return None
    offsets = np.zeros(len(values) + 1, np.int64)
    np.cumsum([*map(len, given)], out=offsets[1:])
    return _Column(arrow.list_array(offsets, found.array, None if there.all() else there), list_of(found.type))


def _maps(values: Sequence[Any], *, in_any_order: bool = False) -> _Column | None:
    """Return maps: those that have the same keys are structs, those with others are structs of another type.

    Keys of the same maps are in the same order, unless they may be ``in_any_order``: then in that of the first map.
    """
    keys = next(value for value in values if value is not None)
    if not keys or {*map(type, keys)} != {str}:
        return None
    there = np.array([value is not None for value in values], bool)
    given = values if there.all() else [keys if value is None else value for value in values]
    try:  # as many keys, and these: the same ones
        parts = [list(map(itemgetter(key), given)) for key in keys]
    except KeyError:
        parts = []
    if not in_any_order and len({*map(tuple, given)}) > 1:
        parts = []
    if not parts or {*map(len, given)} != {len(keys)}:
        kinds = list(map(_kind, values))
        return _several(values, kinds) if len({*kinds} - {_ABSENT}) > 1 else None
    columns = [_column(part) for part in parts]
    if None in columns:
        return None
    arrays, types = zip(*[each for each in columns if each is not None], strict=True)
    struct = arrow.struct_array(list(arrays), _names(arrays), None if there.all() else there)
    return _Column(struct, Type(Base.MAP, fields=tuple(zip(keys, types, strict=True))))


def _kind(value: Any) -> object:
    """Return what values are grouped by, each group of which is a column: maps by their keys."""
    kind = type(value)
    return tuple(value) if kind is dict else list if kind is tuple else kind


def _several(values: Sequence[Any], kinds: Sequence[object]) -> _Column | None:
    """Return values of several kinds as structs of a field for each."""
    groups = sorted({*kinds} - {_ABSENT}, key=_order)
    keys = [frozenset(kind) for kind in groups if isinstance(kind, tuple)]
    if len(groups) > _KINDS or len({*keys}) < len(keys):  # of the same keys, SQL knows one order
        return None
    columns = [
        _column([value if of == kind else None for value, of in zip(values, kinds, strict=True)]) for kind in groups
    ]
    found = [each for each in columns if each is not None]
    if len(found) < len(columns) or any(each.type.base is Base.CHOICE for each in found):
        return None
    numbers = {kind: i for i, kind in enumerate(groups)}
    tags = np.array([numbers.get(kind, 0) for kind in kinds], np.uint8)
    arrays = [each.array for each in found]
    there = None if _ABSENT not in kinds else np.array([kind is not _ABSENT for kind in kinds], bool)
    struct = arrow.struct_array([*arrays, arrow.numbers(tags)], [*_names(arrays), "tag"], there)
    made = Type(Base.CHOICE, fields=tuple(("", each.type) for each in found))
    try:
        _joined(made)
    except NotSupportedError:
        return None
    return _Column(struct, made)


def _order(kind: object) -> tuple[bool, str]:
    """Return what kinds of values are ordered by, so that the types of columns do not differ by their first rows."""
    return (False, kind.__name__) if isinstance(kind, type) else (True, repr(kind))


def _names(fields: Sequence[object]) -> list[str]:
    return [f"f{i}" for i in range(len(fields))]
