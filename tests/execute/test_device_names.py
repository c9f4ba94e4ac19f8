"""Which device a name stands for, and what is said of a machine where there is none."""

from __future__ import annotations

import logging
from dataclasses import replace
from unittest import mock

import pytest

import graphdb
from graphdb.common.errors import DeviceError
from graphdb.execute import devices, trial
from graphdb.execute.choose import choose_executor
from graphdb.execute.trial import try_device
from graphdb.gpu.probe import Device, DeviceReport
from graphdb.plan.passes.pipeline import make_plan
from tests.execute.machines import TRIANGLE, USABLE, machine, plan_of
from tests.execute.test_host import complete, pattern
from tests.gpu.executors import EMULATED


def test_auto_takes_the_best_device() -> None:
    """The fastest memory, not the first number; a display's card only where there is no other."""
    small, large = Device(0, "small", 16 << 30, (7, 5), 320), Device(1, "large", 80 << 30, (8, 0), 2039)
    shown = Device(2, "shown", 24 << 30, (8, 9), 3000, watched=True)
    for found, best in (((small, large, shown), 1), ((small, shown), 0), ((shown,), 2), ((large, small), 1), ((), 0)):
        with machine(replace(USABLE, devices=found)):
            assert devices.best_device() == best


def test_a_machine_without_a_driver_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with machine(DeviceReport(None, (), None, None, None)):
        executor = choose_executor("auto", threads=2)
        with caplog.at_level(logging.WARNING, "graphdb"):
            assert executor.count(plan_of(1e12)) == 336
        assert not caplog.records
        with pytest.raises(DeviceError, match="no NVIDIA driver"):
            choose_executor("cuda:0")


def test_an_unusable_device_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    with machine(replace(USABLE, cupy=None)):
        executor = choose_executor("auto", threads=2)
        with caplog.at_level(logging.WARNING, "graphdb"):
            for _ in range(2):
                assert executor.count(plan_of(1e12)) == 336
        (record,) = caplog.records
        assert "pip install 'graphdb-duckdb[cuda13]'" in record.message
        with pytest.raises(DeviceError, match="CuPy is not"):
            graphdb.connect(device="cuda")


def test_a_device_that_is_not_there() -> None:
    with (
        machine(USABLE),
        pytest.raises(DeviceError, match=r"'cuda:1'\nhint: there is 'cuda:0'"),
    ):
        graphdb.connect(device="cuda:1")


@EMULATED
def test_a_way_is_pinned_by_the_name_of_a_device(device: None) -> None:
    """For what can go it; EXPLAIN says why something does not."""
    rows, count = plan_of(1.0), make_plan(pattern(3, TRIANGLE, count_only=True), complete(8), counting="always")
    found = make_plan(pattern(3, TRIANGLE, count_only=True), complete(8), counting="never")
    report = {
        "join": ("cuda:0 by join", "cuda:0 by join", "cuda:0 by join"),
        "search": ("cuda:0 by search", "cuda:0 by search", "cuda:0 by search"),
        "sums": (
            "cuda:0 by join, not by sums: there are no sums for these rows",
            "cuda:0 by sums",
            "cuda:0 by join, not by sums: there are no sums for this count",
        ),
    }
    for way, wanted in report.items():
        executor = choose_executor(f"cuda by {way}")
        assert tuple(executor.describe(plan) for plan in (rows, count, found)) == wanted
        assert executor.count(count) == executor.count(found) == 336
        if way != "search":  # which the emulator has not compiled for rows
            assert sum(block.count for block in executor.run(rows)) == 336


def test_names_that_mean_no_device() -> None:
    for name in ("gpu", "cuda by hash", "cuda:0 by", "cpu by join"):
        with pytest.raises(graphdb.GraphDBError, match=r"unknown device .*\nhint: use 'auto', .* 'cuda:0 by join'"):
            choose_executor(name)


@EMULATED
def test_doctor_tries_the_device(device: None) -> None:
    assert "runs a query" in try_device(0)
    with mock.patch.object(trial, "smallest_plan", return_value=plan_of(1)):
        assert "counts 336 triangles" in try_device(0)


def test_doctor_says_why_a_device_cannot_be_used() -> None:
    with machine(replace(USABLE, nvrtc=None)):
        assert "queries run on the CPU" in try_device(0)
        assert "NVRTC" in try_device(0)
