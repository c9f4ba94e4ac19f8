"""Device code compiled as C++."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from graphdb.gpu.code.compiler import Cancel

COMPILER = shutil.which("g++") or shutil.which("clang++")
DYNAMIC_SHARED = 1 << 20
"""Bytes of shared memory that a kernel has whose launch says how much."""
TOGETHER = 8
"""Blocks that run at a time at most, each with shared memory of its own."""
_DYNAMIC = re.compile(r"extern __shared__ (\w+) (\w+)\[\];")
_FIXED = re.compile(r"(?<!extern )__shared__ (\w+) (\w+)((?:\[[^;\n]*\])?);")
_folder = Path(tempfile.gettempdir()) / f"graphdb-emulator-{Path.home().name}"


class Compiler:
    """Compiles device code as C++; what it gives for machine code is the path of the library."""

    def target(self, capability: int) -> str:
        return f"sm_{capability}"

    def compile(self, text: str, options: tuple[str, ...], target: str, cancel: Cancel | None = None) -> bytes:
        own = rf"static \1 \2_of[{TOGETHER}][{DYNAMIC_SHARED} / sizeof(\1)];\n"
        text = _DYNAMIC.sub(rf"{own}#define \2 \2_of[blockIdx.x % {TOGETHER}]", text)
        each = rf"static \1 \2_of[{TOGETHER}]\3; \1 (&\2)\3 = \2_of[blockIdx.x % {TOGETHER}];"
        text = _FIXED.sub(each, text)
        text = f'#include "{Path(__file__).with_name("device.hpp")}"\n' + text
        known = (text, *options, Path(__file__).with_name("device.hpp").read_text(), Path(__file__).read_text())
        key = hashlib.sha256("".join(known).encode())
        _folder.mkdir(exist_ok=True)
        library = _folder / f"{key.hexdigest()[:20]}.so"
        if not library.exists():
            with library.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # another process of the tests compiles the same: it is waited for
                if not library.exists():
                    _compile(text, options, library)
        return str(library).encode()


def _compile(text: str, options: tuple[str, ...], library: Path) -> None:
    with tempfile.TemporaryDirectory(dir=_folder) as folder:
        source, made = Path(folder) / "kernel.cpp", Path(folder) / "kernel.so"
        source.write_text(text)
        flags = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-fno-strict-aliasing", "-U_FORTIFY_SOURCE"]
        assert COMPILER is not None
        if COMPILER.endswith("g++"):  # a template's statics are shared memory: each module has its own
            flags.append("-fno-gnu-unique")
        subprocess.run([COMPILER, *flags, *options, str(source), "-o", str(made)], check=True)
        made.replace(library)


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
