"""Find out, without CuPy and without failing, what a GPU executor would find on this machine.

The driver is asked through ctypes (CUDA driver API: ``cuInit``, ``cuDeviceGetCount``, …), so the question can be put
before anything of CUDA's is installed.  ``graphdb doctor`` prints the answer, ``device="auto"`` follows it.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from graphdb._version import DISTRIBUTION
from graphdb.gpu.code import compiler

_MAJOR, _MINOR = 75, 76
"""``CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`` and ``…_MINOR``."""
_MEMORY_CLOCK, _MEMORY_BITS, _WATCHED = 36, 37, 17
"""``CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE`` (kHz), ``…_GLOBAL_MEMORY_BUS_WIDTH`` (bits), ``…_KERNEL_EXEC_TIMEOUT``."""

_DRIVERS = ("libcuda.so.1", "libcuda.so", "nvcuda.dll")
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")


@dataclass(frozen=True, slots=True)
class Device:
    """One CUDA device; ``memory`` in bytes, ``capability`` as (major, minor).

    ``bandwidth`` are the bytes that its memory moves in a second, 0 where that is not known; a ``watched`` one has a
    display, whose watchdog ends long kernels.
    """

    number: int
    name: str
    memory: int
    capability: tuple[int, int]
    bandwidth: int = 0
    watched: bool = False


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """What was found: ``cuda`` is the newest CUDA version that the driver takes, as (major, minor), or None.

    ``problem`` says why there are no devices where a driver is there.
    """

    cuda: tuple[int, int] | None
    devices: tuple[Device, ...]
    problem: str | None
    nvrtc: str | None
    cupy: str | None

    @property
    def usable(self) -> bool:
        """True if kernels can be compiled and run here."""
        return bool(self.devices and self.nvrtc and self.cupy)

    @property
    def advice(self) -> str:
        """One sentence: what is used, or what would have to be there."""
        if self.cuda is None:
            return "no NVIDIA driver was found: queries run on the CPU"
        if not self.devices:
            return f"the NVIDIA driver shows no device ({self.problem or 'none is visible'}): queries run on the CPU"
        extra = "cuda13" if self.cuda >= (13, 0) else "cuda12"
        if self.cupy is None:
            return f"{self.devices[0].name} is there, CuPy is not: pip install '{DISTRIBUTION}[{extra}]' to use it"
        if self.nvrtc is None:
            needed = f"pip install '{DISTRIBUTION}[{extra}]' to use the device"
            return f"CuPy {self.cupy} finds no CUDA compiler (NVRTC): {needed}"
        return f"{self.devices[0].name} can be used"


def probe(open_library: Callable[[str], Any] = ctypes.CDLL) -> DeviceReport:
    """Ask the driver, and look for CuPy and NVRTC; nothing of them is imported.

    Parameters
    ----------
    open_library
        Opens a shared library by its name and raises OSError if it is not there.

    Returns
    -------
    DeviceReport
        Never raises: what is not there is None or empty.
    """
    driver = _first_library(_DRIVERS, open_library)
    cuda: tuple[int, int] | None = None
    devices: tuple[Device, ...] = ()
    problem = None
    if driver is not None:
        try:
            cuda = _cuda_version(driver)
            devices = _devices(driver)
        except _DriverError as error:
            cuda, problem = cuda or (0, 0), str(error)
    return DeviceReport(cuda, devices, problem, compiler.find(open_library), _cupy())


class _DriverError(Exception):
    """A driver call returned something other than CUDA_SUCCESS."""


def _check(driver: Any, function: str, *arguments: object) -> None:
    """Call a function of the driver API."""
    status = getattr(driver, function)(*arguments)
    if status != 0:
        raise _DriverError(f"{function} returned {status}")


def _integer(driver: Any, function: str, *arguments: object) -> int:
    """Call a function of the driver API that writes an int through its first argument."""
    answer = ctypes.c_int()
    _check(driver, function, ctypes.byref(answer), *arguments)
    return answer.value


def _known(driver: Any, attribute: int, handle: int) -> int:
    """Return an attribute of a device; 0 where the driver does not know it."""
    try:
        return _integer(driver, "cuDeviceGetAttribute", attribute, handle)
    except _DriverError:
        return 0


def _cuda_version(driver: Any) -> tuple[int, int]:
    """Return the CUDA version of the driver, which it states as 1000 * major + 10 * minor."""
    version = _integer(driver, "cuDriverGetVersion")
    return version // 1000, version % 1000 // 10


def _devices(driver: Any) -> tuple[Device, ...]:
    """Return all devices that the driver shows to this process."""
    _check(driver, "cuInit", 0)
    found = []
    for number in range(_integer(driver, "cuDeviceGetCount")):
        handle = _integer(driver, "cuDeviceGet", number)
        name = ctypes.create_string_buffer(256)
        _check(driver, "cuDeviceGetName", name, len(name), handle)
        memory = ctypes.c_size_t()
        _check(driver, "cuDeviceTotalMem_v2", ctypes.byref(memory), handle)
        capability = (
            _integer(driver, "cuDeviceGetAttribute", _MAJOR, handle),
            _integer(driver, "cuDeviceGetAttribute", _MINOR, handle),
        )
        clock, bits, watched = (_known(driver, which, handle) for which in (_MEMORY_CLOCK, _MEMORY_BITS, _WATCHED))
        bandwidth = 2 * clock * 1000 * bits // 8  # both edges of the clock
        title = name.value.decode(errors="replace")
        found.append(Device(number, title, memory.value, capability, bandwidth, bool(watched)))
    return tuple(found)


def _first_library(names: tuple[str, ...], open_library: Callable[[str], Any]) -> Any | None:
    """Open the first of the libraries that is there."""
    for name in names:
        try:
            return open_library(name)
        except OSError:
            continue
    return None


def _cupy() -> str | None:
    """Return the version of the installed CuPy."""
    for distribution in _CUPY:
        try:
            return importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None
