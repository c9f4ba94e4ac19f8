"""Python values as columns of Arrow, where SQL does not have them: elements as structs, as a result's ids are.

Values of several types are numbers of one type where all are numbers, else texts; maps and lists among others are
texts of JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.render import json_text
from graphdb.common.values.elements import Node, Path, Relationship
from graphdb.common.values.types import Base, Type
from graphdb.results.display import array_of, lists_of, shown, structs_of, valid_of
from graphdb.results.path_materialization import Walks, edge_columns
from graphdb.storage.graph.edges import edge_numbers


def column_of(values: Sequence[Any]) -> arrow.Array:
    """Return values as a column.

    An edge's ``id`` is null: its object does not have it; see :func:`with_edge_ids`.
    """
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {Node}:
        return _structs(values, {"id": _iri, "labels": lambda node: list(node.labels), "properties": _properties})
    if kinds == {Relationship}:
        parts: dict[str, Callable[[Any], object]] = {
            "id": lambda _: None, "type": lambda e: e.type, "start": lambda e: e.start, "end": lambda e: str(e.end),
            "properties": _properties,
        }  # fmt: skip
        return _structs(values, parts, {"id": arrow.INT64})
    if kinds == {Path}:
        return _structs(values, {"nodes": lambda p: list(p.nodes), "relationships": lambda p: list(p.relationships)})
    if kinds == {list}:
        return lists_of(values, column_of)
    if kinds and all(issubclass(kind, Mapping) for kind in kinds) and _have_names(values):
        return structs_of(values, column_of)
    if len(kinds) > 1 and any(issubclass(kind, (Node, Relationship, Path, list, Mapping)) for kind in kinds):
        return arrow.strings([None if value is None else as_json(value) for value in values])
    if len(kinds) > 1 and bool in kinds:
        values = [str(value).lower() if isinstance(value, bool) else value for value in values]
    return array_of(list(map(shown, values)))


def with_edge_ids(type: Type, ids: arrow.Array, made: arrow.Array) -> arrow.Array:
    """Return a column of values of a type, as :func:`column_of` made it, with the ids of edges.

    ``ids`` is the same column in the engine's own terms.
    """
    children = made.children
    match type.base:
        case Base.EDGE if arrow.is_struct(made.type):
            children = (arrow.numbers(edge_numbers(*edge_columns(ids))), *children[1:])
        case Base.PATH if arrow.is_struct(made.type):
            relationships = children[1]
            if arrow.is_struct(relationships.type.value_type):
                edges = relationships.children[0]
                found = arrow.numbers(edge_numbers(*Walks.of(ids.drop_null()).edges))
                edges = arrow.Array(edges.type, len(edges), edges.valid, children=(found, *edges.children[1:]))
                children = (children[0], arrow.list_array(_offsets(relationships), edges, relationships.valid))
        case Base.LIST if type.element is not None and arrow.is_list(made.type):
            children = (with_edge_ids(type.element, ids.flatten(), made.children[0]),)
        case Base.MAP if arrow.is_struct(made.type):
            fields = {key: (field, ids.field(i)) for i, (key, field) in enumerate(type.fields)}
            named = zip(made.type.fields, children, strict=True)
            children = tuple(with_edge_ids(*fields[field.name], child) for field, child in named)
    return arrow.Array(made.type, len(made), made.valid, made.data, made.offsets, children)


def _offsets(lists: arrow.Array) -> NDArray[Any]:
    assert lists.offsets is not None
    return lists.offsets


def as_json(value: object) -> str:
    """Return a value as text of JSON: elements as maps of their parts; what JSON lacks is its text."""
    return json_text(value, _jsonable)


def _jsonable(value: object) -> object:
    match value:
        case Node():
            return {"id": value.iri, "labels": list(value.labels), "properties": dict(value.properties)}
        case Relationship():
            ends = {"start": value.start, "end": value.end}
            return {"type": value.type, **ends, "properties": dict(value.properties)}
        case Path():
            return {"nodes": value.nodes, "relationships": value.relationships}
    return str(value)


def _iri(node: Any) -> object:
    return node.iri


def _properties(element: Any) -> object:
    return element.properties


def _structs(
    values: Sequence[Any], parts: Mapping[str, Callable[[Any], object]], types: Mapping[str, arrow.DataType] = {}
) -> arrow.Array:
    columns = []
    for name, part in parts.items():
        found: list[Any] = [None if value is None else part(value) for value in values]
        columns.append(arrow.array(found, types[name]) if name in types else _column_of_part(name, found))
    return arrow.struct_array(columns, list(parts), valid_of(values))


def _column_of_part(name: str, values: list[Any]) -> arrow.Array:
    if name == "labels":
        return arrow.array(values, arrow.list_of(arrow.STRING))
    return structs_of(values, column_of) if name == "properties" else column_of(values)


def _have_names(values: Sequence[Any]) -> bool:
    return all(isinstance(key, str) for value in values if value is not None for key in value)
