"""Compiles lists and CASE: values that are made of other values, and chosen between them.

:data:`COMPILED` says how each kind of expression compiles, :data:`FORMS` the functions of lists.  What happens to
each item is a lambda of DuckDB's, in which nothing can be looked up; where items are vertices or edges, it is a
subquery over them as rows (:mod:`graphdb.sql.types.list_items`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.types import (
    ANY,
    BOOLEAN,
    NULL,
    WHOLE_AND_REAL,
    Base,
    Type,
    has_ids,
    list_of,
    sql_type,
)
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import variables_in
from graphdb.pattern.free import free_variables
from graphdb.sql.compiler import Compiler, Forms
from graphdb.sql.constants import list_sql
from graphdb.sql.equivalence import once
from graphdb.sql.joined import alternatives, are_numbers, cast, common, options, type_of
from graphdb.sql.types import maps, ranges
from graphdb.sql.types.comparisons import compare
from graphdb.sql.types.list_items import ItemRows, listed, quantified
from graphdb.sql.udf import compute
from graphdb.sql.value import (
    SUBQUERY,
    Effects,
    SqlValue,
    as_list,
    bases_of,
    item_of,
    lacks_offset,
    named,
    side_by_side,
)


def items(c: Compiler, node: ast.Expression) -> SqlValue:
    """Return SQL that makes a row of each item of a list; what is no list is one item, and null is none.

    Raises
    ------
    NotSupportedError
        The items differ in type.
    """
    value = c.anything(node)
    if value.type.base is Base.ANY or lacks_offset(value) or (_are_unlike(value) and not value.many):
        value = compute(c, node, list_of(ANY))
    if value.type.base is Base.CHOICE and any(each.type.base is Base.LIST for _, each in options(value)):
        value = _listed(c, value) or compute(c, node, list_of(ANY))
    if value.type.base is Base.NULL:
        return SqlValue("unnest(CAST(NULL AS INTEGER[]))", NULL)
    if value.type.base is not Base.LIST:
        one = f"unnest(CASE WHEN {value.sql} IS NOT NULL THEN [{value.sql}] END)"
        return SqlValue(one, value.type, bases=value.bases)
    return SqlValue(f"unnest({value.sql})", value.type.element or NULL, bases=value.bases)


def _listed(c: Compiler, value: SqlValue) -> SqlValue | None:
    """Return the list of what may be one, or else its only item; None for numbers of several types."""
    items = _items_of(value)
    bases = bases_of(items)
    if are_numbers(bases):
        return None
    whole = list_of(type_of(items))
    return SqlValue(once(c, value, lambda value: _as_items(value, whole)), whole, bases=bases)


def _are_unlike(value: SqlValue) -> bool:
    """Whether a value, or a list's items, are decimals beside other numbers."""
    return are_numbers(value.bases) and value.bases != WHOLE_AND_REAL


def appended(c: Compiler, left: SqlValue, right: SqlValue, node: ast.Expression) -> SqlValue:
    """Return a list with another, or with an item, at its end; null where one of the two is."""
    items = [*_items_of(left), *_items_of(right)]
    bases = bases_of(items)
    if are_numbers(bases):
        raise NotSupportedError("numbers of several types are appended in Python", position=node.span.start)
    whole = list_of(type_of(items))
    first, second = (once(c, v, lambda v: _as_items(v, whole)) for v in (left, right))
    return SqlValue(f"({first} || {second})", whole, bases=bases)  # list_concat takes null for an empty list


def _items_of(value: SqlValue) -> list[SqlValue]:
    """Return what is an item of the types that a value has: of lists their items, and each other."""
    return [item_of(each, "") if each.type.base is Base.LIST else each for _, each in options(value)]


def _as_items(value: SqlValue, whole: Type) -> str:
    """Return the items of what is a list, and of what is none the list of it: null of null."""
    cases = []
    for test, each in options(value):
        listed = each if each.type.base is Base.LIST else each.made(f"[{each.sql}]", list_of(each.type))
        cases.append(f"WHEN {test or f'{value.sql} IS NOT NULL'} THEN {cast(listed, whole)}")
    return f"CASE {' '.join(cases)} END"


