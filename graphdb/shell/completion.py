"""Completion at the prompt: statements, and the shell's own commands.

Names are read by :meth:`Names.read`, which the shell calls away from the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from graphdb.dispatch.completion import Names, suggestions

__all__ = ["Names", "PatternCompleter"]

_FILE = re.compile(r"(?:\bLOAD\b[^;]*|\bFROM\s*|\bTO\s*|\bread_\w+\(\s*)'([^']*)$", re.IGNORECASE)
"""A text that is a file's name, so far: after LOAD, in COPY, and what DuckDB reads."""


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
        file = _FILE.search(before)
        if file is not None and before.count("'", 0, file.start(1) - 1) % 2 == 0:  # the quote opens a text
            yield from self._paths.get_completions(Document(file[1]), complete_event)
            return
        for found in suggestions(before, self.names):
            yield Completion(found.text, -found.length, display_meta=found.kind)

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
