"""The graph as an object of NetworkX's: the property graph's view."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.storage.loaders.graphml import role
from graphdb.storage.loaders.headers import bare_name
from graphdb.storage.terms import LITERAL_BASE, RDF_TYPE, VERTEX
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
    iris = dict(connection.execute("FROM _graphdb.resource").fetchall())
    names = {number: bare_name(iri) for number, iri in iris.items()}
    keys = [{id: iris[id] if role(element, name) else name for id, name in names.items()} for element in _ELEMENTS]
    known = f"SELECT object AS id FROM {TRIPLES} UNION SELECT value FROM _graphdb.edge_property"
    literals = connection.execute(f"FROM ({known}) WHERE id >= {LITERAL_BASE} ORDER BY id ASC").fetchnumpy()["id"]
    held = dict(zip(literals.tolist(), values(literals), strict=True)) if len(literals) else {}
    attributes: dict[int, dict[str, Any]] = {}
    for subject, label, value in connection.execute(
        f"SELECT subject, label, object FROM {TRIPLES} WHERE label <> ? AND object >= {LITERAL_BASE}"
        " ORDER BY subject ASC, label ASC, object ASC", [type_label],
    ).fetchall():  # fmt: skip
        _add(attributes.setdefault(subject, {}), keys[0][label], held[value])
    for subject, label in connection.execute(
        f"SELECT subject, object FROM {TRIPLES} WHERE label = ? AND object < {LITERAL_BASE} ORDER BY ALL",
        [type_label],
    ).fetchall():
        labels = attributes.setdefault(subject, {})
        if iris[label] != VERTEX:
            labels.setdefault("labels", []).append(names[label])
    properties: dict[tuple[int, ...], dict[str, Any]] = {}
    for *edge, key, value in connection.execute("FROM _graphdb.edge_property ORDER BY ALL").fetchall():
        _add(properties.setdefault(tuple(edge), {}), keys[1][key], held[value])
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from((names[number], found) for number, found in attributes.items())
    edges = connection.execute(
        f"SELECT label, subject, object, coalesce(ordinal, 0) FROM {TRIPLES} LEFT JOIN {EDGES}"
        f" USING (label, subject, object) WHERE label <> ? AND object < {LITERAL_BASE} ORDER BY ALL", [type_label],
    ).fetchall()  # fmt: skip
    graph.add_edges_from(
        (names[edge[1]], names[edge[2]], {"type": names[edge[0]], **properties.get(edge, {})}) for edge in edges
    )
    return graph


_ELEMENTS = "node", "edge"


def _add(held: dict[str, Any], name: str, value: Any) -> None:
    if name not in held:
        held[name] = value
    elif type(held[name]) is _Several:
        held[name].append(value)
    else:
        held[name] = _Several([held[name], value])


class _Several(list[Any]):
    """Several values of one property, which may be lists themselves."""
