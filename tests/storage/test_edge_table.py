"""A table of edges that is moved among more vertices is what would be read of them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.graph.changes import Sizes
from graphdb.storage.graph.edges import EdgeTable, spread


@pytest.mark.parametrize("triples", [0, 3, 400])
@pytest.mark.parametrize(("resources", "literals"), [(0, 0), (3, 0), (0, 2), (5, 7)])
@pytest.mark.parametrize("seed", range(3))
def test_moved(triples: int, resources: int, literals: int, seed: int) -> None:
    draw, before = np.random.default_rng(seed), Sizes(12, 4)
    now = Sizes(before.resources + resources, before.literals + literals)
    subjects = draw.integers(0, before.resources, triples)
    objects = draw.integers(0, before.vertices, triples)
    objects = np.where(objects >= before.resources, objects - before.resources + LITERAL_BASE, objects)
    rows = np.column_stack([draw.choice([20, 30], triples), subjects, objects, draw.integers(0, 2, triples)])
    rows = np.unique(rows, axis=0)
    columns = dict(zip(("label", "subject", "object", "ordinal"), rows.T, strict=True))

    def read(sizes: Sizes) -> EdgeTable:
        def ends(found: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
            literal = found["object"] >= LITERAL_BASE
            return found["subject"], np.where(
                literal, found["object"] - LITERAL_BASE + sizes.resources, found["object"]
            )

        return EdgeTable.read((20, 30), lambda _: columns, ends, sizes.vertices, np.int32)

    moved, expected = read(before).moved(before, now), read(now)
    assert triples < 400 or len(moved._offsets)
    for field in fields(EdgeTable):
        mine, theirs = (getattr(table, field.name) for table in (moved, expected))
        if field.name == "_offsets" and not (len(mine) and len(theirs)):
            continue  # whether vertices have entries depends on how many there are
        assert np.array_equal(mine, theirs) if theirs is not None else mine is None, field.name
        assert theirs is None or mine.dtype == theirs.dtype, field.name


@pytest.mark.parametrize("vertices", [12, 100_000])
@pytest.mark.parametrize("parallel", [False, True])
def test_edges_of_vertices(vertices: int, parallel: bool) -> None:
    """Whether or not each vertex has an entry: what starts at it, which edges triples are, and each of several."""
    draw = np.random.default_rng(vertices)
    rows = np.unique(draw.integers(0, (12, 12, 3 if parallel else 1), (200, 3)), axis=0)
    starts, ends, ordinals = rows.T
    columns = {"label": np.full(len(rows), 7), "subject": starts, "object": ends, "ordinal": ordinals}
    table = EdgeTable.read((7,), lambda _: columns, lambda _: (starts, ends), vertices, np.int32)
    assert bool(len(table._offsets)) is (vertices == 12)

    asked = draw.integers(0, 12, 50)
    first, count = table.starting_at(asked)
    triples, edges = spread(first, count, int(count.sum()))
    found = list(zip(asked[triples].tolist(), edges.tolist(), strict=True))
    assert found == [(int(v), int(edge)) for v in asked for edge in np.flatnonzero(starts == v)]

    pairs = np.repeat(draw.integers(0, 12, (2, 300), np.int32), 2, axis=1)
    first, count = table.find(np.full(600, 7), *pairs)
    for begin, number, start, end in zip(first, count, *pairs, strict=True):
        same = np.flatnonzero((starts == start) & (ends == end)).tolist()
        assert (list(range(begin, begin + number)) if begin >= 0 else []) == same


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("vertices", [12, 100_000])
@pytest.mark.parametrize("seed", range(4))
def test_other_edges_of_a_handful_of_triples(vertices: int, parallel: bool, seed: int) -> None:
    """Some that were there and some that were not, with no edges, one and several now: as all that there are now say."""
    draw = np.random.default_rng(seed)

    def rows_of(count: int) -> np.ndarray:
        return draw.integers(0, (2, 12, 12, 3 if parallel else 1), (count, 4))

    def read(rows: np.ndarray) -> EdgeTable:
        labels, starts, ends, ordinals = rows.T
        columns = {"label": 20 + 10 * labels, "subject": starts, "object": ends, "ordinal": ordinals}
        return EdgeTable.read((20, 30), lambda _: columns, lambda _: (starts, ends), vertices, np.int32)

    before = np.unique(rows_of(300 if seed else 0), axis=0)
    touched = np.unique(np.concatenate([before[::40, :3], rows_of(9)[:, :3]]), axis=0)
    some = [np.insert(touched[::2], 3, 0, axis=1), np.insert(touched[::3], 3, int(parallel), axis=1)]
    come = np.unique(np.concatenate(some), axis=0)
    others = before[~(before[:, None, :3] == touched).all(axis=2).any(axis=1)]
    expected = read(np.unique(np.concatenate([others, come]), axis=0))
    labels, starts, ends = touched.T.copy()
    kinds, *columns = draw.permutation(come).T
    edges = (20 + 10 * kinds, columns[0], columns[1], columns[2])
    asked = (20 + 10 * labels, starts.astype(np.int32), ends.astype(np.int32))
    found = read(before).with_edges_of(asked, edges, vertices)
    for field in fields(EdgeTable):
        mine, theirs = (getattr(each, field.name) for each in (found, expected))
        assert np.array_equal(mine, theirs) if theirs is not None else mine is None, field.name
        assert theirs is None or mine.dtype == theirs.dtype, field.name
