"""Loading: what is in the file is in the database, once; a load that fails leaves no trace."""

from __future__ import annotations

import collections
import datetime
import pathlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import pytest

from graphdb.common.values.terms import LITERAL_BASE, RDF_TYPE, VALUE_SQL, Kind
from graphdb.storage.catalog import Catalog
from graphdb.storage.loaders import load as load_module
from graphdb.storage.loaders import streams as streams_module
from tests.storage.loaders.loaded import PEOPLE, XSD, Loaded, load


@pytest.fixture
def db(tmp_path: pathlib.Path) -> Loaded:
    return Loaded(tmp_path)


# --- what is loaded ---


def test_rows(db: Loaded) -> None:
    report = db.load(PEOPLE, "people.nt.gz")
    assert (report.triples, report.new_triples, report.files, report.errors) == (10, 9, 1, 0)
    assert sorted(db.rows("FROM main.triples"), key=str) == sorted(
        [
            ("ex:ada", RDF_TYPE, "ex:Person", None, None),
            ("ex:ada", "ex:knows", "ex:bob", None, None),
            ("ex:ada", "ex:knows", "_:f0_who", None, None),
            ("ex:ada", "ex:name", "Ada", XSD + "string", None),
            ("ex:ada", "ex:name", "Ada", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "en"),
            ("ex:bob", "ex:name", "Bob", XSD + "string", None),
            ("ex:bob", "ex:age", "41", XSD + "integer", None),
            ("ex:bob", RDF_TYPE, "ex:Person", None, None),
            ("_:f0_who", "ex:age", "abc", XSD + "integer", None),
        ],
        key=str,
    )


def test_ids_are_dense_and_triples_sorted(db: Loaded) -> None:
    db.load(PEOPLE)
    db.load('<ex:cleo> <ex:knows> <ex:ada> .\n<ex:cleo> <ex:name> "Cleo" .', "b.nt")
    resources, literals = db.rows("SELECT id FROM _graphdb.resource"), db.rows("SELECT id FROM _graphdb.literal")
    assert resources == [(i,) for i in range(len(resources))]
    assert literals == [(LITERAL_BASE + i,) for i in range(len(literals))]
    triples = db.rows("SELECT label, subject, object FROM _graphdb.triple")
    assert triples[:9] == sorted(triples[:9])
    assert triples[9:] == sorted(triples[9:])
    assert len(set(triples)) == len(triples)


def test_append_reuses_terms(db: Loaded) -> None:
    db.load(PEOPLE)
    before = db.everything()
    report = db.load(
        '<ex:bob> <ex:knows> <ex:ada> .\n<ex:ada> <ex:knows> <ex:bob> .\n<ex:cleo> <ex:name> "Ada"@EN .', "b.nt"
    )
    assert (report.triples, report.new_triples) == (3, 2)
    after = db.everything()
    assert after["_graphdb.literal"] == before["_graphdb.literal"]
    assert after["_graphdb.resource"] == [*before["_graphdb.resource"], (len(before["_graphdb.resource"]), "ex:cleo")]
    assert set(after["_graphdb.triple"]) > set(before["_graphdb.triple"])


def test_blank_nodes_belong_to_their_file(db: Loaded) -> None:
    """Two files, or one file twice: each time other blank nodes."""
    first, second = db.write("_:a <ex:p> _:a .", "1.nt"), db.write("_:a <ex:p> _:b .\n_:a <ex:p> _:a .", "2.nt")
    report = load(db.connection, db.catalog, [first, second, first])
    assert (report.files, report.new_triples) == (3, 4)
    assert db.rows("SELECT subject, object FROM main.triples ORDER BY ALL") == [
        ("_:f0_a", "_:f0_a"),
        ("_:f1_a", "_:f1_a"),
        ("_:f1_a", "_:f1_b"),
        ("_:f2_a", "_:f2_a"),
    ]
    load(db.connection, db.catalog, first)
    assert db.rows("SELECT id, path, triples FROM _graphdb.source") == [
        (0, str(first), 1),
        (1, str(second), 2),
        (2, str(first), 1),
        (3, str(first), 1),
    ]


