"""Calls that are another way to write an expression: GQL's names of functions, and functions that operators define.

What comes out is syntax that every way of running a query knows, so that none of them has to know these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, pairwise
from typing import TypeAlias

from graphdb.grammar import syntax as s
from graphdb.grammar.walk import is_larger

FORMS = frozenset({"NFC", "NFD", "NFKC", "NFKD"})
"""Unicode's normal forms, which ``normalize`` takes as bare words."""

Arguments: TypeAlias = tuple[s.Expression, ...]


def _all(pairs: list[s.Expression], span: s.Span) -> s.Expression:
    return pairs[0] if len(pairs) == 1 else s.Boolean("AND", tuple(pairs), span)


def _null_if(arguments: Arguments, span: s.Span) -> s.Expression:
    value, other = arguments
    return s.Case(value, (((other,), s.Literal(None)),), value, span)


def _operator(operator: str) -> Callable[[Arguments, s.Span], s.Expression]:
    return lambda arguments, span: s.Binary(operator, arguments[0], arguments[1], span)


def _same(arguments: Arguments, span: s.Span) -> s.Expression:
    return _all([s.Comparison(("=",), pair, span) for pair in pairwise(arguments)], span)


def _all_different(arguments: Arguments, span: s.Span) -> s.Expression:
    return _all([s.Comparison(("<>",), pair, span) for pair in combinations(arguments, 2)], span)


WRITTEN_OUT: Mapping[str, Callable[[Arguments, s.Span], s.Expression]] = {
    "all_different": _all_different,
    "mod": _operator("%"),
    "nullif": _null_if,
    "power": _operator("^"),
    "same": _same,
}
"""What a call is written out as, by its name in lower case (as in :data:`~graphdb.grammar.spelling.ARITIES`)."""

REPEATED: Mapping[str, int] = {"all_different": 99, "nullif": 2, "same": 2}
"""How often an argument of such a call stands in what is written out, at most."""

MOST_REPEATED = 1000
"""Pieces of syntax that an argument and its copies have together: copies of copies would soon be millions."""


def is_too_large(argument: s.Expression, times: int) -> bool:
    """Whether an expression is too large to stand in what is written out so many times."""
    return times > 1 and is_larger(argument, MOST_REPEATED // times)
