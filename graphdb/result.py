"""Result: the rows of one statement, as Python values, Arrow, data frames, or a table in the database.

Inside, a result is an Arrow table in the engine's own terms (vertices as ids).  What leaves it is made when asked
for: Python rows with :class:`~graphdb.elements.Node` and :class:`~graphdb.elements.Relationship`, or columns in which
a vertex is its IRI.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from graphdb.errors import ExecutionError, StorageError
from graphdb.spelled import Spelled
from graphdb.values import Base, Column, Type, tidied

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from graphdb.elements import Node, Relationship

_BATCH = 10_000
"""Rows that iteration decodes at a time."""


class Home(Protocol):
    """What a result needs of its database."""

    def present(self, table: pa.Table, columns: tuple[Column, ...]) -> pa.Table:
        """Return the table as a user of SQL sees it."""

    def store(self, table: pa.Table, name: str, replace: bool) -> int:
        """Keep a presented table in the database; return its number of rows."""

    def nodes(self, ids: set[int]) -> dict[int, Node]:
        """Return vertices with labels and properties."""

    def values(self, ids: set[int]) -> dict[int, object]:
        """Return the values of literals."""

    def relationship(self, edge: dict[str, int], ends: dict[int, Any]) -> Relationship:
        """Return an edge, given its ends."""

    def written(self, labels: set[int]) -> dict[int, str]:
        """Return edge labels as a user would write them."""


class Counted:
    """The rows of a query that only counts: one (or with SKIP or LIMIT, none) of the same number in every column.

    A table of it costs more than many a count, so there is one only where somebody asks for it.
    """

    __slots__ = ("rows", "width")

    def __init__(self, count: int, width: int, window: tuple[int, int | None]) -> None:
        skip, limit = window
        self.rows: list[tuple[int, ...]] = [] if skip > 0 or limit == 0 else [(count,) * width]
        self.width = width

    @property
    def num_rows(self) -> int:
        """How many rows there are, as of a table."""
        return len(self.rows)

    def table(self) -> pa.Table:
        """Return the rows as a table with columns ``c0 …``; what int64 does not hold comes as DuckDB's HUGEINT does.

        Raises
        ------
        ExecutionError
            The number has more than 38 digits.
        """
        import pyarrow as pa

        count = max((row[0] for row in self.rows), default=0)
        if count >= 10**38:
            raise ExecutionError("the count has more digits than a table holds", hint="scalar() or fetchall() gives it")
        type = pa.int64() if count < 1 << 63 else pa.decimal128(38, 0)
        return pa.table({f"c{i}": pa.array([row[i] for row in self.rows], type) for i in range(self.width)})


class Result:
    """The rows of one statement.

    Attributes
    ----------
    elapsed
        Seconds that the statement took.
    message
        What a statement without rows has to say (``"loaded 49,882 triples"``), or None.
    verbatim
        Whether the rows are lines of text to print as they are (EXPLAIN).
    """

    def __init__(
        self,
        home: Home,
        table: pa.Table | Counted | None,
        shape: tuple[Column, ...] | None = None,
        *,
        elapsed: float = 0.0,
        message: str | None = None,
        verbatim: bool = False,
    ) -> None:
        self._home = home
        self._counted = table if isinstance(table, Counted) else None
        self._lazy_table = None if isinstance(table, Counted) else table
        self._shape = shape
        self._presented: pa.Table | None = None
        self._names: tuple[str, ...] | None = None
        self.elapsed = elapsed
        self.message = message
        self.verbatim = verbatim

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names, as written or by their aliases."""
        if self._names is None:
            table = self._table if self._shape is None else None
            named = [column.name for column in self._shape or ()]
            self._names = tuple(table.column_names if table is not None else named)
        return self._names

    @property
    def _table(self) -> pa.Table | None:
        """The rows in the engine's own terms."""
        if self._lazy_table is None and self._counted is not None:
            self._lazy_table = self._counted.table()
        return self._lazy_table

    # --- Python values

    def __len__(self) -> int:
        rows = self._counted or self._lazy_table
        return rows.num_rows if rows is not None else 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as tuples of Python values."""
        if self._counted is not None:
            yield from self._counted.rows
            return
        if self._table is None:
            return
        for start in range(0, len(self), _BATCH):
            part = self._table.slice(start, _BATCH)
            yield from zip(*self._decoded(part), strict=True)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows as tuples of Python values."""
        with without_collection():
            return list(self)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the first row, or None."""
        return next(iter(self), None)

    def scalar(self) -> Any:
        """Return the one value of a result with one row and one column.

        Raises
        ------
        ExecutionError
            The result has another shape.
        """
        if self._counted is not None and self._counted.width == len(self._counted.rows) == 1:
            return self._counted.rows[0][0]
        if len(self) != 1 or len(self.columns) != 1:
            raise ExecutionError(
                f"scalar() needs one row and one column, found {len(self)} and {len(self.columns)}",
                hint="use fetchall()",
            )
        return next(iter(self))[0]

    def _decoded(self, table: pa.Table) -> list[list[Any]]:
        """Return the columns of a table as lists of Python values."""
        with without_collection():
            return self._decode(table)

    def _decode(self, table: pa.Table) -> list[list[Any]]:
        if self._shape is None:
            return [_plain(column) for column in table.columns]
        columns = [
            Spelled(column) if shape.type.base is Base.PATH else pylist(column)
            for shape, column in zip(self._shape, table.columns, strict=True)
        ]
        ids: set[int] = set()
        for column, values in zip(self._shape, columns, strict=True):
            if isinstance(values, Spelled):
                ids.update(values.vertices)
            else:
                _gather(column.type, values, ids)
        ends: dict[int, Any] = {}
        if ids:
            ends |= self._home.nodes(ids)
            ends |= self._home.values(ids - ends.keys())
        return [
            values.paths(self._home, ends)
            if isinstance(values, Spelled)
            else _decode(self._home, column.type, values, ends, column.many)
            for column, values in zip(self._shape, columns, strict=True)
        ]

    # --- columns

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface, so that DuckDB, Polars, pandas and others read a result directly."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table; a vertex is its IRI, an edge a struct of label and ends."""
        return self.presented().rename_columns(list(self.columns))

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame."""
        return _without_unions(self.to_arrow()).to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a Polars data frame."""
        import polars as pl

        frame = pl.from_arrow(_without_unions(self.to_arrow()))
        assert isinstance(frame, pl.DataFrame)
        return frame

    def presented(self) -> pa.Table:
        """Return the rows as SQL sees them, with column names that SQL need not quote (``name`` for ``b.name``)."""
        if self._presented is None:
            import pyarrow as pa

            if self._table is None:
                self._presented = pa.table({})
            elif self._shape is None:
                self._presented = self._table
            else:
                self._presented = self._home.present(self._table, self._shape)
        return self._presented

    def into(self, name: str, *, replace: bool = False) -> int:
        """Keep the rows as a table of the database, and return their number.

        Raises
        ------
        ExecutionError
            There is a table of that name already and ``replace`` is False.
        """
        if self._table is None:
            raise ExecutionError("the statement gave no rows to keep")
        return self._home.store(self.presented(), name, replace)

    # --- for people

    def show(self, limit: int = 40) -> None:
        """Print the rows as an aligned table, at most ``limit`` of them."""
        print(self.text(limit))  # noqa: T201 - printing is what it is for

    def text(self, limit: int = 40) -> str:
        """Return the rows as an aligned table, at most ``limit`` of them."""
        from graphdb.render import plural, table

        if self.verbatim:
            return "\n".join(line for (line,) in self)
        rows: Iterable[tuple[Any, ...]]
        if self._counted is not None:
            rows = self._counted.rows[:limit]
        elif self._table is None:
            return self.message or "done"
        else:
            rows = zip(*self._decoded(self._table.slice(0, limit)), strict=True)
        lines = [*table(self.columns, rows)]
        more = f", the first {limit} shown" if len(self) > limit else ""
        return "\n".join([*lines, f"({plural(len(self), 'row')}{more})"])

    def __repr__(self) -> str:
        try:
            return self.text(10)
        except StorageError:  # closed in the meantime
            return f"<graphdb.Result {', '.join(self.columns)}: {len(self):,} rows>"


