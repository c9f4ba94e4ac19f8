"""Continuous queries whose batches a device searches: the same answers, and PROFILE says where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphdb.dispatch.engine import Engine
from graphdb.incremental.device import engine
from tests.fuzz import scaled
from tests.incremental.test_device import WHERE, opened
from tests.live import test_random as random
from tests.live.test_explain import CIRCLE
from tests.live.test_statements import know
from tests.live.writes import opened as database


def use(device: Any, patch: pytest.MonkeyPatch) -> None:
    """Have all databases search all batches on a device."""
    patch.setattr(Engine, "device", lambda self: lambda: device)
    patch.setattr(engine, "FEWEST", 1)
    patch.setattr(engine.DeviceMatching, "_pays", lambda self, work: True)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("seed", range(scaled(4)))
def test_answers_stay_those_of_their_queries(where: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(where) as device:
        use(device, monkeypatch)
        found = random.follow(np.random.default_rng(100 + seed), None, writes=8)
        assert found["delta plans on cuda"] > 0


@pytest.mark.parametrize("where", WHERE)
def test_profile_says_where_a_batch_was_searched(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(where) as device, database(None) as db:
        know(db, "Ada", "Bob")
        use(device, monkeypatch)
        db.query(f"CREATE CONTINUOUS QUERY q AS {CIRCLE}")
        know(db, "Bob", "Cy")
        know(db, "Cy", "Ada")
        lines = [line for (line,) in db.query("PROFILE CONTINUOUS QUERY q").fetchall()]
        assert lines[-1].endswith(" ms, delta plans on cuda:0")
        assert len(db.query("SELECT * FROM q").fetchall()) == 3
