"""The shell's own commands: what they are called, which arguments they take, and what ``.help`` says of them."""

from __future__ import annotations

from collections.abc import Iterator

from graphdb.common import render

DOT_COMMANDS: dict[str, tuple[tuple[str, ...], str]] = {
    ".exit": ((), "leave"),
    ".explain": (("QUERY",), "how a query would run: EXPLAIN QUERY"),
    ".export": (("FILE",), "write the graph (FILE graphs union: all as one): .nt .nq .ttl .trig .graphml .parquet"),
    ".help": ((), "show this"),
    ".import": (("FILE",), "load a file: LOAD 'FILE' (AS LABEL …, AS TYPE … may follow)"),
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


def is_command(entered: str) -> bool:
    """Whether this is a dot command, or one of the words that people try first."""
    return entered.lstrip().startswith(".") or entered.strip().rstrip("; ").lower() in ("help", "quit", "exit")


def help_lines() -> Iterator[str]:
    """Yield what ``.help`` prints."""
    yield "MATCH (a:Country)-[:neighbour]->(b) RETURN a.name, b.name;   patterns, answered by subgraph matching"
    yield "SELECT …;  CREATE TABLE t AS MATCH …;  LOAD 'file.nt';       SQL, result tables, data"
    yield "CREATE CONTINUOUS QUERY q AS MATCH …;  SHOW CONTINUOUS QUERIES;  answers that follow what is written"
    yield ""
    for name, (choices, meaning) in DOT_COMMANDS.items():
        typed = f"{name} {'|'.join(choices)}"
        yield f"{typed:42}{meaning}" if len(typed) < 42 else f"{typed}\n{'':42}{meaning}"
