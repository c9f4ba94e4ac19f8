"""Node and edge tables to triples: CSV, Parquet, data frames, edge lists, labelled graphs.

The headers say what a column is (:mod:`.headers`).  An edge with properties is reified, as
:mod:`graphdb.storage.append` tells, and so are parallel edges.

DuckDB, in a database of its own, reads the table and writes it as N-Triples, which go the way of all others.
"""

from __future__ import annotations

import glob
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from graphdb.connection import quoted
from graphdb.errors import LoadError
from graphdb.storage.arrow import string_bytes
from graphdb.storage.loaders import delimited
from graphdb.storage.loaders.delimited import literal as _text
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import CSV, LABELLED, PARQUET
from graphdb.storage.loaders.headers import BLANK, IRI, Column, Mapping, name_iri
from graphdb.storage.loaders.streams import BadLine, Block, Put, chunks
from graphdb.storage.terms import DEFAULT_NAMESPACE, RDF, RDF_REIFIES, RDF_TYPE, UNSAFE, VERTEX, XSD, escaped

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

ROWS = 20_000
"""Rows whose triples become one block."""

_BAD = 4096
"""Bad rows that are told at most."""

# Columns of ours beside those of the table.
_ID, _BODY, _LINE, _NUMBER = "_graphdb_id", "_graphdb_body", "_graphdb_line", "_graphdb_number"
_REIFIER, _COPIES = "_graphdb_reifier", "_graphdb_copies"
_SINGLE = {"ID", "START_ID", "END_ID", "TYPE", "REIFIER", "ASSERTED", "GRAPH", "VALUE", "DATATYPE", "LANGUAGE"}
"""What only one column can be."""

_END = "' .\n'"
"""SQL for the end of a line in the default graph."""

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
             "UHUGEINT"}  # fmt: skip


