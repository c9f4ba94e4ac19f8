"""The rows of DuckDB's relations as columns."""

from __future__ import annotations

import contextlib
import functools
import re
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from graphdb.common import arrow
from graphdb.common.arrow.imported import end_stream
from graphdb.common.errors import MemoryLimitError
from graphdb.common.stopping import limits, under

if TYPE_CHECKING:
    import duckdb


def fetched(relation: duckdb.DuckDBPyRelation, most: int | None = None) -> arrow.Table:
    """Run a relation and return its rows, which may take ``most`` bytes.

    Raises
    ------
    duckdb.Error
        It fails.
    MemoryLimitError
        The rows take more.
    """
    return _all(_reader(relation), most)


Parameters: TypeAlias = "Mapping[str, object] | Sequence[object] | None"
"""Values for ``$name``, or for ``?`` and ``$1`` by their places."""


def rows_of(
    raw: duckdb.DuckDBPyConnection, sql: str, parameters: Parameters = None, most: int | None = None
) -> arrow.Table:
    """Run a query and return its rows, which may take ``most`` bytes.

    Raises
    ------
    duckdb.Error
        It fails.
    MemoryLimitError
        The rows take more.
    """
    return _all(_streamed(raw, sql, parameters), most)


def _streamed(
    raw: duckdb.DuckDBPyConnection, sql: str, parameters: Parameters, size: int | None = None
) -> arrow.Reader:
    """Run a query and return what reads its rows; ``size`` is how many DuckDB's threads make ready at a time, about.

    A relation is bound once to say what its columns are, and again to be run: where DuckDB takes the text as it is,
    that saves small queries up to half of their time.
    """
    given: Any = None
    if parameters:
        given = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
    submit = getattr(raw, "_submit", None)
    if submit is None:
        return _reader(raw.sql(sql, params=given) if parameters else raw.sql(sql))
    sql.encode()  # raises UnicodeEncodeError, as a relation would
    _open[id(raw)] = result = submit(sql, given, "stream", *([] if size is None else [size]))
    _open[id(raw)] = capsule = result.arrow_capsule()
    return _reader_of(id(raw), capsule)


_open: dict[int, Any] = {}
"""What hands over the rows of the last statement that streamed some, by the id of its connection.

Whoever holds on to an interrupt's frames, as a prompt does with those of the last error, holds on to this, too; and as
long as it is open, the connection takes no other statement.  Each is stored in the same line in which it comes: a
signal is answered at calls, after which nothing has the value but the line itself.
"""


def is_open(raw: duckdb.DuckDBPyConnection) -> bool:
    """Whether a connection's last statement may not have handed over all: somebody has what does it."""
    held = _open.get(id(raw))
    return held is not None and not (isinstance(held, weakref.ref) and held() is None)


def abandon(raw: duckdb.DuckDBPyConnection) -> None:
    """End what a connection's last statement has not handed over, after an error.  Can be called again.

    Of a statement that was executed, too: Ctrl-C may come before its rows are fetched.
    """
    import duckdb

    with contextlib.suppress(duckdb.Error):  # it is closed
        raw.abort()
    held = _open.get(id(raw))
    if held is None:
        return
    if isinstance(held, weakref.ref):
        reader = held()
        if reader is not None:
            reader.close()
    elif hasattr(held, "arrow_capsule"):
        with contextlib.suppress(duckdb.Error):  # it is closed, or hands its rows over to a capsule
            held.close()
    else:
        end_stream(held)
    _open.pop(id(raw), None)


def _reader(relation: duckdb.DuckDBPyRelation) -> arrow.Reader:
    at = id(getattr(relation, "_con", None))
    _open[at] = capsule = relation.__arrow_c_stream__()
    return _reader_of(at, capsule)


def _reader_of(at: int, capsule: object) -> arrow.Reader:
    reader = arrow.reader_of_capsule(capsule, _failure)
    _open[at] = weakref.ref(reader)  # who drops it ends it
    return reader


def _all(reader: arrow.Reader, most: int | None) -> arrow.Table:
    """Return the rows of a stream: DuckDB's limit is for what it stores itself, not for what it hands over."""
    found, size = [], 0
    with reader:
        for batch in reader:
            found.append(batch)
            size += batch.nbytes
            if most is not None and size > most:
                raise MemoryLimitError(
                    f"the rows of the result take more memory than the limit: {size >> 20:,} MiB so far",
                    hint="raise memory_limit, ask for less with LIMIT, or keep the rows in the file: CREATE TABLE … AS",
                )
    return arrow.Table.of_batches(found, reader.schema)


