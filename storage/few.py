"""The statistics of labels after a few changes: what :func:`.statistics.change` computes in SQL, by NumPy.

A statement that writes one vertex changes a handful of triples, and DuckDB takes far longer to plan the SQL of the
differences than to run it.  Here SQL only looks up what the touched vertices have, where that is not known already:
a vertex that is new has what it was given, and how many vertices have a label is counted anyway.  Loads are counted so,
too: what is left to look up is what was there before of the objects, label by label, where that is not held
(:mod:`.degrees`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage import small, statistics
from graphdb.storage.arrow import values as plain
from graphdb.storage.changes import Changes, Counted
from graphdb.storage.degrees import Degrees
from graphdb.storage.parsed import execute
from graphdb.storage.sets import places
from graphdb.storage.sketch import IN, OUT
from graphdb.storage.small import Ints, among, equal, in_list, listed_rows, looked_up, rows_of, summed
from graphdb.storage.terms import LITERAL_BASE

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

_GROUPS = 4096
"""Objects of a label up to which all are counted, sooner than those that are looked for are found."""

_APART = 4
"""Rows that are looked for one by one."""

_TRIPLE = ("label", "subject", "object")


def listed(relation: str | pa.Table | None) -> Ints | None:
    """Return the triples of a relation as int64 [triples, 3]; None where only DuckDB has them, or they are many."""
    if relation is None:
        return np.empty((0, 3), np.int64)
    if isinstance(relation, str) or len(relation) > small.FEW // 2:
        return None
    return np.column_stack([plain(relation.column(name).combine_chunks()) for name in _TRIPLE])


def relation(triples: Ints) -> tuple[str, dict[str, list[int]]]:
    """Return triples as what can stand after FROM, with its parameters."""
    return listed_rows(_TRIPLE, triples)


def there(connection: duckdb.DuckDBPyConnection, triples: Ints) -> Ints:
    """Return those of some triples that are there: int64 [triples, 3]."""
    if not len(triples):
        return triples
    wanted, given = relation(triples)
    return rows_of(
        execute(connection, f"SELECT {', '.join(_TRIPLE)} FROM _graphdb.triple SEMI JOIN {wanted} AS given USING"
                           f" ({', '.join(_TRIPLE)})", given)
    )  # fmt: skip


def sizes(connection: duckdb.DuckDBPyConnection, *tables: str) -> list[int]:
    """Return how many rows tables have."""
    counts = ", ".join(f"(SELECT count(*) FROM _graphdb.{table})" for table in tables)
    [found] = execute(connection, f"SELECT {counts}").fetchall()
    return list(found)


def change(
    connection: duckdb.DuckDBPyConnection,
    changes: Changes,
    fresh: int,
    fresh_literals: int,
    held: Held | None = None,
    kinds: Mapping[int, int] | None = None,
) -> Counted:
    """Add what some triples change that came and went; return what is counted now.

    Runs in the caller's transaction, after the triples themselves are changed.

    Parameters
    ----------
    fresh, fresh_literals
        Resources, and literals, from these ids on were in no triple before.
    held
        What is known of the file as it was before.
    kinds
        The kinds of some literals, by id.
    """
    held = held or Held()
    typed = statistics.type_label(connection) if held.typed is None else held.typed
    known = _Known(connection, -1 if typed is None else typed, fresh, fresh_literals, held, kinds or {})
    labels = np.unique(np.concatenate([changes.added[:, 0], changes.removed[:, 0]]))
    before = known.edge_labels(labels)
    touched = _touched(known, changes, before[:, [2, 3, 0]])
    kinds_of = known.kinds(_asked_kinds(touched, changes.removed))
    now = _edge_labels(labels, before, touched, kinds_of)
    _append(connection, "degree", *_degrees(touched))
    if len(changes.removed):
        _lessen(connection, labels, now, touched, changes, kinds_of)
    _put(connection, "edge_label", labels, now, known.counted)
    at = (touched.label == known.typed) & (touched.direction == IN) & (touched.vertex < LITERAL_BASE)
    classes, vertices = touched.vertex[at], touched.after[at]
    if typed is not None:
        moved = touched.moved[at]
        _put(connection, "vertex_label", classes[moved], vertices[moved, None], set(classes[touched.before[at] > 0]))
        _append(connection, "label_pair", *_pairs(known, touched, changes))
    counted = dict(zip(labels.tolist(), (tuple(row) if row[0] else None for row in now.tolist()), strict=True))
    return Counted(counted, dict(zip(classes.tolist(), vertices.tolist(), strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """What is known of the file in memory; what is not, is asked."""

    sizes: tuple[int, int] | None = None
    """Resources and literals."""
    typed: int | None = None
    """The edge label rdf:type."""
    edge_labels: Mapping[int, tuple[int, ...]] | None = None
    """Rows of ``edge_label`` without their ids, by id: of all labels."""
    vertex_labels: Mapping[int, int] | None = None
    """Vertices of all vertex labels, by id."""
    degrees: Degrees | None = None
    """Degrees of the vertices of some labels."""

    def after(self, counted: Counted) -> Held:
        """Return what is known after a change; degrees follow when all that belongs to it is done."""
        if self.edge_labels is None or self.vertex_labels is None:
            return replace(self, degrees=None)
        edges = {**self.edge_labels, **counted.edge_labels}
        return replace(
            self,
            degrees=None,
            edge_labels={id: row for id, row in edges.items() if row is not None},
            vertex_labels={**self.vertex_labels, **counted.vertex_labels},
        )


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


@dataclass(frozen=True, slots=True, eq=False)
class _Kinds:
    """The kinds of some literals, sorted, as bits: int64 [literals] each."""

    literals: Ints
    bits: Ints

    def of(self, vertices: Ints) -> Ints:
        """Return the bit of each vertex's kind; 0 where that was not asked for, and where it is no literal."""
        found = np.zeros(len(vertices), np.int64)
        at, there = places(self.literals, vertices)
        found[there] = self.bits[at[there]]
        return found


