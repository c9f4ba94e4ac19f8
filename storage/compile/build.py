"""Compiles all kernels into one shared library for each level of processors: a step of building a wheel.

``python -m graphdb.storage.compile.build FOLDER`` writes ``kernels-LEVEL.so`` for the levels of this machine, or of the
one named by ``--machine``; with ``--here`` for the oldest level and the best one that this processor has.  It needs
Numba, and a linker: that of Zig's package on PyPI (``ziglang``) where it is installed, which links for all machines,
else the system's ``ld``.  No compiler need be on the machine.  Modules of kernels are compiled side by side, one
process for each core.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from graphdb.storage.compile import layout, sources
from graphdb.storage.compile.entries import Entry, entries
from graphdb.storage.compile.library import LEVELS, levels

_NEEDED = {"libc.so.6": ("memcpy", "memmove", "memset"), "libm.so.6": ("log",)}
"""What the code calls that is not its own.  It names no versions: any C library of the system's has them."""

_TUNED = "-slow-3ops-lea,-false-deps-popcnt,-false-deps-lzcnt-tzcnt"
"""What LLVM believes of x86-64-v4 that no processor which counts bits in vectors has (Ice Lake, Zen 4 and later): slow
additions of three operands, and results of counting bits that wait for what was in their register.  Without: 1 to 4 %.
"""


def entries_of(module: str) -> list[Entry]:
    """Import a module of kernels, and return its entries."""
    importlib.import_module(module)
    return [found for found in entries.values() if found.function.__module__ == module]


def compile_module(module: str, machine: str, chosen: list[str]) -> list[tuple[str, bytes]]:
    """Return the object code of a module's entries, for each of some levels of a machine."""
    from graphdb.storage.compile.emit import lower, object_code

    _know_all_machines()
    found = entries_of(module)
    if not found:
        return []
    lowered = lower([(entry, "") for entry in found])
    return [(level, object_code(lowered, *_cpu(level), triple=_triple(machine))) for level in chosen]


def levels_of(machine: str, here: bool) -> list[str]:
    """Return the levels of a machine, or the oldest one and the best one that this processor has."""
    every = [*LEVELS[machine]]
    return [level for level in every if level in (*levels()[:1], every[-1])] if here else every


def _know_all_machines() -> None:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _cpu(level: str) -> tuple[str, str]:
    """Return what LLVM calls the processor of a level, and what that has besides."""
    match level:
        case "aarch64":
            return "generic", ""
        case "x86-64-v4":
            return level, f"+avx512vpopcntdq,{_TUNED}"
    return level, ""


def _triple(machine: str) -> str:
    return f"{machine}-unknown-linux-gnu"


def _manifest() -> str:
    """Return LLVM's language for the library's description of itself."""
    modules = sorted({source for module in sources.kernel_modules() for source in sources.sources(module)})
    text = json.dumps({"modules": modules, "stamp": sources.stamp(frozenset(modules)), "head": layout.HEAD})
    data = text.encode() + b"\0"
    content = "".join(f"\\{byte:02x}" for byte in data)
    return f'@graphdb_manifest = constant [{len(data)} x i8] c"{content}"'


def link(objects: list[Path], out: Path, machine: str) -> None:
    """Link objects into a shared library that needs the C library alone."""
    stubs = [_stub(library, functions, out.parent, machine) for library, functions in _NEEDED.items()]
    flags = ["--no-undefined", "--strip-all", "-z", "relro", "-z", "now", "-z", "noexecstack"]
    _run_linker([*flags, "-soname", out.name, "-o", str(out), *map(str, [*objects, *stubs])])


def _stub(library: str, functions: tuple[str, ...], folder: Path, machine: str) -> Path:
    """Return what stands for a library of the system while we link: its name, and those of its functions."""
    import llvmlite.binding as llvm

    from graphdb.storage.compile.emit import object_code

    text = "\n".join(f"define void @{function}() {{ ret void }}" for function in functions)
    code, stub = folder / f"{library}.o", folder / library
    code.write_bytes(object_code(llvm.parse_assembly(text), "generic", triple=_triple(machine)))
    _run_linker(["-soname", library, "-o", str(stub), str(code)])
    return stub


def _run_linker(arguments: list[str]) -> None:
    lld = find_spec("ziglang") is not None
    command = [*([sys.executable, "-m", "ziglang", "ld.lld"] if lld else ["ld"]), "-shared", *arguments]
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the linker failed:\n{done.stderr}")


def build(folder: Path, machine: str, chosen: list[str], workers: int) -> list[Path]:
    """Write the libraries of some levels of a machine into a folder, and return them."""
    import llvmlite.binding as llvm

    began = time.perf_counter()
    modules = sources.kernel_modules()
    modules.sort(key=sources.size, reverse=True)
    _know_all_machines()
    from graphdb.storage.compile.emit import object_code

    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        objects: dict[str, list[Path]] = {level: [] for level in chosen}

        def put(name: str, level: str, code: bytes) -> None:
            file = scratch / f"{name}-{level}.o"
            file.write_bytes(code)
            objects[level].append(file)

        manifest = llvm.parse_assembly(_manifest())
        for level in chosen:
            put("manifest", level, object_code(manifest, *_cpu(level), triple=_triple(machine)))
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            compile = partial(compile_module, machine=machine, chosen=chosen)
            for module, found in zip(modules, pool.map(compile, modules), strict=True):
                for level, code in found:
                    put(module, level, code)
        folder.mkdir(parents=True, exist_ok=True)
        libraries = []
        for level, files in objects.items():
            made = scratch / f"kernels-{level}.so"
            link(files, made, machine)
            libraries.append(folder / made.name)
            shutil.move(made, libraries[-1])
    size = sum(file.stat().st_size for file in libraries) / 1e6
    sys.stdout.write(f"{len(libraries)} libraries of kernels, {size:.1f} MB, in {time.perf_counter() - began:.0f} s\n")
    return libraries


def main() -> None:
    """Build from a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--machine", default=platform.machine(), choices=sorted(LEVELS))
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--here", action="store_true", help="the oldest level, and the best one of this processor")
    given = parser.parse_args()
    build(given.folder, given.machine, levels_of(given.machine, given.here), given.workers)


if __name__ == "__main__":
    main()
