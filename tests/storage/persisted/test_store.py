"""Structures persist from one opening of a file to the next, and never outlive a change of it."""

from __future__ import annotations

import math
import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.storage.persisted import files, store
from tests.storage.persisted.openings import MOMENT, QUERIES, SWAP, answers, asked, counted, derived, elsewhere, names


def test_a_second_opening_derives_nothing_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = answers(place)
    assert names()
    assert all((store.FOLDER.folder() / name).stat().st_mode & 0o077 == 0 for name in names())
    with counted(monkeypatch) as read, monkeypatch.context() as patch:
        from graphdb.storage.graph import data_graph

        def refuse(*arguments: object) -> None:
            raise AssertionError("a partition is built again")

        patch.setattr(data_graph, "build_partition", refuse)
        assert answers(place) == first
    assert len(read) > len(QUERIES)
    assert derived(place, monkeypatch) == first
    with counted(monkeypatch) as read:
        assert answers(place, read_only=True) == first
    assert read


def test_a_file_that_another_process_changed_is_derived_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = answers(place)
    elsewhere(place, f"db.query({SWAP!r}); db.close()")
    time.sleep(2 * MOMENT)
    with counted(monkeypatch) as read:
        now = answers(place)
    assert not read
    assert now != before
    assert now == derived(place, monkeypatch)
    kept = names()
    answers(place)
    assert names() == kept, "what former states left is gone, what is there is not written twice"


