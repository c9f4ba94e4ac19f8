"""All executors that tests of a plan run on: the host's, and every strategy of a device, real or emulated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from graphdb.execute.host import HostExecutor
from graphdb.gpu.data import residency
from graphdb.gpu.data.pages import hottest
from graphdb.gpu.join import segmentation
from tests import emulator
from tests.fuzz import scaled

EXAMPLES = settings(
    max_examples=scaled(60),
    deadline=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
        HealthCheck.differing_executors,
    ],
)
"""How many random plans an executor is compared on."""

SMALL: dict[str, dict[str, Any]] = {
    "join": {"block": 32, "items": 2, "rows": 64, "span": 128, "out_bytes": 256},
    "search": {
        "steal": "across",
        "left": 2,
        "pieces": 2,
        "least": 2,
        "block_rows": 4,
        "blocks": 1 << 12,
        "most": 2,
        "depth": 2,
        "unroll": 4,
    },
}
"""Sizes of pieces so small that small graphs make many of them."""

EMULATED = pytest.mark.skipif(emulator.COMPILER is None, reason="no C++ compiler to emulate the device with")
WHERE = [pytest.param("emulated", marks=EMULATED), pytest.param("cuda", marks=pytest.mark.gpu)]
"""An emulated device, and a real one."""
MANY = [name for name in SMALL if name != "search"]
"""Strategies that random plans are tried on in numbers: the search compiles each of them, and has its own tests."""
EXECUTORS = [
    pytest.param("host", id="host"),
    *(pytest.param(f"emulated-{name}", id=f"emulated-{name}", marks=EMULATED) for name in MANY),
    pytest.param("emulated-join-paged", id="emulated-join-paged", marks=EMULATED),
    *(pytest.param(f"cuda-{name}", id=f"cuda-{name}", marks=pytest.mark.gpu) for name in MANY),
    *(pytest.param(f"cuda-{name}-pieces", id=f"cuda-{name}-pieces", marks=pytest.mark.gpu) for name in MANY),
    pytest.param("cuda-join-paged", id="cuda-join-paged", marks=pytest.mark.gpu),
]


@contextmanager
def opened(name: str, memory_limit: int | None = None) -> Iterator[Any]:
    """The executor of that name, whose device has so many bytes."""
    if name == "host":
        yield HostExecutor(threads=1)
        return
    where, strategy, *how = name.split("-")
    with paged(3) if how == ["paged"] else segmented() if how == ["segmented"] else nullcontext():
        if where == "cuda":
            yield device_executor(strategy, SMALL[strategy] if how else {}, memory_limit or 1 << 30)
            return
        with emulator.installed():
            found = device_executor(strategy, SMALL[strategy], memory_limit or 1 << 24)
            yield found
            memory = found.device.memory
            memory.forget_all(("",))  # all copies: those without bytes of their own, never evicted, may share others'
            assert not memory.pool.faults
            assert memory.used_bytes == 0, "a run left something behind"


@contextmanager
def paged(parts: int) -> Iterator[None]:
    """No graph is copied wholly: so many of its pages, or blocks of vertices, are, and the others stay in host memory."""
    with (
        mock.patch.object(residency, "WHOLE", 0.0),
        mock.patch.object(segmentation, "MOST", 0),
        mock.patch.object(
            residency, "hottest", lambda heats, _sizes, _quota: hottest(heats, list(map(np.ones_like, heats)), parts)
        ),
    ):
        yield


@contextmanager
def segmented(*ranges: int) -> Iterator[None]:
    """No graph is copied wholly: each slot's lists are in so many segments, and kernels read no host memory."""
    with (
        mock.patch.object(residency, "WHOLE", 0.0),
        mock.patch.object(residency.Residency, "driver", None),
        mock.patch.object(residency, "can_be_divided", return_value=False),
        mock.patch.object(segmentation, "RANGES", ranges or (2,)),
    ):
        yield


def device_executor(strategy: str, sizes: dict[str, int], memory_limit: int = 1 << 30, number: int = 0) -> Any:
    """A device's executor with one strategy, whose pieces have the given sizes."""
    from graphdb.gpu.executor import GpuExecutor
    from graphdb.gpu.strategies import STRATEGIES

    executor = GpuExecutor(number, hint=strategy, memory_limit=memory_limit)  # type: ignore[arg-type]
    executor.strategies.by_name[strategy] = partial(STRATEGIES[strategy], **sizes)(executor.device, executor.graph)
    return executor
