"""Appending triples of numbered terms, literals with known datatypes, and files of older versions."""

from __future__ import annotations

import pathlib
from typing import Any

import duckdb
import numpy as np
import pytest

import graphdb
from graphdb.common import arrow
from graphdb.common.values.terms import LIST_DATATYPE, RDF, XSD
from graphdb.storage.catalog import SCHEMA_VERSION, Catalog
from graphdb.storage.dictionary.typed_literals import is_short, short_literals, typed_literals
from graphdb.storage.file.migrations import MIGRATIONS
from graphdb.storage.updates.append import DEFAULT_GRAPH, Appender

ROWS = [
    ("ex:a", "ex:knows", "ex:b", None, None),
    ("ex:a", "ex:name", "Ada", XSD + "string", None),
    ("ex:a", "ex:name", "Ada", RDF + "langString", "en"),
    ("ex:b", "ex:age", "41", XSD + "integer", None),
    ("_:x", "ex:knows", "_:x", None, None),
]


def add_rows(appender: Appender, rows: list[Any]) -> None:
    """Stage triples as rows of the view ``triples``; the datatypes of plain strings are not written."""
    plain = {XSD + "string", RDF + "langString"}

    def literal(row: Any) -> tuple[str, str | None, str | None]:
        return (row[2], None if row[3] in plain else row[3], row[4])

    iris = sorted({term for row in rows for term in (row[0], row[1], *[row[2]] * (row[3] is None))})
    literals = sorted({literal(row) for row in rows if row[3] is not None}, key=str)
    number = dict(zip(iris, appender.terms.resources(arrow.array(iris)).tolist(), strict=True))
    columns = [arrow.array(column, arrow.STRING) for column in zip(*literals, strict=True)]
    value = dict(zip(literals, appender.terms.literals(*columns).tolist(), strict=True)) if literals else {}
    objects = [number[row[2]] if row[3] is None else value[literal(row)] for row in rows]
    subjects, labels = ([number[row[column]] for row in rows] for column in (0, 1))
    appender.add_ids(*(np.array(column, np.int64) for column in (subjects, labels, objects)))


def finish(appender: Appender) -> int:
    """Append what is staged and count it: how many triples were new."""
    new = appender.append()
    appender.count()
    return new


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    Catalog(connection).create()
    return connection


def test_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """What goes in as rows of the view triples comes out of it; what is there already is not new."""
    connection.begin()
    appender = Appender(connection)
    add_rows(appender, ROWS)
    add_rows(appender, ROWS[:2])
    assert finish(appender) == len(ROWS)
    connection.commit()
    assert sorted(connection.execute("FROM main.triples").fetchall(), key=str) == sorted(ROWS, key=str)
    connection.begin()
    appender = Appender(connection)
    add_rows(appender, [*ROWS, ("ex:b", "ex:name", "Ada", None, None)])
    assert finish(appender) == 1
    connection.rollback()
    assert len(connection.execute("FROM main.triples").fetchall()) == len(ROWS)
    assert connection.execute("SELECT count(*) FROM duckdb_tables() WHERE temporary").fetchall() == [(0,)]


def test_short_literals_are_what_typed_ones_are(connection: duckdb.DuckDBPyConnection) -> None:
    written = [("Ada", None, None), ("12", None, None), ("true", None, "en")]
    written += [(text, XSD + "integer", None) for text in ("0", "-0", "+7", "007", "-12", "9" * 18, "-" + "9" * 18)]
    written += [(text, XSD + "double", None) for text in ("0.0", "-0.0", "1e5", "12.5", "+3.25E-7", "0.1", "9" * 17)]
    written += [(text, XSD + "boolean", None) for text in ("true", "false")]
    written += [(text, LIST_DATATYPE, None) for text in ("[]", '["a", 1]', "1", "true", "2020-01-01")]
    assert all(is_short(*literal) for literal in written)
    assert not any(is_short(text, XSD + "double", None) for text in ("INF", "NaN", "1e400", ".", "1e", ".5 "))
    assert not any(is_short(text, XSD + "boolean", None) for text in ("1", "0", "yes"))
    assert not any(is_short(text, XSD + "integer", None) for text in ("", "-", "1.5", " 1", "٣", "9" * 19))
    assert not is_short("12", XSD + "int", None)
    rows = [(i, *literal) for i, literal in enumerate(written)]
    source = f"(VALUES {', '.join(map(str, rows))}) AS row(id, lexical, datatype, language)".replace("None", "NULL")
    typed = f"SELECT id, text, kind, integer, number, moment FROM ({typed_literals(source)}) ORDER BY id"
    short = short_literals(*zip(*written, strict=True))
    found = [(i, *row) for i, row in enumerate(zip(*short.values(), strict=True))]
    assert list(map(repr, found)) == list(map(repr, connection.execute(typed).fetchall()))  # -0.0 is not 0.0


