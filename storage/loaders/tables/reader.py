"""Node and edge tables to triples: CSV, Parquet, data frames, edge lists, labelled graphs.

The headers say what a column is (:mod:`.headers`).  An edge with properties is reified, as
:mod:`graphdb.storage.updates.append` tells, and so are parallel edges.

DuckDB, in a database of its own, reads the table and writes it as N-Triples, which go the way of all others.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from graphdb.common import arrow
from graphdb.common.duckdb import progress_bar
from graphdb.common.duckdb.fetch import batches
from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import LoadError
from graphdb.storage.arrays.arrow import string_bytes
from graphdb.storage.file.parquet import column_names
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import CSV, LABELLED, PARQUET
from graphdb.storage.loaders.streams import BadLine, Block, Put, chunks
from graphdb.storage.loaders.tables import delimited, terms, values
from graphdb.storage.loaders.tables.delimited import literal as _text
from graphdb.storage.loaders.tables.headers import IDENTIFIERS, Column, Mapping
from graphdb.storage.loaders.tables.lines import LINE, NUMBER, Lines
from graphdb.storage.loaders.tables.places import CsvFile

if TYPE_CHECKING:
    import duckdb

ROWS = 20_000
"""Rows of one column whose triples become one block."""

_FEWEST = 2048
"""Rows of a block of wide tables: DuckDB makes as many at a time."""

_LINES = 4
"""What part of the memory is for lines that wait to be parsed."""

EDGE = "edge"
"""The label of the edges of lists and graphs that do not say it."""

_BAD = 4096
"""Bad rows that are reported at a time."""

_WIDEST = 900
"""Columns that a table may have which is read row by row: DuckDB's expressions nest no deeper than 1,000."""

_SINGLE = {"ID", "START_ID", "END_ID", "TYPE", "REIFIER", "REIFIER_GRAPH", "ASSERTED", "GRAPH", "VALUE", "DATATYPE",
           "LANGUAGE"}  # fmt: skip
"""What only one column can be."""


def read_table(
    source: DataFile | tuple[arrow.Table | arrow.Reader, list[Column]],
    name: str,
    number: int,
    mapping: Mapping,
    skip: bool,
    put: Put,
    folder: str,
    memory: int = 1 << 30,
) -> None:
    """Hand on the triples of a table as blocks of N-Triples.

    Parameters
    ----------
    source
        A file, or an Arrow table (or a stream of one) and what its columns are.
    name
        What messages call it.
    number
        Keeps its reifiers apart from those of other tables.
    folder
        Where DuckDB may spill, and where a file is unpacked that DuckDB cannot read as it is.
    memory
        Bytes that DuckDB may take for it.

    Raises
    ------
    LoadError
        Where the table cannot be read, lacks the columns that are needed or, unless ``skip``, has a bad row.
    """
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{memory}B",
        "threads": 2,
        "temp_directory": folder,
    }
    writing = memory - memory // _LINES
    put.enter_library()
    with duckdb.connect(config=config) as connection:
        progress_bar.hide(connection)
        connection.execute("SET TimeZone = 'UTC'")  # a time without a zone is the same wherever it is read
        try:
            with put.interrupting(connection.interrupt):
                if isinstance(source, DataFile):
                    table = partial(_Table, connection, source, name, number, mapping, skip, put, writing)
                    with on_disk(source, folder, put) as path:
                        first = table()
                        try:
                            first.read(path)
                        except duckdb.InvalidInputException:
                            if first.has_begun:
                                raise
                            # Once more: for the place, without the bad rows, or with lines that end alike.
                            quote = mapping.dialect.quote if source.format is CSV else ""
                            with delimited.evened(path, quote, folder) as even:
                                table(again=True).read(even)
                else:
                    rows, columns = source
                    _visible(connection, rows)
                    _Table(connection, None, name, number, mapping, skip, put, writing).write(columns)
        except duckdb.Error as error:
            raise _failure(error, name, folder) from None
        except arrow.ArrowError as error:  # whoever makes the stream says so
            said = str(error).splitlines()[0].partition(" Detail: ")[0]
            raise LoadError(f"reading the stream failed: {said}", source=name) from None


