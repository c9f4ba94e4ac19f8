"""A RETURN clause before any SQL is written: its items, its window, its grouping, and what it needs of the match.

A match need not deliver what nothing names, nor one by one what is only counted, nor twice what makes no difference:
what is found out here reaches the plan as :class:`~graphdb.pattern.graph.Wanted`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from graphdb.common.errors import ExecutionError, ParameterError
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import parts_of, walk
from graphdb.pattern.bind import BoundPattern
from graphdb.pattern.free import LOCAL
from graphdb.pattern.graph import Duplicates, Wanted
from graphdb.relational.snapshot import Snapshot
from graphdb.semantics.aggregation import aggregates_in, contains_aggregate, is_aggregate
from graphdb.semantics.types import type_of_value
from graphdb.sql.constants import from_numpy


def expand_star(returns: ast.ReturnClause, bound: BoundPattern) -> tuple[ast.ReturnItem, ...]:
    """Return the items with ``*`` written out."""
    star = bound.variables if returns.star else []
    return (*(ast.ReturnItem(ast.Variable(name), name, name, returns.span) for name in star), *returns.items)


def window_of(
    returns: ast.ReturnClause, snapshot: Snapshot, arguments: Mapping[str, object], text: str
) -> tuple[int, int | None]:
    """Return the values of SKIP (0 without one) and LIMIT (None without one).

    Raises
    ------
    ParameterError
        One is no number of rows, or a parameter without a value.
    ExecutionError
        One is an expression that yields no number of rows.
    """

    def number(node: ast.Expression | None, clause: str) -> int | None:
        match node:
            case None:
                return None
            case ast.Literal():
                value: Any = node.value
            case ast.Parameter():
                if node.name not in arguments:
                    raise ParameterError(f"parameter ${node.name} has no value", text=text, position=node.span.start)
                value = from_numpy(arguments[node.name])
            case _:
                assert snapshot.computing is not None
                value = snapshot.computing().constant(node)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
            kind = ParameterError if isinstance(node, ast.Parameter) else ExecutionError
            found = repr(value) if isinstance(value, int | float) else type_of_value(value)
            raise kind(
                f"{clause} needs a number of rows, 0 or more, found {found}", text=text, position=node.span.start
            )
        return value

    return number(returns.skip, "SKIP") or 0, number(returns.limit, "LIMIT")


def returns_each(returns: ast.ReturnClause) -> bool:
    """Whether a clause returns a row for each row: nothing is grouped, made distinct or cut."""
    cut = returns.distinct or returns.skip is not None or returns.limit is not None
    return not (cut or any(contains_aggregate(item.expression) for item in returns.items))


def combines_aggregates(items: Iterable[ast.ReturnItem]) -> bool:
    """Whether what is made of an aggregate takes more than it: keys that stand beside it, or a look into the graph.

    The rows are grouped by themselves then: what SQL looks up it joins, and no join is by an aggregate.
    """
    of = [item.expression for item in items if contains_aggregate(item.expression)]
    return any(_names_keys(each, frozenset()) or _looks_up(each) for each in of)


_LOOK_UP = frozenset("labels iri keys properties type graphs lang datatype".split())
"""Functions that look up something of a vertex or edge."""


def _looks_up(node: object) -> bool:
    """Whether something is looked up of what an aggregate yields, if that is a vertex or an edge."""
    if is_aggregate(node) or not any(map(_may_yield_elements, aggregates_in(node))):
        return False
    looks = isinstance(node, ast.Property | ast.LabelPredicate | ast.MapProjection)
    looks = looks or (isinstance(node, ast.FunctionCall) and node.name.lower() in _LOOK_UP)
    return looks or any(map(_looks_up, parts_of(node)))


def _may_yield_elements(call: object) -> bool:
    """Whether an aggregate may yield a vertex or an edge, or a list of them."""
    if not isinstance(call, ast.FunctionCall):
        return False
    return call.name.lower() == "collect" or any(isinstance(argument, ast.Variable) for argument in call.arguments)


def _names_keys(node: object, local: frozenset[str]) -> bool:
    """Whether a variable is named outside of aggregates, those that lists bring in left out."""
    if is_aggregate(node):
        return False
    if isinstance(node, ast.Variable):
        return node.name not in local
    if isinstance(node, LOCAL):
        local |= {node.variable.name, *([node.accumulator.name] if isinstance(node, ast.Reduce) else [])}
    return any(_names_keys(part, local) for part in parts_of(node))


# --- what the match must deliver -------------------------------------------------------------------------------


def wanted(
    returns: ast.ReturnClause, items: tuple[ast.ReturnItem, ...], bound: BoundPattern, window: tuple[int, int | None]
) -> Wanted:
    """Return what the match must deliver; ``window`` is (skip, limit)."""
    only_counts = not bound.residual and all(_counts_matches(item.expression, bound) for item in items)
    if items and only_counts and not returns.distinct:
        return Wanted((), (), True, None)
    ordered = tuple(order.expression for order in returns.order_by)
    parts = (tuple(item.expression for item in items), ordered, tuple(bound.residual))
    known = {node: number for number, choice in bound.choices.items() for node in choice.facts}
    named = named_beside(parts, known)
    edges = {number for number, edge in enumerate(bound.edges) if edge.name in named}
    vertices = {bound.vertex_of[name] for name in named if name in bound.vertex_of}
    # Conditions of anonymous vertices (from their property maps) may be left to SQL too.
    vertices |= {i for i, info in enumerate(bound.vertices) if info.name.startswith("#") and info.name in named}
    for edge in edges:
        vertices |= {bound.edges[edge].source, bound.edges[edge].target}
    duplicates = duplicates_of(returns, items)
    streams = not (returns.order_by or bound.residual or any(map(contains_aggregate, items)))
    if returns.distinct:  # equal rows must be equal bindings: two literals, or two edge bindings, may look the same
        streams = streams and all(_is_resource(item.expression, bound) for item in items)
    skip, limit = window
    enough = skip + limit if streams and limit is not None else None
    facts = {known[part] for part in walk(parts) if isinstance(part, ast.Property) and part in known} - edges
    by_label = bool(edges) and duplicates != "keep" and not facts and _takes_labels(parts, items, bound)
    found = Wanted(tuple(sorted(vertices)), tuple(sorted(edges)), False, enough, duplicates, tuple(sorted(facts)))
    return replace(found, by_label=by_label)


def _takes_labels(parts: object, items: Iterable[ast.ReturnItem], bound: BoundPattern) -> bool:
    """Whether nothing is read of a pattern but the labels of edges, and how many matches there are."""
    elements = {*bound.variables, *(v.name for v in bound.vertices), *(edge.name for edge in bound.edges)}
    calls = (part for part in walk(parts) if isinstance(part, ast.FunctionCall))
    labels = {call for call in calls if _is_label(call, bound) or _counts_matches(call, bound)}
    return named_beside(parts, labels) <= {item.alias for item in items} - elements


def _is_label(call: ast.FunctionCall, bound: BoundPattern) -> bool:
    """Whether a call is for the label of an edge of a pattern, ``type(r)``."""
    edges = [each.name for each in call.arguments if isinstance(each, ast.Variable) and each.name in bound.edge_of]
    return call.name.lower() == "type" and len(edges) == len(call.arguments) == 1


def named_beside(node: object, known: Collection[ast.Expression]) -> set[str]:
    """Return the variables in a piece of syntax, but for those in some properties or calls."""
    if isinstance(node, ast.Variable):
        return {node.name}
    if isinstance(node, ast.Property | ast.FunctionCall) and node in known:
        return set()
    return set().union(*(named_beside(part, known) for part in parts_of(node)))


def duplicates_of(returns: ast.ReturnClause, items: tuple[ast.ReturnItem, ...]) -> Duplicates:
    """What the result depends on: on every binding, on the distinct ones, or on how often each occurs."""
    aggregates = [found for item in items for found in aggregates_in(item.expression)]
    if not aggregates:
        return "drop" if returns.distinct else "keep"
    numbers = [part for part in aggregates if not _ignores_duplicates(part)]
    if all(isinstance(part, ast.CountStar) or part.name.lower() == "count" for part in numbers):
        return "count" if numbers else "drop"
    return "keep"


def _ignores_duplicates(aggregate: ast.CountStar | ast.FunctionCall) -> bool:
    return isinstance(aggregate, ast.FunctionCall) and (aggregate.distinct or aggregate.name.lower() in ("min", "max"))


def _is_resource(node: ast.Expression, bound: BoundPattern) -> bool:
    """Whether an expression is a vertex that is no literal."""
    number = bound.vertex_of.get(node.name) if isinstance(node, ast.Variable) else None
    return number is not None and not bound.vertices[number].kinds


def _counts_matches(node: ast.Expression, bound: BoundPattern) -> bool:
    """Whether an expression is the number of matches: ``count(*)``, or ``count(v)`` of what is never null."""
    if isinstance(node, ast.FunctionCall) and node.name.lower() == "count" and not node.distinct:
        return (
            len(node.arguments) == 1
            and isinstance(node.arguments[0], ast.Variable)
            and node.arguments[0].name in bound.variables
        )
    return isinstance(node, ast.CountStar)
