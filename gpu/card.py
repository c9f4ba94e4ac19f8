"""What a card can do: the limits that its driver states, and how fast it is, measured.

No size and no speed of any one card stands elsewhere.  Estimates of times divide what a plan is expected to read by
these rates; what a plan may take of shared memory, and how long one launch may last, follow from the limits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

_RESERVED = 3 << 10
"""Bytes of shared memory that the driver and static variables of our kernels take of a block's."""
_WATCHED = 0.25
"""Seconds that a launch should last at most where a display waits for it: its watchdog ends kernels after some two."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a block, and a multiprocessor, may take.

    Attributes
    ----------
    shared
        Bytes of shared memory of a block, if its kernel asks for them.
    processor_shared
        Bytes of shared memory of a multiprocessor, which its blocks share.
    processor_threads
        Threads that run on a multiprocessor at a time.
    launch_seconds
        How long one launch may last; infinite where no watchdog ends kernels.
    """

    shared: int = 48 << 10
    processor_shared: int = 64 << 10
    processor_threads: int = 1024
    launch_seconds: float = math.inf

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> Limits:
        """From ``cudaDeviceProp``; what is not stated is what every card has."""
        every = cls()
        shared = int(properties.get("sharedMemPerBlockOptin", 0)) - _RESERVED
        return cls(
            shared=max(shared, every.shared),
            processor_shared=int(properties.get("sharedMemPerMultiprocessor", every.processor_shared)),
            processor_threads=int(properties.get("maxThreadsPerMultiProcessor", every.processor_threads)),
            launch_seconds=_WATCHED if properties.get("kernelExecTimeoutEnabled") else math.inf,
        )


@dataclass(frozen=True, slots=True)
class Rates:
    """How fast a card is, with the link to it: seconds, or numbers in a second.

    Attributes
    ----------
    answer
        Seconds of a launch whose result the host waits for.
    upload, download
        Bytes copied from, and to, memory of the host as it is.
    pinned_upload, pinned_download
        The same of memory that is pinned.
    linked
        Bytes of pinned memory of the host that kernels read themselves.
    listed
        Elements of long lists that are read in order.
    scattered
        Numbers that are added at random places, more than its caches hold.
    intersected
        Elements of lists that are looked up in other sorted lists.
    """

    answer: float = 2e-5
    upload: float = 1e10
    download: float = 1e10
    pinned_upload: float = 2e10
    pinned_download: float = 2e10
    linked: float = 2e10
    listed: float = 2e11
    scattered: float = 1e10
    intersected: float = 2e10

    @classmethod
    def read(cls, values: object) -> Rates | None:
        """From what :meth:`values` gave; None where something is missing, or no positive number."""
        names = [field.name for field in fields(cls)]
        if not isinstance(values, dict) or set(values) != set(names):
            return None
        numbers = [values[name] for name in names]
        if not all(isinstance(number, int | float) and 0 < number < math.inf for number in numbers):
            return None
        return cls(*map(float, numbers))

    def values(self) -> dict[str, float]:
        """All of them by name."""
        return asdict(self)


TYPICAL = Rates()
"""What is assumed of a card until it was measured."""
