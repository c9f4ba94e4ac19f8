"""The hash index of terms: it numbers them as a dict does, whatever pages and runs there are."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.common import arrow
from graphdb.common.values.terms import LITERAL_BASE, XSD, Kind
from graphdb.storage.arrays.arrow import ArrowViews
from graphdb.storage.catalog import SCHEMA_VERSION, Catalog
from graphdb.storage.dictionary import hash_index, known_hashes, literal_kinds
from graphdb.storage.dictionary.terms import Numbering
from graphdb.storage.file import ddl
from tests.fuzz import scaled

SORTS = ((None, None, Kind.STRING), (XSD + "integer", None, Kind.INTEGER), (None, "en", Kind.LANGSTRING))
"""What literals are by their number: datatype, language, kind."""


def literal(i: int) -> tuple[str, str | None, str | None]:
    """A literal: three of each lexical form."""
    return (str(i // 3), *SORTS[i % 3][:2])


def numbered(known: dict[Any, int], terms: list[Any], base: int) -> list[int]:
    """Number terms as the dictionary should."""
    return [known.setdefault(term, base + len(known)) for term in terms]


def in_pages(connection: duckdb.DuckDBPyConnection, table: str, base: int) -> int:
    """Return up to which id, from 0, terms are in runs, having looked that each is there once, sorted by hash."""
    noted = Catalog(connection).meta(f"{table}_key")
    if noted is None or noted == "wanted":
        return 0
    end = base
    pages = dict(connection.execute(f"SELECT page, data FROM _graphdb.{table}_key").fetchall())
    for run in (hash_index._Run(*map(int, text.split(","))) for text in noted.split()[1:]):
        assert run.first == end
        entries = np.frombuffer(b"".join(pages.pop(run.page + page) for page in range(run.pages)), np.uint64)
        assert (entries[1:] > entries[:-1]).all()
        assert sorted((entries & hash_index._LOW).tolist()) == list(range(run.size))
        end += run.size
    assert not pages
    return end - base


SOME = st.sets(st.integers(0, 99), max_size=40).map(sorted)
STEPS = st.lists(st.tuples(SOME, SOME, st.sampled_from(("commit", "commit", "rollback", "reopen"))), max_size=8)
LIMITS = st.fixed_dictionaries(
    {
        "SMALL_LOOKUP": st.sampled_from((0, 32)),
        "SHARE": st.sampled_from((0, 3)),
        "SMALL": st.sampled_from((1, 10)),
        "RUN": st.sampled_from((1, 4, 10)),
        "PAGE": st.sampled_from((1, 3)),
        "PART": st.sampled_from((7, 100)),
        "_TIER": st.sampled_from((0, 1, 3)),
        "_APART": st.sampled_from((0, 16)),
        "_HASH": st.sampled_from((hash_index._HASH, np.uint64(0), np.uint64(0xE << 60), np.uint64(0xFF << 32))),
    }
)


@settings(max_examples=scaled(25), deadline=None)
@given(steps=STEPS, limits=LIMITS)
def test_terms_are_numbered_as_by_a_dict(steps: list[Any], limits: dict[str, Any]) -> None:
    """Known terms keep their ids and new ones get the next, whatever is a run, a page, rolled back, or of one hash."""
    resources: dict[str, int] = {}
    literals: dict[Any, int] = {}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(hash_index, name, value)
        connection = duckdb.connect(f"{folder}/db.duckdb")
        Catalog(connection).create()
        for iris, values, then in steps:
            before = dict(resources), dict(literals)
            connection.begin()
            numbering = Numbering(connection, ArrowViews(connection))
            for part in (iris[::2], iris):  # those of the first part are staged when the others come
                names = [f"ex:{i}" for i in part]
                assert numbering.resources(arrow.array(names, arrow.STRING)).tolist() == numbered(resources, names, 0)
            if values:
                columns = zip(*map(literal, values), strict=True)
                ids = numbering.literals(*(arrow.array(column, arrow.STRING) for column in columns))
                assert ids.tolist() == numbered(literals, values, LITERAL_BASE)
                numbering.store()
                known, found = numbering.kinds.of(np.append(ids, LITERAL_BASE + 500))
                assert known.tolist() == [True] * len(ids) + [False]
                assert found.tolist() == [SORTS[i % 3][2] for i in values] + [0]
            numbering.store()
            if then == "rollback":
                connection.rollback()
                resources, literals = before
            else:
                connection.commit()
            if then == "reopen":
                connection.close()
                connection = duckdb.connect(f"{folder}/db.duckdb")
            for table, base, terms in (("resource", 0, resources), ("literal", LITERAL_BASE, literals)):
                assert in_pages(connection, table, base) <= len(terms)
        connection.close()


def numbering_of(size: int) -> tuple[duckdb.DuckDBPyConnection, Numbering]:
    """A dictionary of so many resources, in a transaction."""
    connection = duckdb.connect()
    Catalog(connection).create()
    connection.execute("INSERT INTO _graphdb.resource SELECT range, 'ex:' || range FROM range(?)", [size])
    connection.begin()
    return connection, Numbering(connection, ArrowViews(connection))


def test_runs_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes bit by bit is merged: there are no more runs than the logarithm of the terms."""
    monkeypatch.setattr(hash_index, "RUN", 10)
    monkeypatch.setattr(hash_index, "SMALL", 10)
    connection, numbering = numbering_of(1000)
    for i in range(100):
        assert numbering.resources(arrow.array([f"ex:{i}", *(f"ex:{1000 + 10 * i + j}" for j in range(10))]))[0] == i
        numbering.store()
    noted = (Catalog(connection).meta("resource_key") or "").split()[1:]
    assert 1 <= len(noted) <= 6
    assert in_pages(connection, "resource", 0) > 1900


