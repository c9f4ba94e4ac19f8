"""What a statement that writes reads is bound and compiled once, and follows what its names come to stand for."""

from __future__ import annotations

from typing import Any

import pytest

import graphdb
from graphdb.relational import query as module

FRIENDS = "MATCH (a:Person {id: $a}), (b:Person {id: $b}) CREATE (a)-[e:KNOWS]->(b) SET e.since = $since"


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Patterns of single queries that are bound."""
    found: list[object] = []
    bind = module.bind

    def noted(*arguments: Any) -> Any:
        found.append(arguments[0])
        return bind(*arguments)

    monkeypatch.setattr(module, "bind", noted)
    return found


def test_other_values_are_looked_for_without_binding(bound: list[object]) -> None:
    with graphdb.connect() as db:
        db.query("UNWIND range(1, 100) AS i CREATE (:Person {id: i})")
        db.query(FRIENDS, a=1, b=2, since=1)
        db.query(FRIENDS, a=1, b=3, since=2)  # since the first, KNOWS has edges with rows of their own
        bound.clear()
        for i in range(4, 9):
            db.query(FRIENDS, a=1, b=i, since=i)
        assert not bound
        found = db.query("MATCH (:Person {id: 1})-[e:KNOWS]->(b) RETURN b.id, e.since ORDER BY b.id").fetchall()
        assert found == [(2, 1), (3, 2), *((i, i) for i in range(4, 9))]


@pytest.mark.parametrize("path", [":memory:", "file"])
def test_it_follows_what_changes(path: str, tmp_path: Any) -> None:
    """New vertices, values of other types, labels that go, rollbacks and another connection's changes, between runs."""
    path = path if path == ":memory:" else str(tmp_path / "graph.duckdb")
    mark = "MATCH (a:Person {id: $id}) SET a.seen = coalesce(a.seen, 0) + 1"
    grow = "MATCH (a:Person {id: $id}) WHERE a.size < $size CREATE (a)-[:GREW]->(:Step)"
    with graphdb.connect(path) as db:

        def seen() -> dict[object, object]:
            return dict(db.query("MATCH (a {kind: 'p'}) RETURN a.id, a.seen").fetchall())

        db.query("UNWIND range(1, 3) AS i CREATE (:Person {id: i, kind: 'p'})")
        for _ in range(3):
            db.query(mark, id=1)
        assert seen() == {1: 3, 2: None, 3: None}
        db.query("CREATE (:Person {id: 4, kind: 'p'}), (:Person {id: 1, kind: 'p', seen: 40})")
        db.query(mark, id=4)
        db.query(mark, id=1)
        assert sorted(db.query("MATCH (a {id: 1}) RETURN a.seen").fetchall()) == [(4,), (41,)]
        db.query("MATCH (a {seen: 41}) DETACH DELETE a")
        db.query("CREATE (:Person {id: 'four', kind: 'p'})")  # ids are texts, too
        db.query(mark, id=4)
        assert seen() == {1: 4, 2: None, 3: None, 4: 2, "four": None}
        db.query("MATCH (a {id: 2}) REMOVE a:Person")
        db.query(mark, id=2)
        assert seen()[2] is None
        db.query("BEGIN")
        db.query("MATCH (a {id: 2}) SET a:Person")
        db.query(mark, id=2)
        assert seen()[2] == 1
        db.query("ROLLBACK")
        db.query(mark, id=2)
        assert seen()[2] is None
        for size, grown in ((5, 0), (50, 0)):
            db.query(grow, id=3, size=size)
            assert db.query("MATCH (:Step) RETURN count(*)").scalar() == grown
        db.query("MATCH (a {id: 3}) SET a.size = 7")
        db.query(grow, id=3, size=5)
        db.query(grow, id=3, size=50)
        db.query("MATCH (a {id: 3}) SET a.size = 6.5")
        db.query(grow, id=3, size=7)
        db.query("MATCH (a {id: 3}) SET a.size = 'much'")
        db.query(grow, id=3, size=1000)
        assert db.query("MATCH (:Step) RETURN count(*)").scalar() == 2
        if path != ":memory:":
            with graphdb.connect(path) as other:
                other.query("MATCH (a {id: 3}) SET a.size = 1 CREATE (:Person {id: 9, kind: 'p'})")
            db.query(grow, id=3, size=2)
            db.query(mark, id=9)
            assert db.query("MATCH (:Step) RETURN count(*)").scalar() == 3
            assert seen()[9] == 1
