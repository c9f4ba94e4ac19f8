"""Candidates refined on a device, real or emulated: those that the planner leaves, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import DeviceError, MemoryLimitError, QueryTimeout
from graphdb.execute.choose import ChoosingExecutor
from graphdb.execute.host import HostExecutor
from graphdb.gpu.executor import GpuExecutor
from graphdb.gpu.join.refine import DeviceRefiner
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.bits import members
from graphdb.plan.candidates.refine import Candidates, refined
from graphdb.plan.candidates.refinement import Refinement, Sets
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.gpu.executors import EMULATED, EXAMPLES
from tests.gpu.mirror import MirrorExecutor
from tests.oracle.brute import Data
from tests.oracle.strategies import Case, cases
from tests.oracle.test_trees import labelled_cases, spaces


@contextmanager
def refiner(where: str) -> Iterator[Any]:
    """A device's executor that refines whatever it is asked to; in pieces that small graphs fill, too."""
    with ExitStack() as stack:
        if where == "emulated":
            stack.enter_context(emulator.installed())
        executor = GpuExecutor(0, memory_limit=1 << 24)
        pieces = {} if where == "cuda" else {"block": 64, "longest": 2}
        if where == "emulated":  # where blocks run one after the other
            pieces["blocks"] = 1
        executor.refiner = DeviceRefiner(executor.device, executor.graph, **pieces)
        with mock.patch.object(executor.refiner, "pays", return_value=True):
            yield executor
        pool = executor.device.memory.pool
        assert not getattr(pool, "faults", ())


@pytest.fixture(
    params=[
        pytest.param("emulated", marks=EMULATED),
        pytest.param("cuda", marks=pytest.mark.gpu),
        pytest.param("cuda-pieces", marks=pytest.mark.gpu),
    ],
    scope="module",
)
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    with refiner(request.param) as found:
        yield found


def supported(task: Refinement, vertex: int, x: int, fits: dict[int, set[int]]) -> bool:
    """Whether a candidate has the neighbours that it needs: the words of the definition."""
    for _, row, need, first, last, least in task.arcs[task.first_arc[vertex] : task.first_arc[vertex + 1]].tolist():
        around = [fits.get(y, set()) for y in task.partitions[row].neighbours_of(x).tolist()]
        enough = len(around) >= least and all(any(u in own for own in around) for u in members(need))
        groups = task.groups[first:last].tolist()
        if not (enough and all(sum(any(bits >> u & 1 for u in own) for own in around) >= n for bits, n in groups)):
            return False
    return True


def fixpoint(task: Refinement) -> list[list[int]]:
    """What is left once nothing changes, one candidate after the other; nothing at all where a vertex has none."""
    fits: dict[int, set[int]] = {}
    for vertex, found in enumerate(task.sets):
        for x in found.tolist():
            fits.setdefault(x, set()).add(vertex)
    gone = True
    while gone:
        gone = [(x, u) for x, own in fits.items() for u in own if not supported(task, u, x, fits)]
        for x, u in gone:
            fits[x].remove(u)
    left = [sorted(x for x, own in fits.items() if u in own) for u in range(len(task.sets))]
    return left if all(left) else [[] for _ in left]


def lists(found: Candidates) -> list[list[int]]:
    return [found.flat[at : at + size].tolist() for at, size in zip(found.starts, found.sizes, strict=True)]


@contextmanager
def tasks(case: Case, refine: Any = None, **graph: Any) -> Iterator[list[Refinement]]:
    """What a planner asks to be refined."""
    asked: list[Refinement] = []

    def ask(task: Refinement) -> Sets | None:
        asked.append(task)
        return None if refine is None else refine(task)

    make_plan(case.pattern, DataGraph(case.source, **graph), refine=ask)
    yield asked


GRAPHS = {"layer": st.sampled_from(["direct", "hashed", "spans"]), "dtype": st.sampled_from([np.int32, np.int64])}


@EXAMPLES
@given(case=st.one_of(labelled_cases(), cases(most_vertices=6)), passes=st.integers(0, 3), **GRAPHS)
def test_the_same_candidates_are_left(device: Any, case: Case, passes: int, layer: Any, dtype: Any) -> None:
    """After however many passes those that the planner leaves; once nothing changes, those of the definition."""
    mirror = MirrorExecutor(device, HostExecutor(1))
    with spaces(passes=passes), tasks(case, mirror.refine, layer=layer, dtype=dtype) as asked:
        for task in asked:
            assert lists(refined(replace(task, passes=1000), device.refine)) == fixpoint(task)


@pytest.fixture(scope="module")
def large() -> Case:
    return large_case()


def large_case() -> Case:
    """A pattern of nine vertices over a graph with hubs: lists for one thread, a warp, and a block."""
    rng = np.random.default_rng(5)
    size, classes = 150, 3
    labels = rng.integers(0, classes, size)
    ends = (size * rng.random((2, 900)) ** 3).astype(np.int64)
    source = ArraySource(ends[0], np.full(900, size), ends[1], size + 1)
    vertices = tuple(PatternVertex(f"v{i}", np.flatnonzero(labels == i % classes)) for i in range(9))
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (5, 6), (6, 4), (6, 7), (7, 8), (0, 6)]
    edges = tuple(PatternEdge(f"e{i}", a, b, (size,), i % 3 == 0, 0) for i, (a, b) in enumerate(pairs))
    clause = Clause(MatchMode.DIFFERENT_NODES, tuple(range(9)))
    pattern = PatternGraph(vertices, edges, (clause,), outputs=(), count_only=True)
    return Case(source, Data(set(), 0, 0, None), pattern)


