"""Data in memory as tables: what is an Arrow stream (pandas, Polars, Arrow, DuckDB, results), and NetworkX graphs.

The columns of a frame are read as those of a file are, types in headers included: a frame says what the file says that
it was read from.  Attributes of NetworkX are no headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from graphdb.common import arrow
from graphdb.common.duckdb.fetch import table_of_frame
from graphdb.common.errors import LoadError
from graphdb.storage.loaders.tables.headers import Column, Mapping

_INDEX = re.compile(r"__index_level_\d+__")
"""How pandas' index is called where it has no name."""


def is_object(thing: object) -> bool:
    """Whether this is data, and no path."""
    streams = hasattr(thing, "__arrow_c_stream__") or hasattr(thing, "to_reader") or hasattr(thing, "scanner")
    return streams or _is_network(thing) or _is_lazy(thing)


def tables(thing: Any, mapping: Mapping) -> Sequence[tuple[str, arrow.Table | arrow.Reader, list[Column]]]:
    """Return the tables that an object is, each with what messages call it and what its columns are."""
    if _is_network(thing):
        return _network(thing, mapping)
    name = type(thing).__name__
    try:
        table = _arrow(thing, mapping)
    except (ValueError, TypeError, NotImplementedError, arrow.ArrowError) as error:  # pandas has some of its own
        hint = "a frame is needed, whose columns have one type each: frame['…'].astype(str)"
        typed = isinstance(error, arrow.ArrowError)
        raise LoadError(", ".join(map(str, error.args)), source=name, hint=hint if typed else None) from None
    columns = mapping.read(table.schema.names)
    schema = arrow.schema([field.with_name(column.column) for field, column in zip(table.schema, columns, strict=True)])
    for column, field in zip(table.schema.names, schema, strict=True):
        if not _is_readable(field.type):
            raise LoadError(
                f"column '{column}' has the type {field.type}, which no literal has",
                source=name,
                hint="make it texts or numbers: of pandas, frame['…'].astype(str)",
            )
    if isinstance(table, arrow.Table):
        return [(name, table.rename_columns(schema.names), columns)]
    return [(name, arrow.Reader(schema, (batch.columns for batch in table), table.close), columns)]


def _arrow(thing: Any, mapping: Mapping) -> arrow.Table | arrow.Reader:
    """What is in memory as a table, all else as a stream that is read once."""
    if _is_lazy(thing):
        thing = thing.collect()
    if hasattr(thing, "presented"):  # a result of ours: vertices as IRIs, not as structs
        thing = thing.presented()
    if hasattr(thing, "to_batches") and hasattr(thing, "scanner"):  # a data set of PyArrow's
        thing = thing.scanner()
    if hasattr(thing, "to_reader") and not hasattr(thing, "columns"):
        thing = thing.to_reader()
    if not hasattr(thing, "columns"):  # no frame, which is in memory
        return arrow.reader_of(thing)
    table = table_of_frame(_with_index(thing))
    for field in table.schema:  # pandas' numbers of rows, where some were left out
        if _INDEX.fullmatch(field.name) and arrow.is_integer(field.type) and mapping.header(field.name) is None:
            table = table.remove_column(table.column_names.index(field.name))
    halves = (at for at, field in enumerate(table.schema) if field.type == arrow.FLOAT16)  # DuckDB does not read them
    return table.with_columns({at: table.column(at).cast(arrow.FLOAT32) for at in halves})


def _with_index(frame: Any) -> Any:
    """Return a frame of pandas with its index as a column where it has a name: Arrow leaves out consecutive numbers."""
    index: Any = getattr(frame, "index", None)
    if hasattr(index, "step") and isinstance(index.name, str) and index.name not in frame.columns:
        return frame.assign(**{index.name: index})
    return frame


def _is_readable(type: arrow.DataType) -> bool:
    """Whether DuckDB reads a type of Arrow's as what it is."""
    if type.extension:
        return type.extension.startswith("arrow.")
    return not (arrow.is_decimal(type) and type.dtype.itemsize > 16)


def _is_network(thing: object) -> bool:
    """A graph of NetworkX's or of one of its kin; NetworkX itself is not imported."""
    return all(hasattr(thing, name) for name in ("nodes", "edges", "is_directed", "is_multigraph"))


def _is_lazy(thing: object) -> bool:
    """A frame that has yet to be collected (Polars)."""
    return hasattr(thing, "collect") and hasattr(thing, "collect_schema")


def _network(graph: Any, mapping: Mapping) -> list[tuple[str, arrow.Table, list[Column]]]:
    """A node table and an edge table.

    A vertex's ``label`` or ``labels`` are its labels, an edge's ``type`` or ``label`` (or its key, in a multigraph,
    where that is a text) its edge label, else what the mapping says, or ``edge``; other attributes are properties,
    whatever they are called: only the headers of tables say types.  An undirected edge is one edge, from the end that
    NetworkX names first.
    """
    nodes, edges = [], []
    names: dict[str, Any] = {}
    for node, attributes in graph.nodes(data=True):
        if names.setdefault(str(node), node) != node:
            raise LoadError(
                f"the vertices {names[str(node)]!r} and {node!r} would be one, '{node}'",
                source=type(graph).__name__,
                hint="give them other names: networkx.relabel_nodes",
            )
        row = {str(key): value for key, value in attributes.items()}
        labels = row.pop("labels", row.pop("label", None))
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


def _plain(value: Any) -> Any:
    """A value of an attribute as Arrow takes it: sets are lists, and what is no value (NaT, NA) is None."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return None if type(value).__name__ in ("NaTType", "NAType") else value


def _arrays(values: list[Any]) -> Iterator[tuple[arrow.Array, str | None]]:
    """Yield values as arrays, and the type that their texts have: one where they have a type in common, else several.

    What Arrow has no type for is its text.
    """
    try:
        yield arrow.array(values), None
        return
    except (ValueError, TypeError, OverflowError):  # what values have themselves is called
        kinds = list(dict.fromkeys(type(value) for value in values if value is not None))
    if len(kinds) > 1:
        for kind in kinds:
            yield from _arrays([value if type(value) is kind else None for value in values])
        return
    wide = kinds == [int] and all(value is None or abs(value) < 1 << 127 for value in values)
    yield arrow.array([None if value is None else str(value) for value in values]), "HUGEINT" if wide else None


def _texts(labels: object) -> list[str]:
    if labels is None:
        return []
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        return [str(labels)]
    return [str(label) for label in labels]


def _table(
    rows: Sequence[tuple[dict[str, Any], tuple[Any, ...]]], roles: tuple[str, ...], mapping: Mapping
) -> tuple[arrow.Table, list[Column]]:
    """Attributes and roles as columns; an attribute whose values have no type in common is several."""
    arrays = [arrow.array([values[at] for _, values in rows]) for at in range(len(roles))]
    columns = [Column(f":{role}", role) for role in roles]
    for name in dict.fromkeys(name for row, _ in rows for name in row):
        mapping.known.add(name)
        stated = mapping.header(name)
        for values, type in _arrays([_plain(row.get(name)) for row, _ in rows]):
            unique = f"{len(columns)}:{name}"
            column = Column.read(unique, stated) if stated else Column(unique, "", name)
            arrays.append(values)
            columns.append(replace(column, type=column.type or type))
    return arrow.table(arrays, names=[column.column for column in columns]), columns
