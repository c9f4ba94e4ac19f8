"""Loads and VACUUM: work on the file as a whole, after which caches are dropped."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from graphdb.common.errors import ExecutionError, StorageError
from graphdb.common.progress import Progress, watching
from graphdb.relational.session.versions import LARGE

if TYPE_CHECKING:
    from graphdb.relational.session.state import State
    from graphdb.storage.loaders.load import LoadReport
    from graphdb.storage.loaders.sources import Options
    from graphdb.storage.updates.vacuum import Reclaimed


def load(
    state: State,
    data: Any,
    options: Options,
    progress: Progress | bool | None = None,
    timeout: float | None = None,
) -> LoadReport:
    """Load files and tables; see :meth:`graphdb.database.Database.load`.  Nothing that queries need is imported."""
    from graphdb.relational.session.ahead import derive_ahead
    from graphdb.storage.loaders.load import load
    from graphdb.storage.loaders.sources import names_files
    from graphdb.storage.statistics.known import KnownStatistics

    if names_files(data):
        state.require_files()
    state.refresh()
    known = KnownStatistics(degrees=state.degrees())
    watched = watching(state.progress if progress is None else progress)
    with state.at_home(), state.connection.guard(timeout) as raw, watched as report:
        state.admit()
        state.connection.windows.close_unused()  # the user's SQL may be what is loaded
        used = time.process_time()
        found = load(raw, state.catalog(), data, options, report, known, state.changed)
        state.load_seconds += time.process_time() - used
        state.deriving = derive_ahead
        return found


def vacuum(state: State, timeout: float | None = None) -> Reclaimed:
    """Reclaim the space of terms that nothing refers to, and compact the file.

    See :mod:`graphdb.storage.updates.vacuum`.

    Raises
    ------
    ExecutionError
        A transaction is open.
    StorageError
        The database is open for reading only.
    """
    import duckdb

    from graphdb.storage.dictionary.text_compression import compressing
    from graphdb.storage.updates.vacuum import compact, is_sparse, vacuum

    if state.read_only:
        raise StorageError("the database is open read-only", hint="open it for writing to vacuum it")
    state.refresh()
    state.catalog()
    with state.at_home(), state.connection.guard(timeout) as raw:
        if state.transactions.inside:
            raise ExecutionError(
                "VACUUM cannot run within a transaction", hint="COMMIT or ROLLBACK first, then run it by itself"
            )
        state.versions.read_out(LARGE)
        with compressing(raw) as long:
            with state.writing():
                found = vacuum(raw, long)
                if found:
                    state.changed()
            with suppress(duckdb.TransactionException):  # what somebody still reads comes back later
                raw.execute("CHECKPOINT")
                if is_sparse(raw):
                    with state.transactions.atomic():
                        compact(raw)
                    raw.execute("CHECKPOINT")
    return found
