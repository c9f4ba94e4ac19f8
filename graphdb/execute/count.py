"""Runs a counting plan on the CPU: weights along edges, loops over cores, sums; exact whatever the size.

Work is dealt out to threads in pieces, the heaviest first; the caller's thread watches the clock meanwhile.  Numbers
are int64 while they fit.  A part whose numbers do not is counted again modulo as many primes as its greatest
conceivable count needs, and the Chinese remainder theorem gives that count.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.cliques import count_cliques
from graphdb.execute.exact import Overflow, exactly
from graphdb.execute.executor import Control
from graphdb.plan.counting import CountingPlan
from graphdb.plan.nested import Bundle, Closed, Instruction, Load, Local, Meet, Part, Tally, Through, Total, Weight
from graphdb.plan.physical import CliqueCount
from graphdb.plan.quotients import Member

Ints = NDArray[np.int64]

_PIECES = 64
"""Pieces per thread that the work is cut into."""
_SMALL = 100_000
"""Work expected to be less than this is not dealt out."""
_ROOM = 1 << 22
"""Ids that local lists may hold, per set of lists and thread; what does not fit is read where it lies."""
LIMIT = float(1 << 61)
"""Numbers of matches beyond this are not kept in int64."""
_CLOSED = 1 << 24
"""Ids that closed lists may hold; longer ones are not made."""


_NARROW = (1 << 31) - 1
"""Weights up to this are read as 32 bits."""


def count_matches(plan: CountingPlan, control: Control, threads: int, memory_limit: int | None = None) -> int | None:
    """Count; None where the vectors do not fit the memory limit.

    Raises
    ------
    QueryTimeout, ExecutionError
        When the time is over, and when cancelled.
    """
    run = _started(plan, control, threads, memory_limit)
    if run is None:
        return None
    totals: dict[Part, int] = {}
    shares = _Shares(plan, run)
    result = 0
    for term in plan.terms:
        started = time.monotonic()
        product = term.coefficient
        for part in term.parts:
            if part not in totals:
                shares.begin(part)
                greatest = _greatest(plan, term.quotient.filters, term.quotient.links, part)
                totals[part] = exactly(partial(run.total, part), greatest)
            product *= totals[part]
        result += product
        control.term_seconds.append(time.monotonic() - started)
    control.report(1.0)
    return result


def count_by_vertex(
    plan: CountingPlan, control: Control, threads: int, memory_limit: int | None = None
) -> tuple[Ints, Ints] | None:
    """The vertices that the plan's root is bound to, and the matches of each; None where numbers or memory do not do.

    Raises what :func:`count_matches` does.
    """
    run = _started(plan, control, threads, memory_limit)
    if run is None:
        return None
    found = np.zeros(plan.vertices, np.int64)
    shares = _Shares(plan, run)
    greatest = 0.0
    try:
        for term in plan.terms:
            factor = term.coefficient
            for part in term.parts[1:]:
                shares.begin(part)
                factor *= run.total(part, 0)
            shares.begin(term.parts[0])
            values = run.by_root(term.parts[0])
            greatest += abs(factor) * float(values.max(initial=0))
            if greatest >= LIMIT:
                return None
            found += factor * values
    except Overflow:
        return None
    control.report(1.0)
    vertices = np.flatnonzero(found)
    return vertices, found[vertices]


class _Shares:
    """Which share of a plan's work each part is expected to be."""

    def __init__(self, plan: CountingPlan, run: _Run) -> None:
        self._run, self._done = run, 0.0
        self._whole = max(sum(part.cost for part in {part for term in plan.terms for part in term.parts}), 1.0)

    def begin(self, part: Part) -> None:
        """A part that was not counted yet is next."""
        begin, self._done = self._done, min(self._done + part.cost / self._whole, 1.0)
        self._run.expect(part, begin, self._done)


