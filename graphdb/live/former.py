"""The state before each batch, as continuous queries read it.

It has a connection of its own, whose transaction lasts while a batch is maintained.  What was derived of the graph is
followed from one batch to the next, as it is for the present state: it costs what a batch changes, not the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphdb.live.prepared import PreparedQueries
from graphdb.relational.snapshot import Predecessor, take_snapshot
from graphdb.storage.catalog import Catalog
from graphdb.storage.graph.changes import MOST

if TYPE_CHECKING:
    from graphdb.common.duckdb.connection import Connection
    from graphdb.relational.session.state import State
    from graphdb.relational.snapshot import Snapshot
    from graphdb.storage.graph.changes import Changes


class Former:
    """What statements saw before the transaction under way.

    Attributes
    ----------
    prepared
        What was prepared over it.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._connection: Connection | None = None
        self._now: Snapshot | None = None
        """The state before the batch that is maintained now, once it was asked for."""
        self._before: Predecessor | None = None
        """The last one that was asked for, and what changed since."""
        self._since = 0
        """How many triples that are."""
        self.prepared = PreparedQueries()
        self._renamed = set[int]()

    @contextmanager
    def opened(self) -> Iterator[Snapshot]:
        """Yield it, where names that nothing has match nothing; it stays open until :meth:`end`."""
        if self._now is None:
            self._now = self._opened()
        yield self._now

    def _opened(self) -> Snapshot:
        state = self._state
        if self._connection is None or self._before is None:
            self.forget()
            self._connection = state.connection.frozen()
            state.connection.file.listeners.add(self)
        else:
            self._connection.begin_reading()
        before, self._before = self._before, None
        catalog = Catalog(self._connection.raw, self._connection.transactions)
        budget = state.budget.graph // 2
        return take_snapshot(self._connection, catalog, budget, before, subclasses=state.subclasses).lenient()

    def rename(self, number: int) -> None:
        """Note that names of a query stand for something else after the batch."""
        self._renamed.add(number)

    def end(self, changes: Sequence[Changes | None]) -> None:
        """The batch of these changes is maintained."""
        while self._renamed:
            self.prepared.drop(self._renamed.pop())
        if self._now is not None and self._connection is not None:
            self._before, self._now, self._since = Predecessor(self._now), None, 0
            self._connection.rest()
        if self._before is None:
            return
        before = self._before
        before.changes.extend(known := [change for change in changes if change is not None])
        self._since += sum(change.triples for change in known)
        if len(known) < len(changes) or self._since > MOST:
            self.forget()
            return
        for change in known:
            self.prepared.follow(change, before.snapshot.store.type_label)

    def forget(self) -> None:
        """Drop what was derived: changes since are not known, or a batch was not maintained to its end."""
        connection, self._connection = self._connection, None
        self._now = self._before = None
        if connection is not None:
            connection.close()

    def wake(self) -> None:
        """See :class:`graphdb.common.duckdb.open_files.Listener`: it waits for nothing."""

    def end_reading(self) -> None:
        """See :class:`graphdb.common.duckdb.open_files.Listener`."""
        if self._state.connection.closed:
            self.forget()
