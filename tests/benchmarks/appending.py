"""Appending: what new triples cost, by how many there are and how many are there already.

Run as ``python -m tests.benchmarks.appending --there 0.1,1,5``.  For each size of the database, on disk and warm: a load
of 1, 1,000, 10,000 and 100,000 triples, the first query after it (two hops and a property, counted), the same query again,
and statements that create, merge and set.  ``new``: new people with all that people have, who know old ones; ``edges``:
old people get to know others, all over the graph.  Medians after the first :data:`WARM` rounds, which make what later ones
use (``first`` is the first round, in a new process); pyoxigraph's store gets the same triples, by ``load`` and ``update``.
``--processor``: processor time, which other work on the machine disturbs less.

``--large 10 --there 10 --limit 1GB``: as many millions of people's triples as that onto others, in a fresh process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from tests.benchmarks.bulk import R, S, generate

QUERY = "MATCH (a)-[:knows]->(b)-[:livesIn]->(c) WHERE a.age = 30 RETURN count(*)"
SIZES = (1, 1000, 10_000, 100_000)
KINDS = ("new", "edges")
STATEMENTS = {
    "CREATE": "CREATE (:Person {name: 'n$'})-[:knows]->(:Person {name: 'm$'})",
    "MERGE": "MERGE (a:Person {name: 'merged $'})",
    "SET": "MATCH (a:Person {name: 'merged $'}) SET a.age = 30",
}


WARM = 4
"""Rounds that are not among those that medians are of."""


def write(file: Path, kind: str, number: int, size: int, people: int) -> None:
    """Write triples of the ``number``-th round."""
    if kind == "new" and size >= 8:
        generate(file, size, 1_000_000_000 + number * 1_000_000, people)
        return
    given = random.Random(f"{kind} {number} {size}")
    one = f"<{R}person/{{}}> <{S}knows> <{R}person/{{}}> .\n".format
    file.write_text("".join(one(*given.choices(range(people), k=2)) for _ in range(size)))


clock = time.perf_counter


def milliseconds(work: Callable[[], Any]) -> float:
    """How long something takes."""
    start = clock()
    work()
    return (clock() - start) * 1000


def ours(data: Path, folder: Path, repeat: int, people: int) -> dict[str, float]:
    """Medians in milliseconds, by what was done."""
    import graphdb

    found: dict[str, list[float]] = {}

    def note(what: str, work: Callable[[], Any]) -> None:
        found.setdefault(what, []).append(milliseconds(work))

    file = folder / "part.nt"
    with graphdb.connect(folder / "db.duckdb") as db:
        db.load(data)
    with graphdb.connect(folder / "db.duckdb") as db:
        for number in range(repeat + WARM):
            for size, kind in product(SIZES, KINDS):
                write(file, kind, number, size, people)
                note(f"{kind} {size:,}", lambda: db.load(file))
                note(f"query after {kind} {size:,}", lambda: db.query(QUERY).scalar())
            note("query again", lambda: db.query(QUERY).scalar())
            for name, text in STATEMENTS.items():
                note(name, lambda text=text, number=number: db.query(text.replace("$", str(number))))
    first = {f"first {what}": times[0] for what, times in found.items() if what.split()[0] in KINDS}
    return {what: statistics.median(times[WARM:]) for what, times in found.items()} | first


def theirs(data: Path, folder: Path, repeat: int, people: int) -> dict[str, float]:
    """pyoxigraph's medians in milliseconds."""
    import pyoxigraph

    store = pyoxigraph.Store(str(folder / "store"))
    store.bulk_load(path=str(data), format=pyoxigraph.RdfFormat.N_TRIPLES)
    found: dict[str, list[float]] = {}
    for number in range(repeat):
        for size, kind in product(SIZES, KINDS):
            write(folder / "part.nt", kind, number, size, people)
            text = (folder / "part.nt").read_bytes()
            took = milliseconds(lambda text=text: store.load(text, pyoxigraph.RdfFormat.N_TRIPLES))
            found.setdefault(f"{kind} {size:,}", []).append(took)
        insert = f"INSERT DATA {{ _:a a <urn:P> ; <urn:name> 'n{number}' ; <urn:knows> _:b . _:b a <urn:P> ; <urn:name> 'm' }}"
        found.setdefault("CREATE", []).append(milliseconds(lambda insert=insert: store.update(insert)))
    return {what: statistics.median(times) for what, times in found.items()}


_CHILD = """
import graphdb, json, os, resource, sys
path, data, limit = sys.argv[1:]
with graphdb.connect(path, memory_limit=limit, spill=os.path.dirname(path)) as db:
    report = db.load(data)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([report.new_triples, report.seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6]))
"""


def large(there: int, more: int, limit: str, folder: Path) -> None:
    """Append many triples (both numbers multiples of 8), and print a row: the peak is the whole process's."""
    for name, triples, first in (("there", there, 0), ("more", more, there // 8)):
        generate(folder / f"{name}.nt", triples, first)
        ran = subprocess.run(
            [sys.executable, "-c", _CHILD, str(folder / "db.duckdb"), str(folder / f"{name}.nt"), limit],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ran.returncode:
            raise RuntimeError(ran.stderr[-500:])
        new, seconds, processor, peak = json.loads(ran.stdout.splitlines()[-1])
        print(f"{name:>6} {new:>12,} {seconds:>8.1f} s {processor:>8.1f} cpu s {peak:>6.0f} MB", flush=True)


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--there", default="0.1,1,5", help="millions of triples")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--processor", action="store_true", help="processor time instead of seconds that passed")
    parser.add_argument("--peers", action="store_true", help="pyoxigraph too")
    parser.add_argument("--large", default="", help="millions of triples to append to each, with a memory limit")
    parser.add_argument("--limit", default="1GB")
    given = parser.parse_args()
    global clock
    clock = time.process_time if given.processor else clock
    for more in given.large.split(",") if given.large else ():
        for there in given.there.split(","):
            with tempfile.TemporaryDirectory() as name:
                large(*(int(float(millions) * 1e6) // 8 * 8 for millions in (there, more)), given.limit, Path(name))
    if given.large:
        return
    tables: dict[str, dict[str, float]] = {}
    for there in given.there.split(","):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            people = int(float(there) * 1e6) // 8
            generate(folder / "data.nt", people * 8)
            tables[f"{there} M"] = ours(folder / "data.nt", folder, given.repeat, people)
            if given.peers:
                tables[f"{there} M oxigraph"] = theirs(folder / "data.nt", folder, given.repeat, people)
    print(f"{'ms':26}" + "".join(f"{name:>14}" for name in tables))
    for what in next(iter(tables.values())):
        cells = (table.get(what) for table in tables.values())
        print(f"{what:26}" + "".join(f"{'' if cell is None else f'{cell:.1f}':>14}" for cell in cells))
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
