"""Which conditions can raise an error on some value, and so are evaluated after the match only.

A condition on one vertex is usually tested before the match, on all vertices with the property.  One that can fail
would fail there on vertices that the pattern never comes to: ``MATCH (n:N) WHERE 10 / n.y > 1`` on a ``y`` of 0 that
is no ``:N``'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from graphdb.common.errors import BindError
from graphdb.common.values.terms import Kind
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.names import Names

_TAKE_ANYTHING = frozenset(
    "coalesce datatype elementid exists id iri keys labels lang predicate properties type".split()
)
"""Functions that do not fail on a value of another type."""
_SMALL = 1000
"""Years, days and the like of which no duration is too long."""
_CUTS = frozenset({"substring", "left", "right"})
_MADE_OF_TEXT = frozenset({"date", "localtime", "time", "localdatetime", "datetime", "duration"})
"""Functions (and what their names begin with, before a dot) that fail on a text that says something else."""
_TEXTS = 1 << Kind.STRING | 1 << Kind.LANGSTRING | 1 << Kind.OTHER
"""Kinds of literals that are all texts."""


def can_fail(condition: ast.Expression, names: Names, text: str) -> bool:
    """Whether a condition has values that it fails at: zeros, negative lengths, no dates, values of several types."""
    for part in walk(condition):
        match part:
            case ast.Binary(operator="/" | "%", right=right) if not (isinstance(right, ast.Literal) and right.value):
                return True
            case ast.Binary() | ast.Unary(operator="-") | ast.Subscript() | ast.Slice() if _is_mixed(part, names, text):
                return True
            case ast.Property(base=ast.Property() as base) if _is_mixed(base, names, text):
                return True
            case ast.StringPredicate(operator="=~", right=right) if not isinstance(right, ast.Literal | ast.Parameter):
                return True
            case ast.FunctionCall(name=name, arguments=(_, _, *step)) if name.lower() == "range":
                if not all(isinstance(bound, ast.Literal) for bound in part.arguments):
                    return True  # there are no ranges to and from null
                if any(isinstance(each, ast.Literal) and not each.value for each in step):
                    return True
            case ast.FunctionCall(name=name) if name.lower().partition(".")[0] in _MADE_OF_TEXT:
                if any(isinstance(each, ast.MapLiteral) and not _is_plain(name, each) for each in part.arguments):
                    return True  # there may be no such month
                if any(kinds & _TEXTS for kinds in _kinds(part, names, text)):
                    return True
            case ast.FunctionCall(name=name) if name.lower() not in _TAKE_ANYTHING and _is_mixed(part, names, text):
                return True
            case ast.FunctionCall(name=name, arguments=(_, *lengths)) if name.lower() in _CUTS:
                if not all(isinstance(length, ast.Literal) for length in lengths):
                    return True
    return False


def _is_plain(name: str, parts: ast.MapLiteral) -> bool:
    """Whether a map says how long something takes in small integers, which there is a duration of."""
    values = [value.value if isinstance(value, ast.Literal) else None for _, value in parts.items]
    return name.lower() == "duration" and all(type(each) is int and abs(each) <= _SMALL for each in values)


def can_fail_somewhere(node: ast.Expression, names: Names, text: str) -> bool:
    """Whether an expression or a subquery in it fails for some values, or at several values where one is needed."""
    if can_fail(node, names, text):
        return True
    for operand in (operand for part in walk(node) for operand in _taken(part) if isinstance(operand, ast.Property)):
        with suppress(BindError):
            if names.property(operand.key.words, text).max_values > 1:
                return True
    return False


def _taken(node: object) -> tuple[ast.Expression, ...]:
    """Return what an expression takes one value of."""
    match node:
        case ast.Binary(left=left, right=right):
            return left, right
        case ast.Unary(operator="+" | "-", operand=operand):
            return (operand,)
        case ast.FunctionCall(name=name, arguments=arguments) if name.lower() not in _TAKE_ANYTHING:
            return arguments
    return ()


def computes(condition: ast.Expression) -> bool:
    """Whether arithmetic in a condition may fail, whatever the values are of: zeros, and numbers out of range."""
    return any(
        isinstance(part, ast.Binary) or (isinstance(part, ast.Unary) and part.operator != "NOT")
        for part in walk(condition)
    )


def _is_mixed(node: ast.Expression, names: Names, text: str) -> bool:
    """Whether there are properties in an expression whose values have several types."""
    return any(kinds & ~_TEXTS and kinds.bit_count() > 1 for kinds in _kinds(node, names, text))


def _kinds(node: ast.Expression, names: Names, text: str) -> Iterator[int]:
    """Yield the kinds of values of each property in an expression."""
    for part in walk(node):
        if isinstance(part, ast.Property):
            with suppress(BindError):  # reported where it is compiled
                yield names.property(part.key.words, text).kinds


_COMPUTED = (ast.Binary, ast.Unary, ast.FunctionCall, ast.Subscript, ast.Slice)
"""What may fail for some values."""


def may_compute(node: ast.Expression) -> bool:
    """Whether an expression, or a subquery in it, computes what might fail, whatever properties there are."""
    return any(isinstance(part, _COMPUTED) for part in walk(node))
