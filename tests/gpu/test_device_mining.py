"""Mining on a device, real or emulated: the numbers that NetworkX, brute force and the host have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import combinations
from typing import Any
from unittest import mock

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import graphdb
from graphdb.execute import devices
from graphdb.execute.choose import ChoosingExecutor
from graphdb.execute.host import HostExecutor
from graphdb.mining import Limits, MiningGraph
from graphdb.mining.cliques import cliques
from graphdb.mining.motifs import joint_count, known_motifs, motifs
from graphdb.plan.executor import OutOfRange
from tests import emulator
from tests.fuzz import FUZZ, scaled
from tests.gpu.executors import WHERE
from tests.gpu.test_several_devices import machine_of
from tests.mining import brute


@pytest.fixture(params=WHERE)
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A device's executor; what a run leaves in its memory are copies in the cache."""
    with ExitStack() as stack:
        if request.param == "emulated":
            stack.enter_context(emulator.installed())
        from graphdb.gpu.executor import GpuExecutor

        executor = GpuExecutor(0, memory_limit=1 << 28)
        yield executor
        executor._counter.wait_for_all()  # threads that compile know this emulator only
        if request.param == "emulated":
            assert not executor.device.memory.pool.faults


def skewed(vertices: int, edges: int, seed: int) -> MiningGraph:
    """A random graph with some hubs."""
    random = np.random.default_rng(seed)
    return MiningGraph.of(random.integers(0, vertices, edges), (random.random(edges) ** 2 * vertices).astype(np.int64))


def is_real(device: Any) -> bool:
    """Whether it is no emulator."""
    return not device.device.name.startswith("emulated")


def most(device: Any) -> int:
    """The size of motifs: those of five vertices are 22 kernels, which take the emulator's compiler half a minute."""
    return 5 if is_real(device) or FUZZ >= 1 else 4


@pytest.mark.parametrize("seed", range(scaled(6)))
def test_cliques(device: Any, seed: int) -> None:
    random = np.random.default_rng(seed)
    vertices = int(random.integers(12, 60))
    ends = np.argwhere(np.triu(random.random((vertices, vertices)) < random.choice([0.2, 0.5]), 1))
    clique = np.array(list(combinations(random.permutation(vertices)[:10], 2)))
    graph = MiningGraph.of(*np.concatenate([ends, clique]).T)
    plain = nx.Graph(np.stack([graph.source, graph.target], axis=1).tolist())
    sizes = [len(found) for found in nx.enumerate_all_cliques(plain) if len(found) <= 8]
    found = cliques(graph, limits=Limits(executor=device))
    assert {each.size: each.count for each in found} == {k: sizes.count(k) for k in range(3, 9)}


def test_cliques_that_have_no_kernel(device: Any) -> None:
    """More vertices than a block has bits for: the host counts, nothing is found one by one."""
    from graphdb.gpu.counting import clique_counter

    graph = skewed(60, 500, 1)
    wanted = cliques(graph, 3, 5, limits=Limits(threads=1))
    with (
        mock.patch.object(clique_counter, "shape_for", return_value=None),
        mock.patch.object(type(device), "count", side_effect=AssertionError("asked")),
    ):
        assert cliques(graph, 3, 5, limits=Limits(executor=device)) == wanted
    assert wanted


@pytest.mark.parametrize("seed", range(scaled(3)))
def test_motifs(device: Any, seed: int) -> None:
    graph = skewed(9, 26, seed)
    for size in range(3, most(device) + 1):
        found = motifs(graph, size, Limits(executor=device))
        shapes = {brute.least(dict.fromkeys(range(size), 0), m.pattern.edges, False): m.count for m in found}
        wanted = brute.induced(graph, size, [0] * len(graph))
        assert {shape: count for shape, count in shapes.items() if count} == wanted


def test_directed_motifs_of_three(device: Any) -> None:
    graph = brute.random_graph(np.random.default_rng(3), 8, 24, directed=True)
    plain = MiningGraph.of(graph.source, graph.target, directed=True)
    found = motifs(graph, 3, Limits(executor=device))
    shapes = {brute.least(dict.fromkeys(range(3), 0), m.pattern.edges, True): m.count for m in found}
    assert {shape: count for shape, count in shapes.items() if count} == brute.induced(plain, 3, [0] * len(plain))


