"""Tables as typed columns: DuckDB reads, splits and types a table, Arrow holds what came of it.

Plain tables of vertices and of edges become a graph without being written as lines (:mod:`.assembly`).  What is rare
goes the way of :mod:`.reader`: named graphs, reifiers, literals that have a row each, blank nodes as ids, lists of
durations, and those that XML Schema does not have; and so does a table with a bad row, which is found here but
reported, or skipped, there.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

import numpy as np

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.common.duckdb import progress_bar
from graphdb.common.duckdb.fetch import rows_of
from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.values.terms import LIST_DATATYPE, XSD
from graphdb.storage.file.parquet import column_names
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import CSV, EDGE_LIST, PARQUET
from graphdb.storage.loaders.streams import Block, Stopped
from graphdb.storage.loaders.tables import delimited, small_files, terms, values
from graphdb.storage.loaders.tables.delimited import literal as _text
from graphdb.storage.loaders.tables.fields import edge_lists
from graphdb.storage.loaders.tables.headers import IDENTIFIERS, Column, Mapping
from graphdb.storage.loaders.tables.places import CsvFile
from graphdb.storage.loaders.tables.reader import EDGE, has_values, on_disk, open_csv

if TYPE_CHECKING:
    import duckdb

_ROLES = {"ID", "LABEL", "START_ID", "END_ID", "TYPE", "IGNORE", ""}
_NATIVE = {"BIGINT": f"{XSD}integer", "DOUBLE": f"{XSD}double", "BOOLEAN": f"{XSD}boolean", "DATE": f"{XSD}date",
           "TIMESTAMP": f"{XSD}dateTime", "TIMESTAMPTZ": f"{XSD}dateTime"}  # fmt: skip
"""Types whose values are distinguished as they are; of others their lexical forms are."""

_ALIASES = {"TIMESTAMP WITH TIME ZONE": "TIMESTAMPTZ", "TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP"}
_SMALL = {"TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
_SAMPLE = 2048
"""Rows that show the types of a file's columns, where all others are of these."""

_DURATION = f"{XSD}duration"


@dataclass(frozen=True, slots=True)
class Sort:
    """What values are: names of vertices of a ``group`` (None for labels), or literals of a ``datatype``.

    ``type`` is the type of DuckDB's in which they are distinguished.
    """

    literal: bool
    type: str
    group: str | None = None
    datatype: str | None = None


@dataclass(frozen=True, slots=True)
class Staged:
    """A table of vertices or of edges: its columns, with what their values are; ``distinct`` edges are not parallel."""

    mapping: Mapping
    columns: Sequence[tuple[Column, Sort, arrow.ChunkedArray]]
    distinct: bool = False

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return len(self.columns[0][2])

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return sum(values.nbytes for _, _, values in self.columns)


def staging_database(folder: str, memory: int) -> duckdb.DuckDBPyConnection:
    """Return a connection to a new database for :class:`Staging`.

    Parameters
    ----------
    folder
        Where it may spill.
    memory
        Bytes that it may take.
    """
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory}B",
        "threads": 2,
        "temp_directory": folder,
    }
    return duckdb.connect(config=config)


