"""What the connections of one process to the same file share: one lock around their statements, and a version that
counts changes.

Each connection has its own transaction and its own memory of names and data.  Ids are numbered by whoever writes, so
only one may: statements of all connections to a file run one at a time, a transaction of the user's that has changed
the graph keeps others from changing it until it ends, and one that began before another's change cannot change it.
Whoever is about to change something waits for a transaction of another thread that does, before reading anything.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from graphdb.common.errors import StorageError
from graphdb.common.forks import lock_at_fork

_LOOK = 0.05
"""Seconds between two looks of who waits for a turn, whether to go on waiting."""


class Member(Protocol):
    """An open database."""

    def about_to_change(self) -> None:
        """Prepare for a change that another one makes."""


class Listener(Protocol):
    """Who waits for changes of continuous queries."""

    def wake(self) -> None:
        """There may be some: called by the thread that has committed them."""

    def end_reading(self) -> None:
        """Wait for the end of what is being read of the file; nothing begins while the caller holds the lock."""


class OpenFile:
    """A database file that is open, or a database in memory."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Held while a statement runs."""
        self.identity: tuple[int, int] | None = None
        """The file itself, whatever it is called; None before it is made, and in memory."""
        self.version = 0
        """How many changes of the graph were committed; what memory holds of another version is stale."""
        self.pattern_views: dict[str, str] | None = None
        """The queries of views over patterns, by their names; None where they are to be looked up."""
        self.members: weakref.WeakSet[Member] = weakref.WeakSet()
        """All that have it open."""
        self._writer: weakref.ref[object] | None = None
        self.turn: tuple[weakref.ref[object], int] | None = None
        """Whose transaction changes something, and the thread that began to: others wait for its end."""
        self.turn_ended = threading.Condition(self.lock)
        self.listeners: weakref.WeakSet[Listener] = weakref.WeakSet()
        """Who waits for changes of continuous queries."""

    def announce(self) -> None:
        """Wake those who wait for changes of continuous queries: some were committed."""
        for listener in list(self.listeners):
            listener.wake()

    def enter(self, writer: object, *, until_it_ends: bool) -> None:
        """Let a statement change the graph; ``until_it_ends`` for one within a transaction of the user's.

        Raises
        ------
        StorageError
            Another connection has changed it within a transaction that is still open.
        """
        there = None if self._writer is None else self._writer()
        if there is not None and there is not writer:
            raise StorageError(
                "another connection of this process has changed the graph within a transaction that is still open",
                hint="COMMIT or ROLLBACK there first",
            )
        if until_it_ends:
            self._writer = weakref.ref(writer)
            self.take_turn(writer)
        if len(self.members) > 1:
            for member in list(self.members):
                if member is not writer:
                    member.about_to_change()

    def leave(self, writer: object) -> None:
        """End the transaction of a writer."""
        if self._writer is not None and self._writer() in (None, writer):
            self._writer = None
        if self.turn is not None and self.turn[0]() in (None, writer):
            self.turn = None
            if self.lock.acquire(blocking=False):  # otherwise those who wait look again soon
                self.turn_ended.notify_all()
                self.lock.release()

    def take_turn(self, writer: object) -> None:
        """Note that a transaction changes something, which this thread began: unless another one's does, still."""
        if self.turn is None or self.turn[0]() in (None, writer):
            self.turn = weakref.ref(writer), threading.get_ident()

    def await_turn(self, writer: object, seconds: float, check: Callable[[], None]) -> None:
        """Wait until no transaction of another connection, in another thread, changes anything: so long at most.

        The caller holds the lock, which others have meanwhile, and is within no statement.  ``check`` is called again
        and again, and may raise.  A transaction of the same thread would wait for itself.
        """
        end = time.monotonic() + seconds
        while self.turn is not None and self.turn[0]() not in (None, writer):
            left = end - time.monotonic()
            if self.turn[1] == threading.get_ident() or left <= 0:
                return
            self.turn_ended.wait(min(left, _LOOK))
            check()


_FILES: weakref.WeakValueDictionary[str, OpenFile] = weakref.WeakValueDictionary()
_LOCK = threading.Lock()


def opened(path: str) -> OpenFile:
    """Return what the connections of this process to a file share; one in memory shares nothing.

    It is asked before DuckDB opens the file, and :func:`made` says when that has.

    Raises
    ------
    StorageError
        The file is open here by another name, a hard link: DuckDB, which knows files by their names, would have two
        databases write to it.
    """
    if path == ":memory:":
        return OpenFile()
    with _LOCK:
        refuse_other_name(path)
        found = _FILES.setdefault(os.path.realpath(path), OpenFile())
        found.identity = _identity(path)
        return found


def refuse_other_name(path: str) -> None:
    """Refuse a path that is a hard link to a file that is open here by another name.

    Raises
    ------
    StorageError
        It is.
    """
    name, identity = os.path.realpath(path), _identity(path)
    for other, file in list(_FILES.items()):
        if other != name and identity is not None and file.identity == identity:
            raise StorageError(f"database '{path}' is open in this process as '{other}'", hint="use that name")


def name_of(status: os.stat_result) -> str | None:
    """Return the name of the database that is open here in a file; None of another file.

    Whoever reads the file within this process gives up DuckDB's lock on it, at the first ``close``.
    """
    identity = status.st_dev, status.st_ino
    return next((name for name, file in list(_FILES.items()) if file.identity == identity), None)


def any_has_other_names() -> bool:
    """Whether a file that is open here has another hard link."""
    for path, file in list(_FILES.items()):
        with suppress(OSError):
            if file.identity is not None and os.stat(path).st_nlink > 1:
                return True
    return False


def made(path: str, file: OpenFile) -> None:
    """Note that DuckDB has opened a file, which it may have made."""
    if path != ":memory:":
        file.identity = _identity(path)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        there = os.stat(path)
    except (OSError, ValueError):  # what is wrong with the path is for DuckDB to say
        return None
    return there.st_dev, there.st_ino


def _begin_anew() -> None:
    """Forget, in a forked process, what its parent has open: a thread of the parent's may have held the locks."""
    global _FILES, _LOCK
    _FILES, _LOCK = weakref.WeakValueDictionary(), threading.Lock()


lock_at_fork(lambda: _LOCK)
os.register_at_fork(after_in_child=_begin_anew)
