"""What a load is given: files, open files and objects in memory, and which reader turns each into blocks of lines.

Readers of formats that few loads need are imported when a source of that format comes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Mapping as Mapped
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.common import arrow
from graphdb.common.duckdb.fetch import rows_of
from graphdb.common.errors import LoadError
from graphdb.storage.loaders.files import DataFile, find, opened
from graphdb.storage.loaders.formats import CSV, EDGE_LIST, GRAPHML, N_QUADS, PARQUET, Family
from graphdb.storage.loaders.streams import Block, Put, read_lines
from graphdb.storage.loaders.tables.description import Table
from graphdb.storage.loaders.tables.headers import Mapping
from graphdb.storage.loaders.tables.objects import is_object, tables

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.loaders.tables.staging import Staged, Staging

_UNPACKED = 8
"""How many bytes one of a packed file may become."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a load reads what it is given.

    Parameters
    ----------
    format
        The format, where neither names nor contents tell it; see :mod:`.formats`.
    on_error
        ``"stop"`` at the first malformed line, keeping nothing, or ``"skip"`` such lines: each becomes a row of the
        table ``load_errors``.
    base
        The IRI that relative IRIs are relative to, where a file states none; by default the file's own.
    mapping
        What the columns of tables are, where their headers do not say it.
    spill
        The directory for what does not fit into memory.
    batch
        Bytes of memory for what is collected before it goes to DuckDB.
    """

    format: str | None = None
    on_error: str = "stop"
    base: str | None = None
    mapping: Mapping = field(default_factory=Mapping)
    spill: str | None = None
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to read: what messages call it, its size in bytes, and what produces its blocks.

    ``plain`` says that these are the lines of the file itself.
    """

    name: str
    size: int
    quads: bool
    table: bool
    produce: Callable[[Put], None]
    plain: bool = False
    stage: Callable[[Staging], Staged | None] | None = None
    """Reads a table as columns; None for what is none."""
    file: tuple[DataFile, Mapping] | None = None
    """What a CSV file is read from, and how, where it is as it is on disk: small ones are read together."""
    memory: int = 0
    """Bytes that its columns may take, where they are read as such."""


def names_files(data: Any) -> bool:
    """Whether something that is loaded is named by a path, rather than there already."""
    if isinstance(data, Table):
        return data.data is not None and names_files(data.data)
    if isinstance(data, str | bytes | os.PathLike):
        return True
    several = isinstance(data, list | tuple | set | frozenset)
    return several and any(isinstance(x, str | os.PathLike | Table) and names_files(x) for x in data)


def described(connection: duckdb.DuckDBPyConnection, data: Any) -> tuple[Any, list[Table]]:
    """Return what is loaded without descriptions of tables, and these; queries among them are run.

    Raises
    ------
    LoadError
        One is no query, or cannot run.
    """
    one = isinstance(data, Table)
    several = isinstance(data, list | tuple) and any(isinstance(thing, Table) for thing in data)
    if not (one or several):
        return data, []
    things = [data] if one else list(data)
    tables = [thing for thing in things if isinstance(thing, Table)]
    return [thing for thing in things if not isinstance(thing, Table)], [
        table if table.sql is None else replace(table, data=_rows(connection, table.sql), sql=None) for table in tables
    ]


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> arrow.Table:
    """Return the rows of a query."""
    import duckdb

    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise LoadError("this is not one query", text=sql, position=0, hint="LOAD FROM (SELECT …)")
        return rows_of(connection, sql)
    except duckdb.InterruptException:
        raise
    except duckdb.Error as error:
        raise LoadError(f"the query of a table: {str(error).splitlines()[0]}", hint="it is SQL of DuckDB's") from None


def _narrowed(rows: arrow.Table | arrow.Reader) -> arrow.Table | arrow.Reader:
    """Return rows whose HUGEINTs, as DuckDB's sums are, are integers of 64 bits where all of a column fit.

    In Arrow they are decimal numbers.  What streams is returned as it is.
    """
    if not isinstance(rows, arrow.Table):
        return rows
    changed = {}
    for at, column in enumerate(rows.columns):
        if column.type == arrow.HUGE:
            whole = column.combine_chunks()
            low, high = np.ascontiguousarray(whole.data).view(np.int64).reshape(-1, 2).T
            fits = high == low >> 63
            if (fits if whole.valid is None else fits | ~whole.valid).all():
                changed[at] = arrow.Array(arrow.INT64, len(whole), whole.valid, np.ascontiguousarray(low))
    return rows.with_columns(changed) if changed else rows


