"""``MINE …``: cliques, motifs and frequent patterns, as tables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphdb.common.errors import NotSupportedError
from graphdb.common.stopping import time_left
from graphdb.dispatch.queries import Queries
from graphdb.grammar import syntax as ast
from graphdb.plan.executor import Control
from graphdb.relational.explain import Explanation
from graphdb.relational.session.state import State
from graphdb.results.result import Result

if TYPE_CHECKING:
    from graphdb.mining.graph import MiningGraph
    from graphdb.mining.limits import Limits
    from graphdb.mining.tasks import Task


class Mining:
    """Runs statements that mine, and explains them."""

    def __init__(self, state: State, queries: Queries, threads: int) -> None:
        self._state, self._queries, self._threads = state, queries, threads

    def run(self, statement: ast.Mine, text: str, arguments: Mapping[str, object]) -> Result:
        """Mine; the result's columns are those of the task.

        Raises
        ------
        GraphDBError
            Something is wrong with it, or a limit is in its way.
        """
        started = time.perf_counter()
        task = self._task(statement, text, arguments)
        limits = self.limits()
        graph = self._graph(statement, task, text, arguments, limits)
        columns, table = task.run(graph, self._state.snapshot().names, limits)
        return Result(self._state.version(), table, columns, elapsed=time.perf_counter() - started)

    def graph(self, statement: ast.Mine, text: str, arguments: Mapping[str, object], directed: bool) -> MiningGraph:
        """Return the graph that a statement would mine."""
        return self._read(statement.scope, directed, text, arguments, self.limits())

    def explain(self, statement: ast.Mine, profile: bool, text: str, arguments: Mapping[str, object]) -> Explanation:
        """Say how it is done and what it needs; with ``profile`` do it, and say how long that took."""
        task, limits, started = self._task(statement, text, arguments), self.limits(), time.perf_counter()
        graph = self._graph(statement, task, text, arguments, limits)
        made = time.perf_counter() - started
        kind = "edges" if task.directed else "edges, whatever their direction"
        lines = [
            *task.explain(graph, limits),
            f"over {len(graph):,} vertices and {graph.edges:,} {kind}: {graph.pairs:,} adjacent pairs, "
            f"{graph.nbytes:,} bytes",
        ]
        if profile:
            before = limits.counts.traffic()
            _, table = task.run(graph, self._state.snapshot().names, limits)
            total = time.perf_counter() - started
            workers = max(limits.control.threads, 1)
            lines += [
                "",
                f"{total * 1000:,.1f} ms in all: {made * 1000:,.1f} graph, {(total - made) * 1000:,.1f} mining "
                f"on {workers} thread{'s' if workers > 1 else ''}; {table.num_rows:,} rows",
                *limits.notes,
                *filter(None, [limits.counts.traffic().since(before)]),
            ]
        return Explanation(tuple(lines))

    def _task(self, statement: ast.Mine, text: str, arguments: Mapping[str, object]) -> Task:
        from graphdb.mining.tasks import reader, task_of

        query = statement.scope.query
        if isinstance(query, ast.Composite) and query.writes:
            raise NotSupportedError("MINE takes rows of a query that only reads", text=text, position=query.span.start)
        return task_of(statement, reader(text, arguments))

    def limits(self) -> Limits:
        """Return the threads, memory, deadline and executor that mining may take."""
        from graphdb.mining.limits import Limits

        report = self._queries.progress
        control = Control(
            timeout=time_left(),
            cancelled=self._state.cancelled,
            progress=None if report is None else lambda share: report(share, 1.0, 0, "mining"),
        )
        budget, cached = self._state.budget, self._state.snapshot().graph.cached_bytes
        memory = budget.bindings + max(budget.graph - cached, 0)
        return Limits(self._threads, memory, control, self._queries.executor)

    def _graph(
        self, statement: ast.Mine, task: Task, text: str, arguments: Mapping[str, object], limits: Limits
    ) -> MiningGraph:
        return self._read(statement.scope, task.directed, text, arguments, limits)

    def _read(
        self, scope: ast.MineScope, directed: bool, text: str, arguments: Mapping[str, object], limits: Limits
    ) -> MiningGraph:
        from graphdb.mining.scope import graph_of, graph_of_rows

        snapshot = self._state.snapshot()
        if scope.query is None:
            return graph_of(snapshot, scope.edges, scope.vertices, directed, text, limits)
        with self._queries.calling(scope.query, text, arguments) as query:
            table, columns = self._queries.read(query, text, arguments, time_left()).internal
        return graph_of_rows(snapshot, table, columns, directed, text, scope.query.span.start, limits)
