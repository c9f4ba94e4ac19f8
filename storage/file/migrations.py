"""Migrations: an older version's file gets the tables of this version.

Each is a few statements, frozen as they were when the version came out; :func:`migrate` runs those that a file lacks,
in one transaction with the new version's number, so that a file is of one version or of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdb.common.values.terms import UNSAFE

if TYPE_CHECKING:
    import duckdb

_BARE = r"""starts_with(iri, 'urn:graphdb:') AND NOT regexp_matches(iri[13:], '[\x00-\x20<>"{}|^`\\%]')"""
"""SQL for names of our namespace in which version 6 had nothing to encode."""

_RENAMED = f"""
SELECT id, 'urn:graphdb:' || url_encode(iri[13:]) AS iri FROM _graphdb.resource
WHERE {_BARE} AND regexp_matches(iri[13:], '{UNSAFE.replace("'", "''")}')
"""

_ADDED_UP = tuple(
    statement
    for table, keys, sums in (
        ("degree", "label, direction, bucket", {"vertices": "BIGINT", "edges": "BIGINT", "squares": "HUGEINT"}),
        ("label_pair", "label, class, direction", {"edges": "BIGINT", "vertices": "BIGINT"}),
    )
    for statement in (
        f"CREATE OR REPLACE TEMP TABLE _graphdb_summed AS SELECT {keys}, "
        + ", ".join(f"sum({name})::{kind} AS {name}" for name, kind in sums.items())
        + f" FROM _graphdb.{table} GROUP BY ALL HAVING sum({next(iter(sums))}) <> 0",
        f"DELETE FROM _graphdb.{table}",
        f"INSERT INTO _graphdb.{table} FROM temp._graphdb_summed",
        "DROP TABLE temp._graphdb_summed",
    )
)
"""Degrees and pairs with one row for each key."""

MIGRATIONS: dict[int, tuple[str, ...]] = {
    # Degrees and pairs of labels.
    1: (
        "CREATE TABLE _graphdb.degree (label BIGINT NOT NULL, direction UTINYINT NOT NULL, bucket UTINYINT NOT NULL, "
        "vertices BIGINT NOT NULL, edges BIGINT NOT NULL, squares HUGEINT NOT NULL)",
        "CREATE TABLE _graphdb.label_pair (label BIGINT NOT NULL, class BIGINT NOT NULL, direction UTINYINT NOT NULL, "
        "edges BIGINT NOT NULL, vertices BIGINT NOT NULL)",
    ),
    # Named graphs and edges with identity.
    2: (
        "CREATE TABLE _graphdb.quad (graph BIGINT NOT NULL, label BIGINT NOT NULL, subject BIGINT NOT NULL, "
        "object BIGINT NOT NULL)",
        "CREATE TABLE _graphdb.edge (label BIGINT NOT NULL, subject BIGINT NOT NULL, object BIGINT NOT NULL, "
        "ordinal BIGINT NOT NULL)",
        "CREATE TABLE _graphdb.edge_property (label BIGINT NOT NULL, subject BIGINT NOT NULL, object BIGINT NOT NULL, "
        "ordinal BIGINT NOT NULL, key BIGINT NOT NULL, value BIGINT NOT NULL)",
        "CREATE TABLE _graphdb.reifier (reifier BIGINT NOT NULL, label BIGINT NOT NULL, subject BIGINT NOT NULL, "
        "object BIGINT NOT NULL, ordinal BIGINT NOT NULL)",
    ),
    # Degrees and pairs may stand in several rows, to be added up: an older version would take each for all.
    3: (),
    # The hashes of terms stand in pages.
    4: (
        "DROP TABLE IF EXISTS _graphdb.resource_key",
        "DROP TABLE IF EXISTS _graphdb.literal_key",
        "DELETE FROM _graphdb.meta WHERE key IN ('resource_key', 'literal_key')",
    ),
    # The graphs in which edges are spoken of.
    5: (
        "CREATE TABLE _graphdb.edge_graph (label BIGINT NOT NULL, subject BIGINT NOT NULL, object BIGINT NOT NULL, "
        "ordinal BIGINT NOT NULL, graph BIGINT NOT NULL)",
    ),
    # Names have encoded all that cannot stand in an IRI, brackets among it; hashes of what is renamed are made anew.
    6: (
        f"DELETE FROM _graphdb.meta WHERE key = 'resource_key' AND EXISTS ({_RENAMED})",
        f"UPDATE _graphdb.resource SET iri = renamed.iri FROM ({_RENAMED}) AS renamed WHERE resource.id = renamed.id "
        f"AND renamed.iri NOT IN (SELECT iri FROM _graphdb.resource WHERE starts_with(iri, 'urn:graphdb:'))",
    ),
    # Continuous queries, and the batches that changed their answers.
    7: (
        "CREATE TABLE _graphdb.continuous_query (number BIGINT NOT NULL, name VARCHAR NOT NULL, text VARCHAR NOT NULL, "
        "stored BOOLEAN NOT NULL, changes BIGINT, retention VARCHAR, since BIGINT NOT NULL, watch VARCHAR)",
        "CREATE TABLE _graphdb.batch (query BIGINT NOT NULL, batch BIGINT NOT NULL, noted TIMESTAMPTZ NOT NULL, "
        "added BIGINT NOT NULL, removed BIGINT NOT NULL)",
    ),
    # What small changes add to the statistics, whose tables have one row for each key from here on.
    8: ("CREATE TABLE _graphdb.counted (rows BIGINT[][] NOT NULL)", *_ADDED_UP),
    # They are texts, which DuckDB writes sooner than lists of lists.
    9: ("ALTER TABLE _graphdb.counted ALTER COLUMN rows TYPE VARCHAR",),
    # Literals have fewer columns: what follows from others is not written.
    10: (
        "CREATE TABLE _graphdb.new_literal (id BIGINT NOT NULL, text VARCHAR, datatype VARCHAR, language VARCHAR, "
        "kind UTINYINT NOT NULL, integer BIGINT, number DOUBLE, moment BIGINT, "
        "lexical VARCHAR AS (CASE WHEN text IS NULL THEN CAST(integer AS VARCHAR) ELSE text END))",
        "INSERT INTO _graphdb.new_literal SELECT id, CASE WHEN integer::VARCHAR = lexical THEN NULL ELSE lexical END, "
        "datatype, language, kind, integer, number, CASE kind WHEN 5 THEN boolean::BIGINT "
        "WHEN 6 THEN date - DATE '1970-01-01' WHEN 7 THEN epoch_us(datetime) WHEN 8 THEN epoch_us(zoned) "
        "WHEN 9 THEN epoch_us(time) END FROM _graphdb.literal",
        "DROP TABLE _graphdb.literal",
        "ALTER TABLE _graphdb.new_literal RENAME TO literal",
    ),
    # Floats need no text where DuckDB writes them like that.
    11: (
        "CREATE TABLE _graphdb.new_literal (id BIGINT NOT NULL, text VARCHAR, datatype VARCHAR, language VARCHAR, "
        "kind UTINYINT NOT NULL, integer BIGINT, number DOUBLE, moment BIGINT, lexical VARCHAR AS (CASE "
        "WHEN text IS NOT NULL THEN text WHEN integer IS NOT NULL THEN CAST(integer AS VARCHAR) "
        "ELSE CAST(number AS VARCHAR) END))",
        "INSERT INTO _graphdb.new_literal SELECT id, text, datatype, language, kind, integer, number, moment "
        "FROM _graphdb.literal",
        "DROP TABLE _graphdb.literal",
        "ALTER TABLE _graphdb.new_literal RENAME TO literal",
    ),
}
"""By the version that they start from: what leads to the next one."""

COUNTED = 2
"""The version that has the statistics of today: older files are counted anew."""


def migrate(connection: duckdb.DuckDBPyConnection, found: int, wanted: int) -> None:
    """Bring the tables from version ``found`` to ``wanted``, in the caller's transaction."""
    for version in range(found, wanted):
        for statement in MIGRATIONS[version]:
            connection.execute(statement)
    connection.execute("UPDATE _graphdb.meta SET value = ? WHERE key = 'schema_version'", [str(wanted)])
