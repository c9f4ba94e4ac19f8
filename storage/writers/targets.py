"""Where an export goes: a file or folder written atomically, a pipe, or standard output."""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedWriter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, BinaryIO

from graphdb.common.errors import StorageError
from graphdb.storage.file.pipes import WritePipe, is_pipe
from graphdb.storage.file.scratch import EXPORTED, scratch

if TYPE_CHECKING:
    import duckdb

STREAM = "-"
"""Standard output."""

_BUFFER = 1 << 20
_HERE, _EXCHANGE = -100, 2
"""Of the call renameat2: paths are as always; two paths change places."""


def refuse_databases(connection: duckdb.DuckDBPyConnection, target: Path) -> None:
    """Refuse to write over a database that is open here, or its log.

    Raises
    ------
    StorageError
        ``target`` is one, by whatever name.
    """
    for (path,) in connection.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchall():
        for file in (path, path + ".wal"):
            with suppress(OSError):
                if os.path.samefile(target, file):
                    raise StorageError(f"'{target}' is the database itself", hint="export to another file")


@contextmanager
def opened(target: Path) -> Iterator[IO[bytes]]:
    """Open what is written to, compressed as its name says.

    What is written to a file takes its place once it is whole, and on the disk; a link stays one, and so does a pipe.

    Raises
    ------
    StorageError
        It is a directory.
    OSError
        It cannot be written.
    """
    if target.is_dir():
        raise StorageError(f"cannot write '{target}': it is a directory")
    with ExitStack() as stack:
        if str(target) == STREAM:
            file: BinaryIO = sys.stdout.buffer
            stack.callback(file.flush)
        elif target.is_fifo() and is_pipe(target.stat()):
            file = stack.enter_context(BufferedWriter(WritePipe(target), _BUFFER))
        elif _is_stream(target):
            file = stack.enter_context(target.open("wb", _BUFFER))
        else:
            file = stack.enter_context(_whole(Path(os.path.realpath(target))))
        yield _packed(stack, file, target.suffix.lower())


@contextmanager
def whole_folder(target: Path, names: Collection[str]) -> Iterator[Path]:
    """Yield a folder to write files with some ``names`` to; at the end it takes the place of ``target``.

    Raises
    ------
    StorageError
        There is something else: a file, or a folder with other files, which would be lost.
    """
    target = Path(os.path.realpath(target))
    if target.is_dir():
        others = sorted(set(os.listdir(target)).difference(names))
        if others:
            raise StorageError(
                f"the folder '{target}' has other files, such as {others[0]}", hint="export to a folder of its own"
            )
    elif str(target) == STREAM or os.path.lexists(target):
        raise StorageError(f"cannot write '{target}': Parquet tables are a folder, and this is none")
    with scratch(EXPORTED, target.parent) as folder:
        made = folder / "made"
        made.mkdir()
        yield made
        for path in (*made.iterdir(), made):
            _sync(path)
        if target.is_dir():
            _exchange(made, target, folder / "old")
        else:
            made.rename(target)
        _sync(target.parent)


def _is_stream(target: Path) -> bool:
    """Whether this is no file that another one can take the place of: a pipe, a device."""
    if target.is_relative_to("/dev") or target.is_relative_to("/proc"):
        return True
    with suppress(OSError):
        return not stat.S_ISREG(os.stat(target).st_mode)
    return False


@contextmanager
def _whole(target: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``target`` at the end."""
    with scratch(EXPORTED, target.parent) as folder:
        made = folder / "made"
        with made.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            shutil.copymode(target, made)
        made.replace(target)
        _sync(target.parent)


def _packed(stack: ExitStack, file: BinaryIO, suffix: str) -> IO[bytes]:
    """Compress what is written to a file, as the suffix of its name says; ``stack`` ends it."""
    packed: Any = file
    if suffix == ".gz":
        from isal import igzip

        packed = igzip.IGzipFile("", "wb", 2, file, mtime=0)  # type: ignore[no-untyped-call]
    elif suffix == ".zst":
        from graphdb.storage.zstd import ZstdFile

        packed = ZstdFile(file, "wb")
    else:
        return file
    stack.enter_context(packed)
    return packed  # type: ignore[no-any-return]


def _exchange(made: Path, target: Path, old: Path) -> None:
    """Let two folders change places, at once where the system can."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None or call(_HERE, os.fsencode(made), _HERE, os.fsencode(target), _EXCHANGE) != 0:
        target.rename(old)
        made.rename(target)


def _sync(path: Path) -> None:
    """Have the disk hold a file, or the names in a folder."""
    with suppress(PermissionError):  # a folder that may be written to and not read
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)
