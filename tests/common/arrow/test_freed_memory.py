"""Memory of columns that are gone serves those of the next query, and is not mapped anew."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
import graphdb

database = graphdb.connect(memory_limit=%r)

def query():
    columns = [np.ones(1 << 20) for _ in range(5)]

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

query()
query()
found = []
for _ in range(10):
    before = faults()
    query()
    found.append(faults() - before)
print(min(found))
"""
PAGES = 5 * (1 << 23) // 4096


def faults(memory: str) -> int:
    """Return how many pages are mapped for five columns of a million numbers, which others were before them.

    The least of ten times: DuckDB gives all free memory back to the system where its threads had nothing to do.
    """
    code = FAULTS % memory
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return int(ran.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator")
def test_pages_are_mapped_once() -> None:
    assert faults("4GB") < PAGES // 10
    assert faults("300MB") > PAGES // 10, "of little memory nothing is retained"
