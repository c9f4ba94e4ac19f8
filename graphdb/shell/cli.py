"""The command ``graphdb``: it reads arguments, calls the library, prints, and turns errors into exit codes.

Exit codes: 0, 1 for an error that is said on standard error, 2 for arguments that make no sense, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from graphdb._version import __version__
from graphdb.common.errors import GraphDBError, StorageError, nearest
from graphdb.common.progress import bar
from graphdb.common.render import MODES, duration, plural

if TYPE_CHECKING:
    from graphdb.database import Database

COMMANDS = """commands:
  graphdb [FILE]               the shell, on a database file or in memory
  graphdb load FILE DATA…      load RDF, tables and edge lists into a database
  graphdb export FILE TARGET   write the graph to a file, in the format that its name tells
  graphdb query FILE TEXT      run a statement and print its answer
  graphdb sql FILE TEXT        run SQL of DuckDB's
  graphdb ui [FILE]            a page in the browser: editor, tables, graphs, plans
  graphdb demo [FILE]          see it work on a data set that comes along
  graphdb bench                how fast patterns are on this machine, with DuckDB's joins beside them
  graphdb doctor               what is installed and what this machine has

graphdb COMMAND --help says more."""


WORDS = ("load", "export", "query", "sql", "ui", "demo", "bench", "doctor")
"""The commands."""


def main() -> None:
    """Run the command line of this process, and leave with its exit code."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # whoever began the process closed it
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without Unicode shows ? and not an error
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line; returns the exit code.  Arguments that make no sense leave by ``SystemExit(2)``."""
    at = _command_at(arguments)
    command, parser = _parser("" if at is None else arguments[at])
    if command is not _shell:  # options may stand before the command's word
        arguments = [word for i, word in enumerate(arguments) if i != at]
    parse = parser.parse_known_args if command is _shell else parser.parse_known_intermixed_args
    given, rest = parse(arguments)
    if rest:
        hint = _hint(arguments[at] if command is _shell and at is not None else "", rest)
        parser.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    if command is _shell and given.file in ("help", "version") and not Path(given.file).exists():
        print(parser.format_help().rstrip() if given.file == "help" else f"graphdb {__version__}")
        return 0
    if command is _shell and given.file and (meant := _meant(given.file)) is not None:
        parser.error(f"'{given.file}' is no command, and no database\nhint: {meant}")
    if command is _load and bool(given.data) == bool(given.mapping):
        parser.error("what is loaded is DATA, or a --mapping")
    try:
        return command(given)
    except BrokenPipeError:
        # The reader left (head, less): nothing more to say, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        return _say(error, given.verbose)


_VALUED = frozenset(("--mode", "--device", "--device-memory", "--memory-limit", "--threads", "--spill"))
"""Options that take a value, of those that may stand before a command's word."""


