"""What was derived of a database file, persisted for one user until the file changes.

Partitions, columns and the like are derived from the file's tables, which takes longer than to read them as they lie in
memory.  So when a large file is closed, or the process ends, what took a while to derive is written to the user's own
cache folder, never beside or into the database; whoever of the same user opens the file next maps it.  Nothing of it is
a source of truth: it is found under the file's *stamp* alone, and the folder may be deleted at any time.

The stamp is what the file system says of the file: which it is, its size, and when it was written last (``mtime``, and
``ctime``, which cannot be set).  What is committed is in the file, or in a write-ahead log beside it; while there is
such a log it has no stamp, and everything is derived as if there was no folder.  A stamp is used for what is written
when that was a moment ago, so that no later change can have the same times; DuckDB's lock keeps others from changes as
long as the file is open here.  What the file's statistics count is a part of the names, too, so that a structure is
that of a graph of the same size in any case.

What was derived belongs to one state of the graph (:class:`StateStructures`), and is forgotten with the first change of
it, or when a transaction is rolled back.  Where this process has changed the graph, as a load does, nothing is found;
what was derived since the last change is written when the file is closed, after a checkpoint.

A structure that is derived a second time of the same state did not fit into the memory for such.  It is written to a
file without a name, and mapped from there on: the system may take back the memory that its pages are in, and whoever
drops the structure and asks for it again need not derive it a third time.
"""

from __future__ import annotations

import atexit
import hashlib
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from graphdb._version import __version__
from graphdb.common.arrow import freed_memory
from graphdb.common.config import memory_bytes
from graphdb.common.errors import GraphDBError
from graphdb.storage.compile.cache import FRESH, Cache
from graphdb.storage.persisted import files
from graphdb.storage.persisted.packing import NotPackable
from graphdb.storage.persisted.room import Room

T = TypeVar("T")

FORMAT = 4
"""To be raised with each change of what a structure with the same fields means."""

_LONG = 0.1
"""Seconds of deriving after which memory that was freed meanwhile is given back to the system."""

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

LONGEST = 0.5
"""Seconds of writing after which no further structure is begun: nobody is told why closing a file takes so long."""

