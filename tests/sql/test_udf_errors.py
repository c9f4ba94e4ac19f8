"""Errors of what Python computes: raised as they are, with their place, where a row needs the value, and nowhere else.

And values that are equivalent but not the same: each row has its own, and what is grouped, sorted and counted has one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import graphdb
from graphdb.common.errors import ExecutionError, GraphDBError, TypeMismatchError
from tests.fuzz import scaled

"""Multiplies the number of random queries."""


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(device="cpu", threads=1) as database:
        yield database


@pytest.mark.parametrize(
    ("query", "kind", "message", "column"),
    [
        ("UNWIND ['2020-01-01', 'bad'] AS x RETURN [date(x), 1]", ExecutionError, "'bad' is not a date", 43),
        ("UNWIND ['P1D', 'bad'] AS x RETURN sum(duration(x))", ExecutionError, "'bad' is not a duration", 39),
        ("UNWIND [1, 0] AS x RETURN {a: [10 / x, 'a']}", ExecutionError, "division by zero", 32),
        ("UNWIND [[1, 'a'], 's'] AS x RETURN x[0]", TypeMismatchError, "a string has no items", 36),
        ("UNWIND [1, {b: 2}, 'a'] AS x RETURN x.b", TypeMismatchError, "an integer has no properties", 37),
        ("UNWIND [true, 1, 'a'] AS x WITH x WHERE x RETURN x", TypeMismatchError, "expected a condition", 41),
        ("UNWIND [2, 'a', [1]] AS x RETURN abs(x)", TypeMismatchError, "needs a number, found a string", 34),
        ("UNWIND ['a', ['b']] AS x RETURN toUpper(x)", TypeMismatchError, "needs a string, found a list", 33),
        ("UNWIND ['2020-01-01', 'x'] AS t RETURN DISTINCT date(t).year ORDER BY date(t).year",
         ExecutionError, "'x' is not a date", 49),
    ],
)  # fmt: skip
def test_errors_are_those_of_python(
    db: graphdb.Database, query: str, kind: type[GraphDBError], message: str, column: int
) -> None:
    for _ in range(2):  # prepared the second time
        with pytest.raises(kind, match=message) as caught:
            db.query(query).fetchall()
        assert (caught.value.line, caught.value.column) == (1, column)
        assert query in str(caught.value)  # with the caret below
        assert "UDF" not in str(caught.value)
    assert db.query("RETURN [1, 'a'] AS l").scalar() == [1, "a"]


Row = dict[str, Any]
Lazy = Callable[[Row], Any]

_DATES = ["2020-01-01", "2021-05-06", "bad", "worse"]


def _date(row: Row) -> Any:
    if row["s"].startswith("2"):
        return int(row["s"][:4])
    raise ZeroDivisionError


def _values() -> list[tuple[str, Lazy]]:
    """Expressions that fail on some rows, and what they yield."""
    return [
        ("date(s).year", _date),
        ("[10 / k, 'a'][0]", lambda row: 10 // row["k"]),
        ("20 / k", lambda row: 20 // row["k"]),
        ("{a: date(s), b: [k, s]}.a.year", _date),
        ("size([date(s), 1]) + k", lambda row: _date(row) and 2 + row["k"]),
    ]


def _conditions(chance: random.Random, depth: int) -> tuple[str, Lazy, tuple[Lazy, ...]]:
    """A condition, left to right (what decides it spares what comes later), and those that it joins by AND."""
    if depth == 0:
        text, value = chance.choice([*_values(), ("k", lambda row: row["k"]), ("size(s)", lambda row: len(row["s"]))])
        least = chance.choice([0, 1, 5, 2020])
        return _alone(f"{text} > {least}", lambda row: value(row) > least)
    (a, left, first), (b, right, second) = (_conditions(chance, depth - 1) for _ in range(2))
    match chance.choice(["AND", "OR", "CASE", "NOT", "COALESCE"]):
        case "AND":
            return f"({a} AND {b})", lambda row: left(row) and right(row), (*first, *second)
        case "OR":
            return _alone(f"({a} OR {b})", lambda row: left(row) or right(row))
        case "NOT":
            return _alone(f"(NOT {a})", lambda row: not left(row))
        case "COALESCE":
            return _alone(f"coalesce({a}, {b})", left)
    return _alone(f"CASE WHEN {a} THEN {b} ELSE k = 1 END", lambda row: right(row) if left(row) else row["k"] == 1)


def _alone(text: str, holds: Lazy) -> tuple[str, Lazy, tuple[Lazy, ...]]:
    return text, holds, (holds,)


def _in_any_order(conditions: tuple[Lazy, ...], row: Row) -> bool:
    """Whether a row fulfils all conditions: one that it does not spares all others."""
    failures: list[ZeroDivisionError] = []
    for condition in conditions:
        try:
            if not condition(row):
                return False
        except ZeroDivisionError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return True


@pytest.mark.parametrize("seed", range(scaled(40)))
def test_errors_are_raised_where_the_value_is_needed(db: graphdb.Database, seed: int) -> None:
    chance = random.Random(seed)
    rows = [{"s": chance.choice(_DATES), "k": chance.randint(0, 2), "i": i} for i in range(4)]
    condition, holds, joined = _conditions(chance, 2)
    value, result = chance.choice(_values())
    start = "UNWIND $rows AS r WITH r.s AS s, r.k AS k, r.i AS i "

    def expected(of: Callable[[], Any]) -> Any:
        try:
            return of()
        except ZeroDivisionError:
            return "error"

    def found(query: str) -> Any:
        try:
            return db.query(query, rows=rows).fetchall()
        except GraphDBError as error:
            return "error" if error.column is not None else repr(error)

    query = f"{start}RETURN {condition} AS c ORDER BY i"
    assert found(query) == expected(lambda: [(bool(holds(row)),) for row in rows]), (query, rows)
    query = f"{start}RETURN CASE WHEN {condition} THEN {value} END AS c ORDER BY i"
    assert found(query) == expected(lambda: [(result(row) if holds(row) else None,) for row in rows]), (query, rows)
    query = f"{start}WITH * WHERE {condition} RETURN i, {value} AS v ORDER BY i"
    in_turn = expected(lambda: [(row["i"], result(row)) for row in [r for r in rows if holds(r)]])
    in_any = expected(lambda: [(row["i"], result(row)) for row in [r for r in rows if _in_any_order(joined, r)]])
    assert found(query) in ((in_turn, in_any) if in_turn == "error" else (in_turn,)), query


def test_dates_that_columns_do_not_hold(db: graphdb.Database) -> None:
    """Of constants they are values of Python's; of rows an error."""
    last, later, apart = db.query(
        "RETURN date('+5881580-07-11') AS d, date('2020-01-01') < date('+5881580-07-11') AS l, "
        "duration.inDays(date('-999999999-01-01'), date($last)).days AS n",
        last="+999999999-12-31",
    ).fetchall()[0]
    assert (last.days, later) == (2**31 - 1, True)
    assert apart == 2_000_000_000 // 400 * 146_097 - 366 - 1  # all years but the leap year 10^9, and no last day
    with pytest.raises(ExecutionError, match="out of range"):
        db.query("UNWIND ['2020-01-01', '+5881580-07-11'] AS t RETURN date(t) AS d").fetchall()


