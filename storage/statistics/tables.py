"""The tables of statistics (:mod:`.labels`), and the log of what small changes add to them.

A small change appends one row to the table ``counted`` for each of the four tables: its ``rows`` are those of the
table, each behind the table's number, as a text, which DuckDB writes sooner than lists.  Of labels they are the new
rows, of degrees and pairs the differences.  :func:`current` reads a table with the log; :func:`merge_log` merges the
log into the tables, which whatever changes them does first (a log-structured merge; O'Neil et al., 1996).  A small
change whose log has grown long merges one table, in proportion to what the log has of it; the next one merges another.

A text begins with a blank where all its rows are of one table.  Files of earlier days have others, which are merged
into all tables at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphdb.storage.file.prepared_sql import Insertions, execute, filled, has_rows

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

MOST = 1 << 16
"""Characters that the log may have of a table before they are merged, which takes some 4 ms: to read them takes 1."""


class Log:
    """What is known of the log, and of tables beside it, while nothing but small changes is written: it is asked for
    once, unless all tables are ``empty``.
    """

    def __init__(self, *, empty: bool = False) -> None:
        self._lengths: dict[str, int] | None = {} if empty else None
        """Characters of the log, by their start: :func:`_start`, or another where there are rows of several tables."""
        self._pairs: int | None = 0 if empty else None
        self._filled: dict[tuple[str, ...], list[str]] = {}

    def filled(self, connection: duckdb.DuckDBPyConnection, *others: str) -> list[str]:
        """Return which of some other tables, of which small changes only delete, have a row, or had one when asked."""
        if others not in self._filled:
            self._filled[others] = filled(connection, *others)
        return self._filled[others]

    def pairs(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Return how many rows of pairs there are at most, with those of the log."""
        if self._lengths is None:
            self._lengths, self._pairs = dict(execute(connection, _LENGTHS).fetchall()), None
        if self._pairs is None:
            logged = "(SELECT 0)"
            if not self._lengths.keys().isdisjoint(_starts("label_pair")):
                logged = f"(SELECT count(*) FROM ({_logged('label_pair')}))"
            [(found,)] = execute(connection, f"SELECT (SELECT count(*) FROM _graphdb.label_pair) + {logged}").fetchall()
            self._pairs = int(found)
        return self._pairs

    def append(
        self,
        connection: duckdb.DuckDBPyConnection,
        rows: Mapping[str, Sequence[Sequence[int]]],
        insertions: Insertions,
    ) -> None:
        """Append a change: new rows of ``edge_label`` and ``vertex_label``, differences of the others.

        Rows (with the columns that :func:`columns_of` names) of labels without a triple or a vertex are zeros
        behind their ids.  The change waits among the ``insertions``; a table whose log has grown long is merged.
        """
        pairs = self.pairs(connection)
        assert self._lengths is not None
        texts = {table: _text(table, some) for table, some in rows.items() if len(some)}
        if not texts:
            return
        insertions.add("counted", {"rows": [*texts.values()]})
        self._pairs = pairs + len(rows.get("label_pair", ()))
        for table, text in texts.items():
            self._lengths[_start(table)] = self._lengths.get(_start(table), 0) + len(text)
        length, longest = max((self._lengths.get(_start(table), 0), table) for table in _SUMS)
        if length > MOST:
            insertions.run("counted")
            merge_log(connection, longest, self._lengths)
            self.merged(longest)

    def merged(self, table: str) -> None:
        """Note that what the log had of a table was merged into it."""
        if table == "label_pair":  # of several rows of a pair one is left
            self._pairs = None
        if self._lengths is not None and all(start.startswith(" ") for start in self._lengths):
            self._lengths[_start(table)] = 0
        else:  # rows of several tables were merged into all
            self._lengths = None


_ROWS = "unnest(rows::BIGINT[][])"
"""SQL for the rows of a change."""

_SEVERAL = "[["
"""What texts begin with that may have rows of several tables."""

_LENGTHS = "SELECT rows[:4] AS start, sum(length(rows))::BIGINT FROM _graphdb.counted GROUP BY start"
"""How many characters of the log begin with what."""


def _text(table: str, rows: Sequence[Sequence[int]]) -> str:
    """Return rows of a table as the log has them: lists of integers, each with the number of the table before it."""
    return f" [{repr(rows)[1:].replace('[', f'[{_NUMBERS[table]}, ')}"