def read_table(
    source: DataFile | tuple[pa.Table, list[Column]],
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
        A file, or an Arrow table and what its columns are.
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
    with duckdb.connect(config=config) as connection:
        connection.execute("SET enable_progress_bar = false")
        try:
            if isinstance(source, DataFile):
                with _on_disk(source, folder) as path:
                    _Table(connection, source, name, number, mapping, skip, put).read(path)
            else:
                table, columns = source
                connection.register("frame", table)
                _Table(connection, None, name, number, mapping, skip, put).write(columns)
        except duckdb.Error as error:
            raise _failure(error, name, folder) from None


def _on_disk(file: DataFile, folder: str) -> Any:
    """A path under which DuckDB finds the file's text: packed files and pipes are copied, and checked on the way."""
    from contextlib import contextmanager
    from tempfile import NamedTemporaryFile

    @contextmanager
    def copied() -> Any:
        if file.compression is None and file.stream is None:
            yield str(file.path)
            return
        with NamedTemporaryFile(dir=folder, suffix=".part") as copy:
            for chunk, _ in chunks(file):
                copy.write(chunk)
            copy.flush()
            yield copy.name

    return copied()


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
    ) -> None:
        self._connection = connection
        self._file = file
        self._name = name
        self._number = number
        self._mapping = mapping
        self._skip = skip
        self._put = put
        self._parameters: dict[str, str] = {}
        self._end = _END
        self._nul = False
        self._size = file.size if file else 0

    def read(self, path: str) -> None:
        """Read the table of a file that is at the given path."""
        assert self._file is not None
        if self._file.format is PARQUET:
            self._connection.execute(f"CREATE VIEW frame AS FROM read_parquet({_text(glob.escape(path))})")
            self._write(self._columns(None))
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

    def _columns(self, columns: list[Column] | None) -> list[tuple[Column, str]]:
        """The columns of ``frame`` with DuckDB's types; what they are is said by their names, if it is not known."""
        rows = self._connection.execute("DESCRIBE frame").fetchall()
        columns = columns or self._mapping.read([name for name, *_ in rows])
        return [(column, type) for column, (_, type, *_) in zip(columns, rows, strict=True)]

    def _read_csv(self, path: str) -> list[tuple[Column, str]]:
        """Make a CSV file the view ``frame``; bad rows stop it, or are told."""
        known = "\t" if self._file and ".tsv" in self._file.path.suffixes else None
        delimiter, names, empty = delimited.read_header(path, self._name, known)
        try:
            columns = self._mapping.read(names)
        except LoadError as error:
            raise delimited.in_header(error, path, self._name) from None
        stated = {c.column: "VARCHAR" if c.list or not c.type else c.type for c in columns}
        sql = delimited.read_csv(glob.escape(path), delimiter, stated, empty, self._skip)
        self._connection.execute(f"CREATE TABLE kept AS FROM {sql}")
        if self._skip:
            rows = self._connection.execute(
                f"SELECT line, error_message, csv_line FROM reject_errors ORDER BY line ASC LIMIT {_BAD}"
            ).fetchall()
            bad = [BadLine(self._name, int(line), None, said.split("\n")[0], None, text) for line, said, text in rows]
            self._put(Block(b"", 0, bad))
        shown = delimited.types(self._connection, "kept", [c for c in columns if not c.role and not c.type])
        casts = ", ".join(f"{quoted(name)}::{type} AS {quoted(name)}" for name, type in shown.items())
        replaced = f" REPLACE ({casts})" if casts else ""
        self._connection.execute(f"CREATE VIEW frame AS SELECT *{replaced} FROM kept")
        return [(column, shown.get(column.column, stated[column.column])) for column in columns]

    def _read_lines(self, path: str, labelled: bool) -> None:
        """Read an edge list, or a labelled graph: lines ``t``, ``v id label``, ``e from to [label]``."""
        self._connection.execute(
            "CREATE VIEW split AS SELECT number, string_split_regex(text, '[ \t,]+') AS words FROM ("
            "SELECT row_number() OVER () AS number, trim(line, ' \t') AS text FROM "
            f"read_csv({_text(path)}, columns = {{'line': 'VARCHAR'}}, header = false, auto_detect = false, "
            f"delim = '\x01', quote = '', escape = ''{delimited.sizes()})"
            ") WHERE text <> '' AND NOT starts_with(text, '#') AND NOT starts_with(text, '%')"
        )
        if labelled:
            wrong = "NOT (words[1] = 't' OR words[1] IN ('v', 'e') AND len(words) >= 3)"
            said = _text("expected 't …', 'v vertex label' or 'e from to [label]'")
        else:
            wrong = "len(words) NOT IN (2, 3) OR len(words) = 3 AND TRY_CAST(words[3] AS DOUBLE) IS NULL"
            said = _text("expected two vertices, and at most a weight")
        if self._nul:
            nul = "contains(array_to_string(words, ' '), chr(0))"
            wrong, said = f"{nul} OR {wrong}", f"CASE WHEN {nul} THEN 'this line has a NUL byte' ELSE {said} END"
        self._check(f"SELECT number, array_to_string(words, ' '), {said} FROM split WHERE {wrong}")
        self._connection.execute(f"CREATE VIEW line AS FROM split WHERE NOT ({wrong})")
        edge = _text(self._mapping.type or "edge")
        if labelled:
            graphs = self._connection.execute("SELECT count(*) FROM line WHERE words[1] = 't'").fetchall()[0][0]
            group = ""
            if graphs > 1:
                self._connection.execute(
                    "CREATE TABLE numbered AS SELECT *, count(*) FILTER (words[1] = 't') OVER (ORDER BY number ASC) - 1"
                    " AS graph FROM line"
                )
                self._connection.execute("CREATE OR REPLACE VIEW line AS FROM numbered")
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
        by_role: dict[str, list[tuple[Column, str]]] = {}
        for column, type in columns:
            by_role.setdefault(column.role, []).append((column, type))
        for role, found in by_role.items():
            if len(found) > 1 and role in _SINGLE:
                names = " and ".join(repr(column.column) for column, _ in found)
                raise LoadError(f"two columns are :{role}: {names}", source=self._name, hint="one can be; see columns=")
        self._end = _ended(by_role)
        if "START_ID" in by_role and "END_ID" in by_role:
            text, needed = self._edges(by_role, distinct)
        elif "START_ID" in by_role and "VALUE" in by_role and "TYPE" in by_role:
            text, needed = self._literals(by_role)
        elif "ID" in by_role:
            text, needed = self._nodes(by_role)
        else:
            self._mapping.check()
            names = ", ".join(column.column for column, _ in columns)
            raise LoadError(
                f"no column says which vertex or edge a row is: {names}",
                source=self._name,
                hint="name columns :ID, or :START_ID and :END_ID, or state columns={'…': ':ID'}",
            )
        bad = self._bad(columns, needed)
        header = 0 if self._file is None or self._file.format is not CSV else 1
        self._check(
            f"SELECT {_NUMBER} + {header}, NULL, CASE {bad} END AS said"
            f" FROM (SELECT row_number() OVER () AS {_NUMBER}, * FROM frame) WHERE said IS NOT NULL"
        )
        sql = f"SELECT {_LINE} FROM ({text}) WHERE CASE {bad} END IS NULL AND {_LINE} IS NOT NULL"
        reader = self._connection.sql(sql, params=self._parameters).to_arrow_reader(ROWS)
        for batch in reader:
            self._put(Block(string_bytes(batch.column(0)), 0))
        self._put(Block(b"", self._size))
        self._parameters = {}

    def _bad(self, columns: list[tuple[Column, str]], needed: list[Column]) -> str:
        """SQL for the cases in which a row cannot be read, and what to say of each."""
        missing = " OR ".join(f"{quoted(column.column)} IS NULL" for column in needed)
        cases = [f"WHEN {missing} THEN 'this row has no {' or no '.join(f':{column.role}' for column in needed)}'"]
        if self._nul:
            texts = " OR ".join(f"contains({quoted(column.column)}::VARCHAR, chr(0))" for column, _ in columns)
            cases.append(f"WHEN {texts} THEN 'this row has a NUL byte'")
        for column, type in columns:
            stated = column.type
            if stated is None or stated in (type, "VARCHAR") or column.role:
                continue
            value = quoted(column.column)
            values = f"[{value}]" if not column.list else _values(value, type)
            word = f"'this row has a value of ' || {_text(column.name)} || ' that is no {stated}'"
            wrong = f"list_filter({values}, lambda x: x IS NOT NULL AND TRY_CAST(x AS {stated}) IS NULL)"
            cases.append(f"WHEN len({wrong}) > 0 THEN {word} || ': ' || left({wrong}[1]::VARCHAR, 100)")
        return " ".join(cases)

    def _nodes(self, by_role: dict[str, list[tuple[Column, str]]]) -> tuple[str, list[Column]]:
        """SQL for the lines of vertices: their labels and properties; one without either is a vertex all the same."""
        ((identifier, _), *_) = by_role["ID"]
        parts = []
        labels = [label for label in (self._mapping.label,) if label and "LABEL" not in by_role]
        typed = self._parameter(RDF_TYPE)
        for label in labels:
            parts.append(f"{_ID} || {typed} || '<' || {self._parameter(name_iri(label), '{}')} || '>' || {self._end}")
        for column, type in by_role.get("LABEL", []):
            some = f"list_filter({quoted(column.column)}, lambda x: trim(x::VARCHAR) <> '')"
            named = some if type.endswith("]") else quoted(column.column)
            parts.append(_each(named, type, f"{_ID} || {typed} || {_name('trim(x)')} || {self._end}"))
        properties = [*by_role.get("", [])]
        if identifier.name:
            properties.append((Column(identifier.column, "", identifier.name), "VARCHAR"))
        parts += [self._property(_ID, column, type, self._end) for column, type in properties]
        body = " || ".join(f"coalesce({part}, '')" for part in parts) or "''"
        lone = f"{_ID} || {typed} || '<{VERTEX}>' || {self._end}"
        line = f"CASE WHEN {_BODY} = '' THEN {lone} ELSE {_BODY} END"
        inner = f"SELECT *, {_vertex(identifier)} AS {_ID} FROM frame"
        return f"SELECT *, {line} AS {_LINE} FROM (SELECT *, {body} AS {_BODY} FROM ({inner}))", [identifier]

    def _edges(self, by_role: dict[str, list[tuple[Column, str]]], distinct: bool) -> tuple[str, list[Column]]:
        """SQL for the lines of edges, and of those that are reified."""
        ((start, _), *_), ((end, _), *_) = by_role["START_ID"], by_role["END_ID"]
        if "TYPE" in by_role:
            ((kind, _), *_) = by_role["TYPE"]
            label, needed = _name(quoted(kind.column)), [start, end, kind]
        elif self._mapping.type:
            label, needed = f"'<' || {self._parameter(name_iri(self._mapping.type), '{}')} || '>'", [start, end]
        else:
            raise LoadError(
                "no column says which edge label a row has",
                source=self._name,
                hint="name a column :TYPE, or state type='…'",
            )
        edge = f"{_vertex(start)} || ' ' || {label} || ' ' || {_vertex(end)}"
        rows = f"SELECT *, row_number() OVER () AS {_NUMBER}, {edge} AS {_ID} FROM frame"
        properties = by_role.get("", [])
        named = by_role.get("REIFIER", [])
        asserted = _asserted(by_role, f"{_ID} || {self._end}")
        if distinct and not properties and not named:
            return f"SELECT *, {_ID} || {self._end} AS {_LINE} FROM ({rows})", needed
        reifier = f"'_:t{self._number}e' || {_NUMBER}"
        wanted = []
        if named:
            ((name, _), *_) = named
            reifier = f"coalesce({_vertex(name)}, {reifier})"
            wanted.append(f"{quoted(name.column)} IS NOT NULL")
        if not distinct:
            rows = f"SELECT *, count(*) OVER (PARTITION BY {_ID}, {self._end}) AS {_COPIES} FROM ({rows})"
            wanted.append(f"{_COPIES} > 1")
        rows = f"SELECT *, {reifier} AS {_REIFIER} FROM ({rows})"
        told = [f"coalesce({self._property(_REIFIER, column, type)}, '')" for column, type in properties]
        rows = f"SELECT *, {' || '.join(told) or repr('')} AS {_BODY} FROM ({rows})"
        reified = f"{_REIFIER} || ' <{RDF_REIFIES}> <<( ' || {_ID} || ' )>> .\n' || {_BODY}"
        condition = " OR ".join([*wanted, f"{_BODY} <> ''"])
        line = f"{asserted} || CASE WHEN {condition} THEN {reified} ELSE '' END"
        return f"SELECT *, {line} AS {_LINE} FROM ({rows})", needed

    def _literals(self, by_role: dict[str, list[tuple[Column, str]]]) -> tuple[str, list[Column]]:
        """SQL for the lines of literals that have a row each."""
        columns = {role: found[0][0] for role, found in by_role.items()}
        start, kind, value = (columns[role] for role in ("START_ID", "TYPE", "VALUE"))
        tags = "''"
        if "DATATYPE" in columns:
            tags = f"coalesce('^^<' || {quoted(columns['DATATYPE'].column)} || '>', {tags})"
        if "LANGUAGE" in columns:
            tags = f"coalesce('@' || {quoted(columns['LANGUAGE'].column)}, {tags})"
        literal = f"'\"' || {escaped(quoted(value.column) + '::VARCHAR')} || '\"' || {tags}"
        rows = (
            f"SELECT *, {_vertex(start)} || ' ' || {_name(quoted(kind.column))} || ' ' || {literal} AS {_ID} FROM frame"
        )
        line = _asserted(by_role, f"{_ID} || {self._end}")
        if "REIFIER" in columns:
            reifier = _vertex(columns["REIFIER"])
            line += f" || coalesce({reifier} || ' <{RDF_REIFIES}> <<( ' || {_ID} || ' )>> .\n', '')"
        return f"SELECT *, {line} AS {_LINE} FROM ({rows})", [start, kind, value]

    def _property(self, subject: str, column: Column, type: str, end: str = _END) -> str:
        """SQL for the lines of a property, NULL where it has none."""
        key = self._parameter(name_iri(column.name))
        scalar = column.type or type.removesuffix("[]")
        several = column.list or type.endswith("]")
        value = "x" if several else quoted(column.column)
        if column.type not in (None, type.removesuffix("[]")):
            value = f"TRY_CAST({value} AS {scalar})"  # rows where it fails are told and left out
        line = f"{subject} || {key} || {_literal(value, scalar)} || {end}"
        return _each(quoted(column.column), type, line) if several else line

    def _parameter(self, iri: str, shape: str = " <{}> ") -> str:
        """Return SQL for an IRI of ours: a parameter."""
        name = f"iri{len(self._parameters)}"
        self._parameters[name] = shape.format(iri)
        return f"${name}::VARCHAR"

    def _check(self, sql: str) -> None:
        """Tell the rows that ``sql`` finds: number, text and message of bad ones."""
        rows = self._connection.execute(f"{sql} LIMIT {_BAD}").fetchall()
        bad = [BadLine(self._name, int(number), None, message, None, text) for number, text, message in rows]
        if bad and not self._skip:
            raise bad[0].error()
        if bad:
            self._put(Block(b"", 0, bad))