class Staging:
    """Reads tables as columns, one at a time.

    Parameters
    ----------
    connection
        One to a :func:`staging_database`, which belongs to it.
    folder
        Where files are unpacked that DuckDB cannot read as they are.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: str) -> None:
        self.connection = connection
        progress_bar.hide(connection)
        connection.execute("SET TimeZone = 'UTC'")
        self._folder = folder
        self._stopped = False

    def close(self) -> None:
        """Forget everything; what is under way has ended."""
        self.connection.close()

    def stop(self) -> None:
        """Interrupt what is under way, from another thread."""
        self._stopped = True
        self.connection.interrupt()

    def table(self, source: DataFile | tuple[arrow.Table, list[Column]], mapping: Mapping) -> Staged | None:
        """Return a table as columns; None where it must go the other way.

        Raises
        ------
        LoadError
            Its file cannot be read, or its header cannot.
        """
        import duckdb

        try:
            if not isinstance(source, DataFile):
                table, columns = source
                if not hasattr(table, "num_rows"):  # which is read once
                    return None
                self.connection.register("given", table)
                return self._staged("given", columns, self._types("given"), mapping)
            if source.format is PARQUET and source.compression is None and source.stream is None:
                return self._parquet(str(source.path), mapping)
            if source.format not in (CSV, EDGE_LIST) or source.stream is not None:
                return None
            with on_disk(source, self._folder, self._watch) as path:
                read = self._csv if source.format is CSV else self._edge_list
                return read(path, source, mapping)
        except duckdb.Error:
            if self._stopped:
                raise Stopped from None
            return None  # what is wrong is said, or skipped, by the other way

    def tables(self, files: Sequence[DataFile], mapping: Mapping) -> tuple[list[Staged], list[int]] | None:
        """Return small CSV files as tables of columns, and how many rows each has; None where they are read one by one.

        Raises
        ------
        LoadError
            The header that they have cannot be read.
        """
        import duckdb

        texts = [file.path.read_bytes() for file in files]
        head = small_files.header(texts[0], mapping.dialect)
        if head is None:
            return None
        csv, columns = open_csv(str(files[0].path), files[0], mapping)
        found = small_files.joined(texts, head, csv.delimiter, csv.dialect, columns) if len(columns) > 1 else None
        if found is None:
            return None
        staged = []
        for some in found[0]:
            with NamedTemporaryFile(dir=self._folder, suffix=".part") as copy:
                copy.write(b"".join([head, *some.texts]))
                copy.flush()
                types = [type or "VARCHAR" for type in some.types]
                try:
                    one = self._typed(csv.at(copy.name), columns, types, mapping)
                except duckdb.Error:
                    if self._stopped:
                        raise Stopped from None
                    return None
            if one is None:
                return None
            staged.append(one)
        return staged, found[1]

    def _watch(self, block: Block | None) -> None:
        if self._stopped:
            raise Stopped

    def _parquet(self, path: str, mapping: Mapping) -> Staged | None:
        names = column_names(self.connection, path)
        source = f"read_parquet({_text(glob.escape(path))})"
        rows = self.connection.execute(f"DESCRIBE FROM {source}").fetchall()
        if len(names) != len(rows):
            return None
        columns = [replace(column, column=name) for column, (name, *_) in zip(mapping.read(names), rows, strict=True)]
        return self._staged(source, columns, [type for _, type, *_ in rows], mapping)

    def _edge_list(self, path: str, file: DataFile, mapping: Mapping) -> Staged | None:
        """Read an edge list whose vertices are integers, without weights: repeated edges are one."""
        delimited.check_lines(path, file.name)
        pairs = edge_lists.pairs(path, lambda: self._watch(None)) if os.path.getsize(path) else None
        if not pairs:
            return None
        ends = zip(("START_ID", "END_ID"), np.concatenate(pairs).T, strict=True)
        columns = [
            (Column(role, role), Sort(False, "BIGINT", ""), arrow.ChunkedArray([numbers(ids)])) for role, ids in ends
        ]
        return Staged(replace(mapping, type=mapping.type or EDGE), columns, distinct=True)

    def _csv(self, path: str, file: DataFile, mapping: Mapping) -> Staged | None:
        """Read a CSV file: once, if its first rows show the types of all."""
        import duckdb

        delimited.check_lines(path, file.name)
        if delimited.find_nul(path, file.name) is not None:
            return None
        csv, columns = open_csv(path, file, mapping)
        if (staged := self._as_shown(csv, columns, mapping)) is not None:
            return staged
        untyped = [c for c in columns if not c.type and (has_values(c) or c.role in IDENTIFIERS)]
        source, types = csv.source(), ["VARCHAR"] * len(columns)
        [(rows,)] = self.connection.execute(
            f"CREATE OR REPLACE TEMP TABLE staged AS FROM {source} LIMIT {_SAMPLE}"
        ).fetchall()
        shown = self._shown(untyped)
        unknown = [column for column in untyped if column.column not in shown and has_values(column)]
        # A wide file would be read for each group of columns.
        if len(columns) <= delimited.TOGETHER and (rows < _SAMPLE or not unknown):
            try:
                return self._staged(source, columns, types, mapping, shown)
            except duckdb.Error:
                if self._stopped or rows < _SAMPLE:
                    raise
        if rows == _SAMPLE:
            self.connection.execute(f"CREATE OR REPLACE TEMP TABLE staged AS FROM {source}")
            shown = self._shown(untyped)
        return self._staged("staged", columns, types, mapping, shown)

    def _as_shown(self, csv: CsvFile, columns: Sequence[Column], mapping: Mapping) -> Staged | None:
        """Read a CSV file in the types that all of its fields show; None where SQL has to be asked for these."""
        types = csv.types(columns, lambda: self._watch(None))
        return None if types is None else self._typed(csv, columns, types, mapping)

    def _typed(self, csv: CsvFile, columns: Sequence[Column], types: Sequence[str], mapping: Mapping) -> Staged | None:
        """Read a CSV file whose columns are of some types; None where they turn out to be of others."""
        import duckdb

        source = csv.source(types=types)
        try:
            if len(columns) > delimited.TOGETHER:
                self.connection.execute(f"CREATE OR REPLACE TEMP TABLE staged AS FROM {source}")
                source = "staged"
            return self._staged(source, columns, types, mapping)
        except duckdb.Error:  # of a row that is none the others tell
            if self._stopped:
                raise
            return None

    def _shown(self, untyped: Sequence[Column]) -> dict[str, str]:
        """Return the types that the texts of the table ``staged`` show; ids are integers, or what they are called."""
        shown = delimited.types(self.connection, "staged", list(untyped))
        ids = {column.column for column in untyped if column.role}
        return {name: type for name, type in shown.items() if name not in ids or type == "BIGINT"}

    def _types(self, source: str) -> list[str]:
        """Return the types of a relation's columns."""
        return [str(type) for _, type, *_ in self.connection.execute(f"DESCRIBE FROM {source}").fetchall()]

    def _staged(
        self,
        source: str,
        columns: Sequence[Column],
        types: Sequence[str],
        mapping: Mapping,
        shown: dict[str, str] | None = None,
    ) -> Staged | None:
        """Read a table of columns of these types; ``shown`` are types that its texts must be of."""
        roles = Counter(column.role for column in columns)
        is_edge = roles["START_ID"] == roles["END_ID"] == 1 and (roles["TYPE"] == 1 or mapping.type)
        is_node = roles["ID"] == 1 and not (roles["START_ID"] or roles["END_ID"] or roles["TYPE"])
        if not (is_edge or is_node) or not roles.keys() <= _ROLES or (is_edge and (roles["ID"] or roles["LABEL"])):
            return None
        found: list[tuple[Column, Sort, str]] = []
        for column, type in zip(columns, types, strict=True):
            if column.role == "IGNORE":
                continue
            given, type = quoted(column.column), _ALIASES.get(type, type)
            if shown and (assumed := shown.get(column.column)) not in (None, "VARCHAR"):
                given, type = delimited.of_sort(given, str(assumed)), str(assumed)
            sort_and_sql = self._sorted(column, given, type, mapping)
            if sort_and_sql is None:
                return None
            found.append((column, *sort_and_sql))
        values: list[arrow.ChunkedArray] = []
        for some in delimited.together(found):
            chosen = ", ".join(f"{sql} AS c{number}" for number, (_, _, sql) in enumerate(some))
            values += rows_of(self.connection, f"SELECT {chosen} FROM {source}").columns
        return Staged(mapping, [(column, sort, read) for (column, sort, _), read in zip(found, values, strict=True)])

    def _sorted(self, column: Column, given: str, type: str, mapping: Mapping) -> tuple[Sort, str] | None:
        """Return what the values of a column are, and SQL for them, which fails at a bad row."""
        if column.role:
            return _named(column, given, type, mapping)
        several = column.list or type.endswith("]")
        element = terms.element_type(column, type)
        if "INTERVAL" in (element, column.type):
            return None if several else _of_durations(given, type, column.stated)
        if not several:
            literal, sql = _literal(given, type, column.stated)
            return literal, _checked(sql, _wrong(given, type, column.stated))
        parts = values.values(given, type, mapping.dialect.list_delimiter)
        literal, sql = _literal("x", element, column.stated)
        wrong = _wrong("x", element, column.stated)
        bad = f"len(list_filter({parts}, lambda x: {wrong})) > 0" if wrong else ""
        if column.ordered:
            text = values.list_text(parts, element, column.stated)
            literal = Sort(True, "VARCHAR", datatype=LIST_DATATYPE)
            sql = _checked(f"CASE WHEN {given} IS NOT NULL THEN {text} END", bad)
            delimiter = mapping.dialect.list_delimiter
            plain = values.plain_list(given, column.stated, delimiter) if type == "VARCHAR" else None
            return literal, f"CASE WHEN {plain[0]} THEN {plain[1]} ELSE {sql} END" if plain else sql
        if type == element == "VARCHAR" and column.stated in (None, "VARCHAR"):
            return literal, parts
        return literal, _checked(f"list_transform({parts}, lambda x: {sql})", bad)


