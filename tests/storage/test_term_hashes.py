"""Hashes of terms are DuckDB's: whatever texts there are, and whatever function DuckDB has."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphdb
from graphdb.storage.dictionary import term_hashes
from tests.fuzz import scaled

text = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.just("x" * 2000))


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as found:
        yield found


@settings(max_examples=scaled(200), deadline=None)
@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[text] * width), min_size=1, max_size=6)))
def test_they_are_those_of_a_table(connection: duckdb.DuckDBPyConnection, terms: list[tuple[str | None, ...]]) -> None:
    columns = ", ".join(f"c{i}" for i in range(len(terms[0])))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE term ({', '.join(f'{c} VARCHAR' for c in columns.split(', '))})")
    connection.executemany(f"INSERT INTO term VALUES ({', '.join('?' * len(terms[0]))})", terms)
    wanted = connection.execute(f"SELECT hash({columns}) FROM term ORDER BY rowid").fetchall()
    assert term_hashes.hashes_of(connection, terms).tolist() == [hash for (hash,) in wanted]


def test_python_computes_them_with_this_version_of_duckdb(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that has another function needs another one here: until then each insert asks for one statement more."""
    monkeypatch.setattr(term_hashes, "_same", None)
    term_hashes.hashes_of(connection, [("a",)])
    assert term_hashes._same


def test_duckdb_is_asked_where_its_function_is_another_one(
    connection: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_hashes, "_same", None)
    monkeypatch.setattr(term_hashes, "_hash_of_text", lambda text: 5)
    assert term_hashes.hashes_of(connection, [(None,), ("a",)]).tolist() == [
        *connection.execute("SELECT hash(NULL::VARCHAR), hash('a')").fetchone()  # type: ignore[misc]
    ]
    assert term_hashes._same is False


@pytest.mark.parametrize("value", ["\ud800", "a" * 600 + "\udfff"])
def test_texts_that_are_none_are_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a dictionary has an index."""
    monkeypatch.setattr("graphdb.storage.dictionary.hash_index.SMALL", 1)
    with graphdb.connect() as db:
        db.query("UNWIND range(1, 100) AS i CREATE ({name: 'n' + toString(i)})")
        with pytest.raises(graphdb.GraphDBError, match="surrogate"):
            db.query("CREATE ({name: $value})", value=value)
