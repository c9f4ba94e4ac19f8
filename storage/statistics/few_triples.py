"""What a handful of triples that come add to the statistics, one triple after the other.

A statement that writes one vertex with its edges adds a dozen triples, for which NumPy takes longer to begin than
Python takes for all.  It is the same that :mod:`.incremental` counts, of what memory knows alone: where the file is to
be asked, or triples go, that module counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

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


_End: TypeAlias = tuple[int, int, int, int, int]
"""A resource of triples with an edge label in a direction: label, direction, vertex, how many it had and has."""


def counted(known: StatisticsLookup, added: Ints) -> Counts | None:
    """Return what some triples add that are not there (int64 [triples, 3]); None where the file is to be asked."""
    triples = added.tolist()
    rows = known.edge_labels_in_memory({label for label, _, _ in triples})
    found = None if rows is None else _added_up(known, rows, _ends(triples))
    if rows is None or found is None:
        return None
    resources, classes, degrees = found
    pairs = _pairs(known, resources, triples)
    if pairs is None:
        return None
    return Counts([[label, *row] for label, row in sorted(rows.items())], sorted(classes), _listed(degrees), pairs)


def _ends(triples: list[Row]) -> dict[tuple[int, int, int], list[int]]:
    """Return how many triples come to a label, direction and vertex, and how many of them with a literal as object."""
    counts: dict[tuple[int, int, int], list[int]] = {}
    for label, subject, object in triples:
        literal = 1 if object >= LITERAL_BASE else 0
        if (found := counts.get(at := (label, OUT, subject))) is None:
            counts[at] = [1, literal]
        else:
            found[0] += 1
            found[1] += literal
        if (found := counts.get(at := (label, IN, object))) is None:
            counts[at] = [1, 0]
        else:
            found[0] += 1
    return counts


def _added_up(
    known: StatisticsLookup, rows: dict[int, Row], ends: dict[tuple[int, int, int], list[int]]
) -> tuple[list[_End], list[Row], dict[tuple[int, int, int], Row]] | None:
    """Add what ends get to the ``rows`` of their edge labels: see the columns of ``edge_label``.

    Returns the resources among them, the rows of classes, and the differences of degrees by label, direction and
    bucket; None where memory does not tell what one had.  It is one loop, which every small write goes through.
    """
    (fresh, fresh_literals), typed = known.first_fresh, known.typed
    resources: list[_End] = []
    classes: list[Row] = []
    values: list[tuple[Row, int]] = []  # literals that a label did not have, beside its row
    degrees: dict[tuple[int, int, int], Row] = {}
    for (label, direction, vertex), (count, literals) in ends.items():
        had, is_resource, row = 0, vertex < LITERAL_BASE, rows[label]
        if vertex < (fresh if is_resource else fresh_literals):
            before = known.degree_in_memory(direction, label, vertex)
            if before is None:
                return None
            had, literals = before[0], literals + before[1]
        has = had + count
        if direction == OUT:
            row[0] += count
            row[2] += not had
            row[4] = has if has > row[4] else row[4]
            row[7] = literals if literals > row[7] else row[7]
        else:
            row[3] += not had
            row[5] = has if has > row[5] else row[5]
        if is_resource:
            resources.append((label, direction, vertex, had, has))
            if direction == IN:
                row[1] += count
                if label == typed:
                    classes.append([vertex, has])
        elif not had:
            values.append((row, vertex))
        if (bucket := degrees.get(at := (label, direction, has.bit_length() - 1))) is None:
            degrees[at] = [1, has, has * has]
        else:
            bucket[0] += 1
            bucket[1] += has
            bucket[2] += has * has
        if had:  # it leaves one bucket for another
            bucket = degrees.setdefault((label, direction, had.bit_length() - 1), [0, 0, 0])
            bucket[0] -= 1
            bucket[1] -= had
            bucket[2] -= had * had
    bits = known.bits_of_kinds([literal for _, literal in values])
    for row, literal in values:
        row[6] |= bits[literal]
    return resources, classes, degrees


def _listed(sums: dict[tuple[int, int, int], Row]) -> list[Row]:
    """Return rows, sorted, of keys and what was added up for them, as far as that comes to something."""
    return [[*key, *row] for key, row in sorted(sums.items()) if any(row)]


def _pairs(known: StatisticsLookup, ends: list[_End], triples: list[Row]) -> list[Row] | None:
    """Return (label, class, direction, edges, vertices); None where a vertex that is there gets a class."""
    typed = known.typed
    come = [(s, c) for label, s, c in triples if label == typed and c < LITERAL_BASE]
    fresh, _ = known.first_fresh
    if any(subject < fresh for subject, _ in come):
        return None
    there = sorted({vertex for _, _, vertex, _, _ in ends if vertex < fresh})
    classes = known.classes_in_memory(there, come)
    if classes is None:
        return None
    for subject, label in come:
        classes.setdefault(subject, set()).add(label)
    sums: dict[tuple[int, int, int], Row] = {}
    for end, direction, vertex, had, has in ends:  # vertices with a new class are new, and had none
        for label in classes.get(vertex, ()):
            if (found := sums.get(at := (end, label, direction))) is None:
                sums[at] = [has - had, 0 if had else 1]
            else:
                found[0] += has - had
                found[1] += not had
    return _listed(sums)
