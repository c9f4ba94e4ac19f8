"""The plan cache: one key, plans by the values they were specialised for, bounded by number and by bytes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from itertools import product
from weakref import ref

import numpy as np
import pytest

import graphdb
from graphdb.relational.paths.run import PathRun
from graphdb.relational.session.plan_cache import (
    MAX_CHARACTERS,
    MAX_PLANS,
    MAX_SPECIALISED,
    STEP_BYTES,
    PlanCache,
    StepPlans,
)

NONE: Mapping[str, object] = {}


@pytest.fixture
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect(threads=1) as database:
        database.query("CREATE (:A {n: 1})-[:r]->(:A {n: 2})-[:r]->(:A {n: 3})")
        yield database


def cached(cache: PlanCache[object], *key: object) -> object:
    found = cache.get(*key)  # type: ignore[arg-type]
    return None if found is None else found.plan


# --- the cache alone


def test_the_text_used_longest_ago_is_evicted() -> None:
    cache: PlanCache[int] = PlanCache(1 << 30)
    for number in range(MAX_PLANS):
        cache.put(str(number), 0, NONE, number, 1)
    assert cached(cache, "0", 0, NONE) == 0
    cache.put("more", 0, NONE, -1, 1)
    assert [cached(cache, text, 0, NONE) for text in ("0", "1", "2", "more")] == [0, None, 2, -1]
    assert len(cache) == MAX_PLANS


def test_a_count_that_is_asked_stays() -> None:
    cache: PlanCache[int] = PlanCache(1 << 30)
    cache.put_count("absent", 1)
    for number in range(MAX_PLANS):
        cache.put(str(number), 0, NONE, number, 1)
    cache.put_count("0", 0)
    assert [cache.counting(text) for text in ("0", "1", "absent")] == [0, None, None]
    cache.put("more", 0, NONE, -1, 1)
    assert (cache.counting("0"), cached(cache, "1", 0, NONE)) == (0, None)


class Everything:
    """Concerned by any change, which leaves something."""

    unplanned = "left"

    def concerned(self, changes: object, type_label: object, resources: object) -> bool:
        return True

    def rebound(self, changes: object) -> bool:
        return False


def test_nothing_of_a_plan_stays_but_what_a_change_leaves() -> None:
    class Plan:
        """Large."""

    def depends(plan: Plan) -> Everything:
        return Everything()

    cache: PlanCache[object] = PlanCache(1 << 30)
    plan = Plan()
    there = ref(plan)
    cache.put("a", 0, NONE, plan, 1, partial(depends, plan))
    del plan
    assert there() is not None
    cache.retain(lambda reads: True, lambda reads: False)
    assert (there(), cache.unplanned("a", 0, NONE)) == (None, "left")


def test_bytes_are_bounded_but_for_the_last_text() -> None:
    cache: PlanCache[str] = PlanCache(100)
    for text, size in (("a", 40), ("b", 40), ("a", 50), ("c", 30)):
        cache.put(text, 0, NONE, text, size)
    assert [cached(cache, text, 0, NONE) for text in "abc"] == ["a", None, "c"]
    cache.put("d", 0, NONE, "d", 1000)
    assert (len(cache), cached(cache, "d", 0, NONE)) == (1, "d")
    cache.put("e", 0, NONE, "e", 100)
    assert [cached(cache, text, 0, NONE) for text in "de"] == [None, "e"]
    cache.clear()
    cache.put("f", 0, NONE, "f", 100)
    cache.put("g", 0, NONE, "g", 0)
    assert (len(cache), cached(cache, "f", 0, NONE)) == (2, "f")


def test_values_of_one_statement_leave_room_for_others() -> None:
    cache: PlanCache[int] = PlanCache(1 << 30)
    cache.put("other", 0, NONE, -1, 0)
    for value in range(10 * MAX_PLANS):
        cache.put("text", 0, {"x": value}, value, 0)
        assert cached(cache, "text", 0, {"x": 0}) == 0  # used again and again
    assert len(cache) == MAX_SPECIALISED + 1
    found = [value for value in range(10 * MAX_PLANS) if cached(cache, "text", 0, {"x": value}) == value]
    assert found == [0, *range(10 * MAX_PLANS - MAX_SPECIALISED + 1, 10 * MAX_PLANS)]
    assert cached(cache, "other", 0, NONE) == -1
    cache.clear()
    assert (len(cache), cache._bytes) == (0, 0)


def test_bytes_are_those_of_what_is_cached() -> None:
    rng = np.random.default_rng(17)
    cache: PlanCache[int] = PlanCache(20_000)
    for step in range(3000):
        cache.put(f"t{rng.integers(20)}", 0, {"x": int(rng.integers(200))}, step, int(rng.integers(300)))
        statements = [each for text in cache._texts.values() for each in text.statements.values()]
        sizes = [plan.size for each in statements for plan in each.by_values.values()]
        assert cache._bytes == sum(sizes) == sum(text.size for text in cache._texts.values())
        assert cache._bytes <= 20_000 or len(cache._texts) == 1
        assert cache._characters == sum(map(len, cache._texts))


def test_characters_are_bounded_but_for_the_last_text() -> None:
    """Trees take memory, and every garbage collection walks over them."""
    rng = np.random.default_rng(16)
    cache: PlanCache[int] = PlanCache(1 << 40)
    for step in range(300):
        cache.put(chr(97 + step % 20) * int(rng.choice([10, 5000, 100_000, MAX_CHARACTERS + 1])), 0, NONE, step, 0)
        assert cache._characters == sum(map(len, cache._texts))
        assert cache._characters <= MAX_CHARACTERS or len(cache._texts) == 1
        if step % 50 == 0:
            cache.retain(lambda reads: False, lambda reads: False)
            assert cache._characters == sum(map(len, cache._texts))


ONE_OF = [1, 1.0, True, 0.0, -0.0, 0, Decimal(1), Decimal("1.0"), "1", (1,), (1.0,), None]
ONE_OF += [datetime(2026, 1, 1, 10, tzinfo=UTC), datetime(2026, 1, 1, 11, tzinfo=timezone(timedelta(hours=1)))]


def test_only_the_same_values_are_equal() -> None:
    for one, other in product(ONE_OF, repeat=2):
        cache: PlanCache[int] = PlanCache(100)
        cache.put("text", 0, {"x": one}, 1, 0)
        same = type(one) is type(other) and repr(one) == repr(other)
        assert (cached(cache, "text", 0, {"x": other}) == 1) is same, (one, other)
        assert cached(cache, "text", 0, {"y": one}) is None
        assert cached(cache, "text", 1, {"x": one}) is None


def test_what_cannot_be_hashed_is_refused() -> None:
    for value in ([[1]], [{}], [1] * 1000):
        with pytest.raises(TypeError):
            PlanCache[int](1).get("text", 0, {"x": value})


def test_general_plans_are_for_types_and_numbers_of_paths() -> None:
    cache: PlanCache[int] = PlanCache(100)
    assert cache.general("text", 0, {"x": "a"}, ()) is None
    cache.put_general("text", 0, {"x": "a"}, (2,), 1, 0)
    assert cache.general("text", 0, {"x": "b"}, (2,)) == 1
    assert cache.general("text", 0, {"x": "b"}, (3,)) is None
    assert cache.general("text", 0, {"x": 1}, (2,)) is None
    cache.put_general("other", 0, {"x": ["a list"]}, (), 2, 200)  # more than there is room for
    assert cache.general("other", 0, {"x": ["another"]}, ()) == 2
    assert cache.general("text", 0, {"x": "b"}, (2,)) is None


def test_a_steps_plan_is_for_the_same_vertices_and_small() -> None:
    plan, plans, ids = object(), StepPlans(), np.arange(3)
    plans.put("step", [ids], plan, 1000)  # type: ignore[arg-type]
    assert plans.get("step", [np.arange(3)]) is not None
    for given in ([np.arange(4)], [ids, ids], [], [np.array([0, 1, 3])]):
        assert plans.get("step", given) is None
    assert plans.get("other", [ids]) is None
    plans.put("step", [np.arange(4)], plan, STEP_BYTES + 1)  # type: ignore[arg-type]
    assert plans.get("step", [np.arange(4)]) is None
    assert plans.get("step", [ids]) is not None
    many = np.arange(100_000)
    plans.put("step", [many], plan, 1000)  # type: ignore[arg-type]
    assert plans.get("step", [many.copy()]) is plan
    many[50_000] += 1
    assert plans.get("step", [many]) is None
    plans.put("step", [np.arange(1_000_000)], plan, 1000)  # type: ignore[arg-type]
    assert plans.get("step", [np.arange(1_000_000)]) is None


def test_plans_of_steps_count_as_part_of_their_texts() -> None:
    cache: PlanCache[int] = PlanCache(10_000)
    steps = cache.put("one", 0, {"x": 1}, 1, 1000)
    cache.put("two", 0, {"x": 1}, 2, 1000)
    steps.put("step", [np.arange(3)], object(), 4000)  # type: ignore[arg-type]
    steps.put("step", [np.arange(4)], object(), 5000)  # type: ignore[arg-type]
    assert cache.get("one", 0, {"x": 1}) is not None
    assert cache.get("two", 0, {"x": 1}) is not None
    steps.put("other", [np.arange(3)], object(), 4000)  # type: ignore[arg-type]
    assert cache.get("one", 0, {"x": 1}) is None  # the text used last stays
    assert cache.get("two", 0, {"x": 1}) is not None
    steps.put("step", [np.arange(3)], object(), 9000)  # type: ignore[arg-type]
    assert cache.get("two", 0, {"x": 1}) is not None


# --- within a database


def prepared(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that grows with each query that is prepared anew."""
    found: list[object] = []
    prepare = PathRun.prepare

    def spy(self: PathRun, query: object) -> object:
        found.append(query)
        return prepare(self, query)  # type: ignore[arg-type]

    monkeypatch.setattr(PathRun, "prepare", spy)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (a:A) RETURN count(*) AS n",
        "MATCH (a:A {n: $x}) RETURN count(*) AS n",
        "MATCH (a:A) WHERE a.n < $x RETURN a.n AS n ORDER BY n LIMIT 1",
        "MATCH (a:A) WITH a ORDER BY a.n LIMIT 1 MATCH (a)-[:r]->(b) RETURN b.n - $x AS n",
    ],
)
def test_the_same_query_is_prepared_once(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    anew = prepared(db, monkeypatch)
    given = {"x": 2} if "$x" in text else {}
    first = db.query(text, **given).fetchall()
    assert len(anew) == 1
    for _ in range(3):
        assert db.query(text, **given).fetchall() == first
    assert len(anew) == 1
    db.query("CREATE (:A {n: 2})-[:r]->(:A {n: 0})")
    after = db.query(text, **given).fetchall()
    with graphdb.connect(threads=1) as fresh:
        fresh.query("CREATE (:A {n: 1})-[:r]->(:A {n: 2})-[:r]->(:A {n: 3}), (:A {n: 2})-[:r]->(:A {n: 0})")
        assert fresh.query(text, **given).fetchall() == after


def test_lists_that_come_leave_plans_that_read_none(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its text says of which type a list is: what reads lists is prepared anew, nothing else is."""
    anew = prepared(db, monkeypatch)
    others = ["MATCH (a:A)-[:r]->(b) RETURN b.n ORDER BY b.n", "MATCH (a:A {n: 2}) RETURN a.n"]
    reading = [
        "MATCH (t:T) RETURN t.tags AS x",
        "MATCH (t:T) RETURN t",
        "MATCH (t:T) RETURN properties(t) AS x",
        "MATCH (t:T) WHERE t.tags[0] = 1 OR t.tags[0] = 'a' RETURN t.tags[0] AS x",
        "MATCH (t:T) UNWIND t.tags AS x RETURN x",
        "MATCH (t:T) WITH t, size(t.tags) AS n RETURN n, [x IN t.tags | x] AS x",
        "MATCH (t:T)-[:s]->(u:T) RETURN head(t.tags) AS x, u.tags AS y",
    ]
    db.query("CREATE (:T {tags: [1]})-[:s]->(:T {tags: [2]})")
    for tags in ([1], ["a", "b"], [1.5, 2], [], [[1]], [True]):
        for text in (*others, *reading):
            db.query(text)
        first = len(anew)
        db.query("CREATE (:T {tags: $tags})-[:s]->(:T {tags: $tags})", tags=tags)
        for text in others:
            db.query(text)
        assert len(anew) == first
        found = [sorted(map(repr, db.query(text))) for text in reading]
        db._state.plans.clear()
        assert [sorted(map(repr, db.query(text))) for text in reading] == found


def test_a_count_is_found_by_its_text_alone(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for text, value in (("MATCH (a:A) RETURN count(*)", 3), ("\n MATCH (a:A)-[:r]->() RETURN count(*) ;", 2)):
        assert [db.query(text).scalar() for _ in range(2)] == [value, value]
        with monkeypatch.context() as patched:
            patched.setattr("graphdb.dispatch.statements.parse_script", lambda *_: pytest.fail("parsed again"))
            assert db.query(text).scalar() == value
    two = "MATCH (a:A) RETURN count(*); MATCH (a:A)-[:r]->() RETURN count(*)"
    assert [db.query(two).scalar() for _ in range(4)] == [2] * 4


def test_statements_of_a_text_have_plans_of_their_own(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    anew = prepared(db, monkeypatch)
    two = "MATCH (a:A {n: $x}) RETURN count(*); MATCH (a:A) WHERE a.n > $x RETURN count(*)"
    assert [db.query(two, x=x).scalar() for x in (0, 1, 2, 0, 1, 2)] == [3, 2, 1, 3, 2, 1]
    assert len(anew) == 2


GENERAL = [
    "MATCH (a:A {n: $x})-[:r]->(b) RETURN a.n, b.n, b.s",
    "MATCH (a:A)-[:r]->(b:A) WHERE a.n < $x AND b.n >= $x RETURN a.n, b.n ORDER BY a.n, b.n",
    "MATCH (a:A)-[:r]-(b:A) WHERE a.n = $x AND b.n = $y RETURN count(*)",
    "MATCH (a:A {n: $x}), (b:A {n: $x}) RETURN a.n + b.n",
    "MATCH (a:A {n: $x})-[:r]->(b) MATCH (b)-[:r]->(c) WHERE c.n <> $y RETURN DISTINCT b.n, c.n",
    "MATCH (a:A {n: $x})-[e:r]->(b) RETURN b.n, EXISTS { (b)-[:r]->(a) } ORDER BY b.n",
    "MATCH (a:A {n: $x}) WITH a ORDER BY a.s LIMIT 2 MATCH (a)-[:r]->(b) RETURN a.s, b.n ORDER BY a.s, b.n",
    "MATCH (a:A {n: $x}) OPTIONAL MATCH (a)-[:r]->(b:A {n: $y}) RETURN a.n, b.s",
    "MATCH (a:A) WHERE a.n IN $l RETURN a.n, a.s ORDER BY a.n, a.s",
    "MATCH (a:A)-[e:r {w: $x}]->(b) RETURN a.n, b.n",
    "MATCH (a:A {s: $s})-[:r*1..2]->(b) RETURN a.n, b.n",
    "MATCH (a:A {n: $x}) RETURN a.n, $y AS y, a.n + $y AS z LIMIT 3",
]

PATHS = [
    "MATCH (a:A {n: $x})-[:r*]->(b:A {s: $s}) RETURN DISTINCT b.n",
    "MATCH (a:A {n: $x}) MATCH (a)-[:r*]->(b:A) WHERE b.n < $y RETURN DISTINCT a.s, b.n",
    "MATCH (b:A {n: $y}) MATCH (a:A {n: $x})-[:r*]->(b) RETURN DISTINCT a.s, b.s",
    "MATCH ANY SHORTEST (a:A {n: $x})-[e:r]->+(b:A {n: $y}) COST BY e.w + 1 AS total RETURN a.s, b.s, total",
    "MATCH (a:A {n: $x}) MATCH ANY SHORTEST (a)-[e:r]->+(b:A WHERE b.n >= $y) COST BY 1 AS far RETURN a.s, b.s, far",
]


@pytest.mark.parametrize("text", GENERAL + PATHS)
def test_plans_for_other_values_give_what_new_plans_give(text: str) -> None:
    """Random values (few vertices, none, many; equal and different ones), each beside a plan of its own."""
    draw = random.Random(text)
    with graphdb.connect(threads=1) as db:
        rows = [{"n": draw.randrange(6), "s": draw.choice("abc")} for _ in range(12)]
        db.query("UNWIND $rows AS row CREATE (:A {n: row.n, s: row.s})", rows=rows)
        db.query("MATCH (a:A), (b:A) WHERE (a.n * 5 + b.n * 3) % 4 = 0 CREATE (a)-[:r {w: (a.n + b.n) % 6}]->(b)")
        for _ in range(12):
            values = {"x": draw.randrange(-1, 7), "y": draw.randrange(6), "s": draw.choice("abcd")}
            given = {name: value for name, value in values.items() if f"${name}" in text}
            if "$l" in text:
                given["l"] = [draw.randrange(8) for _ in range(draw.randrange(4))]
            found = sorted(db.query(text, **given).fetchall(), key=repr)
            db._state.plans, cache = PlanCache(1 << 20), db._state.plans
            assert sorted(db.query(text, **given).fetchall(), key=repr) == found, given
            db._state.plans = cache


@pytest.mark.parametrize("text", GENERAL[:9] + PATHS)
def test_other_values_are_not_prepared_anew(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    with graphdb.connect(threads=1) as db:
        db.query("UNWIND range(1, 9) AS i CREATE (:A {n: i, s: 's'})")
        db.query("MATCH (a:A), (b:A) WHERE b.n = a.n + 1 CREATE (a)-[:r {w: a.n}]->(b)")
        anew = prepared(db, monkeypatch)
        for x in range(5):
            given = {"x": x, "y": x + 1, "l": [x, x + 2], "s": "st"[x % 2]}
            db.query(text, {name: value for name, value in given.items() if f"${name}" in text})
        assert len(anew) == 1


def test_values_that_take_another_way_are_prepared_anew(db: graphdb.Database) -> None:
    text = "MATCH (a:A) WHERE a.n = $x RETURN count(*)"
    for x, count in ((1, 1), (2, 1), (1.0, 1), ("1", 0), (None, 0), (True, 0), (3, 1), (1 << 62, 0)):
        assert db.query(text, x=x).scalar() == count, x
    for _ in range(2):
        with pytest.raises(graphdb.ParameterError, match="64 bits"):
            db.query(text, x=1 << 70)
        assert db.query(text, x=2).scalar() == 1
    text = "MATCH (a:A) WHERE 6 / (a.n - $x) = 3 RETURN a.n"
    assert db.query(text, x=0).fetchall() == [(2,)]
    with pytest.raises(graphdb.ExecutionError, match="zero"):
        db.query(text, x=1)
    assert db.query(text, x=-1).fetchall() == [(1,)]


def test_times_that_are_equal_in_other_zones_are_other_arguments(db: graphdb.Database) -> None:
    for hours in (0, 1, 5, 0):
        moment = datetime(2026, 1, 1, 10, tzinfo=UTC).astimezone(timezone(timedelta(hours=hours)))
        assert db.query("RETURN toString($x) AS x", x=moment).scalar().startswith(f"2026-01-01T{10 + hours}")
    assert [repr(db.query("RETURN $x AS x", x=x).scalar()) for x in ((1,), (1.0,), (True,))] == [
        "[1]",
        "[1.0]",
        "[True]",
    ]


def test_more_queries_than_the_cache_has_give_the_same_answers(db: graphdb.Database) -> None:
    texts = [f"MATCH (a:A) WHERE a.n > {i % 4} RETURN count(*) AS c{i}" for i in range(MAX_PLANS + 20)]
    for _ in range(2):
        assert [db.query(text).scalar() for text in texts] == [max(3 - i % 4, 0) for i in range(MAX_PLANS + 20)]
    assert [db.query(text).columns for text in texts[:2]] == [("c0",), ("c1",)]
    assert len(db._state.plans) <= MAX_PLANS


def test_a_plan_follows_what_it_depends_on(db: graphdb.Database) -> None:
    text = "MATCH (a:A) WHERE a.n >= $low RETURN count(*)"
    assert [db.query(text, low=low).scalar() for low in (1, 2.5, 1, 3)] == [3, 1, 3, 1]
    db.query("BEGIN")
    db.query("CREATE (:A {n: 5})")
    assert [db.query(text, low=low).scalar() for low in (1, 2.5, 1)] == [4, 2, 4]
    db.query("ROLLBACK")
    assert [db.query(text, low=low).scalar() for low in (1, 2.5, 1)] == [3, 1, 3]


def test_short_lists_are_values(db: graphdb.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    anew = prepared(db, monkeypatch)
    text = "MATCH (a:A) WHERE a.n IN $some RETURN a.n ORDER BY a.n"
    for some in ([1, 3], [2], [1, 3], [2], []):
        assert [n for (n,) in db.query(text, some=some).fetchall()] == sorted(some)
    count = len(anew)
    for some in ([1, 3], [2], []):
        assert [n for (n,) in db.query(text, some=some).fetchall()] == sorted(some)
    assert len(anew) == count


def test_lists_that_look_alike_are_told_by_their_items(db: graphdb.Database) -> None:
    text = "UNWIND $some AS x RETURN x"
    lists: list[list[object]] = [[1], [True], [1.0], ["1"], [0.0], [-0.0], [None], [], ["a', 'b"], ["a", "b"]]
    for _ in range(2):
        for some in lists:
            assert repr([x for (x,) in db.query(text, some=some).fetchall()]) == repr(some)


def test_a_list_that_its_owner_changes(db: graphdb.Database) -> None:
    text, some = "MATCH (a:A) WHERE a.n IN $some AND size($some) > 0 RETURN a.n ORDER BY a.n", [1, 2]
    assert db.query(text, some=some).fetchall() == [(1,), (2,)]
    some[:] = [3]
    assert db.query(text, some=some).fetchall() == [(3,)]
    assert db.query(text, some=[1, 2]).fetchall() == [(1,), (2,)]
