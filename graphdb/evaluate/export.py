"""Values that leave the evaluator, as a user sees them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdb.common.values.elements import Node, Path, Relationship
from graphdb.common.values.temporal import Temporal
from graphdb.common.values.temporal_python import to_python
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.evaluate.context import Context, Row
from graphdb.evaluate.values import Edge, Vertex
from graphdb.evaluate.values import Path as PathValue


class Exporter:
    """Turns the evaluator's values into what a user sees."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def rows(self, rows: Sequence[Row], columns: Sequence[str]) -> list[list[Any]]:
        """Return the columns' values."""
        for row in rows:
            self._context.view.expect(row[name] for name in columns)
        return [[self.value(row[name]) for row in self._context.watched(rows)] for name in columns]

    def value(self, value: Any) -> Any:
        """Return one value."""
        match value:
            case Vertex():
                return self._vertex(value)
            case Edge():
                return self._edge(value)
            case PathValue():
                nodes = tuple(self.value(vertex) for vertex in value.vertices)
                return Path(nodes, tuple(self._edge(edge) for edge in value.edges))
            case Temporal():
                return to_python(value)
            case list():
                return [self.value(item) for item in value]
            case dict():
                return {key: self.value(item) for key, item in value.items()}
        return value

    def _vertex(self, vertex: Vertex) -> Any:
        view, context = self._context.view, self._context
        if vertex.id >= LITERAL_BASE:
            return self.value(view.literal(vertex.id))
        if vertex in view.deleted:
            return Node(view.iri(vertex))
        labels = tuple(sorted(map(context.label_name, view.labels(vertex))))
        return Node(view.iri(vertex), labels, self.value(view.properties(vertex)))

    def _edge(self, edge: Edge) -> Relationship:
        view = self._context.view
        end = self._context.view.literal(edge.end) if edge.end >= LITERAL_BASE else view.iri(Vertex(edge.end))
        properties = {} if edge in view.deleted else self.value(view.properties(edge))
        return Relationship(self._context.label_name(edge.label), view.iri(Vertex(edge.start)), end, properties)
