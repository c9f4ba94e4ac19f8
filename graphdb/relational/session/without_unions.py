"""Columns whose values have several types, for readers of Arrow that know no unions: numbers of one type, or texts."""

from __future__ import annotations

import numpy as np

from graphdb.common import arrow
from graphdb.common.arrow.types import DataType, Field
from graphdb.common.duckdb.connection import Connection
from graphdb.common.values.decimals import shortest_sql

_MEMBERS = "_graphdb_members"

_DIGITS = 38
"""Digits of the largest decimals; integers of 64 bits have 19."""


def without_unions(connection: Connection, table: arrow.Table) -> arrow.Table:
    """Return a table with columns of one type in the place of unions, within lists and structs too.

    Integers beside decimals are decimals, numbers beside floating-point ones such; values of other types are texts, as
    SQL casts them, decimals without zeros that say nothing.
    """
    for i, field in enumerate(table.schema):
        if arrow.has_unions([field]):
            table = table.set_column(i, field.name, _resolved(connection, table.column(i).combine_chunks()))
    return table


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
    for number, child in zip(array.type.format.partition(":")[2].split(","), children, strict=True):
        there = (array.data == int(number)) & child.is_valid()
        if there.any():
            members.append(arrow.Array(child.type, len(child), there, child.data, child.offsets, child.children))
    if len(members) <= 1:
        return members[0] if members else arrow.nulls(len(array))
    names = [f"m{i}" for i in range(len(members))]
    with connection.view(_MEMBERS, arrow.table([*members, arrow.array(np.arange(len(array)))], [*names, "place"])):
        values = _sql(connection, [member.type for member in members])
        return connection.arrow(f"SELECT {values} FROM {_MEMBERS} ORDER BY place ASC").column(0).combine_chunks()


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
