"""The prompt: history, completion, colours, and Enter that ends a complete statement only."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output

from graphdb.shell.completion import PatternCompleter
from graphdb.shell.highlighting import PatternLexer
from graphdb.shell.terminal import CONTINUATION, PROMPT, history_file


def session(
    completer: PatternCompleter, ends: Callable[[str], bool], input: Input | None, output: Output | None
) -> PromptSession[str]:
    """Return a prompt on ``input`` and ``output`` (by default the terminal).

    ``ends`` says whether Enter ends what was typed, rather than starting its next line.
    """
    keys = KeyBindings()

    @keys.add("enter", filter=~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        if ends(event.current_buffer.text):
            event.current_buffer.validate_and_handle()
        else:
            event.current_buffer.insert_text("\n")

    path = history_file()
    history: History = FileHistory(path) if path else InMemoryHistory()
    return PromptSession(
        PROMPT,
        history=history,
        completer=completer,
        complete_while_typing=False,
        lexer=PygmentsLexer(PatternLexer),
        multiline=True,
        prompt_continuation=CONTINUATION,
        key_bindings=keys,
        input=input,
        output=output,
    )
