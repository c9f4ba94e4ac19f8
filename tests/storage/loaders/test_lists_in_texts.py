"""Texts of tables that are lists: those whose parts are written as they are, and all others, against Python's split."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

import graphdb

DELIMITERS = [";", "|", ".", ", ", "^", "--", "]", "'"]


def loaded(folder: Path, header: str, texts: list[str], delimiter: str) -> list[Any]:
    """Load texts as a property, which is missing where they are empty; return its values."""
    path = folder / "data.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([[":ID", header], *enumerate(texts)])
    with graphdb.connect(threads=1) as db:
        db.load(str(path), list_delimiter=delimiter, null="NULL", delimiter=",")
        found = dict(db.query("MATCH (n) RETURN iri(n), n.l").fetchall())
        return [found[f"urn:graphdb:{i}"] for i in range(len(texts))]


def parts(text: str, delimiter: str) -> list[str]:
    return [part for part in text.split(delimiter) if part.strip(" ")]


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_lists_of_integers(delimiter: str, tmp_path: Path) -> None:
    negative = "5" if "-" in delimiter else "-5"
    lists = [
        "1 2 3",
        "7",
        f"{negative} 0 10",
        "+1 02",
        "1  2",
        " 1",
        "1 ",
        "999999999999999999 1000000000000000000",
        "",
    ]
    texts = [text.replace(" ", delimiter) for text in lists] + [f" 3 {delimiter}4", " ", "NULL"]
    expected = [[int(part) for part in parts(text, delimiter)] for text in texts[:-1]]
    assert loaded(tmp_path, "l:list<int>", texts, delimiter) == [*expected, None]
    for wrong in ("x", "1.5", "1x", "9" * 19):
        if delimiter not in wrong:
            with pytest.raises(graphdb.LoadError, match="no integer"):
                loaded(tmp_path, "l:list<int>", ["1", f"1{delimiter}{wrong}"], delimiter)


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_lists_of_strings(delimiter: str, tmp_path: Path) -> None:
    lists = [
        "a b",
        "one",
        'q"x y',
        "back\\slash y",
        "é ü 𝔘",
        "[x] {y}",
        "tab\there x",
        "line\nend x",
        "a  b",
        " a",
        "a ",
        "",
    ]
    texts = [text.replace(" ", delimiter) for text in lists] + [f"a{delimiter} b c ", "  ", f" {delimiter} ", "NULL"]
    expected = [parts(text, delimiter) for text in texts[:-1]]
    assert loaded(tmp_path, "l:list<string>", texts, delimiter) == [*expected, None]


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_several_values(delimiter: str, tmp_path: Path) -> None:
    lists = ["a b", "one", "b a b", "a  b", " a", "a ", "é ü"]
    texts = [text.replace(" ", delimiter) for text in lists]
    expected = [sorted(set(parts(text, delimiter))) for text in texts]
    found = loaded(tmp_path, "l:string[]", texts, delimiter)
    assert [sorted(value if isinstance(value, list) else [value]) for value in found] == expected
