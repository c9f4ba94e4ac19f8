"""Which executor runs a plan: the host's or a CUDA device's; the one place that imports ``graphdb.gpu``, lazily.

``device="auto"`` weighs what each is expected to take, or took when the same plan ran before.  A device answers after
a millisecond at best, and must be given the partitions that it does not have; then it scans elements much
faster.  It is opened (which takes a good part of a second) when plans that are worth it have cost the host as much.
Where it cannot be used, or fails, the host takes over, and says so once.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from graphdb.common.errors import DeviceError, GraphDBError, MemoryLimitError
from graphdb.execute.devices import Devices, Hint, best_device, devices_named
from graphdb.execute.host import HostExecutor
from graphdb.execute.host_costs import HostCosts
from graphdb.execute.multi import MultiExecutor
from graphdb.gpu.probe import probe
from graphdb.plan.candidates.refinement import Refinement, Sets
from graphdb.plan.domains import DomainSearch, LabelledLists
from graphdb.plan.executor import Block, Control, Executor, OutOfRange, Refused, Traffic
from graphdb.plan.extension import Adjacency, Compressor, Extender
from graphdb.plan.joint import JointCount
from graphdb.plan.physical import PhysicalPlan
from graphdb.plan.strategy.ski_rental import LONGER, WORSE, Decision, ExpectedCost, StrategyTimings
from graphdb.plan.strategy.trials import in_turns

if TYPE_CHECKING:
    from graphdb.gpu.card import Rates
    from graphdb.gpu.code.launch import Device
    from graphdb.gpu.executor import GpuExecutor

SMALL = 5e-4
"""Seconds on the host below which no device is missed; …"""
ANSWERS = 20.0
"""… and those on an open device, in its answers, below which it is not considered: few counts take it less."""
UNEXPECTED = 0.02
"""Seconds after which a count that was thought to be the smallest goes to the device."""
MINING_START, MINED = 5e-3, 25.0
"""Seconds until a device mines, and elements that it looks up for each that is scanned, about."""
DISTURBED = 16
"""Runs of a plan whose times are not noted where they are disturbed: all of them may be."""
LEARNED = 2
"""Runs of a plan that say how wrong estimates are: later ones say nothing of other plans."""
OPENING = 0.5
"""Seconds that it takes to open a device and to compile its kernels."""

Made = TypeVar("Made")
_FAILURES = (DeviceError, MemoryLimitError)
"""What a device fails with; a plan that it refused, or had no memory for, may not go there, and others may."""
_log = logging.getLogger("graphdb")


def choose_executor(
    device: str = "auto",
    *,
    threads: int | None = None,
    memory_limit: int | None = None,
    device_memory: int | None = None,
) -> Executor:
    """Return the executor for ``device``: ``"auto"``, ``"cpu"``, or CUDA devices (:mod:`graphdb.execute.devices`).

    ``memory_limit`` is the host's, ``device_memory`` that of each device, in bytes.

    Raises
    ------
    DeviceError
        For a CUDA device that is not there or cannot be used.
    GraphDBError
        For a name that means no device.
    """
    named = devices_named(device)
    if named is not None:
        opened = [open_device(number, named.hint, memory=device_memory) for number in named.found()]
        alike = len({each.device.name for each in opened}) == 1
        return opened[0] if len(opened) == 1 else MultiExecutor(opened, alike=alike)
    host = HostExecutor(threads, memory_limit=memory_limit)
    if device == "cpu":
        return host
    return ChoosingExecutor(host, lambda: open_device(best_device(), beside_host=True, memory=device_memory))


def open_device(
    number: int, hint: Hint = "auto", *, beside_host: bool = False, memory: int | None = None
) -> GpuExecutor:
    """Open a CUDA device for :class:`graphdb.gpu.executor.GpuExecutor`, which may hold ``memory`` bytes there.

    Raises :class:`graphdb.common.errors.DeviceError` where that is not possible.
    """
    Devices((number,)).found()
    try:
        from graphdb.gpu.executor import GpuExecutor

        device = GpuExecutor(number, hint=hint, beside_host=beside_host, memory_limit=memory)
        device.calibrate()
        return device
    except ImportError as error:
        raise DeviceError(f"device 'cuda:{number}' cannot be used: {error}", hint="see: graphdb doctor") from error


def device_of(executor: Executor) -> Callable[[], Device | None] | None:
    """What opens the CUDA device that an executor runs plans on, for work that is no plan; None where there is none."""
    match executor:
        case HostExecutor():
            return None
        case ChoosingExecutor():
            return executor.open_device if probe().usable else None
        case MultiExecutor():
            return device_of(executor.first)
    device = cast("GpuExecutor", executor).device
    return lambda: device


@dataclass(slots=True)
class _Known:
    """What is known of one plan's runs: the seconds that the host is expected to take, and what runs took."""

    here: float
    timings: StrategyTimings
    decided: Decision | None = None
    """Who counts, and what was expected of each."""
    quick: bool = False
    """Whether a count was as small as it was expected to be."""
    disturbed: int = 0
    """Runs that say little of what others take, since a strategy was tried within, or a compiler ran beside them."""
    last: Control | None = None
    """Of the last run that nobody watched: it says what that took."""
    sums: bool = False
    """Whether the device was last expected to add up sums."""
    costs: dict[str, ExpectedCost] | None = None
    """What each was expected to take when the latest choice was made; None where no device was asked."""

    def now_by(self, device: str, *, sums: bool) -> None:
        """Forget what enumerating took a device whose sums are ready now."""
        if sums and not self.sums and self.timings.measured(device) != math.inf:
            self.timings.forget(device)
        self.sums = sums


