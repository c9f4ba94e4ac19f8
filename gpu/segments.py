"""Segments of lists on their way to the device: copied from pinned host memory while kernels work on those before.

An array of lists that does not fit the device is cut into ranges (SGSI §6.2).  A :class:`Window` is the room on the
device for one range of some such arrays at a time; one that changes with every step has two buffers, so that the next
range is copied while the last one is read (the pipeline of SGSI §6.3).  Copies have a stream of their own; events order
them with the kernels.  The host never waits for either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import Device
from graphdb.gpu.data.graph import address, segment_offsets
from graphdb.plan.physical import PhysicalPlan, StepColumn
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.graph.pcsr import Partition

Ints = NDArray[np.int64]

ALIGNED = 16
"""Bytes at whose multiples an array begins."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of the arrays of a window: pinned, [entries].

    Attributes
    ----------
    begins, ends
        int64 [ranges]: the entries that begin each range, and those behind its last.
    origins
        int64 [ranges]: by which numbers kernels know the first entries; None where these are ``begins``.
    """

    values: NDArray[Any]
    begins: Ints
    ends: Ints
    origins: Ints | None = None


class Ranges:
    """How the ranges of some arrays stand in a window, one array behind the other: what runs have in common.

    Ranges that are long in one array are short in another: together they take less room than the longest of each.

    Attributes
    ----------
    longest
        Bytes that a window has room for.
    copies
        For each range and array: the address in host memory, the bytes, and where these stand in the window.
    bases
        For each range and array: where the entry of number 0 would stand, from the window's beginning.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self._arrays = [part.values for part in parts]  # kept alive
        widths = np.array([part.values.itemsize for part in parts])[:, None]
        begins, ends = (np.stack([getattr(part, name) for part in parts]) for name in ("begins", "ends"))
        origins = np.stack([part.begins if part.origins is None else part.origins for part in parts])
        sizes = window_sizes(list((ends - begins) * widths))
        places = np.cumsum(sizes, axis=0) - sizes
        sources = np.array([int(part.values.ctypes.data) for part in parts])[:, None] + begins * widths
        self.longest = max(int(sizes.sum(axis=0).max(initial=0)), ALIGNED)
        self.copies = np.stack([sources, (ends - begins) * widths, places], axis=-1).swapaxes(0, 1).tolist()
        self.bases = (places - origins * widths).T.tolist()


class Window:
    """Room on the device for one range of some arrays at a time.

    Parameters
    ----------
    ranges
        The arrays, and where their ranges stand.
    buffers
        1, or 2 where the next range is to be copied while the last one is read.
    """

    def __init__(self, device: Device, ranges: Ranges, buffers: int) -> None:
        self._device, self._ranges = device, ranges
        self._buffers = [device.memory.empty(ranges.longest, np.uint8) for _ in range(buffers)]
        self._inside: list[int | None] = [None] * buffers
        self._copied: list[Any] = [None] * buffers
        self._read: list[Any] = [None] * buffers
        self._turn = 0
        self.moved = 0
        """Bytes copied."""

    @property
    def ahead(self) -> bool:
        """Whether a range can be copied while another is read."""
        return len(self._buffers) > 1

    def start(self, number: int, stream: Any) -> None:
        """Start to copy a range, unless it is there."""
        if number in self._inside:
            return
        at = (self._turn + 1) % len(self._buffers)
        if self._read[at] is not None:
            stream.wait_event(self._read[at])
        target, copied = address(self._buffers[at]), self._device.memory.copied
        for source, size, place in self._ranges.copies[number]:
            if size > 0:
                copied(target + place, source, size, stream)
                self.moved += size
        self._inside[at], self._copied[at] = number, self._device.event_on(stream)

    def bases(self, number: int) -> list[int]:
        """Where each array's first entry would stand, by the place of a range that was started; kernels wait for it."""
        at = self._turn = self._inside.index(number)  # the other one may be copied to meanwhile
        self._device.stream.wait_event(self._copied[at])
        begin = address(self._buffers[at])
        return [begin + base for base in self._ranges.bases[number]]

    def read(self, number: int, event: Any) -> None:
        """The kernels that read a range have been launched before this event."""
        self._read[self._inside.index(number)] = event


