"""Machine code made at run time, cached on disk for one user: in files that nobody else can write or has written.

Whoever can change a file of machine code can have anything run.  So the folder is the user's own and closed to others,
and so are its files; both are looked at before any is read, and each file begins with a digest of the rest, so that
what was half written is not run either.  The number of files is bounded: the least recently used ones go first.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_DROPPED = 8
"""One of so many files is dropped when there are too many."""


def objection(place: Path) -> str | None:
    """Return why nothing is read from a folder, made if it is missing; None where it is private."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
        found = place.lstat()
        if not stat.S_ISDIR(found.st_mode):
            return "it is no folder"
        if found.st_uid != os.geteuid():
            return "it belongs to another user"
        if found.st_mode & 0o077:
            return "others may use it: chmod 700 it"
        for above in place.resolve().parents:
            found = above.stat()
            shared = found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX
            if found.st_uid not in (0, os.geteuid()) or shared:
                return f"another user can change {above}"
        if not os.access(place, os.W_OK):
            return "it cannot be written"
    except OSError as error:
        return error.strerror or str(error)
    return None


def is_private(found: os.stat_result) -> bool:
    """Return whether a file is the user's own, and closed to others."""
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


@dataclass(frozen=True, slots=True)
class Cache:
    """Files of one kind of machine code, by name.

    Parameters
    ----------
    kind
        The name of their folder.
    most
        So many files stay: of several checkouts and versions, too.
    """

    kind: str
    most: int

    def folder(self) -> Path:
        """Return where they are: in ``$GRAPHDB_CACHE_DIR``, or ``graphdb`` in the user's cache folder."""
        if chosen := os.environ.get("GRAPHDB_CACHE_DIR"):
            return Path(chosen) / self.kind
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphdb" / self.kind

    def objection(self) -> str | None:
        """Return why nothing is read from the folder; None where it is private."""
        return objection(self.folder())

    def count(self) -> int:
        """Return how many files there are."""
        try:
            return len(_files(self.folder()))
        except OSError:
            return 0

    def read(self, name: str) -> bytes | None:
        """Return what was written by a name; None where that is missing, damaged, or may be another user's."""
        place = self.folder()
        if objection(place):
            return None
        try:
            descriptor = os.open(place / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            if not is_private(os.fstat(descriptor)):
                return None
            content = file.read()
            with suppress(OSError):
                os.utime(descriptor)  # it was used
        digest, rest = content[:32], content[32:]
        return rest if hashlib.sha256(rest).digest() == digest else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all; without a private folder, nothing."""
        place = self.folder()
        if objection(place):
            return
        with suppress(OSError):  # it is made again the next time
            descriptor, fresh = tempfile.mkstemp(dir=place, prefix=FRESH)  # only the user can read and write it
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(hashlib.sha256(content).digest() + content)
                os.replace(fresh, place / name)
            except OSError:
                with suppress(OSError):
                    os.unlink(fresh)
            self._drop_old(place)

    def _drop_old(self, place: Path) -> None:
        """Drop the files that were used longest ago, where there are too many."""
        files = _files(place)
        if len(files) <= self.most:
            return
        used: list[tuple[float, str]] = []
        for file in files:
            with suppress(OSError):  # another process dropped it
                used.append((file.stat().st_mtime, file.path))
        for _, path in sorted(used)[: len(files) - self.most + self.most // _DROPPED]:
            with suppress(OSError):
                os.unlink(path)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Have other processes of the user wait that want to make the same."""
        place = self.folder()
        if objection(place):
            yield
            return
        lock = place / f"{name}{_LOCK}"
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            with suppress(OSError):
                os.unlink(lock)
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a process that was forked meanwhile has the descriptor, too
            os.close(descriptor)


FRESH, _LOCK = ".fresh-", ".lock"
"""How files begin that are being written, and how those end that processes wait for."""


def _files(place: Path) -> list[os.DirEntry[str]]:
    """Return the files of a folder that hold code."""
    with os.scandir(place) as entries:
        return [entry for entry in entries if not entry.name.endswith(_LOCK) and not entry.name.startswith(FRESH)]
