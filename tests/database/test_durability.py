"""Durability: killed, out of disk, opened twice: the database is as it was, and says so."""

from __future__ import annotations

import gzip
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import graphdb
from graphdb.common.errors import StorageError
from graphdb.storage.file.scratch import scratch
from tests.benchmarks import kills

LINES = "".join(f'<e:{i}> <e:p> "value {i} of a line that takes some room" .\n' for i in range(20_000))


def test_kills() -> None:
    """Two of the fifty of the benchmark."""
    assert kills.run(2, 1.5).startswith("2 kills")


def test_a_killed_load_is_reported(tmp_path: pathlib.Path) -> None:
    """Killed in the midst of a load: it left nothing, and whoever opens the file next reads what it was."""
    path = tmp_path / "db.duckdb"
    (tmp_path / "a.nt").write_text("<e:a> <e:p> <e:b> .\n")
    os.mkfifo(tmp_path / "slow.nt")
    with graphdb.connect(path) as db:
        db.load(tmp_path / "a.nt")
        assert db.unfinished is None
    code = "import graphdb, sys; graphdb.connect(sys.argv[1]).load(sys.argv[2])"
    child = subprocess.Popen([sys.executable, "-c", code, str(path), str(tmp_path / "slow.nt")])
    with (tmp_path / "slow.nt").open("w") as pipe:  # opens when the child does
        pipe.write(LINES)
        pipe.flush()
        time.sleep(1.0)
        child.send_signal(signal.SIGKILL)
        child.wait()
    for expected in (f"process {child.pid}", None):
        with graphdb.connect(path) as db:
            assert expected in db.unfinished if expected else db.unfinished is None
            assert db.sql("FROM triples").fetchall() == [("e:a", "e:p", "e:b", None, None)]
    ran = [sys.executable, "-m", "graphdb", "query", str(path), "MATCH (n) RETURN count(*)"]
    assert "rolled back" not in subprocess.run(ran, capture_output=True, text=True, check=True).stderr


FULL = """
import gzip, pathlib, resource, signal, sys
import graphdb
folder = pathlib.Path(sys.argv[1])
db = graphdb.connect(folder / "db.duckdb", spill=folder / "spill")
db.load(folder / "there.nt")
db.sql("CHECKPOINT")
big = {name: folder / f"big.{name}" for name in ("nt", "ttl", "csv", "csv.gz", "graphml")}
exports = [folder / f"out.{name}" for name in ("nt", "nt.gz", "ttl.zst", "trig", "graphml", "parquet")]
for path in exports[:-1]:
    path.write_text("old")
frame = db.sql(f"SELECT name AS \\":ID\\", text FROM '{big['csv']}' AS t(name, text)").to_arrow()
actions = {
    **{name: lambda path=path: db.load(path) for name, path in big.items()},
    "frame": lambda: db.load(frame),
    "create": lambda: db.query("UNWIND range(1, 3000) AS n CREATE (:Made {t: toString(rand()) + toString(rand()) + toString(rand())})"),
    "set": lambda: db.query("MATCH (a) WHERE a.<e:p> IS NOT NULL SET a.t = a.<e:p> + '.'"),
    "table": lambda: db.query("CREATE TABLE t AS MATCH (a)-[:<e:p>]->(b) RETURN a, b"),
    "sql": lambda: db.sql("CREATE TABLE t AS SELECT uuid() FROM range(200000)"),
    **{path.name: lambda path=path: db.export(path) for path in exports},
}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, 1 << 17))
for name, action in actions.items():
    try:
        print(name, "succeeded", action())
    except graphdb.StorageError as error:
        assert "cannot write" in str(error) and "too large" in str(error), error
        print(name, db.query("MATCH (a)-[:<e:p>]->(b) RETURN count(*)").scalar(), db.tables())
"""