def test_reopened_file_continues(db: Loaded) -> None:
    db.load(PEOPLE)
    everything = db.everything()
    db.connection.close()
    db.connection = duckdb.connect(db.folder / "test.duckdb")
    db.catalog = Catalog(db.connection)
    assert db.catalog.exists()
    assert db.everything() == everything
    assert db.load("<ex:ada> <ex:knows> <ex:bob> .\n_:who <ex:knows> <ex:bob> .").new_triples == 1
    assert db.catalog.next_source() == 2


@pytest.mark.parametrize("limit", [1, 2_000, 1 << 30])
def test_batches_and_blocks_do_not_matter(db: Loaded, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Many small batches give the triples that one gives (compared as text, the ids may differ)."""
    lines = [
        f'<ex:{i % 97}> <ex:p{i % 7}> "{i % 31}"^^<{XSD}integer> .\n_:b{i % 11} <ex:q> <ex:{i % 5}> .'
        for i in range(2_000)
    ]
    expected = {tuple(row.split(" ")[:3]) for line in lines for row in line.split("\n")}
    monkeypatch.setattr(load_module, "BATCH", limit)
    monkeypatch.setattr(streams_module, "BLOCK", 4_096)
    report = db.load("\n".join(lines), "many.nt.gz")
    assert (report.triples, report.new_triples) == (4_000, len(expected))
    found = {
        (s.replace("_:f0_", "_:") if s.startswith("_:") else f"<{s}>", f"<{p}>", f'"{o}"^^<{t}>' if t else f"<{o}>")
        for s, p, o, t, _ in db.rows("FROM main.triples")
    }
    assert found == expected


# --- values ---


@pytest.mark.parametrize(
    ("datatype", "lexical", "kind", "value"),
    [
        ("integer", "42", Kind.INTEGER, 42),
        ("integer", "-007", Kind.INTEGER, -7),
        ("integer", "+1", Kind.INTEGER, 1),
        ("integer", "9223372036854775807", Kind.INTEGER, 2**63 - 1),
        ("integer", "-9223372036854775808", Kind.INTEGER, -(2**63)),
        ("integer", "9223372036854775808", Kind.DECIMAL, Decimal(2**63)),
        ("integer", "99999999999999999999", Kind.DECIMAL, Decimal(10**20 - 1)),
        ("integer", "100000000000000000000", Kind.DOUBLE, 1e20),
        ("integer", "1" + "0" * 50, Kind.DOUBLE, 1e50),
        ("integer", "abc", Kind.OTHER, None),
        ("integer", "", Kind.OTHER, None),
        ("integer", " 1", Kind.OTHER, None),
        ("integer", "1.0", Kind.OTHER, None),
        ("integer", "1e3", Kind.OTHER, None),
        ("integer", "0x10", Kind.OTHER, None),
        ("integer", "1_000", Kind.OTHER, None),
        ("byte", "127", Kind.INTEGER, 127),
        ("byte", "128", Kind.OTHER, None),
        ("unsignedByte", "-1", Kind.OTHER, None),
        ("short", "-32769", Kind.OTHER, None),
        ("int", "2147483648", Kind.OTHER, None),
        ("unsignedInt", "4294967295", Kind.INTEGER, 4294967295),
        ("long", "9223372036854775808", Kind.OTHER, None),
        ("unsignedLong", "18446744073709551615", Kind.DECIMAL, Decimal(2**64 - 1)),
        ("unsignedLong", "18446744073709551616", Kind.OTHER, None),
        ("nonNegativeInteger", "-1", Kind.OTHER, None),
        ("nonNegativeInteger", "-0", Kind.INTEGER, 0),
        ("nonNegativeInteger", "1" + "0" * 50, Kind.DOUBLE, 1e50),
        ("nonNegativeInteger", "-1" + "0" * 50, Kind.OTHER, None),
        ("positiveInteger", "0", Kind.OTHER, None),
        ("nonPositiveInteger", "-1" + "0" * 50, Kind.DOUBLE, -1e50),
        ("nonPositiveInteger", "1", Kind.OTHER, None),
        ("negativeInteger", "-1", Kind.INTEGER, -1),
        ("negativeInteger", "0", Kind.OTHER, None),
        ("decimal", "1.50", Kind.DECIMAL, Decimal("1.5")),
        ("decimal", "-.5", Kind.DECIMAL, Decimal("-0.5")),
        ("decimal", "1.", Kind.DECIMAL, Decimal(1)),
        ("decimal", "7", Kind.DECIMAL, Decimal(7)),
        ("decimal", "0.123456789012345678", Kind.DECIMAL, Decimal("0.123456789012345678")),
        ("decimal", "0.12345678901234567800", Kind.DECIMAL, Decimal("0.123456789012345678")),
        ("decimal", "0.1234567890123456789", Kind.DOUBLE, 0.1234567890123456789),
        ("decimal", "123456789012345678901.5", Kind.DOUBLE, 123456789012345678901.5),
        ("decimal", "1e3", Kind.OTHER, None),
        ("decimal", ".", Kind.OTHER, None),
        ("decimal", "INF", Kind.OTHER, None),
        ("double", "1.5e3", Kind.DOUBLE, 1500.0),
        ("double", "INF", Kind.DOUBLE, float("inf")),
        ("double", "-INF", Kind.DOUBLE, float("-inf")),
        ("double", "1e999", Kind.DOUBLE, float("inf")),
        ("double", "5", Kind.DOUBLE, 5.0),
        ("double", "inf", Kind.OTHER, None),
        ("double", "infinity", Kind.OTHER, None),
        ("double", "nan", Kind.OTHER, None),
        ("float", "0.1", Kind.DOUBLE, 0.1),
        ("boolean", "true", Kind.BOOLEAN, True),
        ("boolean", "0", Kind.BOOLEAN, False),
        ("boolean", "1", Kind.BOOLEAN, True),
        ("boolean", "TRUE", Kind.OTHER, None),
        ("boolean", "yes", Kind.OTHER, None),
        ("date", "2024-02-29", Kind.DATE, datetime.date(2024, 2, 29)),
        ("date", "2023-02-29", Kind.OTHER, None),
        ("date", "2023-2-9", Kind.OTHER, None),
        ("date", "2023-02-09Z", Kind.OTHER, None),
        ("dateTime", "2024-01-31T23:59:59.25", Kind.DATETIME, datetime.datetime(2024, 1, 31, 23, 59, 59, 250_000)),
        ("dateTime", "2024-01-31T24:00:00", Kind.DATETIME, datetime.datetime(2024, 2, 1)),
        ("dateTime", "2024-01-31", Kind.OTHER, None),
        ("dateTime", "2024-01-31 10:00:00", Kind.OTHER, None),
        ("dateTime", "2024-01-31T10:00", Kind.OTHER, None),
        ("dateTime", "2024-01-31T25:00:00", Kind.OTHER, None),
        (
            "dateTime",
            "2024-01-31T23:00:00+05:30",
            Kind.ZONED,
            datetime.datetime(2024, 1, 31, 17, 30, tzinfo=datetime.UTC),
        ),
        (
            "dateTime",
            "2024-01-31T23:00:00Z",
            Kind.ZONED,
            datetime.datetime(2024, 1, 31, 23, tzinfo=datetime.UTC),
        ),
        ("dateTime", "2024-01-31T23:00:00+15:00", Kind.OTHER, None),
        ("dateTime", "2024-01-31T23:00:00 Europe/Berlin", Kind.OTHER, None),
        ("time", "13:20:00.5", Kind.TIME, datetime.time(13, 20, 0, 500_000)),
        ("time", "24:00:00", Kind.TIME, datetime.time(0)),
        ("time", "13:20", Kind.OTHER, None),
        ("anyURI", "http://a/", Kind.OTHER, None),
        ("duration", "P1D", Kind.TEMPORAL, None),
    ],
)
def test_kinds(
    values: Callable[[str, str], dict[str, Any]], datatype: str, lexical: str, kind: Kind, value: Any
) -> None:
    row = values(datatype, lexical)
    column = {Kind.DOUBLE: "number"}.get(kind, kind.name.lower())
    assert Kind(row["kind"]) == kind
    numeric = kind in (Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE)
    expected = {column: value, **({"number": float(value)} if numeric else {})} if value is not None else {}
    columns = "integer number decimal boolean date datetime zoned time".split()
    assert {name: row[name] for name in columns if row[name] is not None} == expected
    assert (row["text"] is None) == (kind == Kind.INTEGER and str(value) == lexical)


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], dict[str, Any]]:
    """Load one literal of each kind case (all in one load) and look one up."""
    cases = next(mark for mark in test_kinds.pytestmark if mark.name == "parametrize").args[1]  # type: ignore[attr-defined]
    db = Loaded(tmp_path_factory.mktemp("kinds"))
    db.connection.execute("SET TimeZone = 'America/New_York'")
    db.load("".join(f'<ex:s> <ex:p> "{lexical}"^^<{XSD}{datatype}> .\n' for datatype, lexical, *_ in cases))

    others = (Kind.DECIMAL, Kind.BOOLEAN, Kind.DATE, Kind.DATETIME, Kind.ZONED, Kind.TIME)
    typed = ", ".join(f'{VALUE_SQL[kind].format("literal")} AS "{kind.name.lower()}"' for kind in others)

    def find(datatype: str, lexical: str) -> dict[str, Any]:
        relation = db.connection.execute(
            f"SELECT *, {typed} FROM _graphdb.literal WHERE datatype = ? AND lexical = ?", [XSD + datatype, lexical]
        )
        names = [column[0] for column in relation.description]
        [row] = relation.fetchall()
        return dict(zip(names, row, strict=True))

    return find


def test_nan_and_strings(db: Loaded) -> None:
    db.load(
        f'<ex:s> <ex:p> "NaN"^^<{XSD}double> .\n<ex:s> <ex:p> "1" .\n'
        '<ex:s> <ex:p> "1"@en .\n<ex:s> <ex:p> "x"^^<ex:t> .'
    )
    assert db.rows("SELECT lexical, datatype, language, kind, isnan(number) FROM _graphdb.literal") == [
        ("NaN", XSD + "double", None, Kind.DOUBLE, True),
        ("1", None, None, Kind.STRING, None),
        ("1", None, "en", Kind.LANGSTRING, None),
        ("x", "ex:t", None, Kind.OTHER, None),
    ]


# --- statistics ---


def test_statistics_equal_a_recount(db: Loaded) -> None:
    """After each of several loads, what the catalog states is what plain Python counts."""
    for part in range(3):
        lines = [f"<ex:{i % (5 + part)}> <ex:p{i % 3}> <ex:{i * i % 13}> ." for i in range(40 * part, 40 * part + 60)]
        lines += [
            f'<ex:{i % 9}> <ex:v{part % 2}> "{i % 4}"^^<{XSD}{("integer", "double", "date")[i % 3]}> .'
            for i in range(30)
        ]
        lines += [f"<ex:{i}> <{RDF_TYPE}> <ex:T{i % (part + 2)}> ." for i in range(10 * part, 10 * part + 12)]
        lines += [f'<ex:1> <{RDF_TYPE}> "no class" .']
        db.load("\n".join(lines), f"{part}.nt")
        triples = db.rows("SELECT subject, label, object FROM _graphdb.triple")
        kinds = dict(db.rows("SELECT id, kind FROM _graphdb.literal"))
        iris = dict(db.rows("SELECT id, iri FROM _graphdb.resource"))
        expected = {}
        for label in {p for _, p, _ in triples}:
            edges = [(s, o) for s, p, o in triples if p == label]
            out, into = collections.Counter(s for s, _ in edges), collections.Counter(o for _, o in edges)
            literals = [(s, o) for s, o in edges if o >= LITERAL_BASE]
            expected[iris[label]] = (
                len(edges),
                len(edges) - len(literals),
                len(out),
                len(into),
                max(out.values()),
                max(into.values()),
                sum(1 << kind for kind in {kinds[o] for _, o in literals}),
                max(collections.Counter(s for s, _ in literals).values(), default=0),
            )
        found = {
            e.iri: (
                e.triples,
                e.resource_triples,
                e.subjects,
                e.objects,
                e.max_out_degree,
                e.max_in_degree,
                e.kinds,
                e.max_values,
            )
            for e in db.catalog.labels()[0]
        }
        assert found == expected
        classes = collections.Counter(iris[o] for _, p, o in triples if iris[p] == RDF_TYPE and o < LITERAL_BASE)
        assert {v.iri: v.vertices for v in db.catalog.labels()[1]} == classes
