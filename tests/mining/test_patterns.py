"""Patterns in text."""

from __future__ import annotations

import pytest

from graphdb.mining import Pattern


def test_text() -> None:
    pattern = Pattern((1, 2, 1), ((0, 1, 0), (2, 1, 1)), directed=True)
    assert pattern.text(lambda label: f":V{label}", lambda label: f":e{label}") == (
        "(a:V1)-[:e0]->(b:V2), (c:V1)-[:e1]->(b)"
    )
    assert Pattern((0, 0), ((0, 1, 0),)).text() == "(a)--(b)"
    assert Pattern((3,), ()).text(lambda label: f":V{label}") == "(a:V3)"


@pytest.mark.parametrize(
    ("edges", "directed", "drawing"),
    [
        (((0, 1, 0),), False, "a-b"),
        (((0, 1, 0), (1, 0, 0)), True, "a<->b"),
        (((0, 1, 0), (0, 2, 0), (0, 3, 0)), False, "a-b\n -c\n -d"),
        (((0, 1, 0), (1, 2, 0), (2, 3, 0), (0, 3, 0)), False, "a-b-c-d-(a)"),
        (((0, 1, 0), (2, 1, 0), (2, 3, 0)), True, "a->b<-c->d"),
        (((0, 1, 0), (0, 2, 0), (1, 2, 0), (1, 3, 0), (2, 3, 0)), False, "a-b-c-(a)\n     -d-(b)"),
    ],
)
def test_drawing(edges: tuple[tuple[int, int, int], ...], directed: bool, drawing: str) -> None:
    size = 1 + max(max(a, b) for a, b, _ in edges)
    assert Pattern((0,) * size, edges, directed).drawing() == drawing
