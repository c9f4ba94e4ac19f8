"""What comes over the link to a device, as its driver counts it (NVML)."""

from __future__ import annotations

import ctypes
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

RECEIVED = 1
"""``NVML_PCIE_UTIL_RX_BYTES``."""


class Link:
    """The link of the first device; measures nothing where there is no driver."""

    def __init__(self) -> None:
        self._device = ctypes.c_void_p()
        self._library: Any = None
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return
        if not library.nvmlInit_v2() and not library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self._device)):
            self._library = library

    def bytes_of(self, run: Callable[[], object], seconds: float = 0.4) -> float:
        """Bytes that come to the device in a run, which is called again and again for so long; -1 where unknown."""
        if self._library is None:
            return -1.0
        rates, over, runs = list[int](), threading.Event(), 0

        def watch() -> None:
            while not over.wait(0.001):
                value = ctypes.c_uint()  # KB a second, over the last 20 ms
                if not self._library.nvmlDeviceGetPcieThroughput(self._device, RECEIVED, ctypes.byref(value)):
                    rates.append(value.value)

        watching = threading.Thread(target=watch)
        started = time.perf_counter()
        watching.start()
        while time.perf_counter() - started < seconds:
            run()
            runs += 1
        took = time.perf_counter() - started
        over.set()
        watching.join()
        later = rates[len(rates) // 4 :]  # the first say what was before
        return statistics.median(later) * 1e3 * took / runs if later else -1.0
