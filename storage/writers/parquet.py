"""The graph as Parquet: a node table, an edge table, and a table of the literals that have no column.

``nodes.parquet`` has ``:ID``, ``:LABEL`` and a list column per property whose values a column can hold exactly: of one
datatype, without language, written as DuckDB writes them.  ``edges.parquet`` has ``:START_ID``, ``:TYPE``, ``:END_ID``,
``:REIFIER`` (the edge's own identity, where it has one), ``:ASSERTED`` (false where an edge is spoken of, but not in
the graph) and such columns too.  ``literals.parquet`` has all other literals: ``:START_ID``, ``:TYPE``, ``:VALUE``,
``:DATATYPE``, ``:LANGUAGE``, and ``:REIFIER`` and ``:ASSERTED`` where somebody speaks of them.  Where there are named
graphs, all three have ``:GRAPH``, and a row for each graph that says something: NULL is the default graph.  Loaded
together they are the same graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from graphdb.connection import quoted
from graphdb.storage.append import DEFAULT_GRAPH
from graphdb.storage.loaders.headers import bare_name
from graphdb.storage.terms import LITERAL_BASE, RDF_TYPE, XSD
from graphdb.storage.writers.graphs import EDGES, QUADS, TRIPLES

if TYPE_CHECKING:
    import duckdb

_WORDS = {"lexical": "string", "integer": "int", "boolean": "boolean", "number": "double", "date": "date",
          "datetime": "localdatetime"}  # fmt: skip
"""The types that headers say, by the columns that hold the values."""

_PLACED = f"""
CREATE OR REPLACE TEMP VIEW _graphdb_placed AS
SELECT label, subject, object, coalesce(graph, {DEFAULT_GRAPH}) AS graph
FROM {TRIPLES} AS triple LEFT JOIN {QUADS} AS quad USING (label, subject, object)
"""
"""The triples, each in all of its graphs."""

_NAMED = f"""
CREATE OR REPLACE TEMP VIEW _graphdb_edges AS
SELECT edge.*, known.label IS NOT NULL AS asserted,
    coalesce(iri, '_:e' || edge.label || '_' || edge.subject || '_' || edge.object || '_' || ordinal) AS name
FROM {EDGES} AS edge LEFT JOIN _graphdb.reifier USING (label, subject, object, ordinal)
LEFT JOIN _graphdb.resource ON id = reifier
LEFT JOIN {TRIPLES} AS known
    ON known.label = edge.label AND known.subject = edge.subject AND known.object = edge.object
"""

_VALUES = f"""
CREATE OR REPLACE TEMP TABLE _graphdb_values AS
SELECT {{subject}} AS subject, {{graph}} AS graph, {{key}} AS key, literal.*, CASE
        WHEN language IS NOT NULL OR {{other}} THEN NULL
        WHEN datatype IS NULL THEN 'lexical'
        WHEN datatype = '{XSD}integer' AND lexical = integer::VARCHAR THEN 'integer'
        WHEN datatype = '{XSD}boolean' AND lexical = boolean::VARCHAR THEN 'boolean'
        WHEN datatype = '{XSD}double' AND isfinite(number) AND lexical = number::VARCHAR THEN 'number'
        WHEN datatype = '{XSD}date' AND lexical = date::VARCHAR THEN 'date'
        WHEN datatype = '{XSD}dateTime' AND lexical = replace(datetime::VARCHAR, ' ', 'T') THEN 'datetime'
    END AS held
