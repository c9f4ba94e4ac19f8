"""The values that are not plain Python values: vertices and edges of a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


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


@dataclass(frozen=True, slots=True)
class Relationship:
    """An edge: its label as a user would write it, and the IRIs of its ends (``end`` may be a literal's value)."""

    type: str
    start: str
    end: object
    properties: Mapping[str, object] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"({self.start})-[:{self.type}]->({self.end})"


@dataclass(frozen=True, slots=True)
class Path:
    """A path: its vertices, and the edges between them in the order of the path, which may pass one backwards."""

    nodes: tuple[Node, ...]
    relationships: tuple[Relationship, ...] = ()

    def __len__(self) -> int:
        """How many edges it has."""
        return len(self.relationships)

    def __str__(self) -> str:
        text = f"({self.nodes[0]})"
        for left, edge, right in zip(self.nodes, self.relationships, self.nodes[1:], strict=False):
            forward = edge.start == left.iri
            text += f"-[:{edge.type}]->({right})" if forward else f"<-[:{edge.type}]-({right})"
        return text
