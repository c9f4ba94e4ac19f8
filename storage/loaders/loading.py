"""One load under way: from files and tables to distinct terms and triples, and into the database.

Whatever the format, a thread reads ahead and turns what it reads into lines of N-Triples (:mod:`.streams`); these are
parsed by several threads (:mod:`.ntriples.reader`) and collected into a batch of distinct terms and triples
(:mod:`.terms.collect`). Where the graph was empty, what was collected is written at once
(:mod:`graphdb.storage.updates.bulk`), as one batch: several are made one by :mod:`.terms.unify`.  Else each batch is
numbered against the dictionary and staged (:mod:`graphdb.storage.updates.append`); at the end the new triples among
them are appended, sorted by (label, subject, object), and the statistics of their labels brought up to date.

Tables that fit into memory are read as columns, numbered meanwhile (:mod:`.tables.encoding`) and made triples of while
DuckDB stores their terms (:mod:`.tables.assembly`).

A batch grows until its terms take what they may of the load's memory, and texts and triples are spilled, so memory
does not grow with the files.
"""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from graphdb.common import arrow
from graphdb.common.progress import Progress
from graphdb.common.stopping import check_stop
from graphdb.storage.arrays.batch import LITERAL, ids
from graphdb.storage.arrays.spill import SpillFile
from graphdb.storage.catalog import Catalog
from graphdb.storage.dictionary.terms import term_counts
from graphdb.storage.dictionary.text_compression import LONG
from graphdb.storage.file.prepared_sql import execute
from graphdb.storage.graph.changes import MOST
from graphdb.storage.loaders.sources import Options, Source
from graphdb.storage.loaders.streams import BadLine, Block, blocks
from graphdb.storage.updates import bulk
from graphdb.storage.updates.append import Appender
from graphdb.storage.updates.parallel_edges import edge_rows
from graphdb.storage.updates.vacuum import is_worth, vacuum
from graphdb.storage.updates.worker import Task, Worker

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.arrays.batch import Batch, Edges, Terms
    from graphdb.storage.graph.changes import Changes
    from graphdb.storage.loaders.ntriples.reader import Parsed, Parser
    from graphdb.storage.loaders.tables.assembly import Assembly
    from graphdb.storage.loaders.tables.staging import Staged, Staging
    from graphdb.storage.loaders.terms.collect import Collector
    from graphdb.storage.statistics.known import KnownStatistics
    from graphdb.storage.updates.parallel_edges import EdgeRows

T = TypeVar("T")

_LANES = 4
"""Threads that parse, at most."""

_SMALL = 1 << 16
"""Bytes of files that one thread parses."""

_LARGE = 8 << 20
"""Bytes of tables from which on two are read at a time."""

_COLUMNS = 4
"""How many bytes tables take while they become triples, for each byte of their columns."""

_TICK = 0.1
"""Seconds between two reports of progress, and between two looks at ``cancel`` and the deadline."""

_STOPS = 0.02
"""Seconds between two interrupts of what DuckDB is at, once nobody waits for it."""

_WIDEST = 1000
"""Characters of a bad line that are stored, around the place that is wrong: a line may have thousands of errors."""


@dataclass(frozen=True, slots=True)
class _ParserThread:
    """A parser and its thread."""

    parser: Parser
    thread: Worker


@dataclass(frozen=True, slots=True)
class _StagingThread:
    """What reads tables as columns, and its thread."""

    staging: Staging
    thread: Worker


