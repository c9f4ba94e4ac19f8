"""Key lookup: whatever was written since the index was read, the vertices that it finds have the value."""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Iterator

import pytest

import graphdb
from graphdb.snapshot.key_index import LOOKS, KeyIndex, KeyIndexes
from tests.fuzz import scaled

VALUES = {
    "integers": list(range(-3, 6)),
    "strings": ["", "a", "ab", "b", "é", "😀", "ﬀ", "zz", "A"],
    "floats": [0.0, -0.0, 2.0, -2.5, 0.1, 1e300, -5e-324, math.inf, -math.inf],
    "dates": [datetime.date(1970, 1, 1) + datetime.timedelta(days) for days in (-700_000, -1, 0, 1, 20_000, 2_000_000)],
}


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        yield database


def looked_up(db: graphdb.Database, value: object) -> list[int]:
    return sorted(row for (row,) in db.query("MATCH (a:A {key: $value}) RETURN a.row", value=value).fetchall())


def indexed(db: graphdb.Database) -> dict[int, KeyIndex]:
    keys: KeyIndexes = db._state.snapshot().keys
    return keys._indexes


@pytest.mark.parametrize("seed", range(scaled(6)))
@pytest.mark.parametrize("values", VALUES)
def test_writes_are_followed(db: graphdb.Database, values: str, seed: int) -> None:
    """Vertices come and go, values change, appear twice and are taken away; some of it is rolled back."""
    draw, domain = random.Random(seed), VALUES[values]
    model = {row: draw.choice(domain) for row in range(30)}
    rows = [{"row": row, "key": key} for row, key in model.items()]
    db.query("UNWIND $rows AS row CREATE (:A {row: row.row, key: row.key})", rows=rows)
    for value in domain[: LOOKS + 1]:
        looked_up(db, value)
    saved = None
    for step in range(30):
        row, value = draw.choice([*model, 1000 + step]), draw.choice(domain)
        match draw.randrange(9):
            case 0 | 1:
                db.query("CREATE (:A {row: $row, key: $key})", row=1000 + step, key=value)
                model[1000 + step] = value
            case 2 | 3 if row in model:
                db.query("MATCH (a:A {row: $row}) SET a.key = $key", row=row, key=value)
                model[row] = value
            case 4 if row in model:
                db.query("MATCH (a:A {row: $row}) REMOVE a.key", row=row)
                model[row] = None  # type: ignore[assignment]
            case 5 if row in model:
                db.query("MATCH (a:A {row: $row}) DETACH DELETE a", row=row)
                del model[row]
            case 6 if saved is None:
                db.query("BEGIN")
                saved = dict(model)
            case 7 if saved is not None:
                ending = draw.choice(["COMMIT", "ROLLBACK"])
                db.query(ending)
                model, saved = (model if ending == "COMMIT" else saved), None
        for value in draw.sample(domain, 2):
            assert looked_up(db, value) == sorted(row for row, key in model.items() if key == value), (step, value)
    for value in domain:
        assert looked_up(db, value) == sorted(row for row, key in model.items() if key == value)
    for size in range(4):
        some = [*draw.sample(domain, size), *draw.choices([None, domain[0]], k=size % 2)]
        found = db.query("MATCH (a:A) WHERE a.key IN $some RETURN a.row", some=some).fetchall()
        expected = [row for row, key in model.items() if key is not None and key in some]
        assert sorted(row for (row,) in found) == sorted(expected), some


def test_an_index_is_made_once_a_key_is_asked_for_again(db: graphdb.Database) -> None:
    db.query("UNWIND range(1, 100) AS i CREATE (:A {key: i, row: i})")
    for i in range(1, LOOKS + 3):
        assert not indexed(db) or i > LOOKS
        assert looked_up(db, i) == [i]
    (index,) = indexed(db).values()
    assert len(index) == 100
    db.query("CREATE (:A {key: 7, row: 700})")
    assert indexed(db) == dict.fromkeys(indexed(db), index)  # followed, not made anew
    assert looked_up(db, 7) == [7, 700]
    db.query("UNWIND range(1, 2000) AS i CREATE (:A {key: -i, row: -i})")
    assert not indexed(db)
    assert looked_up(db, -5) == [-5]
    assert [len(index) for index in indexed(db).values()] == [2101]


