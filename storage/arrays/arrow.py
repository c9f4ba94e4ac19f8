"""Arrow tables for SQL, and the bytes of Arrow's buffers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


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
    def view(self, name: str, table: pa.Table) -> Iterator[None]:
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
    def view_or_list(self, name: str, table: pa.Table) -> Iterator[tuple[str, dict[str, list[Any]]]]:
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

    def __init__(self, table: pa.Table) -> None:
        self.table: pa.Table | None = table

    def __arrow_c_schema__(self) -> object:
        return self.table.schema.__arrow_c_schema__()  # type: ignore[union-attr]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)  # type: ignore[union-attr]


def unnested(types: Mapping[str, str]) -> str:
    """Return what can stand after FROM for columns that are parameters: lists of their name, of these types of SQL."""
    return f"(SELECT {', '.join(f'unnest(${name}::{type}[]) AS {name}' for name, type in types.items())})"


def listed(table: pa.Table) -> tuple[str, dict[str, list[Any]]]:
    """Return a small table of integers and strings as what can stand after FROM, with its parameters."""
    import pyarrow as pa

    types = ("BIGINT" if pa.types.is_integer(type) else "VARCHAR" for type in table.schema.types)
    return unnested(dict(zip(table.column_names, types, strict=True))), table.to_pydict()


def numbers(array: NDArray[Any], valid: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return the integers of an array, NULL where not ``valid``; unlike ``pyarrow.array`` without importing pandas."""
    import pyarrow as pa

    type = pa.from_numpy_dtype(array.dtype)
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(type, len(array), [bits, pa.py_buffer(np.ascontiguousarray(array))])


def table_of(columns: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Return columns of numbers as a table."""
    import pyarrow as pa

    return pa.table({name: numbers(column) for name, column in columns.items()})


def strings(texts: Iterable[str | None]) -> pa.Array:
    """Return texts as an array; unlike ``pyarrow.array`` without importing pandas."""
    from pyarrow.lib import StringBuilder

    builder = StringBuilder()
    builder.append_values(texts)
    return builder.finish()


def values(array: pa.Array | pa.ChunkedArray) -> NDArray[Any]:
    """Return integers, none of which is NULL, as they lie in memory; unlike ``to_numpy`` without importing pandas."""
    dtype = array.type.to_pandas_dtype()
    chunks = [
        np.frombuffer(chunk.buffers()[1], dtype)[chunk.offset : chunk.offset + len(chunk)]
        for chunk in getattr(array, "chunks", (array,))
        if len(chunk)
    ]
    return chunks[0] if len(chunks) == 1 else np.concatenate([np.empty(0, dtype), *chunks])


def validity(array: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return for each value whether it is there, not NULL; unlike ``to_numpy`` without importing pandas."""
    found = [values(chunk.is_valid().cast("uint8")).astype(bool) for chunk in getattr(array, "chunks", (array,))]
    return np.concatenate([np.empty(0, bool), *found])


def string_bytes(array: pa.Array) -> memoryview:
    """Return the bytes of the strings of an array (string of any sort), one after the other; NULL has none."""
    import pyarrow as pa

    array = array.cast(pa.large_string())
    if not len(array):
        return memoryview(b"")
    buffers: Any = array.buffers()
    _, offsets, data = buffers
    at = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    return memoryview(data).cast("B")[at[0] : at[-1]] if data is not None else memoryview(b"")


def names_table(names: Mapping[int, str]) -> pa.Table:
    """Return names by their ids as a table (``id``, ``name``)."""
    import pyarrow as pa

    return pa.table({"id": numbers(np.array(list(names), np.int64)), "name": strings(names.values())})
