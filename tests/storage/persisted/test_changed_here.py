"""What a session derives after it has changed a file persists, and nothing that it derived before, or rolled back."""

from __future__ import annotations

import random
import time
from pathlib import Path

import duckdb
import pytest

import graphdb
from graphdb.common.errors import QueryInterrupted
from graphdb.relational.session import ahead
from graphdb.relational.session.state import State
from graphdb.snapshot.edges import Edges
from graphdb.snapshot.properties import Properties
from graphdb.storage.file.ddl import FORMER
from graphdb.storage.graph import data_graph
from graphdb.storage.persisted import store
from tests.fuzz import scaled
from tests.storage.persisted.openings import MOMENT, QUERIES, SWAP, answers, asked, counted, derived, elsewhere, names


def test_what_was_derived_before_a_change_is_not_persisted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(place)
    kept = names()
    with graphdb.connect(place) as database, graphdb.connect(place) as other:
        before = asked(database)
        assert asked(other) == before
        result = database.query("MATCH (a:P)-[r:K]->(b) RETURN a, r, b")
        database.query("MATCH (a:P {x: 3}) SET a.x = 77")
        database.query("CREATE (:P {x: 78, name: 'n7'})")
        assert len(result.fetchall()) > 100
    assert names() == kept
    time.sleep(2 * MOMENT)
    with counted(monkeypatch) as read:
        assert answers(place) == derived(place, monkeypatch) != before
    assert not read


