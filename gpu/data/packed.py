"""The lists of an oriented graph in few bits, where a budget has no room for two bytes a neighbour.

A list is a sorted set of ranks behind its own.  Of each, so many low bits are stored as they are that about as many
values are left for what is above these as the list is long, and how often each of these occurs is said in unary
(Elias 1974, Fano 1971): the bits of m neighbours among U ranks are no more than m (2.5 + log2(U / m)), a bit each above
what is needed for any set.  The vertices of highest degree, whose lists are read most, are the last ranks, and
few ranks are behind them: these lists take five to eight bits a neighbour.

The lists from one rank on stand on the device, those before it in pinned memory of the host, where kernels read them
over the link: ranks are in the order of degree, and so of how often their lists are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.common.lazy import lazy
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.gpu.data.packed_kernels import pack_lists
from graphdb.gpu.data.pinned import keep_while_read, pinned
from graphdb.gpu.data.residency import ALONE, Expected, times_read
from graphdb.storage.graph.derived.orientation import Oriented

Ints = NDArray[np.int64]

MORE = 1
"""Low bits that neighbours have more than makes them fewest: the unary part is shorter, which lanes go through word by
word, and has more of its bits set."""
PADDING = 2
"""Words behind the last list: what has no low bits reads two words all the same."""
WORDS = 1 << 32
"""The words of all lists are fewer: they are told by 32 bits."""
OWN = 4 << 10
"""Bytes that a run takes beside lists, and beside scratch memory."""
PARTS = (1.0, 0.8, 0.6, 0.4, 0.2)
"""Of the room for lists, so much is tried, where others have taken the rest."""


@dataclass(frozen=True, eq=False)
class PackedLists:
    """All lists of an oriented graph.

    Attributes
    ----------
    offsets, neighbours
        The graph's own.
    begins
        uint32 [ranks + 1]: the word that begins each list.
    low
        int64 [ranks]: how many low bits each neighbour of a list has.
    """

    offsets: Ints
    neighbours: NDArray[Any]
    begins: NDArray[np.uint32]
    low: Ints

    @lazy
    def words(self) -> NDArray[np.uint32]:
        """The words of all lists, uint32, made when they are first asked for: of one that is not empty, its length, and
        above 16 bits how many low bits each neighbour has; the unary part, in which the bit at a neighbour's place in
        the list, and what is above its low bits, together is set; and the low bits.  What is packed of a neighbour is
        how far it is behind the rank after the list's own.
        """
        words = np.zeros(int(self.begins[-1]) + PADDING, np.uint32)
        pack_lists(self.offsets, self.neighbours, self.begins, self.low, words)
        return words

    def bytes_from(self, first: int) -> int:
        """Bytes of the lists from a rank on, and of where they begin."""
        return 4 * (int(self.begins[-1]) + PADDING - int(self.begins[first]) + len(self.begins) - first)

    def first_within(self, room: int) -> int:
        """The first rank whose list, and all behind it, take no more than so many bytes; behind all if none does."""
        ranks = np.arange(len(self.begins))
        taken = 4 * (int(self.begins[-1]) + PADDING - self.begins.astype(np.int64) + len(self.begins) - ranks)
        return min(int(np.searchsorted(-taken, -room)), len(ranks) - 1)


_KNOWN: WeakKeyDictionary[Oriented, PackedLists] = WeakKeyDictionary()


def packed(oriented: Oriented) -> PackedLists:
    """The packed lists of an oriented graph, which are known once."""
    found = _KNOWN.get(oriented)
    return _KNOWN.setdefault(oriented, _packed(oriented)) if found is None else found


def _packed(oriented: Oriented) -> PackedLists:
    offsets, ranks = oriented.offsets, np.arange(len(oriented.offsets) - 1)
    lengths, behind = np.diff(offsets), len(ranks) - 1 - ranks
    low = np.frexp(np.maximum(behind // np.maximum(lengths, 1), 1))[1].astype(np.int64) - 1 + MORE
    last = oriented.neighbours[offsets[1:] - 1] if len(oriented.neighbours) else ranks
    unary = (np.maximum(last - ranks - 1, 0) >> low) + lengths
    sizes = np.where(lengths > 0, 1 + (unary + 31) // 32 + (lengths * low + 31) // 32, 0)
    begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return PackedLists(offsets, oriented.neighbours, begins.astype(np.uint32), low)


def can_be_packed(oriented: Oriented) -> bool:
    """Whether lengths and places of lists fit what tells them."""
    return oriented.longest < 1 << 16 and len(oriented.neighbours) < WORDS // 4


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PackedCopy:
    """Packed lists as a device reads them: those from rank ``first`` on are copied.

    Attributes
    ----------
    near
        Where these lists begin, and their words; uint32, on the device.
    far
        The arrays of all, in pinned memory; none where all are copied.
    begin
        The word that begins the first list which is copied.
    """

    near: tuple[Any, Any]
    far: tuple[NDArray[np.uint32], ...]
    first: int
    begin: int

    @property
    def arguments(self) -> tuple[int, int, int, int, int]:
        """What a kernel is given: the arrays as if they had all lists, and ``first``."""
        begins, words = (int(array.data.ptr) for array in self.near)
        far = [int(array.ctypes.data) for array in self.far] or [begins, words]
        return begins - 4 * self.first, words - 4 * self.begin, far[0], far[1], self.first

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return sum(int(array.nbytes) for array in self.near)


def copy_packed(memory: DeviceMemory, oriented: Oriented, aside: int) -> PackedCopy:
    """Copy as many of the lists as there is room for, beside so many bytes.

    Raises
    ------
    MemoryLimitError
        There is none for any list.
    """
    lists = packed(oriented)
    for part in PARTS:
        first = lists.first_within(int(part * room_of(memory.budget, aside)))
        if memory.reserve(lists.bytes_from(first)) < lists.bytes_from(first) and part != PARTS[-1]:
            continue
        begin = int(lists.begins[first])
        try:
            near = memory.upload(lists.begins[first:]), memory.upload(lists.words[begin:])
        except MemoryLimitError:  # memory is not free in one piece
            if part == PARTS[-1]:
                raise
            continue
        far = (pinned(memory, lists.begins), pinned(memory, lists.words)) if first else ()
        made = PackedCopy(near, far, first, begin)
        keep_while_read(memory, made, list(far))
        return made
    raise AssertionError


def room_of(budget: int, aside: int) -> int:
    """Bytes of a budget that lists take, beside so many others."""
    return int(ALONE * (budget - aside)) - OWN


def expected_bytes(oriented: Oriented, room: int) -> Expected:
    """What stands on a device that has so much room for packed lists, and what a count reads of others."""
    lists = packed(oriented)
    first = lists.first_within(room)
    sizes = 4 * np.diff(lists.begins[: first + 1].astype(np.int64))
    over = int((sizes * times_read(oriented)[:first]).sum()) + 4 * first
    return Expected(lists.bytes_from(0), lists.bytes_from(first), over)
