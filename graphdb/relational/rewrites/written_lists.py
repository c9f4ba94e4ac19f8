"""Quantifiers as conditions that a match tests otherwise: of each item of a list that is written out, and IN.

``all(x IN [a, b] WHERE x.k > 1)`` is ``a.k > 1 AND b.k > 1``, with what is unknown as unknown: conditions of one vertex
or edge each, which a match tests as it does any other.

``any(x IN xs WHERE x = a.id)`` is ``a.id IN xs``, unknown where that is: of which a match has a set of vertices, and a
row's list a hash join, while a quantifier is tested on each row with each binding.

``any(x IN $words WHERE a.name ENDS WITH x)`` is ``a.name =~ '(?s).*(?:…|…)'``: one automaton looks for all words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from graphdb.functions.table import SIGNATURE_OF, VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import replaced, walk
from graphdb.pattern.free import LOCAL, SUBQUERIES, free_variables
from graphdb.pattern.rename import rewritten

Query = TypeVar("Query")

_MOST = 8
"""Items of a list up to which a condition is written down for each."""

_ITEMS = (ast.Variable, ast.Literal, ast.Parameter, ast.Property)
"""What an item may be that is named as often as the condition names it."""

_ASKED = {"any": "=", "none": "=", "all": "<>"}
"""The comparison with each item that says whether a value is in a list, by the quantifier."""

_AROUND = {"STARTS WITH": "(?s)(?:{}).*", "ENDS WITH": "(?s).*(?:{})", "CONTAINS": "(?s).*(?:{}).*"}
"""The regular expressions of the texts that begin with one of some words, end with one, or have one in them."""

_MOST_WORDS, _MOST_CHARACTERS = 256, 4096
"""Words, and characters of these together, of which one regular expression is made, at most."""

_WORDS = re.compile(rf"\b({'|'.join(_ASKED)})\b", re.IGNORECASE)


def with_alternatives(query: Query, arguments: Mapping[str, object]) -> Query:
    """Return a query with a regular expression for ``any`` and ``none`` of many words that a text has at a place."""
    quantifiers = [part for part in walk(query) if isinstance(part, ast.ListPredicate)]
    if not any(isinstance(part.where, ast.StringPredicate) for part in quantifiers):
        return query

    def change(node: object) -> ast.Expression | None:
        if not isinstance(node, ast.ListPredicate) or node.quantifier not in ("any", "none"):
            return None
        test, words = node.where, _words(node.source, arguments)
        if words is None or not isinstance(test, ast.StringPredicate) or test.operator not in _AROUND:
            return None
        if test.right != node.variable or node.variable.name in free_variables(test.left):
            return None
        if any(isinstance(part, (*LOCAL, *SUBQUERIES)) or calls_anew(part) for part in walk(test.left)):
            return None
        pattern = _AROUND[test.operator].format("|".join(map(re.escape, words)))
        found = ast.StringPredicate("=~", test.left, ast.Literal(pattern, node.span), node.span)
        return found if node.quantifier == "any" else ast.Unary("NOT", found, node.span)

    return rewritten(query, change)


def _words(source: ast.Expression, arguments: Mapping[str, object]) -> Sequence[str] | None:
    """Return the texts of a list, where these are many and fit into a regular expression."""
    found: object = None
    match source:
        case ast.Parameter(name) if name in arguments:
            found = arguments[name]
        case ast.Literal(tuple() as items):
            found = items
        case ast.ListLiteral(items) if all(isinstance(item, ast.Literal) for item in items):
            found = [item.value for item in items if isinstance(item, ast.Literal)]
    if not isinstance(found, list | tuple) or not _MOST < len(found) <= _MOST_WORDS or {*map(type, found)} != {str}:
        return None
    text = "".join(found)
    return found if len(text) <= _MOST_CHARACTERS and "\0" not in text else None


def without_quantifiers(query: Query) -> Query:
    """Return a query without ``all``, ``any`` and ``none`` over lists that are written out."""
    if not any(map(_is_written, walk(query))):
        return query
    return rewritten(query, lambda node: _of_items(node) if _is_written(node) else None)


def _is_written(node: object) -> bool:
    """Whether an expression is such a quantifier, whose condition brings in no names that an item might have."""
    if not isinstance(node, ast.ListPredicate) or node.quantifier not in ("all", "any", "none") or node.where is None:
        return False
    if not isinstance(node.source, ast.ListLiteral) or not 0 < len(node.source.items) <= _MOST:
        return False
    if not all(isinstance(part, _ITEMS) for item in node.source.items for part in walk(item) if _is_value(part)):
        return False
    return not any(isinstance(part, (*LOCAL, *SUBQUERIES)) or calls_anew(part) for part in walk(node.where))


def _is_value(part: object) -> bool:
    return isinstance(part, ast.Expression)


def calls_anew(part: object) -> bool:
    """Whether a function is called that may yield something else each time, or of many rows."""
    if not isinstance(part, ast.FunctionCall):
        return isinstance(part, ast.CountStar)
    signature = SIGNATURE_OF.get(part.name.lower())
    return part.name.lower() in VOLATILE or signature is None or signature.aggregate


def _of_items(node: object) -> ast.Expression:
    assert isinstance(node, ast.ListPredicate)
    assert isinstance(node.source, ast.ListLiteral)
    tests = tuple(replaced(node.where, {node.variable: item}) for item in node.source.items)
    return quantified(node.quantifier, tests, node.span)


def quantified(quantifier: str, tests: Sequence[ast.Expression], span: ast.Span) -> ast.Expression:
    """Return whether conditions hold for all, any, none or a single one of some items, one condition for each."""
    if not tests:
        return ast.Literal(quantifier in ("all", "none"), span)
    if quantifier == "single":
        return _of_one(tests, span)
    if quantifier == "none":
        tests = tuple(ast.Unary("NOT", test, span) for test in tests)
    return tests[0] if len(tests) == 1 else ast.Boolean("OR" if quantifier == "any" else "AND", tuple(tests), span)


def _of_one(tests: Sequence[ast.Expression], span: ast.Span) -> ast.Expression:
    """Return whether a single one of some conditions holds: unknown where one is, unless two others hold."""
    if len(tests) == 1:
        return tests[0]
    one, holding = ast.Literal(1, span), counted(tests, span)
    unknown = ast.Boolean("OR", tuple(ast.IsNull(test, span=span) for test in tests), span)
    several = ast.Comparison((">",), (holding, one), span)
    branches = (((several,), ast.Literal(False, span)), ((unknown,), ast.Literal(None, span)))
    return ast.Case(None, branches, ast.Comparison(("=",), (holding, one), span), span)


def counted(tests: Sequence[ast.Expression], span: ast.Span) -> ast.Expression:
    """Return how many of some conditions hold."""
    one, none = ast.Literal(1, span), ast.Literal(0, span)
    found: ast.Expression = none
    for test in tests:
        found = ast.Binary("+", found, ast.Case(None, (((test,), one),), none, span), span)
    return found


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
