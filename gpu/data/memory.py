"""A device's memory: one pool within a budget, and an LRU cache of copies that outlive a query.

Everything on the device is allocated from the pool but the pages of large arrays (:mod:`graphdb.gpu.data.pages`), which
are taken off what the pool may have: so cached copies count against the same budget as a run's own arrays.  CUDA
allocates on the device that is current in the calling thread, and CuPy's pools speak of that one only: so whatever asks
the pool here makes this device the current one first.

A cached copy (of a partition, a signature column, a candidate set) is identified by its original in host memory: it is
dropped with the original, and the least recently used copies are evicted first when a run needs memory, but none that a
run uses.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphdb.common.errors import MemoryLimitError
from graphdb.gpu.data.slabs import Slabs

_SHARE = 0.9
"""Of the memory that is free when the device is opened, so much is ours by default: others may need some too."""


_TO_DEVICE = 1
"""``cudaMemcpyHostToDevice``."""


class Sized(Protocol):
    """Something that knows its bytes."""

    @property
    def nbytes(self) -> int:
        """Its bytes."""


class Pages(Protocol):
    """Pages of an array, which are given back when no kernel reads them."""

    def release(self) -> None:
        """Give them back."""


S = TypeVar("S", bound=Sized)


@dataclass(frozen=True, slots=True)
class _CachedCopy:
    """A device copy, and the weak reference that drops it when its original is gone."""

    copy: Any
    original: weakref.ref[Any]


ROUNDED = range(1 << 16, 1 << 28)
"""Sizes of page-locked arrays, in bytes, that are rounded up."""


def pinned_size(nbytes: int) -> int:
    """Bytes of page-locked memory that are asked for, for an array of so many.

    CuPy's pool uses memory again for what has just its size.  Blocks of matches have each another, and to page-lock
    takes longer than to copy: so theirs are rounded up, by less than an eighth.

    >>> [pinned_size(nbytes) for nbytes in (3, 8 << 20, (8 << 20) + 1, (9 << 20) - 1)]
    [8, 8388608, 9437184, 9437184]
    """
    if nbytes not in ROUNDED:
        return max(nbytes, 8)
    step = 1 << (nbytes.bit_length() - 4)
    return -(-nbytes // step) * step


_threads = threading.local()
"""Of each thread: the devices whose contexts it has been bound to."""


class DeviceMemory:
    """The memory of one device.

    Parameters
    ----------
    number
        Which device.
    budget
        Bytes that may be allocated at a time, if so many are free; by default nine tenths of what is free now.
    """

    def __init__(self, number: int = 0, budget: int | None = None) -> None:
        import cupy

        self._cupy = cupy
        self.number = number
        with self.current():
            free = int(cupy.cuda.runtime.memGetInfo()[0])
            self.budget = min(budget or free, int(free * _SHARE))
        block = weakref.WeakMethod(self._block)  # the pool is ours, and does not keep us alive
        self.pool = cupy.cuda.MemoryPool(lambda size: block()(size))  # type: ignore[misc]
        self._cache: OrderedDict[tuple[str, int], _CachedCopy] = OrderedDict()
        self._lock = threading.RLock()
        self._building: dict[tuple[str, int], threading.RLock] = {}
        """Who builds a copy holds its lock; others go on meanwhile."""
        self._streaming = 0
        """Kernels that wait for their matches to be taken away."""
        self._pinned = 0
        """Bytes of page-locked host memory."""
        self.slabs = Slabs(self.pinned)
        """Page-locked memory for rows."""
        self._used: Counter[tuple[str, int]] = Counter()
        """Copies that runs use now, as in the cache; those without a name are all that there are of an original."""
        self.uploaded = 0
        """Bytes that were copied to the device so far."""
        self._paged = 0
        """Bytes of pages on the device, which are not the pool's."""
        self._unused: list[Pages] = []
        """Pages that nobody reads any more but kernels that may still run."""

    def current(self) -> Any:
        """A context in which this device is the calling thread's.

        Each is used once: CuPy's remember the device before them, and threads would share that.
        """
        bound = _threads.__dict__.setdefault("bound", set())
        if self.number not in bound:
            # A new thread has no context until the runtime is first called; what asks the driver itself needs one.
            with self._cupy.cuda.Device(self.number):
                self._cupy.cuda.Event()
            bound.add(self.number)
        return self._cupy.cuda.Device(self.number)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Make this device, and its pool, those of the calling thread; never across a ``yield`` to a caller."""
        with self.current(), self._cupy.cuda.using_allocator(self.pool.malloc):
            yield

    # --- arrays

    def _block(self, size: int) -> Any:
        """Take a block from the driver for the pool, which has counted it already.

        A pool that has a limit of its own collects the garbage of the whole process before it says that this is
        reached: 0.1 s and more beside a large graph, each time that memory is short.
        """
        limit = self.budget - self._paged
        if self.pool.total_bytes() > limit and not self._streaming:
            self.pool.free_all_blocks()
        total = int(self.pool.total_bytes())
        if total > limit:
            raise self._cupy.cuda.memory.OutOfMemoryError(size, total - size, limit)
        return self._cupy.cuda.MemoryPointer(self._cupy.cuda.Memory(size), 0)

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
        """A new array, not initialised; evicts cached copies where memory is short.

        Raises
        ------
        MemoryLimitError
            If even an empty pool has too little memory for it.
        """
        exhausted = self._cupy.cuda.memory.OutOfMemoryError
        wanted = int(np.prod(shape)) * np.dtype(dtype).itemsize
        more = max(wanted >> 3, 1)
        while True:
            try:
                return self._cupy.empty(shape, dtype)
            except exhausted:  # that much is not free, or not in one piece: what is cached may stand between
                if not self.evict(max(wanted - self.free_bytes(), more)):
                    break
                more *= 2
        try:
            return self._cupy.empty(shape, dtype)
        except exhausted as error:
            raise MemoryLimitError(
                f"the query needs {wanted:,} bytes more on the device cuda:{self.number}, and {self.free_bytes():,} of "
                f"its budget of {self.budget:,} are free",
                hint='raise device_memory, or use device="cpu"',
            ) from error

    def upload(self, values: NDArray[Any], dtype: DTypeLike | None = None) -> Any:
        """A copy on the device, converted on the way if ``dtype`` says so."""
        values = np.ascontiguousarray(values, dtype=dtype)
        copy = self.empty(values.shape, values.dtype)
        self.write(copy, values)
        return copy

    def write(self, copy: Any, values: NDArray[Any]) -> None:
        """Copy contiguous values into an array on the device, of their shape and type."""
        self.uploaded += values.nbytes
        if values.size:
            copy.set(values, stream=self._cupy.cuda.get_current_stream())

    def copied(self, target: int, source: int, size: int, stream: Any) -> None:
        """Start to copy so many bytes of pinned memory to an address on the device: without arrays of either, which
        take longer than to start it.
        """
        self.uploaded += size
        self._cupy.cuda.runtime.memcpyAsync(target, source, size, _TO_DEVICE, stream.ptr)

    def pinned(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array in host memory that the device reads and writes directly; it goes back when nobody holds it."""
        count, width = int(np.prod(shape)), np.dtype(dtype).itemsize
        taken = pinned_size(count * width)
        with self.current():
            cells = np.frombuffer(self._cupy.cuda.alloc_pinned_memory(taken), dtype, count)
        self._pin(taken)
        weakref.finalize(cells, self._pin, -taken).atexit = False  # views lead back to it
        return cells.reshape(shape)

    def _pin(self, size: int) -> None:
        with self._lock:
            self._pinned += size

    @property
    def pinned_bytes(self) -> int:
        """Bytes of page-locked host memory that arrays take now."""
        return self._pinned

    # --- cached copies

    def cached_or_built(self, what: str, original: object, build: Callable[[], S]) -> S:
        """The device copy ``what`` of a host object, built when it is first asked for."""
        key = (what, id(original))
        with self._lock:
            found: S | None = self._touched(key, original)
            if found is not None:
                return found
            building = self._building.setdefault(key, threading.RLock())
        with building:
            try:
                found = self._touched(key, original)
                if found is None:
                    found = build()
                    with self._lock:
                        self._cache[key] = _CachedCopy(found, weakref.ref(original, lambda _: self._drop(key)))
                return found
            finally:
                self._building.pop(key, None)

    def _touched(self, key: tuple[str, int], original: object) -> Any:
        """The cached copy, if there is one, marked as the most recently used."""
        with self._lock:
            entry = self._cache.get(key)
            if entry is None or entry.original() is not original:
                return None
            self._cache.move_to_end(key)
            return entry.copy

    def cached(self, what: str, original: object) -> Any:
        """That copy, if it is on the device already; else None."""
        entry = self._cache.get((what, id(original)))
        return entry.copy if entry is not None and entry.original() is original else None

    def is_cached(self, what: str, original: object) -> bool:
        """Whether that copy is on the device already."""
        return self.cached(what, original) is not None

    def forget(self, what: str, original: object) -> None:
        """Drop that copy."""
        with self._lock:
            self._cache.pop((what, id(original)), None)

    def forget_all(self, beginnings: tuple[str, ...]) -> None:
        """Drop the copies whose names begin like this, and give back the pages that nobody reads any more."""
        with self._lock:
            for key in [key for key in self._cache if key[0].startswith(beginnings)]:
                del self._cache[key]
            self._collect()

    def is_used(self, original: object) -> bool:
        """Whether a run uses copies of something."""
        with self._lock:
            return any(used == id(original) for _, used in self._used)

    @contextmanager
    def using(self, originals: Iterable[object], copies: Iterable[tuple[str, object]] = ()) -> Iterator[None]:
        """Evict no copy of these, and none of ``copies``, each a name and an original, while the context is entered: a
        run would only have to make it again.
        """
        marks = [("", id(original)) for original in originals]
        marks += [(what, id(original)) for what, original in copies]
        with self._lock:
            self._used.update(marks)
        try:
            yield
        finally:
            with self._lock:
                self._used.subtract(marks)
                for mark in marks:
                    if self._used[mark] <= 0:
                        del self._used[mark]

    def _drop(self, key: tuple[str, int]) -> None:
        with self._lock:
            entry = self._cache.get(key)
            if entry is not None and entry.original() is None:
                del self._cache[key]

    @property
    def cached_bytes(self) -> int:
        """Bytes of all cached copies."""
        with self._lock:
            return sum(int(entry.copy.nbytes) for entry in self._cache.values())

    @property
    def used_bytes(self) -> int:
        """Bytes that arrays take now, cached ones and their pages included."""
        with self.current():
            return int(self.pool.used_bytes()) + self._paged

    def free_bytes(self) -> int:
        """Bytes that can be allocated now: within the budget, and free on the device whoever else uses it."""
        with self.current():
            free = int(self._cupy.cuda.runtime.memGetInfo()[0]) + int(self.pool.free_bytes())
            return max(min(self.budget - self._paged - int(self.pool.used_bytes()), free), 0)

    def unused_bytes(self) -> int:
        """What is left of the budget: as much as can be allocated, if nobody else uses the device."""
        return max(self.budget - self.used_bytes, 0)

    def reserve(self, wanted: int) -> int:
        """Evict cached copies until ``wanted`` bytes can be allocated, or none is left that no run uses; return the
        free bytes.
        """
        with self._lock:
            while self.free_bytes() < wanted and self._evict_one() is not None:
                self._collect()
        return self.free_bytes()

    def _evict_one(self) -> int | None:
        """Evict the least recently used copy that no run uses, and that is on the device; return its bytes, None where
        there is none.
        """
        for key, entry in self._cache.items():
            if key not in self._used and ("", key[1]) not in self._used and entry.copy.nbytes:
                del self._cache[key]
                return int(entry.copy.nbytes)
        return None

    # --- pages

    def take(self, size: int) -> None:
        """Take so many bytes for pages off what the pool may have, or give them back where ``size`` is negative.

        Raises
        ------
        MemoryLimitError
            There is too little memory for them within the budget.
        """
        with self._lock:
            if size > 0 and self.reserve(size) < size:
                raise MemoryLimitError(
                    f"the graph needs {size:,} bytes more on the device, and {self.free_bytes():,} are free",
                    hint='raise the budget, or use device="cpu"',
                )
            self._paged += size
            if size > 0:
                with self.current():
                    self.pool.free_all_blocks()  # what the pool has and does not use is the device's no more

    def unused(self, pages: Pages) -> None:
        """Give pages back once no kernel can read them."""
        self._unused.append(pages)

    def _collect(self) -> None:
        """Give back pages that are not used, unless a kernel waits for the host: then the device is never idle."""
        if not self._unused or self._streaming:
            return
        with self.current() as device:
            device.synchronize()
            while self._unused:
                self._unused.pop().release()

    @contextmanager
    def kernel_waits(self) -> Iterator[None]:
        """While the context is entered, a kernel may wait for the host: until it ends, no memory goes back."""
        with self._lock:
            self._streaming += 1
        try:
            yield
        finally:
            with self._lock:
                self._streaming -= 1

    @property
    def streaming(self) -> bool:
        """Whether some kernel waits for the host."""
        return self._streaming > 0

    def evict(self, wanted: int | None) -> int:
        """Evict the least recently used copies, ``wanted`` bytes of them or all, and blocks without use; return the
        copies' bytes.
        """
        with self._lock:
            freed = 0
            while wanted is None or freed < wanted:
                evicted = self._evict_one()
                if evicted is None:
                    break
                freed += evicted
            self._collect()
        if not self._streaming:  # the driver waits for all kernels before it takes memory back
            with self.current():
                self.pool.free_all_blocks()
                self.slabs.drop()
                self._cupy.get_default_pinned_memory_pool().free_all_blocks()
        return freed