def _command_at(arguments: Sequence[str]) -> int | None:
    """Return where the first word stands that is no option or value of one; None where there is none."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] != "-":
        at += 2 if arguments[at] in _VALUED else 1
    return at if at < len(arguments) else None


def _hint(word: str, rest: Sequence[str]) -> str:
    """Return a further line on arguments that were left over; the first of all is a ``word`` that is no command."""
    if rest[0] in ("-c", "-cmd", "-e", "--command", "--execute") or (word and " " in rest[0]):
        return "\nhint: to run a statement: graphdb query FILE TEXT"
    if rest[0] in ("-f", "-i", "--file", "-init"):
        return "\nhint: to run the statements of a file: graphdb FILE < statements.txt"
    if not word:
        return ""
    meant = _command_like(word)
    return f"\nhint: did you mean graphdb {meant}?" if meant else f"\nhint: the commands are {', '.join(WORDS)}"


_ELSEWHERE = {"import": "load", "dump": "export", "serve": "ui", "run": "query", "exec": "query", "execute": "query"}
"""Commands of other programs, and ours."""


def _command_like(word: str) -> str | None:
    """Return the command that a word may be meant to be."""
    return _ELSEWHERE.get(word) or next(iter(nearest(word, WORDS)), None)


def _meant(file: str) -> str | None:
    """Return what the name of a database that is not there may mean: a command, where it is like one."""
    if file != Path(file).name or "." in file or file == ":memory:" or os.path.lexists(file):
        return None
    meant = _command_like(file)
    return f"did you mean graphdb {meant}? A new database of that name: graphdb ./{file}" if meant else None


# --- commands --------------------------------------------------------------------------------------------------


def _shell(given: argparse.Namespace) -> int:
    from graphdb.shell.repl import Shell

    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    if interactive:
        # The prompt's libraries load while the database opens.
        threading.Thread(target=import_module, args=["graphdb.shell.prompt"], daemon=True).start()
    with _open(given) as database:
        shell = Shell(database, mode=given.mode, interactive=interactive)
        return shell.converse() if interactive else shell.run_lines(sys.stdin)


def _load(given: argparse.Namespace) -> int:
    with _made(given) as database, bar(delay=0) as progress:
        report = database.load(
            given.data or None,
            format=given.format,
            on_error=given.on_error,
            progress=progress,
            base=given.base,
            columns=given.headers or dict(given.columns) or None,
            label=given.label,
            type=given.type,
            delimiter=given.delimiter,
            quote=given.quote,
            null=given.null,
            header=given.header,
            list_delimiter=given.list_delimiter,
            mapping=given.mapping,
        )
    rate = report.triples / max(report.seconds, 1e-9)
    print(
        f"{report.read} from {plural(report.files, 'file')}, {report.new_triples:,} new, "
        f"in {duration(report.seconds)} ({rate:,.0f} per second)"
    )
    if report.errors:
        print(f"{plural(report.errors, 'malformed line')} skipped: see the table load_errors", file=sys.stderr)
    return 0


def _export(given: argparse.Namespace) -> int:
    with _open(given, must_exist=True) as database, bar(delay=0) as progress:
        start = time.perf_counter()
        count = database.export(given.target, given.format, progress or False, graphs=given.graphs)
    stream = sys.stderr if given.target == "-" else sys.stdout
    print(f"{plural(count, 'statement')} to {given.target} in {duration(time.perf_counter() - start)}", file=stream)
    return 0


def _query(given: argparse.Namespace) -> int:
    from graphdb.shell.repl import Shell
    from graphdb.shell.terminal import script_lines

    text = "".join(script_lines(sys.stdin)) if given.text == "-" else given.text
    with _open(given, must_exist=True) as database:
        start = time.perf_counter()
        if given.command == "sql":
            result = database.sql(text)
        else:
            result = database.query(text, parameters=dict(given.parameters), timeout=given.timeout)
        Shell(database, mode=given.mode).show(result, time.perf_counter() - start)
        sys.stdout.flush()
    return 0


def _demo(given: argparse.Namespace) -> int:
    from graphdb.shell.demo import tell

    with _open(given) as database:
        status = tell(database)
    if status == 0:
        print(f"graphdb {given.file} goes on from here." if given.file else "graphdb demo FILE keeps it in a file.")
    return status


def _ui(given: argparse.Namespace) -> int:
    import webbrowser

    from graphdb.shell.terminal import history_file
    from graphdb.workbench.server import Workbench

    typed = history_file()
    with _open(given) as database:
        workbench = Workbench(database, given.port, None if typed is None else typed.with_name("workbench.json"))
        print(f"{workbench.url}\nCtrl-C ends it", flush=True)
        if not given.no_browser:
            webbrowser.open(workbench.url)
        try:
            workbench.serve()
        except KeyboardInterrupt:
            database.interrupt()
        finally:
            workbench.close()
    return 0


def _bench(given: argparse.Namespace) -> int:
    from graphdb.shell.bench import bench

    with _open(given) as database:
        return bench(database, seconds=given.seconds)


def _doctor(given: argparse.Namespace) -> int:
    from graphdb.shell.doctor import report, warm

    return warm() if given.warm else report(given.device_memory)


# --- arguments -------------------------------------------------------------------------------------------------


def _parser(word: str) -> tuple[Callable[[argparse.Namespace], int], argparse.ArgumentParser]:
    """Return what to run, and the parser of its arguments, by the first word of the command line."""

    def parser(command: str, description: str) -> argparse.ArgumentParser:
        made = argparse.ArgumentParser(f"graphdb {command}".strip(), description=description)
        made.add_argument("-v", "--verbose", action="store_true", help="show where an error was raised")
        made.set_defaults(command=command, file=None)
        return made

    match word:
        case "load":
            made = parser("load", "Load RDF, tables and edge lists into a database; one that is not there is made.")
            made.add_argument("file", metavar="FILE", help="the database")
            made.add_argument(
                "data", metavar="DATA", nargs="*", help="files to load, plain or compressed; - is standard input"
            )
            made.add_argument("--format", help="how the files are written, where their names do not say it")
            made.add_argument("--on-error", choices=("stop", "skip"), default="stop", help="at a malformed line")
            made.add_argument("--base", metavar="IRI", help="what relative IRIs are relative to")
            made.add_argument(
                "--column",
                dest="columns",
                metavar="NAME=HEADER",
                type=_column,
                action="append",
                default=[],
                help="what a column of a table is, as in person=:ID or since=since:int",
            )
            made.add_argument(
                "--columns",
                dest="headers",
                metavar="HEADERS",
                type=lambda text: text.split(","),
                help="what all columns are, by position: as in ':START_ID,:END_ID,since:int'",
            )
            made.add_argument("--label", metavar="NAME", help="the label of a table's vertices; A:B are two")
            made.add_argument("--type", metavar="NAME", help="the label of a table's edges")
            made.add_argument("--delimiter", metavar="TEXT", help="what separates columns")
            made.add_argument("--quote", metavar="TEXT", help='what texts are in; "" for nothing')
            made.add_argument("--null", metavar="TEXT", help="the text of a missing value")
            made.add_argument("--no-header", dest="header", action="store_false", default=None, help="no row of names")
            made.add_argument("--list-delimiter", metavar="TEXT", help="what separates values of a list, and labels")
            made.add_argument("--mapping", metavar="FILE", help="a file (JSON, YAML) that lists tables")
            _resources(made)
            return _load, made
        case "export":
            made = parser("export", "Write the graph to a file: RDF, GraphML, or a folder of Parquet tables.")
            made.add_argument("file", metavar="FILE", help="the database")
            made.add_argument("target", metavar="TARGET", help="the file; .gz and .zst compress; - is standard output")
            made.add_argument("--format", help="the format, where the name does not tell it")
            made.add_argument(
                "--graph",
                dest="graphs",
                action="append",
                metavar="GRAPH",
                help="which of the named graphs, by its IRI; or default, or union: all as one",
            )
            _resources(made)
            return _export, made
        case "query" | "sql":
            made = parser(word, "Run a statement on a database and print its answer.")
            made.add_argument("file", metavar="FILE", help="the database")
            made.add_argument("text", metavar="TEXT", help="the statement, or - to read it from standard input")
            made.add_argument("--mode", choices=tuple(MODES), default="table", help="how rows are printed")
            if word == "query":
                made.add_argument(
                    "-p",
                    "--param",
                    dest="parameters",
                    metavar="NAME=VALUE",
                    type=_parameter,
                    action="append",
                    default=[],
                    help="a parameter: JSON, or else a string",
                )
                made.add_argument("--timeout", type=float, metavar="SECONDS", help="stop the statement after this time")
            _safe(made)
            _resources(made)
            return _query, made
        case "demo":
            made = parser("demo", "Load the data set that comes along, and query it.")
            made.add_argument("file", metavar="FILE", nargs="?", help="where to keep it; without, in memory")
            _resources(made)
            return _demo, made
        case "ui":
            made = parser("ui", "Serve a page on this machine, for its browser: editor, tables, graphs, plans.")
            made.add_argument("file", metavar="FILE", nargs="?", help="the database; without, one in memory")
            made.add_argument("--port", type=_port, help="where the page is; by default 7575, or another that is free")
            made.add_argument("--no-browser", action="store_true", help="print the address, open no browser")
            _safe(made)
            _resources(made)
            return _ui, made
        case "bench":
            made = parser("bench", "Ask a random graph in memory, and DuckDB the same with joins; print median times.")
            made.add_argument("--seconds", type=float, default=100, metavar="N", help="how long to ask, 100 by default")
            _resources(made)
            return _bench, made
        case "doctor":
            made = parser("doctor", "Say what is installed and what this machine has.")
            made.add_argument("--warm", action="store_true", help="compile all kernels that have no machine code yet")
            _device_memory(made)
            return _doctor, made
        case _:
            made = parser("", "An embedded graph database: RDF in, patterns and SQL out, one file.")
            made.epilog, made.formatter_class = COMMANDS, argparse.RawDescriptionHelpFormatter
            made.add_argument("file", metavar="FILE", nargs="?", help="the database; without, one in memory")
            made.add_argument("--mode", choices=tuple(MODES), default="table", help="how rows are printed")
            made.add_argument("--version", action="version", version=f"graphdb {__version__}")
            _safe(made)
            _resources(made)
            return _shell, made


def _safe(parser: argparse.ArgumentParser) -> None:
    """Add the option for statements of strangers."""
    parser.add_argument("--safe", action="store_true", help="no statement reaches files, the network or settings")


def _resources(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``connect`` takes."""
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda for all CUDA devices, or cuda:0,1 and so on")
    _device_memory(parser)
    parser.add_argument("--memory-limit", metavar="SIZE", help="as 4GB")
    parser.add_argument("--threads", type=int, metavar="N", help="processors to use")
    parser.add_argument("--read-only", action="store_true", help="open the database for reading only")
    parser.add_argument("--subclasses", action="store_true", help="read labels with what is below them (RDF Schema)")
    parser.add_argument("--spill", metavar="DIR", help="where to put what does not fit into memory")


