"""Data in memory as tables: what is an Arrow stream (pandas, Polars, Arrow, DuckDB, results), and NetworkX graphs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def is_object(thing: object) -> bool:
    """Whether this is data, and no path."""
    return hasattr(thing, "__arrow_c_stream__") or _is_network(thing)


def tables(thing: Any) -> list[tuple[str, pa.Table]]:
    """Return the tables that an object is, each with what messages call it."""
    import pyarrow as pa

    if _is_network(thing):
        return _network(thing)
    return [(type(thing).__name__, pa.table(thing))]


def _is_network(thing: object) -> bool:
    """A graph of NetworkX's or of one of its kin; NetworkX itself is not imported."""
    return all(hasattr(thing, name) for name in ("nodes", "edges", "is_directed", "is_multigraph"))


def _network(graph: Any) -> list[tuple[str, pa.Table]]:
    """A node table and an edge table.

    A vertex's ``label`` or ``labels`` are its labels, an edge's ``type`` or ``label`` (or its key, in a multigraph,
    where that is a text) its edge label, else ``edge``; other attributes are properties.  An undirected edge is one
    edge, from the end that NetworkX names first.
    """
    nodes = []
    for node, attributes in graph.nodes(data=True):
        row = {str(key): value for key, value in attributes.items()}
        labels = row.pop("labels", row.pop("label", None))
        nodes.append({**row, ":ID": str(node), ":LABEL": _texts(labels)})
    edges = []
    multiple = graph.is_multigraph()
    for edge in graph.edges(keys=True, data=True) if multiple else graph.edges(data=True):
        start, end, *key, attributes = edge
        row = {str(name): value for name, value in attributes.items()}
        kind = row.pop("type", row.pop("label", None)) or next((k for k in key if isinstance(k, str)), "edge")
        edges.append({**row, ":START_ID": str(start), ":END_ID": str(end), ":TYPE": str(kind)})
    tables = []
    for name, rows in (("nodes of the graph", nodes), ("edges of the graph", edges)):
        if rows:
            tables.append((name, _table(rows)))
    return tables


def _texts(labels: object) -> list[str]:
    if labels is None:
        return []
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        return [str(labels)]
    return [str(label) for label in labels]


def _table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as columns; one whose values have no type in common holds their texts."""
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            columns[name] = pa.array([None if value is None else str(value) for value in values])
    return pa.table(columns)
