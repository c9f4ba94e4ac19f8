"""Results as columns: vertices, edges and paths as structs with all that they have, in one type for each column."""

from __future__ import annotations

import datetime as dt
import json
import random
import sys
import tracemalloc
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest

import graphdb
from graphdb.common.values.types import edge_number
from graphdb.storage.graph.edges import EdgeTable, edge_numbers
from tests.fuzz import scaled
from tests.people import EX, opened

LABELS = "Person", "City"
VALUES = [1, 2, -3], ["a", "b", "ü"], [1.5, 2.25], [True, False], [[1, 2], [3], []], [["a", "b"], ["c,d"]], [[1.5, 2.0]]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[graphdb.Database]:
    with opened(tmp_path_factory.mktemp("exports")) as database:
        yield database


@pytest.fixture
def fresh() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        yield database


def as_struct(value: Any, keys: Any) -> Any:
    """What Arrow should have of a value of Python's: all keys of all elements of its column, null where it has none."""
    match value:
        case graphdb.Node():
            return {"id": value.iri, "labels": list(value.labels), "properties": about(value, keys)}
        case graphdb.Relationship():
            ends = {"type": value.type, "start": value.start, "end": str(value.end)}
            return {**ends, "properties": about(value, keys)}
        case graphdb.Path():
            return {
                name: [as_struct(part, keys) for part in getattr(value, name)] for name in ("nodes", "relationships")
            }
        case list():
            return [as_struct(item, keys) for item in value]
        case dict():
            return {key: as_struct(item, keys) for key, item in value.items()}
    return value


def about(element: Any, keys: Any) -> Any:
    of = keys[type(element)]
    return {key: element.properties.get(key) for key in of} if of else None


def elements(value: Any) -> Iterator[Any]:
    match value:
        case graphdb.Node() | graphdb.Relationship():
            yield value
        case graphdb.Path():
            yield from (*value.nodes, *value.relationships)
        case list():
            for item in value:
                yield from elements(item)
        case dict():
            yield from elements(list(value.values()))


def without_ids(value: Any) -> Any:
    """Take the ids of edges away: objects of Python's have none."""
    if isinstance(value, dict):
        return {key: without_ids(item) for key, item in value.items() if key != "id" or "type" not in value}
    return [without_ids(item) for item in value] if isinstance(value, list) else value


def check(result: graphdb.Result) -> None:
    """Compare what Arrow has of a result with its Python values."""
    rows = result.fetchall()
    found = result.to_arrow().to_pylist()
    for i, name in enumerate(result.columns):
        values = [row[i] for row in rows]
        keys: dict[type, list[str]] = {graphdb.Node: [], graphdb.Relationship: []}
        for part in elements(values):
            keys[type(part)] += [key for key in part.properties if key not in keys[type(part)]]
        assert [without_ids(row[name]) for row in found] == [as_struct(value, keys) for value in values]


def test_vertices_edges_and_paths_are_structs(fresh: graphdb.Database) -> None:
    import polars

    fresh.query(
        "CREATE (a:Person:Poet {name: 'Ada', age: 36})-[:KNOWS {since: 1833, how: ['letters', 'tea']}]->"
        "(:Person {name: 'Mary', tags: ['x']}), (a)-[:LIVES_IN]->(:City)"
    )
    result = fresh.query("MATCH p = (a:Person)-[e:KNOWS]->(b) RETURN a, e, p, [a, b] AS both, {e: e} AS m, id(e) AS id")
    row = result.to_arrow().to_pylist()[0]
    ada, mary = result.fetchall()[0][3]
    assert row["a"] == {"id": ada.iri, "labels": ["Person", "Poet"], "properties": {"age": 36, "name": "Ada"}}
    edge = {"id": row["id"], "type": "KNOWS", "start": ada.iri, "end": mary.iri}
    assert row["e"] == {**edge, "properties": {"since": 1833, "how": ["letters", "tea"]}}
    assert row["p"]["relationships"] == [row["e"]]
    assert row["m"] == {"e": row["e"]}
    assert [node["id"] for node in row["both"]] == [node["id"] for node in row["p"]["nodes"]] == [ada.iri, mary.iri]
    assert row["both"][1]["properties"] == {"age": None, "name": "Mary", "tags": ["x"]}
    check(result)
    frame = result.to_polars()
    assert frame.schema["a"] == polars.Struct(
        {
            "id": polars.String,
            "labels": polars.List(polars.String),
            "properties": polars.Struct({"age": polars.Int64, "name": polars.String}),
        }
    )
    assert frame["a"].struct.field("properties").struct.field("age").to_list() == [36]
    assert result.to_pandas()["a"][0]["properties"]["name"] == "Ada"


