"""What MINE does: the numbers of a statement checked, its table made, and what EXPLAIN says of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from graphdb.common import arrow
from graphdb.common.arrow import strings
from graphdb.common.errors import ExecutionError, ParameterError
from graphdb.common.values.types import INTEGER, NODE, STRING, Column, list_of
from graphdb.grammar import syntax as ast
from graphdb.mining import cliques, frequent, motifs
from graphdb.mining.graph import MiningGraph
from graphdb.mining.limits import Limits
from graphdb.pattern.names import Names

Rows = tuple[tuple[Column, ...], arrow.Table]
Read = Callable[[ast.MineNumber, str, int, int | None], int]
"""Reads a number of a statement: (number, what it is, its least value, its greatest); raises where it is none."""

_LARGEST = 10**38


class Task(Protocol):
    """One kind of mining, with its numbers."""

    @property
    def directed(self) -> bool:
        """Whether the direction of edges matters."""

    def explain(self, graph: MiningGraph, limits: Limits) -> list[str]:
        """How and where it is done, and the memory that it needs."""

    def run(self, graph: MiningGraph, names: Names, limits: Limits) -> Rows:
        """Do it: the table, in the engine's own terms, and its columns."""


def task_of(statement: ast.Mine, read: Read) -> Task:
    """Return what a statement asks for.

    Raises
    ------
    ParameterError
        A number is out of range.
    """
    match statement.task:
        case ast.MineCliques(least, most, maximal):
            greatest = cliques.MOST_MAXIMAL if maximal else cliques.MOST
            low = read(least, "cliques have a size", cliques.LEAST, greatest)
            return CliquesTask(low, read(most, "cliques have a size", low, greatest), maximal)
        case ast.MineMotifs(size, directed):
            return MotifsTask(read(size, "motifs have a size", motifs.LEAST, motifs.MOST), directed)
        case ast.MineFrequent(threshold, edges, directed, matches):
            support = read(threshold, "support is a number", 1, None)
            largest = read(edges, "frequent patterns have a number of edges", 1, frequent.MOST)
            return FrequentTask(support, largest, directed, matches)


def reader(text: str, arguments: Mapping[str, object]) -> Read:
    """Return what reads the numbers of a statement: as written, or by their parameters."""

    def read(number: ast.MineNumber, what: str, least: int, most: int | None) -> int:
        value = number.value
        if isinstance(value, ast.Parameter):
            value = arguments[value.name]  # type: ignore[assignment]
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):  # type: ignore[operator]
            bounds = f"of {least:,} or more" if most is None else f"from {least:,} to {most:,}"
            raise ParameterError(f"{what} {bounds}, found {value!r}", text=text, position=number.span.start)
        return value  # type: ignore[return-value]

    return read


@dataclass(frozen=True, slots=True)
class CliquesTask:
    """``CLIQUES OF SIZE least..most [MAXIMAL]``."""

    least: int
    most: int
    maximal: bool

    directed = False

    def explain(self, graph: MiningGraph, limits: Limits) -> list[str]:
        """Over the oriented graph, counted or enumerated."""
        threads = limits.threads
        how = (
            "maximal cliques enumerated with pivots, from each vertex among its higher neighbours as rows of bits"
            if self.maximal
            else "counted size by size: rows of bits of higher neighbours intersected, the last choice a count of bits"
        )
        where = "cpu" if self.maximal else limits.counts.describe(cliques.clique_plan(graph, self.most))
        need = cliques.memory(graph, threads, self.maximal)
        return [
            "cliques over the graph oriented by degree",
            f"  {how}",
            f"  on {where}",
            f"  {need:,} bytes for {threads} threads",
        ]

    def run(self, graph: MiningGraph, names: Names, limits: Limits) -> Rows:
        """One row for each size."""
        found = cliques.cliques(graph, self.least, self.most, maximal=self.maximal, limits=limits)
        return _rows(
            ("size", [each.size for each in found]),
            ("cliques", [each.count for each in found]),
            ("example", [each.example for each in found]),
        )


