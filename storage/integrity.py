"""Integrity checks of a whole database, run when something failed that cannot fail on an intact one.

It scans all tables, as :mod:`graphdb.storage.file.verify` does not: that only looks at what is read anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphdb.common.values.terms import LITERAL_BASE, VALUE_SQL, Kind
from graphdb.storage.statistics.tables import STATISTICS, current

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb

_TERM = f"({{0}} BETWEEN 0 AND r.n - 1 OR {{0}} BETWEEN {LITERAL_BASE} AND {LITERAL_BASE} + l.n - 1)"
_RESOURCE = "{0} BETWEEN 0 AND r.n - 1"
_LITERAL = f"{{0}} BETWEEN {LITERAL_BASE} AND {LITERAL_BASE} + l.n - 1"
_GRAPH = "{0} BETWEEN -1 AND r.n - 1"
_TRIPLE = {"label": _RESOURCE, "subject": _RESOURCE, "object": _TERM}

_IDS: dict[str, dict[str, str]] = {
    "triple": _TRIPLE,
    "quad": {**_TRIPLE, "graph": _GRAPH},
    "edge": _TRIPLE,
    "edge_property": {**_TRIPLE, "key": _RESOURCE, "value": _LITERAL},
    "reifier": {**_TRIPLE, "reifier": _RESOURCE},
    "edge_graph": {**_TRIPLE, "graph": _GRAPH},
    "edge_label": {"id": _RESOURCE},
    "vertex_label": {"id": _RESOURCE},
    "degree": {"label": _RESOURCE},
    "label_pair": {"label": _RESOURCE, "class": _RESOURCE},
}
"""The terms that columns of tables stand for."""

_NO_VALUE = " OR ".join(f"kind = {int(kind)} AND {VALUE_SQL[kind].format('literal')} IS NULL" for kind in Kind)

_EDGE = "label, subject, object, ordinal"


def _no_terms(table: str, columns: Mapping[str, str]) -> str:
    """SQL for rows with something that is no term."""
    rules = " AND ".join(rule.format(f't."{column}"') for column, rule in columns.items())
    rows = current(table) if table in STATISTICS else f"_graphdb.{table}"
    return (
        f"SELECT 1 FROM {rows} AS t, (SELECT count(*) AS n FROM _graphdb.resource) AS r,"
        f" (SELECT count(*) AS n FROM _graphdb.literal) AS l WHERE NOT ({rules})"
    )


_CHECKS = (
    (
        "its terms are not numbered one after the other",
        f"""SELECT 1 FROM (SELECT count(*) AS n, count(DISTINCT id) AS d, min(id) AS a, max(id) AS b, 0 AS base
            FROM _graphdb.resource UNION ALL SELECT count(*), count(DISTINCT id), min(id), max(id), {LITERAL_BASE}
            FROM _graphdb.literal) WHERE n > 0 AND (n <> d OR a <> base OR b <> base + n - 1)""",
    ),
    (
        "an IRI has two numbers",
        "SELECT 1 FROM (SELECT count(*) AS n, count(DISTINCT iri) AS d FROM _graphdb.resource) WHERE n <> d",
    ),
    ("a literal has no value of its kind", f"SELECT 1 FROM _graphdb.literal WHERE kind > {max(Kind)} OR {_NO_VALUE}"),
    (
        "a triple is there twice",
        "SELECT 1 FROM _graphdb.triple GROUP BY label, subject, object HAVING count(*) > 1",
    ),
    ("an edge is there twice", f"SELECT 1 FROM _graphdb.edge GROUP BY {_EDGE} HAVING count(*) > 1"),
    (
        "an edge that is not there has properties",
        f"SELECT 1 FROM _graphdb.edge_property ANTI JOIN _graphdb.edge USING ({_EDGE})",
    ),
    (
        "its statistics are not those of its triples",
        f"""SELECT 1 FROM (SELECT label AS id, count(*) AS triples, count(*) FILTER (object < {LITERAL_BASE}) AS ends
            FROM _graphdb.triple GROUP BY label) AS counted FULL JOIN {current("edge_label")} AS noted USING (id)
            WHERE counted.triples IS DISTINCT FROM noted.triples OR counted.ends <> noted.resource_triples""",
    ),
    (
        "its statistics are not those of its literals",
        f"""SELECT 1 FROM (SELECT label AS id, max(n) AS most, bit_or(kinds) AS kinds FROM (SELECT label, count(*) AS n,
            bit_or(1::UINTEGER << kind) AS kinds FROM _graphdb.triple JOIN _graphdb.literal AS l ON l.id = object
            GROUP BY label, subject) GROUP BY label) AS counted RIGHT JOIN {current("edge_label")} AS noted USING (id)
            WHERE coalesce(counted.most, 0) <> noted.max_values OR coalesce(counted.kinds, 0) <> noted.kinds""",
    ),
    *((f"something in {table} is no term", _no_terms(table, columns)) for table, columns in _IDS.items()),
)
"""What can be wrong, and SQL that has a row where it is."""


def problem(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return what is wrong with the tables of a graph; None where nothing is found."""
    for what, sql in _CHECKS:
        if connection.execute(f"{sql} LIMIT 1").fetchall():
            return what
    return None
