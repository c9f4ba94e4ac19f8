"""A CUDA device that is none: enough of CuPy to run the device's code, kernels included, on a machine without one.

:func:`installed` puts a module in CuPy's place.  Its arrays are NumPy's, its kernels are the same ``.cu`` files compiled as
C++ (``device.hpp``: threads are fibers).  It knows nothing of speed, memory traffic or races between blocks; it
does know whether rows are right, whether a kernel writes where it must not, and whether what it reads was written.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code import machine_code
from graphdb.gpu.code.machine_code import MachineCode
from graphdb.gpu.data.pages import ON_DEVICE
from tests.emulator.compiler import COMPILER as COMPILER
from tests.emulator.compiler import DYNAMIC_SHARED, Compiler
from tests.emulator.compiler import slow_compiler as slow_compiler

GUARD = 64
_FRESH, _FENCE = 0xA5, 0x5A


class OutOfMemoryError(MemoryError):
    """The pool is full."""


class Failure(Exception):
    """What CuPy raises where a device fails: with CUDA's number for what happened."""

    def __init__(self, text: str, status: int = 719) -> None:
        super().__init__(text)
        self.status = status


Failure.__module__ = "cupy.cuda.runtime"


class _Machine:
    """The devices: how many there are, what lies where, which were used, and which fail."""

    def __init__(self) -> None:
        self.devices = 1
        self.shared = DYNAMIC_SHARED
        """Bytes of shared memory that a block may ask for."""
        self.touched: set[int] = set()
        """Devices on which anything was made."""
        self.failing: dict[int, int] = {}
        """By device: after so many more launches, all fail."""
        self._places: dict[int, tuple[int, int, int]] = {}
        self._lock = threading.RLock()

    def touch(self) -> int:
        """The device that is current in this thread, which something is made on."""
        self.touched.add(_current())
        _bound().add(_current())
        return _current()

    def put(self, start: int, size: int) -> None:
        with self._lock:
            self._places[start] = (start, start + size, self.touch())

    def take(self, start: int) -> None:
        with self._lock:
            self._places.pop(start, None)

    def check(self, what: str, values: Any) -> None:
        """No number among the values is the address of something on another device than the current."""
        if self.devices == 1:
            return
        with self._lock:
            others = sorted(place for place in self._places.values() if place[2] != _current())
        if not others:
            return
        starts, ends, _ = (np.array(part, np.uint64) for part in zip(*others, strict=True))
        cells = np.asarray(values).astype(np.uint64).ravel()
        before = np.searchsorted(starts, cells, side="right")  # what lies somewhere lies there alone
        told = before[(before > 0) & (cells < ends[before - 1])]
        if len(told):
            raise AssertionError(f"{what} on device {_current()} is told an address of device {others[told[0] - 1][2]}")

    def launch(self) -> None:
        """Raise where the current device has failed."""
        device = self.touch()
        if device in self.failing:
            self.failing[device] -= 1
            if self.failing[device] < 0:
                raise Failure(f"device {device} is lost")


_machine = _Machine()


def _current() -> int:
    """The number of the device that is current in this thread: 0 in a new one, as CUDA has it."""
    return int(getattr(_local, "device", 0))


def _bound() -> set[int]:
    """The devices whose contexts the calling thread has been bound to, by calls of the runtime."""
    found: set[int] = _local.__dict__.setdefault("bound", set())
    return found


def _asked(answer: Any) -> Callable[..., Any]:
    """A function of the driver's, which unlike the runtime's binds no context."""

    def ask(*_: Any) -> Any:
        if _current() not in _bound():
            raise Failure("CUDA_ERROR_INVALID_CONTEXT: invalid device context", status=201)
        return answer

    return ask


class _Owner:
    """Lives as long as an array or a view of it."""


