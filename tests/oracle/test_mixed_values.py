"""Values of several types, vertices and edges among them, against a model of them in Python: as a relational program.

Expressions are made at random together with what they yield for one row.  ``GRAPHDB_FUZZ`` multiplies their number.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from operator import mul, sub
from pathlib import Path
from typing import Any

import pytest

import graphdb
from graphdb.common.values.temporal import Duration
from graphdb.common.values.terms import Kind
from graphdb.common.values.types import VALUE, literal_sql
from tests.fuzz import scaled

Row = dict[str, Any]
Evaluate = Callable[[Row], Any]


@dataclass(frozen=True)
class Made:
    """An expression, and what it yields for a row."""

    text: str
    value: Evaluate


@pytest.fixture(scope="module")
def db() -> Iterator[graphdb.Database]:
    with graphdb.connect() as database:
        database.query("CREATE (:V {id: 0, name: 'a', n: 1}), (:V:W {id: 1, name: 'b', n: 'x'}), (:W {id: 2, n: 2.5})")
        database.query("MATCH (a), (b) WHERE b.id = (a.id + 1) % 3 CREATE (a)-[:R {w: a.id}]->(b)")
        database.query("MATCH (a {id: 0}), (b {id: 2}) CREATE (a)-[:R {w: 7}]->(b)")
        yield database


@pytest.fixture(scope="module")
def rows(db: graphdb.Database) -> list[Row]:
    """The rows of ``MATCH (n)-[r]->(m)``."""
    return [dict(zip("nrm", row, strict=True)) for row in db.query("MATCH (n)-[r]->(m) RETURN n, r, m").fetchall()]


class Maker:
    """Makes expressions; ``elements`` are names of vertices, ``items`` of what lambdas bring in."""

    def __init__(self, dice: random.Random, degrees: dict[str, int]) -> None:
        self.dice, self._degrees, self._depth = dice, degrees, 0

    def value(self, depth: int, local: tuple[str, ...] = ()) -> Made:
        """Return an expression of any type."""
        dice = self.dice
        if depth <= 0:
            return dice.choice([self.constant, self.variable, self.property])(local)
        kinds = [self.constant, self.variable, self.property]
        deeper = [self.list, self.map, self.case, self.item, self.coalesced]
        chosen = dice.choice([*kinds, *deeper, *deeper])
        return chosen(local) if chosen in kinds else chosen(depth - 1, local)  # type: ignore[operator]

    def constant(self, local: tuple[str, ...]) -> Made:
        text, value = self.dice.choice([("1", 1), ("2", 2), ("'a'", "a"), ("null", None), ("true", True), ("0.5", 0.5)])
        return Made(text, lambda row: value)

    def variable(self, local: tuple[str, ...]) -> Made:
        name = self.dice.choice([*"nrm", *local])
        return Made(name, lambda row: row[name])

    def property(self, local: tuple[str, ...]) -> Made:
        name, key = self.dice.choice([("n", "name"), ("m", "n"), ("r", "w"), ("n", "id")])
        return Made(f"{name}.{key}", lambda row: row[name].properties.get(key))

    def list(self, depth: int, local: tuple[str, ...]) -> Made:
        """Return a list that is written out, or made of another."""
        items = [self.value(depth, local) for _ in range(self.dice.randrange(4))]
        whole = Made(f"[{', '.join(item.text for item in items)}]", lambda row: [item.value(row) for item in items])
        if self.dice.random() < 0.6:
            return whole
        self._depth += 1
        name = f"x{self._depth}"
        result = self.value(depth, (*local, name))
        text = f"[{name} IN {whole.text} | {result.text}]"
        return Made(text, lambda row: [result.value({**row, name: item}) for item in whole.value(row)])

    def map(self, depth: int, local: tuple[str, ...]) -> Made:
        items = {key: self.value(depth, local) for key in self.dice.sample("kab", self.dice.randrange(3))}
        text = "{" + ", ".join(f"{key}: {item.text}" for key, item in items.items()) + "}"
        return Made(text, lambda row: {key: item.value(row) for key, item in items.items()})

    def case(self, depth: int, local: tuple[str, ...]) -> Made:
        one, other, bound = self.value(depth, local), self.value(depth, local), self.dice.randrange(3)
        text = f"CASE WHEN n.id < {bound} THEN {one.text} ELSE {other.text} END"
        return Made(text, lambda row: (one if row["n"].properties["id"] < bound else other).value(row))

    def item(self, depth: int, local: tuple[str, ...]) -> Made:
        whole, at = self.list(depth, local), self.dice.randrange(3)

        def value(row: Row) -> Any:
            return (whole.value(row)[at:] or [None])[0]

        return Made(f"{whole.text}[{at}]", value)

    def coalesced(self, depth: int, local: tuple[str, ...]) -> Made:
        one, other = self.value(depth, local), self.value(depth, local)

        def value(row: Row) -> Any:
            found = one.value(row)
            return other.value(row) if found is None else found

        return Made(f"coalesce({one.text}, {other.text})", value)

    def looked_up(self) -> Made:
        """Return what is asked of elements that only the data knows."""
        names = [self.dice.choice(["n", "m", "{id: 9, name: 'z'}", "null"]) for _ in range(3)]
        key = self.dice.choice(["name", "id", "n"])

        def value(row: Row) -> Any:
            known = {"{id: 9, name: 'z'}": {"id": 9, "name": "z"}, "null": {}}
            found = [known[name] if name in known else row[name].properties for name in names]
            return [each.get(key) for each in found]

        return Made(f"[x IN [{', '.join(names)}] | x.{key}]", value)

    def counted(self) -> Made:
        """Return a subquery for each item of a list."""
        names = [self.dice.choice("nm") for _ in range(self.dice.randrange(1, 4))]

        def value(row: Row) -> Any:
            return [[self._degrees[row[name].iri], row[name]] for name in names]

        return Made(f"[x IN [{', '.join(names)}] | [COUNT {{ (x)-->() }}, x]]", value)

    def any(self) -> Made:
        """Return any of these."""
        dice = self.dice.random()
        return self.looked_up() if dice < 0.2 else self.counted() if dice < 0.3 else self.value(3)


def _plain(value: Any) -> str:
    """Return what is the same for the same values: vertices are equal by their IRIs alone, edges by all they have."""
    match value:
        case graphdb.Node():
            return f"({value.iri} {value.labels} {dict(value.properties)})"
        case list() | tuple():
            return f"[{', '.join(map(_plain, value))}]"
        case dict():
            return f"{{{', '.join(f'{key}: {_plain(item)}' for key, item in sorted(value.items()))}}}"
    return repr(value)


def _check(db: graphdb.Database, text: str, expected: list[tuple[Any, ...]]) -> None:
    assert Counter(map(_plain, db.query(text).fetchall())) == Counter(map(_plain, expected)), text


@pytest.mark.parametrize("seed", range(scaled(30)))
def test_values(db: graphdb.Database, rows: list[Row], seed: int) -> None:
    degrees = Counter(row["n"].iri for row in rows)
    maker = Maker(random.Random(seed), degrees)
    one, other = maker.any(), maker.any()
    both = [(one.value(row), other.value(row)) for row in rows]
    match maker.dice.randrange(7):
        case 0:
            _check(db, f"MATCH (n)-[r]->(m) RETURN {one.text} AS a, {other.text} AS b", both)
        case 1:
            expected = [(a, [a, b], {"k": b}) for a, b in both]
            text = f"MATCH (n)-[r]->(m) WITH {one.text} AS a, {other.text} AS b RETURN a, [a, b] AS l, {{k: b}} AS m"
            _check(db, text, expected)
        case 2:
            expected = [(item,) for a, b in both for item in (a, b, 1)]
            _check(db, f"MATCH (n)-[r]->(m) UNWIND [{one.text}, {other.text}, 1] AS x RETURN x", expected)
        case 3:
            text = f"MATCH (n)-[r]->(m) RETURN {one.text} AS a UNION ALL MATCH (n)-[r]->(m) RETURN {other.text} AS a"
            _check(db, text, [(value,) for pair in both for value in pair])
        case 4:
            # What stands beside an aggregate is made of keys.
            text = f"MATCH (n)-[r]->(m) WITH r, {one.text} AS a RETURN a, r, [a, count(*), r] AS l"
            _check(db, text, [(a, row["r"], [a, 1, row["r"]]) for (a, _), row in zip(both, rows, strict=True)])
        case 5:
            text = f"MATCH (n)-[r]->(m) WITH n, r, {one.text} AS a ORDER BY r.w RETURN n, collect([a]) AS l"
            groups: dict[Any, list[Any]] = {}
            order = sorted(range(len(rows)), key=lambda i: rows[i]["r"].properties["w"])
            for i in order:
                groups.setdefault(rows[i]["n"].iri, []).append([both[i][0]])
            nodes = {row["n"].iri: row["n"] for row in rows}
            _check(db, text, [(nodes[iri], found) for iri, found in groups.items()])
        case _:
            text = f"MATCH (n)-[r]->(m) CALL (n, r, m) {{ RETURN {one.text} AS a }} RETURN a, {other.text} AS b"
            _check(db, text, both)


def test_what_is_asked_of_elements_that_only_the_data_knows(db: graphdb.Database) -> None:
    for text, expected in [
        ("MATCH (n) UNWIND [n, {name: 'z'}] AS x RETURN DISTINCT x.name ORDER BY x.name", [("a",), ("b",), ("z",), (None,)]),
        ("MATCH (n) WHERE any(x IN [n, {name: 'z'}] WHERE x.name = 'a') RETURN n.id", [(0,)]),
        ("MATCH (n) WITH n, [n, 1] AS l WHERE l[0].name = 'b' RETURN n.id", [(1,)]),
        ("MATCH (n) RETURN reduce(s = 0, x IN collect([n, n.id]) | s + x[0].id) AS s", [(3,)]),
        ("MATCH (n) WITH collect([n]) + [1] AS l UNWIND l AS x WITH x WHERE x <> 1 RETURN x[0].id AS i ORDER BY i", [(0,), (1,), (2,)]),
        ("MATCH (n {id: 0}) WITH [n, 'a'] AS l RETURN labels(l[0]), keys(l[0]), properties(l[0]).name", [(["V"], ["id", "n", "name"], "a")]),
        ("MATCH (n {id: 0})-[r {w: 0}]->() WITH [r, 1] AS l RETURN type(l[0]), startNode(l[0]).id, l[0].w", [("R", 0, 0)]),
        ("MATCH (n) RETURN n.id ORDER BY [n, {id: 1}][0].id DESC LIMIT 1", [(2,)]),
        ("MATCH (n) RETURN DISTINCT n.id AS i, n ORDER BY [n, {id: 1}][0].id DESC LIMIT 1", None),
        ("MATCH (n) RETURN COLLECT { MATCH (n)-[r]->(m) RETURN [m, 1][0].id ORDER BY r.w } AS c ORDER BY n.id", [([1, 2],), ([2],), ([0],)]),
    ]:  # fmt: skip
        found = db.query(text).fetchall()
        assert found == expected if expected is not None else [row[0] for row in found] == [2], text


def test_aggregates_of_values_of_several_types(db: graphdb.Database) -> None:
    for text, expected in [
        ("UNWIND [1, 2.5, 3] AS x RETURN sum(x), avg(x), percentileDisc(x, 0.5), percentileCont(x, 0.5)", (6.5, 6.5 / 3, 2.5, 2.5)),
        ("UNWIND [[1], [2.5]] AS x RETURN sum(x[0]), min(x[0]), max(x[0]), stDevP(x[0])", (3.5, 1, 2.5, 0.75)),
        ("UNWIND [1, 2] AS x WITH x, 0.5 AS f RETURN percentileCont(x, f)", (1.5,)),
        ("UNWIND ['P1D', 'P2D', 'P1D'] AS t RETURN toString(sum(DISTINCT duration(t)))", ("P3D",)),
    ]:  # fmt: skip
        assert db.query(text).fetchone() == expected, text


def test_a_percentile_is_one_of_the_numbers_as_it_is(db: graphdb.Database) -> None:
    for text, expected in [
        ("UNWIND [3, 1, 2.5, 2] AS x RETURN percentileDisc(x, 0.4), percentileDisc(x, 0.7), percentileDisc(x, 1)", "(2, 2.5, 3)"),
        ("UNWIND [3, 1, 1.0, 2.5] AS x RETURN percentileDisc(DISTINCT x, 1), percentileDisc(DISTINCT x, 0.6)", "(3, 2.5)"),
        ("MATCH (n) RETURN percentileDisc(CASE WHEN n.id < 9 THEN n.id ELSE 0.5 END, 0)", "(0,)"),
        ("UNWIND [null, coalesce(null, 7, 0.5)] AS x RETURN percentileDisc(x, 0.5), percentileDisc(x, 0)", "(7, 7)"),
    ]:  # fmt: skip
        assert repr(db.query(text).fetchone()) == expected, text


def test_a_constant_fraction_is_there_for_a_group_without_rows(db: graphdb.Database) -> None:
    for fraction in ("0.4", "1 - 0.5"):
        text = f"MATCH (n) WHERE n.id = 77 RETURN percentileDisc([n.id, 'a'], {fraction}) AS p"
        assert db.query(text).fetchall() == [(None,)]


def test_unions_of_several_types(db: graphdb.Database) -> None:
    for text, expected in [
        ("RETURN 1 AS a UNION RETURN 'x' AS a UNION RETURN [1] AS a UNION RETURN 'x' AS a", [1, "x", [1]]),
        ("RETURN {a: 1} AS a UNION ALL RETURN {b: 1} AS a", [{"a": 1}, {"b": 1}]),
        ("MATCH (n {id: 0}) RETURN n.name AS a UNION MATCH (n {id: 1}) RETURN [n.id, n.name] AS a", ["a", [1, "b"]]),
    ]:
        assert sorted((value for (value,) in db.query(text)), key=repr) == sorted(expected, key=repr), text
    ((one,), (other,)) = sorted(db.query("MATCH (n {id: 0}) RETURN n AS a UNION RETURN 1 AS a"), key=repr)
    assert one == 1
    assert (other.iri, other.properties["name"]) == (other.iri, "a")


def test_unions_of_integers_and_floats() -> None:
    small, large = [0, 1, 1, 7, -3], [2**53, 2**53 + 1, -(2**62)]
    floats = [1.0, -0.0, 0.0, 2.5, float(2**53), math.nan, math.inf, -3.0]
    with graphdb.connect(device="cpu", threads=1) as database:
        database.query("UNWIND $f AS f CREATE (:F {f: f, k: 1})", f=floats)
        database.query("CREATE (:I {k: 1}), (:F {k: 1})")
        ints: list[int] = []
        for more in (small, large):
            database.query("UNWIND $i AS i CREATE (:I {i: i, k: 1})", i=more)
            ints += more
            every = [*ints, *floats, None, None]
            once = {"null", *(repr(each) for each in {*ints}), *("nan" if f != f else repr(f + 0) for f in floats)}
            once -= {repr(f + 0) for f in floats if f == f and f in ints}  # an integer stands for what equals it
            for one, other in (("I", "F"), ("F", "I")):
                part = {"I": "MATCH (n:I) RETURN n.i AS v, n.k AS k", "F": "MATCH (n:F) RETURN n.f AS v, n.k AS k"}
                found = database.query(f"{part[one]} UNION ALL {part[other]}")
                assert sorted(map(repr, found)) == sorted(repr((each, 1)) for each in every)
                found = database.query(f"{part[one]} UNION {part[other]}")
                assert sorted("null" if v is None else repr(v + 0) for v, _ in found) == sorted(once)
                found = database.query(f"CALL {{ {part[one]} UNION {part[other]} }} RETURN count(v) AS n, sum(k) AS s")
                assert found.fetchall() == [(len(once) - 1, len(once))]
                found = database.query(f"{part[one]} UNION ALL {part[other]}").to_arrow().column("v").to_pylist()
                assert sorted(map(repr, found)) == sorted(repr(v if v is None else float(v)) for v in every)


def test_random_values_are_each_row_s_own(db: graphdb.Database) -> None:
    for text, expected in [
        (
            "UNWIND range(1, 50) AS i WITH [x IN [i, 'a'] | randomUUID()] AS l UNWIND l AS u RETURN count(DISTINCT u)",
            100,
        ),
        ("MATCH (n) CALL (n) { RETURN randomUUID() AS u } RETURN count(DISTINCT u)", 3),
        ("UNWIND range(1, 20) AS i CALL () { RETURN randomUUID() AS u } RETURN count(DISTINCT u)", 20),
        ("UNWIND [1, 1, 1] AS i RETURN size(COLLECT { RETURN DISTINCT i }) AS n LIMIT 1", 1),
    ]:
        assert db.query(text).scalar() == expected, text


def test_functions_of_a_transaction_that_is_rolled_back(db: graphdb.Database) -> None:
    texts = ["UNWIND [1, 'a'] AS x RETURN [x, [1]] AS l", "UNWIND [[1.5, 'a']] AS x RETURN [y IN x | y = 1.5] AS l"]
    expected = [[([1, [1]],), (["a", [1]],)], [([True, False],)]]
    for end in ("ROLLBACK", "COMMIT", "ROLLBACK"):
        db.query("BEGIN")
        for text, rows in zip(texts, expected, strict=True):
            assert db.query(text).fetchall() == rows
        db.query(end)
        assert [db.query(text).fetchall() for text in texts] == expected


WHEN = datetime(2020, 1, 1, 12, tzinfo=timezone(timedelta(hours=2)))


def test_points_in_time_after_with() -> None:
    """They have the offset that they were written with; of a property of several types that is so before WITH only."""
    with graphdb.connect() as db:
        db.query(
            "CREATE ({w: datetime('2020-01-01T12:00+02:00')})-[:R {w: datetime('2020-01-01T12:00+02:00')}]->({w: 1})"
        )
        for start, later, offset in (
            ("MATCH (x)-[:R]->()", WHEN.astimezone(UTC), "Z"),
            ("MATCH ()-[x:R]->()", WHEN, "+02:00"),
        ):
            for rest, expected in [
                ("RETURN x.w, x.w.hour, [x.w, [1]]", (WHEN, 12, [WHEN, [1]])),
                ("WITH x.w AS w RETURN w, w.hour, [w, [1]]", (later, later.hour, [later, [1]])),
                ("WITH DISTINCT x.w AS w RETURN w, {w: w}", (later, {"w": later})),
                ("RETURN collect(x.w), max(x.w), count(DISTINCT x.w)", ([later], later, 1)),
                ("WITH x.w AS w, count(*) AS c ORDER BY w RETURN w.offset, c", (offset, 1)),
                ("CALL (x) { RETURN x.w AS w } RETURN w = x.w, w.hour", (True, later.hour)),
            ]:
                found = db.query(f"{start} {rest}").fetchall()
                assert repr(found).replace("timezone.utc", "UTC") == repr([expected]).replace("timezone.utc", "UTC"), (
                    rest
                )


def test_properties_of_edges_that_sql_does_not_hold() -> None:
    with graphdb.connect() as db:
        db.query("CREATE ({id: 1})-[:R {l: [1, 2], d: duration('P1D')}]->({id: 2})-[:R {l: ['a']}]->()")
        for text, expected in [
            ("MATCH ()-[r]->() RETURN r.l, r.l[0], size(r.l)", [([1, 2], 1, 2), (["a"], "a", 1)]),
            ("MATCH ()-[r]->() WITH r.l AS l, r.d AS d RETURN l + 1, d.days", [([1, 2, 1], 1), (["a", 1], None)]),
            ("MATCH ()-[r]->() WHERE r.l = ['a'] RETURN r.l", [(["a"],)]),
        ]:
            assert Counter(map(repr, db.query(text).fetchall())) == Counter(map(repr, expected)), text


def test_lists_of_literals(tmp_path: Path) -> None:
    """A list of matched literals holds their values: equivalent lists are one, in whatever clause."""
    file = tmp_path / "graph.ttl"
    file.write_text(
        '<urn:x:a> <urn:x:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer>, "u" .\n'
        '<urn:x:b> <urn:x:p> "01"^^<http://www.w3.org/2001/XMLSchema#integer>, "u" .\n'
    )
    with graphdb.connect() as db:
        db.load(str(file))
        rows = "MATCH (n)-[:p]->(x) WITH n, x ORDER BY x WITH n, collect(x) AS l"
        for rest, expected in [
            ("RETURN DISTINCT l", [["u", 1]]),
            ("RETURN l, count(*) AS c", [["u", 1]]),
            ("RETURN count(DISTINCT l)", [1]),
            ("RETURN size(collect(DISTINCT l))", [1]),
            ("RETURN l UNION RETURN [2] AS l", [["u", 1], [2]]),
            ("WITH l ORDER BY l LIMIT 1 RETURN l", [["u", 1]]),
            ("UNWIND l AS x RETURN DISTINCT x", ["u", 1]),
            ("WITH l LIMIT 1 RETURN [x IN l | x = 1]", [[False, True]]),
        ]:
            found = [row[0] for row in db.query(f"{rows} {rest}")]
            assert sorted(found, key=repr) == sorted(expected, key=repr), rest


def test_elements_within_the_items_of_lists(db: graphdb.Database) -> None:
    rows = "MATCH p = (n)-[r]->(m) WITH n, r, m, p ORDER BY r.w"
    for text, expected in [
        ("WITH collect(p) AS l RETURN [p IN l | nodes(p)[0].id]", [0, 1, 2, 0]),
        ("WITH collect([n, m]) AS l RETURN [x IN l WHERE x[0].id < 1 | x[1].id]", [1, 2]),
        ("WITH collect({n: n, m: m}) AS l RETURN [x IN l | x.n.id]", [0, 1, 2, 0]),
        (
            "WITH collect(p) AS l RETURN [any(p IN l WHERE nodes(p)[0]:W), all(p IN l WHERE nodes(p)[1]:W)]",
            [True, False],
        ),
    ]:
        assert db.query(f"{rows} {text}").scalar() == expected, text


def test_lists_of_lists_that_are_properties_are_ordered_by_all_items() -> None:
    """The order knew of the types alone that occur in lists which are written out."""
    with graphdb.connect(":memory:", device="cpu") as db:
        db.query("CREATE (:P {li: [1]}), (:P {li: [0, 1]}), (:P {li: [0, 2]}), (:P)")
        rows = db.query("MATCH (a:P) RETURN [['a', 'B'], a.li] AS l ORDER BY l").fetchall()
        assert [last for ((_, last),) in rows] == [[0, 1], [0, 2], [1], None]
        assert db.query("MATCH (a:P) WHERE a.li[0] < 1 RETURN min([['a'], a.li]), max([['a'], a.li])").fetchall() == [
            ([["a"], [0, 1]], [["a"], [0, 2]])
        ]


@pytest.mark.parametrize("inside", [False, True], ids=["statements", "a transaction"])
@pytest.mark.parametrize("of", ["(x:P)", "()-[x:R]->()"])
def test_values_of_types_that_come_later(of: str, inside: bool) -> None:
    """SQL has the types of a property that occur, and no others: planning all of them took longer than what it planned."""
    assert "boolean" not in literal_sql("l", VALUE, 1 << Kind.INTEGER | 1 << Kind.STRING).partition("AS UNION")[0]
    value = "x.v"
    asked = [
        (f"MATCH {of} WHERE NOT {value} = 1 RETURN {value}", lambda v: v is True or v != 1),
        (f"MATCH {of} WHERE {value} IS NOT NULL RETURN {value}", lambda v: True),
        (f"MATCH {of} WITH DISTINCT {value} AS v ORDER BY toString(v) RETURN v", lambda v: True),
    ]
    with graphdb.connect(device="cpu", threads=1) as db:
        values: list[Any] = []
        if inside:
            db.query("BEGIN")
        for new in (1, "a", 1.5, 7, True, -2.5):
            values.append(new)
            db.query("CREATE (:P {v: $v, n: $n})-[:R {v: $v}]->(:Q)", v=new, n=len(values))
            for text, holds in asked:
                found = db.query(text).fetchall()
                assert sorted(repr(v) for (v,) in found) == sorted(repr(v) for v in values if holds(v)), (text, new)


@pytest.mark.parametrize("inside", [False, True], ids=["statements", "a transaction"])
def test_vertices_of_values_whose_types_come_later(inside: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads vertices and terms from the database, or their texts, looks for the types that there are."""
    monkeypatch.setattr("graphdb.snapshot.terms.Lookup.ready", lambda *_, **__: False)
    with graphdb.connect(device="cpu", threads=1) as db:
        if inside:
            db.query("BEGIN")
        assert db.query("CREATE (n:P) RETURN n").fetchall()[0][0].properties == {}
        values: list[Any] = []
        for new in (1, "a", 1.5, True, datetime(2020, 1, 1, tzinfo=UTC), Duration(days=1), [1, 2], None):
            values.append(new)
            ((node, edge, other),) = db.query(
                "MERGE (n:N) SET n.v = $v CREATE (n)-[r:R {v: $v}]->(m:M {v: $v, w: 1}) RETURN n, r, m", v=new
            ).fetchall()
            there = {} if new is None else {"v": new}
            assert [dict(each.properties) for each in (node, edge, other)] == [there, there, there | {"w": 1}]
            found = db.query("MATCH (m:M) RETURN m, m.v, properties(m), [m.v, toString(m.w)] AS l").fetchall()
            assert sorted(repr(m.properties.get("v")) for m, *_ in found) == sorted(map(repr, values))
            assert all(v == m.properties.get("v") == p.get("v") == l[0] for m, v, p, l in found)
            terms = db.query("MATCH (:M)-[:v]->(x) RETURN x").fetchall()
            assert sorted(repr(x) for (x,) in terms) == sorted(repr(v) for v in values if v is not None)


