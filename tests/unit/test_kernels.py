"""The CUDA kernels: all known by name, and compiled to machine code for every architecture, without a device."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import graphdb.gpu.executor  # noqa: F401  (each strategy says what modules it has)
from graphdb.gpu.launch import OPTIONS, VARIANTS, defines, source
from tests import nvrtc

FOLDER = Path(__file__).resolve().parents[2] / "gpu" / "kernels"


def test_every_module_says_how_it_is_compiled() -> None:
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(VARIANTS)


def test_a_header_is_included_once() -> None:
    text = source("join")
    assert text.count("struct Partition {") == 1
    assert not re.search(r"^#include", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_kernels_compile_for_every_architecture(name: str) -> None:
    for architecture in nvrtc.architectures():
        for macros in VARIANTS[name]:
            assert nvrtc.machine_code(source(name), (*OPTIONS, *defines(macros)), architecture).startswith(b"\x7fELF")


def test_a_broken_kernel_is_told() -> None:
    nvrtc.library()
    with pytest.raises(pytest.fail.Exception, match="this_is_no_type"):
        nvrtc.machine_code('extern "C" __global__ void k(this_is_no_type x) {}', OPTIONS, 90)
