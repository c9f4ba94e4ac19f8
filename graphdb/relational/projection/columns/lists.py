"""Lists as columns: ranges, parts of texts, what is made of items of others, and what all or some of these fulfil."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol, get_args

from graphdb.common.stopping import checked
from graphdb.common.values.types import Base
from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables
from graphdb.relational.projection.columns.numbers import comparison, one_type
from graphdb.relational.projection.columns.operations import constant_of, list_operation
from graphdb.relational.projection.columns.values import PLAIN, Typed, Unknown, constant, require
from graphdb.relational.vectors.algebra import ColumnOf, Constant, OfItems, Operation, Vector

_WRITTEN = 16
"""Items of a list that is written out with each of which a value is compared, at most."""

Quantifier = Literal["all", "any", "none", "single"]


class Expressions(Protocol):
    """Translates expressions over rows; all raise :class:`Unknown`."""

    @property
    def arguments(self) -> Mapping[str, object]:
        """The values of parameters."""

    def value(self, node: ast.Expression) -> Typed:
        """Return any expression."""

    def binding(self, name: str, typed: Typed) -> Expressions:
        """Return what translates expressions in which a name stands for a column."""

    def list_column(self, node: ast.Expression) -> Typed | None:
        """Return a list that is a column, and the type of its items; None for others."""


def list_of_items(over: Expressions, node: ast.Expression) -> Typed:
    """Return a list, and the type of its items."""
    found = over.list_column(node)
    if found is not None:
        return found
    match node:
        case ast.FunctionCall(name, (first, last, *rest)) if name.lower() == "range" and len(rest) < 2:
            step = constant_of(rest[0], over.arguments) if rest else 1
            require(type(step) is int and 0 < abs(step) < 1 << 31)
            assert isinstance(step, int)
            bounds = [over.value(each) for each in (first, last)]
            require(all(base is Base.INTEGER for _, base in bounds))
            return Operation("range", tuple(vector for vector, _ in bounds), (step,)), Base.INTEGER
        case ast.FunctionCall(name, (text, separator)) if name.lower() == "split":
            by, (vector, base) = constant_of(separator, over.arguments), over.value(text)
            require(isinstance(by, str) and base is Base.STRING)
            assert isinstance(by, str)
            return Operation("split", (vector,), (by,)), Base.STRING
        case ast.ListLiteral(items) if items:
            values = [over.value(item) for item in checked(items)]
            base = one_type(values)
            require(base in PLAIN - {Base.NODE})
            return Operation("list", tuple(vector for vector, _ in values)), base
        case ast.ListComprehension(variable, source, where, result):
            return _comprehension(over, variable.name, source, where, result)
        case ast.Slice():
            operation = list_operation(node, over.arguments)
            require(operation is not None)
            assert operation is not None
            vector, item = list_of_items(over, operation.operand)
            return Operation(operation.operator, (vector,), operation.constants), item
    raise Unknown


def _comprehension(
    over: Expressions, name: str, source: ast.Expression, where: ast.Expression | None, result: ast.Expression | None
) -> Typed:
    lists, item = list_of_items(over, source)
    inner, column = _each(over, name, item)
    condition = None if where is None else _condition(inner, where)
    if result is None:
        return OfItems("list", lists, column, condition, None), item
    vector, base = inner.value(result)
    require(base in PLAIN)
    return OfItems("list", lists, column, condition, vector), base


def quantified(over: Expressions, node: ast.ListPredicate) -> Vector:
    """Return whether all, any, none or a single one of the items of a list fulfil a condition."""
    lists, item = list_of_items(over, node.source)
    inner, column = _each(over, node.variable.name, item)
    condition = _condition(inner, node.variable if node.where is None else node.where)
    quantifier = next(each for each in get_args(Quantifier) if each == node.quantifier.lower())
    return OfItems(quantifier, lists, column, condition, None)


def folded(over: Expressions, node: ast.Reduce) -> Typed:
    """Return what a number and one for each item of a list add up to."""
    lists, item = list_of_items(over, node.source)
    start, base = over.value(node.start)
    inner, column = _each(over, node.variable.name, item)
    match node.step:
        case ast.Binary("+", ast.Variable(name), added) if name == node.accumulator.name:
            pass
        case ast.Binary("+", added, ast.Variable(name)) if name == node.accumulator.name:
            pass
        case _:
            raise Unknown
    require(node.accumulator.name not in free_variables(added) and base in (Base.INTEGER, Base.FLOAT))
    vector, type = inner.value(added)
    require(type is base)
    return OfItems("sum", lists, column, None, vector, start), base


def contained(over: Expressions, node: ast.In) -> Vector:
    """Return whether a value is among the items of a list."""
    value = over.value(node.item)
    some = constant_of(node.collection, over.arguments)
    match node.collection:
        case ast.ListLiteral(items) if items and all(isinstance(item, ast.Literal | ast.Parameter) for item in items):
            some = [constant_of(item, over.arguments) for item in items]
    if isinstance(some, list):
        require(0 < len(some) <= _WRITTEN)
        tests = tuple(comparison("=", value, constant(each)) for each in some)
        return tests[0] if len(tests) == 1 else Operation("OR", tests)
    lists, item = list_of_items(over, node.collection)
    column = "item that a value is compared with"
    return OfItems("any", lists, column, comparison("=", (ColumnOf(column), item), value), None)


def _each(over: Expressions, name: str, item: Base) -> tuple[Expressions, str]:
    """Return what translates expressions over the items of a list, and the column of these."""
    require(item in PLAIN)
    column = f"item {name}"
    return over.binding(name, (ColumnOf(column), item)), column


def _condition(over: Expressions, node: ast.Expression) -> Vector:
    vector, base = over.value(node)
    require(base is Base.BOOLEAN and not isinstance(vector, Constant))
    return vector
