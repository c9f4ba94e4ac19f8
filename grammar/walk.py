"""Walking through syntax: what stands directly inside a node, and all that does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from operator import is_
from typing import Any

from graphdb.common.caches import ByIdentity

_LEAVES = {"int", "float", "str", "bool", "None", "Span", "Constants"}
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
    if closed or not is_node(node):
        return _walked(node, closed)
    known = _WALKED.get(node)
    if known is None:
        known = _walked(node, closed)
        if len(known) > _MOST_PIECES:
            return known
        _WALKED.put(node, known)
    return known.copy()


def kinds_in(node: object) -> frozenset[type]:
    """Return the types of all pieces of a piece of syntax: what walks would look for in vain is known at once."""
    known = _KINDS.get(node)
    if known is None:
        pieces = walk(node)
        known = frozenset(map(type, pieces))
        if len(pieces) <= _MOST_PIECES:
            _KINDS.put(node, known)
    return known


_KINDS: ByIdentity[frozenset[type]] = ByIdentity(1024)

_MOST_PIECES = 500
"""Pieces of a walk that is remembered, at most."""

_WALKED: ByIdentity[list[object]] = ByIdentity(1024)


def _walked(node: object, closed: tuple[type, ...]) -> list[object]:
    found, waiting = [], [node]
    while waiting:
        node = waiting.pop()
        kind = type(node)
        inside = _KNOWN[kind] if kind in _KNOWN else _fields(kind)
        if inside is not None:
            found.append(node)
            if closed and isinstance(node, closed):
                continue
            for name in inside[::-1]:
                part = getattr(node, name)
                if part is not None:
                    waiting.append(part)
        elif isinstance(node, tuple):
            waiting += node[::-1]
    return found


def is_larger(node: object, most: int) -> bool:
    """Whether a piece of syntax has more than ``most`` pieces inside; no more than these are looked at."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting += node
            continue
        inside = _fields(type(node))
        if inside is not None:
            most -= 1
            if most < -1:
                return True
            waiting += [part for name in inside if (part := getattr(node, name)) is not None]
    return False


def replaced(node: Any, known: Mapping[Any, Any]) -> Any:
    """Return a piece of syntax with other pieces in place of those that ``known`` has."""
    if is_node(node) and node in known:
        return known[node]
    return mapped(node, lambda part: replaced(part, known))


def mapped(node: Any, function: Callable[[Any], Any]) -> Any:
    """Return a node (or a tuple) with what a function makes of each piece that stands directly inside it.

    It is the node itself where all of them stay what they are.
    """
    if isinstance(node, tuple):
        items = tuple([function(item) for item in node])
        return node if all(map(is_, items, node)) else items
    changed = {}
    for name in _fields(type(node)) or ():
        part = getattr(node, name)
        new = function(part)
        if new is not part:
            changed[name] = new
    return replace(node, **changed) if changed else node


def is_node(part: object) -> bool:
    """Whether something is a node of syntax, not a tuple or a plain value."""
    return _fields(type(part)) is not None


_KNOWN: dict[type, tuple[str, ...] | None] = {}


def _fields(kind: type) -> tuple[str, ...] | None:
    """The fields of a class of nodes that may hold others; None for what is no node."""
    if kind not in _KNOWN:
        named = [(part.name, str(part.type).split(" | ")) for part in fields(kind)] if is_dataclass(kind) else []
        inside = tuple(name for name, types in named if not _LEAVES.issuperset(types))
        _KNOWN[kind] = inside if is_dataclass(kind) else None
    return _KNOWN[kind]
