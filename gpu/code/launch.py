"""Kernels: how they are assembled, loaded, launched, timed and stopped.

The kernels are CUDA C++ in the folders of ``kernels/``, with ``#include "….cuh"`` of what they share; no two files have
one name.  A module is compiled with the macros that it was asked for as compile-time constants; the text is put
together here, so that whoever caches its code knows all of it.  Modules that no query changes are compiled when a wheel
is built; the others, and those that the wheel's code does not serve, by NVRTC when they are first used
(:mod:`graphdb.gpu.code.machine_code`).
"""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import DeviceError, GraphDBError, MemoryLimitError
from graphdb.gpu.card import TYPICAL, Limits
from graphdb.gpu.code import machine_code
from graphdb.gpu.code.layout import HEADERS
from graphdb.gpu.code.machine_code import Source
from graphdb.gpu.data.memory import DeviceMemory
from graphdb.plan.executor import Refused

BLOCK = 256
"""Threads of a block, in all kernels that do not say otherwise."""
STATIC_SHARED = 48 << 10
"""Bytes of shared memory that a block gets without asking for more."""

IDS: dict[type[np.signedinteger[Any]], str] = {np.int32: "int", np.int64: "long long"}
"""The vertex id types, in C++."""

VARIANTS: dict[str, tuple[dict[str, str], ...]] = {}
"""All modules and the macros they are compiled with: what a wheel carries, and of those that are written per plan
(:func:`written_per_plan`), examples for tests."""
VARIANTS["answer"] = VARIANTS["scatter"] = VARIANTS["sums"] = ({},)
SAMPLES: dict[str, tuple[dict[str, str], ...]] = {}
"""Examples of macros that a wheel's code does not serve, for tests."""

SUMMED, TILES = 8, 1 << 12
"""Values of a thread that sums up: ``ITEMS`` of ``sums.cu``; and tiles that blocks sum up by themselves, at most."""
MODULES = 128
"""Modules that a device has loaded; beyond, the least recently used go."""
_FUNCTION_ATTRIBUTES, _DYNAMIC_SHARED = range(8), 8
"""Numbers of the driver's: what it knows of a function once it is loaded, and the attribute that says how much shared
memory a block may ask for."""

_OUT_OF_MEMORY = 2
"""``CUDA_ERROR_OUT_OF_MEMORY``."""
_REFUSALS = frozenset((1, 9, 98, 200, 209, 218, 221, 222, 500, 701, 720))
"""Errors of CUDA that leave the device as it was (driver API, ``CUresult``, and runtime API): invalid values,
configurations and functions, images that it does not take, symbols that are not found, more resources than it has."""

_Key = tuple[str, tuple[str, ...], str]
_INCLUDE = re.compile(r'^#include "(\w+\.cuh)"$', re.MULTILINE)
_PLAN = "plan.cuh"
_log = logging.getLogger("graphdb")


@cache
def _files() -> Mapping[str, Traversable]:
    """The files of ``kernels/``, by their names."""
    entries = list(resources.files("graphdb.gpu").joinpath("kernels").iterdir())
    inside = [file for folder in entries if folder.is_dir() for file in folder.iterdir()]
    return {file.name: file for file in (*entries, *inside)}


@cache
def _file(name: str) -> str:
    return _files()[name].read_text(encoding="utf-8")


def modules() -> set[str]:
    """The names of all modules in ``kernels/``."""
    return {name.removesuffix(".cu") for name in _files() if name.endswith(".cu")}


def written_per_plan(name: str) -> bool:
    """Whether a module is compiled anew for each shape of plan."""
    return f'#include "{_PLAN}"' in _file(f"{name}.cu")


