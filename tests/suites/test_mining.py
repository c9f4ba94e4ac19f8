"""Cliques, motifs and frequent patterns of real graphs: every number is what at least two other programs say."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import graphdb
from graphdb.mining.cliques import cliques
from graphdb.mining.frequent import frequent_patterns
from graphdb.mining.motifs import Motif, motifs
from graphdb.mining.primitives.canonical import canonical
from tests import mining_sets
from tests.fuzz import FUZZ

Shared = Callable[[str], Path]
GRAPHS = ("wiki-Vote", "email-Enron", "ca-AstroPh-cc1", "cit-HepTh")


@pytest.fixture(scope="module")
def known(shared: Shared) -> dict[str, dict[str, dict[str, int]]]:
    shared("suites/mining")
    return mining_sets.counts()["graphs"]


def code(edges: object, size: int) -> bytes:
    """The canonical label of a plain pattern."""
    cells = np.zeros((1, size, size), np.int64)
    for a, b, *_ in edges:  # type: ignore[attr-defined]
        cells[0, a, b] = cells[0, b, a] = 1
    return canonical(np.zeros((1, size), np.int64), cells).codes.tobytes()


def by_code(found: list[Motif], size: int) -> dict[bytes, int]:
    return {code(motif.pattern.edges, size): motif.count for motif in found}


@pytest.mark.parametrize("name", GRAPHS)
def test_cliques(name: str, known: dict[str, dict[str, dict[str, int]]]) -> None:
    most = 8 if FUZZ >= 1 else 5 if name == "ca-AstroPh-cc1" else 6
    wanted = {int(size): count for size, count in known[name]["cliques"].items() if int(size) <= most}
    graph = mining_sets.snap(name)
    assert graph.edges == known[name]["edges"]
    found = cliques(graph, 3, most)
    assert {each.size: each.count for each in found} == wanted
    for each in found:
        vertices = np.searchsorted(graph.ids, each.example)
        inside = np.isin(graph.source, vertices) & np.isin(graph.target, vertices)
        assert inside.sum() == each.size * (each.size - 1) // 2


@pytest.mark.parametrize("name", GRAPHS if FUZZ >= 1 else GRAPHS[::3])
def test_motifs(name: str, known: dict[str, dict[str, dict[str, int]]]) -> None:
    for size, kind in ((3, "3-motifs"), (4, "4-motifs")):
        wanted = {code(mining_sets.MOTIFS[motif], size): count for motif, count in known[name][kind].items()}
        assert by_code(motifs(mining_sets.snap(name), size), size) == wanted


def test_motifs_of_five_vertices(shared: Shared) -> None:
    shared("suites/mining")
    wanted = mining_sets.counts()["5-motifs"]["hprd (labels ignored)"]
    assert len(wanted) == 21
    found = motifs(mining_sets.labelled("hprd"), 5)
    assert by_code(found, 5) == {code(motif["edges"], 5): motif["induced"] for motif in wanted}


def test_by_statement(shared: Shared, tmp_path: Path, known: dict[str, dict[str, dict[str, int]]]) -> None:
    """A graph loaded as RDF, with its edges in one direction, mined by text."""
    edges = mining_sets.edges_of("wiki-Vote")
    (tmp_path / "wiki.nt").write_text("".join(f"<v:{a}> <e:e> <v:{b}> .\n" for a, b in edges.tolist()))
    with graphdb.connect() as db:
        db.load(tmp_path / "wiki.nt")
        sizes = known["wiki-Vote"]["cliques"]
        assert [row[:2] for row in db.query("MINE CLIQUES OF SIZE 3..5")] == [(k, sizes[str(k)]) for k in (3, 4, 5)]
        counts = [count for _, count, _, _ in db.query("MINE MOTIFS OF SIZE 4")]
        assert sorted(counts) == sorted(known["wiki-Vote"]["4-motifs"].values())
        assert all(a <= b for a, b in pairwise(len(m.split(", ")) for m, *_ in db.query("MINE MOTIFS OF SIZE 4")))


@pytest.mark.parametrize("name", mining_sets.FREQUENT)
def test_frequent_patterns(name: str, shared: Shared) -> None:
    shared("suites/mining")
    known = mining_sets.frequent(name)
    graph = mining_sets.labelled(known["graph"])
    labels = graph.vertex_labels.tolist()
    wanted = {labelled_code(own, edges): support for own, edges, support in known["patterns: labels, edges, support"]}
    found = frequent_patterns(graph, known["minsup"], known["max_edges"])
    by_edges = np.bincount([len(each.pattern.edges) for each in found])[1:]
    assert by_edges.tolist() == known["frequent by edges"]
    codes = [labelled_code([labels[label] for label in each.pattern.labels], each.pattern.edges) for each in found]
    assert dict(zip(codes, (each.support for each in found), strict=True)) == wanted


def labelled_code(labels: list[int], edges: object) -> bytes:
    """The canonical label of a pattern with labels of vertices."""
    cells = np.zeros((1, len(labels), len(labels)), np.int64)
    for a, b, *_ in edges:  # type: ignore[attr-defined]
        cells[0, a, b] = cells[0, b, a] = 1
    return canonical(np.array([labels]), cells).codes.tobytes()
