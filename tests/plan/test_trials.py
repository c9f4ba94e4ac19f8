"""The choice between ways whose times are expected, and then known."""

from __future__ import annotations

from graphdb.plan.trials import DOUBT, Expected, Trials


def test_what_is_expected_to_be_done_first_is_chosen() -> None:
    assert Trials().choose({"a": Expected(2.0), "b": Expected(1.0)}) == "b"
    assert Trials().choose({"a": Expected(2.0), "b": Expected(1.0, first=1.5)}) == "a"
    assert Trials().choose({"a": Expected(2.0), "b": Expected(1.0, first=0.5)}) == "b"


def test_what_a_way_needs_first_is_paid_for_once_it_was_missed_for_as_long() -> None:
    trials, ways = Trials(), {"a": Expected(2.0), "b": Expected(1.0, first=3.5)}
    assert [trials.choose(ways, runs=True) for _ in range(5)] == ["a", "a", "a", "b", "b"]
    assert Trials().choose(ways) == "a"


def test_what_gets_ready_beside_is_waited_for_only_where_that_is_sooner() -> None:
    trials, ways = Trials(), {"a": Expected(2.0), "b": Expected(1.0, first=3.5, beside=True)}
    assert [trials.choose(ways, runs=True) for _ in range(9)] == ["a"] * 9
    assert trials.choose(ways | {"b": Expected(1.0, first=0.5, beside=True)}) == "b"
    assert trials.choose(ways | {"b": Expected(1.0)}) == "b"


def test_asking_alone_misses_nothing() -> None:
    trials, ways = Trials(), {"a": Expected(2.0), "b": Expected(1.0, first=3.5)}
    assert [trials.choose(ways) for _ in range(9)] == ["a"] * 9


def noted(trials: Trials, way: str, *seconds: float) -> Trials:
    for taken in seconds:
        trials.note(way, taken)
    return trials


def test_measured_beats_expected_but_for_the_first_run() -> None:
    ways = {"a": Expected(1.0), "b": Expected(4.0)}
    assert noted(Trials(), "a", 100.0).choose(ways) == "a"  # with all that it had to make ready
    limit = 4.0 * DOUBT  # what was never tried must promise more
    assert noted(Trials(), "a", 100.0, limit - 0.5, limit - 0.5).choose(ways) == "a"
    trials = noted(Trials(), "a", 100.0, limit + 0.5, limit + 0.5)
    assert trials.choose(ways) == "b"
    assert noted(trials, "b", 100.0, 9.0, 9.0).choose(ways) == "a"


def test_a_run_that_was_held_up_says_nothing() -> None:
    ways = {"a": Expected(1.0), "b": Expected(4.0)}
    assert noted(Trials(), "a", 1.0, 100.0).choose(ways) == "a"
    assert noted(Trials(), "a", 1.0, 100.0, 1.0, 100.0).choose(ways) == "a"
