"""The choice between ways whose times are expected, and then known."""

from __future__ import annotations

from graphdb.plan.ski_rental import DOUBT, ExpectedCost, StrategyTimings


def test_what_is_expected_to_be_done_first_is_chosen() -> None:
    assert StrategyTimings().choose({"a": ExpectedCost(2.0), "b": ExpectedCost(1.0)}) == "b"
    assert StrategyTimings().choose({"a": ExpectedCost(2.0), "b": ExpectedCost(1.0, first=1.5)}) == "a"
    assert StrategyTimings().choose({"a": ExpectedCost(2.0), "b": ExpectedCost(1.0, first=0.5)}) == "b"


def test_what_a_way_needs_first_is_paid_for_once_it_was_missed_for_as_long() -> None:
    timings, ways = StrategyTimings(), {"a": ExpectedCost(2.0), "b": ExpectedCost(1.0, first=3.5)}
    assert [timings.choose(ways, runs=True) for _ in range(5)] == ["a", "a", "a", "b", "b"]
    assert StrategyTimings().choose(ways) == "a"


def test_what_gets_ready_beside_is_waited_for_only_where_that_is_sooner() -> None:
    timings, ways = StrategyTimings(), {"a": ExpectedCost(2.0), "b": ExpectedCost(1.0, first=3.5, beside=True)}
    assert [timings.choose(ways, runs=True) for _ in range(9)] == ["a"] * 9
    assert timings.choose(ways | {"b": ExpectedCost(1.0, first=0.5, beside=True)}) == "b"
    assert timings.choose(ways | {"b": ExpectedCost(1.0)}) == "b"


def test_asking_alone_misses_nothing() -> None:
    timings, ways = StrategyTimings(), {"a": ExpectedCost(2.0), "b": ExpectedCost(1.0, first=3.5)}
    assert [timings.choose(ways) for _ in range(9)] == ["a"] * 9


def noted(timings: StrategyTimings, way: str, *seconds: float) -> StrategyTimings:
    for taken in seconds:
        timings.note(way, taken)
    return timings


def test_measured_beats_expected_but_for_the_first_run() -> None:
    ways = {"a": ExpectedCost(1.0), "b": ExpectedCost(4.0)}
    assert noted(StrategyTimings(), "a", 100.0).choose(ways) == "a"  # with all that it had to make ready
    limit = 4.0 * DOUBT  # what was never tried must promise more
    assert noted(StrategyTimings(), "a", 100.0, limit - 0.5, limit - 0.5).choose(ways) == "a"
    timings = noted(StrategyTimings(), "a", 100.0, limit + 0.5, limit + 0.5)
    assert timings.choose(ways) == "b"
    assert noted(timings, "b", 100.0, 9.0, 9.0).choose(ways) == "a"


def test_a_run_that_was_held_up_says_nothing() -> None:
    ways = {"a": ExpectedCost(1.0), "b": ExpectedCost(4.0)}
    assert noted(StrategyTimings(), "a", 1.0, 100.0).choose(ways) == "a"
    assert noted(StrategyTimings(), "a", 1.0, 100.0, 1.0, 100.0).choose(ways) == "a"
