"""The free variables of an expression, and the subqueries that depend on the row alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from graphdb.common.caches import ByIdentity
from graphdb.common.stopping import check_stop
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import is_node, parts_of

Subquery: TypeAlias = ast.PatternPredicate | ast.PatternComprehension | ast.Subquery | ast.ShortestPath

SUBQUERIES = (ast.PatternPredicate, ast.PatternComprehension, ast.Subquery, ast.ShortestPath)

LOCAL = (ast.ListComprehension, ast.ListPredicate, ast.Reduce)
"""What brings in variables of its own."""


def free_variables(node: object) -> set[str]:
    """Return the variables that a piece of syntax names, but for those that lists inside bring in.

    What the patterns of a subquery bring in is among them: whether it is new there, only the row tells.
    """
    check_stop()
    return set(_free(node))


_FREE: ByIdentity[frozenset[str]] = ByIdentity(1 << 14)
_NONE = frozenset[str]()


def _free(node: object) -> frozenset[str]:
    if isinstance(node, tuple):
        return _NONE.union(*map(_free, node))
    if not is_node(node):
        return _NONE
    return _FREE.get_or_make(node, lambda: _found(node))


def _found(node: object) -> frozenset[str]:
    if isinstance(node, ast.Variable):
        return frozenset((node.name,))
    if isinstance(node, LOCAL):  # the list is outside; looked into once, or lists in lists would take time without end
        outside = outside_of(node)
        inside = _NONE.union(*(_free(part) for part in parts_of(node) if not any(part is one for one in outside)))
        inside -= {node.variable.name, node.accumulator.name if isinstance(node, ast.Reduce) else ""}
        return inside.union(*map(_free, outside))
    return _NONE.union(*map(_free, parts_of(node)))


def outside_of(node: ast.ListComprehension | ast.ListPredicate | ast.Reduce) -> tuple[ast.Expression, ...]:
    """Return the parts of such an expression that do not see the items of its list."""
    return (node.source, node.start) if isinstance(node, ast.Reduce) else (node.source,)


def subqueries_in(node: object) -> Iterator[Subquery]:
    """Yield the outermost subqueries of an expression, but for those that see the items of a list."""
    if isinstance(node, SUBQUERIES):
        yield node
    elif isinstance(node, LOCAL):
        yield from subqueries_in(outside_of(node))
    else:
        for part in parts_of(node):
            yield from subqueries_in(part)
