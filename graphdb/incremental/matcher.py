"""Standing patterns: which of their matches a batch of changed edges adds, and which it takes away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphdb.common.errors import ExecutionError
from graphdb.incremental import frame
from graphdb.incremental.changes import NO_VERTICES, CandidateChange, Changes, Updates, VertexChanges
from graphdb.incremental.delta_plan import DeltaPlan
from graphdb.incremental.induced import EVERY, Part, is_induced, parts, refuse_induced
from graphdb.incremental.lists import Lists
from graphdb.incremental.patterns import needs, refuse, with_edges
from graphdb.incremental.program import make_program
from graphdb.incremental.relations import ITSELF, Relation, Relations
from graphdb.incremental.searches import BUDGET, FEWEST, Search, Searches, Take
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.executor import Overran
from graphdb.storage.graph.source import TripleSource

if TYPE_CHECKING:
    from graphdb.gpu.code.launch import Device
    from graphdb.incremental.device.engine import DeviceMatching

Ints = NDArray[np.int64]

MOST_REUSED = 1 << 16
"""Updates of a batch that are written to memory that the next batch has, too."""


class _Alone:
    """Is entered by one batch at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise ExecutionError(
                "a batch is under way on this matcher", hint="end it, or roll it back, before the next one"
            )

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class IncrementalMatcher:
    """Matches standing patterns incrementally.

    Parameters
    ----------
    source
        The data graph at the beginning.
    patterns
        What is matched.  ``outputs`` are what :class:`Changes` have.
    conditions
        By pattern, by its vertices, what their candidates are known by: equal ones change together
        (:class:`CandidateChange`).  None, for all or for one: by the candidates that they have now.
    threads
        How many search a batch of some hundred changed edges or more.
    device
        Opens a device that searches batches which are expected to take longer on the CPU; None where there is none.
    pinned
        Whether it searches all batches.
    counted
        Whether matches are only counted, as far as they have the same outputs (:class:`Changes`).

    Raises
    ------
    NotSupportedError
        Where :func:`.patterns.refuse` does: of more than 64 vertices, a vertex without edges and candidates, edge
        tests, or a limit; and where :func:`.induced.refuse_induced` does.
    ExecutionError
        Where a batch is applied while another one is under way (:meth:`batch`).
    """

    def __init__(
        self,
        source: TripleSource,
        patterns: Sequence[PatternGraph],
        conditions: Sequence[Sequence[Hashable]] | None = None,
        threads: int = 1,
        device: Callable[[], Device | None] | None = None,
        *,
        pinned: bool = False,
        counted: bool = False,
    ) -> None:
        self._threads, self._counted = threads, counted
        for pattern in patterns:
            refuse(pattern)
            refuse_induced(pattern, source.literals, source.type_label)
        relations = Relations(source)
        self._sets: list[list[int]] = []
        self._own: list[list[Relation]] = []
        self._patterns = [with_edges(pattern) for pattern in patterns]
        self._graphs, self._parts = list(self._patterns), dict[int, Part]()
        """What is searched: the patterns, and behind them further parts of those with INDUCED clauses."""
        for number, pattern in enumerate(self._patterns):
            for part in parts(number, pattern) if is_induced(pattern) else ():
                if part.seed is None:
                    self._graphs[number], self._parts[number] = part.pattern, part
                else:
                    self._parts[len(self._graphs)] = part
                    self._graphs.append(part.pattern)
        if self._parts:
            relations.numbers.setdefault(EVERY, len(relations.numbers))
        for number, pattern in enumerate(self._graphs):
            owner = self._parts[number].owner if number in self._parts else number
            known = conditions[owner] if conditions else [None] * len(pattern.vertices)
            sets = [relations.set_of(v.candidates, by) for v, by in zip(pattern.vertices, known, strict=True)]
            self._sets.append(sets)
            self._own.append([relations.of(edge, sets) for edge in pattern.edges])
        own = zip(self._graphs, self._own, strict=True)
        self._lists = Lists(relations, [needs(pattern, found, relations) for pattern, found in own])
        self._common = {
            (a, b)
            for sets in self._sets
            for a, b in combinations(sorted(sets), 2)
            if a == b or not relations.disjoint(a, b)
        }
        """Candidate sets that have vertices in common, or had."""
        self._alone = _Alone()
        self._space: Ints = np.empty((0, 4), np.int64)
        """What the updates of batches are written to, one after the other."""
        self._program()
        self._device: DeviceMatching | None = None
        if device is not None and not self._parts:
            from graphdb.incremental.device.engine import DeviceMatching

            self._device = DeviceMatching(device, self._lists, self._put, threads, pinned=pinned)

    def _program(self) -> None:
        """Make the programs of all patterns."""
        pairs = []
        for row, (pattern, own) in enumerate(zip(self._graphs, self._own, strict=True)):
            apart = partial(self._apart, row)
            part = self._parts.get(row)
            counted, seed = self._counted and part is None, None if part is None else part.seed
            make = partial(make_program, pattern, own, self._lists, self._sets[row], apart, counted=counted, seed=seed)
            full = plain = Search(make(plain=True), self._lists, row, self._threads)
            if plain.program.relations:
                full = Search(make(plain=False), self._lists, row, self._threads)
            pairs.append((plain, full))
        self._programs = [plain.program for plain, _ in pairs]
        self._searches = Searches(pairs, self._lists, self._threads)

    def _apart(self, pattern: int, left: int, right: int) -> bool:
        """Whether two vertices of a pattern never had a candidate in common."""
        a, b = sorted((self._sets[pattern][left], self._sets[pattern][right]))
        return (a, b) not in self._common

    @property
    def bytes(self) -> int:
        """What its neighbour lists and candidate tables take of memory."""
        return self._lists.bytes

    def delta_plans(self, pattern: int = 0) -> tuple[DeltaPlan, ...]:
        """Return the delta plans of a pattern, each in the order that is expected to bind the fewest vertices.

        Pattern edges that a symmetry exchanges have one in common.
        """
        return tuple(orders[0] for orders in self._programs[pattern].plans)

    @property
    def place(self) -> str:
        """Where the latest batch was searched: ``"cpu"`` or ``"cuda:0"`` and so on."""
        return "cpu" if self._device is None else self._device.place

    def apply(
        self, updates: Updates, check: Callable[[], None] = lambda: None, vertices: VertexChanges = NO_VERTICES
    ) -> list[Changes]:
        """Apply a batch and return its changes, by pattern; ``check`` is called every few milliseconds, and may raise.

        After an error the graph is as before.
        """
        with self.batch(updates, check, vertices) as changes:
            return changes

    @contextmanager
    def batch(
        self, updates: Updates, check: Callable[[], None] = lambda: None, vertices: VertexChanges = NO_VERTICES
    ) -> Iterator[list[Changes]]:
        """Stage a batch and yield its changes, by pattern; the end commits it, an exception rolls it back."""
        found: list[list[Ints]] = [[] for _ in self._patterns]
        with self._staged(updates, vertices):
            self._find(check, lambda number, rows: found[number].append(rows))
            yield [self._outer(number, self._whole(number, rows)) for number, rows in enumerate(found)]

    def stream(
        self,
        updates: Updates,
        take: Callable[[int, Changes], None],
        check: Callable[[], None] = lambda: None,
        vertices: VertexChanges = NO_VERTICES,
    ) -> None:
        """Apply a batch, and hand its changes over by parts of some ten thousand rows, with their pattern's number.

        Raises
        ------
        Overran
            ``check`` did: then the batch is applied all the same, and the other changes are not found.
        """
        overran = None
        with self._staged(updates, vertices):
            try:
                self._find(check, lambda number, rows: take(number, self._outer(number, rows)))
            except Overran as error:
                overran = error
        if overran is not None:
            raise overran

    @contextmanager
    def _staged(self, updates: Updates, vertices: VertexChanges) -> Iterator[None]:
        """Stage a batch; the end commits it, an exception rolls it back."""
        lists, version = self._lists, frame.OLD
        with self._alone:
            lists.vertices.begin()
            try:
                self._stage(updates, vertices)
                yield
                version = frame.NEW
            finally:
                self._end(version)
                if version == frame.OLD:
                    lists.vertices.roll_back()

    def _find(self, check: Callable[[], None], take: Take) -> None:
        """Find what the staged batch changes, on the device if that is expected to be sooner."""

        def chosen(number: int, rows: Ints) -> None:
            part = self._parts.get(number)
            if part is None:
                take(number, rows)
            elif len(own := part.choose(self._lists, self._own[number], rows, counted=self._counted)):
                take(part.owner, own)

        if self._device is None:
            self._searches.rows(check, chosen)
        else:
            self._device.rows(self._searches, check, take)

    def _whole(self, number: int, parts: Sequence[Ints]) -> Ints:
        """Return the rows of a pattern, of their parts."""
        columns = len(self._patterns[number].outputs) + 1 + self._counted
        return np.concatenate(parts) if parts else np.empty((0, columns), np.int64)

    def _counting(self, check: Callable[[], None]) -> Callable[[], Ints]:
        """Begin to count what the staged batch changes, and return what waits for it."""
        if self._device is not None:
            return self._device.counts(self._searches, check)
        found = self._searches.counts(check)
        return lambda: found

    def _end(self, version: int) -> None:
        """Commit the staged batch, or roll it back."""
        from graphdb.incremental.kernels import batch_kernels as kernels

        if self._device is not None:
            self._device.end(version)
        kernels.finish(self._lists.address, self._lists.like, version)

    def _stage(self, updates: Updates, changed: VertexChanges) -> None:
        """Put a batch into the new version."""
        from graphdb.incremental.kernels import batch_kernels as kernels

        lists, vertices = self._lists, self._lists.vertices
        cells, like, old = lists.address, lists.like, vertices.sizes
        sizes = tuple(a if b is None else b for a, b in zip(old, (changed.resources, changed.literals), strict=True))
        if not changed.candidates and sizes == old:
            self._put_somewhere(self._rows(updates)[0])
            return
        self._catch_up()
        vertices.grow(*sizes)
        fresh = [np.empty(0, np.int64)]
        for change in changed.candidates:
            candidates = self._sets[change.pattern][change.vertex]
            if not candidates:
                raise ValueError("all vertices are candidates of a pattern vertex without a condition")
            lost = vertices.inner(np.asarray(change.lost, np.int64))
            concerned, at = lists.relations.at(candidates), 0
            while at < len(lost):
                at = kernels.withdraw(cells, like, lost, concerned, at)
                if at < len(lost):
                    lists.reserve()
            vertices.leave(candidates, lost)
            fresh.append(vertices.join(candidates, np.asarray(change.gained, np.int64)))
            lists.extend()
        lists.extend()
        self._compare(changed.candidates)
        rows, _ = self._rows(updates)
        if lists.relations.reflexive:
            own = np.concatenate(fresh)
            label = np.full(len(own), lists.number_of(ITSELF))
            rows = np.concatenate([rows, np.column_stack([label, own, own, np.ones(len(own), np.int64)])])
        self._put(rows)

    def _compare(self, changed: Sequence[CandidateChange]) -> None:
        """Make programs anew where candidate sets that had no vertex in common now have some."""
        vertices, common = self._lists.vertices, len(self._common)
        for change in changed:
            own = self._sets[change.pattern][change.vertex]
            gained = vertices.inner(np.asarray(change.gained, np.int64))
            for other in {number for sets in self._sets if own in sets for number in sets} - {own}:
                if vertices.any_in(gained, own, other):
                    self._common.add((min(own, other), max(own, other)))
        if len(self._common) > common:
            self._program()

    def count(self, updates: Updates, ends: ArrayLike, check: Callable[[], None] = lambda: None) -> Ints:
        """Apply batches one after the other, and count the matches that each adds and takes away.

        Parameters
        ----------
        updates
            Those of all batches.
        ends
            Ascending integers [batches]: where each ends.
        check
            Called every few milliseconds.  Where it raises, the batches before the one staged last are committed.

        Returns
        -------
        int64 [batches, patterns, 2]
            Matches added and removed.
        """
        with self._alone:
            rows, last = self._rows(updates, np.ascontiguousarray(ends, np.int64))
            if self._parts:
                return self._count_rows(rows, last, check)
            several = self._threads > 1 or self._device is not None
            if (several and len(rows) >= FEWEST * len(last)) or (self._device is not None and self._device.follows):
                return self._count_each(rows, last, check)
            return self._count_all(rows, last, check)

    def _count_all(self, rows: Ints, last: Ints, check: Callable[[], None]) -> Ints:
        """Count what batches change, one after the other, on one thread."""
        from graphdb.incremental.kernels import batch_kernels as kernels

        counts = np.zeros((len(last), len(self._patterns), 2), np.int64)
        state = np.zeros(3, np.int64)
        cells, like = self._lists.address, self._lists.like
        result = frame.YIELD
        self._searches.reserve()
        try:
            while result != frame.DONE:
                check()
                result = kernels.count_batches(cells, like, self._searches.addresses, rows, last, counts, state, BUDGET)
                if result == kernels.SPACE:
                    self._lists.reserve()
        finally:
            if result != frame.DONE:
                kernels.finish(cells, like, frame.OLD)
        return counts

    def _count_each(self, rows: Ints, ends: Ints, check: Callable[[], None]) -> Ints:
        """Count what batches change that are worth several threads, or a device, which searches one while the next is
        staged.
        """
        counts = np.zeros((len(ends), len(self._patterns), 2), np.int64)
        before: Callable[[], Ints] | None = None
        for number, (begin, end) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
            version = frame.OLD
            try:
                alone = self._device is not None and self._device.takes(end - begin)
                if not alone:
                    self._put(rows[begin:end])
                if before is not None:
                    counts[number - 1] = before()
                if alone:
                    self._put_somewhere(rows[begin:end])
                before = self._counting(check)
                if end == ends[-1]:
                    counts[number], before = before(), None
                version = frame.NEW
            finally:
                self._end(version)
        return counts

    def _count_rows(self, rows: Ints, ends: Ints, check: Callable[[], None]) -> Ints:
        """Count what batches change where induced matches are chosen from what is found."""
        counts = np.zeros((len(ends), len(self._patterns), 2), np.int64)
        for number, (begin, end) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):

            def add(pattern: int, found: Ints, own: Ints = counts[number]) -> None:
                numbers = found[:, -1] if self._counted else np.ones(len(found), np.int64)
                own[pattern] += [numbers[found[:, 0] == version].sum() for version in (frame.NEW, frame.OLD)]

            version = frame.OLD
            try:
                self._put(rows[begin:end])
                self._find(check, add)
                version = frame.NEW
            finally:
                self._end(version)
        return counts

    def _put_somewhere(self, rows: Ints) -> None:
        """Stage changed edges on the device alone where it takes them, else in the lists."""
        device = self._device
        if device is None or not device.takes(len(rows)) or not device.stage(rows):
            self._put(rows)

    def _catch_up(self) -> None:
        """Have the lists be as the device's, which may have had batches alone."""
        from graphdb.incremental.kernels import batch_kernels as kernels

        if self._device is not None and (rows := self._device.behind()) is not None:
            self._put(rows)
            kernels.finish(self._lists.address, self._lists.like, frame.NEW)

    def _put(self, rows: Ints) -> None:
        """Put changed edges into the new version, and write down which versions they are in."""
        from graphdb.incremental.kernels import batch_kernels as kernels

        self._catch_up()
        if self._device is not None:
            self._device.updates = len(rows)
        cells, like, at = self._lists.address, self._lists.like, 0
        while at < len(rows):
            at = kernels.stage(cells, like, rows, at, len(rows))
            if at < len(rows):
                self._lists.reserve()
        kernels.note_versions(cells, like)

    def _rows(self, updates: Updates, ends: Ints | None = None) -> tuple[Ints, Ints]:
        """Return updates as kernels read them, until the next ones, and where their batches end, which do at ``ends``.

        What concerns no pattern is left out.  Raises ValueError where an end is no vertex.
        """
        from graphdb.incremental.kernels.batch_kernels import number_updates

        labels, sources, targets = (np.ascontiguousarray(column, np.int64) for column in updates[:3])
        inserted, numbers = np.ascontiguousarray(updates.inserted, bool), self._lists.vertices.of_resources
        count = len(inserted)
        if count > MOST_REUSED:
            rows = np.empty((count + 1, 4), np.int64)  # one is written too many
        else:  # memory that the process has: new pages take longer than all else here
            if count >= len(self._space):
                self._space = np.empty((max(count + 1, 2 * len(self._space)), 4), np.int64)
            rows = self._space[: count + 1]
        last = np.array([count], np.int64) if ends is None else ends.copy()
        label = int(labels[0]) if count else 0  # in most streams all have one
        known = self._lists.number_of(label) if count else 0
        written = number_updates(labels, sources, targets, inserted, label, known, numbers, rows, last)
        if written >= 0:
            own = rows[:written]
            return own if self._device is None else own.copy(), last  # it has them while the next ones are written
        rows[:count, 0] = self._lists.number(labels)
        rows[:count, 1], rows[:count, 2] = (self._lists.vertices.inner(column) for column in (sources, targets))
        rows[:count, 3] = inserted
        wanted = (rows[:count, 1:3] != 0).all(axis=1)
        return rows[:count][wanted], np.concatenate([[0], np.cumsum(wanted)])[[count] if ends is None else ends]

    def _outer(self, number: int, rows: Ints) -> Changes:
        """Return the changes of a pattern, as the data graph numbers vertices and labels."""
        pattern = self._patterns[number]
        vertices = {vertex.name for vertex in pattern.vertices}
        for column, name in enumerate(pattern.outputs, 1):
            if name in vertices:
                rows[:, column] = self._lists.vertices.outer(rows[:, column])
            else:
                rows[:, column] = 2 * self._lists.labels[rows[:, column] >> 1] + (rows[:, column] & 1)
        return Changes(rows[rows[:, 0] == frame.NEW, 1:], rows[rows[:, 0] == frame.OLD, 1:])
