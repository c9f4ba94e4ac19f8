"""What a process knows of terms between changes, so that a new term is known to be new without reading.

A process that looks for a few terms again and again reads all entries once (ski rental) and keeps them, sorted by hash;
what it writes itself is noted by hash beside them, and merged when it is a share of the rest (a log-structured merge;
O'Neil et al., 1996).  All is dropped where changes are not known, or are rolled back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Entries = NDArray[np.uint64]
Ints = NDArray[np.int64]

LOOKS = 16
"""How often terms are looked for before all entries are read."""

OTHER = np.iinfo(np.int64).min
"""Stands among integers for other literals."""

_SHARE = 8
"""What was added is merged when it is this part of the rest."""

_AT_ONCE = 1024
"""Terms that are merged as they come: these many are sorted sooner than noted one by one."""

_NOTED_BYTES = 200
"""What a hash takes that is noted, about."""

_TERMS = 1 << 16
"""Terms whose ids are remembered, at most."""

_TERM_BYTES = 200
"""What a term takes there, about."""

_BITS = np.uint64(32)
_LOW = np.uint64((1 << 32) - 1)


class KnownHashes:
    """The entries of one table: the hash of a term above 32 bits, below its id from the first id of the table.

    ``memory`` is how many bytes they may take.
    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self.forget()

    def forget(self) -> None:
        """Know nothing any more."""
        self.noted: str | None = None
        """What the file notes of the pages."""
        self.size: int | None = None
        """Terms whose entries are known, the first ones; None where none are."""
        self._looks = 0
        self._entries = np.empty(0, np.uint64)
        self._added: dict[int, list[int]] = {}
        """The numbers of terms that came since, by the upper bits of their hash."""
        self._rows: dict[object, tuple[int, ...]] = {}
        self._asked = 0
        self.integers: Ints | None = None
        """The values of the first literals that are integers as they are commonly written; :data:`OTHER` of others."""
        self._compared = 0

    def all_wanted(self, terms: int) -> bool:
        """Whether to read the ids of so many terms, which is done once, by how often some were not remembered."""
        self._asked += 1
        return self._asked == LOOKS and terms <= _TERMS and _TERM_BYTES * terms <= self._memory

    def remembered(self, terms: Sequence[object]) -> list[tuple[int, ...] | None]:
        """Return what is remembered of terms: the id first."""
        return [self._rows.get(term) for term in terms]

    def remember(self, rows: Iterable[tuple[object, tuple[int, ...]]]) -> None:
        """Remember the ids of some terms that are in the file; those that were remembered first are forgotten."""
        for term, row in rows:
            if len(self._rows) >= _TERMS:
                del self._rows[next(iter(self._rows))]
            self._rows[term] = row

    @property
    def nbytes(self) -> int:
        """How many bytes the entries and integers take."""
        integers = 0 if self.integers is None else self.integers.nbytes
        return self._entries.nbytes + integers + _NOTED_BYTES * len(self._added)

    def integers_wanted(self) -> bool:
        """Whether to read all integers, by how often one was compared with the literal that has its hash."""
        self._compared += 1
        return self._compared > LOOKS and 8 * (self.size or 0) <= self._memory - self.nbytes

    def wanted(self, terms: int) -> bool:
        """Whether to read the entries of so many terms, by how often it was asked."""
        self._looks += 1
        return self._looks > LOOKS and 16 * terms <= self._memory and terms < 1 << 32

    def put(self, entries: Entries) -> None:
        """Know the entries of as many terms, in any order."""
        entries.sort()
        self._entries, self.size = entries, len(entries)
        self._added.clear()

    def add(self, hashes: Entries, numbers: Ints) -> None:
        """Note the entries of the terms behind those that are known: all of them, numbered from the first id on."""
        if self.size is None:
            return
        if len(numbers) and (numbers[0] != self.size or numbers[-1] != self.size + len(numbers) - 1):
            self.forget()
            return
        self.size += len(numbers)
        if len(numbers) > _AT_ONCE:
            self._merge((hashes & ~_LOW) | numbers.astype(np.uint64))
            return
        for high, number in zip((hashes >> _BITS).tolist(), numbers.tolist(), strict=True):
            self._added.setdefault(high, []).append(number)
        if len(self._added) * _SHARE > len(self._entries):
            self._merge(np.empty(0, np.uint64))

    def _merge(self, new: Entries) -> None:
        """Sort new entries, and those that were noted, among the others."""
        noted = [high << int(_BITS) | number for high, numbers in self._added.items() for number in numbers]
        new = np.sort(np.concatenate([new, np.array(noted, np.uint64)]))
        self._entries = np.insert(self._entries, self._entries.searchsorted(new), new)
        self._added.clear()

    def numbers(self, hashes: Entries) -> Ints:
        """Return the numbers of the terms that have one of a handful of hashes, sorted, as far as the entries say."""
        found, entries = list[int](), self._entries.data  # in which Python finds single ones sooner than NumPy
        low = int(_LOW)
        for high in set((hashes >> _BITS).tolist()):
            begin = bisect_left(entries, high << int(_BITS))
            end = bisect_right(entries, (high << int(_BITS)) | low, begin)
            found += [entry & low for entry in entries[begin:end]]
            found += self._added.get(high, ())
        return np.array(sorted(found), np.int64)
