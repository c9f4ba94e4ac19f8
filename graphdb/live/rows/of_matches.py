"""The rows of the matches that a batch adds and takes away, as temporary tables that are filled part by part.

So what waits in memory is one part, however many matches there are.  Where rows belong to groups, equal ones are one
with their number.
"""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.grammar import syntax as ast
from graphdb.live.aggregates.distinct_values import NUMBER, SIGN
from graphdb.live.aggregates.groups import MOVED, merge_moved
from graphdb.live.answers import ADDED, NOTHING, REMOVED, Answer, Written
from graphdb.live.at_once import MOST, AtOnce
from graphdb.relational.projection.presentation import presented

if TYPE_CHECKING:
    import duckdb

    from graphdb.live.engine import Engine
    from graphdb.live.former import Former
    from graphdb.live.matches.following import Following
    from graphdb.live.matches.matching import Take
    from graphdb.live.prepared import PreparedQueries
    from graphdb.live.standing import Branch
    from graphdb.relational.paths.run import PathRun
    from graphdb.relational.query import Prepared
    from graphdb.relational.snapshot import Snapshot

Ints = NDArray[np.int64]

PART = 1 << 18
"""Matches that rows are made of at a time."""
_MERGED = 1 << 20
"""Rows of :data:`.groups.MOVED` among which equal ones are merged."""


class Rows:
    """Makes :data:`ADDED` and :data:`REMOVED` of matches, or for groups :data:`MOVED`; none of them without any match.

    Parameters
    ----------
    raw, engine, branch, text
        The transaction that is open, who prepares, and the query with the text in which it stands.
    now, known
        The state after the batch, and what was prepared over such states.
    former
        The state before the batch: of it the rows are that go, where vertices are renewed; None: of now.
    """

    def __init__(
        self,
        raw: duckdb.DuckDBPyConnection,
        engine: Engine,
        branch: Branch,
        text: str,
        now: Snapshot,
        known: PreparedQueries,
        former: Former | None,
    ) -> None:
        self._raw, self._engine, self._former = raw, engine, former
        self._branch, self._text = branch, text
        self._now, self._known = now, known
        delta = branch.way.parts[0].delta
        assert delta is not None  # or delta plans do not maintain it
        self._delta = delta
        self._open = ExitStack()
        self._prepared: dict[bool, tuple[PathRun, Prepared]] = {}
        self._waiting: dict[bool, list[Ints]] = {True: [], False: []}
        self._made = set[str]()
        self._count, self._moved = 0, 0
        self.some = False
        """Whether there are tables."""

    def __enter__(self) -> Rows:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def taker(self, part: Following, read: Ints) -> Take:
        """Return what takes the matches of the query's pattern."""
        return self._take

    def _take(self, added: Ints, removed: Ints) -> None:
        """Take matches (:meth:`.delta.DeltaQuery.block`): of the last ones :meth:`finish` makes rows."""
        for come, matches in ((True, added), (False, removed)):
            if len(matches):
                self._waiting[come].append(matches)
                self._count += len(matches)
        if self._count >= PART:
            self._flush()

    def finish(self) -> None:
        """Have the tables be complete."""
        self._flush()
        if self.some and self._delta.counted:
            self._merge()

    def write(self, answer: Answer, batch: int) -> Written | None:
        """Write the rows to the tables of the answer instead, as those of a batch; None where they are to be tables.

        They are where some come and some go, so that equal ones cancel out.
        """
        if self._made or self._delta.counted or self._count > MOST:
            return None
        sides = [come for come, parts in self._waiting.items() if parts]
        if not sides:
            return NOTHING
        come = sides[0]
        if len(sides) > 1 or (self._former is not None and not come):
            return None
        run, prepared = self._projection(come)
        block, rows = self._delta.block(np.concatenate(self._waiting[come])), 0
        parts = [*run.bound_rows(block, prepared.wanted, prepared.bound, prepared.beside)]
        known = self._branch.at_once
        if known is None or known.prepared is not prepared or any(part.schema != known.schema for part in parts):
            known = self._branch.at_once = AtOnce.of(run.connection, answer, prepared, parts[0])
        if not known.come or any(part.schema != known.schema or part.num_rows > MOST for part in parts):
            return None
        for part in parts:
            rows += known.write(run.connection, part, batch, come=come)
        return Written(rows, 0) if come else Written(0, rows)

    def make_none(self, table: str) -> None:
        """Make a table of no rows."""
        self._write(True, np.empty((0, self._delta.columns), np.int64), table, "FROM")

    def _flush(self) -> None:
        if not self._count:
            return
        for come, parts in self._waiting.items():
            if parts:
                self._add(come, np.concatenate(parts))
                parts.clear()
        if not self.some and not self._delta.counted:
            for table, other in ((ADDED, REMOVED), (REMOVED, ADDED)):
                if table not in self._made:  # no rows need no query, which may read all of a property
                    self._raw.execute(f"CREATE OR REPLACE TEMP TABLE {table[5:]} AS FROM {other} LIMIT 0")
        self.some, self._count = True, 0
        if self._moved > _MERGED:
            self._merge()

    def _add(self, come: bool, matches: Ints) -> None:
        """Add the rows of matches that come, or go."""
        table, columns = (ADDED if come else REMOVED), "FROM"
        if self._delta.counted:
            number = NUMBER if come else f"-{NUMBER}"
            table, columns = MOVED, f"SELECT * EXCLUDE {NUMBER}, CAST({number} AS BIGINT) AS {SIGN} FROM"
            self._moved += len(matches)
        self._write(come, matches, table, columns)

    def _merge(self) -> None:
        """Have equal rows be one."""
        merge_moved(self._raw)
        self._moved = 0

    def _write(self, come: bool, matches: Ints, table: str, columns: str) -> None:
        """Add the rows of matches to a table: what is selected of them are ``columns``, SQL up to FROM."""
        run, prepared = self._projection(come)
        projection, block = prepared.projection, self._delta.block(matches)
        shown = presented(f"({projection.sql})", projection.columns, ordered=False)
        for part in run.showing(block, prepared.wanted, prepared.bound, prepared.beside):
            begin = f"INSERT INTO {table}" if table in self._made else f"CREATE OR REPLACE TEMP TABLE {table[5:]} AS"
            with part:
                if come or self._former is None:
                    run.connection.promised.make(shown)
                    self._raw.execute(f"{begin} {columns} ({shown})", dict(projection.parameters))
                else:
                    rows = run.connection.arrow(shown, projection.parameters)
                    connection = self._projection(True)[0].connection
                    with connection.view("_graphdb_rows", rows):
                        self._raw.execute(f"{begin} {columns} _graphdb_rows")
            if block.count:  # whose types another part has, too
                self._made.add(table)

    def _projection(self, come: bool) -> tuple[PathRun, Prepared]:
        """Return what makes rows of matches that come, or go."""
        now = come or self._former is None
        if now not in self._prepared:
            assert isinstance(self._branch.query, ast.Query)  # or it has no one pattern
            state, over, known = None, self._now, self._known
            if self._former is not None and not now:
                state = over = self._open.enter_context(self._former.opened())
                known = self._former.prepared
            there = known.get(self._branch.key, over)
            opened = self._engine.projected(self._branch.query, self._text, state, there)
            run, prepared = self._open.enter_context(opened)
            assert prepared is not None  # as it was when the query was bound
            if prepared is not there:
                known.put(self._branch.key, over, prepared)
            self._prepared[now] = run, prepared
        return self._prepared[now]