def _named(column: Column, given: str, type: str, mapping: Mapping) -> tuple[Sort, str] | None:
    """Return what the names of vertices or labels in a column are, and SQL for them."""
    if column.role == "LABEL":
        if type not in ("VARCHAR", "VARCHAR[]"):
            return None
        sql = values.values(given, type, mapping.dialect.list_delimiter) if type != "VARCHAR" else given
        text = given if type == "VARCHAR" else f"array_to_string({given}, ' ')"
        bad = f"contains({text}, '_:') OR contains({text}, '<<(')"
        return Sort(False, type), _checked(sql, bad)
    needed = f"{given} IS NULL"
    if column.role == "TYPE":
        return (Sort(False, type), _checked(given, f"{needed} OR {_is_rdf(given)}")) if type == "VARCHAR" else None
    if type in _SMALL or type == "BIGINT":
        if column.type == "VARCHAR" and column.name:
            return None
        return Sort(False, "BIGINT", column.group), _checked(f"{given}::BIGINT", needed)
    if column.type == "BIGINT":
        sql = values.as_integer(given) if type == "VARCHAR" else f"TRY_CAST({given} AS BIGINT)"
        return Sort(False, "BIGINT", column.group), _checked(sql, f"{needed} OR {values.wrong(given, type, 'BIGINT')}")
    if type != "VARCHAR" and column.name:
        return None
    text = terms.name_of(given, type)
    return Sort(False, "VARCHAR", column.group), _checked(text, f"{needed} OR {_is_rdf(text)}")