def _started(plan: CountingPlan, control: Control, threads: int, memory_limit: int | None) -> _Run | None:
    spare = 1 << 62
    if memory_limit is not None:
        left = memory_limit - plan.shared_bytes
        threads = min(threads, left // plan.worker_bytes) if plan.worker_bytes else threads
        if left < 0 or threads < 1:
            return None
        # What the vectors leave is for lists that are kept because it is quicker, never because it must be.
        spare = left - threads * plan.worker_bytes
    control.threads = threads
    return _Run(plan, control, threads, spare)


def _greatest(plan: CountingPlan, filters: tuple[Any, ...], links: tuple[Any, ...], part: Part) -> int:
    """More than a part of this pattern can count: every vertex anything, every pair all data edges there are."""
    bound = max(int(plan.vertices), 2) ** len(filters) * max(part.multiple, 1)
    most = 1
    for partition in plan.partitions.values():
        if partition.code_offsets is not None:
            most = max(most, int(np.diff(partition.code_offsets).max(initial=1)))
    return int(bound * most ** (sum(len(members) for _, _, members in links) + len(filters) * 8) + 1)


class _Run:
    """One run of one plan: the weights found so far, and the threads' common flags."""

    def __init__(self, plan: CountingPlan, control: Control, threads: int, spare: int) -> None:
        from graphdb.execute import count_kernels, nested_kernels

        self._kernels, self._nested_kernels = count_kernels, nested_kernels
        self._plan, self._control, self._threads = plan, control, threads
        # Ids that closed lists, and that all local lists together may hold: half of the spare bytes each.
        self._room = spare // (2 * np.dtype(plan.dtype).itemsize)
        self._flags = np.zeros(2, np.int64)
        self._like: NDArray[Any] = np.empty(0, plan.dtype)
        self._relations = {relation: row for row, relation in enumerate(plan.partitions)}
        rows = [partition.row for partition in plan.partitions.values()]
        self._partitions = np.array(rows, np.int64).reshape(len(rows), 6)
        self._share, self._to, self._expected = 0.0, 1.0, 1.0
        self._messages: dict[tuple[Bundle, Weight, int, int], tuple[Ints, Ints | None]] = {}
        self._pairs: dict[Closed, tuple[tuple[int, int, int], Any]] = {}
        self._weights: dict[tuple[Weight, int, int], tuple[Ints, Ints | None]] = {}

    def total(self, part: Part, modulus: int) -> int:
        """The count of one part (modulo a prime)."""
        if part.clique:
            graph = self._plan.oriented[part.root_bundles[0].members[0].relation]
            control, begin, end = self._control, self._share, self._to
            told = replace(control, progress=lambda share: control.report(begin + (end - begin) * share), _share=0.0)
            return count_cliques(CliqueCount(part.clique, graph), self._threads, told) * part.multiple
        self._flags[:] = 0
        roots = self._roots(part)
        if part.levels:
            found = self._nested(part, roots, self._values(part.root, roots, modulus), modulus, np.empty(0, np.int64))
        else:
            found = self._sum(part.root, roots, modulus)
        self._check_overflow()
        return found * part.multiple

    def by_root(self, part: Part) -> Ints:
        """The count of one part for every vertex that its root may be bound to: int64 [vertices]."""
        self._flags[:] = 0
        roots = self._roots(part)
        root = self._values(part.root, roots, 0)
        found = np.zeros(self._plan.vertices, np.int64)
        if part.levels:
            self._nested(part, roots, root, 0, found)
        else:
            found[roots] = root[roots] if len(root) else 1
        if float(found.max(initial=0)) * part.multiple >= LIMIT:
            self._flags[1] = 1
        self._check_overflow()
        return found * part.multiple

    def _check_overflow(self) -> None:
        if self._flags[1]:
            self._messages.clear()
            self._weights.clear()
            raise Overflow

    def _sum(self, root: Weight, roots: Ints, modulus: int) -> int:
        """The sum of a root's weight.

        Its last factor is multiplied in wider numbers: the root's products are the first to pass 64 bits, and to count
        again modulo primes takes several times as long.
        """
        last: Ints | None = None
        if root.messages and not modulus:
            *others, (bundle, child) = root.messages
            last = self._message(bundle, child, roots, modulus)
            root = replace(root, messages=tuple(others))
        values = self._values(root, roots, modulus)
        if last is None and not len(values):
            return len(roots)
        sums = np.zeros(6, np.int64)
        if last is None or not len(values):
            self._kernels.add_up(roots, values if last is None else last, sums)
        else:
            self._kernels.add_products(roots, values, last, sums)
        low, low_carry, middle, middle_carry, high, high_carry = map(int, sums)
        return low + (low_carry << 32) + (middle + (middle_carry << 32) << 31) + (high + (high_carry << 32) << 62)

    # --- weights

    def _roots(self, part: Part) -> Ints:
        """What the root ranges over: its candidates, or all vertices that have the rarest of its edges."""
        if part.root.filters:
            return self._candidates(part.root)
        members = [bundle.members[0] for bundle in part.root_bundles] + list(part.root.loops)
        return min((self._partition(member).keys for member in members), key=len)

    def _candidates(self, weight: Weight) -> Ints:
        sets = sorted((self._plan.filters[number] for number in weight.filters), key=len)
        return reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), sets)

    def _partition(self, member: Member) -> Any:
        return self._plan.partitions[member.relation]

    def _values(self, weight: Weight, support: Ints | None, modulus: int) -> Ints:
        """The weight of every vertex (of the support, where there is one): int64 [vertices]; empty for 1."""
        if weight.is_one:
            return np.empty(0, np.int64)
        key = (weight, modulus, id(support))
        if key in self._weights:
            return self._weights[key][0]
        if weight.filters:
            support = self._candidates(weight)
        messages = [self._message(bundle, child, support, modulus) for bundle, child in weight.messages]
        if support is None:
            members = [bundle.members[0] for bundle, _ in weight.messages] + list(weight.loops)
            support = min((self._partition(member).keys for member in members), key=len)
        if len(messages) == 1 and not weight.filters and not weight.loops:
            values = messages[0]
        else:
            values = np.zeros(self._plan.vertices, np.int64)
            values[support] = 1
            if weight.loops:
                loops = np.array([self._member(member) for member in weight.loops], np.int64)
                shared = (modulus, self._flags, self._like)
                self._kernels.loop_worth(loops, self._partitions, support, values, *shared)
            for message in messages:
                self._kernels.multiply(support, values, message, modulus, self._flags)
        self._weights[key] = (values, support)
        return values

    def _message(self, bundle: Bundle, child: Weight, support: Ints | None, modulus: int) -> Ints:
        """The sum of the child's weight over every vertex's neighbours: int64 [vertices]."""
        partition = self._partition(bundle.members[0])
        if support is partition.keys:  # that is everything
            support = None
        key = (bundle, child, modulus, id(support))
        if key in self._messages:
            return self._messages[key][0]
        reached: Ints | None = None
        entries = len(partition.neighbours)
        expected = entries
        row = self._relations[bundle.members[0].relation]
        if support is not None:
            expected = int(len(support) * entries / max(len(partition.keys), 1)) + 1
            if expected * 4 < entries and not child.is_one and not child.filters:
                marks = np.zeros(self._plan.vertices, bool)
                self._kernels.reach(row, self._partitions, support, marks, self._like)
                reached = np.flatnonzero(marks)
        weights = self._values(child, reached, modulus)
        over = partition.keys if support is None else support
        out = np.zeros(self._plan.vertices, np.int64)
        bundles, members = self._tables([bundle])
        fixed = (weights, out, modulus, self._flags, self._like)

        narrow = bundle.plain and not modulus and len(weights) and expected > len(weights) and weights.max() <= _NARROW
        small = weights.astype(np.int32) if narrow else None

        def send(begin: int, end: int, _: int) -> None:
            if small is None:
                self._kernels.send(bundles, members, self._partitions, over, begin, end, *fixed)
            else:
                shared = (small, out, self._flags, self._like)
                self._kernels.send_narrow(row, self._partitions, over, begin, end, *shared)

        pieces = self._threads * _PIECES if expected >= _SMALL else 1
        self._deal(send, [len(over) * i // pieces for i in range(pieces + 1)], expected)
        self._messages[key] = (out, support)
        return out

    def _member(self, member: Member) -> tuple[int, int]:
        return self._relations[member.relation], int(member.weighted)

    def _tables(self, bundles: list[Bundle]) -> tuple[Ints, Ints]:
        """Bundles and their members as kernels read them."""
        rows: list[tuple[int, ...]] = []
        members: list[tuple[int, int]] = []
        for bundle in bundles:
            begin = len(members)
            members += [self._member(member) for member in bundle.members]
            rows.append((begin, len(members), bundle.order, 0, int(bundle.plain)))
        return np.array(rows, np.int64).reshape(-1, 5), np.array(members, np.int64).reshape(-1, 2)

    # --- loops

    def _nested(self, part: Part, roots: Ints, root: Ints, modulus: int, by_root: Ints) -> int:
        """The sum over a core; with ``by_root`` (int64 [vertices]; else empty) the summands of each root there."""
        weights = [self._values(weight, None, modulus) for weight in part.weights]
        addresses = np.array([weight.ctypes.data for weight in weights], np.int64)
        bundles = list(dict.fromkeys(b for level in part.levels for i in level.instructions for b in _bundles(i)))
        numbers = {bundle: number for number, bundle in enumerate(bundles)}
        tables = self._tables(bundles)
        tables_of_pairs = self._closed(part)
        closed = {of: number for number, of in enumerate(tables_of_pairs)}
        pairs = np.array([found[0] for found in tables_of_pairs.values()], np.int64).reshape(-1, 3)
        code: list[tuple[int, ...]] = []
        levels: list[tuple[int, int, int]] = []
        for level in part.levels:
            begin = len(code)
            code += [_row(instruction, numbers, closed) for instruction in level.instructions]
            levels.append((begin, len(code), level.register))
        program = (
            np.array(levels, np.int64),
            np.array(code, np.int64).reshape(-1, 14),
            *tables,
            self._partitions,
            addresses,
        )
        lengths = self._lengths(part.root_bundles[0].members[0], roots)
        order = np.argsort(-lengths, kind="stable")
        roots = roots[order]
        shares = np.cumsum((lengths[order] + 1.0) ** 2)
        pieces = self._threads * _PIECES
        cuts = np.searchsorted(shares, shares[-1] * np.arange(1, pieces) / pieces, side="right") if len(roots) else []
        bounds = sorted({0, len(roots), *(int(cut) for cut in cuts)})
        sums = np.zeros((self._threads, 3), np.int64)
        scratch = [self._scratch(part) if worker == 0 else None for worker in range(self._threads)]

        def run(begin: int, end: int, worker: int) -> None:
            cells = scratch[worker] = scratch[worker] or self._scratch(part)
            self._nested_kernels.nested(
                *program,
                roots,
                root,
                begin,
                end,
                *cells[:6],
                pairs,
                sums[worker],
                by_root,
                modulus,
                self._flags,
                self._like,
            )

        self._deal(run, bounds, part.cost, sums[:, 2])
        return int(sums[:, 0].sum()) + (int(sums[:, 1].sum()) << 32)

    def _closed(self, part: Part) -> dict[Closed, tuple[tuple[int, int, int], Any]]:
        """The closed lists that a part reads, as rows of addresses, with what these are of; none that are too large."""
        wanted = [i.closed for level in part.levels for i in level.instructions if isinstance(i, Through) and i.closed]
        for closed in dict.fromkeys(wanted):
            if closed in self._pairs:
                continue
            entries = self._partition(closed.first.members[0])
            if 2 * len(entries.neighbours) > self._room:  # where each entry's list begins
                continue
            bundles = (closed.first, closed.second, closed.back)
            rows = np.array([self._relations[bundle.members[0].relation] for bundle in bundles], np.int64)
            marks = [np.zeros(self._plan.vertices, np.int8) for _ in range(self._threads)]
            starts = np.zeros(len(entries.neighbours) + 1, np.int64)
            ids = self._like

            def fill(begin: int, end: int, worker: int, fixed: Any = (self._partitions, rows, entries.keys)) -> None:
                cells = (closed.back.order, marks[worker], starts, ids, self._flags, self._like)  # noqa: B023
                self._nested_kernels.closed_lists(*fixed, begin, end, *cells)

            pieces = self._threads * _PIECES
            bounds = [len(entries.keys) * i // pieces for i in range(pieces + 1)]
            self._deal(fill, bounds, len(starts))
            np.cumsum(starts, out=starts)
            if 0 < starts[-1] <= min(_CLOSED, self._room):
                ids = np.empty(int(starts[-1]), self._plan.dtype)
                self._deal(fill, bounds, len(starts))
                row = int(rows[0]), starts.ctypes.data, ids.ctypes.data
                self._pairs[closed] = (row, (starts, ids))
        return {closed: self._pairs[closed] for closed in wanted if closed in self._pairs}

    def _scratch(self, part: Part) -> tuple[Any, ...]:
        """A worker's registers and local lists."""
        size, dtype = self._plan.vertices, self._plan.dtype
        rooms = []
        for level in part.levels:
            for instruction in level.instructions:
                if isinstance(instruction, Local):
                    entries = len(self._partition(instruction.bundle.members[0]).neighbours)
                    room = min(entries, _ROOM, self._room // (self._threads * part.locals))
                    rooms.append(np.empty(room, dtype))
        kept = np.array([(room.ctypes.data, len(room)) for room in rooms], np.int64).reshape(-1, 2)
        return (
            np.zeros((max(part.registers, 1), size), np.int64),
            np.zeros((max(part.registers, 1), size + 1), dtype),
            np.zeros(max(part.registers, 1), np.int64),
            np.full((len(rooms), size), -1, np.int64),
            np.zeros((len(rooms), size), np.int64),
            kept,
            rooms,
        )

    def _lengths(self, member: Member, vertices: Ints) -> Ints:
        """How many neighbours each vertex has."""
        partition = self._partition(member)
        if not len(partition.keys):
            return np.zeros(len(vertices), np.int64)
        at = np.minimum(np.searchsorted(partition.keys, vertices), len(partition.keys) - 1)
        lengths: Ints = np.where(partition.keys[at] == vertices, partition.lengths()[at], 0)
        return lengths

    # --- threads

    def expect(self, part: Part, begin: float, end: float) -> None:
        """The share of the whole that counting a part leads from and to: what it does from now on is told so."""
        self._share, self._to, self._expected = begin, end, max(part.cost, 1.0)

    def _deal(
        self, work: Callable[[int, int, int], None], bounds: list[int], expected: float, done: Ints | None = None
    ) -> None:
        """Deal pieces out to the threads; raises what a worker raised, and stops them when time is over.

        In ``done`` (int64 [threads]) the kernels write down how much of its piece each worker has done.
        """
        control = self._control
        control.check()
        begin = self._share
        self._share = min(self._to, begin + (self._to - begin) * expected / self._expected)
        unwatched = control.cancelled is None and control.timeout is None and control.progress is None
        if expected < _SMALL or (self._threads == 1 and unwatched):
            work(bounds[0], bounds[-1], 0)
            return
        deal = _Deal(work, list(pairwise(bounds)), self._flags, np.zeros(self._threads) if done is None else done)
        threads = [
            threading.Thread(target=deal.run, args=(i,), name=f"graphdb-count-{i}", daemon=True)
            for i in range(self._threads)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.02)
                    control.check()
                    if control.due:
                        control.report(begin + (self._share - begin) * deal.share)
        finally:
            if any(thread.is_alive() for thread in threads):
                self._flags[0] = 1
            for thread in threads:
                thread.join()
        if deal.error is not None:
            raise deal.error


class _Deal:
    """Pieces of work, the workers that take them, and the flag that stops all."""

    def __init__(
        self, work: Callable[[int, int, int], None], pieces: list[tuple[int, int]], flags: Ints, done: NDArray[Any]
    ) -> None:
        self.error: BaseException | None = None
        self._work, self._flags, self._lock = work, flags, threading.Lock()
        self._number, self._left = len(pieces), iter(pieces)
        self._whole, self._part = 0, done
        self._length = np.ones(len(done))

    @property
    def share(self) -> float:
        """How much is done."""
        with self._lock:
            return float(self._whole + (self._part / self._length).sum()) / self._number

    def run(self, worker: int) -> None:
        """Take pieces until none is left."""
        try:
            while not self._flags[0]:
                with self._lock:
                    piece = next(self._left, None)
                if piece is None:
                    return
                if piece[0] < piece[1]:
                    self._length[worker] = piece[1] - piece[0]
                    self._work(*piece, worker)
                with self._lock:
                    self._whole += 1
                    self._part[worker] = 0
        except BaseException as error:  # the caller's thread raises it
            self.error = error
            self._flags[0] = 1


def _bundles(instruction: Instruction) -> tuple[Bundle, ...]:
    match instruction:
        case Total():
            return ()
        case Through():
            return instruction.forward, instruction.backward
        case _:
            return (instruction.bundle,)


def _row(instruction: Instruction, numbers: dict[Bundle, int], numbers_of_closed: dict[Closed, int]) -> tuple[int, ...]:
    """An instruction as a kernel reads it.

    (what, out, a, b, bundle, back, weight, power, local, local back, certain, total,
    closed, anchor)
    """
    match instruction:
        case Load(out, at, bundle, weight):
            return (0, out, at, -1, numbers[bundle], -1, weight, 1, -1, -1, 0, 0, -1, 0)
        case Meet(out, source, at, bundle, local):
            return (1, out, source, at, numbers[bundle], -1, -1, 1, local, -1, 0, 0, -1, 0)
        case Through(out, source, mask, forward, backward, weight, power, local, back, certain, total, closed, anchor):
            pairs = numbers_of_closed.get(closed, -1) if closed is not None else -1
            ends = (numbers[forward], numbers[backward])
            return (2, out, source, mask, *ends, weight, power, local, back, int(certain), total, pairs, max(anchor, 0))
        case Total(source, power):
            return (3, -1, source, -1, -1, -1, -1, power, -1, -1, 0, 0, -1, 0)
        case Tally(source, at, bundle, power, local):
            return (4, -1, source, at, numbers[bundle], -1, -1, power, local, -1, 0, 0, -1, 0)
        case Local(number, source, target, bundle, parent):
            return (5, number, source, target, numbers[bundle], -1, -1, 1, parent, -1, 0, 0, -1, 0)
