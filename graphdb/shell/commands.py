"""The shell's own commands: what they are called, which arguments they take, and what ``.help`` says of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from graphdb.common import render
from graphdb.common.errors import GraphDBError, nearest

DOT_COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    ".exit": ((), "leave"),
    ".explain": (("QUERY",), "how a query would run: EXPLAIN QUERY"),
    ".export": (("FILE",), "write the graph (FILE graphs union: all as one): .nt .nq .ttl .trig .graphml .parquet"),
    ".help": (("COMMAND",), "show this, or what it says of one command"),
    ".import": (("FILE",), "load a file: LOAD 'FILE' (AS LABEL …, AS TYPE …, COLUMNS {…} and so on may follow)"),
    ".maxrows": (("NUMBER",), "how many rows a table on a terminal shows"),
    ".mode": (tuple(render.MODES), "how rows are printed"),
    ".once": (("FILE",), "write the next answer to a file, in the mode of its suffix if it has one"),
    ".output": (("FILE",), "write answers to a file, as .once does; without one, to the terminal again"),
    ".param": (("NAME VALUE",), "give $NAME a value, an expression; without one, show all; .param clear forgets them"),
    ".prefixes": ((), "prefixes and what they stand for"),
    ".quit": ((), "leave, as Ctrl-D does"),
    ".read": (("FILE",), "run the statements of a file, up to the first error"),
    ".schema": ((), "vertex labels, edge labels and properties, with counts"),
    ".tables": ((), "tables of the database"),
    ".timer": (("on", "off"), "whether times are printed"),
    ".view": (("FILE",), "draw the vertices and edges of the last answer in a browser, or into an HTML file"),
    ".watch": (("QUERY",), "show the changes of a continuous query as they are committed, until Ctrl-C"),
}
"""The shell's own commands: arguments and meaning."""


_WORDS = {
    **dict.fromkeys(("help", "?", ":help", ":?", r"\?", r"\h", r"\help"), ".help"),
    **dict.fromkeys(("quit", "exit", ":quit", ":exit", ":q", r"\q", r"\quit"), ".quit"),
}
"""What people type who know other shells, where it is one of ours."""

_SCHEMA = "SHOW TABLES, .schema and .tables say what is there"
_SHELLS = {
    **dict.fromkeys(
        (".open", ".connect", ":use", ":connect", r"\c"), "graphdb FILE opens a database; ATTACH 'b.duckdb'"
    ),
    **dict.fromkeys((".databases", ":dbs", r"\l"), "SHOW DATABASES"),
    **dict.fromkeys((".indexes", ".indices", r"\di"), "there are none to show: properties need no index"),
    **dict.fromkeys((".describe", ".fullschema", ":sysinfo", ":stats", r"\d", r"\dt", r"\dt+", r"\d+"), _SCHEMA),
    **dict.fromkeys((".dump", ".save", ".backup"), ".export graph.nt writes the graph, .read runs statements"),
    **dict.fromkeys((".load", ".insert", ":import"), ".import people.csv AS LABEL Person"),
    **dict.fromkeys(
        (".headers", ".header", ".nullvalue", ".separator", ".width", ".columns"), ".mode says how rows are printed"
    ),
    **dict.fromkeys((r"\x", ".rows"), ".mode line"),
    **dict.fromkeys((r"\i", ":source", ".run"), ".read statements.txt"),
    **dict.fromkeys((r"\o", ":save"), ".output answers.csv"),
    **dict.fromkeys((":params", ":parameters"), ".param"),
    **dict.fromkeys((":begin", ":commit", ":rollback"), "BEGIN, COMMIT and ROLLBACK are statements"),
    r"\timing": ".timer on",
    r"\copy": "COPY (MATCH … RETURN …) TO 'answer.csv'",
    ":max_rows": ".maxrows 1000",
}
"""Commands of other shells, and what stands for them here."""


def is_command(entered: str) -> bool:
    """Whether this is a dot command, or a word or command of other shells, which no statement begins with."""
    words = entered.strip()
    return words.startswith((".", ":", "\\")) or words.rstrip("; ").lower() in _WORDS


