"""openCypher's own scenarios: all of them but procedures', each with its rows, order, error and side effects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.datasets import SHARED
from tests.suites.tck import Runner, scenarios

FAILING: dict[str, str] = {}
"""Scenarios that fail, and why; one that passes must leave the list."""

FOLDERS = sorted({scenario["folder"] for scenario in scenarios()})


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    found = Runner()
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _written_by_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few the rows are: elsewhere such statements are interpreted."""
    monkeypatch.setattr("graphdb.writing.run.LEAST", 0)


@pytest.mark.skipif(not FOLDERS, reason=f"openCypher's scenarios are not in {SHARED}")
@pytest.mark.parametrize("folder", FOLDERS)
def test_scenarios(runner: Runner, folder: str) -> None:
    chosen = [scenario for scenario in scenarios() if scenario["folder"] == folder]
    wrong = {scenario["id"]: runner.run(scenario) for scenario in chosen}
    failed = {id: why for id, why in wrong.items() if why is not None}
    assert {id for id in failed if id not in FAILING} == set(), failed
    assert not [id for id in FAILING if id in wrong and id not in failed], "these pass now: take them off the list"
