"""Lists that are one for all rows, as ``WITH collect(a) AS xs``: no row carries them, and ``IN`` hashes them once.

A WITH that makes one row, without a key or of no rows at all, is a table of its own.  Its lists stay there: whatever
comes later asks that table, by a join with its one row or, for membership, by a subquery over the list's items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphdb.common.values.types import MEMBERS, Base, Column
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.relational.projection.relation import UNIT, Relation, Source
from graphdb.semantics.aggregation import contains_aggregate, is_aggregate
from graphdb.sql.value import SUBQUERY, SqlValue, column_at

_ITEMS = frozenset(MEMBERS) - {Base.FLOAT} | {Base.NODE}
"""Types of items that are the same where they are equal."""


def makes_one_row(relation: Relation, returns: ast.ReturnClause, items: Sequence[ast.ReturnItem]) -> bool:
    """Whether a clause makes one row at most, whatever the rows are."""
    if returns.order_by or any(item.alias is None for item in items):
        return False
    aggregated = any(contains_aggregate(item.expression) for item in items)
    fixed = (contains_aggregate(item.expression) or not free_variables(item.expression) for item in items)
    return aggregated and all(fixed) if relation is not UNIT else all(fixed)


def is_shared(item: ast.ReturnItem, made: Column) -> bool:
    """Whether an item of such a clause is a list that is worth its own table: never null, of plain items."""
    node = item.expression
    collected = is_aggregate(node) and isinstance(node, ast.FunctionCall) and node.name.lower() == "collect"
    if not (collected or isinstance(node, ast.ListLiteral | ast.Literal | ast.Parameter)) or made.many:
        return False
    return made.type.base is Base.LIST and made.type.element is not None and made.type.element.base in _ITEMS


def relation_of(table: Source, columns: Sequence[Column], shared: Sequence[bool]) -> Relation:
    """Return the one row that is in a table, some of whose columns are lists that stay there."""
    variables = {}
    for i, (each, stays) in enumerate(zip(columns, shared, strict=True)):
        value = column_at(f"c{i}", each)
        if stays:
            sql = f"(SELECT c{i} FROM {table})"
            value = SqlValue(sql, each.type, effects=SUBQUERY, shared=(str(table), f"c{i}"))
        variables[each.name] = value
    return Relation(table, variables)


def passed_on(
    relation: Relation, returns: ast.ReturnClause, items: Sequence[ast.ReturnItem]
) -> tuple[dict[str, SqlValue], ast.ReturnClause]:
    """Return the shared lists that go on through a WITH, by their names after it, and the clause of its other items."""
    if not any(value.shared for value in relation.variables.values()):
        return {}, returns
    passed: dict[str, SqlValue] = {}
    others = []
    for item in items:
        node = item.expression
        value = relation.variables.get(node.name) if isinstance(node, ast.Variable) else None
        if value is not None and value.shared and item.alias is not None:
            passed[item.alias] = value
        else:
            others.append(item)
    keyed = any(not contains_aggregate(item.expression) for item in others)
    alone = not keyed and (returns.distinct or bool(others))  # then the list tells one group from none
    if not passed or alone or (returns.order_by and free_variables(returns.order_by) & passed.keys()):
        return {}, returns
    return passed, replace(returns, items=tuple(others), star=False)
