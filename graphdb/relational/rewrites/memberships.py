"""Quantifiers that ask whether a value is in a list, as that question.

``any(x IN xs WHERE x = a.id)`` is ``a.id IN xs``, unknown where that is: of which a match has a set of vertices, and a
row's list a hash join, while a quantifier is tested on each row with each binding.
"""

from __future__ import annotations

import re
from typing import TypeVar

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.rename import rewritten

Query = TypeVar("Query")

_ASKED = {"any": "=", "none": "=", "all": "<>"}
"""The comparison with each item that says whether a value is in a list, by the quantifier."""

_WORDS = re.compile(rf"\b({'|'.join(_ASKED)})\b", re.IGNORECASE)


def with_memberships(query: Query, text: str) -> Query:
    """Return a query of a text with IN for quantifiers that ask no more than it does."""
    if _WORDS.search(text) is None or not any(isinstance(part, ast.ListPredicate) for part in walk(query)):
        return query
    return rewritten(query, _member)


def _member(node: object) -> ast.Expression | None:
    """Return a quantifier as a condition that a value is in a list, or is not; None for anything else.

    The value is one that cannot fail: the quantifier asks for none where the list is empty.
    """
    if isinstance(node, ast.Unary) and node.operator == "NOT":
        found = _member(node.operand)
        return found.operand if isinstance(found, ast.Unary) else None  # NOT none(…)
    if not isinstance(node, ast.ListPredicate) or not isinstance(node.where, ast.Comparison):
        return None
    test = node.where
    if test.operators != (_ASKED.get(node.quantifier),):
        return None
    for item, value in (test.operands, test.operands[::-1]):
        if item == node.variable and _cannot_fail(value, item):
            found = ast.In(value, rewritten(node.source, _member), node.span)
            return found if node.quantifier == "any" else ast.Unary("NOT", found, node.span)
    return None


def as_membership(node: object) -> ast.In | ast.Unary | None:
    """Return a quantifier that compares a property of each map of an argument as whether a value is in a list of these.

    ``any(r IN $rows WHERE r.id = a.id)`` is ``a.id IN [r IN $rows | r.id]``; None for anything else.
    """
    if not isinstance(node, ast.ListPredicate) or not isinstance(node.source, ast.Parameter):
        return None
    test, item = node.where, node.variable
    if not isinstance(test, ast.Comparison) or test.operators != (_ASKED.get(node.quantifier),):
        return None
    for own, value in (test.operands, test.operands[::-1]):
        if isinstance(own, ast.Property) and own.base == item and _cannot_fail(value, item):
            found = ast.In(value, ast.ListComprehension(item, node.source, None, own, node.span), node.span)
            return found if node.quantifier == "any" else ast.Unary("NOT", found, node.span)
    return None


def _cannot_fail(value: ast.Expression, item: ast.Variable) -> bool:
    """Whether a value is one that has nothing to do with an item, and that cannot fail."""
    base = value.base if isinstance(value, ast.Property) else value
    return isinstance(base, ast.Variable | ast.Literal | ast.Parameter) and base != item
