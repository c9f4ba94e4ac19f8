"""A procedure's signature: ``my.proc(in :: INTEGER?) :: (out :: STRING?)``, as text or from a Python function."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from graphdb.common.errors import GraphDBError
from graphdb.procedures.types import ANY, ValueType, type_of

_PART = r"(?:[^\W\d]\w*|`[^`]+`)"
_NAME = re.compile(rf"\s*{_PART}(?:\.{_PART})+\s*")
_FIELD = re.compile(rf"\s*({_PART})\s*::\s*([^,()]+)")
_FORM = "name.space(in :: INTEGER?) :: (out :: STRING?)"


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter or a column: its name and type."""

    name: str
    type: ValueType

    def __str__(self) -> str:
        return f"{self.name} :: {self.type}"


@dataclass(frozen=True, slots=True)
class Signature:
    """A procedure's name, parameters (of which the first ``required`` must be given) and columns."""

    name: str
    parameters: tuple[Field, ...] = ()
    columns: tuple[Field, ...] = ()
    required: int = 0

    def __str__(self) -> str:
        inside, outside = (", ".join(map(str, fields)) for fields in (self.parameters, self.columns))
        return f"{self.name}({inside}) :: ({outside})"


def signature_of(
    name: str,
    function: Callable[..., object],
    parameters: Mapping[str, object] | None = None,
    columns: Mapping[str, object] | None = None,
) -> Signature:
    """Return the signature that a text says or, where that is a name alone, what is said of it besides.

    Parameters that nobody says are those of the function, with their annotations; those that have defaults there may be
    left out.  Without columns a procedure yields nothing.

    Raises
    ------
    GraphDBError
        The text is no signature, the name has no namespace, or a type is none.
    """
    text = name
    found = _NAME.match(name)
    if found is None:
        hint = f"write {_FORM}, or its name alone"
        raise GraphDBError(f"{text!r} is no name of a procedure: it needs a namespace", hint=hint)
    name = found.group().strip().replace("`", "")
    rest = text[found.end() :].strip()
    if rest:
        if parameters is not None or columns is not None:
            raise GraphDBError(f"the parameters and columns of '{name}' are said twice")
        given, produced = _parsed(rest, text)
    else:
        said = _annotated(function) if parameters is None else parameters
        given = tuple(Field(each, type_of(type)) for each, type in said.items())
        produced = tuple(Field(each, type_of(type)) for each, type in (columns or {}).items())
    for fields in (given, produced):
        if len({field.name for field in fields}) < len(fields):
            raise GraphDBError(f"a name stands twice in the signature of '{name}'")
    refused = [field for field in produced if field.type.name in ("RELATIONSHIP", "PATH")]
    if refused:
        raise GraphDBError(f"a procedure cannot yield a {refused[0].type.name}: '{refused[0].name}' of '{name}'")
    return Signature(name, given, produced, _required(function, len(given)))


def _parsed(rest: str, text: str) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
    """Return the parameters and columns of ``(in :: INTEGER?) :: (out :: STRING?)``, or ``:: VOID``."""
    found = re.fullmatch(r"\(([^()]*)\)\s*::\s*(?:\(([^()]*)\)|VOID)", rest, re.IGNORECASE)
    if found is None:
        raise GraphDBError(f"{text!r} is no signature", hint=f"write {_FORM}")
    return _fields(found[1], text), _fields(found[2] or "", text)


def _fields(part: str, text: str) -> tuple[Field, ...]:
    fields = []
    for each in part.split(",") if part.strip() else ():
        found = _FIELD.fullmatch(each)
        if found is None:
            raise GraphDBError(f"{each.strip()!r} in {text!r} is not 'name :: TYPE'", hint=f"write {_FORM}")
        fields.append(Field(found[1].strip("`"), type_of(found[2].strip())))
    return tuple(fields)


def _annotated(function: Callable[..., object]) -> dict[str, object]:
    """Return the parameters of a function with their annotations."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        hint = "say them: parameters={'name': 'STRING?'}"
        raise GraphDBError(f"{function!r} does not tell its parameters", hint=hint) from None
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):
        hints = {}
    found: dict[str, object] = {}
    for parameter in parameters:
        if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            hint = "say them: parameters={'name': 'STRING?'}"
            raise GraphDBError(f"'{parameter.name}' of {function!r} is not passed by its place", hint=hint)
        found[parameter.name] = hints.get(parameter.name, ANY)
    return found


def _required(function: Callable[..., object], count: int) -> int:
    """Return how many of so many arguments a function must be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return count
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return next((i for i, place in enumerate(places[:count]) if place.default is not place.empty), count)
