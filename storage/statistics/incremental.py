"""Incremental statistics of labels after small changes: what :func:`.labels.change` computes in SQL, by NumPy.

A statement that writes one vertex changes a handful of triples, and DuckDB takes far longer to plan the SQL of the
differences than to run it.  Here SQL only looks up what the touched vertices have, where that is not known already:
a vertex that is new has what it was given, and how many vertices have a label is counted anyway.  Loads are counted so,
too: what is left to look up is what was there before of the objects, label by label, where that is not cached
(:mod:`.degrees`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays import small_joins
from graphdb.storage.arrays.small_joins import (
    Ints,
    among,
    equal,
    in_list,
    listed_rows,
    looked_up,
    rows_of,
    rows_of_columns,
    summed,
)
from graphdb.storage.arrays.sorted_sets import unique
from graphdb.storage.dictionary.literal_kinds import Kinds
from graphdb.storage.file.prepared_sql import Insertions, execute
from graphdb.storage.graph.changes import Changes, Counted
from graphdb.storage.graph.degree_sketch import IN, OUT
from graphdb.storage.statistics import few_triples, tables
from graphdb.storage.statistics import labels as statistics
from graphdb.storage.statistics.few_triples import Counts
from graphdb.storage.statistics.known import KindBits, KnownStatistics, StatisticsLookup
from graphdb.storage.statistics.pairs import Pairs

if TYPE_CHECKING:
    import duckdb

_TRIPLE = ("label", "subject", "object")

MOST = 4096
"""Triples up to which a change is counted by NumPy; of more, DuckDB counts sooner."""

NONE: Ints = np.empty((0, 3), np.int64)
"""No triples."""


def listed(relation: str | Ints | None) -> Ints | None:
    """Return the triples of a relation as int64 [triples, 3]; None where only DuckDB has them, or they are many."""
    if relation is None:
        return NONE
    return None if isinstance(relation, str) or len(relation) > MOST else relation


def relation(triples: Ints) -> tuple[str, dict[str, list[int]]]:
    """Return triples as what can stand after FROM, with its parameters."""
    return listed_rows(_TRIPLE, triples)


def there(connection: duckdb.DuckDBPyConnection, triples: Ints, cached: KnownStatistics) -> Ints:
    """Return those of some triples that are there, before a change: int64 [triples, 3]."""
    if not len(triples):
        return triples
    if len(triples) <= small_joins.SMALL:
        known = there_in_memory(connection, triples.tolist(), cached)
        if known is not None:
            return np.array(known, np.int64).reshape(-1, 3)
    if len(triples) > small_joins.SMALL:
        wanted, given = relation(triples)
        same = ", ".join(_TRIPLE)
        sql = f"SELECT {same} FROM _graphdb.triple SEMI JOIN {wanted} AS given USING ({same})"
        return rows_of(execute(connection, sql, given))
    # Columns by themselves, which DuckDB looks for sooner than for rows: what else they find is left out.
    listed = [in_list(unique(column)) for column in triples.T]
    where = " AND ".join(f"{name} IN ({places})" for name, (places, _) in zip(_TRIPLE, listed, strict=True))
    values = [value for _, column in listed for value in column]
    found = rows_of(execute(connection, f"SELECT {', '.join(_TRIPLE)} FROM _graphdb.triple WHERE {where}", values))
    return found[among(found, triples)]


def there_in_memory(
    connection: duckdb.DuckDBPyConnection, triples: Sequence[Sequence[int]], cached: KnownStatistics
) -> list[Sequence[int]] | None:
    """Return those of a handful of triples that are there, where the pairs of all their labels are cached."""
    pairs: dict[int, Pairs] = {}
    for label in {label for label, _, _ in triples}:
        known = cached.pairs(lambda: connection, label)
        if known is None:
            return None
        pairs[label] = known
    return [triple for triple in triples if pairs[triple[0]].has(triple[1], triple[2])]


def change(
    connection: duckdb.DuckDBPyConnection,
    changes: Changes,
    fresh: int,
    fresh_literals: int,
    cached: KnownStatistics | None = None,
    kinds: Kinds | None = None,
    insertions: Insertions | None = None,
    bare: Collection[int] = (),
) -> Counted:
    """Add what some triples change that came and went; return what is counted now.

    Runs in the caller's transaction, after the triples themselves are changed.  Those that come may wait among some
    ``insertions``, which the row of the log joins; without any, all is written at once.

    Parameters
    ----------
    fresh, fresh_literals
        Resources, and literals, from these ids on were in no triple before.
    cached
        What is known of the file as it was before.
    kinds
        Those of literals that are known: see :attr:`.Numbering.kinds`.
    bare
        Vertices that are deleted with all their edges.
    """
    cached, waiting = cached or KnownStatistics(), insertions or Insertions(connection)
    typed = cached.typed
    if typed is None:
        waiting.run("resource")  # rdf:type may be new
        typed = statistics.type_label(connection)
    known = StatisticsLookup(
        connection, -1 if typed is None else typed, fresh, fresh_literals, cached, kinds, waiting, bare
    )
    few = len(changes.added) <= few_triples.MOST and not len(changes.removed) and typed is not None
    counts = few_triples.counted(known, changes.added) if few else None
    if counts is None:
        counts = _counts(known, changes)
    rows = {
        "edge_label": counts.edge_labels,
        "degree": counts.degrees,
        "vertex_label": counts.vertex_labels,
        "label_pair": counts.pairs,
    }
    log = tables.Log() if cached.degrees is None else cached.degrees.log
    differences: Ints = np.array(counts.pairs, np.int64).reshape(-1, 5)
    pairs: Ints | None = differences
    if typed is not None and log.pairs(connection) + len(counts.pairs) >= statistics.PAIRS:  # some may be dropped
        del rows["label_pair"]
        log.append(connection, rows, waiting)
        waiting.run()
        statistics.merge_pairs(connection, typed, *listed_rows(tables.columns_of("label_pair"), differences))
        log.merged("label_pair")
        rows, pairs = {}, None
    log.append(connection, rows, waiting)
    if insertions is None:
        waiting.run()
    counted = {label: tuple(row) if row[0] else None for label, *row in counts.edge_labels}
    vertices = {row[0]: row[1] for row in counts.vertex_labels}
    return Counted(counted, vertices, pairs=pairs)


def _counts(known: StatisticsLookup, changes: Changes) -> Counts:
    """Count what triples change that came and went."""
    labels = unique(np.concatenate([changes.added[:, 0], changes.removed[:, 0]]))
    before = known.edge_labels(labels)
    touched = _touched(known, changes, before[:, [2, 3, 0]])
    kinds = known.kinds(_asked_kinds(touched, changes.removed), *_only_kinds(touched, labels, before[:, 6]))
    now = _edge_labels(labels, before, touched, kinds)
    degrees = np.concatenate(_degrees(touched), axis=1)
    if len(changes.removed):
        _lessen(known, labels, now, touched, changes, kinds, degrees)
    now[now[:, 0] == 0] = 0
    at = (touched.label == known.typed) & (touched.direction == IN) & (touched.vertex < LITERAL_BASE)
    classes = rows_of_columns(touched.vertex[at], touched.after[at])
    pairs = np.empty((0, 5), np.int64)
    if known.typed >= 0:
        pairs = np.concatenate(_pairs(known, touched, changes), axis=1)
    edge_labels = np.concatenate([labels[:, None], now], axis=1)
    return Counts(edge_labels.tolist(), classes.tolist(), degrees.tolist(), pairs.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class _Touched:
    """What vertices had of an edge label in a direction and have now: int64 [touched] each, as in SQL."""

    label: Ints
    direction: Ints
    vertex: Ints
    before: Ints
    after: Ints
    literals: Ints

    @property
    def moved(self) -> NDArray[np.bool_]:
        """Where there are more or fewer than before."""
        moved: NDArray[np.bool_] = self.before != self.after
        return moved

    @property
    def appeared(self) -> Ints:
        """1 where there were none before, -1 where there are none now, else 0."""
        return (self.after > 0).astype(np.int64) - (self.before > 0).astype(np.int64)


def _touched(known: StatisticsLookup, changes: Changes, there: Ints) -> _Touched:
    """Find out what the vertices of changed triples had and have; ``there``: subjects, objects, triples of labels."""
    triples = np.concatenate([changes.added, changes.removed])
    signs = np.repeat([1, -1], [len(changes.added), len(changes.removed)])
    label, subject, object = triples.T
    keys = np.concatenate(
        [rows_of_columns(np.full(len(label), at), label, end) for at, end in ((OUT, subject), (IN, object))]
    )
    literal = np.concatenate([signs * (object >= LITERAL_BASE), np.zeros(len(label), np.int64)])
    keys, sums = summed(keys, rows_of_columns(np.concatenate([signs, signs]), literal), all=True)
    direction, label, vertex = keys.T
    fresh = known.fresh(vertex)
    classes = (label == known.typed) & (direction == IN) & (vertex < LITERAL_BASE)
    middle = int(np.searchsorted(direction, IN))
    after = np.concatenate(
        [
            known.degrees(at, keys[mine, 1:], sums[mine], ~(fresh | classes)[mine], there[:, [at, 2]])
            for at, mine in ((OUT, slice(middle)), (IN, slice(middle, None)))
        ]
    )
    after[classes, 0] += looked_up(known.vertices_of(vertex[classes]), vertex[classes][:, None])[:, 0]
    return _Touched(label, direction, vertex, after[:, 0] - sums[:, 0], after[:, 0], after[:, 1])


def _asked_kinds(touched: _Touched, removed: Ints) -> Ints:
    """Return the vertices whose kinds matter: objects that a label did not have, or that others may be gone beside."""
    t = touched
    objects = (t.direction == IN) & (t.after > 0)
    asked = t.before == 0
    if len(removed):
        asked |= np.isin(t.label, removed[:, 0])
    return np.concatenate([t.vertex[objects & asked], removed[:, 2]])


def _only_kinds(touched: _Touched, labels: Ints, bits: Ints) -> tuple[Ints, Ints]:
    """Return literals that were objects of a label all of whose literals are of one kind, and the kind."""
    t = touched
    kinds = bits[np.searchsorted(labels, t.label)]
    told = (t.direction == IN) & (t.before > 0) & (t.vertex >= LITERAL_BASE) & (kinds > 0) & (kinds & (kinds - 1) == 0)
    return t.vertex[told], kinds[told]


def _edge_labels(labels: Ints, before: Ints, touched: _Touched, kinds: KindBits) -> Ints:
    """Return the rows of edge labels by now, as far as more triples tell: maxima are never less than before."""
    t, out, found = touched, touched.direction == OUT, before.copy()
    at = np.searchsorted(labels, t.label)
    change = t.after - t.before
    sums = [change * out, change * (~out & (t.vertex < LITERAL_BASE)), t.appeared * out, t.appeared * ~out]
    np.add.at(found[:, :4], at, rows_of_columns(*sums))
    np.maximum.at(found[:, 4:6], at, rows_of_columns(t.after * out, t.after * ~out))
    new = ~out & (t.before == 0) & (t.after > 0)
    np.bitwise_or.at(found[:, 6], at[new], kinds.of(t.vertex[new]))
    np.maximum.at(found[:, 7], at, t.literals)
    return found


def _degrees(touched: _Touched) -> tuple[Ints, Ints]:
    """Return (label, direction, bucket) and (vertices, edges, squares)."""
    keys, values = [], []
    for degrees, sign in ((touched.after, 1), (touched.before, -1)):
        chosen = touched.moved & (degrees > 0)
        mine = degrees[chosen]
        keys.append(rows_of_columns(touched.label[chosen], touched.direction[chosen], _bucket(mine)))
        values.append(sign * rows_of_columns(np.ones_like(mine), mine, mine * mine))
    return summed(np.concatenate(keys), np.concatenate(values))


def _pairs(known: StatisticsLookup, touched: _Touched, changes: Changes) -> tuple[Ints, Ints]:
    """Return (label, class, direction) and (edges, vertices)."""
    t = touched
    come, gone = known.labels_in(changes.added), known.labels_in(changes.removed)
    common = known.labelled(t.vertex[t.moved] if not len(come) + len(gone) else t.vertex, come, gone)
    old = unique(np.concatenate([come, gone])[:, 0])
    if not len(common) + len(come) + len(gone):  # none of them has a label
        return np.empty((0, 3), np.int64), np.empty((0, 2), np.int64)
    here = degrees = rows_of_columns(t.label, t.direction, t.vertex, t.before, t.after)
    if len(others := known.elsewhere(old[~known.fresh(old)])):
        others = others[~among(others[:, :3], here[:, :3])]
        degrees = np.concatenate([here, others[:, [0, 1, 2, 3, 3]]])
    keys, values = [], []

    def add(classes: Ints, rows: Ints, edges: Ints, vertices: Ints) -> None:
        """Add what rows (label, direction, vertex) say for each class of their vertex."""
        left, right = equal(rows[:, 2:3], classes[:, :1])
        keys.append(rows_of_columns(rows[left, 0], classes[right, 1], rows[left, 1]))
        values.append(rows_of_columns(edges[left], vertices[left]))

    add(common, here, t.after - t.before, t.appeared)
    if len(come):
        has = degrees[degrees[:, 4] > 0]
        add(come, has, has[:, 4], np.ones(len(has), np.int64))
    if len(gone):
        had = degrees[degrees[:, 3] > 0]
        add(gone, had, -had[:, 3], -np.ones(len(had), np.int64))
    return summed(np.concatenate(keys), np.concatenate(values))


def _lessened(
    known: StatisticsLookup, touched: _Touched, changed: Ints, largest: Callable[[int, str], int]
) -> tuple[list[tuple[int, str, int]], list[tuple[Any, ...]]]:
    """Return (label, column, value) of largest degrees by what is left that memory tells, and what
    :data:`.labels.LESSENED` finds of others, where it may have been what is ``largest``.

    See :func:`.labels.degrees_left`; ``changed`` are the rows of degrees that are not written yet.
    """
    t = touched
    pairs, at = np.unique(2 * t.label + t.direction, return_inverse=True)
    keys = np.column_stack([pairs >> 1, pairs & 1])
    had, has = np.zeros((2, len(keys)), np.int64)
    np.maximum.at(had, at, t.before)
    np.maximum.at(has, at, t.after)
    less = (had > has) & (had >= [largest(label, statistics.MAXIMA[direction]) for label, direction in keys.tolist()])
    told: list[tuple[int, str, int]] = []
    for place in less.nonzero()[0].tolist():
        label, direction = keys[place].tolist()
        column, mine = statistics.MAXIMA[direction], (t.label == label) & (t.direction == direction)
        others = 1 if largest(label, column) == 1 else known.largest_but(direction, label, t.vertex[mine])
        if others is not None:
            told.append((label, column, max(others, int(has[place]))))  # of a label without triples all are zeros
            less[place] = False
    if not less.any():
        return told, []
    places, given = in_list(keys[less, 0])
    degrees = rows_of(
        execute(
            known.triples(),
            f"SELECT label, direction, bucket, vertices FROM ({tables.summed('degree')}) WHERE label IN ({places})",
            given,
        )
    )
    both = np.concatenate([degrees, changed[:, :4]])
    degrees = np.column_stack(summed(both[:, :3], both[:, 3:]))
    found: list[tuple[Any, ...]] = []
    for key, most, now in zip(keys[less], had[less], has[less], strict=True):
        buckets = degrees[(degrees[:, :2] == key).all(axis=1), 2:]
        if not len(buckets):
            continue
        bucket, vertices = buckets[buckets[:, 0].argmax()].tolist()
        mine = t.after[(t.label == key[0]) & (t.direction == key[1]) & (t.after > 0)]
        seen = int((_bucket(mine) == bucket).sum())
        found.append((*key.tolist(), int(most), int(now), bucket, vertices == seen))
    return told, found


def _lost(labels: Ints, now: Ints, touched: _Touched, changes: Changes, kinds: KindBits) -> list[tuple[Any, ...]]:
    """Return what :data:`.labels.LOST_LITERALS` finds."""
    lost, seen = np.zeros((2, len(labels)), np.int64)
    np.bitwise_or.at(lost, np.searchsorted(labels, changes.removed[:, 0]), kinds.of(changes.removed[:, 2]))
    here = (touched.direction == IN) & (touched.after > 0)
    np.bitwise_or.at(seen, np.searchsorted(labels, touched.label[here]), kinds.of(touched.vertex[here]))
    found = []
    for label, row, gone, left in zip(labels.tolist(), now.tolist(), lost.tolist(), seen.tolist(), strict=True):
        triples, resources, _, _, degree, _, kinds_now, most = row
        if triples and gone:
            certain = kinds_now.bit_count() == 1 or not gone & ~left
            found.append((label, triples == resources, resources == 0, degree, most, certain))
    return found


def _lessen(
    known: StatisticsLookup,
    labels: Ints,
    now: Ints,
    touched: _Touched,
    changes: Changes,
    kinds: KindBits,
    degrees: Ints,
) -> None:
    """Bring maxima and kinds in rows of ``edge_label`` down to what is left; ``degrees`` are changed by so much."""
    rows = {label: i for i, label in enumerate(labels.tolist())}
    columns = {name: i for i, name in enumerate(tables.columns_of("edge_label")[1:])}

    def largest(label: int, column: str) -> int:
        return int(now[rows[label], columns[column]])

    told, found = _lessened(known, touched, degrees, largest)
    lessened = [row for row in found if now[rows[row[0]], 0]]
    for label, column, value in (*told, *statistics.degrees_left(known.triples, lessened, largest)):
        now[rows[label], columns[column]] = value
    for label, column, value in statistics.literals_left(known.triples, _lost(labels, now, touched, changes, kinds)):
        now[rows[label], columns[column]] = value


def _bucket(degrees: Ints) -> Ints:
    """Return the histogram buckets of degrees: powers of two."""
    return np.floor(np.log2(degrees)).astype(np.int64)
