"""Values looked up for rows: the vertices that are, or have as a property, what an expression over rows yields.

Where such values are equal only if they are the same, a semi-join or a join of (vertex, value) with (row, value) finds
them, and no row is compared with every vertex.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from graphdb.common.errors import NotSupportedError, TypeMismatchError
from graphdb.common.values.types import INTEGER, NODE, Base
from graphdb.grammar import syntax as ast
from graphdb.relational.projection.relation import Relation
from graphdb.relational.projection.relation_sql import RelationCompiler
from graphdb.relational.snapshot import Snapshot
from graphdb.sql.value import SqlValue, column
from graphdb.storage.catalog import EdgeLabel

_LOOKED_UP = (Base.STRING, Base.INTEGER, Base.BOOLEAN, Base.DATE, Base.DATETIME, Base.TIME)
"""Types whose values are equal if they are the same."""


LOOKED_FOR = 256
"""Values that an index on a property is asked for one by one, at most; for more of them all values are passed over."""


@dataclass(frozen=True, slots=True)
class Key:
    """Values of a property that vertices are asked for by."""

    label: EdgeLabel
    values: str
    """SQL of the values, each once; of more than :data:`LOOKED_FOR` only so many that this can be seen."""
    column: tuple[str, ...] | None = None
    """The rows, and their column (or that and its structs' field), that the values, or lists of them, stand in."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What rows ask of a pattern's vertex: that it, or a property of it, is what an expression over them yields."""

    key: ast.KeyName | None
    """The property; None for the vertex itself."""
    expression: ast.Expression
    listed: bool
    """Whether it is one of a list's items that it has to be."""


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of a property, and those of an expression over rows."""

    ids: str
    """SQL of the vertices with their values (``id``, ``value``)."""
    rows: str
    """SQL of the rows' numbers with their values (``row``, ``value``)."""
    several: int
    """How many of the two have several values for one vertex or row."""
    value: SqlValue
    """That of the rows."""
    label: EdgeLabel | None = None
    """The property."""


@dataclass(frozen=True, slots=True)
class Having:
    """The vertices that are what some row asks for."""

    sql: str
    """SQL of them (``id``)."""
    key: Key | None = None
    """Which values of a property they have."""
    column: tuple[str, str] | None = None
    """The rows, and their column, that have lists of them."""


def having(left: Relation, compiler: RelationCompiler, snapshot: Snapshot, text: str, asked: Asked) -> Having | None:
    """Return the vertices that are what the rows ask for, for some row.

    None where comparing them is more than looking values up: of several types, or inexact.
    """
    found = _looked_up(left, compiler, snapshot, text, asked)
    if found is None:
        return None
    value, view = found.value, left.source.view
    if found.label is None:
        sql = f"SELECT DISTINCT r.value AS id FROM ({found.rows}) r WHERE r.value IS NOT NULL"
        if value.shared is not None:
            return Having(sql, column=(value.shared[0].removeprefix("temp."), value.shared[1]))
        return Having(sql, column=None if view is None or value.column is None else (view, value.column))
    sql = f"SELECT p.id FROM ({found.ids}) p WHERE p.value IN (SELECT r.value FROM ({found.rows}) r)"
    most = f"SELECT DISTINCT r.value FROM ({found.rows}) r WHERE r.value IS NOT NULL LIMIT {LOOKED_FOR + 1}"
    column = value.field_of if value.column is None else (value.column,)
    alone = view is not None and column is not None and not value.many
    stands = (view or "", *(column or ())) if alone else None
    if value.shared is not None:
        stands = (value.shared[0].removeprefix("temp."), value.shared[1])
    return Having(sql, Key(found.label, most, stands))


def sharing(left: Relation, compiler: RelationCompiler, snapshot: Snapshot, text: str, asked: Asked) -> str | None:
    """Return SQL of the rows (``row``, their number) and vertices (``id``) that share a value, each pair once.

    As :meth:`having`, and None where both have one value each: to DuckDB that is a join already.
    """
    found = _looked_up(left, compiler, snapshot, text, asked)
    if found is None or not found.several or found.value.shared is not None:
        return None
    if asked.key is None:
        return f"SELECT r.row, r.value AS id FROM ({found.rows}) r WHERE r.value IS NOT NULL"
    once = "DISTINCT " if found.several > 1 else ""  # they may share two
    return f"SELECT {once}r.row, p.id FROM ({found.rows}) r JOIN ({found.ids}) p ON p.value = r.value"


def _looked_up(
    left: Relation, compiler: RelationCompiler, snapshot: Snapshot, text: str, asked: Asked
) -> _Values | None:
    """Return SQL of the values of a property and of an expression; None where more is to compare."""
    try:
        label = None if asked.key is None else snapshot.names.property(asked.key.words, text)
        if label is not None and not label.kinds:  # it has no values
            return None
        found = None if label is None else snapshot.properties.column(label)
        value, joins = compiler.native(asked.expression)
    except (NotSupportedError, TypeMismatchError):
        return None
    if asked.listed:
        if value.many or value.type.base is not Base.LIST:
            return None
        value = replace(value, many=True)
    type = value.type.element if value.many else value.type
    each = f"SELECT b.rowid AS row, {_each(value)} AS value FROM {left.source} b {joins}"
    if asked.listed and value.shared:
        each = f"SELECT NULL AS row, i.item AS value FROM ({value.items_sql}) i"
    if found is None:
        return _Values("", each, 1, value) if type == NODE else None
    if type is None or type.base not in _LOOKED_UP or type != (found.type.element if found.many else found.type):
        return None
    mine = _each(column("value", found.type, "p", found.many))
    ids = f"SELECT p.subject AS id, {mine} AS value FROM {found.relation} p"
    return _Values(ids, each, found.many + value.many, value, label)


def _each(value: SqlValue) -> str:
    """Return the SQL of a value as a column; of several, each of those that differ in a row of its own."""
    return f"unnest(list_distinct({value.sql}))" if value.many else value.sql


def equal_integers(
    where: Sequence[ast.Expression], left: Relation, bindings: Relation
) -> tuple[tuple[ast.Expression, ...], tuple[tuple[str, str], ...]]:
    """Return conditions without those that an integer of the rows is one of the bindings; and their columns."""
    rest: list[ast.Expression] = []
    pairs: list[tuple[str, str]] = []
    for condition in where:
        pair = None
        if isinstance(condition, ast.Comparison) and condition.operators == ("=",):
            for one, other in (condition.operands, condition.operands[::-1]):
                mine = left.variables.get(one.name) if isinstance(one, ast.Variable) else left.known.get(one)
                columns = _integer(mine), _integer(bindings.known.get(other))
                if columns[0] is not None and columns[1] is not None:
                    pair = columns[0], columns[1]
        if pair is None:
            rest.append(condition)
        else:
            pairs.append(pair)
    return tuple(rest), tuple(pairs)


def _integer(value: SqlValue | None) -> str | None:
    """Return the column that has a value's integers; None for other values."""
    return None if value is None or value.type != INTEGER or value.many or value.shared else value.column
