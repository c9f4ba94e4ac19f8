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


def architectures() -> tuple[int, ...]:
    """The architectures to compile for, of those of a wheel that this NVRTC still knows and the newest that it knows.

    By default the oldest and the newest, which differ most; all in a long run (``GRAPHDB_FUZZ``).
    """
    known = library().architectures
    found = sorted({*MACHINE_CODE["aarch64"], max(known)} & set(known))
    return tuple(found) if FUZZ >= 1 else (found[0], found[-1])


def machine_code(text: str, options: tuple[str, ...], architecture: int) -> bytes:
    """Compile; fails with the compiler's own words.

    By default with few optimizations, in half the time: what wheels hold is compiled with all of them when they are built.
    """
    quick = (QUICK,) if FUZZ < 1 and library().version >= QUICK_SINCE else ()
    try:
        return library().compile(text, (*options, *quick), f"sm_{architecture}")
    except DeviceError as error:
        pytest.fail(error.message)
