"""Compiles ``IN``: whether a value is one of a list's.

What a long list has is looked up in a table of hashes, the items of each type in one of their own: a number is one of
the integers and floating-point numbers that it equals, and no text is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from graphdb.common.errors import NotSupportedError
from graphdb.common.stopping import checked
from graphdb.common.values.types import (
    BOOLEAN,
    DATE,
    FLOAT,
    INT64,
    INTEGER,
    MEMBERS,
    NULL,
    STRING,
    Base,
    Type,
    has_terms,
)
from graphdb.grammar import syntax as ast
from graphdb.sql.compiler import Compiler
from graphdb.sql.constants import from_numpy
from graphdb.sql.equivalence import all_once
from graphdb.sql.types.comparisons import compare
from graphdb.sql.value import SUBQUERY, SqlValue, member, named, some

_EQUAL_IF_SAME = frozenset(MEMBERS) - {Base.FLOAT} | {Base.NODE, Base.EDGE}
"""Types whose values are equal if DuckDB takes them for the same: no NaN, and nothing within which types may differ."""

_LONG = 100
"""Items of a list from which on values are looked up in it, rather than compared with each."""

_PLAIN: dict[type, Type] = {bool: BOOLEAN, int: INTEGER, float: FLOAT, str: STRING, date: DATE}
"""Python types that items are looked up by; null may be among them."""

_ITEMS = {type.base: (kind, type) for kind, type in _PLAIN.items()}
_UNEQUAL = frozenset({Base.DATETIME, Base.TIME, Base.ZONED})
"""Types whose values equal none of a plain type."""


def _is_in(c: Compiler, node: ast.In) -> SqlValue:
    item = c.compile(node.item)
    given = _long(c, node.collection)
    if given is not None and item.type.base is not Base.NULL:
        found = _among(c, node, item, given) or _lists_among(c, node, item, given)
        if found is not None:
            return found
    collection = c.compile(node.collection)
    if collection.type.base is Base.NULL:
        return SqlValue("CAST(NULL AS BOOLEAN)", BOOLEAN)
    if collection.many:  # "x IN a.tags": the values of a multi-valued property are a list
        return c.any_of(lambda a, b: SqlValue(compare(c, "=", a, b), BOOLEAN), item, collection)
    if collection.type.base is not Base.LIST:
        raise c.mismatch(f"IN needs a list, found {collection.type}", node.collection)
    element = collection.type.element or NULL
    if collection.shared and c.outermost and not item.many and element == item.type and element.base in _EQUAL_IF_SAME:
        c.rows.note(SUBQUERY)
        return SqlValue(f"({item.sql} IN ({collection.items_sql}))", BOOLEAN)  # a hash join
    if given is not None and item.type.base is not Base.NULL:
        if item.many or not c.outermost or element != item.type or element.base not in _EQUAL_IF_SAME:
            raise NotSupportedError("each value with each of a long list would be compared in SQL")
        c.rows.note(SUBQUERY)
        return SqlValue(f"({item.sql} IN (SELECT unnest({collection.sql})))", BOOLEAN)  # a hash join
    return _compared(c, node, item, collection)


def _compared(c: Compiler, node: ast.In, item: SqlValue, collection: SqlValue) -> SqlValue:
    """Compile whether a value equals some item of a list that is not long, or differs between rows."""
    element = collection.type.element or NULL
    if has_terms(element) and not isinstance(node.collection, ast.ListLiteral):
        raise NotSupportedError("the values of the literals in a list are not looked up in SQL")

    def test(value: SqlValue) -> SqlValue:
        if isinstance(node.collection, ast.ListLiteral):
            if not node.collection.items:
                return SqlValue("(NOT TRUE)", BOOLEAN)  # DuckDB takes no literal behind ORDER BY
            parts = [compare(c, "=", value, c.one(x)) for x in node.collection.items]
            return SqlValue(f"({' OR '.join(parts)})", BOOLEAN)

        def compared(value: SqlValue, collection: SqlValue) -> str:
            name = c.fresh()
            found = some(collection.sql, name, compare(c, "=", value, named(name, element)))
            return f"CASE WHEN len({collection.sql}) = 0 THEN FALSE ELSE {found} END"

        both = value, collection
        return SqlValue(all_once(c, both, compared) if value.subquery else compared(*both), BOOLEAN)

    def fast(value: SqlValue) -> SqlValue:
        plain = element == value.type and element.base in _EQUAL_IF_SAME
        if not plain or isinstance(node.collection, ast.ListLiteral):
            return test(value)
        return SqlValue(
            f"CASE WHEN {collection.sql} IS NULL THEN NULL "
            f"WHEN len({collection.sql}) = 0 THEN FALSE WHEN {value.sql} IS NULL THEN NULL "
            f"WHEN list_contains({collection.sql}, {value.sql}) THEN TRUE "
            f"WHEN list_contains(list_transform({collection.sql}, lambda q: q IS NULL), TRUE) THEN NULL "
            "ELSE FALSE END",
            BOOLEAN,
        )

    found = c.any_of(fast, item)
    if item.many:  # nothing is in an empty list, not even null
        found = SqlValue(f"CASE WHEN len({collection.sql}) = 0 THEN FALSE ELSE {found.sql} END", BOOLEAN)
    return found


def _long(c: Compiler, node: ast.Expression) -> Sequence[object] | None:
    """Return a list that the text or a parameter says, if it is long."""
    given = c.arguments.get(node.name) if isinstance(node, ast.Parameter) else getattr(node, "value", None)
    given = from_numpy(given)
    if isinstance(given, set | frozenset):
        given = list(given)
    return given if isinstance(given, list | tuple) and len(given) >= _LONG else None


def _among(c: Compiler, node: ast.In, item: SqlValue, given: Sequence[object]) -> SqlValue | None:
    """Compile whether a value is one of a long list of plain values; None where other values are there."""
    if item.many or not c.outermost:
        return None
    kinds = {*map(type, given)}
    if not kinds <= {*_PLAIN, type(None)}:
        given = list(map(from_numpy, given))
        kinds = {*map(type, given)}
    bases = item.bases or frozenset(MEMBERS) if item.type.base is Base.VALUE else {item.type.base}
    if not kinds <= {*_PLAIN, type(None)} or not bases <= _ITEMS.keys() | _UNEQUAL:
        return None
    nulls = [None] if type(None) in kinds else []
    tests = []
    for base in (base for base in _ITEMS if base in bases):
        kind, plain = _ITEMS[base]
        own, equal = member(item, base), given
        if not kinds <= {kind, type(None)} or kind is float:
            equal = _equal_to_some(kind, kinds, given)
            equal += nulls if equal else []
        if equal and kinds != {type(None)}:
            tests.append((own, f"{own} IN ({_rows(c, node, equal, plain)})"))  # a hash join
    if tests:
        c.rows.note(SUBQUERY)
    if len(tests) == 1 and item.type.base is not Base.VALUE:
        return SqlValue(f"({tests[0][1]})", BOOLEAN)
    otherwise = "CAST(NULL AS BOOLEAN)" if nulls else "FALSE"
    whens = [f"WHEN {own} IS NOT NULL THEN {test}" for own, test in tests]
    return SqlValue(f"CASE {' '.join(whens)} WHEN {item.sql} IS NOT NULL THEN {otherwise} END", BOOLEAN)


def _lists_among(c: Compiler, node: ast.In, item: SqlValue, given: Sequence[object]) -> SqlValue | None:
    """Compile whether a list is one of a long list of lists of values of its type; None where others are there.

    One with null among its items is compared with each: it may be equal to some, and is so to none.
    """
    element = item.type.element or NULL
    lists = [value for value in given if isinstance(value, list | tuple)]
    inside = {type(value) for each in lists for value in each}
    if item.type.base is not Base.LIST or item.many or not c.outermost or element.base not in _EQUAL_IF_SAME:
        return None
    if len(lists) < len(given) or len(inside) != 1 or _PLAIN.get(inside.pop()) != element:
        return None
    collection = c.constant(given, node.collection)
    c.rows.note(SUBQUERY)
    unknown = _compared(c, node, item, collection).sql
    found = f"{item.sql} IN (SELECT unnest({collection.sql}))"  # a hash join
    whole = f"list_aggregate({item.sql}, 'count') = len({item.sql})"
    return SqlValue(f"CASE WHEN {whole} THEN {found} WHEN {item.sql} IS NOT NULL THEN {unknown} END", BOOLEAN)


def _equal_to_some(kind: type, kinds: set[type], given: Sequence[object]) -> list[Any]:
    """Return the values of a Python type that equal some of a list's: of a number also one of the other type."""
    found = [value for value in checked(given) if type(value) is kind and value == value] if kind in kinds else []
    if kind is int and float in kinds:
        reals = (value for value in given if type(value) is float and value.is_integer())
        found += [int(value) for value in reals if int(value) in INT64]
    if kind is float and int in kinds:
        found += [float(value) for value in given if type(value) is int and value in INT64 and float(value) == value]
    return found


def _rows(c: Compiler, node: ast.In, items: Sequence[object], type: Type) -> str:
    """Return SQL of rows, one of each of some items, which are of a type or null."""
    return c.rows.parameters.rows_of(items, type) or f"SELECT unnest({c.constant(items, node.collection).sql})"


COMPILED: Mapping[type, Callable[[Compiler, Any], SqlValue]] = {ast.In: _is_in}
