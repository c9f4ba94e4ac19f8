"""Delimited text: a file's delimiter, the lengths and ends of its lines, and the types of its values.

Separators are read off the header; quotes are those of RFC 4180.  Nothing is guessed from the first rows: what comes
first in row 100,000 (a quote, a text among numbers) is read as if it came first in row 1.
"""

from __future__ import annotations

import csv
import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import LoadError
from graphdb.common.stopping import check_stop
from graphdb.storage.loaders import compression, streams

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.loaders.tables.headers import Column, Dialect

Item = TypeVar("Item")

_DELIMITERS = ",;\t|"

_HEADER = 1 << 20
"""Bytes that a header may have."""

_SHORT = 1 << 13
"""Bytes that most have: the first line, where it has no quotes."""

_STEP = 4 << 20

TOGETHER = 64
"""Columns that one statement asks for."""

_FIRST = 2048
"""Rows that are looked at first, to find the columns that hold texts."""

_LONG = 8192
"""Rows from which it takes less to compile a test for each column than to ask all values for any type."""

_WHOLE, _POWER = r"(?:0|[1-9]\d*)", r"[eE][+-]?\d+"
_ZONE = r"(?:Z|[+-]\d\d(?::?\d\d)?)"
_DAY, _CLOCK = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d:\d\d(?:\.\d{1,6})?"
_SORTS = {
    "BIGINT": r"0|-?[1-9]\d{0,17}",
    "HUGEINT": r"-?[1-9]\d{18,37}",
    "DOUBLE": rf"[+-]?(?:(?:{_WHOLE})?\.\d+(?:{_POWER})?|{_WHOLE}\.?{_POWER})|(?i:-?inf(?:inity)?|nan)",
    "BOOLEAN": r"(?i:true|false)",
    "DATE": _DAY,
    "TIMESTAMP": rf"{_DAY}[ T]{_CLOCK}",
    "TIMESTAMPTZ": rf"{_DAY}[ T]{_CLOCK}{_ZONE}",
    "TIME": _CLOCK,
}
"""The types that values show by how they are written, each value one at most; a number with leading zeros is a text."""

_LONGEST = 10**18 - 1
"""The largest whole number that is a BIGINT by how it is written."""

_WIDER = {
    frozenset(("BIGINT", "HUGEINT")): "HUGEINT",
    frozenset(("BIGINT", "DOUBLE")): "DOUBLE",
    frozenset(("DATE", "TIMESTAMP")): "TIMESTAMP",
}
"""The type of a column whose values are of two."""


