"""Frequent patterns with domains found on a device, real or emulated: those of brute force, and of the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.common.errors import DeviceError, MemoryLimitError, QueryTimeout
from graphdb.execute import choose, host_costs, multi
from graphdb.execute.choose import ChoosingExecutor
from graphdb.execute.host import HostExecutor
from graphdb.execute.multi import MultiExecutor
from graphdb.mining import Limits, MiningGraph
from graphdb.mining.frequent import Frequent, frequent_patterns
from graphdb.plan.domains import Candidates
from graphdb.plan.executor import Control
from tests import emulator
from tests.fuzz import scaled
from tests.gpu.executors import EMULATED, WHERE
from tests.mining import brute
from tests.mining.test_frequent import by_brute_force, labels_of, shape_of


@pytest.fixture(scope="module", params=WHERE)
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A device's executor; emulated blocks have few threads, as each is a fiber."""
    from graphdb.gpu.mining import domains

    with ExitStack() as stack:
        if request.param == "emulated":
            stack.enter_context(emulator.installed())
            stack.enter_context(mock.patch.dict(domains.DeviceDomains.__init__.__kwdefaults__, threads=64))
        from graphdb.gpu.executor import GpuExecutor

        executor = GpuExecutor(0, memory_limit=1 << 26)
        yield executor
        if request.param == "emulated":
            assert not executor.device.memory.pool.faults


def random_graph(seed: int, directed: bool) -> MiningGraph:
    """Labels of vertices and edges; several labels of a vertex, or none; edges in both directions, parallel ones."""
    random = np.random.default_rng(seed)
    vertices = int(random.integers(4, 8))
    ends = random.integers(0, vertices, (2, int(random.integers(3, 13))))
    kinds = random.integers(0, random.integers(1, 3), ends.shape[1])
    own = np.argwhere(random.random((vertices, 2)) < 0.5)
    return MiningGraph.of(*ends, kinds, directed=directed, vertex_labels=(own[:, 0], own[:, 1]))


def plainly(found: list[Frequent]) -> list[tuple[Any, ...]]:
    return [(each.pattern, each.support) for each in found]


def check_examples(graph: MiningGraph, found: list[Frequent]) -> None:
    """Each example is an embedding of its pattern."""
    labels, edges = labels_of(graph), set(brute.edges_of(graph))
    for each in found:
        inside = np.searchsorted(graph.ids, each.example).tolist()
        assert len(set(inside)) == len(each.pattern)
        for place, label in enumerate(each.pattern.labels):
            assert int(graph.vertex_labels[label]) in labels[inside[place]]
        for a, b, kind in each.pattern.edges:
            edge = (inside[a], inside[b], kind)
            assert edge in edges or (not graph.directed and (inside[b], inside[a], kind) in edges)


@settings(max_examples=scaled(30), deadline=None)
@given(seed=st.integers(0, 1 << 30), directed=st.booleans(), support=st.integers(1, 3))
def test_random_graphs(device: Any, seed: int, directed: bool, support: int) -> None:
    graph = random_graph(seed, directed)
    found = frequent_patterns(graph, support, 3, limits=Limits(executor=device))
    shapes = {shape_of(graph, each): each.support for each in found}
    assert len(shapes) == len(found), "each once"
    assert shapes == {shape: least for shape, (least, _) in by_brute_force(graph, support, 3).items()}
    check_examples(graph, found)
    if graph.edges:
        assert found == frequent_patterns(graph, support, 3, limits=Limits(executor=device)), "the same every time"


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("edges", [4, 5])
def test_larger_patterns(device: Any, directed: bool, edges: int) -> None:
    """As the host finds them; places that automorphisms exchange, cycles, and vertices with many neighbours."""
    graph = brute.random_graph(np.random.default_rng(edges), 60, 130, directed=directed, edge_labels=2, labels=2)
    support = 5 if directed else 10
    wanted = frequent_patterns(graph, support, edges, limits=Limits(threads=1))
    found = frequent_patterns(graph, support, edges, limits=Limits(executor=device))
    assert plainly(found) == plainly(wanted)
    assert len(wanted) > 30
    check_examples(graph, found)


def small_and_large(device: Any, patched: dict[str, int]) -> tuple[Any, list[Frequent]]:
    """Mine with sizes of the module patched: what found the domains, and the patterns."""
    from graphdb.gpu.mining import domains

    graph = brute.random_graph(np.random.default_rng(1), 200, 500, directed=True, edge_labels=2, labels=2)
    made: list[Any] = []
    plain = type(device).domain_search

    def noted(*arguments: Any) -> Any:
        made.append(plain(*arguments))
        return made[-1]

    with mock.patch.multiple(domains, **patched), mock.patch.object(type(device), "domain_search", noted):
        found = frequent_patterns(graph, 20, 3, limits=Limits(executor=device))
    wanted = frequent_patterns(graph, 20, 3, limits=Limits(threads=1))
    assert plainly(found) == plainly(wanted)
    assert len(wanted) > 40
    check_examples(graph, found)
    return made[-1], found


@pytest.mark.parametrize("patched", [{"_PIECE": 3}, {"SHARED": 0}, {"_PIECE": 1, "SHARED": 0}], ids=str)
def test_in_pieces(device: Any, patched: dict[str, int]) -> None:
    """Few patterns at a time, and rows of bits in the device's memory where they do not fit that of a block."""
    search, _ = small_and_large(device, patched)
    assert search.spilled == 0