def _visible(connection: duckdb.DuckDBPyConnection, table: arrow.Table | arrow.Reader) -> None:
    """Let SQL see a table as ``frame``; what streams is read once, and spilled."""
    if isinstance(table, arrow.Table):
        connection.register("given", table)
        connection.execute("CREATE VIEW frame AS FROM given")
        return
    with table:
        for number, some in enumerate(table.tables()):
            connection.register("given", some)
            connection.execute("INSERT INTO frame FROM given" if number else "CREATE TABLE frame AS FROM given")
            connection.unregister("given")


def on_disk(file: DataFile, folder: str, put: Callable[[Block], object]) -> Any:
    """A path under which DuckDB finds the file's text: packed files and pipes are copied, and checked on the way."""
    from contextlib import contextmanager
    from tempfile import NamedTemporaryFile

    @contextmanager
    def copied() -> Any:
        if file.compression is None and file.stream is None:
            yield str(file.path)
            return
        with NamedTemporaryFile(dir=folder, suffix=".part") as copy:
            for chunk, consumed in chunks(file):
                copy.write(chunk)
                put(Block(b"", consumed // 2))  # the other half of the work comes after
            copy.flush()
            yield copy.name

    return copied()


def open_csv(path: str, file: DataFile, mapping: Mapping) -> tuple[CsvFile, list[Column]]:
    """Return a CSV file that is at a path, and what its columns are.

    Raises
    ------
    LoadError
        It has no header, or one that cannot be read.
    """
    dialect = mapping.dialect
    if dialect.delimiter is None and ".tsv" in file.path.suffixes:
        dialect = replace(dialect, delimiter="\t")
    delimiter, names, empty = delimited.read_header(path, file.name, dialect)
    try:
        columns = mapping.read(names)
    except LoadError as error:
        raise delimited.in_header(error, path, file.name) from None
    return CsvFile(path, file.name, delimiter, empty, [column.column for column in columns], dialect), columns


def has_values(column: Column) -> bool:
    """Whether the values of a column are those of a property: one, or an id that is one too."""
    return not column.role or (column.role == "ID" and bool(column.name))


class _Table:
    """One table on its way."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        file: DataFile | None,
        name: str,
        number: int,
        mapping: Mapping,
        skip: bool,
        put: Put,
        memory: int,
        again: bool = False,
    ) -> None:
        self._connection = connection
        self._file = file
        self._name = name
        self._number = number
        self._mapping = mapping
        self._skip = skip
        self._put = put
        self._memory = memory
        """Bytes that DuckDB may take once lines are parsed, too."""
        self._again = again
        """Whether some of its rows are known to be bad."""
        self.has_begun = False
        """Whether anything was handed on."""
        self._nul = False
        self._csv: CsvFile | None = None
        self._size = file.size if file else 0

    def read(self, path: str) -> None:
        """Read the table of a file that is at the given path."""
        assert self._file is not None
        if self._file.format is PARQUET:
            self._connection.execute(f"CREATE VIEW frame AS FROM read_parquet({_text(glob.escape(path))})")
            self._write(self._columns(None, self._headers(path)))
            return
        delimited.check_lines(path, self._name)
        nul = delimited.find_nul(path, self._name)
        if nul is not None and not self._skip:
            raise nul
        self._nul = nul is not None
        if self._file.format is CSV:
            self._write(self._read_csv(path))
        else:
            self._read_lines(glob.escape(path), self._file.format is LABELLED)

    def write(self, columns: list[Column]) -> None:
        """Write the table ``frame``, whose columns are known."""
        self._write(self._columns(columns))

    # --- what is in it

    def _headers(self, path: str) -> list[str]:
        """The names of a Parquet file's columns as they are: DuckDB renames what differs in case only."""
        return column_names(self._connection, path)

    def _columns(self, columns: list[Column] | None, headers: Sequence[str] = ()) -> list[tuple[Column, str]]:
        """The columns of ``frame`` with DuckDB's types; what they are is said by their names, if it is not known."""
        rows = self._connection.execute("DESCRIBE frame").fetchall()
        if not columns:
            names = [name for name, *_ in rows]
            said = self._mapping.read(headers if len(headers) == len(names) else names)
            columns = [replace(column, column=name) for column, name in zip(said, names, strict=True)]
        self._refuse_wide(columns)
        return [(column, type) for column, (_, type, *_) in zip(columns, rows, strict=True)]

    def _refuse_wide(self, columns: list[Column]) -> None:
        if len(columns) > _WIDEST:
            raise LoadError(
                f"the table has {len(columns):,} columns; where it is a stream, has edges with several types or a row "
                f"that cannot be read, it may have {_WIDEST:,}",
                source=self._name,
                hint="mend the row, or divide the columns among several files",
            )

    def _read_csv(self, path: str) -> list[tuple[Column, str]]:
        """Make a CSV file the view ``frame``; bad rows are found and reported when it is read again."""
        assert self._file is not None
        csv, columns = open_csv(path, self._file, self._mapping)
        self._refuse_wide(columns)
        self._csv = csv
        csv.read(self._connection, "staged", rejects=self._again)
        if self._again:
            self._tell(csv.rejected(self._connection))
        shown = delimited.types(self._connection, "staged", [c for c in columns if has_values(c) and not c.type])
        whole = {c.column for c in columns if not c.role} | {name for name, type in shown.items() if type == "BIGINT"}
        shown = {name: type for name, type in shown.items() if name in whole}  # ids are called as they are written
        casts = ", ".join(f"{quoted(name)}::{type} AS {quoted(name)}" for name, type in shown.items())
        replaced = f" REPLACE ({casts})" if casts else ""
        self._connection.execute(f"CREATE VIEW frame AS SELECT *{replaced} FROM staged")
        return [(column, shown.get(column.column, "VARCHAR")) for column in columns]

    def _read_lines(self, path: str, labelled: bool) -> None:
        """Read an edge list, or a labelled graph: lines ``t``, ``v id label``, ``e from to [label]``."""
        self._connection.execute(
            "CREATE TABLE split AS SELECT number, line, string_split_regex(text, '[ \t,]+') AS words FROM ("
            "SELECT row_number() OVER () AS number, line, trim(line, ' \t') AS text FROM "
            f"read_csv({_text(path)}, columns = {{'line': 'VARCHAR'}}, header = false, auto_detect = false, "
            f"delim = '\x01', quote = '', escape = '', compression = 'none'{delimited.sizes()})"
            ") WHERE text <> '' AND NOT starts_with(text, '#') AND NOT starts_with(text, '%')"
        )
        if labelled:
            wrong = "NOT (words[1] = 't' OR words[1] IN ('v', 'e') AND len(words) >= 3)"
            said = _text("expected 't …', 'v vertex label' or 'e from to [label]'")
            most = "if(words[1] IN ('v', 'e'), 2, 0)"
        else:
            wrong = "len(words) NOT IN (2, 3) OR len(words) = 3 AND TRY_CAST(words[3] AS DOUBLE) IS NULL"
            said = _text("expected two vertices, and at most a weight")
            most = "if(len(words) > 3, 3, 2)"
        # What is wrong is behind so many words, or at the line's end.
        ahead = f"regexp_extract(line, '^[ \t]*(?:[^ \t,]+(?:[ \t,]+|$)){{' || least(len(words), {most}) || '}}')"
        place = f"len({ahead}) + 1"
        if self._nul:
            nul = "contains(line, chr(0))"
            wrong, said = f"{nul} OR {wrong}", f"CASE WHEN {nul} THEN 'this line has a NUL byte' ELSE {said} END"
            place = f"CASE WHEN {nul} THEN instr(line, chr(0)) ELSE {place} END"
        self._check(f"SELECT number, line, {said}, {place} FROM split WHERE {wrong} ORDER BY number ASC")
        self._connection.execute(f"CREATE TABLE line AS SELECT number, words FROM split WHERE NOT ({wrong})")
        self._connection.execute("DROP TABLE split")
        edge = _text(self._mapping.type or EDGE)
        if labelled:
            graphs = self._connection.execute("SELECT count(*) FROM line WHERE words[1] = 't'").fetchall()[0][0]
            group = ""
            if graphs > 1:
                number = "count(*) FILTER (words[1] = 't') OVER (ORDER BY number ASC) - 1 AS graph"
                self._connection.execute(f"CREATE OR REPLACE TABLE line AS SELECT words, {number} FROM line")
                group = "graph || '/' || "
            self._connection.execute(
                f"CREATE VIEW frame AS SELECT {group}words[2] AS id, 'L' || words[3] AS label FROM line"
                " WHERE words[1] = 'v'"
            )
            self._write([(Column("id", "ID"), "VARCHAR"), (Column("label", "LABEL"), "VARCHAR")])
            self._connection.execute(
                f"CREATE OR REPLACE VIEW frame AS SELECT {group}words[2] AS one, {group}words[3] AS other,"
                f" coalesce('E' || words[4], {edge}) AS kind FROM line WHERE words[1] = 'e'"
            )
            self._write_edges(distinct=True)
        else:
            widest = self._connection.execute("SELECT coalesce(max(len(words)), 2) FROM line").fetchall()[0][0]
            weight = ", TRY_CAST(words[3] AS DOUBLE) AS weight" if widest > 2 else ""
            self._connection.execute(
                f"CREATE VIEW frame AS SELECT words[1] AS one, words[2] AS other, {edge} AS kind{weight} FROM line"
            )
            extra = [(Column("weight", "", "weight"), "DOUBLE")] if weight else []
            self._write_edges(extra, distinct=not weight)

    def _write_edges(self, extra: list[tuple[Column, str]] | None = None, *, distinct: bool) -> None:
        """Write the view ``frame`` of columns one, other and kind."""
        roles = ("one", "START_ID"), ("other", "END_ID"), ("kind", "TYPE")
        self._write([*((Column(name, role), "VARCHAR") for name, role in roles), *(extra or [])], distinct=distinct)

    # --- what becomes of it

    def _write(self, columns: list[tuple[Column, str]], distinct: bool = False) -> None:
        """Write the view ``frame`` as N-Triples; ``distinct`` says that repeated edges are one."""
        self.has_begun = True
        by_role: dict[str, list[tuple[Column, str]]] = {}
        for column, type in columns:
            by_role.setdefault(column.role, []).append((column, type))
        for role, found in by_role.items():
            if len(found) > 1 and role in _SINGLE:
                names = " and ".join(repr(column.column) for column, _ in found)
                raise LoadError(f"two columns are :{role}: {names}", source=self._name, hint="one can be; see columns=")
        lines = Lines(self._mapping, self._name, self._number, terms.line_end(by_role))
        if "START_ID" in by_role and "END_ID" in by_role:
            text, needed = lines.edges(by_role, distinct)
        elif "START_ID" in by_role and "VALUE" in by_role and "TYPE" in by_role:
            text, needed = lines.literals(by_role)
        elif "ID" in by_role:
            text, needed = lines.nodes(by_role)
        else:
            self._mapping.check()
            raise self._mapping.without_roles([column.column for column, _ in columns], self._name)
        bad = self._bad(columns, needed, lines)
        self._check(
            f"SELECT {NUMBER}, NULL, said.text, said.place FROM (SELECT {NUMBER}, CASE {bad} END AS said FROM"
            f" (SELECT row_number() OVER () AS {NUMBER}, * FROM frame)) WHERE said IS NOT NULL ORDER BY {NUMBER} ASC"
        )
        [(total,)] = self._connection.execute("SELECT count(*) FROM frame").fetchall()
        sql = f"SELECT {LINE} FROM ({text}) WHERE CASE {bad} END IS NULL AND {LINE} IS NOT NULL"
        self._connection.execute(f"SET memory_limit = '{self._memory}B'")
        reader = batches(self._connection, sql, max(ROWS // max(len(columns), 1), _FEWEST), lines.parameters)
        done, half = 0, self._size // 2
        for batch in reader:
            done += batch.num_rows
            self._put(Block(string_bytes(batch.column(0)), half + half * done // max(total, 1)))
        self._put(Block(b"", self._size, rows=total))

    def _bad(self, columns: list[tuple[Column, str]], needed: list[Column], lines: Lines) -> str:
        """SQL for the cases in which a row cannot be read, and what to say of each."""
        place = {column.column: number for number, (column, _) in enumerate(columns)}

        def case(wrong: str, text: str, column: Column) -> str:
            return f"WHEN {wrong} THEN {{'text': {text}, 'place': {place[column.column]}}}"

        cases = [case(f"{quoted(c.column)} IS NULL", f"'this row has no :{c.role}'", c) for c in needed]
        if self._nul:
            for column, _ in columns:
                cases.append(
                    case(f"contains({quoted(column.column)}::VARCHAR, chr(0))", "'this row has a NUL byte'", column)
                )
        for column, type in columns:
            if not column.type or column.type == "VARCHAR" or (column.role and column.role not in IDENTIFIERS):
                continue
            value = quoted(column.column)
            several = column.list or type.endswith("]")
            given = lines.values_of(column, type) if several else f"[{value}]"
            stated = column.stated or ""
            wrong = f"list_filter({given}, lambda x: {values.wrong('x', terms.element_type(column, type), stated)})"
            called = _text(column.name or f":{column.role}")
            wanted = _IN_WORDS.get(column.type, column.type)
            word = f"'this row has a value of ' || {called} || ' that is no {wanted}: '"
            cases.append(case(f"len({wrong}) > 0", f"{word} || left({wrong}[1]::VARCHAR, 100)", column))
        return " ".join(cases)

    def _check(self, sql: str) -> None:
        """Tell the rows that ``sql`` finds: number, text and message of bad ones."""
        found = self._connection.execute(sql)
        rows = iter(lambda: found.fetchone(), None)
        if self._csv is not None:
            self._tell(self._csv.bad((number, field, message) for number, _, message, field in rows))
        else:
            # Of lines the last is the column; what is no text has rows.
            self._tell(
                BadLine(self._name, number, place if text else None, message, None, text)
                for number, text, message, place in rows
            )

    def _tell(self, bad: Iterator[BadLine]) -> None:
        """Hand on what is to be said of bad rows, or stop at the first."""
        while some := list(islice(bad, _BAD if self._skip else 1)):
            if not self._skip:
                raise replace(some[0], hint=some[0].hint or _mended(some[0].message)).error()
            self.has_begun = True
            self._put(Block(b"", 0, some))


_IN_WORDS = {
    "BIGINT": "integer",
    "DOUBLE": "number",
    "BOOLEAN": "true or false",
    "DATE": "date",
    "TIME": "time of day",
    "TIMETZ": "time of day",
    "TIMESTAMP": "date and time",
    "TIMESTAMPTZ": "date and time",
    "INTERVAL": "duration",
}
"""What the values of a type of SQL's are called."""


def _mended(message: str) -> str:
    """Return what mends a row of which this was said, or how it is left out.

    >>> _mended("this row has a value of a that is no integer: NA")
    "NULL 'NA' (null='NA') says how a missing value is written"
    """
    for said, hint in _MENDED:
        if (found := re.search(said, message)) is not None:
            return found.expand(hint)
    return "ON ERROR SKIP (on_error='skip') leaves such rows out, and lists them in the table load_errors"


_MENDED = (
    (
        r"that is no [a-z ]+: (NULL|null|None|NA|N/A|n/a|NaN|nan|nil|-|\?|\\N)$",
        r"NULL '\1' (null='\1') says how a missing value is written",
    ),
    (
        r"that is no date(?: and time)?: \d{1,2}[./-]\d{1,2}[./-]\d{2,4}",
        "dates are written 2020-01-31; others are read by SQL: LOAD FROM (SELECT strptime(day, '%d/%m/%Y') AS day, …)",
    ),
    (r"that is no number: \d+,\d+$", "a decimal point is written '.': LOAD FROM (SELECT …) can replace it"),
    (r"unterminated quote", "a quote within a text is doubled; QUOTE '' (quote='') reads quotes as they are written"),
    (
        r"Expected Number of Columns",
        "a text with the delimiter in it stands in quotes; DELIMITER ';' (delimiter=';') states another",
    ),
)
"""What is said of rows, and what mends them."""


# --- SQL -------------------------------------------------------------------------------------------------------


def _failure(error: Exception, name: str, folder: str) -> LoadError:
    """Return one of DuckDB's errors about a file as ours; files of our own in ``folder`` are called ``name``."""
    reason = re.sub(re.escape(folder) + r"[^'\"\s]*", lambda _: name, str(error).strip())
    line = re.search(r"(?:CSV Error on )?Line: (\d+)", reason)
    text = re.search(r"Original Line: ?(.*)", reason)
    said = re.sub(r"^[A-Z][\w ]*Error: ", "", reason).split("\n")
    message = next((part for part in said if part and not part.startswith(("CSV Error on", "Original Line"))), said[0])
    if "Possible fixes" in reason:  # of a row that may have several lines; what is wrong comes behind it
        message = reason.split("Possible fixes")[0].strip().split("\n")[-1]
    hint = "convert the file to UTF-8" if "unicode" in reason.lower() or "utf-8" in reason.lower() else None
    if delimited.MIXED_ENDS in reason:  # behind a quote that is none, for one
        message, hint = "lines of the file end in different ways", r"let all end by \n, or all by \r\n"
    shown = text[1] if text else None
    return LoadError(message, source=name, line=int(line[1]) if line else None, text=shown, hint=hint)
