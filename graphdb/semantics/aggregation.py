"""Which calls are aggregates, and what may stand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeGuard, TypeVar

from graphdb.common.stopping import check_stop
from graphdb.functions.table import SIGNATURES
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import kinds_in, parts_of
from graphdb.pattern.free import free_variables

Known = TypeVar("Known")

AGGREGATES = frozenset(name for s in SIGNATURES if s.aggregate for name in (s.key, *s.aliases))
"""The names of aggregates, in lower case."""

_CALLS = frozenset({ast.CountStar, ast.FunctionCall})


def is_aggregate(node: object) -> TypeGuard[ast.FunctionCall | ast.CountStar]:
    """Whether a piece of syntax is an aggregate."""
    return isinstance(node, ast.CountStar) or (isinstance(node, ast.FunctionCall) and node.name.lower() in AGGREGATES)


def aggregates_in(node: object) -> Iterator[ast.FunctionCall | ast.CountStar]:
    """Yield the aggregates of an expression, those in subqueries left out: they are their own."""
    for part in node if isinstance(node, tuple) else (node,):
        if not kinds_in(part).isdisjoint(_CALLS):  # most expressions call nothing
            yield from _aggregates_in(part)


def _aggregates_in(node: object) -> Iterator[ast.FunctionCall | ast.CountStar]:
    if is_aggregate(node):
        yield node
    elif not isinstance(node, ast.Subquery):
        for part in parts_of(node):
            yield from _aggregates_in(part)


def contains_aggregate(node: object) -> bool:
    """Whether an expression has an aggregate in it."""
    check_stop()
    return next(aggregates_in(node), None) is not None


def is_plain_key(expression: ast.Expression) -> bool:
    """Whether a returned column may stand beside an aggregate, as ``v.key + count(*)``: a variable or a property.

    openCypher takes no others, so that what is grouped by need not be looked for inside other expressions.
    """
    while isinstance(expression, ast.Property):
        expression = expression.base
    return isinstance(expression, ast.Variable)


def unshadowed(
    known: Mapping[ast.Expression, Known], columns: Iterable[tuple[str, ast.Expression]]
) -> dict[ast.Expression, Known]:
    """Return the expressions that mean the same behind a clause: no other column is called as one of their variables.

    After ``RETURN a.k AS x, b AS a``, say, ``a.k`` is a property of what was ``b``, not ``x``.  Aggregates are of the
    rows before the clause in any case.
    """
    others = {name for name, value in columns if not (isinstance(value, ast.Variable) and value.name == name)}
    return {
        expression: value
        for expression, value in known.items()
        if not others & free_variables(expression) or contains_aggregate(expression)
    }
