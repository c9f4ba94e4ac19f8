"""Membership in lists, and quantifiers over lists that are written out: sets and conditions of a match.

Drawn queries over a drawn graph against Python's own lists, and against the evaluator, whose routes take no short cut.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import graphdb
from tests.fuzz import scaled
from tests.oracle.routes import bag, in_python

PEOPLE = 14


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    dice = random.Random(3)
    people = [{"k": k, "w": dice.choice([None, 0, 1, 2]), "t": dice.choice("abc")} for k in range(PEOPLE)]
    edges = {(dice.randrange(PEOPLE), dice.randrange(PEOPLE)) for _ in range(40)}
    ties = [{"a": a, "b": b, "w": dice.choice([None, 0, 1, 2])} for a, b in sorted(edges)]
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("UNWIND $rows AS r CREATE (:P {k: r.k, w: r.w, t: r.t})", rows=people)
        database.query(
            "UNWIND $rows AS r MATCH (a:P {k: r.a}), (b:P {k: r.b}) CREATE (a)-[:K {w: r.w}]->(b)", rows=ties
        )
        yield database


def _explained(db: graphdb.Database, text: str) -> str:
    return "\n".join(line for (line,) in db.query(f"EXPLAIN {text}").fetchall())


def _holds(quantifier: str, answers: list[bool | None]) -> bool | None:
    """What openCypher says of a quantifier whose condition has these answers."""
    decisive = {"all": False, "any": True, "none": True}[quantifier]
    if decisive in answers:
        return quantifier == "any"
    return None if None in answers else quantifier != "any"


@pytest.mark.parametrize("quantifier", ["all", "any", "none"])
def test_quantifiers_over_written_lists(db: graphdb.Database, quantifier: str) -> None:
    """As conditions and as values, of edges, of vertices and of properties."""
    paths = "MATCH (a:P)-[e:K]->(b:P)-[f:K]->(c:P)"
    rows = db.query(f"{paths} RETURN a.k, b.k, c.k, e.w, f.w, a.w, b.w, c.w").fetchall()
    for items, at in (("[e, f]", (3, 4)), ("[a, b, c]", (5, 6, 7)), ("[e, b]", (3, 6))):
        for operator, least in ((">", 0), ("<=", 1)):
            test = f"{quantifier}(x IN {items} WHERE x.w {operator} {least})"

            def answer(value: int | None, operator: str = operator, least: int = least) -> bool | None:
                return None if value is None else value > least if operator == ">" else value <= least

            answers = [(row[:3], _holds(quantifier, [answer(row[i]) for i in at])) for row in rows]
            found = db.query(f"{paths} WHERE {test} RETURN a.k, b.k, c.k").fetchall()
            assert sorted(found) == sorted(ends for ends, holds in answers if holds)
            values = db.query(f"{paths} RETURN a.k, b.k, c.k, {test}").fetchall()
            assert sorted(values, key=repr) == sorted(((*ends, holds) for ends, holds in answers), key=repr)
    values = db.query(f"MATCH (a:P) RETURN a.w, {quantifier}(x IN [a.w, 1, $p] WHERE x > 0)", p=2).fetchall()
    for weight, holds in values:
        assert holds == _holds(quantifier, [None if weight is None else weight > 0, True, True])


def test_quantifiers_are_conditions_of_the_match(db: graphdb.Database) -> None:
    text = "MATCH (a:P)-[e:K]->(b:P)-[f:K]->(c:P) WHERE all(x IN [e, f] WHERE x.w > 1) RETURN count(*)"
    assert _explained(db, text).count("before the match: x.w > 1") == 2
    assert "[(" not in _explained(db, "MATCH (a:P)-[e:K]->(b) WHERE any(x IN [a, b] WHERE x.w > 1) RETURN count(*)")


LISTS = (
    "[a, b]",
    "[a, null]",
    "[a]",
    "[]",
    "CASE WHEN a.w = 1 THEN [a, b, a] END",
    "CASE WHEN a.w = 1 THEN [] ELSE [b] END",
    "[x IN [a, b] WHERE x.w > 0]",
    "nodes(p)",
    "[(a)-[:K]->(y) | y]",
    "collect(b)",
)
VALUES = (
    "[a.w, b.w]",
    "[a.k, 3, null]",
    "[a.t, b.t]",
    "[1, 2]",
    "collect(b.k)",
    "collect(DISTINCT b.t)",
    "[x IN [a, b] | x.k]",
)
SHAPES = (
    "MATCH (c:P) WHERE {0} RETURN a.k, c.k",
    "MATCH (c:P)-[:K]->(d) WHERE {0} RETURN a.k, c.k, d.k",
    "MATCH (a)-[:K]->(c) WHERE {0} RETURN a.k, c.k",
    "MATCH (c:P) WHERE NOT {0} RETURN a.k, c.k",
    "MATCH (c:P) WHERE {0} AND c.w > 0 RETURN a.k, count(c)",
    "OPTIONAL MATCH (c:P) WHERE {0} RETURN a.k, c.k",
    "OPTIONAL MATCH (a)<-[:K]-(c) WHERE {0} RETURN a.k, c.k",
    "RETURN a.k, COUNT {{ MATCH (c:P) WHERE {0} }}",
    "WITH * WHERE EXISTS {{ MATCH (c:P)-[:K]->() WHERE {0} }} RETURN a.k",
    "RETURN a.k, [(c:P)-[:K]->(d) WHERE {0} | d.k]",
    "RETURN a.k, any(z IN [(c:P)-[:K]->(d) WHERE {0} | d.w] WHERE z > 0)",
    "MATCH (c:P)-[:K*1..2]->(d:P) WHERE {0} RETURN a.k, c.k, count(d)",
    "MATCH (c:P) WHERE {0} OR c.k = 0 RETURN a.k, c.k",
    "CALL (a, xs) {{ MATCH (c:P) WHERE {0} RETURN count(*) AS n }} RETURN a.k, n",
)

MEMBERSHIPS = (
    *["{0} IN xs"] * 4,
    "any(v IN xs WHERE v = {0})",
    "any(v IN xs WHERE {0} = v)",
    "NOT none(v IN xs WHERE v = {0})",
    "NOT all(v IN xs WHERE {0} <> v)",
)


def _draw(dice: random.Random) -> str:
    listed, item = dice.choice([(dice.choice(LISTS), "c"), (dice.choice(VALUES), dice.choice(["c.k", "c.w", "c.t"]))])
    start = "MATCH p = (a:P)-[:K]->(b:P)" + dice.choice(["", " WHERE a.k < 5"])
    keys = dice.choice(["a, ", "a.t AS t, head(collect(a)) AS a, "]) if listed.startswith("collect") else "a, "
    asked = dice.choice(MEMBERSHIPS).format(item)
    return f"{start} WITH {keys}{listed} AS xs " + dice.choice(SHAPES).format(asked)


def test_drawn_memberships(db: graphdb.Database) -> None:
    dice = random.Random(20)
    for _ in range(scaled(150)):
        text = _draw(dice)
        assert bag(db.query(text).fetchall()) == bag(_row_by_row(db, text)), text


COLLECTED = {
    "b": ("x.w > 0", "x.t = a.t", "x.w IS NULL", "x:P", "x.k > 3 AND x.w < 2"),
    "DISTINCT b": ("x.w > 0", "x.t = a.t"),
    "r": ("x.w > 0", "x.w = a.w", "type(x) = 'K'"),
    "b.w": ("x > 0", "x = a.w", "NOT x = 1", "x IN [0, null]"),
    "DISTINCT r.w": ("x <= 1", "x = a.w", "x IS NULL"),
    "b.t": ("x = a.t", "x STARTS WITH 'b'", "x IN ['a', 'b']"),
}
"""What is collected, and conditions of an item."""

AFTER = (
    "WHERE {1} RETURN a.k, {0} AS y",
    "RETURN a.k, {0} AS y, size(l) AS z",
    "ORDER BY size(l), a.k LIMIT 7 RETURN a.k, {0} AS y",
    "WITH a.t AS g, sum(size(l)) AS s, count({0}) AS e RETURN g, s, e",
    "MATCH (a)<-[:K]-(z) WHERE {1} RETURN a.k, z.k, size(l)",
    "WHERE {1} OR size(l) = 3 WITH a, a.t AS t RETURN t, count(a)",
    "RETURN DISTINCT {0} AS y",
    "WHERE {1} RETURN a.k, head(l), {0} AS y",
    "UNWIND [1, 2] AS i WITH a, l, i RETURN a.k, i, {0} AS y",
)


def test_drawn_lists_that_are_counted_or_searched(db: graphdb.Database) -> None:
    """Lists that nothing but numbers or members are asked of are not made, and these are what the lists would say."""
    dice = random.Random(21)
    for _ in range(scaled(150)):
        collected = dice.choice(list(COLLECTED))
        member = {"b": "a", "r": "head([null])", "w": "a.w", "t": "a.t"}[collected[-1]]

        def asked(collected: str = collected, member: str = member) -> tuple[str, str]:
            test = dice.choice(COLLECTED[collected])
            size = dice.choice(["size(l)", f"size([x IN l WHERE {test}])", f"size([x IN l WHERE {test} | a.k])"])
            whether = f"{dice.choice(['any', 'all', 'none'])}(x IN l WHERE {test})"
            held = dice.choice([whether, f"{member} IN l", f"NOT {member} IN l", f"{size} > {dice.randint(0, 2)}"])
            return dice.choice([size, held]), held

        start = dice.choice(["MATCH (a:P)-[r:K]->(b:P)", "MATCH (a:P) OPTIONAL MATCH (a)-[r:K]->(b:P)"])
        text = f"{start} WITH a, collect({collected}) AS l {dice.choice(AFTER).format(*asked())}"
        assert bag(db.query(text).fetchall()) == bag(_row_by_row(db, text)), text
    text = "MATCH (a:P)-[r:K]->(b:P) WITH a, collect(b.w) AS l WHERE NOT 1 IN l RETURN a.k, size([x IN l WHERE x > 0])"
    assert "list(" not in _explained(db, text)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("[i IN [1, 2, 3] WHERE i IN l]", {1: [1, 3], 2: [2]}),
        ("[i IN [1, 2, 3] | size([x IN l WHERE x > i])]", {1: [1, 1, 0], 2: [2, 1, 1]}),
        ("all(i IN [1, 3] WHERE i IN l)", {1: True, 2: False}),
        ("reduce(i = 0, x IN [1, 2] | i + CASE WHEN i IN l THEN 3 ELSE 4 END)", {1: 8, 2: 7}),
        ("[size(l), [l IN [[7], []] | size(l)]]", {1: [2, [1, 0]], 2: [3, [1, 0]]}),
        ("COLLECT { UNWIND [1, 2] AS k WITH k AS i WHERE i IN l RETURN i }", {1: [1], 2: [2]}),
        ("COLLECT { UNWIND [[7], []] AS k WITH k AS l RETURN size(l) ORDER BY size(l) }", {1: [0, 1], 2: [0, 1]}),
        ("size([i IN l WHERE i > 2])", {1: 1, 2: 1}),
    ],
)
def test_names_brought_in_are_no_names_of_lists_or_rows(db: graphdb.Database, asked: str, expected: object) -> None:
    start = "UNWIND [[1, 1], [1, 3], [2, 0], [2, 2], [2, 4]] AS e WITH e[0] AS i, e[1] AS n WITH i, collect(n) AS l"
    assert dict(db.query(f"{start} RETURN i, {asked}").fetchall()) == expected
    called = f"{start} CALL (*) {{ RETURN {asked} AS y }} RETURN i, y"
    assert dict(db.query(called).fetchall()) == expected


def _row_by_row(db: graphdb.Database, text: str) -> list[tuple[Any, ...]]:
    """The rows of a query whose conditions of lists are tested on each row with each binding, as they are written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphdb.relational.query.with_memberships", lambda query, _: query)
        patch.setattr("graphdb.relational.query.without_lists", lambda query, _: query)
        patch.setattr("graphdb.relational.lowering.joins.bindings.asks", lambda *_: iter(()))
        return in_python(db, text)


