"""Counting on a device, beside published GPU matchers: tables of device times.

    python -m tests.benchmarks.device_counting snap --graphs wiki-Vote email-Enron rmat18
    python -m tests.benchmarks.device_counting labelled --sets github
    python -m tests.benchmarks.device_counting labelled --sets hprd yeast --by join --runs 1 --longest 1
    python -m tests.benchmarks.device_counting labelled --sets yeast --by auto
    python -m tests.benchmarks.device_counting stream --graph wiki-Vote --pattern 4-cycle

Times are the device's, in milliseconds: from the first kernel to the last, medians, warm.  ``snap`` counts the nine
patterns and compares with the best published kernel time; ``labelled`` the queries of a labelled graph.  By ``join``,
``search`` or ``sums``, which are pinned, plans are made once: ``ms`` is the device's time (the join's is the call's) and
``wall`` all that a run takes; a query that cannot go that way says so.  By ``device`` or ``auto`` plans are made anew as
for a text never seen, and run by the device or by whoever is expected to be done first: ``wall`` is planning and all, ``ms``
the count, its filtering and preparation included.  ``ms ratio`` is of the best published kernel time to ``ms``, ``ratio``
to ``wall``.  A count that nobody published is compared with the host's.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import tarfile
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from graphdb.common.errors import QueryTimeout
from graphdb.execute.choose import ChoosingExecutor, choose_executor
from graphdb.execute.host import HostExecutor
from graphdb.gpu.code.launch import Device
from graphdb.gpu.counting.cliques import DeviceCliques, shape_for
from graphdb.gpu.counting.registers import Unsupported
from graphdb.gpu.counting.run import DeviceCount
from graphdb.gpu.data.graph import DeviceGraph
from graphdb.gpu.executor import GpuExecutor
from graphdb.gpu.search.run import LEAST, Search
from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.executor import Control, Executor
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks.counting import pattern, rmat, snap, undirected
from tests.datasets import SHARED

LONGEST = 6.0
"""Seconds that going through matches may take."""

Run = Callable[[], tuple[int | None, float]]


def graph_of(name: str) -> tuple[DataGraph, int]:
    """A SNAP graph, or ``rmat18``: edge factor 16."""
    if not name.startswith("rmat"):
        return snap(name)
    return undirected(*rmat(int(name.removeprefix("rmat")), 16))


class Runner:
    """Prepares counts on one device."""

    def __init__(self, **sizes: Any) -> None:
        self.device = Device(0)
        self.graph = DeviceGraph(self.device.memory)
        self.searching = Search(self.device, self.graph, **sizes)
        self.longest = LONGEST
        device = GpuExecutor(0)
        auto = ChoosingExecutor(HostExecutor(), lambda: device)
        auto._opened()  # which it would be once it had been missed for half a second
        self.executors: dict[str, Executor] = {"device": device, "auto": auto}
        self.cliques = DeviceCliques(self.device, self.graph)

    def search(self, plan: PhysicalPlan) -> Run:
        """The same by going through all matches, for at most some seconds."""

        def run() -> tuple[int | None, float]:
            found = self.searching.count(plan, Control(timeout=self.longest), None)
            return found * plan.automorphisms, self.searching.milliseconds

        return run

    def pinned(self, pattern: PatternGraph, graph: DataGraph, by: str) -> Run:
        """A way that is pinned, on a plan that is made once; raises :class:`Unsupported` where it cannot go that way."""
        if by not in self.executors:
            self.executors[by] = choose_executor(f"cuda by {by}")
        executor = self.executors[by]
        assert isinstance(executor, GpuExecutor)
        plan = make_plan(pattern, graph, counting="always" if by == "sums" else "never")
        if executor.off_hint(plan, counting=True):
            raise Unsupported(executor.off_hint(plan, counting=True))

        def run() -> tuple[int | None, float]:
            started = time.perf_counter()
            found = executor.count(plan, Control(timeout=self.longest))
            if executor.off_hint(plan, counting=True):  # which only its preparation told
                raise Unsupported(executor.off_hint(plan, counting=True))
            taken = (time.perf_counter() - started) * 1000
            if by == "sums":
                return found, executor._counter.milliseconds
            return found, getattr(executor.strategies.of(plan), "milliseconds", taken)

        return run

    def planned(self, pattern: PatternGraph, graph: DataGraph, by: str) -> Run:
        """A text never seen, as a device, or whoever is expected to be first, counts it: kernels are there, all else
        is made anew.  The time is that of the count, on a fresh plan.
        """
        executor, device = self.executors[by], self.executors["device"]
        assert isinstance(device, GpuExecutor)
        device._counter.count(make_plan(pattern, graph), Control(timeout=self.longest))  # whichever way it will go
        device.strategies.join.count(make_plan(pattern, graph, refine=device.refine), Control(timeout=self.longest), 1)

        def run() -> tuple[int | None, float]:
            plan = make_plan(pattern, graph, refine=executor.refine)
            started = time.perf_counter()
            found = executor.count(plan, Control(timeout=self.longest))
            return found, (time.perf_counter() - started) * 1000

        return run

    def prepare(self, plan: PhysicalPlan) -> Run:
        """What counts a plan's matches, and says how many milliseconds the device took."""
        shape = shape_for(plan.clique, self.device.limits) if plan.clique is not None else None
        if plan.clique is not None and shape is not None:
            clique = plan.clique

            def run() -> tuple[int | None, float]:
                found = self.cliques.count(clique, shape, Control())
                return found * plan.automorphisms, self.cliques.milliseconds

            return run
        if plan.counting is None:
            raise Unsupported("no plan to count without enumerating")
        counter = DeviceCount(self.device, self.graph, plan.counting)

        def count() -> tuple[int | None, float]:
            found = counter.run(Control())
            return found, counter.milliseconds

        return count


