"""Interrupts at chosen lines, and at chosen calls of DuckDB, as Ctrl-C comes at any."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import graphdb


def interrupted(run: Callable[[], object], at: int, files: tuple[str, ...]) -> KeyboardInterrupt | None:
    """Run with an interrupt at the given line, counted, of files that end so; return it, with its frames, if it came.

    Not in what finalizers call (``_release``): Python drops what is raised there.  Nor where a ``with`` is left: a
    signal comes after a call, and from the last one within until the call that leaves it there is none.
    """
    left = at

    def lines() -> Callable[[Any, str, object], Any]:
        """What sees the lines of one call."""
        came_from = 0

        def line(frame: Any, event: str, argument: object) -> Any:
            nonlocal left, came_from
            if event == "line":
                before, came_from = came_from, frame.f_lineno
                text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
                if not (text.startswith("with ") and before > frame.f_lineno):
                    left -= 1
                    if left == -1:
                        raise KeyboardInterrupt
            return line

        return line

    def called(frame: Any, event: str, argument: object) -> Any:
        code = frame.f_code
        return lines() if code.co_filename.endswith(files) and code.co_name != "_release" else None

    sys.settrace(called)
    try:
        run()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(None)
    return None


class Interrupting:
    """DuckDB's connection of a database, which interrupts one of its calls, as Ctrl-C comes before it or after it."""

    CALLS = frozenset(["execute", "executemany", "sql", "register", "unregister", "commit", "rollback", "cursor"])

    def __init__(self, db: graphdb.Database) -> None:
        connection = db._state.connection
        self._raw: Any = connection.raw
        self._left, self._after = -1, False
        self.came = False
        """Whether the interrupt came."""
        self.calls = 0
        """How many there were."""
        connection.raw = self  # type: ignore[assignment]
        connection.transactions._connection = connection.windows._raw = self  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._raw, name)
        return partial(self._call, found) if name in self.CALLS else found

    def _call(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        self._left -= 1
        self.calls += 1
        if self._left != -1:
            return call(*arguments, **named)
        self.came = True
        if self._after:
            call(*arguments, **named)
        raise KeyboardInterrupt

    def run(self, run: Callable[[], object], at: int, after: bool) -> bool:
        """Run with an interrupt at a call, counted from 0; return whether it came."""
        self._left, self._after, self.came = at + 1, after, False
        with suppress(KeyboardInterrupt):
            run()
        self._left = -1
        return self.came