def _is_rdf(text: str) -> str:
    return f"starts_with({text}, '_:') OR starts_with({text}, '<<(')"


def _literal(given: str, type: str, stated: str | None) -> tuple[Sort, str]:
    """Return what values are as literals, and SQL for them."""
    native = stated.split("@")[0] if stated else type
    if stated and "@" in stated:
        return Sort(True, native, datatype=_NATIVE[native]), values.of_epoch(given, type, stated)
    if native in _SMALL or native == "BIGINT":
        sql = values.as_integer(given) if type == "VARCHAR" else f"{given}::BIGINT"
        return Sort(True, "BIGINT", datatype=_NATIVE["BIGINT"]), sql
    if native in _NATIVE and (type == native or native in ("DOUBLE", "BOOLEAN", "DATE")):
        sql = given if type == native else f"TRY_CAST({given} AS {native})"
        if type == "VARCHAR":
            sql = f"TRY_CAST(trim({given}) AS {native})"
        if native == "DOUBLE":
            sql = f"(CASE WHEN isnan({sql}) THEN 'nan'::DOUBLE ELSE {sql} END)"  # of which there are many
        elif native in ("TIMESTAMP", "TIMESTAMPTZ"):
            sql = f"{sql}::{native}"
        return Sort(True, native, datatype=_NATIVE[native]), sql
    text, datatype = values.stated_lexical(given, type, stated)
    return Sort(True, "VARCHAR", datatype=datatype), text


def _of_durations(given: str, type: str, stated: str | None) -> tuple[Sort, str] | None:
    """Return what durations are, and SQL for them, which fails at one that is none of XML Schema's: it is a text."""
    if stated not in (None, "INTERVAL") or type not in ("INTERVAL", "VARCHAR"):
        return None
    text, is_one = values.duration(given, type)
    return Sort(True, "VARCHAR", datatype=_DURATION), _checked(text, f"NOT ({is_one})")


def _wrong(given: str, type: str, stated: str | None) -> str:
    """SQL for whether a value is none of its stated type; empty where it always is."""
    if stated is None or stated in ("VARCHAR", type):
        return ""
    if stated == "BIGINT" and type == "VARCHAR":  # most are written as they should be
        exact = f"TRY_CAST({given} AS BIGINT)::VARCHAR IS DISTINCT FROM {given}"
        return f"{exact} AND {values.wrong(given, type, stated)}"
    return values.wrong(given, type, stated)


def _checked(sql: str, bad: str) -> str:
    """SQL for values, which fails at bad ones."""
    return f"CASE WHEN {bad} THEN error('bad') ELSE {sql} END" if bad else sql
