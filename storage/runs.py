"""Triples label by label, the keys of each sorted and distinct, whatever room there is.

Triples that do not fit into memory are sorted in chunks that do, whose labels become runs in a file, and each label is
merged from its runs (:func:`.spool.merged`): so what that takes does not depend on how many triples there are, nor on
how many have the same label.  A key is a triple without its label: see :mod:`.bulk_kernels`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import islice, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.spool import Kept, Spool, merged

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
Pieces = Callable[[], Iterable[Keys]]
"""Yields the keys of a label, sorted and distinct, some at a time; as often as it is called."""


class Piece(Protocol):
    """Some triples of codes, uint32[n, 3] (subject, label, object), that are read when they are asked for."""

    def __len__(self) -> int:
        """How many there are at most."""

    def get(self) -> Codes:
        """Return them."""


class Others:
    """Tells which keys of a label are not among known ones.

    Parameters
    ----------
    known
        Keys, sorted and distinct, some at a time.
    """

    def __init__(self, known: Iterable[Keys]) -> None:
        self._rest = iter(known)
        self._known = np.empty(0, np.uint64)

    def of(self, keys: Keys) -> Keys:
        """Return those of the next keys, sorted and distinct, that are not known."""
        from graphdb.storage import bulk_kernels as kernels

        while not len(self._known) or self._known[-1] < keys[-1]:
            piece = next(self._rest, None)
            if piece is None:
                break
            self._known = np.concatenate([self._known, piece])
        end = int(np.searchsorted(self._known, keys[-1], "right"))
        known, self._known = self._known[:end], self._known[end:]
        if not end:
            return keys
        found = np.empty_like(keys)
        return found[: kernels.others(keys, known, found)]


_LABELS = 1 << 12
"""Slots of a table of labels at first."""


def by_label(chunks: Iterable[Sequence[Piece]], spool: Spool, memory: int) -> dict[int, Pieces]:
    """Sort triples: return the keys of each label, by label in rising order.

    Parameters
    ----------
    chunks
        Pieces of triples, so many at a time that their keys fit into memory.
    spool
        Where the runs go, where there is more than one chunk.
    memory
        Bytes of keys that fit.
    """
    rest = iter(chunks)
    ahead = deque(islice(rest, 2))
    if len(ahead) < 2:
        return {label: cache(partial(_whole, unsorted)) for chunk in ahead for label, unsorted in _split(chunk)}
    runs: dict[int, list[Kept]] = {}
    while ahead:
        for label, keys in _split(ahead.popleft()):
            runs.setdefault(label, []).append(spool.add(_sorted(keys)))
        ahead.extend(islice(rest, 1))
    return {label: partial(_merged, runs[label], memory // 32) for label in sorted(runs)}


def in_chunks(pieces: Iterable[Piece], memory: int) -> Iterator[Sequence[Piece]]:
    """Yield pieces of triples, so many at a time that their keys fit into memory."""
    chunk: list[Piece] = []
    rows = 0
    for kept in pieces:
        if chunk and (rows + len(kept)) * 8 > memory:
            yield chunk
            chunk, rows = [], 0
        chunk.append(kept)
        rows += len(kept)
    if chunk:
        yield chunk


def _split(chunk: Sequence[Piece]) -> list[tuple[int, Keys]]:
    """Return the labels of triples, in order, with their keys in any."""
    from graphdb.storage import bulk_kernels as kernels

    table, used = np.full((_LABELS, 2), -1, np.int64), 0
    for kept in chunk:
        triples = kept.get()
        row, used = kernels.histogram(triples, 0, table, used)
        while row < len(triples):
            table = _table(table[table[:, 0] >= 0], 2 * len(table))
            row, used = kernels.histogram(triples, row, table, used)
    counted = table[table[:, 0] >= 0]
    labels, counts = counted[np.argsort(counted[:, 0])].T
    ends = np.cumsum(counts)
    table = _table(np.column_stack([labels, ends - counts]), len(table))
    keys = np.empty(sum(map(len, chunk)), np.uint64)
    for kept in chunk:
        kernels.scatter(kept.get(), table, keys)
    places = pairwise([0, *ends.tolist()])
    return [(label, keys[begin:end]) for label, (begin, end) in zip(labels.tolist(), places, strict=True)]


def _table(rows: Ints, slots: int) -> Ints:
    """Return a table of labels (see :func:`.bulk_kernels.histogram`) with these rows."""
    from graphdb.storage import bulk_kernels as kernels

    table = np.full((slots, 2), -1, np.int64)
    kernels.put(table, *np.ascontiguousarray(rows.T))
    return table


def _sorted(keys: Keys) -> Keys:
    """Sort keys in place, and return the distinct ones."""
    from graphdb.storage import bulk_kernels as kernels

    keys.sort()
    return keys[: kernels.distinct(keys)]


def _whole(keys: Keys) -> Sequence[Keys]:
    """Return the keys of a label, distinct and sorted, in one piece."""
    return (_sorted(keys),)


def _merged(runs: Sequence[Kept], room: int) -> Iterator[Keys]:
    """Yield the keys of a label, distinct and sorted, from runs."""
    from graphdb.storage import bulk_kernels as kernels

    for keys in merged(runs, room):
        yield keys[: kernels.distinct(keys)]
