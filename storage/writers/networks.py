"""The graph as an object of NetworkX's: the property graph's view."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graphdb.storage.loaders.headers import bare_name
from graphdb.storage.terms import LITERAL_BASE, RDF_TYPE
from graphdb.storage.writers.graphs import EDGES, TRIPLES, Graphs, chosen

if TYPE_CHECKING:
    import duckdb


def to_networkx(connection: duckdb.DuckDBPyConnection, prefixes: dict[str, str], graphs: Graphs | None = None) -> Any:
    """Return a ``networkx.MultiDiGraph``: vertices by name, with ``labels`` and properties; edges with ``type``.

    A name is an IRI, without the database's own namespace.  A property is a Python value, a list where there are
    several.  Needs NetworkX.

    Parameters
    ----------
    prefixes
        What the names of ``graphs`` may begin with.
    graphs
        Which graphs: see :mod:`.graphs`.

    Raises
    ------
    GraphDBError
        Where there are named graphs and ``graphs`` is not stated.
    """
    with chosen(connection, graphs, prefixes, one="a network"):
        return _network(connection)


def _network(connection: duckdb.DuckDBPyConnection) -> Any:
    import networkx

    found = connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
    type_label = found[0][0] if found else -1
    names = {number: bare_name(iri) for number, iri in connection.execute("FROM _graphdb.resource").fetchall()}
    graph = networkx.MultiDiGraph()
    attributes: dict[int, dict[str, Any]] = {}
    for subject, label, value in connection.execute(
        f"SELECT subject, label, {_python()} FROM {TRIPLES} JOIN _graphdb.literal ON id = object"
        " WHERE label <> ? ORDER BY subject ASC, label ASC, object ASC", [type_label],
    ).fetchall():  # fmt: skip
        _add(attributes.setdefault(subject, {}), names[label], value)
    for subject, label in connection.execute(
        f"SELECT subject, object FROM {TRIPLES} WHERE label = ? AND object < {LITERAL_BASE} ORDER BY ALL",
        [type_label],
    ).fetchall():
        attributes.setdefault(subject, {}).setdefault("labels", []).append(names[label])
    properties: dict[tuple[int, ...], dict[str, Any]] = {}
    for *edge, key, value in connection.execute(
        f"SELECT label, subject, object, ordinal, key, {_python()} FROM _graphdb.edge_property"
        " JOIN _graphdb.literal ON id = value ORDER BY ALL"
    ).fetchall():
        _add(properties.setdefault(tuple(edge), {}), names[key], value)
    graph.add_nodes_from((names[number], held) for number, held in attributes.items())
    edges = connection.execute(
        f"SELECT label, subject, object, coalesce(ordinal, 0) FROM {TRIPLES} LEFT JOIN {EDGES}"
        f" USING (label, subject, object) WHERE label <> ? AND object < {LITERAL_BASE} ORDER BY ALL", [type_label],
    ).fetchall()  # fmt: skip
    graph.add_edges_from(
        (names[edge[1]], names[edge[2]], {"type": names[edge[0]], **properties.get(edge, {})}) for edge in edges
    )
    return graph


def _python() -> str:
    """SQL for a literal as one of DuckDB's values: a union, so that each keeps its type."""
    columns = "integer", "decimal", "number", "boolean", "date", "datetime", "zoned", "time"
    told = " ".join(f"WHEN {name} IS NOT NULL THEN union_value({name} := {name})::{_UNION}" for name in columns)
    return f"CASE {told} ELSE union_value(lexical := lexical)::{_UNION} END"


_UNION = (
    "UNION(integer BIGINT, decimal DECIMAL(38, 18), number DOUBLE, boolean BOOLEAN, date DATE, datetime TIMESTAMP,"
    " zoned TIMESTAMPTZ, time TIME, lexical VARCHAR)"
)


def _add(held: dict[str, Any], name: str, value: Any) -> None:
    if name not in held:
        held[name] = value
    elif isinstance(held[name], list):
        held[name].append(value)
    else:
        held[name] = [held[name], value]
