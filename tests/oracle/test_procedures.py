"""Calls of procedures against a join in Python: as columns and as keys, and whatever form the rows are returned in.

``GRAPHDB_FUZZ`` multiplies the examples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled
from tests.oracle.routes import in_python

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "INTEGER?": st.sampled_from([None, 0, 1, 2]),
    "STRING?": st.sampled_from([None, "", "a", "b"]),
    "FLOAT?": st.sampled_from([None, 0.0, 1.0, 1.5]),
    "BOOLEAN?": st.sampled_from([None, True, False]),
    "NUMBER?": st.sampled_from([None, 1, 1.5]),
    "LIST? OF INTEGER?": st.sampled_from([None, [], [1], [1, None]]),
    "ANY?": st.sampled_from([None, 1, "a", True, [1]]),
}
"""Values of each type that a signature may have; the last three are not for SQL, or not as they are."""

TYPES = st.sampled_from(list(VALUES))


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
    """Draw a procedure: the types of its parameters and columns, and its rows: arguments, then what they yield."""
    inside = draw(st.lists(TYPES, max_size=2))
    outside = draw(st.lists(TYPES, min_size=1, max_size=2))
    rows = draw(st.lists(st.tuples(*(VALUES[type] for type in (*inside, *outside))), max_size=8))
    return inside, outside, rows


WAYS: Counter[str] = Counter()
"""How many calls have values of types that SQL has, and how many are known to it by keys."""


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        yield database


FEWEST = 25
"""Calls that are drawn in any case, so that some of them go each way."""


@settings(
    max_examples=max(scaled(40), FEWEST), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(table=tables(), data=st.data())
def test_calls_are_joins(db: graphdb.Database, table: tuple[Any, ...], data: st.DataObject) -> None:
    inside, outside, rows = table
    form = data.draw(st.sampled_from(["tuples", "dictionaries", "generator", "arrow"]))
    calls: list[str] = []

    def function(*arguments: Any) -> Any:
        calls.append(repr(arguments))
        found = [row[len(inside) :] for row in rows if same(list(row[: len(inside)]), list(arguments))]
        names = [f"y{i}" for i in range(len(outside))]
        match form:
            case "dictionaries":
                return [dict(zip(names, row, strict=True)) for row in found]
            case "generator":
                return iter(found)
            case "arrow" if not {"ANY?", "NUMBER?"} & {*outside}:
                columns = zip(*found, strict=True) if found else [[]] * len(outside)
                return pa.table(dict(zip(names, map(pa.array, columns), strict=True)))
        return found

    signature = ", ".join(f"x{i} :: {type}" for i, type in enumerate(inside))
    signature = f"my.table({signature}) :: ({', '.join(f'y{i} :: {type}' for i, type in enumerate(outside))})"
    db.register_procedure(signature, function, replace=True)

    given = [
        data.draw(st.tuples(*(VALUES[type] for type in inside)), label="row")
        for _ in range(data.draw(st.integers(0, 6)))
    ]
    optional, filtered = data.draw(st.booleans()), data.draw(st.booleans())
    text = (
        "UNWIND range(0, $n - 1) AS r WITH r" + "".join(f", $c{i}[r] AS a{i}" for i in range(len(inside)))
        + f" {'OPTIONAL ' if optional else ''}CALL my.table({', '.join(f'a{i}' for i in range(len(inside)))})"
        + " YIELD " + ", ".join(f"y{i} AS z{i}" for i in range(len(outside)))
        + (" WHERE z0 IS NOT NULL" if filtered else "")
        + " RETURN r, " + ", ".join(f"z{i}" for i in range(len(outside)))
    )  # fmt: skip
    note(signature)
    note(text)
    parameters = {"n": len(given), **{f"c{i}": [row[i] for row in given] for i in range(len(inside))}}
    should: Counter[str] = Counter()
    for number, row in enumerate(given):
        found = [each[len(inside) :] for each in rows if same(list(each[: len(inside)]), list(row))]
        found = [each for each in found if not filtered or each[0] is not None]
        if not found and optional:
            found = [(None,) * len(outside)]
        should.update(repr((number, *each)) for each in found)
    distinct = {repr(tuple(row)) for row in given}
    told = db.explain(text, parameters)
    WAYS["as keys" if "calls of my.table" in told else "as columns"] += 1

    for way in (db.query, partial(in_python, db)):
        calls.clear()
        result = way(text, parameters)
        assert Counter(repr(row) for row in result) == should
        assert sorted(calls) == sorted(distinct)


def test_calls_went_both_ways() -> None:
    if not WAYS:
        pytest.skip("no call was made here")
    assert min(WAYS["as columns"], WAYS["as keys"]) >= scaled(10), WAYS
