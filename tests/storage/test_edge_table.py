"""A table of edges that is moved among more vertices is what would be read of them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.storage.graph.changes import Sizes
from graphdb.storage.graph.edges import EdgeTable


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