class ChoosingExecutor:
    """Runs each plan where it is expected to be done first.

    Parameters
    ----------
    host
        Runs what is not worth a device, and everything where there is none.
    opens
        Opens the device; called once, when it has been missed for long enough.
    """

    name = "auto"

    def __init__(self, host: HostExecutor, opens: Callable[[], GpuExecutor]) -> None:
        self.host = host
        self._opens = opens
        self._device: GpuExecutor | None = None
        self._lock = threading.Lock()
        self._failed = self._warned = False
        self.costs = HostCosts(host)
        self._there: bool | None = None
        """Whether the machine has a device; None before that is asked."""
        self._small = SMALL
        """Seconds on the host below which nothing else is considered."""
        self._missed = 0.0
        """Seconds that plans took on the host which a device would have answered at once, so far."""

    def supports(self, plan: PhysicalPlan) -> bool:
        """Every plan runs on the host."""
        return True

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that a run needs where it runs."""
        return self._chosen(plan, plan.count_only).memory(plan)

    def describe(self, plan: PhysicalPlan) -> str:
        """Where the plan runs, and what was expected of either."""
        counting = plan.count_only
        chosen = self._chosen(plan, counting)
        if self._device is None:
            return chosen.describe(plan)
        known = self._known(plan, counting)
        costs = self._expected(plan, counting, known.here, self._device)
        return f"{chosen.describe(plan)}; expected: {_costs_text(costs, known.timings)}"

    def refine(self, task: Refinement) -> Sets | None:
        """Refine a pattern's candidates on the device once it is open, where that is quicker than to plan without."""
        device = self._device
        try:
            return None if device is None else device.refine(task)
        except _FAILURES as error:
            self._failed_with(error)
        return None

    def run(self, plan: PhysicalPlan, control: Control | None = None) -> Iterator[Block]:
        """Run the plan; the host takes over where the device fails before the first block."""
        known: _Known | None = plan.cache.get("where run")
        if known is not None and known.here < self._small and not known.timings.runs:  # the smallest take microseconds
            last, known.last = known.last, control or Control()
            if last is None or last.seconds <= self._small / 2:
                return self.host.run(plan, known.last)
            self._note(plan, last, False, self.host, last.seconds)
        return self._watched(plan, control)

    def _watched(self, plan: PhysicalPlan, control: Control | None) -> Iterator[Block]:
        """Run the plan, and remember what that takes."""
        chosen, begun, taken = self._chosen(plan, False, runs=True), False, 0.0
        try:
            blocks = chosen.run(plan, control)
            while True:
                started = time.perf_counter()
                block = next(blocks, None)
                taken += time.perf_counter() - started
                if block is None:
                    self._note(plan, control, False, chosen, taken)
                    return
                begun = True
                yield block
        except OutOfRange:
            self._known(plan, False).timings.rule_out(chosen.name)
        except _FAILURES as error:
            if chosen is self.host or begun:
                raise
            self._failed_with(error, self._known(plan, False), chosen)
        yield from self.host.run(plan, control)

    def count(self, plan: PhysicalPlan, control: Control | None = None) -> int:
        """Count the matches; the host takes over where the device fails."""
        known: _Known | None = plan.cache.get("where counted")
        if known is not None and known.quick:  # the smallest take microseconds
            control = control or Control()
            counted = self.host.count(plan, control)
            if control.seconds > self._small / 2:
                known.quick = False
                self._note(plan, control, True, self.host, control.seconds)
            return counted
        known, control = self._known(plan, True), control or Control()
        decided = known.decided
        if decided is None or not decided.again():
            chosen = self._chosen(plan, True, runs=True)
            decided = known.decided = Decision.after(
                decided, chosen.name, self._turns(plan, known, chosen), known.timings
            )
        running, started = cast(Executor, self.host), 0.0

        def run(name: str) -> int:
            nonlocal running, started
            device = None if name == self.host.name else self._opened()
            running = self.host if device is None or not device.supports(plan) else device
            control.disturbed |= running is self.host and self._preparing
            started = time.perf_counter()
            return running.count(plan, control)

        try:
            found = in_turns(decided.costs, decided.chosen, known.timings, control, run)[1]
            taken = time.perf_counter() - started
            if running.name != decided.chosen or taken > WORSE * known.timings.seconds.get(running.name, math.inf):
                decided.left = 0
            known.quick = running is self.host and known.here < self._small and taken < self._small / 2
            self._note(plan, control, True, running, taken)
            return found
        except OutOfRange:
            known.timings.rule_out(running.name)
        except _FAILURES as error:
            if running is self.host:
                raise
            self._failed_with(error, known, running)
        return self.host.count(plan, control)

    def _turns(self, plan: PhysicalPlan, known: _Known, chosen: Executor) -> dict[str, ExpectedCost]:
        """Who may count a plan, and what each is expected to take: the device where there is one, open or not."""
        device, here = self._device, {self.host.name: ExpectedCost(known.here)}
        if device is None:
            return here | ({"cuda": ExpectedCost(0.0, OPENING)} if self._may_open() else {})
        if chosen is self.host and known.here < self._small:
            return here | {device.name: ExpectedCost(0.0, UNEXPECTED)}
        return here if known.costs is None else known.costs

    def count_jointly(self, joint: JointCount, control: Control | None = None) -> list[int]:
        """Count several patterns together, where that is expected to be done first."""
        chosen, known = self._chosen_jointly(joint, runs=True), self._known_jointly(joint)
        try:
            started = time.perf_counter()
            counted = chosen.count_jointly(joint, control)
            if known.here >= self._small:
                known.timings.note(chosen.name, time.perf_counter() - started)
            return counted
        except OutOfRange:
            known.timings.rule_out(chosen.name)
        except _FAILURES as error:
            if chosen is self.host:
                raise
            self._failed_with(error, known, chosen)
        return self.host.count_jointly(joint, control)

    def domain_search(
        self, lists: LabelledLists, scanned: float, control: Control, host_memory: int | None
    ) -> DomainSearch | None:
        """The device's, where that is expected to be done first and can be used."""
        costs = self.costs.scanning(scanned), partial(_mining, scanned, lists.nbytes)
        return self._mined(*costs, lambda on: on.domain_search(lists, scanned, control, host_memory))

    def extender(self, lists: Adjacency, scanned: float, control: Control) -> Extender | None:
        """The device's, as above."""
        costs = self.costs.scanning(scanned), partial(_mining, scanned, lists.nbytes)
        return self._mined(*costs, lambda on: on.extender(lists, scanned, control))

    def compressor(self, rows: int, nbytes: int, control: Control) -> Compressor | None:
        """The device's, as above; one thread of the host filters, and a device mostly copies."""
        costs = self.costs.alone(rows), lambda rates: ExpectedCost(MINING_START + nbytes / rates.upload)
        return self._mined(*costs, lambda on: on.compressor(rows, nbytes, control))

    def traffic(self) -> Traffic:
        """The device's, where one is open."""
        return Traffic() if self._device is None else self._device.traffic()

    def _mined(
        self, here: float, there: Callable[[Rates], ExpectedCost], made: Callable[[Executor], Made | None]
    ) -> Made | None:
        """What mines on the executor that is expected to be done first; None where that is the host."""
        known = _Known(here, StrategyTimings())

        def expected(device: GpuExecutor) -> dict[str, ExpectedCost]:
            return {self.host.name: ExpectedCost(here), device.name: there(device.device.rates)}

        try:
            return made(self._choice(known, expected, runs=True))
        except _FAILURES as error:
            self._failed_with(error)
            return None

    def counts_cliques(self, plan: PhysicalPlan) -> bool:
        """Always: what a device would find one by one is expected to take it longer than the host."""
        return True

    def describe_jointly(self, joint: JointCount) -> str:
        """Where they are counted, and what was expected of either."""
        chosen, known = self._chosen_jointly(joint), self._known_jointly(joint)
        if self._device is None:
            return chosen.describe_jointly(joint)
        costs = self._expected_jointly(joint, known.here, self._device)
        return f"{chosen.describe_jointly(joint)}; expected: {_costs_text(costs, known.timings)}"

    def _known_jointly(self, joint: JointCount) -> _Known:
        found: _Known | None = joint.cache.get("where counted")
        if found is None:
            here = self.costs.scanning(joint.counting.cost)
            found = joint.cache["where counted"] = _Known(here, StrategyTimings())
        return found

    def _chosen_jointly(self, joint: JointCount, *, runs: bool = False) -> Executor:
        known = self._known_jointly(joint)
        return self._choice(known, lambda device: self._expected_jointly(joint, known.here, device), runs=runs)

    def _expected_jointly(self, joint: JointCount, here: float, device: GpuExecutor) -> dict[str, ExpectedCost]:
        return {self.host.name: ExpectedCost(here), device.name: device.expected_jointly(joint)}

    def _note(self, plan: PhysicalPlan, control: Control | None, counting: bool, ran: Executor, seconds: float) -> None:
        """Remember what a whole run took, unless the plan is small and none ever took long."""
        known = self._known(plan, counting)
        asked = seconds > self._small / 2 or known.here >= self._small or known.timings.runs
        if asked and (control is None or control.limit is None):
            busy = control is not None and control.disturbed | (ran is self.host and self._preparing)
            if busy and known.disturbed < DISTURBED:
                known.disturbed += 1
            else:
                known.timings.note(ran.name, seconds)
                runs = known.timings.runs[ran.name]
                if ran is self.host and counting and runs <= LEARNED:
                    self.costs.note_count(plan, seconds, first=runs == 1)
            if ran is self.host and self._device is not None:
                self._device.missed(plan, counting, seconds)

    @property
    def _preparing(self) -> bool:
        """Whether the device's kernels are written and compiled now."""
        return self._device is not None and self._device.preparing

    def _known(self, plan: PhysicalPlan, counting: bool) -> _Known:
        """Timings of a plan's runs: cached with it, since the smallest runs take microseconds."""
        key = "where counted" if counting else "where run"
        found: _Known | None = plan.cache.get(key)
        if found is None:
            found = plan.cache[key] = _Known(self.costs.of(plan, counting), StrategyTimings())
        return found

    def _chosen(self, plan: PhysicalPlan, counting: bool, *, runs: bool = False) -> Executor:
        """The executor for a plan; ``runs`` says that the plan runs now, so that it counts as missed on the host."""
        known = self._known(plan, counting)

        def expected(device: GpuExecutor) -> dict[str, ExpectedCost] | None:
            return self._expected(plan, counting, known.here, device) if device.supports(plan) else None

        return self._choice(known, expected, runs=runs)

    def _choice(
        self, known: _Known, expected: Callable[[GpuExecutor], dict[str, ExpectedCost] | None], *, runs: bool
    ) -> Executor:
        """The host, or the device where that is expected to be done first; None where it cannot do it at all."""
        known.costs, taken = None, known.timings.measured(self.host.name)
        here = max(known.here, LONGER * known.timings.stopped.get(self.host.name, 0.0)) if taken is None else taken
        if here < self._small:
            return self.host
        if self._device is None and self._missed + here < OPENING:
            self._missed += here if runs else 0.0
            return self.host
        device = self._opened()
        costs = known.costs = None if device is None else expected(device)
        if device is None or costs is None:
            return self.host
        if runs:
            known.now_by(device.name, sums=costs[device.name].sums)
        chosen = known.timings.choose(costs, runs=True) if runs else known.timings.quickest(costs)
        return self.host if chosen == self.host.name else device

    def _expected(
        self, plan: PhysicalPlan, counting: bool, here: float, device: GpuExecutor
    ) -> dict[str, ExpectedCost]:
        """What a run is expected to take on the host, and on the device."""
        return {self.host.name: ExpectedCost(here), device.name: device.expected(plan, counting, here)}

    def open_device(self) -> Device | None:
        """Its device, opened if need be; None where it cannot be used."""
        found = self._opened()
        return None if found is None else found.device

    def _opened(self) -> GpuExecutor | None:
        with self._lock:
            if self._device is None and not self._failed:
                try:
                    self._device = self._opens()
                except DeviceError as error:
                    self._failed = True
                    if probe().devices:  # a machine without a device is no surprise
                        _log.warning("queries run on the CPU: %s", error)
            if self._device is not None:
                self._small = min(SMALL, ANSWERS * self._device.device.rates.answer)
            return self._device

    def _may_open(self) -> bool:
        """Whether there is a device, open or not."""
        if self._there is None:
            self._there = probe().usable
        return self._there and not self._failed

    def _failed_with(self, error: GraphDBError, known: _Known | None = None, ran: Executor | None = None) -> None:
        """Say once that the device failed; a plan that it cannot run stays on the host, a device that is lost is
        closed.
        """
        if not self._warned:
            _log.warning("a query runs on the CPU instead: %s", error)
        self._warned = True
        if known is not None and ran is not None:
            known.timings.rule_out(ran.name)
        if isinstance(error, DeviceError) and not isinstance(error, Refused):
            self._device, self._failed = None, True


def _mining(scanned: float, nbytes: int, rates: Rates) -> ExpectedCost:
    """What a device is expected to take that scans so many elements of lists of so many bytes."""
    return ExpectedCost(MINING_START + MINED * scanned / rates.intersected, nbytes / rates.upload)


def _costs_text(costs: dict[str, ExpectedCost], timings: StrategyTimings) -> str:
    """What was expected of each, or measured."""
    parts = []
    for name, expected in costs.items():
        measured = " (measured)" * (timings.measured(name) is not None)
        parts.append(f"{name} {timings.expected(name, expected) * 1000:,.1f} ms{measured}")
    return ", ".join(parts)
