"""All terms of a graph as N-Triples writes them, in memory-mapped files, from which lines are assembled.

A hash join would have the texts pass DuckDB once for each triple; here they do once for each term, and the system keeps
as many of them in memory as there is memory for.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.stopping import checked
from graphdb.common.values.terms import LITERAL_BASE, XSD, escaped
from graphdb.storage.arrays.arrow import string_bytes, values
from graphdb.storage.arrays.spill import unmap
from graphdb.storage.file.scratch import spill_error

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

RESOURCE = "CASE WHEN starts_with(iri, '_:') OR starts_with(iri, '<<(') THEN iri ELSE '<' || iri || '>' END"
"""SQL for a row of the table ``resource``: blank nodes and triple terms are RDF text."""

LITERAL = (
    f"""'"' || {escaped("lexical")} || '"' || CASE WHEN language IS NOT NULL THEN '@' || language """
    "WHEN datatype IS NOT NULL THEN '^^<' || datatype || '>' ELSE '' END"
)
"""SQL for a row of the table ``literal``."""

TYPED_VALUE = f"""
CASE WHEN language IS NOT NULL THEN NULL
    WHEN datatype IS NULL THEN 'lexical'
    WHEN datatype = '{XSD}integer' AND lexical = integer::VARCHAR THEN 'integer'
    WHEN datatype = '{XSD}boolean' AND lexical = boolean::VARCHAR THEN 'boolean'
    WHEN datatype = '{XSD}double' AND isfinite(number) AND lexical = number::VARCHAR THEN 'number'
    WHEN datatype = '{XSD}date' AND lexical = date::VARCHAR THEN 'date'
    WHEN datatype = '{XSD}dateTime' AND lexical = replace(datetime::VARCHAR, ' ', 'T') THEN 'datetime'
END"""
"""SQL for the column of the table ``literal`` that holds a literal exactly, or NULL."""

_ROWS = 50_000
"""Terms that are fetched at a time."""


class Terms:
    """The terms of the graph behind a connection.

    Parameters
    ----------
    folder
        Where the files are.
    memory
        Bytes of them that may stay in memory after a call of :meth:`of`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path, memory: int) -> None:
        self._resources = _Texts(connection, f"SELECT id, {RESOURCE} FROM _graphdb.resource", folder / "resources")
        self._literals = _Texts(connection, f"SELECT id, {LITERAL} FROM _graphdb.literal", folder / "literals")
        self._memory = memory

    def of(self, ids: NDArray[np.int64]) -> pa.Array:
        """Return the texts of terms, NULL where the id is negative."""
        import pyarrow as pa

        literal = ids >= LITERAL_BASE
        if not literal.any():
            found = self._resources.of(ids)
        elif literal.all():
            found = self._literals.of(ids)
        else:
            parts = pa.concat_arrays([self._resources.of(ids[~literal]), self._literals.of(ids[literal])])
            order = np.cumsum(~literal) - 1
            order[literal] = np.cumsum(literal)[literal] - 1 + np.count_nonzero(~literal)
            found = parts.take(pa.array(order))
        for texts in (self._resources, self._literals):
            texts.let_go(self._memory // 2)
        return found


class _Texts:
    """The texts of one table, by id."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sql: str, path: Path) -> None:
        ids: list[NDArray[np.int64]] = []
        ends = [np.zeros(1, np.int64)]
        try:
            with path.open("wb") as file, connection.sql(sql).to_arrow_reader(_ROWS) as reader:
                for batch in checked(reader, 1):
                    ids.append(values(batch.column(0)))
                    texts = batch.column(1).cast("large_string")
                    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset :][: len(texts) + 1]
                    ends.append(offsets[1:] - offsets[0] + ends[-1][-1])
                    file.write(string_bytes(texts))
        except OSError as error:
            if error.errno is None:  # DuckDB's, through Arrow
                raise
            raise spill_error(path.parent.parent, error) from error
        self._ends = np.concatenate(ends)
        self._places = _places(np.concatenate(ids) if ids else np.empty(0, np.int64))
        self._bytes = np.memmap(path, np.uint8, "r") if self._ends[-1] else np.empty(0, np.uint8)
        self._read = 0
        self._array = self._view()

    def of(self, ids: NDArray[np.int64]) -> pa.Array:
        """Return the texts of ids, NULL where one is negative."""
        import pyarrow as pa

        first, places = self._places
        at = ids - first if places is None else places[ids - first]
        found = self._array.take(pa.array(at, mask=ids < 0) if (ids < 0).any() else pa.array(at))
        self._read += found.nbytes
        return found

    def let_go(self, memory: int) -> None:
        """Release what was read, where it may be more bytes than ``memory``."""
        if self._read > memory and len(self._bytes) > memory:
            unmap(self._bytes)
            self._read = 0

    def _view(self) -> Any:
        """Return the texts as an Arrow array, which lies in the file."""
        import pyarrow as pa

        buffers = [None, pa.py_buffer(self._ends), pa.py_buffer(self._bytes)]
        return pa.Array.from_buffers(pa.large_string(), len(self._ends) - 1, buffers)


def _places(ids: NDArray[np.int64]) -> tuple[int, NDArray[np.int64] | None]:
    """Return the first id, and where each is by its distance from that; None where these are the same."""
    if not len(ids):
        return 0, None
    first = int(ids.min())
    if len(ids) == int(ids.max()) - first + 1 and bool((np.diff(ids) == 1).all()):
        return first, None
    places = np.zeros(int(ids.max()) - first + 1, np.int64)
    places[ids - first] = np.arange(len(ids))
    return first, places
