"""What each mechanism of the CUDA executor is worth: kernel times with it and without, on whatever device is here.

    python -m tests.benchmarks.ablations lookup join search steal filter refine stops

``lookup`` reads the lists of random vertices from PCSR with its direct and with its hashed offset layer (SGSI §4), from a
plain CSR of all labels, each list sorted by label, and from the compressed representation, one CSR per label over the
sorted vertices that have it.  ``join`` and ``search`` count subgraphs of SNAP and R-MAT graphs, ``filter`` those of
labelled ones, ``steal`` those where few vertices have most of the work; ``refine`` has candidates refined by the planner and
by the device (:mod:`tests.benchmarks.refining`); ``stops`` says how long heavy runs go on once their time is over.  Times
are the least of some, ms.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any
from unittest import mock

import numpy as np

from graphdb.common.errors import QueryTimeout
from graphdb.gpu.executor import GpuExecutor
from graphdb.gpu.join import run as joining
from graphdb.gpu.join.run import Join
from graphdb.gpu.search.run import Search
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.candidates import space
from graphdb.plan.executor import Control
from graphdb.plan.passes import pipeline
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks import device_counting, refining
from tests.benchmarks.counting import pattern
from tests.benchmarks.device import KernelTimes
from tests.benchmarks.device_counting import labelled
from tests.datasets import SHARED

graph_of = cache(device_counting.graph_of)

RUNS = 3
LONGEST = 3.0
"""Seconds that a run may take."""
LOOKUPS = """
// A thread per vertex finds its list of one label, and adds up its length and its first element.
#define LOOK(NAME, ...)                                                                                    \\
  extern "C" __global__ void NAME(const Partition *p, const i64 *offsets, const int *keys, i64 count,       \\
                                  const int *labels, int label, const int *ids, const int *at, i64 n, i64 *out) { \\
    i64 i = blockIdx.x * (i64)blockDim.x + threadIdx.x;                                                     \\
    if (i >= n) return;                                                                                     \\
    i64 v = at[i], begin = 0, end = 0;                                                                      \\
    __VA_ARGS__;                                                                                              \\
    out[i] = end - begin + (end > begin ? (i64)__ldg(ids + begin) << 32 : 0);                               \\
  }
LOOK(pcsr, { Span s = neighbours_of(*p, v); begin = s.begin; end = s.end; })
LOOK(csr, { i64 first = __ldg(offsets + v), last = __ldg(offsets + v + 1);
            begin = find(labels, first, last, label); end = find(labels, begin, last, (i64)label + 1); })
LOOK(compressed, { i64 k = find(keys, 0, count, v);
                   if (k < count && __ldg(keys + k) == v) { begin = __ldg(offsets + k); end = __ldg(offsets + k + 1); } })
