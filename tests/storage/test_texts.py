"""Texts by how they begin, and the names of blank nodes in batches that are applied."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from graphdb.common import arrow
from graphdb.common.errors import QueryTimeout
from graphdb.common.stopping import stopping
from graphdb.storage.arrays import texts
from graphdb.storage.arrays.texts import beginning_with
from graphdb.storage.loaders.patch import operations


@pytest.mark.parametrize("seed", range(20))
def test_texts_by_how_they_begin(seed: int) -> None:
    draw = random.Random(seed)
    given = [draw.choice([None, "".join(draw.choices("_:é", k=draw.randrange(5)))]) for _ in range(draw.randrange(60))]
    for prefix in ("_", "_:", "_:é", ":_:_:"):
        expected = [place for place, text in enumerate(given) if text is not None and text.startswith(prefix)]
        plain = arrow.array(given, arrow.STRING)
        numbers = np.array([place if text is not None else 0 for place, text in enumerate(given)], np.int32)
        there = np.array([text is not None for text in given], bool)
        for array in (
            plain,
            plain.cast(arrow.LARGE_STRING),
            arrow.dictionary_array(arrow.numbers(numbers, there), plain),
        ):
            assert beginning_with(prefix.encode(), array).tolist() == expected
            begin = draw.randrange(3)
            part = [place - begin for place in expected if begin <= place]
            assert beginning_with(prefix.encode(), array.slice(begin)).tolist() == part


def test_blank_nodes_are_named_as_the_text_names_them() -> None:
    lines = '_:a <x:f0_> _:f0_ .\n<x:_:f0_b> <x:p> _:é .\n_:a <x:p> "_:f0_"@de .\n<x:p> <x:p> "1"^^<x:t> .\n'
    found = operations(lines.encode(), np.ones(4, bool), "batch")
    assert sorted(arrow.pylist(found.resources)) == sorted(["_:a", "x:f0_", "_:f0_", "x:_:f0_b", "x:p", "_:é"])
    assert sorted(zip(*map(arrow.pylist, found.literals), strict=True)) == [("1", "x:t", None), ("_:f0_", None, "de")]
    nothing = operations(b"\n", np.empty(0, bool), "batch")
    assert (len(nothing.resources), [len(column) for column in nothing.literals]) == (0, [0, 0, 0])


def test_whichever_bits_tell_integers_apart_they_are_numbered_as_quickly() -> None:
    """In seconds of this thread: where all have one slot, 20,000 take a thousand times as long."""
    seconds = []
    for factor in (1, 1, 977, 0x1_0000_0001, 1 << 32, 1 << 46, (1 << 46) + 1):
        given, started = np.arange(20_000) * factor, time.thread_time()
        assert np.array_equal(texts.number_integers(given)[1], np.arange(20_000))
        seconds.append(time.thread_time() - started)
    assert max(seconds[1:]) < 30 * seconds[1] + 0.01


@pytest.mark.parametrize("factor", [1, 977, 1 << 46])
@pytest.mark.parametrize("buckets", [1, 40, 3000])
def test_pairs_of_a_bucket_and_an_integer(buckets: int, factor: int) -> None:
    """Against NumPy's own order of first occurrences; one bucket has half of the rows, some have none."""
    draw = np.random.default_rng(7)
    for rows in (0, 1, 20_000):
        bucket = np.where(draw.random(rows) < 0.5, buckets // 2, draw.integers(0, buckets, rows))
        value = (draw.integers(0, 300, rows) - 150) * factor
        numbers, firsts = texts.number_pairs(bucket, value, buckets + 2)
        _, expected, which = np.unique(np.stack((bucket, value)), axis=1, return_index=True, return_inverse=True)
        assert np.array_equal(firsts, np.sort(expected))
        assert np.array_equal(firsts[numbers], expected[which.reshape(-1)])


@pytest.mark.parametrize("nulls", [0.0, 0.2])
@pytest.mark.parametrize("factor", [1, 977, 0x1_0000_0001, 1 << 32, 1 << 46])
def test_integers_of_a_table_that_no_cache_holds(nulls: float, factor: int) -> None:
    """Piece by piece, against NumPy's own order of first occurrences."""
    draw = np.random.default_rng(7)
    given = draw.integers(0, 200_000, 400_000) * factor - (1 << 62)
    there = draw.random(len(given)) >= nulls
    different, numbers = texts.Different(), np.empty(len(given), np.int32)
    for begin, end in ((0, 100), (100, 390_000), (390_000, 390_020), (390_020, len(given))):
        piece = arrow.numbers(given[begin:end], there[begin:end] if nulls else None)
        different.number_array(piece, numbers[begin:end])
    distinct, firsts = np.unique(given[there], return_index=True)
    assert np.array_equal(different.values, distinct[np.argsort(firsts)])
    assert np.array_equal(numbers >= 0, there)
    assert np.array_equal(different.values[numbers[there]], given[there])


@pytest.mark.parametrize("type", [arrow.INT64, arrow.INT32, arrow.FLOAT64, arrow.STRING, arrow.BOOL])
def test_more_different_values_than_a_table_has_room_for(type: arrow.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbered in the order in which they first come, whatever the table's size, against a dictionary."""
    monkeypatch.setattr(texts, "_FEW", 3)
    draw = random.Random(4)
    makes = {
        arrow.INT64: lambda: draw.choice([draw.randint(-5, 5), draw.randint(-(1 << 63), (1 << 63) - 1)]),
        arrow.INT32: lambda: draw.randint(-100, 100),
        arrow.FLOAT64: lambda: draw.choice([0.5, -0.0, draw.random()]),
        arrow.STRING: lambda: "".join(draw.choices("aé", k=draw.choice([0, 1, 3, 4, 5, 7, 8, 9, 16, 17, 40]))),
        arrow.BOOL: lambda: draw.random() < 0.5,
    }
    for size in (0, 1, 5, 500):
        for none in (0.0, 0.3):
            made = [None if draw.random() < none else makes[type]() for _ in range(size)]
            different = list(dict.fromkeys(value for value in made if value is not None))
            for wanted in (np.int32, np.int64):
                values, numbers = texts.numbered(arrow.array(made, type), wanted)
                assert arrow.pylist(values) == different
                assert numbers.dtype == wanted
                assert numbers.tolist() == [-1 if value is None else different.index(value) for value in made]


@pytest.mark.parametrize("column", [arrow.array(["a", "b", "a"], arrow.STRING), arrow.array([7, 8, 7], arrow.INT64)])
def test_values_are_numbered_until_the_statement_must_stop(column: arrow.Array) -> None:
    assert texts.numbered(column)[1].tolist() == [0, 1, 0]
    with stopping(0.0), pytest.raises(QueryTimeout):
        texts.numbered(column)


def test_values_are_numbered_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever these begin and end, and the table of the different ones grows."""
    monkeypatch.setattr(texts, "_FEW", 4)
    monkeypatch.setattr(texts, "_BYTES_AT_ONCE", 20)
    dice = random.Random(7)
    for at_once in (1, 2, 3, 7, 100):
        monkeypatch.setattr(texts, "_AT_ONCE", at_once)
        for _ in range(20):
            given = [dice.choice([None, dice.randrange(30)]) for _ in range(dice.randrange(60))]
            words = [value if value is None else "x" * value + str(value) for value in given]
            for column in (arrow.array(given, arrow.INT64), arrow.array(words, arrow.STRING)):
                different, numbers = texts.numbered(column)
                values = arrow.pylist(column)
                distinct = list(dict.fromkeys(value for value in values if value is not None))
                assert arrow.pylist(different) == distinct
                assert numbers.tolist() == [-1 if value is None else distinct.index(value) for value in values]


@pytest.mark.parametrize(
    ("few", "first", "largest", "ahead"), [(3, 4, 16, 1), (3, 1, 5, 7), (1 << 15, 1 << 18, 1 << 25, 64)]
)
def test_different_texts_of_several_arrays(
    few: int, first: int, largest: int, ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbered as they first come in any of them, against a dictionary; longer ones than a piece of memory, too."""
    for name, value in {"_FEW": few, "_FIRST_STORE": first, "_LARGEST_STORE": largest, "_AHEAD": ahead}.items():
        monkeypatch.setattr(texts, name, value)
    draw = random.Random(few)
    different, known, given = (
        texts.DifferentTexts(),
        dict[str, int](),
        list[np.ndarray[tuple[int], np.dtype[np.int32]]](),
    )
    expected: list[list[int]] = []
    for size in (0, 1, 300, 2, 0, 800):
        made = [
            None if draw.random() < 0.2 else "".join(draw.choices("aé", k=draw.choice([0, 1, 3, 4, 7, 8, 9, 17, 40])))
            for _ in range(size)
        ]
        expected.append([-1 if text is None else known.setdefault(text, len(known)) for text in made])
        array = arrow.array([None, "x", *made], arrow.STRING).slice(2, size)
        given.append(np.empty(size, np.int32))
        different.number(array if size % 100 else array.cast(arrow.LARGE_STRING), given[-1])
        del array
    assert [numbers.tolist() for numbers in given] == expected
    values = different.values()
    assert arrow.pylist(values.combine_chunks()) == list(known)
    assert len(values) == len(known)


def test_no_texts_are_different() -> None:
    different = texts.DifferentTexts()
    assert len(different.values()) == 0
    numbers = np.empty(3, np.int32)
    different.number(arrow.array([None] * 3, arrow.STRING), numbers)
    assert numbers.tolist() == [-1] * 3
    assert arrow.pylist(different.values().combine_chunks()) == []
