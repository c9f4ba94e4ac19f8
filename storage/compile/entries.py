"""What a kernel is to Python: a function, its declared types, and how its machine code is called once it is there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, NoReturn

import numpy as np

from graphdb.storage.compile.layout import MISFIT
from graphdb.storage.compile.signature import Parameter, Signature

entries: dict[str, Entry] = {}
"""What was declared so far, by symbol."""


class Kernel:
    """A function that runs within machine code; ``inlined``, its code stands in every kernel that calls it."""

    def __init__(self, function: FunctionType, inlined: bool = False) -> None:
        update_wrapper(self, function)
        self.function = function
        self.inlined = inlined
        module = function.__module__.removeprefix("graphdb.").replace(".", "_")
        self.symbol = f"{module}__{function.__name__}"

    def __call__(self, *arguments: Any) -> Any:
        """Refuse: see :class:`Entry`."""
        raise TypeError(f"{self.symbol} is called by other kernels only: it is no entry")


class Entry(Kernel):
    """A kernel that Python calls.

    The arguments are those of its signature, by position, arrays in C order.  Its code makes no array and raises
    nothing; it runs without the GIL.
    """

    def __init__(self, function: FunctionType, signature: Signature, find: Callable[[Entry, str], None]) -> None:
        super().__init__(function)
        if len(signature.parameters) != function.__code__.co_argcount:
            raise ValueError(f"{self.symbol} declares {len(signature.parameters)} parameters")
        self.signature = signature
        self._count = len(signature.parameters)
        self._find = find
        self._returns = bool(signature.results)
        self._first: Callable[..., Any] = lambda *arguments: MISFIT
        self._calls: tuple[Callable[..., Any], ...] = ()
        self._variants: frozenset[str] = frozenset()
        entries[self.symbol] = self

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code; raises TypeError where the arguments are not of the declared types."""
        if len(arguments) == self._count:
            try:
                found = self._first(*arguments)
                if found != MISFIT:
                    return found if self._returns else None
            except ctypes.ArgumentError:
                pass
        return self._prepare(arguments)

    def symbol_of(self, variant: str) -> str:
        """Return the symbol of code for one variant alone."""
        return f"{self.symbol}_{variant}" if variant else self.symbol

    def bind(self, address: int, array_type: int, *variants: str) -> None:
        """Call the code at an address for these variants; its name for NumPy's type of arrays is at another."""
        ctypes.c_int64.from_address(array_type).value = id(np.ndarray)
        self._calls += (_bound(address, self.signature),)
        self._first = self._calls[0]
        self._variants |= frozenset(variants)

    def _prepare(self, arguments: tuple[Any, ...]) -> Any:
        """Call code that was not needed before, or pass the arguments as code takes them."""
        plain = tuple(map(_plain, arguments))
        variant = self.signature.variant_of(plain)
        if variant is None:
            self._refuse(arguments)
        if variant not in self._variants:
            self._find(self, variant)
        for call in self._calls:
            found = call(*plain)
            if found != MISFIT:
                return found if self._returns else None
        self._refuse(arguments)

    def _refuse(self, arguments: tuple[Any, ...]) -> NoReturn:
        given = ", ".join(
            f"{value.dtype}[{', '.join(map(str, value.shape))}]{'' if value.flags.c_contiguous else ' not in C order'}"
            if isinstance(value, np.ndarray)
            else type(value).__name__
            for value in arguments
        )
        raise TypeError(f"{self.symbol} takes {self.signature}; it was given {given}")


def _plain(value: Any) -> Any:
    """Return an argument as ctypes passes it: arrays of no other class, numbers as Python's."""
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    return value.item() if isinstance(value, np.generic) else value


def _bound(address: int, signature: Signature) -> Callable[..., Any]:
    """Return what calls a function; :data:`MISFIT` where the arguments do not fit."""
    kinds = [_kind(parameter) for parameter in signature.parameters]
    several = len(signature.results)
    if several > 1:
        kinds.append(ctypes.c_void_p)
    function = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address)  # ctypes releases the GIL

    def truth(*arguments: Any) -> Any:
        found = function(*arguments)
        return found if found == MISFIT else found != 0

    cells = ctypes.c_int64 * several

    def numbers(*arguments: Any) -> Any:
        results = cells()
        return MISFIT if function(*arguments, results) == MISFIT else tuple(results)

    match signature.results:
        case ("b1",):
            return truth
        case () | (_,):
            return function
    return numbers


def _kind(parameter: Parameter) -> Any:
    if parameter.is_object:
        return ctypes.py_object
    return ctypes.c_double if parameter.item == "f8" else ctypes.c_int64


class Intrinsic:
    """The name of what :mod:`.intrinsics` writes into the code of kernels."""

    def __init__(self, name: str) -> None:
        self.name = name
