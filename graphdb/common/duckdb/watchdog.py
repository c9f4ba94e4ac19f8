"""Stops that reach DuckDB while it works: a thread that interrupts connections whose statement must end.

DuckDB looks for Ctrl-C in some of its calls only, and forgets an interrupt that comes between two of them.  So a
connection is watched while it works: once its deadline has passed, or it was cancelled, or the main thread that waits
for it got a signal, it is interrupted again and again until it is watched no more.  Signals reach the thread by
Python's wakeup file descriptor, into which the interpreter writes their numbers as they come, whatever the main thread
does.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import suppress
from typing import Protocol

_AGAIN = 0.02
"""Seconds between two interrupts of a connection that does not end."""


class Watched(Protocol):
    """What may have to be stopped."""

    def overdue(self, now: float) -> bool:
        """Whether it must end, by ``time.monotonic``."""

    def due(self) -> float | None:
        """When it must end, by ``time.monotonic``; None where that has no time."""

    def stop(self) -> None:
        """Interrupt it."""


class Watchdog:
    """One thread for all connections of a process; it is started with the first one that is watched."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[Watched, bool]] = {}
        self._signalled: set[int] = set()
        self._signals = b""
        """Signals that came while somebody else's file descriptor was away."""
        self._stopping: int | None = None
        """What is being stopped, if it has to be."""
        self._hearing = False
        """Whether signals are being read."""
        self._thread: threading.Thread | None = None
        self._reading, self._writing = -1, -1

    def watch(self, watched: Watched, *, main: bool) -> int | None:
        """Watch until :meth:`release`; returns the file descriptor that had the signals before, for that.

        ``main`` says that the main thread waits for it, which Ctrl-C is for.
        """
        if self._thread is None:
            self._start()
        if main:
            self._hear_earlier()
        former = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False) if main else None
        self._watched[id(watched)] = watched, main
        if watched.due() is not None:
            self._wake()
        return former

    def release(self, watched: Watched, former: int | None) -> None:
        """Watch it no more; signals go where they went before."""
        self._watched.pop(id(watched), None)
        self._leave(watched)
        if former is None or former == self._writing:
            return
        with suppress(ValueError, OSError):  # its owner closed it meanwhile
            signal.set_wakeup_fd(former)
            if former >= 0 and self._signals:
                os.write(former, self._signals)
        self._signals = b""

    def has_signal(self, watched: Watched) -> bool:
        """Whether a signal came for it."""
        return id(watched) in self._signalled

    def calm(self, watched: Watched) -> None:
        """Forget a signal that came for it, heard yet or not: it is ending."""
        if self._thread is not None:
            self._hear_earlier()
        self._leave(watched)

    def _hear_earlier(self) -> None:
        """Take what signals came: they are for nothing that comes."""
        while self._hearing:
            time.sleep(0)
        with suppress(BlockingIOError):
            self._signals += os.read(self._reading, 1 << 12).replace(b"\0", b"")
            self._wake()  # what else was in the pipe

    def _leave(self, watched: Watched) -> None:
        """Wait for a stop that is under way: it would reach what comes next on the connection."""
        self._signalled.discard(id(watched))
        while self._stopping == id(watched):
            time.sleep(0)

    def wake(self) -> None:
        """Look again now: something was cancelled."""
        if self._thread is not None:
            self._wake()

    def _wake(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._writing, b"\0")

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._reading, self._writing = os.pipe()
                os.set_blocking(self._reading, False)
                os.set_blocking(self._writing, False)
                self._thread = threading.Thread(target=self._run, name="graphdb-watchdog", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        wait: float | None = None
        while True:
            ready, _, _ = select.select([self._reading], [], [], wait)
            if ready:
                self._hearing = True
                with suppress(BlockingIOError):
                    signals = os.read(self._reading, 1 << 12).replace(b"\0", b"")
                    self._signals += signals
                    if signal.SIGINT in signals:
                        self._signalled.update(key for key, (_, main) in list(self._watched.items()) if main)
                self._hearing = False
            wait = self._look()

    def _look(self) -> float | None:
        """Stop what must end; return the seconds until the next look, None for when somebody wakes the thread."""
        now, wait = time.monotonic(), None
        for key, (watched, _) in list(self._watched.items()):
            self._stopping = key  # first: whoever takes it away from here on waits
            if key in self._watched and (key in self._signalled or watched.overdue(now)):
                with suppress(Exception):  # it is being closed
                    watched.stop()
                wait = _AGAIN
            elif (due := watched.due()) is not None:
                wait = min(max(due - now, 0.0) + 0.001, wait if wait is not None else 3600.0)
            self._stopping = None
        return wait


WATCHDOG = Watchdog()
"""The one of this process."""


def _begin_anew() -> None:
    """Forget, in a forked process, the thread that it does not have."""
    WATCHDOG.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_begin_anew)
