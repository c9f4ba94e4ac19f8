"""Compiles ``reduce``: a lambda of DuckDB's folds the items of a list into a value.

What is looked up of vertices and edges is looked up first, beside all items as rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import NULL, Base, Type, has_terms, list_of, sql_type
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.free import free_variables
from graphdb.pattern.rename import rewritten
from graphdb.sql.compiler import Compiler
from graphdb.sql.types import lists
from graphdb.sql.types.list_items import listed
from graphdb.sql.value import SUBQUERY, SqlValue, named

_OPERATORS = (ast.Binary, ast.Boolean, ast.Case, ast.Comparison, ast.IsNull, ast.ListLiteral, ast.Unary)
"""What is as good in a lambda as beside a row: of its parts, those that ask something of an item are looked up."""


_GROWING = (Base.STRING, Base.LIST, Base.MAP, Base.VALUE, Base.CHOICE, Base.ANY, Base.NULL)
"""Types whose values may be of any size."""


def _may_double(step: ast.Expression, name: ast.Variable, type: Type) -> bool:
    """Whether folding by a step may double a value of a type for each item: ``reduce(s = 'x', i IN xs | s + s)``."""
    if type.base not in _GROWING:
        return False
    parts = [type.element] if type.element is not None else [field for _, field in type.fields]
    small = bool(parts) and not any(part.base in _GROWING for part in parts)
    return _copies(step, name, 0 if small else 1) > 1


def _copies(node: ast.Expression | None, name: ast.Variable, part_of: int) -> float:
    """How many copies of a variable's text or list an expression's value holds at most; infinite where nobody knows.

    ``part_of`` is how many copies one of its items or fields counts for.
    """
    if not any(isinstance(part, ast.Variable) and part.name == name.name for part in walk(node)):
        return 0
    match node:
        case ast.Variable() | ast.Slice():
            return 1
        case ast.Subscript() | ast.Property():
            return part_of
        case ast.Comparison() | ast.Boolean() | ast.IsNull() | ast.StringPredicate() | ast.In():
            return 0
        case ast.Binary():
            return _copies(node.left, name, part_of) + _copies(node.right, name, part_of)
        case ast.ListLiteral():
            return sum(_copies(item, name, part_of) for item in node.items)
        case ast.MapLiteral():
            return sum(_copies(value, name, part_of) for _, value in node.items)
        case ast.Case():
            results = [result for _, result in node.branches]
            return max(_copies(result, name, part_of) for result in [*results, node.otherwise])
    return math.inf


def _reduce(c: Compiler, node: ast.Reduce) -> SqlValue:
    source, start = lists.list_value(c, node.source), c.compile(node.start)
    if _may_double(node.step, node.accumulator, start.type):
        # What Python computes ends with an error before it has filled the memory.
        raise NotSupportedError("a value that may double is not folded in SQL", position=node.span.start)
    if lists.takes_rows(c, source, node.variable, node.step):
        return _folded(c, node, source, start)
    element = source.type.element or NULL
    if start.type != element or element.base not in (Base.INTEGER, Base.FLOAT, Base.STRING, Base.BOOLEAN):
        return _folded_beside(c, node, source, start)
    item, inner = lists.each_item(c, node.variable, element)
    total, within = lists.each_item(inner, node.accumulator, element)
    step = within.compile(node.step)
    if step.type != element:
        raise NotSupportedError("a value that changes its type is not folded in SQL", position=node.span.start)
    return SqlValue(f"list_reduce({source.sql}, lambda {total}, {item}: {lists.body_of(step)}, {start.sql})", element)


def _folded_beside(c: Compiler, node: ast.Reduce, source: SqlValue, start: SqlValue) -> SqlValue:
    """Fold items into a value of another type.

    DuckDB folds into the type of the items, so each is a struct of the accumulated value and of itself.
    """
    element = source.type.element or NULL
    each = c.fresh()

    def folded(type: Type) -> tuple[str, str, SqlValue]:
        total, within = lists.each_item(c, node.accumulator, type, ".total")
        item = c.fresh()
        own = {node.variable.name: named(f"{item}.item", element)}
        scope = replace(within.scope, variables={**within.scope.variables, **own})
        return total, item, within.within(scope, of_items=True).one(node.step)

    if start.many or element.base in (Base.NULL, Base.ANY) or has_terms(element):
        raise NotSupportedError("such items are not folded in SQL", position=node.span.start)
    total, item, result = folded(start.type)
    if start.type == list_of(NULL) and result.type.base is Base.LIST:  # an empty list is one of anything
        start = replace(start, type=result.type)
        total, item, result = folded(start.type)
    if start.type != result.type or start.type.base in (Base.NULL, Base.ANY):
        raise NotSupportedError("a value that changes its type is not folded in SQL", position=node.span.start)
    sql = sql_type(start.type)
    whole = f"STRUCT(total {sql}, item {sql_type(element)})"
    items = f"list_transform({source.sql}, lambda {each}: CAST(struct_pack(total := NULL, item := {each}) AS {whole}))"
    first = f"CAST(struct_pack(total := CAST({start.sql} AS {sql}), item := NULL) AS {whole})"
    next_one = f"struct_pack(total := CAST({lists.body_of(result)} AS {sql}), item := {item}.item)"
    return SqlValue(f"(list_reduce({items}, lambda {total}, {item}: {next_one}, {first})).total", start.type)


def _folded(c: Compiler, node: ast.Reduce, source: SqlValue, start: SqlValue) -> SqlValue:
    """Fold vertices or edges: what is asked of each alone is looked up first, and a lambda goes over what was found.

    DuckDB folds into the type of the items, so each item is a struct of the accumulated value and of what was found.
    """
    asked: dict[ast.Expression, str] = {}

    def change(part: object) -> object:
        if isinstance(part, _OPERATORS) or not isinstance(part, ast.Expression):
            return None
        names = free_variables(part)
        if node.variable.name not in names or node.accumulator.name in names:
            return None
        return ast.Variable(asked.setdefault(part, f"#of item {len(asked)}"), node.span)

    step = rewritten(node.step, change)
    item, rows, inner = lists.each_row(c, node.variable, source)
    found = [inner.value_of(inner.one(part)) for part in asked]

    def folded(type: Type) -> tuple[str, str, SqlValue]:
        total, within = lists.each_item(c, node.accumulator, type, ".total")
        each = c.fresh()
        own = {name: named(f"{each}.f{i}", found[i].type) for i, name in enumerate(asked.values())}
        return total, each, within.within(replace(within.scope, variables={**within.scope.variables, **own})).one(step)

    total, each, result = folded(start.type)
    if start.type == list_of(NULL) and result.type.base is Base.LIST:  # an empty list is one of anything
        start = replace(start, type=result.type)
        total, each, result = folded(start.type)
    if start.type != result.type or start.many or start.type.base in (Base.NULL, Base.ANY):
        raise NotSupportedError("a value that changes its type is not folded in SQL", position=node.span.start)
    c.rows.note(SUBQUERY)
    sql = sql_type(start.type)
    others = "".join(f", f{i} := {each}.f{i}" for i in range(len(found)))
    values = "".join(f", f{i} := {value.sql}" for i, value in enumerate(found))
    types = "".join(f", f{i} {sql_type(value.type)}" for i, value in enumerate(found))
    whole = f"STRUCT(total {sql}{types})"
    items = listed(
        source.sql, item, rows, f"CAST(struct_pack(total := NULL{values}) AS {whole})", None, f"CAST([] AS {whole}[])"
    )
    nothing = "".join(f", f{i} := NULL" for i in range(len(found)))
    first = f"CAST(struct_pack(total := CAST({start.sql} AS {sql}){nothing}) AS {whole})"
    next_one = f"struct_pack(total := CAST({lists.body_of(result)} AS {sql}){others})"
    return SqlValue(f"(list_reduce({items}, lambda {total}, {each}: {next_one}, {first})).total", start.type)


COMPILED: Mapping[type, Callable[[Compiler, Any], SqlValue]] = {ast.Reduce: _reduce}
