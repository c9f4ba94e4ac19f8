"""Counts of the edges of a MATCH, as counts of its rows, and of an OPTIONAL MATCH, as counts of its vertices.

An edge is put together of four columns to be seen not to be null; a vertex is one column, and rows are counted without
any.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeVar

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.free import SUBQUERIES
from graphdb.pattern.rename import rewritten

_After = TypeVar("_After", bound=ast.ClauseNode | ast.ReturnClause)

_RETURNING = (ast.WithClause, ast.ReturnClause)


def counting_no_edges(
    clause: ast.MatchClause, rest: Sequence[ast.ClauseNode], known: Collection[str]
) -> tuple[ast.MatchClause, Sequence[ast.ClauseNode]]:
    """Return a clause and later ones, the first WITH or RETURN of which counts rows, or vertices, for edges that are
    counted.

    The rows before it have names that are ``known``.
    """
    at = next((n for n, each in enumerate(rest) if not isinstance(each, ast.MatchClause)), len(rest))
    if at == len(rest) or not isinstance(rest[at], _RETURNING):
        return clause, rest
    after = rest[at]
    counted = set[str]().union(*map(_counted, walk(after)))
    if not clause.optional:
        return clause, [*rest[:at], counting_rows([clause], after, known), *rest[at + 1 :]]
    patterns, ends = [], dict[str, ast.Variable]()
    for path in clause.patterns:
        named, mine = _with_ends(path, counted.difference(known), known)
        patterns.append(named)
        ends |= mine
    if not ends:
        return clause, rest
    clause = replace(clause, patterns=tuple(patterns))
    return clause, [*rest[:at], rewritten(after, lambda part: _of_vertex(part, ends)), *rest[at + 1 :]]


def counting_rows(matches: Sequence[ast.MatchClause], after: _After, known: Collection[str] = ()) -> _After:
    """Return a WITH or RETURN after clauses none of which is optional, which counts rows for edges that are counted."""
    edges = {edge.variable.name for clause in matches for edge in _single_edges(clause) if edge.variable is not None}
    there = edges.difference(known)
    return rewritten(after, lambda part: _of_rows(part, there)) if there else after


def _counted(part: object) -> set[str]:
    """Return the variable that is counted, if an expression does that."""
    match part:
        case ast.FunctionCall(name, (ast.Variable(counted),), False) if name.lower() == "count":
            return {counted}
    return set()


def _single_edges(clause: ast.MatchClause) -> Iterator[ast.EdgePattern]:
    """Return the edges of a clause that are no paths."""
    edges = (edge for path in clause.patterns for edge in path.edges)
    return (edge for edge in edges if isinstance(edge, ast.EdgePattern) and edge.single)


def _of_rows(part: object, there: AbstractSet[str]) -> object:
    if isinstance(part, SUBQUERIES):
        return part
    return ast.CountStar() if _counted(part) & there else None


def _of_vertex(part: object, ends: Mapping[str, ast.Variable]) -> object:
    if isinstance(part, SUBQUERIES):
        return part
    for name in _counted(part) & ends.keys():
        assert isinstance(part, ast.FunctionCall)
        return replace(part, arguments=(ends[name],))
    return None


def _with_ends(
    path: ast.PathPattern, counted: Collection[str], known: Collection[str]
) -> tuple[ast.PathPattern, dict[str, ast.Variable]]:
    """Return a path, and a vertex at an end of each of its edges that are counted, which no row had before."""
    nodes, found = list(path.nodes), dict[str, ast.Variable]()
    for i, edge in enumerate(path.edges):
        if not isinstance(edge, ast.EdgePattern) or not edge.single or edge.variable is None:
            continue
        if edge.variable.name not in counted:
            continue
        for at in (i, i + 1):
            variable = nodes[at].variable or ast.Variable(f"#end of {edge.variable.name}", edge.span)
            if variable.name not in known:
                nodes[at] = replace(nodes[at], variable=variable)
                found[edge.variable.name] = variable
                break
    return (replace(path, nodes=tuple(nodes)), found) if found else (path, found)
