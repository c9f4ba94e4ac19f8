"""The graph as GraphML, for the tools that draw and measure graphs: vertices, edges, and attributes of both.

It is the property graph's view: labels, and properties with the types that GraphML has (long, double, boolean, string).
A property that has several values somewhere is a JSON list, and its key says so (``g:list``); datatypes, languages and
reifiers' names are not told.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from graphdb.errors import GraphDBError
from graphdb.storage.arrow import string_bytes
from graphdb.storage.loaders.graphml import LIST
from graphdb.storage.loaders.headers import bare_name
from graphdb.storage.loaders.tables import bare
from graphdb.storage.terms import LITERAL_BASE, RDF_TYPE, Kind
from graphdb.storage.writers.graphs import EDGES, TRIPLES

if TYPE_CHECKING:
    import duckdb

_NUMBERS = 1 << Kind.INTEGER | 1 << Kind.DECIMAL | 1 << Kind.DOUBLE

_CONTROL = "'[\\x00-\\x08\\x0B\\x0C\\x0E-\\x1F\\x{FFFE}\\x{FFFF}]'"
"""What XML cannot hold."""


def _escaped(text: str) -> str:
    """SQL for a text in XML."""
    for character, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = f"replace({text}, '{character}', '{written}')"
    return text


_PROPERTIES = f"""
SELECT owner, string_agg('<data key="' || prefix || key || '">' || {_escaped("text")} || '</data>', '' ORDER BY key ASC)
    AS data