@contextmanager
def mapped(path: str) -> Iterator[mmap.mmap | bytes]:
    """The bytes of a file, in memory as far as they are looked at."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:  # which cannot be mapped
            yield b""
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            yield text


def find_nul(path: str, name: str) -> LoadError | None:
    """Return what is to be said of the first NUL byte of a file, if it has one: text tables are made of text."""
    with mapped(path) as text:
        steps = range(0, len(text), _STEP)  # between which others may work
        at = next((at for begin in steps if (at := text.find(b"\0", begin, begin + _STEP)) >= 0), -1)
        if at < 0:
            return None
        line = 1 + sum(text[begin : min(begin + _STEP, at)].count(b"\n") for begin in range(0, at, _STEP))
        start = text.rfind(b"\n", 0, at) + 1
        before, behind = text[start:at], text[at : at + _STEP].split(b"\n")[0]
    shown = (before + behind).decode(errors="replace")
    column = len(before.decode(errors="replace")) + 1
    return LoadError("a NUL byte is no text", source=name, line=line, column=column, text=shown, hint=_NUL)


def check_lines(path: str, name: str) -> None:
    """Refuse a file in UTF-16, or with a line of more than :data:`~graphdb.storage.loaders.streams.LONGEST_ROW` bytes.

    From each line end the next is looked for where the longest line would have it, backwards: short lines are jumped
    over, so little of the file is read.

    Raises
    ------
    LoadError
        With the number of the line.
    """
    with open(path, "rb") as file:
        compression.refuse_utf16(file.read(4), name)
        size = os.fstat(file.fileno()).st_size
        if size <= streams.LONGEST_ROW:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            start = 0
            while size - start > streams.LONGEST_ROW:
                end = start + streams.LONGEST_ROW + 1
                behind = text.rfind(b"\n", start, end) + 1 or text.rfind(b"\r", start, end) + 1
                if not behind:
                    line = 1 + sum(text[at : min(at + _STEP, start)].count(b"\n") for at in range(0, start, _STEP))
                    raise LoadError(
                        f"a line is longer than {streams.LONGEST_ROW >> 20} MiB", source=name, line=line, hint=_QUOTE
                    )
                start = behind


_NUL = "the file is damaged or no text; texts that have one load from Parquet, or from N-Triples as \\u0000"

_QUOTE = "is a quote or a line end missing?"


MIXED_ENDS = "The CSV Parser state machine reached an invalid state"
"""What DuckDB says of a line that does not end as the others do."""


@contextmanager
def evened(path: str, quote: str, folder: str) -> Iterator[str]:
    r"""Yield the path of a copy, in ``folder``, whose lines all end by ``\n``, with the same rows at the same lines.

    DuckDB reads lines that end in both ways only where it takes what is no table for one, too.  It is the path itself
    where they end in one way, or ``quote``, which is around values that may have line ends of their own, is no
    character of ASCII.
    """
    if not quote.isascii() or not _has_both(path, quote):
        yield path
        return
    with NamedTemporaryFile(dir=folder, suffix=".part") as copy:
        for text, ends in _pieces(path, quote):
            left = np.ones(len(text), bool)
            left[:-1] = text[:-1] != ord("\r")
            left[:-1] |= ~ends[1:]
            copy.write(text[left].tobytes())
        copy.flush()
        yield copy.name


def _has_both(path: str, quote: str) -> bool:
    long = short = False
    for text, ends in _pieces(path, quote):
        before = np.append(False, text[:-1] == ord("\r"))
        long, short = long or bool((ends & before).any()), short or bool((ends & ~before).any())
        if long and short:
            return True
    return False


def _pieces(path: str, quote: str) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
    r"""Yield a file's bytes, and which of them are a ``\n`` that is in no quotes; ``\r\n`` is in one piece."""
    inside = 0
    with open(path, "rb") as file:
        while chunk := file.read(_STEP):
            check_stop()
            while chunk.endswith(b"\r") and (more := file.read(1)):
                chunk += more
            text = np.frombuffer(chunk, np.uint8)
            ends = text == ord("\n")
            if quote:
                quotes = np.cumsum(text == ord(quote)) + inside
                ends &= quotes % 2 == 0
                inside = int(quotes[-1] % 2)
            yield text, ends


def read_header(path: str, name: str, dialect: Dialect) -> tuple[str, list[str], int]:
    """Return the delimiter of a CSV file, the names of its columns, and how many empty lines come before them.

    A column without a name is called after its place: ``column0``; so are all of a file without a header.

    Raises
    ------
    LoadError
        Where the file has no header.
    """
    with open(path, "rb") as file:
        head = b""
        for size in (_SHORT, _HEADER):
            head += file.read(size - len(head))
            lines = head.decode("utf-8-sig", "replace").splitlines(keepends=True)
            empty = next((number for number, line in enumerate(lines) if line.strip()), None)
            if (
                empty is not None
                and empty + 1 < len(lines)
                and (not dialect.quote or dialect.quote not in lines[empty])
            ):
                break
    if empty is None:
        raise LoadError(f"the file is empty: it has no {'header' if dialect.header else 'rows'}", source=name)
    delimiter = dialect.delimiter or max(_DELIMITERS, key=lines[empty].count)
    if dialect.quote:
        reader = csv.reader(lines[empty:], delimiter=delimiter, quotechar=dialect.quote)
    else:
        reader = csv.reader(lines[empty:], delimiter=delimiter, quoting=csv.QUOTE_NONE)
    names = next(reader)
    if any("\ufffd" in column for column in names):
        raise LoadError("these bytes are not UTF-8", source=name, line=empty + 1, hint="convert the file to UTF-8")
    if not dialect.header:
        names = [""] * len(names)
    return delimiter, [column.strip() or f"column{number}" for number, column in enumerate(names)], empty


def in_header(error: LoadError, path: str, name: str) -> LoadError:
    """Return an error about one of the headers of a CSV file with its place there."""
    with open(path, "rb") as file:
        text = file.read(_HEADER).decode("utf-8-sig", "replace")
    at = text.find(error.excerpt or "\0")
    if at < 0 or error.column is None:
        return error
    return LoadError(error.message, text=text, position=at + error.column - 1, source=name, hint=error.hint)


def sizes() -> str:
    """Parameters of DuckDB's reader for the lengths of rows: at a last one that is longer than its buffer the file just
    ends.
    """
    return f", max_line_size = {streams.LONGEST_ROW}, buffer_size = {2 * streams.LONGEST_ROW}"


