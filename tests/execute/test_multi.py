"""Several executors as one: the rows, in their order, and the counts of one alone; failures, limits, stopping."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import graphdb
from graphdb.common.errors import DeviceError, ExecutionError, MemoryLimitError, QueryTimeout
from graphdb.execute import devices as naming
from graphdb.execute import multi
from graphdb.execute.choose import choose_executor
from graphdb.execute.host import HostExecutor
from graphdb.execute.multi import ALONE, TOGETHER, MultiExecutor
from graphdb.execute.work_profile import LastRun, WorkProfile
from graphdb.mining.graph import MiningGraph
from graphdb.mining.motifs import joint_count, known_motifs
from graphdb.plan import shares
from graphdb.plan.executor import Control, OutOfRange
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.shares import Division
from graphdb.storage.graph.data_graph import DataGraph
from tests import emulator
from tests.execute.test_host import REPEATABLE, complete, pattern
from tests.gpu.executors import EMULATED, EXAMPLES, SMALL, device_executor
from tests.gpu.test_device import PATH, TRIANGLE, endless, random_graph
from tests.gpu.test_executors import check
from tests.gpu.test_several_devices import HOST, every_kind, machine_of, rows_of
from tests.mining import brute
from tests.oracle.strategies import Case, cases
from tests.oracle.test_symmetry import symmetric_cases
from tests.stops import Stopwatch

LEAST = "graphdb.execute.multi.LEAST"


def hosts(count: int, **sizes: Any) -> list[HostExecutor]:
    return [HostExecutor(1, **sizes) for _ in range(count)]


@contextmanager
def devices(count: int, strategy: str = "join", physical: int | None = None) -> Iterator[MultiExecutor]:
    """So many emulated devices, with pieces of different sizes; or executors of so many ``physical`` ones."""
    with emulator.installed(devices=physical or count, together=2 if strategy == "search" else 1):
        members = [
            device_executor(strategy, SMALL[strategy], (1 << 24) + (number << 20), number=number % (physical or count))
            for number in range(count)
        ]
        yield MultiExecutor(members, shares=4, least=0.0)
        gc.collect()
        for member in members:
            memory = member.device.memory
            assert not memory.pool.faults
            if physical is None:
                assert memory.used_bytes == memory.cached_bytes, "a run left something behind"


MANY = [
    pytest.param("hosts", id="hosts"),
    pytest.param("devices", id="devices", marks=EMULATED),
    pytest.param("one-device", id="one-device", marks=EMULATED),
    pytest.param("cuda", id="cuda", marks=pytest.mark.gpu),
]


@pytest.fixture(params=MANY, scope="module")
def several(request: pytest.FixtureRequest) -> Iterator[MultiExecutor]:
    """Three executors on the CPU; on three emulated devices; on one; on the first real one, or the first two."""
    match request.param:
        case "hosts":
            yield MultiExecutor(hosts(3), shares=4, least=0.0)
        case "devices":
            with devices(3) as found:
                yield found
        case "one-device":
            with devices(2, physical=1) as found:
                yield found
        case _:
            from graphdb.gpu.probe import probe

            there = len(probe().devices)
            members = [device_executor("join", {}, 1 << 30, number=number % there) for number in range(max(there, 2))]
            yield MultiExecutor(members, shares=4, least=0.0)


# --- the same answers


@EXAMPLES
@given(case=cases(), limit=st.one_of(st.none(), st.integers(0, 9)))
def test_random_patterns(several: MultiExecutor, case: Case, limit: int | None) -> None:
    check(case, DataGraph(case.source), several, limit)


@EXAMPLES
@given(case=symmetric_cases(), limit=st.one_of(st.none(), st.integers(0, 9)))
def test_random_symmetric_patterns(several: MultiExecutor, case: Case, limit: int | None) -> None:
    check(case, DataGraph(case.source), several, limit)


@pytest.mark.parametrize("kind", [kind for kind, _, _ in every_kind()])
def test_every_kind_of_run(several: MultiExecutor, kind: str) -> None:
    """Rows, tallies, groups, sums (by vertex too), cliques: equal to one host's, and all of them shared out."""
    plan, counting = next((plan, counting) for what, plan, counting in every_kind() if what == kind)
    for member in several._executors:
        member.hint = "sums" if kind.startswith(("by", "sums", "cliques", "incl")) else "join"  # type: ignore[attr-defined]
    several.tasks = []
    if counting:
        assert several.count(plan) == HOST.count(plan)
    else:
        assert rows_of(several, plan) == rows_of(HOST, plan)
    assert len(several.tasks) > 2
    units = sorted((task.begin, task.end) for task in several.tasks)
    assert all(before[1] == after[0] for before, after in pairwise(units)), "each unit once"


