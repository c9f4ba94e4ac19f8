"""Vertices, edges and paths by their ids: as expressions in Python have them, before a user sees them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Vertex:
    """A vertex by its term id."""

    id: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A data edge; ``ordinal`` tells parallel ones apart."""

    label: int
    start: int
    end: int
    ordinal: int = 0


class Path:
    """Vertices, and the edges between them; an edge may be passed against its direction.

    A search that finds very many paths gives ``make`` instead, which finds vertices and edges when they are asked for.
    """

    __slots__ = ("_make", "_parts", "_to", "length")

    def __init__(self, vertices: tuple[Vertex, ...], edges: tuple[Edge, ...]) -> None:
        self._parts: tuple[tuple[Vertex, ...], tuple[Edge, ...]] | None = (vertices, edges)
        self._make: Callable[[int], Path] | None = None
        self._to = -1
        self.length = len(edges)

    @classmethod
    def later(cls, length: int, make: Callable[[int], Path], to: int) -> Path:
        """Return a path of so many edges whose parts ``make`` finds from ``to``."""
        path = cls.__new__(cls)
        path._parts, path._make, path._to, path.length = None, make, to, length
        return path

    def _found(self) -> tuple[tuple[Vertex, ...], tuple[Edge, ...]]:
        if self._parts is None:
            assert self._make is not None
            self._parts = self._make(self._to)._found()
        return self._parts

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """The vertices in order."""
        return self._found()[0]

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges in order."""
        return self._found()[1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Path) and self._found() == other._found()

    def __hash__(self) -> int:
        return hash(self._found())

    def __repr__(self) -> str:
        return f"Path{self._found()!r}"
