"""Counts of the edges of an OPTIONAL MATCH, as counts of its vertices: either is null where nothing matches.

An edge is put together of four columns to be seen not to be null, a vertex is one column.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.free import SUBQUERIES
from graphdb.pattern.rename import rewritten

_RETURNING = (ast.WithClause, ast.ReturnClause)


def counting_vertices(
    clause: ast.MatchClause, rest: Sequence[ast.ClauseNode], known: Collection[str]
) -> tuple[ast.MatchClause, Sequence[ast.ClauseNode]]:
    """Return a clause and later ones, the first WITH or RETURN of which counts vertices for edges that are counted.

    The rows before it have names that are ``known``.
    """
    at = next((n for n, each in enumerate(rest) if not isinstance(each, ast.MatchClause)), len(rest))
    if not clause.optional or at == len(rest) or not isinstance(rest[at], _RETURNING):
        return clause, rest
    after = rest[at]
    counted = set[str]().union(*map(_counted, walk(after)))
    patterns, ends = [], dict[str, ast.Variable]()
    for path in clause.patterns:
        named, mine = _with_ends(path, counted.difference(known), known)
        patterns.append(named)
        ends |= mine
    if not ends:
        return clause, rest
    clause = replace(clause, patterns=tuple(patterns))
    return clause, [*rest[:at], rewritten(after, lambda part: _of_vertex(part, ends)), *rest[at + 1 :]]


def _counted(part: object) -> set[str]:
    """Return the variable that is counted, if an expression does that."""
    match part:
        case ast.FunctionCall(name, (ast.Variable(counted),), False) if name.lower() == "count":
            return {counted}
    return set()


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
