"""Smaller cards than the one that code was tuned on, emulated: less shared memory, little memory, a slow link, a display.

Counts are the host's on all of them; no launch asks for more than the card has; plans differ where limits do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from graphdb.gpu.card import TYPICAL, Limits
from graphdb.gpu.counting.cliques import SIZES, shape_of
from graphdb.gpu.counting.code_generation import GeneratedCode, generate_code
from graphdb.gpu.counting.registers import Unsupported
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from tests import emulator
from tests.gpu.executors import EMULATED
from tests.gpu.patterns import HOST, PATTERNS, counted, graph_of, pattern_of

LIMITS = {card: Limits.of(properties) for card, properties in emulator.CARDS.items()}
SIZES_OF_GRAPHS = (1_000, 12_000, 20_000, 40_000, 100_000, 300_000, 600_000, 1_000_000, 1_800_000, 4_000_000)
SMALLER = [card for card in LIMITS if card != "H200"]


@pytest.fixture(params=SMALLER)
def executor(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A smaller card's executor, with 64 MB to work in."""
    with emulator.installed(1 << 26, card=request.param):
        from graphdb.gpu.executor import GpuExecutor

        found = GpuExecutor(0)
        yield found
        found._counter.wait_for_all()  # threads that compile know this emulator only


@EMULATED
@pytest.mark.parametrize("name", ["diamond", "4-wheel", "5-clique minus an edge"])
def test_sums_are_right(executor: Any, name: str) -> None:
    graph, label = graph_of(40, 160, 1)
    assert counted(pattern_of(PATTERNS[name], label), graph, executor)


@EMULATED
@pytest.mark.parametrize("hint", ["auto", "join", "search", "sums"])
def test_every_strategy_is_right(executor: Any, hint: str) -> None:
    graph, label = graph_of(30, 140, 3)
    executor.hint = hint
    plan = make_plan(pattern_of(PATTERNS["4-wheel"], label), graph, counting="always")
    assert executor.count(plan) == HOST.count(make_plan(pattern_of(PATTERNS["4-wheel"], label), graph)) > 0
    rows = make_plan(replace(pattern_of(PATTERNS["diamond"], label), count_only=False, outputs=("v0", "v3")), graph)
    assert sum(block.count for block in executor.run(rows)) == sum(block.count for block in HOST.run(rows)) > 0


@EMULATED
def test_a_display_is_not_kept_waiting(executor: Any) -> None:
    """One launch of a search, or of sums that take long, would be ended by the watchdog: the join has short ones."""
    graph, label = graph_of(30, 140, 3)
    plan = make_plan(pattern_of(PATTERNS["4-wheel"], label), graph, counting="always")
    assert plan.counting is not None
    shown = executor.device.limits.launch_seconds < math.inf
    long = replace(plan, counting=replace(plan.counting, cost=1e12), cost=1e13)
    assert executor.describe(long).startswith("cuda:0 by join" if shown else "cuda:0 by sums")
    assert executor.describe(plan).startswith("cuda:0")
    executor.hint = "search"
    assert executor.describe(plan).startswith("cuda:0 by join" if shown else "cuda:0 by search")


@EMULATED
@pytest.mark.parametrize("hint", ["auto", "search", "sums"])
@pytest.mark.parametrize("name", ["4-wheel", "triangle"])
def test_a_launch_that_is_refused_leaves_the_device(hint: str, name: str) -> None:
    """A kernel that asks for more than there is, whoever's fault that is: the matches are found another way."""
    graph, label = graph_of(30, 140, 3)
    edges = {**PATTERNS, "triangle": ((0, 1), (0, 2), (1, 2))}[name]
    plan = make_plan(pattern_of(edges, label), graph, counting="auto" if name == "triangle" else "always")
    rows = make_plan(replace(pattern_of(edges, label), count_only=False, outputs=("v0", "v2")), graph)
    with emulator.installed(1 << 26) as machine:
        from graphdb.gpu.executor import GpuExecutor

        machine.shared = 0  # less than its driver states
        executor = GpuExecutor(0, hint=hint)  # type: ignore[arg-type]
        for _ in range(3):
            assert executor.count(plan) == HOST.count(plan)
            assert sum(block.count for block in executor.run(rows)) == sum(block.count for block in HOST.run(rows))
        if hint != "auto":  # there, sums may not have been tried yet
            assert executor.describe(plan).startswith("cuda:0 by join")
        assert not executor.device.memory.pool.faults
        executor._counter.wait_for_all()