# --- SQL -------------------------------------------------------------------------------------------------------


def bare(iri: str) -> str:
    """SQL for what :func:`bare_name` makes of an IRI."""
    rest = f"{iri}[{len(DEFAULT_NAMESPACE) + 1}:]"
    other = f"regexp_full_match({rest}, {_text(IRI)}) OR regexp_matches({rest}, {_text(UNSAFE)})"
    return f"CASE WHEN starts_with({iri}, '{DEFAULT_NAMESPACE}') AND NOT ({other}) THEN {rest} ELSE {iri} END"


def _encoded(value: str) -> str:
    """SQL for a text as part of an IRI."""
    return f"CASE WHEN regexp_matches({value}, {_text(UNSAFE)}) THEN url_encode({value}) ELSE {value} END"


def _asserted(by_role: dict[str, list[tuple[Column, str]]], line: str) -> str:
    """SQL for the line of a triple, empty where it is not asserted."""
    if "ASSERTED" not in by_role:
        return line
    ((column, _), *_) = by_role["ASSERTED"]
    return f"CASE WHEN coalesce({quoted(column.column)}::BOOLEAN, true) THEN {line} ELSE '' END"


def _ended(by_role: dict[str, list[tuple[Column, str]]]) -> str:
    """SQL for the end of the lines of triples: the graph that they are in, if they are in one, and a full stop."""
    if "GRAPH" not in by_role:
        return _END
    ((column, _), *_) = by_role["GRAPH"]
    name = f"nullif({quoted(column.column)}::VARCHAR, '')"
    return f"coalesce(' ' || {_name(name)}, '') || {_END}"


