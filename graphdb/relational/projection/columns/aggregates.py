"""Aggregates as what columns in memory are aggregated by, and their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from graphdb.common.stopping import checked
from graphdb.common.values.types import FLOAT, INTEGER, Base, Type, list_of
from graphdb.grammar import syntax as ast
from graphdb.relational.projection.columns.numbers import NUMBERS, real
from graphdb.relational.projection.columns.operations import is_null
from graphdb.relational.projection.columns.values import (
    COMPARED,
    HANDED_ON,
    KEYS,
    PLAIN,
    Typed,
    Unknown,
    column_of,
    require,
)
from graphdb.relational.vectors.algebra import Aggregate, Constant, Operation, Vector
from graphdb.sql.value import SqlValue

Value = Callable[[ast.Expression], Typed]
"""Translates an expression; raises :class:`~graphdb.relational.projection.columns.values.Unknown`."""

_DISTINCT = KEYS | {Base.FLOAT}
"""Types of which different values are counted."""


def type_of_aggregate(node: ast.FunctionCall | ast.CountStar, value: Value) -> Type:
    """Return the type of an aggregate; ``value`` translates what it is of."""
    name = "count" if isinstance(node, ast.CountStar) else node.name.lower()
    if name == "count":
        return INTEGER
    assert isinstance(node, ast.FunctionCall)
    if name in ("avg", "stdev", "stdevp", "percentilecont"):
        return FLOAT
    type = Type(value(node.arguments[0])[1])
    return list_of(type) if name == "collect" else type


def aggregate(
    node: ast.FunctionCall | ast.CountStar, value: Value, matches: str | None, ordered: SqlValue | None
) -> Aggregate:
    """Return an aggregate.

    Parameters
    ----------
    matches
        The column of how many matches a row stands for.
    ordered
        The number of a row in the order that a list is to have.

    Raises
    ------
    Unknown
        SQL has to compute it.
    """
    if isinstance(node, ast.CountStar):
        return Aggregate("count", None, matches=matches)
    name, distinct = node.name.lower(), node.distinct
    if len(node.arguments) == 2 and name in ("percentilecont", "percentiledisc"):
        require(not distinct and matches is None)
        return _percentile("percentileCont" if name == "percentilecont" else "percentileDisc", node, value)
    require(len(node.arguments) == 1)
    match node.arguments[0]:
        case ast.ListLiteral(items) if name == "count" and distinct and items:
            values = [value(item) for item in checked(items)]
            require(all(base in _DISTINCT for _, base in values))
            return Aggregate("count", Operation("struct", (Constant(True), *(each for each, _ in values))), True)
        case ast.Case(None, branches, None) if name == "count" and not distinct:
            return Aggregate("sum", _counted_case(branches, value), matches=matches)
    vector, base = value(node.arguments[0])
    if base is Base.VALUE and name in ("avg", "count"):
        vector, base = real((vector, base)), Base.FLOAT
    match name:
        case "count":
            require(base in (_DISTINCT if distinct else HANDED_ON))
            return Aggregate("count", vector, distinct, None if distinct else matches)
        case "sum" | "avg" as function:
            require(base in NUMBERS and not distinct)
            return Aggregate(function, vector, matches=matches)
        case "min" | "max" as function:
            require(base in COMPARED - {Base.MOMENT} | {Base.FLOAT, Base.STRING, Base.VALUE})
            return Aggregate(function, vector)
        case "stdev" | "stdevp" as function:
            require(base in (Base.INTEGER, Base.FLOAT) and not distinct)
            return Aggregate("stDev" if function == "stdev" else "stDevP", vector, matches=matches)
        case "collect":
            require(base in (KEYS - {Base.ZONED} if distinct else PLAIN))
            require(matches is None or distinct)
            order = None if ordered is None else column_of(ordered)[0]
            return Aggregate("collect", vector, distinct, order=order)
    raise Unknown


def _percentile(
    function: Literal["percentileCont", "percentileDisc"], node: ast.FunctionCall, value: Value
) -> Aggregate:
    (of, base), (share, type) = map(value, node.arguments)
    require(base in (Base.INTEGER, Base.FLOAT) and type in (Base.INTEGER, Base.FLOAT))
    require(isinstance(share, Constant) and isinstance(share.value, int | float) and 0 <= share.value <= 1)
    assert isinstance(share, Constant)
    assert isinstance(share.value, int | float)
    return Aggregate(function, of, share=float(share.value))


def _counted_case(branches: Iterable[tuple[tuple[ast.Expression, ...], ast.Expression]], value: Value) -> Vector:
    """Return 1 where a CASE without ELSE has a value, and 0 where it has none."""

    def condition(node: ast.Expression) -> Vector:
        vector, base = value(node)
        require(base is Base.BOOLEAN)
        return vector

    operands: list[Vector] = []
    for conditions, result in branches:
        tested = tuple(map(condition, conditions))
        operands += [tested[0] if len(tested) == 1 else Operation("OR", tested), _one_unless_null(result, value)]
    return Operation("CASE", (*operands, Constant(0)))


def _one_unless_null(node: ast.Expression, value: Value) -> Vector:
    if is_null(node):
        return Constant(0)
    vector, _ = value(node)
    absent = Operation("IS NULL", (vector,))
    return Constant(1) if isinstance(vector, Constant) else Operation("CASE", (absent, Constant(0), Constant(1)))


def maps_of(node: ast.FunctionCall | ast.CountStar, value: SqlValue) -> Type | None:
    """Return the type of the maps that an aggregate makes a list of; None of other aggregates.

    SQL yields this list, or what is taken from it, as ``value``.
    """
    if not isinstance(node, ast.FunctionCall) or node.name.lower() != "collect" or node.distinct:
        return None
    if not isinstance(node.arguments[0], ast.MapLiteral | ast.MapProjection):
        return None
    item = value.type.element if value.type.base is Base.LIST else value.type
    return item if item is not None and item.base is Base.MAP and not value.many else None
