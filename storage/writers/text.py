"""The graph as RDF text: N-Triples and N-Quads by SQL, Turtle and TriG from these by pyoxigraph.

N-Triples and Turtle hold one graph; N-Quads and TriG hold the named graphs too.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import IO, TYPE_CHECKING, Any

from graphdb.storage.append import DEFAULT_GRAPH
from graphdb.storage.arrow import string_bytes
from graphdb.storage.terms import RDF_REIFIES, escaped
from graphdb.storage.writers.graphs import EDGES, QUADS, TRIPLES

if TYPE_CHECKING:
    import duckdb

ROWS = 50_000
"""Lines that are fetched at a time."""


_TERMS = f"""
WITH resource AS (
    SELECT id, CASE WHEN starts_with(iri, '_:') THEN iri ELSE '<' || iri || '>' END AS text FROM _graphdb.resource
),
literal AS (
    SELECT id, '"' || {escaped("lexical")} || '"' || CASE
        WHEN language IS NOT NULL THEN '@' || language WHEN datatype IS NOT NULL THEN '^^<' || datatype || '>' ELSE ''
    END AS text FROM _graphdb.literal
),
term AS (FROM resource UNION ALL FROM literal)
"""

_TRIPLES = f"""
SELECT subject.text || ' ' || label.text || ' ' || object.text || ' .' || chr(10) AS line
FROM {TRIPLES} AS triple
JOIN resource AS subject ON subject.id = triple.subject
JOIN resource AS label ON label.id = triple.label
JOIN term AS object ON object.id = triple.object
"""

_QUADS = f"""
SELECT subject.text || ' ' || label.text || ' ' || object.text
    || CASE WHEN graph.text IS NULL THEN '' ELSE ' ' || graph.text END || ' .' || chr(10) AS line
FROM {TRIPLES} AS triple
LEFT JOIN {QUADS} AS quad USING (label, subject, object)
JOIN resource AS subject ON subject.id = triple.subject
JOIN resource AS label ON label.id = triple.label
JOIN term AS object ON object.id = triple.object
LEFT JOIN resource AS graph ON graph.id = quad.graph AND quad.graph <> {DEFAULT_GRAPH}
"""

_EDGES = f"""
named AS (
    SELECT edge.*, coalesce(resource.text, '_:e' || edge.label || '_' || edge.subject || '_' || edge.object || '_'
        || edge.ordinal) AS name
    FROM {EDGES} AS edge LEFT JOIN _graphdb.reifier USING (label, subject, object, ordinal)
    LEFT JOIN resource ON resource.id = reifier
)
SELECT name || ' <{RDF_REIFIES}> <<( ' || subject.text || ' ' || label.text || ' ' || object.text || ' )>> .' || chr(10)
    AS line
FROM named JOIN resource AS subject ON subject.id = named.subject
JOIN resource AS label ON label.id = named.label JOIN term AS object ON object.id = named.object
UNION ALL
SELECT name || ' ' || key.text || ' ' || value.text || ' .' || chr(10)
FROM named JOIN _graphdb.edge_property AS property USING (label, subject, object, ordinal)
JOIN resource AS key ON key.id = property.key JOIN term AS value ON value.id = property.value
"""
"""Edges with identity, as reifiers; one that has none gets a blank node."""


def lines(connection: duckdb.DuckDBPyConnection, quads: bool, ordered: bool = False) -> Generator[Any]:
    """Yield Arrow arrays of lines of N-Triples or N-Quads."""
    triples = f"{_TERMS} {_QUADS if quads else _TRIPLES}"
    if ordered:  # so that Turtle names each graph and each subject once
        graph = "quad.graph ASC NULLS FIRST, " if quads else ""
        triples += f"ORDER BY {graph}triple.subject ASC, triple.label ASC, triple.object ASC"
    for sql in (triples, f"{_TERMS}, {_EDGES}"):
        with connection.sql(sql).to_arrow_reader(ROWS) as reader:  # nothing else can be asked while one is open
            for batch in reader:
                yield batch.column(0)


def write(connection: duckdb.DuckDBPyConnection, file: IO[bytes], format: str, prefixes: dict[str, str]) -> int:
    """Write the graph; return the number of statements."""
    quads = format in ("nquads", "trig")
    plain = format in ("ntriples", "nquads")
    with closing(lines(connection, quads, ordered=not plain)) as arrays:
        source = _Lines(arrays)
        if plain:
            while text := source.read(1 << 20):
                file.write(text)
        else:
            _write_grouped(source, file, quads, prefixes)
    return source.count


def _write_grouped(source: _Lines, file: IO[bytes], quads: bool, prefixes: dict[str, str]) -> None:
    """Write lines, which are sorted, as Turtle or TriG."""
    import pyoxigraph

    known = pyoxigraph.RdfFormat.N_QUADS if quads else pyoxigraph.RdfFormat.N_TRIPLES
    parsed: Any = pyoxigraph.parse(io.BufferedReader(source), known, lenient=True)
    wanted = pyoxigraph.RdfFormat.TRIG if quads else pyoxigraph.RdfFormat.TURTLE
    statements = parsed if quads else (quad.triple for quad in parsed)
    pyoxigraph.serialize(statements, file, wanted, prefixes=prefixes)


class _Lines(io.RawIOBase):
    """Arrow arrays of lines as a file that is read."""

    def __init__(self, arrays: Iterator[Any]) -> None:
        self._arrays = arrays
        self._rest = memoryview(b"")
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            array = next(self._arrays, None)
            if array is None:
                return 0
            self.count += len(array)
            self._rest = string_bytes(array)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