class Pool:
    """A pool that counts, device by device, and fences every allocation off."""

    current: Pool

    def __init__(self, allocator: Callable[[int], object] = int) -> None:
        self._allocator = allocator
        self.used: dict[int, int] = {}
        self.taken: dict[int, int] = {}
        self.faults: list[str] = []
        self._lock = threading.RLock()

    def used_bytes(self) -> int:
        """As CuPy's, this and what follows speak of the current device."""
        return self.used.get(_current(), 0)

    def free_bytes(self) -> int:
        return 0

    def total_bytes(self) -> int:
        """The most that was used at a time, until blocks without use are given back."""
        return self.taken.get(_current(), 0)

    def free_all_blocks(self) -> None:
        self.taken[_current()] = self.used_bytes()

    def malloc(self, size: int) -> int:
        return size

    def array(self, shape: Any, dtype: Any) -> Array:
        shape = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        device = _machine.touch()
        with self._lock:
            self._take(device, size)
        memory = np.full(size + GUARD + 16, _FRESH, np.uint8)
        start = -memory.ctypes.data % 16
        memory[start + size :] = _FENCE
        owner = _Owner()
        found = memory[start : start + size].view(dtype).reshape(shape).view(Array)
        found._owner, found.device = owner, device
        if size:
            _machine.put(found.ctypes.data, size)
        weakref.finalize(owner, self._free, _machine, memory, start, size, device)
        return found

    def _take(self, device: int, size: int) -> None:
        """Count so many bytes as used, and have the allocator asked for what was not taken before."""
        taken, self.used[device] = self.taken.get(device, 0), self.used.get(device, 0) + size
        if self.used[device] > taken:
            self.taken[device] = self.used[device]
            try:
                self._allocator(size)
            except OutOfMemoryError:
                self.used[device] -= size
                self.taken[device] = taken
                raise

    def _free(self, machine: _Machine, memory: Any, start: int, size: int, device: int) -> None:
        end = start + size
        machine.take(memory.ctypes.data + start)
        with self._lock:
            self.used[device] -= size
        if (memory[end:] != _FENCE).any():
            self.faults.append(f"written behind an array of {size} bytes")


class Array(np.ndarray[Any, Any]):
    """A device array."""

    _owner: Any = None
    device: int | None = None  # type: ignore[assignment]

    def __array_finalize__(self, other: Any) -> None:
        self._owner, self.device = getattr(other, "_owner", None), getattr(other, "device", None)

    def here(self) -> None:
        """The array is on the current device: what runs there reads it."""
        if self.device not in (None, _current()):
            raise AssertionError(f"an array of device {self.device} is used on device {_current()}")

    def __setitem__(self, where: Any, values: Any) -> None:
        self.here()
        super().__setitem__(where, values)

    def fill(self, value: Any) -> None:
        self.here()
        super().fill(value)

    @property
    def data(self) -> Any:  # type: ignore[override]
        return SimpleNamespace(ptr=self.ctypes.data if self.size else 0)

    def set(self, values: Any, stream: Any = None) -> None:
        """As CuPy's, this and :meth:`get` go to the array's device, whichever is current."""
        with _Device(self.device or 0):
            if self.dtype.itemsize == 8 and self.dtype.kind in "iu":
                _machine.check("a table", values)
            if np.asarray(values).dtype != self.dtype:
                raise TypeError(f"{np.asarray(values).dtype} array cannot be set to {self.dtype} array")
            self[...] = values

    def argsort(self, *_: Any, **__: Any) -> Any:
        return super().argsort(kind="stable")

    def get(self, stream: Any = None, order: str = "C", out: Any = None, blocking: bool = True) -> Any:
        if out is None:
            return np.array(self)
        out[...] = np.asarray(self)
        return out


