"""Waiting for a device while the caller's limits are checked: cancellation, timeout, progress."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Protocol

from graphdb.gpu.code.launch import StopFlag

SPINNING = 3e-4
"""Seconds in which it is asked again and again: to sleep takes a system some 60 microseconds more than was asked for,
also where that is nothing."""
SHARE, LONGEST = 0.05, 2e-3
"""The share of the time so far that is slept through then, and the seconds at most."""


_give_way: Callable[[], object] = getattr(os, "sched_yield", lambda: None)
"""Let other threads run that wait for a processor, where the system can be asked for that."""


class Watch(Protocol):
    """What a run asks now and then: :class:`graphdb.plan.executor.Control`."""

    def check(self) -> None:
        """Raise if the run must stop now."""


def wait_for(end: Any, watch: Watch, stop: StopFlag, clean: Callable[[], None]) -> None:
    """Wait for an event, asking ``watch`` meanwhile; what it raises stops the kernels first, and then ``clean``."""
    started = time.monotonic()
    try:
        while not end.done:
            watch.check()
            waited = time.monotonic() - started
            if waited < SPINNING:
                _give_way()
            else:
                time.sleep(min(SHARE * waited, LONGEST))
    except BaseException:
        stop.set()
        end.synchronize()
        stop.clear()
        clean()
        raise