def test_domains_in_host_memory(device: Any) -> None:
    """Domains that do not fit half of the budget go to host memory, from which kernels read them."""
    from graphdb.gpu.mining import domains

    search, _ = small_and_large(device, {"ON_DEVICE": 0})
    assert search.spilled > 0
    graph = brute.random_graph(np.random.default_rng(1), 200, 500, directed=True, edge_labels=2, labels=2)
    plain = type(device).domain_search

    def limited(self: Any, lists: Any, scanned: float, control: Control, host_memory: int | None) -> Any:
        return plain(self, lists, scanned, control, 100)

    with (
        mock.patch.object(domains, "ON_DEVICE", 0),
        mock.patch.object(type(device), "domain_search", limited),
        pytest.raises(MemoryLimitError, match="bytes of host memory"),
    ):
        frequent_patterns(graph, 20, 3, limits=Limits(executor=device))
    assert len(frequent_patterns(graph, 20, 3, limits=Limits(executor=device))) > 40, "usable as before"


@pytest.mark.skipif(emulator.COMPILER is None, reason="no C++ compiler to emulate the device with")
def test_graphs_larger_than_the_device() -> None:
    """Lists that are read most stand on the device, the others in host memory; what fits not even so, the host finds."""
    graph = brute.random_graph(np.random.default_rng(2), 150, 3000, directed=True, edge_labels=2, labels=2)
    wanted = plainly(frequent_patterns(graph, 60, 2, limits=Limits(threads=1)))
    assert len(wanted) > 10
    with emulator.installed():
        from graphdb.gpu.executor import GpuExecutor

        limits = Limits(executor=GpuExecutor(0, memory_limit=30 << 10))
        assert plainly(frequent_patterns(graph, 60, 2, limits=limits)) == wanted
        assert "of the reads from host memory" in limits.notes[0]
        limits = Limits(executor=GpuExecutor(0, memory_limit=1 << 10))
        assert plainly(frequent_patterns(graph, 60, 2, limits=limits)) == wanted
        assert not limits.notes


def test_deadlines_hold(device: Any) -> None:
    graph = brute.random_graph(np.random.default_rng(3), 200, 2000, directed=True, edge_labels=2)
    with pytest.raises(QueryTimeout):
        frequent_patterns(graph, 2, 4, limits=Limits(executor=device, control=Control(timeout=0.002)))
    assert frequent_patterns(graph, 150, 1, limits=Limits(executor=device))


def test_the_faster_is_chosen(device: Any) -> None:
    chooser = ChoosingExecutor(HostExecutor(1), lambda: device)
    graph = brute.random_graph(np.random.default_rng(4), 60, 130, directed=False)
    with mock.patch.object(type(device), "domain_search", side_effect=AssertionError("asked")):
        small = frequent_patterns(graph, 5, 2, limits=Limits(executor=chooser))
    with mock.patch.object(host_costs, "HOST_RATE", 1e3), mock.patch.object(choose, "OPENING", 0.0):
        found = frequent_patterns(graph, 5, 2, limits=Limits(executor=chooser))
    assert plainly(found) == plainly(small)


def test_a_device_that_fails(device: Any) -> None:
    """Where the choice is ours, the host takes over; where the device is asked for, its error is reported."""
    from graphdb.gpu.mining.domains import DeviceDomains

    graph = brute.random_graph(np.random.default_rng(4), 60, 130, directed=False)
    wanted = frequent_patterns(graph, 5, 2)
    chooser = ChoosingExecutor(HostExecutor(1), lambda: device)
    with mock.patch.object(DeviceDomains, "find", side_effect=DeviceError("broken")):
        with mock.patch.object(host_costs, "HOST_RATE", 1e3), mock.patch.object(choose, "OPENING", 0.0):
            assert frequent_patterns(graph, 5, 2, limits=Limits(executor=chooser)) == wanted
        with pytest.raises(DeviceError, match="broken"):
            frequent_patterns(graph, 5, 2, limits=Limits(executor=device))


@EMULATED
@pytest.mark.parametrize("failing", [None, 0, 1])
def test_several_devices(failing: int | None) -> None:
    """Each looks at some of the patterns of every level; one that is lost in the second leaves them to the other."""
    from graphdb.gpu.mining import domains

    graph = brute.random_graph(np.random.default_rng(3), 80, 170, directed=True, edge_labels=2, labels=2)
    wanted = frequent_patterns(graph, 8, 3, limits=Limits(threads=1))
    plain, looked = domains.DeviceDomains.find, Counter[str]()

    def find(self: Any, candidates: Candidates, *arguments: Any) -> Any:
        looked[self.name] += 1
        if self.name == f"cuda:{failing}" and looked[self.name] == 2:
            raise DeviceError("lost")
        return plain(self, candidates, *arguments)

    few = mock.patch.dict(domains.DeviceDomains.__init__.__kwdefaults__, threads=64)
    with emulator.installed(devices=2), few, mock.patch.object(domains.DeviceDomains, "find", find):
        from graphdb.gpu.executor import GpuExecutor

        several = MultiExecutor([GpuExecutor(number, memory_limit=1 << 26) for number in range(2)])
        if failing is None:
            assert plainly(frequent_patterns(graph, 8, 3, limits=Limits(executor=several))) == plainly(wanted)
            assert looked == {"cuda:0": 3}, "little work is not divided"
            looked.clear()
        with mock.patch.object(multi, "MINED_ALONE", 0):
            found = frequent_patterns(graph, 8, 3, limits=Limits(executor=several))
        assert several.name == ("cuda:0,1" if failing is None else f"cuda:{1 - failing}")
    assert plainly(found) == plainly(wanted)
    assert len(wanted) > 20
    check_examples(graph, found)
    wanted_calls = {"cuda:0": 3, "cuda:1": 3} if failing is None else {f"cuda:{failing}": 2, f"cuda:{1 - failing}": 4}
    assert looked == wanted_calls
