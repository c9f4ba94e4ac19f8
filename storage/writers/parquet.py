"""The graph as Parquet: a node table, an edge table, and a table of the literals that have no column.

``nodes.parquet`` has ``:ID``, ``:LABEL`` and a list column per property whose values a column can hold exactly: of one
datatype, without language, written as DuckDB writes them.  ``edges.parquet`` has ``:START_ID``, ``:TYPE``, ``:END_ID``,
``:REIFIER`` (the edge's own identity, where it has one), ``:ASSERTED`` (false where an edge is spoken of, but not in
the graph) and such columns too.  ``literals.parquet`` has all other literals: ``:START_ID``, ``:TYPE``, ``:VALUE``,
``:DATATYPE``, ``:LANGUAGE``, and ``:REIFIER`` and ``:ASSERTED`` where somebody speaks of them.  Where there are named
graphs, all three have ``:GRAPH``, and a row for each graph that says something: NULL is the default graph.  Where edges
are spoken of in such, the latter two have ``:REIFIER_GRAPH``.  Loaded together they are the same graph.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.stopping import check_stop
from graphdb.common.values.terms import LITERAL_BASE, RDF_TYPE
from graphdb.storage.file.parquet import path_sql
from graphdb.storage.loaders.tables.headers import bare_name
from graphdb.storage.updates.append import DEFAULT_GRAPH
from graphdb.storage.writers.graphs import EDGES, PLACES, QUADS, TRIPLES
from graphdb.storage.writers.progress import ExportProgress, ranges
from graphdb.storage.writers.terms import TYPED_VALUE, VALUED

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
CREATE OR REPLACE TEMP VIEW _graphdb_{{name}} AS
SELECT {{subject}} AS subject, {{graph}} AS graph, {{key}} AS key, {VALUED},
    CASE WHEN NOT ({{other}}) THEN {TYPED_VALUE} END AS value_type
FROM {{source}} JOIN _graphdb.literal AS literal ON literal.id = {{value}}
"""
"""Literals with the column of the table ``literal`` that holds them exactly, or NULL."""

_COLUMNS = """
SELECT key, iri, any_value(value_type) FROM {values} JOIN _graphdb.resource AS name ON name.id = key
GROUP BY key, iri HAVING count(value_type) = count(*) AND count(DISTINCT value_type) = 1 ORDER BY key
"""


FILES = NODES, EDGE_ROWS, LITERALS = "nodes.parquet", "edges.parquet", "literals.parquet"
"""The names of the tables."""

_BYTES = 400
"""What a triple takes in DuckDB while it becomes part of a row."""

_ROWS = 100_000
"""Rows of a group of rows in a file."""

_WAITING = "_graphdb_waiting"
"""The table of the rows of a file, where they are many on disk."""


def write(connection: duckdb.DuckDBPyConnection, folder: Path, progress: ExportProgress, memory: int) -> int:
    """Write the three tables; return the number of rows.

    Parameters
    ----------
    memory
        Bytes for rows on their way.
    """
    try:
        return _write(connection, folder, progress, memory)
    finally:
        for view in ("values", "edge_values", "edges", "placed"):
            connection.execute(f"DROP VIEW IF EXISTS temp._graphdb_{view}")
        connection.execute(f"DROP TABLE IF EXISTS temp.{_WAITING}")


