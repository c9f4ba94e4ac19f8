"""Published counts of subgraphs: the patterns of SNAP graphs under DIFFERENT NODES, counted without enumerating."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graphdb.execute.host import HostExecutor
from graphdb.grammar.syntax import MatchMode
from graphdb.plan.explain import explain_text
from graphdb.plan.passes.pipeline import make_plan
from tests.benchmarks.counting import pattern, snap

Shared = Callable[[str], Path]


@pytest.mark.parametrize("name", ["wiki-Vote", "email-Enron"])
def test_patterns_of_a_graph(name: str, shared: Shared) -> None:
    """A subgraph is found once for each of the pattern's automorphisms."""
    known = json.loads(shared("data/snap/matchers-h200.json").read_text())
    counts = json.loads(shared("data/snap/counts.json").read_text())["graphs"][name]
    graph, label = snap(name)
    for title, found in known["patterns"].items():
        edges = [(a, b) for a, b in found["edges"]]
        plan = make_plan(pattern(edges, label, MatchMode.DIFFERENT_NODES), graph)
        want = known["graphs"][name][title]["count"] * found["automorphisms"]
        assert (title, HostExecutor().count(plan)) == (title, want)
        assert any(way in explain_text(plan) for way in ("conditioned on", "oriented"))
    for title, leaves, automorphisms in [("wedges", 2, 2), ("3-stars", 3, 6)]:
        star = pattern([(0, leaf) for leaf in range(1, leaves + 1)], label, MatchMode.DIFFERENT_NODES)
        plan = make_plan(star, graph)
        assert HostExecutor().count(plan) == counts[title] * automorphisms
        assert "counted along edges" in explain_text(plan)
        terms = [line for line in explain_text(plan).splitlines() if line.startswith(("+", "-", "−"))]
        assert len(terms) == 1  # leaves that are alike are one term, n (n - 1) … ways, whatever their number
