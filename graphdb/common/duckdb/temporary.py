"""Temporary tables of ours: those of a piece of work, and those that are made when SQL first reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import threading
    from types import TracebackType

    import duckdb

    from graphdb.common.duckdb.transactions import Transactions
    from graphdb.common.duckdb.windows import Windows


class Owner(Protocol):
    """The connection whose tables they are."""

    raw: duckdb.DuckDBPyConnection
    lock: threading.RLock
    closed: bool
    transactions: Transactions
    windows: Windows


class PromisedTables:
    """Tables that SQL names already and that nobody has made: most of what is compiled never runs as SQL."""

    def __init__(self) -> None:
        self._makers: dict[str, Callable[[], bool]] = {}
        self.delayed = True
        """Whether tables wait at all: not while a statement writes, after which they would have other rows."""

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Make tables when they are promised, for a piece of work."""
        before, self.delayed = self.delayed, False
        try:
            yield
        finally:
            self.delayed = before

    def add(self, table: str, maker: Callable[[], bool]) -> None:
        """Promise a table; ``maker`` makes it, or makes it anew, and says whether it stays."""
        self._makers[table] = maker

    def forget(self, table: str) -> None:
        """Take a promise back."""
        self._makers.pop(table, None)

    def make(self, sql: str) -> None:
        """Make the tables that SQL is about to read: to be called before SQL that was compiled."""
        if not self._makers:
            return
        for table in [table for table in self._makers if table in sql]:
            maker = self._makers.pop(table, None)
            if maker is None:  # another one, that reads it, made it
                continue
            stays = False
            try:
                stays = maker()
            finally:
                if not stays:
                    self._makers[table] = maker


class TemporaryTable:
    """A temporary table that goes when a piece of work is done, however that ends.

    What cannot be dropped at the end, since the statement is being stopped, is dropped before the next one.
    """

    __slots__ = ("_connection", "_name", "_sql")

    def __init__(self, connection: Owner, name: str, kind: str) -> None:
        self._connection = connection
        self._name = name
        self._sql = f"DROP {kind} IF EXISTS temp.{name}"

    def __enter__(self) -> Callable[[], None]:
        self._connection.windows.close(self._name)
        self._connection.transactions.leftovers.append(self._drop)
        return self._keep

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        import duckdb

        with self._connection.lock:
            if self._connection.closed or self._drop not in self._connection.transactions.leftovers:
                return
            try:
                self._drop()
            except duckdb.TransactionException:  # an error aborted it, and its end takes the table away
                pass
            except duckdb.InterruptException:  # the stop that is on its way came once more
                return
            self._connection.transactions.leftovers.remove(self._drop)

    def _keep(self) -> None:
        """Leave the table where it is: it was made, and somebody knows of it."""
        self._connection.transactions.leftovers.remove(self._drop)

    def _drop(self) -> None:
        self._connection.raw.execute(self._sql)
