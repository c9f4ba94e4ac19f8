"""Columns against PyArrow's: values of every type there and back, parts of them, and what others hand over."""

from __future__ import annotations

import gc
import weakref
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.common import arrow
from graphdb.common.duckdb.fetch import register
from tests.fuzz import scaled

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint32": (pa.uint32(), st.integers(0, 2**32 - 1)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "bool": (pa.bool_(), st.booleans()),
    "string": (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
    "large string": (pa.large_string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
    "view": (pa.string_view(), st.text(st.characters(exclude_categories=["Cs"]), max_size=20)),
    "binary": (pa.binary(), st.binary(max_size=9)),
    "fixed": (pa.binary(3), st.binary(min_size=3, max_size=3)),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes()),
    "zoned": (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
    "time": (pa.time64("us"), st.times()),
    "duration": (pa.duration("us"), st.timedeltas(timedelta(days=-(10**6)), timedelta(days=10**6))),
    "decimal": (pa.decimal128(20, 3), st.decimals(-(10**15), 10**15, places=3)),
    "list": (pa.list_(pa.int32()), st.lists(st.none() | st.integers(0, 9), max_size=4)),
    "large list": (pa.large_list(pa.string()), st.lists(st.none() | st.text("aé", max_size=3), max_size=4)),
    "fixed list": (pa.list_(pa.int8(), 2), st.lists(st.integers(0, 9), min_size=2, max_size=2)),
    "struct": (
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(0, 9), "b": st.none() | st.text("xyä", max_size=2)}),
    ),
    "nested": (
        pa.list_(pa.struct([("l", pa.list_(pa.bool_()))])),
        st.lists(st.fixed_dictionaries({"l": st.none() | st.lists(st.booleans(), max_size=2)}), max_size=3),
    ),
    "map": (
        pa.map_(pa.string(), pa.int64()),
        st.lists(st.tuples(st.text("ab", max_size=2), st.integers(0, 9)), max_size=3),
    ),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["red", "green", "blue"])),
    "null": (pa.null(), st.none()),
}


@st.composite
def columns(draw: st.DrawFn) -> pa.ChunkedArray:
    """A column of some type, in pieces, whose first begins somewhere within its buffers."""
    type, values = TYPES[draw(st.sampled_from(sorted(TYPES)))]
    pieces = draw(st.lists(st.lists(st.none() | values, max_size=12), min_size=1, max_size=3))
    arrays = [pa.array(piece, type) for piece in pieces]
    start = draw(st.integers(0, 3))
    return pa.chunked_array([arrays[0][start:], *arrays[1:]], type)


def ours(column: pa.ChunkedArray) -> arrow.ChunkedArray:
    return arrow.table_of(pa.table({"c": column})).column("c")


def theirs(column: arrow.Array | arrow.ChunkedArray) -> pa.ChunkedArray:
    found = pa.table(arrow.table({"c": column}))
    found.validate(full=True)
    return found.column("c")


@settings(max_examples=scaled(300), deadline=None)
@given(columns())
def test_values_are_those_of_pyarrow_and_go_back(column: pa.ChunkedArray) -> None:
    mine = ours(column)
    assert arrow.pylist(mine) == column.to_pylist()
    assert (len(mine), mine.null_count) == (len(column), column.null_count)
    assert theirs(mine).to_pylist() == column.to_pylist()
    assert theirs(mine.combine_chunks()).to_pylist() == column.to_pylist()


@settings(max_examples=scaled(300), deadline=None)
@given(columns(), st.data())
def test_parts_are_those_of_pyarrow(column: pa.ChunkedArray, data: st.DataObject) -> None:
    mine, count = ours(column).combine_chunks(), len(column)
    start, length = data.draw(st.integers(0, count + 2)), data.draw(st.none() | st.integers(0, count))
    expected = column.to_pylist()
    assert arrow.pylist(mine.slice(start, length)) == expected[start:][:length]
    assert theirs(mine.slice(start, length)).to_pylist() == expected[start:][:length]
    at = data.draw(st.lists(st.none() | st.integers(0, count - 1), max_size=9)) if count else []
    places = arrow.array(at, arrow.INT64)
    assert theirs(mine.take(places)).to_pylist() == [None if i is None else expected[i] for i in at]
    assert arrow.pylist(mine.drop_null()) == [value for value in expected if value is not None]
    assert theirs(arrow.concat_arrays([mine.slice(start), mine])).to_pylist() == expected[start:] + expected


