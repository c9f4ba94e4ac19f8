"""Standing patterns: which of their matches a batch of changed edges adds, and which it takes away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphdb.common.errors import ExecutionError, NotSupportedError
from graphdb.grammar.syntax import MatchMode
from graphdb.incremental import frame
from graphdb.incremental.lists import Lists, Need
from graphdb.incremental.program import Program, make_program
from graphdb.incremental.relations import Relation, Relations
from graphdb.pattern.graph import PatternGraph
from graphdb.storage.graph.source import TripleSource

Ints = NDArray[np.int64]

MOST_VERTICES = 64
"""Of a pattern: the bits of a row of the candidate table."""
_BUDGET = 1 << 20
"""Steps of a search between two looks at whether to stop: some 20 ms."""
_FIRST_ROWS, _MOST_ROWS = 1 << 8, 1 << 16
"""Matches that a search hands over at a time."""


class Updates(NamedTuple):
    """Changed edges, in order: what counts of one that is changed several times is how it is at the end.

    To insert an edge that is there, or to delete one that is not, changes nothing.
    """

    labels: ArrayLike
    """Integers [updates]: edge labels."""
    sources: ArrayLike
    targets: ArrayLike
    """Integers [updates]: vertices of the data graph."""
    inserted: ArrayLike
    """Bools [updates]: False for a deletion."""


class Changes(NamedTuple):
    """What a batch changed of a pattern's matches: int64 [matches, outputs] each, in no particular order.

    An edge is given by its code, twice its label and 1 where it leads from the pattern edge's target to its source.
    """

    added: Ints
    removed: Ints


class IncrementalMatcher:
    """Matches standing patterns incrementally, on one thread.

    Parameters
    ----------
    source
        The data graph at the beginning.  Its vertices are those that changed edges join.
    patterns
        What is matched.  ``outputs`` are what :class:`Changes` have; candidates hold for as long as the matcher lives.

    Raises
    ------
    NotSupportedError
        Where a pattern is not connected by its edges, has more than :data:`MOST_VERTICES` vertices, or asks for
        induced matches, for edge tests, for parallel edges, or for a limit.
    ExecutionError
        Where a batch is applied while another one is under way (:meth:`batch`).
    """

    def __init__(self, source: TripleSource, patterns: Sequence[PatternGraph]) -> None:
        for pattern in patterns:
            _refuse(pattern)
        relations = Relations(source)
        own = [[relations.of(pattern, edge) for edge in pattern.edges] for pattern in patterns]
        needs = [_needs(pattern, found, relations) for pattern, found in zip(patterns, own, strict=True)]
        self._lists = Lists(relations, needs)
        self._lock = threading.Lock()
        self._patterns: list[tuple[_Search, _Search]] = []
        for row, (pattern, found) in enumerate(zip(patterns, own, strict=True)):
            full = plain = _Search(make_program(pattern, found, self._lists, row, plain=True), self._lists.cells)
            if plain.program.relations:
                full = _Search(make_program(pattern, found, self._lists, row, plain=False), self._lists.cells)
            self._patterns.append((plain, full))
        self._addresses = np.array([[plain.address, full.address] for plain, full in self._patterns], np.int64)
        self._addresses = self._addresses.reshape(-1, 2)

    def apply(self, updates: Updates, check: Callable[[], None] = lambda: None) -> list[Changes]:
        """Apply a batch and return its changes, by pattern; ``check`` is called every few milliseconds, and may raise.

        After an error the graph is as before.
        """
        with self.batch(updates, check) as changes:
            return changes

    @contextmanager
    def batch(self, updates: Updates, check: Callable[[], None] = lambda: None) -> Iterator[list[Changes]]:
        """Stage a batch and yield its changes, by pattern; the end commits it, an exception rolls it back."""
        from graphdb.incremental import batch_kernels as kernels

        cells, like, rows = self._lists.cells.ctypes.data, self._lists.like, self._rows(updates)
        version = frame.OLD
        with self._alone():
            try:
                at = 0
                while at < len(rows):
                    at = kernels.stage(cells, like, rows, at, len(rows))
                    if at < len(rows):
                        self._lists.reserve()
                kernels.link(cells, like)
                yield [self._changes(pattern, check) for pattern in range(len(self._patterns))]
                version = frame.NEW
            finally:
                kernels.finish(cells, like, version)

    def count(self, updates: Updates, ends: ArrayLike, check: Callable[[], None] = lambda: None) -> Ints:
        """Apply batches one after the other, and count the matches that each adds and takes away.

        Parameters
        ----------
        updates
            Those of all batches.
        ends
            Ascending integers [batches]: where each ends.
        check
            Called every few milliseconds.  Where it raises, the batches before the one under way are committed.

        Returns
        -------
        int64 [batches, patterns, 2]
            Matches added and removed.
        """
        from graphdb.incremental import batch_kernels as kernels

        rows, last = self._rows(updates), np.ascontiguousarray(ends, np.int64)
        counts = np.zeros((len(last), len(self._patterns), 2), np.int64)
        state = np.zeros(3, np.int64)
        cells, like = self._lists.cells.ctypes.data, self._lists.like
        result = frame.YIELD
        with self._alone():
            try:
                while result != frame.DONE:
                    check()
                    result = kernels.count_batches(cells, like, self._addresses, rows, last, counts, state, _BUDGET)
                    if result == kernels.SPACE:
                        self._lists.reserve()
            finally:
                if result != frame.DONE:
                    kernels.finish(cells, like, frame.OLD)
        return counts

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            raise ExecutionError(
                "a batch is under way on this matcher", hint="end it, or roll it back, before the next one"
            )
        try:
            yield
        finally:
            self._lock.release()

    def _rows(self, updates: Updates) -> Ints:
        """Return updates as kernels read them; raises ValueError where an end is no vertex."""
        labels, sources, targets, inserted = (np.asarray(column, np.int64) for column in updates)
        rows = np.empty((len(labels), 4), np.int64)
        for ends in (sources, targets):
            if len(rows) and (ends.min() < 0 or ends.max() >= self._lists.relations.vertices):
                raise ValueError("a changed edge joins what is no vertex of the data graph")
        lists = self._lists
        columns = (lists.number(labels), lists.inner(sources), lists.inner(targets), inserted)
        for number, column in enumerate(columns):
            rows[:, number] = column
        return rows

    def _changes(self, pattern: int, check: Callable[[], None]) -> Changes:
        from graphdb.incremental import batch_kernels as kernels
        from graphdb.incremental.search_kernels import search as find

        plain, full = self._patterns[pattern]
        address = kernels.start(self._lists.cells.ctypes.data, plain.address, full.address)
        search = plain if address == plain.address else full
        capacity, parts, result = _FIRST_ROWS, list[Ints](), frame.YIELD
        block = np.empty((capacity, len(search.program.pattern.outputs) + 1), np.int64)
        while result != frame.DONE:
            check()
            result = find(address, self._lists.like, block.ctypes.data, capacity, _BUDGET)
            found = int(search.cells[frame.FOUND])
            if result != frame.YIELD:
                parts.append(block[:found])
                capacity = min(2 * capacity, _MOST_ROWS)
                block = np.empty((capacity, block.shape[1]), np.int64)
                search.cells[frame.FOUND] = 0
        rows = np.concatenate(parts)
        first = len(search.program.pattern.vertices)
        for column, slot in enumerate(search.program.tables[frame.OUTPUTS].tolist(), 1):
            if slot < first:
                rows[:, column] = self._lists.outer[rows[:, column]]
            else:
                rows[:, column] = 2 * self._lists.labels[rows[:, column] >> 1] + (rows[:, column] & 1)
        return Changes(rows[rows[:, 0] == frame.NEW, 1:], rows[rows[:, 0] == frame.OLD, 1:])


class _Search:
    """A program with the frame that its search runs on."""

    def __init__(self, program: Program, graph: Ints) -> None:
        self.program, self._graph = program, graph
        self._relations = np.array(program.relations, np.int64)
        self.cells = np.zeros(frame.SEARCH_CELLS, np.int64)
        self.cells[frame.GRAPH] = graph.ctypes.data
        for cell, table in program.tables.items():
            self.cells[cell] = table.ctypes.data
        self.cells[frame.PLAN_COUNT] = len(program.tables[frame.PLANS])
        self.cells[frame.COLUMNS] = len(program.pattern.outputs)
        self.cells[frame.PLAIN], self.cells[frame.PLAIN_COUNT] = self._relations.ctypes.data, len(self._relations)
        self.address = self.cells.ctypes.data


def _refuse(pattern: PatternGraph) -> None:
    """Raise NotSupportedError where a pattern cannot be matched incrementally."""
    reached, left = {pattern.edges[0].source} if pattern.edges else set[int](), list(pattern.edges)
    while near := [edge for edge in left if {edge.source, edge.target} & reached]:
        reached |= {end for edge in near for end in (edge.source, edge.target)}
        left = [edge for edge in left if edge not in near]
    if len(reached) < len(pattern.vertices) or not pattern.edges:
        raise NotSupportedError("only a pattern whose vertices are joined by edges is matched incrementally")
    if len(pattern.vertices) > MOST_VERTICES:
        raise NotSupportedError(f"a pattern of more than {MOST_VERTICES} vertices is not matched incrementally")
    if any(clause.mode is MatchMode.INDUCED for clause in pattern.clauses) or pattern.edge_tests:
        raise NotSupportedError("INDUCED matches and patterns as conditions are not matched incrementally")
    if any(edge.parallel for edge in pattern.edges) or pattern.limit is not None:
        raise NotSupportedError("parallel edges and limits are not matched incrementally")


def _needs(pattern: PatternGraph, own: Sequence[Relation], relations: Relations) -> list[list[Need]]:
    """Return what candidates need: as many entries of a relation as pattern edges must bind different ones (§IV-B)."""
    found: list[list[Need]] = []
    for v in range(len(pattern.vertices)):
        least: dict[tuple[int, int], set[int]] = {}
        for e, edge in enumerate(pattern.edges):
            repeatable = pattern.clauses[edge.clause].mode is MatchMode.REPEATABLE_ELEMENTS
            group = -1 - e if repeatable else edge.clause
            if edge.source == v:
                least.setdefault((relations.numbers[own[e]], group), set()).add(e)
            if edge.target == v:
                least.setdefault((relations.numbers[own[e].reversed], group), set()).add(e)
        most: dict[int, int] = {}
        for (relation, _), edges in least.items():
            most[relation] = max(most.get(relation, 0), len(edges))
        found.append([Need(relation, entries) for relation, entries in most.items()])
    return found
