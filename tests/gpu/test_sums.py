"""Prefix sums on a device, real or emulated: of any number of values, also where they stand."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest

from graphdb.gpu.code import launch
from tests import emulator
from tests.gpu.executors import EMULATED, SMALL, device_executor


def sums_are_right(device: Any, threads: int, sizes: tuple[int, ...]) -> None:
    random = np.random.default_rng(11)
    with device.active():
        for size in sizes:
            values = random.integers(-5, 1 << 40, size)
            wanted = np.concatenate([[0], np.cumsum(values)])
            copy = device.memory.upload(values)
            assert np.array_equal(device.offsets(copy, threads).get(), wanted)
            assert np.array_equal(copy.get(), values)
            there = device.memory.upload(np.concatenate([[7], values]))
            device.sum_up(there[1:], there, threads)
            assert np.array_equal(there.get(), wanted)


@EMULATED
@pytest.mark.parametrize("tiles", [2, launch.TILES])
def test_sums_of_any_number_of_values(tiles: int) -> None:
    """In one tile, in several, and in so many that their sums are summed up likewise."""
    with emulator.installed(), mock.patch.object(launch, "TILES", tiles):
        device = device_executor("join", SMALL["join"], 1 << 24).device
        sums_are_right(device, 32, (0, 1, 31, 256, 257, 1_000, 5_000))
        sums_are_right(device, 128, (1_024, 1_025, 9_000))


@pytest.mark.gpu
def test_sums_on_a_device() -> None:
    device = device_executor("join", {}, 1 << 30).device
    sums_are_right(device, launch.BLOCK, (0, 1, 2_048, 2_049, 100_000, 9_000_001))
