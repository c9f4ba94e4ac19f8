"""Conditions written within a path, where they are best tested: in WHERE, or as sets that a search looks into."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import mapped, walk
from graphdb.pattern.bind import conjuncts, property_conditions
from graphdb.pattern.free import SUBQUERIES, free_variables, subqueries_in
from graphdb.pattern.paths.lengths import OF_PATHS, all_hold
from graphdb.pattern.paths.pieces import names_of
from graphdb.pattern.paths.search import PathSearch, variables_between
from graphdb.pattern.paths.unroll import is_plain
from graphdb.pattern.rename import rewritten

Query = TypeVar("Query")
Part = TypeVar("Part", ast.NodePattern, ast.EdgePattern)

Named = Callable[[str], str]
"""Returns a new name."""


def beside_paths(query: Query) -> Query:
    """Return a query in which conditions within single vertices and edges that name others stand in WHERE.

    So what a match asks of its paths, or of those of a MATCH before it, is there for all that asks for conditions.
    """
    if isinstance(query, ast.Query):  # of plain paths
        return query
    if not any(isinstance(part, ast.MatchClause) and not is_plain(part) for part in walk(query)):
        return query
    return rewritten(query, _beside)


def _beside(clause: object) -> ast.MatchClause | None:
    if not isinstance(clause, ast.MatchClause):
        return None
    where = list(conjuncts(clause.where))
    count = len(where)
    patterns = [path if path.selector else _freed(path, where) for path in clause.patterns]
    if len(where) > count:
        clause = replace(clause, patterns=tuple(patterns), where=all_hold(where, clause.span))
    return mapped(clause, lambda part: rewritten(part, _beside))  # type: ignore[no-any-return]


def _freed(path: ast.PathPattern, where: list[ast.Expression]) -> ast.PathPattern:
    """Return a path whose single vertices and edges are asked nothing that names others: ``where`` gets that."""
    nodes = tuple(_without_others(node, where) for node in path.nodes)
    edges = tuple(
        _without_others(edge, where) if isinstance(edge, ast.EdgePattern) and edge.single else edge
        for edge in path.edges
    )
    return replace(path, nodes=nodes, edges=edges)


def _without_others(part: Part, where: list[ast.Expression]) -> Part:
    """Return a vertex or an edge with the conditions that name it alone; ``where`` gets the others."""
    own = {*names_of(part)}
    said = [condition for condition in conjuncts(part.where) if free_variables(condition) - own]
    if said:
        where += said
        part = replace(part, where=all_hold([c for c in conjuncts(part.where) if c not in said], part.span))
    given = () if part.properties is None else part.properties.items
    named = tuple(item for item in given if free_variables(item[1]))
    if part.properties is not None and named:
        variable = part.variable or ast.Variable(f"{OF_PATHS} part at {part.span.start}", part.span)
        where += property_conditions(variable, replace(part.properties, items=named))
        left = tuple(item for item in given if item not in named)
        part = replace(part, variable=variable, properties=replace(part.properties, items=left) if left else None)
    return part


def at_the_ends(match: ast.MatchClause, name: Named) -> ast.MatchClause:
    """Return a clause in which what is said at the ends of paths of what is on a path stands in WHERE."""
    between = {name for path in match.patterns for name in variables_between(path.nodes, path.edges)}
    between |= {path.variable.name for path in match.patterns if path.variable is not None}
    where = list(conjuncts(match.where))
    patterns = []
    for path in match.patterns:
        nodes = list(path.nodes)
        for at in {0, len(nodes) - 1}:
            variable = nodes[at].variable or ast.Variable(name("node"), nodes[at].span)
            said = [*property_conditions(variable, nodes[at].properties), *conjuncts(nodes[at].where)]
            if any(free_variables(condition) & between for condition in said):
                nodes[at] = replace(nodes[at], variable=variable, properties=None, where=None)
                where += said
        patterns.append(replace(path, nodes=tuple(nodes)))
    if len(where) == len(list(conjuncts(match.where))):
        return match
    return replace(match, patterns=tuple(patterns), where=all_hold(where, match.span))


def with_sets(search: PathSearch, name: Named) -> tuple[PathSearch, dict[str, ast.Expression]]:
    """Return a search without those subqueries in its conditions that can be columns of the rows, and these by name.

    A condition with a subquery on one vertex or one edge is whether that is among those that fulfil it; one with a
    subquery on several stays as it is.
    """
    if not any(subqueries_in((search.nodes[1:-1], search.edges))):
        return search, {}
    sets = _Sets({*search.names, *search.variables}, name)
    nodes = (search.nodes[0], *map(sets.node, search.nodes[1:-1]), search.nodes[-1])
    return replace(search, nodes=nodes, edges=sets.between(nodes, search.edges)), sets.found


class _Sets:
    """Puts sets in the place of conditions with subqueries; ``own`` are the variables of the path."""

    def __init__(self, own: Collection[str], name: Named) -> None:
        self._own, self._name = own, name
        self.found: dict[str, ast.Expression] = {}

    def node(self, node: ast.NodePattern) -> ast.NodePattern:
        if not any(subqueries_in(node)):
            return node
        variable = node.variable or ast.Variable(self._name("node"), node.span)
        said = [*property_conditions(variable, node.properties), *conjuncts(node.where)]
        return replace(node, variable=variable, properties=None, where=self._all(said, [_vertex(variable)]))

    def between(
        self, nodes: Sequence[ast.NodePattern], edges: Sequence[ast.EdgePattern | ast.Subpath]
    ) -> tuple[ast.EdgePattern | ast.Subpath, ...]:
        return tuple(self._edge(edge, ends) for edge, ends in zip(edges, pairwise(nodes), strict=True))

    def _edge(
        self, edge: ast.EdgePattern | ast.Subpath, ends: tuple[ast.NodePattern, ast.NodePattern]
    ) -> ast.EdgePattern | ast.Subpath:
        if not any(subqueries_in(edge)):
            return edge
        if isinstance(edge, ast.EdgePattern):
            edge = replace(edge, variable=edge.variable or ast.Variable(self._name("edge"), edge.span))
            assert edge.variable is not None
            said = [*property_conditions(edge.variable, edge.properties), *conjuncts(edge.where)]
            return replace(edge, properties=None, where=self._all(said, [_alone(edge, ends)]))
        inner = edge.pattern
        nodes = tuple(map(self.node, inner.nodes))
        within = [_vertex(node.variable) for node in nodes if node.variable is not None]
        for one, around in zip(inner.edges, pairwise(nodes), strict=True):
            if isinstance(one, ast.EdgePattern) and one.variable is not None and one.repeat is None:
                within.append(_alone(one, around))
        pattern = replace(inner, nodes=nodes, edges=self.between(nodes, inner.edges))
        return replace(edge, pattern=pattern, where=self._all(list(conjuncts(edge.where)), within))

    def _all(
        self, conditions: Sequence[ast.Expression], elements: Sequence[tuple[ast.Variable, ast.PathPattern]]
    ) -> ast.Expression | None:
        """Return conditions without subqueries; the ``elements`` that they look at, each in a pattern of its own."""
        return all_hold([self._condition(each, elements) for each in conditions], elements[0][0].span)

    def _condition(
        self, condition: ast.Expression, elements: Sequence[tuple[ast.Variable, ast.PathPattern]]
    ) -> ast.Expression:
        if not any(subqueries_in(condition)):
            return condition
        mine = free_variables(condition) & {*self._own, *(variable.name for variable, _ in elements)}
        if not mine:
            return rewritten(condition, lambda part: self._set(part) if isinstance(part, SUBQUERIES) else None)
        for variable, pattern in elements:
            if mine <= {variable.name} or (_is_directed(pattern) and mine <= free_variables(pattern)):
                item = ast.ReturnItem(variable, variable.name, variable.name)
                match = ast.MatchClause((pattern,), where=condition, span=condition.span)
                query = ast.Composite(((match, ast.ReturnClause((item,))),), span=condition.span)
                return ast.In(variable, self._set(ast.Subquery("collect", query, condition.span)), condition.span)
        return condition  # it looks at several vertices or edges: the search runs it for each path

    def _set(self, node: ast.Expression) -> ast.Variable:
        name = self._name("set")
        self.found[name] = node
        return ast.Variable(name, node.span)


def _vertex(variable: ast.Variable) -> tuple[ast.Variable, ast.PathPattern]:
    return variable, ast.PathPattern((ast.NodePattern(variable),), (), variable.span)


def _alone(
    edge: ast.EdgePattern, ends: tuple[ast.NodePattern, ast.NodePattern]
) -> tuple[ast.Variable, ast.PathPattern]:
    """Return the variable of an edge, and the edge as a pattern; one that is repeated has ends of its own."""
    assert edge.variable is not None
    left, right = (ast.NodePattern(None if edge.repeat else end.variable) for end in ends)
    plain = ast.EdgePattern(edge.direction, edge.variable, edge.labels, span=edge.span)
    return edge.variable, ast.PathPattern((left, right), (plain,), edge.span)


def _is_directed(pattern: ast.PathPattern) -> bool:
    """Whether an edge says which vertices are at its ends."""
    edges = [edge for edge in pattern.edges if isinstance(edge, ast.EdgePattern)]
    return bool(edges) and edges[0].direction is not ast.Direction.BOTH
