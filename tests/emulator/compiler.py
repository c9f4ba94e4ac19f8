"""Device code compiled as C++."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

from graphdb.gpu.code.compiler import Cancel
from graphdb.storage.compile.cache import Cache, objection
from tests.fuzz import FUZZ

COMPILER = shutil.which("g++") or shutil.which("clang++")
DYNAMIC_SHARED = 1 << 20
"""Bytes of shared memory that a kernel has whose launch says how much."""
OPTIMIZED = "-O1" if FUZZ >= 1 else "-O0"
"""A module's code is run for some milliseconds: compiling it with optimizations takes twice as long, and running it no less.

In a long run (``GRAPHDB_FUZZ``) what is compiled is what larger graphs need.
"""
TOGETHER = 8
"""Blocks that run at a time at most, each with shared memory of its own."""
_DYNAMIC = re.compile(r"extern __shared__ (\w+) (\w+)\[\];")
_FIXED = re.compile(r"(?<!extern )__shared__ (\w+) (\w+)((?:\[[^;\n]*\])?);")
_HEADER, _FIBERS = (Path(__file__).with_name(name) for name in ("device.hpp", "fibers.cpp"))
_folder = Cache("emulator", 0).folder()
"""Libraries by what they are made of, for all checkouts of the user."""
_MOST = 1024
"""So many libraries stay, those used last: one run of the tests makes some 300."""


class Compiler:
    """Compiles device code as C++; what it gives for machine code is the path of the library."""

    def target(self, capability: int) -> str:
        return f"sm_{capability}"

    def compile(self, text: str, options: tuple[str, ...], target: str, cancel: Cancel | None = None) -> bytes:
        own = rf"static \1 \2_of[{TOGETHER}][{DYNAMIC_SHARED} / sizeof(\1)];\n"
        text = _DYNAMIC.sub(rf"{own}#define \2 \2_of[blockIdx.x % {TOGETHER}]", text)
        each = rf"static \1 \2_of[{TOGETHER}]\3; \1 (&\2)\3 = \2_of[blockIdx.x % {TOGETHER}];"
        text = _FIXED.sub(each, text)
        text = f'#include "{_HEADER.name}"\n' + text
        fibers = _library(_FIBERS.read_text(), ("-O2",), ("-lc",))
        return str(_library(text, (OPTIMIZED, *options), ("-Wl,--no-as-needed", str(fibers), "-lgcc"))).encode()


def _library(text: str, options: tuple[str, ...], linked: tuple[str, ...]) -> Path:
    """Return the library of a text, which is compiled where it is not there."""
    assert objection(_folder) is None, f"{_folder}: {objection(_folder)}"
    known = (text, *options, *linked, _HEADER.read_text(), Path(__file__).read_text())
    library = _folder / f"{hashlib.sha256(''.join(known).encode()).hexdigest()[:20]}.so"
    if not library.exists():
        lock = library.with_suffix(".lock")
        with lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # another process of the tests compiles the same: it is waited for
            if not library.exists():
                _compile(text, options, linked, library)
                _drop_old()
            lock.unlink(missing_ok=True)
    os.utime(library)  # it was used
    return library


def _compile(text: str, options: tuple[str, ...], linked: tuple[str, ...], library: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "kernel.cpp", library.with_name(f".fresh-{os.getpid()}-{library.name}")
        source.write_text(text)
        # Device code raises nothing and calls no library: linking that of C++ takes a tenth of the time.
        flags = ["-std=c++17", "-w", "-shared", "-fPIC", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE", "-nostdlib"]
        flags += ["-fno-exceptions", "-fno-asynchronous-unwind-tables"]
        assert COMPILER is not None
        if COMPILER.endswith("g++"):  # a template's statics are shared memory: each module has its own
            flags.append("-fno-gnu-unique")
        command = [COMPILER, *flags, *options, f"-I{_HEADER.parent}", str(source), *linked, "-o", str(made)]
        subprocess.run(command, check=True)
        made.replace(library)


def _drop_old() -> None:
    """Drop the libraries that were used longest ago, where there are too many; other processes may do so meanwhile."""
    used: list[tuple[float, Path]] = []
    for library in _folder.glob("[!.]*.so"):
        with suppress(FileNotFoundError):
            used.append((library.stat().st_mtime, library))
    for _, library in sorted(used)[: max(0, len(used) - _MOST)]:
        library.unlink(missing_ok=True)


@contextmanager
def slow_compiler(kernel: str) -> Iterator[threading.Event]:
    """Modules with a kernel of that name are compiled only once the event is set: at the end, at the latest."""
    done, plain = threading.Event(), Compiler.compile

    def compile(compiler: Compiler, text: str, *arguments: Any) -> bytes:
        if f"{kernel}(" in text:
            done.wait()
        return plain(compiler, text, *arguments)

    with mock.patch.object(Compiler, "compile", compile):
        try:
            yield done
        finally:
            done.set()