@contextmanager
def without_collection() -> Iterator[None]:
    """Make very many values without Python's cycle collector going through all of them again and again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _gather(type: Type, values: list[Any], ids: set[int]) -> None:
    """Collect the ids of all vertices in a column."""
    if type.base in (Base.NODE, Base.TERM):
        ids.update(value for value in values if value is not None)
    elif type.base is Base.EDGE:
        ids.update(end for value in values if value is not None for end in (value["start"], value["end"]))
    elif type.base is Base.PATH:
        ids.update(vertex for value in values if value is not None for vertex in value["vertices"])
    elif type.base is Base.LIST and type.element is not None:
        for value in values:
            if value is not None:
                _gather(type.element, value, ids)


def _decode(home: Home, type: Type, values: list[Any], ends: dict[int, Any], many: bool = False) -> list[Any]:
    """Return a column's Python values."""
    if type.base in (Base.NODE, Base.TERM):
        return [None if value is None else ends[value] for value in values]
    if type.base is Base.EDGE:
        return [None if value is None else home.relationship(value, ends) for value in values]
    if type.base is Base.PATH:
        return list(Spelled.of(values).paths(home, ends))
    if type.base is Base.LIST and type.element is not None:
        inner = type.element
        lists = [None if value is None else _decode(home, inner, value, ends) for value in values]
        # Several values of a property are a list, one is itself.
        return [value[0] if many and value is not None and len(value) == 1 else value for value in lists]
    if type.base in (Base.DECIMAL, Base.ZONED, Base.VALUE):
        return [tidied(value) for value in values]
    return values


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Return the Python values of a column that SQL gave."""
    import pyarrow as pa

    values = pylist(column)
    if pa.types.is_decimal(column.type) and column.type.scale == 0:  # DuckDB's HUGEINT
        return [None if value is None else int(value) for value in values]
    if pa.types.is_decimal(column.type) or pa.types.is_union(column.type):
        return [tidied(value) for value in values]
    return values


def pylist(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's Python values; a date or time that Python's calendar does not have comes as text."""
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        values = [_item(scalar) for scalar in column]
    return values


