"""The vertices and edges of a result as one graph: for NetworkX, igraph, PyTorch Geometric, and pictures.

All vertices, edges and paths in the rows are in it, once each, with the ends of the edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.errors import ExecutionError
from graphdb.common.values.elements import Node, Path, Relationship
from graphdb.common.values.entities import Edge, Vertex
from graphdb.common.values.terms import LITERAL_BASE, default_iri
from graphdb.common.values.types import EDGE, MIXED, NODE, Base, Column, Type
from graphdb.results.decode import Arrays, Known, decoded, entities
from graphdb.results.path_materialization import Walks, distinct, distinct_edges, edge_columns
from graphdb.storage.arrays.arrow import values as plain
from graphdb.storage.graph.edges import edge_numbers
from graphdb.storage.loaders.tables.headers import bare_name

if TYPE_CHECKING:
    import igraph

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class EdgeIndex:
    """The edges of a result as arrays, as PyTorch Geometric and others take them.

    Attributes
    ----------
    edge_index
        int64[2, edges]: where the start and the end of each edge stand among the vertices.
    vertices
        int64[vertices]: the number of each vertex, which is ``id(v)``; in ascending order.
    edges
        int64[edges]: the number of each edge, which is ``id(e)``.
    edge_type
        int64[edges]: where the type of each edge stands in ``types``.
    types
        The edge labels, as a user would write them.
    """

    edge_index: Ids
    vertices: Ids
    edges: Ids
    edge_type: Ids
    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Elements:
    """Ids of vertices (int64, sorted, each once), and label, start, end and ordinal of edges (int64, each once)."""

    vertices: Ids
    edges: tuple[Ids, ...]

    @classmethod
    def of(cls, shape: Sequence[Column], table: arrow.Table, value_of: Callable[[bytes], object] | None) -> Elements:
        """Return the elements of a result's rows in the engine's own terms; literals are none.

        Raises
        ------
        ExecutionError
            No column has elements.
        """
        columns = [column.combine_chunks() for column in table.columns]
        typed = zip(shape, columns, strict=True)
        found = [part for each, column in typed for part in _parts(each.type, column, value_of)]
        if not found:
            raise _no_elements()
        none = np.empty(0, np.int64)
        edges = tuple(np.concatenate([none, *columns]) for columns in zip(*(part.edges for part in found), strict=True))
        edges = tuple(column[edges[2] < LITERAL_BASE] for column in edges)
        edges, _ = distinct_edges(edges)
        vertices, _ = distinct(np.concatenate([*(part.vertices for part in found), edges[1], edges[2]]))
        return cls(vertices[vertices < LITERAL_BASE], edges)

    def index(self, known: Known) -> EdgeIndex:
        """Return the arrays."""
        label, start, end, _ = self.edges
        labels, which = distinct(label)
        ends = np.searchsorted(self.vertices, np.array([start, end]))
        return EdgeIndex(ends, self.vertices, edge_numbers(*self.edges), which, tuple(known.written(labels.tolist())))


def _parts(type: Type, column: arrow.Array, value_of: Callable[[bytes], object] | None) -> Iterator[Elements]:
    """Yield the elements of a column, some of them several times."""
    none = (np.empty(0, np.int64),) * 4
    match type.base:
        case Base.NODE | Base.TERM:
            yield Elements(plain(column.cast(arrow.INT64).drop_null()), none)
        case Base.EDGE:
            yield Elements(none[0], edge_columns(column.drop_null()))
        case Base.PATH:
            paths = Walks.of(column.drop_null())
            yield Elements(paths.vertices, paths.edges)
        case Base.LIST if type.element is not None:
            yield from _parts(type.element, column.flatten(), value_of)
        case Base.MAP | Base.CHOICE:
            for i, (_, field) in enumerate(type.fields):
                yield from _parts(field, column.field(i), value_of)
        case Base.ANY if type == MIXED and value_of is not None:
            keys = [key for key in arrow.pylist(column) if key is not None]
            some = list(chain.from_iterable(entities(value_of(key)) for key in keys))
            vertices = [each.id for each in some if isinstance(each, Vertex)]
            edges = [(each.label, each.start, each.end, each.ordinal) for each in some if isinstance(each, Edge)]
            yield Elements(np.array(vertices, np.int64), tuple(np.array(edges, np.int64).reshape(-1, 4).T))


@dataclass(frozen=True, slots=True)
class Network:
    """Vertices and edges with all that they have: objects of Python's."""

    nodes: Sequence[Node]
    relationships: Sequence[Relationship]

    @classmethod
    def of(cls, elements: Elements, known: Known) -> Network:
        """Look up elements."""
        columns = [
            numbers(elements.vertices),
        ]
        (nodes,) = decoded(known, [(NODE, False)], Arrays(columns, len(elements.vertices)))
        parts = arrow.struct_array(list(map(numbers, elements.edges)), ["label", "start", "end", "ordinal"])
        (edges,) = decoded(known, [(EDGE, False)], Arrays([parts], len(parts)))
        return cls(nodes, edges)

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[Any, ...]]) -> Network:
        """Return what is in rows of Python values; edges of one type between the same vertices are one.

        Raises
        ------
        ExecutionError
            There is nothing in them.
        """
        found = list(_objects(rows))
        if not found:
            raise _no_elements()
        edges = {each: each for each in found if isinstance(each, Relationship)}
        ends = [Node(str(end)) for edge in edges for end in (edge.start, edge.end)]
        nodes = {each.iri: each for each in [*ends, *found] if isinstance(each, Node)}
        return cls(list(nodes.values()), list(edges))

    def networkx(self) -> Any:
        """Return a ``networkx.MultiDiGraph``: vertices by name, with ``labels`` and properties; edges with ``type``."""
        import networkx

        graph = networkx.MultiDiGraph()
        for node in self.nodes:
            graph.add_node(bare_name(node.iri), labels=list(node.labels), **_attributes(node.properties, _OF_NODES))
        graph.add_edges_from(
            (bare_name(e.start), bare_name(str(e.end)), {"type": e.type, **_attributes(e.properties, _OF_EDGES)})
            for e in self.relationships
        )
        return graph

    def igraph(self) -> igraph.Graph:
        """Return a directed ``igraph.Graph``: vertices with ``iri``, ``labels`` and properties, edges with ``type``."""
        import igraph

        at = {node.iri: i for i, node in enumerate(self.nodes)}
        edges = [(at[e.start], at[str(e.end)]) for e in self.relationships]
        graph = igraph.Graph(n=len(self.nodes), edges=edges, directed=True)
        graph.vs["iri"] = [node.iri for node in self.nodes]
        graph.vs["labels"] = [list(node.labels) for node in self.nodes]
        graph.es["type"] = [e.type for e in self.relationships]
        for of, elements, taken in ((graph.vs, self.nodes, _OF_NODES), (graph.es, self.relationships, _OF_EDGES)):
            rows = [_attributes(element.properties, taken) for element in elements]
            for key in dict.fromkeys(key for row in rows for key in row):
                of[key] = [row.get(key) for row in rows]
        return graph


_OF_NODES, _OF_EDGES = {"iri", "label", "labels"}, {"type", "label"}


def _attributes(properties: Mapping[str, object], taken: set[str]) -> dict[str, object]:
    """Return properties as attributes; one with a name of ours keeps its namespace."""
    return {default_iri(key) if key in taken else key: value for key, value in properties.items()}


def _no_elements() -> ExecutionError:
    return ExecutionError("the result has no vertices, edges or paths", hint="MATCH (a)-[e]->(b) RETURN a, e, b")


def _objects(value: object) -> Iterator[Node | Relationship]:
    match value:
        case Node() | Relationship():
            yield value
        case Path():
            yield from value.nodes
            yield from value.relationships
        case list() | tuple():
            for item in value:
                yield from _objects(item)
        case dict():
            yield from _objects(list(value.values()))
