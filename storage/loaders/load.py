"""A load: files in, one transaction, all or nothing.

Files are read ahead by a thread (:mod:`.files`), parsed into batches of distinct terms and triples
(:mod:`.ntriples`), the terms numbered against the dictionary (:mod:`graphdb.storage.dictionary`), and the triples
staged.  At the end the new ones among them are appended, sorted by (label, subject, object), and the statistics of
their labels brought up to date.

A batch grows until it takes :data:`BATCH` bytes, so memory does not grow with the files.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from graphdb.errors import LoadError
from graphdb.storage import dictionary, statistics
from graphdb.storage.catalog import Catalog, in_transaction
from graphdb.storage.loaders.files import BLOCK, DataFile, blocks, find

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.loaders.ntriples import BadLine, Batch

T = TypeVar("T")

BATCH = 512 << 20
"""Bytes of terms and triples that are collected before they go to DuckDB."""

_TICK = 0.1
"""Seconds between two reports of progress, and between two looks at ``cancel``."""

_WIDEST = 10_000
"""Characters of a bad line that are kept."""

_STAGED = "SELECT DISTINCT label, subject, object FROM temp._graphdb_staged"
_SORTED = "ORDER BY label ASC, subject ASC, object ASC"


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


def load(
    connection: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    format: str | None = None,
    on_error: str = "stop",
    progress: Progress | None = None,
    cancel: threading.Event | None = None,
) -> LoadReport:
    """Load RDF files into the database, in one transaction.

    Parameters
    ----------
    paths
        A path or several; wildcards are expanded.
    format
        ``"ntriples"``, where the files' names do not say it.
    on_error
        ``"stop"`` at the first malformed line, keeping nothing, or ``"skip"`` such lines: each becomes a row of the
        table ``load_errors``.
    progress
        Called from this thread, at least five times a second.
    cancel
        Set it from another thread to end the load.

    Raises
    ------
    LoadError
        Where a file cannot be found, read or parsed, the load is cancelled, or a transaction is open.  Nothing is kept.
    NotSupportedError
        For a format that cannot be read yet.
    KeyboardInterrupt
        After Ctrl-C.  Nothing is kept.
    """
    import duckdb

    if on_error not in ("stop", "skip"):
        raise LoadError(f"on_error is '{on_error}'", hint="it can be 'stop' or 'skip'")
    started = time.perf_counter()
    files = find(paths, format)
    if in_transaction(connection):
        raise LoadError("a transaction is open, and a load is one of its own", hint="COMMIT or ROLLBACK first")
    connection.begin()
    loading = _Load(connection, catalog, files, on_error == "skip", progress, cancel)
    try:
        with ThreadPoolExecutor(1, "graphdb-load") as loading.worker:
            new = loading.run()
        connection.commit()
    except BaseException:
        with suppress(duckdb.Error):
            connection.rollback()
        raise
    return LoadReport(loading.triples, new, len(files), loading.errors, time.perf_counter() - started)


class _Load:
    """One load under way.  DuckDB works in ``worker``, so that this thread can report, and stop it."""

    worker: ThreadPoolExecutor

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        files: list[DataFile],
        skip: bool,
        progress: Progress | None,
        cancel: threading.Event | None,
    ) -> None:
        self._connection = connection
        self._catalog = catalog
        self._files = files
        self._skip = skip
        self._progress = progress
        self._cancel = cancel
        self._bytes = 0
        self._total = sum(file.size for file in files)
        self._reported = 0.0
        self._labels = np.empty(0, np.int64)
        self.triples = 0
        self.errors = 0

    def run(self) -> int:
        """Load all files and return how many triples are new."""
        from graphdb.storage.loaders.ntriples import Parser

        self._connection.execute("CREATE TEMP TABLE _graphdb_staged (label BIGINT, subject BIGINT, object BIGINT)")
        parser = Parser(stop=not self._skip)
        number = self._catalog.next_source()
        before = 0
        for file in self._files:
            parser.open(file.name, number)
            in_file = self.triples
            for block in blocks(file, BLOCK):
                bad = self._wait("parsing", parser.feed, block.text)
                self._bytes = before + block.consumed
                self.triples += parser.fresh
                if bad:
                    self._note(bad)
                if parser.size > BATCH:
                    self._wait("storing terms", self._store, parser.take())
            self._catalog.add_source(number, file.name, self.triples - in_file)
            number += 1
            before += file.size
            self._bytes = before
        self._wait("storing terms", self._store, parser.take())
        [(appending,)] = self._connection.execute("SELECT EXISTS (FROM _graphdb.triple)").fetchall()
        new = self._wait("sorting triples", self._append if appending else self._fill)
        if appending:
            self._wait("counting", statistics.append, self._connection, "temp._graphdb_new")
            self._connection.execute("DROP TABLE temp._graphdb_new")
        else:
            self._wait("counting", statistics.refresh, self._connection, self._labels)
        self._connection.execute("DROP TABLE temp._graphdb_staged")
        self._report("done", force=True)
        return new

    def _note(self, bad: list[BadLine]) -> None:
        """Stop at the first bad line, or write all of them to the table ``load_errors``."""
        import pyarrow as pa

        if not self._skip:
            first = bad[0]
            raise LoadError(
                first.message,
                source=first.source,
                line=first.line,
                column=first.column,
                text=first.text,
                hint=first.hint,
            )
        self.errors += len(bad)
        self._catalog.create_load_errors()
        rows = pa.table(
            {
                "file": [line.source for line in bad],
                "line": [line.line for line in bad],
                "column": [line.column for line in bad],
                "message": [line.message for line in bad],
                "text": [line.text[:_WIDEST] for line in bad],
            }
        )
        self._connection.register("_graphdb_bad", rows)
        try:
            self._connection.execute("INSERT INTO main.load_errors SELECT * FROM _graphdb_bad")
        finally:
            self._connection.unregister("_graphdb_bad")

    def _store(self, batch: Batch) -> None:
        """Number the batch's terms and stage its triples."""
        import pyarrow as pa

        ids = _ids(self._connection, batch)
        subjects, labels, objects = (ids[column] for column in batch.triples.T)
        self._labels = np.union1d(self._labels, ids[np.unique(batch.triples[:, 1])])
        self._connection.register("_graphdb_batch", pa.table({"label": labels, "subject": subjects, "object": objects}))
        try:
            self._connection.execute("INSERT INTO temp._graphdb_staged SELECT * FROM _graphdb_batch")
        finally:
            self._connection.unregister("_graphdb_batch")

    def _fill(self) -> int:
        """Write the staged triples into the empty table, sorted, and return their number."""
        [(written,)] = self._connection.execute(f"INSERT INTO _graphdb.triple {_STAGED} {_SORTED}").fetchall()
        return int(written)

    def _append(self) -> int:
        """Append the staged triples that are not there yet, sorted, and return their number."""
        self._connection.execute(
            f"CREATE TEMP TABLE _graphdb_new AS {_STAGED} EXCEPT SELECT label, subject, object FROM _graphdb.triple"
            " WHERE label IN (SELECT unnest($labels::BIGINT[]))",
            {"labels": self._labels.tolist()},
        )
        [(appended,)] = self._connection.execute(
            f"INSERT INTO _graphdb.triple FROM temp._graphdb_new {_SORTED}"
        ).fetchall()
        return int(appended)

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


def _ids(connection: duckdb.DuckDBPyConnection, batch: Batch) -> dictionary.Ids:
    """Return the dictionary's id of each term of ``batch`` (int64[terms]; -1 for annotations)."""
    import pyarrow as pa

    from graphdb.storage.loaders import ntriples_kernels as what

    ids = np.full(len(batch.kinds), -1, np.int64)
    resources = np.flatnonzero(batch.kinds <= what.BLANK)
    ids[resources] = dictionary.number_resources(connection, batch.text.take(pa.array(resources)))
    literals = np.flatnonzero((batch.kinds >= what.PLAIN) & (batch.kinds <= what.TYPED))
    kinds, annotations = batch.kinds[literals], batch.annotations[literals]
    datatype = batch.text.take(pa.array(annotations, mask=kinds != what.TYPED))
    language = batch.text.take(pa.array(annotations, mask=kinds != what.TAGGED))
    ids[literals] = dictionary.number_literals(connection, batch.text.take(pa.array(literals)), datatype, language)
    return ids
