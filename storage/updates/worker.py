"""A worker thread with a queue, for a caller who may be interrupted at any moment.

``concurrent.futures`` takes locks in Python: Ctrl-C between two lines of it leaves one locked, and the thread waits for
it for ever.  Here the caller waits in C alone (`queue.SimpleQueue`, a lock), which an interrupt leaves as it was.

Once a worker is closed, what it is at stops where it asks (:func:`graphdb.common.stopping.check_stop`).
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from graphdb.common.stopping import stopping

T = TypeVar("T")

_TICK = 0.1
"""Seconds between two looks at whether a worker was closed."""


class Task(Generic[T]):
    """A piece of work that was handed to a :class:`Worker`."""

    __slots__ = ("_done", "_outcome")

    def __init__(self) -> None:
        self._done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._outcome: tuple[Any, BaseException | None] | None = None

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the work for so long; return whether it has come."""
        if self._outcome is None:
            try:
                self._outcome = self._done.get(timeout=seconds)
            except Empty:
                return False
        return True

    def result(self) -> T:
        """Return what the work returned, or raise what it raised; it has ended."""
        assert self._outcome is not None
        value, error = self._outcome
        if error is not None:
            raise error
        return value  # type: ignore[no-any-return]


class WorkerClosed(Exception):
    """A worker was closed before it did what somebody waits for."""


class Worker:
    """One thread; it begins with the first task."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Callable[[], Any], Task[Any]] | None] = SimpleQueue()
        self._busy = threading.RLock()
        """Held by the thread while it works; in the end by who has closed it."""
        self._begun = False
        self._stopped = threading.Event()

    def submit(self, work: Callable[[], T]) -> Task[T]:
        """Have a piece of work done after those before it."""
        task = Task[T]()
        if not self._begun:
            self._begun = True
            _thread.start_new_thread(self._run, ())
        self._tasks.put((work, task))
        return task

    def ahead(self, items: Iterator[T]) -> Iterator[T]:
        """Yield items, of which the worker makes each while the caller is at the one before.

        Raises `WorkerClosed` once the worker is closed.
        """
        upcoming: Task[list[T]] = self.submit(partial(_upcoming, items))
        try:
            while self._ended(upcoming) and (found := upcoming.result()):
                upcoming = self.submit(partial(_upcoming, items))
                yield found.pop()
        finally:
            self._ended(upcoming)  # whoever reads no further may take away what items are made of
        if self._stopped.is_set():
            raise WorkerClosed

    def _ended(self, task: Task[Any]) -> bool:
        """Wait for the end of a task; return whether it has come, and not that of the worker before."""
        while not task.wait(_TICK):
            if self._stopped.is_set():
                return task.wait(0)
        return True

    def stop(self) -> None:
        """Begin nothing more, and let what is under way stop; :meth:`close` waits for its end."""
        self._stopped.set()

    def close(self, interrupt: Callable[[], object] = lambda: None, *, every: float = 0.1) -> None:
        """Begin nothing more, and wait for the end of what is under way, calling ``interrupt`` again and again.

        Where that is interrupted, it can be done again.
        """
        self.stop()
        self._tasks.put(None)
        while not self._busy.acquire(timeout=every):
            interrupt()

    def _run(self) -> None:
        while (item := self._tasks.get()) is not None:
            if not self._busy.acquire(blocking=False):  # it has been closed
                return
            try:
                if self._stopped.is_set():
                    return
                work, task = item
                outcome: tuple[Any, BaseException | None]
                try:
                    with stopping(None, self._stopped):
                        outcome = work(), None
                except BaseException as error:
                    outcome = None, error
                task._done.put(outcome)
                del item, work, task, outcome  # what a result holds is not to live until the next task
            finally:
                self._busy.release()


def _upcoming(items: Iterator[T]) -> list[T]:
    """Return the next item, or nothing at the end."""
    return list(islice(items, 1))
