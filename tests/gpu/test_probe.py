"""The device probe, against drivers that are not there, that fail, and that answer."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

from graphdb.gpu.probe import Device, DeviceReport, probe


class Driver:
    """A driver of two devices, as the CUDA driver API would answer; ``failing`` returns an error from one function."""

    def __init__(self, failing: str = "") -> None:
        self._failing = failing

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            if name == self._failing:
                return 100
            answers = {"cuDriverGetVersion": 12080, "cuDeviceGetCount": 2, "cuDeviceTotalMem_v2": 80 << 30}
            if name == "cuDeviceGetName":
                arguments[0].value = b"Imaginary %d" % arguments[2]
            elif name == "cuDeviceGet":
                arguments[0]._obj.value = arguments[1]
            elif name == "cuDeviceGetAttribute":
                arguments[0]._obj.value = {75: 9, 76: 0, 36: 3_201_000, 37: 6144, 17: arguments[2]}[arguments[1]]
            elif name in answers:
                arguments[0]._obj.value = answers[name]
            else:
                assert name == "cuInit"
            return 0

        return call


def opener(driver: object | None, nvrtc: bool) -> Any:
    """A replacement of ``ctypes.CDLL`` on a machine with this driver, and with or without NVRTC."""

    def open_library(name: str) -> object:
        if "nvrtc" in name and nvrtc:
            return object()
        if "cuda" in name and driver is not None:
            return driver
        raise OSError(name)

    return open_library


def test_without_a_driver() -> None:
    report = probe(opener(None, nvrtc=False))
    assert report.cuda is None
    assert report.devices == ()
    assert not report.usable
    assert "CPU" in report.advice


def test_two_devices() -> None:
    report = probe(opener(Driver(), nvrtc=True))
    assert report.cuda == (12, 8)
    assert report.devices == (
        Device(0, "Imaginary 0", 80 << 30, (9, 0), 4_916_736_000_000),
        Device(1, "Imaginary 1", 80 << 30, (9, 0), 4_916_736_000_000, watched=True),
    )
    assert report.nvrtc == "libnvrtc.so.13"


def test_a_driver_without_devices_says_why() -> None:
    report = probe(opener(Driver(failing="cuInit"), nvrtc=False))
    assert report.cuda == (12, 8)
    assert report.problem == "cuInit returned 100"
    assert "cuInit returned 100" in report.advice


def test_advice_follows_what_is_missing() -> None:
    complete = DeviceReport((13, 0), (Device(0, "Imaginary", 1, (9, 0)),), None, "libnvrtc.so.13", "14.2.0")
    assert complete.usable
    assert "can be used" in complete.advice
    assert "graphdb-duckdb[cuda13]" in replace(complete, cupy=None).advice
    assert "graphdb-duckdb[cuda12]" in replace(complete, cupy=None, cuda=(12, 4)).advice
    assert "NVRTC" in replace(complete, nvrtc=None).advice
    assert not replace(complete, nvrtc=None).usable


def test_this_machine_gives_an_answer() -> None:
    report = probe()
    assert report.advice
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        assert report.cuda is None
    else:
        assert report.cuda is not None
