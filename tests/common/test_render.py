"""Rows as text, in every mode."""

from __future__ import annotations

import csv
import json
import math
from datetime import date, datetime
from decimal import Decimal

import pytest

import graphdb
from graphdb.common import render
from graphdb.common.values.elements import Node

COLUMNS = ("name", "n")
ROWS = [("Zürich", 1), (None, 20), ("東京", None), ('a "b", c\nd', 3)]


def test_table_is_aligned() -> None:
    assert list(render.table(COLUMNS, ROWS, 80)) == [
        " name        │    n",
        "─────────────┼──────",
        " Zürich      │    1",
        " null        │   20",
        " 東京        │ null",  # a wide character takes two columns
        ' a "b", c\\nd │    3',
    ]


@pytest.mark.parametrize("width", [40, 60, 90])
def test_table_stays_within_the_terminal(width: int) -> None:
    rows = [("x" * 200, 1, "y" * 50), ("short", 2, "short")]
    lines = list(render.table(("one", "two", "three"), rows, width))
    assert max(map(len, lines)) <= width
    assert "…" in lines[2]
    assert "short" in lines[3]


def test_narrow_columns_are_not_cut_for_wide_ones() -> None:
    lines = list(render.table(("key", "value"), [("capital", "v" * 300)], 60))
    assert "capital" in lines[2]


def test_empty_table_has_its_columns() -> None:
    assert list(render.table(COLUMNS, [], 80)) == [" name │ n", "──────┼───"]


def test_csv_reads_back() -> None:
    lines = list(render.comma_separated(COLUMNS, ROWS))
    back = list(csv.reader("\n".join(lines).splitlines(keepends=True)))
    assert back == [["name", "n"], ["Zürich", "1"], ["", "20"], ["東京", ""], ['a "b", c\nd', "3"]]


def test_json_reads_back() -> None:
    back = json.loads("\n".join(render.as_json(COLUMNS, ROWS)))
    assert back == [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    assert json.loads("\n".join(render.as_json(COLUMNS, []))) == []


@pytest.mark.parametrize("mode", ["json", "jsonl"])
def test_json_has_no_numbers_that_it_does_not_know(mode: str) -> None:
    row = (float("nan"), [float("inf"), 1.5, None, True], {"a": (-math.inf, Node("_:v1", ("A",), {"x": math.nan}))})

    def refused(name: str) -> object:
        raise AssertionError(name)

    back = json.loads("".join(render.MODES[mode]("abc", [row])), parse_constant=refused)
    back = back[0] if mode == "json" else back
    assert back["a"] == "NaN"
    assert back["b"] == ["Infinity", 1.5, None, True]
    assert back["c"]["a"][0] == "-Infinity"
    assert back["c"]["a"][1]["properties"] == {"x": "NaN"}


def test_json_says_what_it_can() -> None:
    row = (Decimal("1.50"), Decimal(7), date(2026, 1, 2), datetime(2026, 1, 2, 3, 4), [1, {"a": Decimal("0.25")}])
    (back,) = json.loads("\n".join(render.as_json("abcde", [row])))
    assert back == {"a": 1.5, "b": 7, "c": "2026-01-02", "d": "2026-01-02T03:04:00", "e": [1, {"a": 0.25}]}


def test_dates_that_python_does_not_have_are_texts_of_json_as_those_that_it_has() -> None:
    with graphdb.connect() as db:
        said = "P1Y2M3DT4.5S", "-0044-03-15", "2024-01-01T10:00:00.123456789+05:30", "10:00:00.000000001"
        asked = "duration($1) AS a, [datetime($3)] AS b, localtime($4) AS c, {d: date($2)} AS d"
        (row,) = db.query(f"RETURN {asked}", list(said))
    (back,) = json.loads("\n".join(render.as_json("abcd", [row])))
    assert back == {"a": said[0], "b": [said[2]], "c": said[3], "d": {"d": said[1]}}


def test_blanks_and_joiners_are_characters_and_what_steers_a_terminal_is_shown() -> None:
    persian, price, family = "می\u200cخواهم", "100\xa0€", "👩\u200d👧"
    assert [line.strip() for line in render.table("a", [(persian,), (price,), (family,)], 80)][2:] == [
        persian,
        price,
        family,
    ]
    assert list(render.table("a", [("\x1b[31m\u202e",)], 80))[2] == r" \x1b[31m\u202e"
    shown = "".join(render.as_html(["<a\u2066"], [("x\n\x1b[31my\u202e",)]))
    assert r"&lt;a\u2066<" in shown
    assert r">x\n\x1b[31my\u202e<" in shown
    assert list(render.line("a", [("x\n\x1b[31my\u202e",)])) == ["a = x\n\\x1b[31my\\u202e"]


def test_markdown_escapes() -> None:
    assert list(render.markdown(("a|b",), [("c|d",)])) == ["| a\\|b |", "|---|", "| c\\|d |"]


def test_line_separates_rows() -> None:
    assert list(render.line(("a", "bcd"), [(1, None), (2, "x")])) == ["  a = 1", "bcd = null", "", "  a = 2", "bcd = x"]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (True, "true"),
        (Decimal("1E+3"), "1000"),
        (Decimal("2.500"), "2.5"),
        (Decimal("12345678901234567890.123456789012345678"), "12345678901234567890.123456789012345678"),
        ({"a": [None]}, "{a: [null]}"),
        (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02 03:04:05"),
    ],
)
def test_values(value: object, said: str) -> None:
    assert render.text(value) == said
