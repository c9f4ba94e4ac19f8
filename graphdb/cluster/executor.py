"""The executor of a Dask cluster: large runs as tasks on its workers, all others on this host.

A task is a share of a run (:mod:`graphdb.plan.shares`).  Dask's scheduler places tasks, moves them from busy workers to
idle ones, and runs those of a lost worker again elsewhere; shares are much smaller than a worker's part of the work, so
that it has something to move.  Results are taken in the order of the shares, so rows come in the order in which one
host gives them.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.cluster import tasks
from graphdb.cluster.partition_files import Partitions, published
from graphdb.cluster.tasks import Cuts, File, Job, Limits, OtherPlan, Source, Triples, cuts_of, digest_of
from graphdb.common.errors import ExecutionError, GraphDBError, NotSupportedError
from graphdb.execute.host import RATE, HostExecutor
from graphdb.plan.candidates.refinement import Refinement, Sets
from graphdb.plan.domains import DomainSearch, LabelledLists
from graphdb.plan.executor import Block, Control, Executor, OutOfRange, Traffic
from graphdb.plan.extension import Adjacency, Compressor, Extender
from graphdb.plan.joint import JointCount
from graphdb.plan.physical import Origin, PhysicalPlan
from graphdb.plan.shares import Division, Partial
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.derived.edge_subset import is_subset
from graphdb.storage.triples import TripleStore

if TYPE_CHECKING:
    from distributed import Client, Future

SHARES = 16
"""Tasks for each thread of the cluster."""
LEAST = 0.05
"""Seconds that a task is expected to take at least: the scheduler takes about a millisecond for one."""
RETRIES = 3
"""Workers that a task may lose before the run fails."""
WAIT = 5e-3
"""Seconds between two looks at a task, at first; they grow."""
_log = logging.getLogger("graphdb")


def client_of(cluster: object) -> Client:
    """The client of a cluster: the given one, or a new one for an address such as ``"tcp://host:8786"``.

    Raises
    ------
    GraphDBError
        It is neither, Dask is not installed, or nobody answers at the address.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise NotSupportedError(
            "a cluster needs Dask", hint="pip install 'graphdb-duckdb[dask]', on this host and on the workers"
        ) from error
    if isinstance(cluster, Client):
        return cluster
    if not isinstance(cluster, str):
        raise GraphDBError(
            f"cluster must be a Dask client or an address, found {type(cluster).__name__}",
            hint='use distributed.Client(…), or "tcp://host:8786"',
        )
    try:
        return Client(cluster, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise GraphDBError(f"no cluster answers at {cluster!r}: {error}", hint="start one: dask scheduler") from error


@dataclass(slots=True)
class _Run:
    """A run under way: what its tasks are given."""

    job: Job
    source: Any
    """A :class:`File`, :class:`Partitions`, or the future of :class:`Triples` that workers have."""
    division: Division
    cuts: list[tuple[int, int]]
    weights: list[float]


class ClusterExecutor:
    """Runs plans on the workers of a cluster.

    Parameters
    ----------
    cluster
        A Dask client, or an address.
    path
        The database file, which all workers see, unless there is ``storage``.
    local
        Runs what is small, or not divided.
    device
        What each worker runs shares on: ``"cpu"`` (one thread for each task), or ``"cuda"``: the device it sees first.
    shares, least
        How many tasks each thread gets, and the seconds that one takes at least.
    storage
        A folder where the graph's partitions are for workers (:mod:`graphdb.cluster.partition_files`); None: they open
        the file.
    """

    def __init__(
        self,
        cluster: object,
        path: str,
        local: Executor,
        *,
        device: str = "cpu",
        subclasses: bool = False,
        shares: int = SHARES,
        least: float | None = None,
        storage: str | None = None,
    ) -> None:
        self.client = client_of(cluster)
        self._close = weakref.finalize(self, self.client.close) if isinstance(cluster, str) else None
        try:
            processes = self.client.run(tasks.process)
        except ImportError as error:
            raise GraphDBError(
                f"a worker cannot import what its tasks need: {error}",
                hint="pip install 'graphdb-duckdb[dask]' on the workers, the same version as here",
            ) from error
        if tasks.PROCESS in processes.values():
            raise GraphDBError(
                "a worker runs in this process, and would wait for the statement that waits for it",
                hint="start workers as processes: LocalCluster(processes=True)",
            )
        self.name = f"cluster {self.client.scheduler_info()['address']}"
        self._file = File.at(path, subclasses)
        self._storage = storage
        self._published: weakref.WeakKeyDictionary[DataGraph, Partitions] = weakref.WeakKeyDictionary()
        self._local, self._device = local, "cpu" if device == "auto" else device
        self._shares, self._least = shares, LEAST if least is None else least
        self._host = HostExecutor(1)
        self._sent: weakref.WeakKeyDictionary[DataGraph, Future] = weakref.WeakKeyDictionary()

    def close(self) -> None:
        """Close the client, unless it is the caller's."""
        if self._close is not None:
            self._close()

    # --- what does not run on workers

    def supports(self, plan: PhysicalPlan) -> bool:
        """Every plan that the local executor runs."""
        return self._local.supports(plan)

    def memory(self, plan: PhysicalPlan) -> int:
        """Bytes that a run needs here."""
        return self._local.memory(plan)

    def refine(self, task: Refinement) -> Sets | None:
        """Refine candidates locally."""
        return self._local.refine(task)

    def domain_search(
        self, lists: LabelledLists, scanned: float, control: Control, host_memory: int | None
    ) -> DomainSearch | None:
        """What finds domains locally."""
        return self._local.domain_search(lists, scanned, control, host_memory)

    def extender(self, lists: Adjacency, scanned: float, control: Control) -> Extender | None:
        """What extends embeddings locally."""
        return self._local.extender(lists, scanned, control)

    def traffic(self) -> Traffic:
        """The local executor's."""
        return self._local.traffic()

    def compressor(self, rows: int, nbytes: int, control: Control) -> Compressor | None:
        """What filters tables locally."""
        return self._local.compressor(rows, nbytes, control)

    def counts_cliques(self, plan: PhysicalPlan) -> bool:
        """Whether that is so locally: workers have the same kernels."""
        return self._local.counts_cliques(plan)

    def describe(self, plan: PhysicalPlan) -> str:
        """Where the plan runs, and into how many tasks it is divided, about."""
        wanted = self._wanted(plan) if _origin(plan) is not None else 0
        if wanted < 2:
            return self._local.describe(plan)
        number = f"about {wanted}" if self._device == "cpu" or not plan.count_only else f"up to {wanted}"
        return f"{self.name} by {self._device}, in {number} tasks for {self._threads()} threads"

    def describe_jointly(self, joint: JointCount) -> str:
        """The same for patterns that are counted together."""
        wanted = self._wanted(joint) if self._device == "cpu" else 0
        if wanted < 2:
            return self._local.describe_jointly(joint)
        return f"{self.name} by {self._device}, in about {wanted} tasks for {self._threads()} threads"

    # --- runs

    def run(self, plan: PhysicalPlan, control: Control | None = None) -> Iterator[Block]:
        """Run the plan and give its matches block by block, in the order in which one host gives them.

        Raises
        ------
        QueryTimeout, ExecutionError, MemoryLimitError, DeviceError
            When the time is over, when cancelled, and what a worker raised.
        """
        control = control or Control()
        started, left = time.monotonic(), control.limit_of(plan)
        try:
            run = self._begun(plan, control)
            if run is None:
                yield from self._local.run(plan, control)
                return
            given = False
            try:
                for found in self._results(run, tasks.rows, control, left):
                    for columns, count, matches in found:
                        wanted = count if left is None else min(count, left)
                        given = True
                        cells = {name: column[:wanted] for name, column in columns.items()}
                        yield Block(cells, wanted, None if matches is None else matches[:wanted])
                        left = None if left is None else left - wanted
                        if left == 0:
                            return
                return
            except (OtherPlan, OutOfRange):
                if given:
                    raise ExecutionError("workers made different plans of one pattern") from None
            _log.warning("a query runs on this host: workers made another plan")
            yield from self._local.run(plan, control)
        finally:
            control.seconds = time.monotonic() - started

    def count(self, plan: PhysicalPlan, control: Control | None = None) -> int:
        """Run the plan for the number of its matches; raises like :meth:`run`."""
        control = control or Control()
        started, limit = time.monotonic(), control.limit_of(plan)
        try:
            run = self._begun(plan, control)
            sums = None if run is None else self._summed(run, control, limit)
            if run is None or sums is None:
                return self._local.count(plan, control)
            found = self._host.total(plan, run.division, sums) if sums else 0
            return found if limit is None else min(found, limit)
        finally:
            control.seconds = time.monotonic() - started

    def count_jointly(self, joint: JointCount, control: Control | None = None) -> list[int]:
        """Count several patterns together; raises like :meth:`run`."""
        control, started = control or Control(), time.monotonic()
        try:
            run = self._begun(joint, control)
            sums = None if run is None else self._summed(run, control, None)
            if not sums:
                return self._local.count_jointly(joint, control)
            return joint.numbers_of(sums)
        finally:
            control.seconds = time.monotonic() - started

    def _summed(self, run: _Run, control: Control, limit: int | None) -> Partial | None:
        """The sums over all shares; None where the workers have another plan."""
        sums: Partial = ()
        try:
            for partial in self._results(run, tasks.counted, control, limit):
                sums = tuple(a + b for a, b in zip(sums, partial, strict=True)) if sums else partial
                if limit is not None and sums[0] >= limit:
                    break
        except (OtherPlan, OutOfRange):
            _log.warning("a query is counted on this host: workers made another plan")
            return None
        control.report(1.0)
        return sums

    # --- tasks

    def _threads(self) -> int:
        """Threads of all workers."""
        return sum(self.client.nthreads().values())

    def _wanted(self, plan: PhysicalPlan | JointCount) -> int:
        """How many tasks a run is worth."""
        if isinstance(plan, JointCount):
            seconds = plan.counting.cost / RATE
        else:
            seconds = self._host.seconds(plan, plan.count_only)
        if seconds < 2 * self._least:  # and the scheduler is not asked
            return 0
        many = self._shares * self._threads()
        return many if not self._least else min(many, int(seconds / self._least))

    def _begun(self, plan: PhysicalPlan | JointCount, control: Control) -> _Run | None:
        """What the tasks of a run are given; None where it runs on this host."""
        joint = isinstance(plan, JointCount)
        plans = plan.plans if isinstance(plan, JointCount) else (plan,)
        origins = [_origin(each) for each in plans]
        if None in origins or (joint and self._device != "cpu"):
            return None
        wanted = self._wanted(plan)
        if wanted < 2:
            return None
        first = origins[0]
        assert first is not None
        patterns = tuple(origin.pattern for origin in origins if origin is not None)
        digest = "".join(map(digest_of, plans))
        written = pickle.dumps((patterns, joint, first.counting, self._device, digest))
        name = hashlib.blake2b(written, digest_size=16).hexdigest()
        job = Job(name, patterns, joint, first.counting, self._device, digest)
        source = self._source(first.graph, control)
        cuts = self._cuts(plan, job, source, control, wanted)
        return None if cuts is None else _Run(job, source, *cuts)

    def _cuts(
        self, plan: PhysicalPlan | JointCount, job: Job, source: Any, control: Control, wanted: int
    ) -> Cuts | None:
        """How a run divides: a device's sums have numbers of their own, which a worker knows."""
        if self._device == "cpu":
            return cuts_of(self._host, plan, control, wanted)
        limits = _limits(control, None if isinstance(plan, JointCount) else control.limit_of(plan))
        given = job, source, wanted, limits, self._threads()
        future = self.client.submit(tasks.divided, *given, pure=False, retries=RETRIES)
        found: Cuts | None = self._result(future, control, 0.0)
        return found

    def _source(self, graph: DataGraph, control: Control) -> Any:
        """Where workers find a graph: the file, its partitions, or the arrays that they were sent."""
        if isinstance(graph.source, TripleStore):
            if self._storage is None:
                return self._file
            if graph not in self._published:
                state, check = self._file.state(), partial(control.watch, lambda: 0.0)
                self._published[graph] = published(graph.source, self._storage, state, check)
            return self._published[graph]
        assert isinstance(graph.source, ArraySource)
        if graph not in self._sent:
            (piece,) = graph.source.triples()
            labels, subjects, objects = (np.asarray(column) for column in piece)
            name = hashlib.blake2b(digest_size=16)
            for column in (labels, subjects, objects):
                name.update(column.tobytes())
            numbers = (graph.source.resources, graph.source.literals, graph.source.type_label)
            sent: Source = Triples(f"{name.hexdigest()} {numbers}", labels, subjects, objects, *numbers)
            self._sent[graph] = self.client.scatter(sent, broadcast=True, hash=False)
        return self._sent[graph]

    def _results(self, run: _Run, work: Any, control: Control, limit: int | None) -> Iterator[Any]:
        """The results of the tasks, in the order of the shares; all tasks end with the caller."""
        limits = _limits(control, limit)
        futures = [
            self.client.submit(
                work, run.job, run.source, run.division, cut, limits, pure=False, retries=RETRIES, priority=-number
            )
            for number, cut in enumerate(run.cuts)
        ]
        done = 0.0
        try:
            for number, weight in enumerate(run.weights):
                future, futures[number] = futures[number], None
                try:
                    yield self._result(future, control, done)
                except BaseException:
                    futures[number] = future
                    raise
                done += weight
        finally:
            left = [future for future in futures if future is not None]
            if left:
                self.client.cancel(left, force=True)

    def _result(self, future: Future, control: Control, done: float) -> Any:
        """Wait for a task; raises what it raised, and what the control does."""
        pause = WAIT
        while not future.done():
            control.watch(lambda: done)
            time.sleep(pause)
            pause = min(2 * pause, 0.02)
        if future.status == "error":
            error = future.exception()
            if isinstance(error, GraphDBError | OtherPlan | OutOfRange):
                raise error
            raise ExecutionError(f"a worker failed: {type(error).__name__}: {error}") from error
        if future.cancelled():
            raise ExecutionError("a task was lost: its cluster was closed, or forgot it")
        return future.result()


def _origin(plan: PhysicalPlan) -> Origin | None:
    """What a worker can make the plan of; None where its edges are subsets that only this process knows."""
    origin = plan.origin
    if origin is None or plan.scan is not None or not plan.steps:
        return None
    pattern = origin.pattern
    labels = [*(edge.labels for edge in pattern.edges), *(test.labels for test in pattern.edge_tests)]
    known = not any(is_subset(label) for each in labels for label in each or ())
    return origin if known else None


def _limits(control: Control, limit: int | None) -> Limits:
    return Limits(limit, None if control.timeout is None else max(control.timeout - control.passed, 0.0))