def test_many_terms_want_pages_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are made at once for a few terms; for more when they are looked for again; not for a large part of all."""
    monkeypatch.setattr(hash_index, "RUN", 100)
    monkeypatch.setattr(hash_index, "SMALL", 100)
    made = []
    for count in (2, 40, 900):
        connection, numbering = numbering_of(1000)
        for _ in range(2):
            assert numbering.resources(arrow.array([f"ex:{i}" for i in range(count)])).tolist() == list(range(count))
            made.append(in_pages(connection, "resource", 0))
    assert made == [1000, 1000, 0, 1000, 0, 0]


def test_another_version_of_duckdb_makes_its_own_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hash_index, "RUN", 100)
    monkeypatch.setattr(hash_index, "SMALL", 100)
    connection, numbering = numbering_of(1000)
    assert numbering.resources(arrow.array(["ex:7"])).tolist() == [7]
    connection.execute("UPDATE _graphdb.resource_key SET data = ''::BLOB")
    connection.execute("UPDATE _graphdb.meta SET value = '0.1 0,1000,0,3' WHERE key = 'resource_key'")
    numbering = Numbering(connection, ArrowViews(connection))
    assert numbering.resources(arrow.array(["ex:7", "ex:x"])).tolist() == [7, 1000]
    assert in_pages(connection, "resource", 0) == 1000


def test_a_file_with_pages_is_opened_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a file is compared with when it is opened has these tables as DuckDB writes them."""
    for name in ("RUN", "SMALL", "SMALL_LOOKUP"):
        monkeypatch.setattr(hash_index, name, 1)
    monkeypatch.setattr(hash_index, "SHARE", 0)
    path = tmp_path / "db.duckdb"
    for number in range(4):
        with graphdb.connect(path) as db:
            lines = (f'<e:{i}> <e:p> "{i}" .' for i in range(50 * number, 50 * number + 100))
            db.load(io.BytesIO("\n".join(lines).encode()), "nt")
    with graphdb.connect(path) as db:
        pages = db.sql("SELECT table_name FROM duckdb_tables() WHERE table_name LIKE '%_key' ORDER BY 1").fetchall()
        assert pages == [("literal_key",), ("resource_key",)]
        assert db.query("MATCH (n) WHERE n.p IS NOT NULL RETURN count(*)").scalar() == 250


def test_hashes_of_version_4_go() -> None:
    """A file with a table of hashes, as they were, gets pages."""
    connection, _ = numbering_of(hash_index.SMALL)
    connection.execute("CREATE TABLE _graphdb.resource_key (hash UBIGINT NOT NULL, id BIGINT NOT NULL)")
    connection.execute(f"INSERT INTO _graphdb.meta VALUES ('resource_key', '{duckdb.__version__} {hash_index.SMALL}')")
    for later in ("edge_graph", "continuous_query", "batch", "counted"):
        connection.execute(f"DROP TABLE _graphdb.{later}")
    connection.execute(f"CREATE OR REPLACE TABLE _graphdb.literal ({ddl.FORMER['literal'][10]})")
    connection.execute("UPDATE _graphdb.meta SET value = '4' WHERE key = 'schema_version'")
    connection.commit()
    Catalog(connection).migrate()
    assert Catalog(connection).schema_version == SCHEMA_VERSION
    connection.begin()
    assert Numbering(connection, ArrowViews(connection)).resources(arrow.array(["ex:7"])).tolist() == [7]
    assert in_pages(connection, "resource", 0) == hash_index.SMALL


