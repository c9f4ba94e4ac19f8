"""Texts that ask for one pattern share its plan; those that ask for another never do."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest

import graphdb
from graphdb.plan.physical import PhysicalPlan

PEOPLE, CITIES = 2_000, 7


@contextmanager
def people() -> Iterator[graphdb.Database]:
    """People who know each other, with an age and a city: candidate sets longer than what is compared by value."""
    number = np.arange(PEOPLE)
    people = pa.table({"nr:ID": number, "age": number % 3, "city": number % CITIES})
    known = pa.table(
        {":START_ID": np.tile(number, 2), ":END_ID": np.append((7 * number + 1) % PEOPLE, (number + 1) % PEOPLE)}
    )
    with graphdb.connect(device="cpu", threads=1) as database:
        database.load(people, label="Person")
        database.load(known, type="KNOWS")
        yield database


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    """For tests that only read."""
    with people() as database:
        yield database


@pytest.fixture
def own() -> Iterator[graphdb.Database]:
    """For tests that write, or count plans."""
    with people() as database:
        yield database


def plan_of(database: graphdb.Database, text: str, **arguments: object) -> PhysicalPlan:
    """The plan that the plan cache has for a text."""
    cached = database._state.plans.get(text, 0, arguments)
    assert cached is not None
    return cached.plan.plan  # type: ignore[no-any-return]


def test_texts_that_differ_by_what_is_no_pattern_share_the_plan(own: graphdb.Database) -> None:
    text = "MATCH (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(c) RETURN count(*)"
    texts = [text, text + " ", text + " AS n", text.replace("RETURN", "/* as before */ RETURN")]
    answers = [own.query(each).scalar() for each in texts]
    assert len(set(answers)) == 1
    assert len({id(plan_of(own, each)) for each in texts}) == 1
    assert len(own._state.snapshot().plans) == 1


@pytest.mark.parametrize(
    "other",
    [
        "MATCH (a:Person)<-[:KNOWS]-(b)-[:KNOWS]->(c) RETURN count(*)",
        "MATCH (a:Person)-[:KNOWS]-(b)-[:KNOWS]->(c) RETURN count(*)",
        "MATCH (a)-[:KNOWS]->(b:Person {nr: 1})-[:KNOWS]->(c) RETURN count(*)",
        "MATCH REPEATABLE ELEMENTS (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(c) RETURN count(*)",
        "MATCH (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(c)-[:KNOWS]->(d) RETURN count(*)",
        "MATCH (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(c) RETURN a.nr LIMIT 3",
    ],
)
def test_another_pattern_has_a_plan_of_its_own(db: graphdb.Database, other: str) -> None:
    text = "MATCH (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(c) RETURN count(*)"
    db.query(text)
    db.query(other)
    assert plan_of(db, text) is not plan_of(db, other)


@pytest.mark.parametrize("key", ["age", "nr"])
def test_other_values_are_other_candidates(db: graphdb.Database, key: str) -> None:
    """The pattern's words are the same: ``a.age = $x``; long candidate sets and single ones."""
    text = f"MATCH (a:Person)-[:KNOWS]->(b:Person) WHERE a.{key} = $x RETURN sum(b.nr) AS s"
    found = [db.query(text, x=x).scalar() for x in (0, 1, 2)]
    rows = db.query("MATCH (a:Person)-[:KNOWS]->(b:Person) RETURN a.nr, a.age, b.nr").fetchall()
    expected = [sum(b for a, age, b in rows if (age if key == "age" else a) == x) for x in (0, 1, 2)]
    assert found == expected


def test_a_write_ends_all_sharing(own: graphdb.Database) -> None:
    text = "MATCH (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(c) RETURN count(*)"
    before, plan = own.query(text).scalar(), plan_of(own, text)
    own.query("MATCH (a:Person {nr: 5})-[e:KNOWS]->() DELETE e")
    after = own.query(text + " ").scalar()
    assert after < before
    assert plan_of(own, text + " ") is not plan
    own.query("CREATE (:Person {nr: -1})-[:KNOWS]->(:Person {nr: -2})-[:KNOWS]->(:Person {nr: -3})")
    assert own.query(text).scalar() == after + 1


def test_plans_go_with_the_plan_cache(own: graphdb.Database) -> None:
    for number in range(270):
        own.query(f"MATCH (a:Person {{nr: {number}}})-[:KNOWS]->(b) RETURN count(*)")
    assert len(own._state.snapshot().plans) <= len(own._state.plans) <= 256


def test_random_texts_give_what_their_pattern_has(own: graphdb.Database) -> None:
    """Texts drawn with repeated parts, between writes, beside the same over the rows of all edges."""
    rng = random.Random(11)
    conditions = {
        "a.age = 0": lambda a, b, c, x: a % 3 == 0,
        "a.age = 1": lambda a, b, c, x: a % 3 == 1,
        "b.city = 3": lambda a, b, c, x: b % CITIES == 3,
        "b.age = $x": lambda a, b, c, x: b % 3 == x,
        "c.city = $x": lambda a, b, c, x: c % CITIES == x,
    }
    shared = 0
    for turn in range(80):
        if turn % 40 == 39:
            own.query("MATCH (a:Person {nr: $x})-[e:KNOWS]->() DELETE e", x=rng.randrange(PEOPLE))
        if turn % 40 == 0 or turn % 40 == 39:
            edges = np.array(own.query("MATCH (a)-[:KNOWS]->(b) RETURN a.nr AS a, b.nr AS b").fetchall())
            a, b, c = (
                edges[first, 0] if part == "a" else edges[first, 1] if part == "b" else edges[second, 1]
                for first, second in [np.nonzero(edges[:, 1][:, None] == edges[:, 0][None, :])]
                for part in "abc"
            )
        chosen = sorted(rng.sample(list(conditions), 2))
        x = rng.randrange(2)
        given = {"x": x} if any("$x" in one for one in chosen) else {}
        text = (
            f"MATCH (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(c) WHERE {' AND '.join(chosen)} "
            f"RETURN {rng.choice(['count(*)', 'count(*) AS n'])}{' ' * rng.randrange(3)}"
        )
        keep = conditions[chosen[0]](a, b, c, x) & conditions[chosen[1]](a, b, c, x)
        before = len(own._state.snapshot().plans)
        assert own.query(text, **given).scalar() == int(keep.sum()), text
        shared += len(own._state.snapshot().plans) == before
    assert 10 < shared < 80