def test_what_patterns_share_is_counted_once(device: Any) -> None:
    """All patterns of a size are one run: fewer sums than the patterns have one by one, each launched once."""
    graph, size = skewed(40, 200, 1), most(device)
    joint = joint_count(graph, known_motifs(size, False).patterns)
    alone = sum(len({part for term in plan.counting.terms for part in term.parts}) for plan in joint.plans)  # type: ignore[union-attr]
    assert len(joint.parts) < alone / (2 if size == 5 else 1)
    from graphdb.gpu.code.launch import Module

    launched: list[str] = []
    plain = Module.launch

    def launch(module: Any, kernel: str, *arguments: Any, **more: Any) -> None:
        launched.append(kernel)
        plain(module, kernel, *arguments, **more)

    counts = device.count_jointly(joint)
    with mock.patch.object(Module, "launch", launch):
        assert device.count_jointly(joint) == counts == HostExecutor(1).count_jointly(joint)
    loops = sum(1 for part in joint.parts if part.levels or part.clique)
    assert sum(kernel in ("nested", "cliques", "books") for kernel in launched) == loops


def test_sums_that_do_not_fit(device: Any) -> None:
    """Where a sum may not fit 64 bits, the host counts; here every sum is taken for one of these."""
    from graphdb.gpu.counting import run

    rays = 60
    graph = MiningGraph.of(np.zeros(rays, np.int64), np.arange(1, rays + 1))
    with mock.patch.object(run, "EXACT", 1.0):
        with pytest.raises(OutOfRange):
            device.count_jointly(joint_count(graph, known_motifs(4, False).patterns))
        found = motifs(graph, 4, Limits(executor=device))
    assert {each.count for each in found} == {0, rays * (rays - 1) * (rays - 2) // 6}


def test_counts_of_more_than_64_bits(device: Any) -> None:
    """A star of 50,000 rays has more homomorphisms of one with four rays than 64 bits hold: the host's are exact."""
    if not is_real(device):
        pytest.skip("takes the emulator seconds")
    rays = 50_000
    graph = MiningGraph.of(np.zeros(rays, np.int64), np.arange(1, rays + 1))
    star = tuple(pattern for pattern in known_motifs(5, False).patterns if len(pattern.edges) == 4)[2:3]
    assert star[0].text() == "(a)--(b), (a)--(c), (a)--(d), (a)--(e)"
    joint = joint_count(graph, star)
    with pytest.raises(OutOfRange):
        device.count_jointly(joint)
    assert HostExecutor(1).count_jointly(joint) == [rays * (rays - 1) * (rays - 2) * (rays - 3)]


def test_the_faster_is_chosen(device: Any) -> None:
    """The host counts what is small; what it would count for long goes to the device, and comes out the same."""
    from graphdb.execute import choose, host_costs

    opened: list[int] = []

    def opens() -> Any:
        opened.append(1)
        return device

    chooser = ChoosingExecutor(HostExecutor(1), opens)
    small, large = skewed(20, 60, 0), skewed(200, 2000, 0)
    motifs(small, 4, Limits(executor=chooser))
    assert not opened
    with mock.patch.object(host_costs, "HOST_RATE", 1e3), mock.patch.object(choose, "OPENING", 0.0):
        joint = joint_count(large, known_motifs(4, False).patterns)
        assert chooser.describe_jointly(joint).startswith("cuda:0 by sums; expected: cpu")
        found = motifs(large, 4, Limits(executor=chooser))
    assert opened
    assert [each.count for each in found] == [each.count for each in motifs(large, 4, Limits(threads=1))]


@pytest.mark.parametrize("where", WHERE)
def test_statements(where: str) -> None:
    """``MINE`` runs where the database does, and says so."""
    ends = np.argwhere(np.triu(np.random.default_rng(2).random((30, 30)) < 0.4, 1))
    table = graphdb.Table(pa.table({":START_ID": ends[:, 0], ":END_ID": ends[:, 1]}), type="E")
    texts = ("MINE CLIQUES OF SIZE 3..8", "MINE MOTIFS OF SIZE 4", "MINE MOTIFS OF SIZE 4 DIRECTED")
    with ExitStack() as stack:
        if where == "emulated":
            stack.enter_context(emulator.installed())
            stack.enter_context(mock.patch.object(devices, "probe", return_value=machine_of(1)))
        rows = {}
        for device in ("cpu", "cuda:0"):
            with graphdb.connect(device=device) as db:
                db.load([table])
                rows[device] = [[row[:2] for row in db.query(text)] for text in texts]
                told = [db.explain(text) for text in texts]
                assert ["on cpu" in each for each in told] == [device == "cpu", device == "cpu", True]
                assert "by sums" in told[1] or device == "cpu"
                profile = db.query(f"PROFILE {texts[0]}").text()
                assert device in profile
                assert ("bytes copied to the device" in profile) == (device != "cpu")
                if device != "cpu":
                    executor: Any = db._lazy_statements.queries.executor  # type: ignore[union-attr]
                    executor._counter.wait_for_all()
    assert rows["cpu"] == rows["cuda:0"]
