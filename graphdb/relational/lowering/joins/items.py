"""Conditions between rows and the items of a list that becomes rows: what each side is joined by.

``UNWIND $rows AS r WITH a, r WHERE r.k = a.team AND a.age > r.least`` has a row for each of ``$rows`` and each ``a``,
few of which stay.  DuckDB orders joins by how many rows it expects, knows too little of an argument, and may make all
pairs first.  So what such a condition compares is a column of the rows, which are a table, and a column of the items:
there is nothing left to order, and one hash join.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.bind import conjuncts
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables
from graphdb.relational.rewrites.written_lists import calls_anew

_COMPARING = frozenset(("=", "<", "<=", ">", ">="))


def conditions_first(rest: Sequence[ast.ClauseNode]) -> tuple[tuple[ast.Expression, ...], list[ast.ClauseNode]]:
    """Return the conditions of a WITH that begins some clauses, and the clauses without them.

    None where these mean something else before it, or where it does more than to hand on variables.
    """
    clause = rest[0] if rest else None
    if not isinstance(clause, ast.WithClause) or clause.where is None:
        return (), list(rest)
    returns = clause.returns
    if returns.distinct or returns.order_by or returns.skip is not None or returns.limit is not None:
        return (), list(rest)
    named = {item.alias or item.text: item.expression for item in returns.items}
    if any(node != ast.Variable(name) for name, node in named.items()):
        return (), list(rest)
    return tuple(conjuncts(clause.where)), [replace(clause, where=None), *rest[1:]]


def joined_by(
    conditions: Sequence[ast.Expression], rows: Collection[str], item: str
) -> tuple[list[ast.Expression], list[ast.Expression]]:
    """Return what conditions compare of rows with some names, and of an item; none where no two have to be equal."""
    of_rows: dict[ast.Expression, None] = {}
    of_items: dict[ast.Expression, None] = {}
    equal = False
    for condition in conditions:
        for part in walk(condition, (*LOCAL, *SUBQUERIES)):
            if not isinstance(part, ast.Comparison) or len(part.operators) > 1:
                continue
            (operator,) = part.operators
            for own, other in (part.operands, part.operands[::-1]):
                names = free_variables(other)
                if free_variables(own) != {item} or not names or not names <= {*rows} or operator not in _COMPARING:
                    continue
                if all(_is_column(each, alone=part is condition) for each in (own, other)):
                    of_items[own], of_rows[other] = None, None
                    equal = equal or (operator == "=" and part is condition)
    return ([*of_rows], [*of_items]) if equal else ([], [])


def _is_column(node: ast.Expression, *, alone: bool) -> bool:
    """Whether an expression can be a column: one value for each row, whatever else is asked of it.

    Within a condition that is more than a comparison, it may be computed of some rows alone.
    """
    if isinstance(node, ast.Property) and isinstance(node.base, ast.Variable):
        return True
    return alone and not any(isinstance(part, SUBQUERIES) or calls_anew(part) for part in walk(node))
