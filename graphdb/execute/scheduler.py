"""Schedules pieces of work on threads, while the caller's thread checks timeout, cancellation and progress.

Counts use it, since their workers accumulate locally.  A search hands its matches over in order while it runs:
see :mod:`graphdb.execute.search.chunks`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

WAIT = 0.02
"""Seconds after which the caller's thread looks at the clock, while it waits for workers."""

Piece = TypeVar("Piece")
Pause: TypeAlias = Callable[[], None]


def schedule(
    pieces: Iterable[Piece],
    work: Callable[[Piece, int, Pause], None],
    workers: int,
    watch: Pause,
    halt: Pause = lambda: None,
    wait: Callable[[float], float] = lambda most: most,
) -> None:
    """Have every piece worked on, in their order, each by the next worker that is free.

    Parameters
    ----------
    work
        Does a piece: called with it, the worker's number, and what to call every few milliseconds; where that raises,
        the run has been stopped.
    workers
        How many threads; with 0 the caller's thread does all.
    watch
        Called in the caller's thread every few milliseconds: what it raises stops the run.
    halt
        Called when the run is to stop, in whatever thread: for work that does not return so often.
    wait
        Seconds until ``watch`` is called next, given how many at most (:meth:`graphdb.plan.executor.Control.wait`).

    Raises
    ------
    BaseException
        What ``watch`` or ``work`` raised, once all workers have ended.
    """
    if not workers:
        for piece in pieces:
            watch()
            work(piece, 0, watch)
        return
    left, lock, stopped = iter(pieces), threading.Lock(), threading.Event()
    errors: list[BaseException] = []

    def stop() -> None:
        stopped.set()
        halt()

    def pause() -> None:
        if stopped.is_set():
            raise _Stopped

    def run(worker: int) -> None:
        try:
            while not stopped.is_set():
                with lock:
                    piece = next(left, None)
                if piece is None:
                    return
                work(piece, worker, pause)
        except _Stopped:
            pass
        except BaseException as error:  # whatever it is, the caller's thread raises it
            errors.append(error)
            stop()

    threads = [threading.Thread(target=run, args=(i,), name=f"graphdb-{i}", daemon=True) for i in range(workers)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            while thread.is_alive():
                thread.join(wait(WAIT))
                watch()
    finally:
        if any(thread.is_alive() for thread in threads):
            stop()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


class _Stopped(Exception):
    """Another worker failed, or the caller gave up."""
