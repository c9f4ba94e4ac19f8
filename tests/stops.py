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
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import graphdb

AGAIN = 0.5
"""Seconds after which a stop is repeated: one that comes before the statement begins stops nothing."""

PATIENCE = 60.0
"""Seconds for which a test waits for what another thread or process does, before it fails."""


QUIET = "GRAPHDB_STOPS_SLACK" in os.environ
"""Whether nothing else runs on the machine: who says how late a stop may be says so, too."""


class Stopwatch:
    """Seconds since it was made in which this process worked; on a quiet machine, all that passed.

    They are no more than have passed, and no more than its threads had a processor for, so that whatever else the
    machine does adds nothing.  What only waits takes none: a test of that needs an event, or a quiet machine.
    """

    def __init__(self) -> None:
        self._begun = time.monotonic(), time.process_time()

    def seconds(self) -> float:
        """Return how many there are by now."""
        passed, worked = (
            now - then for now, then in zip((time.monotonic(), time.process_time()), self._begun, strict=True)
        )
        return passed if QUIET else min(passed, worked)


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
