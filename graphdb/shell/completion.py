"""What can be written next: keywords, the names a database knows, and the shell's own commands.

Names are read from the database by :meth:`Names.read`, which the shell calls away from the prompt; completing itself
asks no one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from graphdb.functions.table import NAMES
from graphdb.shell.highlighting import KEYWORDS
from graphdb.shell.overview import short_names

if TYPE_CHECKING:
    from graphdb.database import Database

_WORD = re.compile(r"[^\W\d]\w*$|(?<=[:.])$|\.\w*$")
_OPENING = re.compile(r"[(\[{)\]}]")
_TABLE_FOLLOWS = re.compile(r"\b(?:FROM|JOIN|INTO|TABLE|DESCRIBE|UPDATE)\s+\w*$", re.IGNORECASE)
_CALL_FOLLOWS = re.compile(r"\bCALL\s+([\w.]*)$", re.IGNORECASE)
_KEY_FOLLOWS = re.compile(r"[^\W\d]\w*\.\w*$")


@dataclass(frozen=True, slots=True)
class Names:
    """The names that a database knows, as they are written in a statement."""

    vertex_labels: tuple[str, ...] = ()
    edge_labels: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    procedures: tuple[str, ...] = ()

    @classmethod
    def read(cls, database: Database) -> Names:
        """Ask the database for its names."""
        return cls(
            tuple(short_names(name for name, _ in database.vertex_labels()).values()),
            tuple(short_names(label.iri for label in database.edge_labels()).values()),
            tuple(database.prefixes()),
            tuple(database.tables()),
            tuple(signature.partition("(")[0] for signature in database.procedures()),
        )


class PatternCompleter(Completer):
    """Completes statements from :attr:`names`, which its owner replaces when the database changes."""

    def __init__(self, dot_commands: dict[str, tuple[str, ...]]) -> None:
        """``dot_commands`` maps each command to the arguments it may take; ``("FILE",)`` stands for a path."""
        self.names = Names()
        self._dot_commands = dot_commands
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield what can follow the text before the cursor."""
        before = document.text_before_cursor
        if before.startswith("."):
            yield from self._dot_command(before, complete_event)
            return
        called = _CALL_FOLLOWS.search(before)
        if called is not None:
            for name in self.names.procedures:
                if name.lower().startswith(called[1].lower()) and name != called[1]:
                    yield Completion(name, -len(called[1]), display_meta="procedure")
            return
        found = _WORD.search(before)
        word = found.group().lstrip(".") if found else ""
        for kind, candidates in self._candidates(before, word):
            for candidate in candidates:
                if candidate.lower().startswith(word.lower()) and candidate != word:
                    yield Completion(candidate, -len(word), display_meta=kind)

    def _candidates(self, before: str, word: str) -> Iterator[tuple[str, Iterable[str]]]:
        """Yield kinds of names that can stand at the cursor, the likeliest first."""
        names, opened = self.names, _innermost(before)
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

    def _dot_command(self, before: str, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield dot commands, then their arguments."""
        command, space, argument = before.partition(" ")
        if not space:
            yield from (Completion(name, -len(command)) for name in self._dot_commands if name.startswith(command))
            return
        choices = self._dot_commands.get(command, ())
        if choices == ("FILE",):
            yield from self._paths.get_completions(Document(argument), complete_event)
        else:
            yield from (Completion(choice, -len(argument)) for choice in choices if choice.startswith(argument))


def _innermost(before: str) -> str:
    """Return the innermost bracket that is open at the end of the text, or an empty string."""
    depth = 0
    for found in reversed(list(_OPENING.finditer(before))):
        depth += 1 if found.group() in ")]}" else -1
        if depth < 0:
            return found.group()
    return ""
