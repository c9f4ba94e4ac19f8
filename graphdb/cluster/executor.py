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
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdb.cluster import tasks
from graphdb.cluster.partition_files import Partitions, published
from graphdb.cluster.tasks import Cuts, File, Job, Limits, OtherPlan, Source, Triples, cuts_of, digest_of
from graphdb.common.errors import ExecutionError, GraphDBError, NotSupportedError
from graphdb.execute.host import RATE, HostExecutor
from graphdb.execute.work_profile import LastRun, WorkProfile
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
KNOWN = 1.0
"""Seconds for which it is known how many threads the workers have."""
LOOK = 0.05
"""Seconds after which a run looks whether it is still wanted, while it waits for its tasks."""
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
    divided: _Divided | None = None
    """Where what its shares took is remembered, if it is."""


@dataclass(slots=True)
class _Divided:
    """What is known of a plan's runs on devices, so that workers are not asked again how it divides."""

    cuts: Cuts
    expected: WorkProfile | None
    """How the work of a count is expected to be spread."""
    last: LastRun | None = None
    outdated: bool = False
    """Whether a worker could not run its share so."""


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
        self._known_threads: tuple[float, int] | None = None
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
            whole = limit is None
            for partial in self._counted(run, control) if whole else self._results(run, tasks.counted, control, limit):
                sums = tuple(a + b for a, b in zip(sums, partial, strict=True)) if sums else partial
                if limit is not None and sums[0] >= limit:
                    break
        except (OtherPlan, OutOfRange):
            _log.warning("a query is counted on this host: workers made another plan")
            if run.divided is not None:
                run.divided.outdated = True
            return None
        control.report(1.0)
        return sums

    # --- tasks

    def _threads(self) -> int:
        """Threads of all workers, as they were a second ago at most: the scheduler takes milliseconds to say."""
        now = time.monotonic()
        if self._known_threads is None or now - self._known_threads[0] > KNOWN:
            self._known_threads = now, sum(self.client.nthreads().values())
        return self._known_threads[1]

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
        if isinstance(plan, JointCount) and self._device != "cpu":
            return None
        wanted = self._wanted(plan)
        job = None if wanted < 2 else self._job(plan)
        if job is None:
            return None
        first = plan.plans[0] if isinstance(plan, JointCount) else plan
        assert first.origin is not None
        source = self._source(first.origin.graph, control)
        if self._device != "cpu":
            return self._on_devices(first, job, source, control, wanted)
        division = tasks.division_of(self._host, plan, control)
        if division is None:
            return None
        heaviest_first = tasks.is_counted(plan, control)
        return _Run(job, source, *cuts_of(division, wanted, heaviest_first=heaviest_first))

    def _job(self, plan: PhysicalPlan | JointCount) -> Job | None:
        """What workers make a plan of, written once; None where they cannot."""
        key = ("cluster job", self._device)
        if key not in plan.cache:
            joint = isinstance(plan, JointCount)
            plans = plan.plans if isinstance(plan, JointCount) else (plan,)
            origins, found = [origin for each in plans if (origin := _origin(each)) is not None], None
            if len(origins) == len(plans):
                patterns, counting = tuple(origin.pattern for origin in origins), origins[0].counting
                digest = "".join(map(digest_of, plans))
                written = pickle.dumps((patterns, joint, counting, self._device, digest))
                name = hashlib.blake2b(written, digest_size=16).hexdigest()
                found = Job(name, patterns, joint, counting, self._device, digest)
            plan.cache[key] = found
        job: Job | None = plan.cache[key]
        return job

    def _on_devices(self, plan: PhysicalPlan, job: Job, source: Any, control: Control, wanted: int) -> _Run | None:
        """How a run divides on devices: a worker says so once, since sums have numbers of their own there; a count that
        is known is divided by what its shares took.
        """
        workers, limit = self._threads(), control.limit_of(plan)
        key = ("divided", job.name, workers, limit is None)
        known: _Divided | None = plan.cache.get(key)
        if known is None or known.outdated:
            given = job, source, wanted, _limits(control, limit), workers
            future = self.client.submit(tasks.divided, *given, pure=False, retries=RETRIES)
            self._wait([future], control, lambda: 0.0)
            found = self._result(future)
            if found is None:
                return None
            known = plan.cache[key] = _Divided(*found)
        division, cuts, parts = known.cuts
        if known.last is not None:
            cuts, parts = known.last.shares(workers if known.last.seconds > self._least else 1, self._least)
        return _Run(job, source, division, cuts, parts, None if known.expected is None else known)

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

    def _submitted(self, run: _Run, work: Any, control: Control, limit: int | None) -> list[Future]:
        """The tasks of a run, the first of which are to be done first."""
        limits = _limits(control, limit)
        return [
            self.client.submit(
                work, run.job, run.source, run.division, cut, limits, pure=False, retries=RETRIES, priority=-number
            )
            for number, cut in enumerate(run.cuts)
        ]

    def _results(self, run: _Run, work: Any, control: Control, limit: int | None) -> Iterator[Any]:
        """The results of the tasks, in the order of the shares; all tasks end with the caller."""
        left = self._submitted(run, work, control, limit)
        done = 0.0
        try:
            for weight in run.weights:
                self._wait(left[:1], control, partial(float, done))
                yield self._result(left[0])
                del left[0]
                done += weight
        finally:
            if left:
                self.client.cancel(left, force=True)

    def _counted(self, run: _Run, control: Control) -> list[Partial]:
        """What all shares count, which is asked for together: each question takes milliseconds."""
        divided = run.divided
        futures = self._submitted(run, tasks.counted if divided is None else tasks.timed, control, None)
        ended = False
        try:
            weighed = list(zip(futures, run.weights, strict=True))
            self._wait(futures, control, lambda: sum(weight for future, weight in weighed if future.done()))
            for failed in [one for one in futures if one.status != "finished"]:
                self._result(failed)
            found = self.client.gather(futures)
            ended = True
        finally:
            if not ended:
                self.client.cancel(futures, force=True)
        if divided is None or divided.expected is None:
            return list(found)
        profile = divided.expected if divided.last is None else divided.last.profile
        took = [(*cut, seconds) for cut, (_, seconds) in zip(run.cuts, found, strict=True)]
        divided.last = LastRun.after(run.division.unit, profile, took)
        return [partial for partial, _ in found]

    def _wait(self, futures: list[Future], control: Control, done: Callable[[], float]) -> None:
        """Wait until all of some tasks have ended, or one has failed; raises what the control does."""
        changed = threading.Event()
        for future in futures:
            future.add_done_callback(lambda _: changed.set())
        while not all(future.done() for future in futures):
            control.watch(done)
            if any(future.done() and future.status != "finished" for future in futures):
                return
            changed.wait(LOOK)
            changed.clear()

    def _result(self, future: Future) -> Any:
        """What a task gave that has ended; raises what it raised."""
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
