"""Progress of a load or a query: reported to a function of the caller's, or shown as a bar.

The caller gives a function of four arguments (:data:`Progress`); it is called some times a second, by the thread that
runs the statement.  On a terminal the bar is Rich's and goes when it is done; in a notebook it is HTML that needs no
widgets and stays, in the saved notebook too; where there is neither, nothing is shown.
"""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from graphdb.common.arguments import brief
from graphdb.common.errors import ParameterError
from graphdb.common.render import duration

if TYPE_CHECKING:
    from rich.console import Console

Progress = Callable[[float, float, int, str], None]
"""Called with what is done, what there is in all (bytes of files in a load, a share of 1 in a query; 0 where nobody
knows), the triples read so far, and what is being done."""

CALLERS_OWN = "__graphdb_callers_own__"
"""The attribute of errors that a function of the caller's raised."""

DELAY = 0.5
"""Seconds after which a bar appears: what is done by then needs none."""

_STROKE = 0.2
"""Seconds between two looks of a bar in a notebook."""


def progress_of(given: Progress | bool | None) -> Progress | bool | None:
    """Return what a caller gave as ``progress``.

    Raises
    ------
    ParameterError
        It is no function, nor True, False or None.
    """
    if given is None or isinstance(given, bool) or callable(given):
        return given
    raise ParameterError(f"progress is True, False or a function, found {brief(given)}")


def watching(progress: Progress | bool | None) -> AbstractContextManager[Progress | None]:
    """What reports progress while a statement runs: the given function; with True a bar; else nothing.

    Raises
    ------
    ParameterError
        It is none of these.
    """
    if callable(progress := progress_of(progress)):
        return nullcontext(_marking(progress))
    return bar() if progress else nullcontext(None)


def _marking(progress: Progress) -> Progress:
    """Return a caller's function whose errors say that they are the caller's: they leave the package as they are."""

    def report(done: float, total: float, triples: int, phase: str) -> None:
        try:
            progress(done, total, triples, phase)
        except Exception as error:
            setattr(error, CALLERS_OWN, True)
            raise

    return report


@contextmanager
def bar(delay: float = DELAY, console: Console | None = None) -> Iterator[Progress | None]:
    """Show a bar as long as this lasts; yields what to call, or None where there is no terminal and no notebook."""
    if console is None and not sys.stderr.isatty() and not _in_notebook():
        yield None
        return
    shown = _Cell(delay) if console is None and _in_notebook() else _Bar(delay, console)
    try:
        yield shown.report
    except BaseException:
        shown.close(done=False)
        raise
    shown.close(done=True)


def _in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    kernel = sys.modules.get("IPython")
    shell: Any = kernel.get_ipython() if kernel is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class _Bar:
    """A bar that appears when it is worth it."""

    def __init__(self, delay: float, console: Console | None) -> None:
        self._start = time.perf_counter()
        self._delay = delay
        self._console = console
        self._rich: Any = None
        self._task: Any = None

    def report(self, done: float, total: float, triples: int, phase: str) -> None:
        """Receive a report."""
        seconds = time.perf_counter() - self._start
        if self._rich is None:
            if seconds < self._delay:
                return
            self._open(load=total != 1)
        numbers = f"{triples:,} triples, {triples / max(seconds, 1e-9):,.0f}/s" if triples else ""
        self._rich.update(self._task, completed=done, total=total or None, description=phase, numbers=numbers)

    def close(self, *, done: bool) -> None:
        """Take the bar away, done or not."""
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


class _Cell:
    """A bar in the output of a notebook's cell, which appears when it is worth it."""

    def __init__(self, delay: float) -> None:
        self._start = time.perf_counter()
        self._delay = delay
        self._drawn = 0.0
        self._handle: Any = None
        self._last: tuple[float, float, int, str] = 0.0, 0.0, 0, ""

    def report(self, done: float, total: float, triples: int, phase: str) -> None:
        """Receive a report."""
        now = time.perf_counter()
        self._last = done, total, triples, phase
        if now - self._start >= self._delay and now - self._drawn >= _STROKE:
            self._drawn = now
            share = done / total if total else None
            left = f", {duration((now - self._start) * (total - done) / done)} left" if share else ""
            parts = [
                phase,
                f"{share:.0%}" if share is not None else "",
                *_numbers(*self._last[:3], now - self._start),
            ]
            self._draw(share, ", ".join(filter(None, parts)) + left)

    def close(self, *, done: bool) -> None:
        """Say that it is done, or where it stopped."""
        if self._handle is None:
            return
        seconds = time.perf_counter() - self._start
        at, total, triples, phase = self._last
        share = 1.0 if done else at / total if total else None
        said = f"done in {duration(seconds)}" if done else f"stopped after {duration(seconds)} ({phase})"
        self._draw(share, ", ".join((said, *_numbers(total if done else at, total, triples, seconds))))

    def _draw(self, share: float | None, text: str) -> None:
        from IPython.display import display

        value = f' value="{share:.4f}"' if share is not None else ""
        words = html.escape(text)
        shown = {"text/html": f'<progress{value} max="1"></progress> <code>{words}</code>', "text/plain": text}
        if self._handle is None:
            self._handle = display(shown, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(shown, raw=True)


def _numbers(done: float, total: float, triples: int, seconds: float) -> list[str]:
    """Bytes (a query has none), triples and their rate."""
    sizes = [f"{done / 1e6:,.1f}/{total / 1e6:,.1f} MB"] if total > 1 else []
    rate = triples / max(seconds, 1e-9)
    return sizes + ([f"{triples:,} triples, {rate:,.0f}/s"] if triples else [])
