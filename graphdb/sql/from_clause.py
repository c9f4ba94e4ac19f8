"""Compiles look-ups of the graph: the joins of the FROM clause that fetch values for ids; and the parameters.

An expression asks for what it needs (the value of a property, the IRI of a vertex) and gets a column; what several
expressions need is joined once.  Values of the statement's literals and parameters are DuckDB parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Protocol

from graphdb.common.duckdb.identifiers import OURS
from graphdb.common.duckdb.out_of_range import OutOfRange
from graphdb.common.errors import NotSupportedError, with_place
from graphdb.common.values.terms import LITERAL_BASE, RDF, XSD
from graphdb.common.values.types import (
    BOOLEAN,
    EDGE,
    NODE,
    NULL,
    STRING,
    VALUE,
    Base,
    Type,
    bases_of_kinds,
    list_of,
    literal_sql,
    sql_type,
)
from graphdb.pattern.names import Names
from graphdb.snapshot.edges import Edges
from graphdb.snapshot.properties import Properties
from graphdb.snapshot.property_types import property_relation
from graphdb.sql.long_texts import LongTexts
from graphdb.sql.parameters import Parameters
from graphdb.sql.value import NO_EFFECTS, RAISES, SUBQUERY, Effects, SqlValue
from graphdb.sql.value import column as column_of_rows
from graphdb.storage.catalog import EdgeLabel

NAMES_VIEW = f"{OURS}names"
"""The registered view (id, name) with the written names of edge and vertex labels."""

_KEYS = 24
"""Properties that are joined to rows all at once, at most."""


def _written(alias: str, kinds: int = -1) -> str:
    """Return the fields of a literal as a struct: its text, what that is, and its value; see :func:`literal_sql`."""
    parts = f"lexical := {alias}.lexical, datatype := {alias}.datatype, kind := {alias}.kind"
    return f"{parts}, value := {literal_sql(alias, VALUE, kinds)}"


_WRITTEN = _written("l")


@dataclass(frozen=True, slots=True)
class Deleted:
    """What the statement under way has deleted: its rows may name it, and whoever reads it fails."""

    elements: Set[Any]
    """Vertices and edges, as Python's evaluator knows them."""
    vertices: str
    edges: str
    """Relations of the same: ``id``, and ``label``, ``start``, ``end`` and ``ordinal``."""


class Noted:
    """What is known of what was compiled so far of one expression."""

    __slots__ = ("careful", "effects", "mistaken", "position", "told")

    def __init__(self, careful: bool, told: OutOfRange | None) -> None:
        self.careful = careful
        """Whether a number may be out of range; else the statement runs again where one was."""
        self.told = told
        """Who is told of one where the statement runs without care, but must not fail; None where it may."""
        self.effects = NO_EFFECTS
        self.position = 0
        """Where in the text the expression stands that is compiled."""
        self.mistaken = False
        """Whether the types that the data have now are wrong somewhere: it fails, if it is computed for some row."""


class Beside(Protocol):
    """Who shows properties of vertices as columns of the rows, beside those that the vertices are in."""

    def add(self, column: str, label: EdgeLabel) -> str | None:
        """Return the name of the column with a property of the vertices in a column; None where there is none."""

    def add_label(self, column: str, classes: tuple[int, ...]) -> str:
        """Return the name of the column that says whether the vertices in a column have one of some labels."""


