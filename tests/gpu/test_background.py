"""Threads that nobody waits for give the interpreter away: others have it within a fraction of a millisecond."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from graphdb.gpu.background import INTERVAL, in_background


def test_the_interval_is_set_once_and_set_back() -> None:
    before = sys.getswitchinterval()
    with in_background():
        assert sys.getswitchinterval() == pytest.approx(INTERVAL)
        with in_background():
            assert sys.getswitchinterval() == pytest.approx(INTERVAL)
        assert sys.getswitchinterval() == pytest.approx(INTERVAL)
    assert sys.getswitchinterval() == before


def test_what_others_set_meanwhile_stays() -> None:
    before = sys.getswitchinterval()
    try:
        with in_background():
            sys.setswitchinterval(0.02)
        assert sys.getswitchinterval() == pytest.approx(0.02)
    finally:
        sys.setswitchinterval(before)


def test_others_have_the_interpreter_soon() -> None:
    """A thread that gives it away and wants it back, beside one that runs Python: with and without."""
    over = threading.Event()

    def back(times: int = 40) -> float:
        started = time.perf_counter()
        for _ in range(times):
            time.sleep(1e-6)
        return (time.perf_counter() - started) / times

    def busy() -> None:
        while not over.is_set():
            sum(range(100))

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        alone = back()
        with in_background():
            assert min(back() for _ in range(3)) < max(alone / 2, 2e-3)
    finally:
        over.set()
        thread.join()
