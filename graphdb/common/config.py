"""What a database is opened with: where matches run, and memory limits with budgets for DuckDB, graph and bindings."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from graphdb.common.arguments import number_of
from graphdb.common.errors import GraphDBError

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
          "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Executors:
    """Where matches run, as :func:`graphdb.connect` was asked."""

    device: str
    threads: int
    device_memory: int | None = None
    """Bytes."""
    cluster: object = None
    cluster_storage: str | None = None


LIBRARIES = 350 * 10**6
"""Bytes that Python, NumPy, Numba with our kernels, Arrow and DuckDB take before they have any data."""


LOADS = "500MB"
"""The least limit that a load into an empty graph keeps to, whatever its size; with a smaller one it takes as much."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes of memory for each that needs some; with those of the libraries themselves they make the limit.

    DuckDB gets the largest share, since it holds results and spills to disk beyond it; partitions and signatures are
    derived and can be dropped; the rest is for the match: its buffers, the vectors that count, and bindings on their
    way to DuckDB.
    """

    duckdb: int
    graph: int
    bindings: int

    @property
    def rows(self) -> int:
        """What the rows of one statement may take outside of DuckDB: more than all of it is too much in any case."""
        return self.duckdb + self.graph + self.bindings

    @classmethod
    def of(cls, limit: int | str | None) -> Budget:
        """Divide a limit (bytes, or text such as ``"4GB"``); None takes four fifths of the machine's memory."""
        total = memory_bytes(limit) if limit is not None else physical_memory() * 4 // 5
        left = max(total - LIBRARIES, total // 4)
        return cls(duckdb=left // 2, graph=left // 4, bindings=left // 4)


def memory_bytes(limit: int | str, argument: str = "memory_limit") -> int:
    """Return a memory limit in bytes, given as a number of them or as text with a unit; errors name the ``argument``.

    Raises
    ------
    GraphDBError
        The text is no size, or the limit is below 64 MiB.

    Examples
    --------
    >>> memory_bytes("1.5GB"), memory_bytes("512MiB"), memory_bytes(1000000)
    (1500000000, 536870912, 1000000)
    """
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", limit)
        if found is None or found.group(2).lower() not in _UNITS:
            raise GraphDBError(f"{argument} {limit!r} is no size", hint='write bytes, or text such as "4GB"')
        limit = int(float(found.group(1)) * _UNITS[found.group(2).lower()])
    limit = number_of(limit, argument)
    if limit < 64 << 20:
        raise GraphDBError(f"{argument} of {limit:,} bytes is too small", hint="give it 64 MiB or more")
    return limit


def physical_memory() -> int:
    """Return the bytes of memory that this process may use: the machine's, or its control group's."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max") as file:
            return min(total, int(file.read()))
    except (OSError, ValueError):
        return total


def cores() -> int:
    """Return the number of cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
