"""What the benchmarks share: engines in processes of their own, interleaved medians, aligned tables, geometric means.

Each engine (ours and its peers) lives in a child process: a cell that runs past its time limit is killed with its
process and the next cell starts a fresh one on the same files; memory is the child's own; Ctrl-C ends them all.
Times are taken inside the child around the call alone, so that no pipe is in them.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import multiprocessing
import os
import platform
import signal
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

LONG = 1.0
"""Seconds: a cell that takes longer is measured twice only."""

OPENING = 30.0
"""Seconds at least that a fresh process has to open what was loaded before."""

TURN = float(os.environ.get("BENCH_TURN", "0.005"))
"""Seconds: in its turn an engine is asked the same several times in a row up to so long, and the median counts.

A single call of 0.1 ms right after other engines had the cores measures how long its code takes to reach the caches;
``BENCH_TURN=0`` measures that.
"""
MOST_IN_TURN = 20

RATIO_FLOOR = 1e-6


class CannotExpress(Exception):
    """An engine has no way to say this query."""


class Engine(Protocol):
    """One engine in a child process: made once, then ``load`` or ``open`` on a folder of its own, then ``count``."""

    def load(self, source: Path, folder: Path) -> int:
        """Load a data set into a database in ``folder``; return the number of (distinct or read) triples."""

    def open(self, folder: Path) -> None:
        """Open what ``load`` left in ``folder``."""

    def count(self, query: Any) -> int:
        """Return the number of solutions; :class:`CannotExpress` where there is no way to ask."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gave: a value and its seconds, or why there is none (``trouble``)."""

    value: Any = None
    seconds: float = math.nan
    trouble: str = ""
    first: float = math.nan
    """Seconds of the first of several calls in one turn."""
    processor: float = math.nan
    """Seconds of the processor that all threads of the engine's process took for a call, the median like ``seconds``."""


clock = time.perf_counter
"""What the calls in a worker's process are measured by; ``time.process_time`` where a machine is shared."""


class Worker:
    """An engine in a process of its own; after a call that ran too long, the next call finds a fresh process."""

    def __init__(self, make: Callable[[], Engine]) -> None:
        self._make = make
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None
        self._folder: Path | None = None

    def load(self, source: Path, folder: Path, limit: float) -> Answer:
        """Load into ``folder``, and stay there: a fresh process opens it again."""
        answer = self._call("load", (source, folder), limit)
        self._folder = None if answer.trouble else folder
        return answer

    def reopen(self, folder: Path) -> None:
        """Use what an earlier ``load`` left in ``folder``."""
        self._folder = folder

    def count(self, query: Any, limit: float) -> Answer:
        """Count a query's solutions within ``limit`` seconds."""
        if self._process is None and self._folder is not None:
            opened = self._call("open", (self._folder,), max(limit, OPENING))
            if opened.trouble:
                return opened
        return self._call("count", (query,), limit)

    def peak_mb(self) -> float:
        """Return the child's peak resident memory in MB (10**6 bytes)."""
        return float(self._call("peak", (), 60).value or math.nan)

    def close(self) -> None:
        """End the process, at once."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

    def _call(self, name: str, arguments: tuple[Any, ...], limit: float) -> Answer:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, self._make), daemon=True)
            self._process.start()
            theirs.close()
            assert self._pipe.recv() == "ready"
        assert self._pipe is not None
        self._pipe.send((name, arguments))
        if not self._pipe.poll(limit):
            self.close()
            return Answer(seconds=limit, trouble=f"> {limit:g} s")
        try:
            answer: Answer = self._pipe.recv()
        except EOFError:
            self.close()
            return Answer(trouble="died")
        return answer


def _serve(pipe: Connection, make: Callable[[], Engine]) -> None:
    """The child: answers calls until its pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its children
    with contextlib.suppress(EOFError, BrokenPipeError):
        engine = make()
        pipe.send("ready")
        while True:
            name, arguments = pipe.recv()
            call = _peak_mb if name == "peak" else getattr(engine, name)
            try:
                value, *taken = _timed(call, arguments)
                seconds, processor = [taken[0]], [taken[1]]
                while name == "count" and sum(seconds) < TURN and len(seconds) < MOST_IN_TURN:
                    value, *taken = _timed(call, arguments)
                    seconds.append(taken[0])
                    processor.append(taken[1])
                pipe.send(Answer(value, statistics.median(seconds), "", seconds[0], statistics.median(processor)))
            except CannotExpress as reason:
                pipe.send(Answer(trouble=str(reason) or "cannot say it"))
            except Exception as error:
                if os.environ.get("BENCH_TRACE"):
                    traceback.print_exc()
                pipe.send(Answer(trouble=f"{type(error).__name__}: {error}".split("\n")[0][:60]))


def _timed(call: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, float, float]:
    """Return a call's value, its seconds by the clock and its seconds of the processor."""
    started, worked = clock(), time.process_time()
    value = call(*arguments)
    return value, clock() - started, time.process_time() - worked


def _peak_mb() -> float:
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage: its maximum is inherited from the parent.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