def _write(connection: duckdb.DuckDBPyConnection, folder: Path, progress: ExportProgress, memory: int) -> int:
    """Write them, of as many triples at a time as memory has room for."""
    most = memory // _BYTES
    for view in (_PLACED, _NAMED):
        connection.execute(view)
    type = _type(connection)
    where, spoken = _place(connection, QUADS, "graph", "GRAPH"), _place(connection, PLACES, "spoken", "REIFIER_GRAPH")
    unspoken = ', NULL::VARCHAR AS ":REIFIER_GRAPH"' if spoken else ""
    source = f"(FROM _graphdb_placed WHERE object >= {LITERAL_BASE} AND label <> {type})"
    connection.execute(
        _VALUES.format(
            name="values", subject="subject", graph="graph", key="label", value="object", other="false", source=source
        )
    )
    no_row = f"object >= {LITERAL_BASE}"  # an edge to a literal has no row among the edges
    source = "_graphdb.edge_property JOIN _graphdb_edges USING (label, subject, object, ordinal)"
    connection.execute(
        _VALUES.format(
            name="edge_values", subject="subject", graph=str(DEFAULT_GRAPH), key="key", value="value",
            other=no_row, source=source,
        ).replace("SELECT", "SELECT name,", 1)
    )  # fmt: skip
    resources = "JOIN _graphdb.resource AS name ON name.id = subject"
    columns, aggregates, keys = _property_columns(connection, "_graphdb_values")
    edge_columns, edge_aggregates, edge_keys = _property_columns(connection, "_graphdb_edge_values")
    edges = f"""_graphdb_edges LEFT JOIN _graphdb_placed USING (label, subject, object)
        LEFT JOIN (SELECT * RENAME (graph AS spoken) FROM {PLACES}) USING (label, subject, object, ordinal)"""

    def nodes(within: str) -> str:
        return f"""
        WITH labelled AS (
            SELECT subject, graph, list(iri ORDER BY iri ASC) AS labels FROM _graphdb_placed
            JOIN _graphdb.resource ON id = object WHERE label = {type} AND {within} GROUP BY subject, graph
        ),
        valued AS (
            SELECT subject, graph{aggregates} FROM _graphdb_values WHERE key IN ({keys}) AND {within}
            GROUP BY subject, graph
        )
        SELECT iri AS ":ID", coalesce(labels, []) AS ":LABEL"{where}{columns}
        FROM labelled FULL JOIN valued USING (subject, graph) {resources}
        """

    def edge_rows(within: str) -> str:
        return f"""
        WITH valued AS (
            SELECT name{edge_aggregates} FROM _graphdb_edge_values WHERE key IN ({edge_keys}) AND {within} GROUP BY name
        )
        SELECT start.iri AS ":START_ID", type.iri AS ":TYPE", stop.iri AS ":END_ID", name AS ":REIFIER",
            asserted AS ":ASSERTED"{where}{spoken}{edge_columns}
        FROM (
            SELECT label, subject, object, graph, NULL AS spoken, NULL AS name, true AS asserted FROM _graphdb_placed
            ANTI JOIN _graphdb_edges USING (label, subject, object)
            WHERE object < {LITERAL_BASE} AND label <> {type} AND {within}
            UNION ALL SELECT label, subject, object, graph, spoken, name, asserted FROM {edges} WHERE {within}
        ) LEFT JOIN valued USING (name)
        JOIN _graphdb.resource AS start ON start.id = subject JOIN _graphdb.resource AS type ON type.id = label
        JOIN _graphdb.resource AS stop ON stop.id = object
        """

    def literals(within: str) -> str:
        return f"""
        SELECT name.iri AS ":START_ID", key.iri AS ":TYPE", lexical AS ":VALUE", datatype AS ":DATATYPE",
            language AS ":LANGUAGE"{where}, NULL::VARCHAR AS ":REIFIER", true AS ":ASSERTED"{unspoken}
        FROM _graphdb_values {resources} JOIN _graphdb.resource AS key ON key.id = _graphdb_values.key
        WHERE _graphdb_values.key NOT IN ({keys}) AND {within}
        UNION ALL
        SELECT name.iri, '{RDF_TYPE}', lexical, datatype, language{where}, NULL, true{unspoken}
        FROM _graphdb_placed JOIN _graphdb.literal AS literal ON literal.id = object {resources}
        WHERE label = {type} AND {within}
        UNION ALL
        SELECT name, key.iri, lexical, datatype, language{where}, NULL, true{unspoken}
        FROM _graphdb_edge_values JOIN _graphdb.resource AS key ON key.id = _graphdb_edge_values.key
        WHERE _graphdb_edge_values.key NOT IN ({edge_keys}) AND {within}
        UNION ALL
        SELECT start.iri, type.iri, lexical, datatype, language{where}, name, asserted{spoken}
        FROM {edges} JOIN _graphdb.literal AS literal ON literal.id = object
        JOIN _graphdb.resource AS start ON start.id = subject JOIN _graphdb.resource AS type ON type.id = label
        WHERE {within}
        """

    rows = triples = 0

    for name, table in ((NODES, nodes), (EDGE_ROWS, edge_rows), (LITERALS, literals)):
        names: list[str] = []
        for first, end, share in ranges(connection, most):
            check_stop()
            sql = table(f"subject >= {first} AND subject < {end}")
            if names:
                connection.execute(f"INSERT INTO {_WAITING} {sql}")
            else:  # DuckDB renames columns of a table that differ in case only
                names = connection.sql(sql).columns
                columns = ", ".join(f"#{i + 1} AS c{i}" for i in range(len(names)))
                connection.execute(f"CREATE TEMP TABLE {_WAITING} AS SELECT {columns} FROM ({sql})")
            triples += share
            progress.report(triples // 3)
        check_stop()
        columns = ", ".join(f"c{i} AS {quoted(column)}" for i, column in enumerate(names))
        [(written,)] = connection.execute(
            f"COPY (SELECT {columns} FROM {_WAITING}) TO {path_sql(folder / name)} "
            f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {_ROWS})"
        ).fetchall()
        rows += int(written)
        connection.execute(f"DROP TABLE {_WAITING}")
    progress.end(rows)
    return rows


def _place(connection: duckdb.DuckDBPyConnection, table: str, graph: str, role: str) -> str:
    """SQL of the column that says in which graph something of a row is, where a table has named graphs."""
    named = connection.execute(f"SELECT 1 FROM {table} WHERE graph <> {DEFAULT_GRAPH} LIMIT 1").fetchall()
    return f', (SELECT iri FROM _graphdb.resource AS place WHERE place.id = {graph}) AS ":{role}"' if named else ""


def _type(connection: duckdb.DuckDBPyConnection) -> int:
    """The id of rdf:type, or -1."""
    found = connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
    return int(found[0][0]) if found else -1


def _property_columns(connection: duckdb.DuckDBPyConnection, values: str) -> tuple[str, str, str]:
    """SQL of the columns of properties, of what they are aggregated from, and the keys that have one."""
    columns = aggregates = ""
    keys = ["-1"]
    taken = set()
    for key, iri, value_type in connection.execute(_COLUMNS.format(values=values)).fetchall():
        header = f"{bare_name(iri)}:{_WORDS[value_type]}[]"
        if header.lower() in taken:  # DuckDB would take two columns for one
            continue
        taken.add(header.lower())
        name = quoted(header)
        columns += f", {name}"
        aggregates += f", list({value_type} ORDER BY id ASC) FILTER (key = {key}) AS {name}"
        keys.append(str(key))
    return columns, aggregates, ", ".join(keys)
