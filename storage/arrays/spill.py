"""Arrays that may not fit into memory: spilled to a file beyond a budget; sorted runs are merged window by window."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import StorageError

Array = NDArray[Any]

WINDOW = 1 << 10
"""Numbers of a sorted run that are read at a time, at least."""


class SpillFile:
    """Arrays that are written once and read in order: in memory up to ``memory`` bytes, then in a file.

    As a context, it removes the file at the end.
    """

    def __init__(self, path: Path, memory: int) -> None:
        self._path = path
        self._left = memory
        self._file: BinaryIO | None = None

    def __enter__(self) -> SpillFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def folder(self) -> Path:
        """Where its file is, or would be."""
        return self._path.parent

    def add(self, array: Array) -> SpillArray:
        """Store an array, which belongs to the spill file from now on.

        Raises `StorageError` where the disk is full.
        """
        if array.nbytes <= self._left:
            self._left -= array.nbytes
            return SpillArray(self, array.dtype, array.shape, array, 0)
        try:
            if self._file is None:
                self._file = open(self._path, "w+b")  # noqa: SIM115  # open until the batch is gone
            at = self._file.seek(0, 2)
            self._write(self._file, array)
        except OSError as error:
            raise StorageError(f"cannot spill to '{self._path.parent}': {error.strerror}") from error
        return SpillArray(self, array.dtype, array.shape, None, at)

    @property
    def spilled(self) -> bool:
        """Whether something is in the file."""
        return self._file is not None

    def read(self, at: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """Return an array that is in the file; several threads may read at a time."""
        array = np.empty(math.prod(shape), dtype)
        file, into, done = self._opened(), array.view(np.uint8).data, 0
        while done < len(into):
            count = os.preadv(file.fileno(), [into[done:]], at + done)  # no place in the file that threads share
            if not count:
                raise StorageError(f"what was spilled to '{self._path.parent}' is there no more")
            done += count
        return array.reshape(shape)

    def write(self, at: int, array: Array) -> None:
        """Write over what is in the file."""
        file = self._opened()
        file.seek(at)
        self._write(file, array)

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
            self._path.unlink(missing_ok=True)
            self._file = None

    def _opened(self) -> BinaryIO:
        if self._file is None:
            raise ValueError("nothing was spilled")
        return self._file

    def _write(self, file: BinaryIO, array: Array) -> None:
        file.write(np.ascontiguousarray(array).data)
        file.flush()


@dataclass(frozen=True, slots=True)
class SpillArray:
    """An array in memory, or in a spill file."""

    spill: SpillFile
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    array: Array | None
    at: int

    def __len__(self) -> int:
        return self.shape[0]

    def get(self) -> Array:
        """Return the array itself where it is in memory, else a copy."""
        return self.part(0, len(self))

    def part(self, begin: int, end: int) -> Array:
        """Return some of its rows."""
        if self.array is not None:
            return self.array[begin:end]
        shape = (max(min(end, len(self)) - begin, 0), *self.shape[1:])
        return self.spill.read(self.at + begin * math.prod(self.shape[1:]) * self.dtype.itemsize, self.dtype, shape)

    def rows(self, begin: int, end: int) -> SpillArray:
        """Return some of its rows, where they are stored."""
        if self.array is not None:
            return replace(self, shape=(end - begin, *self.shape[1:]), array=self.array[begin:end])
        width = math.prod(self.shape[1:]) * self.dtype.itemsize
        return replace(self, shape=(end - begin, *self.shape[1:]), at=self.at + begin * width)

    def put(self, array: Array) -> None:
        """Store another array of its type and shape instead."""
        if self.array is not None:
            self.array[...] = array
        else:
            self.spill.write(self.at, array)


def merge_runs(runs: Sequence[SpillArray], room: int) -> Iterator[Array]:
    """Yield the numbers of sorted runs in their order, some at a time.

    A window of each run is read.  What is at most the least of their last numbers comes before all that is unread, so
    it is taken out of all windows at once, and sorted (external merge sort; Knuth, The Art of Computer Programming 3,
    §5.4).  Numbers of different runs that are equal come together, where no run repeats one.

    Parameters
    ----------
    room
        How many numbers the windows hold, all together, where that is more than :data:`WINDOW` of each.
    """
    size = max(room // max(len(runs), 1), WINDOW)
    windows = [run.part(0, size) for run in runs]
    read = [len(window) for window in windows]
    while any(map(len, windows)):
        unread = [window[-1] for window, run, at in zip(windows, runs, read, strict=True) if at < len(run)]
        cuts = [np.searchsorted(window, min(unread), "right") if unread else len(window) for window in windows]
        parts = [window[:cut] for window, cut in zip(windows, cuts, strict=True) if cut]
        if len(parts) > 1:
            parts = [np.concatenate(parts)]
            parts[0].sort()
        yield parts[0]
        for number, cut in enumerate(cuts):
            windows[number] = windows[number][cut:]
            if not len(windows[number]):
                windows[number] = runs[number].part(read[number], read[number] + size)
                read[number] += len(windows[number])


def zeros_on_disk(path: Path, count: int, dtype: type[np.unsignedinteger[Any]], memory: int) -> NDArray[Any]:
    """Return ``count`` zeros, which are in a file where they are more bytes than ``memory``.

    Raises
    ------
    StorageError
        There is no space for the file.
    """
    size = count * np.dtype(dtype).itemsize
    if size <= memory:
        return np.zeros(count, dtype)
    try:
        with open(path, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)  # without space: an error here, else a later signal
    except OSError as error:
        raise StorageError(f"cannot spill to '{path.parent}': {error.strerror}") from error
    return np.memmap(path, dtype, "r+", shape=(count,))


def unmap(*arrays: NDArray[Any]) -> None:
    """Release the memory that arrays in a file were read into; the system reads them again."""
    for array in arrays:
        if isinstance(array, np.memmap):
            array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
