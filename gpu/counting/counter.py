"""Which counts a device computes without enumeration, and the kernels that are compiled for that.

A counting plan is prepared once: lists are put in the order of ranks, kernels are written and compiled.  Where that
takes longer than one run gains, a thread does it while plans go the way they went; the first run after that finds it
ready.  Compiled kernels are cached on disk, so that the next process has them at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.common.caches import Latest
from graphdb.common.errors import GraphDBError, MemoryLimitError
from graphdb.gpu.background import in_background, while_alive
from graphdb.gpu.code.compiler import Cancelled
from graphdb.gpu.code.launch import Device, faults
from graphdb.gpu.code.machine_code import PAUSE
from graphdb.gpu.counting.clique_counter import CliqueCounter
from graphdb.gpu.counting.lists import unranked
from graphdb.gpu.counting.passes.run import StreamedCount
from graphdb.gpu.counting.passes.streaming import Streaming
from graphdb.gpu.counting.registers import RANGED, TooWide, Unsupported
from graphdb.gpu.counting.run import DeviceCount
from graphdb.gpu.data.graph import DeviceGraph
from graphdb.gpu.watch import Watch
from graphdb.plan.counting.plan import CountingPlan, added_up, parts_of
from graphdb.plan.counting.programs import Part
from graphdb.plan.counting.tree import DEAR
from graphdb.plan.executor import OutOfRange
from graphdb.plan.joint import JointCount
from graphdb.plan.physical import PhysicalPlan
from graphdb.plan.shares import Division, Partial, rank_division
from graphdb.plan.strategy.ski_rental import TRIED, UNLIKELY, Bias, ExpectedCost

START = 10.0
"""Answers that the smallest run takes: launches, and a copy of the sums that is waited for."""
COMPILING = 0.1
"""Seconds in which a kernel is compiled, before any was; one follows the other, since NVRTC has a lock."""
LONG = 0.4
"""Where the host has a tree, sums are planned only instead of a search that is expected to take so many seconds."""
RANKING = 3e-8
"""Seconds in which an entry of a list is put in the order of ranks."""
READYING = 1e-3
"""Seconds in which the sums of one plan are got ready where all else is there, before any were: memory, weights."""
LISTED = 10.0
"""Elements read for each that is expected to be counted along lists, and in loops whose vectors are made in shared
memory."""
SCATTERED = 0.5
"""Numbers added at random places for each element that longer vectors are expected to take: these are planned to take
several times as long, but a device waits for many at once."""
BESIDE = 0.02
"""A second of a thread that gets sums ready beside queries is worth so many seconds that these would take less."""
OFTEN = 0.05
"""Seconds of a plan's counts by a search after which its sums are planned: some milliseconds."""
_SPENT = "seconds without sums"
MOST_BESIDE = 2
"""So many threads do, at most."""
PARTS = 4096
"""Parts of plans of which is remembered what is known."""

Ints = NDArray[np.int64]
_log = logging.getLogger("graphdb")


@dataclass(frozen=True, slots=True)
class _Unable:
    """Stands for a plan that device kernels do not count."""

    too_wide: bool
    """Its numbers may not fit 64 bits."""
    nbytes: int = 0


@dataclass(frozen=True, slots=True)
class _Preparation:
    """A thread gets a plan ready."""

    done: Future[None]
    started: float


