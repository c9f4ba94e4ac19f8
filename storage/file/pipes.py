"""Pipes whose other end may be slow, or nobody's: who waits for it stops with the statement.

Opening a named pipe waits for its other end, and a thread that waits within the system cannot be stopped.  Here named
pipes are opened without waiting, and they, standard input and what else a caller has open are asked every twentieth of
a second.
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
from typing import TYPE_CHECKING, BinaryIO

from graphdb.common.stopping import check_stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import ReadableBuffer

_TICK = 0.05
"""Seconds between two looks whether to stop."""


def is_pipe(status: os.stat_result) -> bool:
    """Whether a file is a named pipe, on a system that says of one whether somebody has opened its other end."""
    return stat.S_ISFIFO(status.st_mode) and sys.platform.startswith("linux")


def read_pipe(path: Path) -> io.FileIO:
    """Open a named pipe to read, whether or not somebody has opened its other end."""
    return io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK))


class Reader(io.RawIOBase):
    """What is read of a stream, in pieces as large as is asked for where there is as much to come.

    A pipe, a terminal or a socket is waited for until it has something to say.  Where the system cannot be asked
    whether it has (Windows), and for streams that are no file of the system, reading waits and is not stopped.
    Bytes that the stream has read ahead, from before, wait for the next ones or for its end, whichever comes first.

    Parameters
    ----------
    stream
        An open binary stream.
    ours
        Whether it is closed with its reader.
    """

    def __init__(self, stream: BinaryIO | io.FileIO, *, ours: bool) -> None:
        self._ours = ours
        self._stream = stream
        self._poll = _poll(stream)
        # Once there is something, one call of the system's does not wait; a second might.
        self._read = stream.read if self._poll is None else getattr(stream, "read1", stream.read)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: ReadableBuffer) -> int:
        """Fill the buffer as far as there is something to come; return how many bytes there were."""
        view = memoryview(buffer).cast("B")
        done = 0
        while done < len(view) and (piece := self._piece(len(view) - done)):
            view[done : done + len(piece)] = piece
            done += len(piece)
        return done

    def _piece(self, size: int) -> bytes | None:
        """Return some bytes, once there are any; none at the end."""
        if self._poll is None:
            return self._read(size)
        while not self.closed:
            check_stop()
            if self._poll(_TICK * 1000) and (piece := self._read(size)) is not None:
                return piece
        return None

    def close(self) -> None:
        """Close the stream, too, if it is ours."""
        if self._ours:
            self._stream.close()
        super().close()


def _poll(stream: BinaryIO | io.FileIO) -> Callable[[float], object] | None:
    """Return what waits some milliseconds for a stream to say something; None for files and what cannot be asked."""
    try:
        file = stream.fileno()
        mode = os.fstat(file).st_mode
    except (AttributeError, OSError, ValueError):
        return None
    if not hasattr(select, "poll") or stat.S_ISREG(mode):
        return None
    asked = select.poll()
    asked.register(file, select.POLLIN)
    return asked.poll


class WritePipe(io.RawIOBase):
    """A named pipe that is written; what is left when writing fails is dropped."""

    def __init__(self, path: Path) -> None:
        self._failed = False
        while True:
            check_stop()
            try:
                self._file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
                break
            except OSError as error:
                if error.errno != errno.ENXIO:  # nobody reads it yet
                    raise
            time.sleep(_TICK)
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLOUT)

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Write some bytes, once there is room for any; return how many."""
        view = memoryview(data).cast("B")
        try:
            while not self._failed:
                check_stop()
                if self._poll.poll(_TICK * 1000):
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
