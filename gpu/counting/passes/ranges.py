"""How sums go through lists that do not fit the device: in passes over ranges of ranks, and segments of roots.

What is sent to a rank comes from all lists that hold it.  So a *pass* has a range of ranks, and the *block* of all
lists' elements within it stands on the device; meanwhile the lists of all roots come by, segment by segment, through
two buffers (the pipeline of SGSI §6.3).  Every block is copied once, and the roots' lists once for each pass; where
receivers behind a root count nothing, only those of roots behind the pass's first rank, so that three passes copy them
twice.  Elements are told from a pass's first rank: of 65,536 ranks they take two bytes, of more three.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

NARROW, WIDE = 1 << 16, 1 << 24
"""Ranks that two bytes, and that three, can number."""
MOVED = 3.0
"""Times the lists' bytes, of four for each element, that a run copies at most where that can be."""
ROOM = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4)
"""Of the memory, so much is tried for a segment of roots' lists; and as much as the longest list takes."""
LAUNCH = 1e-4
"""Seconds that a launch takes longer than its share of the work."""
LINK = 2e10
"""Bytes copied in a second, about: what passes are compared by."""
SLACK = 64
"""Bytes by which the arrays of a buffer are longer, at most, since each begins at a multiple of 16."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Lengths:
    """What is known of the lists that a part of a counting plan goes through.

    Attributes
    ----------
    roots
        int64 [ranks]: how long each root's list is.
    holding
        int64 [ranks]: how many of the lists that are sent along hold a rank.
    mirrored
        Whether receivers behind a root count nothing.
    """

    roots: Ints
    holding: Ints
    mirrored: bool
    nbytes: int = 0
    """Bytes on the device."""

    @property
    def lists_bytes(self) -> int:
        """Bytes of the lists that are read, of four for each element: of the roots', or where these differ, of both."""
        return 4 * int(self.roots.sum()) if self.mirrored else 4 * int(self.roots.sum() + self.holding.sum())


@dataclass(frozen=True, slots=True)
class Passes:
    """Which ranks each pass has, and which roots' lists come by in it.

    Attributes
    ----------
    bounds
        The ranks that begin and end the passes: [passes + 1].
    segments
        The different ranges of roots, first and last + 1.
    steps
        Pass and segment, by their numbers, of each launch, in order.
    buffers
        2, where the next pass's block is copied while the last segments of this one are read; else 1.
    room
        Bytes on the device.
    moved
        Bytes that are copied in a run.
    exposed
        Of these, those that are copied while no kernel runs.
    """

    bounds: tuple[int, ...]
    segments: tuple[tuple[int, int], ...]
    steps: tuple[tuple[int, int], ...]
    buffers: int
    room: int
    moved: int
    exposed: int

    def seconds(self, counting: float, rate: float) -> float:
        """What a run takes whose kernels take so many seconds together, with so many bytes copied in a second."""
        hidden = (self.moved - self.exposed) / rate
        return max(counting, hidden) + self.exposed / rate + LAUNCH * len(self.steps)


def is_wide(first: int, last: int) -> bool:
    """Whether elements of a range of ranks take three bytes."""
    return last - first > NARROW


def passes_of(lengths: Lengths, room: int, roots: tuple[int, int] | None = None) -> Passes | None:
    """The passes for so many bytes on the device; None where these are too few.

    Those that copy at most :data:`MOVED` times the lists are preferred, and then those that are sooner done.  With
    ``roots``, first and last + 1, only these are.
    """
    known = _Bytes(lengths)
    sizes = {max(int(part * room), known.longest_segment) for part in ROOM}
    made = [
        found
        for size in sorted(sizes)
        for buffers in (1, 2)
        if (found := _passes(known, room, size, buffers, roots)) is not None
    ]
    most = MOVED * lengths.lists_bytes
    return min(made, key=lambda each: (each.moved > most, each.seconds(0.0, LINK)), default=None)


def least_room(lengths: Lengths) -> int:
    """Bytes on the device without which there are no passes."""
    known = _Bytes(lengths)
    return 2 * known.longest_segment + known.longest_block


class _Bytes:
    """What blocks and segments take."""

    def __init__(self, lengths: Lengths) -> None:
        self.ranks, self.mirrored = len(lengths.roots), lengths.mirrored
        width = 3 if is_wide(0, self.ranks) else 2
        self.before = np.concatenate([[0], np.cumsum(lengths.holding)])
        """Elements of blocks before each rank."""
        self.of_roots = np.concatenate([[0], np.cumsum(width * lengths.roots + 4)])
        """Bytes of roots' lists and where these begin, before each rank."""
        self.longest_segment = int(np.diff(self.of_roots).max(initial=0)) + 4 + SLACK
        self.offsets = 4 * (self.ranks + 1)
        """Bytes of a block's offsets."""
        self.longest_block = 2 * int(lengths.holding.max(initial=0)) + self.offsets + SLACK

    def block(self, first: int, last: int) -> int:
        return (3 if is_wide(first, last) else 2) * int(self.before[last] - self.before[first]) + self.offsets

    def segment(self, first: int, last: int) -> int:
        return int(self.of_roots[last] - self.of_roots[first]) + 4

    def ends(self, room: int) -> Iterator[int]:
        """The ranks that begin the passes, and the last one's end, of blocks that take no more; ends before where one
        rank's elements take more.
        """
        first, left = 0, room - self.offsets - SLACK
        yield first
        while first < self.ranks:
            narrow, wide = (
                int(np.searchsorted(self.before, self.before[first] + left // each, "right")) - 1 for each in (2, 3)
            )
            last = max(min(narrow, first + NARROW), wide)
            if left < 0 or last <= first:
                return
            yield last
            first = last

    def cuts(self, room: int) -> list[int] | None:
        """The roots that begin the segments, and the last one's end; None where one list takes more."""
        cuts = [0]
        while cuts[-1] < self.ranks:
            most = self.of_roots[cuts[-1]] + room - 4 - SLACK
            last = int(np.searchsorted(self.of_roots, most, "right")) - 1
            if last <= cuts[-1]:
                return None
            cuts.append(last)
        return cuts


def _passes(known: _Bytes, room: int, segment: int, buffers: int, roots: tuple[int, int] | None) -> Passes | None:
    """The passes with segments of so many bytes, and so many buffers for blocks."""
    cuts, bounds = known.cuts(segment), list(known.ends((room - 2 * segment) // buffers))
    if cuts is None or bounds[-1] < known.ranks or not known.ranks:
        return None
    begin, end = roots or (0, known.ranks)
    numbers: dict[tuple[int, int], int] = {}
    steps, moved = list[tuple[int, int]](), 0
    for number, (low, high) in enumerate(pairwise(bounds)):
        least = max(begin, low if known.mirrored else 0)
        ranges = [(max(first, least), min(last, end)) for first, last in pairwise(cuts)]
        own = [(first, last) for first, last in ranges if first < last]
        if own:
            steps += [(number, numbers.setdefault(each, len(numbers))) for each in own]
            moved += known.block(low, high) + sum(known.segment(*each) for each in own)
    if not steps:
        return None
    used = {number for number, _ in steps}
    blocks = [known.block(low, high) for number, (low, high) in enumerate(pairwise(bounds)) if number in used]
    segments = tuple(numbers)
    exposed = (sum(blocks) if buffers == 1 else blocks[0]) + known.segment(*segments[0])
    longest = max(known.segment(*each) for each in segments) + SLACK
    taken = buffers * (max(blocks) + SLACK) + min(2, len(segments)) * longest
    return Passes(tuple(bounds), segments, tuple(steps), buffers, taken, moved, min(exposed, moved))
