"""The graph as a NetworkX graph: the property-graph view."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.stopping import check_stop, checked
from graphdb.common.values.terms import LITERAL_BASE, RDF_TYPE, VERTEX
from graphdb.storage.loaders.tables.graphml import role
from graphdb.storage.loaders.tables.headers import bare_name
from graphdb.storage.writers.graphs import EDGES, TRIPLES, Graphs, chosen

if TYPE_CHECKING:
    import duckdb


Values = Callable[[NDArray[np.int64]], list[Any]]
"""Returns the Python values of literals, by their sorted ids."""


def to_networkx(
    connection: duckdb.DuckDBPyConnection, prefixes: dict[str, str], values: Values, graphs: Graphs | None = None
) -> Any:
    """Return a ``networkx.MultiDiGraph``: vertices by name, with ``labels`` and properties; edges with ``type``.

    A name is an IRI, without the database's own namespace.  A property is a Python value, as results have it, or a list
    where there are several; one that is called ``labels`` or ``label`` (at an edge ``type`` or ``label``) keeps its
    namespace.  Needs NetworkX.

    Parameters
    ----------
    prefixes
        What the names of ``graphs`` may begin with.
    values
        What makes literals Python values.
    graphs
        Which graphs: see :mod:`.graphs`.

    Raises
    ------
    GraphDBError
        Where there are named graphs and ``graphs`` is not stated.
    """
    with chosen(connection, graphs, prefixes, one="a network"):
        return _network(connection, values)


def _network(connection: duckdb.DuckDBPyConnection, values: Values) -> Any:
    import networkx

    found = connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
    type_label = found[0][0] if found else -1
    iris: dict[int, str] = dict(_rows(connection, "FROM _graphdb.resource", []))
    names = {number: bare_name(iri) for number, iri in iris.items()}
    keys = [{id: iris[id] if role(element, name) else name for id, name in names.items()} for element in _ELEMENTS]
    known = f"SELECT object AS id FROM {TRIPLES} UNION SELECT value FROM _graphdb.edge_property"
    literals = connection.execute(f"FROM ({known}) WHERE id >= {LITERAL_BASE} ORDER BY id ASC").fetchnumpy()["id"]
    of_literal = dict(zip(literals.tolist(), values(literals), strict=True)) if len(literals) else {}
    attributes: dict[int, dict[str, Any]] = {}
    valued = (
        f"SELECT subject, label, object FROM {TRIPLES} WHERE label <> ? AND object >= {LITERAL_BASE}"
        " ORDER BY subject ASC, label ASC, object ASC"
    )
    for subject, label, value in _rows(connection, valued, [type_label]):
        _add(attributes.setdefault(subject, {}), keys[0][label], of_literal[value])
    labelled = f"SELECT subject, object FROM {TRIPLES} WHERE label = ? AND object < {LITERAL_BASE} ORDER BY ALL"
    for subject, label in _rows(connection, labelled, [type_label]):
        labels = attributes.setdefault(subject, {})
        if iris[label] != VERTEX:
            labels.setdefault("labels", []).append(names[label])
    properties: dict[tuple[int, ...], dict[str, Any]] = {}
    for *edge, key, value in _rows(connection, "FROM _graphdb.edge_property ORDER BY ALL", []):
        _add(properties.setdefault(tuple(edge), {}), keys[1][key], of_literal[value])
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from((names[number], found) for number, found in checked(attributes.items()))
    edges = (
        f"SELECT label, subject, object, coalesce(ordinal, 0) FROM {TRIPLES} LEFT JOIN {EDGES}"
        f" USING (label, subject, object) WHERE label <> ? AND object < {LITERAL_BASE} ORDER BY ALL"
    )
    graph.add_edges_from(
        (names[edge[1]], names[edge[2]], {"type": names[edge[0]], **properties.get(edge, {})})
        for edge in _rows(connection, edges, [type_label])
    )
    return graph


_ELEMENTS = "node", "edge"

_ROWS = 20_000
"""Rows that are fetched at a time."""


def _rows(connection: duckdb.DuckDBPyConnection, sql: str, parameters: list[int]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a query as long as the statement may go on."""
    found = connection.execute(sql, parameters)
    while rows := found.fetchmany(_ROWS):
        check_stop()
        yield from rows


def _add(attributes: dict[str, Any], name: str, value: Any) -> None:
    if name not in attributes:
        attributes[name] = value
    elif type(attributes[name]) is _Several:
        attributes[name].append(value)
    else:
        attributes[name] = _Several([attributes[name], value])


class _Several(list[Any]):
    """Several values of one property, which may be lists themselves."""
