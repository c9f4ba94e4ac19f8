"""Directories for what is under way: ours alone, gone afterwards; what killed processes left is swept up.

Whoever works in one holds a lock on it (``flock``), which the system takes back when the process dies, whatever kills
it, in whatever container; so one that has something in it and that nobody holds is left over.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SPILLED, EXPORTED = "graphdb-", ".graphdb-"
"""What the names of directories begin with: of what does not fit into memory, and of exports that are not whole yet."""

_YOUNG = 60
"""Seconds in which an empty directory may be somebody's who has yet to lock it."""


@contextmanager
def scratch(prefix: str, folder: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield a new directory in ``folder`` (by default the system's for temporary files); it is gone afterwards.

    Raises `OSError` where it cannot be made.
    """
    from tempfile import TemporaryDirectory

    sweep(prefix, folder)
    with TemporaryDirectory(prefix=prefix, dir=folder, ignore_cleanup_errors=True) as made:
        held = os.open(made, os.O_RDONLY)
        try:
            _lock(held, wait=True)
            yield Path(made)
        finally:
            os.close(held)


def sweep(prefix: str, folder: str | os.PathLike[str] | None) -> None:
    """Remove the directories in ``folder`` that killed processes left; what cannot be looked at or removed stays."""
    if folder is None:
        from tempfile import gettempdir

        folder = gettempdir()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with suppress(OSError):
                    _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    import shutil

    held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        found = os.fstat(held)
        if found.st_uid != os.geteuid() or not _lock(held, wait=False):
            return
        if os.listdir(held) or time.time() - found.st_mtime > _YOUNG:
            shutil.rmtree(path)
    finally:
        os.close(held)


def _lock(directory: int, *, wait: bool) -> bool:
    """Lock an open directory; return whether that was possible: not all file systems have locks."""
    import fcntl

    with suppress(OSError):
        fcntl.flock(directory, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    return False
