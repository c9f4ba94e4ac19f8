"""One CUDA device beside several of one host: counts, matches as rows and in a table, mining, and Dask's workers.

    python -m tests.benchmarks.several_devices counts --graph rmat22 --cliques 4 5
    python -m tests.benchmarks.several_devices labelled --graph rmat20
    python -m tests.benchmarks.several_devices tables --graph rmat17 --runs 8
    python -m tests.benchmarks.several_devices mining --graph rmat18
    python -m tests.benchmarks.several_devices cluster --graph rmat18
    python -m tests.benchmarks.several_devices largest --graph rmat24 --factor 20

Graphs are drawn on a device: R-MAT with Graph500's parameters, simple and undirected.  *first* is a run's first time, what is copied
and compiled included; *warm* the median of further ones, by the clock of the caller.  *ratio* is one device's warm time
by that of all.  *busy* are the milliseconds that each device worked on its shares in the last run, *copied* the
MiB that were copied to devices from the first run on.  Every count is compared with that of one device; ``largest``
counts triangles in another way, too (lists merged on the host's cores, over an orientation of its own).  ``cluster``
has workers of one thread, each of which sees one device.  ``--after`` waits for a file before a device is timed.
``--without`` takes away what rows have on their way to the host: ``ahead``, that others are found while they are copied; ``slabs``,
page-locked memory that blocks of any size share.  Of ``tables``, *written* is what DuckDB takes to write columns in memory into a table.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import graphdb
from graphdb.common import arrow
from graphdb.execute.choose import choose_executor
from graphdb.gpu.data import slabs
from graphdb.gpu.join import pieces
from graphdb.gpu.join import run as join
from graphdb.gpu.probe import probe
from graphdb.grammar.syntax import MatchMode
from graphdb.mining.frequent import frequent_patterns
from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import Limits
from graphdb.plan.executor import Control
from graphdb.plan.passes.pipeline import make_plan
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from tests.benchmarks.counting import pattern, undirected

Ints = NDArray[np.int64]

LONGEST = 60.0
"""Seconds that one run may take."""
BUFFER = 4 << 30
"""Bytes of rows that may wait for the caller: what a database has for them on a host of 80 GB."""
HEAD = f"{'graph':<9}{'task':<26}{'count':>22}{'one: first':>12}{'warm':>10}{'all: first':>12}{'warm':>10}{'ratio':>7}{'shares':>8}{'copied':>9}  busy"


def drawn(scale: int, factor: int, seed: int = 1) -> tuple[int, Ints, Ints]:
    """(vertices, lower and upper ends) of an R-MAT graph; each edge once, vertices numbered at random."""
    import cupy

    random = cupy.random.RandomState(seed)
    edges, vertices = factor << scale, 1 << scale
    keys = cupy.empty(0, cupy.int64)
    numbers = random.permutation(vertices).astype(cupy.int64)
    for part in np.array_split(np.arange(edges), max(edges >> 26, 1)):  # memory of one piece at a time
        u, v = cupy.zeros((2, len(part)), cupy.int64)
        for _ in range(scale):
            r = random.random_sample(len(part), dtype=cupy.float32)
            u = (u << 1) | (r >= 0.76)
            v = (v << 1) | (((r >= 0.57) & (r < 0.76)) | (r >= 0.95))
        u, v = numbers[u], numbers[v]
        found = cupy.unique((cupy.minimum(u, v) * vertices + cupy.maximum(u, v))[u != v])
        keys = cupy.concatenate([keys, found])
    keys = cupy.unique(keys)
    low, high = (keys // vertices).get(), (keys % vertices).get()
    del keys, u, v, found, numbers
    cupy.get_default_memory_pool().free_all_blocks()
    return vertices, low, high


class Devices:
    """The executors that are compared: of the first device, and of all there are."""

    def __init__(self, graph: str) -> None:
        self.graph = graph
        self.one, self.all = choose_executor("cuda:0"), choose_executor("cuda")

    def compare(self, task: str, run: Callable[[Any], Any], runs: int = 2, *, each: bool = False) -> None:
        """Print a row: of ``run``, given an executor, its times on one device and on all; with ``each``, all of them."""
        found, times = [], []
        for executor in (self.one, self.all):
            taken = []
            for _ in range(runs + 1):
                started = time.perf_counter()
                found.append(run(executor))
                taken.append(time.perf_counter() - started)
                if sum(taken[1:]) > LONGEST / 3:
                    break
            times.append((taken[0] * 1000, statistics.median(taken[1:] or taken) * 1000))
            if each:
                print(f"{task}, {executor.name}: {' '.join(f'{one * 1000:.0f}' for one in taken)} ms", flush=True)
        tasks = getattr(self.all, "tasks", [])
        busy: dict[int, float] = {}
        for each in tasks:
            busy[each.executor] = busy.get(each.executor, 0.0) + (each.ended - each.started) * 1000
        right = len(set(found)) == 1
        count = f"{found[0]:,}" if right else f"NOT EQUAL: {sorted(set(found))}"
        (first, warm), (other, together) = times
        copied = self.all.traffic().copied >> 20
        print(
            f"{self.graph:<9}{task:<26}{count:>22}{first:>12.1f}{warm:>10.1f}{other:>12.1f}{together:>10.1f}"
            f"{warm / together:>7.2f}{len(tasks):>8}{copied:>9,}  {' '.join(f'{busy[i]:.0f}' for i in sorted(busy))}",
            flush=True,
        )


def counted(plan: Any) -> Callable[[Any], int]:
    """What counts a plan's matches on an executor."""
    return lambda executor: executor.count(plan, Control(timeout=LONGEST))


