"""Memory of columns that are gone serves those of the next query, and is not mapped anew."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

import graphdb
from graphdb.common.arrow import freed_memory

FAULTS = """
import resource
import sys
import numpy as np
from graphdb.common.arrow import freed_memory

def query():
    columns = [np.ones(1 << 20) for _ in range(5)]

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

freed_memory.retain(int(sys.argv[1]))
query()
query()
before = faults()
for _ in range(10):
    query()
print(faults() - before)
"""
PAGES = 10 * 5 * (1 << 23) // 4096


def faults(limit: int) -> int:
    """Return how many pages are mapped for ten times five columns of a million numbers.

    The process has no database: DuckDB's threads give free memory back to the system whenever they are idle.  Nor has
    it settings of glibc's allocator, which Dask leaves in the environment of a process that started workers.
    """
    command = [sys.executable, "-c", FAULTS, str(limit)]
    chosen = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    return int(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=chosen).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_pages_are_mapped_once() -> None:
    assert faults(1 << 30) < PAGES // 10
    assert faults(1 << 28) > PAGES // 10, "of little memory nothing is retained"


def test_a_database_retains_by_its_memory_for_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setattr(freed_memory, "retain", limits.append)
    for limit in ("4GB", "300MB"):
        graphdb.connect(memory_limit=limit).close()
    large, small = limits
    assert 1 << 29 < large < 4 << 30
    assert small < 300 << 20