def small_rows(
    raw: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object], most: int
) -> Sequence[arrow.RecordBatch] | None:
    """Run a query and return its rows as batches: None where they take more than ``most`` bytes, or DuckDB would read
    them as of other types.

    Raises
    ------
    duckdb.Error
        It fails.
    """
    submit = getattr(raw, "_submit", None)
    if submit is None:
        return None
    sql.encode()
    _open[id(raw)] = result = submit(sql, dict(parameters) or None, "stream")
    if not all(_comes_back(str(column[1])) for column in result.description):
        result.close()
        return None
    found, size = [], 0
    _open[id(raw)] = capsule = result.arrow_capsule()
    with _reader_of(id(raw), capsule) as reader:
        for batch in reader:
            found.append(batch)
            size += batch.nbytes
            if size > most:
                return None
        return found or [arrow.record_batch([arrow.nulls(0, type) for type in reader.schema.types], reader.schema)]


_COME_BACK = frozenset(
    "TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT FLOAT DOUBLE DECIMAL BOOLEAN VARCHAR BLOB "
    "DATE TIMESTAMP STRUCT".split()
)
"""Types of DuckDB that are the same after a way through Arrow: a UUID would be a text, a HUGEINT a decimal."""


@functools.cache
def _comes_back(type: str) -> bool:
    """Whether DuckDB reads the values of a type that it hands over as of the same type."""
    words = re.sub(r'"(?:[^"]|"")*"', "", type.replace("TIMESTAMP WITH TIME ZONE", "TIMESTAMP"))
    return {word for word in re.findall(r"\w+", words) if word.isupper()} <= _COME_BACK


def table_of_frame(frame: Any) -> arrow.Table:
    """Return the rows of a data frame, or of anything else that has Arrow's interface."""
    try:
        return arrow.table_of(frame)
    except ImportError:  # pandas hands its frames over by PyArrow, which is not there; DuckDB reads them itself
        import duckdb

        with duckdb.connect() as connection:
            return fetched(connection.from_df(frame))


_UNIT = 131_072
"""Rows that DuckDB's threads make ready at a time where nothing is said."""


def batches(raw: duckdb.DuckDBPyConnection, sql: str, rows: int, parameters: Parameters = None) -> arrow.Reader:
    """Run a query and return its rows as they come, at most so many at a time.

    Each thread of DuckDB's holds as many of them, beyond its limit of memory, up to :data:`_UNIT`.
    Nothing else can be asked of the connection until it is read to its end, or closed.
    """
    reader = _streamed(raw, sql, parameters, min(rows, _UNIT))
    return arrow.Reader(reader.schema, _pieces(reader, rows), reader.close)


def _pieces(reader: arrow.Reader, rows: int) -> Iterator[Sequence[arrow.Array]]:
    for batch in reader:
        for start in range(0, len(batch), rows):
            yield [column.slice(start, rows) for column in batch.columns]


def register(raw: duckdb.DuckDBPyConnection, name: str, table: object) -> Any:
    """Let SQL read a table under a name; return what has it as ``obj``, where another of its schema may take its place.

    DuckDB plans by how many rows there are, and asks of tables for the columns that it needs; it takes all others for
    one row of all columns.  What is made of a table only then, by whichever thread of DuckDB's, stops with the
    statement that registers it, or that shows it later (``limits``).
    """
    adopt = getattr(raw, "_register_arrow_source", None)
    if adopt is None or not isinstance(table, arrow.Table):
        raw.register(name, table)
        return None
    source = _source_class()(table)
    adopt(name, source)
    return source


@functools.cache
def _source_class() -> Any:
    from duckdb._sources.arrow import ArrowStreamSource

    class TableSource(ArrowStreamSource):
        """A table of ours as DuckDB scans those that it knows."""

        schema_is_stable = True

        def __init__(self, table: arrow.Table) -> None:
            super().__init__(_Described(table.schema))  # what it is made with stays
            self.obj, self.limits = table, limits()

        def rows(self) -> int | None:
            return len(self.obj)

        def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
            table = self.obj if columns is None else self.obj.select(list(columns))
            with under(self.limits):
                return table.__arrow_c_stream__(), columns is not None

    return TableSource


class _Described:
    """The schema of tables, without one."""

    def __init__(self, schema: arrow.Schema) -> None:
        self._schema = schema

    def __arrow_c_schema__(self) -> object:
        return arrow.Table.of_batches([], self._schema).__arrow_c_schema__()


_KIND = re.compile(r"([\w ]+) Error: ")


@functools.cache
def _classes() -> Mapping[str, type[Exception]]:
    """DuckDB's errors by what their texts begin with, without blanks and in small letters."""
    import duckdb

    names = [name for name in dir(duckdb) if name.endswith("Exception")]
    found = {name.removesuffix("Exception").lower(): getattr(duckdb, name) for name in names}
    return {**found, "transactioncontext": duckdb.TransactionException}


def _failure(text: str) -> Exception:
    """Return DuckDB's error by its text, with which a stream breaks off, as a statement would raise it."""
    import duckdb

    said = _KIND.match(text)
    kind = "" if said is None else said[1].replace(" ", "").lower()
    return _classes().get(kind, duckdb.Error)(text)
