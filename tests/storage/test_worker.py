"""A worker thread, and items that it makes while the ones before are used."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from graphdb.common.stopping import check_stop
from graphdb.storage.updates.worker import Worker, WorkerClosed


def test_items_are_made_ahead_in_their_order() -> None:
    made: list[int] = []
    second = threading.Event()

    def items() -> Iterator[int]:
        for number in range(5):
            made.append(number)
            if number == 1:
                second.set()
            yield number

    worker = Worker()
    found = []
    for number in worker.ahead(items()):
        assert second.wait(10), "the second is not made while the first is used"
        found.append(number)
    worker.close()
    assert found == made == [0, 1, 2, 3, 4]
    assert list(Worker().ahead(iter(()))) == []


def test_what_an_item_raises_is_raised_where_it_is_used() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("no second")

    worker = Worker()
    rest = worker.ahead(items())
    assert next(rest) == 1
    with pytest.raises(ValueError, match="no second"):
        next(rest)
    worker.close()


def test_nothing_is_made_once_nobody_reads_on() -> None:
    """Who reads no further waits for the item that is being made: what it is made of may be taken away then."""
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield 1
        begun.set()
        assert go_on.wait(10)
        done.set()
        yield 2

    worker = Worker()
    rest = worker.ahead(items())
    assert next(rest) == 1
    assert begun.wait(10)
    threading.Timer(0.2, go_on.set).start()
    rest.close()  # type: ignore[attr-defined]
    assert done.is_set()
    worker.close()


def test_a_worker_that_is_closed_makes_nothing() -> None:
    worker = Worker()
    rest = worker.ahead(iter([1, 2, 3]))
    assert next(rest) == 1
    worker.close()
    with pytest.raises(WorkerClosed):
        list(rest)


def test_what_a_closed_worker_is_at_stops_where_it_asks() -> None:
    begun, gave_up = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        for _ in range(1000):  # ten seconds, where it is wrong
            time.sleep(0.01)
            check_stop()
        gave_up.set()

    worker = Worker()
    worker.submit(work)
    assert begun.wait(10)
    check_stop()  # which stops the worker alone
    worker.close()
    assert not gave_up.is_set()
