"""Substitution in syntax trees: variables renamed, expressions replaced by others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from graphdb.grammar import syntax as ast

Node = TypeVar("Node")


def rewritten(node: Node, change: Callable[[object], object]) -> Node:
    """Return syntax in which ``change`` says what stands in the place of a piece; None: the piece, rewritten inside."""
    found = change(node)
    if found is not None:
        return found  # type: ignore[return-value]
    if isinstance(node, tuple):
        return tuple(rewritten(item, change) for item in node)  # type: ignore[return-value]
    if not is_dataclass(node) or isinstance(node, type):
        return node
    parts: dict[str, Any] = {part.name: getattr(node, part.name) for part in fields(node) if part.name != "span"}
    changed = {name: rewritten(part, change) for name, part in parts.items()}
    return node if all(changed[name] is parts[name] for name in parts) else replace(node, **changed)


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """Return syntax with some variables called otherwise."""
    return rewritten(
        node,
        lambda part: (
            ast.Variable(names[part.name], part.span) if isinstance(part, ast.Variable) and part.name in names else None
        ),
    )
