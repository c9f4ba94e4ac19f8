"""Statistics before a change: those known in memory, and SQL that looks up the rest."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.arrays import small_joins
from graphdb.storage.arrays.small_joins import Ints, among, in_list, looked_up, rows_of
from graphdb.storage.arrays.sorted_sets import places, unique
from graphdb.storage.dictionary.literal_kinds import Kinds
from graphdb.storage.file.prepared_sql import Insertions, execute
from graphdb.storage.graph.changes import Counted
from graphdb.storage.graph.degree_sketch import IN, OUT
from graphdb.storage.statistics.degrees import UNCHANGED, Degrees
from graphdb.storage.statistics.pairs import ChangedPairs, Pairs
from graphdb.storage.statistics.tables import current

if TYPE_CHECKING:
    import duckdb

_GROUPS = 4096
"""Objects of a label up to which all are counted, sooner than those that are looked for are found."""

_NO_IDS: Ints = np.empty(0, np.int64)

_APART = 4
"""Rows that are looked for one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownStatistics:
    """What is known of the file in memory; the rest is looked up."""

    sizes: tuple[int, int] | None = None
    """Resources and literals."""
    ahead: int | None = None
    """How far the numbers in names of blank nodes are ahead of their ids."""
    typed: int | None = None
    """The edge label rdf:type."""
    edge_labels: Mapping[int, tuple[int, ...]] | None = None
    """Rows of ``edge_label`` without their ids, by id: of all labels."""
    vertex_labels: Mapping[int, int] | None = None
    """Vertices of all vertex labels, by id."""
    degrees: Degrees | None = None
    """Degrees of the vertices of some labels."""

    def after(self, counted: Counted) -> KnownStatistics:
        """Return what is known after a change; degrees follow when all that belongs to it is done."""
        if self.edge_labels is None or self.vertex_labels is None:
            return replace(self, degrees=None)
        edges: dict[int, tuple[int, ...]] = dict(self.edge_labels)
        for id, row in counted.edge_labels.items():
            if row is None:
                edges.pop(id, None)
            else:
                edges[id] = row
        vertices = {**self.vertex_labels, **counted.vertex_labels}
        return KnownStatistics(self.sizes, self.ahead, self.typed, edges, vertices)

    def with_degrees(self, degrees: Degrees | None) -> KnownStatistics:
        """Return the same with degrees."""
        return KnownStatistics(self.sizes, self.ahead, self.typed, self.edge_labels, self.vertex_labels, degrees)

    def with_sizes(self, sizes: tuple[int, int]) -> KnownStatistics:
        """Return the same with other numbers of terms."""
        return KnownStatistics(sizes, self.ahead, self.typed, self.edge_labels, self.vertex_labels, self.degrees)

    def pairs(
        self, file: Callable[[], duckdb.DuckDBPyConnection], label: int, changed: ChangedPairs = UNCHANGED
    ) -> Pairs | None:
        """Return the pairs of a label before the change under way, of which ``file`` has ``changed``; if cached."""
        if self.degrees is None or self.edge_labels is None:
            return None
        return self.degrees.pairs(file, label, self.edge_labels.get(label, (0,))[0], changed)

    def objects(
        self, file: Callable[[], duckdb.DuckDBPyConnection], label: int, subjects: Sequence[int], changed: ChangedPairs
    ) -> list[set[int]] | None:
        """Return the objects of some subjects of a label before the change under way; None where they are looked for.

        ``file`` may have some ``changed`` pairs, or not yet.
        """
        row = None if self.edge_labels is None else self.edge_labels.get(label)
        if self.degrees is None or row is None:
            return None
        return self.degrees.objects(file, label, row, subjects, changed)


@dataclass(frozen=True, slots=True, eq=False)
class KindBits:
    """The kinds of some literals, sorted, as bits: int64 [literals] each."""

    literals: Ints
    bits: Ints

    def of(self, vertices: Ints) -> Ints:
        """Return the bit of each vertex's kind; 0 where that was not asked for, and where it is no literal."""
        found = np.zeros(len(vertices), np.int64)
        at, there = places(self.literals, vertices)
        found[there] = self.bits[at[there]]
        return found


