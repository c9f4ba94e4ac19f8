"""The one type that holds values of several types, and values as values of that type.

Scalars of several types are a union (:attr:`~graphdb.common.values.types.Base.VALUE`).  Where lists, maps, vertices,
edges, paths, durations, exact times or points in time at an offset are among them, it is a choice
(:attr:`~graphdb.common.values.types.Base.CHOICE`): a struct with a field for each of its types, and the number of the
one that a value is of.  No two of its types have a value in common, or two that are equal: numbers are in one field,
and so are all lists, and all maps with the same keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import (
    MEMBERS,
    MOMENT,
    NO_KEYS,
    NULL,
    NUMERIC,
    VALUE,
    WHOLE_AND_REAL,
    ZONED,
    Base,
    Type,
    list_of,
    sql_type,
)
from graphdb.sql import exact
from graphdb.sql.value import SqlValue, as_union, at_offset, bases_of, named

_SCALARS = {*MEMBERS, Base.VALUE}

_MOST = 24
"""Types of a choice: a value of it has a field for each, and what is made of it a case for each."""

_OF_PARTS = (Base.LIST, Base.TUPLE, Base.MAP, Base.CHOICE)
"""Types of values that have parts, which may be of different types."""

_ALONE = (Base.NODE, Base.EDGE, Base.PATH, Base.DURATION, Base.MOMENT, Base.EXACT)
"""Types of which a choice has each as it is."""


def unified(values: Sequence[SqlValue]) -> tuple[list[str], Type]:
    """Return the SQL of values as the one type that holds them all, and that type.

    Raises
    ------
    NotSupportedError
        They have none.
    """
    type = type_of(values)
    return [cast(value, type) for value in values], type


def type_of(values: Sequence[SqlValue]) -> Type:
    """Return the type that holds all of some values.

    Raises
    ------
    NotSupportedError
        There is none.
    """
    type = joined([value.type for value in values])
    if _has_choice(type) and any(value.bases is not None and Base.ZONED in value.bases for value in values):
        raise NotSupportedError("the offsets of a property's points in time are not in one column with others in SQL")
    return type


def items_of(values: Sequence[SqlValue]) -> tuple[list[str], Type]:
    """Return the SQL of values that are items of a list, which is cast to one of the type that holds them all.

    Raises
    ------
    NotSupportedError
        They have none.
    """
    type = type_of(values)
    if type.base is not Base.CHOICE:
        return [cast(value, type) for value in values], type
    return [
        cast(value, type)
        if value.type.base in (Base.NULL, Base.CHOICE)
        else _once(value, 0, lambda value: _chosen(value, type, 1, whole=False))
        for value in values
    ], type


def common(values: Sequence[SqlValue]) -> tuple[list[str], Type]:
    """The same, for values that are a column of their own: numbers of several types are of one type in a user's table.

    Raises
    ------
    NotSupportedError
        They have none, or are such numbers, decimals among them.
    """
    bases = bases_of(values)
    if are_numbers(bases) and bases != WHOLE_AND_REAL:
        raise NotSupportedError("numbers of different types are not supported in one column in SQL")
    return unified(values)


def are_numbers(bases: frozenset[Base] | None) -> bool:
    """Whether values of some types are numbers of several types, and nothing else: a table would show a union."""
    return bases is not None and len(bases) > 1 and bases <= NUMERIC


def have_one_type(values: Sequence[SqlValue]) -> bool:
    """Whether SQL has one type that holds some values, and it is no choice."""
    try:
        return not _has_choice(joined([value.type for value in values]))
    except NotSupportedError:
        return False


def _has_choice(type: Type) -> bool:
    inside = (*([] if type.element is None else [type.element]), *(field for _, field in type.fields))
    return type.base is Base.CHOICE or any(map(_has_choice, inside))


def joined(types: Iterable[Type]) -> Type:
    """Return the type that holds values of some types, each as it is.

    Raises
    ------
    NotSupportedError
        There is none.
    """
    of = {type for type in types if type.base is not Base.NULL}
    if len(of) < 2:
        return next(iter(of), NULL)
    if len({type.base for type in of}) == 1 and not any(type.base in (*_OF_PARTS, Base.EXACT) for type in of):
        return max(of, key=lambda type: (type.scale, type.element is not None))
    parts = {part for type in of for part in alternatives(type)}
    found = [*_maps(part for part in parts if part.base is Base.MAP)]
    lists = [part for part in parts if part.base in (Base.LIST, Base.TUPLE)]
    if lists:
        found.append(list_of(joined(_items(part) for part in lists)))
    if VALUE in parts and (MOMENT in parts or any(part.base is Base.EXACT for part in parts)):
        raise NotSupportedError("times of several types, one of them exact, are not in one column in SQL")
    for part in [*parts]:
        if part.base is Base.EXACT:
            less = {other for other in parts if other != part and exact.kind_of(other) is part.of}
            parts -= {other for other in less if not other.by_name}
    if MOMENT in parts:
        parts.discard(ZONED)
    found += [part for part in sorted(parts, key=_name) if part.base in _ALONE]
    scalars = {part for part in parts if part.base in _SCALARS}
    if scalars:
        same = len({part.base for part in scalars}) == 1
        found.append(max(scalars, key=lambda type: type.scale) if same else VALUE)
    if any(part.base not in _SCALARS and part.base not in (*_ALONE, *_OF_PARTS) for part in parts):
        raise NotSupportedError("lists of items this different are not supported yet")
    if len(found) > _MOST:
        raise NotSupportedError("values of so many types are not in one column in SQL")
    return found[0] if len(found) == 1 else Type(Base.CHOICE, fields=tuple(("", type) for type in found))


def _name(type: Type) -> tuple[str, str]:
    return type.base.value, str(type)


def _items(type: Type) -> Type:
    """Return the type of the items of lists."""
    return type.element or NULL if type.base is Base.LIST else joined(field for _, field in type.fields)


def alternatives(type: Type) -> list[Type]:
    """Return the types that a value of a type may be of."""
    return [field for _, field in type.fields] if type.base is Base.CHOICE else [type]


def _maps(types: Iterable[Type]) -> Iterator[Type]:
    """Return types that hold maps of some types: one for all that have the same keys."""
    by_keys: dict[object, list[Type]] = {}
    for type in sorted(types, key=lambda type: [key for key, _ in type.fields]):
        by_keys.setdefault(type if type.sparse else frozenset(key for key, _ in type.fields), []).append(type)
    if len(by_keys) > 1 and any(isinstance(keys, Type) for keys in by_keys):
        raise NotSupportedError("maps of all properties are not among others in one column in SQL")
    for same in by_keys.values():
        keys = [key for key, _ in same[0].fields]
        fields = [joined([dict(type.fields)[key] for type in same]) for key in keys]
        yield replace(same[0], fields=tuple(zip(keys, fields, strict=True)))


def option(value: SqlValue, i: int) -> SqlValue:
    """Return the value of one of a choice's types: null where it is of another one."""
    return value.part(f"f{i}", value.type.fields[i][1])


