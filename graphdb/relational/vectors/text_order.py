"""Texts in the order of their bytes, as DuckDB has it: eight of them are compared at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.stopping import check_stop, checked
from graphdb.storage.arrays.arrow import string_places
from graphdb.storage.arrays.texts import taken

Ints = NDArray[np.int64]


_AT_ONCE = 1 << 24
"""Bytes of texts, in the mean, that are compared between two looks at whether the statement must stop."""


def extreme_texts(function: str, array: arrow.Array, rows: Ints, numbers: Ints, count: int) -> arrow.Array:
    """Return the least (``min``) or greatest text of each group, of some rows with a text; null of a group without any.

    Parameters
    ----------
    rows, numbers
        The places of the rows, and which group each is of: int64 [n].
    """
    from graphdb.storage.arrays.text_kernels import extremes_of_groups

    data, offsets = string_places(array)
    found, words = np.full(count, -1), np.zeros(count, np.uint64)
    sign = -1 if function == "min" else 1
    given = np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(numbers, np.int64)
    step = max(1, min(_AT_ONCE, _AT_ONCE * len(rows) // max(len(data), 1)))
    for begin in range(0, len(rows), step):
        check_stop()
        end = min(begin + step, len(rows))
        extremes_of_groups(data, offsets, *given, begin, end, sign, words, found)
    return taken(array.decoded(), found)


def order_of_different(data: NDArray[np.uint8], offsets: Ints) -> Ints:
    """Return the places of texts, no two of which are the same, in the order of their bytes.

    Eight bytes are compared at a time, those behind them of the texts that have the same.
    """
    begins, sizes = offsets[:-1], np.diff(offsets)
    if len(begins) < 2:
        return np.arange(len(begins))
    common = _common(data, begins, int(sizes.min()))
    begins, left = begins + common, sizes - common
    padded = np.append(data, np.zeros(8, np.uint8))
    order, groups = np.arange(len(begins)), np.zeros(len(begins), np.int64)
    going = np.arange(len(begins))
    while len(going):
        check_stop()
        rows = order[going]
        words = _words(padded, begins[rows], left[rows])
        sort = np.argsort(words) if len(going) == len(order) else np.lexsort((words, groups))
        rows, words, among = rows[sort], words[sort], groups
        if int(left[rows].max()) <= 0:  # alike but for zeros at the end: the shorter is less
            order[going] = rows[np.lexsort((sizes[rows], among))]
            break
        order[going] = rows
        new = np.append(True, (words[1:] != words[:-1]) | (among[1:] != among[:-1]))
        alike = np.flatnonzero(~new | np.append(~new[1:], False))
        groups, going = np.cumsum(new)[alike], going[alike]
        begins[order[going]] += 8
        left[order[going]] -= 8
    return order


def _common(data: NDArray[np.uint8], begins: Ints, most: int) -> int:
    """Return how many bytes, ``most`` at most, all texts begin with."""
    for at in checked(range(most), 64):
        byte = data[begins + at]
        if (byte != byte[0]).any():
            return at
    return most


_LEFT = np.array([(1 << 64) - (1 << 8 * (8 - size)) if size else 0 for size in range(9)], np.uint64)
"""What leaves so many bytes of eight."""


def _words(padded: NDArray[np.uint8], begins: Ints, left: Ints) -> NDArray[np.uint64]:
    """Return the next eight bytes of texts as integers in their order; zeros for those that are not there."""
    every = np.ndarray((len(padded) - 7,), ">u8", padded.data, strides=(1,))
    found: NDArray[np.uint64] = every[np.minimum(begins, len(padded) - 8)].astype(np.uint64)
    return found & _LEFT[np.clip(left, 0, 8)]