class CUDADriverError(RuntimeError):
    """The driver does not take something."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.status = status


CUDADriverError.__module__ = "cupy.emulated"


class Module:
    """A module compiled as C++."""

    def load(self, code: bytes) -> None:
        try:
            self._library = ctypes.PyDLL(code.decode())  # with the GIL: the emulator runs one kernel at a time
        except (OSError, ValueError) as error:
            raise CUDADriverError(200) from error

    def get_function(self, name: str) -> Any:
        kernel, together = getattr(self._library, name), _together
        _machine.touch()

        def launch(
            grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...], shared_mem: int = 0
        ) -> None:
            cells = (ctypes.c_ulonglong * 24)()
            assert len(arguments) <= len(cells)
            _machine.launch()
            if shared_mem > _machine.shared:
                raise Failure(f"{name} asks for {shared_mem} bytes of shared memory", status=1)
            for i, argument in enumerate(arguments):
                if isinstance(argument, Array):
                    argument.here()
                else:
                    _machine.check(name, int(argument) % (1 << 64))
                value = argument.data.ptr if isinstance(argument, Array) else int(argument)
                cells[i] = value % (1 << 64)
            address = ctypes.cast(kernel, ctypes.c_void_p)
            if self._library.emulate(address, cells, grid[0], block[0], together):
                raise AssertionError(f"the threads of {name} wait for each other")

        launch.ptr = 0  # type: ignore[attr-defined]
        return launch


class Stream:
    """A stream that is always done."""

    ptr = 0

    def __init__(self, non_blocking: bool = False) -> None:
        self.device = _machine.touch()

    def __enter__(self) -> Stream:
        assert self.device == _current(), f"a stream of device {self.device} is used on device {_current()}"
        return self

    def __exit__(self, *_: object) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def synchronize(self) -> None: ...


class Event:
    """An event that has happened."""

    def __init__(self) -> None:
        self.device = _machine.touch()

    def record(self, stream: Any = None) -> None:
        assert stream is None or stream.device == self.device, "an event and its stream are of two devices"
        self.at = time.perf_counter()

    def synchronize(self) -> None: ...

    @property
    def done(self) -> bool:
        return True


@contextmanager
def _using(allocator: Any) -> Iterator[None]:
    before = getattr(_local, "pool", None)
    _local.pool = allocator.__self__
    try:
        yield
    finally:
        _local.pool = before


_local = threading.local()


class _Device:
    """A device, made the current one; who enters one of these in two threads leaves it in the wrong one."""

    def __init__(self, number: int = 0) -> None:
        if not 0 <= number < _machine.devices:
            raise Failure(f"invalid device ordinal {number}")
        self.number = number
        self._before: list[int] = []

    def __enter__(self) -> _Device:
        self._before.append(_current())
        _local.device = self.number
        return self

    def __exit__(self, *_: object) -> None:
        _local.device = self._before.pop()

    def synchronize(self) -> None: ...


class Pages:
    """The driver's virtual memory (:class:`graphdb.gpu.data.pages.Driver`), of pages of 256 bytes."""

    page = 256

    def __init__(self, number: int) -> None:
        self.device, self.host = 0, 0
        """Bytes that are mapped now, all arrays together."""
        self._reserved: dict[int, tuple[NDArray[Any], dict[int, tuple[int, int]]]] = {}

    def reserve(self, size: int) -> int:
        assert size % self.page == 0
        memory = np.full(size + 16, _FRESH, np.uint8)
        address = memory.ctypes.data + -memory.ctypes.data % 16
        self._reserved[address] = (memory, {})
        return address

    def map(self, address: int, size: int, where: int) -> None:
        _, mapped = self._of(address)
        assert size % self.page == 0
        assert all(at + n <= address or address + size <= at for at, (n, _) in mapped.items())
        mapped[address] = (size, where)
        self._count(size, where)

    def unmap(self, address: int, size: int) -> None:
        _, mapped = self._of(address)
        known, where = mapped.pop(address)
        assert known == size, "what one call mapped is given back by one"
        self._count(-size, where)
        ctypes.memset(address, _FRESH, size)

    def free(self, address: int, size: int) -> None:
        _, mapped = self._reserved.pop(address)
        assert not mapped

    def array(self, address: int, count: int, dtype: Any, owner: Any) -> Array:
        memory, mapped = self._of(address)
        assert sum(size for size, _ in mapped.values()) >= count * np.dtype(dtype).itemsize
        first = address - memory.ctypes.data
        found = memory[first : first + count * np.dtype(dtype).itemsize].view(dtype).view(Array)
        found._owner, found.device = owner, _current()
        return found

    def write(self, address: int, values: NDArray[Any]) -> None:
        ctypes.memmove(address, values.ctypes.data, values.nbytes)

    def _of(self, address: int) -> tuple[NDArray[Any], dict[int, tuple[int, int]]]:
        at = max(each for each in self._reserved if each <= address)
        return self._reserved[at]

    def _count(self, size: int, where: int) -> None:
        if where == ON_DEVICE:
            self.device += size
        else:
            self.host += size


