"""Estimates of edges between two sets of candidates: lists of neighbours in memory say what statistics do not know."""

from __future__ import annotations

import numpy as np
import pytest

from graphdb.grammar.syntax import MatchMode
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.plan.estimates import cost
from graphdb.plan.estimates.cost import estimate
from graphdb.plan.estimates.ends import CERTAIN, Lists
from graphdb.plan.ordering.sample import modelled
from graphdb.storage.graph.array_source import ArraySource
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import Layer

IN, PART, TYPE = 3000, 3001, 3002
PERSON, CITY, COUNTRY, MESSAGE = 3003, 3004, 3005, 3006
PERSONS, CITIES, COUNTRIES, MESSAGES = (
    np.arange(200), np.arange(200, 240), np.arange(240, 244), np.arange(244, 2644)
)  # fmt: skip


def places(layer: Layer | None = None, read: bool = True) -> DataGraph:
    """Persons in cities, nine of ten in the first, messages in countries, and cities that are part of countries: one
    label leads from persons to cities and from messages to countries.
    """
    inside = [(p, IN, 200 if p % 10 else 201 + p // 10) for p in PERSONS.tolist()]
    inside += [(m, IN, 240 + m % 4) for m in MESSAGES.tolist()]
    part = [(c, PART, 240 + c % 4) for c in CITIES.tolist()]
    members = ((PERSONS, PERSON), (CITIES, CITY), (COUNTRIES, COUNTRY), (MESSAGES, MESSAGE))
    typed = [(v, TYPE, of) for vertices, of in members for v in vertices.tolist()]
    s, p, o = np.array(inside + part + typed).T
    graph = DataGraph(ArraySource(s, p, o, 3010, 0, TYPE), layer=layer)
    for label in (IN, PART) if read else ():
        graph.partition((label,), "in")
        graph.partition((label,), "out")
    return graph


def chain(graph: DataGraph, first: np.ndarray, city: np.ndarray, country: np.ndarray, of: int = PERSON) -> PatternGraph:
    """``(first)-[IN]->(city)-[PART]->(country)``."""
    vertices = (("a", first, of), ("b", city, CITY), ("c", country, COUNTRY))
    return PatternGraph(
        tuple(PatternVertex(name, ids.astype(np.int64), "", (label,)) for name, ids, label in vertices),
        (PatternEdge("e", 0, 1, (IN,), True, 0), PatternEdge("f", 1, 2, (PART,), True, 0)),
        (Clause(MatchMode.REPEATABLE_ELEMENTS, (0, 1, 2)),),
        count_only=True,
    )


def expected(pattern: PatternGraph, graph: DataGraph, order: tuple[int, ...]) -> float:
    return modelled(estimate(pattern, graph), order).rows[-1]


@pytest.mark.parametrize("layer", ["direct", "hashed", "spans", None])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_labels_at_both_ends_are_not_independent(layer: Layer | None, order: tuple[int, ...]) -> None:
    graph = places(layer)
    pattern = chain(graph, PERSONS, CITIES, COUNTRIES)
    assert expected(pattern, graph, order) == pytest.approx(200, rel=0.2)
    nobody = chain(graph, MESSAGES, CITIES, COUNTRIES, MESSAGE)
    assert expected(nobody, graph, order) < 40 if layer != "hashed" else 400


@pytest.mark.parametrize("layer", ["direct", "hashed", "spans"])
def test_lists_of_a_handful_of_candidates_are_as_long_as_they_are(layer: Layer) -> None:
    graph = places(layer)
    pattern = chain(graph, PERSONS, CITIES[:6], COUNTRIES)
    assert expected(pattern, graph, (1, 0, 2)) == pytest.approx(185, rel=0.1)
    assert expected(pattern, graph, (0, 1, 2)) == pytest.approx(185, rel=0.1)
    # The plan may be used for others: where these have fewer neighbours than usual, it is as usual.
    small = chain(graph, PERSONS, CITIES[1:7], COUNTRIES)
    assert expected(small, graph, (1, 0, 2)) == pytest.approx(30, rel=0.1)


def test_constants_are_not_looked_at() -> None:
    graph = places()
    found = [expected(chain(graph, PERSONS, CITIES[i : i + 1], COUNTRIES), graph, (1, 0, 2)) for i in (0, 1, 30)]
    assert found == [pytest.approx(5, rel=0.2)] * 3


def test_nothing_is_read_for_it() -> None:
    graph = places(read=False)
    pattern = chain(graph, PERSONS, CITIES, COUNTRIES)
    assert expected(pattern, graph, (0, 1, 2)) < 40
    assert not any(graph.has_partition((label,), way) for label in (IN, PART) for way in ("in", "out"))


def test_large_patterns_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "LOOKS", 1)
    monkeypatch.setattr(cost, "corrected", lambda *_: pytest.fail("looked"))
    graph = places()
    assert expected(chain(graph, PERSONS, CITIES, COUNTRIES), graph, (0, 1, 2)) < 40


@pytest.mark.parametrize(
    ("joined", "seen", "model", "share"),
    [
        (0, 0, 0.3, 0.3),
        (CERTAIN, 100, 0.9, CERTAIN / 100),
        (2, 2, 0.1, 1.0),
        (0, 100, 0.001, 0.001),
        (0, 100, 0.5, 0.02),
        (3, 100, 1e-6, 0.01),
    ],
)
def test_shares_are_those_that_are_seen_as_far_as_that_is_enough(
    joined: int, seen: int, model: float, share: float
) -> None:
    assert Lists(100.0, 10.0, seen, joined).share(model) == pytest.approx(share)


def test_empty_sets_and_vertices_beyond_the_last_list() -> None:
    graph = places()
    none, beyond = np.empty(0, np.int64), np.array([3009])
    assert expected(chain(graph, PERSONS, none, COUNTRIES), graph, (0, 1, 2)) == 0
    assert expected(chain(graph, beyond, CITIES, COUNTRIES), graph, (0, 1, 2)) <= 1
