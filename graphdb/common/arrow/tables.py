"""Tables: columns with names, whole or as streams of batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from numpy.typing import NDArray

from graphdb.common.arrow import types
from graphdb.common.arrow.arrays import Array, ChunkedArray, nulls
from graphdb.common.arrow.build import array
from graphdb.common.arrow.delayed import DelayedArray
from graphdb.common.arrow.exported import exported_schema, exported_stream
from graphdb.common.arrow.imported import Stream
from graphdb.common.arrow.python_values import pylist
from graphdb.common.arrow.types import ArrowError, DataType, Field, Schema


class RecordBatch:
    """Some rows of a table: a column of each field of its schema."""

    __slots__ = ("columns", "num_rows", "schema")

    def __init__(self, columns: Sequence[Array], schema: Schema) -> None:
        self.columns, self.schema = list(columns), schema
        self.num_rows = len(columns[0]) if columns else 0

    def column(self, at: int | str) -> Array:
        """Return a column by its number or name."""
        return self.columns[self.schema.index(at)]

    __getitem__ = column

    def __len__(self) -> int:
        return self.num_rows

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum(column.nbytes for column in self.columns)


class Reader:
    """A stream of batches, which is read once; a context manager, which ends it early.

    Parameters
    ----------
    schema
        The columns of the batches.
    batches
        The columns of one batch after the other.
    close
        Called when nobody reads on.
    """

    def __init__(
        self, schema: Schema, batches: Iterable[Sequence[Array]], close: Callable[[], None] = lambda: None
    ) -> None:
        self.schema = schema
        self._batches = iter(batches)
        self.close = close

    def __iter__(self) -> Iterator[RecordBatch]:
        for columns in self._batches:
            yield RecordBatch(columns, self.schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def read_all(self) -> Table:
        """Return all that is still to come."""
        return Table.of_batches(list(self), self.schema)

    def tables(self, size: int = 32 << 20) -> Iterator[Table]:
        """Yield the rows that are still to come as tables of so many bytes, or one batch; always one table at least."""
        batches: list[RecordBatch] = []
        waiting, first = 0, True
        for batch in self:
            batches.append(batch)
            waiting += batch.nbytes
            if waiting >= size:
                yield Table.of_batches(batches, self.schema)
                batches, waiting, first = [], 0, False
        if batches or first:
            yield Table.of_batches(batches, self.schema)


class Table:
    """Columns of the same length."""

    __slots__ = ("columns", "num_rows", "schema")

    def __init__(self, columns: Sequence[ChunkedArray], names: Iterable[str], num_rows: int | None = None) -> None:
        self.columns = list(columns)
        self.schema = Schema(tuple(map(Field, names, (column.type for column in columns))))
        self.num_rows = num_rows if num_rows is not None else len(columns[0]) if columns else 0

    @classmethod
    def of_batches(cls, batches: Sequence[RecordBatch], schema: Schema) -> Table:
        """Return the rows of batches."""
        columns = [
            ChunkedArray([batch.columns[i] for batch in batches], field.type) for i, field in enumerate(schema.fields)
        ]
        return cls(columns, schema.names)

    def __len__(self) -> int:
        return self.num_rows

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.type}" for field in self.schema)
        return f"<Table of {self.num_rows:,} rows: {columns}>"

    @property
    def num_columns(self) -> int:
        """How many columns there are."""
        return len(self.columns)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""
        return self.schema.names

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum(column.nbytes for column in self.columns)

    def column(self, at: int | str) -> ChunkedArray:
        """Return a column by its number or name."""
        return self.columns[self.schema.index(at)]

    __getitem__ = column

    def select(self, some: Sequence[int | str]) -> Table:
        """Return a table of some columns."""
        at = list(map(self.schema.index, some))
        names = self.schema.names
        return Table([self.columns[i] for i in at], [names[i] for i in at], self.num_rows)

    def slice(self, start: int = 0, length: int | None = None) -> Table:
        """Return ``length`` rows from ``start`` on, or all from there on."""
        end = self.num_rows if length is None else min(start + length, self.num_rows)
        columns = [column.slice(start, length) for column in self.columns]
        return Table(columns, self.schema.names, max(end - start, 0))

    def part(self, start: int, length: int) -> Table:
        """Return the same as :meth:`slice`; of columns that are made when they are read, only these rows are."""
        columns = [
            column.part(start, length) if isinstance(column, DelayedArray) else column.slice(start, length)
            for column in self.columns
        ]
        return Table(columns, self.schema.names, max(min(length, self.num_rows - start), 0))

    def take(self, at: NDArray[Any] | Array) -> Table:
        """Return the rows at some places."""
        return Table([column.take(at) for column in self.columns], self.schema.names, len(at))

    def rename_columns(self, names: Sequence[str]) -> Table:
        """Return it under other names."""
        return Table(self.columns, names, self.num_rows)

    def with_columns(self, changed: Mapping[int, Any]) -> Table:
        """Return a table with other columns in some places, under the same names."""
        columns = list(self.columns)
        for at, values in changed.items():
            columns[at] = _chunked(values)
        return Table(columns, self.schema.names, self.num_rows)

    def append_column(self, name: str, values: Any) -> Table:
        """Return a table with one more column."""
        return Table([*self.columns, _chunked(values)], [*self.schema.names, name])

    def remove_column(self, at: int) -> Table:
        """Return a table without a column."""
        names = self.schema.names
        return Table([*self.columns[:at], *self.columns[at + 1 :]], [*names[:at], *names[at + 1 :]], self.num_rows)

    def to_pydict(self) -> dict[str, list[Any]]:
        """Return the columns as lists of Python values."""
        return {name: pylist(column) for name, column in zip(self.schema.names, self.columns, strict=True)}

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of Python values."""
        names = self.schema.names
        return [dict(zip(names, row, strict=True)) for row in zip(*map(pylist, self.columns), strict=True)]

    def batches(self) -> Iterator[list[Array]]:
        """Yield the rows as batches, whose columns are in one piece each."""
        chunked = [column.chunks for column in self.columns]
        if len({tuple(map(len, chunks)) for chunks in chunked}) <= 1:
            yield from map(list, zip(*chunked, strict=True))
            return
        yield [column.combine_chunks() for column in self.columns]

    def __arrow_c_schema__(self) -> object:
        return exported_schema(DataType("+s", self.schema.fields))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return exported_stream(self.schema, list(self.batches()))


