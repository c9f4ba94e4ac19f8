"""The choice between ways whose times are expected, and then known."""

from __future__ import annotations

from graphdb.plan.strategy.ski_rental import (
    AGAIN,
    DOUBT,
    MEMORY,
    NEAR,
    OUTLIER,
    WORSE,
    Bias,
    Decision,
    ExpectedCost,
    StrategyTimings,
)


def test_what_is_expected_to_be_done_first_is_chosen() -> None:
    assert StrategyTimings().choose({"a": ExpectedCost(2.0), "b": ExpectedCost(1.0)}) == "b"
    assert StrategyTimings().choose({"a": ExpectedCost(2.0), "b": ExpectedCost(1.0, setup=1.5)}) == "a"
    assert StrategyTimings().choose({"a": ExpectedCost(2.0), "b": ExpectedCost(1.0, setup=0.5)}) == "b"


def test_what_a_way_needs_first_is_paid_for_once_it_was_missed_for_as_long() -> None:
    timings, costs = StrategyTimings(), {"a": ExpectedCost(2.0), "b": ExpectedCost(1.0, setup=3.5)}
    assert [timings.choose(costs, runs=True) for _ in range(5)] == ["a", "a", "a", "b", "b"]
    assert StrategyTimings().choose(costs) == "a"


def test_what_gets_ready_beside_is_waited_for_only_where_that_is_sooner() -> None:
    timings, costs = StrategyTimings(), {"a": ExpectedCost(2.0), "b": ExpectedCost(1.0, setup=3.5, in_background=True)}
    assert [timings.choose(costs, runs=True) for _ in range(9)] == ["a"] * 9
    assert timings.choose(costs | {"b": ExpectedCost(1.0, setup=0.5, in_background=True)}) == "b"
    assert timings.choose(costs | {"b": ExpectedCost(1.0)}) == "b"


def test_asking_alone_misses_nothing() -> None:
    timings, costs = StrategyTimings(), {"a": ExpectedCost(2.0), "b": ExpectedCost(1.0, setup=3.5)}
    assert [timings.choose(costs) for _ in range(9)] == ["a"] * 9


def test_estimates_that_are_always_wrong_are_put_right() -> None:
    bias = Bias()
    assert bias.factor == 1.0
    for _ in range(30):
        bias.note(2.0, 10.0)
    assert 4.9 < bias.factor < 5.1
    bias.note(0.0, 1.0)
    bias.note(1.0, -1.0)
    assert 4.9 < bias.factor < 5.1


def test_one_estimate_that_is_wrong_by_thousands_says_little_of_the_others() -> None:
    bias = Bias()
    for _ in range(30):
        bias.note(1.0, 2.0)
    bias.note(1.0, 1e4)
    assert 2.0 < bias.factor < 2.0 * OUTLIER**MEMORY + 0.1


def test_what_finds_out_is_told_from_what_is_known() -> None:
    timings = noted(StrategyTimings(), "a", 1.0, 1.0)
    assert not timings.tried("b")  # nothing is known yet
    noted(timings, "a", 1.0)
    assert timings.tried("b")
    assert not timings.tried("a")
    assert not noted(timings, "b", 1.0, 1.0, 1.0).tried("b")
    assert noted(timings, "b", 2.0, 2.0, 2.0, 2.0).tried("b")
    assert not timings.tried("a")
    only = StrategyTimings()
    only.rule_out("b")
    assert not only.tried("a")  # it is all that is left


def test_what_is_forgotten_is_expected_as_if_it_had_never_run() -> None:
    costs = {"a": ExpectedCost(1.0), "b": ExpectedCost(0.25)}
    timings = noted(noted(StrategyTimings(), "a", 1.0, 1.0, 1.0), "b", 5.0, 5.0, 5.0)
    timings.overran("b", 9.0)
    timings.overran("b", 9.0)
    assert timings.choose(costs) == "a"
    timings.forget("b")
    assert timings.measured("b") is None
    assert timings.expected("b", costs["b"]) == 0.25
    assert timings.choose(costs) == "b"


def noted(timings: StrategyTimings, strategy: str, *seconds: float) -> StrategyTimings:
    for taken in seconds:
        timings.note(strategy, taken)
    return timings


