"""A stop reaches the statement that it is for, and none that comes after it."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from graphdb.common.duckdb.watchdog import Watchdog


class _Statement:
    """What is overdue, or not, and takes a while to be stopped."""

    def __init__(self, overdue: bool, takes: float = 0.0) -> None:
        self._overdue, self._takes = overdue, takes
        self.stopping, self.stopped = threading.Event(), 0

    def overdue(self, now: float) -> bool:
        return self._overdue

    def due(self) -> float | None:
        return 0.0 if self._overdue else None

    def stop(self) -> None:
        self.stopping.set()
        time.sleep(self._takes)
        self.stopped += 1


def test_what_ends_waits_for_a_stop_that_is_under_way() -> None:
    watchdog, statement = Watchdog(), _Statement(True, 0.2)
    former = watchdog.watch(statement, main=False)
    assert statement.stopping.wait(10)
    watchdog.release(statement, former)
    stopped = statement.stopped
    assert stopped > 0
    time.sleep(0.1)
    assert statement.stopped == stopped


@pytest.mark.parametrize("stopped", [True, False])
def test_a_signal_is_for_the_statement_in_which_it_came(stopped: bool) -> None:
    """On a busy machine the thread hears of it when the next one runs, be it that the first was stopped or had ended."""
    watchdog, handled, go_on = Watchdog(), threading.Event(), threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: handled.set())
    try:
        busy = _Statement(True)
        busy.stop = lambda: (busy.stopping.set(), go_on.wait())  # type: ignore[assignment, method-assign, return-value]
        watchdog.watch(busy, main=False)
        assert busy.stopping.wait(10)  # the thread comes no further
        first = _Statement(False)
        former = watchdog.watch(first, main=True)
        os.kill(os.getpid(), signal.SIGINT)
        assert handled.wait(10)
        if stopped:
            watchdog.calm(first)
        watchdog.release(first, former)
        second = _Statement(False)
        former = watchdog.watch(second, main=True)
        go_on.set()
        watchdog.release(busy, None)
        time.sleep(0.3)
        watchdog.release(second, former)
        assert second.stopped == 0
    finally:
        signal.signal(signal.SIGINT, before)
