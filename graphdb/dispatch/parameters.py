"""What callers give for the parameters of a text: values by name, or by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from graphdb.common.errors import ParameterError

Parameters: TypeAlias = Mapping[str, object] | Sequence[object]
"""Values for ``$name``; or, in a list or tuple, for ``$1``, ``$2`` and so on, and for SQL's ``?``."""


def by_name(parameters: Parameters | None, named: Mapping[str, object]) -> Mapping[str, object]:
    """Return the values of parameters by their names, which are numbers for those by position.

    >>> by_name(["a", "b"], {"x": 3})
    {'1': 'a', '2': 'b', 'x': 3}

    Raises
    ------
    ParameterError
        They are neither a mapping, nor a list or tuple.
    """
    if parameters is None:
        return named
    if isinstance(parameters, Mapping):
        return {**parameters, **named}
    if isinstance(parameters, (list, tuple)):
        return {**{str(i): value for i, value in enumerate(parameters, 1)}, **named}
    raise ParameterError(
        f"parameters are a dictionary or a list, found {type(parameters).__name__}", hint="query(text, {'name': value})"
    )
