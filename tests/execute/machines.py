"""Machines as their drivers say: one with an emulated device, and plans that cost what a test wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

from graphdb.execute import choose, devices
from graphdb.gpu.card import Rates
from graphdb.gpu.probe import Device, DeviceReport
from graphdb.plan.passes.pipeline import make_plan
from tests.execute.test_host import complete, pattern

TRIANGLE: list[tuple[int, int, Any, bool]] = [(0, 1, (1,), True), (1, 2, (1,), True), (0, 2, (1,), True)]
USABLE = DeviceReport((13, 0), (Device(0, "emulated", 1 << 30, (9, 0)),), None, "nvrtc", "14")


@contextmanager
def machine(report: DeviceReport) -> Iterator[None]:
    """A machine of which the driver says so."""
    with (
        mock.patch.object(choose, "probe", return_value=report),
        mock.patch.object(devices, "probe", return_value=report),
    ):
        yield


def rated(device: Any) -> Any:
    """A device that looks up 100 billion elements in a second, and answers within 20 microseconds."""
    device.device.rates = Rates(answer=2e-5, intersected=1e11)
    return device


def plan_of(cost: float, **more: Any) -> Any:
    plan = make_plan(pattern(3, TRIANGLE, **more), complete(8), counting="never")
    return replace(plan, cost=cost)
