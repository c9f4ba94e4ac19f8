"""What a match computes of the rows it starts from, only where its conditions on them alone hold.

``WHERE k <> 0 AND b.size = 10 / k`` divides by no 0: SQL looks values up, and hashes them, before it tests the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.free import free_variables
from graphdb.pattern.paths.lengths import all_hold

_SAFE = (ast.Variable, ast.Property, ast.Literal, ast.Parameter, ast.ListLiteral)
"""What fails for no row."""


def guarded(
    conditions: Sequence[ast.Expression], rows: Set[str], waits: Callable[[ast.Expression], bool]
) -> list[ast.Expression]:
    """Return a match's conditions, what they look up being null where rows do not fulfil those on them alone.

    ``rows`` are the names that these have; conditions that ``waits`` is true of are not computed with the others.
    """

    def is_of_rows(part: ast.Expression) -> bool:
        return free_variables(part) <= rows and not waits(part)

    guards = [each for each in conditions if free_variables(each) and is_of_rows(each)]
    if not guards:
        return [*conditions]
    guard = all_hold(guards, guards[0].span)
    assert guard is not None

    def computed(operand: ast.Expression) -> ast.Expression:
        safe = all(isinstance(part, _SAFE) for part in walk(operand) if isinstance(part, ast.Expression))
        if safe or not (free_variables(operand) and is_of_rows(operand)):
            return operand
        return ast.Case(None, (((guard,), operand),), None, operand.span)

    def change(condition: ast.Expression) -> ast.Expression:
        if condition in guards:
            return condition
        if isinstance(condition, ast.Comparison) and condition.operators == ("=",):
            return replace(condition, operands=tuple(map(computed, condition.operands)))
        return (
            replace(condition, collection=computed(condition.collection))
            if isinstance(condition, ast.In)
            else condition
        )

    return [change(each) for each in conditions]


def behind_guard(operand: ast.Expression) -> ast.Expression:
    """Return what :func:`guarded` has made null for some rows, and other operands as they are."""
    match operand:
        case ast.Case(None, ((_, inner),), None):
            return inner
    return operand
