"""The device's time that a miner's kernels take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graphdb.gpu.code.launch import Device, StopFlag
from graphdb.gpu.watch import Watch, wait_for


class Clock:
    """Adds up the time between the events before and behind launches.

    Attributes
    ----------
    milliseconds
        The device's time so far.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self.milliseconds = 0.0

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time of what is launched while the context is entered, once it is done."""
        begin = self._device.event()
        yield
        self.milliseconds += self._device.milliseconds(begin, self._device.event())

    @contextmanager
    def watched(self, watch: Watch, stop: StopFlag) -> Iterator[None]:
        """As :meth:`timed`, for kernels that last: ``watch`` is asked meanwhile, and what it raises stops them."""
        begin = self._device.event()
        yield
        end = self._device.event()
        wait_for(end, watch, stop, lambda: None)
        self.milliseconds += self._device.milliseconds(begin, end)