def test_properties_of_no_element_are_null(fresh: graphdb.Database) -> None:
    fresh.query("CREATE ()-[:R]->()")
    rows = fresh.query("MATCH (a)-[e]->(b) RETURN a, e").to_arrow().to_pylist()
    assert rows[0]["a"]["labels"] == []
    assert rows[0]["a"]["properties"] is None
    assert rows[0]["e"]["properties"] is None


def test_null_elements_and_no_rows(db: graphdb.Database) -> None:
    result = db.query("OPTIONAL MATCH p = (a:Person {name: 'Zed'})-[e]->() RETURN p, a, e, [a] AS l")
    assert result.to_arrow().to_pylist() == [{"p": None, "a": None, "e": None, "l": [None]}]
    empty = db.query("MATCH p = (a:Person)-[e]->() WHERE a.age > 1000 RETURN p, a, e")
    assert empty.to_arrow().schema.field("a").type.field("labels").type.value_type == pyarrow.string()
    assert empty.to_polars().shape == (0, 3)
    assert len(list(empty.fetch_batches())) == 1


def test_all_kinds_of_properties_of_rdf(db: graphdb.Database) -> None:
    people = db.query("MATCH (a:Person) RETURN a ORDER BY a.name").to_arrow().to_pylist()
    ada = people[0]["a"]["properties"]
    assert ada[EX + "nick"] == ["A", "Countess"]
    assert ada[EX + "price"] == Decimal("0.1")
    assert ada[EX + "mixed"] == "1"
    assert people[1]["a"]["properties"][EX + "mixed"] == "one"
    assert people[2]["a"]["properties"][EX + "age"] is None


@pytest.mark.parametrize("number", range(scaled(14)))
def test_random_graphs_export_what_python_has(number: int, fresh: graphdb.Database) -> None:
    draw = random.Random(number)
    keys = {key: draw.choice(VALUES) for key in draw.sample(["k", "l", "m", "Name", "a key"], draw.randint(0, 4))}
    edge_keys = {key: draw.choice(VALUES) for key in draw.sample(["w", "k"], draw.randint(0, 2))}

    def properties(of: dict[str, Any]) -> dict[str, Any]:
        return {key: draw.choice(values) for key, values in of.items() if draw.random() < 0.7}

    for i in range(draw.randint(1, 7)):
        labels = "".join(f":{label}" for label in LABELS if draw.random() < 0.5)
        fresh.query(f"CREATE (n{labels} {{}}) SET n = $p, n.i = $i", p=properties(keys), i=i)
    for _ in range(draw.randint(0, 9)):
        text = "MATCH (a {i: $a}), (b {i: $b}) CREATE (a)-[e:R]->(b) SET e = $p"
        fresh.query(
            text.replace(":R", draw.choice([":R", ":S"])),
            a=draw.randrange(4),
            b=draw.randrange(4),
            p=properties(edge_keys),
        )
    for query in (
        "MATCH (n) RETURN n, n.k AS k",
        "MATCH (a)-[e]->(b) RETURN a, e, b, a.i + b.i AS i",
        "MATCH p = (a)-[e]-{0,2}(b) RETURN p, e, [a, b] AS l",
        "MATCH (a) OPTIONAL MATCH (a)-[e:R]->(b) WITH a, collect(e) AS es, collect(b) AS bs RETURN es, bs, {a: a, n: size(es)} AS m",
        "MATCH (a) OPTIONAL MATCH p = (a)-[:S]->(b) RETURN p, b",
    ):
        check(fresh.query(query))


def test_what_a_rolled_back_transaction_saw(fresh: graphdb.Database) -> None:
    fresh.query("BEGIN")
    fresh.query("CREATE (:A {k: 1})-[:R {w: 2.5}]->(:B {k: 2, t: ['x']})")
    text = "MATCH p = (a)-[e]->(b) RETURN a, e, p, b.k AS k, [e, null] AS l, {e: e, k: [e]} AS m"
    wanted = fresh.query(text).to_arrow().to_pylist()
    result = fresh.query(text)
    fresh.query("ROLLBACK")
    check(result)
    assert result.to_arrow().to_pylist() == wanted
    assert wanted[0]["e"]["id"] == wanted[0]["p"]["relationships"][0]["id"] == wanted[0]["m"]["k"][0]["id"]


