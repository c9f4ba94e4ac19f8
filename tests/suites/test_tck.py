"""openCypher's own scenarios, all of them: each with its setup, rows, order, error, effects and control queries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.datasets import SHARED
from tests.suites.tck import Runner, scenarios, writes

FAILING: dict[str, str] = {}
"""Scenarios that fail, and why; one that passes must leave the list."""

FOLDERS = sorted({scenario["folder"] for scenario in scenarios()})
WRITING = sorted({scenario["folder"] for scenario in scenarios() if writes(scenario)})

pytestmark = pytest.mark.skipif(not FOLDERS, reason=f"openCypher's scenarios are not in {SHARED}")


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    found = Runner()
    yield found
    found.close()


def _check(runner: Runner, ids: set[str]) -> None:
    wrong = {scenario["id"]: runner.run(scenario) for scenario in scenarios() if scenario["id"] in ids}
    failed = {id: why for id, why in wrong.items() if why is not None}
    assert {id for id in failed if id not in FAILING} == set(), failed
    assert not [id for id in FAILING if id in wrong and id not in failed], "these pass now: take them off the list"


@pytest.mark.parametrize("folder", FOLDERS)
def test_scenarios(runner: Runner, folder: str) -> None:
    _check(runner, {scenario["id"] for scenario in scenarios() if scenario["folder"] == folder})


@pytest.mark.parametrize("folder", WRITING)
def test_writing_by_sets(runner: Runner, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are written one by one where nothing else is said: here they are written by sets, too.

    Two statements of hundreds of clauses are left to :func:`test_scenarios`: each clause takes a set its own statements.
    """
    monkeypatch.setattr("graphdb.writing.reading.LEAST", 0)
    chosen = [scenario for scenario in scenarios() if scenario["folder"] == folder and writes(scenario)]
    _check(runner, {scenario["id"] for scenario in chosen if len(str(scenario)) < 20_000})


def test_no_scenario_is_left_out() -> None:
    assert len(scenarios()) == 2401
    assert FAILING.keys() <= {scenario["id"] for scenario in scenarios()}