class _Known:
    """What the file says, or need not be asked."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        typed: int,
        fresh: int,
        fresh_literals: int,
        held: Held,
        kinds: Mapping[int, int],
    ) -> None:
        self._connection = connection
        self.typed = typed
        self._held, self._kinds = held, kinds
        self._fresh, self._fresh_literals = fresh, fresh_literals
        self.counted: set[int] = set()
        """Edge labels that had a triple."""

    def fresh(self, vertices: Ints) -> NDArray[np.bool_]:
        """Which vertices were in no triple before."""
        new: NDArray[np.bool_] = np.where(
            vertices < LITERAL_BASE, vertices >= self._fresh, vertices >= self._fresh_literals
        )
        return new

    def _rows_of(self, table: str, columns: str, ids: Ints) -> Ints:
        """Return the rows of some ids; very few are looked for one by one, else DuckDB unpacks those between them."""
        rows = f"SELECT {columns} FROM _graphdb.{table} WHERE id"
        if len(ids) > _APART:
            places, given = in_list(ids)
            return rows_of(execute(self._connection, f"{rows} IN ({places})", given))
        return rows_of(execute(self._connection, " UNION ALL ".join([f"{rows} = ?"] * len(ids)), ids.tolist()))

    def kinds(self, vertices: Ints) -> _Kinds:
        """Find out the kinds of the literals among some vertices."""
        literals = np.unique(vertices[vertices >= LITERAL_BASE])
        known = np.array(list(self._kinds.items()), np.int64).reshape(-1, 2)
        asked = literals[~among(literals[:, None], known[:, :1])]
        if len(asked):
            known = np.concatenate([known, self._rows_of("literal", "id, kind", asked)])
        return _Kinds(literals, 1 << looked_up(known, literals[:, None])[:, 0])

    def degrees(self, direction: int, keys: Ints, sums: Ints, asked: NDArray[np.bool_], there: Ints) -> Ints:
        """Return how many triples pairs of (label, vertex) have now, and how many with a literal as object.

        Parameters
        ----------
        keys, sums
            All pairs in this direction that changed, sorted, and how many more triples they have than before.
        asked
            Which of them are looked for.
        there
            How many vertices each of their labels had, and how many triples.
        """
        now, held = sums.copy(), self._held.degrees
        labels = list(zip(_stretches(keys[:, 0]), there.tolist(), strict=True))
        if held is not None:
            asked = asked.copy()
            for (label, begin, end), (vertices, triples) in labels:
                mine = begin + np.flatnonzero(asked[begin:end])
                table = held.table(direction, label)
                if table is None and len(mine) and held.wanted(direction, label, len(mine), vertices, triples):
                    table = held.count(self._connection, direction, label, keys[begin:end, 1], sums[begin:end])
                if table is not None:
                    now[mine] += table.look(keys[mine, 1])
                    asked[mine] = False
        if asked.any():
            few_vertices = {label for (label, _, _), (vertices, _) in labels if vertices <= _GROUPS}
            now[asked] = looked_up(self._found(direction, keys[asked], few_vertices), keys[asked])
        return now

    def _found(self, direction: int, pairs: Ints, all: AbstractSet[int]) -> Ints:
        """Return (label, vertex, triples, triples with a literal as object) of pairs that have any.

        Of some labels ``all`` pairs may be told.
        """
        labels, vertices = pairs.T
        if len(pairs) > small.FEW:
            each = [self._degrees_of(direction, label, vertices[begin:end], direction == IN and label in all)
                    for label, begin, end in _stretches(labels)]  # fmt: skip
            return np.concatenate(each)
        end = "subject" if direction == OUT else "object"
        literals = f"count(*) FILTER (object >= {LITERAL_BASE})" if direction == OUT else "0"
        found = execute(
            self._connection,
            f"SELECT label, {end}, count(*), {literals} FROM _graphdb.triple"
            f" WHERE label IN ({in_list(labels)[0]}) AND {end} IN ({in_list(vertices)[0]}) GROUP BY label, {end}",
            [*labels.tolist(), *vertices.tolist()],
        )
        return rows_of(found)

    def _degrees_of(self, direction: int, label: int, vertices: Ints, all: bool) -> Ints:
        """Do so for one label: DuckDB looks for one number sooner than for two; ``all`` vertices may be told."""
        end = "subject" if direction == OUT else "object"
        literals = f"count(*) FILTER (object >= {LITERAL_BASE})" if direction == OUT else "0"
        wanted = "" if all else f"JOIN (SELECT unnest(?::BIGINT[]) AS {end}) USING ({end})"
        found = execute(
            self._connection,
            f"SELECT label, {end}, count(*), {literals} FROM _graphdb.triple {wanted} WHERE label = ?"
            f" GROUP BY label, {end}",
            [label] if all else [vertices.tolist(), label],
        )
        return rows_of(found)

    def elsewhere(self, vertices: Ints) -> Ints:
        """Return (label, direction, vertex, triples) of all triples at some vertices."""
        if not len(vertices):
            return np.empty((0, 4), np.int64)
        places, given = in_list(vertices)
        ends = " UNION ALL ".join(
            f"SELECT label, {direction}, {end}, count(*) FROM _graphdb.triple WHERE {end} IN ({places})"
            f" GROUP BY label, {end}"
            for direction, end in ((OUT, "subject"), (IN, "object"))
        )
        return rows_of(execute(self._connection, ends, given * 2))

    def labelled(self, vertices: Ints) -> Ints:
        """Return (vertex, class) of the vertex labels that some vertices have now."""
        asked = np.unique(vertices[(vertices < LITERAL_BASE) & ~self.fresh(vertices)])
        if not len(asked):
            return np.empty((0, 2), np.int64)
        places, given = in_list(asked)
        found = execute(
            self._connection,
            f"SELECT subject, object FROM _graphdb.triple WHERE label = ? AND object < {LITERAL_BASE}"
            f" AND subject IN ({places})",
            [self.typed, *given],
        )
        return rows_of(found)

    def edge_labels(self, labels: Ints) -> Ints:
        """Return the rows of some edge labels, without their ids: int64 [labels, 8], zeros where there is none."""
        if self._held.edge_labels is not None:
            rows = {id: self._held.edge_labels[id] for id in labels.tolist() if id in self._held.edge_labels}
            self.counted.update(rows)
            return np.array([rows.get(id, (0,) * 8) for id in labels.tolist()], np.int64).reshape(-1, 8)
        places, given = in_list(labels)
        found = rows_of(execute(self._connection, f"SELECT * FROM _graphdb.edge_label WHERE id IN ({places})", given))
        self.counted.update(found[:, 0].tolist())
        return looked_up(found, labels[:, None])

    def vertices_of(self, classes: Ints) -> Ints:
        """Return (class, vertices) as counted before."""
        if self._held.vertex_labels is not None:
            counts = [self._held.vertex_labels.get(id, 0) for id in classes.tolist()]
            return np.column_stack([classes, np.array(counts, np.int64)])
        return self._rows_of("vertex_label", "id, vertices", classes) if len(classes) else np.empty((0, 2), np.int64)

    def labels_in(self, triples: Ints) -> Ints:
        """Return (vertex, class) of the vertex labels that some triples give."""
        rows: Ints = triples[(triples[:, 0] == self.typed) & (triples[:, 2] < LITERAL_BASE)][:, 1:]
        return rows


def _touched(known: _Known, changes: Changes, there: Ints) -> _Touched:
    """Find out what the vertices of changed triples had and have; ``there``: subjects, objects, triples of labels."""
    triples = np.concatenate([changes.added, changes.removed])
    signs = np.repeat([1, -1], [len(changes.added), len(changes.removed)])
    label, subject, object = triples.T
    keys = np.concatenate(
        [np.column_stack([np.full(len(label), at), label, end]) for at, end in ((OUT, subject), (IN, object))]
    )
    literal = np.concatenate([signs * (object >= LITERAL_BASE), np.zeros(len(label), np.int64)])
    keys, sums = summed(keys, np.column_stack([np.tile(signs, 2), literal]), all=True)
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


def _stretches(labels: Ints) -> Iterator[tuple[int, int, int]]:
    """Yield each label of a sorted column, and where its rows begin and end."""
    begins = np.flatnonzero(np.diff(labels, prepend=labels[:1] - 1))
    bounds = np.append(begins, len(labels)).tolist()
    yield from zip(labels[begins].tolist(), bounds[:-1], bounds[1:], strict=True)


def _asked_kinds(touched: _Touched, removed: Ints) -> Ints:
    """Return the vertices whose kinds matter: objects that a label did not have, or that others may be gone beside."""
    t = touched
    objects = (t.direction == IN) & (t.after > 0)
    return np.concatenate([t.vertex[objects & ((t.before == 0) | np.isin(t.label, removed[:, 0]))], removed[:, 2]])


def _edge_labels(labels: Ints, before: Ints, touched: _Touched, kinds: _Kinds) -> Ints:
    """Return the rows of edge labels by now, as far as more triples tell: maxima are never less than before."""
    t, out, found = touched, touched.direction == OUT, before.copy()
    at = np.searchsorted(labels, t.label)
    change = t.after - t.before
    sums = [change * out, change * (~out & (t.vertex < LITERAL_BASE)), t.appeared * out, t.appeared * ~out]
    np.add.at(found[:, :4], at, np.column_stack(sums))
    np.maximum.at(found[:, 4:6], at, np.column_stack([t.after * out, t.after * ~out]))
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
        keys.append(np.column_stack([touched.label[chosen], touched.direction[chosen], _bucket(mine)]))
        values.append(sign * np.column_stack([np.ones_like(mine), mine, mine * mine]))
    return summed(np.concatenate(keys), np.concatenate(values))


def _pairs(known: _Known, touched: _Touched, changes: Changes) -> tuple[Ints, Ints]:
    """Return (label, class, direction) and (edges, vertices)."""
    t = touched
    come, gone = known.labels_in(changes.added), known.labels_in(changes.removed)
    kept = known.labelled(t.vertex[t.moved] if not len(come) + len(gone) else t.vertex)
    kept = kept[~among(kept, come)]
    old = np.unique(np.concatenate([come, gone])[:, 0])
    others = known.elsewhere(old[~known.fresh(old)])
    mine = np.column_stack([t.label, t.direction, t.vertex])
    others = others[~among(others[:, :3], mine)]
    here = np.column_stack([mine, t.before, t.after])
    degrees = np.concatenate([here, others[:, [0, 1, 2, 3, 3]]])
    keys, values = [], []

    def add(classes: Ints, rows: Ints, edges: Ints, vertices: Ints) -> None:
        """Add what rows (label, direction, vertex) say for each class of their vertex."""
        left, right = equal(rows[:, 2:3], classes[:, :1])
        keys.append(np.column_stack([rows[left, 0], classes[right, 1], rows[left, 1]]))
        values.append(np.column_stack([edges[left], vertices[left]]))

    add(kept, here, t.after - t.before, t.appeared)
    has, had = degrees[degrees[:, 4] > 0], degrees[degrees[:, 3] > 0]
    add(come, has, has[:, 4], np.ones(len(has), np.int64))
    add(gone, had, -had[:, 3], -np.ones(len(had), np.int64))
    return summed(np.concatenate(keys), np.concatenate(values))


def _lessened(connection: duckdb.DuckDBPyConnection, touched: _Touched) -> list[tuple[Any, ...]]:
    """Return what :data:`.statistics.LESSENED` finds."""
    t = touched
    keys, at = np.unique(np.column_stack([t.label, t.direction]), axis=0, return_inverse=True)
    had, has = np.zeros((2, len(keys)), np.int64)
    np.maximum.at(had, at.reshape(-1), t.before)
    np.maximum.at(has, at.reshape(-1), t.after)
    less = had > has
    if not less.any():
        return []
    places, given = in_list(keys[less, 0])
    degrees = rows_of(
        execute(
            connection,
            f"SELECT label, direction, bucket, vertices FROM ({statistics.summed('degree')}) WHERE label IN ({places})",
            given,
        )
    )
    found: list[tuple[Any, ...]] = []
    for key, most, now in zip(keys[less], had[less], has[less], strict=True):
        buckets = degrees[(degrees[:, :2] == key).all(axis=1), 2:]
        if not len(buckets):
            continue
        bucket, vertices = buckets[buckets[:, 0].argmax()].tolist()
        mine = t.after[(t.label == key[0]) & (t.direction == key[1]) & (t.after > 0)]
        seen = int((_bucket(mine) == bucket).sum())
        found.append((*key.tolist(), int(most), int(now), bucket, vertices == seen))
    return found


def _lost(labels: Ints, now: Ints, touched: _Touched, changes: Changes, kinds: _Kinds) -> list[tuple[Any, ...]]:
    """Return what :data:`.statistics.LOST_LITERALS` finds."""
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
    connection: duckdb.DuckDBPyConnection,
    labels: Ints,
    now: Ints,
    touched: _Touched,
    changes: Changes,
    kinds: _Kinds,
) -> None:
    """Bring maxima and kinds in rows of ``edge_label`` down to what is left, after degrees are written."""
    rows = {label: i for i, label in enumerate(labels.tolist())}
    columns = {name: i for i, name in enumerate(statistics.columns_of("edge_label")[1:])}
    lessened = [row for row in _lessened(connection, touched) if now[rows[row[0]], 0]]
    for label, column, value in statistics.degrees_left(
        connection, lessened, lambda label, column: int(now[rows[label], columns[column]])
    ):
        now[rows[label], columns[column]] = value
    for label, column, value in statistics.literals_left(connection, _lost(labels, now, touched, changes, kinds)):
        now[rows[label], columns[column]] = value


def _put(connection: duckdb.DuckDBPyConnection, table: str, ids: Ints, values: Ints, known: AbstractSet[int]) -> None:
    """Write rows of one of the tables of labels, of which some ids are there; those whose first value is 0 go."""
    names = statistics.columns_of(table)
    rows = np.column_stack([ids, values])
    there = np.array([id in known for id in ids.tolist()], bool)
    gone = values[:, 0] == 0
    if gone.any():
        places, which = in_list(ids[gone])
        execute(connection, f"DELETE FROM _graphdb.{table} WHERE id IN ({places})", which)
    for chosen, sql in (
        (there & ~gone, f"UPDATE _graphdb.{table} AS held SET {', '.join(f'{n} = new.{n}' for n in names[1:])}"
                        " FROM {new} AS new WHERE held.id = new.id"),
        (~there & ~gone, f"INSERT INTO _graphdb.{table} SELECT * FROM {{new}}"),
    ):  # fmt: skip
        if chosen.any():
            new, given = listed_rows(names, rows[chosen])
            execute(connection, sql.format(new=new), given)


def _append(connection: duckdb.DuckDBPyConnection, table: str, keys: Ints, values: Ints) -> None:
    """Append rows to one of the tables that are added up when they are read."""
    if len(keys):
        new, given = listed_rows(statistics.columns_of(table), np.column_stack([keys, values]))
        execute(connection, f"INSERT INTO _graphdb.{table} SELECT * FROM {new}", given)


def _bucket(degrees: Ints) -> Ints:
    """Return the powers of two that degrees are told by."""
    return np.floor(np.log2(degrees)).astype(np.int64)
