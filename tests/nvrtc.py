"""NVRTC through ctypes: compiles kernels to machine code on machines without a device, a driver or CuPy."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import pytest

from graphdb.gpu.probe import probe
from tests.fuzz import FUZZ

WANTED = (75, 80, 86, 89, 90)
"""Architectures that the kernels are made for; what NVRTC knows beyond them is tried too."""


@cache
def library() -> Any:
    """The compiler; skips the test where there is none."""
    name = probe().nvrtc
    if name is None:
        pytest.skip("NVRTC is not here: pip install nvidia-cuda-nvrtc")
    return ctypes.CDLL(name)


def architectures() -> tuple[int, ...]:
    """The architectures to compile for, of those wanted that this NVRTC still knows and the newest that it knows.

    By default the oldest and the newest, which differ most; all in a long run (``GRAPHDB_FUZZ``).
    """
    nvrtc, count = library(), ctypes.c_int()
    assert nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)) == 0
    known = (ctypes.c_int * count.value)()
    assert nvrtc.nvrtcGetSupportedArchs(known) == 0
    found = sorted({*WANTED, max(known)} & set(known))
    return tuple(found) if FUZZ >= 1 else (found[0], found[-1])


def machine_code(text: str, options: tuple[str, ...], architecture: int) -> bytes:
    """Compile; fails with the compiler's own words."""
    nvrtc, program = library(), ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None) == 0
    flags = [option.encode() for option in (*options, f"--gpu-architecture=sm_{architecture}")]
    failed = nvrtc.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
    size = ctypes.c_size_t()
    if failed:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        pytest.fail(log.value.decode())
    assert nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0
    code = ctypes.create_string_buffer(size.value)
    assert nvrtc.nvrtcGetCUBIN(program, code) == 0
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw
