"""Runs a counting plan on the CPU: weights along edges, loops over cores, sums; exact whatever the size.

Work is scheduled on threads in pieces, the heaviest first; the caller's thread watches the clock meanwhile.  Numbers
are int64 while they fit.  A part whose numbers do not is counted again modulo as many primes as its greatest
conceivable count needs, and the Chinese remainder theorem gives that count.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.counting.cliques import count_cliques
from graphdb.execute.counting.crt import Numbers, Overflow, by_remainders, narrowed, sums, times
from graphdb.execute.counting.loops import Loops, list_lengths
from graphdb.execute.counting.run import CountRun
from graphdb.execute.counting.weights import Weights
from graphdb.plan.counting.plan import CountingPlan, Term, added_up, parts_of
from graphdb.plan.counting.programs import Part
from graphdb.plan.executor import Control
from graphdb.plan.physical import CliqueCount
from graphdb.plan.shares import Division

Ints = NDArray[np.int64]


def count_matches(plan: CountingPlan, control: Control, threads: int, memory_limit: int | None = None) -> int | None:
    """Count; None where the vectors do not fit the memory limit.

    Raises
    ------
    QueryTimeout, ExecutionError
        When the time is over, and when cancelled.
    """
    totals = part_totals(plan, control, threads, memory_limit)
    return None if totals is None else added_up(plan.terms, totals)


def part_totals(
    plan: CountingPlan, control: Control, threads: int, memory_limit: int | None = None
) -> dict[Part, int] | None:
    """What each part of the plan's terms adds up to, over the control's share of roots; as :func:`count_matches`."""
    parts = _started(plan, control, threads, memory_limit)
    if parts is None:
        return None
    totals: dict[Part, int] = {}
    for term in plan.terms:
        started = time.monotonic()
        for part in term.parts:
            if part not in totals:
                parts.begin(part)
                totals[part] = by_remainders(partial(parts.total, part), _greatest(plan, term, part))
        control.term_seconds.append(time.monotonic() - started)
    control.report(1.0)
    return totals


def vertex_division(plan: CountingPlan) -> Division | None:
    """How sums divide by the vertices that are their roots; None where all is linear, or in one piece."""
    looped = [part for part in parts_of(plan.terms) if part.levels or part.clique]
    if not looped or (plan.root >= 0 and any(len(term.parts) > 1 for term in plan.terms)):
        return None
    return Division("vertices", plan.vertices, lambda: _root_weights(plan, looped))


def _root_weights(plan: CountingPlan, looped: list[Part]) -> NDArray[np.float64]:
    """About how much work each vertex is as a root: float64 [vertices]."""
    weights = np.zeros(plan.vertices)
    for part in looped:
        if part.clique:
            graph = plan.oriented[part.root_bundles[0].members[0].relation]
            weights += graph.work_by(plan.vertices)
            continue
        partition = plan.partitions[part.root_bundles[0].members[0].relation]
        weights[partition.keys] += (list_lengths(partition, partition.keys) + 1.0) ** 2
    return weights


def count_by_vertex(
    plan: CountingPlan, control: Control, threads: int, memory_limit: int | None = None
) -> tuple[Ints, Numbers] | None:
    """The vertices that the plan's root is bound to, and the matches of each; None where memory does not do.

    Raises what :func:`count_matches` does.
    """
    parts = _started(plan, control, threads, memory_limit)
    if parts is None:
        return None
    found: Numbers | None = None
    for term in plan.terms:
        factor = term.coefficient
        rooted, *others = term.parts  # a share has no others
        for part in others:
            parts.begin(part)
            factor *= by_remainders(partial(parts.total, part), _greatest(plan, term, part))
        parts.begin(rooted)
        values: Numbers = by_remainders(partial(parts.by_root, rooted), _greatest(plan, term, rooted))
        values = times(values, factor)
        found = values if found is None else sums(found, values)
    control.report(1.0)
    found = np.zeros(plan.vertices, np.int64) if found is None else found
    vertices = np.flatnonzero(found)
    return vertices, narrowed(found[vertices])


def _started(plan: CountingPlan, control: Control, threads: int, memory_limit: int | None) -> _Parts | None:
    cache_bytes = 1 << 62
    if memory_limit is not None:
        left = memory_limit - plan.shared_bytes
        threads = min(threads, left // plan.worker_bytes) if plan.worker_bytes else threads
        if left < 0 or threads < 1:
            return None
        # What the vectors leave is a cache of lists, which makes counting faster and is never required.
        cache_bytes = left - threads * plan.worker_bytes
    control.threads = threads
    return _Parts(CountRun(plan, control, threads, cache_bytes))


def _greatest(plan: CountingPlan, term: Term, part: Part) -> int:
    """More than a part of a term can count: every vertex anything, every pair all data edges there are."""
    filters, links = term.quotient.filters, term.quotient.links
    bound = max(int(plan.vertices), 2) ** len(filters) * max(part.multiple, 1)
    most = 1
    for partition in plan.partitions.values():
        if partition.code_offsets is not None:
            most = max(most, int(np.diff(partition.code_offsets).max(initial=1)))
    leaves = sum(term.quotient.falls) - len(filters)  # that others stand for
    ways = sum(len(members) for _, _, members in links) + len(filters) * 8
    return int(bound * most**ways * (max(int(plan.vertices), 2) * most) ** leaves + 1)


class _Parts:
    """Counts the parts of one run of a plan."""

    def __init__(self, run: CountRun) -> None:
        self._run = run
        self._weights = Weights(run)
        self._loops = Loops(run, self._weights)
        self._whole = max(sum(part.cost for part in {part for term in run.plan.terms for part in term.parts}), 1.0)
        self._done = 0.0

    def begin(self, part: Part) -> None:
        """A part that was not counted yet is next: progress is reported within its share of the work."""
        begin, self._done = self._done, min(self._done + part.cost / self._whole, 1.0)
        self._run.expect(part, begin, self._done)

    def total(self, part: Part, modulus: int) -> int:
        """The count of one part (modulo a prime)."""
        if part.clique:
            graph, control = self._run.plan.oriented[part.root_bundles[0].members[0].relation], self._run.as_control()
            if control.share is not None:  # as large a share of its ranks
                ranks = len(graph.work) - 1
                begin, end = (at * ranks // max(self._run.plan.vertices, 1) for at in control.share)
                control = replace(control, share=(begin, end))
            cliques = count_cliques(CliqueCount(part.clique, graph), self._run.threads, control)
            return cliques * part.multiple
        self._run.flags[:] = 0
        roots = self._roots(part)
        if part.levels:
            root = self._weights.values(part.root, roots, modulus)
            found = self._loops.total(part, roots, root, modulus, np.empty(0, np.int64))
        else:
            found = self._weights.total(part.root, roots, modulus)
        self._check_overflow()
        return found * part.multiple

    def by_root(self, part: Part, modulus: int) -> Numbers:
        """The count of one part (modulo a prime) for every vertex that its root may be bound to: [vertices]."""
        self._run.flags[:] = 0
        roots = self._roots(part)
        root = self._weights.values(part.root, roots, modulus)
        found = np.zeros(self._run.plan.vertices, np.int64)
        if part.levels:
            self._loops.total(part, roots, root, modulus, found)
        else:
            found[roots] = root[roots] if len(root) else 1
        self._check_overflow()
        return times(found.astype(object) if modulus else found, part.multiple)

    def _roots(self, part: Part) -> Ints:
        """What the root ranges over, within the share of this run."""
        roots, (begin, end) = self._weights.roots(part), self._run.share
        whole = end - begin == self._run.plan.vertices
        return roots if whole else roots[(roots >= begin) & (roots < end)]

    def _check_overflow(self) -> None:
        if self._run.flags[1]:
            self._weights.forget()
            raise Overflow
