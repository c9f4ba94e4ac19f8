"""Quantifiers over pattern comprehensions as conditions, and vertices excluded before a match: against brute force."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphdb
from tests.fuzz import scaled

SOME = settings(max_examples=scaled(12), deadline=None, suppress_health_check=list(HealthCheck))
PEOPLE, LANDS = 6, 3

people = st.integers(0, PEOPLE - 1)
homes = st.sets(st.tuples(people, st.integers(0, LANDS - 1)), max_size=8)
friends = st.sets(st.tuples(people, people), min_size=1, max_size=12)
names = st.lists(st.sampled_from(["x", "y", None]), min_size=LANDS, max_size=LANDS)


def created(homes: set[tuple[int, int]], friends: set[tuple[int, int]], names: list[str | None]) -> graphdb.Database:
    database = graphdb.connect(threads=1)
    made = [f"(p{i}:Person {{id: {i}}})" for i in range(PEOPLE)]
    made += [f"(l{i}:Land {{id: {i}{'' if name is None else f', name: {name!r}'}}})" for i, name in enumerate(names)]
    made += [f"(p{a})-[:LIVES]->(l{b})" for a, b in sorted(homes)]
    made += [f"(p{a})-[:KNOWS {{since: {a + b}}}]->(p{b})" for a, b in sorted(friends)]
    database.query(f"CREATE {', '.join(made)}")
    return database


def holds(quantifier: str, values: list[bool | None]) -> bool | None:
    """What a quantifier is of what its condition is for each item."""
    if quantifier == "none":
        values = [None if value is None else not value for value in values]
    decisive = quantifier == "any"
    if decisive in values:
        return decisive
    return None if None in values else not decisive


@SOME
@given(homes, friends, names, st.sampled_from(["all", "any", "none"]), st.booleans())
def test_over_the_places_of_listed_vertices(
    homes: set[tuple[int, int]],
    friends: set[tuple[int, int]],
    names: list[str | None],
    quantifier: str,
    listed: bool,
) -> None:
    condition, mine = ("p IN [a, b]", "p") if listed else ("true", "a")
    text = f"""MATCH (a:Person)-[:KNOWS]->(b:Person)
        WHERE {quantifier}(n IN [({mine}:Person)-[:LIVES]->(l:Land) WHERE {condition} | l.name] WHERE n = $name)
        RETURN a.id, b.id ORDER BY a.id, b.id"""
    want = []
    for a, b in sorted(friends):
        who = {a, b} if listed else {a}
        found = [None if names[land] is None else names[land] == "x" for person, land in homes if person in who]
        if holds(quantifier, found):
            want.append((a, b))
    with created(homes, friends, names) as database:
        assert database.query(text, name="x").fetchall() == want


def triangles(edges: list[tuple[int, int, int]], local: set[int], low: int, high: int) -> int:
    """Count triangles among some vertices by edges whose values are in a range, each once."""
    near: dict[int, set[int]] = {v: set() for v in local}
    for a, b, value in edges:
        if a in local and b in local and low <= value <= high and a != b:
            near[a].add(b)
            near[b].add(a)
    return sum(b in near[a] and c in near[a] and c in near[b] for a, b, c in product(local, repeat=3) if a < b < c)


@pytest.mark.parametrize("seed", range(3))
def test_triangles_among_the_people_of_a_land(seed: int) -> None:
    """People of one land know each other far more often than chance has it: what estimates do not see."""
    rng, count = np.random.default_rng(seed), 600
    land = rng.integers(0, 5, count)
    groups = [np.flatnonzero(land == each) for each in range(5)]
    pairs: dict[tuple[int, int], int] = {}
    for group in groups:
        for a, b in rng.choice(group, (700, 2)).tolist():
            pairs.setdefault((min(a, b), max(a, b)), int(rng.integers(0, 100)))
    edges = [(a, b, value) for (a, b), value in pairs.items() if a != b]
    tables: list[dict[str, Any]] = [
        {"id:ID(p){long}": np.arange(count)},
        {"name:ID(l)": np.array([f"land {i}" for i in range(5)])},
        {":START_ID(p){long}": np.arange(count), ":END_ID(l)": np.array([f"land {i}" for i in land])},
        {
            ":START_ID(p){long}": np.array([a for a, _, _ in edges]),
            ":END_ID(p){long}": np.array([b for _, b, _ in edges]),
            "at:long": np.array([value for _, _, value in edges]),
        },
    ]
    import pyarrow as pa

    kinds: list[dict[str, str]] = [{"label": "Person"}, {"label": "Land"}, {"type": "LIVES"}, {"type": "KNOWS"}]
    text = """MATCH (a:Person)-[ab:KNOWS]-(b:Person)-[bc:KNOWS]-(c:Person)-[ca:KNOWS]-(a)
        WHERE a.id < b.id AND b.id < c.id AND all(e IN [ab, bc, ca] WHERE $low <= e.at <= $high)
          AND all(home IN [(p:Person)-[:LIVES]->(l:Land) WHERE p IN [a, b, c] | l.name] WHERE home = $land)
        RETURN count(*)"""
    with graphdb.connect(threads=1) as database:
        database.load([graphdb.Table(pa.table(t), **kind) for t, kind in zip(tables, kinds, strict=True)])
        for number, (low, high) in product(range(2), ((0, 99), (10, 60))):
            local = set(groups[number].tolist())
            found = database.query(text, land=f"land {number}", low=low, high=high).fetchall()
            assert found == [(triangles(edges, local, low, high),)]
        lines = "\n".join(
            line for (line,) in database.query(f"PROFILE {text}", land="land 0", low=0, high=60).fetchall()
        )
        assert "antijoin with" in lines
        assert "edges]-" in lines


@pytest.mark.parametrize(
    ("where", "early"),
    [
        ("NOT EXISTS { (a)-[:LIVES]->(:Land {name: 'x'}) }", True),
        ("NOT EXISTS { (a)-[:LIVES]->(l:Land) WHERE l.name = 'x' }", True),
        ("a.id = 0 AND NOT EXISTS { (a)-[:LIVES]->(:Land {name: 'x'}) }", False),
        ("NOT EXISTS { (a)-[:LIVES]->(:Land {name: 'x'}) } OR a.id = 0", False),
        ("NOT EXISTS { (a)-[:LIVES]->(:Land)<-[:LIVES]-(b) }", False),
    ],
)
def test_what_is_excluded_before_the_match(where: str, early: bool) -> None:
    homes, friends = {(0, 0), (1, 0), (1, 1), (2, 1), (4, 2)}, {(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0)}
    names, lives = ["x", "y", "x"], {person: set[int]() for person in range(PEOPLE)}
    for person, land in homes:
        lives[person].add(land)
    in_x = {person for person, lands in lives.items() if any(names[land] == "x" for land in lands)}
    tests = {
        True: lambda a, b: a not in in_x,
        False: (lambda a, b: a == 0 and a not in in_x)
        if "AND" in where
        else (lambda a, b: a not in in_x or a == 0)
        if "OR" in where
        else (lambda a, b: not lives[a] & lives[b]),
    }
    want = [(a, b) for a, b in sorted(friends) if tests[early](a, b)]
    text = f"MATCH (a:Person)-[:KNOWS]->(b:Person) WHERE {where} RETURN a.id, b.id ORDER BY a.id, b.id"
    with created(homes, friends, list(names)) as database:
        assert database.query(text).fetchall() == want
        lines = "\n".join(line for (line,) in database.query(f"EXPLAIN {text}").fetchall())
        assert ("antijoin with" in lines) is early