def test_members_of_lists_are_where_a_match_starts(db: graphdb.Database) -> None:
    """What is in a row's list is joined by a hash table of pairs: no product of rows and vertices is tested."""
    text = "MATCH (a:P)-[:K]->(b:P) WITH a, [a, b] AS xs MATCH (c:P)-[:K]->(d:P) WHERE c IN xs RETURN count(*)"
    for asked in ("c IN xs", "any(x IN xs WHERE x = c)", "NOT none(x IN xs WHERE c = x)"):
        plan = _explained(db, text.replace("c IN xs", asked))
        assert "planned when the rows give c" in plan
        assert "list_contains" not in plan
    for item in ("a", "a.k", "a.t"):  # of a list that is one for all rows, the match has no others
        own = item.replace("a", "c")
        text = f"MATCH (a:P) WHERE a.k < 5 WITH collect({item}) AS xs MATCH (c:P)-[:K]->(d) WHERE {own} IN xs RETURN count(*)"
        assert "unnest" not in _explained(db, text).split("then SQL")[1]


ONE_LIST = (
    ("MATCH (a:P) WHERE a.k < 6 WITH collect(a) AS xs", "c"),
    ("MATCH (a:P) WHERE a.k > 99 WITH collect(a) AS xs", "c"),
    ("OPTIONAL MATCH (a:P {k: 1})-[:K]->(b) WITH collect(b) AS xs, count(*) AS all_of_them", "c"),
    ("MATCH (a:P) WITH collect(DISTINCT a.t) AS xs", "c.t"),
    ("MATCH (a:P) WITH collect(a.w) AS xs, max(a.k) AS k", "c.w"),
    ("MATCH (a:P) WHERE a.k < 3 WITH collect(a.k) AS xs WHERE size(xs) > 2", "c.k"),
    ("WITH [1, 2, 3, null] AS xs", "c.k"),
    ("WITH [] AS xs", "c.k"),
    ("WITH ['a', 'c'] AS xs, 1 AS one", "c.t"),
)
LATER = (
    "MATCH (c:P) WHERE {0} RETURN c.k",
    "MATCH (c:P) WHERE NOT {0} RETURN c.k, size(xs)",
    "MATCH (c:P)-[:K]->(d) WHERE {0} RETURN c.k, count(d), xs",
    "MATCH (c:P) WITH c, xs WHERE {0} RETURN c.k, xs",
    "MATCH (c:P) WITH c, xs AS zs, xs MATCH (c)-[:K]->(d) WHERE {0} AND c IN [c] RETURN c.k, d.k, size(zs)",
    "MATCH (c:P) WITH * WHERE {0} OR c.k = 7 RETURN *",
    "MATCH (c:P) RETURN c.k, {0} AS inside, count(*)",
    "MATCH (c:P) RETURN sum(CASE WHEN {0} THEN 1 ELSE 0 END) AS n",
    "MATCH (c:P) WITH xs, c.t AS t, count(CASE WHEN {0} THEN 1 END) AS n RETURN t, n, size(xs)",
    "MATCH (c:P) WITH xs, count(CASE WHEN {0} THEN 1 END) AS n RETURN n, size(xs)",
    "MATCH (c:P) WHERE c.k > 999 WITH xs, count(*) AS n RETURN n, xs",
    "MATCH (c:P) WITH DISTINCT xs RETURN size(xs)",
    "MATCH (c:P) WITH DISTINCT xs, c.t AS t ORDER BY t LIMIT 2 RETURN t, size(xs)",
    "MATCH (c:P) WITH c ORDER BY c.k LIMIT 3 RETURN c.k",
    "UNWIND xs AS y RETURN y, size(xs)",
    "UNWIND xs AS y WITH y, xs MATCH (c:P) WHERE {0} RETURN y, c.k",
    "MATCH (c:P) CALL (c, xs) {{ MATCH (c)-[:K]->(d) WHERE {0} RETURN count(d) AS n }} RETURN c.k, n",
    "CALL (xs) {{ MATCH (c:P) WHERE {0} RETURN count(*) AS n UNION ALL RETURN size(xs) AS n }} RETURN n",
    "CALL {{ MATCH (xs:P) RETURN count(xs) AS n }} RETURN n, size(xs)",
    "MATCH (c:P) RETURN c.k, COUNT {{ MATCH (c)-[:K]->(d) WHERE d.k > size(xs) }}, [q IN [c.k] WHERE size(xs) > 1 | q]",
    "MATCH (c:P) WHERE EXISTS {{ MATCH (c)-[:K]->(d) WHERE {0} OR d.k = 1 }} RETURN c.k",
    "RETURN [q IN xs | q] AS ys, any(q IN xs WHERE q IN xs) AS yes",
    "MATCH (c:P) RETURN c.k, any(q IN [1, 2] WHERE {0}) AS yes, [q IN xs WHERE q = q] = xs AS same",
    "MATCH p = (c:P)-[:K*1..2]->(d:P) WHERE {0} RETURN c.k, length(p), d.k",
    "MATCH p = (c:P {{k: 1}})-[:K*]->(d:P) WHERE {0} RETURN count(*)",
    "MATCH p = shortestPath((c:P {{k: 1}})-[:K*]->(d:P)) WHERE {0} AND c <> d RETURN length(p), d.k",
    "MATCH p = (c:P {{k: 1}})-[:K*1..3]->(d:P) WHERE all(n IN nodes(p) WHERE n.k IN [m IN xs | 1] OR {0}) RETURN count(*)",
    "WITH xs AS ys WITH ys AS xs MATCH (c:P) WHERE {0} RETURN c.k",
    "WITH size(xs) AS n MATCH (xs:P) WHERE xs.k < n RETURN xs.k",
    "WITH xs, size(xs) AS n WHERE n > 1 MATCH (c:P) WHERE {0} RETURN n, c.k",
    "OPTIONAL MATCH (c:P) WHERE {0} WITH collect(c) AS cs, xs RETURN size(cs), size(xs)",
    "MATCH (c:P) WHERE {0} WITH collect(c) AS cs MATCH (d:P) WHERE NOT d IN cs RETURN d.k",
    "RETURN xs UNION RETURN [1] AS xs",
)