def of_rows(plan: Any) -> Callable[[Any], int]:
    """What has an executor give all rows to the host, and says how many there were."""
    return lambda executor: sum(
        block.count for block in executor.run(plan, Control(timeout=LONGEST, buffer_bytes=BUFFER))
    )


def counts(name: str, ends: tuple[int, Ints, Ints], given: argparse.Namespace) -> None:
    """Cliques by ranks, a diamond by its roots, squares as sums."""
    graph, label = undirected(*ends)
    nodes, plans = MatchMode.DIFFERENT_NODES, {}
    for size in given.cliques:
        edges = list(itertools.combinations(range(size), 2))
        plans[f"{size}-cliques"] = make_plan(pattern(edges, label, nodes), graph)
    if "diamond" in given.also:
        diamond = pattern([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)], label, nodes)
        plans["diamonds, enumerated"] = make_plan(diamond, graph, counting="never")
    if "square" in given.also:
        plans["4-cycles, sums"] = make_plan(pattern([(0, 1), (1, 2), (2, 3), (0, 3)], label, nodes), graph)
    wait_for(given.after)
    devices = Devices(name)
    for title, plan in plans.items():
        devices.compare(title, counted(plan))


PATTERNS = {
    "labelled square": ([(0, 1), (1, 2), (2, 3), (0, 3)], (0, 1, 0, 1)),
    "labelled diamond": ([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)], (0, 1, 0, 1, 0)),
    "labelled 4-clique": ([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)], (0, 1, 0, 1, 0, 1)),
}


def labelled(name: str, ends: tuple[int, Ints, Ints], given: argparse.Namespace) -> None:
    """Directed edges of two labels: counts of enumerated matches, and their rows on the host."""
    vertices, u, v = ends
    labels = vertices + np.random.default_rng(1).integers(0, 2, len(u))
    graph = DataGraph(ArraySource(u, labels, v, vertices + 2))
    plans = {}
    for title, (edges, of) in PATTERNS.items():
        drawn = pattern(edges, vertices, MatchMode.DIFFERENT_NODES)
        edges_of = zip(drawn.edges, of, strict=True)
        drawn = replace(drawn, edges=tuple(replace(e, labels=(vertices + w,), directed=True) for e, w in edges_of))
        plans[title] = make_plan(drawn, graph, counting="never")
    rows = replace(drawn, count_only=False, outputs=tuple(each.name for each in drawn.vertices))
    wait_for(given.after)
    devices = Devices(name)
    for title, plan in plans.items():
        if title in given.labelled:
            devices.compare(title, counted(plan))
    listed = of_rows(make_plan(rows, graph, counting="never"))
    devices.compare("labelled 4-clique, rows", listed, given.runs, each=True)


