"""Subqueries and lists in branches, rewritten: what may fail in them starts from the rows that ask for it.

A subquery becomes a column of all rows, and so do lists of what is looked up, before ``CASE`` says which rows ask for
it.  ``CASE WHEN a.x <> 0 THEN COUNT { … 1 / a.x … } END`` has ``COUNT { WITH * WHERE a.x <> 0 … 1 / a.x … }``, and
``[n IN nodes(p) | n.k / a.x]`` in its place goes over ``CASE WHEN a.x <> 0 THEN nodes(p) END``.  So do those that come
after others in ``AND``, ``OR`` and ``coalesce``.  What fails for no row stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import kinds_in, mapped, walk
from graphdb.pattern.free import LOCAL, SUBQUERIES
from graphdb.semantics.aggregation import contains_aggregate

Syntax = TypeVar("Syntax")

_ASKED = {*SUBQUERIES, *LOCAL} - {ast.ShortestPath}


def with_lazy_branches(query: Syntax, fails: Callable[[ast.Expression], bool]) -> Syntax:
    """Return a query in whose branches nothing fails for rows that do not come to it.

    ``fails`` says whether an expression may fail for some row, or what is in it.
    """
    if _ASKED.isdisjoint(kinds_in(query)):
        return query
    found: Syntax = _Branches(fails).of(query, None)
    return found


class _Branches:
    """Rewrites syntax piece by piece; ``test`` is what holds for the rows that ask for one, None where all do."""

    def __init__(self, fails: Callable[[ast.Expression], bool]) -> None:
        self._fails = fails

    def of(self, node: Any, test: ast.Expression | None) -> Any:
        """Return a piece of syntax, or a tuple of them."""
        if not isinstance(node, tuple) and _ASKED.isdisjoint(kinds_in(node)):
            return node
        match node:
            case ast.Case():
                return self._case(node, test)
            case ast.Boolean(operator="AND" | "OR"):
                return replace(node, operands=self._in_order(node.operands, test, lambda part: _decided(node, part)))
            case ast.FunctionCall(name=name) if name.lower() == "coalesce":
                return replace(node, arguments=self._in_order(node.arguments, test, lambda part: _is_there(node, part)))
        if test is None or type(node) not in _ASKED:
            return mapped(node, lambda part: self.of(part, test))
        assert isinstance(node, ast.Expression)
        if not self._fails(node):
            return node
        if isinstance(node, LOCAL):
            source, span = node.source, node.source.span
            asked = ast.Case(None, (((test,), self.of(source, test)),), None, span)
            return mapped(node, lambda part: asked if part is source else self.of(part, None))
        return self._started(mapped(node, lambda part: self.of(part, None)), test)

    def _case(self, node: ast.Case, test: ast.Expression | None) -> ast.Case:
        operand = self.of(node.operand, test)
        branches: list[tuple[tuple[ast.Expression, ...], ast.Expression]] = []

        def reached(*more: tuple[tuple[ast.Expression, ...], bool], otherwise: bool) -> ast.Expression | None:
            """Return what holds for rows of none of the branches so far, but of the one that there is more of."""
            past = [(tests, ast.Literal(False, node.span)) for tests, _ in branches]
            last = [(tests, ast.Literal(taken, node.span)) for tests, taken in more]
            if not past and not last:
                return test
            found = ast.Case(operand, (*past, *last), ast.Literal(otherwise, node.span), node.span)
            return _both(test, found)

        for tests, result in node.branches:
            asked = self.of(tests, reached(otherwise=True))
            branches.append((asked, self.of(result, reached((asked, True), otherwise=False))))
        return replace(
            node, operand=operand, branches=tuple(branches), otherwise=self.of(node.otherwise, reached(otherwise=True))
        )

    def _in_order(
        self,
        parts: Sequence[ast.Expression],
        test: ast.Expression | None,
        decided: Callable[[Sequence[ast.Expression]], ast.Expression],
    ) -> tuple[ast.Expression, ...]:
        """Return parts each of which is asked for where those before it have not ``decided``."""
        found: list[ast.Expression] = []
        for part in parts:
            if not found or _ASKED.isdisjoint(kinds_in(part)):
                found.append(self.of(part, test))
                continue
            span = part.span
            false, true = ast.Literal(False, span), ast.Literal(True, span)
            after = ast.Case(None, (((decided(found),), false),), true, span)
            found.append(self.of(part, _both(test, after)))
        return tuple(found)

    @staticmethod
    def _started(node: ast.Expression, test: ast.Expression) -> ast.Expression:
        """Return a subquery that starts from the rows for which a test holds."""
        start = ast.WithClause(ast.ReturnClause((), star=True, span=node.span), test, node.span)
        match node:
            case ast.PatternPredicate(pattern):
                kind, query = "exists", ast.Composite(((start, ast.MatchClause((pattern,), span=node.span)),))
            case ast.PatternComprehension(pattern, where, result):
                match = ast.MatchClause((pattern,), where=where, span=node.span)
                returns = ast.ReturnClause((ast.ReturnItem(result, "item", "item", node.span),), span=node.span)
                kind, query = "collect", ast.Composite(((start, match, returns),))
            case ast.Subquery(kind, ast.Composite() as union):
                query = replace(union, parts=tuple((start, *part) for part in union.parts))
            case ast.Subquery(kind, ast.Query() as one):
                query = ast.Composite(((start, *one.clauses),))
            case _:
                return node
        return ast.Subquery(kind, query, node.span)


def _both(test: ast.Expression | None, other: ast.Expression) -> ast.Expression | None:
    """Return a test behind another; that alone where the second is not one value for each row."""
    if contains_aggregate(other) or any(
        isinstance(part, ast.FunctionCall) and part.name.lower() in VOLATILE for part in walk(other)
    ):
        return test
    if test is None:
        return other
    return ast.Case(None, (((test,), other),), ast.Literal(False, other.span), other.span)


def _decided(node: ast.Boolean, parts: Sequence[ast.Expression]) -> ast.Expression:
    """Return whether the first operands of AND or OR say what it is."""
    first = parts[0] if len(parts) == 1 else replace(node, operands=tuple(parts))
    return ast.Unary("NOT", first, node.span) if node.operator == "AND" else first


def _is_there(node: ast.FunctionCall, parts: Sequence[ast.Expression]) -> ast.Expression:
    """Return whether some of the first arguments of coalesce is not null."""
    first = parts[0] if len(parts) == 1 else replace(node, arguments=tuple(parts))
    return ast.IsNull(first, True, node.span)
