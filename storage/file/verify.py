"""Verification of untrusted files: when a file is opened, its tables must be ours, and its ids must stand for terms.

What has one of our names, but is something else (a view over another file, a table with a computed column, a trigger
that writes to our tables), is refused when the file is opened; so is a macro or type of the file's by the name of
something that our SQL calls, which DuckDB would take in its place.  Queries here name DuckDB's own functions in full,
so that nothing in the file stands in for them.

Ids are checked where arrays are made of them (:class:`Ids`): from there on kernels take them for places.
"""

from __future__ import annotations

import re
import threading
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import StorageError
from graphdb.common.values.terms import LITERAL_BASE, Kind
from graphdb.storage.file import ddl
from graphdb.storage.file.migrations import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

SCHEMA = "_graphdb"
"""The schema of our tables."""

HINT = "the file is damaged, or not made by graphdb"

_TABLE = re.compile(r"CREATE TABLE _graphdb\.(\w+) \((.*?)\);", re.DOTALL)
_CREATED = re.compile(r"CREATE TABLE _graphdb\.(\w+)")
_COMPRESSION = re.compile(r" USING COMPRESSION \w+")
_PRIMARY = re.compile(r"PRIMARY KEY\((\w+)\)")


_ENTRIES = " UNION ALL ".join(
    f"SELECT '{what}', {columns} FROM system.main.{function}() WHERE database_name = $database AND {own}"
    for what, columns, function, own in (
        ("table", "schema_name, table_name, column_count, sql", "duckdb_tables", "NOT internal"),
        ("index", "schema_name, table_name, 0, NULL", "duckdb_indexes", "true"),
        ("trigger", "schema_name, table_name, 0, sql", "duckdb_triggers", "true"),
        ("type", "schema_name, type_name, 0, NULL", "duckdb_types", "NOT internal"),
    )
)
"""What a database has beside views, which are not looked at: DuckDB would read what they are of."""


# --- tables


def is_new(connection: duckdb.DuckDBPyConnection, database: str) -> bool:
    """Whether a database holds nothing yet, so that there is nothing to verify: no block, no write-ahead log.

    To list tables and functions, DuckDB prepares all of its own, which takes as long as some queries.
    """
    sql = "SELECT total_blocks, wal_size FROM system.main.pragma_database_size() WHERE database_name = $database"
    return connection.execute(sql, {"database": database}).fetchall() == [(0, "0 bytes")]


def verify_tables(connection: duckdb.DuckDBPyConnection, database: str, path: str) -> bool:
    """Check that what has our names in a database is what we made; return whether there is a graph.

    Raises
    ------
    StorageError
        Something there is not ours, or of a newer version, whose tables may be others.
    """
    tables: dict[str, tuple[int, str]] = {}
    indexed, triggers, types = [], [], []
    for what, schema, name, count, sql in connection.execute(_ENTRIES, {"database": database}).fetchall():
        match what:
            case "table" if schema == SCHEMA:
                tables[name] = count, sql
            case "index" if schema == SCHEMA:
                indexed.append(name)
            case "trigger":
                triggers.append((name, sql))
            case "type":
                types.append(name)
    _verify_types(types, connection)
    if not tables:
        return False
    if "meta" not in tables:
        raise StorageError(f"{SCHEMA}.meta is not a table", hint=HINT)
    expected = _expected()
    _verify_table("meta", tables["meta"], expected["meta"])
    version = _version(connection)
    if version > max(MIGRATIONS) + 1:
        raise StorageError(f"'{path}' was written by a newer version of graphdb", hint="upgrade graphdb to open it")
    for name, found in tables.items():
        if name in expected and not (name in ddl.PAGED and version < ddl.PAGED_SINCE):
            former = next((columns for last, columns in ddl.FORMER.get(name, {}).items() if version <= last), None)
            _verify_table(name, found, expected[name] if former is None else tuple(former.split(", ")))
    missing = sorted(set(expected) - _later(version) - set(ddl.PAGED) - set(tables))
    if missing:
        raise StorageError(f"{SCHEMA}.{missing[0]} is not a table", hint=HINT)
    if indexed:
        raise StorageError(f"{SCHEMA}.{indexed[0]} has an index that is not graphdb's", hint=HINT)
    for table, sql in triggers:
        if SCHEMA in sql.lower() or table.lower() == "load_errors":
            raise StorageError(f"a trigger of the file concerns tables of graphdb: {sql}", hint=HINT)
    return True


