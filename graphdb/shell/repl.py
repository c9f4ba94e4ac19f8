"""The shell: reads statements and dot commands, hands statements to the database, prints what comes back.

One worker thread owns the database, so Ctrl-C reaches the prompt's thread at once and interrupts the statement, not the
shell; names for completion are read by the same worker, between statements.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeVar

from graphdb._version import __version__
from graphdb.common import render
from graphdb.common.errors import AccessError, GraphDBError
from graphdb.shell.commands import (
    DOT_COMMANDS,
    as_dot_command,
    help_lines,
    import_parts,
    is_command,
    text_mode,
    unknown,
)
from graphdb.shell.overview import schema
from graphdb.shell.terminal import Status, complain, script_lines

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.input import Input
    from prompt_toolkit.output import Output

    from graphdb.database import Database
    from graphdb.live.watch import Watch
    from graphdb.results.result import Result
    from graphdb.shell.completion import PatternCompleter

T = TypeVar("T")

ALIGNED = {"table": render.table, "box": render.box}
"""Modes whose tables stay within the terminal."""

ROWS_SHOWN = 100
"""Rows that a table on a terminal shows; all other modes, and pipes, get every row."""


class Shell:
    """A conversation with one database.

    Parameters
    ----------
    database
        An open database; the shell does not close it.
    output
        Where rows and messages go; errors go to ``errors``.
    interactive
        Whether a person is there: prompts, cut tables, going on after an error.
    """

    def __init__(
        self,
        database: Database,
        output: TextIO | None = None,
        errors: TextIO | None = None,
        mode: str = "table",
        interactive: bool = False,
    ) -> None:
        self.database = database
        self.output = output or sys.stdout
        self.errors = errors or sys.stderr
        self.mode = mode
        self.timer = interactive
        self.interactive = interactive
        self.rows_shown = ROWS_SHOWN
        self.parameters: dict[str, object] = {}
        """Values for the parameters of statements, by name."""
        self._first_output: TextIO | None = None
        """Where answers went before they were redirected; the mode of then."""
        self._first_mode = mode
        self._once = False
        self._script: tuple[str, int] | None = None
        """The name of the script that is run ("" for a pipe), and the line where what is accepted begins."""
        self._last: Result | None = None
        """The last answer with rows."""
        self.completer: PatternCompleter | None = None
        self._worker = ThreadPoolExecutor(1, "graphdb-shell")
        self._done = False
        self._names_are_fresh = False

    # --- reading -----------------------------------------------------------------------------------------------

    def converse(self, input: Input | None = None, output: Output | None = None) -> int:
        """Prompt until Ctrl-D or ``.quit``; returns the exit status."""
        session = self._session(input, output)
        self._print(f"graphdb {__version__}: statements end with ';', .help shows the shell's own commands")
        while not self._done:
            try:
                entered = session.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                break
            if entered.strip():
                self.accept(entered)
                self._names_are_fresh = False
        self._worker.shutdown()
        return 0 if self._attempt(self._end_redirection) else 1

    def run_lines(self, lines: Iterable[str], name: str = "") -> int:
        """Run statements and dot commands from lines (a pipe, a file) up to the first error; returns the status.

        Errors say in which line of the lines, and of what file, ``name``, their statement begins.
        """
        reading, self._script = self._script, (name, 1)  # a script may read another
        try:
            ran = all(map(self.accept, self._chunks(lines)))
        finally:
            self._script = reading
        if reading is None:
            ran = self._attempt(self._end_redirection) and ran
        return 0 if ran else 1

    def _chunks(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield a script's dot commands and whole statements, until one of them ends the shell."""
        from graphdb.grammar.parser import is_complete, split

        pending, name = "", self._script[0] if self._script else ""
        for number, line in enumerate(script_lines(lines), 1):
            if pending and is_command(line) and not split(pending):  # comments alone stand before it
                pending = ""
            if not pending:
                self._script = name, number
            pending += line if line.endswith("\n") else line + "\n"
            if is_command(pending) or is_complete(pending):
                yield pending
                pending = ""
            elif not pending.strip():
                pending = ""
            if self._done:
                return
        if pending.strip():
            yield pending

    def accept(self, entered: str) -> bool:
        """Run what was entered, and print its answer or its error; returns whether it succeeded."""
        if not is_command(entered):
            return self._attempt(lambda: self._statements(entered))
        return self._attempt(lambda: self._dot(as_dot_command(entered)))

    def _attempt(self, do: Callable[[], bool | None]) -> bool:
        """Do something, and print the error that it raises; returns whether it succeeded, which it may deny."""
        try:
            return do() is not False
        except GraphDBError as error:
            self._complain(f"{error}{self._place()}")
        except OSError as error:
            file = error.filename
            if file is None and self._first_output is not None:  # the file of .output: what follows goes elsewhere
                file = self.output.name
                with suppress(OSError):
                    self._end_redirection()
            self._complain(f"{file}: {error.strerror}" if file else str(error))
        except KeyboardInterrupt:
            self._complain("interrupted")
        return False

    def _place(self) -> str:
        """Return a further line of an error: where in the script its statement begins, unless it is its first line."""
        if self._script is None or self._script == ("", 1):
            return ""
        name, line = self._script
        return f"\nin the statement that begins in line {line:,}" + (f" of {name}" if name else "")

    # --- statements --------------------------------------------------------------------------------------------

    def _statements(self, entered: str) -> bool:
        """Run statements one by one, so that each prints its answer."""
        from graphdb.grammar.parser import split

        at, began = 0, self._script
        for statement in split(entered):
            if began is not None:
                at = entered.index(statement, at)
                self._script = began[0], began[1] + entered.count("\n", 0, at)
            start = time.perf_counter()
            result = self._wait(self._worker.submit(self._run, statement))
            self.show(result, time.perf_counter() - start)
            self._last = result if result.columns else self._last
            for warning in result.warnings:
                self._complain(f"warning: {warning}")
            if self._once:
                self._end_redirection()
        return True

    def _wait(self, future: Future[T]) -> T:
        """Wait for the worker; Ctrl-C interrupts the statement, and is raised once it has stopped."""
        status = Status(self.errors if self.interactive else None)
        self.database.progress = status.hear if self.interactive else None
        try:
            while True:
                try:
                    return future.result(timeout=0.2)
                except NotYet:
                    if future.done():
                        raise
                    status.tick()
        except KeyboardInterrupt:
            # Again and again: an interrupt that comes between two steps of a statement is lost.
            while not future.done():
                self.database.interrupt()
                wait([future], timeout=0.2)
            raise
        finally:
            status.clear()

    def show(self, result: Result, elapsed: float) -> None:
        """Print a result in the current mode, and what to know about it."""
        took = f", {render.duration(elapsed)}" if self.timer else ""
        if not result.columns:
            if result.message or took:
                self._print((result.message or "done") + took)
            return
        if self.mode == "table" and (plan := result.plan_lines()) is not None:
            self._print_all(plan)
            return
        count = len(result)
        cut = self._on_terminal and self.mode in ALIGNED and count > self.rows_shown
        self._print_rows(result.columns, itertools.islice(result, self.rows_shown) if cut else iter(result))
        if self.mode in ALIGNED:
            shown = f", the first {self.rows_shown} shown" if cut else ""
            self._print(f"({render.plural(count, 'row')}{shown}{took})")
        elif took and self._first_output is None:
            self._print(f"({render.plural(count, 'row')}{took})")

    @property
    def _on_terminal(self) -> bool:
        return self.interactive and self._first_output is None

    def _print_rows(self, columns: Iterable[str], rows: Iterable[tuple[object, ...]]) -> None:
        names = tuple(columns)
        if (aligned := ALIGNED.get(self.mode)) is not None:
            # A pipe has no width to stay within.
            lines = aligned(names, rows, None if self._on_terminal else 1_000_000)
        else:
            lines = render.MODES[self.mode](names, rows)
        for line in lines:
            self._print(line)

    # --- dot commands ------------------------------------------------------------------------------------------

    def _dot(self, entered: str) -> bool:
        """Run a dot command; returns whether it succeeded."""
        command, _, argument = entered.rstrip("; \t\n").partition(" ")
        whole = argument.strip()
        argument = whole.strip("'\"")
        if command not in DOT_COMMANDS:
            raise unknown(command)
        choices, _ = DOT_COMMANDS[command]
        if argument and not choices:
            raise GraphDBError(f"{command} takes no argument")
        if argument and not choices[0].isupper() and argument not in choices:
            raise GraphDBError(f"{command} does not know {argument}", hint="one of: " + ", ".join(choices))
        match command:
            case ".quit" | ".exit":
                self._done = True
            case ".help":
                self._print_all(help_lines(argument))
            case ".mode":
                self.mode = self._first_mode = argument or self.mode
                if not argument:
                    self._print(self.mode)
            case ".timer":
                self.timer = argument == "on" if argument else self.timer
                if not argument:
                    self._print("on" if self.timer else "off")
            case ".maxrows":
                if argument and not argument.isdecimal():
                    raise GraphDBError(f".maxrows needs a number, found {argument}", hint=".maxrows 1000")
                self.rows_shown = int(argument) if argument else self.rows_shown
                if not argument:
                    self._print(str(self.rows_shown))
            case ".output" | ".once":
                self._redirect(argument, once=command == ".once")
            case ".param":
                self._parameter(whole)
            case ".import":
                if not argument:
                    raise GraphDBError(".import needs a file", hint=".import people.csv AS LABEL Person")
                file, options = import_parts(whole)
                written = file.replace("'", "''")
                return self._statements(f"LOAD '{written}' {options}")
            case ".explain":
                if not argument:
                    raise GraphDBError(".explain needs a query", hint=".explain MATCH (a)-[e]->(b) RETURN a, e, b")
                return self._statements(f"EXPLAIN {whole}")
            case ".read":
                if not argument:
                    raise GraphDBError(".read needs a file", hint=".read statements.txt")
                self._refuse_files(".read")
                with Path(argument).expanduser().open(encoding="utf-8", errors="surrogateescape") as lines:
                    return self.run_lines(lines, argument) == 0
            case ".export":
                if not argument:
                    raise GraphDBError(".export needs a file", hint=".export graph.ttl.gz")
                argument, _, graphs = argument.partition(" graphs ")
                path = Path(argument.strip().strip("'\"")).expanduser()
                work = self._worker.submit(self.database.export, path, graphs=graphs.split() or None)
                self._print(f"{render.plural(self._wait(work), 'statement')} to {path}")
            case ".view":
                self._view(argument)
            case ".watch":
                if not argument:
                    raise GraphDBError(".watch needs a continuous query", hint="SHOW CONTINUOUS QUERIES lists them")
                self._watch(argument)
            case ".schema":
                self._print_all(self._wait(self._worker.submit(lambda: list(schema(self.database)))))
            case ".tables":
                self._print_all(self._wait(self._worker.submit(self.database.tables)))
            case ".prefixes":
                prefixes = self._wait(self._worker.submit(self.database.prefixes))
                self._print_all(f"PREFIX {name}: <{iri}>" for name, iri in sorted(prefixes.items()))
        return True

    def _view(self, file: str) -> None:
        """Draw the last answer."""
        self._refuse_files(".view")
        if self._last is None:
            raise GraphDBError("there is no answer to draw yet", hint="MATCH (a)-[e]->(b) RETURN a, e, b;")
        picture = self._wait(self._worker.submit(self._last.graph))
        if file:
            picture.save(Path(file).expanduser())
        self._print(f"{picture.counts} in {file or picture.show()}")

    def _refuse_files(self, command: str) -> None:
        if self.database.untrusted:
            raise AccessError(f"{command} is not there in safe mode", hint="start the shell without --safe")

    def _redirect(self, file: str, *, once: bool) -> None:
        """Write answers to a file from now on, or only the next one; without a file to where they went first."""
        command = ".once" if once else ".output"
        if once and not file:
            raise GraphDBError(".once needs a file", hint=".once answer.csv")
        mode = text_mode(file) if file else None
        if file:
            self._refuse_files(command)
        opened = Path(file).expanduser().open("w", encoding="utf-8") if file else None
        self._end_redirection()
        if opened is not None:
            self._first_output, self.output, self._once = self.output, opened, once
            self._first_mode, self.mode = self.mode, mode or self.mode

    def _end_redirection(self) -> None:
        """Print where the shell printed first.

        Raises
        ------
        OSError
            The end of the file cannot be written; it is closed all the same.
        """
        if self._first_output is not None:
            file = self.output
            self.output, self._first_output, self._once = self._first_output, None, False
            self.mode = self._first_mode
            try:
                file.close()
            except OSError as error:
                error.filename = file.name
                raise

    def _parameter(self, argument: str) -> None:
        """Give a parameter a value, show all, or forget them."""
        name, _, value = argument.partition(" ")
        if argument == "clear":
            self.parameters.clear()
        elif value:
            name = name.removeprefix("$")
            self.parameters[name] = self._wait(self._worker.submit(self._value, value))
        else:
            for name, given in sorted(self.parameters.items()):
                self._print(f"${name}: {render.text(given)}")

    def _value(self, expression: str) -> object:
        """Return what an expression gives; an error's place is one within the expression."""
        before = "RETURN "
        try:
            return self._run(before + expression).scalar()
        except GraphDBError as error:
            if error.line != 1 or error.column is None:
                raise
            at = error.column - 1 - len(before)
            raise type(error)(error.message, text=expression, position=at, hint=error.hint) from None

    def _run(self, statement: str) -> Result:
        """Run a statement with those of the parameters that it has."""
        if not self.parameters or "$" not in statement:
            return self.database.query(statement)
        named = self.database.prepare(statement).parameters
        return self.database.query(
            statement, {name: self.parameters[name] for name in named if name in self.parameters}
        )

    def _watch(self, query: str) -> None:
        """Print the changes of a continuous query until Ctrl-C; a pipe sees those that are stored."""
        start = None if self.interactive else 0
        watch = self._wait(self._worker.submit(self._followed, query, start))
        with watch:
            if self.interactive:
                self._print(f"following {watch.name}, Ctrl-C stops it")
            try:
                while (change := watch.next(None if self.interactive else 0)) is not None:
                    self._print(f"batch {change.batch:,}:")
                    for sign, rows in (("+", change.added), ("-", change.removed)):
                        values = zip(*rows.to_pydict().values(), strict=True)
                        columns = ("", *rows.column_names)
                        self._print_rows(columns, ((sign, *row) for row in values))
            except KeyboardInterrupt:
                self._print("")

    def _followed(self, query: str, start: int | None) -> Watch:
        """Return a watch from the next batch on, or from the first one that is stored."""
        if start is None:
            return self.database.watch(query)
        listed = self.database.query("SHOW CONTINUOUS QUERIES").fetchall()
        first = {name.lower(): first for name, *_, first, _ in listed}.get(query.lower())
        return self.database.watch(query, first)

    # --- the terminal ------------------------------------------------------------------------------------------

    def _session(self, input: Input | None, output: Output | None) -> PromptSession[str]:
        """Make the prompt, which completes names of the database."""
        from graphdb.shell.completion import PatternCompleter
        from graphdb.shell.prompt import session

        self.completer = PatternCompleter({name: choices for name, (choices, _) in DOT_COMMANDS.items()})
        made = session(self.completer, _ends, input, output)
        # Only once the prompt stands: reading names takes longer than showing it.
        made.app.after_render += lambda _: self._refresh_names()
        return made

    def _refresh_names(self) -> None:
        """Have the worker read the names for completion; what they were stays until then."""
        completer = self.completer
        if completer is None or self._names_are_fresh:
            return
        self._names_are_fresh = True

        def read() -> None:
            from graphdb.shell.completion import Names

            completer.names = Names.read(self.database)

        self._worker.submit(read)

    def _print(self, line: str) -> None:
        print(line, file=self.output, flush=self.interactive)

    def _print_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._print(line)

    def _complain(self, message: str) -> None:
        if self._first_output is None:  # what is said stands below what was printed before it
            self.output.flush()
        complain(message, self.errors)


def _ends(entered: str) -> bool:
    """True if Enter ends what was typed, rather than starting its next line."""
    from graphdb.grammar.parser import is_complete

    return not entered.strip() or is_command(entered) or is_complete(entered)
