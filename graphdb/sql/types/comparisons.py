"""Compiles comparisons: which values are equal, and which come before others.

Values of types that cannot be compared are not equal, and ``<`` of them is null.  Lists and maps are equal if all their
items are; where an item is null the comparison is null, unless another item differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdb.common.errors import NotSupportedError
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.common.values.types import BOOLEAN, FLOAT, INTEGER, MEMBERS, NULL, NUMERIC, Base, Type, has_terms
from graphdb.grammar import syntax as ast
from graphdb.sql import exact
from graphdb.sql.compiler import Compiler
from graphdb.sql.equivalence import all_once
from graphdb.sql.joined import options
from graphdb.sql.times import in_zones, temporal
from graphdb.sql.types import maps
from graphdb.sql.value import SqlValue, incomparable, instant, member, named, number

_UNORDERED = (Base.NODE, Base.EDGE, Base.PATH, Base.MAP, Base.DURATION)
"""Types whose values are equal or not, and no more."""


def compare(c: Compiler, operator: str, left: SqlValue, right: SqlValue) -> str:
    """Return the SQL of one comparison of single values, any types."""
    if operator == "<>":
        return f"(NOT {compare(c, '=', left, right)})"
    if Base.EXACT in (left.type.base, right.type.base) and exact.kind_of(left.type) is exact.kind_of(right.type):

        def compared(left: SqlValue, right: SqlValue) -> SqlValue:
            return SqlValue(f"({exact.number(left)} {operator} {exact.number(right)})", BOOLEAN)

        return in_zones.named_once(c, [left, right], compared).sql
    left, right = instant(left), instant(right)
    a, b = left.type.base, right.type.base
    if Base.NULL in (a, b):
        return "CAST(NULL AS BOOLEAN)"
    if Base.ANY in (a, b):
        raise NotSupportedError("values that SQL does not represent are compared in Python")
    if Base.CHOICE in (a, b):
        return _compare_choices(c, operator, left, right)
    if Base.TERM in (a, b):
        if a in (Base.NODE, Base.TERM) and b in (Base.NODE, Base.TERM) and operator == "=":
            return _compare_terms(c, left, right)
        for term, other in ((left, right), (right, left)):
            if operator == "=" and term.type.base is Base.TERM and term.type.element is None:
                return _compare_term_with_value(c, term, other)
        left, right = (instant(c.value_of(v)) if v.type.base is Base.TERM else v for v in (left, right))
        a, b = left.type.base, right.type.base
    if a is Base.VALUE and b is Base.VALUE:
        return all_once(c, (left, right), lambda left, right: _compare_values(c, operator, left, right))
    if b is Base.VALUE:
        turned = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
        return compare(c, turned, right, left)
    if a is Base.VALUE and not left.atomic:
        return all_once(c, (left, right), lambda left, right: compare(c, operator, left, right))
    if a is Base.VALUE:
        like = exact.LESS_EXACT.get(right.type.of) if right.type.of is not None else right.type
        if like is None or like.base not in MEMBERS:
            return incomparable(operator, left, right)
        own = SqlValue(number(left), FLOAT) if b in NUMERIC else SqlValue(member(left, like.base), like)
        inner = compare(c, operator, own, right)
        if b is Base.INTEGER:  # as floats large ones would be equal
            inner = f"coalesce({compare(c, operator, SqlValue(member(left, b), INTEGER), right)}, {inner})"
        return f"coalesce({inner}, {incomparable('=', left, right)})" if operator == "=" else inner
    same = (a is b and b is not Base.EXACT) or {a, b} <= NUMERIC
    if a is b is Base.LIST:
        return _compare_lists(c, operator, left, right)
    if a is b is Base.MAP and operator == "=":
        return _compare_maps(c, left, right)
    if not same or (a in _UNORDERED and operator != "="):
        return incomparable(operator, left, right)
    if a is Base.NODE:
        return same_term(left, right)
    # DuckDB's NaN equals itself, and is more than all others; beside null it is as unknown as anything.
    floats = [
        f"AND (NOT isnan({v.sql}) OR {other.sql} IS NULL)"
        for v, other in ((left, right), (right, left))
        if v.type.base is Base.FLOAT
    ]
    return f"({' '.join([f'{left.sql} {operator} {right.sql}', *floats])})"


def _compare_lists(c: Compiler, operator: str, left: SqlValue, right: SqlValue) -> str:
    """Lists are equal if all their items are; an unknown item makes the answer unknown, a different one false."""
    if has_terms(left.type) or has_terms(right.type):
        raise NotSupportedError("the values of the literals in lists are not looked up in SQL")
    pair = c.fresh()
    items = [named(f"{pair}[{i}]", v.type.element or NULL, bases=v.bases) for i, v in enumerate((left, right), 1)]
    if operator != "=":
        return all_once(c, (left, right), lambda left, right: _order_lists(c, operator, left, right, pair, items))
    equal = f"list_transform(list_zip({left.sql}, {right.sql}), lambda {pair}: {compare(c, '=', *items)})"
    return (
        f"(CASE WHEN {left.sql} IS NULL OR {right.sql} IS NULL THEN NULL "
        f"WHEN len({left.sql}) <> len({right.sql}) OR list_contains({equal}, FALSE) THEN FALSE "
        f"WHEN list_aggregate({equal}, 'count') < len({left.sql}) THEN NULL ELSE TRUE END)"
    )


def _order_lists(
    c: Compiler, operator: str, left: SqlValue, right: SqlValue, pair: str, items: Sequence[SqlValue]
) -> str:
    """Of lists the first items that differ say which comes first, else their lengths; unknown where these do not."""
    less, more, equal = (compare(c, each, *items) for each in ("<", ">", "="))
    compared = f"CASE WHEN {less} THEN -1 WHEN {more} THEN 1 WHEN ({less}) IS NOT NULL OR {equal} THEN 0 END"
    orders = f"list_transform(list_zip({left.sql}, {right.sql}, TRUE), lambda {pair}: {compared})"
    order, differ = c.fresh(), c.fresh()
    found = f"list_filter({orders}, lambda {order}: {order} IS DISTINCT FROM 0)"
    lengths = f"len({left.sql}) {operator} len({right.sql})"
    answer = f"CASE WHEN len({differ}) = 0 THEN {lengths} ELSE {differ}[1] {operator} 0 END"
    return (
        f"(CASE WHEN {left.sql} IS NOT NULL AND {right.sql} IS NOT NULL "
        f"THEN (list_transform([{found}], lambda {differ}: {answer}))[1] END)"
    )


def _compare_choices(c: Compiler, operator: str, left: SqlValue, right: SqlValue) -> str:
    """Values of which at least one is of a choice of types: only those of related types are equal, or have an order."""
    if has_terms(left.type) or has_terms(right.type):
        raise NotSupportedError("the values of literals among others are not looked up in SQL")

    def made(left: SqlValue, right: SqlValue) -> str:
        cases = [f"CASE WHEN {left.sql} IS NULL OR {right.sql} IS NULL THEN NULL"]
        for first, a in options(left):
            for second, b in options(right):
                if _are_related(a.type, b.type):
                    test = " AND ".join(each for each in (first, second) if each) or "TRUE"
                    cases.append(f"WHEN {test} THEN {compare(c, operator, a, b)}")
        return f"({' '.join(cases)} ELSE {'FALSE' if operator == '=' else 'NULL'} END)"

    return all_once(c, (left, right), made)


def _are_related(left: Type, right: Type) -> bool:
    """Whether some values of two types are equal."""
    a, b = left.base, right.base
    if a is b is Base.MAP:
        return dict(left.fields).keys() == dict(right.fields).keys()
    if Base.EXACT in (a, b) and Base.VALUE not in (a, b):
        return exact.kind_of(left) is exact.kind_of(right)
    several = {a, b} <= {*MEMBERS, Base.MOMENT, Base.EXACT, Base.VALUE} and Base.VALUE in (a, b)
    return a is b or {a, b} <= NUMERIC or {a, b} == {Base.ZONED, Base.MOMENT} or several


def _compare_values(c: Compiler, operator: str, left: SqlValue, right: SqlValue) -> str:
    whole = [SqlValue(member(value, Base.INTEGER), INTEGER) for value in (left, right)]
    real = [SqlValue(number(value), FLOAT) for value in (left, right)]
    numbers = f"{compare(c, operator, *whole)}, {compare(c, operator, *real)}"
    if operator == "=":
        return f"coalesce({numbers}, {left.sql} = {right.sql})"
    members = [f"({member(left, b)} {operator} {member(right, b)})" for b in MEMBERS if b not in NUMERIC]
    return f"coalesce({', '.join([numbers, *members])})"


def _compare_maps(c: Compiler, left: SqlValue, right: SqlValue) -> str:
    """Maps are equal if they have the same keys, and these lead to equal values; an unknown one makes that unknown."""
    if left.type.sparse or right.type.sparse:
        raise NotSupportedError("whether all properties are equal is not supported in SQL")
    keys, others = dict(left.type.fields), dict(right.type.fields)
    either = f"{left.sql} IS NULL OR {right.sql} IS NULL"
    if keys.keys() != others.keys():
        return f"(CASE WHEN {either} THEN NULL ELSE FALSE END)"
    same = " AND ".join(compare(c, "=", maps.entry(left, key), maps.entry(right, key)) for key in keys) or "TRUE"
    return f"(CASE WHEN {either} THEN NULL ELSE {same} END)"


def _compare_terms(c: Compiler, left: SqlValue, right: SqlValue) -> str:
    """Vertices are equal if they are the same, literals if their values are: ``"1.0"^^xsd:double`` is 1."""
    same = same_term(left, right)
    if Base.NODE in (left.type.base, right.type.base) or (left.type.unique and right.type.unique):
        return same
    equal = compare(c, "=", *[c.value_of(v) for v in (left, right)])
    if all(v.type.element is not None for v in (left, right)):  # literals alone
        return equal
    literals = [f"{v.sql} >= {LITERAL_BASE}" for v in (left, right)]
    return f"(CASE WHEN {literals[0]} AND {literals[1]} THEN {equal} ELSE {same} END)"


def _compare_term_with_value(c: Compiler, term: SqlValue, other: SqlValue) -> str:
    """A resource equals no value (SPARQL 1.1 §17.4.1.7), a literal those that its own equals."""
    different = incomparable("=", term, other)
    return (
        f"(CASE WHEN {term.sql} < {LITERAL_BASE} THEN {different} ELSE {compare(c, '=', c.value_of(term), other)} END)"
    )


def same_term(left: SqlValue, right: SqlValue) -> str:
    """Return SQL of whether two vertices, which may be literals, are the same RDF term."""
    return f"({_identity(left)} = {_identity(right)})"


def _identity(vertex: SqlValue) -> str:
    """Return the id to compare a vertex by: one that the database lacks is different from all that it has."""
    return f"coalesce({vertex.sql}, -1)" if vertex.constant else vertex.sql


def _comparison(c: Compiler, node: ast.Comparison) -> SqlValue:
    operands = temporal.compared(c, node.operands)
    parts = [
        c.any_of(lambda a, b, op=op: SqlValue(compare(c, op, a, b), BOOLEAN), left, right).sql
        for op, left, right in zip(node.operators, operands, operands[1:], strict=False)
    ]
    return SqlValue(f"({' AND '.join(parts)})", BOOLEAN)


COMPILED: Mapping[type, Callable[[Compiler, Any], SqlValue]] = {ast.Comparison: _comparison}
