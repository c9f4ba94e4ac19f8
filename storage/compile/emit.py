"""From kernels to machine code: Numba infers types and writes LLVM's language, LLVM makes object code for a processor.

Importing this module imports Numba: it serves the build of a wheel, and whoever has no library that fits.

Nothing of Numba is needed when the code runs: no memory is allocated within (its compiler then refuses a kernel that
makes an array), nothing is raised, and there is no wrapper for Python's calling convention.  What is exported instead
for each :class:`~.entries.Entry` is a C function of the arguments as ctypes passes them: numbers as they are, arrays as
the address of the NumPy object, whose fields it reads by itself (:func:`_export`).  To take an array's address, shape
and strides in Python would take longer than most calls.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import compiler, dispatcher, typed_passes, untyped_passes
from numba.core.codegen import AOTCodeLibrary, AOTCPUCodegen
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.registry import cpu_target
from numba.np import arrayobj

from graphdb.storage.compile import intrinsics
from graphdb.storage.compile.entries import Entry, Intrinsic, Kernel
from graphdb.storage.compile.layout import ALIGNED, ARRAY, C_ORDER, DESCRIPTOR, MISFIT, TYPE
from graphdb.storage.compile.signature import ITEMS, Parameter, Signature

_LONG, _INT, _BYTE, _DOUBLE = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.DoubleType()
_POINTER = ir.PointerType()

_TYPES = {
    "b1": types.boolean, "i1": types.int8, "u1": types.uint8, "i4": types.int32, "u4": types.uint32,
    "i8": types.int64, "u8": types.uint64, "f8": types.float64,
}  # fmt: skip

_LIBC = {"memcpy", "memmove", "memset"}
"""What code may call that is not its own."""


class _Library(AOTCodeLibrary):
    """Code that is optimized once, when all that it calls is in it."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        pass


class _Codegen(AOTCPUCodegen):
    _library_class = _Library


_context = cpu_target.target_context.subtarget(_internal_codegen=_Codegen("graphdb"), aot_mode=True)  # type: ignore[no-untyped-call]


class _Target:
    """Numba's target, but that it ends with LLVM's language."""

    typing_context = cpu_target.typing_context
    target_context = _context
    options = cpu_target.options


class _Passes(compiler.CompilerBase):
    """Numba's passes that kernels need: types, and LLVM's language.

    Those for closures, context managers, overloads to inline and literals are left out, where kernels have none;
    branches that are never taken are LLVM's.  Numba takes a fifth less without them, and the machine code is the same.
    """

    def define_pipelines(self) -> list[PassManager]:
        """Return the one list of passes."""
        passes = PassManager("kernel")  # type: ignore[no-untyped-call]
        for step in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.IRLegalization,
            typed_passes.AnnotateTypes,
            typed_passes.NativeLowering,
            typed_passes.NoPythonBackend,
        ):
            passes.add_pass(step, step.__name__)  # type: ignore[no-untyped-call]
        passes.finalize()  # type: ignore[no-untyped-call]
        return [passes]


class _Compiler(dispatcher._FunctionCompiler):  # type: ignore[misc, name-defined]
    def _customize_flags(self, flags: Any) -> Any:
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        flags.nrt = False
        flags.error_model = "numpy"  # nothing is raised
        return flags

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        result = super()._compile_core(args, return_type)
        name = type("Compiled", (), {"__name__": result.fndesc.qualname})()  # what Numba finds it by, instead of code
        _context.insert_user_function(name, result.fndesc, [result.library])
        return result._replace(entry_point=name)


_made: dict[Kernel, Any] = {}


def _numba(kernel: Kernel) -> Any:
    """Return what Numba makes of a kernel, and of those that it calls."""
    if kernel not in _made:
        function, names = kernel.function, dict[str, Any]()
        same = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        same.__module__, same.__qualname__ = function.__module__, function.__qualname__
        made: Any = njit(same, forceinline=kernel.inlined)
        made._compiler = _Compiler(same, _Target, made.targetoptions, {}, _Passes)
        made.add_overload = lambda result: made.overloads.__setitem__(tuple(result.signature.args), result)
        made.get_call_template = partial(_widened, made.get_call_template)
        _made[kernel] = made  # it may call itself
        names |= function.__globals__
        for name in function.__code__.co_names:  # Numba knows its own functions and no others
            match names.get(name):
                case Kernel() as called:
                    names[name] = _numba(called)
                case Intrinsic() as called:
                    names[name] = getattr(intrinsics, called.name)
    return _made[kernel]


