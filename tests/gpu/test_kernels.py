"""The CUDA kernels: all known by name, and compiled for every architecture, without a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest

import graphdb.gpu.executor  # noqa: F401  (each strategy says what modules it has)
from graphdb.gpu.card import Limits
from graphdb.gpu.code import layout
from graphdb.gpu.code.launch import SAMPLES, VARIANTS, defines, source
from graphdb.gpu.counting.code_generation import generate_code
from graphdb.gpu.search.code_generation import search_text
from graphdb.incremental.device.layout import LISTS
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.pcsr import PARTITION
from graphdb.storage.graph.pcsr_kernels import PARTITION_BYTES
from tests import nvrtc
from tests.gpu.patterns import PATTERNS, graph_of, pattern_of

Counting = Literal["auto", "always", "never"]

FOLDER = Path(__file__).resolve().parents[2] / "gpu" / "kernels"


def test_every_module_says_how_it_is_compiled() -> None:
    names = [path.name for path in FOLDER.rglob("*.cu*")]
    assert len(names) == len(set(names))
    assert {name.removesuffix(".cu") for name in names if name.endswith(".cu")} == set(VARIANTS)


def test_a_header_is_included_once() -> None:
    text = source("join")
    assert text.count("struct Partition {") == 1
    assert not re.search(r"^#include", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(VARIANTS))
def test_kernels_compile_for_every_architecture(name: str) -> None:
    for macros in (*VARIANTS[name], *SAMPLES.get(name, ())):
        plan = PLANS[name](macros) if name in PLANS else ""
        for target in nvrtc.targets():
            options = defines({**macros, "CHECK_OFFSETS": 1})
            assert nvrtc.is_code(nvrtc.compiled(source(name, plan), options, target), target)


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
    return generate_code(part, relations, [40] * len(relations), [0.0] * len(relations), [], 41, False, Limits()).text


PLANS: dict[str, Callable[[Mapping[str, str]], str]] = {"search": _searched, "count_nested": _counted}
"""Of the modules that are written per plan: a plan's text."""


STRUCTURES = {
    "search": layout.RUN,
    "refine": layout.VERTEX,
    "join": PARTITION,
    "count_weights": layout.RANKED,
    "delta_lists": LISTS,
}
"""Of some modules: the members of a structure that Python fills."""


def test_every_layout_is_included() -> None:
    kernels = "".join(path.read_text() for path in FOLDER.rglob("*.cu*"))
    assert {name for name in layout.HEADERS if f'#include "{name}"' not in kernels} == set()


@pytest.mark.parametrize("name", sorted(STRUCTURES))
def test_a_structure_that_differs_from_its_table_does_not_compile(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two members change places in what Python says, in each pair of neighbours: the kernel's assertions see it."""
    nvrtc.library()
    members = STRUCTURES[name]
    header, text = next((file, text) for file, text in layout.HEADERS.items() if f", {members[1]}) ==" in text)
    for one, other in pairwise(members):
        swapped = re.sub(rf", ({one}|{other})\)", lambda found, a=one, b=other: f", {b if found[1] == a else a})", text)
        assert swapped != text
        monkeypatch.setitem(layout.HEADERS, header, swapped)
        macros = VARIANTS[name][0]
        written = source.__wrapped__(name, PLANS[name](macros) if name in PLANS else "")
        with pytest.raises(pytest.fail.Exception, match=r"is not as gpu/code/layout\.py says"):
            nvrtc.compiled(written, defines({**macros, "CHECK_OFFSETS": 1}), "compute_90")


def test_rows_of_partitions_are_as_long_on_the_host() -> None:
    assert len(PARTITION) * 8 == PARTITION_BYTES


def test_a_broken_kernel_does_not_compile() -> None:
    nvrtc.library()
    with pytest.raises(pytest.fail.Exception, match="this_is_no_type"):
        nvrtc.compiled('extern "C" __global__ void k(this_is_no_type x) {}', (), "compute_90")
