"""Pattern queries as continuous ones need them: whole answers, over the present state or the one before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from graphdb.dispatch.queries import Queries
from graphdb.dispatch.tables import Tables
from graphdb.execute.choose import device_of
from graphdb.relational.program import Program
from graphdb.relational.projection.presentation import presented
from graphdb.relational.query import Prepared

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graphdb.common import arrow
    from graphdb.gpu.code.launch import Device
    from graphdb.grammar import syntax as ast
    from graphdb.relational.paths.run import PathRun
    from graphdb.relational.session.state import State
    from graphdb.relational.snapshot import Snapshot

    Ids = NDArray[np.int64]


class Engine:
    """See :class:`graphdb.live.maintenance.Engine`."""

    def __init__(self, state: State, queries: Queries, tables: Tables) -> None:
        self._state = state
        self._queries = queries
        self._tables = tables

    @contextmanager
    def prepared(
        self, query: ast.Query | ast.Composite, text: str, snapshot: Snapshot | None = None, *, whole: bool = True
    ) -> Iterator[tuple[PathRun, Prepared | Program]]:
        """Prepare a query over the present state or another one, as a whole or as it is asked :meth:`among` some."""
        with self._queries.apart(text, snapshot or self._state.snapshot().lenient()) as run:
            run.closures = whole
            yield run, self._queries.prepare_anew(run, query, text, {})

    @contextmanager
    def projected(
        self, query: ast.Query, text: str, snapshot: Snapshot | None = None, known: Prepared | Program | None = None
    ) -> Iterator[tuple[PathRun, Prepared | None]]:
        """Prepare what follows the matches of a query; see :meth:`graphdb.live.engine.Engine.projected`."""
        with self._queries.apart(text, snapshot or self._state.snapshot().lenient()) as run:
            yield run, known if isinstance(known, Prepared) else self._queries.project_anew(run, query)

    @contextmanager
    def among(
        self,
        query: ast.Query | ast.Composite,
        text: str,
        vertices: Mapping[str, Ids],
        general: Prepared | Program | None,
        snapshot: Snapshot | None,
    ) -> Iterator[tuple[PathRun, Prepared | Program, Prepared | Program]]:
        """Plan a query for some of its vertices; see :meth:`graphdb.live.engine.Engine.among`."""
        with self._queries.apart(text, snapshot or self._state.snapshot().lenient()) as run:
            run.closures = False
            if general is None:
                general = self._queries.prepare_anew(run, query, text, {})
            unplanned = general.unplanned() if isinstance(general, Program) else replace(general, plan=None)
            yield run, run.among(general, vertices), unplanned

    def into(self, table: str, run: PathRun, prepared: Prepared | Program) -> None:
        """Run a query and make a temporary table of its rows, as SQL sees them."""
        self._tables.make(run, prepared, f"CREATE OR REPLACE TEMP TABLE {table} AS", None)

    def rows(self, run: PathRun, prepared: Prepared | Program) -> arrow.Table:
        """Run a query over the state for which it was prepared, and return its rows as SQL sees them."""
        with run.bindings(prepared) as projection:
            rows = presented(f"({projection.sql})", projection.columns, ordered=False)
            return run.connection.arrow(rows, projection.parameters)

    def device(self) -> Callable[[], Device | None] | None:
        """What opens the database's CUDA device; None where it has none."""
        return device_of(self._queries.executor)