def as_dot_command(entered: str) -> str:
    """Return a command as one of ours where it is, by its name here or in another shell."""
    word = entered.strip()
    return _WORDS.get(word.rstrip("; ").lower(), word)


def unknown(command: str) -> GraphDBError:
    """Return the error that there is no such command, with what stands for it here."""
    hint = _SHELLS.get(command.lower())
    if hint is None:
        close = nearest("." + command.lstrip(".:\\"), DOT_COMMANDS, 1)
        hint = f"did you mean {close[0]}?" if close else ".help lists the commands"
    return GraphDBError(f"unknown command {command}", hint=hint)


def help_lines(about: str = "") -> Iterator[str]:
    """Yield what ``.help`` prints, or what it says of one command.

    Raises
    ------
    GraphDBError
        There is no such command.
    """
    if about:
        command = "." + about.lstrip(".")
        if command not in DOT_COMMANDS:
            raise unknown(about)
        yield _line(command)
        return
    yield "MATCH (a:Country)-[:neighbour]->(b) RETURN a.name, b.name;   patterns, answered by subgraph matching"
    yield "SELECT …;  CREATE TABLE t AS MATCH …;  LOAD 'file.nt';       SQL, result tables, data"
    yield "CREATE CONTINUOUS QUERY q AS MATCH …;  SHOW CONTINUOUS QUERIES;  answers that follow what is written"
    yield ""
    yield from map(_line, DOT_COMMANDS)


def _line(command: str) -> str:
    choices, meaning = DOT_COMMANDS[command]
    typed = f"{command} {'|'.join(choices)}"
    return f"{typed:42}{meaning}" if len(typed) < 42 else f"{typed}\n{'':42}{meaning}"


def import_parts(argument: str) -> tuple[str, str]:
    """Return the file that ``.import`` is given, and the options of LOAD behind it.

    >>> import_parts("my people.csv as label Person"), import_parts("'a.csv' COLUMNS {id: ':ID'}"), import_parts("a.nt")
    (('my people.csv', 'as label Person'), ('a.csv', "COLUMNS {id: ':ID'}"), ('a.nt', ''))
    """
    found = _OPTIONS.search(argument)
    end = len(argument) if found is None else found.start()
    return argument[:end].strip().strip("'\""), argument[end:].strip()


_OPTIONS = re.compile(
    r"\s+(AS\s+(LABEL|TYPE)|COLUMNS\s*[{(]|FORMAT\s|BASE\s*<|ON\s+ERROR|LABEL\s|TYPE\s|DELIMITER\s|QUOTE\s|NULL\s|HEADER\s"
    r"|LIST\s+DELIMITER)",
    re.IGNORECASE,
)
"""Where the options of LOAD begin."""


def text_mode(file: str) -> str | None:
    """Return the mode in which answers are written to a file, which its suffix tells; None where it tells nothing.

    Raises
    ------
    GraphDBError
        Files of that suffix hold no text, which is all that answers are written as.
    """
    suffix = Path(file).suffix.lower()
    if suffix in _NOT_TEXT:
        raise GraphDBError(f"answers are written as text, which {suffix} files do not hold", hint=_NOT_TEXT[suffix])
    return _SUFFIXES.get(suffix)


_SUFFIXES = {".md": "markdown", ".tex": "latex"} | {f".{mode}": mode for mode in "csv tsv json jsonl html".split()}
"""Modes of files that answers are written to."""

_NOT_TEXT = {
    ".parquet": "COPY (MATCH (a) RETURN a.name) TO 'answer.parquet'",
    **dict.fromkeys((".gz", ".zst"), "COPY (MATCH (a) RETURN a.name) TO 'answer.csv.gz'"),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "in Python: query('MATCH …').to_arrow(); or a file .csv or .json"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "spreadsheets open .csv files: .once answer.csv"),
    **dict.fromkeys((".nt", ".nq", ".ttl", ".trig", ".graphml"), ".export graph.ttl writes the whole graph"),
    **dict.fromkeys((".duckdb", ".db"), "CREATE TABLE answer AS MATCH (a) RETURN a.name"),
}
"""Suffixes of files that hold no text, or no rows, and what writes them."""