@dataclass(frozen=True, slots=True)
class MotifsTask:
    """``MOTIFS OF SIZE size [DIRECTED]``."""

    size: int
    directed: bool

    def explain(self, graph: MiningGraph, limits: Limits) -> list[str]:
        """By linear relations, or by enumeration."""
        threads = limits.threads
        if motifs.is_enumerated(self.size, self.directed):
            need = motifs.memory(graph, self.size, threads)
            return [
                f"directed motifs of {self.size} vertices",
                "  every connected set of vertices visited once, by vertex extension, and counted by its edges",
                f"  {need:,} bytes for {threads} threads, and tables of sets of {self.size - 1} vertices",
            ]
        known = motifs.known_motifs(self.size, self.directed)
        kind = "directed motifs" if self.directed else "motifs"
        joint = motifs.joint_count(graph, known.patterns)
        where = motifs.counter(self.size, self.directed, limits).describe_jointly(joint)
        need = motifs.derived_memory(graph) + joint.counting.shared_bytes + threads * joint.counting.worker_bytes
        return [
            f"{kind} of {self.size} vertices: {len(known.patterns)} patterns",
            f"  copies of all counted as {len(joint.parts)} sums of products, induced ones by linear relations",
            f"  on {where}",
            f"  {need:,} bytes for {threads} threads",
        ]

    def run(self, graph: MiningGraph, names: Names, limits: Limits) -> Rows:
        """One row for each pattern."""
        found = motifs.motifs(graph, self.size, limits)
        return _rows(
            ("motif", [each.pattern.text() for each in found]),
            ("count", [each.count for each in found]),
            ("example", [each.example or None for each in found]),
            ("drawing", [each.pattern.drawing() for each in found]),
        )


@dataclass(frozen=True, slots=True)
class FrequentTask:
    """``FREQUENT PATTERNS [UNDIRECTED] WITH SUPPORT >= support UP TO edges EDGES [COUNTING MATCHES]``."""

    support: int
    edges: int
    directed: bool
    matches: bool

    def explain(self, graph: MiningGraph, limits: Limits) -> list[str]:
        """Level by level."""
        threads = limits.threads
        several = "1 edge" if self.edges == 1 else f"1 to {self.edges} edges, one more at each level"
        lines = [
            f"frequent patterns of {several}",
            f"  domains as bits: joined along the edges, verified by search; given up below {self.support:,} vertices",
            f"  on {frequent.where(graph, self.edges, limits)}",
            f"  {frequent.memory(graph, threads):,} bytes for {threads} threads, and the domains of a level",
        ]
        if self.matches:
            lines.append("  matches counted by the matcher, pattern by pattern")
        return lines

    def run(self, graph: MiningGraph, names: Names, limits: Limits) -> Rows:
        """One row for each pattern."""
        found = frequent.frequent_patterns(graph, self.support, self.edges, matches=self.matches, limits=limits)
        vertices, edges = graph.vertex_labels.tolist(), graph.edge_labels.tolist()

        @cache
        def vertex(label: int) -> str:
            id = vertices[label]
            return ":!%" if id < 0 else f":{names.vertex_in_pattern(id)}"

        @cache
        def edge(label: int) -> str:
            id = edges[label]
            return "" if id < 0 else f":{names.edge_in_pattern(id)}"

        counts = [("matches", [each.matches for each in found])] if self.matches else []
        return _rows(
            ("pattern", [each.pattern.text(vertex, edge) for each in found]),
            ("edges", [len(each.pattern.edges) for each in found]),
            ("support", [each.support for each in found]),
            *counts,
            ("example", [each.example for each in found]),
        )


def _rows(*columns: tuple[str, Sequence[object]]) -> Rows:
    """A table of columns: of numbers, of texts, and of lists of vertices (``example``)."""
    shape, arrays = [], {}
    for i, (name, values) in enumerate(columns):
        if name == "example":
            type, array = list_of(NODE), arrow.array(values, arrow.list_of(arrow.INT64))
        elif name in ("motif", "drawing", "pattern"):
            type, array = STRING, strings(values)  # type: ignore[arg-type]
        else:
            largest = max(values, default=0)  # type: ignore[type-var]
            if largest >= _LARGEST:  # type: ignore[operator]
                raise ExecutionError("a count has more digits than a table holds")
            type, array = INTEGER, arrow.array(values, arrow.INT64 if largest < 1 << 63 else arrow.HUGE)  # type: ignore[operator]
        shape.append(Column(name, name, type))
        arrays[f"c{i}"] = array
    return tuple(shape), arrow.table(arrays)