def test_literals_of_known_datatypes_are_what_others_are(connection: duckdb.DuckDBPyConnection) -> None:
    """What is left out where there are few datatypes is of the others."""
    texts = {
        "integer": "12", "nonNegativeInteger": "-3", "byte": "300", "decimal": "1.50", "double": "1e5", "boolean": "true",
        "date": "2020-01-02", "dateTime": "2020-01-02T10:00:00Z", "time": "10:00:00+01:00", "duration": "P1D",
    }  # fmt: skip
    rows = ", ".join(f"({i}, '{text}', '{XSD}{name}', NULL)" for i, (name, text) in enumerate(texts.items()))
    source = f"(VALUES {rows}, (99, 'Ada', NULL, NULL)) AS row(id, lexical, datatype, language)"
    every = connection.execute(typed_literals(source)).fetchall()
    assert every == connection.execute(typed_literals(source, {None, *(XSD + name for name in texts)})).fetchall()
    for i, name in enumerate(texts):
        one = f"(SELECT * FROM {source} WHERE id = {i})"
        assert connection.execute(typed_literals(one, {XSD + name})).fetchall() == every[i : i + 1], name


def test_reifiers(connection: duckdb.DuckDBPyConnection) -> None:
    """Two edges between the same vertices: one triple, two reifiers."""
    connection.begin()
    appender = Appender(connection)
    rows = [ROWS[0], ("_:1", "ex:since", "1", XSD + "integer", None), ("_:2", "ex:p", "_:2", None, None)]
    add_rows(appender, rows)
    names = ["ex:a", "ex:knows", "ex:b", "_:1", "_:2"]
    number = dict(zip(names, appender.terms.resources(arrow.array(names)).tolist(), strict=True))
    edge = [np.full(2, number[name]) for name in ("ex:a", "ex:knows", "ex:b")]
    appender.add_reifiers(np.array([number["_:1"], number["_:2"]]), *edge, np.full(2, DEFAULT_GRAPH))
    finish(appender)
    connection.commit()
    a, knows, b = (number[name] for name in ("ex:a", "ex:knows", "ex:b"))
    assert sorted(connection.execute("FROM _graphdb.edge").fetchall()) == [(knows, a, b, 0), (knows, a, b, 1)]
    [(ordinal, value)] = connection.execute(
        "SELECT ordinal, lexical FROM _graphdb.edge_property JOIN _graphdb.literal ON id = value"
    ).fetchall()
    reifiers = dict(connection.execute("SELECT ordinal, reifier FROM _graphdb.reifier").fetchall())
    assert (reifiers[ordinal], value) == (number["_:1"], "1")
    assert len(connection.execute("FROM main.triples").fetchall()) == 2


