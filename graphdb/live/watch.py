"""Following a continuous query: its changes, batch by batch, as they are committed.

A watch reads the table of changes, with a cursor of its own and outside of any statement: however slow whoever reads
it is, no writer waits, and what is stored for it has the query's budget.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graphdb.common.duckdb.fetch import rows_of
from graphdb.common.duckdb.transactions import TOUCH
from graphdb.common.errors import GraphDBError, StorageError
from graphdb.live.definitions import Definition

if TYPE_CHECKING:
    import duckdb

    from graphdb.common.arrow import Table
    from graphdb.common.duckdb.connection import Connection

_TICK = 0.5
"""Seconds between two looks at whether there is something, should nobody say so."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """What one batch changed of an answer: rows that came and rows that went, as tables of the query's columns.

    Both are bags, in no particular order; PyArrow, Polars and DuckDB read them by Arrow's interface.
    """

    batch: int
    added: Table
    removed: Table

    def __repr__(self) -> str:
        return f"<Change of batch {self.batch}: {self.added.num_rows} added, {self.removed.num_rows} removed>"


class Watch:
    """The changes of one continuous query, from some batch on: an iterator that waits for the next.

    It ends when it is closed, or the database is.  :meth:`next` waits no longer than its timeout.

    Raises
    ------
    StorageError
        When the next batch's changes are not stored any more, or the query is dropped.
    """

    def __init__(
        self, connection: Connection, definition: Definition, first: int, on_close: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._definition = definition
        self._next = first
        self._on_close = on_close
        self._closed = False
        self._woken: SimpleQueue[None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._reading = threading.Lock()
        """Held while a cursor is open: the connection cannot be closed then."""
        connection.file.listeners.add(self)

    @property
    def name(self) -> str:
        """The continuous query's name."""
        return self._definition.name

    def __repr__(self) -> str:
        at = "closed" if self._closed else f"from batch {self._next} on"
        return f"<Watch of {self.name}: {at}>"

    def wake(self) -> None:
        """See :class:`graphdb.common.duckdb.open_files.Listener`."""
        if self._woken.empty():
            self._woken.put(None)

    def next(self, timeout: float | None = None) -> Change | None:
        """Return the next batch's changes; None where there are none within ``timeout`` seconds, or it is closed."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._closed:
            if self._connection.closed:
                self.close()
                break
            try:
                found = self._read(end)
            except StorageError:
                if self._is_over():  # while it was read
                    break
                raise
            if found is not None:
                self._next = found.batch + 1
                return found
            left = _TICK if end is None else min(_TICK, end - time.monotonic())
            if left <= 0:
                break
            try:
                self._woken.get(timeout=left)
            except Empty:
                continue
        return None

    def __iter__(self) -> Watch:
        return self

    def __next__(self) -> Change:
        found = self.next()
        if found is None:
            raise StopIteration
        return found

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End it: whoever waits for a change gets none."""
        if not self._closed:
            self._closed = True
            self._connection.file.listeners.discard(self)
            self._woken.put(None)
            self._on_close()

    def call(self, function: Callable[[Change], object]) -> None:
        """Have a function called with each change, by a thread of its own, until it is closed.

        What the function raises ends the watch, and is reported as what a thread raises.
        """

        def run() -> None:
            try:
                for change in self:
                    function(change)
            finally:
                self.close()

        self._thread = threading.Thread(target=run, name=f"graphdb-watch-{self.name}", daemon=True)
        self._thread.start()

    def _is_over(self) -> bool:
        return self._closed or self._connection.closed

    def _read(self, end: float | None) -> Change | None:
        """Return the first batch's changes from the next one on, if there is one."""
        connection = self._connection
        wait = -1 if end is None else max(end - time.monotonic(), 0.0)
        if not connection.lock.acquire(timeout=wait):
            return None
        try:
            if connection.closed:
                return None
            cursor = connection.cursor()
            self._reading.acquire()
        finally:
            connection.lock.release()
        try:
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            cursor.execute(TOUCH).fetchall()
            return self._read_with(cursor)
        except GraphDBError:
            raise
        except Exception as error:
            raise StorageError(f"the changes of '{self.name}' cannot be read: {error}") from error
        finally:
            try:
                cursor.close()
            finally:
                self._reading.release()

    def end_reading(self) -> None:
        """See :class:`graphdb.common.duckdb.open_files.Listener`."""
        with self._reading:
            pass

    def _read_with(self, cursor: duckdb.DuckDBPyConnection) -> Change | None:
        own = self._definition
        there = cursor.execute("SELECT since FROM _graphdb.continuous_query WHERE number = ?", [own.number]).fetchall()
        if not there:
            raise StorageError(f"the continuous query '{own.name}' was dropped")
        refuse_gone(own.name, self._next, there[0][0])
        [(batch,)] = cursor.execute(
            "SELECT min(batch) FROM _graphdb.batch WHERE query = ? AND batch >= ?", [own.number, self._next]
        ).fetchall()
        if batch is None:
            return None
        sides: list[Any] = [
            rows_of(
                cursor,
                f"SELECT * EXCLUDE (batch, change) FROM {own.log} WHERE batch = ? AND change = ?",
                [batch, change],
            )
            for change in (1, -1)
        ]
        return Change(int(batch), *sides)


def refuse_gone(name: str, batch: int, since: int) -> None:
    """Raise `StorageError` where the changes of a batch are not stored any more."""
    if batch < since:
        raise StorageError(
            f"the changes of batch {batch} of '{name}' are gone: they are stored from batch {since} on",
            hint=f"read the answer as it is, and watch it from batch {since} on; "
            "more is stored WITH (changes = …) where the query is created",
        )
