"""Waiting for a device while the caller's limits are checked: cancellation, timeout, progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

from graphdb.gpu.launch import StopFlag


class Watch(Protocol):
    """What a run asks now and then: :class:`graphdb.plan.executor.Control`."""

    def check(self) -> None:
        """Raise if the run must stop now."""


def wait_for(end: Any, watch: Watch, stop: StopFlag, clean: Callable[[], None]) -> None:
    """Wait for an event, asking ``watch`` meanwhile; what it raises stops the kernels first, and then ``clean``."""
    pause = 0.0
    try:
        while not end.done:
            watch.check()
            time.sleep(pause)
            pause = min(pause + 2e-5, 2e-3)
    except BaseException:
        stop.set()
        end.synchronize()
        stop.clear()
        clean()
        raise