@settings(max_examples=scaled(150), deadline=None)
@given(st.data())
def test_columns_are_built_of_python_values_as_pyarrow_builds_them(data: st.DataObject) -> None:
    kinds = ["int64", "double", "bool", "string", "binary", "date", "timestamp", "zoned", "time", "duration", "decimal", "nested", "struct"]  # fmt: skip
    _, values = TYPES[data.draw(st.sampled_from(kinds))]
    some = data.draw(st.lists(st.none() | values, max_size=12))
    assert theirs(arrow.array(some)).to_pylist() == some


@pytest.mark.parametrize(
    "values", [[1, "a"], [True, 1], [object()], [{"a": 1}, [1]], [1, [2]]],
    ids=["text", "truth", "object", "map", "list"],
)  # fmt: skip
def test_values_of_several_types_are_no_column(values: list[Any]) -> None:
    with pytest.raises(arrow.ArrowTypeError):
        arrow.array(values)
    with pytest.raises((pa.ArrowInvalid, pa.ArrowTypeError)):
        pa.array(values)


def test_numbers_that_do_not_fit_and_lone_surrogates_are_no_column() -> None:
    with pytest.raises(OverflowError):
        arrow.array([1 << 70])
    with pytest.raises(UnicodeEncodeError):
        arrow.array(["\ud800"])


def test_dates_and_moments_are_two_types() -> None:
    with pytest.raises(arrow.ArrowTypeError):
        arrow.array([date(2020, 1, 1), datetime(2020, 1, 1, 5)])


def test_rows_of_a_table_are_dictionaries() -> None:
    table = arrow.table({"a": [1, None, 3], "b": ["x", "y", None], "c": [[1], [], None]})
    assert table.to_pylist() == pa.table(table).to_pylist()
    assert table.slice(3).to_pylist() == []
    assert repr(table) == "<Table of 3 rows: a: int64, b: string, c: list<int64>>"


def test_what_was_handed_over_is_given_back() -> None:
    """Arrays that a stream refers to go when who read it drops them, and not before."""
    texts = ["x", None, "z", "", "é"]
    table = arrow.table({"a": np.arange(5), "b": arrow.strings(texts), "t": arrow.array([time(1)] * 5)})
    buffers = [weakref.ref(column.chunks[0].data) for column in table.columns]
    read = pa.table(table)
    del table
    gc.collect()
    assert all(buffer() is not None for buffer in buffers)
    assert read.column("b").to_pylist() == texts
    del read
    gc.collect()
    assert all(buffer() is None for buffer in buffers)


def test_sql_reads_tables_again_and_again_and_gives_them_back() -> None:
    import duckdb

    connection, buffers = duckdb.connect(), []
    for number in range(300):
        numbers = np.full(3, number)
        buffers.append(weakref.ref(numbers))
        register(connection, "t", arrow.table({"a": numbers, "b": arrow.strings(["x", "y", None])}))
        del numbers
        assert connection.execute("SELECT sum(a), count(b) FROM t").fetchall() == [(3 * number, 2)]
        connection.unregister("t")
    connection.close()
    gc.collect()
    assert all(buffer() is None for buffer in buffers)


def test_an_error_of_a_producer_reaches_the_consumer() -> None:
    def failing() -> Any:
        yield pa.record_batch({"a": [1, 2, 3]})
        raise ValueError("no more of this")

    stream = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), failing())
    with pytest.raises(arrow.ArrowError, match="no more of this"):
        arrow.table_of(stream)


def test_a_stream_is_read_in_tables_of_some_size() -> None:
    batches = [[arrow.numbers(np.arange(i, i + 10))] for i in range(0, 100, 10)]
    schema = arrow.schema({"a": arrow.INT64})
    found = list(arrow.Reader(schema, batches).tables(size=200))
    assert [len(table) for table in found] == [30, 30, 30, 10]
    assert [value for table in found for value in table.to_pydict()["a"]] == list(range(100))
    (empty,) = arrow.Reader(schema, []).tables()
    assert (len(empty), empty.column_names) == (0, ["a"])


def test_fields_of_a_struct_that_is_taken_from_nowhere_are_null() -> None:
    structs = arrow.array([{"a": 1, "b": {"c": "x"}}])
    found = structs.take(arrow.array([None, 0]))
    assert arrow.pylist(found) == [None, {"a": 1, "b": {"c": "x"}}]
    assert arrow.pylist(found.field("a")) == [None, 1]
    assert arrow.pylist(found.field("b").field("c")) == [None, "x"]


