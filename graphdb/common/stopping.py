"""Cancellation: the statement of this thread stops at its deadline, or once another thread cancels it.

A statement that begins notes both here (:class:`stopping`).  Loops in Python that may take long ask
(:func:`check_stop`, :func:`checked`), however deep below the statement they are: parsing, planning, evaluation by
rows, loads and exports.  DuckDB and the executors are stopped by their own means, at the same deadline.

Ctrl-C is an exception that Python raises wherever the main thread is.  Within a finalizer or a callback of a weak
reference or a garbage collection, whoever's that is, Python drops it; it is then raised at the next check, or at the
statement's end.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from graphdb.common.arguments import brief
from graphdb.common.errors import ParameterError, QueryInterrupted, QueryTimeout

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

Item = TypeVar("Item")

EVERY = 1024
"""Items of a loop between two checks: a millisecond where an item takes a microsecond."""


Limits: TypeAlias = "tuple[float | None, float, threading.Event | None]"
"""When a statement must stop, by ``time.monotonic``, how many seconds it had, and who is set to stop it."""

_NONE: Limits = (None, 0.0, None)


class _Thread(threading.local):
    """The limits of a thread's statement: one value, which an interrupt cannot leave half changed."""

    limits = _NONE
    dropped = False
    """Whether Python dropped a Ctrl-C that came for it."""


_THREAD = _Thread()

_former: Callable[[UnraisableHookArgs], object] = sys.unraisablehook
"""Who is told of other errors that Python drops."""


def _note_dropped(unraisable: UnraisableHookArgs) -> None:
    """Note an error that Python drops, if it is Ctrl-C, which only the main thread gets."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        _THREAD.dropped = True
    else:
        _former(unraisable)


def _note_from_now_on() -> None:
    global _former
    _THREAD.dropped = False
    if sys.unraisablehook is not _note_dropped:
        _former = sys.unraisablehook
        sys.unraisablehook = _note_dropped


class stopping:  # a context manager, named as those of contextlib are
    """Within this context, the thread's statement stops after ``timeout`` seconds, or when ``cancelled`` is set.

    Within another one the earlier deadline holds.

    Parameters
    ----------
    timeout
        Seconds from now; None for any time.
    cancelled
        Set by another thread to stop the statement.
    """

    __slots__ = ("_before", "_cancelled", "_timeout")

    def __init__(self, timeout: float | None, cancelled: threading.Event | None = None) -> None:
        self._timeout = timeout
        self._cancelled = cancelled

    def __enter__(self) -> None:
        self._before = deadline, timeout, cancelled = _THREAD.limits
        if self._before is _NONE and threading.get_ident() == threading.main_thread().ident:
            _note_from_now_on()
        if self._timeout is not None:
            asked = time.monotonic() + self._timeout
            if deadline is None or asked < deadline:
                deadline, timeout = asked, self._timeout
        _THREAD.limits = deadline, timeout, self._cancelled or cancelled

    def __exit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        _THREAD.limits = self._before
        if self._before is _NONE and threading.get_ident() == threading.main_thread().ident:
            if sys.unraisablehook is _note_dropped:
                sys.unraisablehook = _former
            dropped, _THREAD.dropped = _THREAD.dropped, False
            if dropped and kind is not KeyboardInterrupt:
                raise KeyboardInterrupt from None


def limits() -> Limits:
    """Return the limits of this thread's statement."""
    return _THREAD.limits


class under:  # a context manager, as above
    """Within this context, this thread, which works for another one's statement, stops with it."""

    __slots__ = ("_before", "_limits")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def __enter__(self) -> None:
        self._before, _THREAD.limits = _THREAD.limits, self._limits

    def __exit__(self, *_: object) -> None:
        _THREAD.limits = self._before


def seconds_of(timeout: object) -> float | None:
    """Return a timeout that a caller gave as seconds; None for any time.

    Raises
    ------
    ParameterError
        It is no number of seconds, or a negative one.
    """
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout != timeout:
        raise ParameterError(f"timeout must be a number of seconds, found {brief(timeout)}")
    if timeout < 0:
        raise ParameterError(f"timeout must be 0 seconds at least, found {brief(timeout)}", hint="None sets no limit")
    return None if timeout > threading.TIMEOUT_MAX else float(timeout)


def check_stop() -> None:
    """Raise if the statement of this thread must stop now.

    Raises
    ------
    QueryTimeout
        Its time is over.
    QueryInterrupted
        It was cancelled.
    KeyboardInterrupt
        Python dropped one.
    """
    deadline, timeout, cancelled = _THREAD.limits
    if _THREAD.dropped:
        _THREAD.dropped = False
        raise KeyboardInterrupt
    if cancelled is not None and cancelled.is_set():
        raise QueryInterrupted("the statement was interrupted")
    if deadline is not None and time.monotonic() > deadline:
        raise QueryTimeout(
            f"the statement ran longer than its timeout of {timeout:g} s",
            hint="give it more time, or ask for less with LIMIT",
        )


def checked(items: Iterable[Item], every: int = EVERY) -> Iterator[Item]:
    """Yield the items, checking before the first of each ``every``; see :func:`check_stop`."""
    for i, item in enumerate(items):
        if i % every == 0:
            check_stop()
        yield item


def deadline() -> float | None:
    """Return when, by ``time.monotonic``, this thread's statement must stop; None where it has any time."""
    return _THREAD.limits[0]


def no_limits() -> None:
    """Forget the limits of an interrupted statement of this thread."""
    _THREAD.limits = _NONE


def time_left() -> float | None:
    """Return the seconds until the deadline of this thread's statement, at least 0; None where it has none."""
    deadline = _THREAD.limits[0]
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)
