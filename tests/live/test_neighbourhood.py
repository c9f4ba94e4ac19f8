"""Batches matched in the neighbourhood of what they change, as the first ones after opening a large file are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphdb.live.matches import following, neighbourhood
from tests.fuzz import scaled
from tests.live import test_groups, test_properties
from tests.live.writes import check, created, opened, strategies

QUERIES = (
    *test_properties.QUERIES,
    "MATCH (a:A)-[:R]->(b)-[:R]->(c)-[:R]->(d)-[:S]->(a) WHERE d.k > 0 RETURN a.i AS i, b.i AS j, c.k AS k",
    "MATCH (a)-[:R]->(b)-[:S]->(c), (c)-[:R]->(d)-[:R]-(e:B) RETURN a.i AS i, e.k AS k",
    "MATCH REPEATABLE ELEMENTS (a)-[x]-(b)-[:R]-(c) RETURN x, c.i AS i",
)


@pytest.fixture(params=["near", "some"])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have all graphs be large ones; with ``some``, only the smallest neighbourhoods are not too large."""
    monkeypatch.setattr(following, "SMALL", 0)
    monkeypatch.setattr(following, "_READING", 1e9 if request.param == "near" else 1e-3)
    if request.param == "some":
        monkeypatch.setattr(neighbourhood, "MOST_EDGES", 12)
    return str(request.param)


@pytest.mark.parametrize("seed", range(scaled(3)))
def test_answers_are_those_of_the_queries(seed: int, small: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed + 100)
    db = opened(tmp_path / "a.duckdb")
    test_properties.begin(db)
    chosen = draw.choice(len(QUERIES), 4, replace=False).tolist()
    queries = {f"q{number}": QUERIES[number] for number in chosen}
    stored = created(db, queries)
    for number in range(10):
        texts = [(test_properties if draw.random() < 0.6 else test_groups).change(draw) for _ in range(1 + number % 3)]
        db.query("BEGIN")
        for text in texts:
            db.query(text)
        db.query("COMMIT")
        check(db, queries, stored)
        if draw.random() < 0.2:
            db.close()
            db = opened(tmp_path / "a.duckdb")
    standing = db._statements().live.maintenance._standing.values()
    if small == "near":
        assert all(part.matcher is None for each in standing for part in each.parts)
    assert strategies(db)["compared"] == 0
    db.close()


def test_profile_says_what_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "SMALL", 0)
    monkeypatch.setattr(following, "_READING", 1e9)
    with opened(None) as db:
        test_properties.begin(db)
        db.query("CREATE CONTINUOUS QUERY q AS MATCH (a:A)-[:R]->(b) RETURN a, b")
        db.query("MATCH (a:A {i: 1}), (b:A {i: 2}) CREATE (a)-[:R]->(b)")
        standing = db._statements().live.maintenance._standing[1]
        assert standing.parts[0].matcher is None
        assert standing.took[-1].strategy == "delta plans"
        lines = [line for (line,) in db.query("PROFILE CONTINUOUS QUERY q").fetchall()]
        assert any(line.startswith("its matcher takes ") and line.endswith(" MB of memory") for line in lines)
