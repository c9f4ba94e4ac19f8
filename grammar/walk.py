"""Walking through syntax: what stands directly inside a node, and all that does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

_LEAVES = {"int", "float", "str", "bool", "None", "Span"}
"""Types of fields (as they are annotated) that hold no nodes."""


def parts_of(node: object) -> tuple[object, ...]:
    """Return a tuple itself, what the fields of a node hold (its span and plain values left out), else nothing."""
    if isinstance(node, tuple):
        return node
    return tuple([getattr(node, name) for name in _fields(type(node)) or ()])


def walk(node: object, closed: tuple[type, ...] = ()) -> list[object]:
    """Return a piece of syntax and all pieces inside it, in the order of the text; tuples are not pieces.

    Pieces of ``closed`` kinds are not looked into.
    """
    found, waiting = [], [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting += node[::-1]
            continue
        inside = _fields(type(node))
        if inside is not None:
            found.append(node)
            if closed and isinstance(node, closed):
                continue
            for name in inside[::-1]:
                part = getattr(node, name)
                if part is not None:
                    waiting.append(part)
    return found


def replaced(node: Any, known: Mapping[Any, Any]) -> Any:
    """Return a piece of syntax with other pieces in place of those that ``known`` has."""
    if isinstance(node, tuple):
        return tuple([replaced(item, known) for item in node])
    inside = _fields(type(node))
    if inside is None:
        return node
    if node in known:
        return known[node]
    return replace(node, **{name: replaced(getattr(node, name), known) for name in inside})


_KNOWN: dict[type, tuple[str, ...] | None] = {}


def _fields(kind: type) -> tuple[str, ...] | None:
    """The fields of a class of nodes that may hold others; None for what is no node."""
    if kind not in _KNOWN:
        named = [(part.name, str(part.type).split(" | ")) for part in fields(kind)] if is_dataclass(kind) else []
        inside = tuple(name for name, types in named if not _LEAVES.issuperset(types))
        _KNOWN[kind] = inside if is_dataclass(kind) else None
    return _KNOWN[kind]
