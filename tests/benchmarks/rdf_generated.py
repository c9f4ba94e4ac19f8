"""Questions in the shapes of LUBM and WatDiv to a generated graph: the CPU, a CUDA device, and the choice between them.

    python -m tests.benchmarks.rdf_generated --triples 10_000_000

Milliseconds are those of the match alone, on a prepared plan, with what it reads in memory (on a device, in the
device's), medians: ``cpu 1`` is one thread, ``cpu`` all, ``first`` the device's first run, with all that it is given
and compiled for it; ``plan`` is from text to plan, where nothing is known yet.  Rows are taken block by block as they
come.  ``query`` is the whole of a prepared query, with SQL after the match and the result as an Arrow table, on the
CPU and by choice.  All counts are compared.
"""

from __future__ import annotations

import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import graphdb
from graphdb.common.errors import GraphDBError, QueryTimeout
from graphdb.execute.choose import ChoosingExecutor, open_device
from graphdb.execute.host import HostExecutor
from graphdb.grammar.parser import parse
from graphdb.grammar.syntax import Query
from graphdb.plan.executor import Control, Executor
from graphdb.relational.query import Prepared, QueryRun
from graphdb.storage.compile import warm
from tests.benchmarks import campus
from tests.benchmarks.campus_queries import QUESTIONS, Question
from tests.benchmarks.harness import CORES, MOST_IN_TURN, TURN, Table, main, options, progress, scratch, surroundings

SLOW = 0.1
"""Seconds on the CPU from which a device is held to be ten times faster."""


WARM = 3
"""Runs that are not measured."""
PATIENCE = 1.5
"""Seconds that one engine may take for one question in all measured runs, about."""
MANY = 400_000
"""Rows from which the whole query is not asked: it spends seconds on the texts of IRIs."""


@dataclass(slots=True)
class Cell:
    """One engine's answers to one question."""

    answers: set[int] = field(default_factory=set)
    """One, if it is always the same."""
    seconds: list[float] = field(default_factory=list)
    first: float = float("nan")
    trouble: str = ""

    @property
    def median(self) -> float:
        """Of all runs but the first."""
        return statistics.median(self.seconds) if self.seconds else self.first

    def text(self) -> str:
        return self.trouble or _ms(self.median)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.{1 if seconds >= 0.01 else 2}f}"


def matched(executor: Executor, prepared: Prepared, limit: float) -> int:
    """Run the match alone: its matches; where only different rows are wanted, -1, since equal ones may be left out."""
    plan, control = prepared.plan, Control(timeout=limit)
    assert plan is not None
    if prepared.wanted.count_only:
        return executor.count(plan, control)
    matches = 0
    for block in executor.run(plan, control):
        matches += block.count if block.matches is None else int(block.matches.sum())
    return matches if prepared.wanted.duplicates != "drop" else -1


def different(executor: Executor, prepared: Prepared) -> int:
    """How many different rows a match gives."""
    plan = prepared.plan
    assert plan is not None
    blocks = list(executor.run(plan))
    keys = np.zeros(sum(block.count for block in blocks), np.int64)
    for name in plan.outputs:
        column = np.concatenate([np.empty(0, np.int64), *(block.columns[name] for block in blocks)])
        keys = np.unique(keys * (column.max(initial=0) + 1) + column, return_inverse=True)[1]
    return int(keys.max(initial=-1)) + 1


def run(argv: list[str]) -> list[Table]:
    """Generate, load, ask."""
    parser = options(__doc__, ["cpu 1", "cuda", "query"], repeat=5, limit=20)
    parser.add_argument("--triples", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="questions whose names match this regular expression")
    parser.add_argument("--verbose", action="store_true", help="print every row as it is there, too")
    parser.add_argument("--database", type=Path, help="a database made before, or to be kept")
    given = parser.parse_args(argv)
    questions = [question for question in QUESTIONS if re.search(given.only, question.name)]
    with scratch() as folder:
        database, report = _loaded(given.triples, given.seed, given.database, folder)
        with database:
            table = _asked(
                database, questions, given.peers.split(","), given.repeat, given.limit, report, given.verbose
            )
            return [table]


def _loaded(triples: int, seed: int, kept: Path | None, folder: Path) -> tuple[graphdb.Database, str]:
    """The database, and how it came to be."""
    if kept is not None and kept.exists():
        return graphdb.connect(kept), f"{kept.name}, made before"
    progress("generating")
    started = time.perf_counter()
    graph = campus.campus(triples, seed)
    campus.write(graph, folder / "campus.nt")
    written = time.perf_counter()
    progress("loading")
    database = graphdb.connect(kept or folder / "campus.duckdb")
    database.load(folder / "campus.nt")
    loaded = time.perf_counter() - written
    (folder / "campus.nt").unlink()
    report = f"{campus.size(graph):,} triples, seed {seed}: generated and written in {written - started:.1f} s, loaded in {loaded:.1f} s"
    return database, report


