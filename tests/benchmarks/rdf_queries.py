"""Warm times of the RDF data sets' queries: ours, pyoxigraph (SPARQL), DuckDB (self-joins) and Ladybug (Cypher).

Run as ``python -m tests.benchmarks.rdf_queries``.  All engines count the solutions of the same patterns, on a
database on disk; counts are compared with the known ones.  A text that comes again finds its plan kept by ours and no
peer's, so ours is asked twice: ``graphdb`` repeats the text, ``graphdb-new`` never sends the same one twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from tests.benchmarks.datasets import FILES, queries, source
from tests.benchmarks.engines import STORES
from tests.benchmarks.harness import (
    Cell,
    Table,
    against,
    chosen,
    geomean,
    main,
    measure,
    options,
    progress,
    scratch,
    surroundings,
    workers,
)

SLOW = 50.0
"""Milliseconds: WatDiv queries over this are named."""

Measured = dict[str, dict[str, Cell]]
"""By query and engine."""


def run(argv: list[str]) -> list[Table]:
    """Measure and return one table per data set."""
    parser = options(__doc__, [name for name in STORES if name != "graphdb"], repeat=5, limit=60)
    parser.add_argument("--data", default=",".join(FILES), help=f"comma-separated, among: {', '.join(FILES)}")
    parser.add_argument("--every", action="store_true", help="one row per WatDiv query, not per class of templates")
    arguments = parser.parse_args(argv)
    engines = chosen(arguments.peers, STORES)
    tables = []
    for name in arguments.data.split(","):
        with scratch() as folder, workers(engines) as started:
            trouble = []
            for engine, worker in list(started.items()):
                progress(f"{name}: loading into {engine}")
                (folder / engine).mkdir()
                loaded = worker.load(source(name), folder / engine, 240)
                if loaded.trouble:
                    trouble.append(f"{engine} did not load it: {loaded.trouble}")
                    worker.close()
                    del started[engine]
            measured: Measured = {}
            began = time.perf_counter()
            for query in queries(name):
                progress(f"{name}: {query.name}")
                measured[query.name] = measure(
                    started, query, query.count, arguments.repeat, arguments.limit, f"{name} {query.name}"
                )
            took = time.perf_counter() - began
            table = _table(name, measured, list(started), arguments.every)
            progress("")
            table.notes += [*trouble, f"{surroundings(*PACKAGES)}; {arguments.repeat} runs, {took:.0f} s in all"]
            tables.append(table)
    return tables


PACKAGES = ("graphdb", "duckdb", "pyoxigraph", "ladybug")


def _table(name: str, measured: Measured, engines: list[str], every: bool) -> Table:
    title = f"{name}: warm ms per query, median"
    table = Table(title, [name, *engines])
    if name == "watdiv" and not every:
        table.title = "watdiv: warm ms, geometric mean of the medians per class of templates (worst query)"
        for kind, what in zip("LSFC", ("linear", "star", "snowflake", "complex"), strict=True):
            mine = {query: cells for query, cells in measured.items() if query.startswith(kind)}
            table.add(f"{kind} {what} ({len(mine)})", *(_class(mine, engine) for engine in engines))
        table.notes += _slow(measured, engines)
    else:
        for query, cells in measured.items():
            table.add(query, *(cells[engine].text() for engine in engines))
    every_cell = {engine: [cells[engine] for cells in measured.values()] for engine in engines}
    table.add("geometric mean", *(_ms(geomean([c.median for c in every_cell[engine]])) for engine in engines))
    table.add(
        "peer / graphdb",
        *("-" if e == "graphdb" else against(every_cell["graphdb"], every_cell[e]) for e in engines),
    )
    return table


def _class(measured: Measured, engine: str) -> str:
    cells = {query: cells[engine] for query, cells in measured.items()}
    failed = [query for query, cell in cells.items() if cell.trouble]
    known = {query: cell.median for query, cell in cells.items() if not cell.trouble}
    if not known:
        return cells[failed[0]].trouble
    worst = max(known, key=known.__getitem__)
    text = f"{_ms(geomean(list(known.values())))} ({worst} {_ms(known[worst])})"
    return f"{text}, {len(failed)} failed" if failed else text


def _slow(measured: Measured, engines: Iterable[str]) -> list[str]:
    notes = []
    for engine in engines:
        slow = [
            f"{query} {_ms(cells[engine].median)}"
            for query, cells in measured.items()
            if cells[engine].median * 1e3 > SLOW
        ]
        if len(slow) > 6:
            slow[6:] = [f"and {len(slow) - 6} more"]
        if slow or engine == "graphdb":
            notes.append(f"{engine} over {SLOW:g} ms: {', '.join(slow) or 'none'}")
    return notes


def _ms(seconds: float) -> str:
    return "-" if math.isnan(seconds) else f"{seconds * 1e3:,.{1 if seconds >= 1e-3 else 3}f}"


if __name__ == "__main__":
    main(run)
