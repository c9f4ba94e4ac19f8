"""Segments of lists on their way to the device: copied from pinned host memory while kernels work on those before.

An array of lists that does not fit the device is cut into ranges (SGSI §6.2).  A :class:`Window` is the room on the
device for one range of it at a time; one that changes with every step has two buffers, so that the next range is copied
while the last one is read (the pipeline of SGSI §6.3).  Copies have a stream of their own; events order them with the
kernels.  The host never waits for either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import Device
from graphdb.gpu.data.graph import address

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Pinned:
    """The copy of an array in pinned memory of the host, which copies to the device at the speed of the link."""

    values: NDArray[Any]
    nbytes: int = 0
    """Bytes on the device."""


def pinned(device: Device, values: NDArray[Any]) -> NDArray[Any]:
    """Return the pinned copy of an array, made when it is first asked for."""

    def copy() -> Pinned:
        made = device.pinned(values.shape, values.dtype)
        made[:] = values
        return Pinned(made)

    return device.memory.cached_or_built("pinned", values, copy).values


class Window:
    """Room on the device for one range of an array at a time.

    Parameters
    ----------
    values
        The pinned array: int32 or int64 [entries].
    begins, ends
        int64 [ranges]: the entries that begin each range, and those behind its last.
    buffers
        1, or 2 where the next range is to be copied while the last one is read.
    """

    def __init__(self, device: Device, values: NDArray[Any], begins: Ints, ends: Ints, buffers: int) -> None:
        self._device, self._values, self._begins, self._ends = device, values, begins, ends
        longest = max(int((ends - begins).max(initial=0)), 1)
        self._buffers = [device.memory.empty(longest, values.dtype) for _ in range(buffers)]
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
        begin, end = int(self._begins[number]), int(self._ends[number])
        if end > begin:
            self._buffers[at][: end - begin].set(self._values[begin:end], stream=stream)
        self._inside[at], self._copied[at] = number, self._device.event_on(stream)
        self.moved += (end - begin) * self._values.itemsize

    def base(self, number: int) -> int:
        """Where the array's first entry would stand, by the place of a range that was started; kernels wait for it."""
        at = self._turn = self._inside.index(number)  # the other one may be copied to meanwhile
        self._device.stream.wait_event(self._copied[at])
        return address(self._buffers[at]) - int(self._begins[number]) * self._values.itemsize

    def read(self, number: int, event: Any) -> None:
        """The kernels that read a range have been launched before this event."""
        self._read[self._inside.index(number)] = event


@dataclass(eq=False)
class SegmentStream:
    """Windows that go through combinations of ranges together.

    Parameters
    ----------
    windows
        By key: a window, and which of the numbers of a combination is its range's.
    """

    device: Device
    windows: Mapping[Any, tuple[Window, int]]
    _stream: Any = field(init=False)

    def __post_init__(self) -> None:
        self._stream = self.device.side_stream()
        self._stream.wait_event(self.device.event())  # what used the buffers' memory before

    def through(self, combinations: Sequence[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], dict[Any, int]]]:
        """Give each combination with the bases of its ranges, by key, once kernels may read them."""
        try:
            for number, chosen in enumerate(combinations):
                bases = {}
                for key, (window, at) in self.windows.items():
                    window.start(chosen[at], self._stream)
                    bases[key] = window.base(chosen[at])
                if number + 1 < len(combinations):
                    following = combinations[number + 1]
                    for window, at in self.windows.values():
                        if window.ahead:
                            window.start(following[at], self._stream)
                yield chosen, bases
                event = self.device.event()
                for window, at in self.windows.values():
                    window.read(chosen[at], event)
        finally:  # whatever gets the buffers' memory next is used after the last copy
            with self.device.active():
                self.device.stream.wait_event(self.device.event_on(self._stream))

    @property
    def moved(self) -> int:
        """Bytes copied so far."""
        return sum(window.moved for window, _ in self.windows.values())