def test_what_was_derived_since_a_change_is_persisted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a load: the next process finds it, without waiting."""
    before = answers(place)
    kept = names()
    with graphdb.connect(place) as database:
        database.query(SWAP)
        with counted(monkeypatch) as read:
            now = asked(database)
        assert not read
    assert now != before
    assert names()
    assert not set(names()) & set(kept), "what former states left is gone"
    with counted(monkeypatch) as read:
        assert answers(place) == now
    assert len(read) > len(QUERIES)
    assert derived(place, monkeypatch) == now
    elsewhere(place, f"db.query({SWAP!r}); db.close()")
    with counted(monkeypatch) as read:
        assert answers(place) == before
    assert not read


def test_a_file_that_was_loaded_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "loaded.duckdb"
    (tmp_path / "p.csv").write_text(":ID(P),x:int,name\n" + "".join(f"{i},{i},n{i}\n" for i in range(50)))
    (tmp_path / "k.csv").write_text(
        ":START_ID(P),:END_ID(P),w:int\n" + "".join(f"{i},{i * 7 % 50},{i}\n" for i in range(50))
    )
    with graphdb.connect(path) as database:
        database.query(f"LOAD '{tmp_path / 'p.csv'}' AS LABEL P, '{tmp_path / 'k.csv'}' AS TYPE K")
        text = "MATCH (a:P)-[r:K]->(b) RETURN a.x, r.w, b.name ORDER BY a.x"
        first = database.query(text).fetchall()
    assert len(first) == 50
    assert names()
    with counted(monkeypatch) as read, graphdb.connect(path) as database:
        assert database.query(text).fetchall() == first
    assert read


TABLES = {
    "p.csv": ":ID(P),x:int,name,at:datetime\n"
    + "".join(f"{i},{i},n{i % 9},2020-01-02T03:04:{i:02}Z\n" for i in range(60)),
    "k.csv": ":START_ID(P),:END_ID(P),w:int\n"
    + "".join(f"{i},{(i + j + 1) % 60},{i * j}\n" for i in range(60) for j in range(9)),
    "u.csv": ":START_ID(P),:END_ID(P)\n" + "".join(f"{i},{i // 2}\n" for i in range(1, 60)),
}
ASKED = (
    "MATCH (a:P)-[r:K]-(b) RETURN count(*), sum(r.w), max(r.w), count(DISTINCT b.name)",
    "MATCH (a:P) WHERE a.at > datetime('2020-01-02T03:04:30Z') RETURN count(*), max(a.at), sum(a.x)",
    "MATCH (a:P {x: 3})<-[r:K]-(b) RETURN b.name, r.w ORDER BY r.w",
    "MATCH (a:P {x: 59})-[:U*]->(b) RETURN count(*), sum(b.x)",
)


def loaded(folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: float) -> Path:
    """Load a file as if it were a large one, ask nothing, and close it."""
    for name, text in TABLES.items():
        (folder / name).write_text(text)
    with monkeypatch.context() as patch, graphdb.connect(folder / "loaded.duckdb") as database:
        for name, value in ({"SHARE": 1e6, "LEAST": 0.0, "LARGE": 1, "MOST": 60.0} | settings).items():
            patch.setattr(ahead, name, value)
        tables = f"'{folder / 'p.csv'}' AS LABEL P, '{folder / 'k.csv'}' AS TYPE K, '{folder / 'u.csv'}' AS TYPE U"
        database.query(f"LOAD {tables}")
    return folder / "loaded.duckdb"


def test_a_load_that_asks_nothing_leaves_what_first_queries_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = loaded(tmp_path, monkeypatch)
    with counted(monkeypatch) as read, monkeypatch.context() as patch, graphdb.connect(path) as database:
        patch.setattr(data_graph, "forest_of", lambda *_: pytest.fail("a forest was derived"))
        patch.setattr(Edges, "_gathered", lambda *_: pytest.fail("properties of edges were read"))
        found = [database.query(text).fetchall() for text in ASKED]
    assert len(read) >= 8, "three columns, two directions, of which kind w is, and its values; a forest"
    with monkeypatch.context() as patch, graphdb.connect(path) as database:
        patch.setattr(store, "LARGE", 1 << 60)
        assert [database.query(text).fetchall() for text in ASKED] == found
    assert found[3] == [(6, 29 + 14 + 7 + 3 + 1 + 0)]
    assert found[0][0][:2] == (1080, 2 * sum(i * j for i in range(60) for j in range(9)))


def test_what_was_derived_of_a_file_of_an_older_version_is_persisted(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = derived(place, monkeypatch)
    older(place)
    assert answers(place) == expected
    assert names()
    with counted(monkeypatch) as read:
        assert answers(place) == expected
    assert read


def test_a_migration_leaves_what_first_queries_need(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SHARE": 1e6, "LEAST": 0.0, "LARGE": 1, "MOST": 60.0}.items():
        monkeypatch.setattr(ahead, name, value)
    expected = derived(place, monkeypatch)
    older(place)
    with graphdb.connect(place) as database:
        assert database.query("MATCH (a:P) RETURN count(*)").scalar() == 40
    with counted(monkeypatch) as read, monkeypatch.context() as patch:
        patch.setattr(data_graph, "forest_of", lambda *_: pytest.fail("a forest was derived"))
        assert answers(place) == expected
    assert read


def older(path: Path) -> None:
    """Make a file one that a version wrote which had other columns of literals."""
    with duckdb.connect(path) as connection:
        connection.execute(f"CREATE TABLE _graphdb.former ({FORMER['literal'][11]})")
        columns = "id, text, datatype, language, kind, integer, number, moment"
        connection.execute(f"INSERT INTO _graphdb.former SELECT {columns} FROM _graphdb.literal")
        connection.execute("DROP TABLE _graphdb.literal")
        connection.execute("ALTER TABLE _graphdb.former RENAME TO literal")
        connection.execute("UPDATE _graphdb.meta SET value = '11' WHERE key = 'schema_version'")
    time.sleep(2 * MOMENT)


def test_a_small_load_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(State, "snapshot", lambda *_: pytest.fail("names were read"))
    with graphdb.connect(tmp_path / "small.duckdb") as database:
        (tmp_path / "p.csv").write_text(TABLES["p.csv"])
        database.load(tmp_path / "p.csv", label="P")
    assert not names()


@pytest.mark.parametrize("setting", [{"SHARE": 1e-9}, {"MOST": 0.0}, {"LARGE": 541}, {"_BYTES": 1 << 40}])
def test_what_takes_too_long_or_too_much_memory_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: dict[str, float]
) -> None:
    loaded(tmp_path, monkeypatch, **setting)
    assert not names()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, QueryInterrupted, duckdb.OutOfMemoryException])
def test_a_load_is_complete_whatever_stops_what_comes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def failing(*_: object) -> None:
        raise error("stopped")

    with monkeypatch.context() as patch:
        patch.setattr(Properties, "array", failing)
        if error is KeyboardInterrupt:
            with pytest.raises(KeyboardInterrupt):
                loaded(tmp_path, monkeypatch)
        else:
            loaded(tmp_path, monkeypatch)
    with graphdb.connect(tmp_path / "loaded.duckdb") as database:  # it was closed
        assert database.query(ASKED[0]).fetchall()[0][0] == 1080


def test_a_clock_that_counts_in_seconds_is_not_relied_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stamp_of = store.stamp_of

    def in_seconds(path: str) -> tuple[int, ...] | None:
        found = stamp_of(path)
        return None if found is None else (*found[:3], *(each // 10**9 * 10**9 for each in found[3:]))

    monkeypatch.setattr(store, "stamp_of", in_seconds)
    with graphdb.connect(place) as database:
        database.query(SWAP)
        asked(database)
    assert not names()


def test_what_another_connection_changes_meanwhile_is_not_mistaken(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what a connection derived before another one of the process changed the graph, nor within a transaction."""
    with graphdb.connect(place) as other:
        with graphdb.connect(place) as database:
            database.query(SWAP)
            asked(database)
            other.query("MATCH (a:P {x: 9}) SET a.x = 99")
        assert not names()
        with graphdb.connect(place) as database:
            database.query("CREATE (:P {x: 80, name: 'n7'})")
            now = asked(database)
            other.query("BEGIN")
            other.query("MATCH (a:P) WHERE a.x > 20 DETACH DELETE a")
            asked(other)
        other.query("ROLLBACK")
        assert asked(other) == now
    assert answers(place) == now == derived(place, monkeypatch)


