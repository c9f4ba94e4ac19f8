"""Continuous queries under test follow every batch by delta plans, however long a busy machine takes."""

import pytest

from graphdb.live.matches import pace


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "LEAST", 60.0)
