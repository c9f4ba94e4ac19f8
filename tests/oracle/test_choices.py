"""Lists of several types as columns of SQL, against the evaluator of Python: what is equal, ordered, distinct, appended.

Values are drawn of all types, within one another: nulls, NaN, zeros with signs, integers that no float is, lists, maps,
vertices, edges, durations and dates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled
from tests.oracle.routes import in_python

SCALARS = st.sampled_from(
    "null 1 2 -1 0 9007199254740993 9007199254740992 9007199254740992.0 1.0 1.5 -0.0 0.0 (0.0/0.0) 'a' 'b' '' true false "
    "date('2020-01-01') duration('P1D') duration('PT24H') localdatetime('2020-01-01T10:00') n.i n.f n.s n.b n.none".split()
)
ELEMENTS = st.sampled_from(["n", "m", "r"])


def _within(items: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(items, max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
    maps = st.dictionaries(st.sampled_from("ab"), items, max_size=2).map(
        lambda parts: "{" + ", ".join(f"{key}: {value}" for key, value in parts.items()) + "}"
    )
    return lists | maps


VALUES = st.recursive(SCALARS | ELEMENTS, _within, max_leaves=6)
LISTS = st.lists(VALUES, min_size=2, max_size=6).map(lambda items: f"[{', '.join(items)}]")


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query(
            "CREATE (:V {i: 1, f: 2.5, s: 'a', b: true})-[:R {i: 3}]->(:V {i: 9007199254740993, f: 1.0, s: 'b'})"
        )
        database.query("MATCH (a:V {i: 1}), (b:V {s: 'b'}) CREATE (b)-[:R]->(a)")
        yield database


def _plain(value: Any, signs: bool) -> Any:
    """Return a value whose keys of maps, which have no order, are in one; ``signs`` says whether zeros have any."""
    if isinstance(value, (list, tuple)):
        return [_plain(item, signs) for item in value]
    if isinstance(value, dict):
        return {key: _plain(value[key], signs) for key in sorted(value)}
    return value + 0.0 if isinstance(value, float) and not signs else value


def _check(db: graphdb.Database, clauses: str, *, ordered: bool = False, signs: bool = False) -> None:
    text = f"MATCH (n:V)-[r:R]->(m) {clauses}"
    both = db.query(text).fetchall(), in_python(db, text)
    found, expected = ([repr(_plain(row, signs)) for row in rows] for rows in both)
    assert (found if ordered else sorted(found)) == (expected if ordered else sorted(expected)), text


_DRAWN = settings(
    max_examples=scaled(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@_DRAWN
@given(LISTS, LISTS)
def test_pairs(db: graphdb.Database, left: str, right: str) -> None:
    pairs = f"UNWIND {left} AS x UNWIND {right} AS y RETURN x, y"
    _check(
        db,
        f"{pairs}, x = y AS e, x <> y AS d, x < y AS l, x >= y AS g, [x] = [y] AS le, [1, x] < [1, y] AS ll",
        signs=True,
    )
    _check(
        db,
        f"{pairs}, x IN {right} AS i, [x] + y AS a, {left} + [y] AS b, size({left}) AS s, {left}[size({right}) - 3] AS o",
    )


@_DRAWN
@given(LISTS)
def test_distinct(db: graphdb.Database, items: str) -> None:
    _check(db, f"UNWIND {items} AS x RETURN DISTINCT x")
    _check(db, f"UNWIND {items} AS x RETURN x, count(*) AS c")
    _check(db, f"UNWIND {items} AS x RETURN count(x) AS c, count(DISTINCT x) AS d, size(collect(x)) AS s")
    _check(db, f"RETURN [x IN {items} WHERE x IS NOT NULL] AS l, any(x IN {items} WHERE x = 1) AS a, {items}[1..] AS t")


@_DRAWN
@given(LISTS)
def test_order(db: graphdb.Database, items: str) -> None:
    _check(db, f"WITH n, {items} AS l UNWIND l AS x WITH x ORDER BY x LIMIT 4 RETURN collect(x) AS l", ordered=True)
    _check(db, f"UNWIND {items} AS x RETURN min(x) AS a, max(x) AS b")
    _check(db, f"WITH [{items}, [n.i]] AS ls UNWIND ls AS l RETURN l ORDER BY l DESC", ordered=True)


LIST = (
    "[n, r, 1, 'a', n.i, [1, 2], [n.i, 'x'], {a: n.i}, [], null, true, [null], [[n]], 1.0, [1.0, 2], duration('P1D')]"
)


@pytest.mark.parametrize(
    "clauses",
    [
        f"UNWIND {LIST} AS x RETURN DISTINCT x",
        f"UNWIND {LIST} AS x RETURN x, count(*) AS c ORDER BY x",
        f"UNWIND {LIST} AS x UNWIND {LIST} AS y RETURN x, y, x = y AS e, x < y AS l",
        f"RETURN size({LIST}) AS s, {LIST}[n.i] AS o, {LIST}[1..3] AS p, [x IN {LIST} WHERE x = 1] AS l, [1, 2] IN {LIST} AS i",
        f"RETURN {LIST} + n.s AS a, {LIST} + [[n.s]] AS b, any(x IN {LIST} WHERE x = [1, 2]) AS c, [[n.i], 2] < [[n.f], 1] AS d",
        f"UNWIND {LIST} AS x RETURN count(DISTINCT x) AS d, max(x) AS m, min(x) AS l",
        "UNWIND [{k: 'i', v: n.i}, {k: 's', v: [n.s]}] AS p RETURN p.k AS k, p.v AS v, {} = {} AS e, [{}, {a: 1}] AS m",
        "WITH n, m, [n, 1, r] AS l RETURN labels(l[0]) AS n, type(l[2]) AS r, (l[2]).i AS i, [x IN [n, m] | x.s] AS s",
        "RETURN CASE n.i WHEN 1 THEN [n.s] ELSE n END AS c, coalesce(n.none, [1, 'a'], 1) AS d, reduce(l = [], x IN [1, [2]] | l + x) AS a",
        "MATCH p = (n)-->() WITH [p, n, 1] AS l UNWIND l AS x RETURN x ORDER BY x",
    ],
)
def test_is_of_sql(db: graphdb.Database, clauses: str) -> None:
    assert "in Python" not in db.explain(f"MATCH (n:V)-[r:R]->(m) {clauses}")
    _check(db, clauses, ordered="ORDER" in clauses)


def test_properties_of_several_types_are_compared_with_what_is_chosen(db: graphdb.Database) -> None:
    """Of vertices that only the comparison joins, where lists are among the values, which no type of SQL holds."""
    db.query("UNWIND [1, 'x', [1, 2], ['a', 'b'], 1.5, true, [], null] AS m CREATE (:W {m: m})")
    try:
        for chosen in (
            "CASE WHEN b.m = 1 THEN b.m ELSE a.m END",
            "coalesce(a.m, b.m)",
            "CASE b.m WHEN [1, 2] THEN 1 END",
        ):
            for operator in "=", "<", "<>":
                text = f"MATCH (a:W), (b:W) WHERE {chosen} {operator} b.m RETURN count(*)"
                assert db.query(text).fetchall() == in_python(db, text), text
    finally:
        db.query("MATCH (a:W) DELETE a")
