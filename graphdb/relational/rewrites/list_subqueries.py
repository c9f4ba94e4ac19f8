"""Subqueries that see the items of a list, rewritten: the items become the rows of a subquery, in which they stand.

``[x IN xs | COUNT { (x)-->() }]`` is null where ``xs`` is, else ``COLLECT { UNWIND xs AS x RETURN COUNT { … } }``.
A quantifier asks the list of what its condition yields for each item; ``reduce`` goes over lists that have, beside each
item, what its subqueries yield for it.  Where one of these depends on what was accumulated, it stays as it is: the
evaluator runs it (:mod:`graphdb.evaluate.subqueries`).
"""

from __future__ import annotations

from typing import Any

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import mapped, replaced, walk
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables, subqueries_in

_ITEM = "item of a list"
"""What an item is called, with its number: no user's name, which something else around the list may have."""


def sees_items(node: object) -> bool:
    """Whether some subquery may see the items of a list."""
    return any(
        isinstance(part, LOCAL) and any(isinstance(inner, SUBQUERIES) for inner in walk(part)) for part in walk(node)
    )


def with_rows(node: Any, depth: int = 0) -> Any:
    """Return syntax in which no subquery sees the items of a list, but for what depends on an accumulator."""
    if isinstance(node, LOCAL):
        node = mapped(node, lambda part: with_rows(part, depth + 1))
        if any(subqueries_in(tuple(_bodies(node)))):
            return _of_rows(node, f"{_ITEM} {depth}")
        return node
    return mapped(node, lambda part: with_rows(part, depth))


def _bodies(node: Any) -> list[ast.Expression]:
    """Return the expressions that see an item."""
    parts = (node.step,) if isinstance(node, ast.Reduce) else (node.where, getattr(node, "result", None))
    return [part for part in parts if part is not None]


def _of_rows(node: Any, name: str) -> Any:
    item = ast.Variable(name, node.variable.span)
    named = {node.variable: item}
    if isinstance(node, ast.ListComprehension):
        where = None if node.where is None else replaced(node.where, named)
        return _collected(node, item, item if node.result is None else replaced(node.result, named), where)
    if isinstance(node, ast.ListPredicate):
        answers = _collected(node, item, replaced(node.where, named))
        return ast.ListPredicate(node.quantifier, item, answers, item, node.span)
    found = list(dict.fromkeys(subqueries_in(node.step)))
    if any(node.accumulator.name in free_variables(part) for part in found):
        return node  # only the evaluator knows what was accumulated
    beside = ast.ListLiteral((item, *(replaced(part, named) for part in found)), node.span)

    def at(place: int) -> ast.Expression:
        return ast.Subscript(item, ast.Literal(place, node.span), node.span)

    step = replaced(node.step, {part: at(i + 1) for i, part in enumerate(found)})
    step = replaced(step, {node.variable: at(0)})
    return ast.Reduce(node.accumulator, node.start, item, _collected(node, item, beside), step, node.span)


def _collected(
    node: Any, item: ast.Variable, value: ast.Expression, where: ast.Expression | None = None
) -> ast.Expression:
    """Return the list of what an expression yields for the items of a list: null where that is."""
    clauses: list[ast.ClauseNode] = [ast.UnwindClause(node.source, item, node.span)]
    if where is not None:
        star = ast.ReturnClause((), star=True, span=node.span)
        clauses.append(ast.WithClause(star, where, node.span))
    clauses.append(ast.ReturnClause((ast.ReturnItem(value, "item", "item", node.span),), span=node.span))
    rows = ast.Subquery("collect", ast.Composite((tuple(clauses),), True, node.span), node.span)
    there = ast.IsNull(node.source, True, node.span)
    return ast.Case(None, (((there,), rows),), None, node.span)
