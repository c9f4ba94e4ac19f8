"""Interrupts at random moments: nothing that was said to be kept is lost, nothing is half there, and the next statement runs.

    python -m tests.benchmarks.interrupts --interrupts 100000 --seed 1

One process runs short statements over a file and is interrupted, as by Ctrl-C, after a random time in each of them:
within DuckDB, between two lines of Python, in a COMMIT, while an earlier interrupt is handled.  What returned without
an error must be there, what was interrupted may be there as a whole or not at all; now and then the file is opened anew.
"""

from __future__ import annotations

import argparse
import io
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import graphdb
from graphdb.common.errors import ExecutionError

_REOPEN = 1000
"""Interrupts between two reopenings."""

_MANY = 80
"""Vertices of a statement that writes by sets."""

_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:graphdb:P>"
_INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


class _Model:
    """What must be there, and what may be: groups of keys that are there as a whole or not at all."""

    def __init__(self) -> None:
        self.there: set[int] = set()
        self.open: list[tuple[set[int], bool]] = []
        """Groups whose statement was interrupted; whether it created them, or deleted them."""

    def check(self, found: set[int]) -> None:
        """Raise if what is found cannot be; afterwards, what may have been is known."""
        for group, _ in self.open:
            left = group & found
            if left and left != group:
                raise AssertionError(f"half of a statement is there: {len(left)} of {len(group)}")
            self.there = self.there - group | left
        self.open.clear()
        if found != self.there:
            raise AssertionError(
                f"{len(self.there - found)} vertices are lost, {len(found - self.there)} came from nowhere"
            )


class _Run:
    def __init__(self, path: Path, random: Random) -> None:
        self.path, self.random = path, random
        self.model = _Model()
        self.db = graphdb.connect(path, threads=1)
        self.next = 0
        self.interrupts = self.statements = 0
        self.longest = 0.0

    def _keys(self, count: int) -> set[int]:
        self.next += count
        return set(range(self.next - count, self.next))

    def warm_up(self) -> None:
        """Run every kind once: Python leaves a module half imported whose import is interrupted."""
        for kind in ("one", "many", "load", "transaction", "prefix", "read", "delete"):
            self._execute(kind, sorted(self._keys(_MANY)))
        self.model.there = {k for (k,) in self.db.query("MATCH (n:P) RETURN n.k").fetchall()}

    def step(self) -> None:
        """Run a statement, interrupted after a random time."""
        kind = self.random.choice(["one", "one", "many", "load", "delete", "transaction", "prefix", "read"])
        group, created = self._keys({"many": _MANY, "transaction": 3}.get(kind, 1)), True
        ks = sorted(group)
        if kind == "delete":
            group, created = set(self.random.sample(sorted(self.model.there), min(3, len(self.model.there)))), False
            ks = sorted(group)
        elif kind in ("prefix", "read"):
            group = set()
        self.statements += 1
        interrupted = 0.0
        done = False
        try:
            signal.setitimer(
                signal.ITIMER_REAL, self.random.random() * (0.03 if kind in ("many", "load") else 0.012) + 1e-5
            )
            self._execute(kind, ks)
            done = True
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupted = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0)
        if interrupted:
            self.interrupts += 1
        if done:
            self.model.there = self.model.there | group if created else self.model.there - group
        else:
            self.model.open.append((group, created))
        if self.db._state.transactions.by_user or not done:
            with suppress(ExecutionError):
                self.db.sql("ROLLBACK")
        found = {k for (k,) in self.db.query("MATCH (n:P) RETURN n.k").fetchall()}
        self.longest = max(self.longest, time.perf_counter() - interrupted if interrupted else 0.0)
        self.model.check(found)
        if len(found) > 3000:
            self.db.query("MATCH (n:P) DETACH DELETE n")
            self.model.there = set()

    def _execute(self, kind: str, ks: list[int]) -> None:
        db = self.db
        match kind:
            case "one":
                db.query("CREATE (:P {k: $k})", k=ks[0])
            case "many":
                db.query("UNWIND $ks AS k CREATE (:P {k: k})", ks=ks)
            case "load":
                text = f'<e:{ks[0]}> {_TYPE} .\n<e:{ks[0]}> <urn:graphdb:k> "{ks[0]}"^^{_INTEGER} .\n'
                db.load(io.BytesIO(text.encode()), "nt")
            case "delete":
                db.query("MATCH (n:P) WHERE n.k IN $ks DETACH DELETE n", ks=ks)
            case "transaction":
                db.sql("BEGIN")
                for k in ks:
                    db.query("CREATE (:P {k: $k})", k=k)
                db.sql("COMMIT")
            case "prefix":
                db.query("PREFIX e: <http://e/>")
            case _:
                db.query("MATCH (n:P) RETURN n.k").fetchall()

    def reopen(self) -> None:
        """Close the file and open it; what was kept is there, and nobody is told of a killed load."""
        self.db.close()
        self.db = graphdb.connect(self.path, threads=1)
        if self.db.unfinished is not None:
            raise AssertionError(f"a note of work was left: {self.db.unfinished}")
        self.model.check({k for (k,) in self.db.query("MATCH (n:P) RETURN n.k").fetchall()})
        for column in ("id", "iri"):
            if self.db.sql(f"SELECT count(*) - count(DISTINCT {column}) FROM _graphdb.resource").scalar():
                raise AssertionError(f"an {column} is there twice")


def main() -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--interrupts", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="end after so many")
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run = _Run(Path(folder) / "db.duckdb", Random(given.seed))
        run.warm_up()
        reopenings = 0
        while run.interrupts < given.interrupts and time.perf_counter() - started < given.seconds:
            run.step()
            if run.interrupts // _REOPEN > reopenings:
                reopenings += 1
                run.reopen()
                print(f"{run.interrupts:,} interrupts in {run.statements:,} statements", file=sys.stderr, flush=True)
        run.reopen()
        run.db.close()
    print(
        f"{run.interrupts:,} interrupts in {run.statements:,} statements, {reopenings + 1} reopenings, "
        f"{time.perf_counter() - started:.0f} s: nothing lost, nothing half there; "
        f"longest from an interrupt to the next answer {run.longest:.2f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
