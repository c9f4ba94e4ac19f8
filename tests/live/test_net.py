"""Rows that come and go in one batch are none of its changes, however many of equal ones there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import duckdb
import pytest

from graphdb.live.answers import ADDED, FRESH, REMOVED, Answer
from graphdb.live.definitions import Definition

Row = tuple[object, ...]


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


def _make(connection: duckdb.DuckDBPyConnection, table: str, types: Sequence[str], rows: Sequence[Row]) -> None:
    columns = ", ".join(f'"a ""{i}" {type}' for i, type in enumerate(types))
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {table[5:]} ({columns})")
    for row in rows:
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _text(row: Row) -> str:
    return repr(row).replace("-0.0", "0.0")


@pytest.mark.parametrize("likely", [False, True])
@pytest.mark.parametrize(
    ("types", "added", "removed"),
    [
        (("BIGINT", "VARCHAR"), [(1, "x"), (2, None)], [(1, "y"), (2, "z")]),
        (("BIGINT", "VARCHAR"), [(1, None)] * 3 + [(None, None)], [(1, None)] * 2 + [(3, "x")]),
        (("BIGINT",), [(1,)], [(1,)]),
        (("BIGINT",), [(1,), (1,)], [(2,)]),
        (("BIGINT",), [], [(2,)]),
        (("BIGINT",), [(2,)], []),
        (("DOUBLE",), [(float("nan"),), (0.0,), (0.5,)], [(float("nan"),), (-0.0,)]),
        (("INTEGER[]", "STRUCT(x INTEGER)"), [([1, None], {"x": None})], [([1, None], {"x": None}), ([], {"x": 1})]),
        (("INTEGER[]",), [([1, None],), (None,)], [([1],), ([],)]),
    ],
)  # fmt: skip
def test_what_both_have_is_left_out(
    connection: duckdb.DuckDBPyConnection, types: Sequence[str], added: list[Row], removed: list[Row], likely: bool
) -> None:
    _make(connection, ADDED, types, added)
    _make(connection, REMOVED, types, removed)
    answer = Answer(connection, Definition(1, "q", ""))
    answer.net(likely=likely)
    come, gone = (Counter(map(_text, rows)) for rows in (added, removed))
    for table, left in ((ADDED, come - gone), (REMOVED, gone - come)):
        found = connection.execute(f"FROM {table}").fetchall()
        assert Counter(map(_text, found)) == left
        assert answer.count(table) == len(found)
    tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert likely or ((FRESH[5:],) in tables) == bool(come & gone)  # nothing is made where they have no row in common


def test_numbers_of_rows_are_asked_again_after_a_statement(connection: duckdb.DuckDBPyConnection) -> None:
    _make(connection, ADDED, ("BIGINT",), [(1,)])
    answer = Answer(connection, Definition(1, "q", ""))
    assert answer.count(ADDED) == 1
    answer.run(f"INSERT INTO {ADDED} VALUES (2)")
    assert answer.count(ADDED) == 2
