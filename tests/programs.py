"""Programs that tests run within their own process: what they print, and how they end.

An interpreter that imports graphdb takes most of a second before it does anything.  Tests of what only a fresh one shows
(what it imports, its signals, its end) start one.
"""

from __future__ import annotations

import io
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from graphdb.shell import cli


def command(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command ``graphdb`` with arguments."""
    return _completed(cli.main, ["graphdb", *map(str, arguments)], stdin)


def script(path: Path) -> subprocess.CompletedProcess[str]:
    """Run a file of Python's as a program."""
    return _completed(lambda: runpy.run_path(str(path), run_name="__main__"), [str(path)])


def _completed(
    program: Callable[[], object], arguments: list[str], stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Return what a program leaves: streams are of files, as a process has them."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
        given.write(stdin.encode())
        given.seek(0)
        streams = [io.TextIOWrapper(file, encoding="utf-8", write_through=True) for file in (given, printed, said)]
        with (
            mock.patch.object(sys, "argv", arguments),
            mock.patch.object(sys, "stdin", streams[0]),
            redirect_stdout(streams[1]),
            redirect_stderr(streams[2]),
        ):
            try:
                program()
                code: object = 0
            except SystemExit as end:
                code = end.code
            except Exception:
                traceback.print_exc()
                code = 1
        for stream in streams:
            stream.detach()
        printed.seek(0)
        said.seek(0)
        ended = code if isinstance(code, int) else int(code is not None)
        return subprocess.CompletedProcess(arguments, ended, printed.read().decode(), said.read().decode())
