"""Writing edges that their triples do not identify: see :class:`graphdb.storage.arrays.batch.Edges`.

Each becomes a row of the table ``edge``; its ordinal comes after those of the edges that are there between the same
vertices.  No resource stands for such an edge: only RDF names edges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common.stopping import checked
from graphdb.storage.arrays.arrow import ArrowViews, table_of
from graphdb.storage.file.prepared_sql import execute, has_rows

if TYPE_CHECKING:
    import duckdb

    from graphdb.storage.arrays.batch import Edges, Ids

_AT_ONCE = 1_228_800
"""Properties that are written at a time, with six columns each: ten row groups of DuckDB's."""

_TRIPLE = "label, subject, object"


@dataclass(frozen=True, slots=True)
class EdgeRows:
    """Edges of a batch as rows of ids.

    Attributes
    ----------
    columns
        int64[edges] each: ``label``, ``subject``, ``object`` and ``ordinal``, that among the batch's own edges.
    owners
        int64[properties]: the edges that have properties, by number.
    properties
        int64[properties] each: ``key`` and ``value``.
    """

    columns: dict[str, Ids]
    owners: Ids
    properties: dict[str, Ids]

    def __len__(self) -> int:
        return len(self.columns["label"])


def edge_rows(edges: Edges, ids: Callable[[NDArray[np.integer[Any]]], Ids]) -> EdgeRows:
    """Return edges and their properties as rows of ids; ``ids`` returns those of codes."""
    subjects, labels, objects = (ids(column) for column in checked(edges.edges.T, 1))
    keys, values = (ids(column) for column in checked(edges.properties.T, 1))
    columns = {"label": labels, "subject": subjects, "object": objects, "ordinal": edges.ordinals()}
    return EdgeRows(columns, edges.owners, {"key": keys, "value": values})


def write_edges(connection: duckdb.DuckDBPyConnection, edges: EdgeRows) -> None:
    """Write edges and their properties, in the transaction that is open."""
    if not len(edges):
        return
    columns = edges.columns
    views = ArrowViews(connection)
    if has_rows(connection, "_graphdb.edge"):
        with views.view("_graphdb_edges", table_of({"number": np.arange(len(edges)), **columns})):
            found = execute(
                connection,
                f"SELECT number, last FROM _graphdb_edges JOIN (SELECT {_TRIPLE}, max(ordinal) + 1 AS last"
                f" FROM _graphdb.edge GROUP BY {_TRIPLE}) USING ({_TRIPLE})",
            ).fetchnumpy()
        columns["ordinal"][found["number"]] += found["last"]
    with views.view("_graphdb_edges", table_of(columns)):
        execute(connection, "INSERT INTO _graphdb.edge BY NAME SELECT * FROM _graphdb_edges")
    for begin in checked(range(0, len(edges.owners), _AT_ONCE), 1):
        some = slice(begin, begin + _AT_ONCE)
        owned = {name: column[edges.owners[some]] for name, column in columns.items()}
        properties = {name: column[some] for name, column in edges.properties.items()}
        with views.view("_graphdb_edge_properties", table_of({**owned, **properties})):
            execute(connection, "INSERT INTO _graphdb.edge_property BY NAME SELECT * FROM _graphdb_edge_properties")
    views.close()
