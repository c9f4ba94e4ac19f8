"""Cached machine code of kernels, called without importing Numba (:func:`~.jit.entry`).

To import Numba, and to have it read what it cached on disk, takes longer than to load a hundred thousand triples.  All
that a call needs is the address of the function that Numba compiled, and its arguments as that function takes them:
arrays as the words of Numba's structure for them, numbers as they are.  So the object code is cached once more, with
nothing in it but that function (:func:`keep`), to be found by the types of arguments and linked by LLVM alone
(:class:`Native`).  Functions that need something of Numba when they run (memory, objects) cannot be called so.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from graphdb.common.forks import lock_at_fork

_VERSION = 1
"""Changes with what a file holds."""

_WRITEABLE = 0x400
_ARRAY = 0x101 | _WRITEABLE
"""The flags of an array that its type tells: C order, aligned, writeable (NPY_ARRAY_CARRAY)."""

_LIBC = {"memcpy", "memmove", "memset"}
"""What code may call that is not its own."""

_FREE = "NRT_MemInfo_call_dtor"
"""What would free an array that nobody refers to any more; of the arrays of a call, Numba counts no references."""

_SETTINGS = {"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"}
"""Settings of Numba that leave the code as it is."""

_SCALARS = {int: "i8", np.int64: "i8", np.uint64: "u8", float: "f8", np.float64: "f8"}
_TYPES: dict[str, Any] = {"i8": ctypes.c_int64, "u8": ctypes.c_uint64, "f8": ctypes.c_double}

Key = tuple[object, ...]
"""The types of arguments: of a number its name, of an array what NumPy calls its items, its dimensions and flags."""

_lock = threading.RLock()


def _begin_anew() -> None:
    """Free, in a forked process, the lock that a thread of its parent's may have held."""
    global _lock
    _lock = threading.RLock()


lock_at_fork(lambda: _lock)
os.register_at_fork(after_in_child=_begin_anew)


def key_of(arguments: Sequence[Any]) -> Key | None:
    """Return the types of arguments, None where one is neither a number of 64 bits nor an array in C order."""
    key: list[object] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            flags = argument.flags.num & _ARRAY
            if flags | _WRITEABLE != _ARRAY:
                return None
            key.append((argument.dtype.str, argument.ndim, flags))
        elif type(argument) in _SCALARS:
            key.append(_SCALARS[type(argument)])
        else:
            return None
    return tuple(key)


class Native:
    """The cached machine code of one function.

    ``within`` returns the files whose code it contains: where one has changed, so has the function.
    """

    def __init__(self, function: FunctionType, within: Callable[[], set[str]]) -> None:
        self._function = function
        self._within = within
        self._calls: dict[Key, Callable[..., Any] | None] | None = None

    def find(self, key: Key) -> Callable[..., Any] | None:
        """Return what calls the function with arguments of such types; None where Numba must."""
        with _lock:
            if self._calls is None:
                self._calls = {}
                for kept, code in self._read().items():
                    self._calls[kept] = None if code is None else _linked(self._function.__name__, kept, *code)
            return self._calls.get(key)

    def knows(self, key: Key) -> bool:
        """Whether such types were compiled already, for this processor."""
        self.find(key)
        return self._calls is not None and key in self._calls

    def keep(self, key: Key, code: tuple[str, bytes, int | None] | None) -> None:
        """Keep a function's name, object code, and how many numbers it returns (see :func:`code_of`)."""
        with _lock:
            self.find(key)
            assert self._calls is not None
            self._calls[key] = None if code is None else _linked(self._function.__name__, key, *code)
            kept = self._read() | {key: code}
            path = self._path()
            fresh = path.with_name(f"{path.name}.{os.getpid()}")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                fresh.write_bytes(pickle.dumps((_VERSION, _machine(), self._stamp(), kept)))
                os.replace(fresh, path)
            except OSError:  # it is compiled again the next time
                with suppress(OSError):
                    fresh.unlink()

    def _read(self) -> dict[Key, tuple[str, bytes, int | None] | None]:
        """Return what is cached for this processor and these sources."""
        try:
            version, machine, stamp, kept = pickle.loads(self._path().read_bytes())
        except Exception:  # missing, or damaged in whatever way: it is compiled again
            return {}
        return dict(kept) if (version, machine, stamp) == (_VERSION, _machine(), self._stamp()) else {}

    def _path(self) -> Path:
        code = self._function.__code__
        python = f"py{sys.version_info.major}{sys.version_info.minor}"
        name = f"{Path(code.co_filename).stem}.{self._function.__name__}-{code.co_firstlineno}.{python}.native.nbc"
        return _folder(Path(code.co_filename).resolve().parent) / name

    def _stamp(self) -> list[tuple[str, int, int]]:
        return [_state(file) for file in sorted(self._within())]


