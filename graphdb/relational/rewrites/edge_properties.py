"""WITH hands on the properties of an edge in its place, where nothing else of the edge is read later.

``WITH b, r ORDER BY r.weight LIMIT 9 … RETURN r.since`` becomes ``WITH b, r.since AS s ORDER BY r.weight LIMIT 9 …
RETURN s``.
At its match an edge is a number, by which its properties are gathered; in rows it is its label, ends and ordinal, which
have to be looked for again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import replaced, walk
from graphdb.pattern.free import free_variables
from graphdb.semantics.aggregation import contains_aggregate


def with_edge_properties(query: ast.Composite) -> ast.Composite:
    """Return a query whose WITH clauses hand on no edges of which only properties are read later."""
    return replace(query, parts=tuple(map(_part, query.parts)))


def _part(clauses: tuple[ast.ClauseNode, ...]) -> tuple[ast.ClauseNode, ...]:
    handed_on = list(_edges_handed_on(clauses))
    found = list(clauses)
    for at, edges in reversed(handed_on):
        clause = found[at]
        assert isinstance(clause, ast.WithClause)
        found[at:] = _replaced(clause, found[at + 1 :], edges)
    return tuple(found)


def _edges_handed_on(clauses: Sequence[ast.ClauseNode]) -> Iterator[tuple[int, set[str]]]:
    """Yield the places of clauses that may hand on properties instead, and the names of edges before them."""
    edges: set[str] = set()
    for at, clause in enumerate(clauses):
        if isinstance(clause, ast.MatchClause):
            between = (edge for path in clause.patterns for edge in path.edges)
            single = (edge for edge in between if isinstance(edge, ast.EdgePattern) and edge.repeat is None)
            edges |= {edge.variable.name for edge in single if edge.variable is not None}
        elif isinstance(clause, ast.WithClause):
            returns = clause.returns
            if not (returns.star or returns.distinct or any(contains_aggregate(item) for item in returns.items)):
                yield at, edges
            named = {_name(item) for item in returns.items if _variable(item) in edges}
            edges = edges | named if returns.star else named


def _replaced(clause: ast.WithClause, rest: Sequence[ast.ClauseNode], edges: set[str]) -> Sequence[ast.ClauseNode]:
    """Return a WITH and the clauses after it, the former with properties in the place of edges."""
    returns, where, after = clause.returns, clause.where, tuple(rest)
    items: list[ast.ReturnItem] = []
    for item in returns.items:
        variable, name = _variable(item), _name(item)
        read = _only_properties(name, (where, after)) if variable in edges else None
        if not read or (name != variable and name in free_variables(returns.order_by)):
            items.append(item)
            continue
        known: dict[ast.Expression, ast.Expression] = {}
        for i, node in enumerate(read):
            column = f"#{name} {i}"
            known[node] = ast.Variable(column, node.span)
            items.append(ast.ReturnItem(replace(node, base=item.expression), column, column, item.span))
        where, after = replaced(where, known), replaced(after, known)
    return [replace(clause, returns=replace(returns, items=tuple(items)), where=where), *after]


def _only_properties(name: str, later: object) -> list[ast.Property] | None:
    """Return the properties of a variable that clauses read; None where they name it otherwise, or may."""
    found: dict[ast.Property, None] = {}
    uses = 0
    for part in walk(later):
        if isinstance(part, ast.Property) and part.base == ast.Variable(name):
            found[part] = None
            uses -= 1
        elif isinstance(part, ast.Variable) and part.name == name:
            uses += 1
        elif isinstance(part, ast.ReturnClause | ast.ReturnItem | ast.CallClause) and _may_name(part, name):
            return None
    return None if uses else list(found)


def _may_name(part: ast.ReturnClause | ast.ReturnItem | ast.CallClause, name: str) -> bool:
    """Whether a clause hands on all names that it sees, or an item brings in a name."""
    match part:
        case ast.ReturnClause(star=star):
            return star
        case ast.ReturnItem(alias=alias):
            return alias == name
        case ast.CallClause(imported=imported):
            return imported is None


def _variable(item: ast.ReturnItem) -> str | None:
    """Return the variable that an item is; None for any other expression."""
    return item.expression.name if isinstance(item.expression, ast.Variable) else None


def _name(item: ast.ReturnItem) -> str:
    return item.alias or item.text
