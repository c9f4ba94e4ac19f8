"""Turns: a statement that changes something waits for transactions of other threads that do, before it reads anything.

Its own transaction would otherwise begin before their end, and could not change what they have changed.
"""

from __future__ import annotations

import time

from graphdb.common.errors import QueryInterrupted, QueryTimeout
from graphdb.relational.session.state import State

LONGEST_WAIT = 5.0
"""Seconds that a statement waits at most: as long as in SQLite."""


def await_turn(state: State, timeout: float | None = None) -> None:
    """Wait until no transaction of another connection, in another thread, changes anything; not for ever.

    The caller holds the lock, which others have meanwhile, and has begun no statement.  Within a transaction of the
    user's nothing is waited for: that has read already.

    Raises
    ------
    QueryTimeout
        The statement's ``timeout`` is over.
    QueryInterrupted
        It was interrupted.
    StorageError
        The database was closed.
    """
    connection, file = state.connection, state.connection.file
    if file.turn is None or state.transactions.by_user:
        return

    def check() -> None:
        connection.check_open()
        if state.cancelled.is_set():
            raise QueryInterrupted("the statement was interrupted")

    end = None if timeout is None else time.monotonic() + timeout
    file.await_turn(state, LONGEST_WAIT if timeout is None else min(timeout, LONGEST_WAIT), check)
    if end is not None and time.monotonic() >= end:
        raise QueryTimeout(f"the statement waited longer than its timeout of {timeout:g} s for another one")
    if connection.has_leftovers():  # of another thread's statement, which used the same connection
        connection.undo_leftovers()
