"""Segments of lists that go by while kernels read them, two kernels at a time: the blocks of one begin where those of
the one before have nothing left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphdb.gpu.code.launch import Device
from graphdb.gpu.segments import Window

SIDES = 2
"""Streams that kernels have turns on."""


def through(
    device: Device,
    windows: Sequence[Window],
    steps: Sequence[tuple[int, ...]],
    launch: Callable[[int, list[list[int]], int], None],
) -> None:
    """Launch a kernel for each step, each after all that was launched on the device's stream before.

    Parameters
    ----------
    windows
        The room for what steps read.
    steps
        Which range of each window a step reads.
    launch
        Launches a step's kernels on the current stream: by the step's number, the bases of each window's arrays, and
        which of :data:`SIDES` streams it is.

    What is launched on the device's stream afterwards waits for all kernels, and all copies.
    """
    copies, sides = device.side_stream(), [device.side_stream() for _ in range(SIDES)]
    done = device.event()
    for stream in (copies, *sides):
        stream.wait_event(done)
    try:
        for number, step in enumerate(steps):
            for window, chosen in zip(windows, step, strict=True):
                window.start(chosen, copies)
            bases = [window.bases(chosen) for window, chosen in zip(windows, step, strict=True)]
            if number + 1 < len(steps):
                for window, chosen in zip(windows, steps[number + 1], strict=True):
                    if window.ahead:
                        window.start(chosen, copies)
            side = sides[number % SIDES]
            side.wait_event(device.event())
            with side:
                launch(number, bases, number % SIDES)
            side.wait_event(done)  # from now on this stream is done only when all kernels before are
            done = device.event_on(side)
            for window, chosen in zip(windows, step, strict=True):
                window.read(chosen, done)
    finally:
        for stream in (copies, *sides):
            device.stream.wait_event(device.event_on(stream))
