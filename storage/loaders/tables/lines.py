"""The rows of a node table or an edge table as lines of N-Triples: the SQL that writes them.

The table is the view ``frame``; an edge with properties is reified, as :mod:`graphdb.storage.updates.append` tells, and
so are parallel edges.
"""

from __future__ import annotations

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.errors import LoadError
from graphdb.common.values.terms import LIST_DATATYPE, RDF_REIFIES, RDF_TYPE, VERTEX, escaped
from graphdb.storage.loaders.tables import terms, values
from graphdb.storage.loaders.tables.headers import Column, Mapping, name_iri

# Columns of ours beside those of the table.
_ID, _BODY, LINE, NUMBER = "_graphdb_id", "_graphdb_body", "_graphdb_line", "_graphdb_number"
_REIFIER = "_graphdb_reifier"


class Lines:
    """What writes the rows of one table, whose columns are given by their roles; ``end`` is SQL for a line's end."""

    def __init__(self, mapping: Mapping, name: str, number: int, end: str) -> None:
        self._mapping = mapping
        self._name = name
        self._number = number
        self._end = end
        self.parameters: dict[str, str] = {}
        """Of the SQL: IRIs."""

    def nodes(self, by_role: dict[str, list[tuple[Column, str]]]) -> tuple[str, list[Column]]:
        """SQL for the lines of vertices: their labels and properties; one without either is a vertex all the same."""
        ((identifier, type_of_id), *_) = by_role["ID"]
        parts = []
        typed = self._parameter(RDF_TYPE)
        for label in self._mapping.labels:
            parts.append(f"{_ID} || {typed} || '<' || {self._parameter(name_iri(label), '{}')} || '>' || {self._end}")
        for column, type in by_role.get("LABEL", []):
            name = "trim(x::VARCHAR, ' ')"  # other blanks can be names
            line = f"if({name} = '', '', {_ID} || {typed} || {terms.label(name)} || {self._end})"
            parts.append(values.each(self.values_of(column, type), line))
        properties = [*by_role.get("", [])]
        if identifier.name:
            properties.append((Column(identifier.column, "", identifier.name, type=identifier.type), type_of_id))
        parts += [self._property(_ID, column, type, self._end) for column, type in properties]
        body = " || ".join(f"coalesce({part}, '')" for part in parts) or "''"
        lone = f"{_ID} || {typed} || '<{VERTEX}>' || {self._end}"
        line = f"CASE WHEN {_BODY} = '' THEN {lone} ELSE {_BODY} END"
        inner = f"SELECT *, {terms.vertex(identifier, type_of_id)} AS {_ID} FROM frame"
        return f"SELECT *, {line} AS {LINE} FROM (SELECT *, {body} AS {_BODY} FROM ({inner}))", [identifier]

    def edges(self, by_role: dict[str, list[tuple[Column, str]]], distinct: bool) -> tuple[str, list[Column]]:
        """SQL for the lines of edges, and of those that are reified."""
        ((start, type_of_start), *_), ((end, type_of_end), *_) = by_role["START_ID"], by_role["END_ID"]
        if "TYPE" in by_role:
            ((kind, _), *_) = by_role["TYPE"]
            label, needed = terms.label(quoted(kind.column)), [start, end, kind]
        elif self._mapping.type:
            label, needed = f"'<' || {self._parameter(name_iri(self._mapping.type), '{}')} || '>'", [start, end]
        else:
            raise LoadError(
                "no column says which edge label a row has",
                source=self._name,
                hint="name a column :TYPE, or state type='…'; LOAD '…' AS TYPE …",
            )
        edge = f"{terms.vertex(start, type_of_start)} || ' ' || {label} || ' ' || {terms.vertex(end, type_of_end)}"
        rows = f"SELECT *, row_number() OVER () AS {NUMBER}, {edge} AS {_ID} FROM frame"
        properties = by_role.get("", [])
        named = by_role.get("REIFIER", [])
        asserted = terms.where_asserted(by_role, f"{_ID} || {self._end}")
        if distinct and not properties and not named:
            return f"SELECT *, {_ID} || {self._end} AS {LINE} FROM ({rows})", needed
        reifier = f"'_:t{self._number}e' || {NUMBER}"
        wanted = []
        if named:
            ((name, _), *_) = named
            reifier = f"coalesce({terms.vertex(name)}, {reifier})"
            wanted.append(f"{quoted(name.column)} IS NOT NULL")
        if not distinct:  # of others by their hashes: one that is taken for parallel is an edge that is spoken of, too
            several = f"SELECT hash({edge}, {self._end}) FROM frame GROUP BY ALL HAVING count(*) > 1"
            wanted.append(f"hash({_ID}, {self._end}) IN ({several})")
        rows = f"SELECT *, {reifier} AS {_REIFIER} FROM ({rows})"
        values = [f"coalesce({self._property(_REIFIER, column, type)}, '')" for column, type in properties]
        rows = f"SELECT *, {' || '.join(values) or repr('')} AS {_BODY} FROM ({rows})"
        spoken = terms.line_end(by_role, "REIFIER_GRAPH")
        reified = f"{_REIFIER} || ' <{RDF_REIFIES}> <<( ' || {_ID} || ' )>>' || {spoken} || {_BODY}"
        condition = " OR ".join([*wanted, f"{_BODY} <> ''"])
        line = f"{asserted} || CASE WHEN {condition} THEN {reified} ELSE '' END"
        return f"SELECT *, {line} AS {LINE} FROM ({rows})", needed

    def literals(self, by_role: dict[str, list[tuple[Column, str]]]) -> tuple[str, list[Column]]:
        """SQL for the lines of literals that have a row each."""
        columns = {role: found[0][0] for role, found in by_role.items()}
        start, kind, value = (columns[role] for role in ("START_ID", "TYPE", "VALUE"))
        tags = "''"
        if "DATATYPE" in columns:
            tags = f"coalesce('^^<' || {quoted(columns['DATATYPE'].column)} || '>', {tags})"
        if "LANGUAGE" in columns:
            tags = f"coalesce('@' || {quoted(columns['LANGUAGE'].column)}, {tags})"
        literal = f"'\"' || {escaped(quoted(value.column) + '::VARCHAR')} || '\"' || {tags}"
        predicate = terms.label(quoted(kind.column))
        rows = f"SELECT *, {terms.vertex(start)} || ' ' || {predicate} || ' ' || {literal} AS {_ID} FROM frame"
        line = terms.where_asserted(by_role, f"{_ID} || {self._end}")
        if "REIFIER" in columns:
            reifier = terms.vertex(columns["REIFIER"])
            spoken = terms.line_end(by_role, "REIFIER_GRAPH")
            line += f" || coalesce({reifier} || ' <{RDF_REIFIES}> <<( ' || {_ID} || ' )>>' || {spoken}, '')"
        return f"SELECT *, {line} AS {LINE} FROM ({rows})", [start, kind, value]

    def _property(self, subject: str, column: Column, type: str, end: str = terms.END) -> str:
        """SQL for the lines of a property, NULL where it has none."""
        key = self._parameter(name_iri(column.name))
        several = column.list or type.endswith("]")
        value, element = "x" if several else quoted(column.column), terms.element_type(column, type)
        if column.ordered:
            text = values.list_text(self.values_of(column, type), element, column.stated)
            literal = (
                f"CASE WHEN {quoted(column.column)} IS NOT NULL THEN {values.quoted_literal(text, LIST_DATATYPE)} END"
            )
            return f"{subject} || {key} || {literal} || {end}"
        line = f"{subject} || {key} || {values.stated_literal(value, element, column.stated)} || {end}"
        return values.each(self.values_of(column, type), line) if several else line

    def values_of(self, column: Column, type: str) -> str:
        """SQL for the values of a column as a list."""
        return values.values(quoted(column.column), type, self._mapping.dialect.list_delimiter)

    def _parameter(self, iri: str, shape: str = " <{}> ") -> str:
        """Return SQL for an IRI of ours: a parameter."""
        name = f"iri{len(self.parameters)}"
        self.parameters[name] = shape.format(iri)
        return f"${name}::VARCHAR"
