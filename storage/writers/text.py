"""The graph as RDF text: N-Triples and N-Quads of the texts of terms, Turtle and TriG from these by pyoxigraph.

N-Triples and Turtle hold one graph; N-Quads and TriG hold the named graphs too.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from graphdb.common import arrow
from graphdb.common.duckdb.fetch import batches
from graphdb.common.errors import GraphDBError
from graphdb.common.values.terms import RDF_REIFIES
from graphdb.storage.arrays.arrow import string_bytes, values
from graphdb.storage.updates.append import DEFAULT_GRAPH
from graphdb.storage.writers.graphs import EDGES, PLACES, QUADS, TRIPLES
from graphdb.storage.writers.terms import LITERAL, RESOURCE, Terms

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.writers.progress import ExportProgress

ROWS = 50_000
"""Lines that are fetched at a time."""


_AHEAD = 1 << 20
"""Bytes that a reader of lines may be ahead of what it has parsed."""

_TRIPLES = f"SELECT subject, label, object FROM {TRIPLES}"

_QUADS = f"""
SELECT subject, label, object, coalesce(quad.graph, {DEFAULT_GRAPH}) AS graph
FROM {TRIPLES} AS triple LEFT JOIN {QUADS} AS quad USING (label, subject, object)
"""

_EDGES = f"""
WITH resource AS (SELECT id, {RESOURCE} AS text FROM _graphdb.resource),
term AS (FROM resource UNION ALL SELECT id, {LITERAL} FROM _graphdb.literal),
named AS (
    SELECT edge.*, coalesce(resource.text, '_:e' || edge.label || '_' || edge.subject || '_' || edge.object || '_'
        || edge.ordinal) AS name
    FROM {EDGES} AS edge LEFT JOIN _graphdb.reifier USING (label, subject, object, ordinal)
    LEFT JOIN resource ON resource.id = reifier
)
SELECT name || ' <{RDF_REIFIES}> <<( ' || subject.text || ' ' || label.text || ' ' || object.text || ' )>>'
    || {{graph}} || ' .' || chr(10) AS line
FROM named JOIN resource AS subject ON subject.id = named.subject
JOIN resource AS label ON label.id = named.label JOIN term AS object ON object.id = named.object {{places}}
UNION ALL
SELECT name || ' ' || key.text || ' ' || value.text || ' .' || chr(10)
FROM named JOIN _graphdb.edge_property AS property USING (label, subject, object, ordinal)
JOIN resource AS key ON key.id = property.key JOIN term AS value ON value.id = property.value
"""
"""Edges with identity, as reifiers; one that has none gets a blank node."""

_PLACED = {
    "graph": "coalesce(' ' || place.text, '')",
    "places": f"LEFT JOIN {PLACES} AS edge_graph USING (label, subject, object, ordinal)"
    " LEFT JOIN resource AS place ON place.id = edge_graph.graph",
}
"""What tells in which graphs they are."""


def lines(connection: duckdb.DuckDBPyConnection, terms: Terms, quads: bool, ordered: bool = False) -> Generator[Any]:
    """Yield Arrow arrays of lines of N-Triples or N-Quads."""
    triples = _QUADS if quads else _TRIPLES
    if ordered:  # so that Turtle names each graph and each subject once
        triples += f" ORDER BY {'graph ASC, ' if quads else ''}subject ASC, label ASC, object ASC"
    with batches(connection, triples, ROWS) as reader:  # nothing else can be asked while one is open
        for batch in reader:
            yield terms.lines([values(column) for column in batch.columns])
    edges = _EDGES.format_map(_PLACED if quads else {"graph": "''", "places": ""})
    with batches(connection, edges, ROWS) as reader:
        for batch in reader:
            yield batch.column(0)


def write(
    connection: duckdb.DuckDBPyConnection,
    file: IO[bytes],
    format: str,
    prefixes: dict[str, str],
    progress: ExportProgress,
    folder: Path,
    memory: int,
) -> int:
    """Write the graph; return the number of statements.

    Parameters
    ----------
    folder
        Where the texts of terms are stored meanwhile.
    memory
        How many bytes of them may be read into memory.
    """
    quads = format in ("nquads", "trig")
    plain = format in ("ntriples", "nquads")
    terms = Terms(connection, folder, memory)
    with closing(lines(connection, terms, quads, ordered=not plain)) as arrays:
        source = _Lines(arrays, progress)
        if plain:
            for text in source.pieces():
                file.write(text)
        else:
            _write_grouped(source, file, quads, prefixes)
    progress.end(source.count)
    return source.count


def _write_grouped(source: _Lines, file: IO[bytes], quads: bool, prefixes: dict[str, str]) -> None:
    """Write lines, which are sorted, as Turtle or TriG."""
    import pyoxigraph

    known = pyoxigraph.RdfFormat.N_QUADS if quads else pyoxigraph.RdfFormat.N_TRIPLES
    parsed: Any = pyoxigraph.parse(io.BufferedReader(source), known)
    wanted = pyoxigraph.RdfFormat.TRIG if quads else pyoxigraph.RdfFormat.TURTLE
    statements = parsed if quads else (quad.triple for quad in parsed)
    try:
        pyoxigraph.serialize(statements, file, wanted, prefixes=prefixes)
    except SyntaxError as error:  # what is so written could not be read
        name, reason = "TriG" if quads else "Turtle", str(error.args[0]).partition(": ")[2]
        raise GraphDBError(
            f"{source.within(error)} cannot be written as {name}, whose readers would refuse it: {reason}",
            hint="N-Triples, N-Quads, Parquet and GraphML (.nt, .nq, .parquet, .graphml) can hold it",
        ) from None


class _Lines(io.RawIOBase):
    """Arrow arrays of lines as a file that is read."""

    def __init__(self, arrays: Iterator[Any], progress: ExportProgress) -> None:
        self._arrays = arrays
        self._progress = progress
        self._rest = memoryview(b"")
        self._recent: deque[tuple[int, Any]] = deque()
        """How many lines came before each of the arrays read last, and these."""
        self.count = 0

    def pieces(self) -> Iterator[memoryview]:
        """Yield the bytes of one array after the other."""
        for array in self._arrays:
            self.count += len(array)
            yield string_bytes(array)
            self._progress.report(self.count)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            array = next(self._arrays, None)
            if array is None:
                return 0
            self._recent.append((self.count, array))
            while sum(later.nbytes for _, later in islice(self._recent, 1, None)) > _AHEAD:
                self._recent.popleft()
            self.count += len(array)
            self._rest = string_bytes(array)
            self._progress.report(self.count)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def within(self, error: SyntaxError) -> str:
        """Return the term that is wrong by an error of a reader of these lines."""
        number = (error.lineno or 1) - 1
        for first, array in self._recent:
            if first <= number < first + len(array):
                line = arrow.item(array, number - first)
                return str(line[(error.offset or 1) - 1 : (error.end_offset or len(line)) - 1])
        return "a term"
