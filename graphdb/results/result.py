"""Result: the rows of one statement, as Python values, Arrow, data frames, or a table in the database.

Inside, a result is an Arrow table in the engine's own terms (vertices as ids).  What leaves it is made when asked
for: Python rows with :class:`~graphdb.common.values.elements.Node` and
:class:`~graphdb.common.values.elements.Relationship`, columns of structs (:mod:`graphdb.results.exports`), or SQL's, in
which a vertex is its IRI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from html import escape
from itertools import chain, islice
from typing import Any, Protocol, TypeVar

from graphdb.common import arrow as columnar
from graphdb.common.arguments import number_of, text_of
from graphdb.common.errors import ExecutionError, GraphDBError, StorageError
from graphdb.common.foreign_errors import own_errors
from graphdb.common.other_names import OtherNames, by_name
from graphdb.common.values.elements import without_collection
from graphdb.common.values.types import STRING, Column, Type, has_ids, is_plain
from graphdb.results.decode import Arrays, Known, decoded, pieces
from graphdb.results.display import array_of, made_in_python, shown
from graphdb.results.exports import Exports
from graphdb.results.time_columns import of_times

T = TypeVar("T")

_PLAN_OF_SQL = ("explain_key", "explain_value")
"""The columns in which DuckDB has what EXPLAIN shows of SQL."""

_SHOWN = 10
"""Rows that a notebook and a prompt show."""


class Home(Known, Protocol):
    """What a result needs of its database, as it was when the query ran."""

    def add(self, result: Result) -> None:
        """Note a result that may look something up later."""

    def reading(self) -> AbstractContextManager[object]:
        """Look up several things, between which nothing is written."""

    def present(self, table: columnar.Table, columns: tuple[Column, ...]) -> columnar.Table:
        """Return the table as a user of SQL sees it."""

    def structs(self, type: Type, column: columnar.Array) -> Callable[[columnar.Array], columnar.Array]:
        """Return what makes pieces of a column with vertices, edges or paths columns of structs."""

    def in_one_type(self, table: columnar.Table) -> columnar.Table:
        """Return a table whose columns have no unions: numbers of one type, or texts."""

    def store(self, table: columnar.Table, name: str, replace: bool) -> int:
        """Keep a presented table in the database; return its number of rows."""


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

    def table(self) -> columnar.Table:
        """Return the rows as a table with columns ``c0 …``; what int64 does not hold comes as DuckDB's HUGEINT does.

        Raises
        ------
        ExecutionError
            The number has more than 38 digits.
        """
        count = max((row[0] for row in self.rows), default=0)
        if count >= 10**38:
            raise ExecutionError("the count has more digits than a table holds", hint="scalar() or fetchall() gives it")
        type = columnar.INT64 if count < 1 << 63 else columnar.HUGE
        return columnar.table({f"c{i}": columnar.array([row[i] for row in self.rows], type) for i in range(self.width)})


_ELSEWHERE = by_name(
    {
        "single peek get_next one first": "fetchone(), or scalar() for one value",
        "value values scalars fetchval": "scalar() for one value, fetchall() for rows",
        "data records to_dict dicts bindings mappings rows_as_dict": "to_dicts()",
        "get_as_df to_df fetchdf to_data_frame as_df": "df()",
        "get_as_pl as_pl": "pl()",
        "get_as_arrow fetch_arrow_table as_arrow": "arrow()",
        "fetch_record_batch to_batches fetch_arrow_reader": "fetch_batches(size)",
        "get_as_networkx networkx": "to_networkx()",
        "get_column_names keys vars schema": "columns, or description with types",
        "rows all to_list fetch_all tolist": "fetchall()",
        "has_next consume next": "for row in result",
        "num_rows rowcount get_num_tuples shape": "len(result)",
        "summary counters stats": "message, elapsed",
        "head print display": "show with a number of rows",
        "create to_table insert_into": "into('table')",
        "plot draw visualize": "graph()",
        "to_parquet write_parquet": "df().to_parquet(…), or a query COPY (MATCH …) TO 'answer.parquet'",
        "to_csv write_csv": "df().to_csv(…), or a query COPY (MATCH …) TO 'answer.csv'",
        "to_json write_json write_ndjson": "to_dicts(), or a query COPY (MATCH …) TO 'answer.json'",
        "to_excel fetchnumpy to_numpy": "df()",
        "get_as_torch_geometric": "edge_index()",
        "profile explain": "plan(), of EXPLAIN or PROFILE",
    }
)
"""What Neo4j's driver, Kùzu, DuckDB, rdflib and SQLAlchemy call it."""


