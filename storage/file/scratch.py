"""Scratch directories: private, removed at the end; those of killed processes are removed later.

Whoever works in one holds a lock on it (``flock``), which the system takes back when the process dies, whatever kills
it, in whatever container; so one that nobody holds is left over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from graphdb.common.errors import StorageError

SPILLED, EXPORTED = "graphdb-", ".graphdb-"
"""What the names of directories begin with: of what does not fit into memory, and of exports that are not whole yet."""

_SUFFIX = ".scratch"
"""What they end with, so that nobody's own directory is taken for one."""


@contextmanager
def scratch(prefix: str, folder: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Yield a new directory in ``folder`` (by default the system's for temporary files); it is gone afterwards.

    Raises `OSError` where it cannot be made.
    """
    import shutil
    from tempfile import mkdtemp

    sweep(prefix, folder)
    while True:
        made = mkdtemp(_SUFFIX, prefix, folder)
        descriptor = _locked(made)
        if descriptor is not None:
            break
    try:
        yield Path(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(descriptor)


@contextmanager
def spill_folder(folder: str | None) -> Iterator[Path]:
    """Yield a new directory for what does not fit into memory, in ``folder``, which is made; it is gone afterwards.

    Raises
    ------
    StorageError
        It cannot be made.
    """
    with ExitStack() as stack:
        try:
            if folder is not None:
                os.makedirs(folder, exist_ok=True)
            made = stack.enter_context(scratch(SPILLED, folder))
        except OSError as error:
            raise spill_error(folder, error) from error
        yield made


def spill_error(folder: str | os.PathLike[str] | None, error: OSError) -> StorageError:
    """Return what to raise where a directory for what does not fit into memory cannot be written to."""
    where = f"'{os.fspath(folder)}'" if folder is not None else "the directory of temporary files"
    return StorageError(
        f"cannot write to {where}: {error.strerror or error}", hint="choose another with spill=, or make room there"
    )


def _locked(path: str) -> int | None:
    """Open and lock a new directory; None where somebody has swept it up before that."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    _lock(descriptor, wait=True)
    if os.path.exists(path):
        return descriptor
    os.close(descriptor)
    return None


def sweep(prefix: str, folder: str | os.PathLike[str] | None) -> None:
    """Remove the directories in ``folder`` that killed processes left; what cannot be looked at or removed stays."""
    if folder is None:
        from tempfile import gettempdir

        folder = gettempdir()
    ours = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}" + re.escape(_SUFFIX)).fullmatch
    with suppress(OSError):
        for name in os.listdir(folder):  # sooner than os.scandir, where hardly any is ours
            if name.startswith(prefix) and ours(name):
                with suppress(OSError):
                    _remove_if_left(os.path.join(folder, name))


def _remove_if_left(path: str) -> None:
    import shutil

    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid() and _lock(descriptor, wait=False):
            shutil.rmtree(path)
    finally:
        os.close(descriptor)


def _lock(directory: int, *, wait: bool) -> bool:
    """Lock an open directory; return whether that was possible: not all file systems have locks."""
    import fcntl

    with suppress(OSError):
        fcntl.flock(directory, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return True
    return False