def list_value(c: Compiler, node: ast.Expression) -> SqlValue:
    """Compile what must be a list; null is one."""
    value = c.compile(node)
    if value.type.base is Base.NULL:
        return SqlValue("CAST(NULL AS INTEGER[])", list_of(NULL))
    if value.type.base is not Base.LIST or value.many:
        raise c.mismatch(f"expected a list, found {value.type}", node)
    return value


# --- expressions -----------------------------------------------------------------------------------------------


def _literal(c: Compiler, node: ast.ListLiteral) -> SqlValue:
    return as_list(column(c, node))


def _item_of(c: Compiler, node: ast.Expression) -> SqlValue:
    """Compile an item of a list that is written out: a literal vertex is its value there."""
    value = c.whole(node)
    return c.value_of(value) if value.type.element is not None and value.type.base is Base.TERM else value


def column(c: Compiler, node: ast.ListLiteral) -> SqlValue:
    """Return a list that is written out as a column may hold it: one of several types as a tuple."""
    try:
        items = [_item_of(c, item) for item in node.items]
        return side_by_side(items) or list_sql(items)
    except NotSupportedError as error:
        raise NotSupportedError(error.message, text=c.text, position=node.span.start) from None


def _case(c: Compiler, node: ast.Case) -> SqlValue:
    operand = None if node.operand is None else c.compile(node.operand)

    def holds(test: ast.Expression) -> str:
        if operand is None:
            return c.condition(test)
        return c.any_of(lambda a, b: SqlValue(compare(c, "=", a, b), BOOLEAN), operand, c.compile(test)).sql

    tests = [" OR ".join(f"({holds(test)})" for test in tests) for tests, _ in node.branches]
    results = [c.handed_on(c.whole(result)) for _, result in node.branches]
    otherwise = SqlValue("NULL", NULL) if node.otherwise is None else c.handed_on(c.whole(node.otherwise))
    (*chosen, rest), type = common([*results, otherwise])
    branches = " ".join(f"WHEN {test} THEN {sql}" for test, sql in zip(tests, chosen, strict=True))
    return SqlValue(f"CASE {branches} ELSE {rest} END", type, bases=bases_of([*results, otherwise]))


def _subscript(c: Compiler, node: ast.Subscript) -> SqlValue:
    base = c.compile(node.base)
    if base.type.base in (Base.MAP, Base.NODE, Base.EDGE, Base.VALUE):
        return maps.subscript(c, base, node)
    base = list_value(c, node.base)
    return SqlValue(f"({base.sql})[{_place(c, node.index)}]", base.type.element or NULL, bases=base.bases)


def _place(c: Compiler, index: ast.Expression) -> str:
    """Return the place of an index: DuckDB counts from 1, and from the end as we do."""
    if isinstance(index, ast.Literal) and type(index.value) is int and 0 <= index.value < 1 << 62:
        return ranges.whole(c, replace(index, value=index.value + 1))
    at = ranges.whole(c, index)
    return f"CASE WHEN {at} >= 0 THEN {at} + 1 ELSE {at} END"


def _slice(c: Compiler, node: ast.Slice) -> SqlValue:
    base = list_value(c, node.base)
    if not base.atomic:
        name = c.fresh()
        found, effects = c.collected(lambda: _cut(c, named(name, base.type), node))
        if not effects.subquery:
            c.rows.note(effects)
            return SqlValue(f"(list_transform([{base.sql}], lambda {name}: {found}))[1]", base.type, bases=base.bases)
    return SqlValue(_cut(c, base, node), base.type, bases=base.bases)


