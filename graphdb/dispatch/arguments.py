"""The parameters that a text names, and the values that it is given for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache

from graphdb.common.errors import (
    ParameterError,
    nearest,
)
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse_script
from graphdb.grammar.walk import walk


def check_arguments(text: str, arguments: Mapping[str, object], implied: Callable[[], Collection[str]]) -> None:
    """Refuse a value for a parameter that the text does not have: it is a mistake more often than not.

    ``implied`` tells those that it has without naming them.
    """
    used = _parameters(text)
    for name, parameter in used.items():
        if name not in arguments:
            raise ParameterError.missing(name, arguments, text, parameter.span.start)
    for name in arguments:
        if name not in used and name not in implied():
            near = nearest(name, used)
            raise ParameterError(
                f"the statement has no parameter ${name}", hint=f"did you mean ${near[0]}?" if near else None
            )


def parameters_named(text: str) -> tuple[str, ...]:
    """Return the names of the parameters of a text, in their order.

    Raises
    ------
    ParseError
        The text is no statement.
    """
    parse_script(text)
    return tuple(_parameters(text))


@lru_cache(maxsize=512)
def _parameters(text: str) -> Mapping[str, ast.Parameter]:
    """Return the parameters that a text names."""
    if "$" not in text:
        return {}
    return {part.name: part for part in walk(parse_script(text)) if isinstance(part, ast.Parameter)}