def test_patterns_are_counted_together_in_shares(several: MultiExecutor) -> None:
    """The sums of all motifs of a size: each unit once, and the numbers of one host."""
    graph = random_graph_for_mining(60, 400)
    for member in several._executors:
        member.hint = "auto"  # type: ignore[attr-defined]
    for size in (3, 4):
        joint = joint_count(graph, known_motifs(size, False).patterns)
        several.tasks = []
        wanted = HOST.count_jointly(joint)
        assert several.count_jointly(joint) == wanted
        assert "in shares" in several.describe_jointly(joint)
        assert len(several.tasks) > 2
        units = sorted((task.begin, task.end) for task in several.tasks)
        assert all(before[1] == after[0] for before, after in pairwise(units))
        assert max(wanted) > 1000


def random_graph_for_mining(vertices: int, edges: int) -> MiningGraph:
    return brute.random_graph(np.random.default_rng(3), vertices, edges, directed=False)


def test_small_joint_counts_stay_on_the_first() -> None:
    several = MultiExecutor(hosts(2))
    joint = joint_count(random_graph_for_mining(20, 60), known_motifs(3, False).patterns)
    assert several.count_jointly(joint) == HOST.count_jointly(joint)
    assert not several.tasks
    assert several.describe_jointly(joint) == "cpu"


def test_rows_come_in_the_order_of_one(several: MultiExecutor) -> None:
    """Whatever the sizes of its pieces, and with a limit the first of them."""
    plan = make_plan(pattern(3, TRIANGLE), random_graph(40, 400))
    one, together = (columns(executor, plan) for executor in (several.first, several))
    assert np.array_equal(one, together)
    assert np.array_equal(columns(several, plan, Control(limit=17)), one[:, :17])
    assert (
        several.count(make_plan(pattern(3, TRIANGLE, count_only=True), random_graph(40, 400)), Control(limit=17)) == 17
    )


def columns(executor: Any, plan: Any, control: Control | None = None) -> Any:
    blocks = [np.stack([block.columns[name] for name in plan.outputs]) for block in executor.run(plan, control)]
    return np.concatenate(blocks, axis=1)


def test_a_joint_count_of_one_that_fails() -> None:
    """Its share goes to the other; where numbers do not fit, one counts all its own way."""
    joint = joint_count(random_graph_for_mining(60, 400), known_motifs(4, False).patterns)
    wanted = HOST.count_jointly(joint)
    for error in (DeviceError("lost"), OutOfRange()):
        several, asked = MultiExecutor(hosts(2), shares=4, least=0.0), threading.Event()
        first, second = several._executors
        count = first.partial_jointly

        def fails(*_: Any, error: Exception = error, asked: threading.Event = asked) -> Any:
            asked.set()
            raise error

        def waits(*given: Any, count: Any = count, asked: threading.Event = asked) -> Any:
            assert asked.wait(30)  # however busy the machine is, both have a share
            return count(*given)

        with (
            mock.patch.object(first, "partial_jointly", side_effect=waits),
            mock.patch.object(second, "partial_jointly", side_effect=fails),
        ):
            assert several.count_jointly(joint) == wanted
        assert len(several._executors) == (1 if isinstance(error, DeviceError) else 2)


