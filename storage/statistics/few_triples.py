"""What a handful of triples that come add to the statistics, one triple after the other.

A statement that writes one vertex with its edges adds a dozen triples, for which NumPy takes longer to begin than
Python takes for all.  It is the same that :mod:`.incremental` counts, of what memory knows alone: where the file is to
be asked, or triples go, that module counts.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays.small_joins import Ints
from graphdb.storage.graph.degree_sketch import IN, OUT
from graphdb.storage.statistics.known import StatisticsLookup

MOST = 64
"""Triples up to which they are counted so."""

Row = list[int]


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of the four tables of statistics: of labels as they are now, of degrees and pairs the differences."""

    edge_labels: list[Row]
    vertex_labels: list[Row]
    degrees: list[Row]
    pairs: list[Row]


@dataclass(frozen=True, slots=True)
class _End:
    """A vertex of triples with an edge label in a direction: how many it had and has, and has with a literal."""

    label: int
    direction: int
    vertex: int
    before: int
    after: int
    literals: int = 0


def counted(known: StatisticsLookup, added: Ints) -> Counts | None:
    """Return what some triples add that are not there (int64 [triples, 3]); None where the file is to be asked."""
    triples = added.tolist()
    ends = _ends(known, triples)
    labels = None if ends is None else known.edge_labels_in_memory({label for label, _, _ in triples})
    if ends is None or labels is None:
        return None
    pairs = _pairs(known, ends, triples)
    if pairs is None:
        return None
    now = _edge_labels(known, labels, ends)
    classes = [[end.vertex, end.after] for end in ends if _is_class(known, end)]
    return Counts([[label, *now[label]] for label in sorted(now)], sorted(classes), _degrees(ends), pairs)


def _is_class(known: StatisticsLookup, end: _End) -> bool:
    return end.label == known.typed and end.direction == IN and end.vertex < LITERAL_BASE


def _ends(known: StatisticsLookup, triples: list[Row]) -> list[_End] | None:
    """Return what the vertices of triples had and have; None where that is not in memory."""
    subjects: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    objects: defaultdict[tuple[int, int], int] = defaultdict(int)
    for label, subject, object in triples:
        counts = subjects[label, subject]
        counts[0] += 1
        counts[1] += object >= LITERAL_BASE
        objects[label, object] += 1
    found = []
    for (label, subject), (count, literals) in subjects.items():
        before = known.degree_in_memory(OUT, label, subject)
        if before is None:
            return None
        found.append(_End(label, OUT, subject, before[0], before[0] + count, before[1] + literals))
    for (label, object), count in objects.items():
        before = known.degree_in_memory(IN, label, object)
        if before is None:
            return None
        found.append(_End(label, IN, object, before[0], before[0] + count))
    return found


def _edge_labels(known: StatisticsLookup, before: dict[int, Row], ends: list[_End]) -> dict[int, Row]:
    """Return the rows of edge labels by now: see the columns of ``edge_label``."""
    new = [e.vertex for e in ends if e.direction == IN and not e.before and e.vertex >= LITERAL_BASE]
    kinds = known.kinds(np.array(new, np.int64))
    bits = dict(zip(kinds.literals.tolist(), kinds.bits.tolist(), strict=True))
    for end in ends:
        row, more, appeared = before[end.label], end.after - end.before, not end.before
        if end.direction == OUT:
            row[0] += more
            row[2] += appeared
            row[4] = max(row[4], end.after)
            row[7] = max(row[7], end.literals)
            continue
        if end.vertex < LITERAL_BASE:
            row[1] += more
        elif appeared:
            row[6] |= bits[end.vertex]
        row[3] += appeared
        row[5] = max(row[5], end.after)
    return before


def _degrees(ends: list[_End]) -> list[Row]:
    """Return (label, direction, bucket, vertices, edges, squares): vertices leave a bucket for another."""
    sums: defaultdict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0, 0, 0])
    for end in ends:
        for degree, sign in ((end.after, 1), (end.before, -1)):
            if degree:
                row = sums[end.label, end.direction, degree.bit_length() - 1]
                row[0] += sign
                row[1] += sign * degree
                row[2] += sign * degree * degree
    return [[*key, *row] for key, row in sorted(sums.items()) if any(row)]


def _pairs(known: StatisticsLookup, ends: list[_End], triples: list[Row]) -> list[Row] | None:
    """Return (label, class, direction, edges, vertices); None where a vertex that is there gets a class."""
    come = [(s, c) for label, s, c in triples if label == known.typed and c < LITERAL_BASE]
    if not all(known.is_fresh(subject) for subject, _ in come):
        return None
    there = sorted({e.vertex for e in ends if e.vertex < LITERAL_BASE and not known.is_fresh(e.vertex)})
    classes = known.classes_in_memory(there, come)
    if classes is None:
        return None
    for subject, label in come:
        classes.setdefault(subject, set()).add(label)
    sums: defaultdict[tuple[int, int, int], list[int]] = defaultdict(lambda: [0, 0])
    for end in ends:  # those with a new class are new, and had none
        for each in classes.get(end.vertex, ()):
            row = sums[end.label, each, end.direction]
            row[0] += end.after - end.before
            row[1] += not end.before
    return [[*key, *row] for key, row in sorted(sums.items()) if any(row)]
