"""What can be written next in a statement: keywords, functions, and the names that a database knows.

Names are read from the database by :meth:`Names.read`; completing itself asks no one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from graphdb.common.values.terms import RDF_TYPE
from graphdb.functions.table import NAMES

if TYPE_CHECKING:
    from graphdb.storage.catalog import EdgeLabel

KEYWORDS = tuple(
    """ACYCLIC ALL AND ANY AS ASC BEGIN BY CALL CASE CLIQUES COMMIT CONTAINS CONTINUOUS COST COUNT CREATE DELETE DESC
    DESCRIBE DETACH DIFFERENT DISTINCT DROP EDGES ELEMENTS ELSE END ENDS EXISTS EXPLAIN FALSE FOREACH FORMAT
    FREQUENT FROM GROUP HAVING IN INDUCED INSERT INTO IS JOIN LEFT LIMIT LOAD MATCH MERGE MINE MOTIFS NODES NOT NULL
    OFFSET ON OPTIONAL OR ORDER PATTERNS PREFIX PROFILE QUERIES QUERY REMOVE REPEATABLE REPLACE RETURN ROLLBACK
    SELECT SET SHORTEST SHOW SIMPLE SKIP STARTS TABLE TEMP THEN TRAIL TRUE UNION UNWIND UPDATE USING VACUUM VALUES
    VIEW WALK WHEN WHERE WITH XOR YIELD""".split()
)
"""Words of the language, and of SQL beside it."""

_LOCAL = re.compile(r"[^\W\d]\w*$")
_WORD = re.compile(r"[^\W\d]\w*$|(?<=[:.])$|\.\w*$")
_OPENING = re.compile(r"[(\[{)\]}]")
_TABLE_FOLLOWS = re.compile(r"\b(?:FROM|JOIN|INTO|TABLE|DESCRIBE|UPDATE)\s+\w*$", re.IGNORECASE)
_CALL_FOLLOWS = re.compile(r"\bCALL\s+([\w.]*)$", re.IGNORECASE)
_KEY_FOLLOWS = re.compile(r"([^\W\d]\w*)\.\w*$")
_LABELS = r"(?:\s*:(?P<labels>[^(){}\[\]]*))?"
_ELEMENT = re.compile(rf"(?P<bracket>[(\[])\s*\w*{_LABELS}\s*$")
_ELEMENT_OF = re.compile(rf"(?P<bracket>[(\[])\s*(?P<variable>[^\W\d]\w*){_LABELS}")
"""The beginnings of vertices and edges in a pattern: what opens them, their variable, and what stands after a colon."""
_LABEL = re.compile(r"<[^<>\s]*>|`[^`]*`|[^\W\d][\w:]*")
_SQL = re.compile(r"\s*(?:SELECT|FROM|WITH|INSERT|UPDATE|DELETE|COPY|SUMMARIZE|PIVOT)\b(?!.*\bMATCH\b)", re.I | re.S)
_TABLE_NAMED = re.compile(
    r"\b(?:FROM|JOIN|UPDATE|INTO)\s+(?P<table>[^\W\d]\w*)(?:\s+(?:AS\s+)?"
    r"(?P<alias>(?!(?:WHERE|JOIN|ON|USING|GROUP|ORDER|LIMIT|SET|LEFT|INNER|CROSS)\b)[^\W\d]\w*))?",
    re.I,
)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Map IRIs (or prefixed names) to the shortest that a statement may say: bare where no other has that local name.

    >>> short_names(["http://a.org/name", "http://b.org/name", "http://b.org/age"])
    {'http://a.org/name': '<http://a.org/name>', 'http://b.org/name': '<http://b.org/name>', 'http://b.org/age': 'age'}
    """
    local = {name: found.group() if (found := _LOCAL.search(name)) else "" for name in names}
    uses = Counter(local.values())
    return {name: bare if bare and uses[bare] == 1 else _whole(name) for name, bare in local.items()}


def _whole(name: str) -> str:
    """Return a name as a statement takes it: an IRI in angle brackets."""
    return f"<{name}>" if "://" in name or name.startswith("urn:") else name


