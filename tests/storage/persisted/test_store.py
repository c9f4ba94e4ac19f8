"""Structures persist from one opening of a file to the next, and never outlive a change of it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.storage.compile.cache import Cache
from graphdb.storage.persisted import files, store
from tests.fuzz import scaled

QUERIES = (
    "MATCH (a:P)-[:K]->(b) RETURN count(*), sum(b.x)",
    "MATCH (a:P)-[:K]-(b)-[:K]-(c) RETURN count(*)",
    "MATCH (a:P)-[r:K]->(b) RETURN count(r), max(r.w), min(r.w)",
    "MATCH (a:P {x: 3})-[r:K]->(b) RETURN b.x, r.w, b.name ORDER BY b.x",
    "MATCH (a:P) WHERE a.name CONTAINS '7' RETURN count(*), max(a.name)",
    "MATCH (a:P)-[:UP*0..]->(b) RETURN count(*)",
    "MATCH (a:P)-[:UP*]->(b:P {x: 0}) RETURN count(*), max(a.x)",
    "MATCH (a:P) RETURN a.x, COUNT { (a)-[:K]-() } AS n ORDER BY n DESC, a.x LIMIT 3",
    "MATCH (n) RETURN labels(n) AS l, count(*) ORDER BY l",
    "MATCH (a:P {x: 1}), (b:P {x: 38}) OPTIONAL MATCH ANY SHORTEST (a)((x)-[:K|UP]-(y))+(b)"
    " COST BY 1 + COUNT { MATCH (x)<-[:UP]-(z) WHERE z.x > 5 } AS w RETURN w",
)
SWAP = "MATCH (a:P {x: 3}), (b:P {x: 4}) SET a.x = 4, b.x = 3"
"""A change that leaves all that is counted as it was."""

MOMENT = 0.05
"""Seconds after which these tests take a file for settled: the file system here counts in milliseconds."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Persist everything, of small files too, in a folder of the test's own."""

    class Own(Cache):
        def folder(self) -> Path:
            return tmp_path / "arrays"

    monkeypatch.setattr(store, "FOLDER", Own("arrays", store.MOST_FILES))
    monkeypatch.setattr(store, "LARGE", 0)
    monkeypatch.setattr(store, "SLOW", 0.0)
    monkeypatch.setattr(store, "_SETTLED", MOMENT)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A file with a small graph."""
    path = tmp_path / "g.duckdb"
    with graphdb.connect(path) as database:
        database.query("UNWIND range(0, 39) AS i CREATE (:P {x: i, name: 'n' + toString(i)})")
        database.query("MATCH (a:P), (b:P) WHERE (a.x * 7 + b.x) % 5 = 1 CREATE (a)-[:K {w: a.x + b.x}]->(b)")
        database.query("MATCH (a:P), (b:P) WHERE a.x > 0 AND b.x = (a.x - 1) / 2 CREATE (a)-[:UP]->(b)")
    time.sleep(2 * MOMENT)
    return path


def answers(path: Path, **options: Any) -> list[Any]:
    """What all queries return on a connection of their own."""
    with graphdb.connect(path, **options) as database:
        return asked(database)


def asked(database: graphdb.Database) -> list[Any]:
    return [database.query(text).fetchall() for text in QUERIES]


def derived(path: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> list[Any]:
    """The same with nothing persisted."""
    with monkeypatch.context() as patch:
        patch.setattr(store, "LARGE", 1 << 60)
        return answers(path, **options)


def names() -> list[str]:
    try:
        return sorted(os.listdir(store.FOLDER.folder()))
    except FileNotFoundError:
        return []


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the files that were read."""
    read, found = files.read, list[str]()

    def note(folder: Path, name: str) -> Any:
        value = read(folder, name)
        if value is not None:
            found.append(name)
        return value

    with monkeypatch.context() as patch:
        patch.setattr(files, "read", note)
        yield found


def elsewhere(path: Path, code: str) -> None:
    """Run code in another process, which has the file open as ``db``, and does not close it."""
    program = f"import os, graphdb; db = graphdb.connect({str(path)!r}); {code}; os._exit(0)"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


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
        content[70] ^= 1
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