def mean_of(ratios: list[float]) -> str:
    """The geometric mean of ratios, and the least."""
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    return f"geometric mean of {len(ratios)} ratios: {mean:.2f}; least {min(ratios):.2f}"


def median(run: Run, times: int) -> tuple[int | None, float, float]:
    """(count, device ms, wall ms): medians of some runs after one that is not counted."""
    found, _ = run()
    taken, walls = [], []
    for _ in range(times):
        started = time.perf_counter()
        again, milliseconds = run()
        walls.append((time.perf_counter() - started) * 1000)
        taken.append(milliseconds)
        assert again == found, "a count that changes"
    return found, statistics.median(taken), statistics.median(walls)


def unlabelled(graphs: list[str], runs: int, only: list[str] | None, search: bool, runner: Runner) -> None:
    """The nine patterns on SNAP graphs."""
    known = json.loads((SHARED / "data" / "snap" / "matchers-h200.json").read_text())
    ratios: list[float] = []
    print(f"{'graph':<12} {'pattern':<36} {'subgraphs':>17} {'right':>5} {'ms':>9} {'best ms':>9} {'ratio':>7}")
    for name in graphs:
        graph, label = graph_of(name)
        for title, found in known["patterns"].items():
            published = known["graphs"][name].get(title)
            if only and title not in only:
                continue
            wanted = pattern([(a, b) for a, b in found["edges"]], label, MatchMode.DIFFERENT_NODES)
            try:
                plan = make_plan(wanted, graph, counting="never" if search else "auto")
                if search:
                    run = runner.search(replace(plan, clique=None))
                else:
                    run = runner.prepare(plan if plan.clique else make_plan(wanted, graph, counting="always"))
                count, taken, _ = median(run, runs)
            except (Unsupported, QueryTimeout) as trouble:
                print(f"{name:<12} {title:<36} {trouble}", flush=True)
                continue
            subgraphs = -1 if count is None else count // found["automorphisms"]
            line = f"{name:<12} {title:<36} {subgraphs:>17,} "
            if published is None:
                print(f"{line} {'?':>4} {taken:>9.3f}", flush=True)
                continue
            right, best = subgraphs == published["count"], published["best ms"]
            ratios.append(best / taken)
            print(f"{line} {'yes' if right else 'NO':>4} {taken:>9.3f} {best:>9.3f} {best / taken:>7.2f}", flush=True)
    if ratios:
        print(mean_of(ratios), flush=True)


def read(lines: list[str]) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
    """Labels and edges (with their labels) of a graph in the format ``t V E / v id label / e a b [label]``."""
    rows = [line.split() for line in lines]
    labels = np.array([int(row[2]) for row in rows if row[0] == "v"])
    edges = [(int(row[1]), int(row[2]), int(row[3]) if len(row) > 3 else 0) for row in rows if row[0] == "e"]
    return labels, edges


def labelled(name: str) -> tuple[DataGraph, dict[str, PatternGraph]]:
    """A labelled data graph, and its queries: vertex labels are candidate sets."""
    files: dict[str, list[str]] = {}
    with tarfile.open(SHARED / "data" / "labelled" / f"{name}.tar.gz") as archive:
        for member in archive.getmembers():
            content = archive.extractfile(member)
            if content is not None and member.name.endswith(".graph"):
                files[member.name.rsplit("/", 1)[-1].removesuffix(".graph")] = content.read().decode().splitlines()
    labels, edges = read(files.pop("data"))
    s, o, e = (np.array(column) for column in zip(*edges, strict=True))
    size = len(labels)
    graph = DataGraph(ArraySource(np.minimum(s, o), size + e, np.maximum(s, o), size + int(e.max()) + 1))
    candidates = {int(label): np.flatnonzero(labels == label) for label in np.unique(labels)}
    none = np.empty(0, np.int64)
    queries = {}
    for query, lines in files.items():
        wanted, joins = read(lines)
        queries[query] = PatternGraph(
            tuple(PatternVertex(f"v{i}", candidates.get(int(label), none)) for i, label in enumerate(wanted)),
            tuple(PatternEdge(f"e{i}", a, b, (size + kind,), False, 0) for i, (a, b, kind) in enumerate(joins)),
            (Clause(MatchMode.DIFFERENT_NODES, tuple(range(len(wanted)))),),
            count_only=True,
        )
    return graph, queries