@lru_cache(maxsize=MODULES)
def source(name: str, plan: str = "") -> str:
    """The text of a module of ``kernels/`` with every header in it, each once.

    Layouts are headers too (:data:`graphdb.gpu.code.layout.HEADERS`); ``plan`` is what ``plan.cuh`` says.
    """
    seen: set[str] = set()

    def read(file: str) -> str:
        if file == _PLAN:
            return plan
        if file in seen:
            return ""
        seen.add(file)
        if file in HEADERS:
            return HEADERS[file]
        return _INCLUDE.sub(lambda found: read(found.group(1)), _file(file))

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
    """A module on a device, and its kernels by name."""

    def __init__(self, device: Device, code: bytes) -> None:
        import cupy

        self._device, self._driver = device, cupy.cuda.driver
        self._module = cupy.cuda.Module()
        self._module.load(code)
        self._kernels: dict[str, Any] = {}
        self._resident: dict[tuple[str, int, int], int] = {}
        self._shared: dict[str, int] = {}
        """Bytes of shared memory that a block of a kernel may ask for, where it is more than any may."""

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
            found = self._kernel(kernel, 0)
            for attribute in _FUNCTION_ATTRIBUTES:  # asking loads it
                self._driver.funcGetAttribute(attribute, found.ptr)

    def resident(self, kernel: str, threads: int = BLOCK, shared: int = 0) -> int:
        """How many of a kernel's blocks run at a time on the device: what a persistent kernel is launched with."""
        key = (kernel, threads, shared)
        if key not in self._resident:
            found = self._kernel(kernel, shared)
            count = self._driver.occupancyMaxActiveBlocksPerMultiprocessor(found.ptr, threads, shared)
            self._resident[key] = max(int(count), 1) * self._device.processors
        return self._resident[key]

    def _kernel(self, name: str, shared: int) -> Any:
        found = self._kernels.get(name)
        if found is None:
            found = self._kernels[name] = self._module.get_function(name)
        if shared > self._shared.get(name, STATIC_SHARED):
            self._driver.funcSetAttribute(found.ptr, _DYNAMIC_SHARED, shared)
            self._shared[name] = shared
        return found