def test_the_same_key_is_asked_for_once(db: graphdb.Database) -> None:
    """As by the matches of one statement: what was found is known until the data change."""
    db.query("UNWIND range(1, 100) AS i CREATE (:A {key: i, row: i})")
    for _ in range(LOOKS + 3):
        assert looked_up(db, 50) == [50]
    assert not indexed(db)
    db.query("CREATE (:A {key: 50, row: 51})")
    assert looked_up(db, 50) == [50, 51]
    db.query("MATCH (a:A {row: 50}) SET a.key = 3")
    assert looked_up(db, 50) == [51]
    assert looked_up(db, 3) == [3, 50]


def test_values_of_other_types_are_found_as_before(db: graphdb.Database) -> None:
    """What an index does not tell is SQL's: numbers of other types, several values, mixed ones."""
    db.query("UNWIND range(1, 9) AS i CREATE (:A {key: i, row: i})")
    for _ in range(LOOKS + 2):
        assert looked_up(db, 3) == [3]
        assert looked_up(db, 3.0) == [3]
        assert looked_up(db, "3") == []
        assert looked_up(db, True) == []
        for some, rows in (
            ([3, 3.0, 4], [3, 4]),
            ([3, "4"], [3]),
            ([True, 1], [1]),
            ([], []),
            ([None], []),
            ([2, 2], [2]),
        ):
            found = db.query("MATCH (a:A) WHERE a.key IN $some RETURN a.row", some=some).fetchall()
            assert sorted(row for (row,) in found) == rows, some
    db.query("CREATE (:A {key: 3.0, row: 30})")
    assert looked_up(db, 3) == [3, 30]
    db.query("CREATE (:A {key: '3', row: 33}), (:A {key: true, row: 34})")
    assert looked_up(db, 3) == [3, 30]
    assert looked_up(db, "3") == [33]
    assert looked_up(db, True) == [34]