def options(value: SqlValue) -> list[tuple[str, SqlValue]]:
    """Return SQL of whether a value is of each of its types (empty where it has one), and the value of that one."""
    if value.type.base is not Base.CHOICE:
        return [("", value)]
    return [(f"({value.sql}).tag = {i}", option(value, i)) for i in range(len(value.type.fields))]


def cast(value: SqlValue, type: Type, depth: int = 0) -> str:
    """Return SQL of a value as one of a type that holds it, within so many lambdas."""
    own = value.type
    if own == type:
        return value.sql
    if own.base is Base.NULL:
        return f"CAST(NULL AS {sql_type(type)})"
    if own == ZONED and type == MOMENT:
        return at_offset(value.sql, "0").sql
    if type.base is Base.EXACT:
        return _once(value, depth, lambda once: exact.lifted(once, type).sql)
    if type.base is Base.CHOICE:
        return _once(value, depth, lambda once: _chosen(once, type, depth + 1))
    if type.base is Base.VALUE:
        return _once(value, depth, _united)
    if own.base is Base.TUPLE:
        items = [value.part(f"f{i}", field) for i, (_, field) in enumerate(own.fields)]
        listed = ", ".join(cast(item, type.element or NULL, depth) for item in items)
        return f"CASE WHEN {value.sql} IS NOT NULL THEN [{listed}] END"
    if own.base is Base.LIST and type.element is not None:
        element = own.element or NULL
        if element.base in _SCALARS and element.base is type.element.base:
            return f"CAST({value.sql} AS {sql_type(type)})"
        item = f"n{depth}"  # DuckDB makes no struct of a null
        return f"list_transform({value.sql}, lambda {item}: {cast(named(item, element), type.element, depth + 1)})"
    if own.base is Base.MAP and type.base is Base.MAP:
        return _once(value, depth, lambda once: _map(once, type, depth + 1))
    return f"CAST({value.sql} AS {sql_type(type)})"


