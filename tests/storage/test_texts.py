"""Texts by how they begin, and the names of blank nodes in batches that are applied."""

from __future__ import annotations

import random

import numpy as np
import pytest

from graphdb.common import arrow
from graphdb.storage.arrays.texts import beginning_with
from graphdb.storage.loaders.patch import operations


@pytest.mark.parametrize("seed", range(20))
def test_texts_by_how_they_begin(seed: int) -> None:
    draw = random.Random(seed)
    texts = [draw.choice([None, "".join(draw.choices("_:é", k=draw.randrange(5)))]) for _ in range(draw.randrange(60))]
    for prefix in ("_", "_:", "_:é", ":_:_:"):
        expected = [place for place, text in enumerate(texts) if text is not None and text.startswith(prefix)]
        plain = arrow.array(texts, arrow.STRING)
        numbers = np.array([place if text is not None else 0 for place, text in enumerate(texts)], np.int32)
        there = np.array([text is not None for text in texts], bool)
        for array in (
            plain,
            plain.cast(arrow.LARGE_STRING),
            arrow.dictionary_array(arrow.numbers(numbers, there), plain),
        ):
            assert beginning_with(prefix.encode(), array).tolist() == expected
            begin = draw.randrange(3)
            part = [place - begin for place in expected if begin <= place]
            assert beginning_with(prefix.encode(), array.slice(begin)).tolist() == part


def test_blank_nodes_are_named_as_the_text_names_them() -> None:
    lines = '_:a <x:f0_> _:f0_ .\n<x:_:f0_b> <x:p> _:é .\n_:a <x:p> "_:f0_"@de .\n<x:p> <x:p> "1"^^<x:t> .\n'
    found = operations(lines.encode(), np.ones(4, bool), "batch")
    assert sorted(arrow.pylist(found.resources)) == sorted(["_:a", "x:f0_", "_:f0_", "x:_:f0_b", "x:p", "_:é"])
    assert sorted(zip(*map(arrow.pylist, found.literals), strict=True)) == [("1", "x:t", None), ("_:f0_", None, "de")]
    nothing = operations(b"\n", np.empty(0, bool), "batch")
    assert (len(nothing.resources), [len(column) for column in nothing.literals]) == (0, [0, 0, 0])
