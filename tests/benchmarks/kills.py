"""Kill what writes, at random moments, and look whether anything is lost or half there.

Run as ``python -m tests.benchmarks.kills --kills 50``.  A child process loads files one after another into one database
(the first into an empty file, the others as appends), writes a table of SQL, changes the graph by statements (CREATE, SET,
DETACH DELETE), by several in a transaction, loads named graphs and a table of edges with properties, keeps a result as a table,
checkpoints, and exports the graph over a file and a folder, and says what it begins and has finished; the parent kills it
(SIGKILL) after a random time, opens the database, and compares: what was said to be finished is there, each load, statement
and transaction is there as a whole or not at all, statistics equal a recount, an exported file or folder is whole, the one of
before or the new one, and nothing else is left in any folder.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import graphdb
from graphdb.storage.statistics.tables import current

CHILD = """
import random, sys, graphdb
folder, begin, dice = sys.argv[1], int(sys.argv[2]), random.Random(sys.argv[3])

def update():
    for text in UPDATES:
        print("update", flush=True)
        db.query(text, i=i)
        print("updated", flush=True)

def twins():
    db.sql("BEGIN")
    db.query("CREATE (:Twin {t: $i})", i=i)
    db.query("CREATE (:Twin {t: $i})", i=i)
    db.sql("COMMIT")

actions = {
    "update": update,
    "transaction": twins,
    "named": lambda: db.load([f"{folder}/named.nq", f"{folder}/knows.csv"]),
    "result": lambda: db.query("CREATE OR REPLACE TABLE kept AS MATCH (a)-[:<f:0>]->(b) RETURN b"),
    "table": lambda: db.sql(f"CREATE OR REPLACE TABLE latest AS SELECT {i} AS i, count(*) AS n FROM triples"),
    "export": lambda: db.export(f"{folder}/export.nt.gz", graphs="union"),
    "tables": lambda: db.export(f"{folder}/export.parquet"),
    "checkpoint": lambda: db.sql("CHECKPOINT"),
}
with graphdb.connect(folder + "/db.duckdb", spill=folder + "/spill") as db:
    print("open", flush=True)
    for i in range(begin, begin + 1000):
        print("load", flush=True)
        db.load(f"{folder}/{i % 7}.nt.gz")
        print(f"loaded {i}", flush=True)
        for word in dice.sample(list(actions), len(actions)):
            print(word, flush=True)
            actions[word]()
"""

UPDATES = (
    "UNWIND range(1, 200) AS n CREATE (:Made {i: $i, n: n})-[:pair]->(:Made {i: $i, n: -n})",
    "MATCH (a:Made {i: $i}) WHERE a.n > 100 SET a.n = a.n + 1000, a:Marked",
    "MATCH (a:Made {i: $i}) WHERE a.n < 0 DETACH DELETE a",
)
"""What each round does after its load, and how many vertices with i, marked ones and pairs there are after each."""
STAGES = ((0, 0, 0), (400, 0, 200), (400, 100, 200), (200, 100, 0))
COUNTED = """
WITH made AS (SELECT subject FROM triples WHERE predicate = 'urn:graphdb:i' AND object = $i::VARCHAR)
SELECT (SELECT count(*) FROM made),
    (SELECT count(*) FROM triples SEMI JOIN made USING (subject) WHERE object = 'urn:graphdb:Marked' AND subject IN
        (SELECT subject FROM triples WHERE predicate = 'urn:graphdb:n' AND object::BIGINT > 1100)),
    (SELECT count(*) FROM triples SEMI JOIN made USING (subject) WHERE predicate = 'urn:graphdb:pair')