@pytest.mark.parametrize(("operator", "compute"), [("-", sub), ("*", mul), ("^", lambda a, b: float(a) ** b)])
def test_arithmetic_needs_numbers_whatever_the_others_are(
    operator: str, compute: Callable[[float, float], float]
) -> None:
    """Where it has two values, one of which is none, it fails; null makes null."""
    values = [2, 2.5, "x", True, None, date(2020, 1, 1)]
    with graphdb.connect(device="cpu", threads=1) as db:
        db.query("UNWIND range(0, 5) AS k CREATE (:V {k: k})")
        for k, value in enumerate(values):
            db.query("MATCH (v:V {k: $k}) SET v.m = $value", k=k, value=value)
        text = f"MATCH (a:V {{k: $a}}), (b:V {{k: $b}}) RETURN a.m {operator} b.m"
        for a, b in itertools.product(range(6), repeat=2):
            both = values[a], values[b]
            if None not in both and not all(type(value) in (int, float) for value in both):
                with pytest.raises(graphdb.TypeMismatchError, match=r"needs numbers|cannot take"):
                    db.query(text, a=a, b=b).fetchall()
            else:
                wanted = None if None in both else pytest.approx(compute(*both))  # type: ignore[arg-type]
                assert db.query(text, a=a, b=b).scalar() == wanted
