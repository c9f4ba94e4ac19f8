"""What WHERE says of all edges or vertices of ``shortestPath(…)``: the search goes along those alone.

``MATCH p = shortestPath((a)-[:ROAD*]-(b)) WHERE all(e IN relationships(p) WHERE e.open)`` asks for the shortest of the
paths that are open, as Neo4j has it: of openCypher's two functions such a condition is part of the pattern.  GQL's
``ANY SHORTEST`` selects first, and a condition of the search stands within its path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.free import free_variables, subqueries_in
from graphdb.pattern.paths.lengths import OF_PATHS, all_hold
from graphdb.pattern.rename import renamed, rewritten

_Element = TypeVar("_Element", ast.NodePattern, ast.EdgePattern)


def with_predicates(query: ast.Composite) -> ast.Composite:
    """Return a query in which such conditions stand within their paths."""
    if not any(isinstance(part, ast.Selector) and part.legacy for part in walk(query)):
        return query
    return rewritten(query, _change)


def _change(part: object) -> object:
    if not isinstance(part, ast.MatchClause):
        return None
    rest = list(conjuncts(part.where))
    patterns = []
    for path in part.patterns:
        found = [(c, pushed) for c in rest if (pushed := _pushed(path, c)) is not None]
        for condition, (of_edges, inner) in found:
            path = _along(path, of_edges, inner)
            rest.remove(condition)
        patterns.append(path)
    if len(rest) == len(list(conjuncts(part.where))):
        return None
    clause = replace(part, patterns=tuple(patterns), where=all_hold(rest, part.span))
    return replace(clause, where=rewritten(clause.where, _change))


def _pushed(path: ast.PathPattern, condition: ast.Expression) -> tuple[bool, ast.Expression] | None:
    """Return what a condition asks of each edge (or else vertex) of a path, of a variable called as :data:`_EACH`."""
    if path.selector is None or not path.selector.legacy or not isinstance(condition, ast.ListPredicate):
        return None
    (edge,), quantifier, asked = path.edges, condition.quantifier.upper(), condition.where
    if edge.repeat is None or edge.repeat.low > 1 or quantifier not in ("ALL", "NONE") or asked is None:
        return None
    if not free_variables(asked) <= {condition.variable.name} or any(subqueries_in(asked)):
        return None
    edges: set[ast.Expression] = {ast.Variable(name) for name in _names_of_edges(edge)}
    vertices: set[ast.Expression] = set()
    for call in (part for part in walk(condition.source) if isinstance(part, ast.FunctionCall)):
        if path.variable is not None and call.arguments == (path.variable,):
            name = call.name.lower()
            edges |= {call} if name in ("relationships", "edges") else set()
            vertices |= {call} if name == "nodes" else set()
    if condition.source not in edges and condition.source not in vertices:
        return None
    each = renamed(asked, {condition.variable.name: _EACH})
    return condition.source in edges, each if quantifier == "ALL" else ast.Unary("NOT", each, condition.span)


_EACH = f"{OF_PATHS} each"
"""The variable that stands for an edge or a vertex until it has a name."""


def _names_of_edges(edge: ast.EdgePattern | ast.Subpath) -> Iterator[str]:
    if isinstance(edge, ast.EdgePattern) and edge.variable is not None:
        yield edge.variable.name


def _along(path: ast.PathPattern, of_edges: bool, condition: ast.Expression) -> ast.PathPattern:
    """Return a path of which every edge, or every vertex, fulfils a condition."""
    (edge,), at = path.edges, path.span.start
    if isinstance(edge, ast.EdgePattern) and of_edges:
        return replace(path, edges=(_with(edge, condition, f"edge of {at}"),))
    if isinstance(edge, ast.EdgePattern):  # a part of one edge between two vertices, of which something can be said
        around = ast.NodePattern(span=edge.span)
        once = ast.PathPattern((around, around), (replace(edge, repeat=None),), edge.span)
        edge = ast.Subpath(once, None, edge.repeat, edge.span)
    inner, nodes = edge.pattern, path.nodes
    if of_edges:
        edges = tuple(
            _with(each, condition, f"edge of {at}") for each in inner.edges if isinstance(each, ast.EdgePattern)
        )
        inner = replace(inner, edges=edges)
    else:
        within = tuple(_with(node, condition, f"{i} within {at}") for i, node in enumerate(inner.nodes))
        nodes = tuple(_with(node, condition, f"{i} of {at}") for i, node in enumerate(nodes))
        inner = replace(inner, nodes=within)
    return replace(path, nodes=nodes, edges=(replace(edge, pattern=inner),))


def _with(element: _Element, condition: ast.Expression, name: str) -> _Element:
    """Return a vertex or edge with one more condition; it gets a name where it has none."""
    variable = element.variable or ast.Variable(f"{OF_PATHS} {name}", element.span)
    said = [*conjuncts(element.where), renamed(condition, {_EACH: variable.name})]
    return replace(element, variable=variable, where=all_hold(said, element.span))