def _vertex(column: Column) -> str:
    """SQL for the vertex that a column identifies: an IRI, a blank node, or a name in our namespace."""
    value = f"{quoted(column.column)}::VARCHAR"
    group = f"{DEFAULT_NAMESPACE}{quote(column.group, safe='')}/" if column.group else DEFAULT_NAMESPACE
    return (
        f"CASE WHEN regexp_full_match({value}, {_text(BLANK)}) THEN {value} "
        f"WHEN regexp_full_match({value}, {_text(IRI)}) THEN '<' || {value} || '>' "
        f"ELSE {_text('<' + group)} || {_encoded(value)} || '>' END"
    )


def _name(value: str) -> str:
    """SQL for the IRI of a label: see :func:`name_iri`; a label can be a blank node too."""
    return (
        f"CASE WHEN regexp_full_match({value}, {_text(BLANK)}) THEN {value} "
        f"WHEN regexp_full_match({value}, {_text(IRI)}) THEN '<' || {value} || '>' "
        f"ELSE '<{DEFAULT_NAMESPACE}' || {_encoded(value)} || '>' END"
    )


def _values(column: str, type: str) -> str:
    """SQL for the values of a column: those of a list, or the parts of a text between ``;`` that are not blank."""
    if type.endswith("]"):
        return f"list_filter({column}, lambda x: x IS NOT NULL)"
    return f"list_filter(string_split({column}::VARCHAR, ';'), lambda x: trim(x) <> '')"


