"""SQL that writes the columns of a table as terms and lines of N-Triples."""

from __future__ import annotations

from urllib.parse import quote

from graphdb.common.duckdb.identifiers import quoted
from graphdb.common.values.terms import DEFAULT_NAMESPACE, UNSAFE
from graphdb.storage.loaders.tables import values
from graphdb.storage.loaders.tables.delimited import literal as _text
from graphdb.storage.loaders.tables.headers import IRI, RDF_TEXT, Column

END = "' .\n'"
"""SQL for the end of a line in the default graph."""


def element_type(column: Column, type: str) -> str:
    """DuckDB's type of a column's values: the parts of a text are texts."""
    return values.element(type) if type.endswith("]") or not column.list else "VARCHAR"


def bare(iri: str) -> str:
    """SQL for what :func:`bare_name` makes of an IRI."""
    rest = f"{iri}[{len(DEFAULT_NAMESPACE) + 1}:]"
    terms = _text(f"{IRI}|{RDF_TEXT}")
    other = f"{rest} = '' OR regexp_full_match({rest}, {terms}) OR regexp_matches({rest}, {_text(UNSAFE)})"
    return f"CASE WHEN starts_with({iri}, '{DEFAULT_NAMESPACE}') AND NOT ({other}) THEN {rest} ELSE {iri} END"


def _percent_encoded(value: str) -> str:
    """SQL for a text as part of an IRI."""
    return f"CASE WHEN regexp_matches({value}, {_text(UNSAFE)}) THEN url_encode({value}) ELSE {value} END"


def where_asserted(by_role: dict[str, list[tuple[Column, str]]], line: str) -> str:
    """SQL for the line of a triple, empty where it is not asserted."""
    if "ASSERTED" not in by_role:
        return line
    ((column, _), *_) = by_role["ASSERTED"]
    return f"CASE WHEN coalesce({quoted(column.column)}::BOOLEAN, true) THEN {line} ELSE '' END"


def line_end(by_role: dict[str, list[tuple[Column, str]]], role: str = "GRAPH") -> str:
    """SQL for the end of the lines of triples: the graph that they are in, if they are in one, and a full stop."""
    if role not in by_role:
        return END
    ((column, _), *_) = by_role[role]
    name = f"nullif({quoted(column.column)}::VARCHAR, '')"
    return f"coalesce(' ' || {label(name)}, '') || {END}"


def vertex(column: Column, type: str = "VARCHAR") -> str:
    """SQL for the vertex that a column identifies: an IRI, a blank node, a triple term, or a name in our namespace."""
    value = name_of_vertex(column, type)
    return f"CASE WHEN {is_rdf(value)} THEN {value} ELSE '<' || {vertex_iri(value, column.group)} || '>' END"


def name_of_vertex(column: Column, type: str) -> str:
    """SQL for the text that a column identifies vertices by.

    An integer is called the same where its column became one of floats, as pandas makes it for one missing value, and
    where it is written otherwise in a column of stated type.
    """
    value = name_of(quoted(column.column), type)
    return f"coalesce(TRY_CAST({value} AS BIGINT)::VARCHAR, {value})" if column.type == "BIGINT" else value


def name_of(given: str, type: str) -> str:
    """SQL for a value as the name of a vertex."""
    value = f"{given}::VARCHAR"
    if type in ("DOUBLE", "FLOAT"):
        whole = f"{given} = trunc({given}) AND abs({given}) < 1e15"
        return f"(CASE WHEN {whole} THEN {given}::BIGINT::VARCHAR ELSE {value} END)"
    return value


def is_rdf(value: str) -> str:
    """SQL for whether a text stands for a vertex as it does in RDF: see :data:`.headers.RDF_TEXT`."""
    return f"regexp_full_match({value}, {_text(RDF_TEXT)})"


def vertex_iri(value: str, group: str = "") -> str:
    """SQL for the IRI of the vertex, or label, of a name: itself, where it is one, or a name in our namespace."""
    return (
        f"CASE WHEN regexp_full_match({value}, {_text(IRI)}) THEN {value} "
        f"ELSE {_text(prefix(group))} || {_percent_encoded(value)} END"
    )


def number_iri(value: str, group: str) -> str:
    """SQL for the IRI of the vertex of an integer."""
    return f"{_text(prefix(group))} || {value}::VARCHAR"


def prefix(group: str) -> str:
    """The beginning of the IRIs of a group of identifiers."""
    return f"{DEFAULT_NAMESPACE}{quote(group, safe='')}/" if group else DEFAULT_NAMESPACE


def label(value: str) -> str:
    """SQL for the IRI of a label: see :func:`name_iri`; a label can be a blank node or a triple term too."""
    return f"CASE WHEN {is_rdf(value)} THEN {value} ELSE '<' || {vertex_iri(value)} || '>' END"
