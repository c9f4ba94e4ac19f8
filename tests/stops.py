"""Stops what runs from another thread, as a user's interrupt or Ctrl-C does, and never what runs after it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import graphdb

AGAIN = 0.5
"""Seconds after which a stop is repeated: one that comes before the statement begins stops nothing."""


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
