"""The matches of a continuous query's pattern, followed from batch to batch.

A batch changes edges, and of vertices labels and properties.  What is a new vertex, or one of which the query reads
something else by now, has its candidacy looked up, among these vertices alone.  Where such a vertex was there before,
all edges at it go, with what it was, and come again, with what it is: so the matches that it is in go and come, though
many of them make the same rows.  So do those of an edge of which a property changed, or which has other parallel ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphdb.common.values.terms import LITERAL_BASE
from graphdb.incremental.changes import NO_VERTICES, CandidateChange, Updates, VertexChanges
from graphdb.incremental.matcher import IncrementalMatcher
from graphdb.live.matches.delta import DeltaQuery, Net
from graphdb.plan.executor import Overran
from graphdb.relational.filtering.candidates import Candidates
from graphdb.storage.arrays.small_joins import distinct
from graphdb.storage.arrays.sorted_sets import either, unique, without

if TYPE_CHECKING:
    from graphdb.gpu.code.launch import Device
    from graphdb.incremental.delta_plan import DeltaPlan
    from graphdb.relational.snapshot import Snapshot
    from graphdb.storage.graph.source import TripleSource

Ints = NDArray[np.int64]
Take = Callable[[Ints, Ints], None]
"""Is given matches that a batch adds, and such that it takes away (:meth:`.delta.DeltaQuery.block`)."""


class Batch(NamedTuple):
    """What a batch changes of the graph that a pattern is matched in: edges are int64 [edges, 3], as triples."""

    gone: Ints
    come: Ints
    around: Ints
    """Edges that are renewed, or at vertices that are, before the batch or after it."""
    vertices: VertexChanges
    read: Ints
    """Vertices, sorted, of which it changes a label or property that the query reads."""
    renewed: bool
    """Whether matches may be lost whose rows only the state before the batch tells: with what is renewed, and with
    edges of which rows of single edges were written.
    """

    @property
    def size(self) -> int:
        """How many edges of the pattern it changes, or has matched again."""
        return len(self.gone) + len(self.come) + len(self.around)

    @classmethod
    def of(cls, delta: DeltaQuery, net: Net, read: Ints, snapshot: Snapshot, resources: int) -> Batch:
        """Return a batch as a query sees it.

        Parameters
        ----------
        delta, snapshot
            The query over the state after the batch.
        net
            The batch.
        read
            Vertices, sorted, of which it changes a label or property that the query reads.
        resources
            How many resources there were before.
        """
        if not delta.pattern.edges:  # its matches are the vertices that are read
            none = np.empty((0, 3), np.int64)
            return cls(none, none, none, NO_VERTICES, read, False)
        gone, come = delta.sides(net)
        old = read[read < resources]
        around = edges_at(snapshot, old, delta) if len(old) else np.empty((0, 3), np.int64)
        if delta.resolves and len(net.edges):
            written = present(snapshot, triples_without(delta.written(net), come))
            around = distinct(np.concatenate([around, written]))
        candidates = _candidates(delta, come, read, snapshot, resources)
        vertices = VertexChanges(candidates, snapshot.graph.sizes.resources)
        renewed = bool(len(around) or ((len(old) or delta.resolves) and len(gone)))
        return cls(gone, come, around, vertices, read, renewed)

    def find(self, matcher: IncrementalMatcher, take: Take, check: Callable[[], None]) -> None:
        """Apply the batch to a matcher of one pattern, and hand over what it changes.

        Where ``check`` raises Overran, the matcher has the batch all the same.
        """
        if not self.renewed:
            updates = _updates((self.gone, False), (self.come, True))
            matcher.stream(updates, lambda _, changes: take(*changes), check, self.vertices)
            return
        before = np.concatenate([triples_without(self.around, self.come), self.gone])
        after = np.concatenate([triples_without(self.come, self.around), self.around])
        overran: list[Overran] = []

        def checked() -> None:
            if overran:
                raise overran[0]
            check()

        try:
            matcher.stream(_updates((before, False)), lambda _, changes: take(*changes), check)
        except Overran as error:
            overran.append(error)
        matcher.stream(_updates((after, True)), lambda _, changes: take(*changes), checked, self.vertices)
        if overran:  # and there was nothing more to match
            raise overran[0]


class Matcher:
    """The matches of one query's pattern, followed: with the edges of the whole graph that the pattern may bind.

    Parameters
    ----------
    delta, snapshot
        The query over a state of the graph, which is read once.
    device
        What opens a CUDA device, which then searches batches that would take long on the CPU.
    """

    def __init__(
        self, delta: DeltaQuery, snapshot: Snapshot, device: Callable[[], Device | None] | None = None
    ) -> None:
        source = _Edges(cast("TripleSource", snapshot.store))
        vertices = Candidates(snapshot, delta.text, {}).of_each(delta.bound)
        self.pattern, self.conditions = delta.pattern, delta.conditions
        pattern = replace(delta.pattern, vertices=vertices)
        self._matcher = IncrementalMatcher(
            cast("TripleSource", source), [pattern], [self.conditions], device=device, counted=delta.counted
        )

    @property
    def place(self) -> str:
        """Where it searched the latest batch: ``"cpu"`` or ``"cuda:0"`` and so on."""
        return self._matcher.place

    @property
    def plans(self) -> tuple[DeltaPlan, ...]:
        """Its delta plans."""
        return self._matcher.delta_plans()

    @property
    def bytes(self) -> int:
        """What it takes of memory."""
        return self._matcher.bytes

    def follows(self, delta: DeltaQuery) -> bool:
        """Whether it is one of a query that was bound again."""
        return self.pattern == delta.pattern and self.conditions == delta.conditions

    def follow(self, batch: Batch, take: Take, check: Callable[[], None]) -> None:
        """Follow a batch: see :meth:`Batch.find`.  What else ``check`` raises leaves the matcher of no use."""
        batch.find(self._matcher, take, check)


def _candidates(
    delta: DeltaQuery, come: Ints, read: Ints, snapshot: Snapshot, resources: int
) -> Sequence[CandidateChange]:
    """Return how candidates change: among vertices that are new, or of which the query reads something else."""
    if not any(delta.conditions):
        return ()
    ends, candidates = unique(come[:, 1:]), Candidates(snapshot, delta.text, {})
    may_be_old = delta.negates or candidates.may_lack_all(delta.bound)  # what had no triple before is a new vertex, too
    concerned = either(read, ends if may_be_old else ends[ends >= resources])
    if not len(concerned):
        return ()
    found = candidates.among(delta.bound, concerned)
    return [
        CandidateChange(0, vertex, gained, without(read[read < resources], gained))
        for vertex, gained in enumerate(found)
        if gained is not None
    ]


class _Edges:
    """The edges between the resources of a graph: what a matcher reads of a TripleSource."""

    def __init__(self, source: TripleSource) -> None:
        self._source = source
        self.resources = source.resources
        self.literals = 0
        self.type_label = source.type_label

    def edge_labels(self) -> tuple[int, ...]:
        return self._source.edge_labels()

    def edges(self, label: int) -> tuple[Ints, Ints]:
        subjects, objects = self._source.edges(label)
        if len(objects) and int(objects.max()) >= self.resources:
            edges = objects < self.resources
            subjects, objects = subjects[edges], objects[edges]
        return subjects, objects

    def any_edges(self) -> tuple[Ints, Ints, Ints]:
        return self._source.any_edges()


def _updates(*parts: tuple[Ints, bool]) -> Updates:
    whole = np.concatenate([rows for rows, _ in parts])
    inserted = np.concatenate([np.full(len(rows), come) for rows, come in parts])
    return Updates(whole[:, 0], whole[:, 1], whole[:, 2], inserted)


def edges_at(snapshot: Snapshot, vertices: Ints, delta: DeltaQuery) -> Ints:
    """Return the edges, as triples, that begin or end at some vertices and that a query's pattern may bind."""
    type_label = snapshot.store.type_label
    known = delta.edge_labels
    where = f"label <> {-1 if type_label is None else int(type_label)}"
    if known is not None:
        where = f"label IN ({', '.join(str(int(label)) for label in known) or 'NULL'})"
    view = snapshot.connection.temporary()
    sides = [
        f"SELECT label, subject, object FROM _graphdb.triple SEMI JOIN {view} ON {end} = id"
        f" WHERE object < {LITERAL_BASE} AND {where}"
        for end in ("subject", "object")
    ]
    with snapshot.connection.view(view, {"id": vertices}):
        found = snapshot.connection.columns(" UNION ".join(sides))
    return np.column_stack([np.asarray(found[name], np.int64) for name in ("label", "subject", "object")])


def present(snapshot: Snapshot, triples: Ints) -> Ints:
    """Return those of some distinct triples that the graph has."""
    view = snapshot.connection.temporary()
    columns = dict(zip(("label", "subject", "object"), triples.T.copy(), strict=True))
    sql = f"SELECT label, subject, object FROM _graphdb.triple SEMI JOIN {view} USING (label, subject, object)"
    with snapshot.connection.view(view, columns):
        found = snapshot.connection.columns(sql)
    return np.column_stack([np.asarray(found[name], np.int64) for name in columns])


def triples_without(rows: Ints, others: Ints) -> Ints:
    """Return the triples that are none of some others; either side has each once."""
    if not len(rows) or not len(others):
        return rows
    whole = np.concatenate([rows, others])
    _, which, counts = np.unique(whole, axis=0, return_inverse=True, return_counts=True)
    alone: Ints = rows[counts[which.reshape(-1)[: len(rows)]] == 1]
    return alone
