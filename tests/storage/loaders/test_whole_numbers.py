"""Tables of whole numbers, which DuckDB reads as such: they say what they say as texts, and nothing is rounded."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

import graphdb
from graphdb.storage.loaders.tables import delimited
from graphdb.storage.loaders.tables.places import CsvFile
from tests.fuzz import scaled
from tests.storage.loaders.files import rows, write
from tests.storage.loaders.test_table_columns import edges

pytestmark = pytest.mark.usefixtures("in_a_folder")

PLAIN = ["1", "0", "-7", "", "999999999999999999", "20", "1300000000000"]
ODD = ["007", "-0", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1-2", "-", "--1", "1" * 19]
NONE = ["4.7", "1e3", "+5", " 5", "5 ", "0x1F", "1_000", '"5"', "x", "٥", "1.", "5\t"]
HEADERS = ["x:long", "x", "x:datetime{epoch_ms}", "x:date{epoch_s}", "x:double", "x:string", "x:int[]"]


def loaded(name: str) -> Any:
    """What a file becomes, or what is said of it."""
    with graphdb.connect() as db:
        try:
            db.load(graphdb.Table(name, type="K"))
        except graphdb.LoadError as error:
            return str(error)
        return sorted(map(str, rows(db))), edges(db)


@pytest.mark.parametrize("seed", range(scaled(40)))
def test_the_same_as_texts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    values = draw.choice([PLAIN, PLAIN, [*PLAIN, *PLAIN, draw.choice(ODD)], [*PLAIN, draw.choice(NONE)]])
    kind = draw.choice(["", "{long}"])
    header = [f":START_ID(G){kind}", f":END_ID(G){kind}", *draw.sample(HEADERS, 1), ":IGNORE"]
    delimiter, end = draw.choice([",", "|", ";"]), draw.choice(["\n", "\r\n"])
    found = [[draw.choice(PLAIN[:3]), draw.choice(values) or "5", *draw.choices(values, k=2)] for _ in range(9)]
    text = end.join(map(delimiter.join, [header, *found]))
    name = write("a.csv", text + end * draw.randint(0, 1))
    numbers = loaded(name)
    monkeypatch.setattr(CsvFile, "whole_numbers", lambda *_, **__: False)
    assert numbers == loaded(name)


@pytest.mark.parametrize("seed", range(scaled(20)))
def test_what_consists_of_whole_numbers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked through some bytes at a time, against patterns for the whole text."""
    monkeypatch.setattr(delimited, "_LOOK", 5)
    draw = random.Random(seed)
    fields = [*PLAIN, *(draw.choice([*ODD, *NONE]) for _ in range(draw.randint(0, 1)))]
    body = "\n".join("|".join(draw.choices(fields, k=3)) for _ in range(9))
    name = write("a.csv", f"a|b|c\n{body}\n")
    said = [delimited.whole_numbers(name, 1, "|", shortest=shortest) for shortest in (False, True)]
    parts = re.split(r"[|\n]", body)
    assert said[0] == bool(re.fullmatch(r"[-0-9|\n]*", body))
    assert said[1] == all(re.fullmatch(r"0|-?[1-9]\d{0,17}|", part) for part in parts)


def test_numbers_are_not_read_as_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB reads the columns of ids, of stated numbers and of times in a file that has nothing else."""
    asked = []
    source = CsvFile.source

    def spy(self: CsvFile, *given: Any, **named: Any) -> str:
        asked.append(source(self, *given, **named))
        return asked[-1]

    monkeypatch.setattr(CsvFile, "source", spy)
    write("a.csv", ":START_ID,:END_ID,:TYPE,at:datetime{epoch_ms},x:string,n\n1,2,3,5,7,9\n")
    with graphdb.connect() as db:
        db.load("a.csv")
    [sql] = asked
    types = re.findall(r"'([^']*)': '([A-Z]+)'", sql)
    assert [type for _, type in types] == ["BIGINT", "BIGINT", "VARCHAR", "BIGINT", "VARCHAR", "BIGINT"]
