"""External merge sort of triples: label by label, the keys of each sorted and distinct, within a memory budget.

Triples that do not fit into memory are sorted in chunks that do.  The keys of a chunk become a sorted run in a file,
label after label, and each label is merged from its part of the runs (:func:`.spill.merge_runs`; Knuth, The Art of
Computer Programming 3, §5.4).  The memory that this takes depends neither on the number of triples nor on how many of
them have the same label.  A key is a triple without its label: see :mod:`.batch_kernels`.  There can be as many labels
as triples, so labels with few keys are processed together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.arrays.spill import SpillArray, SpillFile, merge_runs

Codes = NDArray[np.uint32]
Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]

SMALL_LABEL = 1 << 12
"""Keys that a label may have to be processed together with others."""

_COUNTED = 1 << 22
"""Keys that are sorted by counting, at most: so many take 50 MB for it."""

_TOGETHER = 1 << 16
"""About how many keys these have in all."""


class Piece(Protocol):
    """Some triples of codes, uint32[n, 3] (subject, label, object), that are read when they are asked for."""

    def __len__(self) -> int:
        """How many there are at most."""

    def get(self) -> Codes:
        """Return them."""


class Group:
    """The keys of some labels, sorted and distinct label by label.

    Parameters
    ----------
    labels : int64[n]
        The labels, in order.
    ends : int64[n + 1]
        Where the keys of each begin, and those of the last end.
    keys : uint64[]
        The keys.
    """

    def __init__(self, labels: Ints, ends: Ints, keys: Keys) -> None:
        self.labels = labels
        self.ends = ends
        self.keys = keys[: ends[-1]]

    def of(self, labels: Ints) -> Group:
        """Return the keys of labels among which are all of these."""
        counts = np.zeros(len(labels), np.int64)
        counts[np.searchsorted(labels, self.labels)] = np.diff(self.ends)
        return Group(labels, _ends(counts), self.keys)

    @staticmethod
    def of_each(labels: Ints, keys: Keys) -> Group:
        """Return keys with the label of each as a group."""
        begins = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]]))
        return Group(labels[begins], np.append(begins, len(keys)), keys)


class Labels(Protocol):
    """Triples, label by label."""

    @property
    def labels(self) -> Ints:
        """int64[n]: the labels, in order."""

    @property
    def counts(self) -> Ints:
        """int64[n]: how many keys each has at most."""

    def pieces(self, label: int) -> Iterable[Keys]:
        """Yield the keys of a label, sorted and distinct, some at a time; none where it has none."""

    def group(self, first: int, last: int) -> Group:
        """Return the keys of the labels that are there from ``first`` to ``last``, each at most :data:`SMALL_LABEL`."""


def groups(labels: Labels) -> Iterator[Ints]:
    """Yield all labels, in order: those with few keys together, each of the others alone."""
    counts = labels.counts
    many = counts > SMALL_LABEL
    number = np.cumsum(counts) // _TOGETHER
    cuts = (number[1:] != number[:-1]) | many[1:] | many[:-1]
    for begin, end in pairwise([0, *(np.flatnonzero(cuts) + 1).tolist(), len(counts)]):
        if end > begin:
            yield labels.labels[begin:end]


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
        while not len(self._known) or self._known[-1] < keys[-1]:
            piece = next(self._rest, None)
            if piece is None:
                break
            self._known = np.concatenate([self._known, piece])
        end = int(np.searchsorted(self._known, keys[-1], "right"))
        known, self._known = self._known[:end], self._known[end:]
        return keys[fresh(keys, _ends([len(keys)]), known, _ends([end]))] if end else keys


def fresh(keys: Keys, ends: Ints, known: Keys, known_ends: Ints) -> NDArray[np.bool_]:
    """Return which keys of each label are not known (see :class:`Group`)."""
    from graphdb.storage.arrays import batch_kernels as kernels

    found = np.empty(len(keys), np.uint8)
    kernels.mark(keys, ends, known, known_ends, found)
    return found.view(np.bool_)


_LABELS = 1 << 12
"""Slots of a table of labels at first."""


def by_label(chunks: Iterable[Sequence[Piece]], spill: SpillFile, memory: int) -> Labels:
    """Sort triples by label.

    Parameters
    ----------
    chunks
        Pieces of triples, so many at a time that their keys fit into memory.
    spill
        Where the runs go, where there is more than one chunk.
    memory
        Bytes of keys that fit.
    """
    rest = iter(chunks)
    ahead = deque(islice(rest, 2))
    if len(ahead) < 2:
        return whole(ahead.popleft() if ahead else ())
    runs = []
    while ahead:
        chunk = whole(ahead.popleft())
        chunk.sort()
        runs.append(_Run(chunk.labels, chunk.ends, spill.add(chunk.keys[: chunk.ends[-1]])))
        del chunk
        ahead.extend(islice(rest, 1))
    return _Merged(runs, memory // 32)


def in_chunks(pieces: Iterable[Piece], memory: int) -> Iterator[Sequence[Piece]]:
    """Yield pieces of triples, so many at a time that their keys fit into memory."""
    chunk: list[Piece] = []
    rows = 0
    for spilled in pieces:
        if chunk and (rows + len(spilled)) * 8 > memory:
            yield chunk
            chunk, rows = [], 0
        chunk.append(spilled)
        rows += len(spilled)
    if chunk:
        yield chunk


class Whole:
    """Keys of labels that fit into memory: those of a label are sorted when they are asked for.

    Parameters
    ----------
    labels, ends, keys
        As of a :class:`Group`, but for the order of the keys.
    """

    def __init__(self, labels: Ints, ends: Ints, keys: Keys) -> None:
        self.labels = labels
        self.ends = ends
        self.keys = keys
        self._sorted = False
        self._one: dict[int, Keys] = {}

    @property
    def counts(self) -> Ints:
        """How many keys each label has at most."""
        return np.diff(self.ends)

    def sort(self) -> None:
        """Sort all keys."""
        from graphdb.storage.arrays import batch_kernels as kernels

        for number in np.flatnonzero(self.counts > SMALL_LABEL).tolist():
            sort_keys(self.keys[self.ends[number] : self.ends[number + 1]])
        kernels.sort_each(self.keys, self.ends, SMALL_LABEL)
        kernels.distinct(self.keys, self.ends)
        self._sorted = True

    def pieces(self, label: int) -> Iterable[Keys]:
        """Return the keys of a label in one piece."""
        number = int(np.searchsorted(self.labels, label))
        if number == len(self.labels) or self.labels[number] != label:
            return ()
        keys = self.keys[self.ends[number] : self.ends[number + 1]]
        if not self._sorted:
            if label not in self._one:
                self._one[label] = _sorted(keys)
            keys = self._one[label]
        return (keys,)

    def group(self, first: int, last: int) -> Group:
        """Return the keys of some labels."""
        begin, end = np.searchsorted(self.labels, [first, last + 1]).tolist()
        ends = self.ends[begin : end + 1]
        labels, keys, ends = self.labels[begin:end], self.keys[ends[0] : ends[-1]], ends - ends[0]
        return Group(labels, ends, keys) if self._sorted else _group(labels, ends, keys.copy())


class _Run:
    """The sorted keys of labels in a file."""

    def __init__(self, labels: Ints, ends: Ints, keys: SpillArray) -> None:
        self.labels = labels
        self.ends = ends
        self.keys = keys

    def part(self, first: int, last: int) -> tuple[Ints, Ints, SpillArray]:
        """Return those labels that there are from ``first`` to ``last``, how many keys each has, and the keys."""
        begin, end = np.searchsorted(self.labels, [first, last + 1]).tolist()
        ends = self.ends[begin : end + 1]
        return self.labels[begin:end], np.diff(ends), self.keys.rows(int(ends[0]), int(ends[-1]))


class _Merged:
    """Keys of labels in several runs; ``room`` says how many are read at a time."""

    def __init__(self, runs: Sequence[_Run], room: int) -> None:
        self._runs = runs
        self._room = room
        self.labels = unique(np.concatenate([run.labels for run in runs]))
        self.counts = np.zeros(len(self.labels), np.int64)
        for run in runs:
            self.counts[np.searchsorted(self.labels, run.labels)] += np.diff(run.ends)

    def pieces(self, label: int) -> Iterable[Keys]:
        """Yield the keys of a label, merged."""
        parts = [keys for _, _, keys in (run.part(label, label) for run in self._runs) if len(keys)]
        return map(_distinct, merge_runs(parts, self._room))

    def group(self, first: int, last: int) -> Group:
        """Return the keys of some labels."""
        begin, end = np.searchsorted(self.labels, [first, last + 1]).tolist()
        labels, ends = self.labels[begin:end], _ends(self.counts[begin:end])
        keys, at = np.empty(ends[-1], np.uint64), ends[:-1].copy()
        for run in self._runs:
            some, counts, spilled = run.part(first, last)
            numbers = np.searchsorted(labels, some)
            # Where the keys of each label go: behind those of the runs before.
            keys[np.repeat(at[numbers] - _ends(counts)[:-1], counts) + np.arange(len(spilled))] = spilled.get()
            at[numbers] += counts
        return _group(labels, ends, keys)


def _group(labels: Ints, ends: Ints, keys: Keys) -> Group:
    """Return the keys of labels, which are in any order, as a group."""
    from graphdb.storage.arrays import batch_kernels as kernels

    kernels.sort_each(keys, ends, len(keys))
    kernels.distinct(keys, ends)
    return Group(labels, ends, keys)


def _ends(counts: Sequence[int] | Ints) -> Ints:
    """Return where each of so many begins, and the last ends."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def whole(pieces: Iterable[Piece]) -> Whole:
    """Return the keys of triples that fit into memory."""
    from graphdb.storage.arrays import batch_kernels as kernels

    chunk = list(pieces)
    table, used = np.full((_LABELS, 2), -1, np.int64), 0
    for spilled in chunk:
        triples = spilled.get()
        row, used = kernels.histogram(triples, 0, table, used)
        while row < len(triples):
            table = _table(table[table[:, 0] >= 0], 2 * len(table))
            row, used = kernels.histogram(triples, row, table, used)
    counted = table[table[:, 0] >= 0]
    labels, counts = np.ascontiguousarray(counted[np.argsort(counted[:, 0])].T)
    ends = _ends(counts)
    del counted
    table.fill(-1)
    kernels.put(table, labels, ends[:-1])
    keys = np.empty(ends[-1], np.uint64)
    for spilled in chunk:
        kernels.scatter(spilled.get(), table, keys)
    return Whole(labels, ends, keys)