def _cut(c: Compiler, base: SqlValue, node: ast.Slice) -> str:
    """Return SQL of a part of a list."""
    length = f"len({base.sql})"
    bounds, absent = [], []
    for bound, otherwise in ((node.start, "0"), (node.end, length)):
        if bound is None:
            bounds.append(otherwise)
            continue
        at = ranges.whole(c, bound)
        absent.append(f"{at} IS NULL")
        bounds.append(f"CASE WHEN {at} < 0 THEN greatest({at} + {length}, 0) ELSE least({at}, {length}) END")
    first, last = bounds
    cut = f"({base.sql})[({first}) + 1:({last})]"  # DuckDB's last is among the items
    never = " OR ".join([*absent, f"{base.sql} IS NULL"])
    empty = f"CAST([] AS {sql_type(base.type)})"
    return f"CASE WHEN {never} THEN NULL WHEN ({last}) <= ({first}) THEN {empty} ELSE {cut} END"


def each_item(c: Compiler, variable: ast.Variable, element: Type, column: str = "") -> tuple[str, Compiler]:
    """Return the name of a list's item in SQL, and the compiler of what is made of it (or of a ``column`` of it).

    What reads the item is joined where items are rows (:func:`each_row`), and nowhere where a lambda is given them.
    """
    name = c.fresh()
    known = {node: value for node, value in c.scope.known.items() if variable.name not in variables_in(node)}
    item = named(name + column, element, effects=Effects(reads=frozenset((name,))))
    variables = {**c.scope.variables, variable.name: item}
    return name, c.within(replace(c.scope, variables=variables, known=known), of_items=True)


_OF_ELEMENTS = frozenset("properties keys labels iri type startnode endnode".split())
"""Functions that look something up."""


def _looks_inside(c: Compiler, variable: ast.Variable, element: Type, *bodies: ast.Expression | None) -> bool:
    """Whether what is made of items looks into vertices and edges in them, or in lists of which they say a place."""
    elements = {name for name, value in c.scope.variables.items() if has_ids(value.type)} - {variable.name}
    for part in walk(bodies):
        match part:
            case ast.Property(base) | ast.MapProjection(base) | ast.LabelPredicate(base):
                asked = base
            case ast.FunctionCall(name, (base,)) if name.lower() in _OF_ELEMENTS:
                asked = base
            case _:
                continue
        if isinstance(asked, ast.Variable):
            continue
        names = free_variables(asked)
        if variable.name in names and (has_ids(element) or names & elements):
            return True
    return False


def body_of(value: SqlValue) -> str:
    """Return the SQL of a lambda's body, in which DuckDB takes no subquery."""
    if value.subquery:
        raise NotSupportedError("what is looked up for the items of a list is not supported in SQL")
    return value.sql


def _test(c: Compiler, node: ast.Expression) -> str:
    """Return the SQL of a condition that is a lambda's body."""
    return body_of(c.truth(node))


def takes_rows(c: Compiler, source: SqlValue, variable: ast.Variable, *bodies: ast.Expression | None) -> bool:
    """Whether the items of a list become rows, because more is asked of them than what they are, and a lambda takes no
    joins: they are vertices or edges, or something of the vertices and edges in them is looked up.
    """
    element = source.type.element or NULL
    of_elements = any(each.base in (Base.NODE, Base.EDGE, Base.TERM) for each in alternatives(element))
    return of_elements or _looks_inside(c, variable, element, *bodies)


def each_row(c: Compiler, variable: ast.Variable, source: SqlValue) -> tuple[str, ItemRows, Compiler]:
    """The same where the item is a row, beside which others are joined."""
    name, inner = each_item(c, variable, source.type.element or NULL, ".v")
    inner.rows = rows = ItemRows(c.rows, name)
    return name, rows, inner


def _source(c: Compiler, node: ast.ListComprehension | ast.ListPredicate) -> SqlValue:
    """Compile the list that a lambda goes over: one for each row, if what the lambda makes depends on the row."""
    source = node.source
    if ranges.is_range(source, c):
        asked = [node.where, getattr(node, "result", None)]
        names = {name for part in asked if part is not None for name in free_variables(part)}
        return ranges.series(c, source, every_row=bool(names - {node.variable.name}))
    return list_value(c, source)


