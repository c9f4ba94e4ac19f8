"""How fast a card is: measured once, cached by card and driver, and what the driver states of its limits."""

from __future__ import annotations

import gc
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphdb.gpu import calibration
from graphdb.gpu.card import TYPICAL, Limits, Rates
from graphdb.gpu.code.launch import Module
from graphdb.plan.strategy.ski_rental import Bias
from graphdb.storage.compile import cache
from tests import emulator
from tests.gpu.executors import EMULATED

KB = 1 << 10
SHARED = {"H200": 224 * KB, "A100": 160 * KB, "RTX 4090": 96 * KB, "T4": 61 * KB}
"""What a block may take."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("GRAPHDB_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "objection", lambda place: place.mkdir(mode=0o700, parents=True, exist_ok=True))
    return tmp_path


@pytest.fixture
def device() -> Iterator[Any]:
    from graphdb.gpu.code.launch import Device

    with emulator.installed(1 << 24):
        yield Device(0)


@pytest.mark.parametrize("card", emulator.CARDS)
def test_limits_are_what_the_driver_states(card: str) -> None:
    properties = emulator.CARDS[card]
    limits = Limits.of(properties)
    assert limits.shared == SHARED[card]
    assert limits.shared < limits.processor_shared == properties["sharedMemPerMultiprocessor"]
    assert limits.processor_threads == properties["maxThreadsPerMultiProcessor"]
    assert (limits.launch_seconds < 1) == (card == "RTX 4090")


def test_a_card_that_states_nothing_has_what_every_card_has() -> None:
    assert Limits.of({}) == Limits()
    assert Limits.of({"kernelExecTimeoutEnabled": 1}).launch_seconds < 1


@EMULATED
def test_what_delays_the_host_is_not_the_card_s(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that plans a query has the interpreter between a kernel's launch and what was recorded before it."""
    launch = Module.launch

    def late(self: Module, *arguments: Any, **options: Any) -> None:
        time.sleep(0.05)
        launch(self, *arguments, **options)

    monkeypatch.setattr(Module, "launch", late)
    rates = calibration.measure(device, 1 << 12)
    assert (1 << 12) / rates.listed < 0.05
    assert (1 << 12) / rates.intersected < 0.05
    assert (1 << 10) / rates.scattered < 0.05


@EMULATED
def test_a_card_is_measured_once(device: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert device.rates is TYPICAL
    calibration.calibrate(device).join()
    first = device.rates
    assert first is not TYPICAL
    assert all(0 < rate < math.inf for rate in first.values().values())
    monkeypatch.setattr(calibration, "measure", lambda device: pytest.fail("measured again"))
    device.rates = TYPICAL
    calibration.calibrate(device).join()
    assert device.rates == first
    assert device.memory.used_bytes == 0


@EMULATED
@pytest.mark.parametrize("key", ["name", "driver", "processors"])
def test_another_card_or_driver_is_measured_anew(
    device: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    rates = iter([TYPICAL, Rates(answer=1.0)])
    monkeypatch.setattr(calibration, "measure", lambda device: next(rates))
    calibration.calibrate(device).join()
    setattr(device, key, "another" if key == "name" else 7)
    calibration.calibrate(device).join()
    assert device.rates.answer == 1.0


@EMULATED
@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", json.dumps(TYPICAL.values() | {"answer": -1}).encode(), json.dumps({"answer": 1}).encode(),
     json.dumps(TYPICAL.values() | {"upload": "fast"}).encode(), b'{"answer": Infinity}'],
)  # fmt: skip
def test_a_file_that_says_something_else_is_not_believed(
    device: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setattr(calibration, "measure", lambda device: Rates(answer=3.0))
    calibration.DISK.write(calibration._file_of(device), content)
    calibration.calibrate(device).join()
    assert device.rates.answer == 3.0


@EMULATED
def test_a_card_that_cannot_be_measured_stays_typical(device: Any, folder: Path) -> None:
    device.memory.budget = 100
    calibration.calibrate(device).join()
    assert device.rates is TYPICAL


class Owner:
    """Whoever estimates."""


@EMULATED
def test_what_was_learned_is_there_in_the_next_process(device: Any, folder: Path) -> None:
    learned, owner = {"join": Bias(), "sums": Bias()}, Owner()
    calibration.remember(device, learned, owner)
    for _ in range(20):
        learned["join"].note(1.0, 3.0)
    del owner
    gc.collect()
    later, owner = {"join": Bias(), "sums": Bias(), "cliques": Bias()}, Owner()
    calibration.remember(device, later, owner)
    assert later["join"].factor == pytest.approx(learned["join"].factor)
    assert later["join"].factor > 2.9
    assert later["sums"].factor == later["cliques"].factor == 1.0
    device.driver = 7
    other = {"join": Bias()}
    calibration.remember(device, other, owner)
    assert other["join"].factor == 1.0


@EMULATED
@pytest.mark.parametrize(
    "content", [b"[1]", b"{", b'{"join": 0}', b'{"join": 1e9}', b'{"join": "x"}', b'{"join": NaN}']
)
def test_what_nobody_can_have_learned_is_not_believed(device: Any, folder: Path, content: bytes) -> None:
    calibration.DISK.write(calibration._file_of(device, "learned"), content)
    learned, owner = {"join": Bias()}, Owner()
    calibration.remember(device, learned, owner)
    assert learned["join"].factor == 1.0


@EMULATED
def test_who_learned_nothing_writes_nothing(device: Any, folder: Path) -> None:
    owner = Owner()
    calibration.remember(device, {"join": Bias()}, owner)
    del owner
    gc.collect()
    assert calibration.DISK.read(calibration._file_of(device, "learned")) is None
