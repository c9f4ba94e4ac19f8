"""Arrays that are larger than the device's budget: one range of addresses, whose pages stand here or in host memory.

A kernel reads an array by its address and knows nothing of pages.  Those that are read most stand on the device; the
others are mapped from host memory, and what a kernel reads of them comes over the link, 128 bytes at a time (zero-copy:
GAMMA §3.2).  Which ones are read most is known by their *access heat* (GAMMA §5.1): :func:`heat`.  The driver's virtual
memory maps them; memory that the driver migrates by itself ("managed") is not used: oversubscribed, it can hang a card.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import DeviceError, MemoryLimitError

if TYPE_CHECKING:
    from graphdb.gpu.data.memory import DeviceMemory

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

ON_DEVICE, IN_HOST = 1, 3
"""Where memory is allocated: ``CU_MEM_LOCATION_TYPE_DEVICE`` and ``…_HOST_NUMA`` of the driver."""
_PINNED, _READ_WRITE = 1, 3
_OUT_OF_MEMORY = 2
FILLED = 16
"""How often what is left of the room is filled with parts that are small enough."""


class _Location(ctypes.Structure):
    """``CUmemLocation``."""

    _fields_ = (("type", ctypes.c_int), ("id", ctypes.c_int))


class _Properties(ctypes.Structure):
    """``CUmemAllocationProp``."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    )


class _Access(ctypes.Structure):
    """``CUmemAccessDesc``."""

    _fields_ = (("location", _Location), ("flags", ctypes.c_int))


