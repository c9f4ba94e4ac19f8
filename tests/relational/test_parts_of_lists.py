"""Parts of long lists among the arguments are rows as Python cuts them, whatever lists a text is asked with."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

import graphdb
from graphdb.relational.query import QueryRun


@pytest.fixture(scope="module")
def database() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as opened:
        opened.query("UNWIND range(0, 3000, 3) AS i CREATE (:P {id: i})")
        yield opened


def lists(draw: Random) -> Iterator[list[Any]]:
    """Yield lists of integers with and without null, of texts, of maps, and short ones."""
    for size in (1000, 2500, 1001, 20, 0):
        yield [draw.randrange(3000) for _ in range(size)]
    yield [None if draw.random() < 0.1 else draw.randrange(3000) for _ in range(1500)]
    yield [f"text {draw.randrange(9)}" for _ in range(1200)]
    yield [{"id": draw.randrange(3000)} for _ in range(1100)]


@pytest.mark.parametrize("seed", range(8))
def test_rows_of_a_part(database: graphdb.Database, seed: int) -> None:
    draw = Random(seed)
    begin, end = (draw.choice([None, draw.randrange(-1600, 1600)]) for _ in range(2))
    part = f"{'' if begin is None else begin}..{'' if end is None else end}"
    for values in lists(draw):
        found = database.query(f"UNWIND $values[{part}] AS x RETURN x", values=values).fetchall()
        assert [x for (x,) in found] == values[begin:end]
        if values and all(isinstance(value, int) for value in values):
            text = f"UNWIND $values[{part}] AS x MATCH (p:P {{id: x}}) RETURN p.id"
            ids = [i for (i,) in database.query(text, values=values).fetchall()]
            assert sorted(ids) == sorted(x for x in values[begin:end] if x % 3 == 0)


def test_a_part_is_prepared_once(database: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "UNWIND $values[..1200] AS x MATCH (p:P {id: x}) RETURN count(p.id)"
    assert database.query(text, values=list(range(2000))).scalar() == 400

    def prepare(*_: object) -> None:
        raise AssertionError("it was prepared anew")

    with monkeypatch.context() as patched:
        patched.setattr(QueryRun, "prepare", prepare)
        assert database.query(text, values=list(range(3, 3000))).scalar() == 400
        assert database.query(text, values=[6] * 1000).scalar() == 1000
    assert database.query(text, values=[str(i) for i in range(1500)]).scalar() == 0
    assert database.query(text.replace("..1200", "..null"), values=list(range(2000))).scalar() == 0
