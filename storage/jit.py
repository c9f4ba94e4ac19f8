"""How kernels are compiled, and how they read memory that they were only given the address of.

:func:`kernel` is Numba's ``njit`` without the GIL and with the on-disk cache.  A plan reads any number of arrays;
were they arguments, every number would be compiled anew.  So kernels get tables of addresses, and :func:`load` and
:func:`store` read and write through them, with the type of a dummy scalar (or array: but an array that is passed on
counts references, which costs more than the read).  Whoever passes an address keeps its array alive.

Importing this module imports Numba: import it only from ``*_kernels.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic

P = ParamSpec("P")
R = TypeVar("R")


class _Cache(FunctionCache):
    """Numba's cache on disk, asked first of all.

    Numba would import all that it can compile before it looks there, for an eighth of a second; compiling does that
    again, and nothing else needs it but the runtime.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature; None where there is none yet."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile ``function`` on its first call, to run without the GIL; the machine code is kept on disk."""
    made: Any = njit(nogil=True)(function)
    made._cache = _Cache(function)  # type: ignore[no-untyped-call]
    return cast("Callable[P, R]", made)


def _load(typing_context: Any, address: Any, index: Any, like: Any) -> Any:
    """``load(address, index, like)``: element ``index`` of the array of ``like``'s type at ``address``, as int64."""
    dtype = getattr(like, "dtype", like)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, at, _ = arguments
        pointer = builder.inttoptr(start, context.get_value_type(dtype).as_pointer())
        value = builder.load(builder.gep(pointer, [at]))
        return context.cast(builder, value, dtype, types.int64)

    return types.int64(types.int64, types.int64, like), generate


def _store(typing_context: Any, address: Any, index: Any, value: Any, like: Any) -> Any:
    """``store(address, index, value, like)``: write the int64 ``value`` as an element of ``like``'s type."""
    dtype = getattr(like, "dtype", like)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, at, wide, _ = arguments
        pointer = builder.inttoptr(start, context.get_value_type(dtype).as_pointer())
        builder.store(context.cast(builder, wide, types.int64, dtype), builder.gep(pointer, [at]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, like), generate


def _ones(typing_context: Any, word: Any) -> Any:
    """``ones(word)``: how many bits of an int64 are set: one instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


def _lowest(typing_context: Any, word: Any) -> Any:
    """``lowest(word)``: the number of the lowest bit that is set (64 for none): one instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.int64(types.int64), generate


def _word(typing_context: Any, address: Any) -> Any:
    """``word(address)``: the eight bytes at ``address``, wherever that is, as one uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_value_type(types.uint64).as_pointer())
        value = builder.load(pointer)
        value.align = 1
        return value

    return types.uint64(types.int64), generate


def _mix(typing_context: Any, left: Any, right: Any) -> Any:
    """``mix(left, right)``: the upper and lower half of the product of two uint64, one xor the other."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        half = ir.IntType(64)
        upper = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), half)
        return builder.xor(upper, builder.trunc(product, half))

    return types.uint64(types.uint64, types.uint64), generate


def _fetch(typing_context: Any, address: Any) -> Any:
    """``fetch(address)``: have the cache line at ``address`` brought, to be there when it is read."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_value_type(types.uint8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        builder.call(prefetch, [pointer, *(ir.Constant(number, told) for told in (0, 3, 1))])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _copy(typing_context: Any, target: Any, source: Any, count: Any) -> Any:
    """``copy(target, source, count)``: copy ``count`` bytes between two addresses; they do not overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, start, length = arguments
        byte = context.get_value_type(types.uint8).as_pointer()
        pointers = builder.inttoptr(to, byte), builder.inttoptr(start, byte)
        cgutils.raw_memcpy(builder, *pointers, length, 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


# Numba's own types do not say that an intrinsic is called without the typing context.
load = cast("Callable[[int, int, Any], int]", intrinsic(_load))
store = cast("Callable[[int, int, int, Any], None]", intrinsic(_store))
ones = cast("Callable[[int], int]", intrinsic(_ones))
lowest = cast("Callable[[int], int]", intrinsic(_lowest))
word = cast("Callable[[int], np.uint64]", intrinsic(_word))
mix = cast("Callable[[np.uint64, np.uint64], np.uint64]", intrinsic(_mix))
fetch = cast("Callable[[int], None]", intrinsic(_fetch))
copy = cast("Callable[[int, int, int], None]", intrinsic(_copy))
