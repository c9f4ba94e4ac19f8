"""How far a load or a query is: told to whoever asks, or shown as a bar on a terminal and in a notebook.

Whoever asks gives a function of four arguments (:data:`Progress`); it is called some times a second, by the thread that
runs the statement.  A bar is Rich's, which knows terminals and notebooks; where there is neither, nothing is shown.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

Progress = Callable[[float, float, int, str], None]
"""Called with what is done, what there is in all (bytes of files in a load, a share of 1 in a query; 0 where nobody
knows), the triples read so far, and what is being done."""

PATIENCE = 0.5
"""Seconds after which a bar appears: what is done by then needs none."""


def watching(progress: Progress | bool | None) -> AbstractContextManager[Progress | None]:
    """Whom to tell while a statement runs: the given function; with True a bar; else nobody."""
    if callable(progress):
        return nullcontext(progress)
    return bar() if progress else nullcontext(None)


@contextmanager
def bar(patience: float = PATIENCE, console: Console | None = None) -> Iterator[Progress | None]:
    """Show a bar as long as this lasts; yields what to call, or None where nobody would see it."""
    if console is None and not sys.stderr.isatty() and not _in_notebook():
        yield None
        return
    shown = _Bar(patience, console)
    try:
        yield shown.tell
    finally:
        shown.close()


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    kernel = sys.modules.get("IPython")
    shell: Any = kernel.get_ipython() if kernel is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class _Bar:
    """A bar that appears when it is worth it."""

    def __init__(self, patience: float, console: Console | None) -> None:
        self._start = time.perf_counter()
        self._patience = patience
        self._console = console
        self._rich: Any = None
        self._task: Any = None

    def tell(self, done: float, total: float, triples: int, phase: str) -> None:
        """Hear how far it is."""
        seconds = time.perf_counter() - self._start
        if self._rich is None:
            if seconds < self._patience:
                return
            self._open(load=total != 1)
        numbers = f"{triples:,} triples, {triples / max(seconds, 1e-9):,.0f}/s" if triples else ""
        self._rich.update(self._task, completed=done, total=total or None, description=phase, numbers=numbers)

    def close(self) -> None:
        """Take the bar away."""
        if self._rich is not None:
            self._rich.stop()

    def _open(self, load: bool) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            ProgressColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as Rich

        sizes: list[ProgressColumn] = [DownloadColumn(), TransferSpeedColumn()] if load else [TaskProgressColumn()]
        columns = [TextColumn("{task.description}"), BarColumn(), *sizes, TimeRemainingColumn()]
        console = self._console or Console(stderr=True)
        self._rich = Rich(*columns, TextColumn("{task.fields[numbers]}"), console=console, transient=True)
        self._rich.start()
        self._task = self._rich.add_task("", total=None, numbers="")
