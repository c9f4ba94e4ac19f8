"""The parameters that a text names, and the values that it is given for them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import TypeVar

from graphdb.common.arguments import encodes
from graphdb.common.errors import ParameterError, nearest
from graphdb.common.values.temporal import DateTime
from graphdb.common.values.temporal_build import zones_like
from graphdb.common.values.temporal_python import is_known
from graphdb.grammar import syntax as ast
from graphdb.grammar.parser import parse_script
from graphdb.grammar.walk import walk

E = TypeVar("E", bound=Exception)

_RIGHT = frozenset({bool, int, float, list, type(None)})
"""Types of which nothing is wrong with a value before it is used."""


def check_arguments(text: str, arguments: Mapping[str, object], implied: Callable[[], Collection[str]]) -> None:
    """Refuse a value for a parameter that the text does not have: it is a mistake more often than not.

    ``implied`` tells those that it has without naming them.
    """
    used = _parameters(text)
    for name, parameter in used.items():
        if name not in arguments and f"${name}" in arguments:
            raise ParameterError(
                f"parameter ${name} is given as '${name}'",
                text=text,
                position=parameter.span.start,
                hint=f"name it without the $: {{'{name}': …}}",
            )
        if name not in arguments:
            raise ParameterError.missing(name, arguments, text, parameter.span.start)
        if (value := arguments[name]).__class__ in _RIGHT:
            continue
        if isinstance(value, str) and not encodes(value):
            raise _no_text(name, text, parameter)
        if isinstance(value, DateTime) and value.zone is not None and not is_known(value.zone):
            raise ParameterError(
                f"parameter ${name} is in an unknown time zone, '{value.zone}'",
                text=text,
                position=parameter.span.start,
                hint=zones_like(value.zone),
            )
    for name in arguments:
        if name not in used and name not in implied():
            near = nearest(name, used)
            raise ParameterError(
                f"the statement has no parameter ${name}", hint=f"did you mean ${near[0]}?" if near else None
            )


def naming_no_text(error: E, text: str, arguments: Mapping[str, object]) -> E | ParameterError:
    """Return the error of a lone surrogate as one that names the parameter which has it; others as they are.

    It is looked for only now: lists of many rows are read once, where they are converted.
    """
    if "surrogate" not in str(error):
        return error
    used = _parameters(text)
    names = [name for name, value in arguments.items() if name in used and not _is_text(value)]
    return _no_text(names[0], text, used[names[0]]) if names else error


def _no_text(name: str, text: str, parameter: ast.Parameter) -> ParameterError:
    return ParameterError(
        f"parameter ${name} has a lone surrogate, which is no character",
        text=text,
        position=parameter.span.start,
        hint="encode the text with errors='surrogatepass', or replace it",
    )


def _is_text(value: object) -> bool:
    """Whether a value has no text with a lone surrogate."""
    match value:
        case str():
            return encodes(value)
        case Mapping():
            return all(map(_is_text, value)) and all(map(_is_text, value.values()))
        case list() | tuple() | set() | frozenset():
            return all(map(_is_text, value))
    return True


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
