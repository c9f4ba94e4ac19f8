"""Edges that a statement deletes and makes again: against a model of parallel edges as a bag."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import graphdb
from tests.fuzz import scaled

PAIRS = [(a, b) for a in range(3) for b in range(3)]
ALL = "MATCH (a:N)-[t:T]->(b:N) RETURN a.id, b.id, t.w"


def _set_up(db: graphdb.Database, dice: random.Random) -> Counter[tuple[int, int, object]]:
    """Make a few edges, some parallel, some without a property; return them."""
    db.query("UNWIND range(0, 2) AS i CREATE (:N {id: i})")
    model: Counter[tuple[int, int, object]] = Counter()
    for _ in range(dice.randint(1, 6)):
        a, b = dice.choice(PAIRS)
        w = dice.choice([None, 1, 2])
        db.query(
            f"MATCH (a:N {{id: {a}}}), (b:N {{id: {b}}}) CREATE (a)-[:T{'' if w is None else f' {{w: {w}}}'}]->(b)"
        )
        model[a, b, w] += 1
    return model


def _replaced(
    model: Counter[tuple[int, int, object]], w: object, merged: bool
) -> tuple[Counter[object], Counter[object]]:
    """The edges after each was deleted and made again with ``w``, and the rows: one for each that was deleted.

    MERGE makes one edge for all that were between two vertices.
    """
    after: Counter[object] = Counter()
    for (a, b, _), count in model.items():
        after[a, b, w] = 1 if merged else after[a, b, w] + count
    rows = Counter((a, b, w) for a, b, _ in model.elements())
    return after, Counter(rows)


@pytest.mark.parametrize("least", [None, 0], ids=["as it is", "by sets"])
def test_deleted_and_made_again(monkeypatch: pytest.MonkeyPatch, least: int | None) -> None:
    if least is not None:
        monkeypatch.setattr("graphdb.writing.reading.LEAST", least)
    dice = random.Random(21)
    with graphdb.connect(device="cpu", threads=1) as db:
        for _ in range(scaled(6)):
            db.query("MATCH (n) DETACH DELETE n")
            model: Counter[object] = Counter(_set_up(db, dice))  # type: ignore[arg-type]
            for _ in range(dice.randint(1, 3)):
                w = dice.choice([None, 1, 3])
                verb = dice.choice(["CREATE", "MERGE"]) if w is not None else "CREATE"
                properties = "" if w is None else f" {{w: {w}}}"
                text = f"MATCH (a:N)-[t:T]->(b:N) DELETE t {verb} (a)-[u:T{properties}]->(b) "
                text += "RETURN a.id, b.id, u.w"
                model, rows = _replaced(model, w, verb == "MERGE")  # type: ignore[arg-type]
                assert Counter(db.query(text).fetchall()) == rows, text
                assert Counter(db.query(ALL).fetchall()) == model, text
                assert db.query("MATCH ()-[t:T]->() RETURN count(t)").scalar() == model.total()


def test_the_new_edge_is_another_one() -> None:
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("CREATE (:N {id: 0})-[:T {w: 1}]->(:N {id: 1})")
        text = "MATCH (a)-[t:T]->(b) DELETE t CREATE (a)-[u:T {w: 2}]->(b) "
        assert db.query(text + "RETURN t = u, u.w").fetchall() == [(False, 2)]
        with pytest.raises(graphdb.ExecutionError, match="was deleted"):
            db.query(text + "RETURN t.w")
        db.query(text + "DELETE t")  # once more changes nothing
        assert db.query(ALL).fetchall() == [(0, 1, 2)]
        db.query(text + "DELETE u")
        assert db.query(ALL).fetchall() == []
