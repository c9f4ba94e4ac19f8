"""What is derived of one state of the triples: in memory within a budget, or followed from an earlier state."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.compile.cancellable import run_cancellable
from graphdb.storage.graph.changes import Changes, Sizes
from graphdb.storage.graph.derived.edge_subset import EdgeSubset, is_subset
from graphdb.storage.graph.following.stale import StaleStructures
from graphdb.storage.graph.source import TripleSource
from graphdb.storage.persisted.store import StateStructures

Ints = NDArray[np.int64]
T = TypeVar("T")

_CAUGHT_UP = ("partition", "members", "estimate")
"""Structures that take in a batch in about the time that it takes itself."""

_MANY = 10_000
"""Triples that change from which on threads take less time to start than they save."""

QUICK = 300_000
"""Edges that a structure is derived from before anybody would want to stop it: some 20 ms."""


class DerivedStructures:
    """Structures by their keys, tuples that begin with a word: built once, the least recently used going first.

    Safe to share between threads.  Each structure has ``nbytes``.

    Parameters
    ----------
    source
        The triples.
    memory_budget_bytes
        How much the structures may hold together.
    persisted
        What was derived of the same triples before.
    """

    def __init__(self, source: TripleSource, memory_budget_bytes: int, persisted: StateStructures) -> None:
        self.source = source
        self.resources = source.resources
        self.type_label = source.type_label
        self.memory_budget_bytes = memory_budget_bytes
        self._persisted = persisted
        self._lock = threading.RLock()
        self._cache: OrderedDict[tuple[Any, ...], tuple[Any, int]] = OrderedDict()
        self._cached_bytes = 0
        self._check: Callable[[], None] = lambda: None
        self._stale = StaleStructures()
        self._subsets: WeakValueDictionary[int, EdgeSubset] = WeakValueDictionary()

    @property
    def cached_bytes(self) -> int:
        """Bytes that the derived structures hold now."""
        return self._cached_bytes

    @property
    def sizes(self) -> Sizes:
        """How many terms there are."""
        return Sizes(self.resources, self.source.literals)

    def follow(self, previous: DerivedStructures, changes: Iterable[Changes]) -> None:
        """Take over what was derived from an earlier graph; each structure is brought up to date when it is asked for.

        ``previous`` is not to be used any more.
        """
        if previous.type_label != self.type_label:
            return
        with previous._lock:
            self._stale, size_so_far = previous._stale, 0
            for key, (value, size) in reversed(previous._cache.items()):
                size_so_far += size
                if size_so_far <= self.memory_budget_bytes // 2:  # both may be there for a while
                    self._stale.add(key, value, previous.sizes)
            for change in changes:
                self._stale.note(change, self.type_label)

    def catch_up(self, threads: int = 1) -> None:
        """Bring now up to date what takes in changes in place, or by a copy: the next query finds it as it left it.

        Partitions take in large changes side by side, on as many threads at most, all together.
        """
        with self._lock:
            waiting = [key for key in self._stale.waiting() if key[0] in _CAUGHT_UP]
            partitions = [key for key in waiting if key[0] == "partition"]
            found = dict[tuple[Any, ...], Any]()
            if min(threads, len(partitions)) > 1 and self._stale.changed >= _MANY:
                at_once = min(threads, len(partitions))
                with ThreadPoolExecutor(at_once, "graphdb-follow") as pool:
                    update = partial(self._updated, threads=threads // at_once)
                    found.update(zip(partitions, pool.map(update, partitions), strict=True))
            for key in waiting:
                if (value := found[key] if key in found else self._updated(key)) is not None:
                    self._put(key, value)

    @contextmanager
    def watched(self, check: Callable[[], None]) -> Iterator[None]:
        """While this lasts, ``check`` is called every few milliseconds of deriving; what it raises stops that."""
        before, self._check = self._check, check
        try:
            yield
        finally:
            self._check = before

    def check(self) -> None:
        """Raise if whoever plans over this graph wants no more."""
        self._check()

    def _derive(self, edges: int, build: Callable[[], T]) -> T:
        """Derive a structure from so many edges."""
        self._check()
        return build() if edges < QUICK else run_cancellable(build, self._check)

    def derived(self, key: tuple[Any, ...], build: Callable[[], T]) -> T:
        """What a planner or a miner derives from the graph (it has ``nbytes``), cached like everything else.

        ``key`` begins with a word.
        """
        return self._cached(("derived", *key), build)

    def estimate(self, key: tuple[Any, ...], build: Callable[[], T]) -> T:
        """What a planner estimates from the graph, as :meth:`derived`; a handful of changes leaves it as it is."""
        return self._cached(("estimate", *key), build)

    def subset(self, labels: tuple[int, ...], kinds: Ints | int, subjects: Ints, objects: Ints) -> EdgeSubset:
        """Some edges of some labels; while the caller has it, its number is used as an edge label is.

        See :class:`~graphdb.storage.graph.derived.edge_subset.EdgeSubset` for the arrays.
        """
        made = EdgeSubset(labels, kinds, subjects, objects)
        self._subsets[made.number] = made
        return made

    def _subset_in(self, labels: tuple[int, ...] | None) -> EdgeSubset | None:
        """Return the subset that stands in the place of edge labels, which then is the only one."""
        return self._subsets[labels[0]] if labels is not None and len(labels) == 1 and is_subset(labels[0]) else None

    def _cached(self, key: tuple[Any, ...], build: Callable[[], T]) -> T:
        """The structure ``key``, built once; older ones are evicted beyond the budget."""
        with self._lock:
            if self._subsets and (subset := self._subset_of(key)) is not None:
                if key not in subset.derived:
                    subset.derived[key] = build()
                return subset.derived[key]  # type: ignore[no-any-return]
            cached = self._cache.get(key)
            if cached is not None:
                self._cache.move_to_end(key)
                return cached[0]  # type: ignore[no-any-return]
            previous: T | None = self._updated(key)
            value = self._persisted.get_or_derive(key, build) if previous is None else previous
            self._put(key, value)
            return value

    def _updated(self, key: tuple[Any, ...], threads: int = 1) -> Any:
        """The structure ``key`` of an earlier graph as it is now; None where it is to be built."""
        return self._stale.updated(key, self.sizes, self.type_label, self.source.occurring, threads)

    def _put(self, key: tuple[Any, ...], value: Any) -> None:
        self._cache[key] = (value, value.nbytes)
        self._cached_bytes += value.nbytes
        while self._cached_bytes > self.memory_budget_bytes and len(self._cache) > 1:
            self._cached_bytes -= self._cache.popitem(last=False)[1][1]

    def _subset_of(self, key: tuple[Any, ...]) -> EdgeSubset | None:
        """Return the subset of edges that a structure is derived from, alone: it goes with that."""
        numbers = (each for part in key for each in (part if isinstance(part, tuple) else (part,)))
        return next((self._subsets[each] for each in numbers if isinstance(each, int) and is_subset(each)), None)
