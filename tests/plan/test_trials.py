"""Counts in turns, by a clock of their own: what wrong estimates cost at most, and whose deadline ends a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphdb.common.errors import QueryTimeout
from graphdb.plan import executor
from graphdb.plan.executor import EXTRAPOLATES, Control, Overran
from graphdb.plan.strategy.ski_rental import ExpectedCost, StrategyTimings
from graphdb.plan.strategy.trials import LEAST, PATIENCE, in_turns

STEPS = 500
"""A way asks whether to go on so many times in its whole run."""


class Clock:
    """Time that passes while ways work."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def clock() -> Iterator[Clock]:
    found = Clock()
    with mock.patch.object(executor, "time", SimpleNamespace(monotonic=found.monotonic)):
        yield found


class Machine:
    """Ways that take some time."""

    def __init__(
        self, clock: Clock, seconds: dict[str, float], timeout: float | None = None, *, progress: bool = False
    ) -> None:
        self.clock, self.seconds, self.progress = clock, seconds, progress
        self.control = Control(timeout=timeout, _started=clock.now)
        self.begun: list[str] = []

    def run(self, way: str) -> str:
        self.begun.append(way)
        for step in range(STEPS):
            self.clock.now += self.seconds[way] / STEPS
            if self.progress:
                self.control.watch(lambda done=(step + 1) / STEPS: done)
            else:
                self.control.check()
        return f"by {way}"


def costs_of(**seconds: float) -> dict[str, ExpectedCost]:
    return {way: ExpectedCost(expected) for way, expected in seconds.items()}


def test_who_is_right_is_left_alone(clock: Clock) -> None:
    machine, timings = Machine(clock, {"a": 1.0, "b": 9.0}), StrategyTimings()
    assert in_turns(costs_of(a=1.0, b=1.5), "a", timings, machine.control, machine.run) == ("a", "by a")
    assert machine.begun == ["a"]
    assert not timings.stopped


def test_who_takes_a_thousand_times_as_long_gives_way(clock: Clock) -> None:
    machine, timings, costs = Machine(clock, {"a": 100.0, "b": 0.2}), StrategyTimings(), costs_of(a=0.1, b=0.15)
    assert in_turns(costs, "a", timings, machine.control, machine.run) == ("b", "by b")
    assert machine.begun == ["a", "b"]
    assert clock.now == pytest.approx(0.4, rel=0.6)
    assert timings.choose(costs) == "b"  # the next run goes there at once


def test_progress_says_early_who_is_late(clock: Clock) -> None:
    machine, timings = Machine(clock, {"a": 100.0, "b": 1.5}, progress=True), StrategyTimings()
    costs = costs_of(a=1.0, b=1.5)
    assert in_turns(costs, "a", timings, machine.control, machine.run) == ("b", "by b")
    assert clock.now == pytest.approx(EXTRAPOLATES * PATIENCE + 1.5, abs=0.3)  # without progress 3 and more
    assert timings.expected("a", costs["a"]) == pytest.approx(100.0)  # what progress says that all of it takes


def test_progress_says_who_is_done_soon(clock: Clock) -> None:
    machine = Machine(clock, {"a": 1.4, "b": 1.5}, progress=True)
    assert in_turns(costs_of(a=0.1, b=1.5), "a", StrategyTimings(), machine.control, machine.run) == ("a", "by a")
    assert clock.now == pytest.approx(1.4)


def test_a_part_of_a_run_is_not_taken_for_all_of_it(clock: Clock) -> None:
    """Half of the first half is done after a second: of four seconds in all, not of two; so it goes on."""
    control = Control(_started=clock.now)
    with control.at_most(4.5, instead=2.5):
        part = control.within(0.0, 0.5)
        clock.now += 1.5
        part.watch(lambda: 0.01)
        control.watch(lambda: 0.4)
        with pytest.raises(Exception, match="another strategy"):
            control.watch(lambda: 0.1)
        for seconds in (0.5, 4.0):
            with control.at_most(seconds):
                control.watch(lambda: 0.01)
    assert control.wait(0.02) == 0.02