def _chunked(values: Any) -> ChunkedArray:
    """Return values as a column: those of Python, NumPy, or somebody else's Arrow, as they are."""
    if isinstance(values, ChunkedArray):
        return values
    if isinstance(values, Array):
        return ChunkedArray([values])
    return ChunkedArray([array(values)])


def table(columns: Mapping[str, Any] | Sequence[Any], names: Sequence[str] | None = None) -> Table:
    """Return columns as a table: arrays, NumPy's too, or lists of Python values."""
    if isinstance(columns, Mapping):
        names, columns = list(columns), list(columns.values())
    assert names is not None
    return Table([_chunked(column) for column in columns], names)


def concat_tables(tables: Sequence[Table]) -> Table:
    """Return the rows of several tables, by the names of their columns; what one of them lacks is null."""
    if len(tables) == 1:
        return tables[0]
    names = list(dict.fromkeys(name for one in tables for name in one.column_names))
    columns: list[ChunkedArray] = []
    for name in names:
        found = [one.column(name) if name in one.schema.places else None for one in tables]
        delayed = [column for column in found if isinstance(column, DelayedArray)]
        if len(delayed) == len(found):
            columns.append(DelayedArray.together(delayed))
            continue
        kinds = [column.type for column in found if column is not None and not types.is_null(column.type)]
        type = _common(kinds) if kinds else types.NULL
        pieces: list[Array] = []
        for one, column in zip(tables, found, strict=True):
            pieces += [nulls(len(one), type)] if column is None else [chunk.cast(type) for chunk in column.chunks]
        columns.append(ChunkedArray(pieces, type))
    return Table(columns, names, sum(map(len, tables)))


def _common(kinds: Sequence[DataType]) -> DataType:
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if all(map(types.is_integer, kinds)):
        return types.INT64
    if all(types.is_integer(kind) or types.is_floating(kind) for kind in kinds):
        return types.FLOAT64
    if all(map(types.is_string, kinds)):
        return types.LARGE_STRING
    raise TypeError(f"columns of {', '.join(map(str, dict.fromkeys(kinds)))} are not one")


def record_batch(columns: Sequence[Array], schema: Schema) -> RecordBatch:
    """Return columns as a batch."""
    return RecordBatch(columns, schema)


def reader_of(thing: Any, failure: Callable[[str], Exception] = ArrowError) -> Reader:
    """Return a stream of the rows of what has Arrow's interface.

    ``failure`` makes an error of what its producer says is wrong.
    """
    return reader_of_capsule(thing.__arrow_c_stream__(), failure)


def reader_of_capsule(capsule: object, failure: Callable[[str], Exception] = ArrowError) -> Reader:
    """Return a stream of rows by its capsule, as :func:`reader_of` does."""
    stream = Stream(capsule, failure)
    return Reader(stream.schema, stream, stream.close)


def table_of(thing: Any) -> Table:
    """Return the rows of what has Arrow's interface."""
    return thing if isinstance(thing, Table) else reader_of(thing).read_all()
