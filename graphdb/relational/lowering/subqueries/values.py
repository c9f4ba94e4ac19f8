"""Subqueries that take no more of a vertex than some of its properties: they run for the values, not for the vertices.

``EXISTS { UNWIND $rows AS r WITH r WHERE r.k = a.team AND r.least < a.age RETURN r }`` yields the same for all ``a`` of
one team and age.  Where these have few values, so many groups of rows are asked for, not one for each vertex.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from graphdb.common.errors import BindError
from graphdb.common.values.types import Base
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import mapped, walk
from graphdb.pattern.free import LOCAL, free_variables
from graphdb.relational.snapshot import Snapshot

_FEWER = 4
"""How many times fewer values than vertices there are at least where a subquery runs for the values."""

_ALIKE = (Base.INTEGER, Base.STRING, Base.BOOLEAN)
"""Types whose equal values are the same value."""

_BRINGING = (*LOCAL, ast.UnwindClause)


def by_values(
    query: ast.Composite, vertices: Collection[str], are_few: Callable[[Collection[ast.Property]], bool]
) -> tuple[ast.Composite, dict[str, ast.Property]]:
    """Return a query that takes values instead of vertices, where their properties are all that it asks of them.

    With it, the names of what it takes, and the property that each is.  ``are_few`` says of properties whether there
    are few values of them.
    """
    asked: dict[ast.Property, str] = {}
    parts = walk(query)
    if any(isinstance(part, ast.CallClause | ast.ProcedureClause) for part in parts):
        return query, {}
    for part in parts:
        if isinstance(part, ast.Property) and isinstance(part.base, ast.Variable) and part.base.name in vertices:
            asked.setdefault(part, f"{part.key.text} of {part.base.name}")
    taken = {part.base.name for part in asked if isinstance(part.base, ast.Variable)}
    for part in parts:
        if isinstance(part, _BRINGING) and part.variable.name in taken:
            return query, {}
        if isinstance(part, ast.ReturnItem) and part.alias in taken and part.expression != ast.Variable(part.alias):
            return query, {}
    if not asked or len({*asked.values()}) < len(asked) or not are_few(asked):
        return query, {}

    def change(node: object) -> object:
        if isinstance(node, ast.Property) and node in asked:
            return ast.Variable(asked[node], node.span)
        if isinstance(node, ast.WithClause):
            node = replace(node, returns=replace(node.returns, items=tuple(_items(node.returns, asked))))
        return mapped(node, change)

    found = change(query)
    assert isinstance(found, ast.Composite)
    if taken & free_variables(found):
        return query, {}
    return found, {name: node for node, name in asked.items()}


def have_few_values(snapshot: Snapshot, text: str, properties: Collection[ast.Property]) -> bool:
    """Whether vertices have far fewer combinations of values of some properties than there are vertices."""
    combinations, vertices = 1, 0
    for node in properties:
        try:
            label = snapshot.names.property(node.key.words, text)
        except BindError:  # reported where it is compiled
            return False
        if not label.kinds or label.max_values != 1 or not snapshot.properties.has_type(label):
            return False
        if snapshot.properties.type_of(label).base not in _ALIKE:
            return False
        combinations *= label.objects + 1
        vertices = max(vertices, label.subjects)
    return combinations * _FEWER < vertices


def _items(returns: ast.ReturnClause, asked: dict[ast.Property, str]) -> list[ast.ReturnItem]:
    """Return what a WITH hands on: values instead of their vertex."""
    found: list[ast.ReturnItem] = []
    for item in returns.items:
        values = [name for node, name in asked.items() if node.base == item.expression]
        found += [ast.ReturnItem(ast.Variable(name), name, name, item.span) for name in values] or [item]
    return found
