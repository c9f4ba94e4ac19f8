"""The packed memory array that partitions are compared with: what it is measured with is right, and stays within bounds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphdb.gpu.code.launch import defines
from tests import emulator, nvrtc
from tests.benchmarks import batch_layouts
from tests.benchmarks.batch_layouts import Queries
from tests.benchmarks.packed_memory import LEAST, MOST, PackedMemory
from tests.fuzz import scaled
from tests.gpu.executors import WHERE

Edges = set[tuple[int, int, int]]
VERTICES = 12
edges = st.sets(st.tuples(st.integers(0, VERTICES - 1), st.integers(0, VERTICES - 1), st.integers(0, 2)), max_size=120)


@pytest.fixture(scope="module", params=WHERE)
def device(request: pytest.FixtureRequest) -> Iterator[Any]:
    with ExitStack() as stack:
        if request.param == "emulated":
            stack.enter_context(emulator.installed())
        from graphdb.gpu.code.launch import Device

        found = Device(0, 1 << 28)
        yield found
        if request.param == "emulated":
            assert not found.memory.pool.faults


def columns(rows: Edges) -> Any:
    return np.array(sorted(rows), np.int64).reshape(-1, 3).T


def entries_of(packed: PackedMemory) -> Edges:
    """What is in the slots; each leaf's free ones repeat its last entry."""
    sizes, width = packed.sizes.get(), len(packed.sources) // packed.leaves
    arrays = [packed.sources, packed.neighbours, *([packed.codes] if len(packed.codes) else [])]
    slots = np.stack([np.array(each.get()).reshape(-1, width) for each in arrays], axis=-1)
    taken = np.arange(width) < sizes[:, None]
    if sizes.any():
        last = slots[np.arange(len(sizes)), sizes - 1]
        last[:, 1] |= -1 << 31
        assert np.array_equal(slots[~taken], np.broadcast_to(last[:, None], slots.shape)[~taken])
    rows = [tuple(row) for row in slots[taken].tolist()]
    assert rows == sorted(set(rows))
    return set(rows)


def check(packed: PackedMemory, wanted: Edges) -> None:
    """The slots, the table and the tree are those of these edges."""
    assert entries_of(packed) == wanted
    table, neighbours, sources = packed.table.get().reshape(-1, 2), packed.neighbours.get(), packed.sources.get()
    for vertex, (begin, end) in enumerate(table.tolist()):
        own = neighbours[begin:end] & ~(-1 << 31)
        assert set(own.tolist()) == {row[1] for row in wanted if row[0] == vertex}
        assert (np.diff(own) >= 0).all()
        assert (sources[begin:end] == vertex).all()
        assert begin < end or (begin, end) == (0, 0)
    sizes, tree = packed.sizes.get().astype(np.int64), packed.tree.get().tolist()
    level, nodes = sizes, list[int]()
    while True:
        nodes += level.tolist()
        if len(level) == 1:
            break
        level = np.append(level, np.zeros(len(level) % 2, np.int64)).reshape(-1, 2).sum(axis=1)
    assert tree == nodes
    assert packed.leaves == 1 or sizes.min() > 0


