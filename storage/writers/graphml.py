"""The graph as GraphML, for the tools that draw and measure graphs: vertices, edges, and attributes of both.

They see the property graph: labels, and properties with the types that GraphML has (long, double, boolean, string).  A
property that has several values somewhere is a JSON list, and its key says so (``g:list``).  What this view cannot tell
(other datatypes, languages, who reifies an edge, an edge that is only spoken of) stands in the file as N-Triples
besides, as data of the graph with the key ``rdf``; keys and edges that it tells again are marked (``g:rdf``), so that
our loader takes them from there, and all others from the view.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from graphdb.common.duckdb.fetch import batches
from graphdb.common.errors import GraphDBError
from graphdb.common.stopping import check_stop
from graphdb.common.values.terms import LITERAL_BASE, RDF_REIFIES, RDF_TYPE, VERTEX, Kind
from graphdb.storage.arrays.arrow import string_bytes
from graphdb.storage.file.prepared_sql import has_rows
from graphdb.storage.loaders.tables.graphml import OURS, role
from graphdb.storage.loaders.tables.headers import bare_name
from graphdb.storage.loaders.tables.terms import bare
from graphdb.storage.writers.graphs import EDGES, TRIPLES
from graphdb.storage.writers.progress import ExportProgress, ranges
from graphdb.storage.writers.terms import LITERAL, RESOURCE, TYPED_VALUE

if TYPE_CHECKING:
    import duckdb

_NUMBERS = 1 << Kind.INTEGER | 1 << Kind.DECIMAL | 1 << Kind.DOUBLE

_CONTROL = "'[\\x00-\\x08\\x0B\\x0C\\x0E-\\x1F\\x{FFFE}\\x{FFFF}]'"
"""What XML cannot hold."""

_ROWS = 20_000
"""Elements that are fetched at a time."""

_BYTES = 1000
"""What a triple takes in DuckDB while it becomes part of a vertex."""


def _escaped(text: str) -> str:
    """SQL for a text in XML."""
    for character, written in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = f"replace({text}, '{character}', '{written}')"
    for blank in (9, 10, 13):  # which would be spaces in attributes, and line ends
        text = f"replace({text}, chr({blank}), '&#{blank};')"
    return text


_PROPERTIES = f"""
SELECT owner, string_agg('<data key="' || prefix || key || '">' || {_escaped("text")} || '</data>', '' ORDER BY key ASC)
    AS data
FROM (
    SELECT owner, key, any_value(prefix) AS prefix, CASE WHEN any_value(several)
        THEN to_json(list(lexical ORDER BY id ASC))::VARCHAR ELSE any_value(lexical) END AS text
    FROM properties JOIN _graphdb.literal AS literal ON literal.id = value JOIN {{keys}} USING (key) GROUP BY owner, key
) GROUP BY owner
"""

_EDGE_PROPERTIES = f"_graphdb.edge_property SEMI JOIN {EDGES} USING (label, subject, object, ordinal)"

_PARTS = """
SELECT key, bit_or(kinds) AS kinds, max(n) AS n, min(value_type) AS least, max(value_type) AS value_type,
    bool_and(exact) AS exact
FROM (
    SELECT key, bit_or(1::UINTEGER << kind) AS kinds, count(*) AS n, max(value_type) AS value_type,
        bool_and(value_type IN ('lexical', 'integer', 'boolean', 'number'))
            AND min(value_type) = max(value_type) AS exact
    FROM (SELECT {owner} AS owner, {key} AS key, kind, coalesce({value}, '') AS value_type FROM {source})
    GROUP BY key, owner
) GROUP BY key
"""
"""What some vertices or edges have of each property: sorts of values, and how many one has at most."""

_KEYS = """
CREATE OR REPLACE TEMP TABLE {name} AS
SELECT key, bit_or(kinds) AS kinds, max(n) > 1 AS several,
    NOT (bool_and(exact) AND min(least) = max(value_type) AND (max(n) = 1 OR max(value_type) = 'lexical')) AS rdf