class Counter:
    """Counts without enumerating the matches, where a plan says how and the device has kernels for it.

    Parameters
    ----------
    device, graph
        Where to count.
    pinned
        Whether to sum up whatever can be, also where going through the matches, or the host, is sooner.
    beside_host
        Whether the CPU counts what it is sooner with.
    """

    def __init__(self, device: Device, graph: DeviceGraph, *, pinned: bool = False, beside_host: bool = False) -> None:
        self._device, self._graph, self._pinned, self._beside_host = device, graph, pinned, beside_host
        self._known: Latest[Part, None] = Latest(PARTS)
        """The parts whose kernels were compiled."""
        self._missed: Latest[Part, float] = Latest(PARTS)
        """Seconds that counts took longer than with a part's kernel; other plans share it."""
        self._under_way: dict[CountingPlan, _Preparation] = {}
        self.cliques = CliqueCounter(device, graph)
        self._starts, self._bias, self._compiler = Bias(), Bias(), Bias()
        """Of the estimates of what the smallest runs take, of sums, of a kernel's compilation, …"""
        self._readying = Bias()
        """… and of what else getting a plan's sums ready takes."""
        self.milliseconds = 0.0
        """After a count: the device's time."""

    @property
    def biases(self) -> dict[str, Bias]:
        """What is learned, by name."""
        return {
            "start": self._starts,
            "sums": self._bias,
            "clique lists": self.cliques.bias,
            "compiler": self._compiler,
            "readying": self._readying,
        }

    def expected(self, plan: PhysicalPlan, counting: bool) -> ExpectedCost | None:
        """What a count, or counts by vertex instead of rows, are expected to take, and to rank and compile first.

        None where matches have to be found.
        """
        if plan.limit is not None:
            return None
        if counting and plan.clique is not None and self.cliques.shape(plan.clique) is not None:
            seconds = self._start + self.cliques.bias.factor * self.cliques.seconds(plan.clique)
            setup = 0.0 if self.cliques.is_ready(plan.clique) else self._compile_seconds
            return ExpectedCost(seconds, setup, in_background=True, sums=True)
        summed = self._sums(plan, counting)
        return None if summed is None else self.expected_of(summed)

    def expected_of(self, summed: CountingPlan) -> ExpectedCost | None:
        """What a counting plan is expected to take; None where it is known that there are no kernels for it."""
        ready = self._device.memory.cached("count", summed)
        if isinstance(ready, _Unable):
            return None
        looped = _looped(summed)
        seconds = self._start + self._bias.factor * self._seconds(summed)
        if ready is not None:
            return ExpectedCost(seconds, sums=True)
        waited = self._compile_seconds * len(self._unknown(looped))
        waited += RANKING * unranked(self._graph, list(summed.partitions.values()))
        setup, under_way = waited + READYING * self._readying.factor, self._under_way.get(summed)
        if under_way is not None:  # what has taken so long may take as long again
            passed = time.monotonic() - under_way.started
            setup = max(setup - passed, passed)
        return ExpectedCost(seconds, setup, in_background=waited > 0.0 or under_way is not None, sums=True)

    def missed(self, plan: PhysicalPlan, counting: bool, seconds: float) -> None:
        """A run took so long another way.  Sums that would have been sooner are got ready, if that adds up."""
        if counting and plan.clique is not None:
            self.cliques.prepare(plan.clique)
            return
        if counting:
            plan.cache[_SPENT] = plan.cache.get(_SPENT, 0.0) + seconds
        summed, expected = self._sums(plan, counting), self.expected(plan, counting)
        if summed is None or expected is None or not expected.in_background or summed in self._under_way:
            return
        saved, parts = seconds - expected.seconds, self._new(summed)
        if expected.seconds < UNLIKELY * seconds:  # the estimate may be too high
            saved = max(saved, TRIED * seconds)
        for part in parts:
            self._missed[part] = self._missed.get(part, 0.0) + max(saved, 0.0) / len(parts)
        if saved > 0 and sum(self._missed.get(part, 0.0) for part in parts) >= BESIDE * expected.setup:
            self._prepare(summed)

    def counts_cliques(self, plan: PhysicalPlan) -> bool:
        """Whether there is a kernel for a plan's cliques."""
        return self.cliques.shape(plan.clique) is not None

    def begin(self, plan: PhysicalPlan, counting: bool, seconds: float) -> Callable[[], bool] | None:
        """A run begins that is expected to take so long.  As :meth:`missed`, but before it; returns what says that its
        sums are ready, or None where they are not got ready now.
        """
        if (
            counting and plan.clique is not None and not self.cliques.is_ready(plan.clique)
        ):  # of which a join knows least
            self.cliques.prepare(plan.clique)
            return lambda: self.cliques.is_ready(plan.clique)
        summed, expected = self._sums(plan, counting), self.expected(plan, counting)
        if summed is None or expected is None or not expected.in_background:
            return None
        saved = seconds - expected.seconds
        missed = saved + sum(self._missed.get(part, 0.0) for part in self._new(summed))
        if summed not in self._under_way and saved > 0 and missed >= BESIDE * expected.setup:
            self._prepare(summed)
        if summed not in self._under_way:
            return None
        return lambda: isinstance(self._device.memory.cached("count", summed), DeviceCount | StreamedCount)

    def _new(self, plan: CountingPlan) -> set[Part]:
        """The parts of a plan that have to be compiled; all of them where none has."""
        return self._unknown(_looped(plan)) or {part for term in plan.terms for part in term.parts}

    def _unknown(self, parts: set[Part]) -> set[Part]:
        """Those of which it is not known that their kernels were compiled."""
        return {part for part in parts if part not in self._known}

    def describe(self, plan: PhysicalPlan, counting: bool) -> str:
        """What is added up: a phrase for EXPLAIN."""
        if not counting:
            return "sums per vertex"
        if plan.clique is not None and self.cliques.shape(plan.clique) is not None:
            where = self.cliques.describe(plan.clique)
            return f"cliques, {where}" if where else "cliques"
        summed = self._sums(plan, True)
        streaming = None if summed is None else Streaming.of(self._graph, summed)
        return "sums" if streaming is None else streaming.describe()

    def preparing(self, plan: PhysicalPlan, counting: bool) -> bool:
        """Whether a thread gets a plan's sums ready."""
        summed = self._sums(plan, counting)
        return summed is not None and summed in self._under_way

    def too_wide(self, plan: PhysicalPlan, counting: bool) -> bool:
        """Whether a plan's sums are known not to fit 64 bits."""
        summed = self._sums(plan, counting)
        ready = None if summed is None else self._device.memory.cached("count", summed)
        return isinstance(ready, _Unable) and ready.too_wide

    @property
    def busy(self) -> bool:
        """Whether threads get anything ready."""
        return bool(self._under_way or self.cliques.compiling)

    def wait_for_all(self) -> None:
        """Wait for all that is got ready beside queries."""
        wait([*(each.done for each in list(self._under_way.values())), *list(self.cliques.compiling.values())])

    def count(self, plan: PhysicalPlan, watch: Watch) -> int | None:
        """The number of matches; None where they have to be searched for.

        Raises what ``watch`` does, and :class:`~graphdb.plan.executor.OutOfRange`.
        """
        shape = self.cliques.shape(plan.clique)
        if plan.clique is not None and shape is not None:
            found, self.milliseconds = self.cliques.count(plan.clique, shape, watch)
            estimated = self.cliques.seconds(plan.clique)
            if self.cliques.bias.factor * estimated > self._start / 4:
                self.cliques.bias.note(estimated, self.milliseconds / 1e3)
            return found * plan.automorphisms
        summed, prepared = self._sums(plan, True), self._ready(plan, True, watch)
        if summed is None or prepared is None:
            return None
        return added_up(summed.terms, self._totals(summed, prepared, watch))

    def count_jointly(self, joint: JointCount, watch: Watch) -> list[int]:
        """The number of matches of each of several plans, which are counted together.

        Raises what ``watch`` does, and :class:`~graphdb.plan.executor.OutOfRange` also where there are no kernels.
        """
        prepared = self._prepared(joint.counting, watch)
        if isinstance(prepared, _Unable):
            raise OutOfRange
        return joint.numbers(self._totals(joint.counting, prepared, watch))

    def _totals(self, plan: CountingPlan, prepared: DeviceCount | StreamedCount, watch: Watch) -> dict[Part, int]:
        """What each part of a plan adds up to; raises :class:`~graphdb.plan.executor.OutOfRange`."""
        first, started = not prepared.milliseconds, time.monotonic()
        totals = prepared.totals(watch)
        self._note(self._seconds(plan), time.monotonic() - started, first)
        self.milliseconds = prepared.milliseconds
        if totals is None:
            raise OutOfRange
        return totals

    def count_by_vertex(
        self, plan: PhysicalPlan, watch: Watch, share: tuple[int, int] | None = None
    ) -> tuple[Ints, Ints] | None:
        """The vertices of the plan's one output, and the matches of each; as :meth:`count`, of a share or all."""
        prepared = self._ready(plan, False, watch)
        if prepared is None:
            return None
        counted = prepared.run_by_vertex(watch, share)
        self.milliseconds = prepared.milliseconds
        if counted is None:
            raise OutOfRange
        return counted

    # --- shares of a run, beside other devices

    def division(self, plan: PhysicalPlan, counting: bool, watch: Watch) -> Division | None:
        """How sums divide; None where there are none, or where they are one piece."""
        if counting and plan.clique is not None and self.cliques.shape(plan.clique) is not None:
            return rank_division(plan.clique)
        prepared = self._ready(plan, counting, watch)
        return None if prepared is None else prepared.division()

    def partial(self, plan: PhysicalPlan, division: Division, watch: Watch, share: tuple[int, int] | None) -> Partial:
        """Count a share; raises as :meth:`count` does."""
        if division.unit == "ranks":
            shape = self.cliques.shape(plan.clique)
            assert plan.clique is not None
            assert shape is not None
            return (self.cliques.count(plan.clique, shape, watch, share)[0] * plan.automorphisms,)
        prepared = self._ready(plan, True, watch)
        totals = None if prepared is None else prepared.totals(watch, share)
        if totals is None:
            raise OutOfRange
        return tuple(totals.values())

    def division_jointly(self, joint: JointCount, watch: Watch) -> Division | None:
        """How the sums of several plans divide, as those of one."""
        prepared = self._prepared(joint.counting, watch)
        return None if isinstance(prepared, _Unable) else prepared.division()

    def partial_jointly(self, joint: JointCount, watch: Watch, share: tuple[int, int] | None) -> Partial:
        """Count a share; raises as :meth:`count_jointly` does."""
        prepared = self._prepared(joint.counting, watch)
        totals = None if isinstance(prepared, _Unable) else prepared.totals(watch, share)
        if totals is None:
            raise OutOfRange
        return tuple(totals.values())

    def total(self, plan: PhysicalPlan, sums: Partial) -> int:
        """The number of matches, from the sums over all shares of vertices."""
        summed = self._sums(plan, True)
        assert summed is not None
        return added_up(summed.terms, dict(zip(parts_of(summed.terms), sums, strict=True)))

    def _sums(self, plan: PhysicalPlan, counting: bool) -> CountingPlan | None:
        """The sums that count a plan, if there are any.

        Where the CPU counts along a tree, or the search was expected to cost less, only for the dearest matches, plans
        that are counted again and again, and searches that nobody stops: to write down the sums takes longer than most
        such counts do.
        """
        found = plan.counting
        if counting and found is None and plan.otherwise is not None:
            if plan.tree is not None:
                dear = self._matched(plan) > LONG and not (self._beside_host and plan.tree.cost < DEAR)
            elif plan.doubtful and not self._beside_host:
                dear = True
            else:
                dear = plan.cache.get(_SPENT, 0.0) > OFTEN
            found = plan.otherwise() if dear or (self._pinned and plan.tree is not None) else None
        return None if found is None or (found.root < 0) != counting else found

    @property
    def _compile_seconds(self) -> float:
        """Seconds in which a kernel is compiled."""
        return COMPILING * self._compiler.factor

    @property
    def _start(self) -> float:
        """Seconds that the smallest run takes."""
        return START * self._device.rates.answer * self._starts.factor

    def _matched(self, plan: PhysicalPlan) -> float:
        """Seconds that a search is expected to take."""
        return plan.cost / self._device.rates.intersected

    def _seconds(self, plan: CountingPlan) -> float:
        """Seconds that sums are expected to be counted for, without the start."""
        rates, streaming = self._device.rates, Streaming.of(self._graph, plan)
        if streaming is not None:
            return streaming.seconds(LISTED * plan.cost / rates.listed, self._device)
        ranges = 4 * plan.vertices / self._device.limits.shared
        entries = sum(len(each.neighbours) for each in {id(of): of for of in plan.partitions.values()}.values())
        if not _looped(plan) or ranges < 1 or RANGED * ranges * entries <= plan.cost:
            return LISTED * plan.cost / rates.listed
        return SCATTERED * plan.cost / rates.scattered

    def _note(self, estimated: float, taken: float, first: bool) -> None:
        """Learn from what sums took: how long the start takes from short ones, the rate from all others.

        Of a ``first`` run code is loaded and memory allocated: it says what they take at most.
        """
        start, expected = START * self._device.rates.answer, self._bias.factor * estimated
        if first and taken > self._start + expected:
            return
        if expected < self._start / 4:
            self._starts.note(start, max(taken - expected, start / START))
        else:
            self._bias.note(estimated, taken - self._start)

    def _ready(self, plan: PhysicalPlan, counting: bool, watch: Watch) -> DeviceCount | StreamedCount | None:
        """A plan's sums, ready to run; None where there are none, or no kernels for them."""
        summed = self._sums(plan, counting)
        prepared = None if summed is None else self._prepared(summed, watch)
        if isinstance(prepared, _Unable) and prepared.too_wide:
            raise OutOfRange
        return None if isinstance(prepared, _Unable) else prepared

    def _prepared(self, plan: CountingPlan, watch: Watch) -> DeviceCount | StreamedCount | _Unable:
        """A plan ready to count; cached as long as the plan, since to prepare it takes longer than most counts."""
        under_way = self._under_way.get(plan)
        while under_way is not None and not wait([under_way.done], PAUSE).done:
            watch.check()
        return self._device.memory.cached_or_built("count", plan, lambda: self._built(plan, watch))

    def _built(self, plan: CountingPlan, watch: Watch | None) -> DeviceCount | StreamedCount | _Unable:
        parts, unranked_before = self._unknown(_looped(plan)), unranked(self._graph, list(plan.partitions.values()))
        before, started = dict(self._device.code.origins), time.monotonic()
        try:
            built = self._prepared_now(plan, while_alive if watch is None else watch.check)
        except Unsupported as error:
            return _Unable(isinstance(error, TooWide))
        taken, now = time.monotonic() - started, self._device.code.origins
        if parts and now["compiler"] > before["compiler"]:  # else all were cached; parts of one shape share a kernel
            self._compiler.note(COMPILING * len(parts), taken)
        elif now == before and not unranked_before:
            self._readying.note(READYING, taken)
        self._known.update(dict.fromkeys(_looped(plan)))
        return built

    def _prepared_now(self, plan: CountingPlan, check: Callable[[], None]) -> DeviceCount | StreamedCount:
        """A plan ready to count: in passes where its lists do not fit, or leave too little for numbers by rank."""
        streaming = Streaming.of(self._graph, plan)
        if streaming is None:
            try:
                return DeviceCount(self._device, self._graph, plan, check)
            except MemoryLimitError:
                streaming = Streaming.of(self._graph, plan, anyway=True)
                if streaming is None:
                    raise
        return StreamedCount(self._device, self._graph, plan, streaming.found, check)

    def _prepare(self, plan: CountingPlan) -> None:
        """Get a plan ready by a thread, unless enough is got ready already."""
        if len(self._under_way) >= MOST_BESIDE:
            return

        done: Future[None] = Future()

        def prepare() -> None:
            built: DeviceCount | StreamedCount | _Unable = _Unable(False)
            try:
                with faults(), in_background():
                    built = self._built(plan, None)
            except (GraphDBError, Cancelled) as error:
                _log.info("counts go on without sums: %s", error)
            finally:
                self._device.memory.cached_or_built("count", plan, lambda: built)
                self._under_way.pop(plan, None)
                done.set_result(None)

        self._under_way[plan] = _Preparation(done, time.monotonic())
        threading.Thread(target=prepare, name="graphdb-sums").start()


def _looped(plan: CountingPlan) -> set[Part]:
    """The parts that have a kernel of their own."""
    return {part for term in plan.terms for part in term.parts if part.levels or part.clique}
