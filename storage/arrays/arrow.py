"""Arrow tables for SQL, and the bytes of Arrow's buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow

if TYPE_CHECKING:
    import duckdb


LISTED = 32
"""Rows that are listed in the parameters of a statement: DuckDB sees them sooner than a view."""


class ArrowViews:
    """Views of Arrow tables for SQL, under names that stay.

    DuckDB keeps all that was registered within a transaction until it ends, replaced and unregistered or not.  So each
    name is registered once, for a window that shows one table after another.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._views: dict[str, _View] = {}

    @contextmanager
    def view(self, name: str, table: arrow.Table) -> Iterator[None]:
        """Let SQL see ``table`` under ``name`` for a piece of work."""
        view = self._views.get(name)
        if view is None:
            view = self._views[name] = _View(table)
            self._connection.register(name, view)
        view.table = table
        try:
            yield
        finally:
            view.table = None

    @contextmanager
    def view_or_list(self, name: str, table: arrow.Table) -> Iterator[tuple[str, dict[str, list[Any]]]]:
        """Do so, or list the rows where they are few; yield what stands after FROM, with its parameters."""
        if len(table) <= LISTED:
            yield listed(table)
            return
        with self.view(name, table):
            yield name, {}

    def close(self) -> None:
        """Take the names away."""
        for name in self._views:
            self._connection.unregister(name)
        self._views.clear()


class _View:
    """An Arrow stream of whichever table it shows."""

    def __init__(self, table: arrow.Table) -> None:
        self.table: arrow.Table | None = table

    def __arrow_c_schema__(self) -> object:
        return self.table.__arrow_c_schema__()  # type: ignore[union-attr]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)  # type: ignore[union-attr]


def unnested(types: Mapping[str, str]) -> str:
    """Return what can stand after FROM for columns that are parameters: lists of their name, of these types of SQL."""
    return f"(SELECT {', '.join(f'unnest(${name}::{type}[]) AS {name}' for name, type in types.items())})"


def listed(table: arrow.Table) -> tuple[str, dict[str, list[Any]]]:
    """Return a small table of numbers and strings as what can stand after FROM, with its parameters."""
    types = (
        "BIGINT" if arrow.is_integer(type) else "DOUBLE" if type == arrow.FLOAT64 else "VARCHAR"
        for type in table.schema.types
    )
    return unnested(dict(zip(table.column_names, types, strict=True))), table.to_pydict()


def table_of(columns: Mapping[str, NDArray[Any]]) -> arrow.Table:
    """Return columns of numbers as a table."""
    return arrow.table(columns)


def values(array: arrow.Array | arrow.ChunkedArray) -> NDArray[Any]:
    """Return integers, none of which is NULL, as they lie in memory."""
    chunks = array.chunks if isinstance(array, arrow.ChunkedArray) else [array]
    found = [chunk.data for chunk in chunks if chunk.data is not None and len(chunk)]
    return found[0] if len(found) == 1 else np.concatenate([np.empty(0, array.type.dtype), *found])


def string_places(array: arrow.Array) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes of the strings of an array, and where each begins and the last ends: int64[n + 1]."""
    array = array.decoded()
    assert array.data is not None
    assert array.offsets is not None
    return array.data, array.offsets.astype(np.int64)


def string_bytes(array: arrow.Array) -> memoryview:
    """Return the bytes of the strings of an array (string of any sort), one after the other; NULL has none."""
    data, at = string_places(array)
    return memoryview(data[at[0] : at[-1]])  # type: ignore[arg-type]


def names_table(names: Mapping[int, str]) -> arrow.Table:
    """Return names by their ids as a table (``id``, ``name``)."""
    return arrow.table({"id": np.array(list(names), np.int64), "name": arrow.strings(names.values())})
