"""The tables of the schema ``_graphdb``, as SQLAlchemy knows them: one place that says what the file holds.

Importing this module imports SQLAlchemy, which takes a while: :mod:`graphdb.storage.catalog` does so only when it
changes catalog rows.
"""

from __future__ import annotations

from duckdb_sqlalchemy.datatypes import HugeInteger, UInteger, UTinyInteger
from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Boolean,
    Column,
    Computed,
    Double,
    MetaData,
    String,
    Table,
)

metadata = MetaData(schema="_graphdb")

meta = Table("meta", metadata, Column("key", String, primary_key=True), Column("value", String, nullable=False))

prefix = Table("prefix", metadata, Column("prefix", String, primary_key=True), Column("iri", String, nullable=False))

source = Table(
    "source",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("path", String, nullable=False),
    Column("triples", BigInteger, nullable=False),
    Column("loaded_at", TIMESTAMP(timezone=True), nullable=False),
)
"""One row per loaded file; ``triples`` counts its lines, repeated triples included."""

# No keys on the large tables: an index would cost a load more than it saves, and the loader keeps ids unique.
resource = Table("resource", metadata, Column("id", BigInteger, nullable=False), Column("iri", String, nullable=False))

literal = Table(
    "literal",
    metadata,
    Column("id", BigInteger, nullable=False),
    Column("text", String),
    Column("datatype", String),
    Column("language", String),
    Column("kind", UTinyInteger, nullable=False),
    Column("integer", BigInteger),
    Column("number", Double),
    Column("moment", BigInteger),
    Column(
        "lexical",
        String,
        Computed(
            "CASE WHEN text IS NOT NULL THEN text WHEN integer IS NOT NULL THEN CAST(integer AS VARCHAR)"
            " ELSE CAST(number AS VARCHAR) END"
        ),
    ),
)
"""``text`` is the lexical form; it is NULL where DuckDB writes ``integer`` like that, and may be where it writes
``number`` like that, unless that is 0: compressed, one zero may become the other.  ``moment`` is the value of a
boolean, a date or a time as a number (:data:`graphdb.common.values.terms.VALUE_SQL`).  Each column takes time of a
load, even one of NULLs: there is none for what follows from others."""

triple = Table(
    "triple",
    metadata,
    Column("label", BigInteger, nullable=False),
    Column("subject", BigInteger, nullable=False),
    Column("object", BigInteger, nullable=False),
)
"""Unique; each load's new triples sorted by (label, subject, object), so that zone maps prune by label."""

quad = Table(
    "quad",
    metadata,
    Column("graph", BigInteger, nullable=False),
    Column("label", BigInteger, nullable=False),
    Column("subject", BigInteger, nullable=False),
    Column("object", BigInteger, nullable=False),
)
"""Which triples came in a named graph: the graph that is queried is the union of all.  A triple without a row is in the
default graph; one with rows is there too where its ``graph`` is -1."""

edge_label = Table(
    "edge_label",
    metadata,
    Column("id", BigInteger, nullable=False),
    Column("triples", BigInteger, nullable=False),
    Column("resource_triples", BigInteger, nullable=False),
    Column("subjects", BigInteger, nullable=False),
    Column("objects", BigInteger, nullable=False),
    Column("max_out_degree", BigInteger, nullable=False),
    Column("max_in_degree", BigInteger, nullable=False),
    Column("kinds", UInteger, nullable=False),
    Column("max_values", BigInteger, nullable=False),
)
"""Statistics: see :mod:`graphdb.storage.statistics.labels`."""

vertex_label = Table(
    "vertex_label",
    metadata,
    Column("id", BigInteger, nullable=False),
    Column("vertices", BigInteger, nullable=False),
)

edge = Table(
    "edge",
    metadata,
    Column("label", BigInteger, nullable=False),
    Column("subject", BigInteger, nullable=False),
    Column("object", BigInteger, nullable=False),
    Column("ordinal", BigInteger, nullable=False),
)
"""Edges that their triple does not identify: one row for each, where a triple stands for several parallel edges or
its edge has properties.  A triple without rows is one edge, of ordinal 0, without properties."""

edge_property = Table(
    "edge_property",
    metadata,
    Column("label", BigInteger, nullable=False),
    Column("subject", BigInteger, nullable=False),
    Column("object", BigInteger, nullable=False),
    Column("ordinal", BigInteger, nullable=False),
    Column("key", BigInteger, nullable=False),
    Column("value", BigInteger, nullable=False),
)
"""The properties of edges: ``key`` is a predicate, ``value`` a literal.  The edge has a row in :data:`edge`."""

reifier = Table(
    "reifier",
    metadata,
    Column("reifier", BigInteger, nullable=False),
    Column("label", BigInteger, nullable=False),
    Column("subject", BigInteger, nullable=False),
    Column("object", BigInteger, nullable=False),
    Column("ordinal", BigInteger, nullable=False),
)
"""The resources that stand for rows of :data:`edge` in RDF 1.2; the edge's triple need not be in the graph."""

edge_graph = Table(
    "edge_graph",
    metadata,
    Column("label", BigInteger, nullable=False),
    Column("subject", BigInteger, nullable=False),
    Column("object", BigInteger, nullable=False),
    Column("ordinal", BigInteger, nullable=False),
    Column("graph", BigInteger, nullable=False),
)
"""The graphs in which resources stand for edges, as :data:`quad` has those of triples: an edge without rows is spoken
of in the default graph only."""

degree = Table(
    "degree",
    metadata,
    Column("label", BigInteger, nullable=False),
    Column("direction", UTinyInteger, nullable=False),
    Column("bucket", UTinyInteger, nullable=False),
    Column("vertices", BigInteger, nullable=False),
    Column("edges", BigInteger, nullable=False),
    Column("squares", HugeInteger, nullable=False),
)
"""Bucket ``i`` holds the vertices of degree ``2**i`` to ``2**(i + 1) - 1``."""

label_pair = Table(
    "label_pair",
    metadata,
    Column("label", BigInteger, nullable=False),
    Column("class", BigInteger, nullable=False),
    Column("direction", UTinyInteger, nullable=False),
    Column("edges", BigInteger, nullable=False),
    Column("vertices", BigInteger, nullable=False),
)
"""Edges of an edge label at vertices of a vertex label (``class``)."""

counted = Table("counted", metadata, Column("rows", String, nullable=False))
"""What small changes add to the statistics: see :mod:`graphdb.storage.statistics.tables`."""

continuous_query = Table(
    "continuous_query",
    metadata,
    Column("number", BigInteger, nullable=False),
    Column("name", String, nullable=False),
    Column("text", String, nullable=False),
    Column("stored", Boolean, nullable=False),
    Column("changes", BigInteger),
    Column("retention", String),
    Column("since", BigInteger, nullable=False),
    Column("watch", String),
)
"""Continuous queries: see :mod:`graphdb.live.definitions`."""

batch = Table(
    "batch",
    metadata,
    Column("query", BigInteger, nullable=False),
    Column("batch", BigInteger, nullable=False),
    Column("noted", TIMESTAMP(timezone=True), nullable=False),
    Column("added", BigInteger, nullable=False),
    Column("removed", BigInteger, nullable=False),
)
"""The batches that changed the answer of a continuous query (by its number), as long as their changes are stored."""
