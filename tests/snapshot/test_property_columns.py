"""Property columns: what is gathered for vertices equals what a dictionary says, whatever changes in between."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import graphdb
from graphdb.common import arrow
from graphdb.snapshot import columns
from graphdb.snapshot.columns import ValueColumn
from tests.fuzz import scaled

Person = dict[str, Any]


def column_of(known: dict[int, Any], random: Random, type: Any) -> ValueColumn:
    """Return the column of a dictionary, of which equal values may stand once or several times."""
    subjects, values = list(known), sorted({*known.values(), "unused" if arrow.is_string(type) else 0})
    random.shuffle(subjects)
    values += values[:3]
    standing = [random.choice([i for i, value in enumerate(values) if value == known[n]]) for n in subjects]
    return ValueColumn.of(np.array(subjects, np.int64), np.array(standing, np.int32), arrow.array(values, type))


@pytest.mark.parametrize("spread", [1, 2, 50])
@pytest.mark.parametrize("texts", [True, False])
def test_a_gather_is_a_look_up(spread: int, texts: bool) -> None:
    random = Random(spread)
    for size in (0, 1, 7, 300):
        subjects = random.sample(range(100, 100 + spread * size), size)
        value = (lambda: random.choice(["", "a", "ü" * 40, str(random.random())])) if texts else random.random
        known: dict[int, Any] = {n: value() for n in subjects}
        column = column_of(known, random, arrow.STRING if texts else arrow.FLOAT64)
        for _ in range(3):
            ids = [random.choice([*subjects, None, 0, 99, 10**6]) for _ in range(500)]
            for wanted in (ids, [n for n in ids if n is not None], sorted(known), sorted(known)[2:5], []):
                expected = [None if n is None else known.get(n) for n in wanted]
                array = arrow.array(wanted, random.choice([arrow.INT32, arrow.INT64]))
                assert arrow.pylist(column.gather(array)) == expected
                assert arrow.pylist(column.gather(arrow.ChunkedArray([array.slice(0, 3), array.slice(3)]))) == expected
            assert column.spread(3) is (None if column.places is not None else column)
            if random.random() < 0.5:
                column = column.spread(1 << 20) or pytest.fail("there is room")
                assert column.places is None
            assert arrow.pylist(column.gather(arrow.array(ids, arrow.INT64))) == [known.get(n) for n in ids]
            vertices, values = column.rows()
            assert vertices.tolist() == sorted(known)
            assert arrow.pylist(values) == [known[n] for n in sorted(known)]
            changed = sorted({0, 10**6, *random.sample(subjects, size // 5)})
            anew = {n: value() for n in random.sample(changed, len(changed) // 2)}
            known = {n: each for n, each in known.items() if n not in changed} | anew
            if column.changed is not None:  # those that changed before are read once more
                changed = sorted({*changed, *column.changed.tolist()})
                anew = {n: known[n] for n in changed if n in known}
            later = column_of(anew, random, arrow.STRING if texts else arrow.FLOAT64)
            column = column.changed_to(np.array(changed, np.int64), later)


def test_a_large_gather_of_texts_is_several_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "TEXT_BYTES", 100)
    known = {n: "x" * (n % 30) for n in range(50)}
    column = column_of(known, Random(1), arrow.STRING)
    ids = [n if n % 7 else None for n in range(60)]
    found = column.gather(arrow.array(ids, arrow.INT64))
    assert isinstance(found, arrow.ChunkedArray)
    assert len(found.chunks) > 10
    assert arrow.pylist(found) == [None if n is None else known.get(n) for n in ids]


def people(random: Random, count: int) -> list[Person]:
    """Return people of whom some lack some properties, of all types that have columns."""
    found = []
    for number in range(count):
        person: Person = {"id": number, "age": random.randrange(90), "name": f"person {number % 40}"}
        person["weight"] = random.randrange(1000) / 8
        person["tall"] = random.random() < 0.5
        person["text"] = random.choice("abc") * random.randrange(6000)
        for key in ("age", "name", "weight", "tall", "text"):
            if random.random() < 0.2:
                person[key] = None
        found.append(person)
    return found


def connected(path: Path, known: list[Person], edges: list[tuple[int, int]], **settings: Any) -> graphdb.Database:
    db = graphdb.connect(path / "g.duckdb", device="cpu", **settings)
    db.query("UNWIND $people AS p CREATE (n:Person) SET n = p", people=known)
    db.query("UNWIND range(1, 500) AS i CREATE (:Other {id: -i})")  # ids of others lie among these
    pairs = [{"a": a, "b": b} for a, b in edges]
    db.query(
        "UNWIND $pairs AS e MATCH (a:Person {id: e.a}), (b:Person {id: e.b}) CREATE (a)-[:KNOWS]->(b)", pairs=pairs
    )
    return db


def _key(value: Any, descending: bool) -> tuple[Any, ...]:
    """Null is larger than anything."""
    if value is None:
        return (not descending, 0)
    return (descending, -value if descending else value)


@pytest.mark.parametrize("memory", ["64MiB", "2GB"])  # texts are more than the budget of the first
def test_what_is_gathered_late_or_early_is_what_each_row_has(tmp_path: Path, memory: str) -> None:
    random = Random(5)
    known = people(random, 700)
    edges = sorted({(random.randrange(700), random.randrange(700)) for _ in range(3000)})
    with connected(tmp_path, known, edges, memory_limit=memory) as db:
        pairs = [(known[a], known[b]) for a, b in edges]

        def asked(text: str) -> list[tuple[Any, ...]]:
            return db.query(f"MATCH (a:Person)-[:KNOWS]->(b:Person) {text}").fetchall()

        found = asked("RETURN a.id, b.id, a.name, b.text, b.weight, a.tall")
        expected = [(a["id"], b["id"], a["name"], b["text"], b["weight"], a["tall"]) for a, b in pairs]
        assert sorted(found, key=repr) == sorted(expected, key=repr)

        top = sorted(pairs, key=lambda p: (_key(p[0]["age"], True), p[1]["id"], p[0]["id"]))
        text = "RETURN a.age AS age, b.text, coalesce(a.text, b.name) AS some, a.name "
        expected = [(a["age"], b["text"], a["text"] if a["text"] is not None else b["name"], a["name"]) for a, b in top]
        assert asked(text + "ORDER BY age DESC, b.id, a.id LIMIT 40") == expected[:40]
        assert asked(text + "ORDER BY age DESC, b.id, a.id SKIP 30 LIMIT 40") == expected[30:70]
        assert asked(text + "ORDER BY age DESC, b.id, a.id") == expected

        old = [(a, b) for a, b in pairs if a["age"] is not None and b["age"] is not None and a["age"] > b["age"]]
        by_name: dict[Any, list[int]] = {}
        for a, b in old:
            by_name.setdefault(b["name"], []).append(a["age"])
        found = asked("WHERE a.age > b.age RETURN b.name, count(*), max(a.age)")
        assert {row[0]: row[1:] for row in found} == {name: (len(ages), max(ages)) for name, ages in by_name.items()}

        # The second match starts from rows, which nothing may answer.
        answers = {}
        for a, b in pairs:
            answers.setdefault(a["id"], []).append(b)
        rows = []
        for person in known:
            there = [b for b in answers.get(person["id"], []) if b["age"] is not None and b["age"] > 50]
            rows += [(person["id"], b["name"], b["age"]) for b in there] or [(person["id"], None, None)]
        text = "MATCH (a:Person) WITH a ORDER BY a.id OPTIONAL MATCH (a)-[:KNOWS]->(b:Person) WHERE b.age > 50 "
        found = db.query(f"{text} RETURN a.id, b.name, b.age").fetchall()
        assert sorted(found, key=repr) == sorted(rows, key=repr)
        found = db.query(f"{text} RETURN a.id AS a, b.name, b.age AS age ORDER BY age DESC, a, b.id LIMIT 5").fetchall()
        assert [row[2] for row in found] == [None] * 5
        found = db.query(f"{text} RETURN a.id AS a, b.name, b.age AS age ORDER BY age, a, b.id LIMIT 5").fetchall()
        assert [row[2] for row in found] == sorted(row[2] for row in rows if row[2] is not None)[:5]


def test_limit_comes_before_what_only_the_result_needs(tmp_path: Path) -> None:
    with connected(tmp_path, people(Random(1), 50), [(1, 2)]) as db:
        text = "MATCH (a:Person) RETURN a.name, coalesce(a.text, a.name) AS t, a.age AS age ORDER BY age, a.id LIMIT 3"
        plan = db.query(f"EXPLAIN {text}").text(100)
        before, _, after = plan.partition("LIMIT 3")
        assert "JOIN" not in before  # what rows are ordered by is there already
        assert after.count("JOIN") == 1 or after.count("JOIN") == 2  # of the three that are left, for coalesce
        assert "gathered for the rows: c0 = name of c0" in after
        plan = db.query("EXPLAIN MATCH (a:Person) WHERE a.age + a.id > 3 RETURN count(a.name) AS n").text(100)
        assert "JOIN" not in plan


@pytest.mark.parametrize("seed", range(scaled(6)))
def test_columns_follow_changes(tmp_path: Path, seed: int) -> None:
    """Random writes, committed or rolled back, with reads that gather between them, against a dictionary."""
    random = Random(seed)
    with connected(tmp_path, people(random, 30), []) as db:
        found = db.query("MATCH (a:Person) RETURN properties(a)").fetchall()
        known: dict[int, Person] = {p["id"]: {"age": p.get("age"), "name": p.get("name")} for (p,) in found}
        saved: dict[int, Person] | None = None
        fresh = 1000

        def check() -> None:
            rows = [(n, p["age"], p["name"]) for n, p in known.items()]
            found = db.query("MATCH (a:Person) RETURN a.id, a.age, a.name").fetchall()
            assert sorted(found, key=repr) == sorted(rows, key=repr)
            ordered = sorted(rows, key=lambda row: (_key(row[1], False), row[0]))
            text = "MATCH (a:Person) RETURN a.age AS age, a.name, a.id AS id ORDER BY age, id LIMIT 9"
            assert db.query(text).fetchall() == [(age, name, n) for n, age, name in ordered[:9]]
            ages = [age for _, age, _ in rows if age is not None]
            assert db.query("MATCH (a:Person) RETURN sum(a.age + 0)").scalar() == sum(ages)

        for _ in range(25):
            number = random.choice([*known, -1])
            match random.randrange(9):
                case 0 | 1:
                    age = random.choice([None, random.randrange(90)])
                    db.query("MATCH (a:Person {id: $n}) SET a.age = $age", n=number, age=age)
                    if number in known:
                        known[number]["age"] = age
                case 2:
                    db.query("MATCH (a:Person {id: $n}) REMOVE a.name", n=number)
                    if number in known:
                        known[number]["name"] = None
                case 3:
                    db.query("MATCH (a:Person) WHERE a.age > 40 SET a.name = 'old'")
                    for person in known.values():
                        if person["age"] is not None and person["age"] > 40:
                            person["name"] = "old"
                case 4:
                    fresh += random.choice([1, 500])
                    db.query("CREATE (:Person {id: $n, age: 7})", n=fresh)
                    known[fresh] = {"age": 7, "name": None}
                case 5:
                    db.query("MATCH (a:Person {id: $n}) DETACH DELETE a", n=number)
                    known.pop(number, None)
                case 6 if saved is None:
                    db.query("BEGIN")
                    saved = {n: dict(person) for n, person in known.items()}
                case 7 if saved is not None:
                    end = random.choice(["COMMIT", "ROLLBACK"])
                    db.query(end)
                    known, saved = known if end == "COMMIT" else saved, None
                case 8:
                    db.query("MATCH (a:Person) SET a.age = 1 RETURN a.name, a.age")
                    for person in known.values():
                        person["age"] = 1
            check()
