"""Kernels run by Python, one step at a time: what their machine code has to return."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from graphdb.storage.compile.entries import Intrinsic, Kernel


def _item(address: int, index: int, like: Any) -> Any:
    dtype = np.dtype(getattr(like, "dtype", np.int64))
    return np.ctypeslib.as_ctypes_type(dtype).from_address(int(address) + int(index) * dtype.itemsize)


def _load(address: int, index: int, like: Any) -> int | np.int64:
    """A word wraps as the machine's does: Python's -2**63 less one would never lose its highest bit."""
    value = int(_item(address, index, like).value)
    return np.int64(value) if value < 1 << 63 else value


def _store(address: int, index: int, value: int, like: Any) -> None:
    _item(address, index, like).value = int(value)


def _ones(word: int) -> int:
    return (int(word) & (1 << 64) - 1).bit_count()


def _lowest(word: int) -> int:
    word = int(word) & (1 << 64) - 1
    return (word & -word).bit_length() - 1 if word else 64


def _word(address: int) -> np.uint64:
    return np.uint64(int.from_bytes(ctypes.string_at(int(address), 8), "little"))


def _mix(left: np.uint64, right: np.uint64) -> np.uint64:
    product = int(left) * int(right)
    return np.uint64(product >> 64 ^ product & (1 << 64) - 1)


_INTRINSICS: dict[str, Callable[..., Any]] = {
    "load": _load,
    "load_real": lambda address, index: _item(address, index, np.float64(0)).value,
    "store": _store,
    "ones": _ones,
    "lowest": _lowest,
    "word": _word,
    "mix": _mix,
    "fetch": lambda address: None,
    "copy": lambda target, source, count: ctypes.memmove(int(target), int(source), int(count)),
}


def interpreted(kernel: Any) -> Callable[..., Any]:
    """Return the function of a kernel, with all that it calls, as Python runs it."""
    assert isinstance(kernel, Kernel)
    made: dict[Kernel, FunctionType] = {}

    def function_of(found: Kernel) -> FunctionType:
        if found not in made:
            names = dict(found.function.__globals__)
            made[found] = FunctionType(found.function.__code__, names)
            for name in found.function.__code__.co_names:
                match names.get(name):
                    case Kernel() as called:
                        names[name] = function_of(called)
                    case Intrinsic() as called:
                        names[name] = _INTRINSICS[called.name]
        return made[found]

    return function_of(kernel)