class Device:
    """One CUDA device: its memory, its stream and its compiled modules.

    Parameters
    ----------
    number
        Which device.
    budget
        Bytes that it may hold; see :class:`graphdb.gpu.data.memory.DeviceMemory`.
    """

    def __init__(self, number: int = 0, budget: int | None = None) -> None:
        import cupy

        self._cupy = cupy
        self.number = number
        properties = cupy.cuda.runtime.getDeviceProperties(number)
        self.name = str(properties["name"].decode())
        self.processors = int(properties["multiProcessorCount"])
        self.code = machine_code.for_devices(10 * int(properties["major"]) + int(properties["minor"]))
        self.driver = int(cupy.cuda.runtime.driverGetVersion())
        self.limits = Limits.of(properties)
        self.rates = TYPICAL
        """How fast it is; :mod:`graphdb.gpu.calibration` measures it."""
        self.memory = DeviceMemory(number, budget)
        self._answers = threading.local()
        """Of each thread, the cell of page-locked memory that kernels write to what it waits for."""
        with self.memory.active():
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self.copies = cupy.cuda.Stream(non_blocking=True)
        self._modules: OrderedDict[_Key, Module] = OrderedDict()
        self._lock, self._loading = threading.Lock(), threading.Lock()
        if self.code.archive is not None:
            threading.Thread(target=self._load_carried, name="graphdb-device-code").start()

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make the device, its pool and its stream those of the calling thread; never across a ``yield``."""
        with self.memory.active(), self.stream:
            yield

    def module(
        self, name: str, macros: Mapping[str, object], plan: str = "", check: Callable[[], None] | None = None
    ) -> Module:
        """A module compiled with the given macros, and where it is written per plan, that text.

        One that is new is compiled by a thread while ``check`` is asked now and then.  What that raises is raised here;
        the thread goes on, and the next who asks finds the module, or waits for the same thread.
        """
        key = (name, defines(macros), plan)
        with self._lock:
            found = self._modules.get(key)
            if found is not None:
                self._modules.move_to_end(key)
                return found
        wanted = Source(name, source(name, plan), key[1])
        code = self._code_of(wanted, check)
        with self._loading:
            found = self._modules.get(key)
            if found is None:
                found = self._loaded(wanted, code, check)
                with self._lock:
                    self._modules[key] = found
                    crowded = len(self._modules) > MODULES
                if crowded:
                    self._unload()
        return found

    def is_ready(self, name: str, macros: Mapping[str, object], plan: str = "") -> bool:
        """Whether a module is loaded, or can be without compiling it."""
        key = (name, defines(macros), plan)
        with self._lock:
            if key in self._modules:
                return True
        return self.code.ready(Source(name, source(name, plan), key[1])) is not None

    def compile(self, wanted: Source) -> Module:
        """A module of any text, which nobody else asks for."""
        return self._loaded(wanted, self._code_of(wanted, None), None)

    def _code_of(self, wanted: Source, check: Callable[[], None] | None) -> bytes:
        ready = self.code.ready(wanted)
        return self.code.compiled(wanted, check) if ready is None else ready

    def _loaded(self, wanted: Source, code: bytes, check: Callable[[], None] | None) -> Module:
        """A module from its code; where the driver does not take that, from code that is compiled now."""
        try:
            return self._module_of(code)
        except self._cupy.cuda.driver.CUDADriverError as error:
            if error.status == _OUT_OF_MEMORY:
                raise
            _log.info("%s is compiled anew: %s", wanted.name, error)
        return self._module_of(self.code.compiled(wanted, check, anew=True))

    def _module_of(self, code: bytes) -> Module:
        with self.memory.active():
            return Module(self, code)

    def _unload(self) -> None:
        """Unload the module that was used longest ago; not while a kernel waits for the host, which this may wait for.

        Whoever runs for long holds its modules: they go with the last reference.
        """
        if not self.memory.streaming:
            with self.memory.active():
                self.stream.synchronize()
            with self._lock:
                if len(self._modules) > MODULES:
                    self._modules.popitem(last=False)

    def _load_carried(self) -> None:
        """Load what the wheel carries for 32-bit ids, so that first queries find it."""
        carried = self.code.archive
        try:
            for name, variants in list(VARIANTS.items()):
                for macros in variants:
                    wanted = Source(name, source(name), defines(macros))
                    if carried is not None and wanted.digest in carried and macros.get("ID") != IDS[np.int64]:
                        self.module(name, macros)
        except Exception as error:  # the first query meets it too, and says so
            _log.info("device code is loaded when it is needed: %s", error)

    def offsets(self, lengths: Any, threads: int = BLOCK) -> Any:
        """Where runs of the given lengths begin: int64 [n + 1], from int64 [n]."""
        starts = self.memory.empty(len(lengths) + 1, np.int64)
        self.sum_up(lengths, starts, threads)
        return starts

    def sum_up(self, lengths: Any, starts: Any, threads: int = BLOCK) -> None:
        """The same into an array; the lengths may be ``starts[1:]``."""
        module, count = self.module("sums", {}), len(lengths)
        tiles = -(-count // (SUMMED * threads))
        sums, summed = starts, 0
        if tiles > 1:
            sums = self.memory.empty(tiles, np.int64)
            module.launch("tile_sums", tiles, lengths, count, sums, threads=threads)
            if tiles > TILES:
                sums, summed = self.offsets(sums, threads), 1
        module.launch("sum_tiles", max(tiles, 1), lengths, count, sums, summed, starts, threads=threads)

    def scatter(self, table: Any, rows: Any, values: Any) -> None:
        """Write rows of a table, int64 [..., 2], by their numbers, int64 [n]; the values are int64 [n, 2]."""
        self.module("scatter", {}).launch("scatter", -(-len(rows) // BLOCK), table, rows, values, len(rows))

    def last(self, values: Any) -> int:
        """The last of an array's values, of 64 bits, on the host; waits for it."""
        cell = getattr(self._answers, "cell", None)
        if cell is None:
            cell = self._answers.cell = self.pinned((1,), np.int64)
        self.module("answer", {}).launch("answer", 1, values, len(values) - 1, int(cell.ctypes.data), threads=1)
        self._cupy.cuda.get_current_stream().synchronize()
        return int(cell.view(values.dtype)[0])

    def side_stream(self) -> Any:
        """A stream beside the device's own, for kernels that run while others do."""
        with self.memory.current():
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
        return self.memory.pinned(shape, dtype)


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
