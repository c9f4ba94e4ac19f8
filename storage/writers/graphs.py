"""Which graphs are written: all of them, apart or as one, or some; required where a format cannot distinguish them.

Writers read :data:`TRIPLES`, :data:`QUADS`, :data:`EDGES` and :data:`PLACES`: the tables ``triple``, ``quad``, ``edge``
and ``edge_graph``, or what of them is in the graphs that were chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphdb.common.errors import GraphDBError, nearest
from graphdb.storage.updates.append import DEFAULT_GRAPH

if TYPE_CHECKING:
    import duckdb

Graphs = str | Sequence[str]
"""``"union"``: all graphs as one, without names; else ``"default"`` and IRIs, prefixed or not, one or several."""

TRIPLES, QUADS, EDGES, PLACES = (f"temp._graphdb_chosen_{table}" for table in ("triple", "quad", "edge", "edge_graph"))
"""Views to read.  A triple without a quad is in the default graph, as one with the quad of the default graph is; an
edge without a place is spoken of there."""

UNION, DEFAULT = "union", "default"

_KEY = "label, subject, object"
_GRAPHS = "SELECT graph FROM _graphdb.quad UNION ALL SELECT graph FROM _graphdb.edge_graph"
_UNNAMED = f"SELECT {_KEY} FROM _graphdb.triple ANTI JOIN _graphdb.quad USING ({_KEY})"


@contextmanager
def chosen(
    connection: duckdb.DuckDBPyConnection,
    graphs: Graphs | None,
    prefixes: Mapping[str, str],
    *,
    one: str | None = None,
) -> Iterator[None]:
    """Make the views that writers read, for as long as they do.

    Parameters
    ----------
    graphs
        Which; all by default.
    prefixes
        What names may begin with.
    one
        What the format is called, where it holds one graph without a name.

    Raises
    ------
    GraphDBError
        For a graph that is not there; one that says something of a triple term; and, where the format holds one graph
        and ``graphs`` is not stated, if there are named ones.
    """
    _refuse_subjects(connection)
    if graphs is None and one is not None:
        _refuse_named(connection, one)
    names = [graphs] if isinstance(graphs, str) else list(graphs or ())
    if graphs is None or UNION in names:
        triples, edges = "FROM _graphdb.triple", "FROM _graphdb.edge"
        quads, places = (f"FROM _graphdb.{table}{' WHERE false' if names else ''}" for table in ("quad", "edge_graph"))
    else:
        found = [_number(connection, name, prefixes) for name in names]
        within = f"graph IN ({', '.join(map(str, found)) or 'NULL'})"
        quads, places = (f"FROM _graphdb.{table} WHERE {within}" for table in ("quad", "edge_graph"))
        triples = f"SELECT DISTINCT {_KEY} {quads}"
        edges = f"FROM _graphdb.edge SEMI JOIN {TRIPLES} USING ({_KEY})"
        spoken = f"FROM _graphdb.edge ANTI JOIN _graphdb.triple USING ({_KEY})"
        edges += f" UNION ALL {spoken} SEMI JOIN {PLACES} USING ({_KEY}, ordinal)"
        if DEFAULT_GRAPH in found:
            triples += f" UNION ALL {_UNNAMED}"
            edges += f" UNION ALL {spoken} ANTI JOIN _graphdb.edge_graph USING ({_KEY}, ordinal)"
    views = {TRIPLES: triples, QUADS: quads, PLACES: places, EDGES: edges}
    for name, sql in views.items():
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {name.removeprefix('temp.')} AS {sql}")
    try:
        yield
    finally:
        for name in views:
            connection.execute(f"DROP VIEW IF EXISTS {name}")


def _refuse_subjects(connection: duckdb.DuckDBPyConnection) -> None:
    """Refuse to write a graph with properties or edges of triple terms, which RDF has as objects only."""
    terms = "SELECT id, iri FROM _graphdb.resource WHERE iri >= '<<(' AND iri < '<<)'"
    if not connection.execute(f"{terms} LIMIT 1").fetchall():
        return
    sql = f"SELECT iri FROM _graphdb.triple JOIN ({terms}) ON id = subject LIMIT 1"
    for (iri,) in connection.execute(sql).fetchall():
        raise GraphDBError(
            f"the triple term {iri} has properties, labels or edges, which no format can hold",
            hint="in RDF a triple term can only be an object; let a vertex stand for it (rdf:reifies)",
        )


def _refuse_named(connection: duckdb.DuckDBPyConnection, format: str) -> None:
    """Refuse to write a graph whose triples stand in named graphs, which the format cannot say."""
    [(triples, graphs)] = connection.execute(
        f"SELECT count(*), count(DISTINCT graph) FROM ({_GRAPHS}) WHERE graph <> {DEFAULT_GRAPH}"
    ).fetchall()
    if triples:
        they = "1 triple is" if triples == 1 else f"{triples:,} triples are"
        named = "a named graph" if graphs == 1 else f"{graphs:,} named graphs"
        raise GraphDBError(
            f"{they} in {named}, and {format} cannot tell which",
            hint="N-Quads, TriG and Parquet (.nq, .trig, .parquet) can; or say which graphs: 'union' is all of them as"
            " one, 'default' the one without a name, others have their IRIs",
        )


def _number(connection: duckdb.DuckDBPyConnection, name: str, prefixes: Mapping[str, str]) -> int:
    """Return the number of a graph."""
    if name == DEFAULT:
        return DEFAULT_GRAPH
    prefix, _, local = name.partition(":")
    sql = f"SELECT id, iri FROM _graphdb.resource WHERE id IN ({_GRAPHS})"
    for iri in (name, prefixes.get(prefix, prefix + ":") + local):
        if found := connection.execute(f"{sql} AND iri = $iri", {"iri": iri}).fetchall():
            return int(found[0][0])
    known = [iri for _, iri in connection.execute(f"{sql} ORDER BY id ASC LIMIT 1000").fetchall()]
    close = nearest(name, [*known, UNION, DEFAULT])
    hint = f"did you mean '{close[0]}'?" if close else f"the graphs are {', '.join(['default', *known][:10])}"
    raise GraphDBError(f"there is no graph '{name}'", hint=hint)