@EMULATED
def test_a_slow_link_keeps_queries_on_the_host(executor: Any) -> None:
    from graphdb.execute.choose import ChoosingExecutor
    from graphdb.execute.host import HostExecutor

    graph, label = graph_of(30, 140, 3)
    plan = replace(make_plan(pattern_of(PATTERNS["4-wheel"], label), graph, counting="never"), cost=1e7)
    choosing = ChoosingExecutor(HostExecutor(1), lambda: executor)
    choosing._opened()
    assert choosing.describe(plan).startswith("cuda:0")
    executor.device.rates = replace(TYPICAL, upload=1e3)
    assert choosing.describe(plan).startswith("cpu")
    executor.device.rates = replace(TYPICAL, intersected=1e7)
    assert choosing.describe(plan).startswith("cpu")


def kernels(card: str) -> Iterator[tuple[str, int, GeneratedCode | None]]:
    """The kernels of some patterns over graphs of growing size; None where a card has too little for one."""
    graph, label = graph_of(40, 160, 1)
    for name, edges in PATTERNS.items():
        plan: PhysicalPlan = make_plan(pattern_of(edges, label), graph, counting="always")
        assert plan.counting is not None
        relations = {relation: number for number, relation in enumerate(plan.counting.partitions)}
        parts = dict.fromkeys(part for term in plan.counting.terms for part in term.parts)
        for number, part in enumerate(part for part in parts if part.levels and not part.weights):
            for vertices in SIZES_OF_GRAPHS:
                degrees = [vertices // 50] * len(relations)
                try:
                    made = generate_code(
                        part, relations, degrees, [0.0] * len(degrees), [], vertices, False, LIMITS[card]
                    )
                except Unsupported:
                    made = None
                yield f"{name} {number}", vertices, made


@pytest.mark.parametrize("card", LIMITS)
def test_kernels_take_no_more_than_a_card_has(card: str) -> None:
    made = list(kernels(card))
    assert sum(kernel is not None for _, _, kernel in made) > len(made) / 3
    assert all(kernel.shared <= LIMITS[card].shared for _, _, kernel in made if kernel is not None)
    assert all(kernel.threads % 32 == 0 and 32 <= kernel.threads <= 1024 for _, _, kernel in made if kernel)


def test_smaller_cards_have_other_plans() -> None:
    """What lies in shared memory on a large card lies in scratch memory on a small one, or is left to others."""

    def summed(card: str) -> list[tuple[int, int, int] | None]:
        return [kernel and (kernel.threads, kernel.shared, kernel.scratch) for _, _, kernel in kernels(card)]

    forms = {card: summed(card) for card in LIMITS}
    for larger, smaller in (("H200", "A100"), ("A100", "RTX 4090"), ("RTX 4090", "T4")):
        assert forms[larger] != forms[smaller]
        for mine, other in zip(forms[smaller], forms[larger], strict=True):
            assert mine is None or other is not None, "a small card has a kernel that a large one lacks"


@pytest.mark.parametrize("card", LIMITS)
def test_cliques_take_no_more_than_a_card_has(card: str) -> None:
    shapes = [
        shape_of(size, ranks, longest, LIMITS[card])
        for size in SIZES
        for ranks in SIZES_OF_GRAPHS
        for longest in (1, 40, 100, 300, 800, 2_000)
    ]
    assert all(shape.shared <= LIMITS[card].shared for shape in shapes if shape is not None)
    assert {shape.team for shape in shapes if shape is not None} == {"Warp", "Block"}
    assert None in shapes
