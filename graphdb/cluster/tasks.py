"""What runs on a worker: it opens the graph once, makes the plan that the client has, and runs shares of it.

Nothing here is sent back but numbers and columns.  Plans are not sent to workers: they hold addresses and the graph.  A
pattern over one state of a graph leads to one plan, whoever makes it; a digest tells where it does not.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.cluster.partition_files import Partitions
from graphdb.cluster.partition_source import PartitionSource
from graphdb.common.config import Budget
from graphdb.common.errors import ExecutionError
from graphdb.execute.choose import open_device
from graphdb.execute.devices import devices_named
from graphdb.execute.host import HostExecutor
from graphdb.execute.work_profile import WorkProfile
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.executor import Control
from graphdb.plan.joint import JointCount
from graphdb.plan.passes.pipeline import make_plan
from graphdb.plan.physical import PhysicalPlan, VertexStep
from graphdb.plan.shares import Divisible, Division, Partial
from graphdb.relational.session.state import State
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph

GRAPHS, PLANS = 4, 64
"""Graphs, and plans, that a worker has ready."""
PROCESS = uuid.uuid4().hex
"""A name of this process, unlike that of any other."""
POLL = 0.1
"""Seconds between two questions whether a task is still wanted."""

Rows = list[tuple[dict[str, NDArray[Any]], int, NDArray[Any] | None]]
"""Blocks: columns, how many rows, and how many matches each stands for."""


Cuts = tuple[Division, list[tuple[int, int]], list[float]]
"""A division without its weights, its shares, and each one's part of the work."""


class OtherPlan(Exception):
    """A worker made another plan of a pattern than the client: the client runs it."""


@dataclass(frozen=True, slots=True)
class File:
    """A database file as a worker opens it; its size and time say whether it is the client's."""

    path: str
    size: int
    changed: int
    """Nanoseconds since 1970."""
    subclasses: bool

    @classmethod
    def at(cls, path: str, subclasses: bool) -> File:
        """Describe the file at a path."""
        path = os.path.abspath(path)
        found = os.stat(path)
        return cls(path, found.st_size, found.st_mtime_ns, subclasses)

    def state(self) -> str:
        """A name of what is in the file, and in the log beside it of what has not reached it yet."""
        try:
            log = os.stat(f"{self.path}.wal")
        except OSError:
            log = None
        parts = (os.path.basename(self.path), self.size, self.changed, log and (log.st_size, log.st_mtime_ns))
        return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Triples:
    """A graph as arrays, which reach a worker over the network, once; ``name`` tells it from others."""

    name: str
    labels: NDArray[np.int64]
    subjects: NDArray[np.int64]
    objects: NDArray[np.int64]
    resources: int
    literals: int
    type_label: int | None


Source = File | Triples | Partitions


@dataclass(frozen=True, slots=True)
class Job:
    """What shares are run of: one pattern, or several that are counted together.

    Attributes
    ----------
    name
        A digest of it all, by which workers find the plan again.
    digest
        What the client's plan must have in common with the worker's.
    """

    name: str
    patterns: tuple[PatternGraph, ...]
    joint: bool
    counting: Literal["auto", "always", "never"]
    device: str
    digest: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one task."""

    limit: int | None
    timeout: float | None


def digest_of(plan: PhysicalPlan) -> str:
    """A digest of what two plans must have in common for their shares to be those of one run."""
    parts: list[object] = [plan.names, plan.outputs, plan.row_steps, plan.duplicates, plan.automorphisms]
    parts += [np.dtype(plan.dtype).name, plan.columns.tolist(), plan.clique is not None]
    for step in plan.steps:
        if isinstance(step, VertexStep):
            scanned = None if step.scan is None else (len(step.scan), zlib.crc32(step.scan.tobytes()))
            parts.append((step.vertex, [repr(near) for near in step.neighbours], step.shared, scanned))
        else:
            parts.append((step.edge, repr(step.relation), step.vertex, step.other))
    if plan.counting is not None:
        parts += [plan.counting.root, *((term.coefficient, repr(term.parts)) for term in plan.counting.terms)]
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


# --- what a worker has


class _Ready:
    """The graphs and plans of a worker's process, the least recently used going first."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._graphs: OrderedDict[Any, DataGraph] = OrderedDict()
        self._states: dict[Any, State] = {}
        self._plans: OrderedDict[Any, PhysicalPlan | JointCount] = OrderedDict()
        self._executors: dict[str, Divisible] = {}

    def graph(self, source: Source) -> DataGraph:
        """The graph, read when it is first asked for."""
        key = source.name if isinstance(source, Triples) else source
        with self._lock:
            if key not in self._graphs:
                self._graphs[key] = self._opened(source)
                while len(self._graphs) > GRAPHS:
                    old, _ = self._graphs.popitem(last=False)
                    self._plans = OrderedDict((k, plan) for k, plan in self._plans.items() if k[0] != old)
                    if old in self._states:
                        self._states.pop(old).close()
            self._graphs.move_to_end(key)
            return self._graphs[key]

    def _opened(self, source: Source) -> DataGraph:
        from distributed import get_worker

        if isinstance(source, Triples):
            numbers = (source.resources, source.literals, source.type_label)
            subjects, labels, objects = map(_aligned, (source.subjects, source.labels, source.objects))
            return DataGraph(ArraySource(subjects, labels, objects, *numbers))
        if isinstance(source, Partitions):
            return DataGraph(PartitionSource(source, Path(get_worker().local_directory) / f"graphdb-{source.digest}"))
        try:
            same = File.at(source.path, source.subclasses) == source
        except OSError as error:
            raise ExecutionError(f"a worker cannot read '{source.path}': {error.strerror}", hint=_SHARED) from error
        if not same:
            raise ExecutionError(f"'{source.path}' is another file on a worker, or has changed", hint=_SHARED)
        state = State(source.path, 1, Budget.of(None), read_only=True, subclasses=source.subclasses)
        self._states[source] = state
        with state.hold():
            return state.snapshot().graph

    def plan(self, job: Job, source: Source) -> PhysicalPlan | JointCount:
        """The job's plan, made when it is first asked for; raises :class:`OtherPlan` where it is not the client's."""
        key = (source.name if isinstance(source, Triples) else source, job.name)
        with self._lock:
            if key not in self._plans:
                graph = self.graph(source)
                plans = [make_plan(_received(pattern), graph, counting=job.counting) for pattern in job.patterns]
                if "".join(map(digest_of, plans)) != job.digest:
                    raise OtherPlan
                self._plans[key] = JointCount.of(plans) if job.joint else plans[0]
                while len(self._plans) > PLANS:
                    self._plans.popitem(last=False)
            self._plans.move_to_end(key)
            return self._plans[key]

    def executor(self, device: str) -> Divisible:
        """What runs shares: one thread of the host for each task, or the device that the worker sees first."""
        with self._lock:
            if device not in self._executors:
                named = devices_named(device)
                opened = HostExecutor(1) if named is None else open_device(named.found()[0], named.hint)
                self._executors[device] = opened
            return self._executors[device]