def test_conditions_that_fail_wait_for_the_pattern(db: graphdb.Database) -> None:
    """They are not tested on vertices that the pattern never comes to."""
    db.query("CREATE (:T {t: 'worse', k: 0})-[:e]->(:S {t: '2022-02-02', k: 5}), (:S {t: 'bad', k: 0})")
    for condition in ("date(n.t).year > 2020", "date(n.t) > date('2020-01-01')", "n.k > 0 AND date(n.t).year = 2022"):
        query = f"MATCH (n:S)<-[:e]-() WHERE {condition} RETURN n.t"
        assert db.query(query).fetchall() == [("2022-02-02",)], condition
    assert db.query("MATCH (n:S) WHERE n.t <> 'bad' AND date(n.t).year > 2020 RETURN n.k").fetchall() == [(5,)]
    with pytest.raises(ExecutionError, match="'bad' is not a date"):
        db.query("MATCH (n:S) WHERE date(n.t).year > 2020 RETURN n.t")


# --- values that are equivalent, and not the same ----------------------------------------------------------------


def _value(chance: random.Random, depth: int) -> Any:
    if depth and chance.random() < 0.6:
        if chance.random() < 0.5:
            return [_value(chance, depth - 1) for _ in range(chance.randint(0, 2))]
        keys = chance.sample(["a", "b"], chance.randint(0, 2))
        return {key: _value(chance, depth - 1) for key in keys}
    return chance.choice([0, 0.0, -0.0, 1, 1.0, 1.5, "1", True, None, 2**53 + 1, float(2**53)])


