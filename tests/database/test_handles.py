"""Several connections of one process to one file, threads, forks, and closing: no committed change is lost."""

from __future__ import annotations

import itertools
import os
import pathlib
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

import graphdb
from graphdb.common.errors import ExecutionError, GraphDBError, QueryInterrupted, QueryTimeout, StorageError
from graphdb.relational.session import turns
from tests.fuzz import scaled
from tests.stops import PATIENCE, Stopwatch, interrupted, waited_for

LONG = "MATCH (a), (b), (c), (d), (e), (f) WHERE a.k + b.k + c.k + d.k + e.k + f.k = -1 RETURN a.k"


def keys(db: graphdb.Database) -> list[int]:
    return sorted(k for (k,) in db.query("MATCH (n:P) RETURN n.k").fetchall())


class _Handle:
    """A connection, and what the model says of its transaction."""

    def __init__(self, path: pathlib.Path) -> None:
        self.db = graphdb.connect(path, threads=1)
        self.seen: set[int] | None = None
        """What its transaction sees; None outside of one."""
        self.wrote = self.stale = False


@pytest.mark.parametrize("handles", [2, 3, 4])
def test_histories_of_several_handles(handles: int, tmp_path: pathlib.Path) -> None:
    """Ids are never numbered twice, transactions see their own snapshot, and a conflict is an error that changes nothing."""
    random = Random(handles if os.environ.get("CI") else None)
    for number in range(scaled(1)):
        path = tmp_path / f"{number}.duckdb"
        all = [_Handle(path) for _ in range(handles)]
        all[0].db.query("CREATE (:P {k: 0})")
        committed, next_key = {0}, 1
        for _ in range(30):
            one = random.choice(all)
            kind = random.choice(["begin", "end", "create", "create", "many", "delete", "read", "read", "sql"])
            if kind == "begin" and one.seen is None:
                one.db.sql("BEGIN")
                one.seen, one.wrote, one.stale = set(committed), False, False
            elif kind == "end" and one.seen is not None:
                commit = random.random() < 0.6
                one.db.sql("COMMIT" if commit else "ROLLBACK")
                if commit and one.wrote:
                    committed = one.seen
                    for other in all:
                        other.stale = True
                one.seen, one.wrote = None, False
            elif kind in ("create", "many", "delete"):
                mine = set(committed) if one.seen is None else one.seen
                count = {"create": 1, "many": 80, "delete": 0}[kind]
                new = set(range(next_key, next_key + count))
                gone = set(random.sample(sorted(mine), min(1, len(mine)))) if kind == "delete" else set()
                creating = "UNWIND $ks AS k CREATE (:P {k: k})"
                text = creating if new else "MATCH (n:P) WHERE n.k IN $ks DETACH DELETE n"
                ks = sorted(new or gone)
                next_key += count
                blocked = any(other.wrote for other in all if other is not one) or (one.seen is not None and one.stale)
                if blocked:
                    with pytest.raises(StorageError, match="another connection of this process"):
                        one.db.query(text, ks=ks)
                    continue
                one.db.query(text, ks=ks)
                mine = (mine | new) - gone
                if one.seen is None:
                    committed = mine
                    for other in all:
                        other.stale = True
                else:
                    one.seen, one.wrote = mine, True
            elif kind == "sql":
                found = one.db.sql("SELECT count(*) FROM triples WHERE predicate = 'urn:graphdb:k'").scalar()
                assert found == len(committed if one.seen is None else one.seen)
            else:
                assert keys(one.db) == sorted(committed if one.seen is None else one.seen)
        for one in all:
            one.db.close()
        with graphdb.connect(path) as db:
            assert keys(db) == sorted(committed)
            assert db.sql("SELECT count(*) - count(DISTINCT iri) FROM _graphdb.resource").scalar() == 0
            assert db.sql("SELECT count(*) - count(DISTINCT id) FROM _graphdb.resource").scalar() == 0
        path.unlink()


