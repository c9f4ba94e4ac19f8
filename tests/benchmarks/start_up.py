"""How long until something happens: import, the shell's prompt, the first query with and without compiled kernels.

Run as ``python -m tests.benchmarks.start_up``.  Each figure is a fresh process, so the interpreter's start is in it;
the bare interpreter and the peers' imports are there to compare.  Byte code is kept, as installed packages have it.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.harness import Table, main, options, progress, scratch, surroundings

PROMPT = b"graphdb>"
"""As prompt_toolkit draws it: what follows is a movement of the cursor."""

ASK = """
import sys, time
started = time.perf_counter()
import graphdb
with graphdb.connect(sys.argv[1]) as db:
    if len(sys.argv) > 2:
        db.load(sys.argv[2])
    print(db.query("MATCH (a)-[:knows]->(b)-[:knows]->(c), (a)-[:knows]->(c) RETURN count(*)").scalar())
"""

TRIANGLE = "".join(f"<http://e/{a}> <http://e/knows> <http://e/{b}> .\n" for a, b in ("ab", "bc", "ac"))


def run(argv: list[str]) -> list[Table]:
    """Measure and return one table."""
    peers = ("duckdb", "pyoxigraph", "ladybug", "networkx")
    parser = options(__doc__, peers, repeat=5, limit=300)
    parser.add_argument("--warm-only", action="store_true", help="leave out the compilation of the kernels")
    arguments = parser.parse_args(argv)
    table = Table("start-up: ms of a fresh process, median", ["what", "ms", "least", "most"])
    commands = {"python -c pass": ["-c", "pass"], "import graphdb": ["-c", "import graphdb"]}
    commands |= {f"import {peer}": ["-c", f"import {peer}"] for peer in arguments.peers.split(",") if peer}
    commands["graphdb --version"] = ["-m", "graphdb", "--version"]
    with scratch() as folder:
        data = folder / "triangle.nt"
        data.write_text(TRIANGLE)
        commands["import, open, first query"] = ["-c", ASK, str(folder / "warm.duckdb")]
        _python(["-c", ASK, str(folder / "warm.duckdb"), str(data)], arguments.limit)  # compiles where need be
        for command in commands.values():
            _python(command, arguments.limit)
        times: dict[str, list[float]] = {what: [] for what in commands}
        prompts: list[float] = []
        for _ in range(arguments.repeat):
            for what, command in commands.items():
                progress(what)
                times[what].append(_python(command, arguments.limit))
            progress("the shell's prompt")
            prompts.append(_prompt(folder, 30))
        for what, seconds in times.items():
            _add(table, what, seconds)
        _add(table, "shell: first prompt", prompts)
        if not arguments.warm_only:
            environment = {"GRAPHDB_CACHE_DIR": str(folder / "kernels"), "GRAPHDB_KERNELS": "jit"}
            progress("first load and query with no compiled kernels")
            first = _python(["-c", ASK, str(folder / "cold.duckdb"), str(data)], arguments.limit, environment)
            _add(table, "first load and query, no compiled kernels", [first])
            second = [
                _python(["-c", ASK, str(folder / f"{i}.duckdb"), str(data)], arguments.limit, environment)
                for i in range(arguments.repeat)
            ]
            _add(table, "the same in the next processes", second)
    table.notes.append(f"{surroundings('graphdb', *peers)}; {arguments.repeat} runs")
    return [table]


def _add(table: Table, what: str, seconds: list[float]) -> None:
    known = [statistics.median(seconds), min(seconds), max(seconds)]
    table.add(what, *(f"{value * 1e3:,.0f}" for value in known))


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _python(command: list[str], limit: float, environment: dict[str, str] | None = None) -> float:
    """Return a process's seconds from start to end."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, *command], check=True, timeout=limit, stdout=subprocess.DEVNULL,
        env=_environment() | (environment or {}),
    )  # fmt: skip
    return time.perf_counter() - started


def _prompt(folder: Path, limit: float) -> float:
    """Return the seconds until the shell shows its prompt on a terminal."""
    import fcntl
    import pty
    import select
    import struct
    import termios

    started = time.perf_counter()
    child, terminal = pty.fork()
    if child == 0:
        environment = _environment() | {"TERM": "xterm", "XDG_STATE_HOME": str(folder)}
        os.execve(sys.executable, [sys.executable, "-m", "graphdb", str(folder / "warm.duckdb")], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    seen = b""
    try:
        while PROMPT not in seen:
            if not select.select([terminal], [], [], limit)[0]:
                raise TimeoutError(f"no prompt within {limit:g} s")
            seen += os.read(terminal, 4096)
            if b"\x1b[6n" in seen:  # where is the cursor? A terminal would say.
                os.write(terminal, b"\x1b[1;1R")
                seen = seen.replace(b"\x1b[6n", b"")
        return time.perf_counter() - started
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)


if __name__ == "__main__":
    main(run)
