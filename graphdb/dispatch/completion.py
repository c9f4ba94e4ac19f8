"""What can be written next in a statement: keywords, functions, and the names that a database knows.

Names are read from the database by :meth:`Names.read`; completing itself asks no one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from graphdb.functions.table import NAMES

if TYPE_CHECKING:
    from graphdb.storage.catalog import EdgeLabel

KEYWORDS = tuple(
    """ALL AND ANY AS ASC BY CASE CONTAINS COUNT CREATE DELETE DESC DESCRIBE DIFFERENT DISTINCT DROP EDGES ELEMENTS
    ELSE END ENDS EXISTS EXPLAIN FALSE FROM FORMAT GROUP HAVING IN INDUCED INSERT INTO IS JOIN LEFT LIMIT LOAD
    MATCH MERGE NODES NOT NULL ON OPTIONAL OR ORDER PREFIX PROFILE REMOVE REPEATABLE REPLACE RETURN SELECT SET
    SHORTEST SKIP STARTS TABLE TEMP THEN TRUE UNION UNWIND UPDATE USING VALUES VIEW WHEN WHERE WITH XOR""".split()
)
"""Words of the language, and of SQL beside it."""

_LOCAL = re.compile(r"[^\W\d]\w*$")
_WORD = re.compile(r"[^\W\d]\w*$|(?<=[:.])$|\.\w*$")
_OPENING = re.compile(r"[(\[{)\]}]")
_TABLE_FOLLOWS = re.compile(r"\b(?:FROM|JOIN|INTO|TABLE|DESCRIBE|UPDATE)\s+\w*$", re.IGNORECASE)
_CALL_FOLLOWS = re.compile(r"\bCALL\s+([\w.]*)$", re.IGNORECASE)
_KEY_FOLLOWS = re.compile(r"[^\W\d]\w*\.\w*$")


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

    def prefixes(self) -> dict[str, str]:
        """Return the declared prefixes."""

    def tables(self) -> list[str]:
        """Return the tables and views."""

    def procedures(self) -> list[str]:
        """Return the signatures of procedures."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a database knows, as they are written in a statement."""

    vertex_labels: tuple[str, ...] = ()
    edge_labels: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    procedures: tuple[str, ...] = ()

    @classmethod
    def read(cls, database: Holder) -> Names:
        """Ask the database for its names."""
        return cls(
            tuple(short_names(name for name, _ in database.vertex_labels()).values()),
            tuple(short_names(label.iri for label in database.edge_labels()).values()),
            tuple(database.prefixes()),
            tuple(database.tables()),
            tuple(signature.partition("(")[0] for signature in database.procedures()),
        )


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
    opened = _innermost(before)
    after_colon = before[: len(before) - len(word)].rstrip(" !").endswith((":", "|", "&"))
    if opened == "(" and after_colon:
        yield "label", names.vertex_labels
        yield "prefix", [prefix + ":" for prefix in names.prefixes]
    elif opened == "[" and after_colon:
        yield "edge label", names.edge_labels
        yield "prefix", [prefix + ":" for prefix in names.prefixes]
    elif opened == "{" or _KEY_FOLLOWS.search(before):
        yield "property", names.edge_labels
    elif _TABLE_FOLLOWS.search(before):
        yield "table", names.tables
    elif word:
        yield "keyword", [keyword.lower() if word.islower() else keyword for keyword in KEYWORDS]
        yield "function", NAMES
        yield "table", names.tables


def _innermost(before: str) -> str:
    """Return the innermost bracket that is open at the end of the text, or an empty string."""
    depth = 0
    for found in reversed(list(_OPENING.finditer(before))):
        depth += 1 if found.group() in ")]}" else -1
        if depth < 0:
            return found.group()
    return ""
