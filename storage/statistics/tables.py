"""The tables of statistics (:mod:`.labels`), and the log of what small changes add to them.

A small change appends one row to the table ``counted``: its ``rows`` are those of all four tables, each behind the
table's number, as a text, which DuckDB writes sooner than lists.  Of labels they are the new rows, of degrees and pairs
the differences.  :func:`current` reads a table
with the log; :func:`merge_log` empties the log into the tables, which whatever changes them does first (a
log-structured merge; O'Neil et al., 1996).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphdb.storage.file.prepared_sql import Insertions, execute, has_rows

if TYPE_CHECKING:
    import duckdb

APPENDED = ("degree", "label_pair")
"""Tables of which the log has differences."""

_LARGEST = ("max_out_degree", "max_in_degree", "max_values")
_SUMS = {
    "edge_label": (("id",), ("triples", "resource_triples", "subjects", "objects")),
    "vertex_label": (("id",), ("vertices",)),
    "degree": (("label", "direction", "bucket"), ("vertices", "edges", "squares")),
    "label_pair": (("label", "class", "direction"), ("edges", "vertices")),
}
"""The keys of each table, and what is summed; a row goes when the first sum comes to nothing."""

STATISTICS = tuple(_SUMS)
"""The tables."""

_NUMBERS = {table: number for number, table in enumerate(_SUMS)}
"""The number of each table in rows of the log."""

LEAST = 256
"""Changes that the log may have, at least, before it is emptied; …"""

_SHARE = 64
"""… and more where the tables have so many times as many rows."""


class Log:
    """What is known of the log while nobody else writes: it is asked for once, unless all tables are ``empty``."""

    def __init__(self, *, empty: bool = False) -> None:
        self._changes: int | None = 0 if empty else None
        self._most = LEAST
        self._pairs = 0

    def pairs(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Return how many rows of pairs there are at most, with those of the log."""
        if self._changes is None:
            [(changes, pairs, degrees)] = execute(
                connection,
                "SELECT (SELECT count(*) FROM _graphdb.counted), (SELECT count(*) FROM _graphdb.label_pair),"
                " (SELECT count(*) FROM _graphdb.degree)",
            ).fetchall()
            logged = 0
            if changes:
                [(logged,)] = execute(connection, f"SELECT count(*) FROM ({_logged('label_pair')})").fetchall()
            self._changes, self._pairs = int(changes), int(pairs + logged)
            self._most = max(LEAST, (pairs + degrees) // _SHARE)
        return self._pairs

    def append(
        self,
        connection: duckdb.DuckDBPyConnection,
        rows: Mapping[str, Sequence[Sequence[int]]],
        insertions: Insertions,
    ) -> None:
        """Append a change: new rows of ``edge_label`` and ``vertex_label``, differences of the others.

        Rows (with the columns that :func:`columns_of` names) of labels without a triple or a vertex are zeros
        behind their ids.  A log that has grown long is emptied; otherwise the change waits among the ``insertions``.
        """
        self.pairs(connection)
        assert self._changes is not None
        found = [[_NUMBERS[table], *row] for table, some in rows.items() for row in some]
        if not found:
            return
        insertions.add("counted", {"rows": [str(found)]})
        self._changes += 1
        self._pairs += len(rows.get("label_pair", ()))
        if self._changes > self._most:
            insertions.run("counted")
            merge_log(connection)
            self._changes = None


_ROWS = "unnest(rows::BIGINT[][])"
"""SQL for the rows of a change."""


def _logged(table: str) -> str:
    """Return the SELECT of the rows of the log that belong to ``degree`` or ``label_pair``."""
    columns = ", ".join(f"r[{i}] AS {name}" for i, name in enumerate(columns_of(table), 2))
    return f"SELECT {columns} FROM (SELECT {_ROWS} AS r FROM _graphdb.counted) WHERE r[1] = {_NUMBERS[table]}"


def current(table: str) -> str:
    """Return what can stand after FROM for the rows of a table with those of the log."""
    if table in APPENDED:
        return f"(FROM _graphdb.{table} UNION ALL {_logged(table)})"
    names = columns_of(table)
    columns = ", ".join(f"r[{i}]{'::UINTEGER' if name == 'kinds' else ''} AS {name}" for i, name in enumerate(names, 2))
    last = (
        f"(SELECT arg_max(r, number) AS r FROM (SELECT rowid AS number, {_ROWS} AS r FROM _graphdb.counted)"
        f" WHERE r[1] = {_NUMBERS[table]} GROUP BY r[2])"
    )
    return (
        f"(SELECT stored.* FROM _graphdb.{table} AS stored ANTI JOIN {last} AS last ON stored.id = last.r[2]"
        f" UNION ALL SELECT {columns} FROM {last} WHERE r[3] <> 0)"
    )


def readable(connection: duckdb.DuckDBPyConnection, table: str) -> str:
    """Return :func:`current`, or the table alone while the log is empty: to plan for a log takes longer than to ask."""
    return current(table) if has_rows(connection, "_graphdb.counted") else f"_graphdb.{table}"


def summed(table: str) -> str:
    """Return the SELECT of the rows of ``degree`` or ``label_pair``, those with the same keys added up."""
    keys, sums = _SUMS[table]
    added = ", ".join(f"sum({name})::{'HUGEINT' if name == 'squares' else 'BIGINT'} AS {name}" for name in sums)
    return f"SELECT {', '.join(keys)}, {added} FROM {current(table)} GROUP BY ALL HAVING sum({sums[0]}) <> 0"


def merge_log(connection: duckdb.DuckDBPyConnection) -> None:
    """Empty the log into the tables."""
    if not has_rows(connection, "_graphdb.counted"):
        return
    for table in _SUMS:
        rows = summed(table) if table in APPENDED else f"FROM {current(table)}"
        execute(connection, f"CREATE OR REPLACE TEMP TABLE _graphdb_summed AS {rows}")
        execute(connection, f"DELETE FROM _graphdb.{table}")
        execute(connection, f"INSERT INTO _graphdb.{table} FROM temp._graphdb_summed")
        execute(connection, "DROP TABLE temp._graphdb_summed")
    execute(connection, "DELETE FROM _graphdb.counted")


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
    sets = {name: f"stored.{name} + new.{name}" for name in sums}
    if table == "edge_label":
        sets |= {name: f"greatest(stored.{name}, new.{name})" for name in _LARGEST} | {
            "kinds": "stored.kinds | new.kinds"
        }
    names = (*keys, *sets)
    gone = f"WHEN MATCHED AND stored.{sums[0]} + new.{sums[0]} = 0 THEN DELETE"
    fresh = f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f'new.{name}' for name in names)})"
    [(changed,)] = execute(
        connection,
        f"MERGE INTO _graphdb.{table} AS stored USING ({changes}) AS new"
        f" ON {' AND '.join(f'stored.{key} = new.{key}' for key in keys)} {'' if only_known else gone}"
        f" WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = {value}' for name, value in sets.items())}"
        f" {'' if only_known else fresh}",
        parameters,
    ).fetchall()
    return int(changed)
