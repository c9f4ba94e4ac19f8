"""Kernels: how they are assembled, compiled, launched, timed and stopped.

The kernels are CUDA C++ in ``kernels/*.cu``, with ``#include "….cuh"`` of what they share.  A module is compiled by
NVRTC when it is first used, with the macros that it was asked for as compile-time constants, and CuPy keeps the machine
code on disk (``CUPY_CACHE_DIR``, by default ``~/.cupy``).  The text is put together here, so that the cache knows all
of it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import DeviceError, GraphDBError, MemoryLimitError
from graphdb.gpu.card import TYPICAL, Limits
from graphdb.gpu.layout import HEADERS
from graphdb.gpu.memory import DeviceMemory
from graphdb.plan.executor import Refused

BLOCK = 256
"""Threads of a block, in all kernels that do not say otherwise."""
OPTIONS = ("-std=c++17",)
COMPILER_PAUSE = 2e-3
"""Seconds between two questions whether to go on, while a kernel is compiled."""
STATIC_SHARED = 48 << 10
"""Bytes of shared memory that a block gets without asking for more."""

IDS: dict[type[np.signedinteger[Any]], str] = {np.int32: "int", np.int64: "long long"}
"""The vertex id types, in C++."""

VARIANTS: dict[str, tuple[dict[str, str], ...]] = {}
"""All modules and the macros they are compiled with, for whoever compiles everything (tests, ``graphdb doctor``)."""

_OUT_OF_MEMORY = 2
"""``CUDA_ERROR_OUT_OF_MEMORY``."""
_REFUSALS = frozenset((1, 9, 98, 200, 209, 218, 221, 222, 500, 701, 720))
"""Errors of CUDA that leave the device as it was (driver API, ``CUresult``, and runtime API): invalid values,
configurations and functions, images that it does not take, symbols that are not found, more resources than it has."""

_Key = tuple[str, tuple[str, ...], str]
_INCLUDE = re.compile(r'^#include "(\w+\.cuh)"$', re.MULTILINE)


@cache
def source(name: str, plan: str = "") -> str:
    """The text of a module of ``kernels/`` with every header in it, each once.

    Layouts are headers too (:data:`graphdb.gpu.layout.HEADERS`); ``plan`` is what ``plan.cuh`` says.
    """
    seen: set[str] = set()

    def read(file: str) -> str:
        if file == "plan.cuh":
            return plan
        if file in seen:
            return ""
        seen.add(file)
        if file in HEADERS:
            return HEADERS[file]
        text = resources.files("graphdb.gpu").joinpath("kernels", file).read_text(encoding="utf-8")
        return _INCLUDE.sub(lambda found: read(found.group(1)), text)

    return read(f"{name}.cu")


def defines(macros: Mapping[str, object]) -> tuple[str, ...]:
    """Macros as options of the compiler."""
    return tuple(f"-D{name}={value}" for name, value in sorted(macros.items()))


@contextmanager
def faults(device: str = "the device") -> Iterator[None]:
    """Turn what CuPy raises into errors of ours, which a caller can tell from his own mistakes, and which name it.

    Raises
    ------
    Refused
        A kernel does not compile, or is not launched; the device is well.
    MemoryLimitError
        The device has too little memory.
    DeviceError
        The device or its driver failed.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, GraphDBError) or not type(error).__module__.startswith("cupy"):
            raise
        status = getattr(error, "status", None)
        if type(error).__name__ == "CompileException" or status in _REFUSALS:
            raise Refused(f"{device} refuses a kernel: {error}", hint="use device='cpu' or 'auto'") from error
        if type(error).__name__ == "OutOfMemoryError" or status == _OUT_OF_MEMORY:
            raise MemoryLimitError(
                f"{device} has no memory left: {error}", hint="use device='cpu' or 'auto'"
            ) from error
        raise DeviceError(f"{device} failed: {error}", hint="see: graphdb doctor") from error


class Module:
    """A compiled module, and its kernels by name."""

    def __init__(self, device: Device, name: str, macros: Mapping[str, object], plan: str = "") -> None:
        import cupy

        self._device, self._driver = device, cupy.cuda.driver
        self._module = cupy.RawModule(code=source(name, plan), options=(*OPTIONS, *defines(macros)))
        self._kernels: dict[str, Any] = {}

    def compile(self) -> None:
        """Compile it now, not at its first launch."""
        with self._device.memory.active():
            self._module.compile()

    def launch(self, kernel: str, blocks: int, *arguments: Any, threads: int = BLOCK, shared: int = 0) -> None:
        """Launch a kernel on the device's stream; integers are passed as ``long long``, arrays as their address."""
        if blocks < 1:
            return
        found = self._kernel(kernel, shared)
        passed = tuple(np.int64(value) if isinstance(value, int) else value for value in arguments)
        found((blocks,), (threads,), passed, shared_mem=shared)

    def load(self, kernel: str) -> None:
        """Have a kernel on the device now: at its first launch, the driver may wait for all that runs there."""
        with self._device.memory.current():
            self._kernel(kernel, 0).attributes  # noqa: B018 - asking loads it

    def resident(self, kernel: str, threads: int = BLOCK, shared: int = 0) -> int:
        """How many of a kernel's blocks run at a time on the device: what a persistent kernel is launched with."""
        found = self._kernel(kernel, shared)
        count = self._driver.occupancyMaxActiveBlocksPerMultiprocessor(found.kernel.ptr, threads, shared)
        return max(int(count), 1) * self._device.processors

    def _kernel(self, name: str, shared: int) -> Any:
        found = self._kernels.get(name)
        if found is None:
            found = self._kernels[name] = self._module.get_function(name)
        if shared > STATIC_SHARED and found.max_dynamic_shared_size_bytes < shared:
            found.max_dynamic_shared_size_bytes = shared
        return found


