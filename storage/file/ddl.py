"""The tables of a new file as SQL, the same as :mod:`.schema`, so that creating one need not import SQLAlchemy.

A test holds the two together.
"""

from __future__ import annotations

CREATE = """
CREATE SCHEMA _graphdb;
CREATE TABLE _graphdb.meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);
CREATE TABLE _graphdb.prefix (prefix VARCHAR PRIMARY KEY, iri VARCHAR NOT NULL);
CREATE TABLE _graphdb.source (id BIGINT PRIMARY KEY, path VARCHAR NOT NULL, triples BIGINT NOT NULL,
    loaded_at TIMESTAMPTZ NOT NULL);
CREATE TABLE _graphdb.resource (id BIGINT NOT NULL, iri VARCHAR NOT NULL);
CREATE TABLE _graphdb.literal (id BIGINT NOT NULL, text VARCHAR, datatype VARCHAR, language VARCHAR,
    kind UTINYINT NOT NULL, integer BIGINT, number DOUBLE, moment BIGINT, lexical VARCHAR GENERATED ALWAYS AS(CASE
    WHEN ((text IS NOT NULL)) THEN (text) WHEN ((integer IS NOT NULL)) THEN (CAST(integer AS VARCHAR))
    ELSE CAST(number AS VARCHAR) END));
CREATE TABLE _graphdb.triple (label BIGINT NOT NULL, subject BIGINT NOT NULL, object BIGINT NOT NULL);
CREATE TABLE _graphdb.quad (graph BIGINT NOT NULL, label BIGINT NOT NULL, subject BIGINT NOT NULL,
    object BIGINT NOT NULL);
CREATE TABLE _graphdb.edge_label (id BIGINT NOT NULL, triples BIGINT NOT NULL, resource_triples BIGINT NOT NULL,
    subjects BIGINT NOT NULL, objects BIGINT NOT NULL, max_out_degree BIGINT NOT NULL, max_in_degree BIGINT NOT NULL,
    kinds UINTEGER NOT NULL, max_values BIGINT NOT NULL);
CREATE TABLE _graphdb.vertex_label (id BIGINT NOT NULL, vertices BIGINT NOT NULL);
CREATE TABLE _graphdb.edge (label BIGINT NOT NULL, subject BIGINT NOT NULL, object BIGINT NOT NULL,
    ordinal BIGINT NOT NULL);
CREATE TABLE _graphdb.edge_property (label BIGINT NOT NULL, subject BIGINT NOT NULL, object BIGINT NOT NULL,
    ordinal BIGINT NOT NULL, key BIGINT NOT NULL, value BIGINT NOT NULL);
CREATE TABLE _graphdb.reifier (reifier BIGINT NOT NULL, label BIGINT NOT NULL, subject BIGINT NOT NULL,
    object BIGINT NOT NULL, ordinal BIGINT NOT NULL);
CREATE TABLE _graphdb.edge_graph (label BIGINT NOT NULL, subject BIGINT NOT NULL, object BIGINT NOT NULL,
    ordinal BIGINT NOT NULL, graph BIGINT NOT NULL);
CREATE TABLE _graphdb.degree (label BIGINT NOT NULL, direction UTINYINT NOT NULL, bucket UTINYINT NOT NULL,
    vertices BIGINT NOT NULL, edges BIGINT NOT NULL, squares HUGEINT NOT NULL);
CREATE TABLE _graphdb.label_pair (label BIGINT NOT NULL, class BIGINT NOT NULL, direction UTINYINT NOT NULL,
    edges BIGINT NOT NULL, vertices BIGINT NOT NULL);
CREATE TABLE _graphdb.counted (rows VARCHAR NOT NULL);
CREATE TABLE _graphdb.continuous_query (number BIGINT NOT NULL, name VARCHAR NOT NULL, text VARCHAR NOT NULL,
    stored BOOLEAN NOT NULL, changes BIGINT, retention VARCHAR, since BIGINT NOT NULL, watch VARCHAR);
CREATE TABLE _graphdb.batch (query BIGINT NOT NULL, batch BIGINT NOT NULL, noted TIMESTAMPTZ NOT NULL,
    added BIGINT NOT NULL, removed BIGINT NOT NULL);
"""

FORMER = {
    "counted": {9: "rows BIGINT[][] NOT NULL"},
    "literal": {
        10: "id BIGINT NOT NULL, lexical VARCHAR NOT NULL, datatype VARCHAR, language VARCHAR, kind UTINYINT NOT NULL, "
        "integer BIGINT, number DOUBLE, decimal DECIMAL(38,18), boolean BOOLEAN, date DATE, datetime TIMESTAMP, "
        "zoned TIMESTAMP WITH TIME ZONE, time TIME",
        11: "id BIGINT NOT NULL, text VARCHAR, datatype VARCHAR, language VARCHAR, kind UTINYINT NOT NULL, "
        "integer BIGINT, number DOUBLE, moment BIGINT, lexical VARCHAR GENERATED ALWAYS AS(CASE WHEN ((text IS NULL)) "
        "THEN (CAST(integer AS VARCHAR)) ELSE text END)",
    },
}
"""Tables that had other columns up to a version, and these."""

PAGED = ("resource_key", "literal_key")
"""The tables of pages, which come when they are first worth it; see :mod:`graphdb.storage.dictionary.hash_index`."""

PAGED_SINCE = 5
"""The version from which on they have these columns."""

PAGE_COLUMNS = "page BIGINT NOT NULL, data BLOB NOT NULL"
"""Their columns."""
