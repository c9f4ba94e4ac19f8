"""Durability: killed, out of disk, opened twice: the database is as it was, and says so."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import graphdb
from graphdb.errors import StorageError
from tests.benchmarks import kills

LINES = "".join(f'<e:{i}> <e:p> "value {i} of a line that takes some room" .\n' for i in range(20_000))


def test_kills() -> None:
    """Two of the fifty of the benchmark."""
    assert kills.run(2, 1.5).startswith("2 kills")


def test_a_killed_load_is_told(tmp_path: pathlib.Path) -> None:
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


def test_full_disk(tmp_path: pathlib.Path) -> None:
    """No room for the load: an error, and the database as before.  A limit on a file's size stands for the disk's."""
    path = tmp_path / "db.duckdb"
    (tmp_path / "a.nt").write_text("<e:a> <e:p> <e:b> .\n")
    (tmp_path / "big.nt").write_text(LINES.replace("line", os.urandom(400).hex()))
    code = """
import resource, signal, sys, graphdb
db = graphdb.connect(sys.argv[1] + "/db.duckdb")
db.load(sys.argv[1] + "/a.nt")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
try:
    db.load(sys.argv[1] + "/big.nt")
except graphdb.GraphDBError as error:
    print(type(error).__name__)
"""
    ran = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() in ("StorageError", "ExecutionError"), ran.stdout + ran.stderr
    with graphdb.connect(path) as db:
        assert db.sql("FROM triples").fetchall() == [("e:a", "e:p", "e:b", None, None)]
        assert db.load(tmp_path / "big.nt").new_triples == 20_000


def test_readers_and_writers(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "db.duckdb"
    with pytest.raises(StorageError, match="there is no database"):
        graphdb.connect(path, read_only=True)
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


def test_spill_directory(tmp_path: pathlib.Path) -> None:
    with graphdb.connect(tmp_path / "db.duckdb", spill=tmp_path / "spill") as db:
        assert db.sql("SELECT current_setting('temp_directory')").scalar() == str(tmp_path / "spill")