FROM (
    SELECT owner, key, any_value(prefix) AS prefix, CASE WHEN max(count(*)) OVER (PARTITION BY key) = 1
        THEN any_value(lexical) ELSE to_json(list(lexical ORDER BY id ASC))::VARCHAR END AS text
    FROM properties JOIN _graphdb.literal AS literal ON literal.id = value GROUP BY owner, key
) GROUP BY owner
"""


_EDGE_PROPERTIES = f"_graphdb.edge_property SEMI JOIN {EDGES} USING (label, subject, object, ordinal)"


def write(connection: duckdb.DuckDBPyConnection, file: IO[bytes]) -> int:
    """Write the graph; return the number of vertices and edges.

    Raises
    ------
    GraphDBError
        Where a literal has a character that XML cannot hold.
    """
    _refuse_controls(connection)
    found = connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
    type_label = found[0][0] if found else -1
    file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<graphml ')
    file.write(f'xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:g="{LIST}">\n'.encode())
    file.write(b'<key id="labels" for="node" attr.name="labels" attr.type="string"/>\n')
    file.write(b'<key id="label" for="edge" attr.name="type" attr.type="string"/>\n')
    keys = connection.execute(
        "SELECT key, iri, bit_or(kinds), max(n) FROM (SELECT label AS key, bit_or(1::UINTEGER << kind) AS kinds,"
        f" count(*) AS n FROM {TRIPLES} JOIN _graphdb.literal ON id = object WHERE label <> ? GROUP BY label, subject)"
        " JOIN _graphdb.resource ON id = key GROUP BY key, iri ORDER BY key ASC", [type_label],
    ).fetchall()  # fmt: skip
    edge_keys = connection.execute(
        "SELECT key, any_value(iri), bit_or(1::UINTEGER << kind), max(n) FROM (SELECT key, kind, count(*) OVER "
        f"(PARTITION BY label, subject, object, ordinal, key) AS n FROM {_EDGE_PROPERTIES} "
        "JOIN _graphdb.literal ON id = value) JOIN _graphdb.resource ON id = key GROUP BY key ORDER BY key ASC"
    ).fetchall()
    for element, prefix, rows in (("node", "n", keys), ("edge", "e", edge_keys)):
        for key, iri, kinds, values in rows:
            name = quoteattr(bare_name(iri))
            type = _type(int(kinds)) if values <= 1 else "string"
            several = "" if values <= 1 else ' g:list="true"'
            line = f'<key id="{prefix}{key}" for="{element}" attr.name={name} attr.type="{type}"{several}/>\n'
            file.write(line.encode())
    file.write(b'<graph edgedefault="directed">\n')
    count = 0
    for sql in (_nodes(type_label), _edges(type_label)):
        with connection.sql(sql).to_arrow_reader(50_000) as reader:
            for batch in reader:
                file.write(string_bytes(batch.column(0)))
                count += batch.num_rows
    file.write(b"</graph>\n</graphml>\n")
    return count


def _refuse_controls(connection: duckdb.DuckDBPyConnection) -> None:
    """Refuse literals with characters that would be lost."""
    held = f"SELECT object FROM {TRIPLES} UNION ALL SELECT value FROM {_EDGE_PROPERTIES}"
    [(count, text)] = connection.execute(
        f"SELECT count(*), any_value(left(lexical, 50)) FROM _graphdb.literal WHERE regexp_matches(lexical, {_CONTROL})"
        f" AND id IN ({held})"
    ).fetchall()
    if count:
        texts = "a text has a character" if count == 1 else f"{count:,} texts have characters"
        raise GraphDBError(
            f"{texts} that GraphML, being XML, cannot hold: {text!r}",
            hint="all other formats can, .parquet and .nt among them",
        )


def _type(kinds: int) -> str:
    if kinds == 1 << Kind.INTEGER:
        return "long"
    if kinds and not kinds & ~_NUMBERS:
        return "double"
    return "boolean" if kinds == 1 << Kind.BOOLEAN else "string"


def _nodes(type_label: int) -> str:
    return f"""
    WITH properties AS (
        SELECT subject AS owner, label AS key, 'n' AS prefix, object AS value FROM {TRIPLES}
        WHERE object >= {LITERAL_BASE} AND label <> {type_label}
    ),
    told AS ({_PROPERTIES}),
    vertex AS (
        SELECT subject AS id FROM {TRIPLES}
        UNION SELECT object FROM {TRIPLES} WHERE object < {LITERAL_BASE} AND label <> {type_label}
    ),
    labelled AS (
        SELECT subject AS id, string_agg({_escaped(bare("iri"))}, ';' ORDER BY iri ASC) AS labels
        FROM {TRIPLES} JOIN _graphdb.resource AS class ON class.id = object
        WHERE label = {type_label} GROUP BY subject
    )
    SELECT '<node id="' || {_escaped(bare("iri"))} || '">'
        || coalesce('<data key="labels">' || labels || '</data>', '') || coalesce(data, '') || '</node>' || chr(10)
    FROM vertex JOIN _graphdb.resource USING (id) LEFT JOIN labelled USING (id) LEFT JOIN told ON owner = id
    """


def _edges(type_label: int) -> str:
    return f"""
    WITH edge AS (
        SELECT label, subject, object, coalesce(ordinal, 0) AS ordinal FROM {TRIPLES} AS triple
        LEFT JOIN {EDGES} AS edge USING (label, subject, object)
        WHERE object < {LITERAL_BASE} AND label <> {type_label}
    ),
    properties AS (
        SELECT {{'l': label, 's': subject, 'o': object, 'n': ordinal}} AS owner, key, 'e' AS prefix, value
        FROM {_EDGE_PROPERTIES}
    ),
    told AS ({_PROPERTIES})
    SELECT '<edge source="' || {_escaped(bare("start.iri"))} || '" target="' || {_escaped(bare("stop.iri"))}
        || '"><data key="label">' || {_escaped(bare("type.iri"))} || '</data>' || coalesce(data, '') || '</edge>'
        || chr(10)
    FROM edge LEFT JOIN told ON owner = {{'l': label, 's': subject, 'o': object, 'n': ordinal}}
    JOIN _graphdb.resource AS start ON start.id = subject JOIN _graphdb.resource AS type ON type.id = label
    JOIN _graphdb.resource AS stop ON stop.id = object
    """