def _comprehension(c: Compiler, node: ast.ListComprehension) -> SqlValue:
    source = _source(c, node)
    if takes_rows(c, source, node.variable, node.where, node.result):
        item, rows, inner = each_row(c, node.variable, source)
        where = None if node.where is None else inner.condition(node.where)
        value = inner.anything(node.variable if node.result is None else node.result)
        if value.many:
            raise NotSupportedError("lists of values of several types are not supported in SQL")
        type = list_of(value.type)
        c.rows.note(SUBQUERY)
        return SqlValue(listed(source.sql, item, rows, value.sql, where, f"CAST([] AS {sql_type(type)})"), type)
    element = source.type.element or NULL
    sql = source.sql
    if node.where is not None:
        name, inner = each_item(c, node.variable, element)
        sql = f"list_filter({sql}, lambda {name}: {_test(inner, node.where)})"
    if node.result is None:
        return SqlValue(sql, source.type, bases=source.bases)
    name, inner = each_item(c, node.variable, element)
    value = inner.one_of_any(node.result)
    return SqlValue(f"list_transform({sql}, lambda {name}: {body_of(value)})", list_of(value.type))


def _predicate(c: Compiler, node: ast.ListPredicate) -> SqlValue:
    source = _source(c, node)
    if takes_rows(c, source, node.variable, node.where):
        item, rows, inner = each_row(c, node.variable, source)
        condition = inner.condition(node.where if node.where is not None else node.variable)
        c.rows.note(SUBQUERY)
        return SqlValue(quantified(source.sql, item, rows, condition, node.quantifier), BOOLEAN)
    name, inner = each_item(c, node.variable, source.type.element or NULL)
    test = _test(inner, node.where if node.where is not None else node.variable)
    answers = f"list_transform({source.sql}, lambda {name}: CAST({test} AS BOOLEAN))"
    unknown = f"WHEN list_aggregate({answers}, 'count') < len({answers}) THEN NULL"
    match node.quantifier:
        case "all":
            cases = f"WHEN list_contains({answers}, FALSE) THEN FALSE {unknown} ELSE TRUE"
        case "any":
            cases = f"WHEN list_contains({answers}, TRUE) THEN TRUE {unknown} ELSE FALSE"
        case "none":
            cases = f"WHEN list_contains({answers}, TRUE) THEN FALSE {unknown} ELSE TRUE"
        case _:
            each = c.fresh()
            true = f"len(list_filter({answers}, lambda {each}: {each}))"
            cases = f"WHEN {true} > 1 THEN FALSE {unknown} ELSE {true} = 1"
    return SqlValue(f"CASE WHEN {source.sql} IS NULL THEN NULL {cases} END", BOOLEAN)


COMPILED: Mapping[type, Callable[[Compiler, Any], SqlValue]] = {
    ast.ListLiteral: _literal,
    ast.Case: _case,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.ListComprehension: _comprehension,
    ast.ListPredicate: _predicate,
}


# --- functions -------------------------------------------------------------------------------------------------


def _item(template: str) -> Callable[[Compiler, ast.FunctionCall], SqlValue]:
    def compile(c: Compiler, node: ast.FunctionCall) -> SqlValue:
        value = list_value(c, node.arguments[0])
        return SqlValue(template.format(value.sql), value.type.element or NULL, bases=value.bases)

    return compile


def _tail(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = list_value(c, node.arguments[0])
    return SqlValue(f"({value.sql})[2:]", value.type, bases=value.bases)


def _is_empty(c: Compiler, node: ast.FunctionCall) -> SqlValue:
    value = c.compile(node.arguments[0])
    if value.type.base is Base.STRING:
        return SqlValue(f"({value.sql} = '')", BOOLEAN)
    if value.type.base in (Base.MAP, Base.VALUE):
        raise NotSupportedError("whether a map or value is empty is not supported in SQL")
    return SqlValue(f"(len({list_value(c, node.arguments[0]).sql}) = 0)", BOOLEAN)


FORMS: Forms = {
    "head": _item("({})[1]"),
    "last": _item("({})[-1]"),
    "tail": _tail,
    "range": ranges.series,
    "isempty": _is_empty,
}