"""


def lookup(labels: int = 64, vertices: int = 1 << 19, edges: int = 1 << 23, probes: int = 1 << 24) -> None:
    """Lists of random vertices by label, of a skewed graph whose labels are of very different size."""
    import cupy

    rng = np.random.default_rng(0)
    u, v = ((vertices * rng.random(edges) ** 3).astype(np.int64) for _ in range(2))
    kinds = np.minimum((rng.pareto(0.7, len(u)) * 2).astype(np.int64), labels - 1)
    once = np.unique((u * labels + kinds) * vertices + v)
    u, kinds, v = once // vertices // labels, once // vertices % labels, once % vertices
    source = ArraySource(u, vertices + kinds, v, vertices + labels)
    executor = GpuExecutor(0)
    text = resources.files("graphdb.gpu").joinpath("kernels", "sets.cuh").read_text(encoding="utf-8") + LOOKUPS
    order = np.lexsort((v, kinds, u))
    whole = [
        cupy.asarray(np.searchsorted(u[order], np.arange(vertices + labels + 1)).astype(np.int64)),
        cupy.asarray(kinds[order].astype(np.int32)),
        cupy.asarray(v[order].astype(np.int32)),
    ]
    module = cupy.RawModule(code=text, options=("-std=c++17",))
    print(f"lists of {probes:,} random vertices, graph of {len(u):,} edges, {labels} labels: ns per list, MB")
    print(
        f"{'label of':>12} {'vertices':>9}"
        + "".join(f"{name:>16}" for name in ("direct", "hashed", "csr", "compressed"))
    )
    for label in (0, 2, 8, 24, labels - 1):
        there = np.unique(u[kinds == label])
        at = cupy.asarray(rng.choice(there, probes).astype(np.int32))
        seen, cells = [], []
        for layer in ("direct", "hashed"):
            partition = DataGraph(source, dtype=np.int32, layer=layer).partition((vertices + label,), "out")
            with executor.device.active():
                copy = executor.graph.partition(partition)
                row = executor.device.memory.upload(np.array(copy.row, np.int64))
            seen.append(_timed(module, "pcsr", (row, whole[0], whole[1], 0, whole[1], 0, copy.neighbours, at), probes))
            cells.append(copy.nbytes)
        seen.append(_timed(module, "csr", (whole[0], whole[0], whole[1], 0, whole[1], label, whole[2], at), probes))
        cells.append(whole[0].nbytes + whole[1].nbytes)
        partition = DataGraph(source, dtype=np.int32, layer="direct").partition((vertices + label,), "out")
        keys = cupy.asarray(partition.keys.astype(np.int32))
        bounds = cupy.asarray(np.append(partition.offsets[partition.keys], len(partition.neighbours)).astype(np.int64))
        ids = cupy.asarray(partition.neighbours)
        given = (bounds, bounds, keys, len(partition.keys), keys, 0, ids, at)
        seen.append(_timed(module, "compressed", given, probes))
        cells.append(bounds.nbytes + keys.nbytes)
        assert len({total for _, total in seen}) == 1, "lookups differ"
        print(
            f"{int((kinds == label).sum()):>12,} {len(there):>9,}"
            + "".join(f"{ns:>8.3f} {size / 1e6:>7.1f}" for (ns, _), size in zip(seen, cells, strict=True)),
            flush=True,
        )


def _timed(module: Any, kernel: str, given: tuple[Any, ...], probes: int) -> tuple[float, int]:
    """(ns per lookup, the sum of what was found)."""
    import cupy

    out = cupy.empty(probes, np.int64)
    partition, offsets, keys, count, kinds, label, ids, at = given
    arguments = (partition, offsets, keys, np.int64(count), kinds, np.int32(label), ids, at, np.int64(probes), out)
    found, best = module.get_function(kernel), np.inf
    for _ in range(RUNS + 1):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        found((-(-probes // 256),), (256,), arguments)
        end.record()
        end.synchronize()
        best = min(best, cupy.cuda.get_elapsed_time(begin, end))
    return best * 1e6 / probes, int(out.sum())


# --- counts


@contextmanager
def without_shares() -> Iterator[None]:
    """Plans that intersect anew in every step."""
    kept = tuple(each for each in pipeline.PASSES if each is not pipeline.share_intersections)
    with mock.patch.object(pipeline, "PASSES", kept):
        yield


@contextmanager
def joined_twice() -> Iterator[None]:
    """Elements are tested once to say how many rows they make, and again to make them (SGSI §5's two-step output)."""
    plain = joining._Run._marks

    def twice(run: Any, *arguments: Any, write: bool) -> Any:
        if write:
            plain(run, *arguments, write=False)
        return plain(run, *arguments, write=write)

    with mock.patch.object(joining._Run, "_marks", twice):
        yield


def best(executor: GpuExecutor, strategy: Any, plan: PhysicalPlan, kernels: bool) -> tuple[int, float]:
    """(count, ms): of our kernels alone, or of the whole call."""
    control = Control(timeout=LONGEST)
    count, least = strategy.count(plan, control, None), np.inf
    for _ in range(RUNS):
        started = time.perf_counter()
        if kernels:
            with KernelTimes(executor) as times:
                again = strategy.count(plan, Control(timeout=LONGEST), None)
            taken = times.by_kernel().total()
        else:
            again = strategy.count(plan, Control(timeout=LONGEST), None)
            taken = getattr(strategy, "milliseconds", 0.0) or (time.perf_counter() - started) * 1000
        least = min(least, taken)
        assert again == count, "a count that changes"
    return count * plan.automorphisms, least


Variant = tuple[str, dict[str, Any], Callable[[], Any] | None, dict[str, Any]]
"""Name, sizes of the strategy, what is patched, and options of the case."""

JOINS: tuple[Variant, ...] = (
    ("join", {}, None, {}),
    ("joined twice", {}, joined_twice, {}),
    ("without shared intersections", {}, without_shares, {}),
    ("hashed offset layer", {}, None, {"layer": "hashed"}),
    ("cliques not oriented", {}, None, {"clique": False}),
    ("tiles of 512 elements", {"block": 128, "items": 4}, None, {}),
    ("tiles of 4,096 elements", {"block": 256, "items": 16}, None, {}),
    ("pieces of 2^20 rows", {"rows": 1 << 20}, None, {}),
    ("pieces of 2^22 elements", {"span": 1 << 22}, None, {}),
)
SEARCHES: tuple[Variant, ...] = (
    ("search", {}, None, {}),
    ("no pool: only the second step is dealt out", {"depth": 0}, None, {}),
    ("the third step's matches are pooled", {"depth": 2}, None, {}),
    ("the fourth step's matches are pooled", {"depth": 3}, None, {}),
    ("a task per warp, no pool", {"depth": 0, "pieces": 1}, None, {}),
    ("4 tasks per warp", {"pieces": 4}, None, {}),
    ("64 tasks per warp", {"pieces": 64}, None, {}),
    ("tasks of at least 32 elements", {"least": 32}, None, {}),
    ("8 lists at a time, not 32", {"unroll": 8}, None, {}),
    ("a list at a time: no unrolling", {"unroll": 1}, None, {}),
    ("without code motion", {"motion": False}, None, {}),
    ("no stealing", {"steal": "off"}, None, {}),
)
CASES = (
    ("wiki-Vote", "4-clique"),
    ("wiki-Vote", "4-wheel"),
    ("wiki-Vote", "5-clique minus an edge"),
    ("wiki-Vote", "diamond closed by a vertex"),
    ("email-Enron", "diamond"),
    ("rmat18", "triangle"),
    ("rmat18", "4-clique"),
)


def counts(variants: tuple[Variant, ...], make: Callable[..., Any]) -> None:
    """Every variant on every case, kernel ms, each subgraph gone through."""
    known = json.loads((SHARED / "data/snap/matchers-h200.json").read_text())["patterns"]
    graphs = {name: graph_of(name) for name in dict.fromkeys(name for name, _ in CASES)}
    executor = GpuExecutor(0)
    print(f"{'variant':<44}" + "".join(f"{name + ' ' + title:>36}" for name, title in CASES))
    wanted: dict[tuple[str, str], int] = {}
    for name, sizes, patch, options in variants:
        strategy, row = make(executor.device, executor.graph, **sizes), []
        for case in CASES:
            graph, label = graphs[case[0]]
            if "layer" in options:
                graph = DataGraph(graph.source, layer=options["layer"])
            with ExitStack() as stack:
                if patch is not None:
                    stack.enter_context(patch())
                edges = [(a, b) for a, b in known[case[1]]["edges"]]
                plan = make_plan(pattern(edges, label, MatchMode.DIFFERENT_NODES), graph, counting="never")
                if make is Search or not options.get("clique", True):
                    plan = replace(plan, clique=None)
                try:
                    count, taken = best(executor, strategy, plan, make is Join)
                except QueryTimeout:
                    row.append(f"> {LONGEST:.0f} s")
                    continue
            row.append(f"{taken:.3f}" if wanted.setdefault(case, count) == count else f"WRONG {count}")
        print(f"{name:<44}" + "".join(f"{cell:>36}" for cell in row), flush=True)


STEALS: tuple[Variant, ...] = (
    ("search", {}, None, {}),
    ("no pool", {"depth": 0}, None, {}),
    ("the third step's matches are pooled", {"depth": 2}, None, {}),
    ("stealing within blocks only", {"steal": "within"}, None, {}),
    ("no stealing", {"steal": "off"}, None, {}),
    ("no stealing, no pool", {"steal": "off", "depth": 0}, None, {}),
    ("as many registers as there are", {"resident": 1}, None, {}),
    ("no stealing, as many registers as there are", {"steal": "off", "resident": 1}, None, {}),
    ("registers for 6 blocks", {"resident": 6}, None, {}),
    ("16 elements are worth dividing", {"left": 16}, None, {}),
    ("256 elements are worth dividing", {"left": 256}, None, {}),
)
SKEWED = (
    ("wiki-Vote", "4-clique"),
    ("wiki-Vote", "4-wheel"),
    ("wiki-Vote", "5-clique minus an edge"),
    ("wiki-Vote", "diamond closed by a vertex"),
    ("email-Enron", "diamond"),
    ("email-Enron", "4-wheel"),
    ("rmat18", "4-clique"),
    ("wiki-Vote", "hub's 4-wheel"),
    ("wiki-Vote", "path from three"),
    ("hprd", "most"),
    ("yeast", "most"),
    ("github", "Q_8"),
    ("github", "Q_12"),
    ("github", "Q_16"),
)


def skewed(name: str, title: str) -> PhysicalPlan:
    """A plan of ``SKEWED``: a known pattern; or one whose work hangs on one vertex; or a labelled query."""
    if name in ("hprd", "yeast", "github"):
        graph, queries = labelled(name)
        if title == "most":  # the most matches of those published
            known = json.loads((SHARED / f"data/labelled/{name}.json").read_text())["counts"]
            counts = {query: row["count"] for query, row in known.items() if row.get("count") and query in queries}
            title = max(counts, key=lambda query: (counts[query] < 1 << 32) * counts[query])
        return replace(make_plan(queries[title], graph, counting="never"), clique=None)
    graph, label = graph_of(name)
    partition = graph.partition((label,), "both")
    hubs = partition.keys[np.argsort(-np.diff(partition.offsets)[partition.keys], kind="stable")].astype(np.int64)
    if title == "hub's 4-wheel":
        edges, bound = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (2, 4), (3, 4)], {0: hubs[0]}
    elif title == "path from three":  # three joined vertices that are given, and all paths of four edges from there
        two = partition.neighbours[partition.offsets[hubs[0]] : partition.offsets[hubs[0] + 1]]
        three = np.setdiff1d(partition.neighbours[partition.offsets[two[0]] : partition.offsets[two[0] + 1]], hubs[0])
        edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 3)]
        bound = {0: int(hubs[0]), 1: int(two[0]), 2: int(three[0])}
    else:
        known = json.loads((SHARED / "data/snap/matchers-h200.json").read_text())["patterns"]
        edges, bound = [(a, b) for a, b in known[title]["edges"]], {}
    wanted = pattern(edges, label, MatchMode.DIFFERENT_NODES)
    vertices = tuple(
        replace(vertex, candidates=np.array([bound[i]], np.int64)) if i in bound else vertex
        for i, vertex in enumerate(wanted.vertices)
    )
    return replace(make_plan(replace(wanted, vertices=vertices), graph, counting="never"), clique=None)