_TICK = 0.05
"""Seconds after which a file system that counts in less than milliseconds gives a further change another time: it goes
by the ticks of the system, of ten milliseconds at most."""

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
    checkpoint
        Writes what is in the log to the file; False where the file then has another state than memory.
    spill
        The folder for what does not fit into memory; None for that of the file.
    memory
        Bytes of memory that one structure may take: a larger one is mapped, where nothing else is said.

    Raises
    ------
    GraphDBError
        The environment says how much may be persisted, and it is no size.
    """

    def __init__(
        self,
        path: str | None,
        unchanged: Callable[[], bool],
        lock: threading.RLock,
        checkpoint: Callable[[], bool] = lambda: False,
        spill: str | None = None,
        memory: int = sys.maxsize,
    ) -> None:
        self.memory = memory
        self._path = path
        self._spill = None if path is None else Path(spill or os.path.dirname(os.path.abspath(path)))
        self._unchanged = unchanged
        self._lock = lock
        self._checkpoint = checkpoint
        self._most = 0 if path is None else most_bytes()
        self._stamp = stamp_of(path) if path is not None and self._most else None
        self._stopped = not self._most
        self._depends = False
        """Whether what is derived depends on what was not described."""
        self._now: weakref.ref[StateStructures] | None = None
        """Those of the present state, which its snapshot has."""
        if not self._stopped:
            _OPEN.add(self)

    def of_state(self) -> StateStructures:
        """Return the structures of the state that a snapshot begins with: those of former states are forgotten."""
        found = StateStructures(self)
        self._now = weakref.ref(found)
        return found

    def forget(self) -> None:
        """Forget what was derived: the state is another one by now."""
        self._now = None

    def stop(self) -> None:
        """Persist nothing more: what is derived depends on what was not described."""
        self._stamp, self._stopped, self._depends = None, True, True

    def may_map(self, state: StateStructures) -> bool:
        """Whether structures of a state that do not fit into memory may be mapped."""
        return self._spill is not None and not self._depends and self._is_present(state)

    def mapped(self, value: T) -> T | None:
        """Return a structure whose arrays are mapped from a file; None where that is not possible, or not worth it."""
        if self._spill is None:
            return None
        with suppress(OSError, NotPackable):
            if files.size_of(value) <= _free(self._spill) // _SHARE_OF_FREE:
                return files.mapped(self._spill, value)
        return None

    def room(self, state: StateStructures, memory: int) -> Room:
        """Return room for what is derived of a state: so many bytes of memory, and files where those may be mapped."""
        spill = self._spill
        if spill is None or not self.may_map(state):
            return Room(None, memory)

        def free() -> int:
            with suppress(OSError):
                return _free(spill) // _SHARE_OF_FREE
            return 0

        return Room(spill, memory, free)

    def may_find(self, state: StateStructures) -> bool:
        """Whether structures of a state may have been persisted: it is what the file had when it was opened."""
        if not self._is_present(state) or self._stamp is None or self._path is None:
            return False
        return self._unchanged() and stamp_of(self._path) == self._stamp

    def may_note(self, state: StateStructures) -> bool:
        """Whether a structure of a state may be persisted when the file is closed, if it stays the present one."""
        return self._is_present(state) and not self._stopped

    def _is_present(self, state: StateStructures) -> bool:
        return self._now is not None and self._now() is state

    def names_begin(self, counts: Iterable[object], stamp: tuple[int, ...] | None = None) -> str:
        """Return how the names of the files of a state begin; of the one that was opened, where no stamp is given."""
        stamp = stamp or self._stamp or ()
        place = _digest(os.path.realpath(self._path or ""), stamp[:2])
        return f"{place}-{_digest(stamp, FORMAT, __version__, *counts)}-"

    def write(self, *, closing: bool = False, ahead: Callable[[], None] | None = None) -> None:
        """Write what was derived here and is still in memory, before the file is closed.

        What saves most time for its bytes comes first, for writing ends after :data:`LONGEST`: a process that derives
        the rest again writes it.  Nothing is written where a statement is under way: it has the lock, and is to be
        stopped.  What this process has changed is in the file once that is ``closing``.  What is derived ``ahead``, for
        whoever opens the file next, is written with it; it is not derived where nothing can be persisted.
        """
        if self._lock.acquire(blocking=False):
            try:
                changed = None
                if ahead is not None and self._is_worth_it():
                    if closing and not self._unchanged():
                        changed = self._stamp_of_changes()  # the clock goes on while something is derived
                    ahead()
                self._write(closing, changed)
            finally:
                self._lock.release()

    def _is_worth_it(self) -> bool:
        """Whether anything may be persisted of the file as it is to be closed."""
        if self._stopped or self._path is None or FOLDER.objection() is not None:
            return False
        return _size_with_logs(self._path) >= LARGE

    def _write(self, closing: bool, changed: tuple[tuple[int, ...], float] | None) -> None:
        state = None if self._now is None else self._now()
        fresh = {} if state is None else state.take_fresh()
        if state is None or not fresh or self._stopped or self._path is None or FOLDER.objection() is not None:
            return
        stamp, prefix = (self._stamp, state.prefix) if self.may_find(state) and _is_settled(self._stamp) else (None, "")
        if closing and not self._unchanged() and (changed := changed or self._stamp_of_changes()) is not None:
            stamp, at = changed
            with suppress(GraphDBError):  # somebody has stopped what runs
                prefix = self.names_begin(state.counts(), stamp)
            time.sleep(max(at + _TICK - time.monotonic(), 0.0))
        if stamp is None or not prefix:
            return
        folder, until = FOLDER.folder(), time.monotonic() + LONGEST
        sizes = {}
        for key, (value, _) in fresh.items():
            with suppress(NotPackable):
                sizes[key] = files.size_of(value)
        with suppress(OSError):  # it is derived again the next time
            room = min(self._most, _free(folder) // _SHARE_OF_FREE)
            _make_room(folder, prefix, sum(sizes.values()), room)
            for key in sorted(sizes, key=lambda key: sizes[key] / max(fresh[key][1], SLOW)):
                if sizes[key] > room:
                    continue
                if time.monotonic() > until or stamp_of(self._path) != stamp:
                    return
                room -= sizes[key]
                files.write(folder, prefix + _digest(key), fresh[key][0])

    def _stamp_of_changes(self) -> tuple[tuple[int, ...], float] | None:
        """Return the stamp of the file with what was changed here, and when that was taken; None without one.

        DuckDB's lock keeps others from changes until the file is closed.  By then the clock of the file system must
        have gone on, so that later changes have another: that is known where it counts in less than milliseconds.
        """
        if self._path is None or _size_with_logs(self._path) < LARGE or not self._checkpoint():
            return None
        stamp = stamp_of(self._path)
        if stamp is None or not all(each % 1_000_000 for each in stamp[-2:]):
            return None
        return stamp, time.monotonic()


class StateStructures:
    """The derived structures of one state of a file: what processes before have persisted, and what is to be.

    Once the state is a former one, everything is derived, and nothing noted.
    """

    def __init__(self, owner: PersistedStructures) -> None:
        self._owner = owner
        self.counts: Callable[[], Iterable[object]] = tuple
        """Returns what the file counts."""
        self._is_described = False
        self.prefix = ""
        """How the names of its files begin; empty where no process before can have written any."""
        self._names: frozenset[str] = frozenset()
        self._fresh: dict[tuple[Any, ...], tuple[weakref.ref[Any], float]] = {}
        """What was derived here and took a while, by key, and how many seconds that was."""
        self._derived: set[tuple[Any, ...]] = set()
        """Keys of what was derived here and took a while."""
        self._mapped: dict[tuple[Any, ...], Any] = {}
        """What did not fit into memory: arrays that are mapped take none that the system could not have back."""
        self._read: dict[tuple[Any, ...], Any] = {}
        """What a process before has persisted, and is mapped."""

    @property
    def may_map(self) -> bool:
        """Whether structures that do not fit into memory may be mapped."""
        return self._owner.may_map(self)

    def room(self, memory: int) -> Room:
        """Return room for arrays that something is derived into: so many bytes of memory, and files beyond these."""
        return self._owner.room(self, memory)

    @property
    def possible(self) -> bool:
        """Whether anything may be persisted of this state."""
        return self._owner.may_note(self)

    def describe(self, counts: Callable[[], Iterable[object]]) -> None:
        """Say what the file counts, and what else structures depend on; before that, nothing is found, and noted."""
        self.counts, self._is_described = counts, True
        if self._owner.may_find(self):
            self.prefix = self._owner.names_begin(counts())
            if FOLDER.objection() is None:
                with suppress(OSError):
                    names = os.listdir(FOLDER.folder())
                    self._names = frozenset(name for name in names if name.startswith(self.prefix))

    def get_or_derive(self, key: tuple[Any, ...], derive: Callable[[], T], memory: int | None = None) -> T:
        """Return the structure of a key, of numbers and words: that of a process before, or one that is derived.

        One that takes more than so many bytes of memory, or is derived a second time, which did not fit, is
        :meth:`mapped`.
        """
        found: T | None = self.find(key)
        if found is not None:
            return found
        started = time.perf_counter()
        value = derive()
        if (seconds := time.perf_counter() - started) >= SLOW:
            if key in self._derived or own_bytes(value) > (self._owner.memory if memory is None else memory):
                value = value if (found := self.mapped(key, value)) is None else found
            if seconds >= _LONG:
                freed_memory.give_back()
            self._derived.add(key)
            self.note(key, value, seconds)
        return value

    def mapped(self, key: tuple[Any, ...], value: T) -> T | None:
        """Return the structure of a key with its arrays mapped from a file, as it is found from now on; None where that
        is not possible, or not worth it.
        """
        found = self._owner.mapped(value) if self.may_map and _is_plain(key) else None
        if found is not None:
            self._mapped[key] = found
        return found

    def find(self, key: tuple[Any, ...]) -> Any:
        """Return the structure of a key that is mapped, or that a process before has persisted; None without one."""
        if key in self._mapped and self.may_map:
            return self._mapped[key]
        if not self.has(key):
            return None
        found = self._read.get(key)
        if found is None:
            found = files.read(FOLDER.folder(), self.prefix + _digest(key))
            if found is not None and not own_bytes(found):
                self._read[key] = found
        return found

    def has(self, key: tuple[Any, ...]) -> bool:
        """Whether :meth:`find` finds the structure of a key."""
        if key in self._mapped:
            return self.may_map
        if not self._names or not _is_plain(key) or self.prefix + _digest(key) not in self._names:
            return False
        return self._owner.may_find(self)

    def note(self, key: tuple[Any, ...], value: object, seconds: float = math.inf) -> None:
        """Persist the structure of a key when the file is closed, in the place of what there was, if it still lives.

        To derive it took so many ``seconds``; where nobody measured, it comes before all others.
        """
        if self._is_described and _is_plain(key) and self._owner.may_note(self):
            with suppress(TypeError):  # what cannot be referred to weakly is none of our structures
                self._fresh[key] = weakref.ref(value), seconds

    def take_fresh(self) -> dict[tuple[Any, ...], tuple[Any, float]]:
        """Return what was derived here and is still in memory, by key, with its seconds; it is noted no more."""
        fresh, self._fresh = self._fresh, {}
        return {key: (value, taken) for key, (each, taken) in fresh.items() if (value := each()) is not None}


def own_bytes(value: Any) -> int:
    """Return about how many bytes of memory a structure takes that are not mapped from a file."""
    try:
        return files.unmapped_bytes(value)
    except NotPackable:
        return int(getattr(value, "nbytes", 0))


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


def _size_with_logs(path: str) -> int:
    """Return the bytes of a file and of what is to be written to it."""
    size = 0
    for end in ("", *_LOGS):
        with suppress(OSError):
            size += os.stat(path + end).st_size
    return size


def _is_settled(stamp: tuple[int, ...] | None) -> bool:
    """Whether whatever is written to a file from now on gives it another stamp."""
    return stamp is not None and max(stamp[-2:]) < time.time_ns() - int(_SETTLED * 1e9)


_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
"""How DuckDB's write-ahead logs end, beside the file."""


def most_bytes() -> int:
    """Return what the files of all databases may take together, as the environment says; 0 where nothing is persisted.

    Raises
    ------
    GraphDBError
        It says what is no size.
    """
    chosen = os.environ.get("GRAPHDB_PERSISTED", "")
    if not chosen.strip("0"):
        return 0 if chosen else MOST_BYTES
    return memory_bytes(chosen, "GRAPHDB_PERSISTED")


def bytes_taken() -> int:
    """Return what the files of all databases take together."""
    with suppress(OSError), os.scandir(FOLDER.folder()) as entries:
        return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    return 0


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


NOTHING = StateStructures(PersistedStructures(None, lambda: False, threading.RLock()))
"""Persists nothing: everything is derived."""