def _pinned(size: int) -> bytearray:
    _machine.touch()
    return bytearray(size)


CARDS: dict[str, dict[str, int]] = {
    "H200": {"sharedMemPerBlockOptin": 232_448, "sharedMemPerMultiprocessor": 233_472, "maxThreadsPerMultiProcessor": 2048},
    "A100": {"sharedMemPerBlockOptin": 166_912, "sharedMemPerMultiprocessor": 167_936, "maxThreadsPerMultiProcessor": 2048},
    "RTX 4090": {"sharedMemPerBlockOptin": 101_376, "sharedMemPerMultiprocessor": 102_400, "maxThreadsPerMultiProcessor": 1536, "kernelExecTimeoutEnabled": 1},
    "T4": {"sharedMemPerBlockOptin": 65_536, "sharedMemPerMultiprocessor": 65_536, "maxThreadsPerMultiProcessor": 1024},
}  # fmt: skip
"""What the driver states of some cards (``cudaDeviceProp``): the CUDA C++ programming guide's compute capabilities 9.0,
8.0, 8.9 (here with a display) and 7.5."""


def _module(memory: int, card: str) -> ModuleType:
    properties = {"name": f"emulated {card}".encode(), "multiProcessorCount": 2, "major": 9, "minor": 0, **CARDS[card]}
    cuda = SimpleNamespace(
        Device=_Device,
        MemoryPool=Pool,
        Memory=lambda size: size,
        MemoryPointer=lambda memory, offset: memory,
        Stream=Stream,
        Event=Event,
        using_allocator=_using,
        get_elapsed_time=lambda a, b: (b.at - a.at) * 1000,
        get_current_stream=Stream,
        driver=SimpleNamespace(
            occupancyMaxActiveBlocksPerMultiprocessor=_asked(1),
            funcGetAttribute=_asked(0),
            funcSetAttribute=_asked(None),
            CUDADriverError=CUDADriverError,
        ),
        Module=Module,
        alloc_pinned_memory=_pinned,
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        runtime=SimpleNamespace(
            memGetInfo=lambda: (memory, memory),
            getDeviceProperties=lambda number: properties,
            getDeviceCount=lambda: _machine.devices,
            memcpyAsync=lambda target, source, size, kind, stream: ctypes.memmove(target, source, size),
            driverGetVersion=lambda: 13000,
        ),
    )
    module = ModuleType("cupy")
    module.__dict__.update(
        cuda=cuda,
        ndarray=Array,
        get_default_pinned_memory_pool=lambda: SimpleNamespace(free_all_blocks=lambda: None),
        empty=lambda shape, dtype: _local.pool.array(shape, dtype),
    )
    return module


_together = 1


@contextmanager
def installed(memory: int = 1 << 30, together: int = 1, devices: int = 1, card: str = "H200") -> Iterator[_Machine]:
    """Put emulated devices in CuPy's place; ``memory`` is how much each has, and so many blocks run at a time.

    They have the limits of a ``card`` (:data:`CARDS`), which launches that ask for more find out; nobody measures how
    fast they are.
    """
    global _together, _machine
    before, _together = sys.modules.get("cupy"), together
    former, _machine = _machine, _Machine()
    _machine.devices, _machine.shared = devices, CARDS[card]["sharedMemPerBlockOptin"]
    sys.modules["cupy"] = _module(memory, card)
    code = MachineCode(None, None, "emulated", Compiler, 90)
    others = set(threading.enumerate())
    try:
        with (
            mock.patch.object(machine_code, "for_devices", return_value=code),
            mock.patch("graphdb.gpu.executor.GpuExecutor.calibrate"),
            mock.patch("graphdb.gpu.data.residency.Driver", Pages),
        ):
            try:
                yield _machine
            finally:
                for thread in set(threading.enumerate()) - others:  # what compiles beside a run loads what it compiled
                    if thread.name.startswith("graphdb-") and not thread.daemon:
                        thread.join()
    finally:
        _together, _machine = 1, former
        del sys.modules["cupy"]
        if before is not None:
            sys.modules["cupy"] = before