def test_the_numbers_of_edges_are_those_of_the_language(fresh: graphdb.Database) -> None:
    draw = random.Random(1)
    parts = np.array([[draw.randrange(1 << draw.randint(1, 50)) for _ in range(200)] for _ in range(4)])
    assert edge_numbers(*parts).tolist() == [edge_number(edge) for edge in parts.T.tolist()]
    fresh.query("UNWIND range(1, 50) AS i CREATE (:A {i: i})-[:R]->(:A)-[:S]->(:B)")
    result = fresh.query("MATCH (a)-[e]->(b) RETURN e, id(e) AS id")
    assert [row["e"]["id"] for row in result.to_arrow().to_pylist()] == [id for _, id in result]


def test_what_a_result_saw_before_a_write(fresh: graphdb.Database) -> None:
    fresh.query("UNWIND range(1, 10) AS i CREATE (:A {k: i})")
    result = fresh.query("MATCH (a:A) RETURN a ORDER BY a.k")
    batches = result.fetch_batches(4)
    first = next(batches)
    fresh.query("MATCH (a:A) SET a.k = 'gone', a.more = 1")
    assert [row["a"]["properties"] for batch in [first, *batches] for row in batch.to_pylist()] == [
        {"k": i} for i in range(1, 11)
    ]


def test_rows_of_a_statement_that_writes(fresh: graphdb.Database) -> None:
    result = fresh.query("CREATE (a:A {k: 1})-[e:R {w: 2.5}]->(b:B) RETURN a, e, b, [a, 1] AS l")
    row = result.to_arrow().to_pylist()[0]
    assert row["a"]["labels"] == ["A"]
    assert row["e"]["properties"] == {"w": 2.5}
    assert json.loads(row["l"][0])["properties"] == {"k": 1}


def test_numbers_of_several_types_are_one(fresh: graphdb.Database) -> None:
    import polars

    fresh.query("CREATE (:A {k: 1}), (:A {k: 2.5})")
    assert fresh.query("MATCH (a:A) RETURN a.k AS k ORDER BY k").to_polars()["k"].to_list() == [1.0, 2.5]
    assert fresh.query("MATCH (a:A) RETURN a.k AS k").to_pandas()["k"].dtype == float
    assert (
        fresh.query("MATCH (a:A) RETURN a").to_polars()["a"].struct.field("properties").struct["k"].dtype
        == polars.Float64
    )


def test_integers_beside_decimals_are_decimals(tmp_path: Path) -> None:
    import polars

    lines = [
        f"<urn:s{i}> <urn:k> {value} ."
        for i, value in enumerate(['"1"^^<{0}integer>', '"2.50"^^<{0}decimal>', '"9223372036854775807"^^<{0}integer>'])
    ]
    path = tmp_path / "numbers.nt"
    path.write_text("\n".join(lines).format("http://www.w3.org/2001/XMLSchema#"))
    with graphdb.connect() as db:
        db.load(path)
        result = db.query("MATCH (a) RETURN a, a.<urn:k> AS k ORDER BY k")
        expected = [Decimal(1), Decimal("2.5"), Decimal(2**63 - 1)]
        assert result.to_polars()["k"].dtype == polars.Decimal(38, 1)
        assert result.to_arrow()["k"].to_pylist() == expected
        assert [row["a"]["properties"]["urn:k"] for row in result.to_arrow().to_pylist()] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UNWIND [1, 'x', true, 2.50] AS v RETURN v", ["1", "x", "true", "2.5"]),
        ("UNWIND [[1, 'x'], [null], null] AS v RETURN v", [["1", "x"], [None], None]),
        ("UNWIND [{a: 1}, {a: 'x'}] AS v RETURN v", [{"a": "1"}, {"a": "x"}]),
        ("UNWIND [{a: 1}, {b: [2]}] AS v RETURN v", [{"a": 1, "b": None}, {"a": None, "b": [2]}]),
        ("UNWIND [{a: 1}, 7, 'x'] AS v RETURN v", ['{"a": 1}', "7", '"x"']),
    ],
)
def test_values_of_several_types(text: str, expected: list[Any], fresh: graphdb.Database) -> None:
    result = fresh.query(text)
    assert result.to_arrow()["v"].to_pylist() == expected
    assert result.to_polars()["v"].to_list() == expected
    assert len(result.to_pandas()) == len(expected)