def steals(cases: tuple[tuple[str, str], ...] = SKEWED, runs: int = RUNS, longest: float = LONGEST) -> None:
    """Work stealing off, within blocks, and across them too, with the pool and without: kernel ms, and how often."""
    executor = GpuExecutor(0)
    for case in cases:
        plan, wanted = skewed(*case), None
        print(f"{' '.join(case)}: {len(plan.steps)} vertices", flush=True)
        for name, sizes, _, _ in STEALS:
            strategy = Search(executor.device, executor.graph, **sizes)
            least, stolen, late = np.inf, (0, 0), 0.0
            for _ in range(runs):
                started = time.perf_counter()
                try:
                    count = strategy.count(plan, Control(timeout=longest), None)
                except QueryTimeout:
                    late = time.perf_counter() - started - longest
                    break
                if strategy.milliseconds < least:
                    least, stolen = strategy.milliseconds, strategy.stolen
                assert wanted in (None, count), f"WRONG {count}, not {wanted}"
                wanted = count
            said = (
                f"{least:10.3f}   stolen {stolen[0]:>8} {stolen[1]:>7}" if least < np.inf else f"{f'> {longest} s':>10}"
            )
            print(f"    {name:<44}{said}" + (f"   ends {late * 1000:.0f} ms late" if late else ""), flush=True)
        print(f"    {(wanted or 0) * plan.automorphisms:,} matches", flush=True)