def _united(value: SqlValue) -> str:
    """Return a value, which may be of a choice of plain types, as a union."""
    if value.type.base is not Base.CHOICE:
        return as_union(value).sql
    whens = (f"WHEN {i} THEN {as_union(option(value, i)).sql}" for i in range(len(value.type.fields)))
    return f"CASE ({value.sql}).tag {' '.join(whens)} END"


def _once(value: SqlValue, depth: int, make: Callable[[SqlValue], str]) -> str:
    """Return SQL that is made of a value which it names several times, and computes once."""
    if value.atomic:
        return make(value)
    item = f"n{depth}"
    return f"(list_transform([{value.sql}], lambda {item}: {make(named(item, value.type))}))[1]"


def _map(value: SqlValue, type: Type, depth: int) -> str:
    places = {key: i for i, (key, _) in enumerate(value.type.fields)}
    packed = ", ".join(
        f"f{i} := {cast(value.part(f'f{places[key]}', value.type.fields[places[key]][1]), field, depth)}"
        for i, (key, field) in enumerate(type.fields)
    )
    return f"CASE WHEN {value.sql} IS NOT NULL THEN struct_pack({packed or NO_KEYS}) END"


def _chosen(value: SqlValue, type: Type, depth: int, *, whole: bool = True) -> str:
    """Return a value as one of a choice; with all fields of its struct, or the one that it has."""
    made = _packed if whole else _partly
    if value.type.base is not Base.CHOICE:
        i = _place(value.type, type)
        found = cast(value, type.fields[i][1], depth)
        return f"CASE WHEN {value.sql} IS NOT NULL THEN {made(type, i, found)} END"
    whens = []
    for i, part in enumerate(alternatives(value.type)):
        j = _place(part, type)
        whens.append(f"WHEN {i} THEN {made(type, j, cast(option(value, i), type.fields[j][1], depth))}")
    return f"CASE ({value.sql}).tag {' '.join(whens)} END"


def _partly(type: Type, i: int, sql: str) -> str:
    return f"struct_pack(f{i} := {sql}, tag := {i})"


def _packed(type: Type, i: int, sql: str) -> str:
    return f"CAST({_partly(type, i, sql)} AS {sql_type(type)})"  # the other fields are null


def _place(part: Type, choice: Type) -> int:
    """Return the number of the type of a choice that has the values of a type."""
    for i, other in enumerate(alternatives(choice)):
        same = part.base is other.base or (part.base is Base.TUPLE and other.base is Base.LIST)
        if part.base is other.base is Base.MAP:
            same = part.sparse == other.sparse and dict(part.fields).keys() == dict(other.fields).keys()
        if other.base is Base.EXACT:
            same = exact.kind_of(part) is other.of
        if same or (part.base in _SCALARS and other.base is Base.VALUE) or (part == ZONED and other == MOMENT):
            return i
    raise NotSupportedError(f"{part} is not among the types of a column in SQL")
