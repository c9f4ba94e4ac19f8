"""The FROM side of the SQL that shapes bindings: the joins that fetch values for ids, and the parameters.

An expression asks for what it needs (the value of a property, the IRI of a vertex) and gets SQL that names it; the
same need is joined once.  Values of the statement's literals and parameters travel as DuckDB parameters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphdb.common.duckdb.connection import OURS
from graphdb.common.errors import NotSupportedError
from graphdb.common.values.terms import LITERAL_BASE, RDF, XSD
from graphdb.common.values.types import (
    AS_WRITTEN,
    EDGE,
    MOMENT,
    NODE,
    NULL,
    STRING,
    VALUE,
    ZONED,
    Type,
    bases_of_kinds,
    list_of,
    literal_sql,
)
from graphdb.pattern.names import Names
from graphdb.snapshot.edges import Edges
from graphdb.snapshot.properties import SMALL, Properties, property_relation
from graphdb.sql.value import SqlValue
from graphdb.storage.catalog import EdgeLabel

_PARAMETER = re.compile(r"\$(p\d+)\b")

NAMES_VIEW = f"{OURS}names"
"""The registered view (id, name) with the written names of edge and vertex labels."""

_KEYS = 24
"""Properties that are joined to rows all at once, at most."""

_WRITTEN = f"lexical := l.lexical, datatype := l.datatype, kind := l.kind, value := {literal_sql('l', VALUE)}"
"""A literal as a struct: its text, what that is, and its value."""


class Parameters:
    """Values on their way into one SQL statement."""

    def __init__(self) -> None:
        self.values: dict[str, object] = {}

    def add(self, value: object, sql_type: str | None = None) -> str:
        """Return SQL that stands for ``value``."""
        name = f"p{len(self.values)}"
        self.values[name] = value
        return f"CAST(${name} AS {sql_type})" if sql_type else f"${name}"

    def used(self, sql: str) -> dict[str, object]:
        """Return the values that ``sql`` names: not every expression that was compiled ends in the statement."""
        return {name: self.values[name] for name in set(_PARAMETER.findall(sql))}


class Rows:
    """Joins around a row source; every method returns the SQL of a column that it has joined."""

    def __init__(self, parameters: Parameters, type_label: int | None, properties: Properties, edges: Edges) -> None:
        self.parameters = parameters
        self.edges = edges
        self._type_label = -1 if type_label is None else type_label
        self._properties = properties
        self._joins: dict[tuple[object, ...], tuple[str, str]] = {}

    def value(self, id_sql: str, label: EdgeLabel) -> SqlValue:
        """The value of a property of the vertex ``id_sql``; NULL where it has none."""
        if not label.kinds:  # a full IRI that the database does not have
            return SqlValue("NULL", NULL)
        column = self._properties.column(label)
        join = f"LEFT JOIN {column.relation} {{0}} ON {{0}}.subject = {id_sql}"
        alias = self._join(("property", id_sql, label.id), join)
        return SqlValue(f"{alias}.value", column.type, column.many, bases=bases_of_kinds(label.kinds))

    def moment(self, id_sql: str, label: EdgeLabel) -> SqlValue | None:
        """The value of a zoned property as it was written; None for any other property."""
        value = self.value(id_sql, label)
        if value.type != ZONED:
            return None
        alias = value.sql.removesuffix(".value")
        parts = f"moment := {value.sql}, lexical := {alias}.lexical, datatype := {alias}.datatype"
        return SqlValue(f"CASE WHEN {value.sql} IS NOT NULL THEN struct_pack({parts}) END", MOMENT)

    def edge_value(self, edge_sql: str, key: int) -> SqlValue:
        """The value of a property of an edge; NULL where it has none."""
        column = self.edges.column(key)
        if column.type == NULL:
            return SqlValue("NULL", NULL)
        same = " AND ".join(f"{{0}}.{part} = ({edge_sql}).{part}" for part in ("label", '"start"', '"end"', "ordinal"))
        alias = self._join(("edge property", edge_sql, key), f"LEFT JOIN {self.edges.relation(key)} {{0}} ON {same}")
        return SqlValue(f"{alias}.value", column.type, column.many)

    def facet(self, id_sql: str, label: EdgeLabel, column: str) -> SqlValue:
        """The ``language`` or ``datatype`` of a property's value."""
        many = label.max_values > 1
        relation = property_relation(label, _facet(column))
        alias = self._join((column, id_sql, label.id), f"LEFT JOIN ({relation}) {{0}} ON {{0}}.subject = {id_sql}")
        return SqlValue(f"{alias}.value", list_of(STRING) if many else STRING, many)

    def as_written(self, id_sql: str, label: EdgeLabel) -> str:
        """The literal behind a property, for those who read its text; a list of them where some vertex has several."""
        relation = property_relation(label, f"struct_pack({_WRITTEN})")
        key = ("written", id_sql, label.id)
        return f"{self._join(key, f'LEFT JOIN ({relation}) {{0}} ON {{0}}.subject = {id_sql}')}.value"

    def properties(self, id_sql: str) -> str:
        """All properties of a vertex: a list of literals with the written names of their keys, in their order."""
        return (
            f"CASE WHEN {id_sql} IS NOT NULL THEN coalesce((SELECT list(struct_pack(name := n.name, {_WRITTEN}) "
            f"ORDER BY n.name ASC, l.lexical ASC, l.id ASC) FROM _graphdb.triple t "
            f"JOIN _graphdb.literal l ON l.id = t.object JOIN {NAMES_VIEW} n ON n.id = t.label "
            f"WHERE t.subject = {id_sql} AND t.object >= {LITERAL_BASE}), []) END"
        )

    def every_value(self, element: SqlValue, names: Names) -> dict[str, SqlValue]:
        """The values of all properties there are, by their written names; NULL where a vertex or edge has none.

        Raises
        ------
        NotSupportedError
            They are not all plain, or too many: :meth:`properties` has them.
        """
        found: dict[str, SqlValue] = {}
        if element.type == EDGE:
            for iri, key in self.edges.keys.items():
                if not self.edges.plain(key) or self.edges.column(key).type == ZONED:
                    raise NotSupportedError("such properties are not supported in SQL all at once")
                found[names.written(iri)] = self.edge_value(element.sql, key)
        else:
            labels = [label for label in names.edge_labels.values() if label.kinds]
            plain = all(self._properties.in_memory(label) and not label.kinds & AS_WRITTEN for label in labels)
            if not plain or len(labels) > _KEYS or sum(label.triples for label in labels) > SMALL:
                raise NotSupportedError("such properties are not supported in SQL all at once")
            found = {names.written(label.iri): self.value(element.sql, label) for label in labels}
        return dict(sorted(found.items()))

    def edge_properties(self, edge_sql: str, names: Names) -> str:
        """All properties of an edge, as :meth:`properties` has those of a vertex."""
        keys = [f"({id}, {self.parameters.add(names.written(iri), 'VARCHAR')})" for iri, id in self.edges.keys.items()]
        same = f'e.label = ({edge_sql}).label AND e.subject = ({edge_sql})."start" AND e.object = ({edge_sql})."end"'
        return (
            f"CASE WHEN {edge_sql} IS NOT NULL THEN coalesce((SELECT list(struct_pack(name := n.name, {_WRITTEN}) "
            "ORDER BY n.name ASC, l.lexical ASC, l.id ASC) FROM _graphdb.edge_property e "
            "JOIN _graphdb.literal l ON l.id = e.value "
            f"JOIN (VALUES {', '.join(keys) or '(NULL, NULL)'}) n(id, name) ON n.id = e.key "
            f"WHERE {same} AND e.ordinal = ({edge_sql}).ordinal), []) END"
        )

    def literal(self, id_sql: str, type: Type = VALUE) -> SqlValue:
        """The value of a literal vertex; NULL for a resource."""
        alias = self._join(("literal", id_sql), f"LEFT JOIN _graphdb.literal {{0}} ON {{0}}.id = {id_sql}")
        return SqlValue(literal_sql(alias, type), type)

    def literal_facet(self, id_sql: str, column: str) -> SqlValue:
        """The ``language`` or ``datatype`` of a literal vertex."""
        alias = self._join(("literal", id_sql), f"LEFT JOIN _graphdb.literal {{0}} ON {{0}}.id = {id_sql}")
        facet = _facet(column).replace("l.", f"{alias}.")
        return SqlValue(f"CASE WHEN {alias}.id IS NOT NULL THEN {facet} END", STRING)

    def iri(self, id_sql: str) -> SqlValue:
        """The IRI (or scoped blank node name) of a vertex; NULL for a literal."""
        alias = self._join(("iri", id_sql), f"LEFT JOIN _graphdb.resource {{0}} ON {{0}}.id = {id_sql}")
        return SqlValue(f"{alias}.iri", STRING)

    def written(self, id_sql: str) -> SqlValue:
        """The written name of an edge label or class."""
        alias = self._join(("name", id_sql), f"LEFT JOIN {NAMES_VIEW} {{0}} ON {{0}}.id = {id_sql}")
        return SqlValue(f"{alias}.name", STRING)

    def labels(self, id_sql: str) -> SqlValue:
        """The written names of a vertex's labels, a sorted list."""
        relation = (
            "(SELECT t.subject, list(n.name ORDER BY n.name ASC) AS value FROM _graphdb.triple t "
            f"JOIN {NAMES_VIEW} n ON n.id = t.object WHERE t.label = {self._type_label} GROUP BY t.subject)"
        )
        alias = self._join(("labels", id_sql), f"LEFT JOIN {relation} {{0}} ON {{0}}.subject = {id_sql}")
        return SqlValue(f"CASE WHEN {id_sql} IS NOT NULL THEN coalesce({alias}.value, []) END", list_of(STRING))

    def has_label(self, id_sql: str, labels: Sequence[int]) -> str:
        """Whether the vertex has one of some labels; unknown where there is no vertex."""
        any_of = ", ".join(str(int(label)) for label in labels)
        found = f"SELECT subject FROM _graphdb.triple WHERE label = {self._type_label} AND object IN ({any_of})"
        return f"CASE WHEN {id_sql} IS NOT NULL THEN {id_sql} IN ({found}) END"  # null is not in nothing

    def resource(self, iri: str) -> SqlValue:
        """The vertex with an IRI; NULL if there is none."""
        found = f"(SELECT id FROM _graphdb.resource WHERE iri = {self.parameters.add(iri, 'VARCHAR')})"
        return SqlValue(found, NODE, constant=True)

    @property
    def joins(self) -> str:
        """All joins, in the order they were asked for (a later one may use an earlier one's columns)."""
        return " ".join(sql for _, sql in self._joins.values())

    def _join(self, key: tuple[object, ...], template: str) -> str:
        if key not in self._joins:
            alias = f"j{len(self._joins)}"
            self._joins[key] = (alias, template.format(alias))
        return self._joins[key][0]


def _facet(column: str) -> str:
    if column == "language":
        return "coalesce(l.language, '')"
    return f"CASE WHEN l.language IS NOT NULL THEN '{RDF}langString' ELSE coalesce(l.datatype, '{XSD}string') END"