class Holder(Protocol):
    """An open database, as far as it says what it holds."""

    def vertex_labels(self) -> list[tuple[str, int]]:
        """Return the vertex labels with their numbers of vertices."""

    def edge_labels(self) -> list[EdgeLabel]:
        """Return the edge labels and property keys."""

    def keys_of_labels(self) -> dict[str, list[str]]:
        """Return the IRIs of what leads from the vertices of a label."""

    def edge_keys(self) -> list[str]:
        """Return the IRIs of the keys of edges' properties."""

    def prefixes(self) -> dict[str, str]:
        """Return the declared prefixes."""

    def columns(self) -> dict[str, list[str]]:
        """Return the columns of the tables and views."""

    def procedures(self) -> list[str]:
        """Return the signatures of procedures."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a database knows, as they are written in a statement."""

    vertex_labels: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    """Labels of edges between vertices."""
    keys: tuple[str, ...] = ()
    """Keys of vertices' properties."""
    keys_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Those of the vertices of a label, where that is known."""
    edge_keys: tuple[str, ...] = ()
    """Keys of edges' properties."""
    prefixes: tuple[str, ...] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns of each table and view."""
    procedures: tuple[str, ...] = ()

    @classmethod
    def read(cls, database: Holder) -> Names:
        """Ask the database for its names."""
        labels = short_names(name for name, _ in database.vertex_labels())
        edges = database.edge_labels()
        written = short_names(label.iri for label in edges)
        keys = {label.iri for label in edges if label.triples > label.resource_triples}
        leading = database.keys_of_labels()
        return cls(
            tuple(labels.values()),
            tuple(written[each.iri] for each in edges if each.resource_triples and each.iri != RDF_TYPE),
            tuple(written[each.iri] for each in edges if each.iri in keys),
            {
                labels[label]: tuple(written[iri] for iri in written if iri in found and iri in keys)
                for label, found in leading.items()
                if label in labels
            },
            tuple(short_names(database.edge_keys()).values()),
            tuple(database.prefixes()),
            {table: tuple(columns) for table, columns in sorted(database.columns().items())},
            tuple(signature.partition("(")[0] for signature in database.procedures()),
        )

    def keys_for(self, labels: Iterable[str]) -> tuple[str, ...]:
        """Return the keys of vertices that have one of some labels; all where no label is known."""
        found = {key for label in labels for key in self.keys_of.get(label, ())}
        return tuple(key for key in self.keys if key in found) if found else self.keys


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A text that can stand in the place of the last ``length`` characters, and what it is."""

    text: str
    length: int
    kind: str


def suggestions(before: str, names: Names) -> Iterator[Suggestion]:
    """Yield what can follow the text before a cursor, the likeliest first.

    >>> [each.text for each in suggestions("MATCH (p:Pe", Names(vertex_labels=("Person", "City")))]
    ['Person']
    """
    called = _CALL_FOLLOWS.search(before)
    if called is not None:
        for name in names.procedures:
            if name.lower().startswith(called[1].lower()) and name != called[1]:
                yield Suggestion(name, len(called[1]), "procedure")
        return
    found = _WORD.search(before)
    word = found.group().lstrip(".") if found else ""
    for kind, candidates in _candidates(before, word, names):
        for candidate in candidates:
            if candidate.lower().startswith(word.lower()) and candidate != word:
                yield Suggestion(candidate, len(word), kind)


def _candidates(before: str, word: str, names: Names) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield kinds of names that can stand at the cursor."""
    opened, at = _innermost(before)
    start = before[: len(before) - len(word)].rstrip(" !")
    after_colon = start.endswith((":", "|", "&"))
    if opened == "(" and after_colon:
        yield "label", names.vertex_labels
        yield "prefix", [prefix + ":" for prefix in names.prefixes]
    elif opened == "[" and after_colon:
        yield "type", names.types
        yield "prefix", [prefix + ":" for prefix in names.prefixes]
    elif opened == "{" and not after_colon and (around := _element(before[:at])) is not None:
        yield "property", _keys(*around, names)
    elif (accessed := _KEY_FOLLOWS.search(before)) is not None:
        yield from _members(before, accessed[1], names)
    elif _TABLE_FOLLOWS.search(before):
        yield "table", names.columns
    elif word:
        if _SQL.match(before) is not None:
            yield "column", _columns(before, names)
        yield "keyword", [keyword.lower() if word.islower() else keyword for keyword in KEYWORDS]
        yield "function", NAMES
        yield "table", names.columns


def _element(before: str) -> tuple[str, str] | None:
    """Return the bracket of the vertex or edge whose properties are opened after a text, and its labels."""
    found = _ELEMENT.search(before)
    return None if found is None else (found["bracket"], found["labels"] or "")


def _members(before: str, variable: str, names: Names) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield what can follow a variable and a dot: by what the text says of it."""
    said = [found for found in _ELEMENT_OF.finditer(before) if found["variable"] == variable]
    if said:
        labels = " ".join(found["labels"] or "" for found in said)
        yield "property", _keys(said[0]["bracket"], labels, names)
        return
    tables = [table for table, alias in _named_tables(before, names) if alias.lower() == variable.lower()]
    if tables:
        yield "column", [column for table in tables for column in names.columns[table]]
    elif _SQL.match(before) is None:
        yield "property", [*names.keys, *names.edge_keys]


def _keys(bracket: str, labels: str, names: Names) -> Iterable[str]:
    """Return the keys of an element: of a vertex by its labels, of which a text is given."""
    return names.edge_keys if bracket == "[" else names.keys_for(_LABEL.findall(labels))


def _columns(before: str, names: Names) -> Iterable[str]:
    """Return the columns of the tables that SQL has named so far; of all where it has named none."""
    tables = [table for table, _ in _named_tables(before, names)] or list(names.columns)
    return dict.fromkeys(column for table in tables for column in names.columns[table])


def _named_tables(before: str, names: Names) -> Iterator[tuple[str, str]]:
    """Yield the tables that SQL names, each by its alias and by its name."""
    known = {table.lower(): table for table in names.columns}
    for found in _TABLE_NAMED.finditer(before):
        table = known.get(found["table"].lower())
        if table is not None:
            yield table, table
            if found["alias"] is not None:
                yield table, found["alias"]


def _innermost(before: str) -> tuple[str, int]:
    """Return the innermost bracket that is open at the end of the text, or an empty string, and where it stands."""
    depth = 0
    for found in reversed(list(_OPENING.finditer(before))):
        depth += 1 if found.group() in ")]}" else -1
        if depth < 0:
            return found.group(), found.start()
    return "", 0
