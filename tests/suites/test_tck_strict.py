"""The measure that openCypher's scenarios are held to: it sees each kind of mistake, and reads what the suite writes."""

from __future__ import annotations

from typing import Any

import pytest

import graphdb
from tests.datasets import SHARED
from tests.suites.effects import Contents, effects, same_graph
from tests.suites.tck import Runner, same_rows, scenarios
from tests.suites.tck_values import expected, read

needs_suite = pytest.mark.skipif(not scenarios(), reason=f"openCypher's scenarios are not in {SHARED}")


@needs_suite
def test_text_of_values_is_read_as_the_suite_types_them() -> None:
    count = 0
    for scenario in scenarios():
        expect = scenario["expect"]
        for texts, values in zip(expect.get("rows") or (), expect.get("values") or (), strict=True):
            count += len(texts)
            assert [*map(read, texts)] == [*map(expected, values)], scenario["id"]
    assert count > 3000


def _effects(*statements: str) -> dict[str, int]:
    *before, last = statements
    with graphdb.connect(threads=1) as database:
        for statement in before:
            database.query(statement)
        there = Contents.of(database)
        database.query(last)
        return effects(there, Contents.of(database))


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        (["CREATE (:A {x: 1})", "MATCH (a) SET a.x = 2"], {"+properties": 1, "-properties": 1}),
        (["CREATE (:A {x: 1})", "MATCH (a) SET a.x = 1"], {}),
        (["CREATE (:A)", "MATCH (a) DELETE a CREATE (:A)"], {"+nodes": 1, "-nodes": 1}),
        (["CREATE (:A), (:B)", "MATCH (a:A) SET a:B REMOVE a:A"], {"-labels": 1}),
        (["CREATE (:A)", "MATCH (a:A) CREATE (a)-[:R {x: 1}]->(a)"], {"+relationships": 1, "+properties": 1}),
        (
            ["CREATE (a)-[:R]->(b)", "MATCH (a)-[r]->(b) DELETE r CREATE (b)-[:R]->(a)"],
            {"+relationships": 1, "-relationships": 1},
        ),
        (["CREATE (:A {x: 1})", "MATCH (a) RETURN a"], {}),
    ],
)
def test_effects_are_counted_one_by_one(statements: list[str], found: dict[str, int]) -> None:
    assert _effects(*statements) == found


@pytest.mark.parametrize(
    ("made", "same"),
    [
        ("CREATE (:A {x: 1})-[:R]->(:B)", True),
        ("CREATE (b:B) CREATE (:A {x: 1})-[:R]->(b)", True),
        ("CREATE (:A {x: 1})<-[:R]-(:B)", False),
        ("CREATE (:A {x: 1})-[:S]->(:B)", False),
        ("CREATE (:A {x: 1.0})-[:R]->(:B)", False),
        ("CREATE (a:A {x: 1})-[:R]->(b:B), (a)-[:R]->(b)", False),
        ("CREATE (:A {x: 1}), (:B)", False),
    ],
)
def test_setups_are_compared(made: str, same: bool) -> None:
    should = {
        "nodes": [{"id": 0, "labels": ["A"], "props": {"x": 1}}, {"id": 1, "labels": ["B"], "props": {}}],
        "edges": [{"src": 0, "dst": 1, "type": "R", "props": {}}],
    }
    with graphdb.connect(threads=1) as database:
        database.query(made)
        assert same_graph(Contents.of(database), should) is same


def test_rows_are_compared_by_type() -> None:
    assert not same_rows([[1]], [[True]], {})
    assert not same_rows([[1]], [[{"float": "1.0"}]], {})
    assert not same_rows([[1], [2]], [[2], [1]], {"ordered": True})
    assert not same_rows([[1], [1]], [[1]], {})
    assert same_rows([[1], [2]], [[2], [1]], {})


@needs_suite
@pytest.mark.parametrize(
    ("change", "report"),
    [
        ({"side_effects": {"+nodes": 1}}, "effects"),
        (
            {
                "control": [
                    {"query": "MATCH (a:Root) RETURN a", "expect": {"columns": ["a"], "rows": [["(:Root {x: 1})"]]}}
                ]
            },
            "then",
        ),
        ({"setup_graph": {"nodes": [{"id": 0, "labels": ["Z"], "props": {}}], "edges": []}}, "setup"),
    ],
)
def test_a_scenario_that_says_something_else_fails(change: dict[str, Any], report: str) -> None:
    scenario = next(each for each in scenarios() if each["id"] == "clauses/create/Create2#10")
    runner = Runner()
    assert runner.run(scenario) is None
    wrong = runner.run({**scenario, **change})
    runner.close()
    assert wrong is not None
    assert report in wrong
