"""Counts side by side: two ways that keep different processors busy, and the one that is done first counts.

What a plan takes for the first time is known by estimates alone, which err by ten times and more.  The way that is
expected to be done first has a head start, since two slow each other down; where it is not done by then, the other one
is begun beside it.  So an estimate that is right costs nothing, and one that is wrong about as long as the faster way
takes: hedged requests (Dean, Barroso, *The Tail at Scale*, CACM 2013).  Ways that share a processor take turns instead
(:mod:`.trials`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from graphdb.common.errors import QueryInterrupted
from graphdb.plan.executor import Control

Counted = TypeVar("Counted")

ENDING = 2e-3
"""Seconds that are waited for the end of a thread that was stopped: mostly it takes less, and nobody needs it."""


@dataclass(frozen=True, slots=True)
class Finish(Generic[Counted]):
    """How a race ended."""

    found: Counted
    overtaken: bool
    """Whether the second was done first."""
    began: bool
    """Whether the second was begun."""
    failed: Exception | None
    """What the second failed with: then the first went on alone."""


class _Either(threading.Event):
    """Set where the caller's event is, or the other way is done."""

    def __init__(self, callers: threading.Event | None, done: Future[Any]) -> None:
        super().__init__()
        self._callers, self._done = callers, done

    def is_set(self) -> bool:
        return self._done.done() or (self._callers is not None and self._callers.is_set())


def race(
    first: Callable[[Control], Counted], second: Callable[[Control], Counted], control: Control, head_start: float
) -> Finish[Counted]:
    """Count by ``first`` in the calling thread, and after ``head_start`` seconds by ``second`` in another one, too.

    Whoever is not done first is stopped.  Each gets a control of its own; the first's reports progress, and what it
    raises is raised.
    """
    done, stopped, failures = Future[Counted](), threading.Event(), list[Exception]()
    began = threading.Event()
    timeout = None if control.timeout is None else max(control.timeout - control.passed, 0.0)
    ours = replace(control, cancelled=_Either(control.cancelled, done))
    theirs = Control(timeout=timeout, cancelled=stopped, limit=control.limit)

    def run() -> None:
        if head_start and stopped.wait(head_start):
            return
        began.set()
        try:
            done.set_result(second(theirs))
        except Exception as error:  # the caller says what becomes of it
            failures.append(error)

    thread, failed, ran = threading.Thread(target=run, name="graphdb-race"), None, ours
    thread.start()
    try:
        found, overtaken = first(ours), False
    except QueryInterrupted:
        if not done.done() or (control.cancelled is not None and control.cancelled.is_set()):
            raise
        found, overtaken, ran = done.result(), True, theirs
    finally:
        failed = next(iter(failures), None)  # what being stopped raises is no failure
        stopped.set()
        thread.join(ENDING)
    control.rows, control.work, control.threads, control.seconds = ran.rows, ran.work, ran.threads, ran.seconds
    control._share, control._reported_at = ours._share, ours._reported_at
    return Finish(found, overtaken, began.is_set(), failed)
