"""Names in syntax replaced by what they stand for, where none that an expression brings in is taken for another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import is_larger, is_node, mapped, walk
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables, outside_of

Scope = Mapping[str, ast.Expression]
"""The names that a clause sees, and what they stand for."""

_MOST = 200
"""Pieces of an expression that a name may stand for: WITH after WITH may double it."""


_NAMED = (ast.NodePattern, ast.EdgePattern, ast.PathPattern, ast.Cost)
"""What of a pattern may have a name."""


class NotRewritten(Exception):
    """Why clauses have no such form."""


class Names:
    """Names that are given once: two variables of a query that are called the same are two here.

    Parameters
    ----------
    query
        Where all names stand that there are.
    """

    def __init__(self, query: object) -> None:
        self._there = {part.name for part in walk(query) if isinstance(part, ast.Variable)}
        self._given = set[str]()

    def given(self, name: str) -> ast.Variable:
        """Return a variable that is called as it was, unless another one is."""
        found, number = name, 1
        while found in self._given or (number > 1 and found in self._there):
            number += 1
            found = f"{name}_{number}"
        self._given.add(found)
        return ast.Variable(found)

    def declared(self, patterns: tuple[ast.PathPattern, ...], scope: Scope) -> dict[str, ast.Expression]:
        """Return variables for the names that patterns bring in, beside those that are in scope."""
        return {name: self.given(name) for name in dict.fromkeys(declared(patterns)) if name not in scope}

    def substituted(self, node: Any, scope: Scope) -> Any:
        """Return syntax with what names stand for in the place of them.

        Raises
        ------
        NotRewritten
            A pattern, or a map's projection, would have something else than a variable.
        """
        if isinstance(node, tuple):
            return mapped(node, lambda part: self.substituted(part, scope))
        if not is_node(node):
            return node
        if isinstance(node, ast.Variable):
            found = scope.get(node.name, node)
            if not isinstance(found, ast.Variable):
                return found
            return node if found.name == node.name else ast.Variable(found.name, node.span)
        if isinstance(node, LOCAL):
            return self._of_list(node, scope)
        if isinstance(node, SUBQUERIES):
            scope = {**scope, **self._inside(node, scope)}
        made = mapped(node, lambda part: self.substituted(part, scope))
        if isinstance(made, ast.MapProjection) and not isinstance(made.base, ast.Variable):
            raise NotRewritten("it projects a map of what an expression yields")
        if isinstance(made, _NAMED) and not isinstance(made.variable, (ast.Variable, NoneType)):
            raise NotRewritten("a pattern goes on from what an expression yields")
        return made

    def _of_list(self, node: Any, scope: Scope) -> Any:
        """Return a list's comprehension and the like, whose own names hide others within it."""
        local = {node.variable.name, *([node.accumulator.name] if isinstance(node, ast.Reduce) else [])}
        inner = {name: value for name, value in scope.items() if name not in local}
        taken = {name for value in inner.values() for name in free_variables(value)}
        inner |= {name: self.given(name) for name in sorted(local & taken)}
        outside = outside_of(node)

        def part_of(part: Any) -> Any:
            return self.substituted(part, scope if any(part is each for each in outside) else inner)

        return mapped(node, part_of)

    def _inside(self, subquery: Any, scope: Scope) -> dict[str, ast.Expression]:
        """Return the variables that a subquery brings in."""
        if isinstance(subquery, ast.Subquery):
            query = subquery.query
            for part in (query.clauses,) if isinstance(query, ast.Query) else query.parts:
                if not all(isinstance(clause, (ast.MatchClause, ast.ReturnClause)) for clause in part):
                    raise NotRewritten("a subquery has other clauses than MATCH and RETURN")
        return {name: self.given(name) for name in sorted(free_variables(subquery)) if name not in scope}


def declared(patterns: tuple[ast.PathPattern, ...]) -> Iterator[str]:
    """Yield the names in patterns of vertices, edges, paths and costs."""
    for part in walk(patterns, (*SUBQUERIES, *LOCAL)):
        if isinstance(part, _NAMED) and part.variable is not None:
            yield part.variable.name


def bounded(expression: Any) -> Any:
    """Return an expression; raises NotRewritten where it is too large to stand in several places."""
    if is_larger(expression, _MOST):
        raise NotRewritten("an expression of a WITH is too large")
    return expression
