"""What the tests of this folder share: whoever reads behind the end of an offset layer gets a wrong answer."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest

from graphdb.storage.graph.pcsr import Partition

_BEHIND = 8
"""Vertices behind the last one that has an offset."""


@pytest.fixture(scope="session", autouse=True)
def _others_behind_offsets() -> Iterator[None]:
    """Vertices without an offset would have all neighbours, every second one of them, if they were looked up."""
    described = Partition.__post_init__

    def fenced(partition: Partition) -> None:
        if partition.layer == "direct":
            end = len(partition.offsets)
            cells = np.empty(end + 2 * _BEHIND, np.int64)
            cells[:end], cells[end::2], cells[end + 1 :: 2] = partition.offsets, 0, len(partition.neighbours)
            object.__setattr__(partition, "offsets", cells[:end])
        described(partition)

    with mock.patch.object(Partition, "__post_init__", fenced):
        yield