def _each(column: str, type: str, line: str) -> str:
    """SQL for the lines of all values ``x`` of a column."""
    return f"array_to_string(list_transform({_values(column, type)}, lambda x: {line}), '')"


def _literal(value: str, type: str) -> str:
    """SQL for a value of one of DuckDB's types as a literal of N-Triples."""
    text = f"{value}::VARCHAR"
    base = type.split("(")[0]
    if base in _INTEGERS:
        return _as(text, "integer")
    match base:
        case "DECIMAL":
            return _as(text, "decimal")
        case "DOUBLE" | "FLOAT":
            named = f"CASE {text} WHEN 'inf' THEN 'INF' WHEN '-inf' THEN '-INF' WHEN 'nan' THEN 'NaN' ELSE {text} END"
            return _as(named, "double")
        case "BOOLEAN":
            return _as(text, "boolean")
        case "DATE":
            return _as(text, "date")
        case "TIME":
            return _as(text, "time")
        case "TIMESTAMP" | "TIMESTAMP_S" | "TIMESTAMP_MS" | "TIMESTAMP_NS":
            return _as(f"replace({value}::TIMESTAMP::VARCHAR, ' ', 'T')", "dateTime")
        case "TIMESTAMP WITH TIME ZONE" | "TIMESTAMPTZ":
            return _as(f"replace(({value} AT TIME ZONE 'UTC')::VARCHAR, ' ', 'T') || 'Z'", "dateTime")
        case "INTERVAL":
            return _duration(value)
        case "BLOB":
            return _as(f"base64({value})", "base64Binary")
    if base.startswith(("STRUCT", "MAP", "JSON", "UNION")):
        return f"'\"' || {escaped(f'to_json({value})::VARCHAR')} || '\"^^<{RDF}JSON>'"
    return f"'\"' || {escaped(text)} || '\"'"


