"""Paths that are searched for as steps of a program: from the ends that its rows have to those that may be."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.paths.dijkstra import CheapestPaths
from graphdb.execute.paths.path_rows import PathRows
from graphdb.execute.paths.steps import Paths
from graphdb.plan.paths import EVERY, Ends, PathStep, Weighted
from graphdb.relational.costed_edges import FoundAlong, FoundEdges
from graphdb.relational.path_patterns.edges import Table
from graphdb.relational.paths.base import PathBase, Waiting
from graphdb.relational.program import Applied, Searched, Step
from graphdb.relational.running.given import given_vertices
from graphdb.relational.vectors.run import run
from graphdb.storage.arrays.arrow import values
from graphdb.storage.arrays.sorted_sets import both

Ids = NDArray[np.int64]

_FEW_PAIRS = 64
"""Pairs of ends, of two sets, up to which each is searched for from both sides."""


class StepRun(PathBase):
    """Runs such steps."""

    @contextmanager
    def _paths_found(self, step: Searched) -> Iterator[None]:
        """Search for paths, and show them to SQL."""
        found = Waiting(self, step.view, step.table(None), self._bindings_bytes // 4)
        step = self._with_edges(step)
        for block in self._ways(step):
            found.add(step.table(block))
        if (table := found.table) is not None:
            self._tables[step.view] = table
        with found.visible():
            yield
        self._tables.pop(step.view, None)

    @contextmanager
    def _applied_to(self, step: Applied) -> Iterator[None]:
        """Make rows of rows, and show them to SQL."""
        found = Waiting(self, step.view, step.applying.table(), self._bindings_bytes // 4)
        rows = self._snapshot.connection.arrow(step.groups, {})
        for table in step.applying.tables(rows, self.new_control):
            found.add(table)
        with found.visible():
            yield

    @contextmanager
    def _all_edges(self, step: Step, shares: int) -> Iterator[None]:
        """Match the edges of a path, unless they were found before, and show them to SQL."""
        assert step.found_by is not None
        pattern, conditions = step.found_by
        key = pattern, (conditions, step.needs, step.beside, step.numbered)  # the same columns of the same edges
        found = self._snapshot.costed.get(key)
        if isinstance(found, FoundEdges):
            self._edges.append(found)
            self._tables[step.view] = found.bindings
            with self._visible(found.bindings if step.shown else None, step.view):
                yield
            self._tables.pop(step.view, None)
            return
        with self._shown_match(step, shares):
            if step.view in self._tables:
                self._edges.append(found := FoundEdges(self._tables[step.view]))
                self._tables[step.view] = found.bindings
                self._snapshot.costed.put(key, found)
            yield

    def _with_edges(self, step: Searched) -> Searched:
        """Return a step with the edges that it goes along, as those before it have found them."""
        if step.edges is None or step.path.edges is None:
            return step
        graph = self._snapshot.graph
        if step.cost is not None:
            weighted = self._known.get(step.view)
            if not isinstance(weighted, Weighted):
                ((table,),) = (part.edges for part in step.edges.parts)
                assert isinstance(table, Table)
                left, right, codes, *costs = self._costs_of(table)
                ends = self._ends_of((left, right, codes))
                weighted = step.edges.weighted(ends, costs, step.cost, self._text)
                if step.of_data is not None:
                    self._snapshot.costed.put(step.of_data.key, weighted)
            return replace(step, path=replace(step.path, weighted=weighted))
        known = self._known.get(step.view)
        if isinstance(known, FoundAlong):
            along = known.along
        elif step.path.edges.several:
            along = step.edges.product(graph, self._columns_of, self._bindings_bytes)
        else:
            along = step.edges.edges(graph, self._columns_of)
            if step.of_data is not None:
                self._snapshot.costed.put(step.of_data.key, FoundAlong(along))
        return replace(step, path=replace(step.path, along=along))

    def _columns_of(self, table: Table) -> list[Ids]:
        return [column.astype(np.int64, copy=False) for column in self._arrays_of(table)]

    def _costs_of(self, table: Table) -> list[NDArray[Any]]:
        """Return the columns of edges with costs: ends, codes, costs, which are null, and which are no numbers."""
        if table.made is not None:
            check = self.new_control().check
            found = run(table.made, self._tables, self._snapshot.properties, check, most=sys.maxsize)
            if found is not None:
                *edges, costs = (found.column(f"c{at}") for at in range(4))
                unknown = ~costs.is_valid()
                return [*map(values, edges), np.where(unknown, 0.0, values(costs)), unknown, np.zeros(1, np.bool_)]
        return self._arrays_of(table)

    def _ends_of(self, columns: Sequence[NDArray[Any]]) -> Ends:
        """Return the ends and codes of edges, sorted before where they are those of edges that were found before."""
        known = (found.ends_of(columns) for found in self._edges)
        return next((ends for ends in known if ends is not None), None) or Ends.of(columns)

    def _arrays_of(self, table: Table) -> list[NDArray[Any]]:
        """Return the columns of a table, none of which has nulls: as Arrow they take half the time to fetch."""
        found = self._snapshot.connection.arrow(table.sql, table.parameters)
        return [values(found.column(at)) for at in range(found.num_columns)]

    def _ways(self, step: Searched) -> Iterator[PathRows]:
        starts, ends, path = step.starts, step.ends, step.path
        for one in step.among:
            assert not one.excluded  # only plain patterns have such vertices
            ids = given_vertices(one, self._tables, self._snapshot)
            if one.vertex:
                ends = ids if ends is None else both(ends, ids)
            else:
                starts = ids if starts is None else both(starts, ids)
        if step.start is not None:
            rows = self._snapshot.connection.columns(f"SELECT * FROM ({step.start}) ORDER BY ALL ASC")
            given = [np.asarray(rows[end], np.int64) if end in rows else None for end in ("s", "t")]
            if path.bound:
                sources, targets = (found if found is not None else given[1] for found in given)
                assert sources is not None
                assert targets is not None
                yield from self._searching(path).between(sources, targets)
                return
            starts, ends = (old if new is None else new for old, new in zip((starts, ends), given, strict=True))
        elif starts is None and ends is None:
            starts = self._snapshot.graph.universe()
        if path.bound:
            assert starts is not None
            yield from self._searching(path).between(starts, starts)
            return
        if path.only == "source" and ends is None:
            ends = self._snapshot.graph.universe()
        if path.only == "target" and starts is None:
            starts = self._snapshot.graph.universe()
        if path.only:
            yield self._along(path).reached(starts, ends)
        elif path.count == EVERY:
            yield from self._along(path).every(starts, ends)
        elif path.cost is None and starts is not None and ends is not None and len(starts) * len(ends) <= _FEW_PAIRS:
            yield from self._along(path).between(np.repeat(starts, len(ends)), np.tile(ends, len(starts)))
        elif path.single or path.cost is not None:
            yield from self._searching(path).across(starts, ends)
        else:
            # What has a path has a shortest walk: first the pairs of ends, then the paths between each.
            reach = replace(path, count=1, groups=False, materialized=False, low=0, mode="WALK")
            for pairs in self._along(reach).across(starts, ends):
                yield from self._along(path).between(pairs.sources, pairs.targets)

    def _searching(self, path: PathStep) -> Paths | CheapestPaths:
        """Return what searches for the shortest paths, by edges or by costs."""
        if path.weighted is None:
            return self._along(path)
        self.control = control = self.new_control()
        return CheapestPaths(path, path.weighted, control)

    def _along(self, path: PathStep) -> Paths:
        self.control = control = self.new_control()
        return Paths(self._snapshot.graph, path, control)
