"""The graphs of suites/mining and what is known of them."""

from __future__ import annotations

import json
import tarfile
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.mining.graph import MiningGraph
from tests.datasets import SHARED

FOLDER = SHARED / "suites" / "mining"
FREQUENT = ("hprd-60", "hprd-30", "github-1000")

MOTIFS = {
    "wedge": ((0, 1), (0, 2)),
    "triangle": ((0, 1), (0, 2), (1, 2)),
    "4-path": ((0, 1), (1, 2), (2, 3)),
    "3-star": ((0, 1), (0, 2), (0, 3)),
    "4-cycle": ((0, 1), (1, 2), (2, 3), (0, 3)),
    "tailed-triangle": ((0, 1), (0, 2), (1, 2), (2, 3)),
    "diamond": ((0, 1), (0, 2), (1, 2), (1, 3), (2, 3)),
    "4-clique": ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)),
}
"""The suite's names of patterns."""


def counts() -> dict[str, Any]:
    """Clique and motif counts, by graph."""
    return dict(json.loads((FOLDER / "cliques-motifs.json").read_text()))


def frequent(name: str) -> dict[str, Any]:
    """The frequent patterns of a graph at a support."""
    return dict(json.loads((FOLDER / "fsm" / f"{name}.json").read_text()))


def edges_of(name: str) -> NDArray[np.int64]:
    """The edges of a SNAP graph: int64 [edges, 2]."""
    return np.loadtxt(SHARED / "data" / "snap" / f"{name}.txt.gz", dtype=np.int64, comments="#")


@cache
def snap(name: str) -> MiningGraph:
    """A SNAP graph, without directions and labels."""
    return MiningGraph.of(*edges_of(name).T)


@cache
def labelled(name: str) -> MiningGraph:
    """A graph with a label at each vertex, without directions."""
    with tarfile.open(SHARED / "data" / "labelled" / f"{name}.tar.gz") as archive:
        file = next(archive.extractfile(member) for member in archive if member.name.endswith("data.graph"))
        assert file is not None
        rows = [line.split() for line in file.read().decode().splitlines()]
    labels = np.array([row[1:3] for row in rows if row[0] == "v"], np.int64)
    ends = np.array([row[1:3] for row in rows if row[0] == "e"], np.int64)
    return MiningGraph.of(*ends.T, vertex_labels=(labels[:, 0], labels[:, 1]))
