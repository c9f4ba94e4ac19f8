"""Conditions between rows and the bindings of a pattern that they are joined with: what these ask of each other.

Of columns that have to be equal DuckDB makes a hash join, and of columns one of which has to be less than the other a
join of sorted ones.  A condition that can fail, as arithmetic can, it tests on every pair of a row and a binding
instead: so what is computed of one side alone is a column of that side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.types import FLOAT, INTEGER, Base, Type
from graphdb.functions.table import scalar
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.relational.lowering.joins.guards import behind_guard
from graphdb.relational.projection.lookups import Asked
from graphdb.relational.rewrites.intervals import Spread, with_intervals_first
from graphdb.relational.rewrites.separated import separated
from graphdb.relational.snapshot import Snapshot
from graphdb.sql.value import SqlValue
from graphdb.storage.arrays.arrow import values
from graphdb.storage.catalog import EdgeLabel

_SOME = 1024
"""Values of a property by which it is judged how close together they stand."""

_LEAVES = (ast.Variable, ast.Literal, ast.Parameter)
"""What is a column, or one value, as it stands."""


def asks(names: Collection[str], bound: BoundPattern) -> Iterator[tuple[ast.Expression, str, Asked]]:
    """Yield conditions that what only a pattern has, or a property of it, is something of the rows; with its name.

    The rows have some ``names``.
    """
    for condition in (*bound.residual, *bound.ensured):
        if isinstance(condition, ast.In):
            own = condition.item
            item, key = (own.base, own.key) if isinstance(own, ast.Property) else (own, None)
            if not isinstance(item, ast.Variable) or item.name in names:
                continue
            if free_variables(condition.collection) <= {*names}:
                yield condition, item.name, Asked(key, condition.collection, listed=True)
        if not isinstance(condition, ast.Comparison) or condition.operators != ("=",):
            continue
        for one, other in (condition.operands, condition.operands[::-1]):
            subject = one.base if isinstance(one, ast.Property) else None
            if not isinstance(subject, ast.Variable) or subject.name in names:
                continue
            if free_variables(other) <= {*names}:
                assert isinstance(one, ast.Property)
                yield condition, subject.name, Asked(one.key, other, listed=False)


def apart_of(snapshot: Snapshot, text: str, names: Collection[str], bound: BoundPattern) -> list[ast.Expression]:
    """Return the conditions of a pattern as they are best joined by with rows that have some names.

    What is of the rows stands on one side, where that is the same (:mod:`~graphdb.relational.rewrites.separated`), and
    intervals go before equations that leave more (:mod:`~graphdb.relational.rewrites.intervals`).  What is prepared so
    is right for the values that properties have now.
    """

    def numeric(node: ast.Property) -> tuple[EdgeLabel, Type] | None:
        label = snapshot.names.property(node.key.words, text)
        if not snapshot.properties.has_type(label):
            return None
        type = snapshot.properties.type_of(label)
        known = bool(label.kinds) and type in (INTEGER, FLOAT) and snapshot.properties.in_memory(label)
        return (label, type) if known else None

    @cache
    def magnitude(node: ast.Property) -> float | None:
        found = numeric(node)
        if found is None or found[1] == FLOAT:
            return None if found is None else inf
        return greatest(snapshot, found[0])

    @cache
    def spread(node: ast.Property) -> Spread | None:
        label = snapshot.names.property(node.key.words, text)
        if not label.kinds:
            return None
        found = numeric(node)
        numbers = None if found is None else _numbers(snapshot, found[0])
        if numbers is None or not len(numbers):
            return Spread(label.subjects, label.objects)
        some = np.sort(numbers[:: max(len(numbers) // _SOME, 1)].astype(np.float64))
        return Spread(label.subjects, label.objects, float(numbers.max()) - float(numbers.min()), some)

    return with_intervals_first(separated(bound.residual, names, magnitude), names, spread)


def greatest(snapshot: Snapshot, label: EdgeLabel) -> float | None:
    """Return the largest absolute value of the integers that a property has; None where they are not in memory."""
    if not snapshot.properties.in_memory(label):
        return None
    numbers = _numbers(snapshot, label)
    if numbers is None or not len(numbers):
        return None if numbers is None else 0.0
    return max(abs(float(numbers.min())), abs(float(numbers.max())))


def _numbers(snapshot: Snapshot, label: EdgeLabel) -> NDArray[Any] | None:
    """Return the numbers that a property has, or has had since it was read; None where it was not."""
    column = snapshot.properties.array(label)
    if column is None:
        return None
    parts = [part.values for part in (column, column.later) if part is not None]
    return np.concatenate([values(part)[part.is_valid()] for part in parts])


def computed_of_rows(names: Collection[str], bound: BoundPattern) -> dict[ast.Expression, None]:
    """Return what is computed of rows with some names and a property of a pattern has to equal, each once."""
    asked = (
        each.expression
        for _, _, each in asks(names, bound)
        if not each.listed or isinstance(each.expression, ast.Narrowed)
    )
    compared = (each.operands for each in bound.residual if isinstance(each, ast.Comparison))
    keys = (operand for operands in compared for operand in operands if isinstance(operand, ast.Narrowed))
    found = (one for one in (*asked, *keys) if free_variables(one) and free_variables(one) <= {*names})
    return dict.fromkeys(filter(_is_computed, found))


def computed_of_sides(
    names: Collection[str], bound: BoundPattern
) -> tuple[dict[ast.Expression, None], dict[ast.Expression, None]]:
    """Return what is computed of rows with some names, and of a pattern, to be compared with the other: each once."""
    rows: dict[ast.Expression, None] = {}
    bindings: dict[ast.Expression, None] = {}

    def side(operand: ast.Expression) -> dict[ast.Expression, None] | None:
        variables = free_variables(operand)
        if not variables or (variables & {*names} and not variables <= {*names}):
            return None
        return rows if variables <= {*names} else bindings

    for condition in bound.residual:
        if not isinstance(condition, ast.Comparison):
            continue
        for operator, operands in zip(condition.operators, pairwise(condition.operands), strict=True):
            sides = [side(operand) for operand in operands]
            if operator == "<>" or None in sides or sides[0] is sides[1]:
                continue
            for of, operand in zip(sides, operands, strict=True):
                if of is not None and _is_computed(operand):
                    of[operand] = None
    return rows, bindings


def compared_fields(variables: Mapping[str, SqlValue], bound: BoundPattern) -> dict[ast.Expression, None]:
    """Return the fields of maps that rows have, of those that a pattern's conditions compare: each once."""

    def is_field(node: ast.Expression) -> bool:
        of = (
            variables.get(node.base.name)
            if isinstance(node, ast.Property) and isinstance(node.base, ast.Variable)
            else None
        )
        return of is not None and of.type.base in (Base.MAP, Base.CHOICE) and of.column is not None

    compared = [condition for condition in bound.residual if isinstance(condition, ast.Comparison)]
    return dict.fromkeys(operand for each in compared for operand in each.operands if is_field(operand))


def _is_computed(operand: ast.Expression) -> bool:
    """Whether an expression is no column as it stands, and has one value for each row that it is of."""
    operand = behind_guard(operand)
    if isinstance(operand, _LEAVES) or (isinstance(operand, ast.Property) and isinstance(operand.base, ast.Variable)):
        return False
    parts = walk(operand)
    return not any(isinstance(part, SUBQUERIES) for part in parts) and all(
        _is_stable(part) for part in parts if isinstance(part, ast.FunctionCall)
    )


def _is_stable(call: ast.FunctionCall) -> bool:
    found = scalar(call.name.lower())
    return found is not None and found.volatility != "volatile"
