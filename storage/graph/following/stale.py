"""Derived structures of an earlier graph, each brought up to date when it is asked for.

So the first query after a small load or update does not derive everything anew.  A structure of edge labels that did
not change is moved, a partition of one that did takes in what came and went (:mod:`.partitions`), and so do
sets of vertices (:mod:`graphdb.storage.graph.changes`).  Whatever is neither is derived anew when it is next asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.arrays.sorted_sets import both, joined, without
from graphdb.storage.graph.changes import MOST, Changes, Sizes, grown, having, loops, members, moved_column
from graphdb.storage.graph.derived.closure import closure_of
from graphdb.storage.graph.following.partitions import merged, moved

Ints = NDArray[np.int64]

_BEHIND = 1024
"""Changes from which on the members of a label had better be brought up to date, and those that nobody needs go."""

_NOTED = 1000
"""Vertices that get or lose labels by one change, from which on they are not noted one by one."""

_DRIFT = 64
"""How many vertices there are at least for each triple that changes before estimates are made anew."""


class StaleStructures:
    """Derived structures of an earlier graph, until they are asked for or dropped.

    Each is stored with the sizes that the graph had, and where in the log the changes since begin.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[Any, ...], tuple[Any, Sizes, int]] = {}
        self._log: list[tuple[Changes, frozenset[int]]] = []
        """Changes in their order, with their labels: as long as some structure needs them."""
        self._totals = [0]
        """How many triples changed before each, and with all of them."""
        self._drift: dict[tuple[Any, ...], int] = {}
        """How many triples changed since estimates were made."""
        self._labelled: dict[int, dict[int, tuple[int, bool]]] = {}
        """By vertex label and vertex, where in the log the last change is that gave or took it, and whether it gave."""
        self._labelled_from = 0
        """Where in the log the changes begin of which all are among these."""

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self._entries

    @property
    def changed(self) -> int:
        """How many triples changed since the eldest of them was as the graph."""
        return self._totals[-1] - min((self._totals[begin] for _, _, begin in self._entries.values()), default=0)

    def waiting(self) -> list[tuple[Any, ...]]:
        """Return the keys of all, those used least recently first."""
        return [*self._entries][::-1]

    def add(self, key: tuple[Any, ...], value: Any, sizes: Sizes) -> None:
        """Add a structure of the graph as it is."""
        self._entries[key] = (value, sizes, len(self._log))

    def note(self, changes: Changes, type_label: int | None) -> None:
        """Note a change for all of them; those behind by more than :data:`MOST` triples are dropped."""
        least, totals = self._totals[-1] - MOST, self._totals
        self._entries = {key: entry for key, entry in self._entries.items() if totals[entry[2]] >= least}
        if not self._entries:
            self._log, self._totals = [], [0]
            self._labelled, self._labelled_from = {}, 0
            return
        labels = changes.labels
        if type_label in labels:
            self._note_labels(changes, type_label)
        self._log.append((changes, labels))
        self._totals.append(self._totals[-1] + changes.triples)
        if len(self._log) % _BEHIND == 0:
            self._forget(min(begin for _, _, begin in self._entries.values()))

    def _note_labels(self, changes: Changes, type_label: int | None) -> None:
        """Note which vertices get and lose labels by the next change of the log."""
        place = len(self._log)
        gone, come = (rows[rows[:, 0] == type_label, 1:].tolist() for rows in (changes.removed, changes.added))
        if len(gone) + len(come) > _NOTED:
            self._labelled, self._labelled_from = {}, place + 1
            return
        for rows, is_there in ((gone, False), (come, True)):
            for vertex, class_id in rows:
                self._labelled.setdefault(class_id, {})[vertex] = place, is_there

    def _forget(self, changes: int) -> None:
        """Forget the first changes of the log, which no structure needs any more."""
        log, totals, labelled_from = self._log[changes:], self._totals[changes:], max(self._labelled_from - changes, 0)
        entries = {key: (value, sizes, at - changes) for key, (value, sizes, at) in self._entries.items()}
        labelled = {
            class_id: {vertex: (at - changes, there) for vertex, (at, there) in known.items() if at >= changes}
            for class_id, known in self._labelled.items()
        }
        # All at once: an interrupt would come between calls.
        self._log, self._totals, self._entries = log, totals, entries
        self._labelled, self._labelled_from = labelled, labelled_from

    def behind(self, key: tuple[Any, ...], labels: frozenset[int]) -> tuple[Any, Sizes, list[Changes]] | None:
        """Take a structure that changes of some labels concern, its sizes and the changes; None where there is none."""
        if key not in self._entries or not any(touched & labels for _, touched in self._log[self._entries[key][2] :]):
            return None
        value, before, begin = self._entries.pop(key)
        return value, before, [changes for changes, _ in self._log[begin:]]

    def members_among(self, vertices: Ints, class_id: int) -> Ints | None:
        """Return those of a handful of vertices, sorted, that have a vertex label.

        None where its vertices were not in memory before the changes, or these are so many that they had better be
        brought up to date.
        """
        entry = self._entries.get(("members", class_id))
        if entry is None or entry[2] < self._labelled_from or len(self._log) - entry[2] > _BEHIND:
            return None
        value, _, begin = entry
        members, known = set(both(vertices, value).tolist()), self._labelled.get(class_id, {})
        for vertex in vertices.tolist():
            place, is_there = known.get(vertex, (-1, False))
            if place >= begin:
                (members.add if is_there else members.discard)(vertex)
        return np.array(sorted(members), np.int64)

    def _members(self, value: Ints, class_id: int, type_label: int | None, begin: int) -> Ints:
        """Return the vertices with a vertex label, of those that had it when the log was as long as ``begin``."""
        if begin < self._labelled_from:
            return members(value, class_id, type_label, [changes for changes, _ in self._log[begin:]])
        since = [(vertex, there) for vertex, (at, there) in self._labelled.get(class_id, {}).items() if at >= begin]
        gone, come = (np.array(sorted(vertex for vertex, there in since if there is was), np.int64)
                      for was in (False, True))  # fmt: skip
        return joined(without(value, gone), come)

    def updated(
        self,
        key: tuple[Any, ...],
        now: Sizes,
        type_label: int | None,
        occurring: Callable[[Ints], Ints],
        threads: int = 1,
    ) -> Any:
        """The structure ``key`` as it is now; None where it is to be derived anew. See :func:`grown`."""
        if key not in self._entries:
            return None
        value, before, begin = self._entries.pop(key)
        if key[0] == "estimate":
            self._drift[key] = self._drift.get(key, 0) + self._totals[-1] - self._totals[begin]
            if self._drift[key] * _DRIFT <= now.vertices:
                return value
            del self._drift[key]
            return None
        since = [changes for changes, _ in self._log[begin:]]
        touched = frozenset[int]().union(*(labels for _, labels in self._log[begin:]))
        match key:
            case ("partition", (label,), _) if (closure := closure_of(label)) is not None:
                if closure.label in touched or _relabelled(since, type_label, closure.within):
                    return None
                if closure.within is None and closure.low == 0 and before.resources != now.resources:
                    return None  # of 0 edges, each vertex is joined with itself
                return moved(value, before, now)
            case ("tops", label, within) if label not in touched and not _relabelled(since, type_label, within):
                return value.grown(now.resources)
            case ("forest", label) if label not in touched:
                return value.grown(now.resources)
            case ("signature", label, _) if closure_of(label) is not None:
                return None
            case ("partition", labels, _) if labels is not None and not touched.intersection(labels):
                return moved(value, before, now)
            case ("partition", labels, direction):
                return merged(value, labels, direction, type_label, before, now, since, threads)
            case ("signature", label, _) if not touched & {label, type_label}:
                return moved_column(value, before, now)
            case ("oriented", labels) if labels is not None and before == now and not touched.intersection(labels):
                return value
            case ("members", class_id):
                return self._members(value, class_id, type_label, begin)
            case ("universe",):
                return grown(value, type_label, since, occurring)
            case ("derived", "has property", label):
                return having(value, label, now, since)
            case ("derived", "number of loops", label) if label not in touched:
                return value
            case ("derived", "loops", labels) if labels is None or not any(map(closure_of, labels)):
                return loops(value, labels, type_label, since)
        return None


def _relabelled(changes: Iterable[Changes], type_label: int | None, class_id: int | None) -> bool:
    """Whether some changes give a vertex label to vertices, or take it from some."""
    return class_id is not None and any(change.relabel(type_label, frozenset((class_id,))) for change in changes)
