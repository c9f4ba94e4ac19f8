"""Tables of edges in which some triples have other edges are those that would be made of all edges."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeAlias

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphdb.storage.graph.edges import EdgeTable
from tests.fuzz import scaled

VERTICES = 4
LABELS = (3, 5, 8)
Edges: TypeAlias = dict[tuple[int, int, int], list[int]]
"""The ordinals of the edges of each triple (label, start, end)."""

ORDINALS = st.lists(st.sampled_from([0, 1, 2, 300]), unique=True, max_size=3).map(sorted)
TRIPLES = st.tuples(st.sampled_from(LABELS), st.integers(0, VERTICES - 1), st.integers(0, VERTICES - 1))
SIMPLE = st.sampled_from([[], [0]])


def table_of(labels: tuple[int, ...], edges: Edges) -> EdgeTable:
    """Make the table of some edges from its rows."""
    rows = sorted((*triple, ordinal) for triple, every in edges.items() for ordinal in every if triple[0] in labels)
    names = ("label", "subject", "object", "ordinal")
    columns = dict(zip(names, np.array(rows, np.int64).reshape(-1, 4).T, strict=True))
    return EdgeTable.read(
        labels, lambda _: columns, lambda found: (found["subject"], found["object"]), VERTICES, np.int32
    )


@settings(max_examples=scaled(40), deadline=None)
@given(st.data(), st.sampled_from([(3,), LABELS]), st.sampled_from([SIMPLE, ORDINALS]))
def test_edges_of_some_triples_take_the_place_of_others(
    data: st.DataObject, labels: tuple[int, ...], ordinals: st.SearchStrategy[list[int]]
) -> None:
    triples = TRIPLES.filter(lambda triple: triple[0] in labels)
    edges: Edges = data.draw(st.dictionaries(triples, ordinals))
    table = table_of(labels, edges)
    for _ in range(2):
        written: Edges = data.draw(st.dictionaries(triples, ordinals, min_size=1))
        edges = edges | written
        asked = np.array(data.draw(st.permutations([*written])), np.int64).T
        rows = [(*triple, ordinal) for triple, every in written.items() for ordinal in every]
        now = np.array(data.draw(st.permutations(rows)), np.int64).reshape(-1, 4).T
        table = table.with_edges_of(
            (asked[0], asked[1].astype(np.int32), asked[2].astype(np.int32)),
            (now[0], now[1].astype(np.int32), now[2].astype(np.int32), now[3]),
            VERTICES,
        )
        anew = table_of(labels, edges)
        for field in fields(EdgeTable):
            mine, other = getattr(table, field.name), getattr(anew, field.name)
            if field.name == "_offsets" and not (len(mine) and len(other)):
                continue  # whether vertices have entries depends on how many triples there were
            assert (mine is None) == (other is None), field.name
            assert mine is None or (mine.dtype == other.dtype and np.array_equal(mine, other)), field.name
