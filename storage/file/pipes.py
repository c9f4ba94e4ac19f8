"""Named pipes whose other end may be slow, or nobody's: who waits for it stops with the statement.

Opening a named pipe waits for its other end, and a thread that waits within the system cannot be stopped.  Here pipes
are opened without waiting, and asked every twentieth of a second.
"""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from graphdb.common.stopping import check_stop

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_TICK = 0.05
"""Seconds between two looks whether to stop."""


def is_pipe(status: os.stat_result) -> bool:
    """Whether a file is a named pipe, on a system that says of one whether somebody has opened its other end."""
    return stat.S_ISFIFO(status.st_mode) and sys.platform.startswith("linux")


class ReadPipe(io.RawIOBase):
    """A named pipe that is read."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def read(self, size: int = -1) -> bytes:
        """Return some bytes, once there are any; none where whoever wrote has closed the pipe."""
        while not self.closed:
            check_stop()
            if select.select([self._file], [], [], _TICK)[0]:
                with suppress(BlockingIOError):
                    return os.read(self._file, size)
        return b""

    def close(self) -> None:
        """Close this end."""
        if not self.closed:
            os.close(self._file)
        super().close()


class WritePipe(io.RawIOBase):
    """A named pipe that is written; what is left when writing fails is dropped."""

    def __init__(self, path: Path) -> None:
        self._failed = False
        while True:
            check_stop()
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                return
            except OSError as error:
                if error.errno != errno.ENXIO:  # nobody reads it yet
                    raise
            time.sleep(_TICK)

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Write some bytes, once there is room for any; return how many."""
        view = memoryview(data).cast("B")
        try:
            while not self._failed:
                check_stop()
                if select.select([], [self._file], [], _TICK)[1]:
                    with suppress(BlockingIOError):
                        return os.write(self._file, view)
        except BaseException:
            self._failed = True
            raise
        return len(view)

    def close(self) -> None:
        """Close this end."""
        if not self.closed:
            os.close(self._file)
        super().close()