def test_new_terms_after_known_ones() -> None:
    """New terms, more than a few, come after a batch in which all were known."""
    _, numbering = numbering_of(5)
    assert numbering.resources(arrow.array(["ex:1"])).tolist() == [1]
    assert numbering.resources(arrow.array([f"ex:{i}" for i in range(60)])).tolist() == list(range(60))


def test_kinds_are_kept_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where literals are many, their kinds are not known: what wants them asks."""
    monkeypatch.setattr(literal_kinds, "MOST", 5)
    connection, numbering = numbering_of(1)
    known = []
    for values in (range(4), range(4), range(4, 14), range(20, 22)):
        columns = zip(*map(literal, values), strict=True)
        ids = numbering.literals(*(arrow.array(column, arrow.STRING) for column in columns))
        numbering.store()
        known.append(numbering.kinds.of(ids)[0].all())
    assert known == [True, True, False, True]
    connection.close()


@pytest.mark.parametrize("small", [10, 1_000_000])
def test_terms_that_are_known_by_their_hashes(small: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No literal comes twice, and none is taken for another, whatever is rolled back, loaded or reclaimed between."""
    monkeypatch.setattr(hash_index, "SMALL", small)
    monkeypatch.setattr(hash_index, "SHARE", 1)
    monkeypatch.setattr(hash_index, "RUN", 60)
    monkeypatch.setattr(known_hashes, "LOOKS", 1)
    monkeypatch.setattr(known_hashes, "_TERMS", 8)  # others are looked for
    asked: list[int] = []
    integers = 0
    numbers = known_hashes.KnownHashes.numbers

    def noted(self: known_hashes.KnownHashes, hashes: np.ndarray) -> np.ndarray:
        asked.append(len(hashes))
        return numbers(self, hashes)

    monkeypatch.setattr(known_hashes.KnownHashes, "numbers", noted)
    create = "CREATE (:T {i: $i, j: $i % 7, name: toString($i % 30)})"
    seen: list[int] = []
    with graphdb.connect(tmp_path / "db.duckdb", device="cpu") as db:
        db.query("UNWIND range(1000, 1100) AS i CREATE (:T {i: i})")
        for step in range(60):
            if step % 20 == 13:
                db.sql("BEGIN")
                db.query(create, i=step + 1)
                db.query(create, i=-step)
                db.sql("ROLLBACK")
            elif step % 20 == 17:
                text = f'<e:a> <e:p> "{step + 1}", "{-step}", 0{step + 2}, "{step + 3}"^^<{XSD}int> .'
                db.load(io.BytesIO(text.encode()), "ttl")
            elif step == 35:
                db.query("MATCH (n:T {i: 3}) DETACH DELETE n")
                db.sql("VACUUM")
                seen.remove(3)
            else:
                db.query(create, i=step)
                seen.append(step)
            counts = "SELECT count(*), count(DISTINCT (lexical, datatype, language)) FROM _graphdb.literal"
            ((terms, distinct),) = db._state.connection.raw.execute(counts).fetchall()
            assert terms == distinct
            db._state.refresh()
            if (known := db._state.degrees().hashes["literal"].integers) is not None:
                rows = db._state.connection.raw.execute("SELECT lexical, datatype FROM _graphdb.literal ORDER BY id")
                plain = [int(text) if type == XSD + "integer" and text == str(int(text)) else known_hashes.OTHER
                         for text, type in rows.fetchall()]  # fmt: skip
                assert known.tolist() == plain[: len(known)]
                integers += 1
        query = "MATCH (n:T) WHERE n.i < 1000 RETURN n.i, n.j, n.name ORDER BY n.i"
        assert db.query(query).fetchall() == [(i, i % 7, str(i % 30)) for i in seen]
    assert len(asked) > 30
    assert integers > 20