def _version(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the version of the tables; 0 where none is stated, which the catalog tells."""
    found = connection.execute("SELECT value FROM _graphdb.meta WHERE key = 'schema_version'").fetchall()
    return int(found[0][0][:10]) if found and found[0][0].isdecimal() else 0


def _verify_table(name: str, found: tuple[int, str], expected: tuple[str, ...]) -> None:
    """Compare a table's definition, as DuckDB writes it, with ours.

    Quotes are left out of both, and how columns are compressed, which changes no value.  A name with a quote, comma or
    blank in it cannot pass for several columns: their number has to be right, too.
    """
    count, sql = found
    head, tail = f"CREATE TABLE {SCHEMA}.{name}(", ");"
    plain = _COMPRESSION.sub("", sql.replace('"', "")).replace("CASE  WHEN", "CASE WHEN")
    if plain.startswith(head) and plain.endswith(tail) and count == len(expected):
        parts = plain[len(head) : -len(tail)].split(", ")
        key = _PRIMARY.fullmatch(parts[-1])  # of a file that SQLAlchemy made
        if key is not None:
            parts = [f"{part} PRIMARY KEY" if part.split(" ", 1)[0] == key[1] else part for part in parts[:-1]]
            parts = [part.replace(" NOT NULL PRIMARY KEY", " PRIMARY KEY") for part in parts]
        if tuple(parts) == expected:
            return
    raise StorageError(f"{SCHEMA}.{name} does not have the columns that graphdb gives it", hint=HINT)


@lru_cache(maxsize=1)
def _expected() -> dict[str, tuple[str, ...]]:
    """Return our tables with their columns, as DuckDB writes them."""
    found = {}
    for name, columns in _TABLE.findall(ddl.CREATE):
        written = " ".join(columns.split()).replace("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE")
        found[name] = tuple(written.split(", "))
    return found | dict.fromkeys(ddl.PAGED, tuple(ddl.PAGE_COLUMNS.split(", ")))


def _later(version: int) -> set[str]:
    """Return the tables that a file of some version does not have yet."""
    return {
        table
        for since, statements in MIGRATIONS.items()
        if since >= version
        for sql in statements
        for table in _CREATED.findall(sql)
    }


def _verify_types(types: list[str], connection: duckdb.DuckDBPyConnection) -> None:
    """Refuse types by the names of DuckDB's own."""
    names = set(map(str.lower, types))
    if not names:
        return
    known = connection.execute("SELECT type_name FROM system.main.duckdb_types() WHERE internal").fetchall()
    shadowed = sorted(names.intersection(name.lower() for (name,) in known))
    if shadowed:
        raise StorageError(f"the file has a type '{shadowed[0]}', which would stand in for DuckDB's own", hint=HINT)


# --- macros


class Macros:
    """Whether a file has macros by the names of functions that our SQL calls: asked while other work is done.

    DuckDB lists thousands of its own functions before it says so, which takes as long as a small query.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, database: str) -> None:
        self._cursor = connection.cursor()
        self._database = database
        self._found: list[str] = []
        self._error: Exception | None = None
        # No daemon: where the process ends meanwhile, a thread that is torn down within DuckDB would abort it.
        self._thread: threading.Thread | None = threading.Thread(target=self._ask, name="graphdb-verify")
        self._thread.start()

    def verify(self) -> None:
        """Raise `StorageError` where the file has such a macro."""
        self.close()
        if self._error is not None:
            raise StorageError(f"the functions of the file cannot be listed: {self._error}", hint=HINT)
        if self._found:
            name = self._found[0]
            raise StorageError(
                f"the file has a macro '{name}', which would stand in for the function that graphdb calls",
                hint=f'DuckDB itself can open the file, and DROP MACRO "{name}"',
            )

    def close(self) -> None:
        """Wait for the answer."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
            self._cursor.close()

    def _ask(self) -> None:
        sql = (
            "SELECT function_name FROM system.main.duckdb_functions()"
            " WHERE database_name = $database AND schema_name = 'main' AND NOT internal"
        )
        try:
            names = self._cursor.execute(sql, {"database": self._database}).fetchall()
        except Exception as error:  # raised by the thread that waits
            self._error = error
            return
        self._found = sorted(name for (name,) in names if is_called(name))


def is_called(name: str) -> bool:
    """Whether our SQL calls a function or operator of this name, in whatever case."""
    lower = name.lower()
    return lower in CALLED or lower.startswith(SCHEMA) or not re.fullmatch(r"\w[\w.]*", lower)


CALLED = frozenset(
    """
    abs acos aggregate alias any_value approx_quantile arg_max arg_min array_slice array_to_string ascii asin atan
    atan2 avg base64 bit_count bit_or bool_and bool_or cardinality ceil ceiling century char_length character_length
    chr coalesce combine concat contains cos cosh cot count count_star create_sort_key current_database current_schema
    current_schemas current_setting date_part date_trunc datediff datepart day dayofweek dayofyear decade degrees divide
    duckdb_columns duckdb_constraints duckdb_databases duckdb_functions duckdb_indexes duckdb_schemas duckdb_tables
    duckdb_triggers duckdb_types duckdb_views encode epoch_ms epoch_us error exp filter first flatten floor format
    from_json generate_series generate_subscripts getvariable greatest hash hour if instr isfinite isinf isnan isodow
    isoyear json json_execute_serialized_sql json_serialize_sql json_valid last least left len
    length like_escape list list_aggregate list_avg list_concat list_contains list_distinct list_extract list_filter
    list_has_any list_max list_pack list_prepend list_reduce list_reverse list_slice list_sort list_sum list_transform
    list_value list_zip ln log log10 log2 lower lpad ltrim make_date make_timestamp make_timestamptz map max mean
    microsecond millennium millisecond min min_by minute mod mode month nanosecond nfc_normalize not_like_escape now
    nullif octet_length parquet_schema pg_timezone_names pi position power pragma_database_size prefix printf
    quantile_cont quantile_disc quarter query radians random range rank read_csv read_duckdb read_parquet regexp_extract
    regexp_extract_all regexp_full_match regexp_matches regexp_replace replace reverse right round row row_number rpad
    rtrim second set_bit sign sin sinh split split_part sqrt starts_with stats stddev_pop stddev_samp strftime
    string_agg string_split string_split_regex strlen strptime struct_extract struct_extract_at struct_pack substr
    substring suffix sum tan tanh timezone to_days to_json to_microseconds to_months trim trunc txid_current unicode
    union_extract union_tag union_value unnest upper url_encode uuid version week weekday weekofyear xor year
    """.split()
)
"""The functions of DuckDB's that our SQL calls, by name or by syntax (operators aside); a test holds it to the code."""


# --- ids


class Ids:
    """Which ids a file may have: those of its resources, from 0, and of its literals, from :data:`LITERAL_BASE`.

    Each check scans a column once or twice, at the speed of memory, and raises `StorageError`.
    """

    __slots__ = ("literals", "resources")

    def __init__(self, resources: int, literals: int) -> None:
        self.resources, self.literals = resources, literals

    def resource(self, column: NDArray[np.int64], what: str) -> None:
        """Check ids of resources."""
        if len(column) and not (int(column.min()) >= 0 and int(column.max()) < self.resources):
            raise damaged(f"a {what} is no resource")

    def literal(self, column: NDArray[np.int64], what: str) -> None:
        """Check ids of literals."""
        if len(column) and not (int(column.min()) >= LITERAL_BASE and int(column.max()) < LITERAL_BASE + self.literals):
            raise damaged(f"a {what} is no literal")

    def term(self, column: NDArray[np.int64], what: str) -> None:
        """Check ids of resources and literals."""
        if not len(column):
            return
        least, greatest = int(column.min()), int(column.max())
        if least >= 0 and greatest < self.resources:
            return
        if least < 0 or greatest >= LITERAL_BASE + self.literals:
            raise damaged(f"an {what} is no term")
        if bool(((column >= self.resources) & (column < LITERAL_BASE)).any()):
            raise damaged(f"an {what} is no term")


def verify_numbers(count: int, first: int | None, last: int | None, base: int) -> None:
    """Check that so many ids, the first and last of which are given, are those from ``base`` on."""
    if count and (first, last) != (base, base + count - 1):
        raise damaged("its terms are not numbered one after the other")


def verify_counts(*columns: NDArray[Any], least: int = 0) -> None:
    """Check numbers of triples or vertices that were counted."""
    if any(len(column) and column.min() < least for column in columns):
        raise damaged("its statistics have a number that nothing can be counted to")


def verify_labels(rows: Sequence[tuple[Any, ...]]) -> None:
    """Check rows of labels, sorted: their ids are distinct, and what follows the IRIs was counted.

    An edge label has the kinds of its literals behind seven more numbers.
    """
    if any(former[0] == row[0] for former, row in pairwise(rows)) or any(min(row[2:]) < 0 for row in rows):
        raise damaged("a label has no statistics that can be")
    if any(len(row) > 8 and row[8] >= 2 << max(Kind) for row in rows):
        raise damaged("a label has literals of no known kind")


def verify_kinds(column: NDArray[np.unsignedinteger[Any]]) -> None:
    """Check kinds of literals."""
    if len(column) and int(column.max()) > max(Kind):
        raise damaged("a literal is of no known kind")


def damaged(what: str) -> StorageError:
    """Return the error to raise for a file in which something cannot be."""
    return StorageError(f"the database is damaged: {what}", hint="restore it from a backup, or load its data anew")