def _duration(value: str) -> str:
    """SQL for an interval as a literal; one whose parts go both ways is no duration of XML Schema's, but a text."""
    months = f"(12 * datepart('year', {value}) + datepart('month', {value}))"
    days = f"datepart('day', {value})"
    micros = f"(60000000 * (60 * datepart('hour', {value}) + datepart('minute', {value})) + datepart('us', {value}))"
    signs = f"[sign({months}), sign({days}), sign({micros})]"
    seconds = f"(abs({micros})::DECIMAL(38, 0) / 1000000)::DECIMAL(38, 6)::VARCHAR"
    text = f"if(-1 IN {signs}, '-', '') || 'P' || abs({months}) || 'M' || abs({days}) || 'DT' || {seconds} || 'S'"
    plain = f"'\"' || {value}::VARCHAR || '\"'"
    return f"CASE WHEN -1 IN {signs} AND 1 IN {signs} THEN {plain} ELSE {_as(text, 'duration')} END"


def _as(text: str, datatype: str) -> str:
    return f"'\"' || {text} || '\"^^<{XSD}{datatype}>'"


def _failure(error: Exception, name: str, folder: str) -> LoadError:
    """Return one of DuckDB's errors about a file as ours; files of our own in ``folder`` are called ``name``."""
    told = re.sub(re.escape(folder) + r"[^'\"\s]*", lambda _: name, str(error).strip())
    line = re.search(r"(?:CSV Error on )?Line: (\d+)", told)
    text = re.search(r"Original Line: ?(.*)", told)
    said = re.sub(r"^[A-Z][\w ]*Error: ", "", told).split("\n")
    message = next((part for part in said if part and not part.startswith(("CSV Error on", "Original Line"))), said[0])
    if "Possible fixes" in told:  # of a row that may have several lines; what is wrong comes behind it
        message = told.split("Possible fixes")[0].strip().split("\n")[-1]
    hint = "convert the file to UTF-8" if "unicode" in told.lower() or "utf-8" in told.lower() else None
    shown = text[1] if text else None
    return LoadError(message, source=name, line=int(line[1]) if line else None, text=shown, hint=hint)
