"""Machine code made at run time, where no library fits: another processor, or a checkout whose kernels change.

Numba compiles an entry when it is first called, for the types that it is called with, and nothing else; the object code
is cached on disk (:mod:`.cache`), and linked by LLVM alone, so that Numba is imported only to compile.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from functools import cache
from typing import Any

from graphdb._version import DISTRIBUTION
from graphdb.common import compiling
from graphdb.common.errors import NotSupportedError
from graphdb.common.forks import lock_at_fork
from graphdb.storage.compile import sources
from graphdb.storage.compile.cache import Cache
from graphdb.storage.compile.entries import Entry

disk = Cache("kernels", 4096)
"""Object code: some 300 files for one version of the kernels."""
_lock = threading.RLock()
_bound: set[str] = set()


def _begin_anew() -> None:
    """Free, in a forked process, the locks that a thread of its parent's may have held: Numba's compiler has one."""
    global _lock
    _lock = threading.RLock()
    compiler = sys.modules.get("numba.core.compiler_lock")
    if compiler is not None:
        compiler.global_compiler_lock._lock = threading.RLock()


def _compiler_lock() -> Any:
    compiler = sys.modules.get("numba.core.compiler_lock")
    return getattr(getattr(compiler, "global_compiler_lock", None), "_lock", None)


def _llvm_lock() -> Any:
    """Return the lock of calls into LLVM: what Numba has thrown away takes it, too, wherever garbage is collected."""
    calls = getattr(sys.modules.get("llvmlite.binding.ffi"), "lib", None)
    return getattr(getattr(calls, "_lock", None), "_lock", None)


lock_at_fork(lambda: _lock)
lock_at_fork(_compiler_lock)
lock_at_fork(_llvm_lock)
os.register_at_fork(after_in_child=_begin_anew)


def available() -> bool:
    """Whether Numba is installed."""
    return importlib.util.find_spec("numba") is not None


def bind(entry: Entry, variant: str) -> None:
    """Have an entry call the code of one of its variants; raises NotSupportedError without Numba."""
    symbol = entry.symbol_of(variant)
    with _lock:
        if symbol in _bound:
            return
        engine = _engine()
        engine.add_object_file(_binding().ObjectFileRef.from_data(make(entry, variant)))
        engine.finalize_object()
        places = engine.get_function_address(symbol), engine.get_global_value_address(f"{symbol}_array")
        entry.bind(*places, variant)
        _bound.add(symbol)


def cached(entry: Entry, variant: str) -> bool:
    """Whether the code of a variant is on disk."""
    return disk.read(_file(entry, variant)) is not None


def _file(entry: Entry, variant: str) -> str:
    made_from = sources.sources(entry.function.__module__)
    return f"{entry.symbol_of(variant)}-{sources.stamp(made_from)[:24]}-{_machine()}.o"


def make(entry: Entry, variant: str) -> bytes:
    """Return the object code of a variant, from the disk or from the compiler; raises NotSupportedError without one."""
    file = _file(entry, variant)
    code = disk.read(file)
    if code is None:
        with disk.locked(file):
            code = disk.read(file)  # another process was quicker
            if code is None:
                code = _compiled(entry, variant)
                disk.write(file, code)
    return code


def _compiled(entry: Entry, variant: str) -> bytes:
    if not available():
        raise NotSupportedError(
            "there is no machine code for this processor, and Numba is not installed, which could make it",
            hint=f"pip install '{DISTRIBUTION}[jit]'",
        )
    with compiling.announced(entry.function.__name__):
        from graphdb.storage.compile.emit import lower, object_code

        llvm = _binding()
        features = llvm.get_host_cpu_features().flatten()
        return object_code(lower([(entry, variant)]), llvm.get_host_cpu_name(), features, far_apart=True)


def _binding() -> Any:
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise NotSupportedError(
            "there is no machine code for this processor, and no compiler that could make it",
            hint=f"pip install '{DISTRIBUTION}[jit]'",
        ) from error
    return llvm


@cache
def _engine() -> Any:
    """Return LLVM's linker."""
    llvm = _binding()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


@cache
def _machine() -> str:
    """What code is compiled for, and by what, as a short digest."""
    import hashlib
    import importlib.metadata

    llvm = _binding()
    versions = [importlib.metadata.version(name) for name in ("llvmlite", "numba") if available() or name != "numba"]
    parts = (*versions, llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    return hashlib.sha256("\0".join((*parts, str(object.__basicsize__))).encode()).hexdigest()[:16]
