"""The protocol of executors, and the control that a caller keeps over a run."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import DeviceError, QueryInterrupted, QueryTimeout
from graphdb.plan.candidates.refinement import Refinement, Sets
from graphdb.plan.domains import DomainSearch, LabelledLists
from graphdb.plan.extension import Adjacency, Compressor, Extender
from graphdb.plan.joint import JointCount
from graphdb.plan.physical import PhysicalPlan

_NO_ROWS = np.zeros(0, np.int64)

REPORT_EVERY = 0.05
"""Seconds between two reports of progress, at least."""
EXTRAPOLATES = 0.25
"""The part of its time after which the share that a run has done says how long the rest takes."""
SHORTEST = 1e-3
"""Seconds between two looks at a run, at least."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows: one array per output, in the plan's id type, each of length ``count``."""

    columns: dict[str, NDArray[Any]]
    count: int
    matches: NDArray[Any] | None = None
    """How many matches each row stands for, where the plan counts duplicates: of dtype object where int64 does not hold
    them (:mod:`graphdb.execute.counting.crt`)."""


class Refused(DeviceError):
    """A device cannot run a plan this way, and is well.

    A kernel does not compile, asks for more than the card has, or is not launched.
    """


class Overran(Exception):
    """A run took longer than :meth:`Control.at_most` gave it, or would have, and was stopped.

    Attributes
    ----------
    passed, whole
        The seconds after which it was stopped, and those that all of it would have taken at least.
    """

    def __init__(self, passed: float = 0.0, whole: float = 0.0) -> None:
        super().__init__()
        self.passed, self.whole = passed, max(passed, whole)


class _Extrapolated(QueryTimeout):
    """The rest of a run would take longer than another strategy; :class:`Overran` once it has left the run."""

    def __init__(self, whole: float) -> None:
        super().__init__("the query would run longer than another strategy takes")
        self.whole = whole


class OutOfRange(Exception):
    """A number of matches may not fit the 64 bits of a device's sums, and another executor's are exact."""


