"""Work in pieces on several threads, of which the caller's is one: for NumPy's large operations and kernels, which
release the GIL.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

_LEAST, _MOST = 1 << 16, 1 << 18
"""Rows of a piece of several short operations: a thread that was woken up for each of fewer rows would wait for longer
than it works."""


def rows_of_piece(rows: int, threads: int) -> int:
    """Return how many rows threads take at a time of so many, where they run several operations over each piece."""
    return min(max(-(-rows // max(threads, 1)), _LEAST), _MOST)


def in_pieces(work: Callable[[int], Found], pieces: int, threads: int, check: Callable[[], None]) -> list[Found]:
    """Return what ``work`` gives for each of ``0 … pieces-1``, in this order.

    Parameters
    ----------
    threads
        How many work at most; one works on the caller's thread alone.
    check
        Called on the caller's thread before each piece of its own; may raise.

    Raises
    ------
    BaseException
        What ``work`` raises for one of the pieces; the others are not begun any more.
    """
    found: dict[int, Found] = {}
    errors: list[BaseException] = []
    numbers = itertools.count()  # one piece each, without a lock

    def further(check: Callable[[], None]) -> None:
        while not errors:
            check()
            if (number := next(numbers)) >= pieces:
                break
            found[number] = work(number)

    def helped() -> None:
        try:
            further(lambda: None)
        except BaseException as error:  # whatever it is, the caller's thread raises it
            errors.append(error)

    others = [
        threading.Thread(target=helped, name=f"graphdb-pieces-{i}", daemon=True)
        for i in range(min(threads, pieces) - 1)
    ]
    try:
        for other in others:
            other.start()
        further(check)
    except BaseException as error:
        errors.append(error)
        raise
    finally:
        for other in others:
            if other.ident is not None:
                other.join()
    if errors:
        raise errors[0]
    return [found[number] for number in range(pieces)]
