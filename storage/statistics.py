"""Statistics of edge labels and vertex labels, recomputed for what a load has touched.

Per edge label: ``triples``; ``resource_triples`` (whose object is a resource); ``subjects`` and ``objects``, distinct;
``max_out_degree`` and ``max_in_degree``, over all objects; ``kinds``, a bit mask with bit
:class:`~graphdb.storage.dictionary.Kind` set for each kind of literal among its objects; ``max_values``, the most
literals that one subject has.  Per vertex label: its ``vertices``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from graphdb.storage.dictionary import Ids
from graphdb.storage.terms import LITERAL_BASE, RDF_TYPE

if TYPE_CHECKING:
    import duckdb

_BY_LABEL = f"""
WITH touched AS (
    SELECT label, subject, object FROM _graphdb.triple WHERE label IN (SELECT unnest($labels::BIGINT[]))
),
outgoing AS (
    SELECT label, count(*) AS degree, count(*) FILTER (object >= {LITERAL_BASE}) AS literals
    FROM touched GROUP BY label, subject
),
incoming AS (SELECT label, count(*) AS degree FROM touched GROUP BY label, object),
from_subjects AS (
    SELECT label, sum(degree) AS triples, sum(degree - literals) AS resource_triples, count(*) AS subjects,
        max(degree) AS max_out_degree, max(literals) AS max_values
    FROM outgoing GROUP BY label
),
from_objects AS (SELECT label, count(*) AS objects, max(degree) AS max_in_degree FROM incoming GROUP BY label),
from_literals AS (
    SELECT label, bit_or(1::UINTEGER << kind) AS kinds
    FROM touched JOIN _graphdb.literal ON object = id WHERE object >= {LITERAL_BASE} GROUP BY label
)
INSERT INTO _graphdb.edge_label
SELECT label, triples, resource_triples, subjects, objects, max_out_degree, max_in_degree,
    coalesce(kinds, 0), max_values
FROM from_subjects JOIN from_objects USING (label) LEFT JOIN from_literals USING (label)
ORDER BY label
"""

_VERTICES = f"""
INSERT INTO _graphdb.vertex_label
SELECT object, count(*) FROM _graphdb.triple WHERE label = $type AND object < {LITERAL_BASE}
GROUP BY object ORDER BY object
"""


def refresh(connection: duckdb.DuckDBPyConnection, labels: Ids) -> None:
    """Recompute the statistics of these edge labels (int64), and of the vertex labels if rdf:type is among them.

    Runs in the caller's transaction.
    """
    parameters = {"labels": np.unique(labels).tolist()}
    connection.execute("DELETE FROM _graphdb.edge_label WHERE id IN (SELECT unnest($labels::BIGINT[]))", parameters)
    connection.execute(_BY_LABEL, parameters)
    type_label = connection.execute("SELECT id FROM _graphdb.resource WHERE iri = ?", [RDF_TYPE]).fetchall()
    if type_label and type_label[0][0] in parameters["labels"]:
        connection.execute("DELETE FROM _graphdb.vertex_label")
        connection.execute(_VERTICES, {"type": type_label[0][0]})
