"""What all tests share: the folder of shared material, a database of the shipped data set, and who may skip."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from tests.datasets import SHARED

# In CI the same examples every time; elsewhere new ones, which is where they find something.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture(scope="session")
def shared() -> Callable[[str], Path]:
    """A function from a path below the shared folder to the file; the test is skipped where it is absent."""

    def find(path: str) -> Path:
        found = SHARED / path
        if not found.exists():
            pytest.skip(f"shared material is absent: {found} (set GRAPHDB_SHARED to its folder)")
        return found

    return find


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a device, with the reason why there is none."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked:
        from graphdb.gpu.probe import probe

        report = probe()
        if not report.usable:
            for item in marked:
                item.add_marker(pytest.mark.skip(reason=report.advice))