def _class(value: Any) -> Any:
    """What equivalent values have in common: Python's own equality, but for booleans, which are no numbers."""
    if isinstance(value, list):
        return ("list", *map(_class, value))
    if isinstance(value, dict):
        return ("map", frozenset((key, _class(item)) for key, item in value.items()))
    return (isinstance(value, bool), value)


@pytest.mark.parametrize("seed", range(scaled(25)))
def test_equivalent_values(db: graphdb.Database, seed: int) -> None:
    chance = random.Random(seed)
    values = [[_value(chance, 2), "x"] for _ in range(chance.randint(1, 12))]
    values += [{"a": 1}, None, [1], [1.0, "x"]]
    given = {"values": list(enumerate(values))}
    rows = "UNWIND $values AS p WITH p[0] AS i, p[1] AS v "
    classes = {_class(value) for value in values}

    own = db.query(f"{rows}RETURN v ORDER BY i", given).fetchall()
    assert [repr(value) for (value,) in own] == [repr(value) for value in values]
    distinct = [value for (value,) in db.query(f"{rows}RETURN DISTINCT v", given)]
    assert len(distinct) == len(classes)
    assert {_class(value) for value in distinct} == classes
    assert {repr(value) for value in distinct} <= {repr(value) for value in values}
    counts = {_class(v): n for v, n in db.query(f"{rows}RETURN v, count(*) AS n", given)}
    assert counts == {kind: sum(_class(value) == kind for value in values) for kind in classes}
    there = [value for value in values if value is not None]
    number, every, once = db.query(
        f"{rows}RETURN count(DISTINCT v), collect(v), collect(DISTINCT v)", given
    ).fetchall()[0]
    assert number == len(classes) - 1 == len(once) == len({_class(value) for value in once})
    assert sorted(map(repr, every)) == sorted(map(repr, there))
    union = db.query(f"{rows}RETURN v UNION {rows}RETURN v", given).fetchall()
    assert {_class(value) for (value,) in union} == classes
    assert len(union) == len(classes)


@pytest.mark.parametrize("seed", range(scaled(10)))
def test_order_of_equivalent_values(db: graphdb.Database, seed: int) -> None:
    """What comes later in ORDER BY decides between them."""
    chance = random.Random(seed)
    kinds = [[1, "a"], [1.0, "a"], [-0.0, "b"], [0, "b"], ["c", {"x": 1, "y": 2}], ["c", {"y": 2.0, "x": 1}]]
    values = [(i, chance.choice(kinds)) for i in chance.sample(range(20), 12)]
    found = db.query("UNWIND $values AS p WITH p[0] AS i, p[1] AS v RETURN i, v ORDER BY v, i DESC", values=values)
    rows = [(i, repr(value)) for i, value in found]
    assert sorted(rows) == sorted((i, repr(value)) for i, value in values)
    first = {_class(value): n for n, value in reversed(list(enumerate(value for _, value in found.fetchall())))}
    of = dict(values)
    assert [i for i, _ in rows] == sorted(of, key=lambda i: (first[_class(of[i])], -i))
