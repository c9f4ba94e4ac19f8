"""Compiles operands as values of the types that a column has: what is of another type equals none of its values.

DuckDB makes a hash join of columns of one type.  Where an operand has values of several types, or only Python knows
them, each pair of a row and a binding would be compared otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import (
    BOOLEAN,
    DATE,
    DATETIME,
    FLOAT,
    INTEGER,
    MEMBERS,
    NUMERIC,
    STRING,
    TIME,
    ZONED,
    Base,
    Type,
    list_of,
    sql_type,
)
from graphdb.grammar import syntax as ast
from graphdb.sql.compiler import Compiler
from graphdb.sql.equivalence import once
from graphdb.sql.joined import options
from graphdb.sql.value import SqlValue, instant, item_of, member

TYPES: Mapping[str, Type] = {
    type.base.name: type for type in (INTEGER, FLOAT, STRING, BOOLEAN, DATE, DATETIME, TIME, ZONED)
}
"""The types that operands are narrowed to, by their names."""

IN_PYTHON = frozenset(each.base.name for each in (INTEGER, FLOAT, STRING, BOOLEAN))
"""Those that Python narrows to, where it computes the operand."""

EXACT = 1 << 53
"""Integers whose absolute value is less are equal to floats only that are the same number."""


def _narrowed(c: Compiler, node: ast.Narrowed) -> SqlValue:
    types = [TYPES[name] for name in node.types]
    if node.listed:
        (type,) = types
        return _items(c, node, type)
    value = c.one_of_any(node.operand)
    if value.type.base is Base.TERM:
        value = c.value_of(value)
    if len(types) == 1:
        return SqlValue(_of_any(c, node, value, types[0]), types[0])
    return SqlValue(once(c, value, lambda value: _text(c, node, value, types)), STRING)


def _text(c: Compiler, node: ast.Narrowed, value: SqlValue, types: list[Type]) -> str:
    """Return a text that is the same for equal values."""
    parts = []
    for type in types:
        sql = _of_any(c, node, value, type)
        sql = f"{sql} + 0.0" if type is FLOAT else sql  # 0.0 and -0.0 are equal
        parts.append(f"'{type.base.name} ' || CAST({sql} AS VARCHAR)")
    return f"coalesce({', '.join(parts)})"


def _of_any(c: Compiler, node: ast.Narrowed, value: SqlValue, type: Type) -> str:
    """Return what a value of any type is as one of a type: null where it is of another."""
    if value.type.base is Base.ANY:
        return c.computed(ast.Narrowed(node.operand, (type.base.name,), span=node.span), type).sql
    return once(c, value, lambda value: _one(value, type))


def _items(c: Compiler, node: ast.Narrowed, type: Type) -> SqlValue:
    values = c.anything(node.operand)
    if values.type.base is Base.ANY:
        return c.computed(node, list_of(type))
    if values.many:
        raise NotSupportedError("the values of a property are compared as they are")

    def narrowed(values: SqlValue) -> str:
        if values.type.base is not Base.LIST:
            return f"CAST(NULL AS {sql_type(type)}[])"
        item, other = c.fresh(), c.fresh()
        found = f"list_transform({values.sql}, lambda {item}: {_one(item_of(values, item), type)})"
        return f"list_filter({found}, lambda {other}: {other} IS NOT NULL)"

    def chosen(values: SqlValue) -> str:
        return f"coalesce({', '.join(narrowed(each) for _, each in options(values))})"

    return SqlValue(once(c, values, chosen), list_of(type))


def _one(value: SqlValue, type: Type) -> str:
    """Return what a value that is named several times is as one of a type."""
    found = [sql for _, each in options(value) for sql in _members(each, type)]
    if not found:
        return f"CAST(NULL AS {sql_type(type)})"
    return found[0] if len(found) == 1 else f"coalesce({', '.join(found)})"


def _members(value: SqlValue, type: Type) -> Iterator[str]:
    """Yield what a value of one type, or of each type of a union, is as one of a type."""
    if value.type.base is not Base.VALUE:
        sql = _plain(instant(value).sql, instant(value).type.base, type.base)
        if sql is not None:
            yield sql
        return
    for base in MEMBERS:
        if value.bases is None or base in value.bases:
            sql = _plain(member(value, base), base, type.base)
            if sql is not None:
                yield sql


def _plain(sql: str, own: Base, base: Base) -> str | None:
    """Return a value of one type as one of another; None where they have no values in common."""
    if own is base:
        return f"CASE WHEN NOT isnan({sql}) THEN {sql} END" if base is Base.FLOAT else sql
    if not {own, base} <= NUMERIC:
        return None
    if base is Base.FLOAT:
        return f"CAST({sql} AS DOUBLE)"
    return f"CASE WHEN abs({sql}) < {EXACT} AND {sql} = trunc({sql}) THEN TRY_CAST({sql} AS BIGINT) END"


COMPILED: Mapping[type, Callable[[Compiler, Any], SqlValue]] = {ast.Narrowed: _narrowed}
