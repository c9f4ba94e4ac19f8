"""A load: files and tables in, one transaction, all or nothing.

What there is to read is found out first (:mod:`.sources`); then :mod:`.loading` reads, collects and stores it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from graphdb.common.config import LOADS
from graphdb.common.errors import LoadError, MemoryLimitError
from graphdb.common.progress import Progress
from graphdb.storage.catalog import Catalog
from graphdb.storage.dictionary.text_compression import compressing
from graphdb.storage.file.scratch import spill_error, spill_folder
from graphdb.storage.loaders.loading import Loading
from graphdb.storage.loaders.sources import Options, Source, described, sources_of

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.graph.changes import Changes
    from graphdb.storage.statistics.known import KnownStatistics

BATCH = 256 << 20
"""Bytes of memory for what is collected before it goes to DuckDB, where nothing else is said."""

_LONGEST = 20 << 10
"""Bytes that texts may have in the mean, where :data:`LOADS` are enough: DuckDB holds 2,048 in a row, and more."""


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a load did: ``triples`` read, of which ``new_triples`` were not there before; ``errors`` lines skipped.

    >>> LoadReport(9, 7, 1, 0, 0.1, rows=3).read, LoadReport(1, 1, 1, 0, 0.1).read
    ('3 rows as 9 triples', '1 triple')
    """

    triples: int
    new_triples: int
    files: int
    errors: int
    seconds: float
    changes: Changes | None = field(default=None, repr=False, compare=False)
    """The triples that are new, for what follows them; None where they are many."""
    rows: int = 0
    """Rows of tables, bad ones with them."""

    @property
    def read(self) -> str:
        """What was read, in words."""
        triples = f"{self.triples:,} triple{'s' if self.triples != 1 else ''}"
        return f"{self.rows:,} row{'s' if self.rows != 1 else ''} as {triples}" if self.rows else triples


def load(
    connection: duckdb.DuckDBPyConnection,
    catalog: Catalog,
    data: Any,
    options: Options | None = None,
    progress: Progress | None = None,
    known: KnownStatistics | None = None,
    changed: Callable[[Sequence[Changes | None]], None] | None = None,
) -> LoadReport:
    """Load files and tables into the database, in one transaction.

    Parameters
    ----------
    data
        A path or several (wildcards are expanded, ``-`` is standard input), a data frame, a NetworkX graph, or a
        collection of all of these.
    progress
        Called from this thread, at least five times a second.
    known
        What is known of the database already, and need not be asked.
    changed
        Called with what the load has changed, within its transaction, just before that is committed.

    Raises
    ------
    LoadError
        Where a file cannot be found, read or parsed, or a transaction is open.  Nothing is stored.
    NotSupportedError
        For a format that cannot be read.
    StorageError
        Where the disk is full.  Nothing is stored.
    QueryTimeout
        Past the statement's deadline (:mod:`graphdb.common.stopping`).  Nothing is stored.
    KeyboardInterrupt
        After Ctrl-C.  Nothing is stored.
    """
    import duckdb

    options = options or Options()
    if options.on_error not in ("stop", "skip"):
        raise LoadError(f"on_error is '{options.on_error}'", hint="it can be 'stop' or 'skip'")
    started = time.perf_counter()
    transactions = catalog.transactions
    if transactions.inside:
        raise LoadError("a transaction is open, and a load is one of its own", hint="COMMIT or ROLLBACK first")
    with _spilling(options.spill) as folder, compressing(connection) as long:
        batch = options.batch or BATCH
        memory = max(batch // 2, 128 << 20)
        things, tables = described(connection, data)
        numbers, mappings = count(), [options.mapping]
        described_only = bool(tables) and isinstance(things, list) and not things
        sources = [] if described_only else list(sources_of(things, options, folder, memory, numbers))
        for table in tables:
            mappings.append(table.mapping().beside(mappings))
            of_table = replace(options, mapping=mappings[-1], format=table.format or options.format)
            sources += sources_of(table.data, of_table, folder, memory, numbers)
        transactions.leftovers.append(catalog.end_work)
        try:
            catalog.begin_work(_described(sources))
            with transactions.atomic():
                loading = Loading(connection, catalog, sources, options, batch, folder, long, progress, known)
                transactions.workers.append(loading.close)
                new = loading.run()
                for mapping in mappings:
                    mapping.check()
                loading.close()
                transactions.workers.remove(loading.close)
                catalog.end_work()
                if changed is not None:
                    changed((loading.changes,))
            transactions.leftovers.remove(catalog.end_work)
        except BaseException as error:
            with suppress(duckdb.Error):
                catalog.end_work()
                transactions.leftovers.remove(catalog.end_work)
            if isinstance(error, duckdb.OutOfMemoryException):
                raise MemoryLimitError(
                    f"the load needs more memory than memory_limit allows: {str(error).splitlines()[0]}",
                    hint=f"raise memory_limit; into an empty graph {LOADS} is enough for any size,"
                    f" where edges have no properties and texts less than {_LONGEST >> 10} KiB each",
                ) from None
            raise
    seconds = time.perf_counter() - started
    return LoadReport(loading.triples, new, len(sources), loading.errors, seconds, loading.changes, loading.rows)


def _described(sources: list[Source]) -> str:
    """What a load loads, for those who find that it was killed."""
    names = ", ".join(source.name for source in sources[:3])
    more = f" and {len(sources) - 3} more" if len(sources) > 3 else ""
    return f"loading {names}{more} (process {os.getpid()}, {time.strftime('%Y-%m-%d %H:%M:%S')})"


@contextmanager
def _spilling(folder: str | None) -> Iterator[str]:
    """A directory of our own for what does not fit into memory; it is gone afterwards.

    Readers tell what they cannot read; an OSError that gets here is of what they could not write there.
    """
    with spill_folder(folder) as made:
        try:
            yield str(made)
        except OSError as error:
            raise spill_error(folder, error) from error