@dataclass(slots=True)
class Control:
    """A run's limits and callbacks, set by the caller, and its counters, set by the run.

    Parameters
    ----------
    timeout
        Seconds from now after which the run raises :class:`graphdb.common.errors.QueryTimeout`.
    cancelled
        An event that stops the run with :class:`graphdb.common.errors.QueryInterrupted` once it is set.
    limit
        At most so many matches, whichever they are; the plan's own limit holds too.
    progress
        Called in the caller's thread with the share done (0 … 1), which never falls: some times a second.
    buffer_bytes
        Matches that may wait in memory until the caller takes them.
    share
        Which units of the run are meant, first and last + 1 (:mod:`graphdb.plan.shares`); by default all.
    """

    timeout: float | None = None
    cancelled: threading.Event | None = None
    limit: int | None = None
    progress: Callable[[float], None] | None = None
    buffer_bytes: int = 256 << 20
    share: tuple[int, int] | None = None
    rows: NDArray[np.int64] = field(default_factory=lambda: _NO_ROWS)
    """After a run: the bindings that passed each step (a step that only counts, its matches)."""
    work: NDArray[np.int64] = field(default_factory=lambda: _NO_ROWS)
    """After a run: the elements that each step scanned."""
    term_seconds: list[float] = field(default_factory=list)
    """After a count without enumerating: how long each term of the sum took."""
    seconds: float = 0.0
    """After a run: how long it took."""
    threads: int = 0
    """After a run: how many workers it had; 0 on a device."""
    disturbed: bool = False
    """After a run: whether it says little of what the next one takes, since it tried a strategy that was not measured
    yet, or a compiler had the interpreter meanwhile."""
    _started: float = field(default_factory=time.monotonic)
    _instead: float = math.inf
    """Seconds that another strategy is expected to take, which begins once this one is stopped."""
    _share: float = 0.0
    _reported_at: float = 0.0

    @property
    def due(self) -> bool:
        """Whether a progress report is due: the caller wants reports, and the last one is some time ago."""
        return self.progress is not None and time.monotonic() - self._reported_at >= REPORT_EVERY

    def report(self, share: float) -> None:
        """Report the share done to the caller; a share below the last one is not reported."""
        if self.progress is None or share <= self._share:
            return
        self._share, self._reported_at = min(share, 1.0), time.monotonic()
        self.progress(self._share)

    def watch(self, share: Callable[[], float]) -> None:
        """Every few milliseconds: raise if the run must stop, and report progress where a report is due."""
        self.check()
        if self._instead < math.inf:
            self._extrapolate(share())
        if self.due:
            self.report(share())

    def within(self, begin: float, end: float) -> Control:
        """Return a control for a part of the run, which leads from one share of it to another."""
        report = None if self.progress is None else lambda share: self.report(begin + (end - begin) * share)
        return replace(self, progress=report, _share=0.0, _instead=math.inf)

    def wait(self, most: float) -> float:
        """Seconds after which to look at the run again: at most so many, and less before its time is over."""
        if self.timeout is None:
            return most
        if self._instead < math.inf:
            most = min(most, EXTRAPOLATES * self.timeout)
        return max(min(most, self.timeout - self.passed), SHORTEST)

    @contextmanager
    def at_most(self, seconds: float, instead: float = math.inf) -> Iterator[None]:
        """Stop what runs meanwhile after so many seconds, by :class:`Overran`; unless all of the run has to stop.

        Once a part of that time is over, it is also stopped where the share done says that the rest takes longer than
        ``instead``, the seconds of another strategy.
        """
        timeout, started, before, now = self.timeout, self._started, self._instead, time.monotonic()
        if timeout is not None and timeout - (now - started) <= seconds:
            self._instead = math.inf  # the share done is one of what begins here
            try:
                yield
            finally:
                self._instead = before
            return
        self.timeout, self._started, self._instead = seconds, now, instead
        try:
            yield
        except QueryTimeout as error:
            self.timeout, self._started, self._instead = timeout, started, before
            self.check()
            whole = error.whole if isinstance(error, _Extrapolated) else 0.0
            raise Overran(time.monotonic() - now, whole) from None
        finally:
            self.timeout, self._started, self._instead = timeout, started, before

    def _extrapolate(self, share: float) -> None:
        """Raise if the rest takes longer than another strategy, by the share that is done."""
        assert self.timeout is not None
        passed = self.passed
        if share > 0.0 and passed >= EXTRAPOLATES * self.timeout and passed * (1.0 - share) / share > self._instead:
            raise _Extrapolated(passed / share)

    @property
    def passed(self) -> float:
        """Seconds since the run was begun."""
        return time.monotonic() - self._started

    def check(self) -> None:
        """Raise if the run must stop now."""
        if self.cancelled is not None and self.cancelled.is_set():
            raise QueryInterrupted("the statement was interrupted")
        if self.timeout is not None and time.monotonic() - self._started > self.timeout:
            raise QueryTimeout(
                "the query ran longer than its timeout",
                hint="give it more time, or a LIMIT",
            )

    def range_of(self, units: int) -> tuple[int, int]:
        """The units of the share, of so many: first and last + 1."""
        return (0, units) if self.share is None else self.share

    def limit_of(self, plan: PhysicalPlan) -> int | None:
        """The tighter of the two limits."""
        if self.limit is None:
            return plan.limit
        return self.limit if plan.limit is None else min(self.limit, plan.limit)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What moved between host and devices.

    Attributes
    ----------
    copied
        Bytes that were copied to devices.
    paged
        How much of lists larger than a device's budget stands there, and which share of the reads goes to the rest.
    """

    copied: int = 0
    paged: str = ""

    def since(self, before: Traffic) -> str:
        """What moved meanwhile: a phrase for PROFILE, empty where there is no device."""
        parts = [f"{self.copied - before.copied:,} bytes copied to the device"] if self.copied else []
        return "; ".join([*parts, *([self.paged] if self.paged else [])])


class Executor(Protocol):
    """Runs physical plans."""

    name: str

    def supports(self, plan: PhysicalPlan) -> bool:
        """Whether this executor can run the plan."""

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that a run needs besides the data graph and the caller's share of the result."""

    def describe(self, plan: PhysicalPlan) -> str:
        """Where the plan runs, and how: a phrase for EXPLAIN."""

    def refine(self, task: Refinement) -> Sets | None:
        """Refine a pattern's candidates while it is planned; None where the planner is to do that itself."""

    def run(self, plan: PhysicalPlan, control: Control | None = None) -> Iterator[Block]:
        """Run the plan, and give its matches block by block; the same rows in the same order every time."""

    def count(self, plan: PhysicalPlan, control: Control | None = None) -> int:
        """Run the plan for the number of its matches alone."""

    def count_jointly(self, joint: JointCount, control: Control | None = None) -> list[int]:
        """The number of matches of each of several plans, which are counted together.

        Raises
        ------
        OutOfRange
            A number may not fit, or there is no kernel for it: the host counts them all.
        """

    def describe_jointly(self, joint: JointCount) -> str:
        """Where several plans are counted together, and how: a phrase for EXPLAIN."""

    def domain_search(
        self, lists: LabelledLists, scanned: float, control: Control, host_memory: int | None
    ) -> DomainSearch | None:
        """What finds domains of patterns on a device, where ``scanned`` elements are expected to be looked at.

        None where the host does it: there is no device, the graph does not fit it, or the host is expected to be done
        first.  ``host_memory`` is how many bytes domains may take in host memory; None for any.
        """

    def extender(self, lists: Adjacency, scanned: float, control: Control) -> Extender | None:
        """What extends embeddings on a device, where so many elements are expected to be looked at; None as above."""

    def compressor(self, rows: int, nbytes: int, control: Control) -> Compressor | None:
        """What filters embedding tables on a device, of so many rows, and bytes there and back; None as above."""

    def traffic(self) -> Traffic:
        """What went to devices so far, and where the lists are that do not fit them."""

    def counts_cliques(self, plan: PhysicalPlan) -> bool:
        """Whether a plan's cliques are counted without finding them one by one, wherever that is done."""
