"""Groups of many rows, made a piece at a time on several threads, against sums of Python's."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import graphdb
from graphdb.common import arrow
from graphdb.relational.vectors import large, pieces
from graphdb.relational.vectors import partial_groups as partial
from graphdb.relational.vectors import run as clauses
from graphdb.relational.vectors.counted import codes, results, sums
from graphdb.relational.vectors.grouped.ranked import percentile

Edge = dict[str, Any]

MATCH = "MATCH (a:P)-[r:K]->(b:P) "


@pytest.fixture(scope="module")
def edges() -> list[Edge]:
    """What there is: of each edge the properties of both of its ends, and its own."""
    draw = random.Random(7)
    people = [
        {
            "id": i,
            "name": f"p{i} of {i * i}",
            "age": None if i % 7 == 0 else i % 11,
            "city": None if i % 9 == 0 else f"c{i % 5}",
            "wide": i * 100_000 % 7001,
            "size": None if i % 4 == 0 else i * 0.25,
            "mix": None if i % 5 == 0 else i if i % 2 else i + 0.5,
        }
        for i in range(60)
    ]
    return [
        {
            "a": draw.choice(people),
            "b": draw.choice(people),
            "w": draw.randrange(1000) / 8,
            "y": 2000 + draw.randrange(30),
        }
        for _ in range(900)
    ]


@pytest.fixture(scope="module")
def database(edges: list[Edge]) -> Iterator[graphdb.Database]:
    people = {each["id"]: each for edge in edges for each in (edge["a"], edge["b"])}
    with graphdb.connect(device="cpu", threads=2) as opened:
        opened.query("UNWIND $rows AS r CREATE (p:P) SET p = r", rows=[people[each] for each in sorted(people)])
        rows = [{"a": edge["a"]["id"], "b": edge["b"]["id"], "w": edge["w"], "y": edge["y"]} for edge in edges]
        opened.query(
            "UNWIND $rows AS r MATCH (a:P {id: r.a}), (b:P {id: r.b}) CREATE (a)-[:K {w: r.w, y: r.y}]->(b)", rows=rows
        )
        yield opened


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether groups were made in pieces, of some rows each."""
    monkeypatch.setattr(clauses, "LEAST", 0)
    monkeypatch.setattr(clauses, "_compressed", lambda *_: None)
    monkeypatch.setattr(pieces, "_LEAST", 100)
    monkeypatch.setattr(pieces, "_MOST", 100)
    monkeypatch.setattr(partial, "_FEWER", 1)
    made: list[bool] = []
    group = partial.grouped_in_pieces
    monkeypatch.setattr(
        clauses, "grouped_in_pieces", lambda *given: (found := group(*given), made.append(found is not None))[0]
    )
    return made


