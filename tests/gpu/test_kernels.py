"""The CUDA kernels: all known by name, and compiled to machine code for every architecture, without a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import pytest

import graphdb.gpu.executor  # noqa: F401  (each strategy says what modules it has)
from graphdb.gpu.counting.code_generation import specialise
from graphdb.gpu.launch import OPTIONS, VARIANTS, defines, source
from graphdb.gpu.search.code_generation import search_text
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from tests import nvrtc
from tests.gpu.test_device_counts import PATTERNS, graph_of, pattern_of

Counting = Literal["auto", "always", "never"]

FOLDER = Path(__file__).resolve().parents[2] / "gpu" / "kernels"


def test_every_module_says_how_it_is_compiled() -> None:
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(VARIANTS)


def test_a_header_is_included_once() -> None:
    text = source("join")
    assert text.count("struct Partition {") == 1
    assert not re.search(r"^#include", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_kernels_compile_for_every_architecture(name: str) -> None:
    for macros in VARIANTS[name]:
        plan = PLANS[name](macros) if name in PLANS else ""
        for architecture in nvrtc.architectures():
            code = nvrtc.machine_code(source(name, plan), (*OPTIONS, *defines(macros)), architecture)
            assert code.startswith(b"\x7fELF")


def _wheel(counting: Counting) -> PhysicalPlan:
    graph, label = graph_of(40, 160, 1)
    return make_plan(pattern_of(PATTERNS["4-wheel"], label), graph, counting=counting)


def _searched(macros: Mapping[str, str]) -> str:
    plan, steal = _wheel("never"), "STEAL" in macros
    text = search_text(plan, True, plan.program.second, depth=2, steal=steal)
    assert text.levels == int(macros.get("LEVELS", "0"))
    return text.plan


def _counted(macros: Mapping[str, str]) -> str:
    counting = _wheel("always").counting
    assert counting is not None
    part = next(part for term in counting.terms for part in term.parts if len(part.levels) > 1)
    relations = {relation: number for number, relation in enumerate(counting.partitions)}
    return specialise(part, relations, [40] * len(relations), [], 41, False).text


PLANS: dict[str, Callable[[Mapping[str, str]], str]] = {"search": _searched, "count_nested": _counted}
"""Of the modules that are written per plan: a plan's text."""


def test_a_broken_kernel_is_told() -> None:
    nvrtc.library()
    with pytest.raises(pytest.fail.Exception, match="this_is_no_type"):
        nvrtc.machine_code('extern "C" __global__ void k(this_is_no_type x) {}', OPTIONS, 90)
