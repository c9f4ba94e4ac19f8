"""How wrong estimates are: the q-error of the number of matches, on data sets with known counts.

Run as ``python -m tests.benchmarks.estimates``.  The q-error is ``max(estimate / count, count / estimate)``, both at
least 1.  ``textbook`` knows the sizes of relations and candidate sets, ``model`` also pairs of labels and skew,
``planned`` is what plans are made from: the model, corrected by random walks where the plan is expected to take long.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import graphdb
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.estimates.cost import estimate
from graphdb.plan.ordering.order import matching_order
from graphdb.plan.ordering.sample import best_order, modelled
from graphdb.relational import match_planner
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks import counting, datasets
from tests.benchmarks.harness import Table, main, surroundings
from tests.datasets import SHARED

Case = tuple[PatternGraph, DataGraph, int]


def queries(name: str) -> Iterator[Case]:
    """The queries of a data set of triples, as the planner sees them."""
    seen: list[tuple[PatternGraph, DataGraph]] = []
    original = match_planner.make_plan
    database = graphdb.connect()
    database.load(datasets.source(name))

    def spy(pattern: PatternGraph, graph: DataGraph) -> object:
        seen.append((pattern, graph))
        return original(pattern, graph)

    match_planner.make_plan = spy  # type: ignore[assignment]
    try:
        for query in datasets.queries(name):
            seen.clear()
            count = database.query(query.text).scalar()
            assert query.count in (None, count), f"WRONG COUNT: {query.name} of {name}: {count}"
            if seen:  # not a repeated text
                yield (*seen[-1], int(count))
    finally:
        match_planner.make_plan = original


def labelled(name: str) -> Iterator[Case]:
    """The queries of a labelled graph."""
    counts = json.loads((SHARED / "data" / "labelled" / f"{name}.json").read_text())["counts"]
    with tarfile.open(SHARED / "data" / "labelled" / f"{name}.tar.gz") as archive:
        texts = {member.name: archive.extractfile(member).read().decode() for member in archive if member.isfile()}
    of, edges = _read(texts[f"{name}/data.graph"])
    size, kinds = len(of), max(of) + 1
    s, o, labels = np.array(edges).T
    kind = size + kinds
    everything = (np.append(s, np.arange(size)), np.append(kind + 1 + labels, np.full(size, kind)))
    graph = DataGraph(ArraySource(*everything, np.append(o, size + np.array(of)), kind + 2 + labels.max(), 0, kind))
    for query, known in counts.items():
        if known["count"] is None:
            continue
        vertices, links = _read(texts[f"{name}/queries/{query}.graph"])
        found = [PatternVertex(f"v{i}", graph.members(size + c), "", (size + c,)) for i, c in enumerate(vertices)]
        pattern = PatternGraph(
            tuple(found),
            tuple(PatternEdge(f"e{i}", a, b, (kind + 1 + c,), False, 0) for i, (a, b, c) in enumerate(links)),
            (Clause(MatchMode.DIFFERENT_NODES, tuple(range(len(found)))),),
            count_only=True,
        )
        yield pattern, graph, known["count"]


def _read(text: str) -> tuple[list[int], list[tuple[int, int, int]]]:
    lines = [line.split() for line in text.splitlines()]
    vertices = [int(line[2]) for line in lines if line and line[0] == "v"]
    edges = [(int(x[1]), int(x[2]), int(x[3]) if len(x) > 3 else 0) for x in lines if x and x[0] == "e"]
    return vertices, edges


def snap() -> Iterator[Case]:
    """The nine patterns of SNAP graphs, without labels."""
    known = json.loads((SHARED / "data" / "snap" / "matchers-h200.json").read_text())
    for name in ("wiki-Vote", "email-Enron"):
        graph, label = counting.snap(name)
        for title, pattern in known["patterns"].items():
            edges = [(a, b) for a, b in pattern["edges"]]
            count = known["graphs"][name][title]["count"] * pattern["automorphisms"]
            yield counting.pattern(edges, label, MatchMode.DIFFERENT_NODES), graph, count


def errors(pattern: PatternGraph, graph: DataGraph, count: int) -> tuple[float, float, float]:
    """The q-errors of the three ways to estimate."""
    plain = replace(pattern, vertices=tuple(replace(vertex, labels=()) for vertex in pattern.vertices))
    textbook = replace(estimate(plain, graph), skew=())
    known = estimate(pattern, graph)
    found = [modelled(each, matching_order(each)).rows[-1] for each in (textbook, known)]
    found.append(best_order(pattern, graph, known, matching_order).rows[-1])
    first, second, third = (max(max(each, 1) / max(count, 1), max(count, 1) / max(each, 1)) for each in found)
    return first, second, third


def run(argv: list[str]) -> list[Table]:
    """Measure and return one table."""
    columns = [f"{way} {what}" for way in ("textbook", "model", "planned") for what in ("median", "90 %")]
    table = Table("q-errors of the number of matches", ["data", "queries", *columns])
    kinds = {name: queries(name) for name in datasets.FILES}
    kinds |= {name: labelled(name) for name in ("hprd", "hprd-edge-labels", "yeast")}
    for name, cases in {**kinds, "snap": snap()}.items():
        found = np.array([errors(*case) for case in cases])
        cells = [f"{np.quantile(found[:, way], share):,.1f}" for way in range(3) for share in (0.5, 0.9)]
        table.add(name, str(len(found)), *cells)
    table.notes.append(surroundings("graphdb"))
    return [table]


if __name__ == "__main__":
    main(run)
