"""Dates and durations that are made of texts and numbers of rows, against the evaluator: values, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import graphdb
from graphdb import GraphDBError
from tests.oracle.routes import in_python

DATES = """2020-01-02 2020-02-29 2020-02-30 2020-13-01 0000-01-01 0001-01-01 9999-12-31 20200102 2020-W05-3 2020 2020-01
    2020-001 +2020-01-02 -0005-01-01 2020-1-2 x 2020-01-02T03:04""".split()
DURATIONS = """P1D P1Y2M3DT4H5M6.789S PT-0.5S -P1D P1.5D P PT P1DT P1W PT1H-5M P-1Y P2012-02-02T14:37:21.545 P0D PT0S x
    PT0.0000000001S PT1.000000001S P99999999999D PT-1.5S""".split()
PARTS: list[tuple[Any, ...]] = [(2020, 2, 29), (2021, 2, 29), (0, 1, 1), (10_000, 1, 1), (2020, 13, 1), (2020, 1, 0)]
PARTS += [(None, 1, 1), (2020, None, 1), (2020, 1, None), (-5, 1, 1), (1, 1, 1), (9999, 12, 31), (2**60, 1, 1)]
ASKED = {
    "UNWIND $rows AS x RETURN date(x) AS d": [*DATES, None, ""],
    "UNWIND $rows AS x RETURN duration(x) AS d": [*DURATIONS, None, ""],
    "UNWIND $rows AS x WITH x[0] AS y, x[1] AS m, x[2] AS d RETURN date({year: y, month: m, day: d}) AS d": PARTS,
    "UNWIND $rows AS x WITH x[0] AS y, x[1] AS m RETURN date({year: y, month: m}) AS d, date({year: y}) AS e": PARTS,
}


@pytest.mark.parametrize("text", ASKED)
def test_values_and_errors_are_those_of_the_evaluator(text: str) -> None:
    with graphdb.connect(threads=1) as db:

        def outcome(rows: list[Any], *, python: bool) -> Any:
            try:
                arguments = {"rows": rows}
                return in_python(db, text, arguments) if python else db.query(text, arguments).fetchall()
            except GraphDBError as error:
                return type(error), error.message

        fine = []
        for value in map(list, ASKED[text]) if ASKED[text] is PARTS else ASKED[text]:
            found = outcome([value], python=False)
            assert repr(found) == repr(outcome([value], python=True)), value
            if isinstance(found, list):
                fine.append(value)
        assert repr(outcome(fine, python=False)) == repr(outcome(fine, python=True))
