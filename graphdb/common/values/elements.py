"""The values that are not plain Python values: vertices, edges and paths of a result."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator, KeysView, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from graphdb.common.errors import nearest

Element = TypeVar("Element")


def filled(kind: type[Element], count: int, **columns: Iterable[object]) -> list[Element]:
    """Return so many elements with the values of some columns in their slots.

    They are made a column at a time, by loops in C: a third of what a call for each element takes.
    """
    made: list[Element] = list(map(object.__new__, repeat(kind, count)))
    fill(kind, made, **columns)
    return made


def fill(kind: type[Element], elements: Iterable[Element], **columns: Iterable[object]) -> None:
    """Put the values of some columns into the slots of elements."""
    for name, column in columns.items():
        deque(map(getattr(kind, name).__set__, elements, column), maxlen=0)


@contextmanager
def without_collection() -> Iterator[None]:
    """Make very many values without Python's cycle collector going through all of them again and again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class _Element:
    """What has properties, which are found by their keys as in a mapping: by a bare name, too, where one key has it."""

    __slots__ = ()
    if TYPE_CHECKING:

        @property
        def properties(self) -> Mapping[str, object]: ...

    def __getitem__(self, key: str) -> object:
        """Return a property; `KeyError` if there is none of that name."""
        found = self._key(key)
        if found is not None:
            return self.properties[found]
        near = (self._of_local_name(key) or nearest(key, self.properties)) if isinstance(key, str) else []
        raise KeyError(f"{key}: did you mean {' or '.join(map(repr, near))}?" if near else key)

    def __contains__(self, key: object) -> bool:
        """Whether there is a property of that name."""
        return self._key(key) is not None

    def __iter__(self) -> Iterator[str]:
        """Yield the keys of the properties."""
        return iter(self.properties)

    def keys(self) -> KeysView[str]:
        """Return the keys of the properties: ``dict(vertex)`` is a dictionary of them."""
        return self.properties.keys()

    def get(self, key: str, default: object = None) -> object:
        """Return a property, or what stands for one that is not there."""
        found = self._key(key)
        return default if found is None else self.properties[found]

    def _key(self, key: object) -> str | None:
        """Return the key of the property of that name, None if there is none or, of a bare name, several."""
        if isinstance(key, str) and key in self.properties:
            return key
        found = self._of_local_name(key)
        return found[0] if len(found) == 1 else None

    def _of_local_name(self, name: object) -> list[str]:
        """Return the keys, IRIs or prefixed names, that end in a bare name."""
        if not isinstance(name, str) or not name.isidentifier():
            return []
        return [key for key in self.properties if key.endswith(name) and key[-len(name) - 1 : -len(name)] in _BEFORE]


_BEFORE = frozenset("/#:")
"""What stands before the local name of an IRI, or of a prefixed name."""


@dataclass(frozen=True, slots=True)
class Node(_Element):
    """A vertex: its IRI (``_:…`` for a blank node), labels (sorted) and properties, names as a user would write them.

    Two nodes are equal if they have the same IRI.
    """

    iri: str
    labels: tuple[str, ...] = field(default=(), compare=False)
    properties: Mapping[str, object] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return self.iri


@dataclass(frozen=True, slots=True)
class Relationship(_Element):
    """An edge: its label as a user would write it, and the IRIs of its ends (``end`` may be a literal's value)."""

    type: str
    start: str
    end: object
    properties: Mapping[str, object] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"({self.start})-[:{self.type}]->({self.end})"


class Parts(Protocol):
    """Many paths whose vertices and edges are not materialized yet."""

    def materialize(self) -> None:
        """Give the paths that are still there their vertices and edges, all of them at once."""


class _LazyParts:
    """Where a path finds its parts, until somebody asks for them."""

    __slots__ = ("__weakref__", "_parts")
    _parts: Parts | None


@dataclass(frozen=True, slots=True)
class Path(_LazyParts):
    """A path: its vertices, and the edges between them in the order of the path, which may pass one backwards.

    The paths of a result are materialized together, when the first of them is asked for its parts: a vertex that
    several of them pass is one :class:`Node`, an edge one :class:`Relationship`.
    """

    nodes: tuple[Node, ...]
    relationships: tuple[Relationship, ...] = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Find the parts, which a path of a result does not have at first."""
            if name not in ("nodes", "relationships"):
                raise AttributeError(f"'Path' object has no attribute '{name}'", name=name, obj=self)
            parts = self._parts
            if parts is not None:  # else another thread was faster
                parts.materialize()
            return object.__getattribute__(self, name)

    def __len__(self) -> int:
        """How many edges it has."""
        return len(self.relationships)

    def __str__(self) -> str:
        text = f"({self.nodes[0]})"
        for left, edge, right in zip(self.nodes, self.relationships, self.nodes[1:], strict=False):
            forward = edge.start == left.iri
            text += f"-[:{edge.type}]->({right})" if forward else f"<-[:{edge.type}]-({right})"
        return text
