"""What a handful of triples that come add to the statistics, one triple after the other.

A statement that writes one vertex with its edges adds a dozen triples, for which NumPy takes longer to begin than
Python takes for all.  It is the same that :mod:`.incremental` counts, of what memory knows alone: where the file is to
be asked, or triples go, that module counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

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


class _End(NamedTuple):
    """A vertex of triples with an edge label in a direction: how many it had and has, and has with a literal."""

    label: int
    direction: int
    vertex: int
    before: int
    after: int
    literals: int


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
    classes = [
        [vertex, after]
        for label, direction, vertex, _, after, _ in ends
        if label == known.typed and direction == IN and vertex < LITERAL_BASE
    ]
    return Counts([[label, *now[label]] for label in sorted(now)], sorted(classes), _degrees(ends), pairs)


def _ends(known: StatisticsLookup, triples: list[Row]) -> list[_End] | None:
    """Return what the vertices of triples had and have; None where that is not in memory."""
    counts: dict[tuple[int, int, int], tuple[int, int]] = {}
    for label, subject, object in triples:
        count, literals = counts.get((label, OUT, subject), (0, 0))
        counts[label, OUT, subject] = count + 1, literals + (object >= LITERAL_BASE)
        count, _ = counts.get((label, IN, object), (0, 0))
        counts[label, IN, object] = count + 1, 0
    found = []
    fresh, fresh_literals = known.first_fresh
    for (label, direction, vertex), (count, literals) in counts.items():
        if vertex >= (fresh if vertex < LITERAL_BASE else fresh_literals):
            found.append(_End(label, direction, vertex, 0, count, literals))
            continue
        before = known.degree_in_memory(direction, label, vertex)
        if before is None:
            return None
        found.append(_End(label, direction, vertex, before[0], before[0] + count, before[1] + literals))
    return found


def _edge_labels(known: StatisticsLookup, before: dict[int, Row], ends: list[_End]) -> dict[int, Row]:
    """Return the rows of edge labels by now: see the columns of ``edge_label``."""
    new = [vertex for _, direction, vertex, had, _, _ in ends if vertex >= LITERAL_BASE and direction == IN and not had]
    bits = known.bits_of_kinds(new)
    for label, direction, vertex, had, has, literals in ends:
        row = before[label]
        if direction == OUT:
            row[0] += has - had
            row[2] += not had
            row[4] = max(row[4], has)
            row[7] = max(row[7], literals)
            continue
        if vertex < LITERAL_BASE:
            row[1] += has - had
        elif not had:
            row[6] |= bits[vertex]
        row[3] += not had
        row[5] = max(row[5], has)
    return before


def _degrees(ends: list[_End]) -> list[Row]:
    """Return (label, direction, bucket, vertices, edges, squares): vertices leave a bucket for another."""
    sums: dict[tuple[int, int, int], tuple[int, int, int]] = {}
    for label, direction, _, had, has, _ in ends:
        for degree, sign in ((has, 1), (had, -1)):
            if degree:
                key = label, direction, degree.bit_length() - 1
                vertices, edges, squares = sums.get(key, (0, 0, 0))
                sums[key] = vertices + sign, edges + sign * degree, squares + sign * degree * degree
    return [[*key, *row] for key, row in sorted(sums.items()) if any(row)]


def _pairs(known: StatisticsLookup, ends: list[_End], triples: list[Row]) -> list[Row] | None:
    """Return (label, class, direction, edges, vertices); None where a vertex that is there gets a class."""
    come = [(s, c) for label, s, c in triples if label == known.typed and c < LITERAL_BASE]
    if not all(known.is_fresh(subject) for subject, _ in come):
        return None
    fresh, _ = known.first_fresh
    there = sorted({vertex for _, _, vertex, _, _, _ in ends if vertex < LITERAL_BASE and vertex < fresh})
    classes = known.classes_in_memory(there, come)
    if classes is None:
        return None
    for subject, label in come:
        classes.setdefault(subject, set()).add(label)
    sums: dict[tuple[int, int, int], tuple[int, int]] = {}
    for end, direction, vertex, had, has, _ in ends:  # vertices with a new class are new, and had none
        for label in classes.get(vertex, ()):
            edges, vertices = sums.get((end, label, direction), (0, 0))
            sums[end, label, direction] = edges + has - had, vertices + (not had)
    return [[*key, *row] for key, row in sorted(sums.items()) if any(row)]
