"""Substitution in syntax trees: variables renamed, expressions replaced by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import mapped

Node = TypeVar("Node")


def rewritten(node: Node, change: Callable[[object], object]) -> Node:
    """Return syntax in which ``change`` says what stands in the place of a piece; None: the piece, rewritten inside."""
    found = change(node)
    if found is not None:
        return found  # type: ignore[return-value]
    return mapped(node, lambda part: rewritten(part, change))  # type: ignore[no-any-return]


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return syntax with some variables called otherwise."""
    return rewritten(
        node,
        lambda part: (
            ast.Variable(names[part.name], part.span) if isinstance(part, ast.Variable) and part.name in names else None
        ),
    )