def _device_memory(parser: argparse.ArgumentParser) -> None:
    """Add the option for the memory of devices."""
    parser.add_argument("--device-memory", metavar="SIZE", help="what is used of each CUDA device's memory, as 8GB")


def _parameter(argument: str) -> tuple[str, object]:
    """Read ``name=value``: the value as JSON if it is some, else as the string it is."""
    name, equals, value = argument.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{argument!r} is not NAME=VALUE")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _port(argument: str) -> int:
    """Read the number of a port, of which 0 is any that is free."""
    if not argument.isdecimal() or int(argument) > 65535:
        raise argparse.ArgumentTypeError(f"{argument!r} is no port, a number from 0 to 65535")
    return int(argument)


def _column(argument: str) -> tuple[str, str]:
    """Read ``name=header``."""
    name, equals, header = argument.partition("=")
    if not equals or not name or not header:
        raise argparse.ArgumentTypeError(f"{argument!r} is not NAME=HEADER")
    return name, header


# --- what commands share ---------------------------------------------------------------------------------------


@contextmanager
def _open(given: argparse.Namespace, must_exist: bool = False) -> Iterator[Database]:
    """Open the database that the arguments name."""
    if must_exist and given.file != ":memory:" and not Path(given.file).exists():
        raise StorageError(f"there is no database {given.file}", hint=f"graphdb load {given.file} DATA makes one")
    from graphdb.opening import connect

    with connect(
        given.file or ":memory:",
        device=given.device,
        device_memory=given.device_memory,
        memory_limit=given.memory_limit,
        threads=given.threads,
        spill=given.spill,
        read_only=given.read_only,
        subclasses=given.subclasses,
        untrusted=getattr(given, "safe", False),
    ) as database:
        if database.unfinished:
            print(f"rolled back, because its process was killed: {database.unfinished}", file=sys.stderr)
        yield database


@contextmanager
def _made(given: argparse.Namespace) -> Iterator[Database]:
    """Open the database, and leave no file that was not there before if something fails."""
    is_new, is_open = not os.path.lexists(given.file), False
    try:
        with _open(given) as database:
            is_open = True
            yield database
    except BaseException:
        for name in (given.file, f"{given.file}.wal") if is_new and is_open else ():
            Path(name).unlink(missing_ok=True)
        raise


def _say(error: Exception, verbose: bool) -> int:
    """Print an error as its reader needs it; returns the exit code."""
    from graphdb.shell.terminal import complain

    if verbose:
        traceback.print_exception(error)
    elif isinstance(error, GraphDBError):
        complain(str(error), sys.stderr)
    elif isinstance(error, OSError):
        complain(f"{error.filename}: {error.strerror}" if error.filename else str(error), sys.stderr)
    else:
        complain(f"internal error: {type(error).__name__}: {error}\nhint: -v shows where", sys.stderr)
    return 1
