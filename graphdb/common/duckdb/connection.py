"""The one connection to DuckDB: a lock around it, its errors as ours, and ways in and out for arrays.

Everything that talks to DuckDB goes through here, so that one statement runs at a time, Ctrl-C and timeouts reach
it, and every error of DuckDB's becomes one of ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from graphdb.common.duckdb import progress_bar
from graphdb.common.duckdb.errors import failure, is_signal, is_stop, opening_error, refuse_no_spill, refuse_others
from graphdb.common.duckdb.fetch import abandon, is_open, rows_of
from graphdb.common.duckdb.identifiers import OURS, quoted
from graphdb.common.duckdb.open_files import made, opened
from graphdb.common.duckdb.parsed import parsed
from graphdb.common.duckdb.temporary import PromisedTables, TemporaryTable
from graphdb.common.duckdb.transactions import ABORTED, TOUCH, Transactions, failed_transaction
from graphdb.common.duckdb.udf import Calls
from graphdb.common.duckdb.watchdog import WATCHDOG
from graphdb.common.duckdb.windows import View, Windows
from graphdb.common.errors import StorageError
from graphdb.common.stopping import check_stop, deadline, no_limits, stopping

if TYPE_CHECKING:
    from types import TracebackType

    import duckdb
    from numpy.typing import NDArray

    from graphdb.common.arrow import Table

T = TypeVar("T")

_CLOSE_TIMEOUT = 10.0
"""Seconds that closing waits for a statement to stop."""


@dataclass(frozen=True, slots=True)
class SharedDatabase:
    """A database of somebody's connection of DuckDB's: its name, or None where the connection has no other one."""

    connection: duckdb.DuckDBPyConnection
    name: str | None


class Connection:
    """DuckDB, opened once.

    Parameters
    ----------
    path
        A database file, or ``":memory:"``.
    threads
        DuckDB's threads; None for all cores.
    memory_limit
        DuckDB's share of memory in bytes; None for DuckDB's own default.
    spill
        The directory that DuckDB spills to; None for its own default, beside the file.
    read_only
        Open the file for reading only; several processes may.
    untrusted
        Let SQL reach no other file, no network and no extension, nor any setting: DuckDB holds to that.
    shared
        What is used instead of opening ``path``, with its settings.

    Raises
    ------
    StorageError
        The file is not a database, is locked by another process, or cannot be created there; or ``spill`` is no folder.
    """

    def __init__(
        self,
        path: str,
        threads: int | None = None,
        memory_limit: int | None = None,
        spill: str | None = None,
        read_only: bool = False,
        untrusted: bool = False,
        shared: SharedDatabase | None = None,
    ) -> None:
        import duckdb

        if not path:
            raise StorageError("the database needs a path", hint="for one in memory: graphdb.connect()")
        if re.match(r"[A-Za-z]\w*:", path):
            raise StorageError(f"'{path}' is no path of a file", hint=f"if it is meant as one: './{path}'")
        self.path = path
        self.closed = False
        self._process = os.getpid()
        self._deadline: float | None = None
        """When (by ``time.monotonic``) the work under way must end."""
        self.cancelled = threading.Event()
        """Set to stop the statement under way."""
        self._discarded: list[str] = []
        self._depth = 0
        """How many guards are entered, each within the one before."""
        self.most_bytes: int | None = None
        """What the rows that a statement returns may take of memory; None for any."""
        self._ending = False
        """Whether the statement under way is ending already: what it still does must not be stopped."""
        self.calls = Calls()
        """Functions of ours that SQL can call."""
        self._callees: dict[Callable[[Connection], Any], Any] = {}
        """Who of these lasts as long as this, by its class."""
        self.has_others = False
        """Whether SQL of the user's was run: only that makes what is not ours."""
        self._temporary = 0
        self.promised = PromisedTables()
        config: dict[str, Any] = {"python_enable_replacements": False}
        if threads is not None:
            config["threads"] = threads
        if memory_limit is not None:
            config["memory_limit"] = f"{max(memory_limit, 64 << 20)}B"
        if spill is not None:
            refuse_no_spill(spill)
            config["temp_directory"] = spill
        if untrusted:
            config["enable_external_access"] = "false"
        if shared is None:
            refuse_others(path)
        self.file = opened(path)
        self._database = None if shared is None else shared.name
        try:
            if shared is not None:
                self.raw = self._another(shared.connection)
                self.raw.execute("SET python_enable_replacements = false")
            else:
                self.raw = duckdb.connect(path, read_only=read_only, config=config)
            progress_bar.hide(self.raw)
            if untrusted:  # but what loads and results set: how rows are stored, and shown
                self.raw.execute("SET allowed_configs = ['disabled_compression_methods', 'TimeZone']")
                self.raw.execute("SET lock_configuration = true")
        except duckdb.Error as error:
            raise opening_error(path, error) from None
        self.windows = Windows(self.raw)
        self.transactions = Transactions(self.raw)
        self.transactions.on_recover = self.calm
        made(path, self.file)
        self.lock = self.file.lock
        _OPEN.add(self)

    def guard(self, timeout: float | None = None, *, ours: bool = True) -> Guard:
        """Hold the connection for a piece of work; DuckDB's errors leave it as ours.

        ``ours`` says that the SQL is not the user's, who is then not shown it.  After ``timeout`` seconds DuckDB is
        interrupted and the work ends with :class:`~graphdb.common.errors.QueryTimeout`; so it is at the deadline of the
        statement (:mod:`graphdb.common.stopping`).  After :meth:`interrupt` it ends with
        :class:`~graphdb.common.errors.QueryInterrupted`, after Ctrl-C with `KeyboardInterrupt`.
        """
        return Guard(self, timeout, ours)

    def columns(self, sql: str, parameters: Mapping[str, object] | None = None) -> dict[str, NDArray[Any]]:
        """Run a query and return its columns as NumPy arrays."""
        with self.lock, self.guard() as raw:
            self.promised.make(sql)
            return raw.execute(parsed(raw, sql), dict(parameters or {})).fetchnumpy()

    def rows(self, sql: str, parameters: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        """Run a query and return its rows; for small results."""
        with self.lock, self.guard() as raw:
            self.promised.make(sql)
            return raw.execute(parsed(raw, sql), dict(parameters or {})).fetchall()

    def arrow(self, sql: str, parameters: Mapping[str, object] | None = None) -> Table:
        """Run a query and return its rows as an Arrow table."""
        with self.lock, self.guard() as raw:
            self.promised.make(sql)
            return rows_of(raw, sql, parameters)

    def view(self, name: str, table: Table | Mapping[str, NDArray[Any]], *, lasting: bool = False) -> View:
        """Make a table visible to SQL under ``name`` for a piece of work.

        A ``lasting`` name is registered when SQL first reads it (:attr:`promised`), and stays so until SQL of the
        user's runs: it shows the next table of the same schema without DuckDB being asked, which takes as long as
        small queries do.
        """
        return View(self, self.windows, name, table, lasting)

    def temporary_table(self, name: str, kind: Literal["TABLE", "VIEW"] = "TABLE") -> TemporaryTable:
        """Return the scope of a temporary table (or view) of ours, which whoever enters it is about to make.

        Entered, it yields what to call for the table to stay.
        """
        return TemporaryTable(self, name, kind)

    def has_table(self, name: str) -> bool:
        """Whether there is a temporary table of a name."""
        sql = "SELECT 1 FROM system.main.duckdb_tables() WHERE temporary AND table_name = $name"
        return bool(self.rows(sql, {"name": name}))

    def discard(self, tables: Iterable[str]) -> None:
        """Drop temporary tables of ours, later: now a transaction may be open, or have failed."""
        for table in tables:
            self.promised.forget(table)
            self._discarded.append(table)

    def callee(self, kind: Callable[[Connection], T]) -> T:
        """Return who answers calls of SQL on this connection, one of each class: made by ``kind`` the first time."""
        found: T | None = self._callees.get(kind)
        if found is None:
            found = self._callees[kind] = kind(self)
        return found

    def temporary(self) -> str:
        """Return a fresh name for a view or temporary table of ours, which no table of the user's has."""
        self._temporary += 1
        return f"{OURS}{self._temporary}"

    def frozen(self) -> Connection:
        """Return a connection that goes on seeing the database as it is now, in a transaction that reads only."""
        other = copy(self)
        with self.guard():
            other.raw = self.cursor()
            other.begin_reading()
        other.transactions = Transactions(other.raw)
        other._discarded, other._depth, other._deadline, other.windows = [], 0, None, Windows(other.raw)
        other.promised, other.calls, other._callees = PromisedTables(), Calls(), {}
        _OPEN.add(other)
        return other

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """Return another connection of DuckDB's to the database."""
        return self._another(self.raw)

    def _another(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        made = connection.cursor()
        if self._database is not None:  # what USE chose is each connection's own
            made.execute(f"USE {quoted(self._database)}.main")
        return made

    def begin_reading(self) -> None:
        """Begin a transaction of a :meth:`frozen` connection: it sees the database as it is now until :meth:`rest`."""
        self.raw.execute("BEGIN TRANSACTION READ ONLY")
        self.raw.execute(TOUCH).fetchall()

    def rest(self) -> None:
        """End the transaction of a :meth:`frozen` connection."""
        self.raw.execute("COMMIT")
        self._drop_discarded()

    def check_open(self) -> None:
        """Raise :class:`StorageError` if the database is closed, or this is a fork of the process that opened it."""
        if self._process != os.getpid():
            raise StorageError(
                f"the database was opened by process {self._process}, of which this one is a fork",
                hint="open it after the fork, in one process, or read-only in all",
            )
        if self.closed:
            raise StorageError("the database is closed")

    def has_leftovers(self) -> bool:
        """Whether an earlier statement left something for :meth:`undo_leftovers` to undo; asked between statements."""
        transactions = self.transactions
        return (
            self._depth != 0
            or transactions.writing
            or transactions.changing
            or bool(transactions.leftovers)
            or bool(self._discarded)
            or self.cancelled.is_set()
            or is_open(self.raw)
        )

    def undo_leftovers(self) -> None:
        """Undo what an interrupted statement left half done, before another one begins; can itself be interrupted."""
        no_limits()
        self._deadline = None
        self._depth = 0
        self._ending = False
        self.cancelled.clear()
        WATCHDOG.release(self, None)
        abandon(self.raw)
        self.transactions.undo_leftovers()
        self._drop_discarded()

    def _drop_discarded(self) -> None:
        import duckdb

        while self._discarded and not self.transactions.inside:
            with contextlib.suppress(duckdb.Error):
                self.raw.execute(f"DROP TABLE IF EXISTS {self._discarded[-1]}")
            self._discarded.pop()

    # --- stops

    def interrupt(self) -> None:
        """Stop the statement under way, from another thread."""
        self.cancelled.set()
        WATCHDOG.wake()

    def overdue(self, now: float) -> bool:
        """See :class:`graphdb.common.duckdb.watchdog.Watched`."""
        if self._ending:
            return False
        return self.cancelled.is_set() or (self._deadline is not None and now >= self._deadline)

    @property
    def must_stop(self) -> bool:
        """Whether the statement under way must: what DuckDB calls asks, for DuckDB looks after 2,048 rows only."""
        return self.overdue(time.monotonic()) or WATCHDOG.has_signal(self)

    def due(self) -> float | None:
        """See :class:`graphdb.common.duckdb.watchdog.Watched`."""
        return None if self._ending else self._deadline

    def stop(self) -> None:
        """See :class:`graphdb.common.duckdb.watchdog.Watched`."""
        self.raw.interrupt()

    def calm(self) -> None:
        """Stop interrupting the statement that runs: it is ending already."""
        self._ending = True
        WATCHDOG.calm(self)

    def close(self) -> None:
        """Close the database file; what another thread runs on it is stopped first.

        Raises
        ------
        StorageError
            What runs does not stop.
        """
        self.closed = True
        end = time.monotonic() + _CLOSE_TIMEOUT
        while not self.lock.acquire(timeout=0.05):
            self.interrupt()
            if time.monotonic() > end:
                if not self._depth:  # another connection to the same file is at work
                    break
                self.closed = False
                raise StorageError("the database cannot be closed: a statement does not stop")
        for listener in list(self.file.listeners):
            listener.end_reading()
        try:
            self.raw.close()
        finally:
            if all(each.closed for each in list(_OPEN) if each.file is self.file):
                self.file.identity = None
            if self.lock._is_owned():  # type: ignore[attr-defined]  # it may have been given up waiting for
                self.lock.release()


class Guard:
    """Work with the connection; see :meth:`Connection.guard`.

    A class of its own, not a generator: nothing is suspended in it that an interrupt could leave behind.
    """

    __slots__ = ("_acquired", "_connection", "_deadline", "_limits", "_ours", "_outermost", "_previous")

    def __init__(self, connection: Connection, timeout: float | None, ours: bool) -> None:
        self._connection = connection
        self._limits = stopping(timeout, connection.cancelled)
        self._deadline: float | None = None
        self._ours = ours
        self._acquired = self._outermost = False
        self._previous: int | None = None

    def __enter__(self) -> duckdb.DuckDBPyConnection:
        connection = self._connection
        connection.check_open()
        if not connection.lock._is_owned():  # type: ignore[attr-defined]  # as `threading.Condition` asks
            self._acquired = connection.lock.acquire()
        connection.check_open()
        self._limits.__enter__()
        self._deadline, connection._deadline = connection._deadline, deadline()
        self._outermost = not connection._depth
        connection._depth += 1
        connection._ending = False
        try:
            if self._outermost:
                connection.raw.abort()  # Ctrl-C may have come before rows were fetched that were asked for without this
            if not self._ours:
                connection.has_others = True
                if not connection.transactions.failed:  # in one that has, DuckDB takes nothing away, and reads no names
                    connection.windows.close_unused()
            if self._outermost:
                main = threading.get_ident() == threading.main_thread().ident
                self._previous = WATCHDOG.watch(connection, main=main)
            check_stop()
        except BaseException:
            self._leave()
            raise
        return connection.raw

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if error is not None:
                abandon(self._connection.raw)
                if isinstance(error, KeyboardInterrupt):
                    self._connection.calm()
                self._raise(error)
        finally:
            self._leave()

    def _leave(self) -> None:
        connection = self._connection
        connection._depth -= 1
        connection._deadline = self._deadline
        if self._outermost:
            WATCHDOG.release(connection, self._previous)
        if self._acquired:
            connection.lock.release()
        self._limits.__exit__()  # the last: it may raise

    def _raise(self, error: BaseException) -> None:
        """Raise one of DuckDB's errors as ours; any other goes on as it is."""
        import duckdb

        connection = self._connection
        if is_signal(error):
            connection.calm()
            raise KeyboardInterrupt from None
        if not isinstance(error, duckdb.Error):
            return
        if connection.closed:
            raise StorageError("the database was closed while the statement ran") from None
        if isinstance(error, duckdb.InterruptException) or (is_stop(error) and connection.must_stop):
            connection.calm()
            check_stop()
            raise KeyboardInterrupt from None
        transactions = connection.transactions
        if transactions.by_user and isinstance(error, duckdb.TransactionException) and ABORTED in str(error):
            if not transactions.failed:
                transactions.fail()
            raise failed_transaction() from None
        raise failure(error, self._ours) from None


_OPEN: weakref.WeakSet[Connection] = weakref.WeakSet()
"""All that are open in this process."""


def _keep_after_fork() -> None:
    """Keep what a fork has of open databases for ever: closing one would write to the file that its parent has open."""
    for connection in _OPEN:
        connection.closed = True
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection.raw))


os.register_at_fork(after_in_child=_keep_after_fork)