def _row_by_row_each(db: graphdb.Database, text: str) -> list[tuple[Any, ...]]:
    """The same where every row has all lists, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("graphdb.relational.lowering.lower.makes_one_row", lambda *_: False)
        return _row_by_row(db, text)


@pytest.mark.parametrize("start", ONE_LIST, ids=[start for start, _ in ONE_LIST])
def test_lists_that_are_one_for_all_rows(db: graphdb.Database, start: tuple[str, str]) -> None:
    """The clauses that such a list may go through; all of them in a long run."""
    made, item = start
    dice = random.Random(made)
    for later in dice.sample(LATER, min(scaled(16), len(LATER))):
        text = f"{made} {later.format(f'{item} IN xs')}"
        expected = _outcome(lambda text=text: _row_by_row_each(db, text))
        assert _outcome(lambda text=text: db.query(text).fetchall()) == expected, text


def _outcome(run: Callable[[], list[tuple[Any, ...]]]) -> object:
    """The rows of a query, or the kind of its error."""
    try:
        return bag(run())
    except graphdb.GraphDBError as error:
        return type(error)


def test_no_row_carries_such_a_list(db: graphdb.Database) -> None:
    text = "MATCH (a:P) WITH collect(a) AS xs MATCH (c:P)-[:K]->(d:P) WHERE NOT d IN xs RETURN count(*)"
    plan = _explained(db, text)
    assert "IN (SELECT unnest(" in plan
    assert "list_contains" not in plan


@pytest.mark.parametrize(
    ("text", "lists"),
    [
        ("MATCH (a:P) RETURN a.k, size([x IN [(a)-[:K]->(b) | b] WHERE (x)-[:K]->({t: 'a'}) | x.k])", False),
        ("MATCH (a:P) RETURN a.k, size([(a)-[:K]->(b) WHERE EXISTS { (b)-[:K]->({t: 'a'}) } | b.w])", False),
        ("MATCH (a:P) RETURN a.k, size([(a)-[e:K*1..2]->(b) | e]), size([(a)-[e:K]->(b) | e.w])", True),
        ("MATCH (a:P) RETURN a.k, [x IN [(a)-[e:K]->(b) WHERE b.w > 0 | b] WHERE x.w < 2 OR (x)-->(a) | x.k + 1]", True),
        ("MATCH (a:P) RETURN a.k, [x IN [(a)-[e:K]->(b) | e] WHERE x.w > 0 | x.w]", True),
        ("MATCH (a:P) RETURN a.k, [b IN [(a)-[:K]->(x) | x] WHERE EXISTS { (b)-[:K]->(x) WHERE x.w = 1 } | b.k]", True),
        ("MATCH (a:P) RETURN a.k, [x IN [(a)-[:K]->(b) | b.w] WHERE x > 0]", True),
        ("MATCH (a:P) WHERE any(x IN [(a)-[:K]->(b) | b] WHERE (x)-[:K]->({t: 'b'}) AND x.w > 0) RETURN a.k", False),
        ("MATCH (a:P) WHERE any(x IN [(a)-[:K]->(b) | b] WHERE EXISTS { (x)-[:K]->(b) WHERE b.w > 1 }) RETURN a.k", True),
        ("MATCH (a:P) WHERE none(x IN [(a)-[:K]->(b) | b] WHERE (x)-[:K]->({t: 'b'}) AND x.w > 0) RETURN a.k", True),
        ("MATCH (a:P)-[:K]->(b) WITH a, collect(b) AS l WHERE all(x IN l WHERE (x)-->({t: 'a'}) OR x.w > 0) RETURN a.k", False),
        ("MATCH (a:P)-[:K]->(b) WITH a, collect(DISTINCT b) AS l RETURN a.k, any(x IN l WHERE (x)-->(a)), "
         "size([x IN l WHERE NOT (x)-->({w: 1})])", False),
        ("MATCH (a:P) OPTIONAL MATCH (a)-[:K]->(b {t: 'c'}) WITH a, collect(b) AS l RETURN a.k, none(x IN l WHERE (x)-->())", False),
        ("MATCH (a:P)-[:K]->(b) WITH a, collect(b) AS l RETURN a.k, any(x IN l WHERE EXISTS { (x)-->(c) WHERE c.w = a.w })", True),
    ],
)  # fmt: skip
def test_conditions_with_patterns_on_items(db: graphdb.Database, text: str, lists: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("with_counts", "with_existence"):
            patch.setattr(f"graphdb.relational.query.{name}", lambda query, *_: query)
        patch.setattr("graphdb.relational.query.without_lists", lambda query, is_safe: query)
        as_written = bag(db.query(f"{text}\n").fetchall())
    assert bag(db.query(text).fetchall()) == as_written
    assert len(as_written) > 0
    assert lists or "list(" not in _explained(db, text)  # whether the items are listed at all


@pytest.mark.parametrize(
    "clause", ["MATCH (a:P)", "MATCH (a:P)-[:K]->(b:P)", "UNWIND [1, 2] AS r OPTIONAL MATCH (a:P)"]
)
@pytest.mark.parametrize(
    "test", ["r.k = a.k", "r.k = a.k AND r.w < 2", "r.w > 1", "r.k > a.k OR r.t = a.t", "r.u IS NULL AND a.w = r.w"]
)
def test_conditions_on_maps_of_an_argument(db: graphdb.Database, clause: str, test: str) -> None:
    maps: list[dict[str, Any]] = [{"k": k, "w": k % 3 or None, "t": "abz"[k % 3]} for k in (0, 3, 4, 4, 9, 90)]
    people = {k: (w, t) for k, w, t in db.query("MATCH (a:P) RETURN a.k, a.w, a.t").fetchall()}

    def holds(k: int, row: dict[str, Any]) -> bool:
        w, t = people[k]
        known = row["w"] is not None
        return {
            "r.k = a.k": row["k"] == k,
            "r.k = a.k AND r.w < 2": row["k"] == k and known and row["w"] < 2,
            "r.w > 1": known and row["w"] > 1,
            "r.k > a.k OR r.t = a.t": row["k"] > k or row["t"] == t,
            "r.u IS NULL AND a.w = r.w": known and w == row["w"],
        }[test]

    for rows in (maps, maps[:1], []):
        text = f"{clause} WHERE any(r IN $rows WHERE {test}) RETURN DISTINCT a.k"
        among = [k for (k,) in db.query(f"{clause} RETURN DISTINCT a.k").fetchall()]
        expected = sorted(k for k in among if any(holds(k, row) for row in rows))
        found = sorted(k for (k,) in db.query(text, rows=rows).fetchall() if k is not None)
        assert found == expected
        explained = "\n".join(line for (line,) in db.query(f"EXPLAIN {text}", rows=maps).fetchall())
        known = test in ("r.k = a.k", "r.w > 1")  # the one is a set of values, the other is known before the match
        assert "b.s0 > 0" in explained or "OPTIONAL" in clause or known  # how many rows of the argument go with one


@pytest.mark.parametrize("rows", [{"k": 3}, 3, "abc"])
def test_conditions_on_an_argument_that_is_no_list_are_refused(db: graphdb.Database, rows: object) -> None:
    """UNWIND makes a row of what is no list."""
    with pytest.raises(graphdb.TypeMismatchError, match="expected a list"):
        db.query("MATCH (a:P) WHERE any(r IN $rows WHERE r.k = a.k) RETURN a.k", rows=rows)
    assert db.query("MATCH (a:P) WHERE any(r IN $rows WHERE r.k = a.k) RETURN a.k", rows=None).fetchall() == []
