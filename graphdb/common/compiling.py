"""What is being compiled just now: said to the user when it takes longer than a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_AFTER = 1.0
"""Seconds after which it is said."""


def _print(text: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")


class _State:
    what: str | None = None
    tell: Callable[[str], None] = staticmethod(_print)


def now() -> str | None:
    """Return the name of the kernel that is being compiled; None where nothing is."""
    return _State.what


def tell_by(listener: Callable[[str], None]) -> None:
    """Have a listener say it, instead of a line on a terminal's standard error."""
    _State.tell = staticmethod(listener)


@contextmanager
def announced(what: str) -> Iterator[None]:
    """Say that ``what`` is being compiled, if that takes longer than a second."""
    timer = threading.Timer(_AFTER, lambda: _State.tell(f"compiling {what} (once for this machine)…"))
    timer.daemon = True
    _State.what = what
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _State.what = None
