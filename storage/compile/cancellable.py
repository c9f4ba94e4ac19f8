"""Cancellable computations: a caller may stop waiting for them.

NumPy's sorts and counts cannot be interrupted.  A long one therefore runs in a thread of its own, while the caller's
thread checks every few milliseconds whether to go on.  When it stops, the caller returns at once, and the thread's
result is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_WAIT = 0.02
"""Seconds between two checks."""


def run_cancellable(work: Callable[[], T], check: Callable[[], None]) -> T:
    """Return ``work()``, calling ``check()`` meanwhile: what it raises ends the wait, and so does Ctrl-C."""
    found: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:  # the caller's thread raises it
            errors.append(error)

    thread = threading.Thread(target=run, name="graphdb-derive", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_WAIT)
        check()
    if errors:
        raise errors[0]
    return found[0]