@settings(
    max_examples=scaled(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(
    first=edges,
    batches=st.lists(st.tuples(edges, edges), min_size=1, max_size=5),
    leaf=st.sampled_from([2, 4, 32]),
    coded=st.booleans(),
)
def test_batches(device: Any, first: Edges, batches: list[tuple[Edges, Edges]], leaf: int, coded: bool) -> None:
    """Entries are those of a set that edges come into and go out of, some of which are there, or are not."""

    def uncoded(rows: Edges) -> Edges:
        return rows if coded else {(source, target, 0) for source, target, _ in rows}

    def shown(rows: Edges) -> Any:
        return rows if coded else {row[:2] for row in rows}

    rows = uncoded(first)
    with device.active():
        source, target, codes = columns(rows)
        packed = PackedMemory(device, source, target, codes if coded else None, VERTICES, leaf)
        check(packed, shown(rows))
        for come, go in batches:
            come, go = uncoded(come), uncoded(go)
            rows = (rows - go) | come
            changes = dict.fromkeys(go, 0) | dict.fromkeys(come, 1)
            source, target, codes = columns(set(changes))
            packed.change(source, target, codes, np.array([changes[row] for row in sorted(changes)], np.int64))
            check(packed, shown(rows))


def test_a_batch_rebuilds_what_it_changes(device: Any) -> None:
    """Of many leaves some, whether a batch adds or takes away; the share of slots in use stays within bounds."""
    draw, vertices = np.random.default_rng(1), 200
    rows = {(int(s), int(t), 0) for s, t in draw.integers(0, vertices, (4_000, 2))}
    with device.active():
        source, target, _ = columns(rows)
        packed = PackedMemory(device, source, target, None, vertices)
        rebuilt = list[int]()
        for number in range(12):
            grows = number % 6 < 3
            pairs = draw.integers(0, vertices, (300, 2)).tolist() if grows else sorted(rows)[number::9]
            changed = {(pair[0], pair[1], 0) for pair in pairs}
            rows = rows | changed if grows else rows - changed
            source, target, codes = columns(changed)
            packed.change(source, target, codes, np.full(len(source), int(grows), np.int64))
            assert entries_of(packed) == {row[:2] for row in rows}
            rebuilt.append(packed.rebuilt)
            if packed.rebuilt == packed.leaves:
                assert LEAST <= len(rows) / len(packed.sources) <= MOST
        few = {(5, 7, 0), (9, 1, 0)}
        source, target, codes = columns(few)
        packed.change(source, target, codes, np.array([row not in rows for row in sorted(few)], np.int64))
        assert 1 <= packed.rebuilt <= packed.leaves // 8


def test_queries(device: Any) -> None:
    """What kernels count in lists with free slots, of every vertex and of every other one, is what sets count."""
    draw, vertices = np.random.default_rng(2), 60
    rows = {(int(s), int(t), 0) for s, t in draw.integers(0, vertices, (900, 2)) if s % 7}
    lists = [{target for source, target, _ in rows if source == vertex} for vertex in range(vertices)]
    with device.active():
        source, target, _ = columns(rows)
        packed = PackedMemory(device, source, target, None, vertices, 4)
        queries = Queries(device, gaps=1)
        for every in (1, 2):
            edges = [(source, target) for source, target, _ in rows if source % every == 0]
            wanted = {
                "scan": sum(target for _, target in edges),
                "two_hops": sum(len(lists[middle] - {source}) for source, middle in edges),
                "triangles": sum(len(lists[source] & lists[target]) for source, target in edges),
            }
            tasks = queries.tasks(packed.table, every)
            for kernel, expected in wanted.items():
                assert queries.ask(kernel, tasks, packed.table, packed.neighbours, 1)[0] == expected


@pytest.mark.parametrize("graph", batch_layouts.GRAPHS)
def test_benchmark(device: Any, graph: str) -> None:
    """Both layouts have the same entries after batches, and give the same answers: else it ends."""
    arguments = SimpleNamespace(batches=[30, 300], repeat=1, every=2)
    with device.active():
        changed, memory, read = batch_layouts.measure(device, graph, 3_000, arguments)
    assert [len(table.rows) for table in (changed, memory, read)] == [10, 3, 3]


@pytest.mark.parametrize(
    ("file", "macros"),
    [
        *(("packed_memory", {"LEAF": 32, "CODED": coded, "MOST": 768, "LEAST": 409}) for coded in (0, 1)),
        *(("batch_layouts", {"GAPS": gaps}) for gaps in (0, 1)),
    ],
)
def test_compiles(file: str, macros: dict[str, int]) -> None:
    """For the oldest devices and the newest."""
    text = Path(batch_layouts.__file__).with_name(f"{file}.cu").read_text()
    for target in nvrtc.targets():
        assert nvrtc.is_code(nvrtc.compiled(text, defines(macros), target), target)
