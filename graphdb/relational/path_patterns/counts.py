"""Numbers of paths that are parameters, ``SHORTEST $k``: their values take their place before anything is bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphdb.common.errors import ParameterError
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import kinds_in, walk
from graphdb.pattern.rename import Node, rewritten
from graphdb.sql.constants import from_numpy


def given_counts(statement: object) -> tuple[int, ...]:
    """Return the numbers of paths of a statement that parameters say, in order: of plain paths none."""
    if isinstance(statement, ast.Query) or ast.Selector not in kinds_in(statement):
        return ()
    return tuple(part.count for part in walk(statement) if isinstance(part, ast.Selector) and part.given is not None)


def with_counts(statement: Node, text: str, arguments: Mapping[str, object]) -> Node:
    """Return a statement with the numbers of paths that its parameters say.

    Raises
    ------
    ParameterError
        One is no integer, or less than 1.
    """
    # A `Query` is of plain paths, and not searched: this stands before every run of one with parameters.
    if isinstance(statement, ast.Query) or ast.Selector not in kinds_in(statement):
        return statement
    if not any(isinstance(part, ast.Selector) and part.given is not None for part in walk(statement)):
        return statement

    def counted(part: object) -> object:
        if not isinstance(part, ast.Selector) or part.given is None:
            return None
        value = from_numpy(arguments[part.given.name])
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ParameterError(f"{ast.NO_COUNT}, found {value!r}", text=text, position=part.given.span.start)
        return replace(part, count=value)

    return rewritten(statement, counted)