def test_numbers_of_another_type_are_found_where_they_are_equal(db: graphdb.Database) -> None:
    """Integers are compared with floats as floats, by SQL and by an index."""
    integers = [*range(-3, 9), 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
    floats = [-2.0, 0.5, 2.0, 3.0, 2.0**53, 1e300, math.inf, math.nan]
    asked = [*integers, *map(float, integers), *floats, 2.5, -0.0, True, "3", None]
    for keys in (integers, floats):
        db.query("MATCH (a) DETACH DELETE a")
        db.query("UNWIND $rows AS row CREATE (:A {row: row[0], key: row[1]})", rows=[*map(list, enumerate(keys))])
        for value in asked * 2:
            alike = float if isinstance(value, float) or keys is floats else int
            numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
            some = [row for row, key in enumerate(keys) if numeric and alike(key) == alike(value)]
            assert looked_up(db, value) == some, value
            db.query("MATCH (a:A {key: $value}) SET a.seen = a.key", value=value)  # what is found is read as it is
            seen = db.query("MATCH (a:A) WHERE a.seen IS NOT NULL RETURN a.row, a.seen ORDER BY a.row").fetchall()
            assert list(map(repr, seen)) == [repr((row, keys[row])) for row in some], value
            db.query("MATCH (a:A) REMOVE a.seen")
        assert indexed(db)


def test_either_of_some_values(db: graphdb.Database) -> None:
    """Values that a property is compared with one after the other are a list of them."""
    db.query("UNWIND range(1, 30) AS i CREATE (:A {row: i, key: i % 7, other: i % 5, day: date('2020-01-01')})")
    forms = {
        "a.key = $x OR a.key = $y": lambda key, other, x, y: key in (x, y),
        "$x = a.key OR a.key = 3 OR a.key = $y": lambda key, other, x, y: key in (x, y, 3),
        "a.key = $x OR a.other = $y": lambda key, other, x, y: key == x or other == y,
        "a.key = $x OR a.key < $y": lambda key, other, x, y: key == x or key < y,
        "a.key = $x OR a.key = a.other OR a.key = $y": lambda key, other, x, y: key in (x, y, other),
        "a.key = $x AND a.key = $y": lambda key, other, x, y: key == x == y,
        "a.key = $x XOR a.key = $y": lambda key, other, x, y: (key == x) != (key == y),
        "NOT (a.key = $x OR a.key = $y)": lambda key, other, x, y: key not in (x, y),
    }
    for _ in range(LOOKS + 1):
        for condition, holds in forms.items():
            for x, y in ((1, 2), (2, 2), (6, 99), (3, 4.0)):
                found = db.query(f"MATCH (a:A) WHERE {condition} RETURN a.row ORDER BY a.row", x=x, y=y).fetchall()
                assert found == [(i,) for i in range(1, 31) if holds(i % 7, i % 5, x, y)], (condition, x, y)
    for x, y in ((1, None), (None, None), ("a", 1), ([1], 1)):
        found = db.query("MATCH (a:A) WHERE a.key = $x OR a.key = $y RETURN a.row", x=x, y=y).fetchall()
        assert len(found) == sum(i % 7 == y for i in range(1, 31)) + sum(i % 7 == x for i in range(1, 31))


def test_a_property_may_become_one_of_another_type(db: graphdb.Database) -> None:
    db.query("UNWIND range(1, 30) AS i CREATE (:A {row: i, key: i % 7})")
    for value in range(LOOKS + 2):
        looked_up(db, value)
    for of, made in (("toString(a.key)", str), ("toFloat(a.key)", float), ("toInteger(a.key)", int)):
        db.query(f"MATCH (a:A) SET a.key = {of}")
        for value in range(LOOKS + 2):
            assert looked_up(db, made(value)) == [i for i in range(1, 31) if i % 7 == value]


def test_any_of_several_values(db: graphdb.Database) -> None:
    """A property that has several values has each of them; other lexical forms are the same integer."""
    import io

    xsd = "http://www.w3.org/2001/XMLSchema#"
    lines = [f'<e:{i}> <e:key> "{i % 3}"^^<{xsd}integer> .' for i in range(9)]
    lines += [f'<e:{i}> <e:key> "0{(i + 1) % 3}"^^<{xsd}int> .' for i in range(4)]
    db.load(io.BytesIO("\n".join(lines).encode()), format="ntriples")
    for _ in range(LOOKS + 2):
        for value in range(4):
            expected = sorted({f"e:{i}" for i in range(9) if i % 3 == value}
                              | {f"e:{i}" for i in range(4) if (i + 1) % 3 == value})  # fmt: skip
            found = db.query("MATCH (a) WHERE a.key = $x RETURN a", x=value).fetchall()
            assert sorted(vertex.iri for (vertex,) in found) == expected
    assert indexed(db)


def test_edges_of_a_propertys_name_are_no_values(db: graphdb.Database) -> None:
    """A key may become an edge type, too, once its index is read."""
    db.query("UNWIND range(1, 30) AS i CREATE (:A {row: i, key: i % 3})")
    for value in range(LOOKS + 2):
        looked_up(db, value % 3)
    db.query("CREATE (:A {row: 100, key: 1})")
    assert looked_up(db, 1) == [*range(1, 31, 3), 100]
    assert indexed(db)
    db.query("MATCH (a:A {row: 100}) CREATE (a)-[:key]->(:C)")
    assert looked_up(db, 1) == [*range(1, 31, 3), 100]
    db.query("MATCH (a:A {row: 100})-[r:key]->(:C) DELETE r")
    assert looked_up(db, 1) == [*range(1, 31, 3), 100]


def test_several_integers_are_found_at_once(db: graphdb.Database) -> None:
    db.query("UNWIND range(1, 60) AS i CREATE (:A {row: i, key: i % 12})")
    for value in range(LOOKS + 2):
        looked_up(db, value)
    (index,) = indexed(db).values()
    connection, keys = db._state.snapshot().connection, {row: row % 12 for row in range(1, 61)}
    for change in ("", "MATCH (a:A {row: 5}) SET a.key = 0"):
        if change:
            db.query(change)
            keys[5] = 0
        for some in ([0, 1, 2, 3], [11, 0], [7, 7, 3], [-1, 12], [*range(12)], [4, 2**63 - 1]):
            rows = db.query("MATCH (a:A) WHERE a.key IN $some RETURN a.row ORDER BY a.row", some=some).fetchall()
            assert rows == [(row,) for row, key in keys.items() if key in some]
            together = index.find_numbers(connection, some)
            each = [vertex for value in set(some) for vertex in index.find(connection, value).tolist()]
            assert (together is None) == bool(change)
            assert together is None or sorted(together.tolist()) == sorted(each)