def _item(scalar: pa.Scalar) -> Any:
    import pyarrow as pa

    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if isinstance(scalar, pa.ListScalar):
            return [_item(item) for item in scalar.values]
        inner = scalar.value if isinstance(scalar, pa.UnionScalar) else scalar
        return _far_date(inner)


def _far_date(scalar: pa.Scalar) -> str:
    """Return a date or timestamp outside of Python's years 1 to 9999 as text, ISO 8601 with astronomical years."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_date32(scalar.type):
        text = str(np.datetime64(scalar.cast(pa.int32()).as_py(), "D"))
    else:
        text = str(np.datetime64(scalar.cast(pa.int64()).as_py(), "us"))
    return f"-0{text[1:]}" if text[4:5] == "-" and text[0] == "-" else text  # NumPy writes the year -5 as -005


def _without_unions(table: pa.Table) -> pa.Table:
    """Return a table whose union columns hold text: data frames have no unions."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_union(field.type):
            texts = [None if value is None else str(tidied(value)) for value in pylist(table.column(i))]
            table = table.set_column(i, field.name, pa.array(texts, pa.string()))
        elif pa.types.is_list(field.type) and pa.types.is_union(field.type.value_type):
            lists = [
                None if value is None else [None if item is None else str(tidied(item)) for item in value]
                for value in pylist(table.column(i))
            ]
            table = table.set_column(i, field.name, pa.array(lists, pa.list_(pa.string())))
    return table
