"""The sets of continuous subgraph matching with known answers (suites/csm), as our data graphs, patterns and updates."""

from __future__ import annotations

import json
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar.syntax import MatchMode
from graphdb.incremental.changes import Updates
from graphdb.pattern.graph import Clause, PatternEdge, PatternGraph, PatternVertex
from graphdb.storage.graph.array_source import ArraySource
from tests.datasets import SHARED

Ints = NDArray[np.int64]
FOLDER = SHARED / "suites" / "csm"
SETS = ("tiny", "deezer", "github")
STREAMS = ("insert", "mixed")
EDGE_LABEL = 0


@dataclass(frozen=True)
class Stream:
    """Updates in order."""

    edges: Ints
    """[updates, 2]: the lower vertex first."""
    inserted: NDArray[np.bool_]

    @property
    def updates(self) -> Updates:
        """As a matcher takes them."""
        return Updates(np.full(len(self.edges), EDGE_LABEL), self.edges[:, 0], self.edges[:, 1], self.inserted)

    @property
    def undone(self) -> Updates:
        """What takes the graph back to where it was."""
        return Updates(*(np.asarray(column)[::-1] for column in self.updates[:3]), ~self.inserted[::-1])

    def ends(self, size: str) -> Ints:
        """Where batches end that have ``size`` updates, or all."""
        each = len(self.edges) if size == "all" else int(size)
        return np.minimum(np.arange(each, len(self.edges) + each, each), len(self.edges))


@dataclass(frozen=True)
class Set:
    """A data graph with its streams, queries and expected counts."""

    labels: Ints
    """By vertex."""
    initial: Stream
    streams: dict[str, Stream]
    queries: dict[str, PatternGraph]
    expected: dict[str, Any]

    @property
    def source(self) -> ArraySource:
        """The initial graph."""
        edges = self.initial.edges
        return ArraySource(edges[:, 0], np.full(len(edges), EDGE_LABEL), edges[:, 1], len(self.labels))


def load(name: str, folder: Path = FOLDER) -> Set:
    """Read a set from its archive."""
    texts = _texts(name, folder)
    labels, initial = _graph(texts["initial.graph"])
    streams = {stream: _graph(texts[f"{stream}.graph"])[1] for stream in STREAMS}
    return Set(labels, initial, streams, _queries(texts, labels), json.loads(texts["expected.json"]))


def labelled(edges: Ints, queries: str, folder: Path = FOLDER, seed: int = 0) -> Set:
    """Return another graph with random labels, and the queries of a set; nothing is expected of them."""
    texts = _texts(queries, folder)
    number = 1 + int(_graph(texts["initial.graph"])[0].max())
    labels = np.random.default_rng(seed).integers(0, number, 1 + int(edges.max()))
    none = Stream(np.empty((0, 2), np.int64), np.empty(0, bool))
    initial = Stream(edges, np.ones(len(edges), bool))
    return Set(labels, initial, dict.fromkeys(STREAMS, none), _queries(texts, labels), {})


def _texts(name: str, folder: Path) -> dict[str, str]:
    with tarfile.open(folder / f"{name}.tar.xz") as archive:
        return {member.name.removeprefix(f"{name}/"): _text(archive, member) for member in archive if member.isfile()}


def _queries(texts: dict[str, str], labels: Ints) -> dict[str, PatternGraph]:
    """The queries of a set, over vertices of some labels."""
    paths = sorted(path for path in texts if path.startswith("query/"))
    return {Path(path).stem: _pattern(texts[path], labels) for path in paths}


def peers(folder: Path = FOLDER) -> dict[str, Any]:
    """Seconds of other systems, by set and stream."""
    return dict(json.loads((folder / "peers.json").read_text())["sets"])


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    file = archive.extractfile(member)
    assert file is not None
    return file.read().decode()


def _graph(text: str) -> tuple[Ints, Stream]:
    rows = [line.split() for line in text.splitlines()]
    labels = np.array([int(row[2]) for row in rows if row[0] == "v"], np.int64)
    changes = [row for row in rows if row[0] != "v"]
    edges = np.sort(np.array([(int(row[1]), int(row[2])) for row in changes], np.int64).reshape(-1, 2))
    return labels, Stream(edges, np.array([row[0] == "e" for row in changes], bool))


def _pattern(text: str, labels: Ints) -> PatternGraph:
    """A query: isomorphic matches, edges without direction."""
    own, stream = _graph(text)
    vertices = tuple(PatternVertex(f"v{i}", np.flatnonzero(labels == label)) for i, label in enumerate(own))
    edges = tuple(PatternEdge(f"e{i}", a, b, (EDGE_LABEL,), False, 0) for i, (a, b) in enumerate(stream.edges.tolist()))
    clause = Clause(MatchMode.DIFFERENT_NODES, tuple(range(len(vertices))))
    return PatternGraph(vertices, edges, (clause,), outputs=tuple(vertex.name for vertex in vertices))
