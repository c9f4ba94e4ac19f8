"""A result as columns that other libraries take: Arrow, and data frames of pandas and Polars.

A vertex is a struct of ``id`` (its IRI), ``labels`` and ``properties``, an edge one of ``id``, ``type``, ``start`` and
``end`` (IRIs) and ``properties``, a path one of the lists ``nodes`` and ``relationships``; ``properties`` is a struct
of all keys that some element of the column has.  A column has one type: integers beside decimals are decimals, numbers
beside floating-point ones such, other values of several types texts.  A map is a struct, maps whose values differ in
type are texts of JSON, times for which Arrow has no type (with an offset, of nanoseconds) are texts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from graphdb._version import DISTRIBUTION
from graphdb.common import arrow as columnar
from graphdb.common.arguments import number_of
from graphdb.common.errors import ExecutionError
from graphdb.common.foreign_errors import check_installed, own_errors
from graphdb.common.values.types import Column, has_ids
from graphdb.pictures import MOST
from graphdb.results.display import made_in_python
from graphdb.results.python_columns import column_of, with_edge_ids
from graphdb.storage.arrays import times_with_offset

if TYPE_CHECKING:
    import igraph
    import pandas as pd
    import polars
    import pyarrow as pa

    from graphdb.pictures.picture import Picture
    from graphdb.results.network import EdgeIndex, Elements, Network

T = TypeVar("T")

_AT_ONCE = 1 << 20
"""Rows whose elements are made structs at a time, where all are wanted."""


class Exports:
    """What a :class:`~graphdb.results.result.Result` has for those who read columns."""

    _home: Any
    _shape: tuple[Column, ...] | None
    _fetched: list[list[Any]] | None
    _value_of: Callable[[bytes], object] | None
    around: Callable[[str], Exports] | None = None
    """What finds the edges of a vertex by its IRI, where somebody can be asked."""

    if TYPE_CHECKING:  # what the result has

        @property
        def columns(self) -> tuple[str, ...]:
            """The columns' names."""

        @property
        def internal(self) -> tuple[columnar.Table, tuple[Column, ...]]:
            """The rows in the engine's own terms, with their columns."""

        def presented(self) -> columnar.Table:
            """Return the rows as SQL sees them."""

        def _looked_up(self, make: Callable[[], T]) -> T | None: ...
        def _part(self, at: Sequence[int]) -> Exports: ...
        def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    @own_errors
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface, so that DuckDB, Polars, PyArrow and others read a result directly."""
        return self._exported().__arrow_c_stream__()

    def fetch_batches(self, size: int = 100_000) -> Iterator[columnar.Table]:
        """Return an iterator over the rows as tables of ``size`` rows at most, which have the same columns.

        A table has ``num_rows``, ``column_names`` and ``to_pylist()``; ``polars.DataFrame``, ``pyarrow.table`` and all
        else that reads Arrow streams take it.  Its columns are those of :meth:`to_arrow`.

        Raises
        ------
        ParameterError
            ``size`` is no positive number.
        """
        return self._batches(number_of(size, "the size of a batch", 1))

    @own_errors
    def to_arrow(self) -> pa.Table:
        """Return the rows as a table of PyArrow: see :mod:`graphdb.results.exports` for the types of its columns.

        Raises
        ------
        ExecutionError
            PyArrow is not installed.
        """
        return _pyarrow("to_arrow").table(self._exported())

    @own_errors
    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame; a struct is a dictionary.

        Raises
        ------
        ExecutionError
            PyArrow is not installed.
        """
        check_installed("to_pandas", "pandas", "pandas")
        return _pyarrow("to_pandas").table(self._exported()).to_pandas()

    @own_errors
    def to_polars(self) -> polars.DataFrame:
        """Return the rows as a Polars data frame.

        Raises
        ------
        ExecutionError
            Polars is not installed, or has no type for a column: SQL's intervals.
        """
        check_installed("to_polars", "polars", "Polars")
        import polars

        table = self._exported()
        try:
            return polars.DataFrame(table)
        except polars.exceptions.PanicException:  # no Exception, which users would not catch
            raise ExecutionError("Polars has no type for a column", hint="CAST(… AS VARCHAR) makes it texts") from None

    @own_errors
    def to_networkx(self) -> Any:
        """Return the vertices, edges and paths of the rows as a ``networkx.MultiDiGraph``.

        A vertex is named by its IRI, without the database's own namespace, and has ``labels`` and its properties; an
        edge has ``type`` and its properties.  Needs NetworkX.

        Raises
        ------
        ExecutionError
            The rows have no vertices, edges or paths.
        """
        check_installed("to_networkx", "networkx", "NetworkX")
        return self._network().networkx()

    @own_errors
    def to_igraph(self) -> igraph.Graph:
        """Return the vertices, edges and paths of the rows as a directed ``igraph.Graph``.

        Vertices have ``iri``, ``labels`` and their properties, edges ``type`` and theirs.  Needs igraph.

        Raises
        ------
        ExecutionError
            The rows have no vertices, edges or paths.
        """
        check_installed("to_igraph", "igraph", "igraph")
        return self._network().igraph()

    @own_errors
    def graph(self, most: int = MOST) -> Picture:
        """Return a picture of the vertices, edges and paths of the rows; a notebook shows it.

        Parameters
        ----------
        most
            How many vertices, and how many edges, are drawn; the first ones are.

        Raises
        ------
        ExecutionError
            The rows have no vertices, edges or paths.
        """
        from graphdb.pictures.picture import Picture

        network, around = self._network(), self.around
        expand = None if around is None else lambda iri: around(iri).graph()
        return Picture.of(network.nodes, network.relationships, number_of(most, "most"), expand=expand)

    @own_errors
    def edge_index(self) -> EdgeIndex:
        """Return the edges of the rows as arrays of NumPy: see :class:`graphdb.results.network.EdgeIndex`.

        No object is made of a vertex or an edge.

        Raises
        ------
        ExecutionError
            The rows have no vertices, edges or paths, or they are of a statement that writes or a transaction that has
            ended, where nobody knows their numbers.
        """
        if self._shape is None or self._fetched is not None:
            raise ExecutionError(
                "the rows are of a statement that writes, of SQL, or of a transaction that has ended: they have no "
                "numbers",
                hint="MATCH (a)-[e]->(b) RETURN a, e, b",
            )
        return self._elements().index(self._home)

    def _elements(self) -> Elements:
        """Return the ids of all elements."""
        from graphdb.results.network import Elements

        table, shape = self.internal
        return Elements.of(shape, table, self._value_of)

    def _network(self) -> Network:
        """Return all elements as objects."""
        from graphdb.results.network import Network

        if self._shape is None or self._fetched is not None:
            return Network.of_rows(list(self))
        return Network.of(self._elements(), self._home)

    def df(self) -> pd.DataFrame:
        """Return :meth:`to_pandas`, by the name that DuckDB has for it."""
        return self.to_pandas()

    def pl(self) -> polars.DataFrame:
        """Return :meth:`to_polars`, by the name that DuckDB has for it."""
        return self.to_polars()

    def arrow(self) -> pa.Table:
        """Return :meth:`to_arrow`, by the name that DuckDB has for it."""
        return self.to_arrow()

    # --- how they are made

    def _exported(self) -> columnar.Table:
        """Return all rows as one table."""
        batches = list(self._batches(_AT_ONCE))
        if len(batches) == 1:
            return batches[0]
        columns = [
            columnar.ChunkedArray([chunk for batch in batches for chunk in batch.column(i).chunks])
            for i in range(batches[0].num_columns)
        ]
        return columnar.Table(columns, batches[0].column_names)

    def _batches(self, size: int) -> Iterator[columnar.Table]:
        """Yield tables of so many rows; one at least, which has the columns."""
        shape = self._shape or ()
        elements = [] if self._fetched is not None else [i for i, each in enumerate(shape) if _has_elements(each)]
        if not elements:
            whole = self._without_elements()
            yield from (whole.slice(start, size) for start in range(0, max(whole.num_rows, 1), size))
            return
        table, _ = self.internal
        others = [i for i in range(len(shape)) if i not in elements]
        rest = self._part(others)._without_elements() if others else None
        columns = {i: table.column(i).combine_chunks() for i in elements}
        structs = {i: self._home.structs(shape[i].type, column) for i, column in columns.items()}

        def made_of(start: int) -> dict[int, columnar.ChunkedArray]:
            return {i: columnar.ChunkedArray([structs[i](columns[i].slice(start, size))]) for i in elements}

        for start in range(0, max(table.num_rows, 1), size):
            made = self._looked_up(partial(made_of, start))
            if made is None:
                whole = self._without_elements()
                yield from (whole.slice(at, size) for at in range(start, max(table.num_rows, 1), size))
                return
            if rest is not None:
                made.update(zip(others, rest.slice(start, size).columns, strict=True))
            yield columnar.Table([made[i] for i in range(len(shape))], self.columns)

    def _without_elements(self) -> columnar.Table:
        """Return rows that have no elements, or have them as Python values already."""
        table = self.presented().rename_columns(self.columns)
        made = {
            i: self._of_python(i)
            for i, column in enumerate(self._shape or ())
            if (made_in_python(column.type) and column.type.of is None)
            or (self._fetched is not None and has_ids(column.type))
        }
        table = table.with_columns(made)
        times = [i for i, field in enumerate(table.schema) if times_with_offset.has_timetz(field.type)]
        table = table.with_columns({i: times_with_offset.as_texts(table.column(i).combine_chunks()) for i in times})
        found: columnar.Table = self._home.in_one_type(table) if columnar.has_unions(table.schema) else table
        return found

    def _of_python(self, i: int) -> columnar.Array:
        """Return a column of the Python values that it has."""
        if self._fetched is None:
            return column_of([value for (value,) in self._part([i])])
        table, shape = self.internal
        return with_edge_ids(shape[i].type, table.column(i).combine_chunks(), column_of(self._fetched[i]))


def _has_elements(column: Column) -> bool:
    return has_ids(column.type) and not made_in_python(column.type)


def _pyarrow(method: str) -> Any:
    """Return the library that a method needs."""
    try:
        import pyarrow
    except ModuleNotFoundError:
        raise ExecutionError(
            f"{method}() needs PyArrow, which is not installed",
            hint=f"pip install '{DISTRIBUTION}[arrow]'; fetchall(), to_polars() and SQL do without",
        ) from None
    return pyarrow