@contextmanager
def _without_garbage() -> Iterator[None]:
    """Let modules be imported: what they make stays, and looking for garbage among it takes a fifth of their time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _fit(sources: Sequence[Source], memory: int) -> bool:
    """Whether all tables fit into memory as columns, and what is read as lines is small enough to come after them."""
    if any(source.stage is None and not source.size for source in sources):  # nobody knows how much comes
        return False
    return sum(_COLUMNS * (source.memory if source.stage else source.size) for source in sources) <= memory


Together: TypeAlias = "tuple[list[Staged], list[int]]"
"""Tables that were read as columns, and how many rows each of their files has."""


def _read_columns(sources: Sequence[Source], staging: Staging) -> Together | None:
    """Read one table, or small files together; None for what must be read in another way."""
    if len(sources) > 1:
        found = [source.file for source in sources if source.file is not None]
        return staging.tables([file for file, _ in found], found[0][1])
    assert sources[0].stage is not None
    staged = sources[0].stage(staging)
    return None if staged is None else ([staged], [staged.rows])


class Loading:
    """One load under way.

    Blocks are scheduled round robin on parsers, each with a thread of its own; this thread schedules, collects the
    results in the order of the file, reports progress, and stops the parsers.  One more thread works with DuckDB.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        catalog: Catalog,
        sources: list[Source],
        options: Options,
        memory: int,
        folder: str,
        long: Callable[[], None],
        progress: Progress | None,
        known: KnownStatistics | None,
    ) -> None:
        self._connection = connection
        self._catalog = catalog
        self._sources = sources
        self._long = long
        self._skip = options.on_error == "skip"
        self._progress = progress
        self._bytes = 0
        self._total = sum(source.size for source in sources)
        self._reported = 0.0
        self._lanes: list[_ParserThread] = []
        self._store, self._sorter, self._second = Worker(), Worker(), Worker()
        self._memory = memory
        self._folder = Path(folder)
        self._collector: Collector | None = None
        self._batches: list[Batch] = []
        self._reclaimed = bool(is_worth(connection) and vacuum(connection, long))
        self._first = bulk.is_empty(connection)
        known = None if self._reclaimed else known
        self._appender = Appender(connection, self._folder, max(self._memory // 2, 1), known)
        self._as_columns = _fit(sources, self._memory)
        self._readers: list[_StagingThread] = []
        self._tables: list[Task[None]] = []
        self._followed = True
        self.triples = 0
        self.rows = 0
        self.errors = 0

    def close(self) -> None:
        """End the threads; what DuckDB is at is interrupted.  Where that is interrupted, it can be done again."""
        threads = *(reader.thread for reader in self._readers), self._store, self._sorter, self._second
        threads += tuple(lane.thread for lane in self._lanes)
        for thread in threads:  # first: all of them end meanwhile
            thread.stop()
        for thread in threads:
            thread.close(self._interrupt, every=_STOPS)
        for reader in self._readers:
            reader.staging.close()
        if self._collector is not None:
            self._collector.close()
        for batch in self._batches:
            batch.close()

    @property
    def changes(self) -> Changes | None:
        """What the load changed, once it is done; None where that cannot be followed."""
        return None if self._reclaimed or not self._followed else self._appender.changes

    def _interrupt(self) -> None:
        self._connection.interrupt()
        for reader in self._readers:
            reader.staging.stop()

    def run(self) -> int:
        """Load everything and return how many triples are new."""
        first = self._catalog.next_source()
        read: list[int] = []
        for sources, staging in self._staged():
            staged = self._wait("reading", staging) if staging is not None else None
            if staged is None and len(sources) > 1:
                for source in sources:
                    alone = partial(_read_columns, [source], self._readers[0].staging)
                    self._add([source], self._wait("reading", self._store.submit(alone)), read, first)
            else:
                self._add(sources, staged, read, first)
        if read:
            self._catalog.add_sources(first, [source.name for source in self._sources], read)
        new = self._stored(self._collected())
        self._report("done", force=True)
        return new

    def _add(self, sources: Sequence[Source], staged: Together | None, read: list[int], first: int) -> None:
        """Number the values of what was read of some sources as columns; read another one as lines."""
        before = self._bytes
        if staged is None:
            [source] = sources
            in_source = self.triples
            # The blank nodes of tables belong to the load: edge tables name those of node tables.
            self._read(source, first + (0 if source.table else len(read)), before)
            read.append(self.triples - in_source)
        else:
            tables, rows = staged
            for table in tables:
                names, literals = self._encoder.add(table)
                self._tables += [self._sorter.submit(names), self._second.submit(literals)]
            self.rows += sum(rows)
            read += rows
        self._bytes = before + sum(source.size for source in sources)

    def _collecting(self) -> Collector:
        """Return what collects the terms of lines, and begin with it: tables of columns need neither it nor parsers."""
        if self._collector is None:
            with _without_garbage():
                from graphdb.storage.loaders.ntriples.reader import Parser
                from graphdb.storage.loaders.terms.collect import Collector, secret

            lanes = 1
            if self._total > _SMALL or not all(source.size for source in self._sources):
                [(threads,)] = execute(self._connection, "SELECT current_setting('threads')").fetchall()
                lanes = min(int(threads) + 1, _LANES)  # one waits for its block to be collected
            self._key = secret()
            self._collector = Collector(str(self._folder), self._memory)
            self._lanes = [_ParserThread(Parser(self._key, stop=not self._skip), Worker()) for _ in range(lanes)]
        return self._collector

    def _collected(self) -> bool:
        """Close what was collected of lines, and return whether it is large."""
        if self._collector is None and self._tables:
            return False
        collector = self._collecting()
        large = bool(self._batches or (not self._first and (collector.spilled or self.triples > MOST)))
        self._batches.append(collector.cut() if large else collector.take())
        self._compress(self._batches)
        return large

    def _compress(self, batches: Sequence[Batch]) -> None:
        """Have literals compressed as they should, where they are long."""
        texts = [texts for batch in batches for texts in batch.literals]
        if sum(len(piece.data) for piece in texts) > LONG * sum(map(len, texts)):
            self._long()

    def _staged(self) -> Iterator[tuple[Sequence[Source], Task[Together | None] | None]]:
        """Yield the sources, with the work that reads tables as columns where that can be and memory allows it.

        Small files are read together.  Of large tables two are read at a time: much of reading one goes on in a single
        thread.
        """
        tables = [source for source in self._sources if source.stage is not None] if self._as_columns else []
        groups: Iterator[list[Source]] = ([source] for source in self._sources)
        if tables:
            from graphdb.storage.loaders.tables.encoding import Encoder
            from graphdb.storage.loaders.tables.small_files import groups as together
            from graphdb.storage.loaders.tables.staging import Staging, staging_database

            groups = together(self._sources, lambda source: source.file)
            self._encoder = Encoder()
            connection = staging_database(str(self._folder), max(self._memory // 2, 128 << 20))
            self._readers.append(_StagingThread(Staging(connection, str(self._folder)), self._store))
            if sum(source.memory for source in tables) > _LARGE and len(tables) > 1:
                self._readers.append(_StagingThread(Staging(connection.cursor(), str(self._folder)), Worker()))
        ahead: deque[tuple[Sequence[Source], Task[Together | None] | None]] = deque()
        readers = cycle(self._readers)
        for sources in groups:
            reading = None
            if tables and sources[0].stage is not None:
                reader = next(readers)
                reading = reader.thread.submit(partial(_read_columns, sources, reader.staging))
            ahead.append((sources, reading))
            if len(ahead) >= len(self._readers):
                yield ahead.popleft()
        yield from ahead

    def _stored(self, large: bool) -> int:
        """Write what was collected, of tables and of all else; return how many triples are new."""
        tables, self._tables = self._tables, []
        if not tables:
            if self._first:
                return self._write(self._work("storing terms", self._whole))
            return self._append(large=large)
        from graphdb.storage.loaders.tables.assembly import Assembly

        for encoded in tables:
            self._wait("reading", encoded)
        rest = bool(self.triples)
        connection, spill = self._readers[0].staging.connection, SpillFile(self._folder / "tables", 2 * self._memory)
        assembly = self._work("storing terms", partial(Assembly, connection, self._encoder, spill, alone=self._first))
        del self._encoder
        self._compress([assembly.batch])
        triples = partial(self._triples_of, assembly)
        if not self._first:
            return self._append(large=large, tables=(assembly.batch, self._work("storing terms", triples)))
        new = self._write(assembly.batch, lambda: edge_rows(triples(), ids))
        if rest:
            self._first = self._followed = False
            self._appender = Appender(self._connection, self._folder, max(self._memory // 2, 1))
            new += self._append(large=large)
        return new

    def _triples_of(self, assembly: Assembly) -> Edges:
        """Make the triples of tables, and count them; return the edges that need more."""
        edges = assembly.write_triples()
        self.triples += sum(map(len, assembly.batch.triples)) + len(edges) + len(edges.owners)
        return edges

    def _write(self, whole: Terms, edges: Callable[[], EdgeRows] | None = None) -> int:
        """Write what was collected at once; ``edges`` completes its triples and returns the edges that need more."""
        writer = bulk.BulkWriter(self._connection, whole, self._folder, max(self._memory // 2, 1), empty=self._first)
        rows = self._sorter.submit(edges) if edges is not None else None
        ahead = self._sorter.submit(writer.sort)  # DuckDB writes terms with little for a second thread to do
        self._work("storing terms", writer.write_terms)
        if rows is not None:
            self._work("storing graphs and edges", partial(writer.write_edges, self._wait("storing terms", rows)))
        self._wait("storing terms", ahead)
        if whole.others:
            self._work("storing graphs and edges", writer.write_others)
        new = self._work("sorting triples", partial(writer.write_triples, self._sorter))
        self._work("counting", writer.write_statistics)
        return new

    def _append(self, *, large: bool, tables: tuple[Batch, Edges] | None = None) -> int:
        """Append what was collected to a graph that was not empty."""
        if tables is not None:
            self._work("storing terms", partial(self._appender.add, *tables))
        if large and tables is None and self._fits():
            whole = self._work("storing terms", self._whole)
            if not whole.others and bulk.can_grow(self._connection, self.triples, max(self._memory // 2, 1)):
                return self._write(whole)
            self._work("storing terms", partial(self._appender.add_new, whole))
        else:
            for batch in self._batches:
                self._work("storing terms", partial(self._appender.add, batch))
        new = self._work("sorting triples", self._appender.append)
        self._work("counting", self._appender.count)
        return new

    def _fits(self) -> bool:
        """Whether there are codes enough for all terms that there may be."""
        return sum(sum(batch.counts) for batch in self._batches) + max(term_counts(self._connection)) < LITERAL

    def _whole(self) -> Terms:
        """Return the batches as one."""
        if self._first and len(self._batches) == 1:
            return self._batches[0]
        from graphdb.storage.loaders.terms.unify import PARTS, Union

        if self._first:
            return Union(self._batches)
        from graphdb.storage.loaders.terms.stored import Known

        with closing(Known(self._connection, self._key, PARTS, self._folder, self._memory // 8)) as known:
            return Union(self._batches, known)

    def _read(self, source: Source, number: int, before: int) -> None:
        """Schedule the blocks of a source on the parsers; ``number`` is that of its blank nodes."""
        self._collecting()
        for lane in self._lanes:
            lane.parser.open(source.name, number, quads=source.quads)
        scheduled: deque[tuple[Block, Task[Parsed]]] = deque()
        lines, first = 0, True
        for block, lane in zip(blocks(source.produce, partial(self._report, "reading")), cycle(self._lanes)):
            if len(scheduled) == len(self._lanes):
                lines += self._parsed(*scheduled.popleft(), source, before, lines)
            if block.bad:
                self._note(block.bad)
            if block.prefixes:
                self._catalog.add_prefixes(dict(block.prefixes))
            scheduled.append((block, lane.thread.submit(partial(lane.parser.parse, block.text, first=first))))
            first = False
        while scheduled:
            lines += self._parsed(*scheduled.popleft(), source, before, lines)

    def _parsed(self, block: Block, task: Task[Parsed], source: Source, before: int, lines: int) -> int:
        """Collect what a lane has made of a block, which comes after ``lines`` lines; return how many it has."""
        parsed = self._wait("parsing", task)
        self._bytes = max(self._bytes, before + min(block.consumed, source.size))
        self.triples += len(parsed.rows)
        self.rows += block.rows
        if parsed.bad:
            # Of what another reader has written anew as lines, the places would be those of its text.
            self._note(
                [
                    replace(bad, line=lines + (bad.line or 0)) if source.plain else replace(bad, line=None, column=None)
                    for bad in parsed.bad
                ]
            )
        collector = self._collecting()
        collector.add(parsed)
        if collector.full:
            self._batches.append(collector.cut())
        return parsed.lines

    def _note(self, bad: list[BadLine]) -> None:
        """Stop at the first bad line, or write all of them to the table ``load_errors``."""
        if not self._skip:
            raise bad[0].error()
        self.errors += len(bad)
        self._catalog.create_load_errors()
        columns = {
            "file": arrow.array([line.source for line in bad], arrow.STRING),
            "line": arrow.array([line.line for line in bad], arrow.INT64),
            "column": arrow.array([line.column for line in bad], arrow.INT64),
            "message": arrow.array([line.message for line in bad], arrow.STRING),
            "text": arrow.array([_excerpt(line) for line in bad], arrow.STRING),
        }
        self._connection.register("_graphdb_bad", arrow.table(columns))
        try:
            self._connection.execute("INSERT INTO main.load_errors SELECT * FROM _graphdb_bad")
        finally:
            self._connection.unregister("_graphdb_bad")

    def _work(self, phase: str, work: Callable[[], T]) -> T:
        """Let DuckDB work."""
        return self._wait(phase, self._store.submit(work))

    def _wait(self, phase: str, task: Task[T]) -> T:
        """Wait for a result, and report meanwhile."""
        self._report(phase)
        while not task.wait(_TICK):
            self._report(phase)
        return task.result()

    def _report(self, phase: str, *, force: bool = False) -> None:
        check_stop()
        now = time.monotonic()
        if self._progress is not None and (force or now - self._reported >= _TICK):
            self._reported = now
            self._progress(self._bytes, self._total, self.triples, phase)


def _excerpt(line: BadLine) -> str | None:
    """Return a bad line, or what stands around the place that is wrong in it where it is long."""
    if line.text is None or len(line.text) <= _WIDEST:
        return line.text
    start = min(max((line.column or 1) - 1 - _WIDEST // 2, 0), len(line.text) - _WIDEST)
    end = start + _WIDEST
    return "…" * (start > 0) + line.text[start:end] + "…" * (end < len(line.text))
