"""Random queries and writes: after each, every answer is what its query gives, and what its changes add up to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from graphdb.common.errors import GraphDBError
from tests.fuzz import scaled
from tests.live.writes import begin, check, load, opened, statement, strategies


@pytest.mark.parametrize("seed", range(scaled(10)))
def test_answers_stay_those_of_their_queries(seed: int, tmp_path: Path) -> None:
    follow(np.random.default_rng(seed), tmp_path / "a.duckdb" if seed % 3 == 0 else None)


def follow(draw: np.random.Generator, path: Path | None, writes: int = 14) -> Counter[str]:
    """Compare all answers after each of some writes; return how often each strategy maintained one, since opening."""
    db = opened(path)
    queries, stored = begin(db, draw, 6)
    for _ in range(writes):
        kind = draw.random()
        if kind < 0.1:
            load(db, draw)
        elif kind < 0.25:
            db.query("BEGIN")
            for _ in range(int(draw.integers(1, 4))):
                db.query(statement(draw))
            db.query("ROLLBACK" if draw.random() < 0.4 else "COMMIT")
        elif kind < 0.3:
            with pytest.raises(GraphDBError):
                db.query(f"{statement(draw)} WITH 1 AS x UNWIND [1, 0] AS y SET x.a = 1 / y")
        elif kind < 0.34:
            db.query("VACUUM")
        elif kind < 0.4 and path is not None:
            db.close()
            db = opened(path)
        else:
            db.query(statement(draw))
        check(db, queries, stored)
    found = strategies(db)
    db.close()
    return found


COMPARED = "MATCH (a:A) RETURN count(*) AS n UNION ALL MATCH (b:B) RETURN count(*) AS n"
"""What no delta plan follows."""


def test_delta_plans_are_used() -> None:
    draw = np.random.default_rng(5)
    with opened(None) as db:
        begin(db, draw, 12)
        for name in ("one", "another"):
            db.query(f"CREATE CONTINUOUS QUERY {name} AS {COMPARED}")
        for _ in range(40):
            db.query(statement(draw))
            found = strategies(db)
            if min(found["delta plans"], found["compared"]) > 20:
                break
        assert found["delta plans"] > 20
        assert found["compared"] > 20
