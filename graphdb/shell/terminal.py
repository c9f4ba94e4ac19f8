"""The terminal: the line of long statements, the history of what was typed, errors in red; lines of scripts."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from graphdb.common import compiling, render
from graphdb.common.errors import GraphDBError

PROMPT, CONTINUATION = "graphdb> ", "     ...> "

_NO_CHARACTER = re.compile("[\udc80-\udcff]")
"""A byte that is no UTF-8, as ``surrogateescape`` has it."""


class Status:
    """A line that says that a long statement still runs; it disappears when the statement ends."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._start = time.perf_counter()
        self._said = False
        self._far = ""

    def hear(self, done: float, total: float, triples: int, phase: str) -> None:
        """Hear how far a load or a query is."""
        seconds = max(time.perf_counter() - self._start, 1e-9)
        parts = [f"{done / total:.0%}"] if total else []
        parts += [f"{triples:,} triples", f"{triples / seconds:,.0f}/s"] if triples else []
        parts += [f"{render.duration(seconds * (total - done) / done)} left"] if 0 < done < total else []
        self._far = f"{phase}: {', '.join(parts)}; "

    def tick(self) -> None:
        """Show or update the line."""
        seconds = time.perf_counter() - self._start
        if self._stream is None or seconds < 0.5:
            return
        if not self._said:
            compiling.tell_by(lambda text: None)  # this line says it
        self._said = True
        kernel = compiling.now()
        self._what = f"compiling {kernel} (once for this machine)" if kernel else "running"
        print(
            f"\r\x1b[2m{self._far or self._what + '… '}{seconds:.1f} s, Ctrl-C stops it\x1b[0m\x1b[K",
            end="",
            file=self._stream,
            flush=True,
        )

    def clear(self) -> None:
        """Take the line away."""
        if self._stream is not None and self._said:
            print("\r\x1b[K", end="", file=self._stream, flush=True)


def history_file() -> Path | None:
    """Return the file of the shell's history in the user's state folder, or None if there cannot be one."""
    try:
        state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "graphdb"
        state.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return state / "history" if os.access(state, os.W_OK) else None


def complain(message: str, stream: TextIO) -> None:
    """Print an error, in red where a terminal shows it and ``NO_COLOR`` is not set."""
    colour = stream.isatty() and not os.environ.get("NO_COLOR")
    print(f"\x1b[31m{message}\x1b[0m" if colour else message, file=stream, flush=True)


def script_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a script, which were read as UTF-8 with ``surrogateescape``, without a byte order mark.

    Raises
    ------
    GraphDBError
        One is no UTF-8.
    """
    for number, line in enumerate(lines, 1):
        if (found := _NO_CHARACTER.search(line)) is not None:
            where = f"line {number}, column {found.start() + 1}"
            raise GraphDBError(f"what is read is not UTF-8 ({where})", hint="convert it to UTF-8")
        yield line.removeprefix("\ufeff") if number == 1 else line
