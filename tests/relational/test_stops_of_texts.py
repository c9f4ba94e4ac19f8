"""Functions of long texts, and comparisons of them, by columns: a statement stops within them."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from graphdb.common import arrow
from graphdb.common.errors import QueryTimeout
from graphdb.common.stopping import stopping
from graphdb.relational.vectors import text_order
from graphdb.relational.vectors.text_order import extreme_texts, order_of_different
from graphdb.relational.vectors.typed import texts
from graphdb.storage.arrays.arrow import string_places

FUNCTIONS: list[tuple[str, tuple[object, ...], Callable[[str], object]]] = [
    ("part", (" ", 1), lambda text: dict(enumerate(text.split(" "))).get(1)),
    ("part", (" ", -1), lambda text: text.split(" ")[-1]),
    ("size", (), len),
    ("substring", (2, 3), lambda text: text[2:5]),
    ("left", (3,), lambda text: text[:3]),
    ("right", (3,), lambda text: text[max(len(text) - 3, 0) :]),
    ("toUpper", (), str.upper),
    ("toLower", (), str.lower),
    ("replace", ("ab", "xyz"), lambda text: text.replace("ab", "xyz")),
    ("trim", (), str.strip),
    ("ltrim", (), str.lstrip),
    ("rtrim", (), str.rstrip),
    ("equals", ("ab",), lambda text: text == "ab"),
    ("starts", ("a",), lambda text: text.startswith("a")),
    ("ends", ("b",), lambda text: text.endswith("b")),
    ("contains", ("ba",), lambda text: "ba" in text),
    ("reverse", (), lambda text: text[::-1]),
]


@pytest.mark.parametrize(
    ("name", "constants", "expected"), FUNCTIONS, ids=[f"{name} {given}" for name, given, _ in FUNCTIONS]
)
@pytest.mark.parametrize("nulls", [False, True])
def test_texts_are_handed_to_a_function_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    constants: tuple[object, ...],
    expected: Callable[[str], object],
    nulls: bool,
) -> None:
    dice = random.Random(3)
    given = ["".join(dice.choices("abAB ", k=dice.randrange(9))) for _ in range(60)]
    column = arrow.array([None if nulls and dice.random() < 0.2 else text for text in given], arrow.STRING)
    for bytes_at_once in (1, 7, 40, 1000):
        monkeypatch.setattr(texts, "_AT_ONCE", bytes_at_once)
        for array in (column, column.slice(13, 31)):
            values = arrow.pylist(array)
            found = arrow.pylist(texts.of_texts(name, array, constants))
            assert found == [None if text is None else expected(text) for text in values]


def test_functions_stop() -> None:
    with stopping(0.0), pytest.raises(QueryTimeout):
        texts.of_texts("toUpper", arrow.strings(["a", "b"]))


@pytest.mark.parametrize("at_once", [1, 1 << 24])
def test_least_and_greatest_texts_of_groups(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """In the order of their bytes, whatever they begin with, zeros among them."""
    monkeypatch.setattr(text_order, "_AT_ONCE", at_once)
    dice = random.Random(4)
    given = [
        dice.choice(("", "http://a.b/", "x" * 15)) + "".join(dice.choices("ab\0ü", k=dice.randrange(12)))
        for _ in range(300)
    ]
    column, groups = arrow.strings(given), np.array([dice.randrange(40) for _ in given])
    rows = np.array(sorted(dice.sample(range(300), 250)))
    for name, extreme in (("min", min), ("max", max)):
        found = arrow.pylist(extreme_texts(name, column.slice(0), rows, groups[rows], 41))
        for group in range(41):
            own = [given[row].encode() for row in rows if groups[row] == group]
            assert found[group] == (extreme(own).decode() if own else None)


def test_comparisons_of_texts_that_begin_alike_stop() -> None:
    """They were looked at byte by byte to the end: 100 MB took seconds past a timeout."""
    column = arrow.strings(["a" * 100, "a" * 99 + "b"])
    rows = np.arange(2)
    assert arrow.pylist(extreme_texts("max", column, rows, np.zeros(2, np.int64), 1)) == ["a" * 99 + "b"]
    assert order_of_different(*string_places(column)).tolist() == [0, 1]
    with stopping(0.0):
        with pytest.raises(QueryTimeout):
            extreme_texts("max", column, rows, np.zeros(2, np.int64), 1)
        with pytest.raises(QueryTimeout):
            order_of_different(*string_places(column))
