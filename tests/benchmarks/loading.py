"""Loading N-Triples from ``.nt.gz`` into a database on disk: seconds, triples a second, size, peak memory.

Run as ``python -m tests.benchmarks.loading``.  Each load runs in a fresh process; the interpreter's start and imports
are not in the seconds, and are in the memory.  ``graphdb-warm`` has the kernels in memory before.  ``duckdb-text`` is the floor: read the lines, split them by a regular
expression, keep three texts; no dictionary, no check of syntax.  ``duckdb-ids`` numbers the terms as well.
"""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

from tests.benchmarks.datasets import FILES, source
from tests.benchmarks.engines import LOADERS
from tests.benchmarks.harness import (
    Answer,
    Table,
    Worker,
    chosen,
    geomean,
    main,
    options,
    progress,
    scratch,
    size_mb,
    surroundings,
)

SMALL = 200_000
"""Triples: RDFLib is asked to load no more."""


def run(argv: list[str]) -> list[Table]:
    """Measure and return one table."""
    parser = options(__doc__, [name for name in LOADERS if name != "graphdb"], repeat=3, limit=120)
    parser.add_argument("--data", default=",".join(FILES), help=f"comma-separated, among: {', '.join(FILES)}")
    arguments = parser.parse_args(argv)
    engines = chosen(arguments.peers, LOADERS)
    table = Table(
        "loading .nt.gz into a database on disk: median of fresh processes",
        ["data", "engine", "s", "triples/s", "disk MB", "peak MB", "s / graphdb"],
    )
    ratios: dict[str, list[float]] = {engine: [] for engine in engines}
    with scratch() as folder:
        _once(Worker(LOADERS["graphdb"]), folder, "lsqb", 600)  # compiles the kernels where that was never done
        for name in arguments.data.split(","):
            seconds: dict[str, list[float]] = {engine: [] for engine in engines}
            report: dict[str, tuple[int, float, float]] = {}
            trouble: dict[str, str] = {}
            for _ in range(arguments.repeat):
                for engine, make in engines.items():
                    if engine in trouble or (engine == "rdflib" and name == "wikidata"):
                        continue
                    progress(f"{name}: {engine}")
                    answer, disk, peak = _once(Worker(make), folder, name, arguments.limit)
                    if answer.trouble:
                        trouble[engine] = answer.trouble
                        continue
                    seconds[engine].append(answer.seconds)
                    report[engine] = (answer.value, disk, peak)
            ours = statistics.median(seconds["graphdb"]) if seconds["graphdb"] else float("nan")
            # The same lines for all: what an engine calls a triple (distinct or not) differs.
            lines = report["graphdb"][0] if "graphdb" in report else 0
            for engine in engines:
                if engine in trouble:
                    table.add(name, engine, trouble[engine], *["-"] * 4)
                elif seconds[engine]:
                    median = statistics.median(seconds[engine])
                    _, disk, peak = report[engine]
                    ratios[engine].append(median / ours)
                    stored = "-" if engine == "rdflib" else f"{disk:.1f}"
                    row = f"{median:.2f}", f"{lines / median:,.0f}", stored, f"{peak:.0f}", f"{median / ours:.2f}"
                    table.add(name, engine, *row)
    for engine, found in ratios.items():
        table.add("geometric mean", engine, *["-"] * 4, f"{geomean(found):.2f}")
    packages = ("graphdb", "duckdb", "pyoxigraph", "rdflib")
    table.notes.append(f"{surroundings(*packages)}; {arguments.repeat} runs")
    return [table]


def _once(worker: Worker, folder: Path, name: str, limit: float) -> tuple[Answer, float, float]:
    """Load once in a fresh process; the answer, megabytes on disk, peak megabytes of memory."""
    place = folder / "load"
    place.mkdir()
    try:
        answer = worker.load(source(name), place, limit)
        return answer, size_mb(place), worker.peak_mb() if not answer.trouble else 0.0
    finally:
        worker.close()
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main(run)
