"""Counts side by side: two ways that keep different processors busy, and the one that is done first counts.

What a plan takes for the first time is known by estimates alone, which err by ten times and more.  A host and a device
do not slow each other down much, so to try both at once takes as long as the faster one, whatever was expected; one
after the other, in turns (:mod:`.trials`), takes as long as both (an algorithm portfolio: Huberman, Lukose, Hogg,
Science 1997).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from graphdb.plan.executor import Control
from graphdb.plan.strategy.overtaking import Overtaken, UntilReady

Counted = TypeVar("Counted")

ENDING = 2e-3
"""Seconds that are waited for the end of a thread that was stopped: mostly it takes less, and nobody needs it."""


def race(
    here: Callable[[Control], Counted], there: Callable[[Control], Counted], control: Control
) -> tuple[bool, Counted, Exception | None]:
    """Count here, and by a thread there; whoever is not done first is stopped.

    Parameters
    ----------
    here, there
        Count under the control that they get: ``here`` in the calling thread, which alone reports progress.
    control
        The caller's.

    Returns
    -------
    Whether ``there`` was done first, what was counted, and what ``there`` failed with: then ``here`` went on alone.
    """
    done, cancelled, failures = Future[Counted](), threading.Event(), list[Exception]()
    timeout = None if control.timeout is None else max(control.timeout - control.passed, 0.0)
    theirs = Control(timeout=timeout, cancelled=cancelled, limit=control.limit)

    def run() -> None:
        try:
            done.set_result(there(theirs))
        except Exception as error:  # the caller says what becomes of it
            failures.append(error)

    ours, failed = UntilReady.of(control, done.done), None
    thread = threading.Thread(target=run, name="graphdb-race")
    thread.start()
    try:
        found = here(ours)
    except Overtaken:
        control.rows, control.work, control.threads = theirs.rows, theirs.work, theirs.threads
        control.seconds = theirs.seconds
        return True, done.result(), None
    finally:
        failed = next(iter(failures), None)  # what being cancelled raises is no failure
        cancelled.set()
        thread.join(ENDING)
    ours.report_to(control)
    control.seconds = ours.seconds
    return False, found, failed
