"""Compiling kernels with Numba, lazily and cached on disk; kernels read memory by address.

:func:`kernel` is Numba's ``njit`` without the GIL and with the on-disk cache; :func:`entry` is one that Python calls
without Numba, once it was compiled (:mod:`.native`).  A plan reads any number of arrays;
were they arguments, every number would be compiled anew.  So kernels get tables of addresses, and :func:`load` and
:func:`store` read and write through them, with the type of a dummy scalar (or array: but an array that is passed on
counts references, which costs more than the read).  Whoever passes an address keeps its array alive.

Numba is imported when a kernel is first compiled, or its machine code read from Numba's cache.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import update_wrapper
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from graphdb.common.forks import lock_at_fork
from graphdb.storage.compile.native import Native, code_of, key_of, types_of, usable

P = ParamSpec("P")
R = TypeVar("R")

_making = threading.RLock()


def _begin_anew() -> None:
    """Free, in a forked process, the locks that a thread of its parent's may have held: Numba's compiler has one."""
    global _making
    _making = threading.RLock()
    compiler = sys.modules.get("numba.core.compiler_lock")
    if compiler is not None:
        compiler.global_compiler_lock._lock = threading.RLock()


def _compiler_lock() -> Any:
    compiler = sys.modules.get("numba.core.compiler_lock")
    return getattr(getattr(compiler, "global_compiler_lock", None), "_lock", None)


lock_at_fork(lambda: _making)
lock_at_fork(_compiler_lock)
os.register_at_fork(after_in_child=_begin_anew)


class _Kernel:
    """A function that Numba compiles when it is first called, or by one that calls it."""

    def __init__(self, function: FunctionType, *, native: bool) -> None:
        update_wrapper(self, function)
        self._function = function
        self._made: Any = None
        self._ready = False
        self._native = Native(function, self._files) if native and usable() else None
        self._calls: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *arguments: Any) -> Any:
        if self._native is None:
            return self.made(*arguments)
        key = key_of(arguments)
        if key is None:
            return self.made(*arguments)
        call = self._calls.get(key)
        if call is None:
            call = self._native.find(key)
            if call is None:
                self.made.compile(tuple(map(self.made.typeof_pyval, arguments)))
                call = self._native.find(key) or self.made
            self._calls[key] = call
        return call(*arguments)

    @property
    def made(self) -> Any:
        """What Numba makes of it."""
        if not self._ready:
            with _making:
                if self._made is None:
                    self._make()
        return self._made

    def _make(self) -> None:
        from numba import njit

        function, names = self._function, dict[str, Any]()
        same = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        update_wrapper(same, function)
        made: Any = njit(nogil=True)(same)
        made._cache = _cache(same, self._native)
        self._made = made  # it may call itself
        names |= function.__globals__
        for name in function.__code__.co_names:  # Numba knows its own functions and no others
            if isinstance(found := names.get(name), _Kernel | _Intrinsic):
                names[name] = found.made
        self._ready = True

    def _files(self) -> set[str]:
        """The files of its code, and of what that calls."""
        files, left = {__file__}, [self._function]
        while left:
            function = left.pop()
            file = function.__code__.co_filename
            if file not in files:
                files.add(file)
                left += [found._function for found in function.__globals__.values() if isinstance(found, _Kernel)]
        return files


class _Intrinsic:
    """The name of what :mod:`.intrinsics` writes into the code of kernels."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def made(self) -> Any:
        """What Numba makes of it."""
        from graphdb.storage.compile import intrinsics

        return getattr(intrinsics, self._name)


def _cache(function: FunctionType, native: Native | None) -> Any:
    """Return Numba's cache on disk, asked first of all.

    Numba would import all that it can compile before it looks there, for an eighth of a second; compiling does that
    again, and nothing else needs it but the runtime.  The machine code of an entry is stored for calls without Numba.
    """
    from numba.core.caching import FunctionCache
    from numba.core.runtime.nrt import rtsys

    class Cache(FunctionCache):
        def load_overload(self, sig: Any, target_context: Any) -> Any:
            if native is not None and (key := types_of(sig)) is not None and not native.knows(key):
                return None  # from Numba's own cache, no object code can be taken
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]

        def save_overload(self, sig: Any, data: Any) -> None:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
            if native is not None and (key := types_of(sig)) is not None:
                native.keep(key, code_of(data))

    return Cache(function)  # type: ignore[no-untyped-call]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on its first call, to run without the GIL; the machine code is cached on disk."""
    return cast("Callable[P, R]", _Kernel(cast("FunctionType", function), native=False))


def entry(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that is called a few times for much work, so that it can be called without Numba.

    Its arguments are arrays in C order and numbers of 64 bits; it returns nothing, an int, or a tuple of them, makes no
    array, and raises nothing.  Others are called through Numba.
    """
    return cast("Callable[P, R]", _Kernel(cast("FunctionType", function), native=True))


load = cast("Callable[[int, int, Any], int]", _Intrinsic("load"))
store = cast("Callable[[int, int, int, Any], None]", _Intrinsic("store"))
ones = cast("Callable[[int], int]", _Intrinsic("ones"))
lowest = cast("Callable[[int], int]", _Intrinsic("lowest"))
word = cast("Callable[[int], np.uint64]", _Intrinsic("word"))
mix = cast("Callable[[np.uint64, np.uint64], np.uint64]", _Intrinsic("mix"))
fetch = cast("Callable[[int], None]", _Intrinsic("fetch"))
copy = cast("Callable[[int, int, int], None]", _Intrinsic("copy"))
