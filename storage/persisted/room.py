"""Room for arrays that are derived: in memory up to some bytes, then in files without names that are mapped.

What is derived of a large graph may take more memory than there is for it while it is made.  The system writes the
pages of such a file as it likes, and may take their memory back; the file goes with the arrays that are in it.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphdb.common.stopping import check_stop
from graphdb.storage.persisted import files

Batch = TypeVar("Batch")

_OFTEN = 16
"""Batches after which the memory of what is in files is given back."""


class NoRoom(Exception):
    """Neither memory nor the disk has room for an array."""


class Room:
    """Arrays that a structure is derived into.

    Parameters
    ----------
    folder
        Where files may be made; None where everything is to fit into memory.
    memory
        Bytes that arrays may take in memory, all together.
    free
        Returns how many bytes a further file may take.
    """

    def __init__(self, folder: Path | None, memory: int, free: Callable[[], int] = lambda: 0) -> None:
        self._folder = folder
        self._left = memory
        self._free = free
        self._maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return zeros, in memory while there is room.

        Raises
        ------
        NoRoom
            They do not fit into memory, and no file can be made for them.
        """
        dtype = np.dtype(dtype)
        count = int(np.prod(shape, dtype=np.int64))
        if (size := count * dtype.itemsize) <= self._left:
            self._left -= size
            return np.zeros(shape, dtype)
        with self.file(size) as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size)  # without space: an error here, else a later signal
            except OSError as error:
                raise NoRoom from error
            found: NDArray[Any] = self._mapped(file, size).view(dtype)
            return found.reshape(shape)

    def texts(self) -> Bytes:
        """Return bytes that are added piece by piece."""
        return Bytes(self)

    def take(self, size: int) -> bool:
        """Whether so many bytes fit into memory; they are counted."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def file(self, size: int) -> IO[bytes]:
        """Return a file without a name, which may take so many bytes; raise :class:`NoRoom` where none can be made."""
        if self._folder is None or not files.may_map() or size > self._free():
            raise NoRoom
        try:
            return tempfile.TemporaryFile(dir=self._folder)
        except OSError as error:
            raise NoRoom from error

    def _mapped(self, file: IO[bytes], size: int) -> NDArray[np.uint8]:
        memory = files.mapping(file.fileno(), size, mmap.ACCESS_WRITE)
        self._maps.add(memory)
        return np.frombuffer(memory, np.uint8)

    def columns(self, batches: Iterable[Sequence[NDArray[Any]]], count: int, columns: int) -> list[NDArray[np.int64]]:
        """Return some columns of so many integers each, which come in batches: int64 [rows].

        Raises
        ------
        NoRoom
            There is none for them, or more come.
        """
        found, at = [self.zeros(count, np.int64) for _ in range(columns)], 0
        for batch in self.passing(batches):
            end = at + len(batch[0])
            if end > count:
                raise NoRoom
            for column, part in zip(found, batch, strict=True):
                column[at:end] = part
            at = end
        return [column[:at] for column in found]

    def passing(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield batches whose rows are written into arrays; memory of what is in files is given back now and then."""
        for number, batch in enumerate(batches, 1):
            check_stop()
            yield batch
            if number % _OFTEN == 0:
                self.give_back()

    def give_back(self) -> None:
        """Let the system take back the memory of what is in files: it is read again where it is asked for."""
        for memory in list(self._maps):
            memory.madvise(mmap.MADV_DONTNEED)


class Bytes:
    """Bytes that are added piece by piece: they are written to a file once they are too many for memory."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._parts: list[NDArray[np.uint8]] = []
        self._file: IO[bytes] | None = None
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, part: NDArray[np.uint8]) -> None:
        """Add some bytes, which are copied.

        Raises
        ------
        NoRoom
            They do not fit into memory, and cannot be written.
        """
        self._size += len(part)
        if self._file is None and self._room.take(2 * len(part)):  # they are put together
            self._parts.append(part.copy())
            return
        if self._file is None:
            self._file = self._room.file(2 * self._size)
        try:
            for each in (*self._parts, part):
                self._file.write(np.ascontiguousarray(each).data)
        except OSError as error:
            raise NoRoom from error
        self._parts.clear()

    def array(self) -> NDArray[np.uint8]:
        """Return all of them; nothing is added after that."""
        if self._file is None:
            return np.concatenate([np.empty(0, np.uint8), *self._parts])
        with self._file as file:
            try:
                file.flush()
            except OSError as error:
                raise NoRoom from error
            return self._room._mapped(file, self._size)