class Device:
    """One CUDA device: its memory, its stream and its compiled modules.

    Parameters
    ----------
    number
        Which device.
    budget
        Bytes that it may hold; see :class:`graphdb.gpu.memory.DeviceMemory`.
    """

    def __init__(self, number: int = 0, budget: int | None = None) -> None:
        import cupy

        self._cupy = cupy
        self.number = number
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        self.name = str(properties["name"].decode())
        self.processors = int(properties["multiProcessorCount"])
        self.driver = int(cupy.cuda.runtime.driverGetVersion())
        self.limits = Limits.of(properties)
        self.rates = TYPICAL
        """How fast it is; :mod:`graphdb.gpu.calibration` measures it."""
        self.memory = DeviceMemory(number, budget)
        with self.memory.active():
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self.copies = cupy.cuda.Stream(non_blocking=True)
        self._modules: dict[_Key, Module] = {}
        self._compiling: dict[_Key, Future[None]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the device, its pool and its stream those of the calling thread; never across a ``yield``."""
        with self.memory.active(), self.stream:
            yield

    def module(
        self, name: str, macros: Mapping[str, object], plan: str = "", check: Callable[[], None] | None = None
    ) -> Module:
        """A module compiled with the given macros, and where it is written per plan, that text.

        Nothing stops the compiler: a module that is new is compiled by a thread of its own while ``check`` is asked now
        and then.  What that raises is raised here; the thread goes on, and the next who asks finds the module, or waits
        for the same thread.
        """
        key = (name, defines(macros), plan)
        if key not in self._modules:
            if check is None:
                self._modules[key] = Module(self, name, macros, plan)
                return self._modules[key]
            with self._lock:
                under_way = self._compiling.get(key) or self._compile(key, macros)
            while not wait([under_way], COMPILER_PAUSE).done:
                check()
            under_way.result()
        return self._modules[key]

    def _compile(self, key: _Key, macros: Mapping[str, object]) -> Future[None]:
        """Have a thread compile a module."""

        def compiled() -> None:
            module = Module(self, key[0], macros, key[2])
            module.compile()
            self._modules[key] = module

        pool = ThreadPoolExecutor(1, "graphdb-compiler")
        under_way = self._compiling[key] = pool.submit(compiled)
        under_way.add_done_callback(lambda _: self._compiling.pop(key, None))
        pool.shutdown(wait=False)
        return under_way

    def offsets(self, lengths: Any) -> Any:
        """Where runs of the given lengths begin: int64 [n + 1], from int64 [n]."""
        starts = self.memory.empty(len(lengths) + 1, np.int64)
        starts[:1] = 0
        self._cupy.cumsum(lengths, out=starts[1:])
        return starts

    def last(self, values: Any) -> int:
        """The last of an array's values, on the host; waits for it."""
        return int(values[-1:].get()[0])

    def side_stream(self) -> Any:
        """A stream beside the device's own, for kernels that run while others do."""
        return self._cupy.cuda.Stream(non_blocking=True)

    def event(self) -> Any:
        """An event, recorded now on the device's stream."""
        return self.event_on(self.stream)

    def event_on(self, stream: Any) -> Any:
        """An event, recorded now on a stream."""
        event = self._cupy.cuda.Event()
        event.record(stream)
        return event

    def milliseconds(self, begin: Any, end: Any) -> float:
        """The device's time between two events; waits for the second."""
        end.synchronize()
        return float(self._cupy.cuda.get_elapsed_time(begin, end))

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array in host memory that the device reads and writes directly; it goes back when nobody holds it."""
        count, width = int(np.prod(shape)), np.dtype(dtype).itemsize
        with self.memory.current():
            memory = self._cupy.cuda.alloc_pinned_memory(max(count * width, 8))
        return np.frombuffer(memory, dtype, count).reshape(shape)


class StopFlag:
    """A flag in host memory that a running kernel polls: ``*(volatile int*)address != 0`` says stop."""

    def __init__(self, device: Device) -> None:
        self._cell = device.pinned((1,), np.int32)
        self._cell[0] = 0

    @property
    def address(self) -> int:
        """The address, the same for host and device (unified addressing)."""
        return int(self._cell.ctypes.data)

    def set(self) -> None:
        """Tell kernels to stop."""
        self._cell[0] = 1

    def clear(self) -> None:
        """Let kernels run."""
        self._cell[0] = 0
