"""What was derived of a database file, persisted for one user until the file changes.

Partitions, columns and the like are derived from the file's tables, which takes longer than to read them as they lie in
memory.  So when a large file is closed, or the process ends, what took a while to derive is written to the user's own
cache folder, never beside or into the database; whoever of the same user opens the file next maps it.  Nothing of it is
a source of truth: it is found under the file's *stamp* alone, and the folder may be deleted at any time.

The stamp is what the file system says of the file: which it is, its size, and when it was written last (``mtime``, and
``ctime``, which cannot be set).  What is committed is in the file, or in a write-ahead log beside it; while there is
such a log it has no stamp, and everything is derived as if there was no folder.  So it is once this process has changed
the graph, and within transactions.  A stamp is used for what is written when that was a moment ago, so that no later
change can have the same times; DuckDB's lock keeps others from changes as long as the file is open here.  What the
file's statistics count is a part of the names, too, so that a structure is that of a graph of the same size in any
case.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from graphdb._version import __version__
from graphdb.common.config import memory_bytes
from graphdb.storage.compile.cache import FRESH, Cache
from graphdb.storage.persisted import files
from graphdb.storage.persisted.packing import NotPackable

T = TypeVar("T")

FORMAT = 1
"""To be raised with each change of what a structure with the same fields means."""

LARGE = 16 << 20
"""Bytes of a file from which on deriving from it takes long enough."""

SLOW = 0.002
"""Seconds of deriving from which on a structure is persisted."""

MOST_BYTES = 4 << 30
"""What the files of all databases take together, at most: those go that were used longest ago."""

MOST_FILES = 4096
"""How many they are, at most."""

_SHARE_OF_FREE = 4
"""A share of the disk's free space, at most, is taken at a time."""

_SETTLED = 2.0
"""Seconds after which a file system that counts in seconds gives a further change another time."""

_HALF_WRITTEN = 3600.0
"""Seconds after which a file that was not finished is nobody's."""

FOLDER = Cache("arrays", MOST_FILES)