def filters() -> None:
    """Labelled queries by the join, whole calls: partitions narrowed to candidates, and candidate spaces."""
    executor = GpuExecutor(0)
    variants = (
        ("join", None),
        ("partitions not narrowed to candidates", lambda: mock.patch.object(joining, "NARROW", 0.0)),
        ("no candidate spaces", lambda: mock.patch.object(space, "SMALLEST", 99)),
        ("neither", None),
    )
    cases = [("github", query) for query in ("Q_6", "Q_8", "Q_12", "Q_14", "Q_20")]
    graphs = {name: labelled(name) for name in dict.fromkeys(name for name, _ in cases)}
    print(f"{'variant':<44}" + "".join(f"{name + ' ' + query:>16}" for name, query in cases))
    for i, (name, _) in enumerate(variants):
        patches = [patch for j, (_, patch) in enumerate(variants) if patch and j in ((1, 2) if i == 3 else (i,))]
        row = []
        for case in cases:
            with ExitStack() as stack:
                for patch in patches:
                    stack.enter_context(patch())
                plan = make_plan(graphs[case[0]][1][case[1]], graphs[case[0]][0], counting="never")
                strategy = Join(executor.device, executor.graph)
                try:
                    row.append(f"{best(executor, strategy, plan, False)[1]:.2f}")
                except QueryTimeout:
                    row.append(f"> {LONGEST:.0f} s")
        print(f"{name:<44}" + "".join(f"{cell:>16}" for cell in row), flush=True)


