"""Two ways that count side by side: the one that is done first counts, the other is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from graphdb.common.errors import DeviceError, QueryInterrupted, QueryTimeout
from graphdb.plan.executor import Control
from graphdb.plan.strategy.race import Finish, race

Counting = Callable[[Control], int]


def endless(stopped: list[str]) -> Counting:
    """A count that goes on until it is stopped, and says by what."""

    def count(control: Control) -> int:
        try:
            while True:
                control.check()
                time.sleep(1e-3)
        except BaseException as error:
            stopped.append(type(error).__name__)
            raise

    return count


def counts(found: int, after: float = 0.0) -> Counting:
    def count(control: Control) -> int:
        time.sleep(after)
        control.rows, control.seconds = np.array([found]), after
        return found

    return count


def fails(error: Exception) -> Counting:
    def count(control: Control) -> int:
        raise error

    return count


def ended() -> None:
    """Wait for the end of threads that were stopped."""
    for thread in threading.enumerate():
        if thread.name == "graphdb-race":
            thread.join(10.0)
            assert not thread.is_alive()


def test_whoever_is_done_first_counts() -> None:
    stopped: list[str] = []
    control = Control(timeout=30.0)
    assert race(endless(stopped), counts(7, 0.01), control, 0.0) == Finish(7, True, True, None)
    assert (control.rows.tolist(), control.seconds) == ([7], 0.01)
    assert race(counts(8, 0.05), endless(stopped), control, 0.0) == Finish(8, False, True, None)
    assert (control.rows.tolist(), control.seconds) == ([8], 0.05)
    ended()
    assert stopped == ["QueryInterrupted", "QueryInterrupted"]


def test_the_second_begins_only_after_the_head_start() -> None:
    begun, started = list[float](), time.monotonic()

    def second(control: Control) -> int:
        begun.append(time.monotonic() - started)
        return 7

    assert race(counts(8), second, Control(), 60.0) == Finish(8, False, False, None)
    assert not begun
    assert race(endless([]), second, Control(), 0.05).found == 7
    assert begun[0] >= 0.05
    ended()


def test_nobody_waits_for_who_does_not_end() -> None:
    """A device may be in a kernel, or the driver, for some time."""
    begun, leave = threading.Event(), threading.Event()

    def stuck(control: Control) -> int:
        begun.set()
        return int(leave.wait(30.0))

    def first(control: Control) -> int:
        begun.wait(10.0)
        return 8

    started = time.monotonic()
    assert race(first, stuck, Control(), 0.0) == Finish(8, False, True, None)
    assert time.monotonic() - started < 9.0
    leave.set()
    ended()


def test_a_failure_of_the_second_leaves_the_count_to_the_first() -> None:
    error = DeviceError("lost")
    assert race(counts(8, 0.05), fails(error), Control(), 0.0) == Finish(8, False, True, error)


def test_a_failure_of_the_first_stops_the_second() -> None:
    stopped: list[str] = []
    with pytest.raises(MemoryError):
        race(fails(MemoryError()), endless(stopped), Control(), 0.0)
    ended()
    assert set(stopped) <= {"QueryInterrupted"}


@pytest.mark.parametrize("cancel", [False, True])
def test_who_stops_the_run_stops_both(cancel: bool) -> None:
    stopped: list[str] = []
    event = threading.Event()
    control = Control(timeout=None if cancel else 0.05, cancelled=event)
    if cancel:
        threading.Timer(0.05, event.set).start()
    with pytest.raises(QueryInterrupted if cancel else QueryTimeout):
        race(endless(stopped), endless(stopped), control, 0.0)
    ended()
    assert len(stopped) == 2


def test_the_first_alone_reports_progress_and_both_stop_at_the_limit() -> None:
    seen = list[Control]()

    def count(control: Control) -> int:
        seen.append(control)
        time.sleep(0.02)
        return 1

    control = Control(timeout=9.0, limit=5, progress=lambda share: None)
    race(count, count, control, 0.0)
    ours, theirs = (next(c for c in seen if (c.progress is None) is second) for second in (False, True))
    assert (ours.limit, ours.timeout) == (5, 9.0)
    assert theirs.limit == 5
    assert theirs.timeout is not None
    assert theirs.timeout <= 9.0