class Result(Exports, OtherNames):
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

    _elsewhere = _ELSEWHERE

    def __init__(
        self,
        home: Home,
        table: columnar.Table | Arrays | Counted | None,
        shape: tuple[Column, ...] | None = None,
        *,
        elapsed: float = 0.0,
        message: str | None = None,
        verbatim: bool = False,
        value_of: Callable[[bytes], object] | None = None,
    ) -> None:
        self._home: Home = home
        self._value_of = value_of
        self._counted: Counted | None = None
        self._arrays: Arrays | None = None
        self._lazy_table: columnar.Table | None = None
        if isinstance(table, Counted):
            self._counted = table
        elif isinstance(table, Arrays):
            self._arrays = table
        else:
            self._lazy_table = table
        self._shape = shape
        self._presented: columnar.Table | None = None
        self._fetched: list[list[Any]] | None = None
        """The columns as Python values, where they were looked up ahead."""
        self._names: tuple[str, ...] | None = None
        self._fetching: Iterator[tuple[Any, ...]] | None = None
        """The rows that fetchone and fetchmany did not return yet, where one of them was called."""
        self.warn: Callable[[], list[str]] | None = None
        """What finds the warnings, where there may be some."""
        self.elapsed = elapsed
        self.message = message
        self.verbatim = verbatim
        if shape is not None and self._counted is None:
            home.add(self)

    @property
    def reads(self) -> bool:
        """Whether the database is still to be asked for its rows."""
        return self._fetched is None and not all(is_plain(column.type) for column in self._shape or ())

    @property
    def _has_ids(self) -> bool:
        return any(has_ids(column.type) for column in self._shape or ())

    def fetch(self) -> None:
        """Look up everything now: what the ids stand for is about to go."""
        rows = self._arrays or self._table
        if self.reads and rows is not None:
            self.presented()
            self._fetched = self._decoded(rows)

    def _looked_up(self, make: Callable[[], T]) -> T | None:
        """Return what the database is asked for now, or None where everything was looked up ahead.

        That is asked afterwards, too: whoever changes the data has had everything looked up before, so what was made
        meanwhile is right if nothing was.
        """
        if self._fetched is not None:
            return None
        try:
            made = make()
        except GraphDBError:  # its connection was closed meanwhile
            if self._fetched is None:
                raise
            return None
        return made if self._fetched is None else None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns' names, as written or by their aliases."""
        if self._names is None:
            table = self._table if self._shape is None else None
            named = [column.name for column in self._shape or ()]
            self._names = tuple(table.column_names if table is not None else named)
        return self._names

    @property
    def warnings(self) -> list[str]:
        """What may be a slip: labels, edge labels and properties that the statement reads and nothing has, or of whose
        names there are others from RDF.

        Each is a text with its place in the statement and what may be meant, as the database is when it is asked.
        """
        return [] if self.warn is None else self.warn()

    @property
    def _table(self) -> columnar.Table | None:
        """The rows in the engine's own terms."""
        if self._lazy_table is None and (rows := self._counted or self._arrays) is not None:
            self._lazy_table = rows.table()
        return self._lazy_table

    @property
    def internal(self) -> tuple[columnar.Table, tuple[Column, ...]]:
        """The rows in the engine's own terms, with their columns: for a statement that goes on from them."""
        return columnar.table({}) if self._table is None else self._table, self._shape or ()

    # --- Python values

    def __len__(self) -> int:
        rows = self._counted or self._arrays or self._lazy_table
        return rows.num_rows if rows is not None else 0

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as tuples of Python values."""
        return self._rows(whole=False)

    def _rows(self, *, whole: bool) -> Iterator[tuple[Any, ...]]:
        """Yield the rows; large pieces are decoded at once where the ``whole`` of them is wanted."""
        return chain.from_iterable(self._pieces(whole))  # a generator would pass on each row by itself

    def _pieces(self, whole: bool) -> Iterator[Iterable[tuple[Any, ...]]]:
        if self._counted is not None:
            yield self._counted.rows
            return
        rows = self._arrays or self._table
        if rows is None:
            return
        done = 0
        for part in pieces(rows, whole=whole):
            columns = self._looked_up(partial(self._decoded, part))
            if columns is None:
                assert self._fetched is not None
                yield islice(zip(*self._fetched, strict=True), done, None)
                return
            yield zip(*columns, strict=True)
            done += part.num_rows

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows that :meth:`fetchone` and :meth:`fetchmany` did not return, as tuples of Python values."""
        if self._counted is not None and self._fetching is None:  # small counts would take longer
            return [*self._counted.rows]
        with without_collection():
            return list(self._rows(whole=True) if self._fetching is None else self._fetching)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return all rows as dictionaries by the names of the columns; of several of one name the last one counts."""
        with without_collection():
            return [dict(zip(self.columns, row, strict=True)) for row in self._rows(whole=True)]

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None where all were returned; iteration always begins with the first."""
        if self._fetching is None:
            self._fetching = iter(self)
        return next(self._fetching, None)

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """Return the next rows, ``size`` of them or as many as are left; see :meth:`fetchone`."""
        if self._fetching is None:
            self._fetching = iter(self)
        return list(islice(self._fetching, number_of(size, "a number of rows")))

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

    @own_errors
    def _decoded(self, table: columnar.Table | Arrays) -> list[list[Any]]:
        """Return the columns of a table as lists of Python values."""
        types = None if self._shape is None else [(column.type, column.many) for column in self._shape]
        with self._home.reading() if self._has_ids else nullcontext(), without_collection():
            return decoded(self._home, types, table, self._value_of)

    # --- columns

    def _part(self, at: Sequence[int]) -> Result:
        """Return the result that has some of the columns."""
        table, shape = self.internal
        some = table.select(at).rename_columns([f"c{i}" for i in range(len(at))])
        return Result(self._home, some, tuple(shape[i] for i in at), value_of=self._value_of)

    @property
    def description(self) -> list[tuple[str, str, None, None, None, None, None]] | None:
        """For each column a tuple of seven, of which name and type are known, as Python's DB-API has it.

        None for a statement that gives no rows.
        """
        from graphdb.results.description import described

        if not self.columns:
            return None
        types = described(self._shape if self._counted is None else None, self.presented)
        return [(name, type, None, None, None, None, None) for name, type in zip(self.columns, types, strict=True)]

    def presented(self) -> columnar.Table:
        """Return the rows as SQL sees them, with column names that SQL need not quote (``name`` for ``b.name``)."""
        if self._presented is None:
            if self._table is None:
                self._presented = columnar.table({})
            elif self._shape is None:
                self._presented = self._table
            else:
                self._presented = self._shown(self._table, self._shape)
        return self._presented

    def _shown(self, table: columnar.Table, shape: tuple[Column, ...]) -> columnar.Table:
        """Return a table as SQL sees it, with Python values as columns where SQL knows them by their keys."""
        made = {
            i: array_of([shown(value) for (value,) in self._part([i])])
            for i, column in enumerate(shape)
            if made_in_python(column.type) and column.type.of is None
        }
        for i, column in enumerate(shape):
            if column.type.of is not None:
                found = of_times(table.column(i).combine_chunks(), column.type.of)
                made |= {} if found is None else {i: found}
        table = table.with_columns(dict.fromkeys(made, columnar.nulls(len(table), columnar.STRING)))
        shape = tuple(replace(column, type=STRING) if i in made else column for i, column in enumerate(shape))
        return self._home.present(table, shape).with_columns(made)

    @own_errors
    def into(self, name: str, *, replace: bool = False) -> int:
        """Keep the rows as a table of the database, and return their number.

        Raises
        ------
        ExecutionError
            There is a table of that name already and ``replace`` is False.
        """
        if self._table is None:
            raise ExecutionError("the statement gave no rows to keep")
        return self._home.store(self.presented(), text_of(name, "the name of a table"), replace)

    # --- for people

    def show(self, limit: int = 40) -> None:
        """Print the rows as an aligned table, at most ``limit`` of them."""
        print(self.text(limit))  # noqa: T201 - printing is what it is for

    def text(self, limit: int = 40) -> str:
        """Return the rows as an aligned table, at most ``limit`` of them."""
        from graphdb.common.render import table

        if (plan := self.plan_lines()) is not None:
            return "\n".join(plan)
        rows = self._first(limit)
        if rows is None:
            return self.message or "done"
        return "\n".join([*table(self.columns, rows), f"({self._count_text(limit)})"])

    def plan_lines(self) -> list[str] | None:
        """Return the lines of the plan that EXPLAIN or PROFILE gave, laid out already; None for other statements."""
        if self.verbatim:
            return [line for (line,) in self]
        if self.columns == _PLAN_OF_SQL:
            return [line for _, text in self for line in text.splitlines()]
        return None

    def plan(self) -> list[dict[str, Any]]:
        """Return the plan that EXPLAIN or PROFILE gave as a tree, of values that JSON has.

        Each part has a ``title``, ``children`` and ``facts``, which are the cells of the table of steps by its headers.

        Raises
        ------
        ExecutionError
            The statement was neither.
        """
        from graphdb.results.plans import tree

        if not self.verbatim:
            raise ExecutionError("the statement gave no plan", hint="EXPLAIN MATCH … or PROFILE MATCH …")
        return tree(line for (line,) in self)

    def _first(self, limit: int) -> Iterable[tuple[Any, ...]] | None:
        """The first rows as Python values, or None for a statement that gives none."""
        if self._counted is not None:
            return self._counted.rows[:limit]
        if self._fetched is not None:
            return islice(zip(*self._fetched, strict=True), limit)
        return None if self._table is None else zip(*self._decoded(self._table.slice(0, limit)), strict=True)

    def _count_text(self, limit: int) -> str:
        """How many rows there are, and how many of them are shown."""
        from graphdb.common.render import plural

        return plural(len(self), "row") + (f", the first {limit} shown" if len(self) > limit else "")

    def _repr_html_(self) -> str | None:
        """The rows as notebooks show them: as a table, with the number of rows below."""
        from graphdb.common.render import as_html

        try:
            rows = None if self.plan_lines() is not None else self._first(_SHOWN)
        except StorageError:  # closed in the meantime
            return None
        if rows is None:
            return None
        warnings = [f"<pre>warning: {escape(warning)}</pre>" for warning in self._warning_texts()]
        return "".join([*as_html(self.columns, rows), f"<p>{self._count_text(_SHOWN)}</p>", *warnings])

    def _warning_texts(self) -> list[str]:
        """The warnings, as far as there is still a database to ask."""
        try:
            return self.warnings
        except GraphDBError:
            return []

    def __repr__(self) -> str:
        try:
            return self.text(_SHOWN)
        except StorageError:  # closed in the meantime
            return f"<graphdb.Result {', '.join(self.columns)}: {len(self):,} rows>"
