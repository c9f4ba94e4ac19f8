"""The rows that a batch changes of a query that is more than one pattern: asked for before and after it.

Delta plans say which bindings of what is required have other rows (:mod:`graphdb.live.matches.required`).  The query is
run for their vertices alone over either state: rows that are the same in both cancel out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.live.aggregates.distinct_values import NUMBER, SIGN
from graphdb.live.aggregates.groups import MOVED, merge_moved
from graphdb.live.answers import ADDED, FRESH, REMOVED, Answer
from graphdb.storage.arrays.sorted_sets import both, unique

if TYPE_CHECKING:
    import duckdb

    from graphdb.common.duckdb.connection import Connection
    from graphdb.live.engine import Engine
    from graphdb.live.former import Former
    from graphdb.live.matches.following import Following
    from graphdb.live.matches.matching import Take
    from graphdb.live.prepared import PreparedQueries
    from graphdb.live.standing import Branch, Standing
    from graphdb.relational.snapshot import Snapshot

Ints = NDArray[np.int64]
_ROWS = "_graphdb_rows"
"""A view of the rows that were asked for."""


class RowsAnew:
    """Makes :data:`ADDED` and :data:`REMOVED`, or for groups :data:`MOVED`; none of them where no binding is concerned.

    Parameters
    ----------
    raw, engine, each, branch, former
        The transaction that is open, who prepares, the continuous query, what of it is asked for, and the state before.
    now, prepared
        The state of now, and what was prepared over such.
    """

    def __init__(
        self,
        raw: duckdb.DuckDBPyConnection,
        engine: Engine,
        each: Standing,
        branch: Branch,
        former: Former,
        now: Snapshot,
        prepared: PreparedQueries,
    ) -> None:
        self._raw, self._engine, self._each, self._branch, self._former = raw, engine, each, branch, former
        self._now, self._prepared = now, prepared
        self._vertices: dict[tuple[str, ...], dict[str, list[Ints]]] = {}
        """Of the bindings that are found, by the names of which there are some."""
        self._connection: Connection | None = None
        """That of the transaction."""
        self._made = set[str]()
        self.some = False
        """Whether there are tables."""

    def __enter__(self) -> RowsAnew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._vertices.clear()

    def taker(self, part: Following, read: Ints) -> Take:
        """Return what takes the matches of a part of the query; ``read`` are vertices of which it reads other facts."""
        assert part.delta is not None
        if not part.delta.pattern.edges:
            self._note(part.named(read[:, None]))

        def take(*sides: Ints) -> None:
            for rows in sides:
                self._note(part.named(rows))

        return take

    def _note(self, named: dict[str, Ints]) -> None:
        for name, vertices in named.items():
            if len(vertices):
                self._vertices.setdefault(tuple(named), {}).setdefault(name, []).append(unique(vertices))

    def finish(self) -> None:
        """Have the tables be complete.

        Bindings of several components are found by the vertices of each, and those that are found twice count once:
        by inclusion and exclusion.
        """
        found = [{name: unique(np.concatenate(ids)) for name, ids in own.items()} for own in self._vertices.values()]
        for number in range(1, len(found) + 1):
            for several in combinations(found, number):
                vertices: dict[str, Ints] = {}
                for name, ids in (pair for own in several for pair in own.items()):
                    vertices[name] = both(vertices[name], ids) if name in vertices else ids
                if all(map(len, vertices.values())):
                    self.some = True
                    self._write(None, vertices, come=number % 2 == 1)
                    with self._former.opened() as state:
                        self._write(state, vertices, come=number % 2 == 0)
        if MOVED in self._made:
            merge_moved(self._raw)

    def make_none(self, table: str) -> None:
        """Make a table of no rows."""
        (first, *_) = self._branch.way.parts
        with self._asked(None, {name: np.empty(0, np.int64) for name in first.names}):
            self._raw.execute(f"CREATE OR REPLACE TEMP TABLE {table[5:]} AS FROM {_ROWS}")

    def _write(self, state: Snapshot | None, vertices: dict[str, Ints], *, come: bool) -> None:
        """Write the rows that a state has for some vertices, as such that come, or go."""
        with self._asked(state, vertices):
            if self._each.accumulators is not None:
                number = NUMBER if come else f"-{NUMBER}"
                begin = f"INSERT INTO {MOVED}" if self._made else f"CREATE OR REPLACE TEMP TABLE {MOVED[5:]} AS"
                signed = f"SELECT * EXCLUDE {NUMBER}, CAST({number} AS BIGINT) AS {SIGN}"
                self._raw.execute(f"{begin} {signed} FROM {_ROWS}")
                self._made.add(MOVED)
                return
            table = ADDED if come else REMOVED
            own = FRESH if table in self._made else table
            self._raw.execute(f"CREATE OR REPLACE TEMP TABLE {own[5:]} AS FROM {_ROWS}")
            if own != table:
                Answer(self._raw, self._each.definition).append(own, table)
            self._made.add(table)

    @contextmanager
    def _asked(self, state: Snapshot | None, vertices: dict[str, Ints]) -> Iterator[None]:
        """Show SQL the rows that a state, None for that of now, has for some vertices, by the names that they have."""
        own = self._branch.key
        known, over = (self._prepared, self._now) if state is None else (self._former.prepared, state)
        text, general = self._each.definition.text, known.get(own, over)
        with self._engine.among(self._branch.query, text, vertices, general, state) as (run, prepared, general):
            known.put(own, over, general)
            rows = self._engine.rows(run, prepared)
            self._connection = self._connection or run.connection
        with self._connection.view(_ROWS, rows):
            yield
