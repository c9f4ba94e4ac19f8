"""This checkout against another one, query by query and in turns: what became slower, and by how much.

Run as ``python -m tests.benchmarks.compare FOLDER`` with the folder of another checkout (``git worktree add`` makes
one).  Both count the same patterns on databases of their own, loaded by themselves; each is asked for the same text
again and for a text that it has not seen.  The least time of the runs counts: what else a machine does only adds to it.
A query is told as slower where it is by more than ``--over`` per cent in both halves of the runs.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from tests.benchmarks import harness
from tests.benchmarks.datasets import FILES, queries, source
from tests.benchmarks.engines import Graphdb, GraphdbNew
from tests.benchmarks.harness import (
    Table,
    geomean,
    main,
    measure,
    options,
    progress,
    scratch,
    surroundings,
    workers,
)

KINDS: dict[str, type[Graphdb]] = {"the same text": Graphdb, "a new text": GraphdbNew}


def make(kind: str, folder: Path, processor: bool) -> Graphdb:
    """Return our engine from a checkout; in a process that has not imported it yet."""
    assert "graphdb" not in sys.modules
    if processor:
        harness.clock = time.process_time
    sys.path.insert(0, str(folder))
    return KINDS[kind]()


def run(argv: list[str]) -> list[Table]:
    """Measure and return one table per data set."""
    parser = options(__doc__, [], repeat=8, limit=30)
    parser.add_argument("folder", type=Path, help="the other checkout")
    parser.add_argument("--data", default="watdiv,lubm,lsqb", help=f"comma-separated, among: {', '.join(FILES)}")
    parser.add_argument("--over", type=float, default=10, help="per cent by which a query may be slower")
    parser.add_argument("--processor", action="store_true", help="processor time, of all threads, of a shared machine")
    arguments = parser.parse_args(argv)
    if arguments.repeat < 2:
        parser.error("--repeat: at least 2 runs, to compare two halves")
    here = Path(__file__).resolve().parents[2]
    return [
        _compared(name, kind, {"before": arguments.folder.resolve(), "now": here}, arguments)
        for name in arguments.data.split(",")
        for kind in KINDS
    ]


def _compared(name: str, kind: str, folders: Mapping[str, Path], arguments: Namespace) -> Table:
    repeat, over, processor = arguments.repeat, arguments.over, arguments.processor
    measured = "processor ms" if processor else "ms"
    table = Table(f"{name}, {kind}: warm {measured} per query, least", [name, "before", "now", "now / before"])
    ratios, slower = [], []
    engines = {which: partial(make, kind, folder, processor) for which, folder in folders.items()}
    with scratch() as folder, workers(engines) as started:
        for engine, worker in started.items():
            progress(f"{name}: loading, {engine}")
            (folder / engine).mkdir()
            loaded = worker.load(source(name), folder / engine, 300)
            if loaded.trouble:
                raise SystemExit(f"{engine} did not load {name}: {loaded.trouble}")
        for query in queries(name):
            progress(f"{name}: {query.name}")
            cells = measure(started, query, query.count, repeat, arguments.limit, f"{name} {query.name}")
            old, new = cells["before"], cells["now"]
            if old.trouble or new.trouble:
                table.add(query.name, old.text(), new.text(), "-")
                continue
            half = max(min(len(old.seconds), len(new.seconds)) // 2, 1)  # a long one is asked less often
            parts = (slice(half), slice(half, None) if half > 1 else slice(None))
            halves = [min(new.seconds[part]) / min(old.seconds[part]) for part in parts]
            ratios.append(min(new.seconds) / min(old.seconds))
            certain = min(halves) > 1 + over / 100
            report = f"{ratios[-1]:.2f}{' slower' if certain else ''}"
            table.add(query.name, *(f"{min(cell.seconds) * 1e3:.3g}" for cell in (old, new)), report)
            slower += [query.name] if certain else []
    table.add("geometric mean", "", "", f"{geomean(ratios):.2f}")
    table.notes.append(f"slower by more than {over:g} %: {', '.join(slower) or 'none'}")
    table.notes.append(f"{surroundings('graphdb')}; {repeat} runs of each in turns")
    return table


if __name__ == "__main__":
    main(run)
