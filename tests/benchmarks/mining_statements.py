"""``MINE`` as users write it, beside published programs' kernels: whole statements, on a device and on the CPU.

    python -m tests.benchmarks.mining_statements --runs 5 --devices cuda:0 auto cpu

Graphs are loaded as N-Triples.  Times are milliseconds of ``db.query``, medians, warm: the graph that mining reads is
derived by then, and whatever is compiled is compiled.  *best* is the best published kernel's, of ``peers.json``.  Every
number of an answer is compared with the suite's; motifs of five vertices, which it has of one graph alone, with the
CPU's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import graphdb
from tests import mining_sets
from tests.benchmarks.harness import Table, main, progress, surroundings
from tests.suites.test_mining import labelled_code

GRAPHS = ("wiki-Vote", "email-Enron", "ca-AstroPh-cc1")


def run(argv: list[str]) -> list[Table]:
    """Measure and return the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--sizes", nargs="*", type=int, default=range(3, 9), help="of cliques")
    parser.add_argument("--motifs", nargs="*", type=int, default=(3, 4))
    parser.add_argument("--frequent", nargs="*", default=mining_sets.FREQUENT)
    parser.add_argument("--devices", nargs="+", default=("cpu",))
    arguments = parser.parse_args(argv)
    table = Table("MINE, statements in ms", ["graph", "task", "right", *arguments.devices, "best", "ratio"])
    ratios = list[float]()
    peers = json.loads((mining_sets.FOLDER / "peers.json").read_text())["graphs"]

    def row(name: str, task: str, peer: str, right: bool, took: Sequence[float]) -> None:
        best = peers.get(name, {}).get(peer, {}).get("best ms")
        if best:
            ratios.append(best / took[0])
        beside = [f"{best:.3f}", f"{ratios[-1]:.2f}"] if best else ["", ""]
        table.add(name, task, "yes" if right else "NO", *(f"{each:.3f}" for each in took), *beside)
        progress(f"{name} {task}: {right} {took} {best}")

    with TemporaryDirectory() as folder:
        known = mining_sets.counts()["graphs"]
        for name in arguments.graphs:
            file = Path(folder) / f"{name}.nt"
            file.write_text("".join(f"<v:{a}> <e:e> <v:{b}> .\n" for a, b in mining_sets.edges_of(name).tolist()))
            opened = [_loaded(device, file) for device in arguments.devices]
            for size in arguments.sizes:
                answers, took = _asked(opened, f"MINE CLIQUES OF SIZE {size}", arguments.runs)
                wanted = known[name]["cliques"][str(size)]
                row(name, f"{size}-clique", f"{size}-clique", all(a[0][1] == wanted for a in answers), took)
            for size in arguments.motifs:
                answers, took = _asked(opened, f"MINE MOTIFS OF SIZE {size}", arguments.runs)
                counts = [sorted(count for _, count, _, _ in answer) for answer in answers]
                wanted = sorted(known[name][f"{size}-motifs"].values()) if size < 5 else counts[-1]
                row(name, f"{size}-motif", f"{size}-motif", all(each == wanted for each in counts), took)
        for name in arguments.frequent:
            _frequent(name, Path(folder), arguments, row)
    table.notes.append(
        f"geometric mean of {len(ratios)} ratios of {arguments.devices[0]}: {statistics.geometric_mean(ratios):.2f}; "
        f"least {min(ratios):.2f}"
    )
    table.notes.append(surroundings())
    return [table]


def _frequent(name: str, folder: Path, arguments: argparse.Namespace, row: Any) -> None:
    """A graph's frequent patterns of two edges and more, each pattern with its support."""
    known = mining_sets.frequent(name)
    graph = mining_sets.labelled(known["graph"])
    ends = zip(graph.ids[graph.source].tolist(), graph.ids[graph.target].tolist(), strict=True)
    own = zip(graph.ids[graph.labelled[:, 0]].tolist(), graph.vertex_labels[graph.labelled[:, 1]].tolist(), strict=True)
    file = folder / f"{name}.nt"
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    lines = [f"<v:{v}> {kind} <l:L{label}> .\n" for v, label in own]
    file.write_text("".join([*lines, *(f"<v:{a}> <e:e> <v:{b}> .\n" for a, b in ends)]))
    opened = [_loaded(device, file) for device in arguments.devices]
    for edges in range(2, known["max_edges"] + 1):
        text = f"MINE FREQUENT PATTERNS UNDIRECTED WITH SUPPORT >= {known['minsup']} UP TO {edges} EDGES"
        answers, took = _asked(opened, text, arguments.runs)
        wanted = {
            labelled_code(labels, pairs): support
            for labels, pairs, support in known["patterns: labels, edges, support"]
            if len(pairs) <= edges
        }
        right = all(_supports(answer) == wanted for answer in answers)
        row(f"{known['graph']} minsup {known['minsup']}", f"{edges} edges", f"fsm edges<={edges}", right, took)


def _supports(answer: list[Any]) -> dict[bytes, int]:
    """The supports of patterns by their canonical labels, read from their text."""
    found = {}
    for text, _, support, _ in answer:
        labels, edges = dict[str, int](), list[tuple[str, ...]]()
        for path in text.split(", "):
            names = []
            for vertex in path.replace("(", " ").replace(")", " ").split()[::2]:
                vertex, _, label = vertex.partition(":")
                names.append(vertex)
                if label:
                    labels[vertex] = int(label.strip("`<>").removeprefix("l:").removeprefix("L"))
            edges.append(tuple(names))
        places = {vertex: place for place, vertex in enumerate(labels)}
        pairs = [(places[a], places[b]) for a, b in edges]
        found[labelled_code(list(labels.values()), pairs)] = support
    return found


def _loaded(device: str, file: Path) -> graphdb.Database:
    db = graphdb.connect(device=device)
    db.load(file)
    return db


def _asked(opened: Sequence[graphdb.Database], text: str, runs: int) -> tuple[list[list[Any]], list[float]]:
    """The answers of all databases, and the median milliseconds of each after a first run."""
    answers, took = [], []
    for db in opened:
        calls: list[float] = []
        rows: list[Any] = []
        for _ in range(runs + 1):
            started = time.perf_counter()
            result = db.query(text)
            calls.append((time.perf_counter() - started) * 1000)
            rows = list(result)
            if sum(calls[1:]) > 2000:
                break
        answers.append(rows)
        took.append(statistics.median(calls[1:]))
    return answers, took


if __name__ == "__main__":
    main(run)
