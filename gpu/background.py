"""Work of a thread that nobody waits for: it gives the interpreter away at once."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from graphdb.gpu.code.compiler import Cancelled

INTERVAL = 1e-4
"""Seconds after which a thread that runs Python gives the interpreter to one that waits for it, meanwhile."""

_lock = threading.Lock()
_depth, _before = 0, 0.0


def while_alive() -> None:
    """Nobody waits: raise only where the process ends, which would wait for this thread."""
    if not threading.main_thread().is_alive():
        raise Cancelled


@contextmanager
def in_background() -> Iterator[None]:
    """Have other threads wait 0.1 ms for the interpreter instead of 5 while this one runs Python.

    A query comes back to the interpreter between its kernels, some ten times in a millisecond: beside a thread that
    writes code, each time took 5 ms (:func:`sys.setswitchinterval`, which is the process's).  What was set before is
    set again at the end, unless somebody else has set it meanwhile.
    """
    global _depth, _before
    with _lock:
        if _depth == 0:
            _before = sys.getswitchinterval()
            sys.setswitchinterval(min(INTERVAL, _before))
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and abs(sys.getswitchinterval() - min(INTERVAL, _before)) < 1e-6:
                sys.setswitchinterval(_before)
