"""Statistics that plans are made from, kept by loads in proportion to what is new.

Per edge label (``edge_label``): ``triples``; ``resource_triples`` (whose object is a resource); ``subjects`` and
``objects``, distinct; ``max_out_degree`` and ``max_in_degree``, over all objects; ``kinds``, a bit mask with bit
:class:`~graphdb.storage.dictionary.Kind` set for each kind of literal among its objects; ``max_values``, the most
literals that one subject has.  Per vertex label (``vertex_label``): its ``vertices``.

Per edge label and direction (``degree``): a histogram of degrees by powers of two, with the vertices, edges and squared
degrees of each bucket, whence the moments that skewed joins ask for.

Per edge label, direction and vertex label (``label_pair``): how many edges start (or end) at vertices so labelled, and
at how many.  There can be as many pairs as products of labels, so only the :data:`PAIRS` with most edges are kept.

Every table is a sum (or maximum) over vertices.  A load looks at the vertices it touched, finds what they had before
and what they have now, and adds the difference.  So a first load, a later one and a recount are the same few queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphdb.storage.dictionary import Ids
from graphdb.storage.sketch import IN, OUT
from graphdb.storage.terms import LITERAL_BASE, RDF_TYPE

if TYPE_CHECKING:
    import duckdb

PAIRS = 20_000
"""Rows that ``label_pair`` keeps."""

_ENDS = ((OUT, "subject"), (IN, "object"))
_VALUES = {OUT: f"count(*) FILTER (object >= {LITERAL_BASE})", IN: "0"}

_FRESH = " UNION ALL ".join(
    f"SELECT label, {direction} AS direction, {end} AS vertex, 0 AS before, count(*) AS after, {_VALUES[direction]}"
    f" AS literals FROM _graphdb.triple WHERE label IN (SELECT unnest($labels::BIGINT[])) GROUP BY label, {end}"
    for direction, end in _ENDS
)
"""What the vertices of some labels have, as if they had had nothing before."""

_GROWN = " UNION ALL ".join(
    f"SELECT label, {direction} AS direction, {end} AS vertex, count(*) - any_value(added) AS before,"
    f" count(*) AS after, {_VALUES[direction]} AS literals FROM _graphdb.triple"
    f" JOIN (SELECT label, {end}, count(*) AS added FROM {{new}} GROUP BY label, {end}) USING (label, {end})"
    f" GROUP BY label, {end}"
    for direction, end in _ENDS
)
"""What the vertices of new triples had before and have now."""

_EDGE_LABELS = f"""
SELECT label AS id, sum(after - before) FILTER (direction = {OUT}) AS triples,
    coalesce(sum(after - before) FILTER (direction = {IN} AND vertex < {LITERAL_BASE}), 0) AS resource_triples,
    count(*) FILTER (direction = {OUT} AND before = 0) AS subjects,
    count(*) FILTER (direction = {IN} AND before = 0) AS objects,
    max(after) FILTER (direction = {OUT}) AS max_out_degree, max(after) FILTER (direction = {IN}) AS max_in_degree,
    coalesce(bit_or(1::UINTEGER << kind), 0) AS kinds, max(literals) AS max_values
FROM temp._graphdb_touched LEFT JOIN _graphdb.literal
    ON direction = {IN} AND vertex >= {LITERAL_BASE} AND literal.id = vertex