def _some(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def _mean(values: list[Any]) -> float | None:
    return sum(_some(values)) / len(_some(values)) if _some(values) else None


SUMS: list[tuple[str, Any, Any]] = [
    (
        "a.age AS k, sum(CASE WHEN r.y > 2010 THEN r.w ELSE 0 END) AS n",
        lambda e: e["a"]["age"],
        lambda es: (sum(e["w"] if e["y"] > 2010 else 0 for e in es),),
    ),
    (
        "a.city AS k, count(*) AS n, count(b.size) AS m, sum(b.size) AS s, avg(b.size) AS v, min(r.w) AS l, max(r.w + b.age) AS h",
        lambda e: e["a"]["city"],
        lambda es: (
            len(es),
            len(_some([e["b"]["size"] for e in es])),
            sum(_some([e["b"]["size"] for e in es])),
            _mean([e["b"]["size"] for e in es]),
            min(e["w"] for e in es),
            max(_some([None if e["b"]["age"] is None else e["w"] + e["b"]["age"] for e in es]), default=None),
        ),
    ),
    (
        "r.y % 4 AS k, sum(b.mix) AS s, min(b.mix) AS l, sum(b.mix * 2) AS d, avg(b.id * 3) AS v",
        lambda e: e["y"] % 4,
        lambda es: (
            sum(_some([e["b"]["mix"] for e in es])),
            min(_some([e["b"]["mix"] for e in es])),
            sum(2 * x for x in _some([e["b"]["mix"] for e in es])),
            _mean([3 * e["b"]["id"] for e in es]),
        ),
    ),
]


@pytest.mark.parametrize(("returned", "key", "values"), SUMS)
@pytest.mark.parametrize("where", ["", "WHERE r.w > 40 "])
def test_groups_of_pieces(
    database: graphdb.Database, edges: list[Edge], used: list[bool], returned: str, key: Any, values: Any, where: str
) -> None:
    groups: dict[Any, list[Edge]] = defaultdict(list)
    for edge in edges:
        if not where or edge["w"] > 40:
            groups[key(edge)].append(edge)
    expected = {key: values(of_key) for key, of_key in groups.items()}
    found = {row[0]: row[1:] for row in database.query(f"{MATCH}{where}RETURN {returned}").fetchall()}
    assert used == [True]
    assert found.keys() == expected.keys()
    for each, row in found.items():
        assert row == pytest.approx(expected[each])


@pytest.mark.parametrize(
    ("returned", "key", "values"),
    [
        *SUMS[:1],
        (
            "a.id % 5 AS k, avg(r.w) AS v, count(b.size) AS m, sum(CASE WHEN b.age > 4 THEN b.size WHEN r.y < 2009 THEN 0.5 END) AS s, "
            "sum(b.age) AS t, sum(3) AS u",
            lambda e: e["a"]["id"] % 5,
            lambda es: (
                _mean([e["w"] for e in es]),
                len(_some([e["b"]["size"] for e in es])),
                sum((e["b"]["size"] or 0) if (e["b"]["age"] or 0) > 4 else 0.5 if e["y"] < 2009 else 0 for e in es),
                sum(_some([e["b"]["age"] for e in es])),
                3 * len(es),
            ),
        ),
    ],
)
@pytest.mark.parametrize("where", ["", "WHERE b.age > 3 "])
def test_sums_of_many_values_of_rows_that_are_counted(
    database: graphdb.Database,
    edges: list[Edge],
    returned: str,
    key: Any,
    values: Any,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a condition takes is numbered, and what it chooses is added up for each combination of that."""
    monkeypatch.setattr(clauses, "MANY", 0)
    monkeypatch.setattr(codes, "_FEWER", 0.001)
    made: list[bool] = []
    columns = sums.Sums.columns
    monkeypatch.setattr(sums.Sums, "columns", lambda *given: (made.append(True), columns(*given))[1])
    groups: dict[Any, list[Edge]] = defaultdict(list)
    for edge in edges:
        if not where or (edge["b"]["age"] or 0) > 3:
            groups[key(edge)].append(edge)
    found = {row[0]: row[1:] for row in database.query(f"{MATCH}WITH a, r, b {where}RETURN {returned}").fetchall()}
    assert made
    assert found.keys() == groups.keys()
    for each, row in found.items():
        assert row == pytest.approx(values(groups[each]))


@pytest.mark.parametrize(
    ("items", "values"),
    [
        ("[b.age, b.age * 2, 3]", lambda e: (e["b"]["age"], None if e["b"]["age"] is None else e["b"]["age"] * 2, 3)),
        ("[b.age, a.id % 3]", lambda e: (e["b"]["age"], e["a"]["id"] % 3)),
        ("[r.w, b.age]", lambda e: (e["w"], e["b"]["age"])),
        ("[b.mix, b.size]", lambda e: (e["b"]["mix"], e["b"]["size"])),
    ],
)
def test_sums_of_several_values_of_rows_that_are_counted(
    database: graphdb.Database, edges: list[Edge], items: str, values: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clauses, "MANY", 0)
    monkeypatch.setattr(codes, "_FEWER", 0.001)
    groups: dict[Any, list[Any]] = defaultdict(list)
    for edge in edges:
        groups[edge["a"]["age"]] += _some([*values(edge)])
    text = f"{MATCH}UNWIND {items} AS x RETURN a.age AS k, sum(x) AS s, min(x) AS l, max(x) AS h"
    found = {row[0]: row[1:] for row in database.query(text).fetchall()}
    assert found.keys() == groups.keys()
    for each, row in found.items():
        assert row == pytest.approx((sum(groups[each]), min(groups[each]), max(groups[each])))
    (total,) = database.query(f"{MATCH}UNWIND {items} AS x RETURN sum(x) AS s").fetchone() or ()
    assert total == pytest.approx(sum(map(sum, groups.values())))


def test_conditions_have_fewer_results_than_values(
    database: graphdb.Database, edges: list[Edge], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are counted by the results of conditions, not by the values that these are computed of."""
    monkeypatch.setattr(clauses, "MANY", 0)
    monkeypatch.setattr(codes, "_FEWER", 1)
    counted: list[int] = []
    count = codes.Codes.counted
    monkeypatch.setattr(
        codes.Codes, "counted", lambda self, *given: (counted.append(self.count), count(self, *given))[1]
    )
    text = (
        f"{MATCH}WITH a.age > 4 AS x, CASE WHEN b.age < 3 THEN 'few' WHEN b.age < 9 THEN 'some' ELSE 'many' END AS y, "
        "coalesce(a.age, 7) % 2 = 0 AS e, b.age / 4 AS q, r.y > 2010 AS l "
        "RETURN x, y, e, q, l, count(*) AS n"
    )
    expected: dict[Any, int] = defaultdict(int)
    for edge in edges:
        one, other = edge["a"]["age"], edge["b"]["age"]
        how = "many" if other is None or other >= 9 else "few" if other < 3 else "some"
        key = (
            None if one is None else one > 4,
            how,
            (7 if one is None else one) % 2 == 0,
            None if other is None else other // 4,
            edge["y"] > 2010,
        )
        expected[key] += 1
    assert {row[:-1]: row[-1] for row in database.query(text)} == expected
    assert counted
    assert counted[0] < 12 * 12 * 30 / 9


def test_expressions_over_values_of_several_rows_each(
    database: graphdb.Database, edges: list[Edge], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are computed of each value, not of each row, and again after a change."""
    monkeypatch.setattr(clauses, "MANY", 0)
    monkeypatch.setattr(codes, "_FEWER", 1)
    computed: list[int] = []
    in_place = codes.results_in_place
    monkeypatch.setattr(codes, "results_in_place", lambda *given: (computed.append(len(given[2])), in_place(*given))[1])
    text = (
        f"{MATCH}RETURN toUpper(left(a.name, 2)) AS k, sum(CASE WHEN b.name CONTAINS '4' THEN 1 ELSE 0 END) AS n, "
        "count(CASE WHEN b.wide > 3000 THEN b.wide END) AS m"
    )

    def expected() -> list[tuple[str, int, int]]:
        groups: dict[str, list[Edge]] = defaultdict(list)
        for edge in edges:
            groups[edge["a"]["name"][:2].upper()].append(edge)
        return sorted(
            (key, sum("4" in e["b"]["name"] for e in es), sum(e["b"]["wide"] > 3000 for e in es))
            for key, es in groups.items()
        )

    assert sorted(database.query(text).fetchall()) == expected()
    assert computed
    assert max(computed) <= 60
    changed = edges[0]["b"]
    changed["name"] = "q44"
    database.query("MATCH (a:P {id: $id}) SET a.name = 'q44'", id=changed["id"])
    assert sorted(database.query(text).fetchall()) == expected()


@pytest.mark.parametrize("fewer", [0.001, 1 << 30])
def test_results_of_few_values(
    database: graphdb.Database, edges: list[Edge], fewer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A division by what no row has is none."""
    monkeypatch.setattr(large, "MANY", 0)
    monkeypatch.setattr(codes, "_FEWER", fewer)
    monkeypatch.setattr(results, "_PIECE", 200)
    text = (
        f"{MATCH}WHERE a.age > 0 RETURN a.id AS i, b.age / a.age AS q, CASE WHEN b.age > a.age THEN 'more' ELSE a.city END "
        "AS t, size([x IN [a.age, b.age] WHERE x > 5]) AS n, r.y > 2010 AS l, r.w AS w"
    )
    expected = [
        (
            e["a"]["id"],
            None if e["b"]["age"] is None else e["b"]["age"] // e["a"]["age"],
            "more" if e["b"]["age"] is not None and e["b"]["age"] > e["a"]["age"] else e["a"]["city"],
            sum(1 for x in (e["a"]["age"], e["b"]["age"]) if x is not None and x > 5),
            e["y"] > 2010,
            e["w"],
        )
        for e in edges
        if e["a"]["age"]
    ]
    assert sorted(map(repr, database.query(text))) == sorted(map(repr, expected))


def test_no_rows_are_one_group(database: graphdb.Database, used: list[bool]) -> None:
    text = f"{MATCH}WITH a, r, b WHERE a.id + b.id < 0 RETURN count(*) AS n, sum(r.w * 2) AS s, min(b.age) AS l, avg(r.w) AS v"
    assert database.query(text).fetchall() == [(0, 0, None, None)]
    assert used == [True]


def test_rows_in_order_of_their_groups(database: graphdb.Database, edges: list[Edge], used: list[bool]) -> None:
    text = f"{MATCH}RETURN b.age AS k, sum(r.w) AS s ORDER BY s DESC LIMIT 3"
    sums: dict[Any, float] = defaultdict(float)
    for edge in edges:
        sums[edge["b"]["age"]] += edge["w"]
    assert database.query(text).fetchall() == sorted(sums.items(), key=lambda each: -each[1])[:3]
    assert used == [True]


def test_many_groups_are_made_at_once(
    database: graphdb.Database, edges: list[Edge], used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial, "_FEWER", 8)
    found = database.query(f"{MATCH}RETURN b.id AS k, r.y AS y, sum(r.w) AS s").fetchall()
    assert len(found) == len({(edge["b"]["id"], edge["y"]) for edge in edges})
    assert sum(s for _, _, s in found) == sum(edge["w"] for edge in edges)
    assert not used


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("function", ["percentileDisc", "percentileCont"])
def test_percentiles_of_values_that_come_several_times(function: str, share: float) -> None:
    draw = np.random.default_rng(3)
    data, numbers, times = draw.integers(-9, 9, 40), draw.integers(0, 6, 40), draw.integers(1, 5, 40)
    numbers[numbers == 4] = 5  # a group without values
    array = arrow.numbers(data.astype(np.float64)) if share == 0.5 else arrow.numbers(data)
    found = percentile(function, share, array, np.arange(40), numbers, times, 6)
    each = np.repeat(np.arange(40), times)
    array = arrow.numbers(data[each].astype(np.float64)) if share == 0.5 else arrow.numbers(data[each])
    one_by_one = percentile(function, share, array, np.arange(len(each)), numbers[each], None, 6)
    assert arrow.pylist(found) == arrow.pylist(one_by_one)
    assert arrow.pylist(found)[4] is None
