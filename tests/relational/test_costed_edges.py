"""Edges with costs that the data alone says: found once, by whatever text, until the data changes."""

from __future__ import annotations

import pytest

import graphdb
from graphdb.relational.paths.steps import StepRun
from graphdb.relational.program import Step

ROADS = """CREATE (a:Town {name: 'a'}), (b:Town {name: 'b'}), (c:Town {name: 'c'}),
(a)-[:ROAD {km: 5}]->(b), (b)-[:ROAD {km: 5}]->(c), (a)-[:ROAD {km: 30}]->(c)"""
CHEAPEST = """MATCH (s:Town {name: $start}), (t:Town {name: $end})
MATCH ANY SHORTEST (s)-[r:ROAD]->+(t) COST BY r.km AS total RETURN total"""


@pytest.fixture
def roads() -> graphdb.Database:
    database = graphdb.connect(threads=1)
    database.query(ROADS)
    return database


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each search for paths found its edges in the cache."""
    seen: list[bool] = []
    with_edges = StepRun._with_edges

    def noted(self: StepRun, step: object) -> object:
        seen.append(step.view in self._known)  # type: ignore[attr-defined]
        return with_edges(self, step)  # type: ignore[arg-type]

    monkeypatch.setattr(StepRun, "_with_edges", noted)
    return seen


def test_edges_are_found_once_for_all_arguments_and_texts(roads: graphdb.Database, searches: list[bool]) -> None:
    assert roads.query(CHEAPEST, start="a", end="c").fetchall() == [(10,)]
    assert roads.query(CHEAPEST, start="b", end="c").fetchall() == [(5,)]
    other = "MATCH ANY SHORTEST (s:Town)-[r:ROAD]->+(t:Town {name: 'c'}) COST BY r.km RETURN s.name ORDER BY s.name"
    assert roads.query(other).fetchall() == [("a",), ("b",)]
    assert searches == [False, True, True]


@pytest.mark.parametrize(
    ("write", "total"),
    [
        ("MATCH ({name: 'a'})-[r:ROAD]->({name: 'c'}) SET r.km = 7", 7),
        ("MATCH ({name: 'a'})-[r:ROAD]->({name: 'b'}) DELETE r", 30),
        ("MATCH (a {name: 'a'}), (c {name: 'c'}) CREATE (a)-[:ROAD {km: 1}]->(c)", 1),
    ],
)
def test_a_write_is_seen(roads: graphdb.Database, write: str, total: int) -> None:
    assert roads.query(CHEAPEST, start="a", end="c").fetchall() == [(10,)]
    roads.query("BEGIN")
    roads.query(write)
    assert roads.query(CHEAPEST, start="a", end="c").fetchall() == [(total,)]
    roads.query("ROLLBACK")
    assert roads.query(CHEAPEST, start="a", end="c").fetchall() == [(10,)]
    roads.query(write)
    assert roads.query(CHEAPEST, start="a", end="c").fetchall() == [(total,)]


def test_arguments_are_no_part_of_it(roads: graphdb.Database, searches: list[bool]) -> None:
    text = CHEAPEST.replace("r.km AS", "r.km * $factor AS")
    assert roads.query(text, start="a", end="c", factor=1).fetchall() == [(10,)]
    assert roads.query(text, start="a", end="c", factor=2).fetchall() == [(20,)]
    assert roads.query(CHEAPEST.replace("r.km AS", "r.km / 2 AS"), start="a", end="c").fetchall() == [(4,)]
    assert roads.query(CHEAPEST.replace("r.km AS", "r.km / 2.0 AS"), start="a", end="c").fetchall() == [(5.0,)]
    assert searches == [False] * 4


def test_edges_are_found_once_where_arguments_decide_on_costs(
    roads: graphdb.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    matched: list[str] = []
    shown = StepRun._shown_match

    def noted(self: StepRun, step: Step, shares: int) -> object:
        matched.append(step.words)
        return shown(self, step, shares)

    monkeypatch.setattr(StepRun, "_shown_match", noted)
    text = CHEAPEST.replace("r.km AS", "r.km * $factor + $toll AS")
    for factor, toll, total in ((1, 0, 10), (2, 1, 22), (1, 0.5, 11.0), (1, 25, 55)):
        assert roads.query(text, start="a", end="c", factor=factor, toll=toll).fetchall() == [(total,)]
    assert roads.query(text, start="c", end="a", factor=1, toll=0).fetchall() == []
    assert matched.count("edges of a path") == 1
    assert roads.query(text.replace("r:ROAD]->", "r:ROAD]-"), start="c", end="a", factor=1, toll=0).fetchall() == [
        (10,)
    ]
    roads.query("MATCH ({name: 'a'})-[r:ROAD]->({name: 'b'}) SET r.km = 40")
    assert roads.query(text, start="a", end="c", factor=1, toll=0).fetchall() == [(30,)]
    assert matched.count("edges of a path") == 3


def test_numbers_of_answers_between_ends_are_costs(roads: graphdb.Database) -> None:
    """COUNT with a condition that no candidate set says, at once for all edges."""
    roads.query(
        "MATCH (a {name: 'a'}), (b {name: 'b'}), (c {name: 'c'}) "
        "CREATE (a)-[:SENT]->(:Letter {grams: 5})-[:TO]->(b), (a)-[:SENT]->(:Letter {grams: 50})-[:TO]->(b), "
        "(b)-[:SENT]->(:Parcel {grams: 50})-[:TO]->(c), (a)-[:SENT]->(:Letter {grams: 60})-[:TO]->(c)"
    )
    text = """MATCH (s:Town {name: 'a'}), (t:Town {name: 'c'})
        MATCH ANY SHORTEST (s) ((x)-[r:ROAD]->(y))+ (t)
        COST BY 10.0 / (1 + COUNT { MATCH (x)-[:SENT]->(p)-[:TO]->(y) WHERE p:Parcel OR p.grams > $grams }) AS total
        RETURN total"""
    for grams in (0, 20, 55, 100):
        sent = {"ab": [5, 50], "ac": [60]}
        ab, ac = (10 / (1 + sum(each > grams for each in sent[way])) for way in ("ab", "ac"))
        bc = 10 / 2  # a parcel, whatever it weighs
        assert roads.query(text, grams=grams).fetchall() == [(min(ab + bc, ac),)]


def test_explain_says_so(roads: graphdb.Database) -> None:
    lines = [line for (line,) in roads.query("EXPLAIN " + CHEAPEST, start="a", end="c").fetchall()]
    assert "  its edges and their costs depend on the data alone: found once, until it changes" in lines
    roads.query(CHEAPEST, start="a", end="c")
    profile = [line for (line,) in roads.query("PROFILE " + CHEAPEST, start="a", end="c").fetchall()]
    assert any(line.endswith("1 rows") for line in profile)


SHORTEST = """MATCH p = shortestPath((s:Town {name: $start})-[:ROAD*]->(t:Town {name: $end}))
RETURN [n IN nodes(p) | n.name] AS names, [r IN relationships(p) | r.km] AS km"""


def test_edges_without_costs_are_found_once_too(roads: graphdb.Database, searches: list[bool]) -> None:
    """Where some are parallel, or a condition on their properties says which they are; not where an argument does."""
    roads.query(
        "MATCH (b {name: 'b'}), (c {name: 'c'}) CREATE (b)-[:ROAD {km: 6}]->(c), (c)-[:ROAD {km: 1}]->(:Town {name: 'd'})"
    )
    for end, names in (("b", ["a", "b"]), ("d", ["a", "c", "d"]), ("c", ["a", "c"])):
        found = roads.query(SHORTEST, start="a", end=end).fetchall()
        assert found == [(names, {"b": [5], "c": [30], "d": [30, 1]}[end])]
    assert searches == [False, True, True]
    short = SHORTEST.replace("[:ROAD*]", "[:ROAD* {km: 5}]")
    for _ in range(2):
        assert roads.query(short, start="a", end="c").fetchall() == [(["a", "b", "c"], [5, 5])]
    given = SHORTEST.replace("[:ROAD*]", "[:ROAD* {km: $km}]")
    for km, rows in ((5, [(["a", "b"], [5])]), (6, [])):
        assert roads.query(given, start="a", end="b", km=km).fetchall() == rows
    assert searches[3:] == [False, True, False, False]


@pytest.mark.parametrize(
    ("write", "rows"),
    [
        ("MATCH ({name: 'a'})-[r:ROAD]->({name: 'c'}) DELETE r", [(["a", "b", "c"], [5, 5])]),
        ("MATCH ({name: 'a'})-[r:ROAD]->({name: 'c'}) SET r.km = 31", [(["a", "c"], [31])]),
        ("MATCH (c {name: 'c'}) DETACH DELETE c", []),
    ],
)
def test_a_write_is_seen_of_edges_without_costs(roads: graphdb.Database, write: str, rows: list[object]) -> None:
    roads.query("MATCH (a {name: 'a'}), (b {name: 'b'}) CREATE (b)-[:ROAD {km: 9}]->(a), (b)-[:ROAD {km: 8}]->(a)")
    assert roads.query(SHORTEST, start="a", end="c").fetchall() == [(["a", "c"], [30])]
    roads.query("BEGIN")
    roads.query(write)
    assert roads.query(SHORTEST, start="a", end="c").fetchall() == rows
    roads.query("ROLLBACK")
    assert roads.query(SHORTEST, start="a", end="c").fetchall() == [(["a", "c"], [30])]
    roads.query(write)
    assert roads.query(SHORTEST, start="a", end="c").fetchall() == rows