def _start(table: str) -> str:
    """Return what texts begin with whose rows are all of one table."""
    return f" {_SEVERAL}{_NUMBERS[table]}"


def _starts(table: str) -> list[str]:
    """Return what texts begin with that may have rows of a table."""
    return [_start(table), *(f"{_SEVERAL}{number}," for number in _NUMBERS.values())]


def _has(table: str) -> str:
    """Return the condition of texts that may have rows of a table."""
    return f"(starts_with(rows, '{_start(table)}') OR starts_with(rows, '{_SEVERAL}'))"


def _logged(table: str) -> str:
    """Return the SELECT of the rows of the log that belong to ``degree`` or ``label_pair``."""
    columns = ", ".join(f"r[{i}] AS {name}" for i, name in enumerate(columns_of(table), 2))
    logged = f"(SELECT {_ROWS} AS r FROM _graphdb.counted WHERE {_has(table)})"
    return f"SELECT {columns} FROM {logged} WHERE r[1] = {_NUMBERS[table]}"


def _last(table: str) -> str:
    """Return the SELECT of the last row of the log for each id of a table of labels; of no triple or vertex, zeros."""
    names = columns_of(table)
    columns = ", ".join(f"r[{i}]{'::UINTEGER' if name == 'kinds' else ''} AS {name}" for i, name in enumerate(names, 2))
    logged = f"(SELECT rowid AS number, {_ROWS} AS r FROM _graphdb.counted WHERE {_has(table)})"
    last = f"(SELECT arg_max(r, number) AS r FROM {logged} WHERE r[1] = {_NUMBERS[table]} GROUP BY r[2])"
    return f"SELECT {columns} FROM {last}"


def current(table: str) -> str:
    """Return what can stand after FROM for the rows of a table with those of the log."""
    if table in APPENDED:
        return f"(FROM _graphdb.{table} UNION ALL {_logged(table)})"
    [counted] = _SUMS[table][1][:1]
    return (
        f"(WITH last AS ({_last(table)}) SELECT stored.* FROM _graphdb.{table} AS stored ANTI JOIN last USING (id)"
        f" UNION ALL FROM last WHERE {counted} <> 0)"
    )


def readable(connection: duckdb.DuckDBPyConnection, table: str) -> str:
    """Return :func:`current`, or the table alone while the log is empty: to plan for a log takes longer than to ask."""
    return current(table) if has_rows(connection, "_graphdb.counted") else f"_graphdb.{table}"


_INTEGERS = re.compile(r"[\[\], 0-9-]*")
"""What lists of integers are written with."""

_FEW = 50
"""Ids that are looked up one beside the other: DuckDB plans that sooner than a join."""


def labels(connection: duckdb.DuckDBPyConnection, *tables: str) -> list[list[tuple[Any, ...]]]:
    """Return the rows of ``edge_label`` or ``vertex_label``, or of both, with those of the log, by id.

    The IRI of the label stands behind its id.  What is in the log, of which :data:`MOST` says how much that is, takes
    the place of what is stored here: to have DuckDB plan that takes four times as long as all of this.
    """
    logged = sorted(execute(connection, "SELECT rowid, rows FROM _graphdb.counted").fetchall())
    starts = (_SEVERAL, *map(_start, tables))
    try:
        changed = _changed([text for _, text in logged if text.startswith(starts)])
    except ValueError:  # DuckDB says what is wrong with the log
        return [execute(connection, _LABELS.format(current(table))).fetchall() for table in tables]
    known: list[list[tuple[Any, ...]]] = []
    for table in tables:
        last = changed.get(_NUMBERS[table], {})
        stored = execute(connection, f"SELECT {', '.join(columns_of(table))} FROM _graphdb.{table}").fetchall()
        known.append([row for row in stored if row[0] not in last] + [row for row in last.values() if row[1] != 0])
    iris: dict[int, list[str]] = {row[0]: [] for rows in known for row in rows}
    if iris:
        some = ", ".join("?" * len(iris)) if len(iris) <= _FEW else "SELECT unnest(?::BIGINT[])"
        given = [*iris] if len(iris) <= _FEW else [[*iris]]
        named = f"SELECT id, iri FROM _graphdb.resource WHERE id IN ({some})"
        for id, iri in execute(connection, named, given).fetchall():
            iris[id].append(iri)
    return [sorted((id, iri, *others) for id, *others in rows for iri in iris[id]) for rows in known]