def test_measured_beats_expected_but_for_the_first_run() -> None:
    costs = {"a": ExpectedCost(1.0), "b": ExpectedCost(4.0)}
    assert noted(StrategyTimings(), "a", 100.0).choose(costs) == "a"  # with all that it had to make ready
    limit = 4.0 * DOUBT  # what was never tried must promise more
    assert noted(StrategyTimings(), "a", 100.0, limit - 0.5, limit - 0.5).choose(costs) == "a"
    timings = noted(StrategyTimings(), "a", 100.0, limit + 0.5, limit + 0.5)
    assert timings.choose(costs) == "b"
    assert noted(timings, "b", 100.0, 9.0, 9.0).choose(costs) == "a"


def test_what_was_never_tried_is_tried_in_the_end_where_it_promises_more() -> None:
    costs = {"a": ExpectedCost(1.0), "b": ExpectedCost(4.0)}
    timings = noted(StrategyTimings(), "a", 100.0, *[5.0] * 3)
    assert timings.choose(costs) == "a"
    assert noted(timings, "a", *[5.0] * 4).choose(costs) == "b"
    assert noted(timings, "b", 100.0, 3.0, 3.0).choose(costs) == "b"


def test_what_turns_out_slower_is_not_tried_for_long() -> None:
    costs = {"a": ExpectedCost(1.0), "b": ExpectedCost(4.0)}
    timings = noted(StrategyTimings(), "a", 100.0, *[5.0] * 9)
    assert timings.choose(costs) == "b"
    assert noted(timings, "b", 100.0).choose(costs) == "b"  # with all that it had to make ready
    assert noted(timings, "b", 5.0 * WORSE + 0.1).choose(costs) == "a"


def test_what_is_estimated_too_high_is_tried_once_that_costs_little() -> None:
    """The device is thought to take three times as long as the host is known to."""
    costs = {"host": ExpectedCost(1.0), "device": ExpectedCost(3.0)}
    timings = noted(StrategyTimings(), "host", *[1.0] * 9)
    assert timings.choose(costs) == "host"
    assert noted(timings, "host", *[1.0] * 24).choose(costs) == "device"
    assert timings.choose(costs | {"device": ExpectedCost(3.0, setup=9.0, in_background=True)}) == "host"
    assert timings.choose(costs | {"device": ExpectedCost(3.0, setup=9.0)}) == "host"
    assert noted(timings, "device", 50.0, 0.5, 0.5).choose(costs) == "device"
    assert noted(StrategyTimings(), "host", *[1.0] * 10_000).choose(costs | {"device": ExpectedCost(40.0)}) == "host"


def test_a_choice_holds_while_no_faster_strategy_is_set_up() -> None:
    slow, fast = ({"a": ExpectedCost(1e-3), "b": ExpectedCost(seconds, setup=1.0)} for seconds in (2e-3, 5e-4))
    first = Decision.after(None, "a", slow, StrategyTimings())
    assert Decision.after(first, "a", slow, StrategyTimings()).runs == 2
    assert Decision.after(first, "a", fast, StrategyTimings()).runs == 1


def test_a_choice_of_what_takes_long_is_made_anew_each_time() -> None:
    """Another strategy may be ready by now, and to choose takes little beside such a run."""
    costs = {"a": ExpectedCost(0.03), "b": ExpectedCost(0.1)}
    decided = Decision.after(None, "a", costs, StrategyTimings())
    assert Decision.after(decided, "a", costs, StrategyTimings()).runs == 1


def test_a_first_run_that_was_stopped_is_tried_once_more() -> None:
    """It may have been setting up: but only where another strategy bounds what that costs."""
    costs = {"host": ExpectedCost(1.0), "device": ExpectedCost(0.1)}
    timings = StrategyTimings()
    timings.overran("device", 2.0)
    assert timings.choose(costs) == "host"
    assert noted(timings, "host", *[1.0] * 3).choose(costs) == "device"
    timings.overran("device", 2.0)
    assert noted(timings, "host", *[1.0] * 3).choose(costs) == "host"


def test_a_run_that_was_held_up_says_nothing() -> None:
    costs = {"a": ExpectedCost(1.0), "b": ExpectedCost(4.0)}
    assert noted(StrategyTimings(), "a", 1.0, 100.0).choose(costs) == "a"
    assert noted(StrategyTimings(), "a", 1.0, 100.0, 1.0, 1.0).choose(costs) == "a"


def test_the_fastest_run_ever_is_not_what_a_strategy_takes() -> None:
    timings = noted(StrategyTimings(), "a", 1.0, 0.01, *[5.0] * 3)
    assert timings.measured("a") == 5.0
    assert noted(timings, "a", *[7.0] * 5).measured("a") == 7.0  # nor is what it took long ago


