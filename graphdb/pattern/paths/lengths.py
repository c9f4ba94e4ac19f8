"""Path variables after a match: conditions on them are separated, and path lengths become variables."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from graphdb.grammar import syntax as ast
from graphdb.pattern.bind import conjuncts, variables_in
from graphdb.pattern.rename import rewritten

Node = TypeVar("Node")


def without(
    matches: tuple[ast.MatchClause, ...], names: Collection[str]
) -> tuple[tuple[ast.MatchClause, ...], tuple[ast.Expression, ...]]:
    """Return MATCH clauses without the conditions that mention some names, and those conditions."""
    after: list[ast.Expression] = []
    found = []
    for match in matches:
        within: list[ast.Expression] = []
        for condition in conjuncts(match.where):
            (after if not variables_in(condition).isdisjoint(names) else within).append(condition)
        found.append(replace(match, where=all_hold(within, match.span)))
    return tuple(found), tuple(after)


def all_hold(conditions: Collection[ast.Expression], span: ast.Span) -> ast.Expression | None:
    """Return the condition that all of some hold; None for none."""
    found = tuple(conditions)
    return ast.Boolean("AND", found, span) if len(found) > 1 else (found[0] if found else None)


def with_lengths(node: Node, paths: Collection[str]) -> Node:
    """Return syntax in which ``length(p)`` of some paths is a variable of its own, :func:`length_name`."""

    def change(part: object) -> object:
        if isinstance(part, ast.FunctionCall) and part.name.lower() == "length" and len(part.arguments) == 1:
            (argument,) = part.arguments
            if isinstance(argument, ast.Variable) and argument.name in paths:
                return ast.Variable(length_name(argument.name), part.span)
        return None

    return rewritten(node, change) if paths else node


def length_name(path: str) -> str:
    """Return the variable that holds the length of a path."""
    return f"{_LENGTH} {path}"


def is_length(name: str) -> bool:
    """Whether a variable holds the length of a path."""
    return name.startswith(_LENGTH)


OF_PATHS = "#path"
"""How the names of variables begin that stand for something of a path."""

_LENGTH = f"{OF_PATHS} length of"
