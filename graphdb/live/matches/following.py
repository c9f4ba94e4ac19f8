"""One pattern of a continuous query, whose matches are followed from batch to batch.

Until a matcher with the edges of the whole graph pays off, batches are matched in the neighbourhood of their changes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphdb.live.matches.delta import DeltaQuery, Net, ends
from graphdb.live.matches.matching import Batch, Matcher, Take
from graphdb.live.matches.neighbourhood import find_near
from graphdb.plan.executor import Overran
from graphdb.relational.filtering.candidates import Candidates
from graphdb.storage.arrays.sorted_sets import both, either, without

if TYPE_CHECKING:
    from graphdb.grammar import syntax as ast
    from graphdb.live.engine import Engine
    from graphdb.relational.query import Prepared
    from graphdb.relational.snapshot import Snapshot

Ints = NDArray[np.int64]
Former = Callable[[], AbstractContextManager["Snapshot"]]
"""Opens the state before the transaction under way."""

SMALL = 20_000
"""Edges of a pattern that are read whenever there is no matcher."""
_READING = 6e-7
"""Seconds in which an edge is read: so long in all, batches are matched in the neighbourhood of what they change."""


class Following:
    """Follows the matches of the pattern of a query, which is ``whole`` or a part of that.

    Attributes
    ----------
    delta
        What delta plans need of it, over the state of the latest batch; None where that is not known.
    matcher
        Its matches, once they are followed with the edges of the whole graph.
    resources
        How many there were when :attr:`delta` was as the graph.
    names
        The names of vertices that its query returns.
    """

    def __init__(self, query: ast.Query, whole: ast.Query | ast.Composite, text: str) -> None:
        self.query, self._whole, self._text = query, whole, text
        returned = {item.alias for item in query.returns.items}  # its conditions may ask for others
        nodes = (node.variable for match in query.matches for path in match.patterns for node in path.nodes)
        self.names = sorted({node.name for node in nodes if node is not None} & returned)
        self.delta: DeltaQuery | None = None
        self.matcher: Matcher | None = None
        self._near = 0.0
        """Seconds that batches took without a matcher."""
        self.resources = 0

    def forget(self) -> None:
        """Drop what was made of the graph."""
        self.delta = self.matcher = None
        self._near = 0.0

    def bind(self, engine: Engine, snapshot: Snapshot) -> Prepared:
        """Look names up in one state, and return what follows the matches.

        Raises
        ------
        NotIncremental
            Delta plans do not maintain it.
        """
        self.delta, self.resources = None, snapshot.graph.sizes.resources
        with engine.projected(self.query, self._text, snapshot) as (_, prepared):
            self.delta = DeltaQuery.of(self.query, prepared, snapshot, self._text, self._whole)
            assert prepared is not None  # or it raised
            return prepared

    def prepare(self, engine: Engine, snapshot: Snapshot) -> None:
        """Have a matcher over a state, for which it is bound, where it needs one."""
        if self.delta is not None and self.delta.pattern.edges:
            self.matcher = Matcher(self.delta, snapshot, engine.device())

    def passes(self, net: Net) -> bool:
        """Whether it has nothing to do for a batch."""
        return self.delta is not None and not self.ranges and self.delta.is_untouched(net)

    def concerned(self, net: Net) -> bool:
        """Whether it is to be bound again for a batch."""
        return self.delta is None or self.delta.is_bound_otherwise(net)

    def batch(self, former: DeltaQuery, resources: int, net: Net, snapshot: Snapshot, opened: Former) -> Batch | None:
        """Return what a batch changes of the graph as its pattern sees it; None where names stand for something else.

        By now it is bound as after the batch, ``former`` is as before it, where there were so many ``resources``.
        """
        assert self.delta is not None
        self.resources = snapshot.graph.sizes.resources
        read = former.read(net)
        if self.delta is not former:
            if not self.delta.goes_on_from(former):
                self.matcher = None
                return None
            self.delta = self.delta.widened(former)
            read = either(read, self.delta.read(net))
        if self.ranges:
            with opened() as state:
                own = ends(net)
                before, now = both(state.graph.universe(), own), both(snapshot.graph.universe(), own)
            read = either(read, without(either(before, now), both(before, now)))
        if self.matcher is not None and self.delta is not former and not self.matcher.follows(self.delta):
            self.matcher = None
        return self.batch_of(net, read, snapshot, resources)

    @property
    def ranges(self) -> bool:
        """Whether a vertex of it may be any that there is, with no edge and no label."""
        assert self.delta is not None
        return self.delta.ranges

    def batch_of(self, net: Net, read: Ints, snapshot: Snapshot, resources: int) -> Batch:
        """Return a batch as its pattern sees it: see :meth:`.Batch.of`."""
        assert self.delta is not None
        return Batch.of(self.delta, net, read, snapshot, resources)

    def named(self, rows: Ints) -> dict[str, Ints]:
        """Return the vertices of matches, or of those that a batch has itself (one column), by their names."""
        assert self.delta is not None
        outputs = self.delta.pattern.outputs
        return {name: rows[:, outputs.index(name)] for name in self.names}

    def find(
        self,
        batch: Batch,
        snapshot: Snapshot,
        former: Former,
        engine: Engine,
        take: Take,
        check: Callable[[], None],
        anew: float = math.inf,
    ) -> None:
        """Hand over the matches that a batch adds and takes away.

        Raises
        ------
        Overran
            ``check`` did, or the answer can be had in ``anew`` seconds, which is sooner.
        """
        assert self.delta is not None
        delta = self.delta
        if not delta.pattern.edges:
            return  # its vertices are those that the batch has
        if self.matcher is None:
            labels, store = delta.edge_labels, snapshot.store
            edges = store.size if labels is None else sum(store.statistics(one).resource_triples for one in labels)
            if edges >= SMALL and self._near < edges * _READING:
                if self._find_near(batch, snapshot, former, take, check):
                    return
                if self._near + anew < edges * _READING:
                    self._near += anew
                    raise Overran
            with former() as state:
                self.prepare(engine, state)
        assert self.matcher is not None
        self.matcher.follow(batch, take, check)

    def _find_near(
        self, batch: Batch, snapshot: Snapshot, opened: Former, take: Take, check: Callable[[], None]
    ) -> bool:
        """Find what a batch changes without the edges of the whole graph; False where they are too many around it."""
        assert self.delta is not None
        delta, started = self.delta, time.perf_counter()
        with ExitStack() as states:

            def former(vertices: Ints) -> list[Ints | None]:
                state = states.enter_context(opened())
                there = vertices[vertices < state.graph.sizes.resources]
                return Candidates(state, delta.text, {}).among(delta.bound, there)

            try:
                return find_near(delta, batch, snapshot, former, take, check)
            finally:
                self._near += time.perf_counter() - started
