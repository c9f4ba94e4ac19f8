"""Positions in a CSV file: the lines of rows, and the columns of faulty values.

DuckDB counts rows; a row may have several lines, and lines may be empty.  So a file with a bad row is read again up to
there, by a pattern of what a row is (RFC 4180, as :mod:`.delimited` has DuckDB read it).
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from graphdb.storage.loaders import streams
from graphdb.storage.loaders.streams import BadLine
from graphdb.storage.loaders.tables.delimited import literal, mapped, sizes
from graphdb.storage.loaders.tables.fields import types as fields

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.loaders.tables.headers import Column, Dialect

_STEP = 4 << 20

_MARK = b"\xef\xbb\xbf"

_END = re.compile(rb"\r\n|\n|\r")
_BLANK = re.compile(rb"[\r\n]*+")
_LINE = re.compile(rb"[^\r\n]*+(?:\r\n|\n|\r)")


class CsvFile:
    """A CSV file that DuckDB reads as texts, and what is said of its bad rows.

    Parameters
    ----------
    path
        Where it is.
    name
        What messages call it.
    delimiter
        What separates its columns.
    empty
        How many empty lines come before its header.
    columns
        The names of its columns.
    dialect
        How it is written otherwise.
    """

    def __init__(
        self, path: str, name: str, delimiter: str, empty: int, columns: Sequence[str], dialect: Dialect
    ) -> None:
        self._path = path
        self._name = name
        self.delimiter = delimiter
        self._empty = empty
        self._columns = columns
        self.dialect = dialect
        self._rejected: dict[int, int] = {}

    def at(self, path: str) -> CsvFile:
        """Return a file at another path that is written in the same way."""
        return CsvFile(path, self._name, self.delimiter, self._empty, self._columns, self.dialect)

    def read(self, connection: duckdb.DuckDBPyConnection, table: str, *, rejects: bool) -> None:
        """Make it a table; with ``rejects`` without its rows that are none, else an error of DuckDB's tells of one."""
        stored = ", store_rejects = true" if rejects else ""
        connection.execute(f"CREATE OR REPLACE TABLE {table} AS FROM {self.source(stored)}")

    def types(self, columns: Sequence[Column], watch: Callable[[], object]) -> list[str] | None:
        """Return the types in which its columns may be read; None where SQL has to be asked (:mod:`.fields.types`)."""
        if self._empty:
            return None
        return fields.types(self._path, self.delimiter, self.dialect, columns, watch)

    def source(self, more: str = "", types: Sequence[str] = ()) -> str:
        """SQL that reads it: what can stand after FROM.  Columns are texts where no types are given."""
        import glob

        given = zip(self._columns, types or ["VARCHAR"] * len(self._columns), strict=True)
        described = ", ".join(f"{literal(name)}: '{type}'" for name, type in given)
        dialect, quote = self.dialect, literal(self.dialect.quote)
        said = f"header = {str(dialect.header).lower()}, skip = {self._empty}, auto_detect = false"
        said += ", compression = 'none'"  # whatever its name says
        said += f", delim = {literal(self.delimiter)}, nullstr = {literal(dialect.null)}"
        said += f", quote = {quote}, escape = {quote}, columns = {{{described}}}{sizes()}{more}"
        return f"read_csv({literal(glob.escape(self._path))}, {said})"

    def rejected(self, connection: duckdb.DuckDBPyConnection) -> Iterator[BadLine]:
        """Yield what is to be said of the rows that were rejected."""
        found = connection.execute(
            "SELECT line_byte_position - 1, min(byte_position) - 1, min_by(error_message, byte_position),"
            " any_value(csv_line) FROM reject_errors GROUP BY ALL ORDER BY 1 ASC"
        )
        with mapped(self._path) as text:
            places = _Places(text)
            while rows := found.fetchmany(1024):
                for start, at, message, row in rows:
                    blank = len(row) - len(row.lstrip("\r\n"))
                    self._rejected[start + blank] = len(row.encode()) - blank
                    hint = "convert the file to UTF-8" if "utf-8" in message else None
                    yield places.bad(self._name, at, message.split("\n")[0], hint)

    def bad(self, rows: Iterable[tuple[int, int, str]]) -> Iterator[BadLine]:
        """Yield what is to be said of rows of the table: their numbers (from 1, ascending), bad fields, messages."""
        with mapped(self._path) as text:
            places = _Places(text)
            single = len(self._columns) == 1
            found = _Rows(text, self.delimiter, self._empty, single, self._rejected, self.dialect)
            for number, field, message in rows:
                begin = found.find(number)
                if begin is None:
                    yield BadLine(self._name, None, None, message, None, None)
                else:
                    yield places.bad(self._name, found.field(begin, field), message)


