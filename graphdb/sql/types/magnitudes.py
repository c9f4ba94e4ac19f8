"""Bounds of the integers that expressions yield, as far as these say them: what is bounded enough overflows nowhere."""

from __future__ import annotations

from graphdb.grammar import syntax as ast

LARGEST = (1 << 63) - 1
_UNKNOWN = LARGEST + 1
_MOST_ITEMS = 1 << 40
"""What the functions in :data:`_COUNTS` return at most: memory holds no more items."""
_COUNTS = frozenset({"size", "length", "count", "id", "charlength", "char_length", "character_length"})
_CHOSEN = frozenset({"abs", "coalesce"})
"""Functions that return one of their arguments, but for its sign."""


def magnitude(node: ast.Expression | None) -> int:
    """Return what an integer's absolute value is at most, as far as its expression says so; 2^63 if it does not.

    >>> from graphdb.grammar.parser import parse
    >>> magnitude(parse("RETURN 2 * (size([1]) % 10 + CASE WHEN 1 < 2 THEN 1 ELSE -3 END)").returns.items[0].expression)
    24
    """
    return min(_bound(node), _UNKNOWN)


def _bound(node: ast.Expression | None) -> int:
    match node:
        case None | ast.Literal(None):
            return 0
        case ast.Literal(bool()):
            return _UNKNOWN
        case ast.Literal(int() as value):
            return abs(value)
        case ast.CountStar() | ast.Subquery(kind="count"):
            return _MOST_ITEMS
        case ast.Unary(operator="+" | "-", operand=operand):
            return magnitude(operand)
        case ast.Binary(operator="+" | "-", left=left, right=right):
            return magnitude(left) + magnitude(right)
        case ast.Binary(operator="*", left=left, right=right):
            return magnitude(left) * magnitude(right)
        case ast.Binary(operator="/", left=left):
            return magnitude(left)
        case ast.Binary(operator="%", left=left, right=right):
            return min(magnitude(left), max(magnitude(right) - 1, 0))
        case ast.Case(branches=branches, otherwise=otherwise):
            return max(magnitude(otherwise), *(magnitude(result) for _, result in branches))
        case ast.FunctionCall(name=name, arguments=arguments):
            return _of_call(name.lower(), arguments)
    return _UNKNOWN


def _of_call(name: str, arguments: tuple[ast.Expression, ...]) -> int:
    if name in _COUNTS:
        return _MOST_ITEMS
    if name == "sign":
        return 1
    return max(map(magnitude, arguments)) if name in _CHOSEN and arguments else _UNKNOWN
