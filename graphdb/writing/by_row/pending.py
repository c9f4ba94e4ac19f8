"""What a statement has changed and the file does not have yet: collected row by row, written all at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from graphdb.common.stopping import checked
from graphdb.common.values.terms import LITERAL_BASE
from graphdb.evaluate.context import Context
from graphdb.evaluate.values import Vertex
from graphdb.storage.updates.apply import Update
from graphdb.writing.naming import Naming

Triple = tuple[int, int, int]
"""Label, subject, object."""

_RESERVED = 1000
"""Vertices that are made together."""


class Pending:
    """The changes of one statement that wait to be written."""

    def __init__(self, context: Context, update: Update, naming: Naming) -> None:
        self._context = context
        self._view = context.view
        self._update = update
        self._naming = naming
        self._removed: set[Triple] = set()
        self._added: set[Triple] = set()
        self.facts: set[tuple[int, int]] = set()
        """Vertex and key whose values changed."""
        self.edges: set[Triple] = set()
        """Triples whose edges changed."""
        self.gone: set[Vertex] = set()
        """Deleted vertices whose labels and properties are still in the file."""
        self.loose = False
        """Whether deleted vertices may have edges still."""
        self._new: set[int] = set()
        self._present: dict[Triple, bool] = {}
        self._reserved: Iterator[int] = iter(())
        self._expected = 1
        """How many new vertices may still come."""
        context.flush = self.flush

    # --- triples

    def labelled(self, vertex: Vertex, label: int) -> Triple:
        """Return the triple that gives a vertex a label."""
        return (self._naming.type_label, vertex.id, label)

    def add(self, triple: Triple) -> None:
        """Note that a triple comes."""
        self._added.add(triple)
        self._removed.discard(triple)

    def remove(self, triple: Triple) -> None:
        """Note that a triple goes."""
        self._removed.add(triple)
        self._added.discard(triple)

    def keep(self, vertex: Vertex) -> None:
        """A vertex that loses something stays, as one that CREATE made."""
        self._added.add(self.labelled(vertex, self._naming.hidden_label))

    def there(self, triple: Triple) -> bool:
        """Whether a triple is there by now."""
        if triple in self._added:
            return True
        if self._is_new(triple):
            return False
        self.ask({triple})
        return self._present[triple] and triple not in self._removed

    def ask(self, triples: set[Triple]) -> None:
        """Find out at once which of some triples are in the file."""
        unknown = {triple for triple in triples - self._present.keys() if self._new.isdisjoint(triple[1:])}
        if unknown:
            found = self._update.there(unknown)
            self._present.update((triple, triple in found) for triple in unknown)

    def may_change(self, labels: Collection[int], keys: Collection[int]) -> bool:
        """Whether what waits to be written may change which vertices have some labels and values of some properties."""
        if not (self._removed or self._added or self.facts or self.gone):
            return False
        type = self._naming.type_label
        if any(label == type and object in labels for label, _, object in chain(self._added, self._removed)):
            return True
        return bool(self.gone) or any(key in keys and vertex not in self._new for vertex, key in self.facts)

    def _is_new(self, triple: Triple) -> bool:
        """Whether a triple is known not to be in the file."""
        return triple[1] in self._new or triple[2] in self._new or self._present.get(triple) is False

    # --- vertices

    def expect(self, vertices: int) -> None:
        """Say how many vertices may come."""
        self._expected = vertices

    def create_vertex(self) -> Vertex:
        """Return a new vertex; they are made in hundreds where more will be asked for."""
        found = next(self._reserved, None)
        if found is None:
            self._reserved = iter(self._update.vertices(max(1, min(self._expected, _RESERVED))))
            found = next(self._reserved)
        self._expected -= 1
        self._new.add(found)
        self.keep(Vertex(found))
        return Vertex(found)

    def named_vertex(self, iri: str) -> Vertex:
        """Return the vertex with an IRI, which may be new."""
        vertex = Vertex(self._naming.ids(iri)[0])
        self.keep(vertex)
        return vertex

    def incident(self, vertices: Iterable[Vertex]) -> set[Triple]:
        """Return the edges from and to some vertices, as the file has them."""
        return self._read_at([vertex.id for vertex in vertices], edges=True)

    # --- the file

    def flush(self) -> None:
        """Write what changed since the last time."""
        if not (self._removed or self._added or self.facts or self.edges or self.gone):
            self._present.clear()  # what comes next may be written by sets
            return
        deleted = {vertex.id for vertex in self._view.deleted if isinstance(vertex, Vertex)}
        values = {at: self._view.values(*at) or () for at in self.facts if at[0] not in deleted}
        edge_values = []
        edges = []
        for label, start, end in self.edges:
            for ordinal, properties in self._view.described(label, (start, end)).get((start, end), {}).items():
                edges.append((label, start, end, ordinal))
                edge_values += [
                    ((label, start, end, ordinal, key), fact) for key, found in properties.items() for fact in found
                ]
        wanted = {(f.lexical, f.datatype, f.language) for found in values.values() for f in found}
        wanted.update([(f.lexical, f.datatype, f.language) for _, f in edge_values])
        ordered = sorted(wanted, key=repr)
        numbers = dict(zip(ordered, self._update.literals(ordered), strict=True))
        added, removed = set(self._added), set(self._removed)
        if deleted:
            # A new edge of one is written nevertheless: that it is left over is an error of the statement's.
            type = self._naming.type_label
            added = {t for t in added if t[1] not in deleted or (t[0] != type and t[2] < LITERAL_BASE)}
        old = self._old_values(values)
        for (vertex, key), found in checked(values.items()):
            new = [(key, vertex, numbers[f.lexical, f.datatype, f.language]) for f in found]
            added.update(new)
            if before := old.get((vertex, key)):
                removed |= before.difference(new)
        if self.gone:
            removed |= self._stored({vertex.id for vertex in self.gone})
        described = [(*row, numbers[f.lexical, f.datatype, f.language]) for row, f in edge_values]
        self._update.apply(
            _array(removed),
            _array(added),
            _array([triple for triple in self.edges if not self._is_new(triple)]),
            _array(edges),
            _array(described),
            _array([triple for triple, there in self._present.items() if not there and triple in added]),
            () if self.loose else frozenset(vertex.id for vertex in self.gone),
        )
        self._removed, self._added, self.facts, self.edges, self.gone = set(), set(), set(), set(), set()
        self._new.clear()
        self._present.clear()
        self._view.flushed()
        self._context.changed(self._update.take_changes(), self._update.known)

    def _old_values(self, asked: Iterable[tuple[int, int]]) -> dict[tuple[int, int], set[Triple]]:
        """Return the values of some properties (vertex, key), as the file has them; none of vertices that are new."""
        old: dict[tuple[int, int], set[Triple]] = {}
        unread: defaultdict[int, list[int]] = defaultdict(list)
        for vertex, key in asked:
            if vertex in self._new:
                continue
            facts = self._view.stored_facts(vertex)
            if facts is not None:
                old[vertex, key] = {triple for triple in facts if triple[0] == key}
            else:
                unread[key].append(vertex)
        for key, vertices in unread.items():
            for vertex, objects in zip(vertices, self._update.objects(key, vertices), strict=True):
                old[vertex, key] = {(key, vertex, object) for object in objects if object >= LITERAL_BASE}
        return old

    def _stored(self, vertices: set[int]) -> set[Triple]:
        """Return the labels and properties of some vertices, as the file has them."""
        known = self._view.stored(vertices)
        return self._read_at([*(vertices - known.keys())], edges=False).union(*known.values())

    def _read_at(self, vertices: Sequence[int], *, edges: bool) -> set[Triple]:
        """Return the edges at some vertices, or what else there is of them, as the file has them."""
        type = self._naming.type_label
        return set(self._update.at(vertices, type, edges=edges)) if vertices else set()


def _array(rows: Collection[tuple[int, ...]]) -> NDArray[np.int64] | None:
    """Return rows as int64 [rows, columns]; None where there are none."""
    return np.array([*rows], np.int64) if rows else None
