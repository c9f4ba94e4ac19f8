"""A load: files and tables in, one transaction, all or nothing.

Whatever the format, a thread reads ahead and turns what it reads into lines of N-Triples (:mod:`.streams`); these are
parsed into batches of distinct terms and triples (:mod:`.ntriples`), which are numbered against the dictionary and
staged (:mod:`graphdb.storage.append`).  At the end the new ones among them are appended, sorted by (label, subject,
object), and the statistics of their labels recomputed.

A batch grows until it takes :data:`BATCH` bytes, so memory does not grow with the files.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

from graphdb.errors import LoadError
from graphdb.storage.append import Appender
from graphdb.storage.catalog import Catalog, in_transaction
from graphdb.storage.loaders.files import find
from graphdb.storage.loaders.formats import N_QUADS, Family
from graphdb.storage.loaders.objects import is_object, tables
from graphdb.storage.loaders.streams import BadLine, Put, blocks, read_lines
from graphdb.storage.loaders.tables import Mapping

if TYPE_CHECKING:
    import duckdb

T = TypeVar("T")

BATCH = 512 << 20
"""Bytes of terms and triples that are collected before they go to DuckDB."""

_TICK = 0.1
"""Seconds between two reports of progress, and between two looks at ``cancel``."""

_WIDEST = 10_000
"""Characters of a bad line that are kept."""


Progress = Callable[[int, int, int, str], None]
"""Told how far a load is: bytes read of the files on disk, of how many; triples so far; what goes on."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a load did: ``triples`` read, of which ``new_triples`` were not there before; ``errors`` lines skipped."""

    triples: int
    new_triples: int
    files: int
    errors: int
    seconds: float


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
    """

    format: str | None = None
    on_error: str = "stop"
    base: str | None = None
    mapping: Mapping = field(default_factory=Mapping)
    spill: str | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """One thing to read: what messages call it, its size in bytes, and what produces its blocks."""

    name: str
    size: int
    quads: bool
    table: bool
    produce: Callable[[Put], None]


def load(
    connection: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    data: Any,
    options: Options | None = None,
    progress: Progress | None = None,
    cancel: threading.Event | None = None,
) -> LoadReport:
    """Load files and tables into the database, in one transaction.

    Parameters
    ----------
    data
        A path or several (wildcards are expanded, ``-`` is standard input), a data frame, a NetworkX graph, or a
        collection of all of these.
    progress
        Called from this thread, at least five times a second.
    cancel
        Set it from another thread to end the load.

    Raises
    ------
    LoadError
        Where a file cannot be found, read or parsed, the load is cancelled, or a transaction is open.  Nothing is kept.
    NotSupportedError
        For a format that cannot be read.
    KeyboardInterrupt
        After Ctrl-C.  Nothing is kept.
    """
    import duckdb

    options = options or Options()
    if options.on_error not in ("stop", "skip"):
        raise LoadError(f"on_error is '{options.on_error}'", hint="it can be 'stop' or 'skip'")
    started = time.perf_counter()
    if in_transaction(connection):
        raise LoadError("a transaction is open, and a load is one of its own", hint="COMMIT or ROLLBACK first")
    with _spill(options.spill) as folder:
        sources = list(_sources(data, options, folder))
        catalog.begin_work(_described(sources))
        connection.begin()
        loading = _Load(connection, catalog, sources, options.on_error == "skip", progress, cancel)
        try:
            with ThreadPoolExecutor(1, "graphdb-load") as loading.worker:
                new = loading.run()
            catalog.end_work()
            connection.commit()
        except BaseException:
            with suppress(duckdb.Error):
                connection.rollback()
            with suppress(duckdb.Error):
                catalog.end_work()
            raise
    return LoadReport(loading.triples, new, len(sources), loading.errors, time.perf_counter() - started)


def _described(sources: list[_Source]) -> str:
    """What a load loads, for those who find that it was killed."""
    names = ", ".join(source.name for source in sources[:3])
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    return f"loading {names}{more} (process {os.getpid()}, {time.strftime('%Y-%m-%d %H:%M:%S')})"


@contextmanager
def _spill(folder: str | None) -> Iterator[str]:
    """A directory of our own for what does not fit into memory; it is gone afterwards."""
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
    with TemporaryDirectory(prefix="graphdb-", dir=folder) as made:
        yield made


def _sources(data: Any, options: Options, folder: str) -> Iterator[_Source]:
    """Say how each thing that is given is read."""
    skip = options.on_error == "skip"

    def table(thing: Any, name: str, size: int) -> _Source:
        from graphdb.storage.loaders.tables import read_table

        number = next(numbers)
        read = partial(read_table, thing, name, number, options.mapping, skip, folder=folder)
        return _Source(name, size, False, True, lambda put: read(put=put))

    numbers = count()
    things = [data] if is_object(data) or isinstance(data, str | os.PathLike) else list(data)
    paths = [thing for thing in things if not is_object(thing)]
    for file in find(paths, options.format) if paths or not things else ():
        match file.format.family:
            case Family.LINES:
                yield _Source(file.name, file.size, file.format is N_QUADS, False, partial(read_lines, file))
            case Family.RDF:
                from graphdb.storage.loaders.rdf import read_rdf

                yield _Source(file.name, file.size, True, False, partial(read_rdf, file, options.base, skip))
            case Family.TABLE:
                yield table(file, file.name, file.size)
    for thing in things:
        if is_object(thing):
            for name, made in tables(thing):
                yield table(made, name, made.nbytes)


class _Load:
    """One load under way.  DuckDB works in ``worker``, so that this thread can report, and stop it."""

    worker: ThreadPoolExecutor

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        sources: list[_Source],
        skip: bool,
        progress: Progress | None,
        cancel: threading.Event | None,
    ) -> None:
        self._connection = connection
        self._catalog = catalog
        self._sources = sources
        self._skip = skip
        self._progress = progress
        self._cancel = cancel
        self._bytes = 0
        self._total = sum(source.size for source in sources)
        self._reported = 0.0
        self.triples = 0
        self.errors = 0

    def run(self) -> int:
        """Load everything and return how many triples are new."""
        from graphdb.storage.loaders.ntriples import Parser

        appender = Appender(self._connection)
        parser = Parser(stop=not self._skip)
        first = self._catalog.next_source()
        before = 0
        for number, source in enumerate(self._sources, first):
            # The blank nodes of tables belong to the load: edge tables name those of node tables.
            parser.open(source.name, first if source.table else number, quads=source.quads)
            in_source = self.triples
            for block in blocks(source.produce):
                if block.bad:
                    self._note(block.bad)
                if block.prefixes:
                    self._catalog.add_prefixes(dict(block.prefixes))
                bad = self._wait("parsing", parser.feed, block.text)
                self._bytes = before + min(block.consumed, source.size)
                self.triples += parser.fresh
                if bad:
                    self._note(bad)
                if parser.size > BATCH:
                    self._wait("storing terms", appender.add, parser.take())
            self._catalog.add_source(number, source.name, self.triples - in_source)
            before += source.size
            self._bytes = before
        self._wait("storing terms", appender.add, parser.take())
        new = self._wait("sorting triples", appender.append)
        self._wait("counting", appender.count)
        self._report("done", force=True)
        return new

    def _note(self, bad: list[BadLine]) -> None:
        """Stop at the first bad line, or write all of them to the table ``load_errors``."""
        import pyarrow as pa

        if not self._skip:
            raise bad[0].error()
        self.errors += len(bad)
        self._catalog.create_load_errors()
        columns = {
            "file": pa.array([line.source for line in bad], pa.string()),
            "line": pa.array([line.line for line in bad], pa.int64()),
            "column": pa.array([line.column for line in bad], pa.int64()),
            "message": pa.array([line.message for line in bad], pa.string()),
            "text": pa.array([line.text and line.text[:_WIDEST] for line in bad], pa.string()),
        }
        self._connection.register("_graphdb_bad", pa.table(columns))
        try:
            self._connection.execute("INSERT INTO main.load_errors SELECT * FROM _graphdb_bad")
        finally:
            self._connection.unregister("_graphdb_bad")

    def _wait(self, phase: str, work: Callable[..., T], *arguments: object) -> T:
        """Do ``work`` in the worker; meanwhile report, and stop DuckDB where the load is to end."""
        self._report(phase)
        future: Future[T] = self.worker.submit(work, *arguments)
        try:
            while not wait([future], _TICK).done:
                self._report(phase)
            return future.result()
        except BaseException:
            while not future.done():
                self._connection.interrupt()
                wait([future], _TICK)
            raise

    def _report(self, phase: str, *, force: bool = False) -> None:
        if self._cancel is not None and self._cancel.is_set():
            raise LoadError("the load was cancelled")
        now = time.monotonic()
        if self._progress is not None and (force or now - self._reported >= _TICK):
            self._reported = now
            self._progress(self._bytes, self._total, self.triples, phase)
