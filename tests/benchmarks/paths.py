"""Paths of variable length and shortest paths: ours, DuckDB's recursive queries, ladybug, igraph, NetworkX.

Run as ``python -m tests.benchmarks.paths``.  Graphs are simple and undirected; every engine is asked the same and
returns one number (a sum of lengths, or how many), by which answers are compared.  igraph and NetworkX return what
they have for the question, as Python lists; ``values`` are Python values of ours, too.  The first round of a question
is not measured, and the measured ones ask for the same pairs again.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.harness import (
    Engine,
    Table,
    chosen,
    main,
    measure,
    options,
    progress,
    scratch,
    surroundings,
    workers,
)
from tests.benchmarks.path_engines import ENGINES, edges_of, questions
from tests.datasets import SHARED

SMALL = 300_000
"""Edges up to which NetworkX is asked: beyond, it needs minutes for what the others do in seconds."""
LOADING = 120
"""Seconds for loading a graph into an engine."""


def _source(name: str, folder: Path) -> Path:
    """A SNAP graph's file, or ``rmat16``: an R-MAT graph of 2**16 vertices and some million edges."""
    path = SHARED / "data" / "snap" / f"{name}.txt.gz"
    if name.startswith("rmat"):
        code = SHARED / "data" / "rmat.py"
        spec = importlib.util.spec_from_file_location("rmat", code)
        if spec is not None and spec.loader is not None and code.exists():
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            _, u, v = module.rmat(int(name.removeprefix("rmat")), 16)
            path = folder / f"{name}.txt.gz"
            with gzip.open(path, "wt", compresslevel=1) as file:
                file.writelines(f"{a}\t{b}\n" for a, b in zip(u.tolist(), v.tolist(), strict=True))
    if not path.exists():
        raise SystemExit(f"{path} is not here; set GRAPHDB_SHARED to the folder with the shared data sets")
    return path


def _component(edges: list[tuple[int, int]]) -> tuple[list[int], int]:
    """The vertices of the largest component, sorted, and the one of most neighbours."""
    import igraph

    graph = igraph.Graph(1 + max(map(max, edges)), edges)
    largest = max(graph.connected_components(), key=len)
    return sorted(largest), max(largest, key=graph.degree)


def run(argv: list[str]) -> list[Table]:
    """Measure and return one table per graph."""
    parser = options(__doc__, [name for name in ENGINES if name != "graphdb"], repeat=3, limit=2)
    parser.add_argument("--graphs", default="email-Enron,rmat16", help="comma-separated: SNAP graphs, rmat16 …")
    parser.add_argument("--questions", default="", help="comma-separated kinds; all where empty")
    parser.add_argument("--pairs", type=int, default=20, help="pairs that are asked for one by one")
    arguments = parser.parse_args(argv)
    engines = chosen(arguments.peers, ENGINES)
    return [_table(name, engines, arguments) for name in arguments.graphs.split(",")]


def _table(name: str, engines: dict[str, Callable[[], Engine]], arguments: argparse.Namespace) -> Table:
    """Measure one graph; an engine that does not load it has empty cells, and a note says why."""
    with scratch() as folder:
        source = _source(name, folder)
        edges = edges_of(source)
        if len(edges) > SMALL:
            engines = {engine: make for engine, make in engines.items() if engine != "networkx"}
        table = Table(f"{name} ({len(edges):,} undirected edges): ms, median", ["question", "answer", *engines])
        kinds = arguments.questions.split(",") if arguments.questions else []
        with workers(engines) as started:
            loaded = {}
            for engine, worker in started.items():
                progress(f"{name}: loading into {engine}")
                (folder / engine).mkdir()
                answer = worker.load(source, folder / engine, LOADING)
                if answer.trouble:
                    table.notes.append(f"{engine} did not load it: {answer.trouble}")
                else:
                    loaded[engine] = worker
            for question in questions(*_component(edges), arguments.pairs):
                if kinds and question.kind not in kinds:
                    continue
                progress(f"{name}: {question.name}")
                cells = measure(loaded, question, None, arguments.repeat, arguments.limit, question.name)
                agreed = {cell.value for cell in cells.values() if not cell.trouble}
                if len(agreed) > 1:
                    report = ", ".join(f"{engine} {cell.value}" for engine, cell in cells.items() if not cell.trouble)
                    table.notes.append(f"NOT AGREED on {question.name}: {report}")
                shown = f"{agreed.pop():,}" if len(agreed) == 1 else "?"
                texts = (cells[engine].text(1e3, 1) if engine in cells else "-" for engine in engines)
                table.add(question.name, shown, *texts)
        table.notes.append(f"{surroundings(*engines)}; {arguments.repeat} runs")
        return table


if __name__ == "__main__":
    main(run)