def window_sizes(sizes: Sequence[Ints]) -> Ints:
    """Bytes that each array's part of a range takes in a window, from those that it has: int64 [arrays, ranges]."""
    return -(-np.stack(sizes) // ALIGNED) * ALIGNED


def within(partition: Partition, vertices: Ints) -> Ints:
    """Vertices as places in a partition's direct offsets: those without any stand where the last of them is."""
    return np.minimum(vertices, partition.groups)


def bytes_before(partitions: list[Partition]) -> Ints:
    """The bytes of some partitions' lists and offsets before each vertex, together: int64 [vertices + 1].

    Up to the last vertex that has neighbours in any of them: none behind it can be where all these lists are read.
    """
    vertices = np.arange(max(1, *(each.groups for each in partitions)) + 1, dtype=np.int64)
    found = np.zeros(len(vertices), np.int64)
    for each in partitions:
        own = within(each, vertices)
        found += each.offsets[own] * each.neighbours.itemsize + own * segment_offsets(each).itemsize
    return found


def bounds_of(before: Ints, ranges: int) -> Ints:
    """Vertices between which lists and offsets have about as many bytes: int64 [ranges + 1].

    By entries alone the range of short lists would have most of the vertices, and offsets as many.
    """
    parts = -(before[-1] * -np.arange(1, ranges) // ranges)  # of floating-point numbers, NumPy would convert all bytes
    inner = np.searchsorted(before, parts)
    return unique(np.concatenate([[0], inner, [len(before) - 1]])).astype(np.int64)


def above_of(plan: PhysicalPlan, level: int, slots: list[int]) -> tuple[int, ...]:
    """Which of some slots a level's vertex exceeds, as places among them."""
    row = plan.program.steps[level]
    lower = plan.program.checks[row[StepColumn.ABOVES] : row[StepColumn.CHECKS], 2].tolist()
    return tuple(at for at, slot in enumerate(slots) if slot in lower)


class Ranged(Protocol):
    """A slot whose vertices are divided into ranges."""

    @property
    def bounds(self) -> Ints:
        """The vertices that begin and end the ranges: int64 [ranges + 1]."""

    @property
    def above(self) -> tuple[int, ...]:
        """The slots before it, as places among these, whose vertices its own exceeds."""


def combinations_of(
    slots: Sequence[Ranged], joined: Callable[[int, int, tuple[int, ...]], bool] = lambda at, number, chosen: True
) -> list[tuple[int, ...]]:
    """The combinations of ranges that matches may have, one range for each slot.

    ``joined`` says whether a range of a slot, by their numbers, can have matches with the ranges that are chosen of the
    slots before it.  Each slot's ranges go up and down in turns: where one that was bound before goes on to its next
    range, the range that was read last is read first.
    """
    return list(_combined(slots, joined, (), [False] * len(slots)))


def _combined(
    slots: Sequence[Ranged],
    joined: Callable[[int, int, tuple[int, ...]], bool],
    chosen: tuple[int, ...],
    down: list[bool],
) -> Iterator[tuple[int, ...]]:
    at = len(chosen)
    if at == len(slots):
        yield chosen
        return
    least = max((int(slots[other].bounds[chosen[other]]) + 1 for other in slots[at].above), default=0)
    ends = slots[at].bounds[1:].tolist()
    ranges = [number for number, end in enumerate(ends) if end > least and joined(at, number, chosen)]
    for number in reversed(ranges) if down[at] else ranges:
        yield from _combined(slots, joined, (*chosen, number), down)
    down[at] = not down[at]


@dataclass(eq=False)
class SegmentStream:
    """Windows that go through combinations of ranges together.

    Parameters
    ----------
    windows
        Each with which of its ranges a combination reads, and the keys of its arrays.
    """

    device: Device
    windows: Sequence[tuple[Window, Callable[[tuple[int, ...]], int], Sequence[Any]]]
    _stream: Any = field(init=False)

    def __post_init__(self) -> None:
        self._stream = self.device.side_stream()
        self._stream.wait_event(self.device.event())  # what used the buffers' memory before

    def begin(self, chosen: tuple[int, ...]) -> None:
        """Start to copy what the first combination reads; :meth:`through` goes on, or :meth:`end`."""
        for window, range_of, _ in self.windows:
            window.start(range_of(chosen), self._stream)

    def end(self) -> None:
        """Whatever gets the buffers' memory next is used after the last copy."""
        with self.device.active():
            self.device.stream.wait_event(self.device.event_on(self._stream))

    def through(self, combinations: Sequence[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], dict[Any, int]]]:
        """Give each combination with the bases of its arrays, by key, once kernels may read them."""
        try:
            for number, chosen in enumerate(combinations):
                bases: dict[Any, int] = {}
                for window, range_of, keys in self.windows:
                    window.start(range_of(chosen), self._stream)
                    bases.update(zip(keys, window.bases(range_of(chosen)), strict=True))
                if number + 1 < len(combinations):
                    for window, range_of, _ in self.windows:
                        if window.ahead:
                            window.start(range_of(combinations[number + 1]), self._stream)
                yield chosen, bases
                event = self.device.event()
                for window, range_of, _ in self.windows:
                    window.read(range_of(chosen), event)
        finally:
            self.end()

    @property
    def moved(self) -> int:
        """Bytes copied so far."""
        return sum(window.moved for window, *_ in self.windows)