VERSION_1 = """
CREATE SCHEMA _graphdb;
CREATE TABLE _graphdb.meta (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL);
CREATE TABLE _graphdb.prefix (prefix VARCHAR PRIMARY KEY, iri VARCHAR NOT NULL);
CREATE TABLE _graphdb.source (id BIGINT PRIMARY KEY, path VARCHAR NOT NULL, triples BIGINT NOT NULL,
    loaded_at TIMESTAMPTZ NOT NULL);
CREATE TABLE _graphdb.resource (id BIGINT NOT NULL, iri VARCHAR NOT NULL);
CREATE TABLE _graphdb.literal (id BIGINT NOT NULL, lexical VARCHAR NOT NULL, datatype VARCHAR, language VARCHAR,
    kind UTINYINT NOT NULL, integer BIGINT, number DOUBLE, decimal DECIMAL(38, 18), boolean BOOLEAN, date DATE,
    datetime TIMESTAMP, zoned TIMESTAMPTZ, time TIME);
CREATE TABLE _graphdb.triple (label BIGINT NOT NULL, subject BIGINT NOT NULL, object BIGINT NOT NULL);
CREATE TABLE _graphdb.edge_label (id BIGINT NOT NULL, triples BIGINT NOT NULL, resource_triples BIGINT NOT NULL,
    subjects BIGINT NOT NULL, objects BIGINT NOT NULL, max_out_degree BIGINT NOT NULL, max_in_degree BIGINT NOT NULL,
    kinds UINTEGER NOT NULL, max_values BIGINT NOT NULL);
CREATE TABLE _graphdb.vertex_label (id BIGINT NOT NULL, vertices BIGINT NOT NULL);
INSERT INTO _graphdb.meta VALUES ('schema_version', '1');
INSERT INTO _graphdb.resource VALUES (0, 'ex:a'), (1, 'ex:knows'), (2, 'ex:b');
INSERT INTO _graphdb.triple VALUES (1, 0, 2);
INSERT INTO _graphdb.edge_label VALUES (1, 1, 1, 1, 1, 1, 1, 0, 0);
INSERT INTO _graphdb.source VALUES (0, 'old.nt', 1, now());
INSERT INTO _graphdb.literal (id, lexical, datatype, language, kind) VALUES (1099511627776, '', NULL, NULL, 0),
    (1099511627777, 'b', NULL, 'en', 1), (1099511627778, 'x', 'ex:t', NULL, 10), (1099511627779, 'P1D', '{}duration', NULL, 12);
INSERT INTO _graphdb.literal BY NAME SELECT 1099511627780 + row_number() OVER () - 1 AS id, '{}' || name AS datatype, *
    EXCLUDE name FROM (VALUES ('integer', '-7', 2, -7, -7, NULL, NULL, NULL, NULL, NULL, NULL),
    ('int', '007', 2, 7, 7, NULL, NULL, NULL, NULL, NULL, NULL),
    ('decimal', '1.50', 3, NULL, 1.5, 1.5, NULL, NULL, NULL, NULL, NULL),
    ('double', '1e3', 4, NULL, 1000, NULL, NULL, NULL, NULL, NULL, NULL),
    ('boolean', 'true', 5, NULL, NULL, NULL, true, NULL, NULL, NULL, NULL),
    ('boolean', '0', 5, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL),
    ('date', '-0044-03-15', 6, NULL, NULL, NULL, NULL, DATE '0045-03-15 (BC)', NULL, NULL, NULL),
    ('dateTime', '1969-12-31T23:59:59.5', 7, NULL, NULL, NULL, NULL, NULL, TIMESTAMP '1969-12-31 23:59:59.5', NULL, NULL),
    ('dateTime', '2020-01-01T00:00:00+02:00', 8, NULL, NULL, NULL, NULL, NULL, NULL, '2020-01-01 00:00:00+02', NULL),
    ('time', '23:59:59.000001', 9, NULL, NULL, NULL, NULL, NULL, NULL, NULL, TIME '23:59:59.000001'))
    AS row(name, lexical, kind, integer, number, decimal, boolean, date, datetime, zoned, time);
INSERT INTO _graphdb.resource VALUES (3, 'ex:p');
INSERT INTO _graphdb.triple SELECT 3, 0, id FROM _graphdb.literal;
""".replace("{}", XSD)
"""A file as version 1 wrote it."""


def test_old_files_are_migrated(tmp_path: pathlib.Path) -> None:
    """A file of version 1 opens, answers, takes another load, and is of this version then, with the same tables.

    Its literals are as if they had been loaded today.
    """
    old = duckdb.connect(tmp_path / "old.duckdb")
    old.execute(VERSION_1)
    old.close()
    (tmp_path / "more.nt").write_text("<ex:b> <ex:knows> <ex:c> .\n")
    for _ in range(2):
        with graphdb.connect(tmp_path / "old.duckdb") as db:
            assert db.query("MATCH (a)-[:knows]->(b) RETURN count(*)").scalar() in (1, 2)
            db.load(tmp_path / "more.nt")
    with duckdb.connect(tmp_path / "old.duckdb") as connection, open(tmp_path / "new.nt", "w") as file:
        for text, datatype, language in connection.execute(
            "SELECT lexical, datatype, language FROM _graphdb.literal"
        ).fetchall():
            note = f"@{language}" if language else f"^^<{datatype}>" if datatype else ""
            file.write(f'<ex:a> <ex:p> "{text}"{note} .\n')
    with graphdb.connect(tmp_path / "new.duckdb") as db:
        db.load([tmp_path / "more.nt", tmp_path / "new.nt"])
    tables, literals = [], []
    for name in ("old", "new"):
        with duckdb.connect(tmp_path / f"{name}.duckdb") as connection:
            assert Catalog(connection).schema_version == SCHEMA_VERSION
            columns = "table_name, column_name, data_type, is_nullable"
            tables.append(
                connection.execute(
                    f"SELECT {columns} FROM duckdb_columns() WHERE schema_name = '_graphdb' ORDER BY ALL"
                ).fetchall()
            )
            literals.append(connection.execute("SELECT * EXCLUDE id FROM _graphdb.literal ORDER BY ALL").fetchall())
    assert tables[0] == tables[1]
    assert literals[0] == literals[1]
    assert len(literals[0]) == 14


def test_every_version_has_its_migration() -> None:
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA_VERSION))
