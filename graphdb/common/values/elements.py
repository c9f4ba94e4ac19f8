"""The values that are not plain Python values: vertices, edges and paths of a result."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

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


@dataclass(frozen=True, slots=True)
class Node:
    """A vertex: its IRI (``_:…`` for a blank node), labels (sorted) and properties, names as a user would write them.

    Two nodes are equal if they have the same IRI.
    """

    iri: str
    labels: tuple[str, ...] = field(default=(), compare=False)
    properties: Mapping[str, object] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return self.iri

    def __getitem__(self, key: str) -> object:
        """Return a property; `KeyError` if there is none of that name."""
        return self.properties[key]

    def get(self, key: str, default: object = None) -> object:
        """Return a property, or what stands for one that is not there."""
        return self.properties.get(key, default)


@dataclass(frozen=True, slots=True)
class Relationship:
    """An edge: its label as a user would write it, and the IRIs of its ends (``end`` may be a literal's value)."""

    type: str
    start: str
    end: object
    properties: Mapping[str, object] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"({self.start})-[:{self.type}]->({self.end})"

    def __getitem__(self, key: str) -> object:
        """Return a property; `KeyError` if there is none of that name."""
        return self.properties[key]

    def get(self, key: str, default: object = None) -> object:
        """Return a property, or what stands for one that is not there."""
        return self.properties.get(key, default)


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
