"""The generated RDF graph: what it is made of, and our answers to the questions of its benchmark against DuckDB's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import graphdb
from tests.benchmarks.campus import NAMESPACE, Edges, campus, predicates, register, size, write
from tests.benchmarks.campus_queries import LITERALS, QUESTIONS, Question

TRIPLES = 4_000


@pytest.fixture(scope="module")
def graph() -> list[Edges]:
    return campus(TRIPLES, seed=3)


@pytest.fixture(scope="module")
def engines(graph: list[Edges], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """(our database, DuckDB with the same triples)."""
    path: Path = tmp_path_factory.mktemp("campus") / "campus.nt"
    write(graph, path)
    with graphdb.connect() as ours, duckdb.connect() as theirs:
        assert ours.load(path).triples == size(graph)
        register(graph, theirs)
        yield ours, theirs


def test_what_was_asked_for(graph: list[Edges]) -> None:
    assert 0.8 < size(graph) / TRIPLES < 1.1
    for edges in graph:
        pairs = np.stack([edges.subjects, edges.objects])
        assert np.unique(pairs, axis=1).shape == pairs.shape, f"{edges.predicate} has a triple twice"


def test_the_seed_decides(graph: list[Edges]) -> None:
    again, other = campus(TRIPLES, seed=3), campus(TRIPLES, seed=4)
    same = [np.array_equal(a.subjects, b.subjects) for a, b in zip(graph, again, strict=True)]
    assert all(same)
    assert not np.array_equal(graph[1].objects, other[1].objects)


def test_predicates_and_objects_are_skewed() -> None:
    large = campus(100_000)
    sizes = dict(predicates(large))
    assert sizes["follows"] > 10 * sizes["degreeFrom"]
    assert sizes["tag0"] > 20 * max(sizes["tag63"], 1)
    (likes,) = (edges for edges in large if edges.predicate == "likes")
    popular = np.sort(np.bincount(likes.objects))[::-1]
    assert popular[0] > 20 * np.median(popular)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name.split()[0])
def test_our_answers_are_those_of_sql(engines: tuple[Any, Any], question: Question) -> None:
    ours, theirs = engines
    found = Counter(tuple(map(_plain, row)) for row in ours.query(question.text).fetchall())
    literal = [name in LITERALS for name in question.returns] + [False]
    wanted: Counter[tuple[object, ...]] = Counter()
    for row in theirs.execute(question.sql).fetchall():
        wanted[tuple(int(cell) if number else cell for cell, number in zip(row, literal, strict=False))] += 1
    assert found == wanted


def _plain(cell: object) -> object:
    return cell.removeprefix(NAMESPACE) if isinstance(cell, str) else cell
