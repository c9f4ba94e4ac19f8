"""Migrations: what brings a file that an older version wrote to the tables of this one.

Each is a few statements, frozen as they were when the version came out; :func:`migrate` runs those that a file lacks,
in one transaction with the new version's number, so that a file is of one version or of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

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