def test_full_disk(tmp_path: pathlib.Path) -> None:
    """No room for what is written: an error, and all as before.  A limit on the sizes of files stands for the disk's."""
    words = [f"{i} {os.urandom(200).hex()}" for i in range(2_000)]
    (tmp_path / "there.nt").write_text("".join(f'<e:{i}> <e:p> "{word[:200]}" .\n' for i, word in enumerate(words)))
    for name in ("nt", "ttl"):
        (tmp_path / f"big.{name}").write_text("".join(f'<e:{i}> <e:new> "{w}" .\n' for i, w in enumerate(words)))
    table = ":ID,new\n" + "".join(f"{i},{word}\n" for i, word in enumerate(words))
    (tmp_path / "big.csv").write_text(table)
    (tmp_path / "big.csv.gz").write_bytes(gzip.compress(table.encode(), 1))
    nodes = "".join(f'<node id="{i}"><data key="n">{word}</data></node>' for i, word in enumerate(words))
    (tmp_path / "big.graphml").write_text(f'<graphml><key id="n" for="node"/><graph>{nodes}</graph></graphml>')
    before = {path.name for path in tmp_path.iterdir()} | {"db.duckdb", "spill"}
    ran = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=False)
    report = ran.stdout.splitlines()
    assert len(report) == 16, ran.stdout + ran.stderr
    assert all(line.endswith(" 2000 ['triples']") for line in report), report
    olds = {path for path in tmp_path.glob("out.*") if path.read_text() == "old"}
    assert len(olds) == 5, "what was there stays"
    assert {path.name for path in tmp_path.iterdir()} - {path.name for path in olds} - {"db.duckdb.wal"} <= before
    assert not any((tmp_path / "spill").glob("graphdb-*"))
    with graphdb.connect(tmp_path / "db.duckdb") as db:
        assert db.sql("SELECT count(*), count(DISTINCT predicate) FROM triples").fetchall() == [(2_000, 1)]
        assert (db.tables(), db.unfinished) == (["triples"], None)
        assert db.load(tmp_path / "big.nt").new_triples == 2_000


AT_ONCE = """
import pathlib, resource, signal, sys
import graphdb
from graphdb.writing.run import Writing
folder = pathlib.Path(sys.argv[1])
db = graphdb.connect(folder / "db.duckdb", spill=folder / "spill", device="cpu")
db.query("UNWIND range(1, 8000) AS i CREATE (:Q {k: i})")
db.sql("CHECKPOINT")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, 1 << 17))
by_rows = Writing._by_rows
Writing._by_rows = lambda *args: print("row by row") or by_rows(*args)
for query in (
    "MATCH (q:Q) SET q.t = 'text of ' + q.k + '.'",
    "UNWIND range(1, 8000) AS n MERGE (:M {t: 'some text ' + n})",
):
    try:
        db.query(query)
    except graphdb.StorageError as error:
        assert "cannot write" in str(error) and "too large" in str(error), error
        print(db.query("MATCH (q:Q) RETURN sum(q.k)").scalar())
"""