def usable() -> bool:
    """Whether nothing is asked of Numba that only Numba can do (NUMBA_DISABLE_JIT, NUMBA_BOUNDSCHECK and their kin)."""
    return all(name in _SETTINGS for name in os.environ if name.startswith("NUMBA_"))


def code_of(compiled: Any) -> tuple[str, bytes, int | None] | None:
    """Return the name and object code of what Numba has compiled, and how many numbers it returns (None: nothing).

    None where Numba is needed to run it.
    """
    import llvmlite.binding as llvm
    from numba import types

    result: Any = compiled.signature.return_type
    several = isinstance(result, types.BaseTuple)
    items = list(result) if several else [result]
    if result != types.none and any(item != types.int64 for item in items):
        return None
    name = compiled.fndesc.llvm_func_name
    module = llvm.parse_assembly(compiled.library.get_llvm_str())
    if any(function.name == _FREE for function in module.functions):
        module.link_in(llvm.parse_assembly(f"define void @{_FREE}(ptr %array) {{ ret void }}"))
    for function in module.functions:
        if not function.is_declaration and function.name != name:
            function.linkage = "internal"
    machine = compiled.library.codegen._tm
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    needed = {function.name for function in module.functions if function.is_declaration}
    if any(not needs.startswith("llvm.") and needs not in _LIBC for needs in needed):
        return None
    values = None if result == types.none else len(items) if several else 0
    return name, machine.emit_object(module), values


def types_of(signature: Sequence[Any]) -> Key | None:
    """Return Numba's types of arguments as :func:`key_of` returns them."""
    from numba import types
    from numba.np.numpy_support import as_dtype

    key: list[object] = []
    for found in signature:
        if isinstance(found, types.Array) and found.layout == "C" and found.aligned:
            key.append((as_dtype(found.dtype).str, found.ndim, _ARRAY if found.mutable else _ARRAY & ~_WRITEABLE))
        elif found in (types.int64, types.uint64, types.float64):
            key.append({types.int64: "i8", types.uint64: "u8"}.get(found, "f8"))
        else:
            return None
    return tuple(key)


def _linked(name: str, key: Key, symbol: str, code: bytes, values: int | None) -> Callable[..., Any] | None:
    """Link object code, and return what calls it; None where it does not hold the function."""
    import llvmlite.binding as llvm

    engine = _engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    taken: list[Any] = []
    for kind in key:
        # Numba's array: the object that owns it, another, items, bytes of each, data, shape, strides.
        taken += [ctypes.c_int64] * (5 + 2 * kind[1]) if isinstance(kind, tuple) else [_TYPES[str(kind)]]
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *taken)
    address = engine.get_function_address(symbol)
    if not address:
        return None
    function = prototype(address)  # ctypes releases the GIL

    def call(*arguments: Any) -> Any:
        words: list[Any] = []
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                words += 0, 0, argument.size, argument.itemsize, argument.ctypes.data
                words += argument.shape
                words += argument.strides
            else:
                words.append(argument)
        result, error = (ctypes.c_int64 * (values or 1))(), ctypes.c_void_p()
        if status := function(ctypes.addressof(result), ctypes.addressof(error), *words):
            raise RuntimeError(f"{name} failed ({status})")
        return None if values is None else tuple(result) if values else result[0]

    return call


@cache
def _engine() -> Any:
    """Return LLVM's linker."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


@cache
def _machine() -> tuple[str, ...]:
    """What code is compiled for, and by what."""
    import llvmlite
    import llvmlite.binding as llvm

    processor = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    return (llvmlite.__version__, llvm.get_process_triple(), *processor)


@cache
def _state(file: str) -> tuple[str, int, int]:
    """What a file was when it was imported, or soon after."""
    status = os.stat(file)
    return os.path.basename(file), status.st_mtime_ns, status.st_size


@cache
def _folder(home: Path) -> Path:
    """Where machine code of the modules in a folder is cached: where Numba would, or there in a folder of our own."""
    own = f"{home.name}_{hashlib.sha1(str(home).encode()).hexdigest()}"
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen) / own
    beside = home / "__pycache__"
    if os.access(beside if beside.exists() else home, os.W_OK):
        return beside
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba" / own
