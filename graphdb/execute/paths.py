"""Shortest paths for a step of a plan: many pairs of ends, or all ends that some vertices reach, as arrays.

Between two known ends a search goes from both until they meet; from one end it is breadth first to all that is wanted.
Paths are read back from it, or counted over it without being enumerated.  What is not the shortest (the second
shortest, or the shortest of two edges or more) is found by deepening: all paths of one length after the other, none
entered that is too far from its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from graphdb.errors import ExecutionError
from graphdb.execute.executor import Control
from graphdb.plan.paths import PathStep
from graphdb.storage.graph import DataGraph
from graphdb.storage.pcsr import Direction, Partition

Ints = NDArray[np.int64]

_BACK: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}
_BUDGET = 1 << 20
"""Neighbours that a kernel looks at before it returns: some milliseconds."""
_ROOM = 1 << 12
"""Paths that are spelled at a time."""
_BLOCK = 1 << 16
"""Rows that are handed on together."""
_SHARED = 8
"""Pairs with an end in common from which one search from that end does for all of them."""
_FAR = np.iinfo(np.int32).max
_EXACT = 2.0**53
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Found:
    """Some rows of a step: for each the ends (vertex ids), the length, and how many paths it stands for.

    Where paths are spelled, row ``i`` has the vertices ``walks[starts[i]:starts[i + 1]]``, and the codes of its edges
    are ``codes[starts[i] - i : starts[i + 1] - i - 1]``, each seen from the vertex before it; ``cuts`` says, for each
    place between two parts of its pattern, how many of its edges are before it.
    """

    sources: Ints
    targets: Ints
    lengths: Ints
    counts: Ints | None = None
    starts: Ints = field(default_factory=lambda: np.zeros(1, np.int64))
    walks: Ints = field(default_factory=lambda: _NONE)
    codes: Ints = field(default_factory=lambda: _NONE)
    cuts: tuple[Ints, ...] = ()

    def __len__(self) -> int:
        return len(self.sources)


class Paths:
    """Runs one step over a data graph."""

    def __init__(self, graph: DataGraph, step: PathStep, control: Control) -> None:
        self._step, self._control = step, control
        self._fold = self._vertices = graph.vertices
        self._last = 0
        """The first node of the state in which paths end."""
        if step.along is None:
            self._away = graph.partition(step.labels, step.direction)
            self._back = graph.partition(step.labels, _BACK[step.direction])
        else:
            self._away, self._back = step.along.away, step.along.back
            self._last = len(step.along.pieces) * self._fold
            self._vertices += self._last
        self._longest = _FAR if step.high is None else step.high
        self._codes = {self._away: self._only(step.direction), self._back: self._only(_BACK[step.direction])}

    def _only(self, direction: Direction) -> int:
        """The code of all edges of a partition without codes."""
        return self._step.labels[0] << 1 | (direction == "in") if self._step.labels else 0

    # --- the two ways in

    def between(self, sources: Ints, targets: Ints) -> Iterator[Found]:
        """Yield the paths between pairs of ends: int64 [pairs] each, the pairs all different."""
        return self._folded(gathered(self._between(sources, targets + self._last)))

    def across(self, sources: Ints | None, targets: Ints | None) -> Iterator[Found]:
        """Yield the paths from each of some vertices to each of others: int64, unique; not both None, for all."""
        return self._folded(gathered(self._across(*self._ends(sources, targets))))

    def reached(self, sources: Ints | None, targets: Ints | None) -> Found:
        """Return the ends that are wanted (``step.only``) and that any of the others reaches, each once.

        The lengths and the other ends that come with them mean nothing.
        """
        backwards = self._step.only == "source"
        sources, targets = self._ends(sources, targets)
        starts, ends = (targets, sources) if backwards else (sources, targets)
        assert starts is not None
        flood = _Flood(self, self._back if backwards else self._away)
        flood.start(starts, np.empty(0, np.bool_), 0)
        found = flood.reached
        if self._step.apart:
            pass  # it comes to no start
        elif self._step.low == 0:
            found = np.concatenate([starts, found])
        else:
            found = np.concatenate([[start for start in starts.tolist() if self._again(flood, start)], found])
        found = np.sort(found if ends is None else np.intersect1d(found, ends)).astype(np.int64)
        found %= self._fold
        return Found(found, found, np.zeros(len(found), np.int64))

    def every(self, sources: Ints | None, targets: Ints | None) -> Iterator[Found]:
        """Yield all paths from some vertices (None: any that has one) to others (None: wherever they lead), spelled."""
        sources, targets = self._ends(sources, targets)
        flood = _Flood(self, self._back)
        if targets is None:
            flood.depths[:] = 0
            assert sources is not None
        else:
            flood.start(targets, np.empty(0, np.bool_), 0)
        starts = np.concatenate([flood.starts, flood.reached]) if sources is None else sources
        return self._folded(gathered(rows for start in starts.tolist() for rows in flood.deepened(start)))

    # --- from vertices to nodes and back

    def _ends(self, sources: Ints | None, targets: Ints | None) -> tuple[Ints | None, Ints | None]:
        """Return the nodes where paths start and end; None for any, where each vertex is one."""
        if not self._last:
            return sources, targets
        every = np.arange(self._fold)
        return every if sources is None else sources, (every if targets is None else targets) + self._last

    def _folded(self, blocks: Iterator[Found]) -> Iterator[Found]:
        """Yield rows with vertices in the place of nodes, without what leads to the last state."""
        return map(self._unstated, blocks) if self._last else blocks

    def _unstated(self, found: Found) -> Found:
        ends = replace(found, targets=found.targets - self._last, lengths=found.lengths - 1)
        if not self._step.spelled:
            return ends
        assert self._step.along is not None
        last = found.starts[1:] - 1
        pieces = np.array([*self._step.along.pieces, -1])[found.walks // self._fold]
        cuts = []
        for cut in range(self._step.along.cuts):
            before = np.append(0, np.cumsum((pieces >= 0) & (pieces <= cut)))
            cuts.append(before[found.starts[1:]] - before[found.starts[:-1]])
        return replace(
            ends,
            starts=found.starts - np.arange(len(found.starts)),
            walks=np.delete(found.walks, last) % self._fold,
            codes=np.delete(found.codes, last - np.arange(1, len(last) + 1)),
            cuts=tuple(cuts),
        )

    def _again(self, flood: _Flood, start: int) -> bool:
        """Whether one of the starts of a search is reached, too: from another one, or on a way round."""
        if self._step.direction != "both" or self._step.mode == "WALK":
            partition = self._away if self._step.only == "source" else self._back
            depths = flood.depths[partition.neighbours_of(start)]
            return bool(((depths >= 0) & (depths < self._longest)).any())
        others = np.zeros(self._vertices, np.bool_)
        others[flood.starts] = True
        others[start] = False
        alone = _Flood(self, self._away)
        alone.start(start, others, min(int(others.sum()), 1))
        return bool(others[alone.reached].any()) or any(len(found) > 0 for found in self._same(start))

    def _across(self, sources: Ints | None, targets: Ints | None) -> Iterator[Found]:
        assert self._step.single
        backwards = sources is None or (targets is not None and len(targets) < len(sources))
        starts, ends = (targets, sources) if backwards else (sources, targets)
        assert starts is not None
        wanted = np.empty(0, np.bool_)
        if ends is not None:
            wanted = np.zeros(self._vertices, np.bool_)
            wanted[ends] = True
        counted = self._step.spelled or self._step.groups
        if not counted and (self._step.direction != "both" or self._step.low == 0):
            yield from self._each(starts, wanted, 0 if ends is None else len(ends), backwards)
            return
        flood = _Flood(self, self._back if backwards else self._away)
        for start in starts.tolist():
            flood.start(start, wanted, 0 if ends is None else len(ends) - int(wanted[start]))
            reached = flood.reached
            if ends is not None:
                reached = reached[wanted[reached]]
            if ends is None or wanted[start]:
                yield from self._same(start)
            yield from flood.found(start, reached, backwards)

    def _each(self, starts: Ints, wanted: NDArray[np.bool_], members: int, backwards: bool) -> Iterator[Found]:
        """Search from each of some vertices for what is wanted, without coming back to Python in between."""
        from graphdb.execute.flood_kernels import flood_each

        step, vertices = self._step, self._vertices
        partition = self._back if backwards else self._away
        depths, queue = np.full(vertices, -1, np.int32), np.empty(vertices, np.int64)
        state, counts = np.zeros(6, np.int64), np.zeros(len(starts), np.int64)
        done = False
        while not done:
            ends, lengths = np.empty(vertices + _BLOCK, np.int64), np.empty(vertices + _BLOCK, np.int32)
            first, state[4] = int(state[0]), 0
            while not done and state[4] < _BLOCK:
                self._control.check()
                done = flood_each(
                    np.array(partition.row, np.int64),
                    partition.neighbours,
                    starts,
                    step.low,
                    step.mode != "ACYCLIC",
                    self._longest,
                    wanted,
                    members,
                    depths,
                    queue,
                    state,
                    counts,
                    ends,
                    lengths,
                    _BUDGET,
                )
            here = slice(first, int(state[0]))
            near, far = np.repeat(starts[here], counts[here]), ends[: int(state[4])].copy()
            sources, targets = (far, near) if backwards else (near, far)
            yield Found(sources, targets, lengths[: len(far)].astype(np.int64))

    def _between(self, sources: Ints, targets: Ints) -> Iterator[Found]:
        step = self._step
        same = sources == targets
        if same.any():
            for vertex in sources[same].tolist():
                yield from self._same(vertex)
            sources, targets = sources[~same], targets[~same]
        if not len(sources):
            return
        alone = step.single and not step.groups
        several = [1, 1] if alone and len(sources) < _SHARED else [len(np.unique(ends)) for ends in (sources, targets)]
        if alone and len(sources) < _SHARED * min(several):
            yield from self._meet(sources, targets)
            return
        backwards = several[1] < several[0] or not step.single
        starts, ends = (targets, sources) if backwards else (sources, targets)
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        runs = np.append(np.flatnonzero(np.diff(starts, prepend=-1)), len(starts))
        flood = _Flood(self, self._back if backwards else self._away)
        wanted = np.zeros(self._vertices if step.single else 0, np.bool_)
        for begin, end in zip(runs[:-1].tolist(), runs[1:].tolist(), strict=True):
            mine = ends[begin:end]
            if not step.single:
                flood.start(int(starts[begin]), wanted, 0)
                for source in mine.tolist():
                    yield from flood.deepened(source)
                continue
            wanted[mine] = True
            flood.start(int(starts[begin]), wanted, len(mine))
            yield from flood.found(int(starts[begin]), mine, backwards)
            wanted[mine] = False

    def _same(self, vertex: int) -> Iterator[Found]:
        """Yield the paths from a vertex to itself: of no edge, or the shortest ways round."""
        step = self._step
        if not step.single:
            flood = _Flood(self, self._back)
            flood.start(vertex, np.empty(0, np.bool_), 0)
            yield from flood.deepened(vertex)
            return
        alone = np.array([vertex])
        if step.low == 0:
            count = np.ones(1, np.int64) if step.groups and not step.spelled else None
            yield Found(alone, alone, np.zeros(1, np.int64), count, np.array([0, 1]), alone)
            return
        length = self._way_round(vertex)
        if length is None or length > self._longest:
            return
        if not step.spelled and not step.groups:
            yield Found(alone, alone, np.array([length]))
            return
        flood = _Flood(self, self._back)
        flood.start(vertex, np.empty(0, np.bool_), 0, length)
        yield from flood.of_length(vertex, length, None if step.groups else 1)

    def _way_round(self, vertex: int) -> int | None:
        """The length of the shortest path back to where it began; None where there is none."""
        from graphdb.execute.rounds import way_round

        step = self._step
        if step.mode == "ACYCLIC":
            return None
        near = self._away.neighbours_of(vertex)
        if vertex in near:
            return 1
        if step.direction == "both":
            if step.mode == "WALK":
                return 2 if len(near) else None
            if not self._away.simple and any(len(self._away.codes_of(vertex, int(other))) > 1 for other in near):
                return 2
            return way_round(self._away, vertex, self._vertices, step.high, self._control)
        # Back from the vertex, to the nearest of those that it leads to.
        wanted = np.zeros(self._vertices, np.bool_)
        wanted[near] = True
        flood = _Flood(self, self._back)
        if len(near):
            flood.start(vertex, wanted, 1)
        depths = flood.depths[near]
        return int(depths[depths >= 0].min()) + 1 if (depths >= 0).any() else None

    def _meet(self, sources: Ints, targets: Ints) -> Iterator[Found]:
        from graphdb.execute.meet_kernels import FILLED, PAIR, STATE, meet_all

        step, vertices = self._step, self._vertices
        depths = np.full((2, vertices), -1, np.int32)
        before, queues = (np.empty((2, vertices), np.int64) for _ in range(2))
        state = np.zeros(STATE, np.int64)
        lengths, starts = np.empty(len(sources), np.int32), np.zeros(len(sources) + 1, np.int64)
        there, back = (np.array(partition.row, np.int64) for partition in (self._away, self._back))
        room = (vertices + _BLOCK) if step.spelled else 0
        done, first = False, 0
        while not done:
            walks = np.empty(room, np.int64)
            while not done and (state[FILLED] <= room - vertices - 1 or not step.spelled):
                self._control.check()
                done = meet_all(
                    there,
                    self._away.neighbours,
                    back,
                    self._back.neighbours,
                    sources,
                    targets,
                    depths,
                    before,
                    queues,
                    state,
                    self._longest,
                    lengths,
                    walks,
                    starts,
                    step.spelled,
                    _BUDGET,
                )
            last = int(state[PAIR])
            here = slice(first, last)
            met = np.flatnonzero(lengths[here] >= 0) + first
            found = Found(sources[met], targets[met], lengths[met].astype(np.int64))
            if step.spelled:
                begun = np.append(starts[:-1][met], state[FILLED])
                begun[0:1] = 0
                yield self.coded(found, begun, walks[: int(state[FILLED])])
            else:
                yield found
            first, state[FILLED], starts[last] = last, 0, 0

    def coded(self, found: Found, starts: Ints, walks: Ints) -> Found:
        """Add walks to rows, and which edges they take: the first of parallel ones."""
        from graphdb.execute.flood_kernels import first_codes

        codes = np.empty(len(walks) - len(found), np.int64)
        away = self._away
        first_codes(np.array(away.row, np.int64), away.neighbours, self._codes[away], starts, walks, codes)
        return Found(found.sources, found.targets, found.lengths, None, starts, walks, codes)


class _Flood:
    """A breadth-first search from one vertex along a partition, one start after the other."""

    def __init__(self, paths: Paths, partition: Partition) -> None:
        self._paths, self._partition = paths, partition
        self._row = np.array(partition.row, np.int64)
        self.depths = np.full(paths._vertices, -1, np.int32)
        self._before, self._queue = (np.empty(paths._vertices, np.int64) for _ in range(2))
        self._started = self._tail = 0

    @property
    def starts(self) -> Ints:
        """Where it began."""
        return self._queue[: self._started]

    @property
    def reached(self) -> Ints:
        """The vertices that it has come to, but for the starts: nearest first."""
        return self._queue[self._started : self._tail]

    def start(self, start: int | Ints, wanted: NDArray[np.bool_], missing: int, longest: int = _FAR) -> None:
        """Search from a vertex or several until so many that are wanted are found, or there are no more."""
        from graphdb.execute.flood_kernels import flood, forget

        forget(self.depths, self._queue, self._tail)
        starts = np.atleast_1d(np.asarray(start, np.int64))
        self._started = len(starts)
        self.depths[starts], self._queue[: len(starts)] = 0, starts
        state = np.array([0, len(starts), missing], np.int64)
        longest = min(longest, self._paths._longest)
        ended = len(wanted) > 0 and missing == 0
        while not ended:
            self._paths._control.check()
            ended = flood(
                self._row,
                self._partition.neighbours,
                self.depths,
                self._before,
                self._queue,
                state,
                wanted,
                longest,
                _BUDGET,
            )
        self._tail = int(state[1])

    def found(self, start: int, ends: Ints, backwards: bool) -> Iterator[Found]:
        """Yield the shortest paths between the start and some vertices, where it has come to them."""
        step = self._paths._step
        ends = ends[self.depths[ends] >= 0]
        lengths = self.depths[ends].astype(np.int64)
        if step.groups and step.spelled:
            yield from self._spelled(start, ends, backwards)
            return
        starts = np.full(len(ends), start)
        sources, targets = (ends, starts) if backwards else (starts, ends)
        if step.groups:
            yield Found(sources, targets, lengths, self._ways(start)[ends])
        elif not step.spelled:
            yield Found(sources, targets, lengths)
        else:
            yield self._read(Found(sources, targets, lengths), ends, backwards)

    def _read(self, found: Found, ends: Ints, backwards: bool) -> Found:
        from graphdb.execute.flood_kernels import read_back

        starts = np.append(0, np.cumsum(found.lengths + 1))
        walks = np.empty(int(starts[-1]), np.int64)
        read_back(self._before, ends, starts, walks)
        if backwards:
            at = np.repeat(starts[1:] + starts[:-1] - 1, found.lengths + 1) - np.arange(len(walks))
            walks = walks[at]
        return self._paths.coded(found, starts, walks)

    def _ways(self, start: int) -> Ints:
        """How many shortest paths lead to each vertex."""
        from graphdb.execute.flood_kernels import count_ways

        ways = np.zeros(self._paths._vertices)
        ways[start] = 1
        for at in range(0, self._tail, _ROOM):
            self._paths._control.check()
            end = min(at + _ROOM, self._tail)
            count_ways(self._row, self._partition.neighbours, self.depths, self._queue, at, end, ways)
        if ways.max() >= _EXACT:
            raise ExecutionError("there are more shortest paths between two vertices than can be counted exactly")
        return ways.astype(np.int64)

    def _spelled(self, start: int, ends: Ints, backwards: bool) -> Iterator[Found]:
        """Yield all shortest paths, spelled out from each end back to the start."""
        partition = self._paths._away if backwards else self._paths._back
        for end in ends.tolist():
            for walks, edges in self._spell(partition, end, int(self.depths[end]), None):
                if backwards:
                    yield _rows(walks, edges)
                else:
                    yield _rows(walks[:, ::-1], edges[:, ::-1] ^ 1)

    # --- paths of a given length to the start, which the search goes back from

    def of_length(self, source: int, length: int, most: int | None) -> Iterator[Found]:
        """Yield the paths of a length from a vertex to the start, at most so many."""
        step = self._paths._step
        count = 0
        for walks, edges in self._spell(self._paths._away, source, length, most):
            count += len(walks)
            if step.spelled:
                yield _rows(walks, edges)
        if not step.spelled and count:
            ends = np.array([source]), self._queue[:1].copy()
            yield Found(*ends, np.array([length]), np.array([count]))

    def deepened(self, source: int) -> Iterator[Found]:
        """Yield the paths from a vertex to the start, shortest first, until the step has as many as it wants."""
        step, depth = self._paths._step, int(self.depths[source])
        if depth < 0:
            return
        length, left = max(depth, step.low), step.count
        self._longer = True
        whole = step.groups or step.ties
        while left > 0 and self._longer and length <= self._paths._longest:
            found = 0
            for rows in self.of_length(source, length, None if whole else left):
                found += len(rows) if rows.counts is None else int(rows.counts.sum())
                yield rows
            left -= min(found, 1) if step.groups else found
            length += 1

    _longer = True

    def _spell(self, partition: Partition, start: int, length: int, most: int | None) -> Iterator[tuple[Ints, Ints]]:
        from graphdb.execute import spell_kernels as kernels

        paths = self._paths
        mode = {"WALK": kernels.WALK, "TRAIL": kernels.TRAIL, "SIMPLE": kernels.SIMPLE, "ACYCLIC": kernels.ACYCLIC}
        row, only = np.array(partition.row, np.int64), paths._codes[partition]
        nodes, vertices, codes = (np.empty(length + 1, np.int64) for _ in range(3))
        places, state = np.empty((length + 1, 3), np.int64), np.zeros(3, np.int64)
        nodes[0], vertices[0], places[0, 0] = start, start % paths._fold, -1
        room = _ROOM if most is None else min(most, _ROOM)
        walks, edges = np.empty((room, length + 1), np.int64), np.empty((room, length), np.int64)
        done = False
        while not done and (most is None or most > 0):
            paths._control.check()
            done = kernels.spell(
                row,
                partition.neighbours,
                only,
                self.depths,
                length,
                mode[paths._step.mode],
                paths._fold,
                nodes,
                vertices,
                codes,
                places,
                state,
                walks,
                edges,
                _BUDGET,
            )
            full = int(state[kernels.FOUND])
            if full and (done or full == room):
                if most is not None:
                    full = min(full, most)
                    most -= full
                yield walks[:full].copy(), edges[:full].copy()
                state[kernels.FOUND] = 0
        self._longer = not done or bool(state[kernels.LONGER])


def _rows(walks: Ints, edges: Ints) -> Found:
    """Paths of one length as rows."""
    count, width = walks.shape
    starts = np.arange(0, count * width + 1, width)
    length = np.full(count, width - 1)
    return Found(walks[:, 0].copy(), walks[:, -1].copy(), length, None, starts, walks.reshape(-1), edges.reshape(-1))


def gathered(blocks: Iterable[Found]) -> Iterator[Found]:
    """Hand small blocks on together."""
    waiting: list[Found] = []
    rows = 0
    for block in blocks:
        if len(block):
            waiting.append(block)
            rows += len(block) + len(block.walks) // 4
        if rows >= _BLOCK:
            yield _joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(blocks: list[Found]) -> Found:
    if len(blocks) == 1:
        return blocks[0]

    def all_of(part: Callable[[Found], Ints]) -> Ints:
        return np.concatenate([part(block) for block in blocks])

    counts = None
    if any(block.counts is not None for block in blocks):
        counts = all_of(lambda block: np.ones(len(block), np.int64) if block.counts is None else block.counts)
    starts = np.append(0, np.cumsum(all_of(lambda block: np.diff(block.starts))))
    return Found(
        all_of(lambda block: block.sources),
        all_of(lambda block: block.targets),
        all_of(lambda block: block.lengths),
        counts,
        starts,
        all_of(lambda block: block.walks),
        all_of(lambda block: block.codes),
    )
