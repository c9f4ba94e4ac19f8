"""Classes of data edges: two of one pair of vertices are alike if the same pattern edges admit them.

A pattern edge admits edges by their labels and, where conditions on its properties were tested before the match
(:attr:`~graphdb.pattern.bind.Choice.fulfil`), by their numbers.  What no condition asks about is a partition of the
graph; where one does, the rows of the edge table are sorted into the classes that fulfil the same conditions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphdb.pattern.bind import Choice
from graphdb.pattern.graph import PatternGraph
from graphdb.relational.edges.edge_numbers import EdgeNumbers
from graphdb.relational.snapshot import Snapshot

Ids = NDArray[np.int64]

Labels = tuple[int, ...] | None


class Admitted(NamedTuple):
    """What a pattern edge admits."""

    labels: Labels
    condition: int = -1
    """The number of its condition among those of the pattern; -1 without one."""


class Conditions:
    """The different conditions on single edges of a pattern."""

    def __init__(self, pattern: PatternGraph, choices: Mapping[int, Choice]) -> None:
        self.tested: list[Choice] = []
        """One choice of each condition."""
        self.admitted: list[Admitted] = []
        """What each pattern edge admits."""
        numbers: dict[tuple[int, bool], int] = {}
        for number, edge in enumerate(pattern.edges):
            choice = choices.get(number)
            if choice is None or choice.fulfil is None:
                self.admitted.append(Admitted(edge.labels))
                continue
            condition = numbers.setdefault((id(choice.fulfil), choice.others), len(numbers))
            if condition == len(self.tested):
                self.tested.append(choice)
            self.admitted.append(Admitted(edge.labels, condition))

    def labels(self) -> set[int]:
        """Return the labels of which some edges fulfil a condition, and others do not."""
        return {label for choice in self.tested for label in choice.labels}


def atoms(
    sets: Iterable[Labels], type_label: int | None, apart: Iterable[int] = ()
) -> list[tuple[frozenset[Labels], Labels]]:
    """Return the labels of which the same sets of labels consist, with these sets.

    None stands for all labels that no set names and that are not ``apart``; it comes last.
    """
    sets = {*sets}
    found: defaultdict[frozenset[Labels], list[int]] = defaultdict(list)
    for label in sorted({label for labels in sets for label in labels or ()}.union(apart)):
        admitting = frozenset(x for x in sets if (label != type_label if x is None else label in x))
        found[admitting].append(label)
    named: list[tuple[frozenset[Labels], Labels]] = [(fits, tuple(labels)) for fits, labels in found.items()]
    return [*named, (frozenset({None}), None)] if None in sets else named


class EdgeClasses:
    """How many edges of each class lead from one vertex to another.

    Attributes
    ----------
    admitted
        For each class what admits its edges.
    """

    def __init__(self, snapshot: Snapshot, pattern: PatternGraph, conditions: Conditions) -> None:
        self._snapshot, self._conditions = snapshot, conditions
        self._parallel = any(edge.parallel for edge in pattern.edges)
        self._type_label = snapshot.graph.type_label
        kinds = {*conditions.admitted}
        found: defaultdict[frozenset[Admitted], list[EdgeNumbers]] = defaultdict(list)
        self._named: list[EdgeNumbers] = []
        """The edges of the labels that are named, but for ``rdf:type``."""
        self._rest: tuple[frozenset[Admitted], EdgeNumbers] | None = None
        """The edges of any label, and what admits those of labels that are not named."""
        for fits, labels in atoms({kind.labels for kind in kinds}, self._type_label, conditions.labels()):
            admitting = frozenset(kind for kind in kinds if kind.labels in fits)
            tested = conditions.labels() if any(kind.condition >= 0 for kind in admitting) else set()
            others = frozenset(kind for kind in admitting if self._fulfil_others(kind))
            if labels is None:
                self._rest = others, self._partition(None)
                continue
            pieces = self._by_rows(admitting, tuple(label for label in labels if label in tested))
            if untested := tuple(label for label in labels if label not in tested):
                pieces.append((others, self._partition(untested)))
            for fulfilled, numbers in pieces:
                found[fulfilled].append(numbers)
                if self._type_label not in labels:
                    self._named.append(numbers)
        self._classes = {fits: numbers for fits, numbers in found.items() if fits}
        self.admitted = [*self._classes, *([self._rest[0]] if self._rest else [])]

    def __call__(self, sources: Ids, targets: Ids) -> list[Ids]:
        """Return int64 [pairs] for each class: the number of edges from each source to its target."""
        known: dict[int, Ids] = {}

        def number(numbers: EdgeNumbers) -> Ids:
            if id(numbers) not in known:
                known[id(numbers)] = numbers(sources, targets)
            return known[id(numbers)]

        nothing = np.zeros(len(sources), np.int64)
        found = [sum(map(number, several), nothing) for several in self._classes.values()]
        if self._rest is not None:
            left = number(self._rest[1]) - sum(map(number, self._named), nothing)
            found.append(np.maximum(left, 0))
        return found

    def _partition(self, labels: Labels) -> EdgeNumbers:
        graph = self._snapshot.graph
        return EdgeNumbers.of(graph.partition(labels, "out", parallel=self._parallel), graph.vertices)

    def _fulfil_others(self, kind: Admitted) -> bool:
        """Whether edges of labels that were not tested fulfil a condition."""
        return kind.condition < 0 or self._conditions.tested[kind.condition].others

    def _by_rows(
        self, admitting: frozenset[Admitted], labels: tuple[int, ...]
    ) -> list[tuple[frozenset[Admitted], EdgeNumbers]]:
        """Return the classes of the edges of tested labels, by what of ``admitting`` admits them."""
        if not labels:
            return []
        table, vertices = self._snapshot.edges.table(labels), self._snapshot.graph.vertices
        conditions = sorted({kind.condition for kind in admitting if kind.condition >= 0})
        fulfilled = np.stack([self._of_rows(condition, labels) for condition in conditions])
        answers, which = np.unique(fulfilled, axis=1, return_inverse=True)
        found = []
        for number, answer in enumerate(answers.T):
            holds = dict(zip(conditions, answer.tolist(), strict=True))
            chosen = which.reshape(-1) == number
            fits = frozenset(kind for kind in admitting if kind.condition < 0 or holds[kind.condition])
            found.append((fits, EdgeNumbers.between(table.starts[chosen], table.ends[chosen], vertices)))
        return found

    def _of_rows(self, condition: int, labels: tuple[int, ...]) -> NDArray[np.bool_]:
        """Whether each edge of the table of some labels, which are among those of a condition, fulfils it."""
        choice = self._conditions.tested[condition]
        assert choice.fulfil is not None
        table = self._snapshot.edges.table(choice.labels)  # sorted by labels first
        found: NDArray[np.bool_] = choice.fulfil[np.isin(table.labels[table.kind], labels)]
        return found
