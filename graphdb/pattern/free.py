"""The free variables of an expression, and the subqueries that depend on the row alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import parts_of

Subquery: TypeAlias = ast.PatternPredicate | ast.PatternComprehension | ast.Subquery | ast.ShortestPath

SUBQUERIES = (ast.PatternPredicate, ast.PatternComprehension, ast.Subquery, ast.ShortestPath)

LOCAL = (ast.ListComprehension, ast.ListPredicate, ast.Reduce)
"""What brings in variables of its own."""


def free_variables(node: object) -> set[str]:
    """Return the variables that a piece of syntax names, but for those that lists inside bring in.

    What the patterns of a subquery bring in is among them: whether it is new there, only the row tells.
    """
    if isinstance(node, ast.Variable):
        return {node.name}
    if isinstance(node, LOCAL):  # the list is outside; looked into once, or lists in lists would take time without end
        inside = set[str]().union(*(free_variables(part) for part in parts_of(node) if part is not node.source))
        inside -= {node.variable.name, node.accumulator.name if isinstance(node, ast.Reduce) else ""}
        return inside | free_variables(node.source)
    return set[str]().union(*map(free_variables, parts_of(node)))


def subqueries_in(node: object) -> Iterator[Subquery]:
    """Yield the outermost subqueries of an expression, but for those that see the items of a list."""
    if isinstance(node, SUBQUERIES):
        yield node
    elif isinstance(node, LOCAL):
        yield from subqueries_in(node.source)
    else:
        for part in parts_of(node):
            yield from subqueries_in(part)