def test_columns_of_a_batch_have_one_length() -> None:
    table = arrow.Table([arrow.ChunkedArray([arrow.array([1])]), arrow.ChunkedArray([arrow.array([1, 2])])], "ab")
    with pytest.raises(arrow.ArrowError, match="not the same length"):
        pa.table(table)


def test_decimal_numbers_beyond_64_bits() -> None:
    values = [Decimal(10**30), Decimal(-(10**37)), Decimal(-1), None]
    assert arrow.pylist(ours(pa.chunked_array([pa.array(values, pa.decimal128(38, 0))]))) == values


def test_delayed_columns_are_made_for_those_who_read_them() -> None:
    made: list[str] = []

    def delayed(name: str, first: int) -> arrow.DelayedArray:
        def make() -> list[arrow.Array]:
            made.append(name)
            return [arrow.numbers(np.arange(first, first + 3))]

        return arrow.DelayedArray(arrow.INT64, 3, 24, make)

    def rows(first: int) -> arrow.Table:
        return arrow.table({"id": np.arange(3), "a": delayed("a", first), "b": delayed("b", first)})

    table = arrow.concat_tables([rows(10), rows(20)])
    assert (len(table), table.column("a").nbytes, made) == (6, 48, [])
    assert table.select(["id"]).to_pydict() == {"id": [0, 1, 2, 0, 1, 2]}
    with duckdb.connect() as connection:
        register(connection, "rows", table)
        assert connection.execute("SELECT sum(b) FROM rows").fetchall() == [(96,)]
    assert made == ["b", "b"]
    assert table.column("b").slice(2, 2).combine_chunks().to_numpy().tolist() == [12, 20]
    assert table.column("a").null_count == 0
    assert made == ["b", "b", "a", "a"]


def test_parts_of_delayed_columns_make_nothing_else() -> None:
    made: list[tuple[int, int]] = []

    def delayed(first: int, end: int) -> arrow.DelayedArray:
        def make() -> list[arrow.Array]:
            made.append((first, end))
            return [arrow.numbers(np.arange(first, end))]

        part = lambda start, length: delayed(first + start, first + start + length)  # noqa: E731
        return arrow.DelayedArray(arrow.INT64, end - first, 8 * (end - first), make, part)

    table = arrow.concat_tables([arrow.table({"a": delayed(first, first + 5)}) for first in (0, 10, 20)])
    for start, length in [(0, 15), (0, 3), (3, 4), (4, 8), (5, 5), (11, 40), (14, 1), (15, 1), (2, 0)]:
        wanted = [*range(5), *range(10, 15), *range(20, 25)][start : start + length]
        made.clear()
        part = table.part(start, length)
        assert (len(part), made) == (len(wanted), [])
        assert part.to_pydict() == {"a": wanted}
        assert sum(end - first for first, end in made) == len(wanted)
    assert table.slice(3, 4).to_pydict() == table.part(3, 4).to_pydict() == {"a": [3, 4, 10, 11]}


def test_an_integer_for_all_rows_is_in_memory_once() -> None:
    column = arrow.repeated(7, 1000)
    parts = [column.slice(10, 20), column.slice(0, 0), column.slice(500), arrow.numbers(np.arange(3))]
    assert arrow.concat_arrays(parts[:3]).data.strides == (0,)  # type: ignore[union-attr]
    different = arrow.concat_arrays([arrow.repeated(1, 2), arrow.repeated(2, 2)])
    for found, expected in (
        (column, [7] * 1000),
        (arrow.concat_arrays(parts), [7] * 520 + [0, 1, 2]),
        (different, [1, 1, 2, 2]),
    ):
        assert pa.table(arrow.table({"n": found}))["n"].to_pylist() == expected


@pytest.mark.parametrize("dtype", ["i8", "f8", "u1"])
def test_parts_that_follow_one_another_are_joined_without_a_copy(dtype: str) -> None:
    whole = arrow.numbers(np.arange(100).astype(dtype))
    parts = [whole.slice(begin, length) for begin, length in ((3, 10), (13, 1), (14, 50))]
    joined = arrow.concat_arrays(parts)
    assert joined.data is not None
    assert whole.data is not None
    assert np.shares_memory(joined.data, whole.data)
    assert arrow.pylist(joined) == arrow.pylist(whole.slice(3, 61))
    for others in ([parts[1], parts[0]], [parts[0], parts[2]], [parts[0], arrow.numbers(np.arange(4).astype(dtype))]):
        found = arrow.concat_arrays(others)
        assert arrow.pylist(found) == [value for part in others for value in arrow.pylist(part)]
        assert found.data is not None
        assert not np.shares_memory(found.data, whole.data)
