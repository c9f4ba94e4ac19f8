"""DuckDB's errors as ours: those of opening a file, and those of running a statement."""

from __future__ import annotations

import os
import re

from graphdb.common import regex
from graphdb.common.duckdb.udf import STOPPED
from graphdb.common.errors import (
    AccessError,
    ExecutionError,
    GraphDBError,
    MemoryLimitError,
    ParameterError,
    StorageError,
)


def refuse_no_path(path: str) -> None:
    """Refuse a text that has a character which no path has."""
    if "\0" in path or not _is_encodable(path):
        raise StorageError(f"'{path}' is no path", hint="it has a character that no path has")


def refuse_no_spill(path: str) -> None:
    """Refuse a folder to spill to that is none and cannot be made: DuckDB looks only when it needs it."""
    refuse_no_path(path)
    there = os.path.abspath(path)
    if os.path.isdir(there) or (not os.path.lexists(there) and os.path.isdir(os.path.dirname(there))):
        return
    what = "is no folder" if os.path.exists(there) else "is in a folder that is not there"
    raise StorageError(f"spill: '{path}' {what}", hint="spill is the folder for what does not fit into memory")


def refuse_others(path: str) -> None:
    """Refuse a file that is no database of DuckDB's before DuckDB asks the network for what may read it.

    And one whose name is ambiguous with that of our schema, before it is made.
    """
    refuse_no_path(path)
    if database_name(path).lower() == "_graphdb":
        raise StorageError(
            f"'{path}' cannot be opened: a database is called as its file is, and '_graphdb' is a schema within it",
            hint="name the file otherwise, such as graph.duckdb; one that is there can be renamed",
        )
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except OSError:
        return  # not there, a directory, not to be read: reported when it is opened
    if not head:
        raise StorageError(f"'{path}' is an empty file, not a database", hint="remove it, and one is made there")
    if head[8:12] != b"DUCK":
        is_sqlite = head.startswith(b"SQLite format 3")
        raise StorageError(
            f"'{path}' is {'a database of SQLite' if is_sqlite else 'not a database'}",
            hint=None if is_sqlite else f"to load data: graphdb load NEW.duckdb {path}",
        )


def database_name(path: str) -> str:
    """Return what DuckDB calls the database in a file that is given no other name.

    >>> database_name("/data/graph.2024.duckdb"), database_name(".hidden")
    ('graph', 'hidden')
    """
    return os.path.basename(path).lstrip(".").split(".")[0].lstrip("?").split("?")[0]


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path).decode()
    except UnicodeError:
        return False
    return True


def opening_error(path: str, error: Exception) -> StorageError:
    """Return what to tell about a database that did not open."""
    text = str(error)
    folder = os.path.dirname(os.path.abspath(path))
    if "lock" in text.lower() and "PID" in text:
        holder = re.search(r"PID (\d+)", text)
        there = int(holder[1]) if holder else 0  # zero: it has no number here
        who = f" (process {there})" if there else ", of another container or machine"
        return StorageError(
            f"database '{path}' is open in another process{who}",
            hint="close it there first, or open it read-only in both",
        )
    if "different configuration" in text:
        return StorageError(
            f"database '{path}' is open in this process with other settings",
            hint="connect with the same memory_limit, threads, spill and read_only, or close it first",
        )
    if os.path.isdir(path):
        return StorageError(f"'{path}' is a directory, not a database file")
    if "read-only" in text and path == ":memory:":
        return StorageError("a database in memory is empty, and cannot be opened for reading only")
    if "read-only" in text and not os.path.exists(path):
        return StorageError(f"there is no database '{path}'", hint="open it for writing to make one")
    if not os.path.isdir(folder):
        return StorageError(f"cannot create database '{path}': there is no directory '{folder}'")
    if "not a valid DuckDB database" in text:
        return StorageError(f"'{path}' is not a database", hint="to load data: graphdb load NEW.duckdb " + path)
    if "Could not read enough bytes" in text:
        return StorageError(f"database '{path}' is cut short", hint="copy it again from where it is whole")
    if "Permission denied" in text or "Read-only" in text or not os.access(folder, os.W_OK):
        return StorageError(f"no permission to open database '{path}' for writing")
    return StorageError(f"cannot open database '{path}': {text.splitlines()[0]}")


_FULL = re.compile(
    r'write file \\?"([^"\\]+)\\?": (No space left on device|File too large|Disk quota exceeded)', re.IGNORECASE
)
"""What DuckDB says of a disk that is full, in errors of writing and around them."""

_PLAINER = (
    (r"division by zero(?! at offset)", "division by zero", None),
    (r"not in timestamp range", "a date and time is out of range", "columns hold the years -289566 to 293506"),
    (r"out of range|[Oo]verflow|too large", "a number is out of range", "integers have 64 bits: -2^63 to 2^63 - 1"),
)
"""What DuckDB says of SQL that the user did not write, and how to say it to the user."""


