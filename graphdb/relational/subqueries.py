"""Subqueries to joins: EXISTS, COUNT and COLLECT, and patterns as conditions or lists, become columns of the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from graphdb.errors import NotSupportedError
from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.free import Subquery, free_variables, subqueries_in
from graphdb.pattern.graph import Wanted
from graphdb.relation import ROW, VALUE, Relation
from graphdb.relational.joins import Joins, all_of
from graphdb.relational.program import Step
from graphdb.shape import is_aggregate
from graphdb.typed import Typed
from graphdb.values import BOOLEAN, INTEGER, list_of, sql_type

AT = Typed("b.row", INTEGER)
"""The number of the row that a match started from."""

_PER_ROW = "SELECT f.c0 AS at, {0} AS n FROM ({1}) f GROUP BY f.c0"


class Subqueries(Joins):
    """Adds the columns of subqueries to rows."""

    def _with_subqueries(self, relation: Relation, expressions: Iterable[object], keep: Collection[str]) -> Relation:
        """Return the rows with a column for each subquery of some expressions, and of their own conditions."""
        keep = {*keep, *free_variables(relation.where)}
        for node in dict.fromkeys(subqueries_in((*expressions, *relation.where))):
            if node not in relation.known:
                relation = self._with_subquery(relation, node, keep)
        return relation

    def _filtered(self, relation: Relation, keep: Collection[str]) -> Relation:
        """Return the rows with all that their conditions need."""
        return self._with_subqueries(relation, (), keep)

    def _with_subquery(self, relation: Relation, node: Subquery, keep: Collection[str]) -> Relation:
        matches, value = _matches_of(node)
        left = self._table(relation, {*keep, *free_variables(node)})
        bound = self._bound(matches, left)
        shared = [name for name in bound.variables if name in left.variables]
        if value is None and not bound.residual and all(name in bound.vertex_of for name in shared):
            number, join = self._counted(left, bound, shared, _exists(node))
        else:
            number, join = self._gathered(left, bound, value)
        source = f"(SELECT l.*, {number.sql} AS s FROM {left.source} l LEFT JOIN {join})"
        found = Typed("b.s", number.type)
        if _exists(node):
            found = Typed("(b.s > 0)", BOOLEAN)
        return replace(left, source=source, known={**left.known, node: found})

    def _counted(self, left: Relation, bound: BoundPattern, shared: Sequence[str], exists: bool) -> tuple[Typed, str]:
        """The number of a pattern's matches around the vertices it shares, of which only the numbers are wanted."""
        view = self._name("bindings")
        vertices = [bound.vertex_of[name] for name in shared]
        needs = Wanted(tuple(sorted(vertices)), (), False, None, "drop" if exists else "count")
        given = tuple(self._given(left, bound, shared))
        self._start(Step("group join", view, bound, needs, self._pattern_of(bound, needs), given=given))
        ids = [f"b.v{vertex}" for vertex in vertices]
        number = "1" if exists and ids else "CAST(coalesce(sum(b.n), 0) AS BIGINT)"
        group = f" GROUP BY {', '.join(ids)}" if ids else ""
        sql = f"SELECT {''.join(f'{sql}, ' for sql in ids)}{number} AS n FROM {view} b{group}"
        on = [f"r.v{bound.vertex_of[name]} = l.{left.variables[name].sql[2:]}" for name in shared]
        return Typed("coalesce(r.n, 0)", INTEGER), f"({sql}) r ON {all_of(on)}"

    def _gathered(self, left: Relation, bound: BoundPattern, value: ast.Expression | None) -> tuple[Typed, str]:
        """The number of a pattern's matches for each row, or the list of what they yield."""
        keep = set() if value is None else free_variables(value)
        joined = self._joined(left, bound, keep, "join")
        joined = self._filtered(replace(joined, variables={**joined.variables, ROW: AT}), keep | {ROW})
        sql, found = self._shaper(joined).select([ROW], value)
        if value is None:
            return Typed("coalesce(r.n, 0)", INTEGER), f"({_PER_ROW.format('count(*)', sql)}) r ON r.at = l.rowid"
        type = list_of(found.variables[VALUE].type)
        per_row = _PER_ROW.format("list(f.c1)", sql)
        return Typed(f"coalesce(r.n, CAST([] AS {sql_type(type)}))", type), f"({per_row}) r ON r.at = l.rowid"


def _exists(node: Subquery) -> bool:
    return isinstance(node, ast.PatternPredicate) or (isinstance(node, ast.Subquery) and node.kind == "exists")


def _matches_of(node: Subquery) -> tuple[list[ast.MatchClause], ast.Expression | None]:
    """Return the MATCH clauses of a subquery, and what is gathered of each match: None where only their number is."""
    match node:
        case ast.PatternPredicate():
            return [ast.MatchClause((node.pattern,), span=node.span)], None
        case ast.PatternComprehension():
            return [ast.MatchClause((node.pattern,), where=node.where, span=node.span)], node.result
        case ast.ShortestPath():
            raise NotSupportedError("shortest paths are not supported in SQL")
    query = node.query
    if isinstance(query, ast.Composite) and len(query.parts) > 1:
        raise NotSupportedError("UNION in a subquery is not supported in SQL")
    clauses = query.parts[0] if isinstance(query, ast.Composite) else query.clauses
    matches = leading(clauses)
    value = None
    if len(matches) < len(clauses):
        returns = clauses[-1]
        cut = not isinstance(returns, ast.ReturnClause) or returns.skip is not None or returns.limit is not None
        if cut or len(matches) < len(clauses) - 1 or not isinstance(returns, ast.ReturnClause):
            raise NotSupportedError("a subquery of these clauses is not supported in SQL")
        if returns.distinct or returns.order_by or any(is_aggregate(item.expression) for item in returns.items):
            raise NotSupportedError("a subquery that counts or orders is not supported in SQL")
        value = returns.items[0].expression if node.kind == "collect" else None
    if not matches or (node.kind == "collect" and value is None):
        raise NotSupportedError("a subquery of these clauses is not supported in SQL")
    return matches, value


def leading(clauses: Sequence[ast.ClauseNode]) -> list[ast.MatchClause]:
    """Return the MATCH clauses at the head of others: together they are one pattern."""
    found: list[ast.MatchClause] = []
    for clause in clauses:
        if not isinstance(clause, ast.MatchClause) or clause.optional:
            break
        found.append(clause)
    return found
