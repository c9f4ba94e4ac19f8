"""All terms of a graph as N-Triples writes them, in memory-mapped files, from which lines are assembled.

A hash join would have the texts pass DuckDB once for each triple; here they do once for each term, and the system keeps
as many of them in memory as there is memory for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.duckdb.fetch import batches
from graphdb.common.stopping import checked
from graphdb.common.values.terms import LITERAL_BASE, VALUE_SQL, XSD, Kind, escaped
from graphdb.storage.arrays import text_kernels
from graphdb.storage.arrays.arrow import string_bytes, string_places, values
from graphdb.storage.arrays.spill import unmap
from graphdb.storage.file.scratch import spill_error

if TYPE_CHECKING:
    import duckdb

RESOURCE = "CASE WHEN starts_with(iri, '_:') OR starts_with(iri, '<<(') THEN iri ELSE '<' || iri || '>' END"
"""SQL for a row of the table ``resource``: blank nodes and triple terms are RDF text."""

LITERAL = (
    f"""'"' || {escaped("lexical")} || '"' || CASE WHEN language IS NOT NULL THEN '@' || language """
    "WHEN datatype IS NOT NULL THEN '^^<' || datatype || '>' ELSE '' END"
)
"""SQL for a row of the table ``literal``."""

_BOOLEAN, _DATE, _DATETIME = (VALUE_SQL[kind].format("literal") for kind in (Kind.BOOLEAN, Kind.DATE, Kind.DATETIME))

VALUED = f"literal.*, {_BOOLEAN} AS boolean, {_DATE} AS date, {_DATETIME} AS datetime"
"""SQL for the columns of the table ``literal``, with values in columns of their own."""

TYPED_VALUE = f"""
CASE WHEN language IS NOT NULL THEN NULL
    WHEN datatype IS NULL THEN 'lexical'
    WHEN datatype = '{XSD}integer' AND text IS NULL THEN 'integer'
    WHEN datatype = '{XSD}boolean' AND text = ({_BOOLEAN})::VARCHAR THEN 'boolean'
    WHEN datatype = '{XSD}double' AND isfinite(number) AND lexical = number::VARCHAR THEN 'number'
    WHEN datatype = '{XSD}date' AND text = ({_DATE})::VARCHAR THEN 'date'
    WHEN datatype = '{XSD}dateTime' AND text = replace(({_DATETIME})::VARCHAR, ' ', 'T') THEN 'datetime'
END"""
"""SQL for the column of :data:`VALUED` that holds a literal exactly, or NULL."""

_ROWS = 50_000
"""Terms that are fetched at a time."""


class Terms:
    """The terms of the graph behind a connection.

    Parameters
    ----------
    folder
        Where the files are.
    memory
        Bytes of them that may stay in memory after a call of :meth:`lines`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path, memory: int) -> None:
        self._resources = _Texts(connection, f"SELECT id, {RESOURCE} FROM _graphdb.resource", folder / "resources")
        self._literals = _Texts(connection, f"SELECT id, {LITERAL} FROM _graphdb.literal", folder / "literals")
        self._memory = memory

    def lines(self, columns: Sequence[NDArray[np.int64]]) -> arrow.Array:
        """Return a line of the texts of some terms for each row; there is none where an id is negative."""
        parts = []
        sizes = np.full(len(columns[0]), 2, np.int64)
        for ids in columns:
            literal = ids >= LITERAL_BASE
            resources = self._resources.places(np.where(literal, -1, ids))
            literals = self._literals.places(np.where(literal, ids, -1))
            lengths = self._resources.lengths(resources) + self._literals.lengths(literals) + (ids >= 0)
            parts.append((resources, literals, lengths))
            sizes += lengths
        ends = np.append(0, np.cumsum(sizes))
        out, at = np.empty(int(ends[-1]), np.uint8), ends[:-1].copy()
        for resources, literals, lengths in parts:
            self._resources.put(resources, at, out)
            self._literals.put(literals, at, out)
            at += lengths
        out[at], out[at + 1] = b".\n"
        for texts in (self._resources, self._literals):
            texts.let_go(self._memory // 2)
        return arrow.text_array(out, ends)


class _Texts:
    """The texts of one table, by id."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, sql: str, path: Path) -> None:
        ids: list[NDArray[np.int64]] = []
        ends = [np.zeros(1, np.int64)]
        try:
            with path.open("wb") as file, batches(connection, sql, _ROWS) as reader:
                for batch in checked(reader, 1):
                    ids.append(values(batch.column(0)))
                    texts = batch.column(1)
                    _, offsets = string_places(texts)
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

    def places(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which of the texts ids have; -1 where one is negative."""
        first, places = self._places
        if places is None:
            return np.where(ids < 0, -1, ids - first)
        found = np.full(len(ids), -1, np.int64)
        there = ids >= 0
        found[there] = places[ids[there] - first]
        return found

    def lengths(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many bytes texts have; none where a place is negative."""
        found = np.zeros(len(places), np.int64)
        there = np.flatnonzero(places >= 0)
        found[there] = self._ends[places[there] + 1] - self._ends[places[there]]
        return found

    def put(self, places: NDArray[np.int64], begins: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        """Write texts, and a blank behind each, to where each shall begin."""
        text_kernels.put(self._bytes, self._ends, places, begins, out, ord(" "))
        self._read += int(self.lengths(places).sum())

    def let_go(self, memory: int) -> None:
        """Release what was read, where it may be more bytes than ``memory``."""
        if self._read > memory and len(self._bytes) > memory:
            unmap(self._bytes)
            self._read = 0


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
