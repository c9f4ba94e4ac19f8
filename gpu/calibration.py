"""Measures how fast a card is, in some 50 ms, once for each card and driver (:class:`graphdb.gpu.card.Rates`).

A thread does it when a device is opened; until it is done, plans go by :data:`graphdb.gpu.card.TYPICAL`.  Kernels are
timed by the card's own clock: that thread waits for the interpreter, for milliseconds where a query is planned
meanwhile.  What was measured is cached on disk beside the user's machine code, by the names of card and driver; and so
is what runs teach of the estimates (:func:`remember`).
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphdb.common.errors import GraphDBError
from graphdb.gpu.card import Rates
from graphdb.gpu.code.launch import BLOCK, VARIANTS, Device, faults
from graphdb.gpu.data.graph import address
from graphdb.plan.strategy.ski_rental import Bias
from graphdb.storage.compile.cache import Cache

CELLS = 1 << 25
"""Numbers of 32 bits that kernels read at most: more than a card's caches hold."""
SHARE = 16
"""They take one of so many parts of the device's budget at most."""
LENGTH = 256
"""Of a list: a power of two."""
COPIED = 4 << 20
"""Bytes that are copied each way."""
ANSWERS, RUNS = 15, 3
"""Answers that are waited for, and runs of all else."""
FARTHEST = 1e3
"""Times that an estimate may be wrong to be believed by another process."""
VERSION = 3
"""Of what is measured, and how."""

VARIANTS["rates"] = ({},)
DISK = Cache("rates", 32)
"""What was measured, by the names of card and driver."""
_log = logging.getLogger("graphdb")


def calibrate(device: Device) -> threading.Thread:
    """Give a device its rates: those that were measured before at once, else by a thread, which is returned started."""
    name = _file_of(device)

    def measured() -> None:
        known = _read(name)
        if known is None:
            try:
                with faults():
                    known = measure(device)
            except GraphDBError as error:
                _log.info("the device's speed is not measured: %s", error)
                return
            DISK.write(name, json.dumps(known.values()).encode())
        device.rates = known

    thread = threading.Thread(target=measured, name="graphdb-calibration", daemon=True)
    thread.start()
    return thread


def remember(device: Device, biases: Mapping[str, Bias], owner: object) -> None:
    """Let the biases of estimates go on from what earlier processes learned of this card, and be written when their
    ``owner`` goes.
    """
    name = _file_of(device, "learned")
    for key, factor in _factors(name).items():
        if key in biases:
            biases[key].factor = factor
    weakref.finalize(owner, _write_factors, name, biases, {key: bias.factor for key, bias in biases.items()})


def _write_factors(name: str, biases: Mapping[str, Bias], before: Mapping[str, float]) -> None:
    """Write what was learned, if anything was."""
    now = {key: bias.factor for key, bias in biases.items()}
    if now != before:
        DISK.write(name, json.dumps(now).encode())


def _factors(name: str) -> dict[str, float]:
    """What was learned before; nothing where that is no such file."""
    content = DISK.read(name)
    try:
        found = {} if content is None else json.loads(content)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {key: float(x) for key, x in found.items() if isinstance(x, int | float) and 1 / FARTHEST <= x <= FARTHEST}


def measure(device: Device, cells: int = CELLS) -> Rates:
    """Measure a device; kernels read so many ``cells`` (a power of two), or fewer where memory is short."""
    side = device.side_stream()
    with device.memory.active(), side:
        while cells > LENGTH and 4 * cells > device.memory.budget // SHARE:
            cells //= 2
        module, memory = device.module("rates", {}), device.memory
        values, total = memory.empty(cells, np.uint32), memory.empty(1, np.uint64)
        total.fill(0)
        blocks = max(min(8 * device.processors, cells // BLOCK), 1)
        module.launch("fill_lists", blocks, values, cells, LENGTH)

        def seconds(kernel: str, *arguments: Any) -> float:
            spans = memory.upload(np.array([[-1, 0]] * (RUNS + 1), np.int64).astype(np.uint64))
            for run in range(RUNS + 1):  # the first is not counted
                module.launch(kernel, blocks, *arguments, address(spans[run]))
            begins, ends = spans.get()[1:].astype(np.int64).T
            return max(float(np.median(ends - begins)) / 1e9, 1e-7)

        listed = seconds("listed", values, cells, address(total))
        intersected = seconds("intersected", values, cells, LENGTH, address(total))
        scattered = seconds("scattered", values, cells, cells // 4)
        unused = memory.empty(2, np.uint64)

        def answered() -> None:
            module.launch("listed", 1, values, BLOCK, address(total), address(unused))
            device.last(total)

        answer = _elapsed(answered, ANSWERS)
        size = min(COPIED, 4 * cells)
        pageable, pinned = np.zeros(size, np.uint8), device.pinned((size,), np.uint8)
        pinned[...] = 0
        copy = memory.empty(size, np.uint8)
        linked = seconds("listed", np.uint64(pinned.ctypes.data), size // 4, address(total))

        def rate(way: Callable[[], object]) -> float:
            def copied() -> None:
                way()
                side.synchronize()

            return size / _elapsed(copied, RUNS)

        return Rates(
            answer=answer,
            upload=rate(lambda: copy.set(pageable, stream=side)),
            download=rate(lambda: copy.get(stream=side, out=pageable)),
            pinned_upload=rate(lambda: copy.set(pinned, stream=side)),
            pinned_download=rate(lambda: copy.get(stream=side, out=pinned)),
            linked=size / linked,
            listed=cells / listed,
            scattered=cells // 4 / scattered,
            intersected=cells / intersected,
        )


def _elapsed(run: Callable[[], object], times: int) -> float:
    """The time that a call takes: the least of some, after one that is not counted; other threads delay some."""
    run()
    found = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return max(min(found), 1e-7)


def _file_of(device: Device, what: str = "rates") -> str:
    """The name of the file with a card's rates, or what was learned of it: it tells card and driver."""
    known = f"{VERSION} {device.name} {device.processors} {device.driver} {device.memory.budget >> 33}"
    return f"{what}-{hashlib.sha256(known.encode()).hexdigest()[:24]}.json"


def _read(name: str) -> Rates | None:
    """What was measured before; None where nothing was, or what is there is no such file."""
    content = DISK.read(name)
    try:
        return None if content is None else Rates.read(json.loads(content))
    except ValueError:
        return None