def test_a_disk_that_fills_while_sets_are_written_is_reported_at_once(tmp_path: pathlib.Path) -> None:
    """No second way is tried, row by row, which would take minutes and end the same."""
    ran = subprocess.run([sys.executable, "-c", AT_ONCE, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ran.stdout.split("\n")[:-1] == ["32004000"] * 2, ran.stdout + ran.stderr


def test_readers_and_writers(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db.duckdb"
    with pytest.raises(StorageError, match="there is no database"):
        graphdb.connect(path, read_only=True)
    with pytest.raises(StorageError, match="a database in memory is empty"):
        graphdb.connect(read_only=True)
    (tmp_path / "a.nt").write_text("<e:a> <e:p> <e:b> .\n")
    code = "import graphdb, sys; db = graphdb.connect(sys.argv[1], read_only=sys.argv[2] == 'r'); "
    query = "print(db.query('MATCH (a)-[:<e:p>]->(b) RETURN count(*)').scalar())"

    def other(mode: str) -> subprocess.CompletedProcess[str]:
        ran = [sys.executable, "-c", code + query, str(path), mode]
        return subprocess.run(ran, capture_output=True, text=True, check=False)

    with graphdb.connect(path) as db:
        db.load(tmp_path / "a.nt")
        for mode in "rw":
            assert f"is open in another process (process {os.getpid()})" in other(mode).stderr
    with graphdb.connect(path, read_only=True) as db:
        assert db.query("MATCH (a)-[:<e:p>]->(b) RETURN count(*)").scalar() == 1
        assert other("r").stdout == "1\n"
        for attempt in (lambda: db.load(tmp_path / "a.nt"), lambda: db.query("PREFIX e: <e:>"),
                        lambda: db.sql("CREATE TABLE t AS SELECT 1")):  # fmt: skip
            with pytest.raises(StorageError, match="read-only"):
                attempt()
        assert db.query("MATCH (a)-[:<e:p>]->(b) RETURN count(*)").scalar() == 1


def test_a_fork_leaves_the_database_alone(tmp_path: pathlib.Path) -> None:
    """A forked process can neither read nor write what its parent has open; closing it there changes nothing."""
    code = """
import graphdb, os, sys
db = graphdb.connect(sys.argv[1])
db.query("CREATE (:A)")
child = os.fork()
if not child:
    try:
        db.query("CREATE (:B)")
    except graphdb.StorageError as error:
        print(error.message, flush=True)
    db.close()
    del db
    os._exit(0)
os.waitpid(child, 0)
db.query("CREATE (:C)")
print(db.query("MATCH (n) RETURN count(*)").scalar(), os.getpid())
"""
    ran = [sys.executable, "-c", code, str(tmp_path / "db.duckdb")]
    report = subprocess.run(ran, capture_output=True, text=True, check=True).stdout
    count, process = report.splitlines()[-1].split()
    assert report.startswith(f"the database was opened by process {process}, of which this one is a fork\n")
    with graphdb.connect(tmp_path / "db.duckdb") as db:
        assert int(count) == db.query("MATCH (n) RETURN count(*)").scalar() == 2


def test_two_connections(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db.duckdb"
    (tmp_path / "link.duckdb").symlink_to(path)
    with graphdb.connect(path) as one, graphdb.connect(tmp_path / "link.duckdb") as other:
        with pytest.raises(StorageError, match="is open in this process with other settings"):
            graphdb.connect(path, read_only=True)
        one.query("CREATE (:A)")
        one.sql("BEGIN")
        one.query("CREATE (:A)")
        with pytest.raises(StorageError, match="has changed the graph within a transaction"):
            other.query("CREATE (:A)")
        one.sql("COMMIT")
        other.query("CREATE (:A)")
        assert one.query("MATCH (a:A) RETURN count(*)").scalar() == 3


def test_what_is_no_database(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "x.duckdb"
    with graphdb.connect(path) as db:
        db.query("CREATE (:A)")
    whole = path.read_bytes()
    for content, message in (
        (b"", "is an empty file"), (b"<e:a> <e:p> <e:b> .\n", "is not a database"),
        (b"SQLite format 3\0".ljust(4096, b"\0"), "is a database of SQLite"), (whole[:20_000], "is cut short"),
    ):  # fmt: skip
        path.write_bytes(content)
        with pytest.raises(StorageError, match=message):
            graphdb.connect(path)
        assert path.read_bytes() == content


def test_what_killed_processes_left(tmp_path: pathlib.Path) -> None:
    """Directories that nobody holds go at the next opening, those of the living stay."""
    for name in (
        "graphdb-deaddead.scratch",
        ".graphdb-deaddead.scratch",
        "graphdb-new_born.scratch",
        "graphdb-ourdata",
    ):
        (tmp_path / name).mkdir()
        if "new" not in name:
            (tmp_path / name / "x").write_text("x")
    with scratch("graphdb-", tmp_path) as held, graphdb.connect(tmp_path / "db.duckdb", spill=tmp_path) as db:
        (held / "x").write_text("x")
        db.query("CREATE (:A)")
        left = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert left == {"graphdb-ourdata", held.name}


def test_spill_directory(tmp_path: pathlib.Path) -> None:
    with graphdb.connect(tmp_path / "db.duckdb", spill=tmp_path / "spill") as db:
        assert db.sql("SELECT current_setting('temp_directory')").scalar() == str(tmp_path / "spill")
