"""Constants that are made of maps of arguments: they are computed once, before the match.

``a.id IN [r IN $rows | r.id]`` is ``a.id IN [1, 2, …]``: the list depends on no row, but SQL has no type for maps of
any keys, so that Python would make it for each value that is looked for in it.  Of a known list, items are found
by their hashes or by an index.  So it is with ``keys($m)``, ``$m.id`` and whatever else such arguments alone say.
``any(r IN $rows WHERE r.id = a.id)`` asks for an item of the same list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from graphdb.common.errors import GraphDBError
from graphdb.common.stopping import checked
from graphdb.common.values.elements import Node
from graphdb.common.values.types import INT64
from graphdb.functions.table import SIGNATURE_OF
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import kinds_in, mapped, walk
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables
from graphdb.pattern.rename import rewritten
from graphdb.relational.rewrites.written_lists import as_membership

Query = TypeVar("Query")

_COMPUTED = (*LOCAL, ast.FunctionCall, ast.Property, ast.Subscript, ast.Slice, ast.Binary)
"""Expressions that a constant stands for."""

_PLAIN = frozenset({int, str, float, bool, type(None)})
"""Types of values that a query may have in its text."""

_MOST = 1_000_000
"""Items of a list that becomes part of a query, at most."""


def with_constants(
    query: Query, arguments: Mapping[str, object], evaluate: Callable[[ast.Expression], object]
) -> Query:
    """Return a query with such constants in its conditions, in lists that are asked for an item, and in UNWIND.

    What is made of lists in what clauses return is a constant, too.  ``evaluate`` returns the value of an expression
    without variables.  What fails stays as it is: it may be that no row needs it.
    """
    if ast.Parameter not in (kinds := kinds_in(query)) or kinds.isdisjoint(_COMPUTED):
        return query
    if not any(isinstance(value, dict | list | tuple) for value in arguments.values()):
        return query

    def constant(node: object) -> ast.Expression | None:
        if (member := as_membership(node)) is not None:
            found = rewritten(member, constant)
            return None if ast.ListComprehension in kinds_in(found) else found
        if not isinstance(node, _COMPUTED) or not _is_constant(node, arguments):
            return None
        try:
            return _written(evaluate(node), node.span)
        except GraphDBError:
            return None

    def listed(node: object) -> object:
        """Return what is returned, with what is made of the items of lists as constants: others are no work."""
        found = constant(node) if isinstance(node, LOCAL) else None
        return mapped(node, listed) if found is None else found

    def known(node: object) -> object:
        return rewritten(node, constant)

    def clauses(node: object) -> object:
        match node:
            case ast.MatchClause() | ast.WithClause() | ast.NodePattern() | ast.EdgePattern():
                conditions: list[object] = [node.where, getattr(node, "properties", None)]
            case ast.UnwindClause() | ast.ListComprehension() | ast.ListPredicate():
                conditions = [node.source]
            case ast.In():
                conditions = [node.collection]
            case ast.ReturnItem():
                conditions = [each for each in (node.expression,) if as_membership(each) is not None]
                if not conditions:
                    node = mapped(node, listed)
            case _:
                conditions = []
        return mapped(node, lambda part: known(part) if any(part is one for one in conditions) else clauses(part))

    return clauses(query)  # type: ignore[return-value]


def _has_maps(value: object) -> bool:
    """Whether an argument is a map, or a list of maps."""
    return isinstance(value, dict) or (isinstance(value, list | tuple) and dict in map(type, value))


def _is_constant(node: ast.Expression, arguments: Mapping[str, object]) -> bool:
    """Whether an expression is made of arguments alone, of which one has maps and none is a vertex."""
    if free_variables(node):
        return False
    parts = walk(node)
    if any(isinstance(part, SUBQUERIES) or _may_differ(part) for part in parts):
        return False
    names = {part.name for part in parts if isinstance(part, ast.Parameter)}
    given = [arguments[name] for name in names if name in arguments]
    return len(given) == len(names) and any(map(_has_maps, given)) and not any(map(_has_vertex, given))


def _may_differ(part: object) -> bool:
    """Whether a function is called that may yield something else each time, or of another graph."""
    if not isinstance(part, ast.FunctionCall):
        return False
    signature = SIGNATURE_OF.get(part.name.lower())
    return signature is None or signature.aggregate or signature.volatility != "immutable" or signature.key == "iri"


def _has_vertex(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_vertex, value.values()))
    if isinstance(value, list | tuple):
        return not _PLAIN.issuperset(map(type, value)) and any(map(_has_vertex, checked(value)))
    return isinstance(value, Node)


def _written(value: object, span: ast.Span) -> ast.Expression | None:
    """Return a plain value, or a list of such, as it is written; None for any other."""
    items: list[Any] = value if isinstance(value, list) else [value]
    kinds = {*map(type, items)}
    if not kinds <= _PLAIN or len(items) > _MOST:
        return None
    if int in kinds and not all(item in INT64 for item in items if type(item) is int):
        return None
    if float in kinds and not all(math.isfinite(item) for item in items if type(item) is float):
        return None
    if not isinstance(value, list):
        return ast.Literal(value, span)  # type: ignore[arg-type]
    return ast.Literal(tuple(items), span) if items else ast.ListLiteral((), span)