class PersistedStructures:
    """The derived structures of one open file.

    Parameters
    ----------
    path
        The database file, once it is open; None where nothing is persisted.
    unchanged
        Whether what statements see is what the file had when it was opened.
    lock
        Held while a statement runs.

    Raises
    ------
    GraphDBError
        The environment says how much may be persisted, and it is no size.
    """

    def __init__(self, path: str | None, unchanged: Callable[[], bool], lock: threading.RLock) -> None:
        self._path = path
        self._unchanged = unchanged
        self._lock = lock
        self._most = 0 if path is None else _most_bytes()
        self._stamp = stamp_of(path) if path is not None and self._most else None
        self._prefix = ""
        """How the names of this state's files begin; empty until it is known."""
        self._names: frozenset[str] = frozenset()
        self._fresh: dict[str, weakref.ref[Any]] = {}
        """What was derived here and took a while, by the names of its files."""
        if self._stamp is not None:
            _OPEN.add(self)

    @property
    def possible(self) -> bool:
        """Whether anything is persisted of this file now."""
        if self._stamp is None or self._path is None:
            return False
        return self._unchanged() and stamp_of(self._path) == self._stamp

    def describe(self, counts: Iterable[object]) -> None:
        """Say what the file counts, and what else structures depend on; before that, nothing is found."""
        if not self.possible or self._path is None:
            return
        place = _digest(os.path.realpath(self._path), self._stamp[:2] if self._stamp else ())
        self._prefix = f"{place}-{_digest(self._stamp, FORMAT, __version__, *counts)}-"
        if FOLDER.objection() is None:
            with suppress(OSError):
                self._names = frozenset(name for name in os.listdir(FOLDER.folder()) if name.startswith(self._prefix))

    def stop(self) -> None:
        """Persist nothing more: what is derived depends on what was not described."""
        self._stamp = None

    def get_or_derive(self, key: tuple[Any, ...], derive: Callable[[], T]) -> T:
        """Return the structure of a key, of numbers and words: that of a process before, or one that is derived."""
        found: T | None = self.find(key)
        if found is not None:
            return found
        started = time.perf_counter()
        value = derive()
        if time.perf_counter() - started >= SLOW:
            self.note(key, value)
        return value

    def find(self, key: tuple[Any, ...]) -> Any:
        """Return the structure of a key that a process before has persisted; None where none has."""
        name = self._name(key)
        return files.read(FOLDER.folder(), name) if name in self._names else None

    def has(self, key: tuple[Any, ...]) -> bool:
        """Whether a process before has persisted the structure of a key."""
        return self._name(key) in self._names

    def note(self, key: tuple[Any, ...], value: object) -> None:
        """Persist the structure of a key when the file is closed, in the place of what there was, if it still lives."""
        if name := self._name(key):
            with suppress(TypeError):  # what cannot be referred to weakly is none of our structures
                self._fresh[name] = weakref.ref(value)

    def _name(self, key: tuple[Any, ...]) -> str:
        """Return the name of a structure's file; empty where nothing is persisted of it now."""
        return self._prefix + _digest(key) if self._prefix and self.possible and _is_plain(key) else ""

    def write(self) -> None:
        """Write what was derived here and is still in memory, before the file is closed.

        Nothing is written where a statement is under way: it has the lock, and is to be stopped.
        """
        if self._lock.acquire(blocking=False):
            try:
                self._write()
            finally:
                self._lock.release()

    def _write(self) -> None:
        fresh = {name: value for name, each in self._fresh.items() if (value := each()) is not None}
        self._fresh.clear()
        if not fresh or not self.possible or not _is_settled(self._stamp) or FOLDER.objection() is not None:
            return
        folder = FOLDER.folder()
        sizes = {}
        for name, value in fresh.items():
            with suppress(NotPackable):
                sizes[name] = files.size_of(value)
        with suppress(OSError):  # it is derived again the next time
            room = min(self._most, _free(folder) // _SHARE_OF_FREE)
            _make_room(folder, self._prefix, sum(sizes.values()), room)
            for name, size in sorted(sizes.items(), key=lambda each: each[1]):
                room -= size
                if room < 0 or not self.possible:
                    return
                files.write(folder, name, fresh[name])


def stamp_of(path: str) -> tuple[int, ...] | None:
    """Return what tells a file's state from all others; None while it has none, or is too small to be worth it.

    The file itself is not opened: closing it would take DuckDB's lock away.
    """
    try:
        found = os.stat(path)
        folder, name = os.path.split(os.path.abspath(path))
        if found.st_size < LARGE or any(os.path.lexists(os.path.join(folder, name + end)) for end in _LOGS):
            return None
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_settled(stamp: tuple[int, ...] | None) -> bool:
    """Whether whatever is written to a file from now on gives it another stamp."""
    return stamp is not None and max(stamp[-2:]) < time.time_ns() - int(_SETTLED * 1e9)


_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""How DuckDB's write-ahead logs end, beside the file."""


def _most_bytes() -> int:
    chosen = os.environ.get("GRAPHDB_PERSISTED", "")
    if not chosen.strip("0"):
        return 0 if chosen else MOST_BYTES
    return memory_bytes(chosen, "GRAPHDB_PERSISTED")


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def _is_plain(key: object) -> bool:
    """Whether a key means the same in every process."""
    if isinstance(key, tuple):
        return all(map(_is_plain, key))
    return key is None or type(key) in (bool, int, str)


def _free(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def _make_room(folder: Path, prefix: str, size: int, room: int) -> None:
    """Drop what belongs to former states of the same file, and what was used longest ago where it is too much."""
    place = prefix.split("-")[0]
    files_of: list[tuple[float, int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(OSError):  # another process dropped it
                found = entry.stat(follow_symlinks=False)
                half = entry.name.startswith(FRESH)
                former = entry.name.startswith(f"{place}-") and not entry.name.startswith(prefix)
                if former or (half and found.st_mtime < time.time() - _HALF_WRITTEN):
                    os.unlink(entry.path)
                elif not half:
                    files_of.append((found.st_mtime, found.st_size, entry.path))
    total, count = sum(each for _, each, _ in files_of) + size, len(files_of)
    for _, each, path in sorted(files_of):
        if total <= room and count < MOST_FILES:
            return
        with suppress(OSError):
            os.unlink(path)
        total, count = total - each, count - 1


_OPEN: weakref.WeakSet[PersistedStructures] = weakref.WeakSet()


@atexit.register
def _write() -> None:
    """Write what was derived of files that nobody closed."""
    for each in list(_OPEN):
        with suppress(Exception):
            each.write()


NOTHING = PersistedStructures(None, lambda: False, threading.RLock())
"""Persists nothing: everything is derived."""