def _widened(resolve: Any, arguments: Any, keywords: Any) -> Any:
    """Have constants passed as any number: a copy of the kernel for each takes long, and LLVM makes those it needs."""
    return resolve(tuple(map(types.unliteral, arguments)), keywords)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Search for no garbage: what Numba makes, some million objects, stays until it is done.

    A seventh of its time would be such searches.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


@global_compiler_lock  # type: ignore[untyped-decorator]
@_uncollected()
def lower(entries: Iterable[tuple[Entry, str]]) -> Any:
    """Return LLVM's module of entries, each with what its symbol is to end with (one of its variants, or all: '')."""
    library = _context.codegen().create_library("graphdb")
    symbols = set()
    for entry, only in entries:
        variants = [only] if only else entry.signature.variants
        compiled = []
        for variant in variants:
            arguments = tuple(_numba_type(parameter, variant) for parameter in entry.signature.parameters)
            made = _numba(entry)
            made.compile(arguments)
            result = made.overloads[arguments]
            library.add_linking_library(result.library)
            compiled.append((variant, result))
        module = library.create_ir_module(entry.symbol)
        symbols |= _export(module, entry.symbol_of(only), entry.signature, compiled)
        library.add_ir_module(module)
    library.finalize()
    module = library._final_module
    for defined in (*module.functions, *module.global_variables):
        if not defined.is_declaration and defined.name not in symbols:
            defined.linkage = "internal"
    return module


def object_code(
    module: Any, cpu: str, features: str = "", *, triple: str | None = None, far_apart: bool = False
) -> bytes:
    """Return optimized code of a module for a processor, by its name in LLVM; the module stays as it is.

    ``far_apart`` says that code and constants may lie anywhere in memory, as where LLVM loads them by itself: in a
    process whose address space is much in use (CUDA reserves hundreds of gigabytes) they are more than 2 GiB apart, and
    LLVM aborts the process where code has only 32 bits for the distance.  A shared library is loaded as one piece.
    """
    target = llvm.Target.from_triple(triple or llvm.get_process_triple())
    places = {"reloc": "static", "codemodel": "large"} if far_apart else {"reloc": "pic", "codemodel": "default"}
    machine = target.create_target_machine(cpu=cpu, features=features, opt=3, **places)
    module = module.clone()
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    missing = {function.name for function in module.functions if function.is_declaration}
    missing = {name for name in missing - _LIBC if not name.startswith("llvm.")}
    if missing:
        raise ValueError(f"kernels call what is not in the code: {', '.join(sorted(missing))}")
    code: bytes = machine.emit_object(module)
    return code


def _numba_type(parameter: Parameter, variant: str) -> Any:
    item = _TYPES[variant if parameter.item == "T" else parameter.item]
    return types.Array(item, parameter.dimensions, "C") if parameter.dimensions else item


