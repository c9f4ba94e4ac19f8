"""RETURN: aggregates, grouping, order, pages and names of columns, over a graph small enough to answer by hand."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import graphdb
from tests.people import EX, XSD, opened


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with opened(tmp_path_factory.mktemp("queries")) as database:
        yield database


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("MATCH (a) RETURN count(a.age), sum(a.age), avg(a.age), min(a.age), max(a.age)", [(2, 76, 38.0, 36, 40)]),
        (
            "MATCH (a) WHERE a.age > 99 RETURN count(*), count(a.age), sum(a.age), avg(a.age), max(a.age), collect(a)",
            [(0, 0, 0, None, None, [])],
        ),
        ("MATCH (a) WHERE a.age > 99 RETURN a.name, count(*)", []),
        ("MATCH (a) RETURN avg(a.age) + null, count(*) = null", [(None, None)]),  # SQL knows them without aggregates
        ("MATCH (a) WHERE a.age > 99 RETURN min(null) + 1", [(None,)]),
        (
            "UNWIND [1, 2] AS k CALL (k) { MATCH (a) WHERE a.age > k * 39 RETURN sum(a.age) * null AS s } RETURN k, s",
            [(1, None), (2, None)],
        ),
        ("MATCH (a)-[:worksAt]->(f) RETURN f.name, count(*) AS n, max(a.age) - min(a.age)", [("Acme", 2, 4)]),
        ("MATCH (a)-[:knows]->(b) RETURN count(DISTINCT b), count(b)", [(3, 5)]),
        ("MATCH (a) RETURN count(*) / 2", [(2,)]),
        ("MATCH (a:Person) RETURN a.age IS NULL AS none, count(*) AS n ORDER BY n", [(True, 1), (False, 2)]),
        (
            "MATCH (a)-[:knows]->(b) RETURN b.name AS n, count(*) AS c ORDER BY c DESC, n LIMIT 2",
            [("Ada", 2), ("Cy", 2)],
        ),
        ("MATCH (a)-[:knows]->(b) RETURN b.name, count(*) ORDER BY count(*), b.name LIMIT 1", [("Bob", 1)]),
        ("MATCH (a:Person) RETURN a, count(*) ORDER BY a.name LIMIT 1", [(graphdb.Node(EX + "ada"), 1)]),
        (
            "MATCH (a:Person) RETURN a.name AS n, a.age AS g ORDER BY g + 0 DESC, n",
            [("Cy", None), ("Bob", 40), ("Ada", 36)],
        ),
        ("MATCH (a:Person) RETURN a.name ORDER BY a.age", [("Ada",), ("Bob",), ("Cy",)]),
        ("MATCH (a) RETURN DISTINCT a.age AS g ORDER BY g", [(36,), (40,), (None,)]),
        ("MATCH (a) RETURN DISTINCT a.age AS g ORDER BY g DESC SKIP 1 LIMIT 1", [(40,)]),
        # openCypher's order: strings, booleans, numbers, null.
        (
            "MATCH (a) RETURN a.mixed AS m ORDER BY m",
            [("one",), (True,), (1,), (Decimal("1.5"),), (None,)],
        ),
        ("MATCH (a) RETURN min(a.mixed), max(a.mixed)", [("one", Decimal("1.5"))]),
        ("MATCH (a) RETURN a.name AS a ORDER BY a LIMIT 1", [("Acme",)]),
        ("MATCH (a) RETURN a.name LIMIT 0", []),
        ("MATCH (a) RETURN count(*) SKIP 1", []),
        (
            "MATCH (a:Person) RETURN EXISTS { (a)-[:likes]->() } AS l, a.name ORDER BY a.name",
            [(True, "Ada"), (True, "Bob"), (False, "Cy")],
        ),
        ("MATCH (a:Robot) RETURN labels(a)", [([EX + "Person", EX + "Robot"],)]),
        ("MATCH (a)-[e]->() RETURN type(e) AS t, count(*) ORDER BY t LIMIT 1", [(EX + "both", 1)]),
    ],
)
def test_returned_rows(db: graphdb.Database, query: str, rows: list[tuple[Any, ...]]) -> None:
    assert db.query(query).fetchall() == rows


def test_columns_and_star(db: graphdb.Database) -> None:
    assert db.query("MATCH (b)-[e:likes]->(a) RETURN *").columns == ("b", "a", "e")
    assert db.query("MATCH (a)-[:likes]->(b) RETURN a.name, b.name AS other, count(*)").columns == (
        "a.name",
        "other",
        "count(*)",
    )
    assert db.query('MATCH (`x y`:Firm) RETURN `x y`.name AS `the "name"`').columns == ('the "name"',)
    with pytest.raises(graphdb.GraphDBError, match="two columns are called 'x'"):
        db.query("MATCH (a) RETURN a.name AS x, a.age AS x")
    with pytest.raises(graphdb.GraphDBError, match="needs a variable"):
        db.query("MATCH () RETURN *")


def test_many_rows_keep_their_order_in_every_form(tmp_path: Path) -> None:
    lines = [f"<urn:v{i:04}> <urn:p:next> <urn:v{(i * 7 + 1) % 3000:04}> .\n" for i in range(3000)]
    lines += [f'<urn:v{i:04}> <urn:p:rank> "{(i * 1117) % 3000}"^^<{XSD}integer> .\n' for i in range(3000)]
    with opened(tmp_path, "".join(lines)) as db:
        result = db.query("MATCH (a)-[:next]->(b) RETURN a.rank AS r, a, b, collect(b) AS list ORDER BY r DESC")
        expected = [2999 - i for i in range(3000)]
        assert [row[0] for row in result] == expected
        assert result.to_arrow()["r"].to_pylist() == expected
        assert all(row["list"] == [row["b"]] for row in result.to_arrow().to_pylist())
        assert list(result.to_pandas()["r"]) == expected
        nested = {
            "collect(b)": None,
            "[[a.rank]]": [[7]],
            "[{n: a.rank}]": [{"n": 7}],
            "{n: {m: a.rank}}": {"n": {"m": 7}},
        }
        for item, seventh in nested.items():
            table = db.query(f"MATCH (a)-[:next]->(b) RETURN a.rank AS r, {item} AS item ORDER BY r").to_arrow()
            assert table["r"].to_pylist() == expected[::-1]
            assert seventh is None or table["item"][7].as_py() == seventh


def test_sorting_by_an_unknown_name_is_an_error_even_when_only_counting(db: graphdb.Database) -> None:
    with pytest.raises(graphdb.GraphDBError, match="nosuch"):
        db.query("MATCH (a) RETURN count(*) ORDER BY nosuch")


def test_lists_of_several_types_are_grouped() -> None:
    """A list with a subquery in it is a key beside an aggregate, too, and 1 and 1.0 are one key."""
    with graphdb.connect(device="cpu") as database:
        database.query("CREATE (:V {m: 1}), (:V {m: 1.0}), (:V {m: 'x'}), (:V)")
        found = database.query("MATCH (n:V) RETURN [y IN [n] | y.m] AS l, count(*) AS c").fetchall()
        assert sorted(found, key=repr) == [(["x"], 1), ([1], 2), ([None], 1)]


def test_lists_of_several_types_are_grouped_and_sorted_by() -> None:
    """Items that differ only by a number type are one key; numbers are sorted behind texts, as openCypher has it."""
    with graphdb.connect(device="cpu") as database:
        database.query("UNWIND range(0, 199) AS i CREATE (:V {k: i, t: 'x' + i % 7})")
        keys = sorted({(i % 5, f"x{i % 7}") for i in range(200)})
        expected = [([*key], sum((i % 5, f"x{i % 7}") == key for i in range(200))) for key in keys]
        items = "[n.k % 5, n.t] AS l"
        for text in (f"WITH {items} RETURN l, count(*) AS c ORDER BY l", f"RETURN {items}, count(*) AS c ORDER BY l"):
            assert database.query(f"MATCH (n:V) {text}").fetchall() == expected
        found = database.query(f"MATCH (n:V) WITH {items} RETURN DISTINCT l ORDER BY l DESC LIMIT 4").fetchall()
        assert found == [(key,) for key, _ in expected[:-5:-1]]
        mixed = "CASE n.k % 2 WHEN 0 THEN [n.k % 3, 'a'] ELSE ['a', n.k % 3] END AS l"
        found = database.query(f"MATCH (n:V) WITH {mixed} RETURN l, count(*) AS c ORDER BY l").fetchall()
        assert [key for key, _ in found] == [["a", 0], ["a", 1], ["a", 2], [0, "a"], [1, "a"], [2, "a"]]
        assert sum(count for _, count in found) == 200