def _aligned(values: NDArray[Any]) -> NDArray[Any]:
    """An array that begins where its items may: Dask's stand wherever the message before them ended, and compiled code
    takes no such array.
    """
    return np.require(values, requirements="A")


def _received(pattern: PatternGraph) -> PatternGraph:
    """A pattern from a message, for compiled code."""
    vertices = (
        vertex if vertex.candidates is None else replace(vertex, candidates=_aligned(vertex.candidates))
        for vertex in pattern.vertices
    )
    return replace(pattern, vertices=tuple(vertices))


_SHARED = "open a file that all workers see under one path, and write to it nowhere"
_ready = _Ready()


@contextmanager
def _control(limits: Limits, share: tuple[int, int] | None) -> Iterator[Control]:
    """The control of a task, which ends when the scheduler wants it no more."""
    from distributed import get_worker

    cancelled, done = threading.Event(), threading.Event()
    worker = get_worker()
    key = worker.get_current_task()

    def watch() -> None:
        while not done.wait(POLL):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                cancelled.set()
                return

    watching = threading.Thread(target=watch, name="graphdb-task", daemon=True)
    watching.start()
    try:
        yield Control(timeout=limits.timeout, cancelled=cancelled, limit=limits.limit, share=share)
    finally:
        done.set()


# --- tasks


def process() -> str:
    """The name of the process that this runs in."""
    return PROCESS


def divided(
    job: Job, source: Source, wanted: int, limits: Limits, workers: int
) -> tuple[Cuts, WorkProfile | None] | None:
    """How a run divides, into which shares, and how its work is expected to be spread: a count on devices into few
    shares, which begin large, since each one's last block of threads has the device to itself.
    """
    plan, executor = _ready.plan(job, source), _ready.executor(job.device)
    with _control(limits, None) as control:
        division = division_of(executor, plan, control)
        if division is None:
            return None
        if not is_counted(plan, control):
            return cuts_of(division, wanted), None
        cuts, parts = division.factored(workers, wanted)
        return (division.without_weights(), cuts, parts), WorkProfile.expected(division.weights)


def counted(job: Job, source: Source, division: Division, share: tuple[int, int], limits: Limits) -> Partial:
    """Count a share."""
    plan, executor = _ready.plan(job, source), _ready.executor(job.device)
    with _control(limits, share) as control:
        if isinstance(plan, JointCount):
            return executor.partial_jointly(plan, control)
        return executor.partial(plan, division, control)


def timed(
    job: Job, source: Source, division: Division, share: tuple[int, int], limits: Limits
) -> tuple[Partial, float]:
    """Count a share; and the seconds that this took."""
    # What a worker does once is no work of the share's.
    _ready.plan(job, source)
    _ready.executor(job.device)
    started = time.perf_counter()
    return counted(job, source, division, share, limits), time.perf_counter() - started


def rows(job: Job, source: Source, division: Division, share: tuple[int, int], limits: Limits) -> Rows:
    """Run a share for its rows."""
    plan = _ready.plan(job, source)
    assert isinstance(plan, PhysicalPlan)
    with _control(limits, share) as control:
        blocks = _ready.executor(job.device).rows_of(plan, division, control)
        return [(block.columns, block.count, block.matches) for block in blocks]


def division_of(executor: Divisible, plan: PhysicalPlan | JointCount, control: Control) -> Division | None:
    """How a run divides; None where it is one piece."""
    if isinstance(plan, JointCount):
        return executor.division_jointly(plan, control)
    return executor.division(plan, plan.count_only, control)


def is_counted(plan: PhysicalPlan | JointCount, control: Control) -> bool:
    """Whether the order of shares is nobody's concern: all of them are counted."""
    return isinstance(plan, JointCount) or (plan.count_only and control.limit_of(plan) is None)


def cuts_of(division: Division, wanted: int, *, heaviest_first: bool = False) -> Cuts:
    """So many shares of about the same work."""
    return (division.without_weights(), *division.shares(wanted, heaviest_first=heaviest_first))
