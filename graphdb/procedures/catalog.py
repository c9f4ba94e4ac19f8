"""The procedures that every database has: what labels, edge labels and keys there are, and what runs here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphdb._version import __version__
from graphdb.common.values.terms import LITERAL_BASE, RDF_TYPE
from graphdb.procedures.registry import Procedure, Procedures, Seen
from graphdb.procedures.signature import Signature, signature_of

_SIGNATURES: dict[str, Signature] = {}
"""Those that were read, by their texts."""


def standard() -> Procedures:
    """Return the procedures of a database to which nobody has added any."""
    found = Procedures()

    def procedures(seen: Seen) -> Iterator[tuple[str, str, str]]:
        for each in found:
            yield each.signature.name, str(each.signature), each.description

    for text, function, description in (
        ("db.labels() :: (label :: STRING)", _labels, "The vertex labels that some vertex has."),
        (
            "db.relationshipTypes() :: (relationshipType :: STRING)",
            _relationship_types,
            "The edge labels that some edge between vertices has.",
        ),
        (
            "db.propertyKeys() :: (propertyKey :: STRING)",
            _property_keys,
            "The property keys that some vertex or edge has.",
        ),
        (
            "db.schema.visualization() :: (nodes :: LIST OF MAP, relationships :: LIST OF MAP)",
            _schema,
            "The graph of labels: which edge labels lead from which vertex labels to which, and how often.",
        ),
        (
            "dbms.components() :: (name :: STRING, versions :: LIST OF STRING, edition :: STRING)",
            _components,
            "What runs here, and its version.",
        ),
        (
            "dbms.procedures() :: (name :: STRING, signature :: STRING, description :: STRING)",
            procedures,
            "The procedures that CALL knows.",
        ),
    ):
        signature = _SIGNATURES.get(text)
        if signature is None:
            signature = _SIGNATURES[text] = signature_of(text, function)
        found.add(Procedure(signature, function, description, sees=True))
    return found


def _labels(seen: Seen) -> list[str]:
    return sorted(seen.names.written(label.iri) for label in seen.names.vertex_labels.values() if label.vertices)


def _relationship_types(seen: Seen) -> list[str]:
    labels = seen.names.edge_labels.values()
    return sorted(seen.names.written(each.iri) for each in labels if each.resource_triples and each.iri != RDF_TYPE)


def _property_keys(seen: Seen) -> list[str]:
    of_vertices = {label.iri for label in seen.names.edge_labels.values() if label.kinds}
    return sorted(map(seen.names.written, of_vertices | seen.edges.keys.keys()))


def _components(seen: Seen) -> list[tuple[str, list[str], str]]:
    return [("graphdb", [__version__], "embedded")]


def _schema(seen: Seen) -> dict[str, Any]:
    names, connection = seen.names, seen.connection
    labels = {label.id: names.written(label.iri) for label in names.vertex_labels.values() if label.vertices}
    type_label = -1 if seen.store.type_label is None else seen.store.type_label
    rows = connection.rows(
        "WITH class AS (SELECT subject, object AS label FROM _graphdb.triple "
        "WHERE label = $type AND list_contains($labels, object)), "
        "edge AS (SELECT label, subject, object FROM _graphdb.triple UNION ALL "
        "SELECT label, subject, object FROM _graphdb.edge WHERE ordinal > 0) "
        "SELECT edge.label, a.label, b.label, count(*) FROM edge "
        "LEFT JOIN class a ON a.subject = edge.subject LEFT JOIN class b ON b.subject = edge.object "
        f"WHERE edge.label <> $type AND edge.object < {LITERAL_BASE} GROUP BY ALL",
        {"type": type_label, "labels": list(labels)},
    )
    relationships = [
        {
            "type": names.written(names.edge_labels[label].iri),
            "start": labels.get(start),
            "end": labels.get(end),
            "count": count,
        }
        for label, start, end, count in rows
    ]
    nodes = [
        {"name": labels[each.id], "count": each.vertices} for each in names.vertex_labels.values() if each.vertices
    ]
    relationships.sort(key=lambda edge: [str(edge[key] or "") for key in ("type", "start", "end")])
    return {"nodes": sorted(nodes, key=lambda node: str(node["name"])), "relationships": relationships}
