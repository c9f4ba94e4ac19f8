"""Batches with more matches than anybody could enumerate, and those whose answers are aggregated anew halfway."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise

import numpy as np
import pytest

from graphdb.live.matches import pace
from graphdb.live.matches.pace import Pace
from graphdb.live.rows import of_matches
from graphdb.plan.executor import Overran
from tests.live import test_groups as groups
from tests.live import test_properties as properties
from tests.live.writes import check, created, opened, strategies

SPOKES = 2_000
HUBS = 4


def test_what_rows_do_not_tell_apart_is_counted() -> None:
    """A closed chain of hubs has 2,000^4 matches of a path through them."""
    path = "MATCH REPEATABLE ELEMENTS (a)-[:R]->(h)-[:S]->(i)-[:S]->(j)-[:S]->(k), (i)-[:T]->(b), (j)-[:T]->(c), (k)-[:T]->(d)"
    queries = {
        "every": f"{path} RETURN count(*) AS n",
        "grouped": f"{path} RETURN h.k AS k, count(*) AS n, sum(j.k) AS s, max(k.k) AS m",
        "once": f"{path} RETURN DISTINCT i.k AS k",
    }
    own, hubs = "urn:graphdb:", [f"http://x/h{i}" for i in range(HUBS)]
    edges = [(f"http://x/s{i}", f"{own}R", hubs[0]) for i in range(SPOKES)]
    edges += [(hub, f"{own}T", f"http://x/{n}t{i}") for n, hub in enumerate(hubs) if n for i in range(SPOKES)]
    edges += [(hub, f"{own}k", n) for n, hub in enumerate(hubs)]  # type: ignore[misc]
    chain = [(a, f"{own}S", b) for a, b in pairwise(hubs)]
    with opened(None) as db:
        db.apply(edges + chain[1:])
        stored = created(db, queries)
        db.apply(chain[:1])
        assert db.sql("FROM every").fetchall() == [(SPOKES**HUBS,)]
        assert db.sql("FROM grouped").fetchall() == [(0, SPOKES**HUBS, 2 * SPOKES**HUBS, 3)]
        db.query("MATCH (h {k: 1}) SET h.k = 7")
        assert db.sql("FROM once").fetchall() == [(7,)]
        db.apply(deletions=chain[1:2])
        assert db.sql("FROM every").fetchall() == [(0,)]
        check(db, queries, stored)
        assert strategies(db)["compared"] == 0


@pytest.fixture(autouse=True)
def _patient() -> None:
    """Batches have the time here that they have outside of tests."""


@pytest.mark.parametrize("seed", range(2))
def test_groups_follow_when_matching_is_stopped(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any point: the matcher has the batch all the same, and goes on from there; and rows come in parts of few."""
    draw = np.random.default_rng(seed)

    def limited(self: Pace, check: Callable[[], None], size: int, matches: Callable[[], int]) -> Callable[[], None]:
        calls, last = count(), int(draw.integers(6))

        def stop() -> None:
            if next(calls) == last:
                raise Overran

        return stop

    monkeypatch.setattr(Pace, "limited", limited)
    monkeypatch.setattr(of_matches, "PART", 3)
    monkeypatch.setattr(of_matches, "_MERGED", 4)
    with opened(None) as db:
        properties.begin(db)
        queries = {f"q{number}": groups.query(draw) for number in range(2)}
        stored = created(db, queries)
        for _ in range(8):
            db.query(properties.change(draw))
            check(db, queries, stored)
        found = strategies(db)
        assert found["compared"]
        assert found["delta plans"]


def test_the_faster_strategy_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(pace.time, "perf_counter", lambda: now)
    own = Pace()

    def run(size: int, seconds: float) -> bool:
        """Whether a batch is matched that would take some seconds."""
        nonlocal now
        limited = own.limited(lambda: None, size, lambda: 10**6)
        try:
            for _ in range(11):
                limited()
                now += seconds / 10
        except Overran:
            own.overran(size)
            own.compared(0.2, 10**6)
            return False
        own.matched(size)
        return True

    assert run(10, 0.09)
    begun = now
    assert not run(10_000, 50.0), "a million matches take no seconds"
    assert now - begun < 11
    begun = now
    assert not run(10_000, 50.0)
    assert now == begun, "it is not even begun"
    assert run(10, 0.05)
