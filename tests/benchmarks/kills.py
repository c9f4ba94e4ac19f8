"""Kill what writes, at random moments, and look whether anything is lost or half there.

Run as ``python -m tests.benchmarks.kills --kills 50``.  A child process loads files one after another into one database
(the first into an empty file, the others as appends), writes a table of SQL and exports the graph between them, and says
what it has finished; the parent kills it (SIGKILL) after a random time, opens the database, and compares: every load
that was said to be finished is there, each load is there as a whole or not at all, statistics equal a recount, and an
exported file is whole or not there.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import graphdb

CHILD = """
import sys, graphdb
folder, begin = sys.argv[1], int(sys.argv[2])
with graphdb.connect(folder + "/db.duckdb") as db:
    print("open", flush=True)
    for i in range(begin, begin + 1000):
        db.load(f"{folder}/{i % 7}.nt.gz")
        print(f"loaded {i}", flush=True)
        db.sql(f"CREATE OR REPLACE TABLE latest AS SELECT {i} AS i, count(*) AS n FROM triples")
        db.export(f"{folder}/export.nt.gz")
        print(f"exported {i}", flush=True)
"""

LINES = 20_000


def write_files(folder: Path) -> None:
    """Seven files of triples that no other file has: ``<f:i>`` are the subjects of file i, blank nodes come anew."""
    import gzip

    for number in range(7):
        lines = "".join(f"_:b{i} <f:{number}> <o:{i % 1000}> .\n" for i in range(LINES))
        (folder / f"{number}.nt.gz").write_bytes(gzip.compress(lines.encode(), 1))


def kill_once(folder: Path, begin: int, after: float) -> tuple[int, int]:
    """Let a child work from load ``begin`` on for ``after`` seconds; return the loads it finished, and the kept ones."""
    command = [sys.executable, "-c", CHILD, str(folder), str(begin)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        time.sleep(after)
        child.send_signal(signal.SIGKILL)
        said = child.stdout.read().splitlines()
    finished = sum(line.startswith("loaded") for line in said)
    return begin + finished, check(folder)


def check(folder: Path) -> int:
    """Open the database and compare; return how many loads it holds."""
    with graphdb.connect(folder / "db.duckdb") as db:
        sources = db.sql("SELECT count(*) FROM _graphdb.source").scalar() if "triples" in db.tables() else 0
        if not sources:
            return 0
        per_file = dict(db.sql("SELECT predicate, count(*) FROM triples GROUP BY ALL").fetchall())
        expected = {f"f:{n}": LINES * sum(1 for i in range(sources) if i % 7 == n) for n in range(min(sources, 7))}
        assert per_file == expected, (sources, per_file, expected)
        stated = {label.iri: label.triples for label in db.edge_labels()}
        assert stated == expected, (stated, expected)
        assert db.query("MATCH (a)-[:<f:0>]->(b) RETURN count(*)").scalar() == expected["f:0"]
        if "latest" in db.tables():
            i, n = db.sql("FROM latest").fetchall()[0]
            assert n == (i + 1) * LINES
            assert i in (sources - 1, sources - 2)
    return int(sources)


def check_export(folder: Path) -> None:
    """An export is whole or not there."""
    if (folder / "export.nt.gz").exists():
        with graphdb.connect() as db:
            assert db.load(folder / "export.nt.gz").new_triples % LINES == 0


def run(kills: int, seconds: float, seed: int = 0) -> str:
    """Kill so often, each within so many seconds; say how it went."""
    dice = random.Random(seed)
    during = killed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        kept = 0
        for _ in range(kills):
            finished, found = kill_once(folder, kept, dice.uniform(0, seconds))
            assert found in (finished, finished + 1), (finished, found)
            check_export(folder)
            killed += 1
            during += found > kept
            kept = found
            if kept > 40:  # small again, so that the first load is killed too
                (folder / "db.duckdb").unlink()
                kept = 0
    return f"{killed} kills, {during} of them after at least one finished load; nothing lost, nothing half there"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    print(run(given.kills, given.seconds))