_IN_PYTHON = re.compile(r"(?:failed|UDF): KeyboardInterrupt:?\s*$")
"""What DuckDB says where Ctrl-C came while it called Python, for a table's schema or a function."""
_STOPPED = re.compile(rf"(?:failed|UDF): (?:QueryInterrupted|QueryTimeout): |{STOPPED}")
"""What it says where what it called saw that the statement must stop."""


def is_signal(error: BaseException) -> bool:
    """Whether an error is how DuckDB's client reports Ctrl-C in some places."""
    if type(error) is RuntimeError:
        return "interrupt" in str(error).lower()
    return isinstance(error, Exception) and _IN_PYTHON.search(str(error)) is not None


def is_stop(error: Exception) -> bool:
    """Whether an error of DuckDB's may be that the statement must stop, which what it called saw."""
    return _STOPPED.search(str(error)) is not None


def failure(error: Exception, ours: bool) -> GraphDBError:
    """Return one of DuckDB's errors as ours."""
    import duckdb

    text = str(error).strip()
    if isinstance(error, duckdb.OutOfMemoryException):
        return MemoryLimitError(text.split("\n")[0], hint="raise memory_limit, or ask for less with LIMIT")
    if isinstance(error, duckdb.PermissionException) or "configuration has been locked" in text:
        return AccessError(
            re.sub(r"^[A-Z][\w ]*Error: ", "", text.split("\n")[0]),
            hint="the database is open for untrusted queries, or enable_external_access is false",
        )
    if "read-only mode" in text:
        return StorageError("the database is open read-only", hint="open it for writing to change it")
    writing = ours or isinstance(error, duckdb.IOException | duckdb.TransactionException)
    full = _FULL.search(text) if writing else None
    if full:
        return StorageError(
            f"cannot write '{full[1]}': {full[2]}", hint="make room on the disk; spill= says where temporary files go"
        )
    if isinstance(error, duckdb.IOException):
        return StorageError(text.split("\n")[0])
    if isinstance(error, duckdb.TransactionException) and re.search(r"[Cc]onflict", text):
        return StorageError(
            "another connection of this process is changing the same data", hint="run the statement again after it"
        )
    if not ours:
        return ExecutionError(text)
    if "cannot encode str as UTF-8" in text:
        return ParameterError("a text has a lone surrogate, which is no character")
    if isinstance(error, duckdb.InvalidInputException) and (fault := regex.fault_in(text)) is not None:
        return fault
    for pattern, plainer, hint in _PLAINER:
        if re.search(pattern, text, re.I):
            return ExecutionError(plainer, hint=hint)
    return ExecutionError(re.sub(r"^[A-Z][\w ]*Error: ", "", text.split("\n\nLINE ")[0]))


def in_text(error: ExecutionError, text: str, hint: str | None = None) -> ExecutionError:
    """Return an error of a user's SQL with its place in the text, and what DuckDB suggests, as ours have them."""
    if error.line is not None:
        error.hint = hint or error.hint
        return error
    message, *more = error.message.split("\n\nLINE ")[0].split("\n")
    suggested = " ".join(filter(None, more)) if error.hint is None else error.hint
    place = place_of(error.message, text)
    return type(error)(message, text=text, position=place, hint=hint or suggested or None)


_SHOWN = re.compile(r"^LINE (\d+): (\.\.\.)?(.*?)(?:\.\.\.)?\n( *)\^", re.M)
"""The line of a statement that DuckDB shows, cut on either side, with a caret below."""
_NAMED = re.compile(r'(?:with name|column|schema named) "?([^"\n]+?)"? (?:does not|not found|was not|found)')
"""What DuckDB says of a name that there is none of."""


def place_of(message: str, text: str) -> int | None:
    """Return where DuckDB says that a statement is wrong, as an offset; None where it does not.

    Of a name that means nothing it may say no more than that: it is where that stands, if only one place has it.
    """
    shown = _SHOWN.search(message)
    if shown is None:
        named = _NAMED.search(message)
        places = () if named is None else [*re.finditer(rf"\b{re.escape(named[1])}\b", text, re.I)]
        return places[0].start() if len(places) == 1 else None
    lines = text.split("\n")
    number, excerpt = int(shown[1]) - 1, shown[3]
    if number >= len(lines):
        return None
    before = len(f"LINE {shown[1]}: {shown[2] or ''}")
    start = lines[number].find(excerpt)
    at = start + len(shown[4]) - before
    return sum(len(line) + 1 for line in lines[:number]) + at if 0 <= start <= at else None
