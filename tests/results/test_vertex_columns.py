"""Whole vertices, whose properties are taken from columns: they are what was written, and what SQL makes of them."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.common.duckdb.connection import Connection
from graphdb.relational.elements import fetch, vertices
from graphdb.snapshot.terms import Lookup

EX = "http://example.org/"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
XSD = "http://www.w3.org/2001/XMLSchema#"

COUNT = 160
PLUS_TWO = dt.timezone(dt.timedelta(hours=2))
VALUES: dict[str, list[Any]] = {
    "whole": [1, -7, 1 << 60],
    "real": [1.5, float("inf"), -0.25],
    "text": ["", "a", "ü€𝄞", "long" * 50],
    "flag": [True, False],
    "day": [dt.date(2020, 2, 29), dt.date(1, 1, 1)],
    "at": [dt.datetime(2020, 1, 1, 10, 0, 0, 5), dt.datetime(9999, 12, 31, 23, 59, 59)],
    "moment": [dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC), dt.datetime(1969, 1, 1, 10, 0, 0, 1, tzinfo=PLUS_TWO)],
    "utc": [dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC), dt.datetime(1, 1, 1, tzinfo=dt.UTC)],
    "clock": [dt.time(10, 30), dt.time(0, 0, 0, 1)],
    "exact": [Decimal("1.50"), Decimal("-3")],
    "numbers": [[1, 2], [], [3, None]],
    "texts": [["a", "b"], ["ü,\n"]],
    "mixed list": [[1, "a"], [2.5, True]],
    "mixed": [1, "one", 2.5, True],
    "apart": [1, [1, 2], "x"],
}


def values_of(chance: random.Random, often: float) -> dict[str, Any]:
    return {key: chance.choice(values) for key, values in VALUES.items() if chance.random() < often}


def expected(value: Any) -> Any:
    """Numbers as decimals without the zeros at the end."""
    return Decimal("1.5") if value == Decimal("1.50") and isinstance(value, Decimal) else value


@pytest.fixture(scope="module")
def written() -> list[tuple[list[str], dict[str, Any]]]:
    """Labels and properties of some vertices: all of those of one label have all."""
    chance = random.Random(7)
    rows: list[tuple[list[str], dict[str, Any]]] = []
    for i in range(COUNT):
        labels = [["All"], ["Some"], ["Some", "Other"], []][i % 4]
        rows.append((labels, {"i": i, **values_of(chance, 1.0 if i % 4 == 0 else 0.5)}))
    return rows


@contextmanager
def opened(written: list[tuple[list[str], dict[str, Any]]]) -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        for labels in ([], ["All"], ["Some"], ["Some", "Other"]):
            rows = [properties for of, properties in written if of == labels]
            create = f"CREATE (n{''.join(':' + label for label in labels)})"
            database.query(f"UNWIND $rows AS row {create} SET n = row", rows=rows)
        yield database


@pytest.fixture(scope="module")
def db(written: list[tuple[list[str], dict[str, Any]]]) -> Iterator[graphdb.Database]:
    with opened(written) as database:
        yield database


@pytest.fixture
def by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads whole vertices otherwise fails."""
    monkeypatch.setattr(fetch, "_read", None)
    monkeypatch.setattr(fetch, "_looked_up", None)


def whole(rows: list[tuple[Any, ...]]) -> list[Any]:
    return [(v.iri, v.labels, dict(v.properties)) for row in rows for v in row if isinstance(v, graphdb.Node)]


