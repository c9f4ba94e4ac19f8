"""A queue of a search's rows, for a caller who may start another run before reading them all.

A search's kernel stays on the device until its rows are copied to the host.  Allocating memory or loading another
kernel may wait for that kernel, for ever where the waiting thread is the one that reads.  So before the reader's next
run, the remaining rows are copied to host memory.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.stream import HostRows
from graphdb.gpu.watch import Watch

_PAUSE = 2e-3
"""Seconds between two questions whether to go on waiting."""


class RowQueue:
    """Gives the blocks of a search in their order.

    Parameters
    ----------
    blocks
        They, each row of which is a match.
    most
        Bytes of them that may wait in host memory, about.
    """

    def __init__(self, blocks: Iterator[HostRows], most: int) -> None:
        self._blocks, self._most = blocks, most
        self._waiting: deque[HostRows] = deque()
        self._failed: Exception | None = None
        self._enough = False
        self._lock = threading.Lock()
        self.reader = threading.get_ident()
        """The thread that reads."""

    def __iter__(self) -> Iterator[HostRows]:
        return self

    def __next__(self) -> HostRows:
        self.reader = threading.get_ident()
        with self._lock:
            if self._waiting:
                return self._waiting.popleft()
            if self._failed is not None:
                raise self._failed
            return next(self._blocks)

    def empty(self, watch: Watch) -> None:
        """Take all rows from the device, asking ``watch`` meanwhile.

        Raises
        ------
        MemoryLimitError
            Where they are more than may wait; nothing is lost.
        """
        self._enough = False
        pool = ThreadPoolExecutor(1, "graphdb-rows")
        under_way = pool.submit(self._take)
        pool.shutdown(wait=False)
        try:
            while not wait([under_way], _PAUSE).done:
                watch.check()
        finally:
            self._enough = True  # who leaves does not wait for the rest
        if not under_way.result():
            raise MemoryLimitError(
                "the rows of another query, which is still being read, do not leave the device: they are more than "
                f"{self._most:,} bytes",
                hint="read that result to its end, or close it, before the next query",
            )

    def _take(self) -> bool:
        """Whether all were taken."""
        with self._lock:
            size_so_far = sum(cells.nbytes for cells, _, _ in self._waiting)
            while size_so_far <= self._most and not self._enough:
                try:
                    block = next(self._blocks, None)
                except Exception as error:  # the reader's, not that of who starts another run
                    self._failed = error
                    return True
                if block is None:
                    return True
                self._waiting.append(block)
                size_so_far += block[0].nbytes
            return False
