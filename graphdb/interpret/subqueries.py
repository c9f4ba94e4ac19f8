"""Subqueries inside expressions: run once for all rows of a step where that can be, else when a row asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.interpret.context import Context, Row
from graphdb.interpret.match import Match, Rows
from graphdb.pattern.free import LOCAL

Pattern = ast.PatternPredicate | ast.PatternComprehension | ast.Subquery | ast.ShortestPath
_PATTERNS = (ast.PatternPredicate, ast.PatternComprehension, ast.Subquery, ast.ShortestPath)
RunQuery = Callable[[ast.Query | ast.Composite, Rows], Rows]


class Subqueries:
    """All subqueries of one statement; ``run_query`` runs a whole query over rows."""

    def __init__(self, context: Context, run_query: RunQuery) -> None:
        self._context = context
        self._run_query = run_query
        self._keys: dict[int, str] = {}
        self._matches: dict[tuple[int, frozenset[str]], Match] = {}
        self._clauses: dict[int, ast.MatchClause | None] = {}

    def of(self, node: Pattern) -> Callable[[Row], list[Row]]:
        """Return the function from a row to the matches of a subquery."""
        key = self._keys.setdefault(id(node), self._context.fresh("sub"))

        def matches(row: Row) -> list[Row]:
            found: list[Row] | None = row.get(key)
            return self._run(node, [row])[0] if found is None else found

        return matches

    def run_ahead(self, expressions: Iterable[Any], rows: Rows) -> None:
        """Run the subqueries in some expressions for all rows at once."""
        if not rows:
            return
        for expression in expressions:
            for node in _patterns(expression):
                if self._clause(node) is None:
                    continue
                key = self._keys.setdefault(id(node), self._context.fresh("sub"))
                for row, found in zip(rows, self._run(node, rows), strict=True):
                    row[key] = found

    def _run(self, node: Pattern, rows: Rows) -> list[list[Row]]:
        """Return the matches of each row."""
        clause = self._clause(node)
        if clause is None:
            assert isinstance(node, ast.Subquery)
            return [self._run_query(node.query, [_named(row)]) for row in rows]
        known = frozenset(name for name in rows[0] if not name.startswith("#"))
        match = self._matches.get((id(node), known))
        if match is None:
            match = self._matches[id(node), known] = Match(self._context, clause, known)
        number = self._context.fresh("row")
        tagged = [{**_named(row), number: i} for i, row in enumerate(rows)]
        found: list[list[Row]] = [[] for _ in rows]
        for row in match.run(tagged):
            found[row.pop(number)].append(row)
        return found

    def _clause(self, node: Pattern) -> ast.MatchClause | None:
        """The one MATCH clause that a subquery is; None if it is more."""
        if id(node) not in self._clauses:
            self._clauses[id(node)] = self._as_clause(node)
        return self._clauses[id(node)]

    def _as_clause(self, node: Pattern) -> ast.MatchClause | None:
        match node:
            case ast.PatternPredicate():
                return ast.MatchClause((node.pattern,), span=node.span)
            case ast.PatternComprehension():
                return ast.MatchClause((node.pattern,), where=node.where, span=node.span)
            case ast.ShortestPath():
                pattern = node.pattern
                named = ast.Variable("#path", node.span)
                whole = ast.PathPattern(
                    pattern.nodes, pattern.edges, pattern.span, named, pattern.mode, pattern.selector
                )
                return ast.MatchClause((whole,), span=node.span)
        if isinstance(node.query, ast.Composite) and len(node.query.parts) == 1 and len(node.query.parts[0]) == 1:
            (clause,) = node.query.parts[0]
            return clause if isinstance(clause, ast.MatchClause) else None
        return None


def _named(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("#")}


def _patterns(node: object) -> Iterator[Pattern]:
    """Yield the subqueries of an expression that see the row alone."""
    for part in walk(node, (*_PATTERNS, *LOCAL)):
        if isinstance(part, _PATTERNS):
            yield part
        elif isinstance(part, LOCAL):  # a subquery inside is run when it is asked
            yield from _patterns(part.source)