class StatisticsLookup:
    """Looks up what is not known already."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        typed: int,
        fresh: int,
        fresh_literals: int,
        cached: KnownStatistics,
        kinds: Kinds | None,
        insertions: Insertions,
        bare: Collection[int] = (),
    ) -> None:
        self._connection, self._insertions = connection, insertions
        self._bare = bare
        """Resources of which the change leaves no triple, but of those that are of them as a class."""
        self.typed = typed
        self._known, self._kinds = cached, kinds
        self._fresh, self._fresh_literals = fresh, fresh_literals

    def triples(self) -> duckdb.DuckDBPyConnection:
        """Return the connection to a file that has the triples of the change: those that wait are written."""
        self._insertions.run("triple")
        return self._connection

    def fresh(self, vertices: Ints) -> NDArray[np.bool_]:
        """Which vertices were in no triple before."""
        new: NDArray[np.bool_] = np.where(
            vertices < LITERAL_BASE, vertices >= self._fresh, vertices >= self._fresh_literals
        )
        return new

    # --- what is in memory, of single vertices and labels

    @property
    def first_fresh(self) -> tuple[int, int]:
        """The resource, and the literal, from which on they were in no triple before."""
        return self._fresh, self._fresh_literals

    def is_fresh(self, vertex: int) -> bool:
        """Whether a vertex was in no triple before."""
        return vertex >= (self._fresh if vertex < LITERAL_BASE else self._fresh_literals)

    def degree_in_memory(self, direction: int, label: int, vertex: int) -> tuple[int, int] | None:
        """Return how many triples of a label a vertex that is not fresh had, and how many with a literal.

        None if memory does not tell.  A class has as many as it has vertices.
        """
        if label == self.typed and direction == IN and vertex < LITERAL_BASE:
            counts = self._known.vertex_labels
            return None if counts is None else (counts.get(vertex, 0), 0)
        table = None if self._known.degrees is None else self._known.degrees.table(direction, label)
        return None if table is None else table.look_at(vertex)

    def largest_but(self, direction: int, label: int, vertices: Ints) -> int | None:
        """Return the most triples of a label that a vertex had, some vertices left out; None if memory does not tell.

        It is what others have now, where these are all that a change concerns.
        """
        classes, edges, degrees = self._known.vertex_labels, self._known.edge_labels, self._known.degrees
        if label == self.typed and direction == IN and classes is not None and edges is not None:
            triples, of_resources, *_ = edges.get(label, (0, 0))
            left_out = set(vertices.tolist())
            if triples == of_resources:  # no literal is a class
                return max((count for id, count in classes.items() if id not in left_out), default=0)
        table = None if degrees is None else degrees.table(direction, label)
        return None if table is None else table.largest_but(vertices)

    def edge_labels_in_memory(self, labels: AbstractSet[int]) -> dict[int, list[int]] | None:
        """Return the rows of edge labels without their ids, zeros where there is none; None if memory lacks them."""
        rows = self._known.edge_labels
        return None if rows is None else {label: [*rows.get(label, (0,) * 8)] for label in labels}

    def classes_in_memory(self, vertices: Sequence[int], come: Sequence[tuple[int, int]]) -> dict[int, set[int]] | None:
        """Return the vertex labels that some vertices had, which get none; None if memory does not tell.

        ``come`` are (vertex, class) that the change gives.
        """
        if not vertices:
            return {}
        pairs = np.array(come, np.int64).reshape(-1, 2)
        found = self._objects(vertices, pairs, pairs[:0])
        if found is None:
            return None
        return {
            vertex: {label for label in classes if label < LITERAL_BASE}
            for vertex, classes in zip(vertices, found, strict=True)
        }

    # --- what the file is asked for

    def _objects(self, subjects: Sequence[int], come: Ints, gone: Ints) -> list[set[int]] | None:
        return self._known.objects(lambda: self._connection, self.typed, subjects, (come, gone))

    def _rows_of(self, table: str, columns: str, ids: Ints) -> Ints:
        """Return the rows of some ids; a handful are looked up one by one, else DuckDB unpacks those between them."""
        self._insertions.run(table)
        rows = f"SELECT {columns} FROM _graphdb.{table} WHERE id"
        if len(ids) > _APART:
            places, given = in_list(ids)
            return rows_of(execute(self._connection, f"{rows} IN ({places})", given))
        return rows_of(execute(self._connection, " UNION ALL ".join([f"{rows} = ?"] * len(ids)), ids.tolist()))

    def bits_of_kinds(self, literals: Sequence[int]) -> dict[int, int]:
        """Return the kinds of a handful of literals, as bits."""
        handful = None if self._kinds is None else self._kinds.of_handful(literals)
        if handful is not None:
            return {literal: 1 << kind for literal, kind in handful.items()}
        found = self.kinds(np.array(literals, np.int64))
        return dict(zip(found.literals.tolist(), found.bits.tolist(), strict=True))

    def kinds(self, vertices: Ints, told: Ints = _NO_IDS, bits: Ints = _NO_IDS) -> KindBits:
        """Find out the kinds of the literals among some vertices; of some that are ``told``, they are known as bits."""
        literals = unique(vertices[vertices >= LITERAL_BASE])
        known, kinds = np.zeros(len(literals), bool), np.zeros(len(literals), np.int64)
        if self._kinds is not None:
            known, kinds = self._kinds.of(literals)
        found = KindBits(literals, 1 << kinds)
        if len(told) and not known.all():
            order = np.argsort(told)
            by_label = KindBits(told[order], bits[order]).of(literals)
            found.bits[~known] = by_label[~known]
            known = known | (by_label > 0)
        if not known.all():
            rows = self._rows_of("literal", "id, kind", literals[~known])
            found.bits[~known] = 1 << looked_up(rows, literals[~known, None])[:, 0]
        return found

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
        now, cached = sums.copy(), self._known.degrees
        labels = list(zip(_stretches(keys[:, 0]), there.tolist(), strict=True))
        if cached is not None:
            waiting, asked = asked.tolist(), asked.copy()
            for (label, begin, end), (vertices, triples) in labels:
                if not any(waiting[begin:end]):
                    continue
                mine = begin + asked[begin:end].nonzero()[0]
                table = cached.table(direction, label)
                if table is None and cached.wanted(direction, label, len(mine), vertices, triples):
                    table = cached.count(self.triples(), direction, label, keys[begin:end, 1], sums[begin:end])
                if table is not None:
                    now[mine] += table.look(keys[mine, 1])
                    asked[mine] = False
        if asked.any():
            few_vertices = {label for (label, _, _), (vertices, _) in labels if vertices <= _GROUPS}
            now[asked] = looked_up(self._found(direction, keys[asked], few_vertices), keys[asked])
        return now

    def _found(self, direction: int, pairs: Ints, all: AbstractSet[int]) -> Ints:
        """Return (label, vertex, triples, triples with a literal as object) of pairs that have any.

        Of some labels ``all`` pairs may be returned.
        """
        labels, vertices = pairs.T
        if len(pairs) > small_joins.SMALL:
            each = [self._degrees_of(direction, label, vertices[begin:end], direction == IN and label in all)
                    for label, begin, end in _stretches(labels)]  # fmt: skip
            return np.concatenate(each)
        end = "subject" if direction == OUT else "object"
        literals = f"count(*) FILTER (object >= {LITERAL_BASE})" if direction == OUT else "0"
        found = execute(
            self.triples(),
            f"SELECT label, {end}, count(*), {literals} FROM _graphdb.triple"
            f" WHERE label IN ({in_list(labels)[0]}) AND {end} IN ({in_list(vertices)[0]}) GROUP BY label, {end}",
            [*labels.tolist(), *vertices.tolist()],
        )
        return rows_of(found)

    def _degrees_of(self, direction: int, label: int, vertices: Ints, all: bool) -> Ints:
        """Do so for one label: DuckDB looks for one number sooner than for two; ``all`` vertices may be returned."""
        end = "subject" if direction == OUT else "object"
        literals = f"count(*) FILTER (object >= {LITERAL_BASE})" if direction == OUT else "0"
        wanted = "" if all else f"JOIN (SELECT unnest(?::BIGINT[]) AS {end}) USING ({end})"
        found = execute(
            self.triples(),
            f"SELECT label, {end}, count(*), {literals} FROM _graphdb.triple {wanted} WHERE label = ?"
            f" GROUP BY label, {end}",
            [label] if all else [vertices.tolist(), label],
        )
        return rows_of(found)

    def elsewhere(self, vertices: Ints) -> Ints:
        """Return (label, direction, vertex, triples) of all triples at some vertices."""
        classes = self._known.vertex_labels
        if self._bare and classes is not None:  # of a class, the vertices are left
            vertices = vertices[[id not in self._bare or id in classes for id in vertices.tolist()]]
        if not len(vertices):
            return np.empty((0, 4), np.int64)
        places, given = in_list(vertices)
        ends = " UNION ALL ".join(
            f"SELECT label, {direction}, {end}, count(*) FROM _graphdb.triple WHERE {end} IN ({places})"
            f" GROUP BY label, {end}"
            for direction, end in ((OUT, "subject"), (IN, "object"))
        )
        return rows_of(execute(self.triples(), ends, given * 2))

    def labelled(self, vertices: Ints, come: Ints, gone: Ints) -> Ints:
        """Return (vertex, class) of the vertex labels that some vertices had and have.

        ``come`` and ``gone`` are those that the change gives and takes.
        """
        asked = unique(vertices[(vertices < LITERAL_BASE) & ~self.fresh(vertices)])
        if not len(asked):
            return np.empty((0, 2), np.int64)
        objects = self._objects(asked.tolist(), come, gone)
        if objects is not None:
            had = [(id, c) for id, classes in zip(asked.tolist(), objects, strict=True) for c in classes]
            rows = np.array([row for row in had if row[1] < LITERAL_BASE], np.int64).reshape(-1, 2)
            return rows[~among(rows, gone)]
        places, given = in_list(asked)
        found = execute(  # those that come may be there, or wait
            self._connection,
            f"SELECT subject, object FROM _graphdb.triple WHERE label = ? AND object < {LITERAL_BASE}"
            f" AND subject IN ({places})",
            [self.typed, *given],
        )
        now = rows_of(found)
        return now[~among(now, come)]

    def edge_labels(self, labels: Ints) -> Ints:
        """Return the rows of some edge labels, without their ids: int64 [labels, 8], zeros where there is none."""
        if self._known.edge_labels is not None:
            rows = {id: self._known.edge_labels[id] for id in labels.tolist() if id in self._known.edge_labels}
            return np.array([rows.get(id, (0,) * 8) for id in labels.tolist()], np.int64).reshape(-1, 8)
        places, given = in_list(labels)
        found = rows_of(
            execute(self._connection, f"SELECT * FROM {current('edge_label')} WHERE id IN ({places})", given)
        )
        return looked_up(found, labels[:, None])

    def vertices_of(self, classes: Ints) -> Ints:
        """Return (class, how many vertices it has) as counted before: int64 [classes, 2]."""
        if self._known.vertex_labels is not None:
            counts = [self._known.vertex_labels.get(id, 0) for id in classes.tolist()]
            return np.column_stack([classes, np.array(counts, np.int64)])
        places, given = in_list(classes)
        counted = f"SELECT id, vertices FROM {current('vertex_label')} WHERE id IN ({places})"
        return rows_of(execute(self._connection, counted, given)) if len(classes) else np.empty((0, 2), np.int64)

    def labels_in(self, triples: Ints) -> Ints:
        """Return (vertex, class) of the vertex labels that some triples give."""
        rows: Ints = triples[(triples[:, 0] == self.typed) & (triples[:, 2] < LITERAL_BASE)][:, 1:]
        return rows


def _stretches(labels: Ints) -> Iterator[tuple[int, int, int]]:
    """Yield each label of a sorted column, and where its rows begin and end."""
    is_first = np.ones(len(labels), bool)
    np.not_equal(labels[1:], labels[:-1], out=is_first[1:])
    begins = is_first.nonzero()[0]
    bounds = np.append(begins, len(labels)).tolist()
    yield from zip(labels[begins].tolist(), bounds[:-1], bounds[1:], strict=True)
