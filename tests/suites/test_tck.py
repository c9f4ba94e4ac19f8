"""openCypher's own scenarios: all of them but procedures', each with its rows, order, error and side effects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.datasets import SHARED
from tests.suites.tck import Runner, scenarios

FAILING: dict[str, str] = {}
"""Scenarios that fail, and why; one that passes must leave the list."""

BY_SETS = {"clauses/delete", "clauses/merge", "clauses/remove", "clauses/set"}
"""Where statements are written by sets, however few their rows are."""

FOLDERS = sorted({scenario["folder"] for scenario in scenarios()})


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    found = Runner()
    yield found
    found.close()


@pytest.mark.skipif(not FOLDERS, reason=f"openCypher's scenarios are not in {SHARED}")
@pytest.mark.parametrize("folder", FOLDERS)
def test_scenarios(runner: Runner, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if folder in BY_SETS:
        monkeypatch.setattr("graphdb.writing.run.LEAST", 0)
    chosen = [scenario for scenario in scenarios() if scenario["folder"] == folder]
    wrong = {scenario["id"]: runner.run(scenario) for scenario in chosen}
    failed = {id: why for id, why in wrong.items() if why is not None}
    assert {id for id in failed if id not in FAILING} == set(), failed
    assert not [id for id in FAILING if id in wrong and id not in failed], "these pass now: take them off the list"
