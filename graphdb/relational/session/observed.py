"""The changes of the transaction under way, for the continuous queries of the file.

A file without continuous queries has nothing noted: whether it has some is asked once, with the first change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from graphdb.common.duckdb.connection import Connection
    from graphdb.storage.graph.changes import Changes


class Maintainer(Protocol):
    """Brings the answers of continuous queries up to date."""

    def maintain(self, changes: Sequence[Changes | None]) -> None:
        """Write what a transaction changed of all answers, within it; None is a change that nobody followed."""

    def committed(self) -> None:
        """What was written is committed."""


class Observed:
    """What continuous queries learn of the transactions of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.maintainer: Callable[[], Maintainer] | None = None
        """Returns who maintains them; imported when there is something to maintain."""
        self.epoch = 0
        """Counts how often the file came to be another than what was noted leads to."""
        self.definitions = 0
        """Counts how often continuous queries, or the number of the last batch, may have come to be others."""
        self._any: bool | None = None
        self._noted: list[Changes | None] = []
        self._maintained: Maintainer | None = None

    def note(self, changes: Sequence[Changes | None]) -> None:
        """Note changes of the transaction under way."""
        if self._any is None:
            self._any = bool(self._connection.rows("SELECT 1 FROM _graphdb.continuous_query LIMIT 1"))
        if self._any:
            self._noted += changes

    def created(self) -> None:
        """The tables of the graph were created here: nobody has defined a continuous query yet."""
        self._any = False

    def redefine(self) -> None:
        """Continuous queries come or go."""
        self._any = None
        self.definitions += 1

    def drop(self) -> None:
        """Forget everything: another connection has changed the file."""
        self.redefine()
        self._noted = []
        self.epoch += 1

    def before_commit(self) -> None:
        """See :attr:`graphdb.common.duckdb.transactions.Transactions.before_commit`."""
        if self._noted:
            noted, self._noted = self._noted, []
            if self.maintainer is not None:
                self._maintained = self.maintainer()
                with self._connection.transactions.atomic():
                    self._connection.transactions.touch()
                    self._maintained.maintain(noted)

    def after_commit(self) -> None:
        """See :attr:`graphdb.common.duckdb.transactions.Transactions.after_commit`."""
        if self._maintained is not None:
            maintained, self._maintained = self._maintained, None
            maintained.committed()

    def rolled_back(self) -> None:
        """A transaction is no more; what was maintained in it is not what the file has."""
        self.redefine()
        self._noted = []
        if self._maintained is not None:
            self._maintained = None
            self.epoch += 1
