"""Page-locked memory that blocks of rows share: none overlaps another, and all of it comes back."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.gpu.data import slabs
from graphdb.gpu.data.slabs import Slabs
from tests.gpu.executors import EXAMPLES

MIB = 1 << 10
"""As a thousandth of what it is: so are the sizes of slabs here."""


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """Slabs of some KiB."""
    with mock.patch.multiple(slabs, LEAST=MIB, SMALLEST=8 * MIB, LARGEST=128 * MIB, ALIGNED=64):
        yield


class Owner:
    """Who holds a block."""


class Host:
    """Gives memory, and counts what is out."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.out = 0

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        cells = np.frombuffer(bytearray(size), dtype)
        self.sizes.append(size)
        self.out += size
        weakref.finalize(cells, self.back, size)
        return cells.reshape(shape)

    def back(self, size: int) -> None:
        self.out -= size


@EXAMPLES
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3)), min_size=1, max_size=40))
def test_blocks_share_slabs(drawn: list[tuple[int, int]]) -> None:
    """Blocks of so many eighths of a MiB, some of which go back: each keeps what was written to it."""
    host, lent = Host(), list[tuple[Owner, Any]]()
    made = Slabs(host.pinned)
    for number, (eighths, gone) in enumerate(drawn):
        owner = Owner()
        cells = made.lend(owner, (2, eighths * MIB // 64), np.int32)
        cells[:, 0], cells[:, -1] = number, -number
        lent.append((owner, (cells, number)))
        del owner, cells
        for _ in range(min(gone, len(lent) - 1)):
            lent.pop(0)
        assert all((cells[:, 0] == of).all() and (cells[:, -1] == -of).all() for _, (cells, of) in lent)
    large = [cells for _, (cells, _) in lent if cells.nbytes >= slabs.LEAST]
    bounds = sorted((cells.ctypes.data, cells.ctypes.data + cells.nbytes) for cells in large)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(bounds))
    del large
    lent.clear()
    made.drop()
    gc.collect()
    assert host.out == 0


def test_slabs_serve_again() -> None:
    """A run that takes blocks of other sizes than the one before, and gives each back, needs no other memory."""
    host = Host()
    made = Slabs(host.pinned)
    for size in range(30):
        made.lend(Owner(), (MIB + size,), np.uint8)
    assert host.sizes == [slabs.SMALLEST]
    owners = [Owner() for _ in range(60)]
    held = [made.lend(owner, (8 * MIB - size,), np.uint8) for size, owner in enumerate(owners)]
    assert max(host.sizes) <= slabs.LARGEST
    assert sum(host.sizes) < 1.4 * sum(each.nbytes for each in held), "little stays empty"
    assert len(set(host.sizes)) <= 5