class Driver:
    """The driver's virtual memory of one device; to be used with that device as the thread's.

    Raises
    ------
    DeviceError
        The driver cannot be loaded, or maps no host memory.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        try:
            self._library = ctypes.CDLL("nvcuda.dll" if hasattr(ctypes, "WinDLL") else "libcuda.so.1")
        except OSError as error:
            raise DeviceError(f"the driver's library cannot be loaded: {error}") from None
        self.page = max(map(self._granularity, (ON_DEVICE, IN_HOST)))
        """Bytes of a page."""

    def _granularity(self, where: int) -> int:
        size = ctypes.c_size_t()
        self._call("cuMemGetAllocationGranularity", ctypes.byref(size), ctypes.byref(self._properties(where)), 0)
        return size.value

    def reserve(self, size: int) -> int:
        """Return the first of so many addresses that nothing is mapped to."""
        address = ctypes.c_ulonglong()
        none = ctypes.c_ulonglong(0)
        self._call("cuMemAddressReserve", ctypes.byref(address), ctypes.c_size_t(size), ctypes.c_size_t(0), none, none)
        return address.value

    def map(self, address: int, size: int, where: int) -> None:
        """Allocate memory on the device or in host memory, and map it.

        Raises
        ------
        MemoryLimitError
            There is too little of it.
        """
        handle, at = ctypes.c_ulonglong(), ctypes.c_ulonglong(address)
        properties, none = self._properties(where), ctypes.c_ulonglong(0)
        self._call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(size), ctypes.byref(properties), none)
        try:
            self._call("cuMemMap", at, ctypes.c_size_t(size), ctypes.c_size_t(0), handle, none)
        finally:
            self._call("cuMemRelease", handle)  # it lives as long as it is mapped
        locations = [_Location(ON_DEVICE, self._number), *([_Location(IN_HOST, 0)] if where == IN_HOST else [])]
        access = (_Access * len(locations))(*(_Access(location, _READ_WRITE) for location in locations))
        try:
            self._call("cuMemSetAccess", at, ctypes.c_size_t(size), access, ctypes.c_size_t(len(locations)))
        except DeviceError:
            self.unmap(address, size)
            raise

    def unmap(self, address: int, size: int) -> None:
        """Give back what one call mapped."""
        self._call("cuMemUnmap", ctypes.c_ulonglong(address), ctypes.c_size_t(size))

    def free(self, address: int, size: int) -> None:
        """Give addresses back."""
        self._call("cuMemAddressFree", ctypes.c_ulonglong(address), ctypes.c_size_t(size))

    def array(self, address: int, count: int, dtype: Any, owner: object) -> Any:
        """Return device memory that is mapped as an array, which keeps ``owner`` alive."""
        import cupy

        size = count * np.dtype(dtype).itemsize
        memory = cupy.cuda.UnownedMemory(address, size, owner, self._number)
        return cupy.ndarray(count, dtype, cupy.cuda.MemoryPointer(memory, 0))

    def write(self, address: int, values: NDArray[Any]) -> None:
        """Write to host memory that is mapped."""
        ctypes.memmove(address, values.ctypes.data, values.nbytes)

    def _properties(self, where: int) -> _Properties:
        location = _Location(where, self._number if where == ON_DEVICE else 0)
        return _Properties(_PINNED, 0, location, None, (ctypes.c_ubyte * 8)())

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code == _OUT_OF_MEMORY:
            raise MemoryLimitError("there is too little memory for the graph's pages", hint="use device='cpu'")
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            raise DeviceError(f"{name} failed: {(text.value or b'?').decode()}", hint="see: graphdb doctor")


class PagedArray:
    """The copy of an array by pages.

    Attributes
    ----------
    view
        It as an array of the device: what reads it keeps the pages mapped.
    nbytes
        Bytes that stand on the device.
    """

    def __init__(self, memory: DeviceMemory, driver: Driver, values: NDArray[Any], resident: NDArray[np.bool_]) -> None:
        self.pages = _Pages(driver, len(resident), memory)
        try:
            for first, last, here in _runs(resident):
                self.pages.map(first, last, here)
            owner = _Owner()
            count = len(resident) * driver.page // values.itemsize
            self.view = driver.array(self.pages.address, count, values.dtype, owner)[: len(values)]
            elements = driver.page // values.itemsize
            for first, last, here in _runs(resident):
                part = np.ascontiguousarray(values[first * elements : last * elements])
                if here:
                    self.view[first * elements : last * elements].set(part)
                else:
                    driver.write(self.pages.address + first * driver.page, part)
        except BaseException:
            self.pages.release()
            raise
        self.nbytes = int(np.count_nonzero(resident)) * driver.page
        memory.uploaded += self.nbytes
        weakref.finalize(owner, memory.unused, self.pages)


class _Owner:
    """Lives as long as an array or a view of it."""


class _Pages:
    """What is mapped for an array."""

    def __init__(self, driver: Driver, pages: int, memory: DeviceMemory) -> None:
        self._driver, self._memory, self._size = driver, memory, pages * driver.page
        self._mapped: list[tuple[int, int, bool]] = []
        self.address = driver.reserve(self._size)

    def map(self, first: int, last: int, here: bool) -> None:
        """Map pages, on the device or in host memory."""
        at, size = self.address + first * self._driver.page, (last - first) * self._driver.page
        if here:
            self._memory.take(size)
        try:
            self._driver.map(at, size, ON_DEVICE if here else IN_HOST)
        except BaseException:
            self._memory.take(-size if here else 0)
            raise
        self._mapped.append((at, size, here))

    def release(self) -> None:
        """Give everything back; no kernel may read it."""
        while self._mapped:
            at, size, here = self._mapped.pop()
            with suppress(DeviceError):  # a device that is lost has given it back
                self._driver.unmap(at, size)
            self._memory.take(-size if here else 0)
        with suppress(DeviceError):
            self._driver.free(self.address, self._size)


def _runs(resident: NDArray[np.bool_]) -> Iterator[tuple[int, int, bool]]:
    """Runs of pages (first, last + 1) that stand in the same place, and whether that is the device."""
    bounds = np.flatnonzero(np.diff(resident)) + 1
    edges = [0, *bounds.tolist(), len(resident)]
    for first, last in pairwise(edges):
        if first < last:
            yield first, last, bool(resident[first])


def pages_of(values: NDArray[Any], page: int) -> int:
    """Return how many pages an array takes."""
    return -(-values.nbytes // page)


def heat(begins: Ints, lengths: Ints, times: Ints, entries: int, width: int, page: int) -> Floats:
    """Return how many elements of each page are expected to be read: float64 [pages] (GAMMA, definition 4).

    Parameters
    ----------
    begins, lengths, times
        Where the lists begin, in order, how long they are, and how often each is expected to be read.
    entries, width
        Elements of all lists, and bytes of one.
    """
    per_page = page // width
    bounds = np.minimum(np.arange(-(-entries // per_page) + 1) * per_page, entries)
    read = np.concatenate([[0.0], np.cumsum(lengths * times.astype(np.float64))])
    return np.diff(np.interp(bounds, np.concatenate([begins, [entries]]), read))


def hottest(heats: Sequence[Floats], sizes: Sequence[Ints], quota: int) -> list[NDArray[np.bool_]]:
    """Return which parts of some arrays stand on the device, within so many bytes: those read most for their bytes.

    A part that does not fit is left out, and smaller ones behind it are not.
    """
    every, taken = np.concatenate([*heats, np.empty(0)]), np.concatenate([*sizes, np.empty(0, np.int64)])
    order = np.argsort(-every / np.maximum(taken, 1), kind="stable")
    chosen = np.zeros(len(every), bool)
    for _ in range(FILLED):
        order = order[taken[order] <= quota]
        ends = np.cumsum(taken[order])
        fitting = int(np.searchsorted(ends, quota, side="right"))
        if not fitting:
            break
        chosen[order[:fitting]] = True
        quota, order = quota - int(ends[fitting - 1]), order[fitting:]
    return np.split(chosen, np.cumsum([len(each) for each in heats])[:-1]) if heats else []
