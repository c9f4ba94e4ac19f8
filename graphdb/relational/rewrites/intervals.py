"""Intervals beside equations of a handful of values: the interval is the better join.

``a.kind = b.kind AND a.t <= b.t AND b.t < a.t + 10`` is joined by what is equal, wherever something is, and of two
kinds half of all pairs are tested then.  Where the interval leaves fewer, the equation becomes a condition that nothing
is joined by, so that rows are sorted by ``t``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar import syntax as ast
from graphdb.pattern.free import free_variables

Statistics: TypeAlias = "Callable[[ast.Property], Spread | None]"
"""What is known of the values of a property; None for nothing."""

_SORTED = 8.0
"""Pairs that a hash join tests in the time in which a join of sorted columns gives one."""

_MANY = 1e6
"""Pairs up to which it does not matter."""

_LESS = {"<": 1, "<=": 1, ">": -1, ">=": -1}


@dataclass(frozen=True, slots=True)
class Spread:
    """Of the values of a property: of how many vertices, how many different ones, and some of the numbers, sorted, with
    how far the largest of all is from the least; none where they are no numbers.
    """

    vertices: int
    different: int
    width: float = 0.0
    some: NDArray[np.float64] | None = None


def with_intervals_first(
    conditions: Sequence[ast.Expression], names: Collection[str], of: Statistics
) -> list[ast.Expression]:
    """Return conditions on rows, which have some ``names``, and what they are joined with: no equation that tests more
    pairs than an interval is one that these are joined by.
    """
    equations = [each for each in conditions if _values(each, names) is not None]
    part = min(_parts(conditions, names, of), default=1.0) if equations else 1.0
    if part == 1.0:
        return [*conditions]
    spreads = [spread for each in equations for node in _values(each, names) or () if (spread := of(node)) is not None]
    different = max((spread.different for spread in spreads), default=inf)
    pairs = max((float(spread.vertices) for spread in spreads), default=0.0) ** 2
    if part * _SORTED * different >= 1 or pairs < _MANY * different:
        return [*conditions]
    return [_beside(each) if each in equations else each for each in conditions]


def _beside(equation: ast.Expression) -> ast.Expression:
    """Return a condition that holds where an equation does."""
    true, false = (ast.Literal(value, equation.span) for value in (True, False))
    return ast.Case(None, (((equation,), true),), false, equation.span)


def _values(condition: ast.Expression, names: Collection[str]) -> tuple[ast.Property, ast.Property] | None:
    """Return the properties, of either part, that an equation says are equal."""
    match condition:
        case ast.Comparison(("=",), (ast.Property(ast.Variable(a)) as one, ast.Property(ast.Variable(b)) as other)):
            return (one, other) if (a in names) is not (b in names) else None
    return None


def _parts(conditions: Sequence[ast.Expression], names: Collection[str], of: Statistics) -> Iterator[float]:
    """Yield which part of all pairs intervals leave, as far as the spread of values says."""
    bounds: dict[tuple[ast.Property, ast.Property], list[list[float]]] = {}
    for condition in conditions:
        if not isinstance(condition, ast.Comparison):
            continue
        for operator, sides in zip(condition.operators, pairwise(condition.operands), strict=True):
            found = [_shifted(side) for side in sides]
            if operator not in _LESS or found[0] is None or found[1] is None:
                continue
            (left, plus), (right, more) = found[0], found[1]
            if (free_variables(left) <= {*names}) is (free_variables(right) <= {*names}):
                continue
            least, most = (left, right) if _LESS[operator] > 0 else (right, left)
            gap = (more - plus) * _LESS[operator]  # the first is less than the second, and this
            if free_variables(least) <= {*names}:
                bounds.setdefault((least, most), [[], []])[0].append(-gap)
            else:
                bounds.setdefault((most, least), [[], []])[1].append(gap)
    for (around, node), (low, high) in bounds.items():
        ours, theirs = of(around), of(node)
        if low and high and ours is not None and theirs is not None:
            yield _part(ours, theirs, max(low), min(high))


def _part(ours: Spread, theirs: Spread, low: float, high: float) -> float:
    """Return which part of all pairs an interval leaves, by the width of all values, or by some of them where these
    stand closer together.
    """
    if ours.some is None or theirs.some is None or not 0 < theirs.width < inf:
        return 1.0
    inside = np.searchsorted(theirs.some, ours.some + high, "right") - np.searchsorted(theirs.some, ours.some + low)
    each = float(inside.mean()) - 1  # one of them may be the value itself
    return min(max(each / len(theirs.some), (high - low) / theirs.width, 0.0), 1.0)


def _shifted(node: ast.Expression) -> tuple[ast.Property, float] | None:
    """Return an expression as a property and a number that is added to it."""
    match node:
        case ast.Property(ast.Variable()):
            return node, 0.0
        case ast.Binary("+" | "-" as sign, ast.Property(ast.Variable()) as base, ast.Literal(value)) if type(value) in (
            int,
            float,
        ):
            assert isinstance(value, int | float)
            return base, float(value) if sign == "+" else -float(value)
        case ast.Binary("+", ast.Literal(value), ast.Property(ast.Variable()) as base) if type(value) in (int, float):
            assert isinstance(value, int | float)
            return base, float(value)
    return None