_ROWS = "rows make a frame: pandas.DataFrame(rows); or UNWIND $rows AS row CREATE (:Person {name: row.name})"
_INSTEAD = {
    "igraph": "as a graph of NetworkX: graph.to_networkx()",
    "scipy": "as a graph of NetworkX: networkx.from_scipy_sparse_array(matrix)",
    "numpy": 'as a frame: pandas.DataFrame(array, columns=[":START_ID", ":END_ID"])',
    "dict": _ROWS,
    "tuple": _ROWS,
    "list": _ROWS,
}
"""What is loaded instead of objects of other types, by their packages or types."""


def sources_of(
    data: Any, options: Options, folder: str, memory: int, numbers: Iterator[int] | None = None
) -> Iterator[Source]:
    """Say how each thing that is given is read.

    Parameters
    ----------
    folder, memory
        Where a reader of tables may spill what takes more bytes than that.
    numbers
        What keeps the tables apart.
    """
    numbers = numbers or count()
    skip = options.on_error == "skip"

    def table(thing: Any, name: str, size: int) -> Source:
        from graphdb.storage.loaders.tables.reader import read_table

        number = next(numbers)
        read = partial(read_table, thing, name, number, options.mapping, skip, folder=folder, memory=memory)
        stage = None
        if not isinstance(thing, DataFile) or (thing.format in (CSV, EDGE_LIST, PARQUET) and thing.stream is None):

            def stage(staging: Staging) -> Staged | None:
                return staging.table(thing, options.mapping)

        packed = isinstance(thing, DataFile) and (thing.compression or thing.format is PARQUET)
        taken = (_UNPACKED if packed else 1) * size
        plain = isinstance(thing, DataFile) and thing.format is CSV and not (packed or thing.stream)
        return Source(
            name,
            size,
            True,
            True,
            partial(_put_to, read),
            stage=stage,
            file=(thing, options.mapping) if plain else None,
            memory=taken,
        )

    one = is_object(data) or _is_rdf(data)
    one |= isinstance(data, str | bytes | os.PathLike | Mapped) or hasattr(data, "read")
    things = [data] if one or not isinstance(data, Iterable) else list(data)
    for thing in things:
        if not (is_object(thing) or _is_rdf(thing) or isinstance(thing, str | os.PathLike) or hasattr(thing, "read")):
            what = f"{type(thing).__module__}.{type(thing).__name__}".removeprefix("builtins.")
            raise LoadError(
                f"an object of type {what} cannot be loaded",
                hint=_INSTEAD.get(what.partition(".")[0])
                or "paths, open files, data frames, Arrow tables, graphs of NetworkX and rdflib can",
            )
    paths = [thing for thing in things if isinstance(thing, str | os.PathLike)]
    files = find(paths, options.format) if paths or not things else []
    for file in [*files, *(opened(thing, options.format) for thing in things if hasattr(thing, "read"))]:
        match file.format.family:
            case Family.LINES:
                yield Source(file.name, file.size, file.format is N_QUADS, False, partial(read_lines, file), plain=True)
            case Family.RDF:
                from graphdb.storage.loaders.rdf.reader import read_rdf

                yield Source(file.name, file.size, True, False, partial(read_rdf, file, options.base, skip))
            case Family.TABLE if file.format is GRAPHML:
                from graphdb.storage.loaders.tables.graphml import read_graphml

                read = partial(read_graphml, file, next(numbers), options.mapping, skip, folder=folder, memory=memory)
                yield Source(file.name, file.size, False, True, partial(_put_to, read))
            case Family.TABLE:
                yield table(file, file.name, file.size)
    for thing in things:
        if _is_rdf(thing):
            yield _rdf(thing)
        elif is_object(thing):
            for name, made, columns in tables(thing, options.mapping):
                yield table((_narrowed(made), columns), name, getattr(made, "nbytes", 0))


def _is_rdf(thing: Any) -> bool:
    """Whether this is a graph, or a data set of several, of rdflib's."""
    return hasattr(thing, "namespaces") and hasattr(thing, "triples") and hasattr(thing, "serialize")


def _rdf(graph: Any) -> Source:
    """Say how a graph of rdflib's is read: as the lines that it writes, with those of its prefixes that they use."""
    several = hasattr(type(graph), "quads")
    text: bytes = graph.serialize(format="nquads" if several else "nt", encoding="utf-8")
    file = opened(BytesIO(text), "nquads" if several else "ntriples")

    def produce(put: Put) -> None:
        read_lines(file, put)
        used = {name: str(iri) for name, iri in graph.namespaces() if f"<{iri}".encode() in text}
        put(Block(b"", len(text), prefixes=used))

    return Source(type(graph).__name__, len(text), several, False, produce)


def _put_to(read: Callable[..., None], put: Put) -> None:
    """Let a reader of tables hand on its blocks."""
    read(put=put)
