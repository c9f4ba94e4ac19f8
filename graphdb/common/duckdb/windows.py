"""Tables of Arrow that SQL sees under a name: for a piece of work, or one after the other under a name that lasts.

DuckDB makes a view for each name, which takes as long as a small query.  Names that last are shown again without it,
and are registered when SQL first reads them: of most tables, columns in memory are all that is read.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from graphdb.common.duckdb.fetch import register
from graphdb.common.stopping import limits

if TYPE_CHECKING:
    import threading
    from types import TracebackType

    import duckdb
    from numpy.typing import NDArray

    from graphdb.common.arrow import Schema, Table
    from graphdb.common.duckdb.transactions import Transactions

_MOST = 64
"""Names that stay registered, at most."""


class _Promises(Protocol):
    """See :class:`graphdb.common.duckdb.temporary.PromisedTables`."""

    def add(self, table: str, maker: Callable[[], bool]) -> None:
        """Promise a table that ``maker`` makes once SQL is about to read it."""

    def forget(self, table: str) -> None:
        """Take a promise back."""


class _Owner(Protocol):
    """The connection that sees them."""

    raw: duckdb.DuckDBPyConnection
    lock: threading.RLock
    closed: bool
    transactions: Transactions

    @property
    def promised(self) -> _Promises:
        """Tables that are made when SQL first reads them."""

    def guard(self) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
        """Hold the connection for a piece of work."""


@dataclass(slots=True)
class _Window:
    """A registered name that shows one table after another."""

    source: Any
    schema: Schema

    def shows(self, table: object) -> bool:
        """Show a table, if nothing else is shown and its columns are the same."""
        free = self.source.obj is None and getattr(table, "schema", None) == self.schema
        if free:
            self.source.obj, self.source.limits = table, limits()
        return free


class Windows:
    """What is registered under names that last, for one connection."""

    def __init__(self, raw: duckdb.DuckDBPyConnection) -> None:
        self._raw = raw
        self._open: dict[str, _Window] = {}
        self._passing: set[str] = set()
        """Names that were registered within the transaction that is open: its ROLLBACK takes them away."""
        self._names: set[str] = set()
        """All names that were ever registered here."""
        self._doubtful: set[str] = set()
        """Names that may be views, since a ROLLBACK brings back what its transaction dropped or replaced."""

    def showing(self, name: str, table: object) -> _Window | None:
        """Return a name's window, which shows a table from now on; None where there is none, or it cannot."""
        window = self._open.get(name)
        return window if window is not None and window.shows(table) else None

    def forget(self, name: str) -> None:
        """Note that what a name shows from now on does not last."""
        self._open.pop(name, None)

    def opened(self, name: str, source: Any, *, inside: bool) -> _Window:
        """Return the window of a name that was just registered, and lasts; ``inside`` a transaction."""
        if len(self._open) >= _MOST:
            self.close_unused()
        if inside:  # first: what is interrupted is not taken for one that stays
            self._passing.add(name)
        self._names.add(name)
        window = self._open[name] = _Window(source, source.obj.schema)
        return window

    def committed(self) -> None:
        """A transaction was committed: what was registered within it stays."""
        self._passing.clear()

    def rolled_back(self) -> None:
        """A transaction is no more, or cannot be committed: what was registered within it is gone, or will be."""
        for name in self._passing:
            self._open.pop(name, None)
        self._passing.clear()
        self._doubtful |= self._names

    def close_unused(self) -> None:
        """Take away the names that last and show nothing."""
        for name in [name for name, window in self._open.items() if window.source.obj is None]:
            self.close(name)

    def close(self, name: str) -> None:
        """Take away such a name, if it is registered."""
        if self._open.pop(name, None) is not None:
            self._raw.unregister(name)
        if name in self._doubtful:
            self._raw.execute(f"DROP VIEW IF EXISTS temp.{name}")
            self._doubtful.remove(name)


class View:
    """A table that SQL sees for a piece of work; see :meth:`graphdb.common.duckdb.connection.Connection.view`."""

    __slots__ = ("_connection", "_lasting", "_name", "_registered", "_table", "_window", "_windows")

    def __init__(
        self,
        connection: _Owner,
        windows: Windows,
        name: str,
        table: Table | Mapping[str, NDArray[Any]],
        lasting: bool,
    ) -> None:
        self._connection, self._windows = connection, windows
        self._name = name
        self._table = table
        self._lasting = lasting
        self._window: _Window | None = None
        self._registered = False

    def __enter__(self) -> None:
        connection = self._connection
        with connection.lock:
            connection.transactions.leftovers.append(self._unregister)
            if not self._lasting:
                self._register()
                return
            self._window = self._windows.showing(self._name, self._table)
            if self._window is None:
                connection.promised.add(self._name, self._register)

    def _register(self) -> bool:
        """Register the name, which stays until the piece of work is done."""
        connection = self._connection
        self._registered = True  # first, both: what is interrupted is registered no more
        self._windows.forget(self._name)
        with connection.guard() as raw:
            source = register(raw, self._name, self._table)
        if self._lasting and source is not None:
            self._window = self._windows.opened(self._name, source, inside=connection.transactions.inside)
        return True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._connection.lock:
            if not self._connection.closed:
                import duckdb

                with contextlib.suppress(duckdb.TransactionException):  # an error aborted it, and is on its way
                    self._unregister()
            self._connection.transactions.leftovers.remove(self._unregister)

    def _unregister(self) -> None:
        if self._window is not None:
            self._window.source.obj = None
            return
        if self._lasting:
            self._connection.promised.forget(self._name)
        if self._registered:
            self._windows.forget(self._name)
            self._connection.raw.unregister(self._name)
