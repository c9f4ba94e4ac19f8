"""What names mean to one statement, those that it has written itself among them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from graphdb.common.duckdb.connection import Connection
from graphdb.common.errors import BindError
from graphdb.common.values.terms import RDF_TYPE, VERTEX, default_iri
from graphdb.evaluate.values import Vertex
from graphdb.grammar import syntax as ast
from graphdb.pattern.names import ABSENT, Names
from graphdb.relational.snapshot import Snapshot

LabelTest = Callable[[frozenset[int]], bool]


class StatementNames:
    """Labels, edge labels, property keys and resources by name, as the statement's ``text`` writes them.

    ``snapshot_of`` returns the present snapshot: writing makes the one before stale.
    """

    def __init__(self, snapshot_of: Callable[[], Snapshot], text: str) -> None:
        self._snapshot_of = snapshot_of
        self.text = text
        self.flush: Callable[[], None] = _nothing
        """Writes what is waiting to the file."""
        self._keys: dict[int, tuple[ast.KeyName, int]] = {}
        """Keys by their identity: to hash what is written takes longer than to look it up."""
        self._keys_of_edges: dict[ast.KeyName, int] = {}
        self._written: dict[int, str] = {}
        self._labels: dict[tuple[ast.Word, ...], frozenset[int]] = {}
        self._resources: dict[str, Vertex | None] = {}
        self.new_names: dict[str, int] = {}
        """IRIs of labels and keys that this statement has brought in, which no snapshot has yet."""
        self._lazy_hidden: int | None = None
        self._lazy_edge_keys: dict[str, int] | None = None

    @property
    def snapshot(self) -> Snapshot:
        """Names and data as they are now, what this statement has written among them."""
        self.flush()
        return self._snapshot_of()

    @property
    def stored(self) -> Snapshot:
        """Names and data as the file has them, without what waits to be written."""
        return self._snapshot_of()

    @property
    def names(self) -> Names:
        """The names of the database, but for those that are in :attr:`new_names`."""
        return self._snapshot_of().names

    @property
    def ids(self) -> dict[str, int | None]:
        """The ids of IRIs that were looked up already."""
        return self._snapshot_of().ids

    @property
    def connection(self) -> Connection:
        """The connection to DuckDB."""
        return self._snapshot_of().connection

    @property
    def described_labels(self) -> frozenset[int]:
        """Edge labels of which the file describes some edge."""
        return self._snapshot_of().edges.described

    @property
    def parallel_labels(self) -> frozenset[int]:
        """Edge labels of which the file has parallel edges, or one that was parallel to another."""
        return self._snapshot_of().edges.parallel

    @property
    def type_label(self) -> int | None:
        """The edge label rdf:type, once there is one."""
        return self.new_names.get(RDF_TYPE, self._snapshot_of().store.type_label)

    @property
    def hidden_label(self) -> int:
        """The class that every created vertex has, and no one sees."""
        if self._lazy_hidden is None or self._lazy_hidden == ABSENT:
            self._lazy_hidden = self.new_names.get(VERTEX, ABSENT)
            if self._lazy_hidden == ABSENT:
                found = self.resource(VERTEX)
                self._lazy_hidden = ABSENT if found is None else found.id
        return self._lazy_hidden

    def property_id(self, key: ast.KeyName) -> int:
        """Return the predicate that a property key names; ABSENT where nothing has it.

        Raises
        ------
        BindError
            Nothing has it, and the names came with RDF: then it is a mistake.
        """
        known = self._keys.get(id(key))
        if known is not None:
            return known[1]
        names = self.names
        if (always := names.resolved.get(key)) is not None:
            return int(always)
        iri = self.iri_of(key.words, None)
        found = names.property_with(iri)  # edges of which it is a key have it by the same number
        if found is not None:
            names.resolved.put(key, found)
            return found
        found = self.new_names.get(iri)
        if found is None:
            found = self._edge_keys().get(iri)
        if found is None:
            try:
                found = names.property(key.words, self.text).id
            except BindError:
                found = names.key(key.words, self._edge_keys(), self.text)
        self._keys[id(key)] = key, found
        return found

    def edge_key(self, key: ast.KeyName) -> int:
        """Return the key of edges that is written, as :meth:`property_id` does the predicate."""
        found = self._keys_of_edges.get(key)
        if found is None:
            found = self.new_names.get(self.iri_of(key.words, None))
            if found is None:
                found = self.names.key(key.words, self._edge_keys(), self.text)
            self._keys_of_edges[key] = found
        return found

    def _edge_keys(self) -> dict[str, int]:
        """The keys that edges have, by IRI."""
        if self._lazy_edge_keys is None:
            self._lazy_edge_keys = dict(
                self.connection.rows(
                    "SELECT iri, id FROM _graphdb.resource SEMI JOIN _graphdb.edge_property ON key = id"
                )
            )
        return self._lazy_edge_keys

    def iri_of(self, words: tuple[ast.Word, ...], known: Callable[[], str | None] | None) -> str:
        """Return the IRI of a name that is written: a known one's, or one in the default namespace."""
        if len(words) == 2:
            return self.names.expand(words[0], words[1], self.text)
        if words[0].is_iri:
            return words[0].text
        found = known() if known is not None else None
        return found or default_iri(words[0].text)

    def label_name(self, label: int) -> str:
        """Return a label, edge label or key as a user would write it."""
        if label not in self._written:
            names = self.names
            for iri, id in self.new_names.items():
                self._written[id] = names.written(iri)
            known = names.vertex_labels.get(label) or names.edge_labels.get(label)
            if known is not None:
                self._written[label] = names.written(known.iri)
            elif label not in self._written:
                ((iri,),) = self.connection.rows("SELECT iri FROM _graphdb.resource WHERE id = $id", {"id": label})
                self._written[label] = names.written(iri)
        return self._written[label]

    def label_test(self, labels: ast.LabelExpression) -> LabelTest:
        """Return the test of a set of label ids for an expression."""
        match labels:
            case ast.LabelAny():
                return bool
            case ast.LabelNot():
                inner = self.label_test(labels.operand)
                return lambda found: not inner(found)
            case ast.LabelAnd():
                tests = [self.label_test(operand) for operand in labels.operands]
                return lambda found: all(test(found) for test in tests)
            case ast.LabelOr():
                tests = [self.label_test(operand) for operand in labels.operands]
                return lambda found: any(test(found) for test in tests)
        chains = [tuple(chain) for chain in self.names.chains(labels.words)]
        return lambda found: not any(found.isdisjoint(self._label_ids(chain)) for chain in chains)

    def _label_ids(self, words: tuple[ast.Word, ...]) -> frozenset[int]:
        """Return what a name means as a label: a class with those below it where they are read, or an edge label."""
        ids = self._labels.get(words)
        if ids is None:
            found = {self.new_names.get(self.iri_of(words, None), ABSENT)}
            with suppress(BindError):
                found.update(self.names.under(self.names.vertex_label(words, self.text).id))
            with suppress(BindError):
                found.add(self.names.edge_label(words, self.text).id)
            ids = self._labels[words] = frozenset(found - {ABSENT})
        return ids

    def forget_names(self) -> None:
        """Forget which names are absent, because some came."""
        self._keys.clear()
        self._keys_of_edges.clear()
        self._labels.clear()
        self._resources.clear()

    def forget_statement(self) -> None:
        """Forget what a run of the statement found and brought in."""
        self.forget_names()
        self._written.clear()
        self.new_names.clear()
        self._lazy_hidden = self._lazy_edge_keys = None
        self.flush = _nothing

    def resource(self, iri: str) -> Vertex | None:
        """Return the vertex with an IRI, or None."""
        if iri not in self._resources:
            id = self.ids.get(iri)
            if id is None:
                found = self.connection.rows("SELECT id FROM _graphdb.resource WHERE iri = $iri", {"iri": iri})
                id = self.ids[iri] = found[0][0] if found else None
            self._resources[iri] = None if id is None else Vertex(id)
        return self._resources[iri]


def _nothing() -> None:
    """There is nothing to write."""