class Rows:
    """Joins around a row source; every method returns a column that it has joined, or SQL over such columns.

    Parameters
    ----------
    beside
        Who shows properties without a join.
    after
        Joins that stand before these in the same FROM clause: what they have is not joined again.
    seldom
        Whether the SQL is seldom run: no tables are made for it of properties that have none.
    careful
        Whether arithmetic is taken to fail where numbers may be out of range.
    told
        Who is told of numbers that are out of range, where DuckDB must not fail of them; None where it may.
    long_texts
        Returns who computes functions of long texts; None where there are none, or SQL must do alone.
    """

    def __init__(
        self,
        parameters: Parameters,
        type_label: int | None,
        properties: Properties,
        edges: Edges,
        deleted: Deleted | None = None,
        beside: Beside | None = None,
        after: Rows | None = None,
        *,
        seldom: bool = False,
        careful: bool = True,
        told: OutOfRange | None = None,
        long_texts: Callable[[], LongTexts | None] = lambda: None,
    ) -> None:
        self.parameters = parameters
        self.deleted = deleted
        self.noted = Noted(careful, told)
        self.characters = 0
        """Of the SQL of columns over these rows, but for short ones."""
        self.too_long_at: int | None = None
        """The place in the text of the first column with which these are too many."""
        self.edges = edges
        self._type_label = -1 if type_label is None else type_label
        self._properties = properties
        self._beside = beside if deleted is None else None
        self._after = after
        self._seldom = seldom
        self.long_texts = long_texts
        self._prefix: str = "j" if after is None else f"{after._prefix}j"
        self._joins: dict[tuple[object, ...], tuple[str, str]] = {}
        self._reads: frozenset[str] = frozenset()
        """The rows of list items that what is joined here may be of."""

    def note(self, effects: Effects) -> None:
        """Note effects of the expression that is compiled."""
        self.noted.effects |= effects

    def error(self, message: str) -> str:
        """Return SQL that ends the run with an error of the query's own."""
        self.note(RAISES)
        return f"error({self.parameters.add(message)})"

    def value(self, vertex: SqlValue, label: EdgeLabel) -> SqlValue:
        """The value of a property of a vertex; NULL where it has none."""
        if not label.kinds:  # a full IRI that the database does not have
            return self._nothing(vertex)
        if self._beside is not None and vertex.column is not None:
            name = self._beside.add(vertex.column, label)
            if name is not None:
                return column_of_rows(name, self._properties.type_of(label), bases=bases_of_kinds(label.kinds))
        found = self._properties.column(label, make=not self._seldom)
        alias = self._property(vertex, label, found.relation)
        value = self._column(alias, "value", vertex, found.type, found.many, self._properties.bases_of(label))
        return self._alive(vertex, replace(value, table=(alias, label)) if found.type == VALUE else value)

    def has_keys(self, label: EdgeLabel) -> bool:
        """Whether the table of a property has a column ``key``: see :meth:`graphdb.snapshot.properties.Properties`."""
        return self._properties.has_keys(label)

    def has_type(self, label: EdgeLabel) -> bool:
        """Whether SQL has a type that holds all values of a property."""
        return self._properties.has_type(label)

    def compare_zones(self, names: Iterable[str]) -> None:
        """Compare the rules of some zones: see :func:`graphdb.common.values.zones.compare`."""
        self._properties.compare_zones(names)

    def shared(self, values: SqlValue) -> SqlValue:
        """A list that is one for all rows, as a column of theirs."""
        assert values.shared is not None
        table, name = values.shared
        alias = self._join("shared", None, values, f"LEFT JOIN {table} {{0}} ON TRUE")
        return SqlValue(f"{alias}.{name}", values.type, shared=values.shared, atomic=True)

    def _nothing(self, element: SqlValue) -> SqlValue:
        """Return what no vertex, or no edge, has."""
        if self.deleted is None:
            return SqlValue("NULL", NULL)
        return self._alive(element, SqlValue(f"CAST(NULL AS {sql_type(VALUE)})", VALUE, bases=frozenset()))

    def _alive(self, element: SqlValue, value: SqlValue) -> SqlValue:
        """Return what is read of a vertex or an edge; it fails for those that the statement has deleted."""
        if self.deleted is None:
            return value
        return replace(
            value,
            sql=self._unless_deleted(element, value.sql),
            table=None,
            atomic=False,
            effects=value.effects | RAISES,
        )

    def _unless_deleted(self, element: SqlValue, sql: str) -> str:
        """Return the SQL of what is read of a vertex or an edge, as :meth:`_alive` does."""
        if self.deleted is None:
            return sql
        if element.type == EDGE:
            join = f"LEFT JOIN {self.deleted.edges} {{0}} ON {_same_edge('{0}', element)}"
        else:
            join = f"LEFT JOIN {self.deleted.vertices} {{0}} ON {{0}}.id = {element.sql}"
        alias, column = self._join("deleted", None, element, join), "label" if element.type == EDGE else "id"
        error = self.error(with_place("this was deleted by the statement", self.noted.position))
        return f"CASE WHEN {alias}.{column} IS NOT NULL THEN {error} ELSE {sql} END"

    def _property(self, vertex: SqlValue, label: EdgeLabel, relation: str) -> str:
        """Return the alias of a property of a vertex."""
        return self._join("property", label.id, vertex, f"LEFT JOIN {relation} {{0}} ON {{0}}.subject = {vertex.sql}")

    def edge_value(self, edge: SqlValue, key: int) -> SqlValue:
        """The value of a property of an edge; NULL where it has none."""
        found = self.edges.column(key)
        if found.type == NULL:
            return self._nothing(edge)
        join = f"LEFT JOIN {self.edges.relation(key)} {{0}} ON {_same_edge('{0}', edge)}"
        alias = self._join("edge property", key, edge, join)
        return self._alive(edge, self._column(alias, "value", edge, found.type, found.many, found.bases))

    def facet(self, vertex: SqlValue, label: EdgeLabel, facet: str) -> SqlValue:
        """The ``language`` or ``datatype`` of a property's value."""
        many = label.max_values > 1
        relation = property_relation(label, _facet(facet, "l"))
        alias = self._join(facet, label.id, vertex, f"LEFT JOIN ({relation}) {{0}} ON {{0}}.subject = {vertex.sql}")
        return self._alive(vertex, self._column(alias, "value", vertex, list_of(STRING) if many else STRING, many))

    def as_written(self, vertex: SqlValue, label: EdgeLabel) -> str:
        """The literal behind a property, for those who read its text; a list of them where some vertex has several."""
        relation = property_relation(label, f"struct_pack({_written('l', label.kinds)})")
        join = f"LEFT JOIN ({relation}) {{0}} ON {{0}}.subject = {vertex.sql}"
        return self._unless_deleted(vertex, f"{self._join('written', label.id, vertex, join)}.value")

    def keys(self, vertex: SqlValue) -> SqlValue:
        """The written names of the properties that a vertex has, in their order."""
        self.note(SUBQUERY)
        names = (
            f"(SELECT list(DISTINCT n.name ORDER BY n.name ASC) FROM _graphdb.triple t JOIN {NAMES_VIEW} n "
            f"ON n.id = t.label WHERE t.subject = {vertex.sql} AND t.object >= {LITERAL_BASE})"
        )
        there = self._unless_deleted(vertex, f"CASE WHEN {vertex.sql} IS NOT NULL THEN coalesce({names}, []) END")
        return SqlValue(there, list_of(STRING))

    def properties(self, vertex: SqlValue) -> str:
        """All properties of a vertex: a list of literals with the written names of their keys, in their order."""
        self.note(SUBQUERY)
        id_sql = vertex.sql
        return self._unless_deleted(
            vertex,
            f"CASE WHEN {id_sql} IS NOT NULL THEN coalesce((SELECT list(struct_pack(name := n.name, {_WRITTEN}) "
            f"ORDER BY n.name ASC, l.lexical ASC, l.id ASC) FROM _graphdb.triple t "
            f"JOIN _graphdb.literal l ON l.id = t.object JOIN {NAMES_VIEW} n ON n.id = t.label "
            f"WHERE t.subject = {id_sql} AND t.object >= {LITERAL_BASE}), []) END",
        )

    def every_value(
        self, element: SqlValue, names: Names, known: Callable[[str], SqlValue | None] = lambda _: None
    ) -> dict[str, SqlValue]:
        """The values of all properties there are, by their written names; NULL where a vertex or edge has none.

        ``known`` returns the column that has the values of an edge's key, by its IRI, where one has; of a vertex's, the
        values that SQL does not hold as their texts say.

        Raises
        ------
        NotSupportedError
            Some vertex has several values of one, or they are too many: :meth:`properties` has them.
        """
        found: dict[str, SqlValue] = {}
        if element.type == EDGE:
            for iri, key in self.edges.keys.items():
                if not self.edges.plain(key):
                    raise NotSupportedError("such properties are not supported in SQL all at once")
                found[names.written(iri)] = known(iri) or self.edge_value(element, key)
        else:
            labels = [label for label in names.edge_labels.values() if label.kinds]
            if len(labels) > _KEYS or not self._properties.fit_together(labels):
                raise NotSupportedError("so many properties are not supported in SQL all at once")
            for label in labels:
                value = None
                if label.max_values == 1:
                    exact = self._properties.is_exact(label)
                    value = self.value(element, label) if exact else known(label.iri)
                if value is None:
                    raise NotSupportedError("such properties are not supported in SQL all at once")
                found[names.written(label.iri)] = value
        return dict(sorted(found.items()))

    def edge_properties(self, edge: SqlValue, names: Names) -> str:
        """All properties of an edge, as :meth:`properties` has those of a vertex."""
        self.note(SUBQUERY)
        edge_sql = edge.sql
        keys = [f"({id}, {self.parameters.add(names.written(iri), 'VARCHAR')})" for iri, id in self.edges.keys.items()]
        same = f'e.label = ({edge_sql}).label AND e.subject = ({edge_sql})."start" AND e.object = ({edge_sql})."end"'
        return self._unless_deleted(
            edge,
            f"CASE WHEN {edge_sql} IS NOT NULL THEN coalesce((SELECT list(struct_pack(name := n.name, {_WRITTEN}) "
            "ORDER BY n.name ASC, l.lexical ASC, l.id ASC) FROM _graphdb.edge_property e "
            "JOIN _graphdb.literal l ON l.id = e.value "
            f"JOIN (VALUES {', '.join(keys) or '(NULL, NULL)'}) n(id, name) ON n.id = e.key "
            f"WHERE {same} AND e.ordinal = ({edge_sql}).ordinal), []) END",
        )

    def literal(self, vertex: SqlValue, type: Type = VALUE) -> SqlValue:
        """The value of a literal vertex; NULL for a resource."""
        alias = self._by_id("literal", vertex, "_graphdb.literal")
        return SqlValue(literal_sql(alias, type), type, effects=vertex.effects.joined)

    def term(self, vertex: SqlValue) -> str:
        """A vertex by its id, with the literal that it may be as it is written."""
        alias = self._by_id("literal", vertex, "_graphdb.literal")
        literal = f"CASE WHEN {alias}.id IS NOT NULL THEN struct_pack({_written(alias)}) END"
        return f"CASE WHEN {vertex.sql} IS NOT NULL THEN struct_pack(id := {vertex.sql}, literal := {literal}) END"

    def literal_facet(self, vertex: SqlValue, facet: str) -> SqlValue:
        """The ``language`` or ``datatype`` of a literal vertex."""
        alias = self._by_id("literal", vertex, "_graphdb.literal")
        sql = f"CASE WHEN {alias}.id IS NOT NULL THEN {_facet(facet, alias)} END"
        return SqlValue(sql, STRING, effects=vertex.effects.joined)

    def iri(self, vertex: SqlValue) -> SqlValue:
        """The IRI (or scoped blank node name) of a vertex; NULL for a literal."""
        return self._column(self._by_id("iri", vertex, "_graphdb.resource"), "iri", vertex, STRING)

    def written(self, name: SqlValue) -> SqlValue:
        """The written name of an edge label or class."""
        return self._column(self._by_id("name", name, NAMES_VIEW), "name", name, STRING)

    def labels(self, vertex: SqlValue) -> SqlValue:
        """The written names of a vertex's labels, a sorted list."""
        return self._alive(vertex, vertex.made(self._listed(vertex, "labels"), list_of(STRING)))

    def _listed(self, vertex: SqlValue, function: str) -> str:
        """Return SQL of the sorted list that ``labels`` or ``keys`` is of a vertex."""
        label, rows = self._triples_of(function)
        relation = (
            "(SELECT t.subject, list(DISTINCT n.name ORDER BY n.name ASC) AS value FROM _graphdb.triple t "
            f"JOIN {NAMES_VIEW} n ON n.id = t.{label} WHERE t.{rows} GROUP BY t.subject)"
        )
        if function == "labels":
            relation = relation.replace("DISTINCT ", "")
        alias = self._join(function, None, vertex, f"LEFT JOIN {relation} {{0}} ON {{0}}.subject = {vertex.sql}")
        return f"CASE WHEN {vertex.sql} IS NOT NULL THEN coalesce({alias}.value, []) END"

    def _triples_of(self, function: str) -> tuple[str, str]:
        """Return the column of triples that says a label, or a key, of a vertex, and SQL of which triples do."""
        if function == "labels":
            return "object", f"label = {self._type_label}"
        return "label", f"object >= {LITERAL_BASE}"

    def described(self, vertex: SqlValue, function: str, bits: Sequence[tuple[int, int]], aspect: str) -> str:
        """Return SQL of what is asked of the names that ``labels`` or ``keys`` lists of a vertex.

        The list itself (``list``), its ``size``, its ``first`` name, or the ``bits`` of the names' ids.
        """
        if aspect == "bits":
            return self._bits(vertex, function, bits)
        listed = self._listed(vertex, function)
        return {"list": listed, "size": f"len({listed})", "first": f"({listed})[1]"}[aspect]

    def _bits(self, vertex: SqlValue, function: str, bits: Sequence[tuple[int, int]]) -> str:
        """Return SQL of the names that ``labels`` or ``keys`` lists of a vertex: a bit for each label's id."""
        ids = ", ".join(f"({int(id)}, {1 << bit})" for id, bit in bits)
        label, rows = self._triples_of(function)
        relation = (
            f"(SELECT t.subject, bit_or(m.bit::BIGINT) AS value FROM _graphdb.triple t JOIN (VALUES {ids}) m(id, bit) "
            f"ON m.id = t.{label} WHERE t.{rows} GROUP BY t.subject)"
        )
        alias = self._join(
            f"bits of {function}", None, vertex, f"LEFT JOIN {relation} {{0}} ON {{0}}.subject = {vertex.sql}"
        )
        return f"CASE WHEN {vertex.sql} IS NOT NULL THEN coalesce({alias}.value, 0) END"

    def graphs(self, edge: SqlValue) -> SqlValue:
        """The IRIs of the named graphs that an edge is in, a sorted list."""
        relation = (
            "(SELECT q.label, q.subject, q.object, list(r.iri ORDER BY r.iri ASC) AS value FROM _graphdb.quad q "
            "JOIN _graphdb.resource r ON r.id = q.graph GROUP BY q.label, q.subject, q.object)"
        )
        parts = (("label", "label"), ("subject", '"start"'), ("object", '"end"'))
        same = " AND ".join(f"{{0}}.{column} = ({edge.sql}).{part}" for column, part in parts)
        alias = self._join("graphs", None, edge, f"LEFT JOIN {relation} {{0}} ON {same}")
        found = f"CASE WHEN {edge.sql} IS NOT NULL THEN coalesce({alias}.value, []) END"
        return self._alive(edge, edge.made(found, list_of(STRING)))

    def has_label(self, vertex: SqlValue, labels: Sequence[int]) -> str:
        """Whether the vertex has one of some labels; unknown where there is no vertex."""
        if self._beside is not None and vertex.column is not None:
            return column_of_rows(self._beside.add_label(vertex.column, tuple(labels)), BOOLEAN).sql
        self.note(SUBQUERY)
        id_sql = vertex.sql
        any_of = ", ".join(str(int(label)) for label in labels)
        found = f"SELECT subject FROM _graphdb.triple WHERE label = {self._type_label} AND object IN ({any_of})"
        has = f"CASE WHEN {id_sql} IS NOT NULL THEN {id_sql} IN ({found}) END"  # null is not in nothing
        return self._unless_deleted(vertex, has)

    def resource(self, iri: str) -> SqlValue:
        """The vertex with an IRI; NULL if there is none."""
        found = f"(SELECT id FROM _graphdb.resource WHERE iri = {self.parameters.add(iri, 'VARCHAR')})"
        return SqlValue(found, NODE, constant=True, effects=SUBQUERY)

    @property
    def joins(self) -> str:
        """All joins, in the order they were asked for (a later one may use an earlier one's columns)."""
        return " ".join(sql for _, sql in self._joins.values())

    def _by_id(self, what: str, vertex: SqlValue, relation: str) -> str:
        """Return the alias of the row of a relation that has the id of a vertex."""
        return self._join(what, None, vertex, f"LEFT JOIN {relation} {{0}} ON {{0}}.id = {vertex.sql}")

    def _column(
        self,
        alias: str,
        name: str,
        element: SqlValue,
        type: Type,
        many: bool = False,
        bases: frozenset[Base] | None = None,
    ) -> SqlValue:
        """Return a column of what is joined by a vertex or an edge."""
        return SqlValue(f"{alias}.{name}", type, many, bases=bases, atomic=True, effects=element.effects.joined)

    def _join(self, what: str, which: int | None, element: SqlValue, template: str) -> str:
        """Return the alias of what is joined by a vertex or an edge; ``template`` is the join, with {0} for it.

        Raises
        ------
        NotSupportedError
            The element is what a lambda makes of an item.
        """
        if not self._reads >= element.reads:
            raise NotSupportedError("what is looked up for the items of a list is not supported in SQL")
        key = (what, element.sql, which)
        before = self._after
        while before is not None:
            if key in before._joins:
                return before._joins[key][0]
            before = before._after
        if key not in self._joins:
            alias = self._alias(len(self._joins))
            self._joins[key] = (alias, template.replace("{0}", alias))
        return self._joins[key][0]

    def _alias(self, number: int) -> str:
        return f"{self._prefix}{number}"


def _same_edge(alias: str, edge: SqlValue) -> str:
    """Return SQL for whether a row with the parts of an edge is that of an edge."""
    parts = ("label", '"start"', '"end"', "ordinal")
    return " AND ".join(f"{alias}.{part} = ({edge.sql}).{part}" for part in parts)


def _facet(facet: str, alias: str) -> str:
    """Return SQL of a facet of a literal, a row of literals by its alias."""
    if facet == "language":
        return f"coalesce({alias}.language, '')"
    kind = f"CASE WHEN {alias}.language IS NOT NULL THEN '{RDF}langString'"
    return f"{kind} ELSE coalesce({alias}.datatype, '{XSD}string') END"
