"""The tables of statistics (:mod:`.labels`): rows with the same keys are added up when merged or read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphdb.storage.file.prepared_sql import execute

if TYPE_CHECKING:
    import duckdb

APPENDED = ("degree", "label_pair")
"""Tables whose rows with the same keys are added up when they are read."""

SETTLED = "settled"
"""The key in ``meta`` of how many rows were left when rows with the same keys were last merged."""

_LARGEST = ("max_out_degree", "max_in_degree", "max_values")
_SUMS = {
    "edge_label": (("id",), ("triples", "resource_triples", "subjects", "objects")),
    "vertex_label": (("id",), ("vertices",)),
    "degree": (("label", "direction", "bucket"), ("vertices", "edges", "squares")),
    "label_pair": (("label", "class", "direction"), ("edges", "vertices")),
}
"""The keys of each table, and what is summed; a row goes when the first sum comes to nothing."""


def summed(table: str) -> str:
    """Return the SELECT of the rows of ``degree`` or ``label_pair``, those with the same keys added up."""
    keys, sums = _SUMS[table]
    added = ", ".join(f"sum({name})::{'HUGEINT' if name == 'squares' else 'BIGINT'} AS {name}" for name in sums)
    return f"SELECT {', '.join(keys)}, {added} FROM _graphdb.{table} GROUP BY ALL HAVING sum({sums[0]}) <> 0"


def settle(connection: duckdb.DuckDBPyConnection, tables: Sequence[str] = APPENDED) -> None:
    """Make one row of those with the same keys, where there are any, and note how many are left."""
    unsettled = False
    for table in tables:
        keys = ", ".join(_SUMS[table][0])
        rows, distinct = execute(
            connection, f"SELECT count(*), count(DISTINCT ({keys})) FROM _graphdb.{table}"
        ).fetchall()[0]
        if rows > distinct:
            execute(connection, f"CREATE OR REPLACE TEMP TABLE _graphdb_summed AS {summed(table)}")
            execute(connection, f"DELETE FROM _graphdb.{table}")
            execute(connection, f"INSERT INTO _graphdb.{table} FROM temp._graphdb_summed")
            execute(connection, "DROP TABLE temp._graphdb_summed")
            unsettled = True
    if unsettled:
        counts = " + ".join(f"(SELECT count(*) FROM _graphdb.{table})" for table in APPENDED)
        execute(connection, f"INSERT OR REPLACE INTO _graphdb.meta VALUES ('{SETTLED}', ({counts})::VARCHAR)")


def columns_of(table: str) -> tuple[str, ...]:
    """Return the columns of one of the tables, as :func:`merge` wants them: keys, sums, and what else there is."""
    keys, sums = _SUMS[table]
    more = ("max_out_degree", "max_in_degree", "kinds", "max_values") if table == "edge_label" else ()
    return (*keys, *sums, *more)


def merge(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    changes: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    only_known: bool = False,
) -> int:
    """Add rows to those with the same keys: sums, or whatever the column's name asks for; return how many changed.

    ``only_known`` says that others are left out, and that those that come to nothing stay.
    """
    keys, sums = _SUMS[table]
    sets = {name: f"held.{name} + new.{name}" for name in sums}
    if table == "edge_label":
        sets |= {name: f"greatest(held.{name}, new.{name})" for name in _LARGEST} | {"kinds": "held.kinds | new.kinds"}
    names = (*keys, *sets)
    gone = f"WHEN MATCHED AND held.{sums[0]} + new.{sums[0]} = 0 THEN DELETE"
    fresh = f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f'new.{name}' for name in names)})"
    [(changed,)] = execute(
        connection,
        f"MERGE INTO _graphdb.{table} AS held USING ({changes}) AS new"
        f" ON {' AND '.join(f'held.{key} = new.{key}' for key in keys)} {'' if only_known else gone}"
        f" WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = {value}' for name, value in sets.items())}"
        f" {'' if only_known else fresh}",
        parameters,
    ).fetchall()
    return int(changed)
