"""Writing clauses that are written together: one clause takes the place of several, which depend on none of each other.

openCypher applies a clause to all rows before the next clause begins.  Where a clause reads nothing that the one before
it writes, and both write different things, the order in which they write cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.free import SUBQUERIES, free_variables
from graphdb.pattern.names import local_name
from graphdb.semantics.patterns import names_of

OF_ALL = frozenset({"labels", "properties", "keys"})
"""Functions that read all labels, or all properties, of an element."""

_MOST = 64
"""Patterns or items that one clause is made up to: its SQL has a SELECT for each."""


def joined(clauses: Sequence[ast.ClauseNode]) -> list[ast.ClauseNode]:
    """Return the clauses of a statement, each CREATE and SET with those right after it that can be written with it."""
    found: list[ast.ClauseNode] = []
    for clause in clauses:
        both: ast.ClauseNode | None = None
        if found and type(found[-1]) is type(clause):
            match found[-1], clause:
                case ast.CreateClause() as first, ast.CreateClause() as second:
                    both = _creates(first, second)
                case ast.SetClause() as first, ast.SetClause() as second:
                    both = _sets(first, second)
        found[-1 if both is not None else len(found) :] = [both or clause]
    return found


def _span(first: ast.ClauseNode, second: ast.ClauseNode) -> ast.Span:
    return ast.Span(first.span.start, second.span.end)


def _creates(first: ast.CreateClause, second: ast.CreateClause) -> ast.CreateClause | None:
    """Return two CREATE clauses as one, unless properties in the second depend on the first, or on the graph."""
    given = tuple(part for element in elements_of(second) for part in (element.properties, element.given))
    made = {name for pattern in first.patterns for name in names_of(pattern)}
    if len(first.patterns) >= _MOST or free_variables(given) & made or _asks(given):
        return None
    return ast.CreateClause((*first.patterns, *second.patterns), span=_span(first, second))


def _sets(first: ast.SetClause, second: ast.SetClause) -> ast.SetClause | None:
    """Return two SET clauses as one, unless one may read what the other sets, or both may set the same."""
    items = (*first.items, *second.items)
    if len(first.items) >= _MOST:
        return None
    owners: dict[str, str] = {}
    for item in items:
        if isinstance(item, ast.LabelItem):
            continue
        if not isinstance(item.target, ast.Property) or not isinstance(item.target.base, ast.Variable):
            return None
        if owners.setdefault(_local(item.target), item.target.base.name) != item.target.base.name:
            return None
    values = tuple(item.value for item in items if isinstance(item, ast.SetItem))
    read = {_local(part) for part in walk(values) if isinstance(part, ast.Property)}
    if read & owners.keys() or _asks(values) or any(map(_reads_all, walk(values))):
        return None
    return ast.SetClause(items, span=_span(first, second))


def _reads_all(part: object) -> bool:
    """Whether a piece of syntax may read labels, or any property."""
    if isinstance(part, ast.FunctionCall):
        return part.name.lower() in OF_ALL or any(isinstance(each, ast.Variable) for each in part.arguments)
    return isinstance(part, (ast.Subscript, ast.MapProjection, ast.LabelPredicate))


def _local(property: ast.Property) -> str:
    return local_name(property.key.words[-1].text)


def _asks(node: object) -> bool:
    return any(isinstance(part, SUBQUERIES) for part in walk(node))


def elements_of(clause: ast.CreateClause) -> Iterator[ast.NodePattern | ast.EdgePattern]:
    """Yield the vertices and edges of a CREATE in the order in which they are made."""
    for pattern in clause.patterns:
        yield from elements_in(pattern)


def elements_in(pattern: ast.PathPattern) -> Iterator[ast.NodePattern | ast.EdgePattern]:
    """Yield the vertices of a pattern that is written, then its edges."""
    yield from pattern.nodes
    for edge in pattern.edges:
        assert isinstance(edge, ast.EdgePattern)
        yield edge
