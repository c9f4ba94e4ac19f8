"""The memory limit holds, of DuckDB and all others: a process of its own enumerates more than fits, and looks at its peak.

Pages of files are left out, most of them of libraries: how many the system maps at a time differs by its version.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from graphdb.storage.compile import jit, warm
from graphdb.storage.compile.entries import entries

LIMIT = 300_000_000

SCRIPT = """
import sys, numpy
import graphdb

def peak():
    status = dict(line.split(":") for line in open("/proc/self/status"))
    resident, files = (int(status[name].split()[0]) for name in ("VmHWM", "RssFile"))
    return (resident - files) * 1024

with graphdb.connect(sys.argv[1], memory_limit=int(sys.argv[2]), threads=2) as db:
    db.load(sys.argv[3])
    print(peak())
    {statement}
    print(peak())
"""

TABLE = """
    text = "MATCH REPEATABLE ELEMENTS (a)-[:e]->(b)-[:e]->(c)-[:e]->(d) RETURN id(a) AS a, id(b) AS b, id(c) AS c, d"
    db.query(f"CREATE TABLE walks AS {text}")
    assert db.sql("SELECT count(*) FROM walks").scalar() == 54 * 53 ** 3
"""

ROWS = """
    db.sql("SET max_temp_directory_size = '200MB'")
    path = "MATCH REPEATABLE ELEMENTS (a)-[r:e*4 WHERE id(a) > -1]->(b)"
    for text in (f"{path} RETURN r", f"{path} MERGE (n:N {{l: size(r)}})"):
        try:
            db.query(text)
        except graphdb.MemoryLimitError:
            pass
        else:
            raise AssertionError("no error")
    assert db.query("MATCH ()-[:e]->() RETURN count(*)").scalar() == 54 * 53
"""


def peaks(tmp_path: Path, statement: str) -> tuple[int, int]:
    """The peak bytes of a process before and after a statement over all walks of a complete graph."""
    for found in warm.missing()[0]:  # the limit leaves no room for a compiler
        if found.variant != "i8":  # for graphs of more vertices
            jit.make(entries[found.symbol], found.variant)
    file = tmp_path / "graph.nt"
    edges = ((a, b) for a in range(54) for b in range(54) if a != b)
    file.write_text("".join(f"<urn:v:{a}> <urn:p:e> <urn:v:{b}> .\n" for a, b in edges))
    script = tmp_path / "script.py"  # with -c, DuckDB takes it for an interactive session and draws a bar
    script.write_text(SCRIPT.replace("    {statement}\n", statement))
    arguments = [sys.executable, str(script), str(tmp_path / "g.duckdb"), str(LIMIT), str(file)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    before, after = map(int, done.stdout.split())
    return before, after


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
def test_a_table_larger_than_the_limit_is_streamed(tmp_path: Path) -> None:
    """8 million rows of four columns: 257 MB as they come."""
    before, after = peaks(tmp_path, TABLE)
    assert before < after < LIMIT


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
def test_paths_that_find_no_room_are_an_error(tmp_path: Path) -> None:
    """426 million paths, read and written: DuckDB spills them until the disk's share is full."""
    before, after = peaks(tmp_path, ROWS)
    assert before < after < LIMIT


RESULTS = """
    for text in ("UNWIND range(1, 10000000) AS i UNWIND range(1, 10000) AS j RETURN i, j", "FROM range(100000000000)"):
        try:
            db.query(text, timeout=60)
        except graphdb.MemoryLimitError as error:
            assert "the rows of the result take more memory than the limit" in str(error), error
        else:
            raise AssertionError("no error")
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
def test_a_result_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    """DuckDB does not count what it hands over."""
    before, after = peaks(tmp_path, RESULTS)
    assert before < after < LIMIT + LIMIT // 4  # the rows, and what DuckDB has of them