def test_what_a_dead_process_left_in_the_log_is_seen(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = answers(place)
    elsewhere(place, f"db.query({SWAP!r})")
    time.sleep(2 * MOMENT)
    assert Path(f"{place}.wal").exists()
    kept = names()
    with counted(monkeypatch) as read, graphdb.connect(place) as database:
        now = asked(database)
        assert now != before
    assert not read
    assert [name for name in names() if name not in kept] == []
    time.sleep(2 * MOMENT)
    assert answers(place) == now == derived(place, monkeypatch)
    with counted(monkeypatch) as read:
        assert answers(place) == now
    assert read


def test_a_backup_in_the_place_of_a_file(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy2(place, tmp_path / "backup.duckdb")
    before = answers(place)
    elsewhere(place, "db.query('MATCH (a:P {x: 3}) SET a.x = 66'); db.close()")
    time.sleep(2 * MOMENT)
    after = answers(place)
    shutil.copy2(tmp_path / "backup.duckdb", place)  # over it: the same file, and the times of the backup
    time.sleep(2 * MOMENT)
    assert answers(place) == before
    elsewhere(place, "db.query('MATCH (a:P {x: 3}) SET a.x = 55'); db.close()")
    time.sleep(2 * MOMENT)
    assert answers(place) == derived(place, monkeypatch) != after


def test_a_copy_of_a_file_has_its_own(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = answers(place)
    shutil.copy2(place, tmp_path / "copy.duckdb")
    time.sleep(2 * MOMENT)
    with counted(monkeypatch) as read:
        assert answers(tmp_path / "copy.duckdb") == first
    assert not read


def test_damaged_files_are_derived_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = answers(place)
    for at, name in enumerate(names()):
        content = bytearray((store.FOLDER.folder() / name).read_bytes())
        content[files._HEAD.size + 6] ^= 1
        (store.FOLDER.folder() / name).write_bytes(content if at % 2 else content[: len(content) // 2])
    with counted(monkeypatch) as read:
        assert answers(place) == first
    assert not read
    with counted(monkeypatch) as read:
        assert answers(place) == first
    assert read


def test_of_a_file_that_was_just_written_nothing_is(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as long as a further change could have the same times; who has opened it before may write what is derived."""
    with monkeypatch.context() as patch:
        patch.setattr(store, "_SETTLED", 1000.0)
        first = answers(place)
    assert not names()
    future = time.time() + 100
    os.utime(place, (future, future))
    assert answers(place) == first
    assert not names()
    os.utime(place)
    with graphdb.connect(place) as database:
        assert asked(database) == first
        time.sleep(2 * MOMENT)
    assert names()
    with counted(monkeypatch) as read:
        assert answers(place) == first
    assert read


def test_times_that_are_set_back_do_not_hide_a_change(place: Path) -> None:
    stamp, times = store.stamp_of(str(place)), place.stat()
    content = bytearray(place.read_bytes())
    content[-1] ^= 1
    place.write_bytes(content)
    os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))
    time.sleep(2 * MOMENT)
    assert place.stat().st_mtime_ns == times.st_mtime_ns
    assert store.stamp_of(str(place)) not in (stamp, None)


@pytest.mark.parametrize("mode", [0o500, 0o755])
def test_a_folder_that_is_not_private_or_not_writable(place: Path, mode: int, monkeypatch: pytest.MonkeyPatch) -> None:
    first = answers(place)
    kept = names()
    store.FOLDER.folder().chmod(mode)
    if mode == 0o500 and os.geteuid() == 0:  # who may write everywhere
        monkeypatch.setattr(os, "access", lambda path, how: how != os.W_OK)
    with counted(monkeypatch) as read:
        assert answers(place) == first
    assert not read
    store.FOLDER.folder().chmod(0o700)
    assert names() == kept


def test_strangers_statements_persist_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = answers(place, untrusted=True)
    assert not names()
    answers(place)
    with counted(monkeypatch) as read:
        assert answers(place, untrusted=True) == first
    assert not read


def test_sorted_keys_and_costs_are_persisted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is looked for in the values that were sorted before, and edges have the costs that were computed before."""
    from graphdb.plan.paths import Weighted
    from graphdb.snapshot.key_index import LOOKS, KeyIndexes, SortedValues

    key = "MATCH (a:P {x: $x})-[:K]->(b) RETURN count(b)"
    with graphdb.connect(place) as database:
        first = [database.query(key, x=x).fetchall() for x in range(LOOKS + 2)]
        cost = database.query(QUERIES[-1]).fetchall()
    read, found = files.read, []

    def note(folder: Path, name: str) -> Any:
        found.append(read(folder, name))
        return found[-1]

    def refuse(*arguments: object) -> None:
        raise AssertionError("it is looked for in the file")

    monkeypatch.setattr(files, "read", note)
    monkeypatch.setattr(KeyIndexes, "_looked_up", refuse)
    monkeypatch.setattr(SortedValues, "read", refuse)
    with graphdb.connect(place) as database:
        assert [database.query(key, x=x).fetchall() for x in range(LOOKS + 2)] == first
        assert database.query(QUERIES[-1]).fetchall() == cost
    assert sum(isinstance(each, SortedValues) for each in found) == 1
    assert sum(isinstance(each, Weighted) for each in found) == 1


def test_costs_that_procedures_decide_on_are_not_persisted(place: Path) -> None:
    text = QUERIES[-1].replace(
        "MATCH (x)<-[:UP]-(z) WHERE z.x > 5", "MATCH (x)<-[:UP]-(z) CALL my.limit() YIELD n WHERE z.x > n"
    )
    found = []
    for limit in (5, 0, 5):
        with graphdb.connect(place) as database:
            database.register_procedure("my.limit", lambda limit=limit: [(limit,)], {}, {"n": int})
            found.append(database.query(text).fetchall())
    assert found[0] == found[2] != found[1]


def test_subclasses_are_another_state(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere(
        place,
        "db.query('INSERT DATA { <urn:graphdb:P> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <urn:graphdb:Q> }');"
        " db.query('CREATE (:Q {x: 1000, name: \"n7\"})'); db.close()",
    )
    time.sleep(2 * MOMENT)
    texts = [text.replace(":P", ":Q") for text in QUERIES]
    found = []
    for subclasses in (False, True, False, True):
        with graphdb.connect(place, subclasses=subclasses) as database:
            found.append([database.query(text).fetchall() for text in texts])
    assert found[0] == found[2]
    assert found[1] == found[3]
    assert all(one != other for one, other in zip(found[0][:5], found[1][:5], strict=True))


def test_another_time_zone_is_another_state(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = answers(place)
    with graphdb.connect(place) as database:
        database.sql("SET TimeZone = 'Asia/Tokyo'")
        with counted(monkeypatch) as read:
            assert asked(database) == first
    assert not read


def test_the_files_are_bounded(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = answers(place)
    size = sum((store.FOLDER.folder() / name).stat().st_size for name in names())
    old = store.FOLDER.folder() / "another-database-x"
    old.write_bytes(bytes(size))
    os.utime(old, (1, 1))
    half = store.FOLDER.folder() / f"{files.FRESH}x"
    half.write_bytes(b"half")
    os.utime(half, (1, 1))
    elsewhere(place, "db.query('CREATE (:P {x: 1000})'); db.close()")
    time.sleep(2 * MOMENT)
    monkeypatch.setattr(store, "MOST_BYTES", size // 2)
    assert answers(place) != first
    assert not old.exists()
    assert not half.exists()
    assert 0 < sum((store.FOLDER.folder() / name).stat().st_size for name in names()) <= size


def test_closing_takes_a_moment_and_what_saves_most_comes_first(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not written by then is derived again, and written by whoever does that."""
    write, note = files.write, store.StateStructures.note
    worth: dict[str, float] = {}
    written: list[str] = []

    def noted(self: Any, key: Any, value: Any, seconds: float = math.inf) -> None:
        with suppress(store.NotPackable):
            worth[self.prefix + store._digest(key)] = files.size_of(value) / max(seconds, 1e-9)
        note(self, key, value, seconds)

    def slowly(folder: Path, name: str, value: Any) -> None:
        time.sleep(0.02)
        written.append(name)
        write(folder, name, value)

    monkeypatch.setattr(store.StateStructures, "note", noted)
    monkeypatch.setattr(store, "SLOW", 1e-9)
    monkeypatch.setattr(files, "write", slowly)
    monkeypatch.setattr(store, "LONGEST", 0.05)
    first, several = answers(place), set[int]()
    for _ in range(40):
        assert len(written) <= 3
        assert [worth[name] for name in written] == sorted(worth[name] for name in written)
        several.add(len(written))
        written.clear()
        assert answers(place) == first
        if not written:
            break
    assert max(several) > 1
    assert set(names()) <= set(worth)
    with counted(monkeypatch) as read:
        assert answers(place) == first
    assert len(read) > 3


def test_random_histories(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Openings that read, write, roll back or die, one after the other: each sees what it sees with nothing persisted."""
    rng, used = random.Random(11), 0
    for step in range(8):
        with counted(monkeypatch) as read:
            now = answers(place, read_only=rng.random() < 0.3)
        used += bool(read)
        assert now == derived(place, monkeypatch)
        change = f"MATCH (a:P {{x: {rng.randrange(40)}}}), (b:P {{x: {step}}}) CREATE (a)-[:K {{w: {step}}}]->(b)"
        match rng.randrange(5):
            case 0:
                elsewhere(place, f"db.query({change!r}); db.close()")
            case 1:
                elsewhere(place, f"db.query({change!r})")
            case 2:
                with graphdb.connect(place) as database:
                    asked(database)
                    database.query(change)
                    asked(database)
            case 3:
                with graphdb.connect(place) as database:
                    database.query("BEGIN")
                    database.query(change)
                    asked(database)
                    database.query("ROLLBACK")
                    asked(database)
            case _:
                pass
        if rng.random() < 0.7:
            time.sleep(2 * MOMENT)
    assert used


def test_the_environment_says_how_much(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for nothing in ("0", "00"):
        monkeypatch.setenv("GRAPHDB_PERSISTED", nothing)
        first = answers(place)
        assert not names()
    monkeypatch.setenv("GRAPHDB_PERSISTED", "much")
    with pytest.raises(graphdb.GraphDBError, match="GRAPHDB_PERSISTED 'much' is no size"):
        graphdb.connect(place)
    monkeypatch.setenv("GRAPHDB_PERSISTED", "64MiB")
    assert answers(place) == first
    assert names()


def test_a_process_that_closes_nothing_persists_at_its_end(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = f"""
from pathlib import Path
import graphdb
from graphdb.storage.persisted import store

class Own(store.Cache):
    def folder(self):
        return Path({str(store.FOLDER.folder())!r})

store.FOLDER, store.LARGE, store.SLOW, store._SETTLED = Own("arrays", 100), 0, 0.0, {MOMENT}
db = graphdb.connect({str(place)!r})
print(db.query({QUERIES[1]!r}).fetchall())
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    assert names()
    with counted(monkeypatch) as read, graphdb.connect(place) as database:
        database.query(QUERIES[1]).fetchall()
    assert read