def stops(limits: tuple[float, ...] = (0.05, 0.2, 0.35, 0.5)) -> None:
    """How long heavy runs go on once their time is over."""
    executor = GpuExecutor(0)
    known = json.loads((SHARED / "data/snap/matchers-h200.json").read_text())["patterns"]
    plans = {}
    graph, label = graph_of("rmat18")
    for title in ("5-clique", "4-wheel", "diamond closed by a vertex"):
        wanted = pattern([(a, b) for a, b in known[title]["edges"]], label, MatchMode.DIFFERENT_NODES)
        plans[f"rmat18 {title}"] = replace(make_plan(wanted, graph, counting="never"), clique=None)
    graph, queries = labelled("github")
    plans |= {f"github {query}": make_plan(queries[query], graph, counting="never") for query in ("Q_16", "Q_18")}
    for strategy in (Join(executor.device, executor.graph), Search(executor.device, executor.graph)):
        for name, plan in plans.items():
            late = []
            for limit in limits:
                started = time.perf_counter()
                try:
                    strategy.count(plan, Control(timeout=limit), None)
                except QueryTimeout:
                    late.append(time.perf_counter() - started - limit)
            said = ", ".join(f"{each * 1000:.0f}" for each in late) or "was done"
            print(f"{strategy.name:<8}{name:<40} ms after its time: {said}", flush=True)


def main() -> None:
    """Run what the command line names."""
    runs: dict[str, Callable[[], None]] = {
        "lookup": lookup,
        "join": lambda: counts(JOINS, Join),
        "search": lambda: counts(SEARCHES, Search),
        "steal": steals,
        "filter": filters,
        "refine": lambda: refining.main(["github", "hprd", "yeast", "rmat16", "rmat18"]),
        "stops": stops,
    }
    for name in sys.argv[1:] or runs:
        print(f"--- {name}", flush=True)
        runs[name]()


if __name__ == "__main__":
    main()