def _asked(
    database: graphdb.Database,
    questions: list[Question],
    peers: list[str],
    repeat: int,
    limit: float,
    report: str,
    verbose: bool,
) -> Table:
    """One table: every engine answers every question once unmeasured, then in turns."""
    warm.make_missing()
    host = HostExecutor()
    engines: dict[str, Executor] = {"cpu": host}
    if "cpu 1" in peers:
        engines["cpu 1"] = HostExecutor(1)
    choosing: ChoosingExecutor | None = None
    if "cuda" in peers:
        try:
            device = open_device(0)
            engines["cuda"] = device
            engines["auto"] = choosing = ChoosingExecutor(host, lambda: device)
            report += f"; {device.device.name}"
        except GraphDBError as error:
            report += f"; no device: {error.message}"
        else:
            choosing._opened()
    whole = [name for name in ("cpu", "auto") if name in engines] if "query" in peers else []
    known = [name for name in ("cpu 1", *engines) if name in engines]
    columns = ["question", "matches", "plan", *dict.fromkeys(known)]
    columns += ["first", "chosen", "cpu / cuda", "cpu / auto"] if choosing else []
    table = Table("milliseconds of the match, warm", [*columns, *(f"query {name}" for name in whole), "rows"])
    missed, slower = [], []
    for question in questions:
        progress(question.name)
        with QueryRun(database._state.snapshot(), host, question.text, {}, bindings_bytes=8 << 30) as asked:
            query = parse(question.text)
            assert isinstance(query, Query)
            started = time.perf_counter()
            prepared = asked.prepare(query)
            planned = time.perf_counter() - started

            def ask(engine: Executor, prepared: Prepared = prepared) -> int:
                return matched(engine, prepared, limit)

            def result(engine: Executor, prepared: Prepared = prepared, asked: QueryRun = asked) -> int:
                asked.executor = engine
                return asked.run(prepared).num_rows

            cells = _measured({name: (ask, engine) for name, engine in engines.items()}, repeat)
            matches = min(cells["cpu"].answers, default=-1)
            told_apart = set[int]()
            if question.form == "distinct":
                told_apart = {different(engine, prepared) for engine in engines.values()}
                matches = min(told_apart)
            few = question.form == "groups" or matches < MANY
            wholes = _measured({name: (result, engines[name]) for name in whole if few}, 2)
        found = [set().union(*(cell.answers for cell in some.values())) for some in (cells, wholes)] + [told_apart]
        row = [question.name, f"{matches:,}", _ms(planned)]
        row += [cells[name].text() for name in dict.fromkeys(known)]
        if max(map(len, found)) > 1:
            row[1] = f"WRONG {found}"
        if choosing is not None:
            ours, theirs, chosen = (cells[name].median for name in ("cpu", "cuda", "auto"))
            assert prepared.plan is not None
            row += [_ms(cells["cuda"].first), choosing.describe(prepared.plan).partition(";")[0]]
            row += [f"{ours / theirs:.2f}", f"{ours / chosen:.2f}"]
            if ours > SLOW and ours < 10 * chosen:
                missed.append(question.name.split()[0])
            if chosen > 1.2 * ours:
                slower.append(question.name.split()[0])
        row += [wholes[name].text() if few else "-" for name in whole]
        table.add(*row, f"{min(found[1]):,}" if found[1] else "-")
        if verbose:
            print("  ".join(table.rows[-1]), file=sys.stderr, flush=True)
    if choosing is not None:
        table.notes.append(
            f"over {SLOW * 1e3:.0f} ms on the CPU and not ten times faster: {', '.join(missed) or 'none'}"
        )
        table.notes.append(f"over 1.2 times slower than the CPU, as chosen: {', '.join(slower) or 'none'}")
    table.notes += [report, f"{surroundings('graphdb', 'duckdb')}; cpu is {CORES} threads; {repeat} runs"]
    return table


Asked = tuple[Callable[[Executor], int], Executor]


def _measured(engines: dict[str, Asked], repeat: int) -> dict[str, Cell]:
    """Ask every engine a few times unmeasured (the choice learns meanwhile), then so many times in turns."""
    cells = {name: Cell() for name in engines}
    for turn in range(-WARM, repeat):
        for name, (ask, engine) in engines.items():
            cell = cells[name]
            if cell.trouble or (turn > -WARM and name == "cpu 1" and turn != 0) or sum(cell.seconds) > PATIENCE:
                continue
            taken: list[float] = []
            try:
                while not taken or (turn >= 0 and sum(taken) < TURN and len(taken) < MOST_IN_TURN):
                    started = time.perf_counter()
                    cell.answers.add(ask(engine))
                    taken.append(time.perf_counter() - started)
            except GraphDBError as error:
                cell.trouble = (
                    "too long" if isinstance(error, QueryTimeout) else f"{type(error).__name__}: {error.message}"[:60]
                )
                continue
            if turn >= 0:
                cell.seconds.append(statistics.median(taken))
            elif turn == -WARM:
                cell.first = taken[0]
    return cells


if __name__ == "__main__":
    main(run)