class _Places:
    """Tells places of a file, each behind the one before."""

    def __init__(self, text: mmap.mmap | bytes) -> None:
        self._text = text
        self._end = b"\n" if text.find(b"\n", 0, _STEP) >= 0 else b"\r"
        self._line, self._at = 1, 0

    def bad(self, name: str, at: int, message: str, hint: str | None = None) -> BadLine:
        """Return what is to be said of a byte of the file: its line, its column in characters, and the line."""
        text, end = self._text, self._end
        at = min(at, len(text))
        if at < self._at:
            self._line, self._at = 1, 0
        for start in range(self._at, at, _STEP):
            self._line += text[start : min(start + _STEP, at)].count(end)
        self._at = at
        start = text.rfind(end, 0, at) + 1
        stop = text.find(end, at, at + streams.LONGEST_ROW)
        before = text[start:at].removeprefix(_MARK if start == 0 else b"").decode(errors="replace")
        behind = text[at : stop if stop >= 0 else at + streams.LONGEST_ROW].decode(errors="replace")
        return BadLine(name, self._line, len(before) + 1, message, hint, (before + behind).rstrip("\r\n"))


class _Rows:
    """The rows of a CSV file, in order, without its header and those that were rejected.

    ``rejected`` says, by the bytes at which they begin, how many bytes these have.
    """

    def __init__(
        self,
        text: mmap.mmap | bytes,
        delimiter: str,
        empty: int,
        single: bool,
        rejected: dict[int, int],
        dialect: Dialect,
    ) -> None:
        other, quote = re.escape(delimiter), re.escape(dialect.quote)
        field = rf"[^{other}\r\n]*+"
        if quote:
            field = rf"{quote}(?:[^{quote}]++|{quote}{quote})*+{quote}|(?:[^{quote}{other}\r\n][^{other}\r\n]*+)?"
        self._field = re.compile(field.encode())
        self._row = re.compile(rf"(?:{field})(?:{other}(?:{field}))*+(?:\r\n|\n|\r|\Z)".encode())
        self._single = single  # then an empty line is a row
        self._text = text
        self._rejected = rejected
        self._number, self._at = 0, len(_MARK) if text[: len(_MARK)] == _MARK else 0
        self._begin = self._at
        for _ in range(empty):
            self._at = self._behind(_LINE)
        if dialect.header:
            self._at = self._behind(self._row)

    def find(self, number: int) -> int | None:
        """Return where a row begins, by its number (from 1; none before the last); None if it is not found."""
        while self._number < number:
            self._at = self._at if self._single else self._behind(_BLANK)
            if self._at in self._rejected:
                self._at += self._rejected[self._at]
                self._at = self._behind(_END)
                continue
            self._begin, end = self._at, self._behind(self._row)
            if end == self._begin:
                return None
            self._number, self._at = self._number + 1, end
        return self._begin

    def field(self, begin: int, number: int) -> int:
        """Return where the field of a number (from 0) begins in the row that begins there."""
        for _ in range(number):
            found = self._field.match(self._text, begin)
            begin = (found.end() if found else begin) + 1
        return begin

    def _behind(self, pattern: re.Pattern[bytes]) -> int:
        """Return where a pattern ends that begins here; here, where none does."""
        found = pattern.match(self._text, self._at)
        return found.end() if found else self._at
