"""The ids of labels, edge labels and property keys that a statement writes: known names, and new ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from graphdb.common.caches import ByIdentity
from graphdb.common.errors import BindError
from graphdb.common.values.terms import DEFAULT_NAMESPACE, RDF_TYPE, VERTEX, default_iri
from graphdb.evaluate.context import Context
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.pattern.names import ABSENT
from graphdb.storage.updates.apply import Update


class Naming:
    """Finds the names of one statement, and makes those that nothing has yet, in the default namespace if bare."""

    def __init__(self, context: Context, update: Update) -> None:
        self._context = context
        self._update = update
        self._type: int | None = None
        self._hidden: int | None = None
        self._lazy_resolved: ByIdentity[Any] | None = None

    def ids(self, *iris: str) -> list[int]:
        """Return the ids of names, new ones among them."""
        new = self._context.new_names
        missing = [iri for iri in iris if iri not in new]
        if missing:
            ours = [iri for iri in (RDF_TYPE, VERTEX) if iri not in new]  # asked for soon
            wanted = [*ours, *[iri for iri in missing if iri not in ours]]
            ids = self._context.ids
            known = {iri: id for iri in wanted if (id := ids.get(iri)) is not None}
            if missing := [iri for iri in wanted if iri not in known]:
                known.update(zip(missing, self._update.resources(missing), strict=True))
                self._context.ids.update(known)
            new.update(known)
            self._context.forget_names()
        return [new[iri] for iri in iris]

    @property
    def type_label(self) -> int:
        """The edge label rdf:type."""
        if self._type is None:
            self._type = self._id_of(RDF_TYPE)
        return self._type

    @property
    def hidden_label(self) -> int:
        """The class that every created vertex has."""
        if self._hidden is None:
            self._hidden = self._id_of(VERTEX)
        return self._hidden

    def _id_of(self, iri: str) -> int:
        """Return the id of one name, which may be new."""
        known = self._context.ids.get(iri)
        if known is None:
            return self.ids(iri)[0]
        self._context.new_names[iri] = known
        return known

    @property
    def _resolved(self) -> ByIdentity[Any]:
        """What pieces of syntax were found to name, as the state of the data had it in which a clause began."""
        if self._lazy_resolved is None:
            self._lazy_resolved = self._context.names.resolved
        return self._lazy_resolved

    def read(self, clause: ast.ClauseNode) -> None:
        """Number the names of the default namespace in a clause together: one by one each takes a query.

        Once all names of a clause are known, there is nothing to number as long as they stand for the same.
        """
        names = self._context.names
        self._lazy_resolved = names.resolved
        if not names.open or names.resolved.get(clause):
            return
        words, local = _NAMED.get_or_make(clause, lambda: _names_in(clause))
        if all(names.resolved.get(each) is not None for each in words):
            names.resolved.put(clause, True)
        elif missing := [iri for iri in local if iri not in self._context.new_names]:
            self.ids(*missing)

    def key(self, key: ast.KeyName) -> int:
        """Return the predicate that a property key names."""
        always: int | None = self._resolved.get(key)
        if always is not None:
            return always
        found = self._known(lambda: self._context.property_id(key))
        if found is None:
            found = self.ids(self._context.iri_of(key.words, None))[0]
        return int(self._resolved.put(key, found))  # which a property or a key of edges has by the same number

    def edge_label(self, labels: ast.LabelExpression | None) -> int:
        """Return the edge label of an edge pattern that is written."""
        assert isinstance(labels, ast.LabelChain)
        if (always := self._resolved.get(labels)) is not None:
            return int(always)
        names = self._context.names
        found = self._known(lambda: names.edge_label(labels.words, self._context.text).id)
        if found is None:
            return self.ids(self._context.iri_of(labels.words, None))[0]
        names.resolved.put(labels, found)
        return found

    def labels(self, labels: ast.LabelExpression | None) -> frozenset[int]:
        """Return the vertex labels of an expression that is written."""
        match labels:
            case None:
                return frozenset()
            case ast.LabelAnd():
                return frozenset().union(*map(self.labels, labels.operands))
            case ast.LabelChain():
                always: frozenset[int] | None = self._resolved.get(labels)
                if always is not None:
                    return always
                names = self._context.names
                chains, text = names.chains(labels.words), self._context.text
                known = [self._known(lambda words=words: names.vertex_label(words, text).id) for words in chains]
                found = frozenset(
                    self.ids(self._context.iri_of(tuple(words), None))[0] if id is None else id
                    for words, id in zip(chains, known, strict=True)
                )
                if None not in known:
                    names.resolved.put(labels, found)
                return found
        raise BindError("only labels can be written", text=self._context.text, position=labels.span.start)

    def _known(self, find: Callable[..., int]) -> int | None:
        """Return the id of a name that the database has; None if it has not."""
        try:
            found = find()
        except BindError as error:
            if "unknown" in error.message and "prefix" not in error.message:
                return None
            raise
        return None if found == ABSENT else found


_Named: TypeAlias = "tuple[tuple[ast.KeyName | ast.LabelChain, ...], tuple[str, ...]]"

_NAMED: ByIdentity[_Named] = ByIdentity(256)
"""What :func:`_names_in` says of clauses."""


def _names_in(clause: ast.ClauseNode) -> _Named:
    """Return the names in a clause, and the IRIs of those of the default namespace, sorted."""
    found = tuple(part for part in walk(clause) if isinstance(part, (ast.KeyName, ast.LabelChain)))
    singles = [part.words[0] for part in found if len(part.words) == 1]
    iris = {word.text if word.is_iri else default_iri(word.text) for word in singles}
    return found, tuple(sorted(iri for iri in iris if iri.startswith(DEFAULT_NAMESPACE)))


def key_named(name: str, node: ast.Expression) -> ast.KeyName:
    """Return a key whose name only the data tells."""
    return ast.KeyName((ast.Word(name, False, node.span),), node.span)