"""

LINES = 20_000
NAMED = 1_000


def write_files(folder: Path) -> None:
    """Seven files of triples that no other file has: ``<f:i>`` are the subjects of file i, blank nodes come anew."""
    import gzip

    for number in range(7):
        lines = "".join(f"_:b{i} <f:{number}> <o:{i % 1000}> .\n" for i in range(LINES))
        (folder / f"{number}.nt.gz").write_bytes(gzip.compress(lines.encode(), 1))
    quads = "".join(f'_:q{i} <n:{i % 3}> "{i}" <g:{i % 5}> .\n' for i in range(NAMED))
    (folder / "named.nq").write_text(quads)
    rows = "".join(f"{i},{i + 1},knows,{i}\n{i},{i + 1},knows,{-i}\n" for i in range(NAMED))
    (folder / "knows.csv").write_text(":START_ID,:END_ID,:TYPE,w:int\n" + rows)


def kill_once(folder: Path, begin: int, after: float, seed: str = "") -> tuple[int, int, str]:
    """Let a child work from load ``begin`` on for ``after`` seconds, in an order that ``seed`` says.

    Returns the loads it finished, those that are kept, and what it was doing.
    """
    command = [sys.executable, "-c", CHILD.replace("UPDATES", repr(UPDATES)), str(folder), str(begin), seed]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        time.sleep(after)
        child.send_signal(signal.SIGKILL)
        said = child.stdout.read().splitlines()
    assert child.returncode == -signal.SIGKILL, "it ended by itself"
    finished = sum(line.startswith("loaded") for line in said)
    last = next((n for n, line in enumerate(reversed(said)) if line.startswith("loaded")), None)
    updated = None if last is None else sum(line == "updated" for line in said[len(said) - last :])
    kept = check(folder, updated if said and said[-1] != "load" else None)
    return begin + finished, kept, said[-1].split()[0] if said else "opening"


def check(folder: Path, updated: int | None) -> int:
    """Open the database and compare; return how many loads it holds.

    ``updated`` is how many statements the last round said to have finished, where it was at them.
    """
    with graphdb.connect(folder / "db.duckdb", spill=folder / "spill") as db:
        known = "SELECT count(*) FROM _graphdb.source WHERE path LIKE '%.nt.gz'"
        sources = db.sql(known).scalar() if "triples" in db.tables() else 0
        if not sources:
            return 0
        per_file = dict(
            db.sql("SELECT predicate, count(*) FROM triples WHERE starts_with(predicate, 'f:') GROUP BY ALL").fetchall()
        )
        expected = {f"f:{n}": LINES * sum(1 for i in range(sources) if i % 7 == n) for n in range(min(sources, 7))}
        assert per_file == expected, (sources, per_file, expected)
        check_statistics(db)
        stages = [db._state.connection.rows(COUNTED, {"i": i})[0] for i in range(sources)]
        # A round may have been killed between its statements; the next one goes on with another load.
        assert all(stage in STAGES for stage in stages), stages
        if updated is not None:
            assert STAGES.index(stages[-1]) in (updated, updated + 1), (stages, updated)
        assert db.query("MATCH (a)-[:<f:0>]->(b) RETURN count(*)").scalar() == expected["f:0"]
        check_others(db)
        if "latest" in db.tables():
            i, n = db.sql("FROM latest").fetchall()[0]
            assert n >= (i + 1) * LINES
            assert i < sources  # killed between a load and its table, the next one goes on with another load
    return int(sources)


def check_statistics(db: Any) -> None:
    """The statistics of labels are what a recount says."""
    counted = db.sql("""
        SELECT label, count(*), count(DISTINCT subject), count(DISTINCT object) FROM _graphdb.triple GROUP BY label
    """).fetchall()
    stated = db.sql(f"SELECT id, triples, subjects, objects FROM {current('edge_label')}").fetchall()
    assert sorted(stated) == sorted(counted), (stated, counted)


def check_others(db: Any) -> None:
    """Transactions, loads of named graphs and tables, and tables of results are whole; edges have what they are said."""
    twins = db.sql("SELECT count(*) FROM triples WHERE predicate = 'urn:graphdb:t' GROUP BY object").fetchall()
    assert all(count % 2 == 0 for (count,) in twins), "half a transaction"
    named, edges, facts, loads = db._state.connection.rows("""
        SELECT (SELECT count(*) FROM _graphdb.quad), (SELECT count(*) FROM _graphdb.edge),
            (SELECT count(*) FROM _graphdb.edge_property), (SELECT count(*) FROM _graphdb.source WHERE path LIKE '%.nq')
    """)[0]
    assert (named, edges, facts) == (NAMED * loads, 2 * NAMED * loads, 2 * NAMED * loads)
    if "kept" in db.tables():
        assert db.sql("SELECT count(*) FROM kept").scalar() % LINES == 0


def check_folders(folder: Path) -> None:
    """Nothing is left of what was under way but what DuckDB takes up again when it opens the file."""
    known = {"db.duckdb", "db.duckdb.wal", "spill", "named.nq", "knows.csv", "export.nt.gz", "export.parquet"}
    left = {path.name for path in folder.iterdir()} - known - {f"{number}.nt.gz" for number in range(7)}
    assert not left, left
    assert not (folder / "spill").exists() or not list((folder / "spill").iterdir())


def check_export(folder: Path) -> None:
    """An export is whole or not there."""
    if (folder / "export.parquet").exists():
        with graphdb.connect() as db:
            db.load(str(folder / "export.parquet" / "*"))
            of_files = "SELECT count(*) FROM triples WHERE starts_with(predicate, 'f:')"
            assert db.sql(of_files).scalar() % LINES == 0
            assert db.sql("SELECT count(*) FROM _graphdb.quad").scalar() % NAMED == 0
    if (folder / "export.nt.gz").exists():
        with graphdb.connect() as db:
            db.load(folder / "export.nt.gz")
            of_files = "SELECT count(*) FROM triples WHERE starts_with(predicate, 'f:')"
            assert db.sql(of_files).scalar() % LINES == 0


def run(kills: int, seconds: float, seed: int = 0) -> str:
    """Kill so often, each within so many seconds; say how it went."""
    dice = random.Random(seed)
    during = killed = 0
    at: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder)
        kept = 0
        for number in range(kills):
            after = dice.uniform(0, seconds)
            finished, found, doing = kill_once(folder, kept, after, f"{seed} {number}")
            at[doing] += 1
            assert found in (finished, finished + 1), (finished, found)
            check_export(folder)
            check_folders(folder)
            killed += 1
            during += found > kept
            kept = found
            if kept > 40:  # small again, so that the first load is killed too
                (folder / "db.duckdb").unlink()
                kept = 0
    when = ", ".join(f"{number} at '{doing}'" for doing, number in at.most_common())
    return (
        f"{killed} kills, {during} of them after at least one finished load (last said: {when}); "
        "nothing lost, nothing half there"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    print(run(given.kills, given.seconds))