FROM temp._graphdb_parts GROUP BY key
"""
"""The properties of vertices or edges: the sorts of their values, whether one has several, whether RDF must tell it."""

_ANNOTATED = f"""
CREATE OR REPLACE TEMP TABLE _graphdb_annotated AS
SELECT DISTINCT label, subject, object FROM {EDGES} LEFT JOIN _graphdb.reifier USING (label, subject, object, ordinal)
WHERE reifier IS NOT NULL OR object >= {LITERAL_BASE} OR label = {{type}}
UNION SELECT label, subject, object FROM {EDGES} ANTI JOIN {TRIPLES} USING (label, subject, object)
UNION SELECT label, subject, object FROM {_EDGE_PROPERTIES} JOIN _graphdb_edge_keys USING (key) WHERE rdf
"""
"""The triples of which some edge needs the RDF part; then all their edges are stated there."""

_TERMS = f"""
WITH resource AS (SELECT id, {RESOURCE} AS text FROM _graphdb.resource),
term AS (FROM resource UNION ALL SELECT id, {LITERAL} FROM _graphdb.literal)
"""

_RDF = (
    f"""
{_TERMS}
SELECT subject.text || ' ' || label.text || ' ' || object.text AS line FROM (
    SELECT triple.* FROM {TRIPLES} AS triple JOIN _graphdb_keys ON key = label WHERE rdf AND object >= {LITERAL_BASE}
    UNION ALL SELECT triple.* FROM {TRIPLES} AS triple SEMI JOIN _graphdb_annotated USING (label, subject, object)
    WHERE object < {LITERAL_BASE}
    UNION ALL SELECT triple.* FROM {TRIPLES} AS triple JOIN _graphdb.resource AS class ON class.id = object
    WHERE label = {{type}} AND contains(class.iri, ';')
) AS triple JOIN resource AS subject ON subject.id = subject JOIN resource AS label ON label.id = label
JOIN term AS object ON object.id = object
""",
    f"""
{_TERMS}, named AS (
    SELECT edge.*, coalesce(resource.text, '_:e' || edge.label || '_' || edge.subject || '_' || edge.object || '_'
        || edge.ordinal) AS name
    FROM {EDGES} AS edge SEMI JOIN _graphdb_annotated USING (label, subject, object)
    LEFT JOIN _graphdb.reifier USING (label, subject, object, ordinal) LEFT JOIN resource ON resource.id = reifier
)
SELECT name || ' <{RDF_REIFIES}> <<( ' || subject.text || ' ' || label.text || ' ' || object.text || ' )>>' AS line
FROM named JOIN resource AS subject ON subject.id = named.subject
JOIN resource AS label ON label.id = named.label JOIN term AS object ON object.id = named.object
UNION ALL
SELECT name || ' ' || key.text || ' ' || value.text
FROM named JOIN _graphdb.edge_property AS property USING (label, subject, object, ordinal)
JOIN resource AS key ON key.id = property.key JOIN term AS value ON value.id = property.value
""",
)
"""What the RDF part states: literals of vertices and the triples of edges, and these edges with their properties."""


def write(connection: duckdb.DuckDBPyConnection, file: IO[bytes], progress: ExportProgress, memory: int) -> int:
    """Write the graph; return the number of vertices and edges.

    Parameters
    ----------
    memory
        Bytes for vertices on their way.

    Raises
    ------
    GraphDBError
        Where a literal has a character that XML cannot hold.
    """
    _refuse_controls(connection)
    found = connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
    type_label = found[0][0] if found else -1
    try:
        return _write(connection, file, type_label, progress, memory)
    finally:
        for table in ("parts", "keys", "edge_keys", "annotated"):
            connection.execute(f"DROP TABLE IF EXISTS temp._graphdb_{table}")


def _write(
    connection: duckdb.DuckDBPyConnection, file: IO[bytes], type_label: int, progress: ExportProgress, memory: int
) -> int:
    parts = list(ranges(connection, memory // _BYTES))
    edge = "{'l': label, 's': subject, 'o': object, 'n': ordinal}"
    _find_keys(connection, "_graphdb_keys", "subject", "label", f"{TRIPLES} AS triple", "object", parts)
    connection.execute("UPDATE _graphdb_keys SET rdf = true WHERE key = ?", [type_label])
    _find_keys(connection, "_graphdb_edge_keys", edge, "key", _EDGE_PROPERTIES, "value", parts)
    connection.execute(_ANNOTATED.replace("{type}", str(type_label)))
    file.write(b'<?xml version="1.0" encoding="UTF-8"?>\n<graphml ')
    file.write(f'xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:g="{OURS}">\n'.encode())
    file.write(b'<key id="labels" for="node" attr.name="labels" attr.type="string"/>\n')
    file.write(b'<key id="label" for="edge" attr.name="type" attr.type="string"/>\n')
    file.write(b'<key id="rdf" for="graph" attr.name="rdf" attr.type="string" g:rdf="true"/>\n')
    for element, prefix, table in (("node", "n", "_graphdb_keys"), ("edge", "e", "_graphdb_edge_keys")):
        keys = f"SELECT key, iri, kinds, several, rdf FROM {table} JOIN _graphdb.resource ON id = key ORDER BY key ASC"
        for key, iri, kinds, several, rdf in connection.execute(keys).fetchall():
            name = quoteattr(iri if role(element, bare_name(iri)) else bare_name(iri))
            type = "string" if several else _type(int(kinds))
            marks = (' g:list="true"' if several else "") + (' g:rdf="true"' if rdf else "")
            line = f'<key id="{prefix}{key}" for="{element}" attr.name={name} attr.type="{type}"{marks}/>\n'
            file.write(line.encode())
    file.write(b'<graph edgedefault="directed">\n')
    count = triples = 0
    for nodes in (True, False):
        for first, end, share in parts:
            sql = _nodes(type_label, first, end) if nodes else _edges(type_label, first, end)
            count += _stream(connection, sql, file)
            triples += share
            progress.report(triples // 2)
    for rdf in _RDF:
        sql = rdf.replace("{type}", str(type_label))
        lines = f"SELECT '<data key=\"rdf\">' || {_escaped('line')} || ' .</data>' || chr(10) FROM ({sql})"
        _stream(connection, lines, file)
    file.write(b"</graph>\n</graphml>\n")
    progress.end(count)
    return count


def _find_keys(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    owner: str,
    key: str,
    table: str,
    value: str,
    parts: Sequence[tuple[int, int, int]],
) -> None:
    """Make the table ``name`` of the properties that stand in a table, part by part of its subjects."""
    for number, (first, end, _) in enumerate(parts):
        source = f"(FROM {table} WHERE subject >= {first} AND subject < {end}) AS part JOIN _graphdb.literal AS literal"
        found = _PARTS.format(owner=owner, key=key, value=TYPED_VALUE, source=f"{source} ON literal.id = {value}")
        into = "INSERT INTO temp._graphdb_parts" if number else "CREATE OR REPLACE TEMP TABLE _graphdb_parts AS"
        connection.execute(f"{into} {found}")
    connection.execute(_KEYS.format(name=name))


def _stream(connection: duckdb.DuckDBPyConnection, sql: str, file: IO[bytes]) -> int:
    """Write the lines of a query; return how many there were."""
    count = 0
    with batches(connection, sql, _ROWS) as reader:
        for batch in reader:
            check_stop()
            file.write(string_bytes(batch.column(0)))
            count += batch.num_rows
    return count


_BAD_NAMES = f"""
WITH bad AS MATERIALIZED (SELECT id, iri FROM _graphdb.resource WHERE regexp_matches(iri, {_CONTROL}))
SELECT iri FROM bad WHERE id IN (
    SELECT unnest([subject, label, object]) FROM {TRIPLES} WHERE EXISTS (FROM bad) UNION ALL
    SELECT unnest([subject, label, object]) FROM {EDGES} WHERE EXISTS (FROM bad) UNION ALL
    SELECT key FROM {_EDGE_PROPERTIES} WHERE EXISTS (FROM bad)
) LIMIT 1
"""
"""A name of what is written, or a triple term, that XML cannot hold."""


def _refuse_controls(connection: duckdb.DuckDBPyConnection) -> None:
    """Refuse literals and names with characters that would be lost."""
    for (iri,) in connection.execute(_BAD_NAMES).fetchall():
        raise GraphDBError(
            f"the name {iri!r} has a character that GraphML, being XML, cannot hold",
            hint="all other formats can, .parquet and .nt among them",
        )
    bad = f"SELECT id, lexical FROM _graphdb.literal WHERE regexp_matches(lexical, {_CONTROL})"
    objects = f"SELECT object AS id FROM {TRIPLES} UNION ALL SELECT value FROM {_EDGE_PROPERTIES}"
    if not has_rows(connection, f"({bad})"):
        return
    [(count, text)] = connection.execute(
        f"SELECT count(DISTINCT id), any_value(left(lexical, 50)) FROM ({objects}) JOIN ({bad}) USING (id)"
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


def _nodes(type_label: int, first: int, end: int) -> str:
    """SQL for the vertices from number ``first`` to before ``end``."""
    return f"""
    WITH properties AS (
        SELECT subject AS owner, label AS key, 'n' AS prefix, object AS value FROM {TRIPLES}
        WHERE object >= {LITERAL_BASE} AND label <> {type_label} AND subject >= {first} AND subject < {end}
    ),
    described AS ({_PROPERTIES.format(keys="_graphdb_keys")}),
    exact AS (SELECT DISTINCT owner FROM properties JOIN _graphdb_keys USING (key) WHERE NOT rdf),
    vertex AS (
        SELECT subject AS id FROM {TRIPLES} WHERE subject >= {first} AND subject < {end}
        UNION SELECT object FROM {TRIPLES} WHERE object >= {first} AND object < {end} AND label <> {type_label}
    ),
    labelled AS (
        SELECT subject AS id, string_agg({_escaped(bare("iri"))}, ';' ORDER BY iri ASC) FILTER (iri <> '{VERTEX}')
            AS labels, bool_or(iri = '{VERTEX}') AS made
        FROM {TRIPLES} JOIN _graphdb.resource AS class ON class.id = object
        WHERE label = {type_label} AND NOT contains(iri, ';') AND subject >= {first} AND subject < {end}
        GROUP BY subject
    )
    SELECT '<node id="' || {_escaped(bare("iri"))} || '"' || CASE
        WHEN made THEN ' g:vertex="true"' WHEN labels IS NULL AND exact.owner IS NULL THEN ' g:rdf="true"' ELSE '' END
        || '>' || coalesce('<data key="labels">' || labels || '</data>', '') || coalesce(data, '') || '</node>'
        || chr(10)
    FROM vertex JOIN _graphdb.resource USING (id) LEFT JOIN labelled USING (id)
    LEFT JOIN described ON described.owner = id LEFT JOIN exact ON exact.owner = id
    """


def _edges(type_label: int, first: int, end: int) -> str:
    """SQL for the edges that begin at these vertices."""
    return f"""
    WITH edge AS (
        SELECT label, subject, object, coalesce(ordinal, 0) AS ordinal, described.label IS NOT NULL AS rdf
        FROM {TRIPLES} AS triple LEFT JOIN {EDGES} AS edge USING (label, subject, object)
        LEFT JOIN _graphdb_annotated AS described USING (label, subject, object)
        WHERE object < {LITERAL_BASE} AND label <> {type_label} AND subject >= {first} AND subject < {end}
    ),
    properties AS (
        SELECT {{'l': label, 's': subject, 'o': object, 'n': ordinal}} AS owner, key, 'e' AS prefix, value
        FROM {_EDGE_PROPERTIES} WHERE subject >= {first} AND subject < {end}
    ),
    described AS ({_PROPERTIES.format(keys="_graphdb_edge_keys")})
    SELECT '<edge source="' || {_escaped(bare("start.iri"))} || '" target="' || {_escaped(bare("stop.iri"))}
        || '"' || if(rdf, ' g:rdf="true"', '') || '><data key="label">' || {_escaped(bare("type.iri"))} || '</data>'
        || coalesce(data, '') || '</edge>' || chr(10)
    FROM edge LEFT JOIN described ON owner = {{'l': label, 's': subject, 'o': object, 'n': ordinal}}
    JOIN _graphdb.resource AS start ON start.id = subject JOIN _graphdb.resource AS type ON type.id = label
    JOIN _graphdb.resource AS stop ON stop.id = object
    """
