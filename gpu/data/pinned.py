"""Copies of arrays in pinned memory of the host: kernels read them there, and they copy at the speed of the link."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.data.memory import DeviceMemory


@dataclass(frozen=True, slots=True)
class Pinned:
    """An array in pinned memory of the host: for kernels, its address is as good as one on the device."""

    values: NDArray[Any]
    nbytes: int = 0
    """Bytes on the device."""

    @property
    def data(self) -> Any:
        """Where it stands, as arrays on the device say it."""
        return SimpleNamespace(ptr=int(self.values.ctypes.data))

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, part: slice) -> Pinned:
        return Pinned(self.values[part], self.nbytes)


def pinned(memory: DeviceMemory, values: NDArray[Any], dtype: np.dtype[Any] | None = None) -> NDArray[Any]:
    """Return the pinned copy of an array, converted if ``dtype`` says so, made when it is first asked for."""
    what, as_type = f"pinned {dtype or values.dtype}", dtype or values.dtype
    return memory.cached_or_built(what, values, lambda: Pinned(pinned_copy(memory, values, as_type))).values


def pinned_copy(memory: DeviceMemory, values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A copy in pinned memory."""
    made = memory.pinned(values.shape, dtype)
    made[:] = values
    return made


def keep_while_read(memory: DeviceMemory, copy: object, arrays: list[Any]) -> None:
    """Keep pinned memory that belongs to a copy: kernels may still read it when nobody asks for that any more."""
    weakref.finalize(copy, memory.unused, _Read(arrays)).atexit = False


class _Read:
    """What :meth:`DeviceMemory.unused` is told."""

    def __init__(self, arrays: list[Any]) -> None:
        self._arrays = arrays

    def release(self) -> None:
        """Let it go."""
        self._arrays.clear()