TABLES = {
    "triangles": "MATCH (a)-[:e]->(b)-[:e]->(c), (a)-[:e]->(c) RETURN id(a) AS a, id(b) AS b, id(c) AS c",
    "edges by 4-cliques": "MATCH (a)-[:e]->(b)-[:e]->(c)-[:e]->(d), (a)-[:e]->(c), (a)-[:e]->(d), (b)-[:e]->(d)"
    " RETURN id(a) AS a, id(b) AS b, count(*) AS cliques",
    "edges by 5-cliques": "MATCH (a)-[:e]->(b)-[:e]->(c)-[:e]->(d)-[:e]->(f), (a)-[:e]->(c), (a)-[:e]->(d), (b)-[:e]->(d),"
    " (a)-[:e]->(f), (b)-[:e]->(f), (c)-[:e]->(f) RETURN id(a) AS a, id(b) AS b, count(*) AS cliques",
}


def tables(name: str, ends: tuple[int, Ints, Ints], given: argparse.Namespace) -> None:
    """``CREATE TABLE … AS MATCH``, as users write it."""
    import pyarrow as pa

    data = pa.table({":START_ID": ends[1], ":END_ID": ends[2]})
    wait_for(given.after)
    with graphdb.connect(device="cuda:0") as one, graphdb.connect(device="cuda") as all_:
        for database in (one, all_):
            database.load(data, type="e")
        for title, text in TABLES.items():
            found, times = [], []
            for database in (one, all_):
                taken = []
                for number in range(given.runs + 1):
                    started = time.perf_counter()
                    database.query(f"CREATE TABLE made AS {text}", timeout=LONGEST)
                    taken.append((time.perf_counter() - started) * 1000)
                    found.append(database.sql("SELECT count(*), sum(a), sum(b) FROM made").fetchall()[0])
                    if database is one and number == given.runs:
                        alone = written(arrow.table_of(database.sql("SELECT * FROM made")), given.runs)
                    database.sql("DROP TABLE made")
                print(f"{title}: {' '.join(f'{each:.0f}' for each in taken)} ms", flush=True)
                started = time.perf_counter()
                matched = sum(
                    database.query(text.partition("RETURN")[0] + "RETURN count(*)", timeout=LONGEST).fetchone()
                )
                times.append((taken[0], statistics.median(taken[1:]), matched))
            (first, warm, matched), (other, together, again) = times
            right = "right" if len(set(found)) == 1 and matched == again else f"WRONG: {found}"
            print(
                f"{name:<9}table of {title:<24}{found[0][0]:>14,} rows of {matched:,} matches; one {first:.0f}, then {warm:.0f};"
                f" all {other:.0f}, then {together:.0f}; ratio {warm / together:.2f}; written {alone:.0f}; {right}",
                flush=True,
            )


def written(found: arrow.Table, runs: int) -> float:
    """Milliseconds in which DuckDB writes columns, of 32 bits as a device gives them, into a table of 64: the median."""
    import duckdb

    names, taken = found.column_names, []
    given = arrow.table({name: arrow.numbers(found.column(name).to_numpy().astype(np.int32)) for name in names})
    columns = ", ".join(f"{name}::BIGINT AS {name}" for name in names)
    with duckdb.connect() as connection:
        connection.register("given", given)
        for _ in range(runs):
            started = time.perf_counter()
            connection.execute(f"CREATE TABLE made AS SELECT {columns} FROM given")
            taken.append((time.perf_counter() - started) * 1000)
            connection.execute("DROP TABLE made")
    return statistics.median(taken)


def mining(name: str, ends: tuple[int, Ints, Ints], given: argparse.Namespace) -> None:
    """Frequent patterns, whose domains are found on all devices, of a graph with six labels of vertices."""
    vertices, u, v = ends
    labels = (np.arange(vertices), np.random.default_rng(1).integers(0, 6, vertices))
    graph = MiningGraph.of(u, v, vertex_labels=labels)
    wait_for(given.after)
    devices = Devices(name)
    for edges, part in ((2, 60), (3, 40)):
        devices.compare(
            f"frequent, {edges} edges",
            lambda executor, edges=edges, part=part: hash(
                tuple(
                    (str(each.pattern), each.support)
                    for each in frequent_patterns(
                        graph,
                        vertices // part,
                        edges,
                        limits=Limits(executor=executor, control=Control(timeout=LONGEST)),
                    )
                )
            ),
        )


