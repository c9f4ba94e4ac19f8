"""Batches that a device searches change what the host would: small ones by brute force, larger ones as the host does."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from graphdb.common.errors import DeviceError
from graphdb.gpu.code.launch import Module
from graphdb.grammar.syntax import MatchMode
from graphdb.incremental import frame, lists
from graphdb.incremental.changes import Changes, Updates, VertexChanges
from graphdb.incremental.device import engine, search
from graphdb.incremental.device import lists as device_lists
from graphdb.incremental.device.lists import DeviceLists
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.storage.graph.array_source import ArraySource
from tests import emulator
from tests.fuzz import scaled
from tests.gpu.executors import EMULATED, WHERE
from tests.incremental import test_matcher as edges
from tests.incremental import test_vertices as vertices

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)


@contextmanager
def opened(where: str, memory: int = 1 << 30) -> Iterator[Any]:
    """A device, of which nothing is left behind that a matcher took."""
    from graphdb.gpu.code.launch import Device

    if where == "cuda":
        yield Device(0, memory)
        return
    with emulator.installed(memory, together=4):
        device = Device(0)
        yield device
        assert not device.memory.pool.faults


@contextmanager
def chosen(decide: Callable[[], bool]) -> Iterator[None]:
    """Have batches be searched on the device where ``decide`` says so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "FEWEST", 1)
        patch.setattr(engine.DeviceMatching, "_pays", lambda self, work: decide())
        yield


def _pinned(device: Any) -> Callable[..., IncrementalMatcher]:
    return partial(IncrementalMatcher, device=lambda: device, pinned=True)


@pytest.mark.parametrize("where", WHERE)
def test_a_device_finds_the_difference_of_all_matches(where: str) -> None:
    with opened(where) as device:

        @settings(max_examples=scaled(60), deadline=None, phases=PHASES)
        @given(st.integers(0, 1 << 32))
        def compared(seed: int) -> None:
            draw = np.random.default_rng(seed)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(lists, "LEAST_MARKED", int(draw.choice([1, 2, 24])))
                patch.setattr(device_lists, "RANKED", int(draw.choice([0, 1 << 14])))
                patch.setattr(device_lists, "UNCOUNTED", int(draw.choice([0, 1 << 18])))
                patch.setattr(device_lists, "_LEAST_PLACES", int(draw.choice([1, 1 << 8])))
                patch.setattr(device_lists, "_LEAST_SPARE", int(draw.choice([0, 1 << 8])))
                edges.compare(draw, _pinned(device))

        compared()


@pytest.mark.parametrize("where", WHERE)
def test_a_device_follows_vertices(where: str) -> None:
    with opened(where) as device:

        @settings(max_examples=scaled(60), deadline=None, phases=PHASES)
        @given(st.integers(0, 1 << 32))
        def compared(seed: int) -> None:
            draw = np.random.default_rng(seed)
            with chosen(lambda: bool(draw.random() < 0.7)), pytest.MonkeyPatch.context() as patch:
                patch.setattr(device_lists, "_LEAST_PLACES", int(draw.choice([1, 1 << 8])))
                pinned = bool(draw.random() < 0.5)
                vertices.compare(draw, partial(IncrementalMatcher, device=lambda: device, pinned=pinned))

        compared()


# --- larger graphs, beside the host


