"""What a match computes of the rows it starts from, or of its own alone, only where conditions on these alone hold.

``WHERE k <> 0 AND b.size = 10 / k`` divides by no 0: SQL looks values up, hashes and sorts them, before it
tests the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.failing import may_compute
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.paths.lengths import all_hold

_SAFE = (ast.Variable, ast.Property, ast.Literal, ast.Parameter, ast.ListLiteral)
"""What fails for no row."""


def may_fail(condition: ast.Expression) -> bool:
    """Whether a condition computes what may fail for some rows; subqueries, of which other steps are made, do not."""
    return may_compute(condition) and not any(isinstance(part, SUBQUERIES) for part in walk(condition))


def guarded(
    conditions: Sequence[ast.Expression], rows: Set[str], waits: Callable[[ast.Expression], bool]
) -> list[ast.Expression]:
    """Return a match's conditions, what they compare being null where those on the same side alone do not hold.

    ``rows`` are the names that the rows have; those of the other side are the match's own.  Conditions that ``waits``
    is true of are not computed with the others.
    """

    def is_of_rows(part: ast.Expression) -> bool | None:
        """Whether a part is of the rows, or of the match's own; None where it is of both, of none, or waits."""
        names = free_variables(part)
        if not names or waits(part) or (names & rows and not names <= rows):
            return None
        return names <= rows

    if not rows:
        return [*conditions]
    sides = [is_of_rows(each) for each in conditions]

    def guard(side: bool, at: int) -> ast.Expression | None:
        """Return the conditions on one side that guard a place's: those behind it only where none can fail."""
        alone = [
            each
            for i, (each, of) in enumerate(zip(conditions, sides, strict=True))
            if of is side and (i < at or not may_fail(each))
        ]
        return all_hold(alone, alone[0].span) if alone else None

    def computed(operand: ast.Expression, at: int) -> ast.Expression:
        safe = all(isinstance(part, _SAFE) for part in walk(operand) if isinstance(part, ast.Expression))
        side = None if safe else is_of_rows(operand)
        test = None if side is None else guard(side, at)
        return operand if test is None else ast.Case(None, (((test,), operand),), None, operand.span)

    def change(condition: ast.Expression, at: int) -> ast.Expression:
        if isinstance(condition, ast.Comparison) and "<>" not in condition.operators:
            return replace(condition, operands=tuple(computed(operand, at) for operand in condition.operands))
        if isinstance(condition, ast.In):
            return replace(condition, collection=computed(condition.collection, at))
        return condition

    return [
        each if side is not None else change(each, i)
        for i, (each, side) in enumerate(zip(conditions, sides, strict=True))
    ]


def behind_guard(operand: ast.Expression) -> ast.Expression:
    """Return what :func:`guarded` has made null for some rows, and other operands as they are."""
    match operand:
        case ast.Case(None, ((_, inner),), None):
            return inner
    return operand