@pytest.mark.parametrize("pieces", [{}, {"block": 64, "blocks": 1}], ids=["own", "long"])
def test_lists_of_any_length(device: Any, large: Case, pieces: dict[str, int]) -> None:
    """Gone through by a warp or by a block: it is the same."""
    with tasks(large) as asked:
        (task,) = asked
    refiner = DeviceRefiner(device.device, device.graph, **pieces) if pieces else device.refiner
    assert lists(refined(task, refiner.refine)) == lists(refined(task))
    assert 0 < refined(task).sizes.sum() < sum(map(len, task.sets)), "there was nothing to do"


def test_a_plan_that_a_device_refined(device: Any, large: Case) -> None:
    graph = DataGraph(large.source)
    plan, own = make_plan(large.pattern, graph, refine=device.refine), make_plan(large.pattern, graph)
    assert HostExecutor(1).count(plan) == HostExecutor(1).count(own) > 0


@EMULATED
def test_what_is_small_stays_with_the_planner(large: Case) -> None:
    """No copy is made, no kernel compiled."""
    with emulator.installed():
        executor = GpuExecutor(0, memory_limit=1 << 24)
        with tasks(large) as asked:
            (task,) = asked
        assert executor.refine(task) is None
        assert executor.device.memory.cached_bytes == 0
        assert executor.refiner.pays(replace(task, work=1e8))
        assert not executor.refiner.pays(replace(task, work=1e8, vertices=1 << 24)), "there is no room"


@EMULATED
def test_whoever_may_choose_goes_on_without_the_device(large: Case, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody opens a device to plan; where one fails the planner refines, and it is said once."""
    with emulator.installed(), tasks(large) as asked:
        (task,) = asked
        executor = GpuExecutor(0, memory_limit=1 << 24)
        executor.refiner = DeviceRefiner(executor.device, executor.graph, block=64, blocks=1)
        auto = ChoosingExecutor(HostExecutor(1), lambda: executor)
        task = replace(task, work=1e8)
        assert auto.refine(task) is None
        assert auto._opened() is executor
        found = auto.refine(task)
        assert found is not None
        assert [len(left) for left in found] == refined(task).sizes.tolist()
        with mock.patch.object(executor.refiner, "refine", side_effect=MemoryLimitError("full")):
            assert auto.refine(task) is None
        assert not caplog.messages
        with mock.patch.object(executor.refiner, "refine", side_effect=DeviceError("broken")):
            assert auto.refine(task) is None
        assert auto.refine(task) is None
        assert caplog.messages == ["a query runs on the CPU instead: broken"]


@pytest.mark.gpu
def test_several_at_a_time(large: Case) -> None:
    """Blocks that wait for each other never wait for those of another refinement, on whose behalf ever that is."""
    with tasks(large) as asked:
        (task,) = asked
    executors = [GpuExecutor(0, memory_limit=1 << 26) for _ in range(2)]
    want = lists(refined(task))

    def run(number: int) -> bool:
        return lists(refined(task, executors[number % 2].refiner.refine)) == want

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(400), timeout=30))


def test_nobody_waits_beside_a_search_that_waits(device: Any, large: Case) -> None:
    """Where matches stream to the host, who takes them may be who plans: the planner refines."""
    with tasks(large) as asked:
        (task,) = asked
    own = DeviceRefiner(device.device, device.graph)
    heavy = replace(task, work=1e8)
    assert own.pays(heavy)
    with device.device.memory.kernel_waits():
        assert not own.pays(heavy)
    assert own.pays(heavy)


@EMULATED
def test_a_timeout_stops_refining(device: Any, large: Case) -> None:
    with tasks(large) as asked:
        (task,) = asked

    def late() -> None:
        raise QueryTimeout("late")

    with pytest.raises(QueryTimeout, match="late"):
        device.refine(replace(task, check=late))


def test_a_query_asks_its_executor() -> None:
    """A large labelled pattern in text: who runs it is asked to refine, and what that leaves counts."""
    asked: list[Refinement] = []

    def ask(_: Any, task: Refinement) -> Sets | None:
        asked.append(task)
        return tuple(found[:0] for found in task.sets) if len(asked) > 1 else None

    names = "abcdefghi"
    with graphdb.connect(device="cpu") as db, mock.patch.object(HostExecutor, "refine", ask):
        db.query("CREATE " + ", ".join(f"({x}:P)" for x in names))
        db.query("MATCH (a:P), (b:P) WHERE id(a) < id(b) CREATE (a)-[:k]->(b)")
        text = "MATCH DIFFERENT NODES " + "-[:k]->".join(f"({x}:P)" for x in names[:8]) + " RETURN count(*) AS n"
        assert db.query(text).fetchall() == [(9,)]
        assert [len(task.sets) for task in asked] == [8]
        other = text.replace("(a:P)", "(first:P)")  # a pattern that has no plan yet
        assert db.query(other).fetchall() == [(0,)]
