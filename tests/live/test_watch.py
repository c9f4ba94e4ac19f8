"""Watches: changes as they are committed, in order, once each."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import graphdb
from graphdb.common.errors import BindError, GraphDBError, ParameterError, ParseError, StorageError
from tests.fuzz import scaled
from tests.live.test_statements import FRIENDS, know
from tests.live.writes import opened
from tests.stops import PATIENCE, waited_for


def test_changes_come_in_order(tmp_path: Path) -> None:
    with opened(tmp_path / "a.duckdb") as db:
        know(db, "Ada", "Bob")
        db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
        with db.watch("friends") as watch:
            assert watch.next(timeout=0) is None
            know(db, "Bob", "Cy")
            db.query("MATCH ({name: 'Ada'})-[e:KNOWS]->() DELETE e")
            first, second = watch.next(), watch.next(timeout=PATIENCE)
            assert first is not None
            assert second is not None
            assert (first.batch, first.added.to_pylist(), first.removed.num_rows) == (1, [{"a": "Bob", "b": "Cy"}], 0)
            assert (second.batch, second.removed.to_pylist()) == (2, [{"a": "Ada", "b": "Bob"}])
            assert watch.next(timeout=0.01) is None
        know(db, "Cy", "Di")
    with opened(tmp_path / "a.duckdb") as db, db.watch("friends", from_batch=second.batch + 1) as watch:
        third = watch.next(timeout=0)
        assert third is not None
        assert third.added.to_pylist() == [{"a": "Cy", "b": "Di"}]


def test_another_thread_waits_and_ends_with_the_database(tmp_path: Path) -> None:
    db, other = opened(tmp_path / "a.duckdb"), opened(tmp_path / "a.duckdb")
    know(db, "Ada", "Bob")
    db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
    seen: list[tuple[int, int]] = []
    watch = db.watch("friends")

    def follow() -> None:
        seen.extend((change.batch, change.added.num_rows) for change in watch)

    thread = threading.Thread(target=follow)
    thread.start()
    time.sleep(0.2)
    for number in range(6):
        know((db, other)[number % 2], "Bob", f"x{number}")
    assert waited_for(lambda: len(seen) == 6)
    db.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    other.close()
    assert seen == [(batch, 1) for batch in range(1, 7)]


@pytest.mark.parametrize("again", range(scaled(8)))
def test_a_function_is_called(again: int) -> None:
    with opened(None) as db:
        called = threading.Event()
        seen = []

        def note(change: object) -> None:
            seen.append(change)
            called.set()

        watch = db.watch(FRIENDS, on_change=note)
        know(db, "Ada", "Bob")
        assert called.wait(PATIENCE)
        watch.close()
        know(db, "Bob", "Cy")
        assert len(seen) == 1


@pytest.mark.parametrize("query", [FRIENDS, "MATCH (a)-[:KNOWS]->(b) RETURN count(*) AS n"])
def test_a_text_is_a_query_for_as_long_as_it_is_watched(tmp_path: Path, query: str) -> None:
    with opened(tmp_path / "a.duckdb") as db:
        know(db, "Ada", "Bob")
        with db.watch(query) as watch:
            assert db.query("SHOW CONTINUOUS QUERIES").fetchall() == []
            know(db, "Bob", "Cy")
            found = watch.next(timeout=PATIENCE)
            assert found is not None
            assert found.added.num_rows == 1
        assert db.sql("SELECT count(*) FROM _graphdb.continuous_query").scalar() == 0
        db.watch(query)  # whose process ends without closing it
        from graphdb.live.definitions import WATCHED

        WATCHED.clear()
        know(db, "Cy", "Di")
        assert db.sql("SELECT count(*) FROM _graphdb.continuous_query").scalar() == 0


def test_what_is_gone_and_what_is_not_there() -> None:
    with opened(None) as db:
        know(db, "Ada", "Bob")
        db.query(f"CREATE CONTINUOUS QUERY friends WITH (changes = 2) AS {FRIENDS}")
        slow = db.watch("friends")
        for number in range(6):
            know(db, "Bob", f"x{number}")
        with pytest.raises(StorageError, match="the changes of batch 2 of 'friends' are gone") as caught:
            db.watch("friends", from_batch=2)
        assert "batch 5 on" in str(caught.value.hint)
        with pytest.raises(StorageError, match="batch 1 of 'friends' are gone"):
            slow.next(timeout=PATIENCE)
        with pytest.raises(ParseError, match="unexpected"):
            db.watch("MATCH (a RETURN a")
        with pytest.raises(BindError, match="no continuous query 'frends'"):
            db.watch("frends")
        with pytest.raises(GraphDBError):
            db.watch("MATCH (a) WHERE a.x = rand() RETURN a")
        watch = db.watch("friends")
        db.query("DROP CONTINUOUS QUERY friends")
        with pytest.raises(StorageError, match="was dropped"):
            watch.next(timeout=PATIENCE)


def test_a_watch_never_keeps_a_writer_waiting() -> None:
    with opened(None) as db:
        know(db, "Ada", "Bob")
        db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
        watch = db.watch("friends")
        db.query("BEGIN")
        know(db, "Bob", "Cy")
        assert watch.next(timeout=0.1) is None  # it sees what is committed
        db.query("COMMIT")
        found = watch.next(timeout=PATIENCE)
        assert found is not None
        assert found.added.num_rows == 1


def test_a_slow_consumer_gets_all_and_keeps_no_writer_waiting(tmp_path: Path) -> None:
    with opened(tmp_path / "a.duckdb") as db:
        know(db, "Ada", "Bob")
        db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
        began, go_on, seen = threading.Event(), threading.Event(), []

        def slow(change: graphdb.Change) -> None:
            began.set()
            assert go_on.wait(PATIENCE)
            seen.append((change.batch, change.added.to_pylist()[0]["b"]))

        db.watch("friends", on_change=slow)
        know(db, "Bob", "x0")
        assert began.wait(PATIENCE)
        for number in range(1, 8):  # while the consumer is at the first
            know(db, "Bob", f"x{number}")
        db.query("CHECKPOINT")
        assert seen == []
        go_on.set()
        assert waited_for(lambda: len(seen) == 8)
        assert seen == [(number + 1, f"x{number}") for number in range(8)]


def test_a_consumer_resumes_behind_the_batch_that_it_saw_last(tmp_path: Path) -> None:
    path, seen = tmp_path / "a.duckdb", list[int]()
    with opened(path) as db:
        know(db, "Ada", "Bob")
        db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
        db.query("CREATE CONTINUOUS QUERY every AS MATCH (a)-[:KNOWS]->(b) RETURN count(*) AS n")
    for round in range(3):
        with opened(path) as db:
            for number in range(3):
                know(db, "Bob", f"x{round}{number}")
                db.query("CREATE (:Other)-[:KNOWS]->(:Other)")  # a batch of the other query alone
            with db.watch("friends", from_batch=seen[-1] + 1 if seen else 1) as watch:
                for _ in range(2 + 2 * (round == 2)):  # closed before it has seen all
                    found = watch.next(timeout=PATIENCE)
                    assert found is not None
                    seen.append(found.batch)
    assert seen == [1, 3, 5, 7, 9, 11, 13, 15]


def test_a_query_that_took_the_place_of_another_has_changes_of_its_own() -> None:
    with opened(None) as db:
        know(db, "Ada", "Bob")
        db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
        know(db, "Bob", "Cy")
        db.query("CREATE OR REPLACE CONTINUOUS QUERY friends AS MATCH (a)-[:KNOWS]->(b) RETURN count(*) AS n")
        with pytest.raises(StorageError, match="the changes of batch 1 of 'friends' are gone") as caught:
            db.watch("friends", from_batch=1)
        assert "from batch 2 on" in str(caught.value.hint)
        know(db, "Cy", "Di")
        with db.watch("friends", from_batch=2) as watch:
            found = watch.next(timeout=PATIENCE)
            assert found is not None
            assert (found.removed.to_pylist(), found.added.to_pylist()) == ([{"n": 2}], [{"n": 3}])
            assert repr(watch) == "<Watch of friends: from batch 3 on>"
        assert repr(watch) == "<Watch of friends: closed>"


def test_a_batch_far_ahead_is_not_waited_for() -> None:
    with opened(None) as db:
        know(db, "Ada", "Bob")
        db.query(f"CREATE CONTINUOUS QUERY friends AS {FRIENDS}")
        know(db, "Bob", "Cy")
        for query in ("friends", FRIENDS):
            with pytest.raises(ParameterError, match="there is no batch 3 yet: the last one is 1") as caught:
                db.watch(query, from_batch=3)
            assert "from_batch=2" in str(caught.value.hint)
        with pytest.raises(StorageError, match="are gone"):
            db.watch(FRIENDS, from_batch=1)
        with db.watch("friends", from_batch=2) as watch:
            know(db, "Cy", "Di")
            assert watch.next(timeout=PATIENCE) is not None
        assert db.sql("SELECT count(*) FROM _graphdb.continuous_query").scalar() == 1


def test_a_batch_larger_than_the_budget_is_there_until_the_next() -> None:
    with opened(None) as db:
        db.query("CREATE (:Person {name: 'Ada'})-[:KNOWS]->(:Person {name: 'Bob'})")
        db.query(f"CREATE CONTINUOUS QUERY friends WITH (changes = 3) AS {FRIENDS}")
        watch = db.watch("friends")
        db.query("MATCH (a {name: 'Ada'}) UNWIND range(1, 9) AS i CREATE (a)-[:KNOWS]->(:Person {name: 'p' + i})")
        found = watch.next(timeout=PATIENCE)
        assert found is not None
        assert found.added.num_rows == 9
        know(db, "Bob", "Cy")
        assert [batch for (batch,) in db.sql("SELECT DISTINCT batch FROM friends_changes ORDER BY 1").fetchall()] == [
            1,
            2,
        ]
        for name in ("Di", "Ed", "Flo"):
            know(db, "Bob", name)
        assert db.sql("SELECT min(batch) FROM friends_changes").scalar() > 1


def test_it_is_public() -> None:
    assert graphdb.Change.__name__ == "Change"
    assert graphdb.Watch.__name__ == "Watch"
