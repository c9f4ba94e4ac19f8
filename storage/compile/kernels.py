"""Kernels: Python functions that run as machine code, without the GIL; they read memory by address.

:func:`kernel` declares one that other kernels call; :func:`entry` one that Python calls, with the types of its
arguments.  The code comes from a library that the wheel carries (:mod:`.library`), and where none fits, from Numba on
the first call, cached on disk (:mod:`.jit`).  docs/kernels.md tells the whole story.

A plan reads any number of arrays; were they arguments, every number would need code of its own.  So kernels get tables
of addresses, and :func:`load` and :func:`store` read and write through them, with the type of a dummy scalar.  Whoever
passes an address keeps its array alive.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from graphdb.storage.compile.entries import Entry, Intrinsic, Kernel
from graphdb.storage.compile.signature import Signature

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])


def _find(entry: Entry, variant: str) -> None:
    """Have an entry call its code in the library, or what the compiler makes."""
    from graphdb.storage.compile import jit, library

    if not library.bind(entry):
        jit.bind(entry, variant)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a kernel that kernels call: its types follow from theirs."""
    return cast("Callable[P, R]", Kernel(cast("FunctionType", function)))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Declare a :func:`kernel` whose code stands wherever it is called.

    LLVM by itself inlines what is called once: in code of one entry, but not in that of many, where registers and
    vectors are then saved around each call.
    """
    return cast("Callable[P, R]", Kernel(cast("FunctionType", function), inlined=True))


def entry(signature: str) -> Callable[[F], F]:
    """Declare a kernel that Python calls, with the types of its parameters and results (:mod:`.signature`)."""
    declared = Signature.parse(signature)

    def declare(function: F) -> F:
        return cast("F", Entry(cast("FunctionType", function), declared, _find))

    return declare


load = cast("Callable[[int, int, Any], int]", Intrinsic("load"))
load_real = cast("Callable[[int, int], float]", Intrinsic("load_real"))
store = cast("Callable[[int, int, int, Any], None]", Intrinsic("store"))
ones = cast("Callable[[int], int]", Intrinsic("ones"))
lowest = cast("Callable[[int], int]", Intrinsic("lowest"))
word = cast("Callable[[int], np.uint64]", Intrinsic("word"))
mix = cast("Callable[[np.uint64, np.uint64], np.uint64]", Intrinsic("mix"))
fetch = cast("Callable[[int], None]", Intrinsic("fetch"))
copy = cast("Callable[[int, int, int], None]", Intrinsic("copy"))
