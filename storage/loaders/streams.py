"""Bytes of data files: decompressed, in blocks of whole lines, read ahead by a thread.

Whatever its format, a file reaches the parser as blocks of N-Triples or N-Quads text: :func:`blocks` hands on what
the reader of its format produces.
"""

from __future__ import annotations

import atexit
import io
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import BinaryIO

from graphdb.common.errors import LoadError
from graphdb.common.stopping import stopping
from graphdb.storage.loaders.compression import Damaged, decompressed, refuse_utf16
from graphdb.storage.loaders.files import DataFile

BLOCK = 4 << 20
"""Bytes of text read at a time."""

LONGEST_LINE = 64 << 20
"""Bytes that a line may have."""

LONGEST_ROW = 16 << 20
"""Bytes that a line of a table may have."""

LONGEST_TOKEN = 16 << 20
"""Bytes that a tag or a text in XML may have."""


_WAIT = 0.05
"""Seconds between two looks whether those who wait for a block go on."""

_PATIENCE = 0.2
"""Seconds to wait for a reader that is not wanted any more."""

_AT_EXIT = 10.0
"""Seconds that the process waits at its exit for readers that still work."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that breaks the grammar: its file, its number, the place in it (in characters, from 1), and why.

    ``line`` and ``column`` are None where the reader of the format does not tell.
    """

    source: str
    line: int | None
    column: int | None
    message: str
    hint: str | None
    text: str | None

    def error(self) -> LoadError:
        """Return it as an error."""
        return LoadError(
            self.message, source=self.source, line=self.line, column=self.column, text=self.text, hint=self.hint
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of N-Triples or N-Quads, and how many bytes on disk were read so far.

    ``bad`` holds what its reader could not turn into lines, ``prefixes`` what the file declares, ``rows`` how many of a
    table are done with it.
    """

    text: bytes | memoryview
    consumed: int
    bad: list[BadLine] = field(default_factory=list)
    prefixes: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0


class Stopped(Exception):
    """Nobody waits for more blocks."""


class Put:
    """Hands blocks on to whoever waits for them, up to ``ahead`` of them in advance.

    Raises :class:`Stopped` where nobody waits any more.  Both sides wait in C alone (``queue.SimpleQueue``): a Ctrl-C
    within ``queue.Queue``, which takes locks in Python, could leave one locked.
    """

    def __init__(self, ahead: int) -> None:
        self._ready: SimpleQueue[Block | BaseException | None] = SimpleQueue()
        self._room: SimpleQueue[None] = SimpleQueue()
        """An entry for each block that may be handed on before another one is taken."""
        for _ in range(ahead):
            self._room.put(None)
        self.stopped = threading.Event()
        """Set once nobody waits any more."""
        self._interrupt: Callable[[], object] | None = None
        self._in_library = False
        """Whether it opens, works in or closes what is to be interrupted."""

    def __call__(self, item: Block | BaseException | None) -> None:
        """Hand on a block, an error in the place of one, or None: there are no more."""
        while not self.stopped.is_set():
            try:
                self._room.get(timeout=0.1)
            except Empty:
                continue
            self._ready.put(item)
            return
        raise Stopped

    def check(self) -> None:
        """Raise :class:`Stopped` where nobody waits any more; for readers that hand nothing on for long."""
        if self.stopped.is_set():
            raise Stopped

    def get(self, watch: Callable[[], object]) -> Block | BaseException | None:
        """Wait for what comes next, and call ``watch`` meanwhile, which may raise."""
        while True:
            try:
                item = self._ready.get(timeout=_WAIT)
            except Empty:
                watch()
                continue
            self._room.put(None)
            return item

    def enter_library(self) -> None:
        """Have the process wait at its exit for what a library is about to do.

        Raises
        ------
        Stopped
            Nobody waits any more, and maybe the process has ended its waiting, too.
        """
        self._in_library = True  # first: who stops this thread looks after it has said so
        self.check()

    @contextmanager
    def interrupting(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Have ``interrupt`` called, again and again, once nobody waits: for work that hands nothing on meanwhile."""
        self._interrupt = interrupt
        try:
            self.enter_library()
            yield
        finally:
            self._interrupt = None

    def stop(self, thread: threading.Thread) -> None:
        """Wait for no more blocks, but for the thread that hands them on.

        A library that reads a whole document at once, or plans for long, cannot be interrupted: its thread is left
        alone after a while, and ends when it reads or hands on something, or hears of an interrupt.
        """
        self.stopped.set()
        until = time.monotonic() + _PATIENCE
        while thread.is_alive() and time.monotonic() < until:
            self._hurry(thread)
        if thread.is_alive() and self._in_library:
            stopper = threading.Thread(target=self._stop_later, args=(thread,), name="graphdb-stop", daemon=True)
            _STOPPERS[:] = [*(other for other in _STOPPERS if other.is_alive()), stopper]
            stopper.start()

    def _stop_later(self, thread: threading.Thread) -> None:
        while thread.is_alive():
            self._hurry(thread)

    def _hurry(self, thread: threading.Thread) -> None:
        if (interrupt := self._interrupt) is not None:
            interrupt()
        thread.join(_WAIT)


_STOPPERS: list[threading.Thread] = []
"""Threads that wait for those that were left alone."""


@atexit.register
def _wait_for_libraries() -> None:
    """Wait for what was left alone: Python ends daemons at its exit, and within DuckDB that aborts the process."""
    until = time.monotonic() + _AT_EXIT
    for stopper in _STOPPERS:
        if stopper.is_alive():
            stopper.join(max(until - time.monotonic(), 0.0))


def blocks(
    produce: Callable[[Put], None], watch: Callable[[], object] = lambda: None, ahead: int = 4
) -> Iterator[Block]:
    """Yield the blocks that ``produce`` hands on, from a thread that keeps up to ``ahead`` of them ready.

    ``watch`` is called while there is none.  Raises what ``produce`` or ``watch`` raise.
    """
    put = Put(ahead)

    def read() -> None:
        try:
            with suppress(Stopped), stopping(None, put.stopped):  # who waits for a pipe, too
                produce(put)
                put(None)
        except BaseException as error:  # handed to the consumer, who raises it
            with suppress(Stopped):
                put(error)

    thread = threading.Thread(target=read, name="graphdb-read", daemon=True)
    try:
        thread.start()
        while (item := put.get(watch)) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        put.stop(thread)


def read_lines(file: DataFile, put: Put, size: int | None = None) -> None:
    """Hand on the text of a file of lines in blocks of about ``size`` bytes, cut at line ends.

    The last block may lack its line end.

    Raises
    ------
    LoadError
        Where the file cannot be opened, read or decompressed, or has a line of more than :data:`LONGEST_LINE`.
    """
    pieces: list[bytes] = []
    length = read = 0
    for chunk, consumed in chunks(file, size or BLOCK):
        cut = _cut(chunk)
        read += len(chunk)
        if cut:
            put(Block(b"".join([*pieces, memoryview(chunk)[:cut]]), consumed))
            pieces, length = [], 0
        pieces.append(chunk[cut:])
        length += len(chunk) - cut
        if length > LONGEST_LINE:
            raise too_long("line", LONGEST_LINE, file, _line(file, read - length))
    if length:
        put(Block(b"".join(pieces), file.size))


def _line(file: DataFile, place: int) -> int | None:
    """Return the number of the line that begins at a place in the text; None where that can be read only once."""
    if file.stream is not None:
        return None
    line = 1
    for chunk, _ in chunks(file):
        line += chunk.count(b"\n", 0, max(place, 0))
        place -= len(chunk)
    return line


def too_long(what: str, limit: int, file: DataFile, line: int | None) -> LoadError:
    """Return the error of a line or token of more than ``limit`` bytes."""
    size = f"{limit >> 20} MiB" if limit >> 20 else f"{limit:,} bytes"
    return LoadError(
        f"a {what} is longer than {size}", source=file.name, line=line, hint=f"is this really {file.format.name}?"
    )


def _cut(chunk: bytes) -> int:
    """Return the position behind the last line end in ``chunk``; a carriage return at its end may be half of one."""
    cut = chunk.rfind(b"\n") + 1
    return cut or chunk.rfind(b"\r", 0, len(chunk) - 1) + 1


# --- bytes -----------------------------------------------------------------------------------------------------


class _Counted(io.RawIOBase):
    """A stream of bytes that knows how many were read of it; pipes cannot tell."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count: int = self._raw.readinto(buffer)  # type: ignore[attr-defined]
        self.count += count
        return count

    def read(self, size: int = -1) -> bytes:  # what RawIOBase makes of readinto copies twice
        data = self._raw.read(size)
        self.count += len(data)
        return data


def chunks(file: DataFile, size: int = BLOCK) -> Iterator[tuple[bytes, int]]:
    """Yield decompressed bytes, at most ``size`` at a time where possible, and the position in the file on disk.

    A byte order mark is left out.

    Raises
    ------
    LoadError
        Where the file cannot be opened, read or decompressed, or is text in UTF-16.
    """
    try:
        with file.open() as raw:
            counted = _Counted(raw)
            first = True
            for chunk in decompressed(counted, file.compression, size):
                if first:
                    refuse_utf16(chunk, file.name)
                    chunk = chunk.removeprefix(_MARK)
                first = False
                yield chunk, counted.count
            if file.compression and not counted.count:
                raise EOFError
    except OSError as error:
        # gzip.BadGzipFile is an OSError without a number
        reason = error.strerror or f"it is not a valid {file.compression} file ({error})"
        raise LoadError(f"cannot read '{file.name}': {reason}") from error
    except EOFError as error:
        raise LoadError(f"cannot read '{file.name}': the compressed file is cut short", hint=_AGAIN) from error
    except Damaged as error:
        raise LoadError(f"cannot read '{file.name}': the compressed file is damaged ({error})", hint=_AGAIN) from error


_MARK = b"\xef\xbb\xbf"
"""The byte order mark that some programs begin UTF-8 with; it is no part of the text."""

_AGAIN = "fetch or compress the file again"
