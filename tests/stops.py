"""Stops what runs from another thread, as a user's interrupt or Ctrl-C does, and never what runs after it.

How late it stops is measured (:class:`Stopwatch`) by what the process does meanwhile: time in which others have the
processors, or in which the process itself does not run, says nothing of it.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import graphdb
from graphdb.storage.compile import jit
from graphdb.storage.compile.entries import Entry

AGAIN = 0.5
"""Seconds after which a stop is repeated: one that comes before the statement begins stops nothing."""

PATIENCE = 60.0
"""Seconds for which a test waits for what another thread or process does, before it fails."""
EVER = 600.0
"""Seconds of a statement that would go on for ever where it is wrong, and takes none of them where it is right."""


class _Compiler:
    """How long this process compiled kernels, as it does once where nothing is cached, or waited for another one."""

    def __init__(self) -> None:
        self.passed = self.worked = 0.0
        self._make = jit.make

    def make(self, entry: Entry, variant: str) -> bytes:
        """See :func:`graphdb.storage.compile.jit.make`."""
        begun = time.monotonic(), time.process_time()
        try:
            return self._make(entry, variant)
        finally:
            self.passed += time.monotonic() - begun[0]
            self.worked += time.process_time() - begun[1]


COMPILER = _Compiler()
"""What kernels are made by in all tests, one at a time."""


QUIET = "GRAPHDB_STOPS_SLACK" in os.environ
"""Whether nothing else runs on the machine: who says how late a stop may be says so, too."""


class Stopwatch:
    """Seconds since it was made in which this process worked, without those in which it compiled kernels.

    They are no more than have passed, and no more than its threads had a processor for, so that whatever else the
    machine does adds nothing.  On a quiet machine they are all that passed.  What only waits takes none elsewhere: a
    test of that needs an event.
    """

    def __init__(self) -> None:
        self._begun = self._now()

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.monotonic() - COMPILER.passed, time.process_time() - COMPILER.worked

    def seconds(self) -> float:
        """Return how many there are by now."""
        passed, worked = (now - then for now, then in zip(self._now(), self._begun, strict=True))
        return passed if QUIET else min(passed, worked)


def answered(
    db: graphdb.Database, text: str, given: Mapping[str, object] | None = None, *, within: float, **named: Any
) -> graphdb.Result:
    """Run a query that works for so many seconds at most, whatever else the machine does."""
    watch = Stopwatch()
    try:
        return db.query(text, given, timeout=EVER, **named)
    finally:
        assert watch.seconds() < within


def soon(stop: Callable[[], float], at_once: float, at_most: float = math.inf) -> None:
    """Assert of what is stopped, and says how many seconds that took, that it is at once.

    In one of some tries: in others the machine may be busy with something else.  None may take longer than ``at_most``.
    """
    took: list[float] = []
    while not took or took[-1] > at_once:
        assert len(took) < 8, f"took {took} seconds to stop"
        took.append(stop())
        assert took[-1] < at_most


def waited_for(happens: Callable[[], object]) -> bool:
    """Look again and again whether something happens, and return whether it does."""
    end = time.monotonic() + PATIENCE
    while not happens():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@contextmanager
def interrupted(db: graphdb.Database, how: str, after: float) -> Iterator[None]:
    """Stop, in some seconds, what runs meanwhile: by ``interrupt`` or a ``signal``; a ``timeout`` is the statement's.

    On a busy machine the moment may come before or after all of what runs here.  A signal is an error only within.
    """
    over, changing = threading.Event(), threading.Lock()

    def ctrl_c(*_: object) -> None:
        if not over.is_set():
            raise KeyboardInterrupt

    def stop() -> None:
        wait = after
        while not over.wait(wait):
            with changing:
                if over.is_set():
                    return
                if how == "interrupt":
                    db.interrupt()
                else:
                    os.kill(os.getpid(), signal.SIGINT)
            wait = AGAIN

    before = signal.signal(signal.SIGINT, ctrl_c)
    stopper = threading.Thread(target=stop)
    try:
        if how != "timeout":
            stopper.start()
        yield
    finally:
        try:
            over.set()
        finally:  # a signal may come in the line before, and no other within AGAIN
            over.set()
        if how != "timeout":
            stopper.join()
        signal.signal(signal.SIGINT, before)
