"""What incremental matching gains by each of its parts: the streams of suites/csm with one of them taken away.

    python -m tests.benchmarks.continuous_ablations --sets deezer,github --repeat 5

Processor time on one thread for counting what a stream's batches change, the variants in turns, the least of some runs
each.  A figure says how many times as long the stream takes without the part: geometric means over the queries of a class,
and the query that gains most.  *encoding*: the counters of needed neighbours and the candidate table (GAMMA §IV-B);
*orbits*: one search for pattern edges that automorphisms exchange (§V-B); *products*: steps that do not depend on each
other are counted apart and multiplied; *bitmaps* of long lists; *turned*: small subtrees in the order whose first list
is the shortest; *hoisting* of what the same lists share.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from unittest.mock import patch

from graphdb.incremental import delta_plan, lists, matcher, orbits, program
from graphdb.incremental.delta_plan import Planner, Step
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.pattern.graph import PatternGraph
from graphdb.storage.compile import warm
from tests import csm
from tests.benchmarks.harness import Table, main, progress, surroundings

WHOLE = "whole"
CLASSES = ("dense", "sparse", "tree")


def _no_needs(pattern: PatternGraph, *_: object) -> list[list[lists.Need]]:
    return [[] for _ in pattern.vertices]


def _no_orbits(pattern: PatternGraph, _: object) -> list[orbits.Orbit]:
    return orbits.orbits(pattern, range(len(pattern.vertices)))


def _in_a_row(_: Planner, steps: list[Step], parent: int, ordered: list[Step], parents: list[int], *__: object) -> None:
    """Have each step depend on the one before it."""
    for step in steps:
        parents.append(parent)
        ordered.append(step)
        parent = len(ordered) - 1


def _nothing(*_: object) -> dict[int, tuple[int, int]]:
    return {}


VARIANTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    WHOLE: nullcontext,
    "encoding": lambda: patch.object(matcher, "needs", _no_needs),
    "orbits": lambda: patch.object(program, "orbits", _no_orbits),
    "products": lambda: patch.object(Planner, "_grow", _in_a_row),
    "bitmaps": lambda: patch.object(lists, "LEAST_MARKED", 1 << 60),
    "turned": lambda: patch.object(delta_plan, "MOST_TURNED", 0),
    "hoisting": lambda: patch.object(program._Tables, "_hoisted", _nothing),
}


def measure(data: csm.Set, stream: str, query: str, size: str, repeat: int) -> dict[str, float]:
    """Return seconds by variant; raises SystemExit where a count is wrong."""
    changes, matchers = data.streams[stream], {}
    for name, variant in VARIANTS.items():
        with variant():
            matchers[name] = IncrementalMatcher(data.source, [data.queries[query]])
    found = dict.fromkeys(matchers, math.inf)
    for _ in range(repeat):
        for name, own in matchers.items():
            started = time.process_time()
            counts = own.count(changes.updates, changes.ends(size))
            found[name] = min(found[name], time.process_time() - started)
            if counts[:, 0].sum(axis=0).tolist() != data.expected["queries"][query][stream]["total"][size]:
                raise SystemExit(f"{query} of {stream} without {name}: wrong")
            own.count(changes.undone, [len(changes.edges)])
    return found


def run(argv: list[str]) -> list[Table]:
    """Measure and return a table for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="deezer,github")
    parser.add_argument("--stream", default="mixed")
    parser.add_argument("--size", default="1024")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args(argv)
    warm.make_missing()
    tables = []
    for name in arguments.sets.split(","):
        data = csm.load(name)
        factors: dict[str, dict[str, float]] = {variant: {} for variant in VARIANTS if variant != WHOLE}
        for query in data.queries:
            progress(f"{name}: {query}")
            found = measure(data, arguments.stream, query, arguments.size, arguments.repeat)
            for variant, own in factors.items():
                own[query] = found[variant] / found[WHOLE]
        title = f"{name}, {arguments.stream} in batches of {arguments.size}: times as long without"
        table = Table(title, ["part", *CLASSES, "all", "most", ""])
        for variant, own in factors.items():
            means = [
                statistics.geometric_mean([factor for query, factor in own.items() if query.startswith(kind)])
                for kind in (*CLASSES, "")
            ]
            most = max(own, key=lambda query: own[query])
            table.add(variant, *(f"{mean:.2f}" for mean in means), f"{own[most]:.1f}", most)
        table.notes.append(f"{surroundings('graphdb')}; least of {arguments.repeat} runs")
        tables.append(table)
    return tables


if __name__ == "__main__":
    main(run)