def test_what_a_transaction_sees_is_not_persisted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with graphdb.connect(place) as database:
        database.query("BEGIN")
        database.query("MATCH (a:P) WHERE a.x > 20 DETACH DELETE a")
        inside = asked(database)
        database.query("ROLLBACK")
        outside = asked(database)
    assert outside != inside
    assert outside == derived(place, monkeypatch) == answers(place) == answers(place)


def test_a_transaction_does_not_read_what_was_before_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = answers(place)
    for commit in (False, True):
        with graphdb.connect(place) as database:
            database.query("BEGIN")
            database.query(SWAP)
            inside = asked(database)
            assert inside != before
            database.query("COMMIT" if commit else "ROLLBACK")
            assert (asked(database) == before) != commit
        time.sleep(2 * MOMENT)
        assert (answers(place) == before) != commit
    assert answers(place) == inside == derived(place, monkeypatch)


@pytest.mark.parametrize("seed", range(scaled(10)))
def test_histories(place: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is written, asked, rolled back and closed in turns: a file has the answers that are derived of it."""
    draw = random.Random(seed)
    found = 0
    for _ in range(6):
        with counted(monkeypatch) as read, graphdb.connect(place) as database:
            for _ in range(draw.randint(1, 6)):
                k = draw.randrange(40)
                match draw.randrange(6):
                    case 0:
                        database.query(SWAP)
                    case 1:
                        database.query("MATCH (a:P {x: $k}) SET a.x = $k + 1", k=k)
                    case 2:
                        database.query("MATCH (a:P {x: $k}) CREATE (a)-[:K {w: $k}]->(:P {x: $k, name: 'n7'})", k=k)
                    case 3 | 4:
                        database.query(draw.choice(QUERIES)).fetchall()
                    case _:
                        database.query("BEGIN")
                        database.query("MATCH (a:P {x: $k}) SET a.x = 1000", k=k)
                        asked(database)
                        database.query(draw.choice(["COMMIT", "ROLLBACK"]))
            now = [sorted(rows, key=repr) for rows in asked(database)]
        found += len(read)
        assert [sorted(rows, key=repr) for rows in derived(place, monkeypatch)] == now
        if draw.randrange(2):
            time.sleep(2 * MOMENT)
    assert found