@pytest.mark.usefixtures("by_columns")
def test_vertices_are_what_was_written(db: graphdb.Database, written: list[tuple[list[str], dict[str, Any]]]) -> None:
    for _ in range(2):
        rows = db.query("MATCH (n) RETURN n, n.i AS i ORDER BY i").fetchall()
        assert [i for _, i in rows] == list(range(COUNT))
        for (n, _), (labels, properties) in zip(rows, written, strict=True):
            assert n.labels == tuple(sorted(labels))
            assert repr(n.properties) == repr({key: expected(properties[key]) for key in n.properties})
            assert n.properties.keys() == properties.keys()
    for label, count in (("All", COUNT // 4), ("Some", COUNT // 2)):
        found = db.query(f"MATCH (n:{label}), (m:{label}) RETURN n, m").fetchall()
        assert len(found) == count**2
        assert len({id(n) for row in found for n in row}) == count  # each is made once


@pytest.mark.parametrize("looked_up", [False, True], ids=["by SQL", "looked up"])
def test_they_are_what_sql_makes(db: graphdb.Database, looked_up: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("MATCH (n) RETURN n ORDER BY n.i", "MATCH (n:All) RETURN [n] ORDER BY n.i"):
        by_columns = db.query(text).fetchall()
        with monkeypatch.context() as patched:
            patched.setattr(vertices, "LEAST", 1 << 40)
            patched.setattr(Lookup, "ready", lambda *_, **__: looked_up)
            others = db.query(text).fetchall()
        assert repr(by_columns) == repr(others)


def test_a_handful_is_taken_from_the_columns_that_are_there(
    db: graphdb.Database, written: list[tuple[list[str], dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Lookup, "ready", lambda *_, **__: False)  # as in a large graph
    asked: list[str] = []
    rows_of = Connection.arrow
    monkeypatch.setattr(Connection, "arrow", lambda self, sql, *given: asked.append(sql) or rows_of(self, sql, *given))
    for i in (4, 5, 6, 7) * 6:
        asked.clear()
        [(n,)] = db.query("MATCH (n {i: $i}) RETURN n", i=i).fetchall()
        labels, properties = written[i]
        assert (n.labels, n.properties) == (tuple(sorted(labels)), properties)
    assert len(asked) <= 3  # labels, IRIs, and what is no column


def test_they_follow_changes_and_results_do_not(
    written: list[tuple[list[str], dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "MATCH (n) RETURN n ORDER BY n.i"
    with opened(written) as db:
        former = db.query(text)
        with monkeypatch.context() as patched:
            patched.setattr(fetch, "_read", None)
            patched.setattr(fetch, "_looked_up", None)
            first = whole(db.query(text).fetchall())
            db.query("BEGIN")
            db.query("MATCH (n:Some) SET n.whole = n.i, n.new = toString(n.i) REMOVE n.text")
            inside = whole(db.query(text).fetchall())
            db.query("MATCH (n:All) SET n:Further REMOVE n.flag")
            db.query("COMMIT")
            after = whole(db.query(text).fetchall())
        assert whole(former.fetchall()) == first
    for (iri, labels, old), (same, _, between), (_, now, new) in zip(first, inside, after, strict=True):
        assert iri == same
        if "Some" in labels:
            without = {key: value for key, value in old.items() if key != "text"}
            assert between == new == {**without, "whole": old["i"], "new": str(old["i"])}
        elif labels == ("All",):
            assert between == old
            assert now == ("All", "Further")
            assert new == {key: value for key, value in old.items() if key != "flag"}
        else:
            assert between == new == old


def test_rdf_with_several_values_and_vertices_without_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance, lines, known = random.Random(3), [], {}
    for i in range(80):
        name = f"{EX}v{i}"
        nicks = sorted(chance.sample(["x", "y", "z"], chance.randrange(4)))
        lines += [f'<{name}> <{EX}nick> "{nick}"@en .' for nick in nicks]
        lines += [f"<{name}> <{TYPE}> <{EX}{label}> ." for label in ("B", "A")[i % 2 :]]
        lines.append(f'<{name}> <{EX}size> "{i}.50"^^<{XSD}decimal> .')
        lines.append(f"<{name}> <{EX}near> <{EX}v{i * 7 % 80}> .")
        nick = {f"{EX}nick": nicks if len(nicks) > 1 else nicks[0]} if nicks else {}
        labels = (f"{EX}A",) if i % 2 else (f"{EX}A", f"{EX}B")
        known[name] = labels, {**nick, f"{EX}size": Decimal(f"{i}.5")}
    (tmp_path / "some.nt").write_text("\n".join(lines))
    with graphdb.connect(device="cpu", threads=1) as database:
        database.load(tmp_path / "some.nt")
        with monkeypatch.context() as patched:
            patched.setattr(fetch, "_read", None)
            patched.setattr(fetch, "_looked_up", None)
            for _ in range(2):
                found = database.query(f"MATCH (n)-[:<{EX}near>]->(m) RETURN n, m").fetchall()
                assert {iri: (labels, properties) for iri, labels, properties in whole(found)} == known
        (tmp_path / "more.nt").write_text(f'<{EX}none> <{EX}size> "7"^^<{XSD}integer> .')
        database.load(tmp_path / "more.nt")  # whose properties no label says
        found = database.query(f"MATCH (n) WHERE n.<{EX}size> IS NOT NULL RETURN n").fetchall()
        assert {iri: (labels, p) for iri, labels, p in whole(found)} == {**known, f"{EX}none": ((), {f"{EX}size": 7})}