def literal(value: str) -> str:
    """Return a path or name as SQL's text: where a statement takes no parameters."""
    return "'" + value.replace("'", "''") + "'"


def types(connection: duckdb.DuckDBPyConnection, table: str, columns: list[Column]) -> dict[str, str]:
    """Return the types that all values of columns of text show, for those that are none of texts."""
    names = [column.column for column in columns]
    shown = _shown(connection, table, names, f"LIMIT {_FIRST}")
    [(rows,)] = connection.execute(f"SELECT count(*) FROM {quoted(table)}").fetchall()
    if rows > _FIRST:
        shown = {name: type for name, type in shown.items() if type != "VARCHAR"}
        known = {name: type for name, type in shown.items() if type and rows > _LONG}
        fitting = _fitting(connection, table, known)
        shown |= _shown(connection, table, [name for name in shown if name not in fitting])
    return {name: type for name, type in shown.items() if type not in ("", "VARCHAR")}


def of_sort(value: str, type: str) -> str:
    """SQL for texts as values of a type that :func:`types` found some of them to show; it fails at others."""
    cast = f"TRY_CAST({value} AS {type})"
    return f"(CASE WHEN {value} IS NULL THEN NULL WHEN {_fits(value, type)} THEN {cast} ELSE error('another type') END)"


def _fits(value: str, type: str) -> str:
    """SQL for whether a text shows a type, or a narrower one: one test, where :func:`_sort` asks for all types."""
    narrower = [sort for both, wider in _WIDER.items() if wider == type for sort in both]
    tests = []
    for sort in dict.fromkeys([type, *narrower]):
        cast = f"TRY_CAST({value} AS {sort})"
        if sort == "BIGINT":
            tests.append(f"{cast}::VARCHAR = {value} AND {cast} BETWEEN -{_LONGEST} AND {_LONGEST}")
        else:
            tests.append(f"regexp_full_match({value}, {literal(_SORTS[sort])}) AND {cast} IS NOT NULL")
    return f"coalesce({' OR '.join(f'({test})' for test in tests)}, false)"


def _fitting(connection: duckdb.DuckDBPyConnection, table: str, shown: dict[str, str]) -> set[str]:
    """Return the columns of a table all of whose values show what is said of them."""
    found: set[str] = set()
    for some in together(list(shown)):
        tests = ", ".join(f"bool_and({quoted(x)} IS NULL OR {_fits(quoted(x), shown[x])})" for x in some)
        [fits] = connection.execute(f"SELECT {tests} FROM {quoted(table)}").fetchall()
        found.update(name for name, each in zip(some, fits, strict=True) if each)
    return found


def _shown(connection: duckdb.DuckDBPyConnection, table: str, names: list[str], limit: str = "") -> dict[str, str]:
    """Return the types that columns of a table show, empty for those without values."""
    found: dict[str, str] = dict.fromkeys(names, "")
    for some in together(names):
        # One expression for all of them: expressions are compiled for each column, and patterns of text take long.
        rows = f"SELECT [{', '.join(map(quoted, some))}] AS values FROM {quoted(table)} {limit}"
        each = f"SELECT unnest(range({len(some)})) AS place, unnest(values) AS value FROM ({rows})"
        sql = f"SELECT place, list(DISTINCT {_sort('value')}) FROM ({each}) GROUP BY place"
        for place, sorts in connection.execute(sql).fetchall():
            found[some[place]] = _common(frozenset(sorts or ()) - {None})
    return found


def together(columns: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Yield the columns of a table in groups that one statement may ask for: DuckDB's time grows by their square."""
    yield from (columns[begin : begin + TOGETHER] for begin in range(0, len(columns), TOGETHER))


def _sort(value: str) -> str:
    """SQL for the type that a text shows."""
    cases = " ".join(
        f"WHEN regexp_full_match({value}, {literal(pattern)}) THEN "
        f"if(TRY_CAST({value} AS {type}) IS NULL, 'VARCHAR', '{type}')"
        for type, pattern in _SORTS.items()
    )
    return f"CASE WHEN {value} IS NULL THEN NULL {cases} ELSE 'VARCHAR' END"


def _common(shown: frozenset[str]) -> str:
    """The type of a column whose values show these."""
    return next(iter(shown), "") if len(shown) < 2 else _WIDER.get(shown, "VARCHAR")