def test_lists_that_are_properties(fresh: graphdb.Database) -> None:
    fresh.query(
        "CREATE (:L {n: [1, 2.5], a: [true, 1.5], b: [[1], []], c: [date('2020-01-31'), null], d: [date('2020-01-31'), 1],"
        " e: [localtime('10:00')], f: [localdatetime('2020-01-31T10:00')], g: [duration('P1D')], h: ['\"^^<x>', '[']})"
    )
    row = fresh.query("MATCH (a:L) RETURN a").to_arrow().to_pylist()[0]["a"]["properties"]
    assert row == {
        "n": [1.0, 2.5],
        "a": ["true", "1.5"],
        "b": ["[1]", "[]"],
        "c": [dt.date(2020, 1, 31), None],
        "d": ["2020-01-31", "1"],
        "e": [dt.time(10)],
        "f": [dt.datetime(2020, 1, 31, 10)],
        "g": ["P1D"],
        "h": ['"^^<x>', "["],
    }


def test_times_with_an_offset_within_lists_and_maps_are_texts(fresh: graphdb.Database) -> None:
    result = fresh.query("UNWIND [time('10:00+01:00'), null] AS t RETURN [t, time('09:00Z')] AS l, {k: {t: t}} AS m")
    expected = [
        {"l": ["10:00:00+01:00", "09:00:00+00:00"], "m": {"k": {"t": "10:00:00+01:00"}}},
        {"l": [None, "09:00:00+00:00"], "m": {"k": {"t": None}}},
    ]
    assert result.to_arrow().to_pylist() == result.to_polars().to_dicts() == expected
    assert [[*each] for each in result.to_pandas()["l"]] == [row["l"] for row in expected]


def test_streams_have_no_unions_even_of_sql(fresh: graphdb.Database) -> None:
    rows = (
        "SELECT union_value(k := 1)::UNION(k INTEGER, s VARCHAR) AS u, [union_value(k := 1)::UNION(k INTEGER, d DECIMAL(9, 2))] AS l, "
        "MAP {'a': union_value(k := 1)::UNION(k INTEGER, s VARCHAR)} AS m UNION ALL SELECT 'x', [2.25::DECIMAL(9, 2)], MAP {'a': 'y'}"
    )
    table = pyarrow.table(fresh.sql(rows))
    assert table["u"].to_pylist() == ["1", "x"]
    assert table["l"].to_pylist() == [[Decimal(1)], [Decimal("2.25")]]
    assert table["m"].to_pylist() == [[("a", "1")], [("a", "y")]]


def test_keys_that_differ_by_case_alone_and_very_many_keys_are_json(fresh: graphdb.Database) -> None:
    fresh.query("CREATE (:A {Name: 1, name: ['x']}), (:B $p)", p={f"k{i}": i for i in range(300)})
    row = fresh.query("MATCH (a:A)-[e]->{0,0}(a) RETURN a").to_arrow().to_pylist()[0]
    assert json.loads(row["a"]["properties"]) == {"Name": 1, "name": ["x"]}
    row = fresh.query("MATCH (b:B) RETURN b").to_arrow().to_pylist()[0]
    assert json.loads(row["b"]["properties"]) == {f"k{i}": i for i in range(300)}


def test_batches_are_the_whole_in_one_schema(fresh: graphdb.Database) -> None:
    fresh.query("UNWIND range(1, 1000) AS i CREATE (:A {k: i})")
    fresh.query("MATCH (a:A) WHERE a.k > 990 SET a.late = 'x'")
    result = fresh.query("MATCH (a:A) RETURN a, a.k AS k, CASE WHEN a.k = 500 THEN 'x' ELSE a.k END AS m ORDER BY k")
    batches = [pyarrow.table(batch) for batch in result.fetch_batches(300)]
    assert [batch.num_rows for batch in batches] == [300, 300, 300, 100]
    assert {batch.schema for batch in batches} == {result.to_arrow().schema}
    assert pyarrow.concat_tables(batches).to_pylist() == result.to_arrow().to_pylist()
    for size in (0, -1, 1.5, "x", True):
        with pytest.raises(graphdb.ParameterError, match="the size of a batch is a"):
            result.fetch_batches(size)  # type: ignore[arg-type]


def test_batches_make_no_objects(fresh: graphdb.Database) -> None:
    count = 20_000
    fresh.query("UNWIND range(1, $n) AS i CREATE (:A {k: i, t: 'text ' + toString(i)})", n=count)
    result = fresh.query("MATCH (a:A) RETURN a")
    tracemalloc.start()
    try:
        before = sys.getallocatedblocks()
        rows, most = 0, 0
        for batch in result.fetch_batches(4_000):
            rows += batch.num_rows
            most = max(most, sys.getallocatedblocks() - before)
    finally:
        tracemalloc.stop()
    assert rows == count
    assert most < count // 10