FROM {{source}} JOIN _graphdb.literal AS literal ON literal.id = {{value}}
"""
"""Literals with the column of the table ``literal`` that holds them exactly, or NULL."""

_COLUMNS = """
SELECT key, iri, any_value(held) FROM _graphdb_values JOIN _graphdb.resource AS name ON name.id = key
GROUP BY key, iri HAVING count(held) = count(*) AND count(DISTINCT held) = 1
AND NOT bool_or(held = 'lexical' AND lexical = '') ORDER BY key
"""


def write(connection: duckdb.DuckDBPyConnection, folder: Path) -> int:
    """Write the three tables; return the number of rows."""
    for view in (_PLACED, _NAMED):
        connection.execute(view)
    type, where = _type(connection), _where(connection)
    source = f"(FROM _graphdb_placed WHERE object >= {LITERAL_BASE} AND label <> {type})"
    connection.execute(
        _VALUES.format(subject="subject", graph="graph", key="label", value="object", other="false", source=source)
    )
    columns, aggregates, keys = _held(connection)
    resources = "JOIN _graphdb.resource AS name ON name.id = subject"
    rows = _copy(
        connection,
        folder / "nodes.parquet",
        f"""
        WITH labelled AS (
            SELECT subject, graph, list(iri ORDER BY iri ASC) AS labels FROM _graphdb_placed
            JOIN _graphdb.resource ON id = object WHERE label = {type} GROUP BY subject, graph
        ),
        valued AS (
            SELECT subject, graph{aggregates} FROM _graphdb_values WHERE key IN ({keys}) GROUP BY subject, graph
        )
        SELECT iri AS ":ID", coalesce(labels, []) AS ":LABEL"{where}{columns}
        FROM labelled FULL JOIN valued USING (subject, graph) {resources}
        """,
    )
    others = f"""
        SELECT name.iri AS ":START_ID", key.iri AS ":TYPE", lexical AS ":VALUE", datatype AS ":DATATYPE",
            language AS ":LANGUAGE"{where}
        FROM _graphdb_values {resources} JOIN _graphdb.resource AS key ON key.id = _graphdb_values.key
        WHERE _graphdb_values.key NOT IN ({keys})
        UNION ALL
        SELECT name.iri, '{RDF_TYPE}', lexical, datatype, language{where}
        FROM _graphdb_placed JOIN _graphdb.literal AS literal ON literal.id = object {resources}
        WHERE label = {type}
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE _graphdb_others AS {others}")
    no_row = f"object >= {LITERAL_BASE}"  # an edge to a literal has no row among the edges
    source = "_graphdb.edge_property JOIN _graphdb_edges USING (label, subject, object, ordinal)"
    connection.execute(
        _VALUES.format(subject="name", graph=str(DEFAULT_GRAPH), key="key", value="value", other=no_row, source=source)
    )
    columns, aggregates, keys = _held(connection)
    edges = "_graphdb_edges LEFT JOIN _graphdb_placed USING (label, subject, object)"
    rows += _copy(
        connection,
        folder / "edges.parquet",
        f"""
        WITH valued AS (SELECT subject AS name{aggregates} FROM _graphdb_values WHERE key IN ({keys}) GROUP BY subject)
        SELECT start.iri AS ":START_ID", type.iri AS ":TYPE", stop.iri AS ":END_ID", name AS ":REIFIER",
            asserted AS ":ASSERTED"{where}{columns}
        FROM (
            SELECT label, subject, object, graph, NULL AS name, true AS asserted FROM _graphdb_placed
            ANTI JOIN _graphdb_edges USING (label, subject, object)
            WHERE object < {LITERAL_BASE} AND label <> {type}
            UNION ALL SELECT label, subject, object, graph, name, asserted FROM {edges}
        ) LEFT JOIN valued USING (name)
        JOIN _graphdb.resource AS start ON start.id = subject JOIN _graphdb.resource AS type ON type.id = label
        JOIN _graphdb.resource AS stop ON stop.id = object
        """,
    )
    rows += _copy(
        connection,
        folder / "literals.parquet",
        f"""
        SELECT *, NULL::VARCHAR AS ":REIFIER", true AS ":ASSERTED" FROM _graphdb_others UNION ALL
        SELECT subject, key.iri, lexical, datatype, language{where}, NULL, true
        FROM _graphdb_values JOIN _graphdb.resource AS key ON key.id = _graphdb_values.key
        WHERE _graphdb_values.key NOT IN ({keys})
        UNION ALL
        SELECT start.iri, type.iri, lexical, datatype, language{where}, name, asserted
        FROM {edges} JOIN _graphdb.literal AS literal ON literal.id = object
        JOIN _graphdb.resource AS start ON start.id = subject JOIN _graphdb.resource AS type ON type.id = label
        """,
    )
    for table in ("_graphdb_values", "_graphdb_others"):
        connection.execute(f"DROP TABLE temp.{table}")
    for view in ("_graphdb_edges", "_graphdb_placed"):
        connection.execute(f"DROP VIEW temp.{view}")
    return rows


def _where(connection: duckdb.DuckDBPyConnection) -> str:
    """SQL of the column that says in which graph a row is, where there are named graphs."""
    named = connection.execute(f"SELECT 1 FROM {QUADS} WHERE graph <> {DEFAULT_GRAPH} LIMIT 1").fetchall()
    return ', (SELECT iri FROM _graphdb.resource AS place WHERE place.id = graph) AS ":GRAPH"' if named else ""


def _type(connection: duckdb.DuckDBPyConnection) -> int:
    """The id of rdf:type, or -1."""
    found = connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
    return int(found[0][0]) if found else -1


def _held(connection: duckdb.DuckDBPyConnection) -> tuple[str, str, str]:
    """SQL of the columns of properties, of what they are aggregated from, and the keys that have one."""
    columns = aggregates = ""
    keys = ["-1"]
    for key, iri, held in connection.execute(_COLUMNS).fetchall():
        name = quoted(f"{bare_name(iri)}:{_WORDS[held]}[]")
        columns += f", {name}"
        aggregates += f", list({held} ORDER BY id ASC) FILTER (key = {key}) AS {name}"
        keys.append(str(key))
    return columns, aggregates, ", ".join(keys)


def _copy(connection: duckdb.DuckDBPyConnection, path: Path, sql: str) -> int:
    """Write a query's rows to a Parquet file."""
    text = str(path).replace("'", "''")
    [(count,)] = connection.execute(f"COPY ({sql}) TO '{text}' (FORMAT parquet, COMPRESSION zstd)").fetchall()
    return int(count)
