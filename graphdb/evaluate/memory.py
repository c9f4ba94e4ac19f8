"""How much memory rows in Python take, and their lists and texts on the way to DuckDB, which counts neither."""

from __future__ import annotations

import os
import sys
import time
from collections import deque

from graphdb.common.config import LIBRARIES, Budget
from graphdb.common.errors import MemoryLimitError

_EVERY = 0.01
"""Seconds between two looks: some ten megabytes of rows."""

_LATELY = (-_EVERY, 0)
"""When it was last found out what the process held as a statement began, and that: statements that come at once after
others do not ask the system again, which takes as long as much of what small ones do."""

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
"""Bytes of a page of memory, where the system counts in them."""


class MemoryWatch:
    """Watches what a process grows by while a statement runs; its growth is the rows', and what is derived for them.

    Parameters
    ----------
    budget
        What the database may take: to grow by more than all of it means that the rows alone are too much.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        global _LATELY
        now = time.monotonic()
        if now >= _LATELY[0] + _EVERY:
            _LATELY = now, resident()
        self._begin = max(_LATELY[1], LIBRARIES)  # of the libraries some may be still to come
        self._allowed = budget.rows
        self._next = now + _EVERY

    def again(self) -> MemoryWatch:
        """Return one for a run that begins now."""
        return MemoryWatch(self._budget)

    def check(self) -> None:
        """Raise if the statement takes too much.

        Raises
        ------
        MemoryLimitError
            It does.
        """
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY
        grown = resident() - self._begin
        if grown > self._allowed:
            raise MemoryLimitError(
                f"the statement's rows take more memory than the limit: {grown >> 20:,} MiB so far",
                hint="raise memory_limit, or ask for less; EXPLAIN says what is done row by row",
            )


_CHUNK = 2048
"""Rows that DuckDB computes at a time."""


class ChunkWatch:
    """Counts what the values of a chunk's rows take, which DuckDB has all at once.

    Parameters
    ----------
    most
        What they may take together.
    what, instead
        What the error says of them, with a place for their number, and what its hint adds.
    """

    def __init__(self, most: int, what: str, instead: str = "") -> None:
        self._most, self._what, self._instead = most, what, instead
        self._recent: deque[int] = deque(maxlen=_CHUNK)
        """What each of the last rows' values takes."""
        self._together = 0

    def begin(self) -> None:
        """Begin another run."""
        self._recent.clear()
        self._together = 0

    def add(self, size: int) -> None:
        """Count the next row's value."""
        recent = self._recent
        self._together += size - (recent[0] if len(recent) == _CHUNK else 0)
        recent.append(size)
        self.check(self._together)

    def check(self, together: int) -> None:
        """Raise if values take too much.

        Raises
        ------
        MemoryLimitError
            They do.
        """
        if together > self._most:
            raise MemoryLimitError(
                f"{self._what.format(together)} do not fit in memory",
                hint=f"raise memory_limit{self._instead}",
            )


def resident() -> int:
    """Return the bytes of memory that this process holds (at most so far, where the system does not say more)."""
    try:
        file = os.open("/proc/self/statm", os.O_RDONLY)  # no object that an interrupt could leave open behind it
        try:
            return int(os.read(file, 256).split()[1]) * _PAGE
        finally:
            os.close(file)
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