def test_results_as_data_of_other_statements_have_iris(db: graphdb.Database, fresh: graphdb.Database) -> None:
    edges = db.query("MATCH (a:Person)-[:likes]->(b) RETURN a, 'urn:likes' AS p, b")
    assert fresh.apply(edges).additions == 2
    assert fresh.query("MATCH (a)-[:<urn:likes>]->(b) RETURN count(*)").scalar() == 2


@pytest.mark.parametrize("different", [7, 2500])
def test_durations_that_come_again_are_written_as_python_writes_them(different: int) -> None:
    """Few different ones are written one by one, many by SQL; null stays null."""
    with graphdb.connect(threads=1) as db:
        text = (
            f"UNWIND range(1, 3000) AS i WITH i % {different} AS d RETURN CASE WHEN d <> 3 THEN duration({{months: d - 3, "
            "days: d % 5 - 2, seconds: d * 61 - 200, nanoseconds: d % 3}) END AS d"
        )
        for asked in (text, text.replace("CASE WHEN d <> 3 THEN ", "").replace(" END", "")):
            found = db.query(asked)
            shown = [None if value is None else str(value) for (value,) in db.query(asked).fetchall()]
            assert found.to_arrow().column(0).to_pylist() == shown
            assert len(set(shown)) == different


def test_values_of_several_types_are_written_once_each() -> None:
    with graphdb.connect(threads=1) as db:
        text = "UNWIND range(1, 3000) AS i WITH i % $n AS d RETURN [d, d > 3, CASE WHEN d <> 5 THEN d + 1 END] AS l"
        for different in (10, 2000):
            lists = db.query(text, n=different).to_arrow().column(0).to_pylist()
            numbers = [i % different for i in range(1, 3001)]
            assert lists == [[str(d), str(d > 3).lower(), None if d == 5 else str(d + 1)] for d in numbers]


def test_edges_of_which_many_come_again() -> None:
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(0, 99) AS i CREATE (:P {k: i})")
        db.query("MATCH (a:P), (b:P) WHERE (a.k * 7 + b.k) % 10 = 3 CREATE (a)-[:r {w: a.k * 100 + b.k}]->(b)")
        for text in (
            "MATCH (a)-[e:r]->(b) RETURN e, a.k, b.k",
            "UNWIND [1, 2, 3] AS x MATCH (a)-[e:r]->(b) RETURN e, a.k, b.k",
        ):
            rows = db.query(text).to_arrow().to_pylist()
            assert len(rows) == 1000 * (3 if "UNWIND" in text else 1)
            assert all(row["e"]["properties"] == {"w": row["a.k"] * 100 + row["b.k"]} for row in rows)
            assert len({row["e"]["id"] for row in rows}) == 1000


def test_edges_that_a_match_chose_are_not_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parallel ones among them; the edges of a result, of which others have gone since, are those of before."""
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(0, 99) AS i CREATE (:P {k: i})")
        for more in (0, 10_000):  # of each two parallel ones
            text = f"MATCH (a:P), (b:P) WHERE (a.k * 7 + b.k) % 10 = 3 CREATE (a)-[:r {{w: a.k * 100 + b.k + {more}}}]->(b)"
            db.query(text)
        few, late = "MATCH (a:P)-[e:r]->(b) WHERE a.k < 30 RETURN e, a.k, b.k, e.w AS w", []
        with monkeypatch.context() as patch:
            patch.setattr(EdgeTable, "find", lambda *_: pytest.fail("searched for"))
            for text in (few, f"{few} ORDER BY w DESC", f"{few}, e.w % 7 AS m ORDER BY m, w LIMIT 500"):
                rows = db.query(text).to_arrow().to_pylist()
                assert len(rows) == (500 if "LIMIT" in text else 600)
                assert all(row["w"] % 10_000 == row["a.k"] * 100 + row["b.k"] for row in rows)
                assert all(row["e"]["properties"] == {"w": row["w"]} for row in rows)
                assert len({row["e"]["id"] for row in rows}) == len(rows)
                late.append((db.query(text), rows))
        db.query("MATCH (a:P)-[e:r]->() WHERE a.k < 3 DELETE e")
        assert all(result.to_arrow().to_pylist() == rows for result, rows in late)
        rows = db.query(few).to_arrow().to_pylist()
        assert len(rows) == 540
        assert all(row["e"]["properties"] == {"w": row["w"]} for row in rows)
