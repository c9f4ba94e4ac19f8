"""Kill what writes to a file with continuous queries, at random moments, and look whether a change is lost or repeated.

Run as ``python -m tests.benchmarks.continuous_kills --kills 50``.  A child process writes statements, transactions and
batches of triples, and says which batch was the last one after each; the parent kills it (SIGKILL) after a random time, and
opens the file: every answer is what its query gives when run anew, what the stream of changes adds up to, and what a
consumer has who takes up the stream, kill by kill, behind the last batch that it saw; batches are numbered without gaps,
and none is lost that was said to be committed.
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

import graphdb
from tests.live import test_groups, test_properties
from tests.live.writes import bag, check, opened

CHILD = """
import sys
import numpy as np
from pathlib import Path
from graphdb.live import maintenance
from tests.live import test_groups, test_properties
from tests.live.writes import opened, statement
draw = np.random.default_rng(int(sys.argv[2]))
if draw.random() < 0.5:  # matched in the neighbourhood, as on large files
    maintenance.SMALL, maintenance._READING = 0, 1e9

def triple():
    a, b = (f"http://x/{draw.integers(9)}" for _ in range(2))
    return (a, "urn:graphdb:R", b) if draw.random() < 0.7 else (a, "urn:graphdb:k", int(draw.integers(4)))

def write():
    kind = draw.random()
    if kind < 0.3:
        db.apply([triple() for _ in range(8)], [triple() for _ in range(8)])
    elif kind < 0.6:
        db.query("BEGIN")
        for _ in range(3):
            db.query((test_properties if draw.random() < 0.5 else test_groups).change(draw))
        db.query("COMMIT" if draw.random() < 0.8 else "ROLLBACK")
    else:
        db.query(statement(draw) if kind < 0.7 else test_properties.change(draw))

with opened(Path(sys.argv[1])) as db:
    print("open", flush=True)
    while True:
        write()
        print(db._statements().live.statements.last_batch(), flush=True)
"""

QUERIES = {
    "matches": "MATCH (a)-[:R]->(b)-[:R]->(c) WHERE a.k < 3 RETURN a.i AS i, c.k AS k",
    "circles": "MATCH (a)-[:R]->(b)-[:S]->(c)-[:R]->(a) RETURN a, b, c",
    "grouped": "MATCH (a:A)-[:R]->(b) RETURN a.s AS s, count(*) AS n, min(b.i) AS m, count(DISTINCT b.k) AS d",
    "number": "MATCH (:A)-[:R]->(:B) RETURN count(*) AS n",
    "each_once": "MATCH (a)-[:R]->(b:B) RETURN DISTINCT a.i AS i, b.s AS s",
    "compared": "MATCH (a:A) OPTIONAL MATCH (a)-[:S]->(b) RETURN a.i AS i, b.i AS j",
}


def consume(db: graphdb.Database, seen: dict[str, int], replicas: dict[str, Counter[str]]) -> None:
    """Have a consumer of each query take up its changes behind the last batch that it saw."""
    last = db._statements().live.statements.last_batch()
    for name, replica in replicas.items():
        where = f"FROM {name}_changes WHERE batch > {seen[name]} AND change ="
        replica.update(bag(db, f"SELECT * EXCLUDE (batch, change) {where} 1"))
        replica.subtract(bag(db, f"SELECT * EXCLUDE (batch, change) {where} -1"))
        seen[name] = last
        assert +replica == bag(db, f"FROM {name}"), name
        assert not -replica, name


def run(kills: int, seconds: float, seed: int = 0) -> str:
    """Kill so often, each within so many seconds; say how it went."""
    dice, written = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.duckdb"
        with opened(path) as db:
            test_properties.begin(db)
            for name, text in QUERIES.items():
                db.query(f"CREATE CONTINUOUS QUERY {name} AS {text}")
            stored = {name: bag(db, f"FROM {name}") for name in QUERIES}
        replicas, seen = {name: Counter(found) for name, found in stored.items()}, dict.fromkeys(QUERIES, 0)
        for number in range(kills):
            command = [sys.executable, "-c", CHILD, str(path), str(1000 * seed + number)]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1) as child:
                assert child.stdout is not None
                assert child.stdout.readline() == "open\n"
                time.sleep(dice.uniform(0, seconds))
                child.send_signal(signal.SIGKILL)
                said = [int(line) for line in child.stdout.read().splitlines() if line.strip()]
            assert child.returncode == -signal.SIGKILL, "it ended by itself"
            with opened(path) as db:
                check(db, QUERIES, stored)
                consume(db, seen, replicas)
                batches = [
                    batch for (batch,) in db.sql("SELECT DISTINCT batch FROM _graphdb.batch ORDER BY 1").fetchall()
                ]
                assert batches == list(range(1, len(batches) + 1))
                assert len(batches) >= max(said, default=0), (len(batches), said[-1])
                written += len(said)
                # A graph that has grown goes, in a batch that is not killed.
                if db.query("MATCH ()-[e]->() RETURN count(*)").scalar() > 300:
                    db.query("MATCH (n) DETACH DELETE n")
                    test_groups.begin(db)
                    check(db, QUERIES, stored)
        return f"{kills} kills of {kills} consistent, {written} writes, {len(batches)} batches: nothing lost, nothing repeated"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(run(given.kills, given.seconds, given.seed))