def test_no_share_fills_the_buffer() -> None:
    """Where rows wait for those of the shares before, their shares are small: or one device waits for the other."""
    several = MultiExecutor(hosts(2), shares=4, least=0.0)
    plan = make_plan(pattern(3, TRIANGLE), random_graph(200, 4000))
    wanted = columns(several, plan)
    few, rows = len(several.tasks), wanted.nbytes
    assert np.array_equal(columns(several, plan, Control(buffer_bytes=rows // 4)), wanted)
    assert len(several.tasks) > 2 * few
    assert max(task.end - task.begin for task in several.tasks) < 200 / 8


def test_shares_of_rows_have_few_bytes_and_take_equal_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What waits for the caller takes little memory, also once a run is known; roots are weighed once.

    A share of equal time that ends in the same root as the one before it has none: then they are fewer.
    """
    monkeypatch.setattr(MultiExecutor, "_pays", lambda *_: True)  # on a busy machine one alone may be measured sooner
    after, long = LastRun.after, set[int]()

    def taken(unit: str, profile: WorkProfile, tasks: list[tuple[int, int, float]]) -> LastRun:
        """A root takes a second, and 200 where a thread waited: how busy the machine is says nothing."""
        return after(unit, profile, [(a, b, b - a + 199 * len(long & {*range(a, b)})) for a, b, _ in tasks])

    monkeypatch.setattr(LastRun, "after", taken)
    several = MultiExecutor(hosts(2), shares=4, least=1e-9)
    plan = make_plan(pattern(3, TRIANGLE), random_graph(200, 4000))
    with mock.patch.object(shares, "_root_weights", side_effect=shares._root_weights) as weighed:
        wanted = columns(several, plan)
        with mock.patch.object(multi, "SHARED_ROWS", wanted.nbytes // 10):
            numbers = []
            for stalled in (), (100,), (100,), (), ():
                long = {*stalled}
                assert np.array_equal(columns(several, plan), wanted)
                assert all(task.begin < task.end for task in several.tasks)
                numbers.append(len(several.tasks))
    assert 8 <= numbers[0] <= 32
    assert numbers[0] % 2 == 0
    assert numbers == [numbers[0]] * 3 + [numbers[3], numbers[0]]
    assert numbers[3] < numbers[0]
    assert weighed.call_count == 1


def test_a_run_that_is_known_is_divided_by_what_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Into a share for each executor, and a small rest for whoever is done first: not into those of the first time."""
    monkeypatch.setattr(MultiExecutor, "_pays", lambda *_: True)  # on a busy machine one alone may be measured sooner
    several = MultiExecutor(hosts(2), shares=8, least=1e-9)
    graph = random_graph(200, 4000)
    count, listed = make_plan(pattern(3, TRIANGLE, count_only=True), graph), make_plan(pattern(3, TRIANGLE), graph)
    wanted, rows = HOST.count(count), columns(HOST, listed)
    assert several.count(count) == wanted
    assert len(several.tasks) == 8
    for _ in range(2):
        assert several.count(count) == wanted
        assert len(several.tasks) <= 4
    assert np.array_equal(columns(several, listed), columns(several, listed))
    assert len(several.tasks) <= 4
    assert columns(several, listed).shape == rows.shape
    unlike = MultiExecutor(hosts(2), shares=8, least=1e-9, alike=False)
    assert [unlike.count(count) for _ in range(2)] == [wanted, wanted]
    assert len(unlike.tasks) == 8


@pytest.mark.parametrize("counting", [False, True])
def test_a_run_that_takes_longer_on_all_goes_to_the_first(counting: bool) -> None:
    """Once both are known."""
    plan = make_plan(pattern(3, TRIANGLE, count_only=counting), random_graph(60, 600), counting="never")
    wanted = HOST.count(plan) if counting else rows_of(HOST, plan)
    several = MultiExecutor(hosts(2), shares=4, least=1e-9)

    def divided() -> bool:
        several.tasks = []
        assert (several.count(plan) if counting else rows_of(several, plan)) == wanted
        return bool(several.tasks)

    timings = several._timings(plan, counting)
    assert [divided() for _ in range(3)] == [True] * 3
    assert timings.runs == {TOGETHER: 3}, "they are measured"
    for together, alone in ((9.0, 2.0), (2.0, 9.0), (9.0, 2.0)):
        for way, seconds in ((TOGETHER, together), (ALONE, alone)):
            timings.forget(way)
            for _ in range(4):
                timings.note(way, seconds)
        before = dict(timings.runs)
        assert divided() == (together < alone)
        before[TOGETHER if together < alone else ALONE] += 1
        assert timings.runs == before
    if not counting:
        assert sum(block.count for block in several.run(plan, Control(limit=5))) == 5
        assert timings.runs == before, "a part of a run says nothing"


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_shares_of_equal_time(power: float) -> None:
    """Whatever weights say: after three runs no share takes much longer than another."""
    units = np.arange(20_000)
    seconds = ((units + 1) / len(units)) ** power * (1 + (units % 977 == 0) * 300)
    ends = np.append(0.0, np.cumsum(seconds))
    profile = WorkProfile.expected(np.ones(len(units)))
    cuts, _ = Division.of_weights("roots", np.ones(len(units))).factored(2, 32)
    for _ in range(3):
        profile = profile.measured([(begin, end, ends[end] - ends[begin]) for begin, end in cuts])
        cuts = profile.shares([1 / 4] * 4)[0]
    took = [ends[end] - ends[begin] for begin, end in cuts]
    assert cuts[0][0] == 0
    assert cuts[-1][1] == len(units)
    assert max(took) < 1.05 * sum(took) / 4


@EMULATED
def test_a_search_is_shared_out_too() -> None:
    with devices(2, "search") as several:
        graph = complete(8)
        count = make_plan(pattern(3, TRIANGLE, count_only=True), graph, counting="never")
        assert several.count(count) == 336
        assert rows_of(several, make_plan(pattern(3, TRIANGLE), graph)).total() == 336
        assert {task.executor for task in several.tasks} <= {0, 1}


def test_small_plans_stay_on_the_first() -> None:
    several = MultiExecutor(hosts(2))
    plan = make_plan(pattern(3, TRIANGLE), complete(8))
    assert rows_of(several, plan).total() == 336
    assert not several.tasks
    assert several.describe(plan) == "cpu"
    assert several.describe(replace(plan, cost=1e12)) == "cpu and cpu, in shares"
    assert several.describe(replace(plan, cost=1e6)) == "cpu"


# --- failures


@EMULATED
@pytest.mark.parametrize("launches", [0, 40])
@pytest.mark.parametrize("kind", ["rows", "with counts", "grouped", "by vertex", "count", "sums", "cliques"])
def test_a_device_that_fails_leaves_its_share_to_the_others(
    kind: str, launches: int, caplog: pytest.LogCaptureFixture
) -> None:
    plan, counting = next((plan, counting) for what, plan, counting in every_kind() if what == kind)
    for lost in (0, 1):
        with devices(3) as several:
            for member in several._executors:
                member.hint = "sums" if kind in ("by vertex", "sums", "cliques") else "join"  # type: ignore[attr-defined]
            emulator._machine.failing[lost] = launches
            if counting:
                assert several.count(plan) == HOST.count(plan)
            else:
                assert rows_of(several, plan) == rows_of(HOST, plan)
            failed = emulator._machine.failing[lost] < 0
            assert several.name == (
                "cuda:" + ",".join(sorted({"0", "1", "2"} - {str(lost)})) if failed else "cuda:0,1,2"
            )
            emulator._machine.failing.clear()


@EMULATED
def test_rows_that_were_given_are_not_given_again() -> None:
    """A device is lost while its share's first rows are in the caller's hands: the order stays that of one."""
    plan = make_plan(pattern(3, PATH), random_graph(60, 900))
    with devices(2) as several:
        whole = columns(several.first, plan)
        blocks = several.run(plan, Control(buffer_bytes=4096))
        first = next(blocks)
        emulator._machine.failing[0] = 5
        rest = [np.stack([block.columns[name] for name in plan.outputs]) for block in blocks]
        begun = np.stack([first.columns[name] for name in plan.outputs])
        assert np.array_equal(np.concatenate([begun, *rest], axis=1), whole)
        assert several.name == "cuda:1"
        emulator._machine.failing.clear()


def test_memory_that_is_short_on_one_is_asked_of_another() -> None:
    """And the executor is asked again in the next run."""
    short = Failing(MemoryLimitError("it is full"))
    several = MultiExecutor([short, HostExecutor(1), HostExecutor(1)], shares=4, least=0.0)
    plan = make_plan(pattern(3, TRIANGLE), random_graph(40, 400))
    for _ in range(2):
        before = short.asked
        assert rows_of(several, plan) == rows_of(HOST, plan)
        assert short.asked > before


def test_a_run_ends_where_all_have_failed() -> None:
    several = MultiExecutor([Failing(DeviceError("it is lost")) for _ in range(2)], shares=4, least=0.0)
    plan = make_plan(pattern(3, TRIANGLE), random_graph(40, 400))
    with pytest.raises(DeviceError, match="it is lost"):
        rows_of(several, plan)
    several = MultiExecutor([Failing(DeviceError("it is lost")) for _ in range(2)], shares=4, least=0.0)
    with pytest.raises(DeviceError, match="it is lost"):
        several.count(make_plan(pattern(3, TRIANGLE, count_only=True), random_graph(40, 400), counting="never"))


class Failing(HostExecutor):
    """An executor that fails in every second share."""

    def __init__(self, error: Exception) -> None:
        super().__init__(1)
        self._failure, self.asked = error, 0

    def rows_of(self, *given: Any) -> Any:
        self.asked += 1
        if self.asked % 2:
            raise self._failure
        yield from super().rows_of(*given)

    def partial(self, *given: Any) -> Any:
        raise self._failure


# --- stopping, and progress


def test_a_timeout_stops_all(several: MultiExecutor) -> None:
    watch = Stopwatch()
    with pytest.raises(QueryTimeout):
        several.count(endless(200), Control(timeout=0.3))
    assert watch.seconds() < 2


def test_cancelling_stops_all_within_half_a_second(several: MultiExecutor) -> None:
    cancelled, asked = threading.Event(), []

    def cancel() -> None:
        asked.append(Stopwatch())
        cancelled.set()

    threading.Timer(0.4, cancel).start()
    with pytest.raises(ExecutionError, match="interrupted"):
        several.count(endless(200), Control(cancelled=cancelled))
    assert asked[0].seconds() < 0.5
    assert several.count(make_plan(pattern(3, TRIANGLE), complete(5))) == 60


def test_a_caller_who_has_enough_stops_all(several: MultiExecutor) -> None:
    before = threading.active_count()
    blocks = several.run(make_plan(pattern(3, PATH, REPEATABLE), complete(30)), Control(buffer_bytes=1000))
    next(blocks)
    blocks.close()
    assert threading.active_count() == before


def test_progress_grows_to_one(several: MultiExecutor) -> None:
    seen: list[float] = []
    plan = make_plan(pattern(3, TRIANGLE, count_only=True), complete(16), counting="never")
    several.count(plan, Control(progress=seen.append))
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)


def test_rows_of_each_step_are_those_of_one(several: MultiExecutor) -> None:
    plan = make_plan(pattern(3, TRIANGLE), random_graph(30, 250))
    one, together = Control(), Control()
    for executor, control in ((HOST, one), (several, together)):
        for _ in executor.run(plan, control):
            pass
    assert one.rows.tolist() == together.rows.tolist()


# --- a database


@EMULATED
def test_a_database_on_two_devices() -> None:
    knows = "MATCH (a)-[:knows]->(b)-[:knows]->(c)-[:knows]->(a)"
    answers = []
    with emulator.installed(devices=2), mock.patch.object(naming, "probe", return_value=machine_of(2)):
        assert choose_executor("cuda").name == choose_executor("cuda:0,1").name == "cuda:0,1"
        assert choose_executor("cuda:1,0 by join").name == "cuda:1,0"
        for device in ("cpu", "cuda:0,1"):
            with mock.patch(LEAST, 0.0), graphdb.connect(device=device, device_memory="64MiB") as db:
                db.query("UNWIND range(0, 7) AS i CREATE ({i: i})")
                db.query("MATCH (a), (b) WHERE a.i <> b.i CREATE (a)-[:knows]->(b)")
                answers.append(sorted(db.query(f"{knows} RETURN a.i, b.i, c.i").fetchall()))
                answers.append(db.query(f"{knows} RETURN count(*) AS n").fetchall())
                answers.append(sorted(db.query(f"{knows} RETURN DISTINCT a.i").fetchall()))
                report = str(db.query(f"PROFILE {knows} RETURN a, b").fetchall())
                assert ("match on cuda:0,1 by join within 0.07 GB, in shares" in report) == (device != "cpu")
    assert answers[:3] == answers[3:]
