"""Calls that are another way to write an expression: GQL's names of functions, and functions that operators define.

What comes out is syntax that every way of running a query knows, so that none of them has to know these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations, pairwise
from typing import TypeAlias

from graphdb.grammar import syntax as s
from graphdb.grammar.walk import is_larger

SAME_AS: Mapping[str, str] = {
    "cardinality": "size",
    "collect_list": "collect",
    "duration_between": "duration.between",
    "element_id": "elementId",
    "local_datetime": "localdatetime",
    "local_time": "localtime",
    "path_length": "length",
    "percentile_cont": "percentileCont",
    "percentile_disc": "percentileDisc",
    "stddev_pop": "stDevP",
    "stddev_samp": "stDev",
    "zoned_datetime": "datetime",
    "zoned_time": "time",
}
"""GQL's names, in lower case, of functions that openCypher calls otherwise."""

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


MOST_REPEATED = 1000
"""Pieces of syntax that an argument and its copies have together: copies of copies would soon be millions."""


def is_too_large(argument: s.Expression, times: int) -> bool:
    """Whether an expression is too large to stand in what is written out so many times."""
    return times > 1 and is_larger(argument, MOST_REPEATED // times)


WRITTEN_OUT: Mapping[str, tuple[Callable[[Arguments, s.Span], s.Expression], int, int, Callable[[int], int]]] = {
    "all_different": (_all_different, 2, 99, lambda arguments: arguments - 1),
    "mod": (_operator("%"), 2, 2, lambda _: 1),
    "nullif": (_null_if, 2, 2, lambda _: 2),
    "power": (_operator("^"), 2, 2, lambda _: 1),
    "same": (_same, 2, 99, lambda arguments: min(arguments - 1, 2)),
}
"""What a call is written out as, by its name in lower case, how many arguments it takes at least and at most, and how
often one of so many stands there."""