def _table(rows: Ints, slots: int) -> Ints:
    """Return a table of labels (see :func:`.batch_kernels.histogram`) with these rows."""
    from graphdb.storage.arrays import batch_kernels as kernels

    table = np.full((slots, 2), -1, np.int64)
    kernels.put(table, *np.ascontiguousarray(rows.T))
    return table


def sort_keys(keys: Keys) -> None:
    """Sort keys in place: those of properties often come in the order of their subjects."""
    from graphdb.storage.arrays import batch_kernels as kernels

    if not bool((keys[1:] < keys[:-1]).any()):
        return
    least, most = int(keys.min()) >> 32, int(keys.max()) >> 32
    if len(keys) <= _COUNTED and most - least < 2 * len(keys):
        kernels.sort_by_subject(keys, least, np.zeros(most - least + 1, np.int32), np.empty(len(keys), np.uint32))
    else:
        keys.sort()


def sort_codes(codes: Codes) -> None:
    """Sort codes in place: values are numbered as they come, so that those of a property often are in order."""
    from graphdb.storage.arrays import batch_kernels as kernels

    if not bool((codes[1:] < codes[:-1]).any()):
        return
    least, most = int(codes.min()), int(codes.max())
    if len(codes) <= _COUNTED and most - least < 2 * len(codes):
        kernels.sort_codes(codes, least, np.zeros(most - least + 1, np.int32))
    else:
        codes.sort()


def _sorted(keys: Keys) -> Keys:
    """Sort keys in place, and return the distinct ones."""
    sort_keys(keys)
    return _distinct(keys)


def _distinct(keys: Keys) -> Keys:
    """Return the distinct ones of sorted keys."""
    from graphdb.storage.arrays import batch_kernels as kernels

    ends = _ends([len(keys)])
    kernels.distinct(keys, ends)
    return keys[: ends[1]]
