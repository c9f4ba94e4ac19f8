"""Columns whose values have several types, for readers of Arrow that know no unions: numbers of one type, or texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow.types import DataType, Field
from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.decimals import shortest_sql
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.texts import numbered, taken

_MEMBERS = "_graphdb_members"

_SEVERAL = 1000
"""Different integers and truth values up to which no SQL is asked for their texts: to plan it takes longer."""

_WRITTEN = {"l", "b"}

_DIGITS = 38
"""Digits of the largest decimals; integers of 64 bits have 19."""


def without_unions(connection: Connection, table: arrow.Table) -> arrow.Table:
    """Return a table with columns of one type in the place of unions, within lists and structs too.

    Integers beside decimals are decimals, numbers beside floating-point ones such; values of other types are texts, as
    SQL casts them, decimals without zeros that say nothing.
    """
    unions = (i for i, field in enumerate(table.schema) if arrow.has_unions([field]))
    return table.with_columns({i: _resolved(connection, table.column(i).combine_chunks()) for i in unions})


def _resolved(connection: Connection, array: arrow.Array) -> arrow.Array:
    if not arrow.is_union(array.type) and not arrow.has_unions(array.type):
        return array
    children = tuple(_resolved(connection, child) for child in array.children)
    if not arrow.is_union(array.type):
        fields = tuple(Field(field.name, child.type) for field, child in zip(array.type, children, strict=True))
        return arrow.Array(
            DataType(array.type.format, fields), len(array), array.valid, array.data, array.offsets, children
        )
    assert array.data is not None
    members = []
    some = np.bincount(array.data, minlength=128) > 0  # numbers of members have seven bits
    for number, child in zip(array.type.format.partition(":")[2].split(","), children, strict=True):
        if some[int(number)] and (there := (array.data == int(number)) & child.is_valid()).any():
            members.append(arrow.Array(child.type, len(child), there, child.data, child.offsets, child.children))
    if len(members) <= 1:
        return members[0] if members else arrow.nulls(len(array))
    if all(map(_is_number, members)) and any(arrow.is_floating(member.type) for member in members):
        return _floats(members)
    names = [f"m{i}" for i in range(len(members))]
    members, which = _each_once(members)
    if len(members[0]) <= _SEVERAL and {member.type.format for member in members} == _WRITTEN:
        return taken(arrow.strings([text for member in members for text in _texts(member.drop_null())]), which)
    places = arrow.array(np.arange(len(members[0])))
    with connection.view(_MEMBERS, arrow.table([*members, places], [*names, "place"])):
        values = _sql(connection, [member.type for member in members])
        found = connection.arrow(f"SELECT {values} FROM {_MEMBERS} ORDER BY place ASC").column(0).combine_chunks()
    return taken(found, which)


def _is_number(member: arrow.Array) -> bool:
    return arrow.is_integer(member.type) or arrow.is_floating(member.type)


def _floats(members: Sequence[arrow.Array]) -> arrow.Array:
    """Return the numbers of members, one of which at most is not null, as floating-point ones."""
    found, valid = np.zeros(len(members[0])), np.zeros(len(members[0]), bool)
    for member in members:
        there = member.is_valid()
        np.copyto(found, values(member), where=there)
        valid |= there
    return arrow.numbers(found, None if valid.all() else valid)


def _texts(member: arrow.Array) -> list[str]:
    """Return integers or truth values as SQL casts them to texts."""
    return list(map(str.lower, map(str, arrow.pylist(member))))


def _each_once(members: Sequence[arrow.Array]) -> tuple[list[arrow.Array], NDArray[np.int64]]:
    """Return the different values of members, one of which at most is not null, and which of them each row is; -1 for
    null.
    """
    which = np.full(len(members[0]), -1, np.int64)
    different: list[arrow.Array] = []
    before = 0
    for member in members:
        distinct, numbers = numbered(member)
        which = np.where(numbers >= 0, before + numbers, which)
        different.append(distinct)
        before += len(distinct)
    begins = np.cumsum([0, *map(len, different)])
    some = [
        taken(each, np.where((places := np.arange(before) - begin) < len(each), places, -1))
        for each, begin in zip(different, begins.tolist(), strict=False)
    ]
    return some, which


def _sql(connection: Connection, types: list[DataType]) -> str:
    """Return SQL of the value of a row, of which one member at most is not null."""
    names = [f"m{i}" for i in range(len(types))]
    decimals = [name for name, type in zip(names, types, strict=True) if arrow.is_decimal(type)]
    if all(arrow.is_integer(type) or arrow.is_floating(type) or arrow.is_decimal(type) for type in types):
        if any(arrow.is_floating(type) for type in types):
            return f"coalesce({', '.join(f'CAST({name} AS DOUBLE)' for name in names)})"
        digits = ", ".join(f"coalesce(max(length(split_part({shortest_sql(name)}, '.', 2))), 0)" for name in decimals)
        scale = max(connection.rows(f"SELECT {digits} FROM {_MEMBERS}")[0]) if decimals else 0
        large = any(arrow.is_decimal(type) and type.scale == 0 for type in types)  # DuckDB's HUGEINT
        target = "DOUBLE" if scale and (large or scale > _DIGITS - 19) else f"DECIMAL({_DIGITS}, {scale})"
        return f"coalesce({', '.join(f'CAST({name} AS {target})' for name in names)})"
    texts = [shortest_sql(name) if name in decimals else f"CAST({name} AS VARCHAR)" for name in names]
    return f"coalesce({', '.join(texts)})"