def _export(module: Any, symbol: str, signature: Signature, compiled: list[tuple[str, Any]]) -> set[str]:
    """Write the function that Python calls; returns the names that it defines.

    It returns the result (0 for none) or, of several, writes them to where one more argument says; :data:`MISFIT`
    where the arguments are not of the declared types, before anything is done.  A variable, ``…_array``, is to hold
    the address of NumPy's type of arrays.
    """
    kinds = [_POINTER if p.is_object else _DOUBLE if p.item == "f8" else _LONG for p in signature.parameters]
    several = len(signature.results) > 1
    function = ir.Function(module, ir.FunctionType(_LONG, [*kinds, *([_POINTER] * several)]), symbol)
    array_type = ir.GlobalVariable(module, _LONG, f"{symbol}_array")
    array_type.initializer = _LONG(0)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    misfit = function.append_basic_block("misfit")

    def read(pointer: Any, offset: int, kind: Any) -> Any:
        return builder.load(builder.gep(pointer, [_LONG(offset)], source_etype=_BYTE), typ=kind)

    def require(condition: Any) -> None:
        follows = builder.append_basic_block()
        builder.cbranch(condition, follows, misfit)
        builder.position_at_end(follows)

    pairs = list(zip(signature.parameters, function.args, strict=False))
    expected = builder.load(array_type)
    for parameter, argument in pairs:
        if parameter.is_object:
            require(builder.icmp_unsigned("==", read(argument, TYPE, _LONG), expected))
    for parameter, argument in pairs:
        if parameter.dimensions:
            require(builder.icmp_unsigned("==", read(argument, ARRAY.dimensions, _INT), _INT(parameter.dimensions)))
            flags = builder.and_(read(argument, ARRAY.flags, _INT), _INT(C_ORDER | ALIGNED))
            require(builder.icmp_unsigned("==", flags, _INT(C_ORDER | ALIGNED)))

    def has_items(argument: Any, item: str) -> Any:
        described, dtype = read(argument, ARRAY.descriptor, _POINTER), np_dtype(item)
        order = builder.icmp_unsigned("==", read(described, DESCRIPTOR.order, _BYTE), _BYTE(ord(dtype.byteorder)))
        kind = builder.icmp_unsigned("==", read(described, DESCRIPTOR.kind, _BYTE), _BYTE(ord(dtype.kind)))
        size = builder.icmp_unsigned("==", read(described, DESCRIPTOR.size, _LONG), _LONG(dtype.itemsize))
        return builder.and_(builder.and_(order, kind), size)

    for parameter, argument in pairs:
        if parameter.is_object and parameter.item != "T":
            require(has_items(argument, parameter.item))
    for variant, result in compiled:
        fits = ir.Constant(ir.IntType(1), 1)
        for parameter, argument in pairs:
            if parameter.item == "T":
                fits = builder.and_(fits, has_items(argument, variant))
        call, follows = builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(fits, call, follows)
        builder.position_at_end(call)
        values = [_value(builder, parameter, variant, argument, read) for parameter, argument in pairs]
        called = _context.declare_function(module, result.fndesc)
        taken = result.signature.args
        returned = result.signature.return_type
        _, found = _context.call_conv.call_function(builder, called, returned, taken, values)
        _check_results(symbol, signature, returned)
        if not signature.results:
            builder.ret(_LONG(0))
        elif not several:
            builder.ret(_context.cast(builder, found, returned, types.int64))
        else:
            for i, kind in enumerate(returned):
                number = _context.cast(builder, builder.extract_value(found, i), kind, types.int64)
                builder.store(number, builder.gep(function.args[-1], [_LONG(i)], source_etype=_LONG))
            builder.ret(_LONG(0))
        builder.position_at_end(follows)
    builder.branch(misfit)
    builder.position_at_end(misfit)
    builder.ret(_LONG(MISFIT))
    return {symbol, array_type.name}


def np_dtype(item: str) -> Any:
    """Return NumPy's type of items."""
    import numpy as np

    return np.dtype(ITEMS[item])


def _value(builder: Any, parameter: Parameter, variant: str, argument: Any, read: Any) -> Any:
    """Return an argument as Numba passes it."""
    kind = _numba_type(parameter, variant)
    if parameter.item == "T" and not parameter.dimensions:
        return _context.get_constant(kind, 0)
    if not parameter.dimensions:
        if parameter.item == "b1":
            return builder.icmp_signed("!=", argument, _LONG(0))
        return argument
    array = _context.make_array(kind)(_context, builder)
    width = np_dtype(variant if parameter.item == "T" else parameter.item).itemsize
    dimensions, strides = read(argument, ARRAY.shape, _POINTER), read(argument, ARRAY.strides, _POINTER)
    data = builder.bitcast(read(argument, ARRAY.data, _POINTER), array.data.type)
    arrayobj.populate_array(  # type: ignore[no-untyped-call]
        array,
        data=data,
        shape=[read(dimensions, 8 * i, _LONG) for i in range(parameter.dimensions)],
        strides=[read(strides, 8 * i, _LONG) for i in range(parameter.dimensions)],
        itemsize=_context.get_constant(types.intp, width),
        meminfo=None,
    )
    return array._getvalue()


def _check_results(symbol: str, signature: Signature, returned: Any) -> None:
    """Raise TypeError where a kernel returns other than it declares."""
    several = isinstance(returned, types.BaseTuple)
    items = list(returned) if several else [] if returned == types.none else [returned]
    boolean = signature.results == ("b1",)
    if len(items) != len(signature.results) or any(
        not isinstance(item, types.Boolean if boolean else types.Integer) for item in items
    ):
        raise TypeError(f"{symbol} returns {returned}, but declares {', '.join(signature.results) or 'nothing'}")
