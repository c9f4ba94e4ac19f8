"""Data in memory as tables: what is an Arrow stream (pandas, Polars, Arrow, DuckDB, results), and NetworkX graphs.

The columns of a frame are read as those of a file are, types in headers included: a frame says what the file says that
it was read from.  Attributes of NetworkX are no headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from graphdb.errors import LoadError
from graphdb.storage.loaders.headers import Column, Mapping

if TYPE_CHECKING:
    import pyarrow as pa


def is_object(thing: object) -> bool:
    """Whether this is data, and no path."""
    return hasattr(thing, "__arrow_c_stream__") or _is_network(thing) or _is_lazy(thing)


def tables(thing: Any, mapping: Mapping) -> list[tuple[str, pa.Table, list[Column]]]:
    """Return the tables that an object is, each with what messages call it and what its columns are."""
    import pyarrow as pa

    if _is_network(thing):
        return _network(thing, mapping)
    name = type(thing).__name__
    try:
        table = pa.table(thing.collect() if _is_lazy(thing) else thing)
    except (ValueError, TypeError, NotImplementedError) as error:  # Arrow's are among them; pandas has some of its own
        hint = "a frame is needed, whose columns have one type each: frame['…'].astype(str)"
        typed = isinstance(error, pa.ArrowException)
        raise LoadError(", ".join(map(str, error.args)), source=name, hint=hint if typed else None) from None
    columns = mapping.read(table.column_names)
    return [(name, table.rename_columns([column.column for column in columns]), columns)]


def _is_network(thing: object) -> bool:
    """A graph of NetworkX's or of one of its kin; NetworkX itself is not imported."""
    return all(hasattr(thing, name) for name in ("nodes", "edges", "is_directed", "is_multigraph"))


def _is_lazy(thing: object) -> bool:
    """A frame that has yet to be collected (Polars)."""
    return hasattr(thing, "collect") and hasattr(thing, "collect_schema")


def _network(graph: Any, mapping: Mapping) -> list[tuple[str, pa.Table, list[Column]]]:
    """A node table and an edge table.

    A vertex's ``label`` or ``labels`` are its labels, an edge's ``type`` or ``label`` (or its key, in a multigraph,
    where that is a text) its edge label, else what the mapping says, or ``edge``; other attributes are properties,
    whatever they are called: only the headers of tables say types.  An undirected edge is one edge, from the end that
    NetworkX names first.
    """
    nodes, edges = [], []
    for node, attributes in graph.nodes(data=True):
        row = {str(key): value for key, value in attributes.items()}
        labels = row.pop("labels", row.pop("label", mapping.label))
        nodes.append((row, (str(node), _texts(labels))))
    for start, end, *key, attributes in graph.edges(data=True, **({"keys": True} if graph.is_multigraph() else {})):
        row = {str(name): value for name, value in attributes.items()}
        kind = row.pop("type", row.pop("label", None)) or next((k for k in key if isinstance(k, str)), None)
        edges.append((row, (str(start), str(end), str(kind or mapping.type or "edge"))))
    node_roles, edge_roles = ("ID", "LABEL"), ("START_ID", "END_ID", "TYPE")
    return [
        (name, *_table(rows, roles, mapping))
        for name, rows, roles in (("nodes of the graph", nodes, node_roles), ("edges of the graph", edges, edge_roles))
        if rows
    ]


def _is_wide(value: object) -> bool:
    """Whether the widest integers of DuckDB hold a value."""
    return value is None or (type(value) is int and abs(value) < 1 << 127)


def _as_texts(values: Sequence[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array([None if value is None else str(value) for value in values], pa.string())


def _texts(labels: object) -> list[str]:
    if labels is None:
        return []
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        return [str(labels)]
    return [str(label) for label in labels]


def _table(
    rows: Sequence[tuple[dict[str, Any], tuple[Any, ...]]], roles: tuple[str, ...], mapping: Mapping
) -> tuple[pa.Table, list[Column]]:
    """Attributes and roles as columns; one whose values have no type in common is a column for each type."""
    import pyarrow as pa

    arrays = [pa.array([held[at] for _, held in rows]) for at in range(len(roles))]
    columns = [Column(f":{role}", role) for role in roles]
    for number, name in enumerate(dict.fromkeys(name for row, _ in rows for name in row)):
        mapping.known.add(name)
        stated = mapping.columns.get(name)
        unique = f"{number}:{name}"
        column = Column.read(unique, stated) if stated else Column(unique, "", name)
        values = [row.get(name) for row, _ in rows]
        try:
            arrays.append(pa.array(values))
            columns.append(column)
        except OverflowError:
            columns.append(replace(column, type="HUGEINT") if all(map(_is_wide, values)) else column)
            arrays.append(_as_texts(values))
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            kinds = dict.fromkeys(type(value) for value in values if value is not None) if stated is None else [object]
            for kind in kinds:
                some = [value if kind in (object, type(value)) else None for value in values]
                try:
                    arrays.append(pa.array(some))
                except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
                    arrays.append(_as_texts(some))
                columns.append(replace(column, column=f"{unique}:{kind.__name__}:{len(columns)}"))
    return pa.table(arrays, names=[column.column for column in columns]), columns
