"""NVRTC as the build of a wheel and an open device call it, for tests: on machines without a device or CuPy, too."""

from __future__ import annotations

from functools import cache

import pytest

from graphdb.common.errors import DeviceError
from graphdb.gpu.code import compiler
from graphdb.gpu.code.archive import MACHINE_CODE
from tests.fuzz import FUZZ

QUICK, QUICK_SINCE = "--Ofast-compile=min", (12, 8)
"""An option of NVRTC, and the first version that knows it."""


@cache
def library() -> compiler.Compiler:
    """The compiler; skips the test where there is none."""
    name = compiler.find()
    if name is None:
        pytest.skip("NVRTC is not here: pip install nvidia-cuda-nvrtc")
    return compiler.Compiler(name)


def targets() -> tuple[str, ...]:
    """What to compile for: architectures of those of a wheel that this NVRTC still knows, and the newest that it knows.

    By default machine code for the oldest, whose limits are the smallest, and PTX for the newest, which differs most: all
    but the assembler, which takes half the time.  In a long run (``GRAPHDB_FUZZ``) machine code for all.
    """
    known = library().architectures
    found = sorted({*MACHINE_CODE["aarch64"], max(known)} & set(known))
    return tuple(f"sm_{each}" for each in found) if FUZZ >= 1 else (f"sm_{found[0]}", f"compute_{found[-1]}")


def compiled(text: str, options: tuple[str, ...], target: str) -> bytes:
    """Compile; fails with the compiler's own words.

    By default with few optimizations, in half the time: what wheels hold is compiled with all of them when they are built.
    """
    quick = (QUICK,) if FUZZ < 1 and library().version >= QUICK_SINCE else ()
    try:
        return library().compile(text, (*options, *quick), target)
    except DeviceError as error:
        pytest.fail(error.message)


def is_code(code: bytes, target: str) -> bool:
    """Whether this is what a target asks for: machine code, or PTX for a target that names no processor."""
    return (
        code.startswith(b"\x7fELF")
        if target.startswith("sm_")
        else b".target " + target.replace("compute", "sm").encode() in code
    )
