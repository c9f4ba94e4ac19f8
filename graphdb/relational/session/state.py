"""What is open: the connection, the catalog, the state of names and data that statements see, and who else sees it.

What results read of it is in :mod:`graphdb.relational.session.versions`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from graphdb.common.config import Budget
from graphdb.common.duckdb.connection import Connection, SharedDatabase
from graphdb.common.errors import AccessError, ExecutionError, GraphDBError, QueryTimeout, StorageError
from graphdb.common.foreign_errors import own_error
from graphdb.common.progress import Progress
from graphdb.procedures.catalog import standard
from graphdb.relational.session.lazy_catalog import LazyCatalog
from graphdb.relational.session.observed import Observed
from graphdb.relational.session.plan_cache import PlanCache
from graphdb.relational.session.search_path import visiting
from graphdb.relational.session.versions import Version, Versions
from graphdb.storage.persisted.store import PersistedStructures

if TYPE_CHECKING:
    import duckdb

    from graphdb.common.duckdb.transactions import Atomic
    from graphdb.pattern.names import Names
    from graphdb.relational.snapshot import Predecessor, Snapshot
    from graphdb.storage.catalog import Catalog
    from graphdb.storage.graph.changes import Changes
    from graphdb.storage.statistics.degrees import Degrees
    from graphdb.storage.statistics.known import KnownStatistics
    from graphdb.storage.updates.apply import Update

_FOLLOWED = 64
"""Changes that a snapshot follows at once, at most: beyond, writing takes one that it could do without."""

BATCH = 100
"""Triples of a change from which on what queries have derived is brought up to date with it, not by the next query."""

_AT_HOME: AbstractContextManager[tuple[str, ...]] = nullcontext(())


class State:
    """An open file with all that is derived from it.

    Parameters
    ----------
    path
        A database file, or ``":memory:"``.
    budget
        Who gets how much memory.
    spill
        The directory for what does not fit into memory; None for one beside the file.
    read_only
        Open the file for reading only.
    subclasses
        Read a vertex label as itself or any class below it.
    untrusted
        Let no statement reach files or the network.
    shared
        What is used instead of opening the file.
    """

    def __init__(
        self,
        path: str,
        threads: int,
        budget: Budget,
        spill: str | None = None,
        read_only: bool = False,
        subclasses: bool = False,
        untrusted: bool = False,
        shared: SharedDatabase | None = None,
    ) -> None:
        self.path = path
        self.budget = budget
        self.spill = spill
        self.read_only = read_only
        self.subclasses = subclasses
        self.untrusted = untrusted
        self.progress: Progress | bool | None = None
        """Called with how far a statement is; True for a bar."""
        self.batch = budget.graph + budget.bindings
        """Bytes of memory for what a load collects before it goes to DuckDB."""
        self._threads = threads
        self.connection = Connection(path, threads, budget.duckdb, spill, read_only, untrusted, shared)
        self.connection.most_bytes = budget.rows
        self.cancelled = self.connection.cancelled
        """Set to stop the statement that runs."""
        self.transactions = self.connection.transactions
        self.transactions.on_rollback = self.rolled_back
        self.transactions.on_end = self._transaction_ended
        self.observed = Observed(self.connection)
        """What continuous queries learn of the transaction under way."""
        self.transactions.before_commit = self.observed.before_commit
        self.transactions.after_commit = self._committed
        self.procedures = standard()
        """What CALL knows."""
        self.plans: PlanCache[Any] = PlanCache(budget.bindings // 16)
        """Queries that are ready to run again, until what they read of the data changes."""
        self.versions = Versions(self)
        """What results read."""
        self.moved = False
        """Whether SQL went to another schema (``USE``)."""
        self._lazy_snapshot: Snapshot | None = None
        self._lazy_degrees: Degrees | None = None
        self._former: Predecessor | None = None
        self._known: KnownStatistics | None = None
        """What the last change left known of the file, for the next one."""
        self._changed_triples = 0
        """Triples that the statement under way has changed."""
        self._version = self.connection.file.version
        """The version of the file that memory holds; see :class:`graphdb.common.duckdb.open_files.OpenFile`."""
        self._opened_version = self._version
        self._wrote = False
        """Whether the user's transaction has changed the graph."""
        self.load_seconds = 0.0
        """What loads took of the processor here."""
        self.deriving: Callable[[State], None] | None = None
        """What derives something before the file is closed, after loads."""
        self.connection.file.members.add(self)
        self._tables = LazyCatalog(
            self.connection,
            path,
            self.observed.created,
            private=path == ":memory:" and shared is None,
            read_only=read_only,
        )
        self.database = self._tables.database
        alone = path == ":memory:" or shared is not None or untrusted
        try:
            self.persisted = PersistedStructures(
                None if alone else path,
                self._as_opened,
                self.connection.lock,
                self._checkpoint,
                spill,
                self.budget.graph // 8,
            )
            """What was derived of the file when it was open before."""
            if path != ":memory:":
                self._tables.verify()
        except BaseException:
            self.connection.close()
            raise

    def hold(self, timeout: float | None = None) -> AbstractContextManager[object]:
        """Return the lock to hold while a statement runs, after what an interrupted one left half done is undone.

        Raises
        ------
        StorageError
            The database is closed.
        QueryTimeout
            Others held the lock for ``timeout`` seconds.
        """
        connection = self.connection
        lock = connection.lock
        connection.check_open()
        if lock._is_owned():  # type: ignore[attr-defined]  # part of a statement
            if self.procedures.caller is not None:
                raise ExecutionError(
                    "a procedure cannot use the database that calls it", hint="hand what it needs over as arguments"
                )
            return lock
        if timeout is not None:
            if not lock.acquire(timeout=max(timeout, 0.0)):
                raise QueryTimeout(f"the statement waited longer than its timeout of {timeout:g} s for another one")
            lock.release()
        if connection.has_leftovers():
            with lock:
                if connection.has_leftovers():
                    connection.undo_leftovers()
        return _Reading(self, lock) if self._tables.may_lend else lock

    def refresh(self) -> None:
        """Drop what is cached if another connection has changed the graph; called where the lock is held."""
        if self._version != self.connection.file.version and not self.transactions.by_user:
            self.observed.drop()
            self._forget()

    def close(self) -> None:
        """Close the file; what another thread runs is stopped first."""
        if not self.connection.closed:
            self._tables.close()
            self.versions.close()
            try:
                self.persisted.write(closing=True, ahead=self._ahead())
            finally:
                self.connection.close()
            self.connection.file.announce()
            self.connection.file.leave(self)
            self.connection.file.members.discard(self)
            self._lazy_snapshot = self._lazy_degrees = self._former = None
            self.plans.clear()

    def _ahead(self) -> Callable[[], None] | None:
        """Return what derives, before the file is closed, what first queries need most; None where none is due."""
        if self.deriving is None or self.transactions.inside or self._version != self.connection.file.version:
            return None
        return partial(self.deriving, self)

    @property
    def migration_seconds(self) -> float | None:
        """What it took of the processor to bring the file up to date; None where no older version wrote it."""
        return self._tables.migration_seconds

    def _as_opened(self) -> bool:
        """Whether what statements see is the graph that the file had when this process opened it."""
        return (
            self.migration_seconds is None
            and self.connection.file.version == self._opened_version
            and not self.transactions.inside
        )

    def _checkpoint(self) -> bool:
        """Write what is committed to the file itself; return whether that is what statements see here."""
        import duckdb

        if self.transactions.inside or self._version != self.connection.file.version:
            return False
        with suppress(duckdb.Error):  # another connection of this process writes
            self.connection.raw.execute("CHECKPOINT")
            return self._version == self.connection.file.version
        return False

    def interrupt(self) -> None:
        """Stop what runs, from another thread."""
        self.connection.interrupt()

    def update(self, raw: duckdb.DuckDBPyConnection, known: KnownStatistics) -> Update:
        """Return what changes the graph, within :meth:`writing`; ``known`` is known of the file."""
        from graphdb.storage.updates.apply import Scratch, Update

        return Update(raw, known, self.transactions.touch, Scratch(self.batch // 2, self.spill))

    def writing(self) -> Atomic:
        """Return a context manager for a statement that changes the graph: all of it is written, or nothing.

        Caches follow the changes within it (:meth:`changed`), and are dropped if they are rolled back.

        Raises
        ------
        ExecutionError, StorageError
            See :meth:`admit`.
        """
        self.admit()
        return self.transactions.atomic()

    def admit(self) -> None:
        """Let a statement change the graph.

        Raises
        ------
        ExecutionError
            The user's transaction has failed.
        StorageError
            Another connection of this process to the same file is in the way.
        """
        transactions, file = self.transactions, self.connection.file
        transactions.check()
        self._tables.keep()
        if transactions.by_user and file.version != self._version:
            raise StorageError(
                "another connection of this process has changed the graph since this transaction began",
                hint="ROLLBACK, and run it again",
            )
        file.enter(self, until_it_ends=transactions.by_user)
        self.versions.before_write()

    def about_to_change(self) -> None:
        """See :class:`graphdb.common.duckdb.open_files.Member`: what results here read of is about to change."""
        if not self.connection.closed and not self.transactions.by_user:
            self.versions.before_write()

    def before_end(self) -> None:
        """Let results of the user's transaction be read, if what it saw is not what comes after it."""
        if self._version != self.connection.file.version and not self.transactions.failed:
            self.versions.read_out()

    def _transaction_ended(self) -> None:
        """The user's transaction was committed or rolled back."""
        file = self.connection.file
        if self._wrote and not self.transactions.failed:
            file.version += 1
            self._version = file.version
        self._wrote = False
        file.leave(self)

    def require_files(self) -> None:
        """Raise :class:`AccessError` where files are out of reach, as DuckDB has it (``enable_external_access``)."""
        ((allowed,),) = self.connection.rows("SELECT system.main.current_setting('enable_external_access')")
        if not allowed:
            raise AccessError(
                "files are out of reach of this database",
                hint="it is open for untrusted queries, or enable_external_access is false",
            )

    def catalog(self) -> Catalog:
        """The catalog, to be written; its tables are created when first needed.

        Raises
        ------
        StorageError
            The file was made by a newer version, or is open for reading only and has no tables, or old ones.
        """
        return self._tables.catalog()

    def read_catalog(self) -> Catalog:
        """The catalog, to be read: of a file without tables, empty ones for the statement under way; see
        :mod:`graphdb.relational.session.lazy_catalog`, and :meth:`catalog` for the errors.
        """
        return self._tables.reading()

    def statement_ends(self) -> None:
        """Leave a file without a graph as it was, where a statement only read it."""
        self._tables.give_back()

    def has_continuous(self) -> bool:
        """See :meth:`.LazyCatalog.has_continuous`."""
        return self._tables.has_continuous()

    def unfinished(self) -> str | None:
        """See :meth:`.LazyCatalog.unfinished`."""
        return self._tables.unfinished()

    def names(self) -> Names:
        """The names that statements see."""
        with self.hold():
            return self.snapshot().names

    def snapshot(self) -> Snapshot:
        """The state of names and data that statements see, until the next load."""
        if self._version != self.connection.file.version:
            self.refresh()
        if self._lazy_snapshot is None:
            from graphdb.relational.snapshot import take_snapshot

            self.transactions.check()
            self._lazy_snapshot = take_snapshot(
                self.connection,
                self.read_catalog(),
                self.budget.graph - self.degrees().nbytes,
                self._former,
                subclasses=self.subclasses,
                empty=self._tables.empty,
                degrees=self.degrees(),
                procedures=self.procedures,
                persisted=self.persisted.of_state(),
            )
            self._former = None
        return self._lazy_snapshot

    def degrees(self) -> Degrees:
        """How many triples vertices had after the last change, where changes asked for it before."""
        if self._lazy_degrees is None:
            from graphdb.storage.statistics.degrees import Degrees

            self._lazy_degrees = Degrees(self.budget.graph // 4, empty=self._tables.empty)
        return self._lazy_degrees

    def at_home(self) -> AbstractContextManager[tuple[str, ...]]:
        """Work where our tables are, whatever USE said; yields (database, schema) that SQL is in, if it moved."""
        return visiting(self.connection, self.transactions, self.database) if self.moved else _AT_HOME

    def changed(self, changes: Sequence[Changes | None] = (None,)) -> None:
        """Drop what was derived, here and in other connections of this process to the same file; see :meth:`forget`.

        It is called within the transaction, before its end: so what memory holds is never older than the file.
        """
        self.forget(changes)
        if self.transactions.by_user:
            self._wrote = True
        else:
            self.connection.file.version += 1
            self._version = self.connection.file.version

    def written(self) -> None:
        """A statement's changes are complete: where they are many, what queries have derived takes them in now.

        It is called within the transaction, so that what stops it rolls all of it back.
        """
        self.changed(())
        changed, self._changed_triples = self._changed_triples, 0
        if self._former is not None and changed >= BATCH:
            self.snapshot().catch_up(self._threads)

    def known_statistics(self) -> KnownStatistics:
        """What writing need not ask the file: after a change that tells it, no snapshot is taken for that."""
        if self._known is None or (self._former is not None and len(self._former.changes) > _FOLLOWED):
            self._known = self.snapshot().known_statistics
        return self._known

    def forget(self, changes: Sequence[Changes | None] = (None,), known: KnownStatistics | None = None) -> None:
        """Drop what was derived from names and data, because they changed.

        Where all changes are known (none is None), the next snapshot takes over what they leave as it is.  ``known`` is
        what is known of the file after them.
        """
        self.observed.note(changes)
        self._forget(changes)
        self._known = known if changes else self._known

    def _forget(self, changes: Sequence[Changes | None] = (None,)) -> None:
        self.persisted.forget()
        if changes:
            self._known = None
        self._changed_triples += sum(change.triples for change in changes if change is not None)
        if not self.transactions.by_user:
            self._version = self.connection.file.version
        if self._lazy_snapshot is not None:
            from graphdb.relational.snapshot import Predecessor

            self._former = Predecessor(self._lazy_snapshot)
        if self._lazy_degrees is not None:
            self._lazy_degrees.follow(changes)
        known = None if self._former is None or self.subclasses else self._former.snapshot
        self.plans.follow(known, changes)
        if self._former is not None:
            self._former.changes.extend(change for change in changes if change is not None)
            if None in changes:
                self._former.snapshot.properties.drop()
                self._former.snapshot.edges.drop()
                self._former = None
        self._lazy_snapshot = None
        self._tables.empty = False

    @contextmanager
    def diagnosed(self, text: str | None = None) -> Iterator[None]:
        """Tell what is damaged, where an error that is not one of ours comes of a damaged file."""
        try:
            yield
        except GraphDBError:
            raise
        except Exception as error:
            diagnosed = self.diagnosis(error, text)
            if diagnosed is error:
                raise
            raise diagnosed from error

    def diagnosis(self, error: Exception, text: str | None = None) -> Exception:
        """Return what to raise for an error of others: it as ours, what is damaged in the file, or itself."""
        from graphdb.storage.file.verify import damaged
        from graphdb.storage.integrity import problem

        own = own_error(error, text)
        if own is not None:
            return own
        found = None
        with suppress(Exception), self.at_home(), self.connection.guard() as raw:
            found = problem(raw)
        return error if found is None else damaged(found)

    def version(self) -> Version:
        """What a result of now reads: see :mod:`graphdb.relational.session.versions`."""
        return self.versions.current()

    def set_differently(self) -> None:
        """Drop what depends on DuckDB's settings."""
        self.persisted.stop()
        if self._lazy_snapshot is not None:
            self._lazy_snapshot.lookup.drop()
            self._lazy_snapshot.properties.drop_arrays()

    def _committed(self) -> None:
        """A transaction was committed, with what was created in it."""
        self.connection.calls.committed()
        self.connection.windows.committed()
        self.observed.after_commit()

    def rolled_back(self) -> None:
        """Forget what was read or created in a transaction that is no more, the catalog's tables included."""
        self.observed.rolled_back()
        self._forget()
        self.connection.calls.rolled_back()
        self.connection.windows.rolled_back()
        self._tables.rolled_back()
        self._wrote = False


class _Reading:
    """The lock while something runs that may read a file without a graph, which it leaves as it was."""

    def __init__(self, state: State, lock: threading.RLock) -> None:
        self._state, self._lock = state, lock

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        try:
            self._state.statement_ends()
        finally:
            self._lock.release()