class Stream:
    """A random graph with labels of vertices and edges, and batches that insert and delete."""

    def __init__(self, draw: edges.Draw, size: int, count: int) -> None:
        self.draw, self.size = draw, size
        self.labels = draw.integers(0, 3, size)
        hubs = np.minimum(draw.integers(0, size, (count, 2)), draw.integers(0, size, (count, 2)))
        self.edges = np.unique(np.column_stack([draw.integers(1, 3, count), hubs]), axis=0)

    @property
    def source(self) -> ArraySource:
        """The graph at first."""
        labels, sources, targets = self.edges.T
        return ArraySource(sources, labels, targets, self.size)

    def batch(self, updates: int) -> Updates:
        """Half insertions, some of which are there, and half deletions, some of which are not."""
        inserted = self.draw.random(updates) < 0.5
        new = np.column_stack([self.draw.integers(1, 3, updates), self.draw.integers(0, self.size, (updates, 2))])
        rows = np.where(inserted[:, None], new, self.edges[self.draw.integers(0, len(self.edges), updates)])
        return Updates(*rows.T, inserted)

    def patterns(self, mode: MatchMode) -> list[PatternGraph]:
        """A triangle, a square with a leaf, a star, and a path of any label, with labels of vertices or without."""
        shapes: list[tuple[list[tuple[int, int]], tuple[int, ...] | None, bool, bool]] = [
            ([(0, 1), (1, 2), (2, 0)], (1,), False, False),
            ([(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)], (1, 2), False, True),
            ([(0, 1), (0, 2), (0, 3)], (2,), True, True),
            ([(0, 1), (1, 2), (2, 3)], None, True, True),
        ]
        return [self._pattern(mode, *shape) for shape in shapes]

    def _pattern(
        self,
        mode: MatchMode,
        ends: list[tuple[int, int]],
        labels: tuple[int, ...] | None,
        directed: bool,
        labelled: bool,
    ) -> PatternGraph:
        count = 1 + max(map(max, ends))
        nodes = [
            PatternVertex(f"v{v}", np.flatnonzero(self.labels == v % 3) if labelled else None) for v in range(count)
        ]
        own = [PatternEdge(f"e{e}", a, b, labels, directed, 0) for e, (a, b) in enumerate(ends)]
        names = [found.name for found in (*nodes, *own)]
        return PatternGraph(tuple(nodes), tuple(own), (Clause(mode, tuple(range(count))),), outputs=tuple(names))


def _sorted(changes: Changes) -> list[list[list[int]]]:
    return [rows[np.lexsort(rows.T)].tolist() for rows in changes]