@contextmanager
def workers(count: int) -> Iterator[str]:
    """The address of a scheduler with so many workers of one thread, each of which sees one device."""
    with tempfile.TemporaryDirectory() as folder:
        python = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
        file = Path(folder) / "scheduler.json"
        started = [
            subprocess.Popen(
                [*python, "--scheduler-file", str(file), "--host", "127.0.0.1", "--port", "0", "--no-dashboard"],
                cwd=folder,
            )
        ]
        for number in range(count):
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file)]
            worker += ["--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard", "--no-nanny", "--memory-limit", "0"]
            seen = os.environ | {"CUDA_VISIBLE_DEVICES": str(number)}
            started.append(subprocess.Popen(worker, cwd=folder, env=seen))
        try:
            from distributed import Client

            with Client(scheduler_file=str(file), timeout=60, set_as_default=False) as client:
                client.wait_for_workers(count, timeout=60)
                yield client.scheduler_info()["address"]
        finally:
            for process in reversed(started):  # the scheduler last: workers sign off, and wait half a minute for it
                process.terminate()
                process.wait()


CLUSTER = {f"{size}-cliques": list(itertools.combinations(range(size), 2)) for size in (5, 6)} | {
    "4-cycles": [(0, 1), (1, 2), (2, 3), (0, 3)],
    "4-wheels": [(0, 1), (1, 2), (2, 3), (0, 3), *((number, 4) for number in range(4))],
}


def cluster(name: str, ends: tuple[int, Ints, Ints], given: argparse.Namespace) -> None:
    """Counts by ``db.query`` with one worker, with two, and with one for each device."""
    import pyarrow as pa

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.duckdb"
        with graphdb.connect(path, device="cpu") as database:
            database.load(pa.table({":START_ID": ends[1], ":END_ID": ends[2]}), type="e")
        wait_for(given.after)
        found: dict[str, list[tuple[int, int, float, float]]] = {}
        for count in sorted({1, min(2, len(probe().devices)), len(probe().devices)}):
            with workers(count) as address, graphdb.connect(path, cluster=address, device="cuda") as database:
                for title, edges in CLUSTER.items():
                    if given.cluster and title not in given.cluster:
                        continue
                    drawn = ", ".join(f"(v{a})-[:e]-(v{b})" for a, b in edges)
                    text, taken = f"MATCH DIFFERENT NODES {drawn} RETURN count(*)", []
                    for _ in range(4):
                        started = time.perf_counter()
                        number = database.query(text, timeout=LONGEST).scalar()
                        taken.append((time.perf_counter() - started) * 1000)
                        if sum(taken[1:]) > LONGEST / 2 * 1000:
                            break
                    found.setdefault(title, []).append((count, number, taken[0], statistics.median(taken[2:] or taken)))
                    print(f"  {count} workers, {title}: {' '.join(f'{each:.0f}' for each in taken)} ms", flush=True)
        for title, ((_, number, _, alone), *_) in found.items():
            for count, again, first, warm in found[title]:
                right = "right" if number == again else f"WRONG: {number} and {again}"
                print(
                    f"{name:<9}Dask, {title:<12}{number:>22,}  {count} workers {first:.0f}, then {warm:.0f};"
                    f" ratio {alone / warm:.2f}; {right}",
                    flush=True,
                )


def largest(name: str, ends: tuple[int, Ints, Ints], given: argparse.Namespace) -> None:
    """4-cliques and triangles of a large graph, and triangles in another way, by other threads meanwhile."""

    def otherwise() -> int:
        started = time.perf_counter()
        triangles = merged(*ends)
        print(f"{name}: {triangles:,} triangles by merged lists in {time.perf_counter() - started:.0f} s", flush=True)
        return triangles

    with ThreadPoolExecutor(1) as pool:
        triangles, started = pool.submit(otherwise), time.perf_counter()
        graph, label = undirected(*ends)
        plans = {}
        for size in (3, 4):
            edges = list(itertools.combinations(range(size), 2))
            plans[size] = make_plan(pattern(edges, label, MatchMode.DIFFERENT_NODES), graph)
        print(f"{name}: partition, orientation and plans in {time.perf_counter() - started:.0f} s", flush=True)
        triangles.result()
        wait_for(given.after)
        devices = Devices(name)
        devices.compare("triangles", counted(plans[3]), runs=1)
        found = devices.one.count(plans[3]) // plans[3].automorphisms
        verdict = "as merged" if found == triangles.result() else "NOT AS MERGED"
        print(f"{name}: {len(ends[1]):,} edges, {found:,} triangles, {verdict}", flush=True)
        devices.compare("4-cliques", counted(plans[4]), runs=1)