def test_who_changes_something_waits_for_transactions_of_other_threads(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads what they left, so nothing of them is lost; it can be stopped, and does not wait for ever."""
    monkeypatch.setattr(turns, "LONGEST_WAIT", 600.0)
    adding = "MATCH (n:P) WITH count(*) AS count CREATE (:P {k: 10 * count})"
    with graphdb.connect(tmp_path / "db") as one, graphdb.connect(tmp_path / "db") as other:
        one.query("CREATE (:P {k: 0})")
        ended, waiting = one._state.connection.file.turn_ended, threading.Event()
        wait = ended.wait

        def noted(timeout: float | None = None) -> bool:
            waiting.set()
            return wait(timeout)

        monkeypatch.setattr(ended, "wait", noted)
        with ThreadPoolExecutor(1) as pool:
            for end, change in itertools.product(
                ("COMMIT", "ROLLBACK"), (lambda: other.query(adding), lambda: other.add("<x:s> <x:p> <x:o> ."))
            ):
                before = keys(one)
                one.query(f"BEGIN; {adding}")
                waiting.clear()
                done = pool.submit(change)
                assert waiting.wait(600)
                assert keys(one) == sorted([*before, 10 * len(before)])  # who waits keeps nobody from reading
                one.query(end)
                done.result(600)
                assert keys(one)[: len(before)] == before
            assert keys(one) == keys(other) == [0, 10, 20, 30, 40]
            one.query(f"BEGIN; {adding}")
            waiting.clear()
            done = pool.submit(other.query, adding)
            assert waiting.wait(600)
            other.interrupt()
            with pytest.raises(QueryInterrupted):
                done.result(600)
            with pytest.raises(QueryTimeout):
                pool.submit(other.query, adding, timeout=0.01).result(600)
            monkeypatch.setattr(turns, "LONGEST_WAIT", 0.01)
            with pytest.raises(StorageError, match="still open"):
                pool.submit(other.query, adding).result(600)
            assert pool.submit(other.query, "MATCH (n:P) RETURN count(*)").result(600).scalar() == 5
            one.query("ROLLBACK")
        assert keys(other) == [0, 10, 20, 30, 40]


def test_a_new_file_that_another_handle_fills(tmp_path: pathlib.Path) -> None:
    """Who has created the tables knows that they are empty, until somebody writes."""
    path = tmp_path / "new.duckdb"
    with graphdb.connect(path) as one, graphdb.connect(path) as other:
        one._state.catalog()  # reads nothing yet
        other.query("PREFIX ex: <http://example.org/>; CREATE (:P {k: 1})")
        assert keys(one) == [1]
        assert one.prefixes()["ex"] == "http://example.org/"
    with graphdb.connect() as alone:
        alone.query("BEGIN; CREATE (:P {k: 1}); ROLLBACK")
        alone._state.catalog()
        alone.query("PREFIX ex: <http://example.org/>; CREATE (:P {k: 2})")
        assert keys(alone) == [2]
        assert alone.query("CREATE (a:ex:Q) RETURN labels(a)").fetchall() == [(["ex:Q"],)]


def test_a_file_of_two_names(tmp_path: pathlib.Path) -> None:
    """DuckDB knows a file by its name, and would have two databases write to one that has a hard link."""
    path, soft, hard = (tmp_path / f"{name}.duckdb" for name in ("db", "soft", "hard"))
    with graphdb.connect(path) as db:
        db.query("CREATE (:P {k: 1})")
        os.symlink(path, soft)
        os.link(path, hard)
        with graphdb.connect(soft) as again:
            again.query("CREATE (:P {k: 2})")
        with pytest.raises(StorageError, match=r"is open in this process as '.*db.duckdb'"):
            graphdb.connect(hard)
        assert keys(db) == [1, 2]
    with graphdb.connect(hard) as db:
        assert keys(db) == [1, 2]


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH '{}'",
        "ATTACH IF NOT EXISTS '{}' AS other (READ_ONLY)",
        "ATTACH OR REPLACE DATABASE '{}' AS other",
        "ATTACH 'duckdb:{}' AS other",
        "ATTACH 'file://{}' AS other",
        "ATTACH $path AS other",
        "ATTACH ('{}' || '') AS other",
        "ATTACH (replace('{}x', 'x', '')) AS other",
        "FROM read_duckdb('{}', table_name = 't')",
        "FROM read_duckdb($path, table_name = 't')",
        "FROM '{}'",
        'FROM "{}"',
        "CREATE VIEW seen AS FROM '{}'",
    ],
)
def test_sql_does_not_open_a_file_by_another_name(tmp_path: pathlib.Path, statement: str) -> None:
    """DuckDB would have a second database on the file, and give up its lock with it."""
    path, soft, hard = (tmp_path / f"{name}.duckdb" for name in ("db", "soft", "hard"))
    with graphdb.connect(path) as db:
        db.query("CREATE (:P {k: 1})")
        db.sql("CREATE TABLE t AS SELECT 1 AS x")
        db.sql("CHECKPOINT")
        os.symlink(path, soft)
        os.link(path, hard)
        for name in (soft, hard):
            given = {"path": str(name)} if "$path" in statement else {}
            with pytest.raises(
                graphdb.GraphDBError, match=r"is open in this process|already attached|hard link|conflict"
            ):
                db.sql(statement.format(name), **given)
        with graphdb.connect(tmp_path / "second.duckdb") as second, pytest.raises(graphdb.GraphDBError):
            second.sql(statement.format(hard), **given)
        assert [name for (name,) in db.sql("SELECT database_name FROM duckdb_databases() WHERE NOT internal")] == ["db"]
        db.sql(f"ATTACH '{tmp_path / 'third.duckdb'}' AS third")
        db.sql("ATTACH $path AS fourth", path=":memory:")
        db.query("CREATE (:P {k: 2})")
        assert keys(db) == [1, 2]


@pytest.mark.parametrize(
    "statement",
    [
        "FROM read_duckdb(['{}'], table_name = 't')",
        "FROM read_duckdb($paths, table_name = 't')",
        "FROM read_duckdb('{}' || '', table_name = 't')",
        "FROM read_duckdb(['{}' || ''], table_name = 't')",
        "FROM read_duckdb(concat('{}'), table_name = 't')",
        "SET VARIABLE p = '{}x'; FROM read_duckdb(rtrim(getvariable('p'), 'x'), table_name = 't')",
        "FROM read_duckdb('{}*', table_name = 't')",
        "FROM read_duckdb($pattern, table_name = 't')",
        "PREPARE q AS FROM read_duckdb($1 || '', table_name = 't'); EXECUTE q('{}')",
        "PREPARE q AS FROM read_duckdb($1, table_name = 't'); EXECUTE q('{}*')",
        "FROM '{}/../*.duckdb'",
    ],
)
def test_sql_does_not_open_files_that_it_does_not_name(tmp_path: pathlib.Path, statement: str) -> None:
    """Computed paths and patterns may be another name of an open file, too."""
    (tmp_path / "other").mkdir()
    path, hard = tmp_path / "db.duckdb", tmp_path / "other" / "hard.duckdb"
    with graphdb.connect(path) as db:
        db.sql("CREATE TABLE t AS SELECT 1 AS x; CHECKPOINT")
        os.link(path, hard)
        values = {"paths": [str(hard)], "pattern": f"{hard}*"}
        given = {key: value for key, value in values.items() if f"${key}" in statement}
        with pytest.raises(graphdb.GraphDBError, match=r"is open in this process|another hard link"):
            db.query(statement.format(hard), **given)
        hard.unlink()
        with graphdb.connect(tmp_path / "other" / "second.duckdb") as second:
            second.sql("CREATE TABLE t AS SELECT 2 AS x")
        assert db.sql(f"FROM read_duckdb('{hard.parent}/s*', table_name = 't')").scalar() == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there the file cannot be opened twice at all")
@pytest.mark.parametrize("name", ["db.duckdb", "*", "hard.nt"])
def test_a_load_does_not_give_up_the_lock(tmp_path: pathlib.Path, name: str) -> None:
    """Locks of POSIX go when the process closes the file, whoever in it has opened it."""
    path = tmp_path / "db.duckdb"
    opens = [sys.executable, "-c", f"import duckdb; duckdb.connect({str(path)!r})"]
    with graphdb.connect(path) as db:
        db.query("CREATE (:P {k: 1})")
        os.link(path, tmp_path / "hard.nt")
        assert subprocess.run(opens, capture_output=True, check=False).returncode
        for load in (lambda: db.load(tmp_path / name), lambda: db.query(f"LOAD '{tmp_path / name}' FORMAT nt")):
            with pytest.raises(graphdb.GraphDBError, match="is a database that is open here"):
                load()
        assert subprocess.run(opens, capture_output=True, check=False).returncode


def test_threads_write_through_their_own_handles(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db.duckdb"
    graphdb.connect(path).close()
    with graphdb.connect(path):  # the file stays open

        def work(worker: int) -> None:
            with graphdb.connect(path) as db:
                for i in range(8):
                    db.query("CREATE (:P {k: $k})", k=worker * 100 + i)
                    assert worker * 100 + i in keys(db)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
    with graphdb.connect(path) as db:
        assert keys(db) == [worker * 100 + i for worker in range(4) for i in range(8)]
        assert db.sql("SELECT count(*) - count(DISTINCT iri) FROM _graphdb.resource").scalar() == 0


def test_a_result_of_one_handle_stays_when_another_writes(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db.duckdb"
    with graphdb.connect(path) as one, graphdb.connect(path) as other:
        one.query("CREATE (:P {k: 1, name: 'a'})")
        result = one.query("MATCH (n:P) RETURN n")
        other.query("MATCH (n:P) SET n.name = 'b'")
        ((node,),) = result.fetchall()
        assert node.properties["name"] == "a"
        ((node,),) = one.query("MATCH (n:P) RETURN n").fetchall()
        assert node.properties["name"] == "b"


def test_what_is_open_elsewhere_is_not_attached(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db.duckdb"
    with graphdb.connect(path) as one, graphdb.connect() as other:
        one.query("CREATE (:P {k: 1})")
        with pytest.raises(GraphDBError):
            other.sql(f"ATTACH '{path}' AS o")
        assert keys(one) == [1]
        assert other.sql("SELECT 1").scalar() == 1
    with graphdb.connect() as other:
        other.sql(f"ATTACH '{path}' AS o")
        with pytest.raises(StorageError):
            graphdb.connect(path)


def test_closing_stops_what_runs(tmp_path: pathlib.Path) -> None:
    db = graphdb.connect(tmp_path / "db.duckdb")
    db.query("UNWIND range(1, 300) AS k CREATE (:P {k: k})")
    for text in (LONG, "SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1"):
        started = threading.Event()

        def run(
            db: graphdb.Database = db, text: str = text, started: threading.Event = started
        ) -> BaseException | None:
            started.set()
            try:
                db.query(text)
            except BaseException as error:
                return error
            return None

        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(run)
            started.wait()
            time.sleep(0.3)
            watch = Stopwatch()
            db.close()
            assert watch.seconds() < 5
            assert isinstance(future.result(), (StorageError, QueryInterrupted))
        with pytest.raises(StorageError, match="closed"):
            db.query("RETURN 1")
        db = graphdb.connect(tmp_path / "db.duckdb")
        assert len(keys(db)) == 300
    db.close()


def test_who_waits_for_another_thread_waits_no_longer_than_its_timeout() -> None:
    with graphdb.connect() as db:
        db.query("UNWIND range(1, 300) AS k CREATE (:P {k: k})")

        def run() -> None:
            with pytest.raises(QueryInterrupted):
                db.query(LONG, timeout=PATIENCE)

        def waits() -> bool:
            try:
                db.query("MATCH (n:P) RETURN count(*)", timeout=0.2)
            except QueryTimeout:
                return True
            return False  # the other one has not begun

        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(run)
            assert waited_for(waits)
            assert not future.done()
            with interrupted(db, "interrupt", 0.0):
                future.result()


def in_a_process(code: str, folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run a program that forks, whose argument is a folder."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a_fork_opens_its_own_database(tmp_path: pathlib.Path) -> None:
    """While other threads of the parent plan and compile: none of their locks is waited for."""
    code = """
import graphdb, os, sys, threading
folder = sys.argv[1]
db = graphdb.connect(folder + "/parent.duckdb")
db.query("UNWIND range(1, 50) AS k CREATE (:P {k: k})-[:R]->(:Q {k: k})")
done = False
def work():
    i = 0
    while not done:
        i += 1
        db.query(f"MATCH (a:P)-[:R]->(b)<-[:R]-(c) WHERE a.k <> {i} RETURN count(*)")
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
children = []
for i in range(6):
    child = os.fork()
    if not child:
        own = graphdb.connect(folder + f"/child{i}.duckdb")
        own.query("UNWIND range(1, 5) AS k CREATE (:P {k: k})-[:R]->(:Q {k: k})")
        count = own.query("MATCH (a:P)-[:R]->(b)<-[:R]-(c) RETURN count(*)").scalar()
        count += own.query("MATCH (a:P)-[:R]->(b) RETURN count(*)").scalar()
        own.close()
        os._exit(count)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
done = True
for thread in threads:
    thread.join()
print(codes)
"""
    ran = in_a_process(code, tmp_path)
    assert ran.stdout.strip() == str([5] * 6), ran.stderr


def test_a_fork_waits_for_what_other_threads_import(tmp_path: pathlib.Path) -> None:
    """The lock of a module that is being imported stays locked in the child, where nobody frees it."""
    (tmp_path / "slow.py").write_text("import time; time.sleep(1.5); done = True")
    code = """
import os, sys, threading, time
import graphdb
sys.path.insert(0, sys.argv[1])
def work():
    import slow
thread = threading.Thread(target=work)
thread.start()
time.sleep(0.3)
child = os.fork()
if not child:
    import slow
    os._exit(7 if slow.done else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    ran = in_a_process(code, tmp_path)
    assert ran.stdout.strip() == "7", ran.stderr


def test_sql_that_writes_by_cypher_is_refused_before_it_runs() -> None:
    with graphdb.connect() as db:
        db.query("CREATE (:P {k: 1})")
        for text in ("CREATE (:X)", "MATCH (n) SET n.k = 2 RETURN n.k", "MATCH (n) DETACH DELETE n"):
            with pytest.raises(GraphDBError, match="cypher in SQL only reads"):
                db.sql(f"SELECT * FROM cypher($$ {text} $$)")
        assert keys(db) == [1]
        assert db.query("MATCH (n) RETURN count(*)").scalar() == 1


def test_a_failed_transaction_says_so_until_it_is_rolled_back(tmp_path: pathlib.Path) -> None:
    with graphdb.connect(tmp_path / "db.duckdb") as db:
        db.query("CREATE (:P {k: 1})-[:R]->(:P {k: 2})")
        for text in (
            "MATCH (n:P {k: 1}) DELETE n",
            "SELECT error('x')",
            "CREATE TABLE t AS SELECT error('x')",
            "SELECT * FROM cypher($$ UNWIND [0] AS x RETURN 1 / x AS y $$)",
        ):
            db.sql("BEGIN")
            db.query("CREATE (:P {k: 3})")
            with pytest.raises(GraphDBError):
                db.query(text)
            for later in ("COMMIT", "MATCH (n) RETURN count(*)", "CREATE (:P {k: 4})", "SELECT 1", "BEGIN"):
                with pytest.raises(ExecutionError, match="the transaction has failed"):
                    db.query(later)
            with pytest.raises(GraphDBError):
                db.vertex_labels()
            db.sql("ROLLBACK")
            assert keys(db) == [1, 2]
            assert dict(db.vertex_labels())["P"] == 2
            assert db.query("MATCH (n:P)-[:R]->(m) RETURN n.k, m.k").fetchall() == [(1, 2)]


def test_a_process_may_end_right_after_it_opened_a_file(tmp_path: pathlib.Path) -> None:
    with graphdb.connect(tmp_path / "x.duckdb") as db:
        db.query("CREATE (:A)")
    for _ in range(3):  # what is still verified then must not be torn down within DuckDB, which aborts
        ended = in_a_process("import graphdb, sys\ndb = graphdb.connect(sys.argv[1] + '/x.duckdb')\n", tmp_path)
        assert (ended.returncode, ended.stderr) == (0, "")
