"""Compiler intrinsics for kernels: memory access by address, and single machine instructions.

Importing this module imports Numba: :mod:`.jit` does so when a kernel is compiled.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


@intrinsic
def load(typing_context: Any, address: Any, index: Any, like: Any) -> Any:
    """``load(address, index, like)``: element ``index`` of the array of ``like``'s type at ``address``, as int64."""
    dtype = getattr(like, "dtype", like)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, at, _ = arguments
        pointer = builder.inttoptr(start, context.get_value_type(dtype).as_pointer())
        value = builder.load(builder.gep(pointer, [at]))
        return context.cast(builder, value, dtype, types.int64)

    return types.int64(types.int64, types.int64, like), generate


@intrinsic
def load_real(typing_context: Any, address: Any, index: Any) -> Any:
    """``load_real(address, index)``: element ``index`` of the array of float64 at ``address``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, at = arguments
        pointer = builder.inttoptr(start, context.get_value_type(types.float64).as_pointer())
        return builder.load(builder.gep(pointer, [at]))

    return types.float64(types.int64, types.int64), generate


@intrinsic
def store(typing_context: Any, address: Any, index: Any, value: Any, like: Any) -> Any:
    """``store(address, index, value, like)``: write the int64 ``value`` as an element of ``like``'s type."""
    dtype = getattr(like, "dtype", like)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, at, wide, _ = arguments
        pointer = builder.inttoptr(start, context.get_value_type(dtype).as_pointer())
        builder.store(context.cast(builder, wide, types.int64, dtype), builder.gep(pointer, [at]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, like), generate


@intrinsic
def ones(typing_context: Any, word: Any) -> Any:
    """``ones(word)``: how many bits of an int64 are set: one instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.int64), generate


@intrinsic
def lowest(typing_context: Any, word: Any) -> Any:
    """``lowest(word)``: the number of the lowest bit that is set (64 for none): one instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.int64(types.int64), generate


@intrinsic
def word(typing_context: Any, address: Any) -> Any:
    """``word(address)``: the eight bytes at ``address``, wherever that is, as one uint64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_value_type(types.uint64).as_pointer())
        value = builder.load(pointer)
        value.align = 1
        return value

    return types.uint64(types.int64), generate


@intrinsic
def mix(typing_context: Any, left: Any, right: Any) -> Any:
    """``mix(left, right)``: the upper and lower half of the product of two uint64, one xor the other."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        half = ir.IntType(64)
        upper = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), half)
        return builder.xor(upper, builder.trunc(product, half))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def fetch(typing_context: Any, address: Any) -> Any:
    """``fetch(address)``: have the cache line at ``address`` brought, to be there when it is read."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_value_type(types.uint8).as_pointer())
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, number, number, number])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
        how = (ir.Constant(number, value) for value in (0, 3, 1))  # to read, to keep in the cache, data
        builder.call(prefetch, [pointer, *how])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def copy(typing_context: Any, target: Any, source: Any, count: Any) -> Any:
    """``copy(target, source, count)``: copy ``count`` bytes between two addresses; they do not overlap."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, start, length = arguments
        byte = context.get_value_type(types.uint8).as_pointer()
        pointers = builder.inttoptr(to, byte), builder.inttoptr(start, byte)
        cgutils.raw_memcpy(builder, *pointers, length, 1)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate
