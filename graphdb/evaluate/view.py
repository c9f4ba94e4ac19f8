"""What the evaluator sees of the graph: labels and properties of vertices and edges, read for many at once.

A step announces the vertices of its rows (:meth:`View.expect`); the first question about one of them reads all that
are waiting.  Writing changes what was read here at once, and the file when it is flushed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphdb.common import arrow
from graphdb.common.duckdb.connection import Connection
from graphdb.common.errors import ExecutionError
from graphdb.common.values.literals import value_of
from graphdb.common.values.terms import LITERAL_BASE, RDF, VALUE_SQL, XSD, Kind
from graphdb.common.values.types import EXACT_ONLY, edge_number, tidied
from graphdb.evaluate.values import Edge, Several, Vertex
from graphdb.grammar import syntax as ast

if TYPE_CHECKING:
    from graphdb.evaluate.statement_names import StatementNames

_SINGLE = 16
"""Times that edges of a label are looked for, before all that have rows of their own are read."""
_TOGETHER = 64
"""Pairs of vertices between which edges are looked for together, at most."""
_WITHOUT = frozenset({int, str, float, bool, type(None)})
"""Types of values that are no vertices or edges, and have none inside."""
_TEXT = EXACT_ONLY | 1 << Kind.DATE | 1 << Kind.DATETIME | 1 << Kind.ZONED | 1 << Kind.TIME
"""Kinds, as a bit mask, whose values are read from their text."""
_COLUMNS = {1 << Kind.INTEGER, 1 << Kind.STRING, 1 << Kind.DOUBLE, 1 << Kind.BOOLEAN}
"""Kinds of a property's values, as a bit mask, that its column has as Python does."""
_WANTED = "_graphdb_wanted"
_READ = (Kind.INTEGER, Kind.DOUBLE, Kind.BOOLEAN, Kind.DECIMAL)
"""Kinds whose values Python has as SQL does; the others are read from their text."""
_FACTS = f"l.lexical, l.datatype, l.language, l.kind, {', '.join(VALUE_SQL[kind].format('l') for kind in _READ)}"
_APART = 6
"""Literals that are looked for one by one."""
_FEW = 32
"""Vertices that are listed one by one: SQL that is planned sooner than a join."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One value of a property, with the literal it is written as."""

    value: Any
    lexical: str
    datatype: str | None
    language: str | None = None


Ordinals: TypeAlias = "dict[int, dict[int, tuple[Fact, ...]]]"
"""The edges that one triple stands for: their properties by ordinal."""


class View:
    """Labels and properties, by term id; ``deleted`` holds what the statement has deleted."""

    def __init__(self, context: StatementNames) -> None:
        self._context = context
        self._labels: dict[int, frozenset[int]] = {}
        self._facts: dict[int, dict[int, tuple[Fact, ...]]] = {}
        self._values: dict[tuple[int, int], Any] = {}
        """The only values of some properties of vertices whose facts are not read, by vertex and property."""
        self._literals: dict[int, Fact] = {}
        self._iris: dict[int, str] = {}
        self._set: dict[int, dict[int, tuple[Fact, ...]]] = {}
        """Values that were set of vertices whose facts are not read, by vertex and property."""
        self._stored_labels: dict[int, set[tuple[int, int, int]]] = {}
        self._stored_facts: dict[int, set[tuple[int, int, int]]] = {}
        self._unlabelled: set[int] = set()
        """Vertices whose labels wait to be read, …"""
        self._waiting: set[int] = set()
        """… and those whose facts do."""
        self._pairs: dict[int, set[tuple[int, int]]] = {}
        """The ends of edges that wait to be read, by label."""
        self._described: dict[int, dict[tuple[int, int], Ordinals]] = {}
        self._asked: dict[int, set[tuple[int, int]] | None] = {}
        """Which edges of a label were read, or are known not to be there; None for all."""
        self._single_reads: dict[int, int] = {}
        """How many edges of a label were looked for one by one."""
        self._created: set[int] = set()
        self.deleted: set[Vertex | Edge] = set()

    def forget(self) -> None:
        """Forget all that was read: it may be other by the next run."""
        for read in (
            self._labels,
            self._facts,
            self._values,
            self._literals,
            self._iris,
            self._set,
            self._stored_labels,
            self._stored_facts,
            self._described,
        ):
            read.clear()
        self._asked.clear()
        self._unlabelled.clear()
        self._waiting.clear()
        self._pairs.clear()
        self._created.clear()
        self._single_reads.clear()

    @property
    def _connection(self) -> Connection:
        """The file."""
        return self._context.connection

    # --- reading ahead

    def expect(self, values: Iterable[Any]) -> None:
        """Announce the vertices among values, and those inside them."""
        for value in values:
            kind = value.__class__
            if kind in _WITHOUT:  # most of what there is
                continue
            if kind is Vertex:
                if (id := value.id) not in self._labels:
                    self._unlabelled.add(id)
                if id not in self._facts:
                    self._waiting.add(id)
            elif kind is Edge:
                self.expect((Vertex(value.start), Vertex(value.end)))
                self.expect_edges([(value.label, value.start, value.end)])
            elif isinstance(value, list):
                if value:
                    self.expect(value)
            elif isinstance(value, dict):
                self.expect(value.values())

    def expect_edges(self, triples: Iterable[tuple[int, int, int]]) -> None:
        """Announce the triples (label, start, end) of edges."""
        for label, start, end in triples:
            self._pairs.setdefault(label, set()).add((start, end))

    def _read_labels(self, vertex: int) -> None:
        """Read the labels of the vertices that wait, this one among them."""
        wanted = [id for id in self._unlabelled | {vertex} if id not in self._labels]
        self._unlabelled.clear()
        type, hidden = self._context.type_label, self._context.hidden_label
        labels: dict[int, set[int]] = {id: set() for id in wanted}
        resources = [id for id in wanted if id < LITERAL_BASE]
        if type is not None and resources:
            with self._among("t.subject", resources) as (among, given):
                for subject, label in self._connection.rows(
                    f"SELECT t.subject, t.object FROM _graphdb.triple t WHERE {among} AND t.label = $type",
                    {**given, "type": type},
                ):
                    labels[subject].add(label)
        for id, found in labels.items():
            self._stored_labels[id] = {(type, id, label) for label in found if type is not None}
            self._labels[id] = frozenset(found - {hidden})

    def _read_facts(self, vertex: int) -> None:
        """Read the facts of the vertices that wait, this one among them, and the values of literals."""
        wanted = [id for id in self._waiting | {vertex} if id not in self._facts]
        self._waiting.clear()
        if literals := [id for id in wanted if id >= LITERAL_BASE]:
            self._read_literals(literals)
        facts: dict[int, dict[int, tuple[Fact, ...]]] = {id: {} for id in wanted}
        stored: dict[int, set[tuple[int, int, int]]] = {id: set() for id in wanted}
        if resources := [id for id in wanted if id < LITERAL_BASE]:
            with self._among("t.subject", resources) as (among, given):
                for subject, label, id, fact in self._fact_rows(
                    f"SELECT t.subject, t.label, l.id, {_FACTS} FROM _graphdb.triple t JOIN _graphdb.literal l"
                    f" ON l.id = t.object WHERE {among} AND t.object >= {LITERAL_BASE}"
                    " ORDER BY t.subject ASC, l.lexical ASC, l.id ASC",
                    given,
                ):
                    facts[subject][label] = (*facts[subject].get(label, ()), fact)
                    stored[subject].add((label, subject, id))
        for id, found in facts.items():
            for label, values in self._set.pop(id, {}).items():
                _put(found, label, values)
        self._stored_facts.update(stored)
        self._facts.update(facts)

    @contextmanager
    def _among(self, column: str, ids: list[int]) -> Iterator[tuple[str, dict[str, int]]]:
        """Yield the condition that a column has one of some ids, with its parameters."""
        if len(ids) <= _FEW:
            given = {f"id{i}": id for i, id in enumerate(ids)}
            yield f"{column} IN ({', '.join(f'${name}' for name in given) or 'NULL'})", given
            return
        with self._connection.view(_WANTED, {"id": np.array(ids, np.int64)}):
            yield f"{column} IN (SELECT id FROM {_WANTED})", {}

    def _fact_rows(self, sql: str, given: Mapping[str, int]) -> list[tuple[Any, ...]]:
        """Return the rows of a SELECT that ends with the columns of a literal, a fact in their place."""
        width = 4 + len(_READ)
        rows = []
        for row in self._connection.rows(sql, given):
            lexical, datatype, language, kind, *values = row[-width:]
            value = dict(zip(_READ, values, strict=True)).get(kind, lexical)
            value = value_of(lexical, datatype) if 1 << kind & _TEXT else tidied(value)
            rows.append((*row[:-width], Fact(value, lexical, datatype, language)))
        return rows

    def _read_literals(self, ids: list[int]) -> None:
        if len(ids) <= _APART:  # one by one: DuckDB unpacks those between them otherwise
            sql = " UNION ALL ".join(
                f"SELECT l.id, {_FACTS} FROM _graphdb.literal l WHERE l.id = $id{i}" for i in range(len(ids))
            )
            self._literals.update(self._fact_rows(sql, {f"id{i}": id for i, id in enumerate(ids)}))
            return
        with self._among("l.id", ids) as (among, given):
            for id, fact in self._fact_rows(f"SELECT l.id, {_FACTS} FROM _graphdb.literal l WHERE {among}", given):
                self._literals[id] = fact

    def found(self, literal: int, fact: Fact) -> None:
        """Note the value of a literal vertex, which need not be read."""
        self._literals[literal] = fact

    def has_value(self, vertices: Iterable[int], label: int, value: Any) -> None:
        """Note that some vertices have one value of a property, in the file, and no other."""
        self._values.update(((vertex, label), value) for vertex in vertices)

    def literal(self, id: int) -> Any:
        """Return the value of a literal vertex."""
        if id not in self._literals:
            self._read_facts(id)
        return self._literals[id].value

    # --- vertices

    def check(self, value: Vertex | Edge, node: ast.Expression | None) -> None:
        """Raise :class:`ExecutionError` for what the statement has deleted."""
        if self.deleted and value in self.deleted:
            position = None if node is None else node.span.start
            raise ExecutionError("this was deleted by the statement", text=self._context.text, position=position)

    def labels(self, vertex: Vertex, node: ast.Expression | None = None) -> frozenset[int]:
        """Return the labels of a vertex, as ids."""
        self.check(vertex, node)
        if vertex.id not in self._labels:
            self._read_labels(vertex.id)
        return self._labels[vertex.id]

    def graphs(self, edge: Edge, node: ast.Expression | None = None) -> list[str]:
        """Return the IRIs of the named graphs that an edge is in, sorted."""
        self.check(edge, node)
        triple = {"label": edge.label, "subject": edge.start, "object": edge.end}
        rows = self._connection.rows(
            "SELECT r.iri FROM _graphdb.quad q JOIN _graphdb.resource r ON r.id = q.graph"
            " WHERE q.label = $label AND q.subject = $subject AND q.object = $object ORDER BY r.iri ASC",
            triple,
        )
        return [iri for (iri,) in rows]

    def facts(self, vertex: Vertex, node: ast.Expression | None = None) -> dict[int, tuple[Fact, ...]]:
        """Return the values of a vertex's properties, by property."""
        self.check(vertex, node)
        if vertex.id not in self._facts:
            self._read_facts(vertex.id)
        return self._facts[vertex.id]

    def values(self, vertex: int, label: int) -> tuple[Fact, ...] | None:
        """Return the values of a property of a vertex, where they were set, or all of its facts are read."""
        found = self._facts.get(vertex)
        return self._set.get(vertex, {}).get(label) if found is None else found.get(label, ())

    def property(self, vertex: Vertex, key: ast.KeyName | int, node: ast.Expression | None = None) -> Any:
        """Return the value of a property: null where there is none, :class:`Several` where there are several."""
        label = key if isinstance(key, int) else self._context.property_id(key)
        self.check(vertex, node)
        values = self.values(vertex.id, label)
        if values is None and ((vertex.id, label) in self._values or self._gathered(vertex.id, label)):
            return self._values[vertex.id, label]
        return value_of_facts(self.facts(vertex, node).get(label) if values is None else values)

    def _gathered(self, vertex: int, label: int) -> bool:
        """Read a property of the vertices that wait, this one among them, where it is a column; whether it is.

        To read it takes less than to look for all facts of these vertices, which other questions may still do.
        """
        stored = self._context.stored
        found = stored.names.edge_labels.get(label)
        if found is None or found.kinds not in _COLUMNS or not stored.properties.in_memory(found):
            return False
        wanted = [id for id in self._waiting | {vertex} if id < LITERAL_BASE and id not in self._facts]
        ids = arrow.numbers(np.array(wanted, np.int64))
        self._values.update(
            zip([(id, label) for id in wanted], arrow.pylist(stored.properties.gather(found, ids)), strict=True)
        )
        return vertex < LITERAL_BASE

    def properties(self, value: Vertex | Edge, node: ast.Expression | None = None) -> dict[str, Any]:
        """Return all properties by their written names."""
        facts = self.facts(value, node) if isinstance(value, Vertex) else self.edge_facts(value, node)
        named = {self._context.label_name(label): value_of_facts(found) for label, found in facts.items()}
        return dict(sorted(named.items()))

    def named(self, value: Vertex | Edge, name: str, node: ast.Expression) -> Any:
        """Return a property by its written name, which only now is known."""
        return self.properties(value, node).get(name)

    def facet(self, vertex: Any, key: ast.KeyName, which: str, node: ast.Expression | None = None) -> Any:
        """Return the language or datatype of a property's value."""
        if not isinstance(vertex, Vertex):
            return None
        facts = self.facts(vertex, node).get(self._context.property_id(key), ())
        found = [_facet(fact, which) for fact in facts]
        return None if not found else found[0] if len(found) == 1 else Several(found)

    def literal_facet(self, vertex: Vertex, which: str) -> str | None:
        """Return the language or datatype of a literal vertex; None for a resource."""
        if vertex.id < LITERAL_BASE:
            return None
        self.literal(vertex.id)
        return _facet(self._literals[vertex.id], which)

    def iri(self, vertex: Vertex) -> str:
        """Return the IRI of a vertex."""
        if vertex.id not in self._iris:
            wanted = {"ids": [vertex.id, *self._labels]}
            sql = "SELECT id, iri FROM _graphdb.resource WHERE id IN (SELECT unnest($ids::BIGINT[]))"
            self._iris.update(self._connection.rows(sql, wanted))
        return self._iris[vertex.id]

    # --- edges

    def described(self, label: int, pair: tuple[int, int]) -> dict[tuple[int, int], Ordinals]:
        """Return the edges of a label that have rows of their own, as far as they were asked for: (start, end) to
        ordinal to properties.  ``pair`` is the one that is asked for.
        """
        found = self._described.setdefault(label, {})
        asked = self._asked.setdefault(label, set())
        if asked is None or pair in asked or not self._created.isdisjoint(pair):
            return found
        if label not in self._context.described_labels:
            self._asked[label] = None
        elif self._single_reads.get(label, 0) < _SINGLE:
            self._single_reads[label] = self._single_reads.get(label, 0) + 1
            wanted = {pair, *self._pairs.pop(label, ())} - asked
            if len(wanted) > _TOGETHER:
                wanted = {pair}
            asked |= wanted
            found.update(self._read_described(label, [*wanted]))
        else:  # what is known may be changed already
            self._asked[label] = None
            every = self._read_described(label)
            found.update((other, edges) for other, edges in every.items() if other not in asked and other not in found)
        return found

    def undescribed(self, label: int, pair: tuple[int, int]) -> None:
        """Note that the file has no edge of a label between two vertices: nothing is to be read of it."""
        asked = self._asked.setdefault(label, set())
        if asked is not None:
            asked.add(pair)

    def _read_described(
        self, label: int, pairs: Sequence[tuple[int, int]] | None = None
    ) -> dict[tuple[int, int], Ordinals]:
        """Read the edges of a label that have rows of their own: between some ends, or all."""
        given, among = {"label": label}, ""
        for side in (0, 1) if pairs is not None else ():
            ids = {f"{'se'[side]}{i}": id for i, id in enumerate({pair[side] for pair in pairs or ()})}
            given |= ids
            among += f" AND e.{('subject', 'object')[side]} IN ({', '.join(f'${name}' for name in ids)})"
        where, wanted = f"WHERE e.label = $label{among}", None if pairs is None else frozenset(pairs)
        found: dict[tuple[int, int], Ordinals] = {}
        rows = self._connection.rows(
            f"SELECT e.subject, e.object, e.ordinal FROM _graphdb.edge e {where} ORDER BY e.ordinal ASC", given
        )
        for start, end, ordinal in rows:
            if wanted is None or (start, end) in wanted:  # each end among those of all is soon looked for
                found.setdefault((start, end), {})[ordinal] = {}
        for start, end, ordinal, key, fact in self._described_facts(where, given, wanted) if found else ():
            facts = found[start, end][ordinal]
            facts[key] = (*facts.get(key, ()), fact)
        return found

    def _described_facts(
        self, where: str, given: Mapping[str, int], wanted: frozenset[tuple[int, int]] | None
    ) -> Iterable[tuple[int, int, int, int, Fact]]:
        """Return start, end, ordinal, key and value of the properties of edges: of some pairs of vertices, or all.

        Of some the literals are looked for by their ids, once these are known: a join reads many more.
        """
        columns = "e.subject, e.object, e.ordinal, e.key"
        if wanted is None:
            sql = f"SELECT {columns}, {_FACTS} FROM _graphdb.edge_property e JOIN _graphdb.literal l ON l.id = e.value"
            return self._fact_rows(f"{sql} {where}", given)
        rows = self._connection.rows(f"SELECT {columns}, e.value FROM _graphdb.edge_property e {where}", given)
        rows = [row for row in rows if row[:2] in wanted]
        if unknown := sorted({row[-1] for row in rows} - self._literals.keys()):
            self._read_literals(unknown)
        return [(*row[:-1], self._literals[row[-1]]) for row in rows]

    def _is_single(self, label: int, pair: tuple[int, int]) -> bool:
        """Whether an edge between two vertices in the file is the only one, of which nothing was read."""
        asked = self._asked.get(label, set())
        if asked is None or pair in asked or not self._created.isdisjoint(pair):
            return False
        return label in self._context.described_labels and label not in self._context.parallel_labels

    def leaves(self, edge: Edge) -> None:
        """Note that an edge is to be deleted: of the only one between its ends nothing is to be read."""
        pair = edge.start, edge.end
        if edge.ordinal == 0 and self._is_single(edge.label, pair):
            self.undescribed(edge.label, pair)
            self._described.setdefault(edge.label, {})[pair] = {0: {}}

    def parallel(self, label: int, start: int, end: int) -> list[Edge]:
        """Return the edges that one triple stands for."""
        if self._is_single(label, (start, end)):
            return [Edge(label, start, end)]
        ordinals = self.described(label, (start, end)).get((start, end))
        return [Edge(label, start, end, ordinal) for ordinal in ordinals] if ordinals else [Edge(label, start, end)]

    def next_ordinal(self, label: int, start: int, end: int, ordinals: Iterable[int] | None) -> int:
        """Return the ordinal of a new edge beside others (None: there are none): not that of one that was deleted.

        Rows of the statement may still name that one, which is not the new one.
        """
        ordinal = max(ordinals or (-1,)) + 1
        while Edge(label, start, end, ordinal) in self.deleted:
            ordinal += 1
        return ordinal

    def edge_facts(self, edge: Edge, node: ast.Expression | None = None) -> dict[int, tuple[Fact, ...]]:
        """Return the values of an edge's properties, by property."""
        self.check(edge, node)
        pair = edge.start, edge.end
        return self.described(edge.label, pair).get(pair, {}).get(edge.ordinal, {})

    def edge_property(self, edge: Edge, key: ast.KeyName, node: ast.Expression | None = None) -> Any:
        """Return the value of an edge's property; null where there is none."""
        return value_of_facts(self.edge_facts(edge, node).get(self._context.edge_key(key)))

    def edge_id(self, edge: Edge) -> int:
        """Return a number that is this edge's alone while the data stays as it is."""
        return edge_number((edge.label, edge.start, edge.end, edge.ordinal))

    # --- changes

    def stored(self, vertices: Iterable[int]) -> dict[int, set[tuple[int, int, int]]]:
        """Return the labels and properties of vertices as the file has them, of those that were read from it."""
        both = self._stored_labels.keys() & self._stored_facts.keys()
        return {id: self._stored_labels[id] | self._stored_facts[id] for id in vertices if id in both}

    def stored_facts(self, vertex: int) -> set[tuple[int, int, int]] | None:
        """Return the properties of a vertex as the file has them, where they were read from it."""
        return self._stored_facts.get(vertex)

    def flushed(self) -> None:
        """Note that the file has other labels and properties now."""
        self._stored_labels.clear()
        self._stored_facts.clear()

    def created(self, vertex: int) -> None:
        """Note a new vertex."""
        self._labels[vertex], self._facts[vertex] = frozenset(), {}
        self._created.add(vertex)

    def set_labels(self, vertex: int, labels: frozenset[int]) -> None:
        """Note the labels that a vertex has now."""
        self._labels[vertex] = labels

    def set_facts(self, vertex: int, label: int, facts: tuple[Fact, ...]) -> None:
        """Note the values that a property has now; none removes it."""
        mine = self._facts.get(vertex)
        if mine is None:
            self._set.setdefault(vertex, {})[label] = facts
        else:
            _put(mine, label, facts)


def _put(facts: dict[int, tuple[Fact, ...]], label: int, values: tuple[Fact, ...]) -> None:
    """Set the values of a property among facts; none removes it."""
    if values:
        facts[label] = values
    else:
        facts.pop(label, None)


def _facet(fact: Fact, which: str) -> str:
    if which == "lang":
        return fact.language or ""
    return RDF + "langString" if fact.language else fact.datatype or XSD + "string"


def value_of_facts(facts: tuple[Fact, ...] | None) -> Any:
    """Return the value of a property: null where there is none, :class:`Several` where there are several."""
    if not facts:
        return None
    return facts[0].value if len(facts) == 1 else Several(fact.value for fact in facts)