GROUP BY label
"""

_DEGREES = """
SELECT label, direction, bucket, sum(vertices) AS vertices, sum(edges) AS edges, sum(squares) AS squares FROM (
    SELECT label, direction, floor(log2(after)) AS bucket,
        count(*) AS vertices, sum(after) AS edges, sum(after * after) AS squares
    FROM temp._graphdb_touched WHERE after > before GROUP BY ALL
    UNION ALL
    SELECT label, direction, floor(log2(before)), -count(*), -sum(before), -sum(before * before)
    FROM temp._graphdb_touched WHERE before > 0 AND after > before GROUP BY ALL
) GROUP BY ALL
"""

_CLASSES = f"SELECT subject AS vertex, object AS class FROM {{triples}} WHERE label = $type AND object < {LITERAL_BASE}"

_FRESH_PAIRS = f"""
SELECT label, class, direction, sum(after) AS edges, count(*) AS vertices
FROM temp._graphdb_touched JOIN ({_CLASSES.format(triples="_graphdb.triple")}) USING (vertex) GROUP BY ALL
"""

_GROWN_PAIRS = f"""
WITH new_class AS ({_CLASSES}),
old_class AS (
    SELECT * FROM ({_CLASSES.format(triples="_graphdb.triple")}) SEMI JOIN temp._graphdb_touched USING (vertex)
    EXCEPT FROM new_class
),
degree AS (
    {{degrees}}
)
SELECT label, class, direction, sum(edges) AS edges, sum(vertices) AS vertices FROM (
    SELECT label, class, direction, after - before AS edges, (before = 0)::BIGINT AS vertices
    FROM temp._graphdb_touched JOIN old_class USING (vertex)
    UNION ALL
    SELECT label, class, direction, degree, 1 FROM degree JOIN new_class USING (vertex)
) GROUP BY ALL
"""
"""New edges at vertices that were labelled before, and all edges of those that are newly labelled."""

_DEGREES_OF_NEW = " UNION ALL ".join(
    f"SELECT label, {direction} AS direction, {end} AS vertex, count(*) AS degree FROM _graphdb.triple"
    f" WHERE {end} IN (SELECT vertex FROM new_class) GROUP BY label, {end}"
    for direction, end in _ENDS
)


def refresh(connection: duckdb.DuckDBPyConnection, labels: Ids) -> None:
    """Recompute the statistics of these edge labels (int64), and of the vertex labels if rdf:type is among them.

    Runs in the caller's transaction.
    """
    chosen = {"labels": np.unique(labels).tolist()}
    capped = _pairs(connection) >= PAIRS
    for table, key in (("edge_label", "id"), ("degree", "label"), ("label_pair", "label")):
        connection.execute(f"DELETE FROM _graphdb.{table} WHERE {key} IN (SELECT unnest($labels::BIGINT[]))", chosen)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE _graphdb_touched AS {_FRESH}", chosen)
    typed = _type_label(connection)
    _add_labels(connection)
    if typed is not None and typed in chosen["labels"]:
        connection.execute("DELETE FROM _graphdb.vertex_label")
        _add_vertex_labels(connection, "_graphdb.triple", typed)
    if typed is not None:
        if capped or typed in chosen["labels"]:
            _refresh_pairs(connection, typed)
        else:
            _add_pairs(connection, _FRESH_PAIRS, typed)
    connection.execute("DROP TABLE temp._graphdb_touched")


def append(connection: duckdb.DuckDBPyConnection, new: str) -> None:
    """Add what new triples change: those in the table ``new`` (label, subject, object), which the graph has by now.

    Runs in the caller's transaction.
    """
    connection.execute(f"CREATE OR REPLACE TEMP TABLE _graphdb_touched AS {_GROWN.format(new=new)}")
    _add_labels(connection)
    typed = _type_label(connection)
    if typed is not None:
        _add_vertex_labels(connection, new, typed)
        if _pairs(connection) >= PAIRS:  # what was let go cannot be added to
            _refresh_pairs(connection, typed)
        else:
            _add_pairs(connection, _GROWN_PAIRS.format(triples=new, degrees=_DEGREES_OF_NEW), typed)
    connection.execute("DROP TABLE temp._graphdb_touched")


def _type_label(connection: duckdb.DuckDBPyConnection) -> int | None:
    found = connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
    return found[0][0] if found else None


def _add_labels(connection: duckdb.DuckDBPyConnection) -> None:
    """Add what was touched to the tables of edge labels and degrees."""
    _merge(connection, "edge_label", ("id",), _EDGE_LABELS)
    _merge(connection, "degree", ("label", "direction", "bucket"), _DEGREES)
    connection.execute("DELETE FROM _graphdb.degree WHERE vertices = 0")


def _add_vertex_labels(connection: duckdb.DuckDBPyConnection, triples: str, typed: int) -> None:
    counts = f"SELECT class AS id, count(*) AS vertices FROM ({_CLASSES.format(triples=triples)}) GROUP BY class"
    _merge(connection, "vertex_label", ("id",), counts, {"type": typed})


def _refresh_pairs(connection: duckdb.DuckDBPyConnection, typed: int) -> None:
    """Count all pairs anew."""
    connection.execute("DELETE FROM _graphdb.label_pair")
    every = {"labels": [row[0] for row in connection.execute("SELECT id FROM _graphdb.edge_label").fetchall()]}
    connection.execute(f"CREATE OR REPLACE TEMP TABLE _graphdb_touched AS {_FRESH}", every)
    _add_pairs(connection, _FRESH_PAIRS, typed)


def _add_pairs(connection: duckdb.DuckDBPyConnection, pairs: str, typed: int) -> None:
    """Add to the pairs, and keep those with most edges."""
    _merge(connection, "label_pair", ("label", "class", "direction"), pairs, {"type": typed})
    if _pairs(connection) > PAIRS:
        connection.execute(
            "DELETE FROM _graphdb.label_pair WHERE (label, class, direction) NOT IN (SELECT (label, class, direction)"
            " FROM _graphdb.label_pair ORDER BY edges DESC, label ASC, class ASC, direction ASC LIMIT $most)",
            {"most": PAIRS},
        )


_LARGEST = {"max_out_degree", "max_in_degree", "max_values"}


def _merge(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    keys: tuple[str, ...],
    changes: str,
    parameters: dict[str, object] | None = None,
) -> None:
    """Add rows to those with the same keys: sums, or whatever the column's name asks for."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE _graphdb_changes AS {changes}", parameters)
    columns = [row[0] for row in connection.execute(f"DESCRIBE _graphdb.{table}").fetchall()]
    merged = [
        column
        if column in keys
        else f"{'max' if column in _LARGEST else 'bit_or' if column == 'kinds' else 'sum'}({column}) AS {column}"
        for column in columns
    ]
    first, by, names = keys[0], ", ".join(keys), ", ".join(columns)
    changed = f"{first} IN (SELECT {first} FROM temp._graphdb_changes)"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE _graphdb_merged AS SELECT {', '.join(merged)} FROM ("
        f"SELECT {names} FROM _graphdb.{table} WHERE {changed}"
        f" UNION ALL SELECT {names} FROM temp._graphdb_changes) GROUP BY {by}"
    )
    connection.execute(f"DELETE FROM _graphdb.{table} WHERE {changed}")
    order = ", ".join(f"{key} ASC" for key in keys)
    connection.execute(f"INSERT INTO _graphdb.{table} SELECT {names} FROM temp._graphdb_merged ORDER BY {order}")
    connection.execute("DROP TABLE temp._graphdb_merged; DROP TABLE temp._graphdb_changes")


def _pairs(connection: duckdb.DuckDBPyConnection) -> int:
    [(rows,)] = connection.execute("SELECT count(*) FROM _graphdb.label_pair").fetchall()
    return int(rows)
