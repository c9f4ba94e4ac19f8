"""EXPLAIN and PROFILE: what a query would do, and what it did."""

from __future__ import annotations

import time
from collections.abc import Mapping

from graphdb.dispatch.mining import Mining
from graphdb.dispatch.queries import Queries
from graphdb.grammar import syntax as ast
from graphdb.relational.explain import Explanation, Summary
from graphdb.relational.profile import Profile
from graphdb.relational.session.state import State
from graphdb.sql.udf import running


class Explainer:
    """Explains queries, and statements that mine."""

    def __init__(self, state: State, queries: Queries, mining: Mining) -> None:
        self._state = state
        self._queries = queries
        self._mining = mining

    def explain(
        self,
        query: ast.Query | ast.Composite | ast.Mine,
        profile: bool,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
    ) -> Explanation:
        """Explain a query, or with ``profile`` run it and tell what happened."""
        if isinstance(query, ast.Mine):
            return self._mining.explain(query, profile, text, arguments)
        with self._queries.calling(query, text, arguments) as called:
            return self._explain(called, profile, text, arguments, timeout)

    def _explain(
        self,
        query: ast.Query | ast.Composite,
        profile: bool,
        text: str,
        arguments: Mapping[str, object],
        timeout: float | None,
    ) -> Explanation:
        if isinstance(query, ast.Composite) and query.writes:
            self._queries.check(query, text)
            return Explanation(tuple(self._queries.writing(query, text, arguments, timeout).explain(profile)))

        def explained(careful: bool) -> Explanation:
            with self._queries.new_run(text, arguments, timeout, careful=careful) as run:
                started = time.perf_counter()
                prepared = self._queries.prepare(run, query, text, arguments)
                planned = time.perf_counter() - started
                names = self._state.snapshot().names
                if not profile:
                    return Explanation.of_reading(prepared, names, run.executor.describe)
                run.profile, before = Profile(run.connection), run.executor.traffic()
                with run.profile.asking_duckdb(), running(prepared.computing):
                    started = time.perf_counter()
                    table = run.run(prepared)
                    total = planned + time.perf_counter() - started - run.profile.asking
                moved = run.executor.traffic().since(before)
            summary = Summary(prepared, run, planned, total, table.num_rows, moved)
            return Explanation.of_run(prepared, names, run).followed_by(summary)

        return self._queries.ventured(text, explained)
