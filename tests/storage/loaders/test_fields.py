"""Fields of delimited texts that DuckDB reads as numbers, dates and times: they say what they say as texts."""

from __future__ import annotations

import random
import re
from typing import Any

import duckdb
import pytest

import graphdb
from graphdb.storage.loaders.tables import delimited
from graphdb.storage.loaders.tables.fields import types as fields
from graphdb.storage.loaders.tables.headers import Column, Dialect
from graphdb.storage.loaders.tables.places import CsvFile
from tests.fuzz import scaled
from tests.storage.loaders.files import rows, write
from tests.storage.loaders.test_table_columns import edges

pytestmark = pytest.mark.usefixtures("in_a_folder")

SORTS = {
    "BIGINT": ["1", "0", "-7", "999999999999999999", "20", "1300000000000"],
    "DOUBLE": ["4.7", ".5", "-0.25", "+1.5", "1e3", "2.5E-3", "0.0", "-.5e+10", "100000000000000000.5"],
    "BOOLEAN": ["true", "FALSE", "True"],
    "DATE": ["2020-02-29", "1900-12-31", "0001-01-01", "9999-12-31"],
    "TIMESTAMP": ["2020-01-01 10:00:00", "1969-12-31T23:59:59.999999", "2020-01-01T10:00:00.5"],
    "TIMESTAMPTZ": ["2020-01-01T10:00:00Z", "2020-01-01 10:00:00.25+02", "2020-01-01T10:00:00-03:30", "2020-01-01T10:00:00+0100"],
    "odd": ["007", "12.", "-0", "+5", "9223372036854775808", "1" * 19, "1.", "1-2", "-", "--1", "01.5", "1.2.3.4", "1e", "1e+", "inf",
            "-Infinity", "nan", "nano", "2021-02-29", "2020-13-01", "2020-1-1", "2020-01-01T25:00:00", "2020-01-01T10:00",
            "2020-01-01T10:00:00.1234567", "2020-01-01T10:00:00+2", "2020-01-01T10:00:00+25:00", "0000-01-01", "10:00:00",
            "10:00", "12:x", "truefalse", "t", " 5", "5 ", "0x1F", "1_000", "x", "\u0665", "5\t", "NA", "a\"b", "infinitely"],
}  # fmt: skip
HEADERS = ["x:long", "x", "x", "x", "x:datetime{epoch_ms}", "x:date{epoch_s}", "x:double", "x:boolean", "x:date", "x:datetime",
           "x:localdatetime", "x:string", "x:int[]", "x:list<double>", "x:time"]  # fmt: skip


def loaded(name: str, **how: Any) -> Any:
    """What a file becomes, or what is said of it."""
    with graphdb.connect() as db:
        try:
            db.load(graphdb.Table(name, type="K", **how))
        except graphdb.LoadError as error:
            return str(error)
        return sorted(map(str, rows(db))), edges(db)


def drawn(draw: random.Random) -> list[str]:
    """Values of a column: of one sort, of two, or with one that is odd."""
    sorts = draw.sample(list(SORTS)[:-1], draw.choice([1, 1, 1, 2]))
    some = [draw.choice(SORTS[draw.choice(sorts)]) for _ in range(6)]
    odd = [draw.choice(SORTS["odd"])] if draw.random() < 0.3 else []
    return [*some, *odd, *draw.choice([[], ["", ""]])]


def quoted(draw: random.Random, value: str, share: float) -> str:
    """A value as a field: in quotes where it must be, or by chance."""
    must = any(sign in value for sign in ',|;"\n')
    return '"' + value.replace('"', '""') + '"' if must or draw.random() < share else value


@pytest.mark.parametrize("seed", range(scaled(60)))
def test_the_same_as_texts(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(seed)
    kind, share = draw.choice(["", "{long}"]), draw.choice([0, 0, 0.2])
    header = [f":START_ID(G){kind}", f":END_ID(G){kind}", *draw.sample(HEADERS, 2), ":IGNORE"]
    header[3] = header[3].replace("x", "y", 1)
    delimiter, end = draw.choice([",", "|", ";"]), draw.choice(["\n", "\r\n"])
    names = draw.choice([SORTS["BIGINT"], SORTS["BIGINT"], drawn(draw)])
    one, other = drawn(draw), drawn(draw)
    found = [
        [draw.choice(names) or "5", draw.choice(names) or "6", draw.choice(one), draw.choice(other), draw.choice(other)]
        for _ in range(8)
    ]
    found = [[quoted(draw, value, share) for value in row] for row in found]
    if draw.random() < 0.1:
        draw.choice(found).append("more")
    text = draw.choice(["", "", "\ufeff"]) + end.join(map(delimiter.join, [header, *found]))
    name = write("a.csv", text + end * draw.randint(0, 2))
    how = draw.choice([{}, {}, {"null": "NA"}, {"quote": ""}])
    as_shown = loaded(name, **how)
    monkeypatch.setattr(CsvFile, "types", lambda *_: None)
    assert as_shown == loaded(name, **how)


@pytest.mark.parametrize("seed", range(scaled(30)))
def test_types_that_fields_show(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at some bytes at a time, against the types that DuckDB's patterns find for the texts."""
    monkeypatch.setattr(fields, "_STEP", 7)
    draw = random.Random(seed)
    columns = [drawn(draw) for _ in range(3)]
    body = "\n".join("|".join(quoted(draw, draw.choice(column), 0.1) for column in columns) for _ in range(9))
    name = write("a.csv", f"a|b|c\n{body}\n")
    found, dialect = [Column.read(x, x) for x in "abc"], Dialect()
    said = fields.types(name, "|", dialect, found, lambda: None)
    with duckdb.connect() as connection:
        CsvFile(name, name, "|", 0, list("abc"), dialect).read(connection, "texts", rejects=False)
        shown = delimited.types(connection, "texts", found)
    expected = [shown.get(x, "VARCHAR") for x in "abc"]
    if said is None:
        assert any(value in SORTS["odd"] for value in re.split(r"[|\n]", body.replace('"', "")))
    else:
        assert said == expected


def test_columns_are_not_read_as_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB reads ids, numbers, dates and times as such, beside texts too, and in files that have few rows."""
    asked = []
    source = CsvFile.source

    def spy(self: CsvFile, *given: Any, **named: Any) -> str:
        asked.append(source(self, *given, **named))
        return asked[-1]

    monkeypatch.setattr(CsvFile, "source", spy)
    write("a.csv", ":START_ID,:END_ID,:TYPE,at:datetime{epoch_ms},x:string,n,d,t\n1,2,k,5,7,9,2020-01-01,no\n")
    with graphdb.connect() as db:
        db.load("a.csv")
    [sql] = asked
    types = [type for _, type in re.findall(r"'([^']*)': '([A-Z]+)'", sql)]
    assert types == ["BIGINT", "BIGINT", "VARCHAR", "BIGINT", "VARCHAR", "BIGINT", "DATE", "VARCHAR"]
