"""Batches of changes in two layouts of neighbour lists on a device: what partitions have, and a packed memory array.

    python -m tests.benchmarks.batch_layouts
    python -m tests.benchmarks.batch_layouts --edges 200000 --graphs skewed

A graph's lists are changed by batches, half of them insertions, in each direction, and in both with the codes of edges:

*lists*: the host writes changed lists anew, and the device's copy follows (:mod:`graphdb.storage.graph.in_place.spans`);
*packed*: a packed memory array on the device takes the changes itself (:mod:`tests.benchmarks.packed_memory`).

Either starts from the changes of the direction, sorted on the host (*sorted*).  What is in both is compared at the end,
and read by the same kernels: all entries, two hops and triangles.  *uniform* edges have ends that are drawn alike,
*skewed* ones are those of R-MAT (0.57, 0.19, 0.19, 0.05), vertices numbered at random.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.launch import BLOCK, Device, defines
from graphdb.gpu.code.machine_code import Source
from graphdb.gpu.data.in_place import SpansCopy
from graphdb.storage.graph.changes import Changes, Sizes
from graphdb.storage.graph.following.partitions import Edges, _net
from graphdb.storage.graph.in_place.spans import Spans
from graphdb.storage.graph.pcsr import Direction
from tests.benchmarks.harness import CORES, Table, main, progress, surroundings
from tests.benchmarks.packed_memory import WARP, PackedMemory

Ints = NDArray[np.int64]
Pairs = NDArray[np.int64]
"""int64 [edges, 2]: sources and targets."""

DIRECTIONS: tuple[Direction, ...] = ("out", "in", "both")
COMBINED: dict[str, tuple[Direction, ...]] = {"out, in": ("out", "in"), "out, in, both": DIRECTIONS}
QUADRANTS = (0.57, 0.19, 0.19)
DEGREE = 8
_ENDS = (1 << 32) - 1


def uniform(draw: np.random.Generator, scale: int, count: int) -> Pairs:
    """Return edges between any vertices of ``2 ** scale``."""
    return draw.integers(0, 1 << scale, (count, 2))


def skewed(draw: np.random.Generator, scale: int, count: int) -> Pairs:
    """Return edges of R-MAT."""
    found = np.zeros((count, 2), np.int64)
    first, second, third = np.cumsum(QUADRANTS)
    for _ in range(scale):
        place = draw.random(count, np.float32)
        found[:, 0] += found[:, 0] + (place >= second)
        found[:, 1] += found[:, 1] + ((place >= third) | ((place >= first) & (place < second)))
    return np.random.default_rng(scale).permutation(1 << scale)[found]


GRAPHS: dict[str, Callable[[np.random.Generator, int, int], Pairs]] = {"uniform": uniform, "skewed": skewed}


def keys_of(pairs: Pairs, direction: Direction) -> Ints:
    """Return what the entries of a direction are, sorted, each once: source, target and, of both, a last bit, the code."""
    found = [(pairs[:, 0] << 32 | pairs[:, 1]), (pairs[:, 1] << 32 | pairs[:, 0])]
    if direction != "both":
        keys = found[direction == "in"]
    else:
        proper = pairs[:, 0] != pairs[:, 1]
        keys = np.concatenate([found[0] << 1, found[1][proper] << 1 | 1])
    keys.sort()
    return keys[np.diff(keys, prepend=-1) != 0]


@dataclass(frozen=True, slots=True)
class Seconds:
    """What one direction of one batch took: of the host, of its copy, and of the packed memory array."""

    sorted: float
    host: float
    copy: float
    packed: float


class Lists:
    """One direction in both layouts."""

    def __init__(self, device: Device, pairs: Pairs, direction: Direction, vertices: int) -> None:
        self._device, self._direction, self._vertices = device, direction, vertices
        keys, coded = keys_of(pairs, direction), direction == "both"
        edges, codes = (keys >> 1, keys & 1) if coded else (keys, None)
        self.packed = PackedMemory(device, edges >> 32, edges & _ENDS, codes, vertices)
        first = np.flatnonzero(np.diff(edges, prepend=-1))
        entries = edges[first]
        sources = entries >> 32
        begins = np.flatnonzero(np.diff(sources, prepend=-1))
        lengths = np.diff(begins, append=len(sources))
        offsets = np.append(first, len(edges)) if coded else None
        neighbours = (entries & _ENDS).astype(np.int32)
        self.spans = Spans(sources[begins], begins, lengths, neighbours, offsets, codes)
        self.copy = SpansCopy(device.memory)
        self.follow()

    def net(self, changes: Changes) -> Edges:
        """Return what changes there are of this direction, sorted."""
        return _net([changes], (0,), self._direction, None, Sizes(self._vertices, 0))

    def write(self, edges: Edges, threads: int = 1) -> None:
        """Change the host's lists, laid out again where too much of the pool is abandoned."""
        if self.spans.sparse:
            self.spans, self.copy = self.spans.laid_out(threads), SpansCopy(self._device.memory)
        self.spans.change(*edges, threads)

    def follow(self) -> None:
        """Bring the device's copy up to date."""
        self.copy.follow(self.spans, self._device.scatter)
        self._device.stream.synchronize()

    def pack(self, edges: Edges) -> None:
        """Change the packed memory array."""
        self.packed.change(*edges)
        self._device.stream.synchronize()

    def step(self, changes: Changes) -> Seconds:
        """Apply a batch to either, one after the other."""
        times, edges = [time.perf_counter()], self.net(changes)
        for work in (lambda: self.write(edges), self.follow, lambda: self.pack(edges)):
            times.append(time.perf_counter())
            work()
        return Seconds(*np.diff([*times, time.perf_counter()]).tolist())

    def check(self) -> int:
        """Return how many entries there are; raises SystemExit where the layouts differ."""
        neighbours, offsets, codes = self.spans.arrays
        begins, ends = self.spans.table.T
        lengths = ends - begins
        places = np.repeat(begins - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
        wanted = np.repeat(np.arange(len(lengths)), lengths) << 32 | neighbours[places]
        if offsets is not None and codes is not None:
            counts = (offsets[places + 1] - offsets[places]).astype(np.int64)
            at = np.repeat(offsets[places] - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
            wanted = np.repeat(wanted, counts) << 1 | codes[at]
        packed = self.packed
        width = len(packed.sources) // packed.leaves
        taken = (np.arange(width) < packed.sizes.get()[:, None]).reshape(-1)
        found = packed.sources.get()[taken].astype(np.int64) << 32 | packed.neighbours.get()[taken]
        if codes is not None:
            found = found << 1 | packed.codes.get()[taken]
        if not np.array_equal(found, wanted):
            raise SystemExit(f"WRONG: {self._direction} has {len(found):,} entries, expected {len(wanted):,}")
        return len(found)


def batches(make: Callable[[int], Pairs], order: Pairs, arguments: Any) -> Iterator[Changes]:
    """Yield batches: half of each inserts edges, half of it deletes edges of the graph, none twice."""
    at = 0
    sizes = [each for each in arguments.batches for _ in range(arguments.repeat + 1)]
    for each in [*sizes, *[arguments.batches[-1]] * (len(COMBINED) * arguments.repeat)]:
        rows = [order[at : at + each // 2], make(each - each // 2)]
        at += each // 2
        yield Changes(*(np.column_stack([np.zeros(len(ends), np.int64), ends]) for ends in rows))


class Queries:
    """The same kernels over either layout."""

    def __init__(self, device: Device, gaps: int) -> None:
        text = Path(__file__).with_name("batch_layouts.cu").read_text()
        self._device = device
        self._module = device.compile(Source("batch_layouts", text, defines({"GAPS": gaps})))
        self._sum = device.memory.empty(1, np.uint64)

    def tasks(self, table: Any, every: int) -> Any:
        """Return the lists of every so many-th vertex in parts of 32 slots."""
        begins, ends = table.get().reshape(-1, 2)[::every].T
        parts = (ends - begins + WARP - 1) // WARP
        first = np.repeat(np.cumsum(parts) - parts, parts)
        vertices = np.repeat(np.arange(len(parts)), parts)
        slots = begins[vertices] + WARP * (np.arange(len(vertices)) - first)
        return self._device.memory.upload(np.column_stack([vertices * every, slots]))

    def ask(self, kernel: str, tasks: Any, table: Any, neighbours: Any, repeat: int) -> tuple[int, float]:
        """Return a kernel's answer, and the median of its milliseconds."""
        taken = []
        for _ in range(repeat + 1):
            self._sum.fill(0)
            begin = self._device.event()
            blocks = min(-(-WARP * len(tasks) // BLOCK), self._module.resident(kernel) * 4)
            self._module.launch(kernel, blocks, tasks, len(tasks), table, len(table) // 2, neighbours, self._sum)
            taken.append(self._device.milliseconds(begin, self._device.event()))
        return int(self._sum.get()[0]), statistics.median(taken[1:])


def asked(device: Device, lists: Lists, every: int, repeat: int = 5) -> list[list[str]]:
    """Return rows of what queries take of either layout; raises SystemExit where answers differ."""
    table, neighbours, _, _ = lists.copy.arrays
    layouts = [
        (Queries(device, 0), table, neighbours),
        (Queries(device, 1), lists.packed.table, lists.packed.neighbours),
    ]
    rows = []
    for kernel, share in (("scan", 1), ("two_hops", every), ("triangles", every)):
        found = [
            queries.ask(kernel, queries.tasks(table, share), table, neighbours, repeat)
            for queries, table, neighbours in layouts
        ]
        (wanted, plain), (answer, packed) = found
        if answer != wanted:
            raise SystemExit(f"WRONG: {kernel} of the packed memory array is {answer:,}, of lists {wanted:,}")
        rows.append([kernel, f"{wanted:,}", f"{plain:.2f}", f"{packed:.2f}", f"{packed / plain:.2f}"])
    return rows


def side_by_side(
    lists: dict[Direction, Lists], together: Sequence[Direction], changes: Changes, pool: ThreadPoolExecutor
) -> float:
    """Return the seconds of a batch in the lists of some directions, side by side and by all threads, as a graph follows.

    What else there is takes the batch, too, afterwards.
    """
    timed = [lists[direction] for direction in together]
    begun = time.perf_counter()
    threads = max(CORES // len(timed), 1)
    for _ in pool.map(lambda each: each.write(each.net(changes), threads), timed):
        pass
    for each in timed:
        each.follow()
    taken = time.perf_counter() - begun
    for direction, each in lists.items():
        edges = each.net(changes)
        if direction not in together:
            each.write(edges)
            each.follow()
        each.pack(edges)
    return taken


def measure(device: Device, name: str, edges: int, arguments: Any) -> list[Table]:
    """Measure one graph."""
    draw, scale = np.random.default_rng(7), max((edges // DEGREE - 1).bit_length(), 1)
    vertices = 1 << scale

    def make(count: int) -> Pairs:
        return GRAPHS[name](draw, scale, count)

    progress(f"{name}: the graph")
    keys = keys_of(make(edges), "out")
    pairs = np.column_stack([keys >> 32, keys & _ENDS])
    order = draw.permutation(len(pairs))
    progress(f"{name}: {len(pairs):,} edges, in both layouts")
    lists = {direction: Lists(device, pairs, direction, vertices) for direction in DIRECTIONS}
    title = f"{name}, {len(pairs):,} edges, {vertices:,} vertices"
    columns = ["batch", "direction", "sorted", "lists, host", "copy", "lists / s", "packed", "packed / s", "leaves"]
    changed = Table(f"{title}: ms of a batch, means (and medians); changes a second", columns)
    memory = Table(f"{title}: MB", ["direction", "entries", "lists, host", "lists, copy", "packed"])
    given = batches(make, pairs[order], arguments)
    for each in arguments.batches:
        steps = dict[Direction, list[Seconds]]((direction, []) for direction in DIRECTIONS)
        for number in range(arguments.repeat + 1):
            changes = next(given)
            for direction, own in lists.items():
                step = own.step(changes)
                if number:
                    steps[direction].append(step)
        for direction, own in lists.items():
            changed.add(f"{each:,}", direction, *_cells([steps[direction]], each), f"{own.packed.rebuilt:,}")
        for label, together in COMBINED.items():
            changed.add(f"{each:,}", label, *_cells([steps[direction] for direction in together], each), "")
        print(*changed.rows[-5:], sep="\n", flush=True)
    with ThreadPoolExecutor(len(DIRECTIONS)) as pool:
        for label, together in COMBINED.items():
            taken = [side_by_side(lists, together, next(given), pool) for _ in range(arguments.repeat)]
            mean, middle = statistics.mean(taken), statistics.median(taken)
            text = f"{mean * 1e3:.1f} ms ({middle * 1e3:.1f}), {each / mean:,.0f} changes a second"
            changed.notes.append(f"lists, {each:,}, {label}, side by side: {text}")
            print(changed.notes[-1], flush=True)
    for direction, own in lists.items():
        host = sum(array.nbytes for array in (own.spans.table, *own.spans.arrays) if array is not None)
        sizes = (host, own.copy.nbytes, own.packed.nbytes)
        memory.add(direction, f"{own.check():,}", *(f"{size / 1e6:.0f}" for size in sizes))
    columns = ["query of out", "answer", "lists", "packed", "packed / lists"]
    read = Table(f"{title}: ms of kernels, two hops and triangles of every {arguments.every}th vertex", columns)
    for row in asked(device, lists["out"], arguments.every):
        read.add(*row)
    return [changed, memory, read]


def _cells(steps: Sequence[Sequence[Seconds]], each: int) -> list[str]:
    """Return the cells of some directions, one after the other."""
    found = dict[str, list[float]]()
    for part in ("sorted", "host", "copy", "packed"):
        found[part] = [sum(getattr(step, part) for step in row) for row in zip(*steps, strict=True)]
    means = {part: statistics.mean(values) for part, values in found.items()}
    text = {part: f"{means[part] * 1e3:.2f} ({statistics.median(values) * 1e3:.2f})" for part, values in found.items()}
    lists, packed = (means["sorted"] + sum(means[part] for part in parts) for parts in (("host", "copy"), ("packed",)))
    rates = f"{each / lists:,.0f}", f"{each / packed:,.0f}"
    return [text["sorted"], text["host"], text["copy"], rates[0], text["packed"], rates[1]]


def run(argv: list[str]) -> list[Table]:
    """Measure and return tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=16_000_000)
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=GRAPHS)
    parser.add_argument("--batches", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeat", type=int, default=8)
    parser.add_argument("--every", type=int, default=4)
    arguments = parser.parse_args(argv)
    device = Device()
    with device.active():
        tables = [table for name in arguments.graphs for table in measure(device, name, arguments.edges, arguments)]
    tables[-1].notes.append(f"{device.name}; {surroundings('cupy-cuda13x')}")
    return tables


if __name__ == "__main__":
    main(run)