@dataclass(slots=True)
class Cell:
    """One engine's times (seconds) for one query."""

    seconds: list[float] = field(default_factory=list)
    value: Any = None
    trouble: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds) if self.seconds and not self.trouble else math.nan

    def text(self, unit: float = 1e3, digits: int = 1) -> str:
        """Return the median in milliseconds (or ``1/unit`` seconds), or the reason why there is none."""
        value = self.median * unit
        return self.trouble or f"{value:,.{digits if value >= 1 else digits + 2}f}"


def measure(
    workers: dict[str, Worker], query: Any, expected: int | None, repeat: int, limit: float, name: str = ""
) -> dict[str, Cell]:
    """Ask every engine once unmeasured, comparing counts, then ``repeat`` times in turns."""
    cells = {engine: Cell() for engine in workers}
    for engine, worker in workers.items():
        answer, cell = worker.count(query, limit), cells[engine]
        cell.trouble, cell.value = answer.trouble, answer.value
        if not answer.trouble and expected is not None and answer.value != expected:
            cell.trouble = f"WRONG {answer.value}"
            print(f"\n!!! WRONG COUNT: {engine} on {name}: {answer.value}, expected {expected} !!!", file=sys.stderr)
    for _ in range(repeat):
        for engine, worker in workers.items():
            cell = cells[engine]
            if not cell.trouble and not (cell.seconds and max(cell.seconds) > LONG and len(cell.seconds) > 1):
                answer = worker.count(query, limit)
                cell.trouble = answer.trouble
                cell.seconds.append(answer.seconds)
    return cells


def geomean(values: Sequence[float]) -> float:
    """Return the geometric mean of the numbers among ``values``; not a number where there is none."""
    known = [max(value, RATIO_FLOOR) for value in values if not math.isnan(value)]
    return math.exp(sum(map(math.log, known)) / len(known)) if known else math.nan


def against(ours: Sequence[Cell], theirs: Sequence[Cell]) -> str:
    """Return how many times longer a peer takes than we do, over the cells that both have."""
    ratios = [t.median / o.median for o, t in zip(ours, theirs, strict=True) if o.seconds and t.seconds]
    ratios = [ratio for ratio in ratios if not math.isnan(ratio)]
    return f"{geomean(ratios):.2f}× over {len(ratios)}" if ratios else "-"


# --- tables ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Table:
    """Rows of text under a title: printed aligned, written as Markdown."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        assert len(cells) == len(self.columns)
        self.rows.append(cells)

    def __str__(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        aligned = ["  ".join(_pad(c, w, i) for i, (c, w) in enumerate(zip(row, widths, strict=True))) for row in lines]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([self.title, rule, aligned[0].rstrip(), rule, *map(str.rstrip, aligned[1:]), *self.notes, ""])

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", _row(self.columns)]
        lines += [_row(["---", *["--:"] * (len(self.columns) - 1)]), *map(_row, self.rows)]
        return "\n".join([*lines, "", *[f"- {note}" for note in self.notes], ""])


def _pad(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 0 else cell.rjust(width)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# --- options and surroundings ---------------------------------------------------------------------------------------


def options(description: str, peers: Sequence[str], repeat: int, limit: float) -> argparse.ArgumentParser:
    """Return the options that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=repeat, help="measured runs per cell (median)")
    parser.add_argument("--limit", type=float, default=limit, help="seconds per cell")
    parser.add_argument("--peers", default=",".join(peers), help=f"comma-separated, among: {', '.join(peers)}")
    return parser


def chosen(peers: str, known: dict[str, Callable[[], Engine]]) -> dict[str, Callable[[], Engine]]:
    """Return ours and the chosen peers; a peer that is not installed is told and left out."""
    wanted = [name.strip() for name in peers.split(",") if name.strip()]
    for name in wanted:
        if name not in known:
            raise SystemExit(f"unknown peer '{name}'; known: {', '.join(known)}")
    return {name: make for name, make in known.items() if name in ("graphdb", *wanted)}


def installed(*packages: str) -> str:
    """Return the versions of packages, for the notes of a table."""
    found = []
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    return ", ".join(found)


def surroundings(*packages: str) -> str:
    """Return versions, cores and load: without them a time says little."""
    load = f", load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{installed(*packages)}; Python {platform.python_version()}, {CORES} cores{load}"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for databases that is gone afterwards, whatever happens."""
    with tempfile.TemporaryDirectory(prefix="graphdb-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.contextmanager
def workers(engines: dict[str, Callable[[], Engine]]) -> Iterator[dict[str, Worker]]:
    """One worker per engine, ended afterwards."""
    started = {name: Worker(make) for name, make in engines.items()}
    try:
        yield started
    finally:
        for worker in started.values():
            worker.close()


def size_mb(folder: Path) -> float:
    """Return the size of a folder's files in MB (10**6 bytes)."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def progress(text: str) -> None:
    """Say what runs, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def main(run: Callable[[list[str]], list[Table]], argv: list[str] | None = None) -> None:
    """Run one benchmark from the command line; Ctrl-C and SIGTERM end it, and nothing of it stays on disk."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)  # a shell's background job would ignore it
    signal.signal(signal.SIGTERM, stop)
    try:
        tables = run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        progress("")
        raise SystemExit(130) from None
    progress("")
    print("\n".join(map(str, tables)))