_LABELS = "SELECT id, iri, label.* EXCLUDE (id) FROM {} AS label JOIN _graphdb.resource USING (id) ORDER BY id"


def _changed(texts: Sequence[str]) -> dict[int, dict[int, tuple[int, ...]]]:
    """Return the last row of the log for each id, by its table's number; raises ValueError where it has others."""
    widths = [1 + len(columns_of(table)) for table in _SUMS]
    changed: dict[int, dict[int, tuple[int, ...]]] = {}
    for text in texts:
        if not _INTEGERS.fullmatch(text):
            raise ValueError(text)
        for row in json.loads(text):
            if not isinstance(row, list) or not all(isinstance(n, int) and abs(n) < 1 << 63 for n in row):
                raise ValueError(text)
            if not (row and 0 <= row[0] < len(widths) and len(row) == widths[row[0]]):
                raise ValueError(text)
            changed.setdefault(row[0], {})[row[1]] = tuple(row[1:])
    return changed


def summed(table: str) -> str:
    """Return the SELECT of the rows of ``degree`` or ``label_pair``, those with the same keys added up."""
    return f"{_added_up(table, current(table))} HAVING sum({_SUMS[table][1][0]}) <> 0"


def _added_up(table: str, rows: str) -> str:
    """Return the SELECT of some rows, those with the same keys added up."""
    keys, sums = _SUMS[table]
    added = ", ".join(f"sum({name})::{'HUGEINT' if name == 'squares' else 'BIGINT'} AS {name}" for name in sums)
    return f"SELECT {', '.join(keys)}, {added} FROM {rows} GROUP BY ALL"


def merge_log(
    connection: duckdb.DuckDBPyConnection, table: str | None = None, starts: Collection[str] | None = None
) -> None:
    """Merge the log into the tables, or what it has of one into that; ``starts`` are what its texts begin with."""
    if starts is None:
        starts = {each for (each,) in execute(connection, "SELECT DISTINCT rows[:4] FROM _graphdb.counted").fetchall()}
    several = any(start.startswith(_SEVERAL) for start in starts)
    for each in _SUMS if several or table is None else (table,):
        if several or _start(each) in starts:
            _merge_logged(connection, each)
            execute(connection, f"DELETE FROM _graphdb.counted WHERE starts_with(rows, '{_start(each)}')")
    if several:
        execute(connection, "DELETE FROM _graphdb.counted")


def _merge_logged(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    """Merge what the log has of a table into it."""
    if table in APPENDED:
        changed = " OR ".join(f"sum({name}) <> 0" for name in _SUMS[table][1])
        merge(connection, table, f"{_added_up(table, f'({_logged(table)})')} HAVING {changed}")
    else:
        merge(connection, table, _last(table), replace=True)


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
    replace: bool = False,
) -> int:
    """Add rows to those with the same keys: sums, or whatever the column's name asks for; return how many changed.

    ``only_known`` says that others are left out, and that those that come to nothing stay; ``replace`` that the rows
    stand in place of those with the same keys.
    """
    keys, sums = _SUMS[table]
    names = columns_of(table)
    added = {name: f"stored.{name} + new.{name}" for name in sums}
    added |= {name: f"greatest(stored.{name}, new.{name})" for name in _LARGEST} | {"kinds": "stored.kinds | new.kinds"}
    sets = {name: f"new.{name}" if replace else added[name] for name in names[len(keys) :]}
    gone = f"WHEN MATCHED AND {sets[sums[0]]} = 0 THEN DELETE"
    inserted = f"({', '.join(names)}) VALUES ({', '.join(f'new.{name}' for name in names)})"
    fresh = f"WHEN NOT MATCHED AND new.{sums[0]} <> 0 THEN INSERT {inserted}"
    [(changed,)] = execute(
        connection,
        f"MERGE INTO _graphdb.{table} AS stored USING ({changes}) AS new"
        f" ON {' AND '.join(f'stored.{key} = new.{key}' for key in keys)} {'' if only_known else gone}"
        f" WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = {value}' for name, value in sets.items())}"
        f" {'' if only_known else fresh}",
        parameters,
    ).fetchall()
    return int(changed)
