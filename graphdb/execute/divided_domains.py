"""Domains of patterns found by several executors at once: each looks at a part of a level's patterns.

The domains that a level finds stay where they were found, and a pattern of the next level goes where those of the
smaller pattern are that it was made of: nothing is copied between devices.  Domains only save work.  So where an
executor fails, the others look at the level again, with all vertices of a label in place of domains that are lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import GraphDBError
from graphdb.execute.guided_scheduling import FAILURES
from graphdb.execute.scheduler import Pause, schedule
from graphdb.plan.domains import PLACES, Candidates, DomainSearch
from graphdb.plan.executor import Control

Ints = NDArray[np.int64]


class DividedDomains:
    """Finds domains with several searches (:class:`graphdb.plan.domains.DomainSearch`).

    Parameters
    ----------
    searches
        They, by the executor's number; each stops when ``stop`` is set.
    labels
        How many sets of candidates are labels' vertices.
    control
        The run's.
    failed
        Called with an executor that fails, and its error.
    """

    def __init__(
        self,
        searches: Mapping[int, DomainSearch],
        labels: int,
        control: Control,
        stop: threading.Event,
        failed: Callable[[int, GraphDBError], None],
    ) -> None:
        self._searches, self._labels = dict(searches), labels
        self.name = " and ".join(search.name for search in searches.values())
        self._control, self._stop, self._failed = control, stop, failed
        self._owner, self._own, self._label = np.full(labels, -1), np.arange(labels), np.arange(labels)
        """By the number of a set of candidates: who has it (-1: all), its number there, and its vertices' label."""
        self._parts: dict[int, Ints] = {}
        self._sources = np.empty((0, PLACES), np.int64)

    @property
    def summary(self) -> str:
        """What each says."""
        return "; ".join(search.summary for search in self._searches.values() if search.summary)

    def find(
        self, candidates: Candidates, support: int, keep: bool, share: Callable[[float], float]
    ) -> tuple[Ints, Ints]:
        """Find the domains of patterns (:meth:`graphdb.plan.domains.DomainSearch.find`)."""
        count = len(candidates)
        supports, examples = np.zeros(count, np.int64), np.zeros((count, PLACES), np.int64)
        self._sources = candidates.sources

        def work(number: int, _: int, __: Pause) -> None:
            part, search = self._parts[number], self._searches[number]
            wanted = _part(candidates, part)
            here = self._owner[wanted.sources] == number
            wanted = replace(wanted, sources=np.where(here, self._own[wanted.sources], self._label[wanted.sources]))
            try:
                supports[part], examples[part] = search.find(wanted, support, keep, share)
            except FAILURES as error:
                errors[number] = error

        while True:
            errors: dict[int, GraphDBError] = {}
            self._parts = self._scheduled(candidates)
            schedule(list(self._parts), work, len(self._parts), self._control.check, self._stop.set)
            for number, error in errors.items():
                del self._searches[number]
                self._failed(number, error)
            if not errors:
                return supports, examples
            if not self._searches:
                raise next(iter(errors.values()))

    def _scheduled(self, candidates: Candidates) -> dict[int, Ints]:
        """Which patterns each looks at: where the domains of a smaller one are, else in turns."""
        there = np.array(list(self._searches))
        owner = self._owner[candidates.sources].max(axis=1, initial=-1)
        free = ~np.isin(owner, there)
        owner[free] = there[np.arange(np.count_nonzero(free)) % len(there)]
        return {int(number): np.flatnonzero(owner == number) for number in there}

    def keep(self, frequent: Ints) -> Ints:
        """Drop all domains but those of some patterns of the last call; their numbers."""
        owner, own = np.zeros((2, len(frequent), PLACES), np.int64)
        for number, part in self._parts.items():
            here = np.flatnonzero(np.isin(frequent, part))
            owner[here] = number
            own[here] = self._searches[number].keep(np.searchsorted(part, frequent[here]))
        label = self._label[self._sources[frequent]]
        labels = np.arange(self._labels)
        self._owner = np.concatenate([np.full(self._labels, -1), owner.ravel()])
        self._own, self._label = np.concatenate([labels, own.ravel()]), np.concatenate([labels, label.ravel()])
        return self._labels + np.arange(owner.size).reshape(-1, PLACES)


def _part(candidates: Candidates, which: Ints) -> Candidates:
    """Some of the patterns."""
    columns = (candidates.sizes, candidates.edges, candidates.orbits, candidates.sources)
    return Candidates(*(column[which] for column in columns))
