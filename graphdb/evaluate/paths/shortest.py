"""Shortest paths along one repeated edge without conditions, by the same searches as a step of a plan."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from graphdb.evaluate.paths.automaton import Automaton, Step
from graphdb.evaluate.values import Path, Vertex
from graphdb.execute.paths.path_rows import PathRows
from graphdb.execute.paths.steps import Paths
from graphdb.grammar import syntax as ast
from graphdb.plan.executor import Control
from graphdb.plan.paths import PathStep

if TYPE_CHECKING:
    from graphdb.evaluate.context import Context


class Shortest:
    """Reads the shortest paths of a search whose pattern is one repeated edge."""

    def __init__(
        self,
        context: Context,
        mode: ast.PathMode,
        automaton: Automaton,
        edges: Sequence[ast.EdgePattern | ast.Subpath],
    ) -> None:
        self._context, self._mode, self._automaton = context, mode, automaton
        (self._edge,) = edges

    def paths(self, start: int, end: int | None, every: bool, control: Control) -> Iterator[tuple[int, Path]]:
        """Yield one shortest path or ``every`` one, and where they end: at one vertex, or at all that are reached."""
        assert self._edge.repeat is not None
        low, high = self._edge.repeat.low, self._edge.repeat.high
        if high == 0:  # no edge is ever followed
            if end is None or end == start:
                yield start, Path((Vertex(start),), ())
            return
        step = next(step for state in self._automaton.states for step, _ in state.steps)
        graph = self._context.snapshot.graph
        wanted = PathStep("", "", step.labels, step.direction, low, high, self._mode.value, groups=every)
        wanted = replace(wanted, materialized=True)
        found = Paths(graph, wanted, control)
        around = []
        if low == 1 and (high is None or high > 1) and end in (None, start):
            around = [(start, path) for path in self._there_and_back(step, start)]
            yield from around
        source, *ends = self._context.vertices([start] if end is None else [start, end])
        if end is None:
            others = np.delete(np.arange(graph.vertices), source) if around else None
            blocks = found.across(np.array([source]), others)
        elif around:
            return
        else:
            blocks = found.between(np.array([source]), np.array(ends))
        for block in blocks:
            yield from self._read(block, every)

    def _there_and_back(self, step: Step, start: int) -> Iterator[Path]:
        """Yield the ways round over two parallel edges, which a partition has as one, where no loop is shorter."""
        if step.direction != "both" or self._mode in (ast.PathMode.WALK, ast.PathMode.ACYCLIC):
            return
        near = self._automaton.neighbours(step, start)
        if any(vertex == start for _, vertex in near):
            return
        for (edge, vertex), (other, same) in itertools.permutations(near, 2):
            if vertex == same:
                yield Path((Vertex(start), Vertex(vertex), Vertex(start)), (edge, other))

    def _read(self, block: PathRows, every: bool) -> Iterator[tuple[int, Path]]:
        ends = self._context.snapshot.store.to_terms(block.targets).tolist()
        if every:
            yield from ((end, path) for row, end in enumerate(ends) for path in self._paths_of(block, row))
            return

        def make(row: int) -> Path:
            return next(self._paths_of(block, row))

        for row, (end, length) in enumerate(zip(ends, block.lengths.tolist(), strict=True)):
            yield end, Path.later(length, make, row)

    def _paths_of(self, block: PathRows, row: int) -> Iterator[Path]:
        """Yield the paths of a row, one for each choice among parallel edges."""
        begin, end = block.starts[row : row + 2].tolist()
        ids = self._context.snapshot.store.to_terms(block.walks[begin:end]).tolist()
        codes = block.codes[begin - row : end - row - 1].tolist()
        choices = [
            self._context.view.parallel(code >> 1, *((after, before) if code & 1 else (before, after)))
            for code, before, after in zip(codes, ids, ids[1:], strict=False)
        ]
        vertices = tuple(map(Vertex, ids))
        for edges in itertools.product(*choices):
            yield Path(vertices[::-1], edges[::-1]) if self._automaton.backwards else Path(vertices, edges)
