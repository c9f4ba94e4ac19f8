"""Device copies of lists that take changes in place (:mod:`graphdb.storage.graph.in_place.spans`), which follow them.

What a batch writes stands behind everything before it, in the host's pool as in the copy: so a copy follows by that
tail, and by the rows of the table of those vertices that changed.  It takes the time of the batch and of the lists
that it changes, whatever the graph has; a copy that is far behind gets the table whole.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.data.memory import DeviceMemory
from graphdb.storage.graph.in_place.spans import Spans

Scatter = Callable[[Any, Any, Any], None]
"""Writes rows of a table by their numbers (:meth:`graphdb.gpu.code.launch.Device.scatter`)."""
SPANS = "spans"
"""What such copies are cached as, each by the :class:`~graphdb.storage.graph.in_place.spans.Spans` that it is of."""
_FREE_AT_FIRST, _FREE_LATER, _SLACK = 8, 2, 1 << 12
"""One part in so many of a copy is free when it is made, and where it has grown, and so many elements more."""
_ROW = 16
"""Bytes of a row of the table; its number has half as many."""


class SpansCopy:
    """The arrays of :class:`~graphdb.storage.graph.in_place.spans.Spans` on a device, as of some version.

    Attributes
    ----------
    version
        The one that it is of; -1: of none.
    """

    def __init__(self, memory: DeviceMemory) -> None:
        self._memory, self._lock = memory, threading.Lock()
        self._table: Any = None
        self._neighbours: Any = None
        self._code_offsets: Any = None
        self._codes: Any = None
        self._sizes = (0, 0, 0)
        """How much of the three is that of the version."""
        self.version = -1

    @property
    def nbytes(self) -> int:
        """Bytes on the device, free ones included."""
        arrays = (self._table, self._neighbours, self._code_offsets, self._codes)
        return sum(int(array.nbytes) for array in arrays if array is not None)

    @property
    def arrays(self) -> tuple[Any, Any, Any, Any]:
        """Table (flat), neighbours, code offsets and codes, as far as they are in use: views."""
        entries, offsets, codes = self._sizes
        if self._code_offsets is None:
            return self._table, self._neighbours[:entries], None, None
        return self._table, self._neighbours[:entries], self._code_offsets[:offsets], self._codes[:codes]

    def follow(self, spans: Spans, scatter: Scatter) -> None:
        """Become the copy of the latest version.

        Raises
        ------
        MemoryLimitError
            The pool has grown, and there is too little memory for the new one beside the old one.
        """
        with self._lock:
            if self.version == spans.version:
                return
            used = spans.arrays
            copies = (self._neighbours, self._code_offsets, self._codes)
            self._neighbours, self._code_offsets, self._codes = map(self._with_tail, copies, self._sizes, used)
            changed = _rows_to_write(spans, self.version)
            if changed is None or self._table is None or self._table.size != spans.table.size:
                if self._table is None or self._table.size != spans.table.size:
                    self._table = self._memory.empty(spans.table.size, np.int64)
                self._memory.write(self._table, spans.table.reshape(-1))
            elif len(changed):
                rows, values = self._memory.upload(changed), self._memory.upload(spans.rows_of(changed))
                scatter(self._table, rows, values)
            self._sizes = _sizes(spans)
            self.version = spans.version

    def missing(self, spans: Spans) -> int:
        """Bytes to be copied until it is the copy of the latest version."""
        if self.version == spans.version:
            return 0
        widths = (spans.neighbours.itemsize, 8, 8)
        tails = sum(width * (now - done) for width, now, done in zip(widths, _sizes(spans), self._sizes, strict=True))
        changed = _rows_to_write(spans, self.version)
        return tails + (spans.table.nbytes if changed is None else len(changed) * _ROW * 3 // 2)

    def _with_tail(self, copy: Any, done: int, values: NDArray[Any] | None) -> Any:
        """The copy of an array of which ``done`` elements are there, with all of them."""
        if values is None:
            return None
        if copy is None or copy.size < len(values):
            free = len(values) // (_FREE_AT_FIRST if copy is None else _FREE_LATER)
            larger = self._memory.empty(len(values) + free + _SLACK, values.dtype)
            if copy is not None:
                larger[:done] = copy[:done]
            copy = larger
        self._memory.write(copy[done : len(values)], values[done:])
        return copy


def missing_bytes(copy: SpansCopy | None, spans: Spans) -> int:
    """Bytes to be copied until a copy, if there is one, is that of the latest version."""
    if copy is not None:
        return copy.missing(spans)
    return spans.table.nbytes + sum(array.nbytes for array in spans.arrays if array is not None)


def _sizes(spans: Spans) -> tuple[int, int, int]:
    neighbours, code_offsets, codes = spans.arrays
    if code_offsets is None or codes is None:
        return len(neighbours), 0, 0
    return len(neighbours), len(code_offsets), len(codes)


def _rows_to_write(spans: Spans, version: int) -> NDArray[np.int64] | None:
    """The rows of the table that changed since a version; None where it is written whole."""
    changed = spans.changed_since(version) if version >= 0 else None
    return None if changed is None or 3 * len(changed) > 2 * len(spans.table) else changed
