"""Comparisons whose sides both mix two parts of a query, as comparisons of one part with the other.

``a.i + b.i = 10`` is ``b.i = 10 - a.i``, and ``abs(a.i - b.i) < 3`` is ``b.i < a.i + 3 AND b.i > a.i - 3``: of integers
that are known to be so small that no sum overflows, which is exact.  Floating-point numbers are rounded, so that
``abs(a.x - b.x) < c`` stays as it is, behind an interval around ``a.x`` that is a little wider.  Columns of either part
are then joined by hashing or sorting, where every pair would be tested.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import pairwise
from math import inf
from typing import TypeAlias

from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables

Magnitude: TypeAlias = "Callable[[ast.Property], float | None]"
"""The largest absolute value of the integers that a property has, infinite where it has other numbers; None for others.
"""

_LARGEST = float(1 << 62)
"""What sums of integers stay below."""

_WIDER = 1e-12
"""By which part of its numbers an interval is wider: some thousand times what rounding may change."""

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}

Terms = dict[ast.Expression, int]
"""Properties, by how often they are in a sum; an integer literal as the last summand, under :data:`_ONE`."""

_ONE = ast.Literal(1)


def separated(conditions: Sequence[ast.Expression], names: Collection[str], of: Magnitude) -> list[ast.Expression]:
    """Return conditions in which what has some ``names`` stands on one side, and what has none of these on the other.

    Others stay as they are.
    """
    return [each for condition in conditions for each in _separated(condition, names, of) or (condition,)]


def _separated(condition: ast.Expression, names: Collection[str], of: Magnitude) -> list[ast.Expression] | None:
    if not isinstance(condition, ast.Comparison) or not _mixes(condition, names):
        return None
    found: list[ast.Expression] = []
    for operator, (left, right) in zip(condition.operators, pairwise(condition.operands), strict=True):
        pair = ast.Comparison((operator,), (left, right), condition.span)
        found += _of_pair(pair, names, of) or (pair,)
    return found


def _mixes(condition: ast.Comparison, names: Collection[str]) -> bool:
    """Whether an operand has both what some names stand for, and what others do."""
    for operand in condition.operands:
        variables = free_variables(operand)
        if variables & {*names} and not variables <= {*names}:
            return True
    return False


def _of_pair(pair: ast.Comparison, names: Collection[str], of: Magnitude) -> list[ast.Expression] | None:
    (operator,), (left, right), span = pair.operators, pair.operands, pair.span
    if operator in (">", ">=") and _absolute(right) is not None:
        operator, left, right = _TURNED[operator], right, left
    inside = _absolute(left)
    if inside is None:
        return None if operator == "<>" else _moved(operator, left, right, names, of, span)
    if operator not in ("<", "<="):
        return None
    limits = [(operator, right), (_TURNED[operator], ast.Unary("-", right, span))]
    exact = [_moved(each, inside, limit, names, of, span) for each, limit in limits]
    if None not in exact:
        return [condition for some in exact for condition in some or ()]
    near = _near(inside, right, names, of, span)
    return None if near is None else [*near, pair]


def _absolute(node: ast.Expression) -> ast.Expression | None:
    match node:
        case ast.FunctionCall(name, (inside,)) if name.lower() == "abs":
            return inside
    return None


# --- integers


def _moved(
    operator: str, left: ast.Expression, right: ast.Expression, names: Collection[str], of: Magnitude, span: ast.Span
) -> list[ast.Expression] | None:
    """Return a comparison of sums of integers with those of either part on its own side; None for any other."""
    ours, theirs = _summed(left, of), _summed(right, of)
    if ours is None or theirs is None:
        return None
    terms = _added(ours, theirs, -1)
    size = sum(abs(times) * _size(node, of) for node, times in (*ours.items(), *theirs.items()))
    if size >= _LARGEST:
        return None
    mine = {node: times for node, times in terms.items() if times and free_variables(node) & {*names}}
    others = {node: times for node, times in terms.items() if times and node != _ONE and node not in mine}
    if not mine or not others:
        return None
    if next(iter(others.values())) < 0:
        operator, others = _TURNED[operator], {node: -times for node, times in others.items()}
    else:
        mine = {node: -times for node, times in mine.items()}
        terms = {_ONE: -terms.get(_ONE, 0)}
    return [ast.Comparison((operator,), (_sum(others, 0, span), _sum(mine, terms.get(_ONE, 0), span)), span)]


def _size(summand: ast.Expression, of: Magnitude) -> float:
    """Return the largest absolute value of a summand."""
    return (of(summand) if isinstance(summand, ast.Property) else 1) or 0.0


def _summed(node: ast.Expression, of: Magnitude) -> Terms | None:
    """Return a sum of integers as its summands; None for anything else."""
    match node:
        case ast.Literal(value) if type(value) is int:
            return {_ONE: value}
        case ast.Property(ast.Variable()):
            found = of(node)
            return None if found is None or found >= _LARGEST else {node: 1}
        case ast.Unary("-", operand):
            return _times(_summed(operand, of), -1)
        case ast.Binary("+" | "-" as operator, left, right):
            one, other = _summed(left, of), _summed(right, of)
            return None if one is None or other is None else _added(one, other, 1 if operator == "+" else -1)
        case ast.Binary("*", ast.Literal(value), operand) | ast.Binary("*", operand, ast.Literal(value)):
            return _times(_summed(operand, of), value) if type(value) is int else None
    return None


def _times(terms: Terms | None, factor: int) -> Terms | None:
    return None if terms is None else {node: times * factor for node, times in terms.items()}


def _added(one: Terms, other: Terms, factor: int) -> Terms:
    return {node: one.get(node, 0) + factor * other.get(node, 0) for node in (*one, *other)}


def _sum(terms: Mapping[ast.Expression, int], constant: int, span: ast.Span) -> ast.Expression:
    """Return a sum of summands, which are at least one, and an integer."""
    found: ast.Expression | None = ast.Literal(constant, span) if constant else None
    for node, times in sorted(terms.items(), key=lambda term: -term[1]):
        factor = abs(times)
        one = node if factor == 1 else ast.Binary("*", ast.Literal(factor, span), node, span)
        if found is None:
            found = one if times > 0 else ast.Unary("-", one, span)
        else:
            found = ast.Binary("+" if times > 0 else "-", found, one, span)
    assert found is not None
    return found


# --- floating-point numbers


def _near(
    inside: ast.Expression, limit: ast.Expression, names: Collection[str], of: Magnitude, span: ast.Span
) -> list[ast.Expression] | None:
    """Return what holds wherever two properties, of either part, differ by no more than a number; None for others."""
    match inside, limit:
        case ast.Binary("-", ast.Property(ast.Variable(one)) as x, ast.Property(ast.Variable(other)) as y), ast.Literal(
            value
        ) if type(value) in (int, float) and (one in names) is not (other in names):
            mine, theirs = (x, y) if one in names else (y, x)
            assert isinstance(value, int | float)
            sizes = of(mine), of(theirs)
            if None in sizes or inf not in sizes:  # differences of integers may overflow
                return None
            about = ast.Binary("*", ast.FunctionCall("abs", (mine,), span=span), ast.Literal(_WIDER, span), span)
            wide = ast.Binary("+", ast.Literal(float(value) + abs(value) * _WIDER, span), about, span)
            low, high = (ast.Binary(sign, mine, wide, span) for sign in "-+")
            return [ast.Comparison((">=",), (theirs, low), span), ast.Comparison(("<=",), (theirs, high), span)]
    return None