def merged(vertices: int, u: Ints, v: Ints) -> int:
    """The triangles of a graph by merging lists of neighbours of higher degree, on all of the host's cores."""
    import numba

    degrees = np.bincount(u, minlength=vertices) + np.bincount(v, minlength=vertices)
    higher = (degrees[u] < degrees[v]) | ((degrees[u] == degrees[v]) & (u < v))
    source, target = np.where(higher, u, v), np.where(higher, v, u)
    begins = np.append(0, np.cumsum(np.bincount(source, minlength=vertices)))

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def placed(source: Ints, target: Ints, begins: Ints) -> Any:
        at, lists = begins[:-1].copy(), np.empty(len(target), np.int32)
        for i in range(len(source)):
            lists[at[source[i]]] = target[i]
            at[source[i]] += 1
        return lists

    @numba.njit(parallel=True, nogil=True)  # type: ignore[untyped-decorator]
    def sort_lists(begins: Ints, lists: Any) -> None:
        for i in numba.prange(len(begins) - 1):
            lists[begins[i] : begins[i + 1]].sort()

    @numba.njit(nogil=True)  # type: ignore[untyped-decorator]
    def common(begins: Ints, lists: Any, i: int) -> int:
        own = 0
        for j in lists[begins[i] : begins[i + 1]]:
            a, b = begins[i], begins[j]
            while a < begins[i + 1] and b < begins[j + 1]:
                own += lists[a] == lists[b]
                step = lists[a] <= lists[b]
                b += lists[a] >= lists[b]
                a += step
        return own

    @numba.njit(parallel=True, nogil=True)  # type: ignore[untyped-decorator]
    def count(begins: Ints, lists: Any) -> int:
        found = np.zeros(len(begins) - 1, np.int64)
        numba.set_parallel_chunksize(256)
        for i in numba.prange(len(begins) - 1):
            found[i] = common(begins, lists, i)
        return found.sum()

    lists = placed(source, target, begins)
    sort_lists(begins, lists)
    return int(count(begins, lists))


def wait_for(path: Path | None) -> None:
    """Wait until a file is there: other work has the devices until then."""
    while path is not None and not path.exists():
        time.sleep(0.1)


def main() -> None:
    """Read the arguments, and print the rows of a task."""
    tasks = {each.__name__: each for each in (counts, labelled, tables, mining, cluster, largest)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=tasks)
    parser.add_argument("--graph", default="rmat20")
    parser.add_argument("--factor", type=int, default=16, help="edges drawn for each vertex")
    parser.add_argument("--cliques", type=int, nargs="*", default=[4, 5], help="sizes")
    parser.add_argument("--also", nargs="*", default=[], choices=("diamond", "square"))
    parser.add_argument("--cluster", nargs="*", choices=CLUSTER, help="of the patterns, these")
    parser.add_argument("--labelled", nargs="*", choices=PATTERNS, default=list(PATTERNS), help="of the counts, these")
    parser.add_argument("--runs", type=int, default=6, help="after the first, of rows and tables")
    parser.add_argument("--without", nargs="*", choices=("ahead", "slabs"), default=[])
    parser.add_argument("--after", type=Path)
    given = parser.parse_args()
    if "ahead" in given.without:
        join.AHEAD, pieces.SOON, pieces.SENT = 0, 1, 1 << 40
    if "slabs" in given.without:
        slabs.LEAST = 1 << 62
    started = time.perf_counter()
    ends = drawn(int(given.graph.removeprefix("rmat")), given.factor)
    print(
        f"{given.graph}: {len(ends[1]):,} edges drawn in {time.perf_counter() - started:.1f} s; load {os.getloadavg()[0]:.1f}"
    )
    print(HEAD, flush=True)
    tasks[given.what](given.graph, ends, given)


if __name__ == "__main__":
    main()