SIZES = {"emulated": (120, 500), "cuda": (20_000, 60_000)}


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("mode", edges.MODES)
def test_batches_of_all_sizes_change_what_they_do_on_the_host(
    where: str, mode: MatchMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = np.random.default_rng(7)
    stream = Stream(draw, *SIZES[where])
    patterns = stream.patterns(mode)
    monkeypatch.setattr(lists, "LEAST_MARKED", 4)
    monkeypatch.setattr(device_lists, "_SPARE", 1 << 30)  # the pool has to grow
    monkeypatch.setattr(device_lists, "_LEAST_SPARE", 0)
    with opened(where) as device:
        matcher, counting = (_pinned(device)(stream.source, patterns) for _ in range(2))
        host = IncrementalMatcher(stream.source, patterns)
        for size in (1, 64, len(stream.edges) // 10, 1024):
            batch = stream.batch(size)
            wanted = [_sorted(change) for change in host.apply(batch)]
            assert [_sorted(change) for change in matcher.apply(batch)] == wanted
            numbers = [[len(rows) for rows in change] for change in wanted]
            assert counting.count(batch, [size])[0].tolist() == numbers
            assert_lists_as_on_the_host(matcher)
        assert any(number > 100 for change in numbers for number in change)
        assert matcher._device is not None
        assert matcher._device.batches == 4


def assert_lists_as_on_the_host(matcher: IncrementalMatcher) -> None:
    """Compare all lists of a device, and its candidate table, with the host's."""
    assert matcher._device is not None
    matcher._catch_up()
    copy, host = matcher._device._copy, matcher._lists
    assert copy is not None
    copy.device.stream.synchronize()  # a batch's end is not waited for
    rows, pool = copy._rows.get(), np.stack([copy._neighbours.get(), copy._codes.get()], axis=1)
    image = host.image()
    own = np.stack([image.neighbours, image.codes], axis=1)
    marks, marked = copy._marks.get(), 0
    late = {int(key): image.in_range + place for place, key in enumerate(copy._late.get())}
    places = [*range(image.in_range), *(late[key] for key, _ in image.late.tolist() if key in late)]
    known = [*range(image.in_range), *(row for key, row in image.late.tolist() if key in late)]
    for place, row in zip(places, known, strict=True):
        begin, size = rows[place][0] * frame.UNIT, rows[place][1]
        there, length = image.rows[row][0] * frame.UNIT, image.rows[row][1]
        assert pool[begin : begin + size].tolist() == own[there : there + length].tolist()
        assert rows[place][3:6].tolist() == [size] * 3
        if word := rows[place][6]:
            marked += 1
            relation = int(np.searchsorted(image.ranges[:, 2], place, "right")) - 1
            low, reach = image.ranges[relation, 3:]
            bits = np.unpackbits(marks[word : word + reach // 64 + 1].view(np.uint8), bitorder="little")[:reach]
            there = pool[begin : begin + size, 0]
            there = there[(there >= low) & (there < low + reach)]
            assert (np.flatnonzero(bits) + low).tolist() == np.unique(there).tolist()
    assert marked or not image.rows[: image.in_range, 6].any()
    assert copy._parallel.tolist() == host._parallel.tolist()
    table = copy._table.get()
    assert np.array_equal(table, image.table[:, : table.shape[1]])


@pytest.mark.parametrize("where", WHERE)
def test_what_is_left_to_others_is_found_once(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps with several below them are divided, too, by candidates and by ranges of long lists."""
    monkeypatch.setattr(search.DeviceSearch, "macros", {"LOOK": 0})
    stream = Stream(np.random.default_rng(17), 100, 400)
    trees = [(0, 1), (1, 2), (1, 3), (3, 4)], [(0, 1), (1, 2), (2, 3), (0, 4)], [(0, 1), (1, 2), (2, 0), (2, 3)]
    patterns = [stream._pattern(MatchMode.REPEATABLE_ELEMENTS, [*ends], (1, 2), True, False) for ends in trees]
    with opened(where) as device:
        host = IncrementalMatcher(stream.source, patterns)
        matcher, counting = (_pinned(device)(stream.source, patterns) for _ in range(2))
        stolen = [0, 0]
        for _ in range(3):
            batch = stream.batch(2)
            wanted = [_sorted(change) for change in host.apply(batch)]
            assert counting.count(batch, [2])[0].tolist() == [[len(rows) for rows in change] for change in wanted]
            assert [_sorted(change) for change in matcher.apply(batch)] == wanted
            for number, own in enumerate((counting, matcher)):
                assert own._device is not None
                stolen[number] += own._device.stolen
    assert all(stolen)


@pytest.mark.parametrize("where", WHERE)
def test_updates_of_new_vertices_have_rows_made(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_lists, "_LEAST_PLACES", 1)  # too few for a batch, which is staged once more
    draw = np.random.default_rng(5)
    source, pattern = ArraySource([0], [1], [1], 2), edges._pattern([(0, 1), (1, 2)])
    with opened(where) as device:
        matcher, host = _pinned(device)(source, [pattern]), IncrementalMatcher(source, [pattern])
        for each in (matcher, host):
            each.apply(Updates([], [], [], []), vertices=VertexChanges(resources=300))
        for size in (10, 10, 200, 100):
            batch = Updates(np.ones(size, int), *draw.integers(0, 300, (2, size)), draw.random(size) < 0.8)
            assert matcher.count(batch, [size]).tolist() == host.count(batch, [size]).tolist()
            assert_lists_as_on_the_host(matcher)


@pytest.mark.parametrize("where", WHERE)
def test_a_device_catches_up_with_batches_of_the_host(where: str) -> None:
    draw = np.random.default_rng(11)
    stream = Stream(draw, 150, 500)
    patterns = stream.patterns(MatchMode.DIFFERENT_NODES)[:2]
    turns = [True, False, False, True, False, True, True]
    with opened(where) as device, chosen(lambda: turns[0]):
        matcher = IncrementalMatcher(stream.source, patterns, device=lambda: device)
        host = IncrementalMatcher(stream.source, patterns)
        for _ in range(3):
            for size in (60, 20):
                batch = stream.batch(size)
                assert [_sorted(c) for c in matcher.apply(batch)] == [_sorted(c) for c in host.apply(batch)]
                turns.pop(0)
        assert matcher._device is not None
        assert matcher._device.batches == 3
        assert_lists_as_on_the_host(matcher)


@EMULATED
def test_a_copy_that_is_far_behind_is_made_anew() -> None:
    stream = Stream(np.random.default_rng(17), 60, 200)
    patterns = stream.patterns(MatchMode.DIFFERENT_NODES)[:1]
    turns = [True, *[False] * 6, True, True]
    with opened("emulated") as device, chosen(lambda: turns[0]):
        matcher = IncrementalMatcher(stream.source, patterns, device=lambda: device)
        host = IncrementalMatcher(stream.source, patterns)
        assert matcher._device is not None
        dropped = []
        while turns:
            batch = stream.batch(150)
            assert [_sorted(c) for c in matcher.apply(batch)] == [_sorted(c) for c in host.apply(batch)]
            dropped.append(matcher._device._copy is None)
            turns.pop(0)
        assert dropped[0] is dropped[-1] is False
        assert any(dropped)
        assert_lists_as_on_the_host(matcher)


@pytest.mark.parametrize("where", WHERE)
def test_one_batch_is_staged_while_another_is_searched(where: str) -> None:
    stream = Stream(np.random.default_rng(13), 150, 500)
    patterns = stream.patterns(MatchMode.DIFFERENT_EDGES)[:3]
    batches = [stream.batch(40) for _ in range(5)]
    together = Updates(
        *(np.concatenate([np.asarray(column) for column in columns]) for columns in zip(*batches, strict=True))
    )
    ends = np.arange(40, 240, 40)
    wanted = IncrementalMatcher(stream.source, patterns).count(together, ends).tolist()
    with opened(where) as device:
        matcher = _pinned(device)(stream.source, patterns)
        assert matcher.count(together, ends).tolist() == wanted
        assert_lists_as_on_the_host(matcher)

        def checks(after: int) -> Iterator[None]:
            for _ in range(after):
                yield
            raise edges.Interrupted

        for after in (1, 4, 9):
            left, matcher = checks(after), _pinned(device)(stream.source, patterns)
            with pytest.raises(edges.Interrupted):
                matcher.count(together, ends, lambda left=left: next(left))
            matcher.apply(Updates([], [], [], []))
            assert_lists_as_on_the_host(matcher)


@pytest.mark.parametrize("where", WHERE)
def test_rows_come_in_pieces_where_there_is_no_space_for_all(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(np.random.default_rng(5), 60, 300)
    patterns, batch = stream.patterns(MatchMode.REPEATABLE_ELEMENTS), stream.batch(60)
    monkeypatch.setattr(search.DeviceSearch.__init__, "__kwdefaults__", {"steal": True, "most": 2, "rows": 3})
    wanted = [_sorted(change) for change in IncrementalMatcher(stream.source, patterns).apply(batch)]
    most = max(len(rows) for change in wanted for rows in change)
    for limit in (1 << 30, most * 12):
        monkeypatch.setattr(search.DeviceSearch, "_fits", lambda self, wanted, limit=limit: wanted <= limit)
        with opened(where) as device:
            matcher = _pinned(device)(stream.source, patterns)
            assert [_sorted(change) for change in matcher.apply(batch)] == wanted
            assert matcher._device is not None
            assert matcher._device.batches == 1


@EMULATED
def test_the_host_searches_what_does_not_fit_a_device(caplog: pytest.LogCaptureFixture) -> None:
    stream = Stream(np.random.default_rng(5), 200, 800)
    patterns = stream.patterns(MatchMode.DIFFERENT_NODES)[:1]
    host = IncrementalMatcher(stream.source, patterns)
    with opened("emulated", 1 << 14) as device:
        matcher = _pinned(device)(stream.source, patterns)
        for _ in range(2):
            batch = stream.batch(50)
            assert [_sorted(c) for c in matcher.apply(batch)] == [_sorted(c) for c in host.apply(batch)]
    assert matcher._device is not None
    assert matcher._device.batches == 0
    assert [record.getMessage() for record in caplog.records if "on the CPU" in record.getMessage()][1:] == []
    assert "on the CPU" in caplog.text


@EMULATED
@pytest.mark.parametrize(
    "fails", [(DeviceLists, "stage_updates"), (search.DeviceSearch, "rows"), (DeviceLists, "finish")]
)
def test_the_host_goes_on_where_a_device_fails(
    fails: tuple[type, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the device alone has had some batches."""
    stream = Stream(np.random.default_rng(19), 150, 500)
    patterns = stream.patterns(MatchMode.DIFFERENT_NODES)[:2:2]
    host = IncrementalMatcher(stream.source, patterns)

    def failing(*_: object, **__: object) -> None:
        raise DeviceError("it fell off the bus")

    with opened("emulated") as device:
        matcher = _pinned(device)(stream.source, patterns)
        for number in range(6):
            if number == 3:
                assert matcher._device is not None
                assert matcher._device._ahead
                monkeypatch.setattr(*fails, failing)
            batch = stream.batch(40)
            assert [_sorted(c) for c in matcher.apply(batch)] == [_sorted(c) for c in host.apply(batch)]
    assert "it fell off the bus" in caplog.text
    assert matcher._device.batches == (4 if fails[1] == "finish" else 3)  # type: ignore[union-attr]


@EMULATED
def test_what_is_expected_to_be_quick_stays_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(np.random.default_rng(5), 4_000, 8_000)
    patterns = stream.patterns(MatchMode.DIFFERENT_NODES)[:1]
    opens: list[int] = []
    matcher = IncrementalMatcher(stream.source, patterns, device=lambda: opens.append(1))
    matcher.apply(stream.batch(4_000))
    assert not opens, "some ms of work are not worth to open a device"
    monkeypatch.setattr(engine, "HOST_BINDING", 1.0)
    matcher.apply(stream.batch(10))
    assert not opens, "nor is a small batch"
    matcher.apply(stream.batch(4_000))
    assert opens == [1], "an hour is"
    matcher.apply(stream.batch(4_000))
    assert opens == [1], "where there is no device, it is asked for once"


@pytest.mark.gpu
def test_a_search_on_a_device_is_stopped_within_half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """While its kernel runs: that it ends says so, for nobody would see its own end."""
    size = 1_000
    draw = np.random.default_rng(3)
    pairs = np.unique(draw.integers(0, size, (100_000, 2)), axis=0)
    updates = Updates(np.ones(len(pairs)), pairs[:, 0], pairs[:, 1], np.ones(len(pairs)))
    ring = edges._pattern([(v, (v + 1) % 8) for v in range(8)], MatchMode.DIFFERENT_NODES)  # some 10^17 of them
    launched, plain = list[str](), Module.launch

    def launch(module: Any, kernel: str, *given: Any, **more: Any) -> Any:
        launched.append(kernel)
        return plain(module, kernel, *given, **more)

    monkeypatch.setattr(Module, "launch", launch)
    with opened("cuda") as device:
        matcher = _pinned(device)(ArraySource([], [], [], size), [ring])
        matcher.count(Updates([1], [0], [1], [True]), [1])  # which compiles
        matcher.count(Updates([1], [0], [1], [False]), [1])
        for action in (lambda: matcher.count(updates, [len(pairs)], stop), lambda: matcher.apply(updates, stop)):
            launched.clear()
            asked: list[int] = []
            raised: list[float] = []

            def stop(asked: list[int] = asked, raised: list[float] = raised) -> None:
                asked.append(len(launched))
                if len(asked) >= 20 and 0 < asked[-20] == asked[-1]:  # it has asked for a while since the last launch
                    raised.append(time.monotonic())
                    raise edges.Interrupted

            with pytest.raises(edges.Interrupted):
                action()
            assert time.monotonic() - raised[0] < 0.5
        assert matcher.count(Updates([1], [0], [1], [True]), [1])[0].tolist() == [[0, 0]]
        assert isinstance(matcher._device._copy, DeviceLists)  # type: ignore[union-attr]