def test_the_next_look_is_at_the_deadline(clock: Clock) -> None:
    control = Control(timeout=1.0, _started=clock.now)
    assert control.wait(0.02) == 0.02
    clock.now += 0.985
    assert control.wait(0.02) == pytest.approx(0.015)
    clock.now += 1.0
    assert control.wait(0.02) == pytest.approx(1e-3)


def test_one_way_is_never_stopped(clock: Clock) -> None:
    for costs in (costs_of(a=1e-3), costs_of(a=1e-3, b=math.inf)):
        machine = Machine(clock, {"a": 100.0})
        assert in_turns(costs, "a", StrategyTimings(), machine.control, machine.run)[0] == "a"
        assert machine.begun == ["a"]


def test_a_way_that_was_ruled_out_gets_no_turn(clock: Clock) -> None:
    machine, timings = Machine(clock, {"a": 100.0}), StrategyTimings()
    timings.rule_out("b")
    assert in_turns(costs_of(a=0.1, b=0.15), "a", timings, machine.control, machine.run) == ("a", "by a")
    timings.overran("b", 1.0)
    assert timings.measured("b") == math.inf


@pytest.mark.parametrize("timeout", [0.01, 0.3, 2.0, 30.0])
def test_the_callers_deadline_ends_all(clock: Clock, timeout: float) -> None:
    machine = Machine(clock, {"a": 100.0, "b": 100.0}, timeout)
    with pytest.raises(QueryTimeout):
        in_turns(costs_of(a=0.1, b=0.15), "a", StrategyTimings(), machine.control, machine.run)
    assert timeout <= clock.now <= timeout + 100.0 / STEPS + 1e-9
    assert machine.control.timeout == timeout


def test_a_part_within_a_part_ends_with_the_inner_one(clock: Clock) -> None:
    for timeout in (100.0, None):
        control = Control(timeout=timeout, _started=clock.now)

        def late(control: Control = control) -> None:
            with control.at_most(1.0), control.at_most(5.0):
                clock.now += 1.5
                control.check()

        with pytest.raises(Overran):
            late()
        assert control.timeout == timeout
        control.check()


times = st.floats(-4, 1).map(lambda power: 10.0**power)


@given(st.lists(st.tuples(times, times), min_size=2, max_size=3))
def test_wrong_estimates_cost_a_few_times_what_was_needed(ways: list[tuple[float, float]]) -> None:
    """Whatever was expected: at most so many times the best, or what the two best were expected to take."""
    clock = Clock()
    with mock.patch.object(executor, "time", SimpleNamespace(monotonic=clock.monotonic)):
        expected = {str(number): way[0] for number, way in enumerate(ways)}
        machine = Machine(clock, {str(number): way[1] for number, way in enumerate(ways)})
        chosen = min(expected, key=expected.__getitem__)
        in_turns(costs_of(**expected), chosen, StrategyTimings(), machine.control, machine.run)
        best = min(machine.seconds.values())
        promised = PATIENCE * max(expected.values())
        slack = sum(machine.seconds.values()) / STEPS * 8
        assert clock.now <= 4.0 ** len(ways) * max(best, promised, LEAST) + slack


def test_a_way_that_tried_another_within_is_not_taken_for_slow(clock: Clock) -> None:
    machine, costs = Machine(clock, {"a": 100.0, "b": 0.2}), costs_of(a=0.1, b=0.15)
    for within in (True, False):
        timings = StrategyTimings()
        machine.control.disturbed = not within  # whatever was noted before the turns says nothing of them

        def run(way: str, within: bool = within) -> str:
            machine.control.disturbed |= within
            return machine.run(way)

        for _ in range(3):
            timings.note("a", 0.1)
        for again in range(2):  # two in a row count, of what is known
            assert in_turns(costs, "a", timings, machine.control, run) == ("b", "by b")
            assert bool(timings.stopped) == (again == 1 and not within)
        timings = StrategyTimings()  # what is not known may take for ever
        assert in_turns(costs, "a", timings, machine.control, run) == ("b", "by b")
        assert timings.stopped
        assert machine.control.disturbed
