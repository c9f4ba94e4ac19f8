"""What names mean in one database: prefixes, edge labels, property keys and vertex labels.

A name is written as a full IRI, as a prefixed name, or bare.  A bare name means the one loaded IRI with that local
name (what follows the last ``#``, ``/`` or ``:``); if several have it the error lists them, if none has it the
error suggests the nearest.  A name of the database's own namespace comes before those of others.  A full IRI that the
database does not have matches nothing, and nor does any name in a database of the user's own names alone
(:attr:`Names.open`).  :meth:`Names.written` goes the other way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any

from graphdb.common.caches import ByIdentity
from graphdb.common.errors import BindError, nearest
from graphdb.common.values.terms import DEFAULT_NAMESPACE, RDF_TYPE, VERTEX, default_iri, default_name
from graphdb.common.values.types import EXACT_ONLY
from graphdb.grammar.syntax import Word
from graphdb.pattern.hierarchy import Hierarchy
from graphdb.storage.catalog import EdgeLabel, VertexLabel

ABSENT = -1
"""The id of a full IRI that the database does not have: it is in no triple."""

_RESOLVED = 1024
"""Pieces of syntax of which it is remembered what they name, at most."""

_LOCAL = re.compile(r"[^#/:]*$")
_PLAIN = re.compile(r"[^\W\d]\w*\Z")


def local_name(iri: str) -> str:
    """Return what follows the last ``#``, ``/`` or ``:``.

    >>> local_name("http://xmlns.com/foaf/0.1/knows")
    'knows'
    """
    found = _LOCAL.search(iri)
    return found.group() if found else iri


class Names:
    """A snapshot of the names of a database; errors carry the statement's ``text``.

    With a ``hierarchy`` a vertex label stands for those below it too; ``above`` tells the classes that have some below
    them, for the hint of an error.
    """

    def __init__(
        self,
        prefixes: dict[str, str],
        edge_labels: Iterable[EdgeLabel],
        vertex_labels: Iterable[VertexLabel],
        hierarchy: Hierarchy | None = None,
        above: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self.prefixes = prefixes
        self.edge_labels = {label.id: label for label in edge_labels}
        every = {label.id: label for label in vertex_labels}
        self.vertex_labels = {id: label for id, label in every.items() if label.iri != VERTEX}
        self.hidden = {id: label for id, label in every.items() if label.iri == VERTEX}
        """The class that every created vertex has, and no one sees, where there is one."""
        self._edges = _Index((label.iri, label.id) for label in self.edge_labels.values())
        self._hierarchy, self._above = hierarchy, above
        classes = {**(hierarchy.classes if hierarchy else {}), **self.vertex_labels}
        self._vertices = _Index((label.iri, label.id) for label in classes.values())
        self._classes = classes
        self._properties = _Index((label.iri, label.id) for label in self.edge_labels.values() if label.kinds)
        known = {*self._edges.by_iri, *self._vertices.by_iri} - {RDF_TYPE}
        self.open = all(iri.startswith(DEFAULT_NAMESPACE) for iri in known)
        """Whether all names are the user's own (none came with RDF): then one that nothing has is no mistake, as in
        openCypher, and matches nothing."""
        self._thorough = False
        self.resolved: ByIdentity[Any] = ByIdentity(_RESOLVED)
        """What pieces of syntax were found to name, by which piece, but for names that nothing has: states of the same
        names share it."""
        # The longest namespace wins, so that nested prefixes shorten as far as they can.
        self._namespaces = sorted(((iri, name) for name, iri in self.prefixes.items()), key=lambda p: -len(p[0]))
        iris = {id: label.iri for id, label in self.edge_labels.items()}
        iris |= {id: label.iri for id, label in self.vertex_labels.items()}
        self.spellings = {id: self.written(iri) for id, iri in iris.items()}
        """All edge and vertex labels as a user would write them, by id."""

    def following(
        self, edge_labels: Mapping[int, EdgeLabel | None], vertex_labels: Mapping[int, VertexLabel | None]
    ) -> Names:
        """Return the names after changes of some labels, None for those that are no more; without a hierarchy only."""
        properties, known = self._properties.iris, dict[int, EdgeLabel]()
        for id, label in edge_labels.items():
            if label is not None and bool(label.kinds) == (id in properties):
                known[id] = label
        hidden, classes = dict[int, VertexLabel](), dict[int, VertexLabel]()
        for id, named in vertex_labels.items():
            if named is not None:
                (classes if named.iri != VERTEX else hidden)[id] = named
        same = known.keys() == edge_labels.keys() <= self.edge_labels.keys() and classes.keys() <= self._classes.keys()
        if not same or hidden.keys() | classes.keys() != vertex_labels.keys():
            return self._named_anew(edge_labels, vertex_labels)
        names = copy(self)
        names.edge_labels = {**self.edge_labels, **known}
        names.hidden = {**self.hidden, **hidden}
        names.vertex_labels = names._classes = {**self.vertex_labels, **classes}
        return names

    def _named_anew(
        self, edge_labels: Mapping[int, EdgeLabel | None], vertex_labels: Mapping[int, VertexLabel | None]
    ) -> Names:
        """Return what :meth:`following` does, where names come or go, or become properties or cease to be some."""
        edges = {**self.edge_labels, **edge_labels}
        vertices = {**self.hidden, **self.vertex_labels, **vertex_labels}
        known = [label for _, label in sorted(edges.items()) if label is not None]
        every = [label for _, label in sorted(vertices.items()) if label is not None]
        return Names(self.prefixes, known, every, above=self._above)

    def stand(self, edge_labels: Mapping[int, tuple[int, ...] | None], vertex_labels: Mapping[int, int]) -> bool:
        """Whether each name stands for what it did, and properties have values of the same kinds, after some changes.

        These are what is counted now of the edge labels (:attr:`.EdgeLabel.counts`) and vertex labels that changed.
        """
        for id, row in edge_labels.items():
            known = self.edge_labels.get(id)
            if known is None or row is None or known.kinds != row[6] or known.max_values != row[7]:
                return False
        return all(count and (id in self.vertex_labels or id in self.hidden) for id, count in vertex_labels.items())

    def written_types(self, edge_labels: Iterable[int]) -> frozenset[int]:
        """Return those of some edge labels whose values have types that only their texts say: they may have changed."""
        found = ((id, self.edge_labels.get(id)) for id in edge_labels)
        return frozenset(id for id, known in found if known is not None and known.kinds & EXACT_ONLY)

    def strict(self) -> Names:
        """Return these names, where one that nothing has is a mistake, whoever made them, and so is a bare one of the
        database's own that stands before others.
        """
        names = self._with_open(False)
        names._thorough, names.resolved = True, ByIdentity(_RESOLVED)
        return names

    def lenient(self) -> Names:
        """Return these names, where one that nothing has is no mistake and matches nothing, whoever made them."""
        return self._with_open(True)

    def _with_open(self, open: bool) -> Names:
        names = copy(self)
        names.open = open
        return names

    def vertex_label(self, words: Sequence[Word], text: str) -> VertexLabel:
        """Return the class that ``words`` name."""
        try:
            found = self._find(self._vertices, words, text, "label")
        except BindError as error:
            if error.message.startswith("unknown label") and self._has_some_below(words, text):
                hint = "only classes below it have vertices: connect(…, subclasses=True) finds these, too"
                raise BindError(error.message, text=text, position=words[0].span.start, hint=hint) from None
            raise
        return self._classes.get(found) or VertexLabel(ABSENT, words[0].text, 0)

    def _has_some_below(self, words: Sequence[Word], text: str) -> bool:
        """Whether a name that no vertex has is a class that others are below."""
        if len(words) == 2 and not words[0].is_iri:
            return self.expand(words[0], words[1], text) in self._above()
        return words[0].text in map(local_name, self._above())

    def under(self, label: int) -> tuple[int, ...]:
        """Return the labels that a vertex label stands for, itself first: more than one where subclasses are read."""
        return (label,) if self._hierarchy is None else self._hierarchy.under(label)

    def class_name(self, label: int) -> str:
        """Return the written name of a vertex label, one of a class without vertices included."""
        found = self._classes.get(label)
        return "a class without a name" if found is None else self.written(found.iri)

    def edge_name(self, label: int) -> str:
        """Return the written name of an edge label."""
        return self.spellings[label]

    def edge_label(self, words: Sequence[Word], text: str) -> EdgeLabel:
        """Return the edge label that ``words`` name."""
        found = self._find(self._edges, words, text, "edge label")
        return self.edge_labels.get(found) or EdgeLabel(ABSENT, words[0].text, *[0] * 8)

    @property
    def with_subclasses(self) -> bool:
        """Whether a vertex label stands for those below it too."""
        return self._hierarchy is not None

    def property(self, words: Sequence[Word], text: str) -> EdgeLabel:
        """Return the edge label with literal objects that ``words`` name as a property key."""
        try:
            found = self._find(self._properties, words, text, "property")
            if found != ABSENT or self._edges.by_iri.get(words[0].text) is None:
                return self.edge_labels.get(found) or EdgeLabel(ABSENT, words[0].text, *[0] * 8)
        except BindError as unknown:
            try:
                edge = self.edge_label(words, text)
            except BindError:
                raise unknown from None
        else:
            edge = self.edge_label(words, text)
        if self.open:
            return EdgeLabel(ABSENT, words[0].text, *[0] * 8)
        raise BindError(
            f"'{_spelt(words)}' is no property: all its values are vertices",
            text=text,
            position=words[0].span.start,
            hint=f"match it as an edge: (a)-[:{self.quoted(edge.iri)}]->(b)",
        )

    def property_with(self, iri: str) -> int | None:
        """Return the id of the property that has an IRI, where there is one."""
        return self._properties.by_iri.get(iri)

    def key(self, words: Sequence[Word], keys: Mapping[str, int], text: str) -> int:
        """Return the key of edges that ``words`` name, of those that edges have (by IRI), or else a property's.

        Raises
        ------
        BindError
            Several have a bare name; or none has it, and the names came with RDF: then it is a mistake.
        """
        if len(words) == 2:
            iri = self.expand(words[0], words[1], text)
        else:
            iri = words[0].text if words[0].is_iri else default_iri(words[0].text)
        found = keys.get(iri)
        if found is None and len(words) == 1 and not words[0].is_iri:
            several = [key for key in keys if local_name(key) == words[0].text]
            if len(several) > 1:
                raise self._ambiguous(words[0], several, text)
            found = keys[several[0]] if several else None
        if found is not None:
            return found
        try:
            return self.property(words, text).id
        except BindError as unknown:
            near = nearest(words[-1].text, map(local_name, keys), 1)
            if near:
                unknown = BindError(
                    unknown.message, text=text, position=words[0].span.start, hint=f"did you mean '{near[0]}'?"
                )
            raise unknown from None

    def chains(self, words: Sequence[Word]) -> list[Sequence[Word]]:
        """Split ``A:B:C`` into names: a declared prefix takes the word after it."""
        names: list[Sequence[Word]] = []
        at = 0
        while at < len(words):
            pair = (
                at + 1 < len(words)
                and not words[at].is_iri
                and not words[at + 1].is_iri
                and words[at].text in self.prefixes
            )
            names.append(words[at : at + 2] if pair else words[at : at + 1])
            at += 2 if pair else 1
        return names

    def written(self, iri: str) -> str:
        """Return ``iri`` as a user would write it: bare in the default namespace, prefixed, else the IRI."""
        if iri.startswith(DEFAULT_NAMESPACE):
            return default_name(iri)
        for namespace, prefix in self._namespaces:
            if iri.startswith(namespace) and _PLAIN.match(iri, len(namespace)):
                return f"{prefix}:{iri[len(namespace) :]}"
        return iri

    def quoted(self, iri: str) -> str:
        """Return ``iri`` so that it can stand in a statement."""
        short = self.written(iri)
        if short != iri:
            return short
        return f"<{iri}>"

    def edge_in_pattern(self, label: int) -> str:
        """Return an edge label as a pattern can have it: the shortest way to write it that means no other."""
        return self._in_pattern(self._edges, label)

    def vertex_in_pattern(self, label: int) -> str:
        """Return a vertex label as a pattern can have it: the shortest way to write it that means no other."""
        return self._in_pattern(self._vertices, label)

    def _in_pattern(self, index: _Index, id: int) -> str:
        iri = index.iris[id]
        if iri.startswith(DEFAULT_NAMESPACE):
            name = default_name(iri)
            return name if _PLAIN.match(name) else "`" + name.replace("`", "``") + "`"
        local = local_name(iri)
        if _PLAIN.match(local) and local not in index.by_name and index.by_local[local] == [id]:
            return local
        return self.quoted(iri)

    def _find(self, index: _Index, words: Sequence[Word], text: str, what: str) -> int:
        position = words[0].span.start
        if len(words) == 2 and not words[0].is_iri:
            iri = self.expand(words[0], words[1], text)
            found = index.by_iri.get(iri)
            if found is None and self.open:
                return ABSENT
            if found is None:
                raise BindError(
                    f"unknown {what} '{_spelt(words)}' (<{iri}>)",
                    text=text,
                    position=position,
                    hint=self._suggest(index, words[1].text),
                )
            return found
        word = words[0]
        if word.is_iri:
            # A full IRI cannot be a slip of memory, and data that has none of it is no mistake: it matches nothing.
            return index.by_iri.get(word.text, ABSENT)
        default = index.by_name.get(word.text)
        if default is not None:
            if self._thorough and len(index.by_local[local_name(index.iris[default])]) > 1:
                raise self._shadowing(index, word, default, text)
            return default
        several = index.by_local.get(word.text, [])
        if not several and self.open:
            return ABSENT
        if not several:
            quoted = word.text.partition(":")[0] in self.prefixes and ":" in word.text
            hint = f"without back-quotes: {word.text}" if quoted else self._suggest(index, word.text)
            raise BindError(f"unknown {what} '{word.text}'", text=text, position=position, hint=hint)
        if len(several) > 1:
            raise self._ambiguous(word, [index.iris[i] for i in several], text)
        return several[0]

    def _shadowing(self, index: _Index, word: Word, own: int, text: str) -> BindError:
        others = sorted(index.iris[id] for id in index.by_local[local_name(index.iris[own])] if id != own)
        return BindError(
            f"'{word.text}' is the name that tables and CREATE made, not what was loaded as RDF",
            text=text,
            position=word.span.start,
            hint="for that write " + " or ".join(self.quoted(iri) for iri in others[:3]),
        )

    def _ambiguous(self, word: Word, iris: list[str], text: str) -> BindError:
        return BindError(
            f"'{word.text}' is ambiguous: {len(iris)} IRIs have that local name",
            text=text,
            position=word.span.start,
            hint="write one of " + ", ".join(self.quoted(iri) for iri in sorted(iris)[:5]),
        )

    def expand(self, prefix: Word, local: Word, text: str) -> str:
        """Return the IRI of a prefixed name."""
        namespace = self.prefixes.get(prefix.text)
        if namespace is None:
            near = nearest(prefix.text, self.prefixes)
            hint = (
                f"did you mean '{near[0]}:{local.text}'?" if near else f"declare it: PREFIX {prefix.text}: <http://…>"
            )
            raise BindError(f"unknown prefix '{prefix.text}'", text=text, position=prefix.span.start, hint=hint)
        return namespace + local.text

    def _suggest(self, index: _Index, name: str) -> str | None:
        near = nearest(name, index.by_local)
        if near:
            return "did you mean " + " or ".join(f"'{n}'" for n in near) + "?"
        if not index.iris:
            return "the database has none: LOAD some data first"
        return None


class _Index:
    """IRIs and their local names to ids."""

    def __init__(self, pairs: Iterable[tuple[str, int]]) -> None:
        self.by_iri: dict[str, int] = {}
        self.iris: dict[int, str] = {}
        self.by_local: dict[str, list[int]] = {}
        self.by_name: dict[str, int] = {}
        """Those of the default namespace."""
        for iri, id in pairs:
            if iri.startswith(DEFAULT_NAMESPACE):
                self.by_name[default_name(iri)] = id
            self.by_iri[iri] = id
            self.iris[id] = iri
            self.by_local.setdefault(local_name(iri), []).append(id)


def _spelt(words: Sequence[Word]) -> str:
    return ":".join(word.text for word in words)
