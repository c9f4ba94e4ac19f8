"""Warnings: names that a query reads and nothing in the database has.

In a graph of one's own such a name is no error, as in openCypher: it matches nothing, or is null.  It is often a slip,
though, so the error that a graph from RDF would give is a warning there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial

from graphdb.common.errors import BindError
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import kinds_in, walk
from graphdb.pattern.names import Names

_WRITING = (ast.CreateClause, ast.MergeClause, ast.SetClause, ast.RemoveClause)
"""Clauses that bring names, so that one which is not there yet is no slip."""


def takes_away(statement: ast.Statement) -> bool:
    """Whether a statement takes away what it reads, so that its names may be unknown once it has run."""
    writes = isinstance(statement, ast.Composite) and statement.writes
    return writes and not kinds_in(statement).isdisjoint((ast.DeleteClause, ast.RemoveClause))


def unknown_names(
    statements: Iterable[ast.Statement], names: Names, edge_keys: Callable[[], Mapping[str, int]], text: str
) -> list[str]:
    """Return a warning, with its place and what may be meant, for each name that statements read and nothing has.

    ``edge_keys`` tells the keys that edges have, by IRI.
    """
    found: dict[str, None] = {}
    for statement in statements:
        if isinstance(statement, ast.CreateContinuous):
            statement = statement.query
        if isinstance(statement, (ast.Query, ast.Composite)):
            for check in _checks(walk(statement, _WRITING), names.strict(), edge_keys, text):
                try:
                    check()
                except BindError as error:
                    found.setdefault(str(error))
    return list(found)


def _checks(
    parts: Collection[object], names: Names, edge_keys: Callable[[], Mapping[str, int]], text: str
) -> Iterator[Callable[[], object]]:
    """Yield what raises `BindError` for a name that nothing has."""
    renamed = {part.alias for part in parts if isinstance(part, ast.ReturnItem)}
    vertices: set[str] = set()
    edges: set[str] = set()
    for part in parts:
        if isinstance(part, (ast.NodePattern, ast.EdgePattern)):
            is_vertex = isinstance(part, ast.NodePattern)
            if part.variable is not None and part.variable.name not in renamed:
                (vertices if is_vertex else edges).add(part.variable.name)
            if part.labels is not None:
                yield from _labels(part.labels, names, text, vertices=is_vertex)
            for key, _ in part.properties.items if part.properties is not None else ():
                yield partial(names.key, key.words, {} if is_vertex else edge_keys(), text)
        elif isinstance(part, ast.LabelPredicate) and isinstance(part.operand, ast.Variable):
            if part.operand.name in vertices:
                yield from _labels(part.labels, names, text, vertices=True)
        elif isinstance(part, ast.Property) and isinstance(part.base, ast.Variable):
            if part.base.name in vertices:
                yield partial(names.key, part.key.words, {}, text)
            elif part.base.name in edges:
                yield partial(names.key, part.key.words, edge_keys(), text)


def _labels(labels: ast.LabelExpression, names: Names, text: str, *, vertices: bool) -> Iterator[Callable[[], object]]:
    for chain in (part for part in walk(labels) if isinstance(part, ast.LabelChain)):
        for words in names.chains(chain.words):
            yield partial(names.vertex_label if vertices else names.edge_label, words, text)