def test_a_strategy_that_was_stopped_is_expected_to_take_longer() -> None:
    costs = {"a": ExpectedCost(1.0), "b": ExpectedCost(4.0)}
    timings = noted(StrategyTimings(), "a", 1.0, 1.0, 1.0)
    timings.overran("a", 3.0)
    timings.overran("a", 3.0)
    assert timings.measured("a") is None
    assert timings.choose(costs) == "b"
    assert noted(timings, "a", 1.0, 1.0).choose(costs) == "a"  # and what it takes then counts again


def test_one_run_that_another_process_delayed_does_not_lose_what_was_measured() -> None:
    """A run of half a millisecond that was stopped after six is no reason to take the other strategy's three."""
    costs = {"host": ExpectedCost(4e-5), "device": ExpectedCost(3e-3)}
    timings = noted(noted(StrategyTimings(), "host", *[5e-4] * 40), "device", *[3e-3] * 3)
    for _ in range(3):
        timings.overran("host", 6e-3)
        assert timings.choose(costs) == "host"
        noted(timings, "host", 5e-4)


def test_what_was_measured_beside_other_work_is_measured_once_more() -> None:
    """A compiler had the processors while the host was measured: the device's 4 ms are not taken for ever."""
    costs = {"host": ExpectedCost(4e-5), "device": ExpectedCost(4e-3)}
    timings = noted(noted(StrategyTimings(), "host", *[5e-3] * 6), "device", *[4e-3] * 3)
    runs = []
    for _ in range(60):
        runs.append(timings.choose(costs, runs=True))
        noted(timings, runs[-1], 5e-4 if runs[-1] == "host" else 4e-3)
    assert runs.index("host") <= AGAIN * 5 / 4
    assert set(runs[runs.index("host") :]) == {"host"}


def test_what_is_slower_is_measured_again_less_and_less() -> None:
    costs = {"host": ExpectedCost(1.0), "device": ExpectedCost(1.0)}
    timings = noted(noted(StrategyTimings(), "host", *[1.0] * 3), "device", *[3.0] * 3)
    runs = []
    for _ in range(1000):
        runs.append(timings.choose(costs, runs=True))
        noted(timings, runs[-1], 1.0 if runs[-1] == "host" else 3.0)
    assert 3 <= runs.count("device") <= 5
    assert timings.choose(costs) == "host"
    slow = noted(noted(StrategyTimings(), "host", *[1.0] * 9), "device", *[NEAR + 1.0] * 3)
    assert {noted(slow, "host", 1.0).choose(costs, runs=True) for _ in range(1000)} == {"host"}


def test_a_strategy_that_was_done_sooner_than_it_was_stopped_is_not_expected_to_take_longer() -> None:
    """A device was still being set up when the host was done; its next run takes a millisecond."""
    costs = {"host": ExpectedCost(0.06), "device": ExpectedCost(1e-3)}
    timings = StrategyTimings()
    timings.overran("device", 0.06)
    assert noted(timings, "host", *[0.06] * 3).choose(costs) == "device"
    assert noted(timings, "device", 2e-3).choose(costs) == "device"
    assert noted(timings, "device", 1e-3, 1e-3).choose(costs) == "device"


def test_a_strategy_that_is_stopped_each_time_is_tried_ever_less() -> None:
    """Else it was, once all runs together had taken long enough, in every run."""
    timings, costs = StrategyTimings(), {"search": ExpectedCost(0.02), "join": ExpectedCost(0.01)}
    for _ in range(4):
        timings.note("search", 0.02)
    searched = stopped = 0.0
    for _ in range(2000):
        if timings.choose(costs, runs=True) == "join":
            timings.overran("join", 0.04)
            stopped += 0.04
        else:
            timings.note("search", 0.02)
            searched += 0.02
    assert 0.0 < stopped < 0.2 * searched


def test_a_choice_of_one_strategy_holds_for_ever_longer_though_it_has_a_setup() -> None:
    """A search never prepares the join that is weighed in its place: each run weighed it anew."""
    timings, costs = StrategyTimings(), {"match": ExpectedCost(0.001, 0.002)}
    decided, held = None, []
    for _ in range(4):
        decided = Decision.after(decided, "match", costs, timings)
        held.append(decided.runs)
    assert held == [1, 2, 4, 8]
    two = {**costs, "count": ExpectedCost(0.01)}
    again = Decision.after(decided, "match", two, timings)
    assert Decision.after(again, "match", two, timings).runs == 1, "it may be set up by the next run"
