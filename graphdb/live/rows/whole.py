"""Whole answers of continuous queries, and what is asked for anew to follow them: groups, and first rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from graphdb.live import definitions
from graphdb.live.aggregates.grouping import Accumulators
from graphdb.live.aggregates.groups import AGAIN, Groups
from graphdb.live.answers import FORMER, FRESH, Answer
from graphdb.live.engine import Engine
from graphdb.live.former import Former
from graphdb.live.rows.first_rows import FirstRows
from graphdb.live.standing import Standing
from graphdb.relational.query import Prepared

if TYPE_CHECKING:
    import duckdb

    from graphdb.relational.session.state import State

_NARROWED = 1000
"""Values of a key that groups which are aggregated anew are found by."""


class WholeAnswers:
    """Asks continuous queries as a whole, over the state of one connection and the one before a batch."""

    def __init__(self, state: State, engine: Engine, former: Former) -> None:
        self._state, self._engine, self._former = state, engine, former

    def make(self, raw: duckdb.DuckDBPyConnection, each: Standing) -> None:
        """Make a table of the answer, :data:`FRESH`, and store the groups or first rows that delta plans follow."""
        if each.followed and each.window is not None:
            self.first(raw, each, store=True)
            FirstRows(raw, Answer(raw, each.definition), each).fill()
            return
        if each.followed and each.accumulators is not None:
            self._group(raw, each, each.accumulators)
            return
        if each.grouping is not None:
            definitions.drop_groups(raw, each.definition)
        if each.window is not None:
            raw.execute(f"DROP TABLE IF EXISTS {each.definition.first}")
            each.kept = None
        with self._engine.prepared(each.query, each.definition.text) as (run, prepared):
            self._engine.into(FRESH[5:], run, prepared)

    def first(self, raw: duckdb.DuckDBPyConnection, each: Standing, *, store: bool = False) -> None:
        """Make a table of the first rows that are stored, or of all groups; ``store`` makes the groups anew."""
        assert each.window is not None
        if each.accumulators is None:
            with self._engine.prepared(each.window.first, each.definition.text) as (run, prepared):
                self._engine.into(FRESH[5:], run, prepared)
        elif store:
            self._group(raw, each, each.accumulators)
        else:
            Groups(raw, each.definition, each.accumulators).answer(FRESH)

    def anew(self, raw: duckdb.DuckDBPyConnection, each: Standing) -> None:
        """Make tables of the answer after a batch, and of the one before where that is not stored."""
        text, stored = each.definition.text, each.definition.stored
        before = not stored and each.window is not None and each.kept is not None
        if before:
            FirstRows(raw, Answer(raw, each.definition), each).before()
        self.make(raw, each)
        if stored or before:
            return
        with self._former.opened() as former, self._engine.prepared(each.query, text, former) as (run, prepared):
            rows = self._engine.rows(run, prepared)
        connection = self._state.connection
        with connection.view("_graphdb_rows", rows), connection.guard() as raw:
            raw.execute(f"CREATE OR REPLACE TEMP TABLE {FORMER[5:]} AS FROM _graphdb_rows")

    def aggregate(self, raw: duckdb.DuckDBPyConnection, each: Standing) -> None:
        """Aggregate anew the groups that are to be, and others where these cannot be asked for alone."""
        assert each.accumulators is not None
        groups = Groups(raw, each.definition, each.accumulators)
        query, named = each.accumulators.narrowed(partial(groups.lost, most=_NARROWED))
        with self._engine.prepared(query.query, each.definition.text) as (run, prepared):
            if named and type(prepared) is Prepared and prepared.plan is not None:
                ids = self._state.snapshot().lookup.ids({iri for iris in named.values() for iri in iris})
                vertices = {name: np.array(sorted(ids[iri] for iri in iris), np.int64) for name, iris in named.items()}
                prepared = run.among(prepared, vertices)
            self._engine.into(AGAIN[5:], run, prepared)

    def _group(self, raw: duckdb.DuckDBPyConnection, each: Standing, accumulators: Accumulators) -> None:
        """Store the groups of a query, and make a table of its answer."""
        groups = Groups(raw, each.definition, accumulators)
        for name, query in accumulators.distinct.items():
            with self._engine.prepared(query.query, each.definition.text) as (run, prepared):
                self._engine.into(AGAIN[5:], run, prepared)
            groups.fill_values(name)
        with self._engine.prepared(accumulators.query.query, each.definition.text) as (run, prepared):
            self._engine.into(AGAIN[5:], run, prepared)
        groups.fill()
        each.grouped = True
        groups.answer(FRESH)