def queries(sets: list[str], runs: int, by: str, most: int | None, longest: float) -> None:
    """The queries of labelled graphs, each counted as ``by`` says and compared."""
    runner = Runner()
    runner.longest = longest
    host = HostExecutor()
    print(
        f"{'set':<18} {'query':<20} {'matches':>17} {'right':>5} {'ms':>9} {'wall':>9} {'best ms':>9} {'ms ratio':>9} {'ratio':>7}"
    )
    for name in sets:
        graph, patterns = labelled(name)
        known: dict[str, Any] = json.loads((SHARED / "data" / "labelled" / f"{name}.json").read_text())["counts"]
        ratios: list[float] = []
        alone: list[float] = []
        report = dict.fromkeys(("right", "wrong", "not in time", "not that way"), 0)
        for query, published in list(known.items())[:most]:
            if query not in patterns:
                continue
            others = published.get("H200 ms, published matchers", {}) if isinstance(published, dict) else {}
            want = published["count"] if isinstance(published, dict) else published
            try:
                how = runner.planned if by in ("device", "auto") else runner.pinned
                count, taken, wall = median(how(patterns[query], graph, by), runs)
                if want is None:
                    want = host.count(make_plan(patterns[query], graph), Control(timeout=longest))
            except (Unsupported, QueryTimeout) as trouble:
                report["not in time" if isinstance(trouble, QueryTimeout) else "not that way"] += 1
                print(f"{name:<18} {query:<20} {trouble}", flush=True)
                continue
            report["right" if count == want else "wrong"] += 1
            best = min((ms for ms in others.values() if isinstance(ms, float | int)), default=math.nan)
            if others:
                ratios.append(best / wall)
                alone.append(best / taken)
            elif count == want:
                continue  # one of many, without a time to compare with
            line = f"{name:<18} {query:<20} {-1 if count is None else count:>17,} {'yes' if count == want else 'NO':>5}"
            line += f" {taken:>9.3f} {wall:>9.3f} {best:>9.3f} {best / taken:>9.2f} {best / wall:>7.2f}"
            print(line, flush=True)
        print(f"{name} by {by}: {', '.join(f'{n} {what}' for what, n in report.items() if n)}", flush=True)
        if ratios:
            print(f"{mean_of(ratios)}; of ms alone: {mean_of(alone)}", flush=True)


def stream(name: str, title: str) -> None:
    """All matches of a pattern, each subgraph once, to the host: rows and bytes in a second."""
    edges = json.loads((SHARED / "data" / "snap" / "matchers-h200.json").read_text())["patterns"][title]["edges"]
    graph, label = graph_of(name)
    wanted = pattern([(a, b) for a, b in edges], label, MatchMode.DIFFERENT_NODES)
    names = tuple(vertex.name for vertex in wanted.vertices)
    plan = make_plan(replace(wanted, outputs=names, count_only=False), graph)
    once = replace(plan, automorphisms=1, columns=plan.columns[:1])
    runner = Runner()
    for _ in range(2):
        started = time.perf_counter()
        blocks = [(rows, cells.nbytes) for cells, rows, _ in runner.searching.run(once, Control(), None)]
        seconds = time.perf_counter() - started
        rows, size = (sum(column) for column in zip(*blocks, strict=True))
        rate = f"{rows / seconds / 1e6:.0f} million rows and {size / seconds / 1e9:.2f} GB in a second"
        print(f"{name} {title}: {rows:,} rows in {seconds:.3f} s: {rate}", flush=True)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    first = commands.add_parser("snap")
    first.add_argument("--graphs", nargs="+", default=["wiki-Vote", "email-Enron", "rmat18"])
    first.add_argument("--patterns", nargs="+")
    first.add_argument("--no-motion", action="store_true", help="searches keep no shared intersections")
    first.add_argument("--least", type=int, default=LEAST, help="elements of a search's task at least")
    first.add_argument("--depth", type=int, help="the step whose partial matches a search deals out anew; 0: none")
    third = commands.add_parser("stream")
    third.add_argument("--graph", default="wiki-Vote")
    third.add_argument("--pattern", default="4-cycle")
    second = commands.add_parser("labelled")
    second.add_argument("--sets", nargs="+", default=["github"])
    second.add_argument("--by", choices=("join", "search", "sums", "device", "auto"), default="device")
    second.add_argument("--most", type=int, help="so many queries of each set")
    second.add_argument("--longest", type=float, default=LONGEST, help="seconds that going through matches may take")
    for command in (first, second):
        command.add_argument("--runs", type=int, default=7)
    first.add_argument("--search", action="store_true", help="go through all matches")
    arguments = parser.parse_args()
    if arguments.command == "snap":
        runner = Runner(motion=not arguments.no_motion, least=arguments.least, depth=arguments.depth)
        unlabelled(arguments.graphs, arguments.runs, arguments.patterns, arguments.search, runner)
    elif arguments.command == "stream":
        stream(arguments.graph, arguments.pattern)
    else:
        queries(arguments.sets, arguments.runs, arguments.by, arguments.most, arguments.longest)


if __name__ == "__main__":
    main()
