"""Conditions between rows and the bindings of a pattern that they are joined with: what these ask of each other.

Of columns that have to be equal DuckDB makes a hash join, and of columns one of which has to be less than the other a
join of sorted ones.  A condition that can fail, as arithmetic can, it tests on every pair of a row and a binding
instead: so what is computed of one side alone is a column of that side.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from math import inf

from graphdb.common.values.types import FLOAT, INTEGER
from graphdb.functions.table import scalar
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.free import free_variables
from graphdb.relational.lowering.guards import behind_guard
from graphdb.relational.projection.lookups import Asked
from graphdb.relational.rewrites.separated import separated
from graphdb.relational.snapshot import Snapshot
from graphdb.storage.arrays.arrow import values
from graphdb.storage.catalog import EdgeLabel

_COMPUTED = (ast.Binary, ast.Unary, ast.FunctionCall)
_OPERANDS = (ast.Binary, ast.Unary, ast.Property, ast.Variable, ast.Literal, ast.Parameter)


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
    """Return the conditions of a pattern with what is of rows, with some names, on one side, where that is the same.

    What is prepared so is right for the values that properties have now.
    """
    known: dict[ast.Property, float | None] = {}

    def magnitude(node: ast.Property) -> float | None:
        if node not in known:
            label = snapshot.names.property(node.key.words, text)
            known[node] = _magnitude(snapshot, label) if label.kinds else None
        return known[node]

    return separated(bound.residual, names, magnitude)


def _magnitude(snapshot: Snapshot, label: EdgeLabel) -> float | None:
    """Return the largest absolute value of the integers that a property has, infinite where it has floats alone; None
    where some of its values are others, or a vertex has several.
    """
    properties = snapshot.properties
    type = properties.type_of(label)
    if type not in (INTEGER, FLOAT) or not properties.in_memory(label):
        return None
    if type == FLOAT:
        return inf
    column, found = properties.array(label), [0.0]
    if column is None:
        return None
    for part in (column, column.later):
        if part is not None and len(part.values):
            data = values(part.values)[part.values.is_valid()]
            found += [abs(float(end)) for some in (data,) if len(some) for end in (some.min(), some.max())]
    return max(found)


def computed_of_rows(names: Collection[str], bound: BoundPattern) -> dict[ast.Expression, None]:
    """Return what is computed of rows with some names and a property of a pattern has to equal, each once."""
    found = (each.expression for _, _, each in asks(names, bound) if not each.listed)
    return dict.fromkeys(one for one in found if free_variables(one) and _is_computed(one))


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


def _is_computed(operand: ast.Expression) -> bool:
    """Whether an expression has operators or calls, and one value for each row that it is of."""
    operand = behind_guard(operand)
    parts = [part for part in walk(operand) if isinstance(part, ast.Expression)]
    return isinstance(operand, _COMPUTED) and all(
        isinstance(part, _OPERANDS) or (isinstance(part, ast.FunctionCall) and _is_stable(part)) for part in parts
    )


def _is_stable(call: ast.FunctionCall) -> bool:
    found = scalar(call.name.lower())
    return found is not None and found.volatility != "volatile"
