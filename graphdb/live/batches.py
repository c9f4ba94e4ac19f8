"""Batches from outside: triples and edges that are to come and to go, as tables, tuples, N-Triples or an RDF patch."""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Iterable, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import strings
from graphdb.common.duckdb.fetch import rows_of, table_of_frame
from graphdb.common.errors import LoadError
from graphdb.common.values.elements import Node
from graphdb.common.values.literals import literal_of
from graphdb.common.values.terms import XSD, default_iri
from graphdb.pattern.names import local_name
from graphdb.results.result import Result
from graphdb.sql.constants import from_numpy
from graphdb.storage.arrays.arrow import table_of
from graphdb.storage.arrays.batch import LITERAL
from graphdb.storage.arrays.texts import beginning_with, taken
from graphdb.storage.loaders.files import DataFile, find, opened
from graphdb.storage.loaders.patch import Operations, last_of_each, lines_of_patch, operations
from graphdb.storage.loaders.streams import chunks

if TYPE_CHECKING:
    from graphdb.pattern.names import Names
    from graphdb.relational.session.state import State

_IRI = r"^[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|^`\\]*$"
"""A full IRI, as a regular expression."""
_PLAIN_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#-;=?-\[\]_a-z~]*")
"""A full IRI of printable characters of ASCII, none of which N-Triples writes otherwise."""
_HANDFUL = 64
"""Edges that are read one by one."""
_NOTHING = strings([])
"""No literals."""
_ROWS = "a batch is a table, or rows, of three columns: subject, predicate and object"


@dataclass(frozen=True, slots=True)
class Applied:
    """What a batch was: distinct triples that were to come and to go, and how long it took."""

    additions: int
    deletions: int
    seconds: float


def apply(state: State, additions: Any, deletions: Any, patch: Any) -> Applied:
    """Apply a batch in one transaction; see :meth:`graphdb.database.Database.apply`."""
    started = time.perf_counter()
    state.catalog()
    found = _operations(additions, deletions, patch, state)
    gone, come = last_of_each(found)
    with state.connection.guard() as raw, state.writing():
        _refuse_blanks(state, found.resources)
        update = state.update(raw, state.known_statistics())
        resources, literals = update.number(found.resources, found.literals)

        def ids(codes: NDArray[np.uint32]) -> NDArray[np.int64] | None:
            literal = codes >= LITERAL
            found = np.empty(codes.shape, np.int64)
            found[~literal], found[literal] = resources[codes[~literal]], literals[codes[literal] - LITERAL]
            return found[:, [1, 0, 2]] if len(found) else None

        removed, added = ids(gone), ids(come)
        described = removed is not None and bool(state.snapshot().edges.described)
        update.apply(removed, added, removed if described else None)
        changes = update.take_changes()
        state.forget(changes, update.known)
        state.written()
    return Applied(len(come), len(gone), time.perf_counter() - started)


def _operations(additions: Any, deletions: Any, patch: Any, state: State) -> Operations:
    if patch is not None:
        if additions is not None or deletions is not None:
            raise LoadError("a patch says itself what comes and what goes", hint="give it alone: patch=…")
        text, added = lines_of_patch(_text(patch, state))
        return operations(text, added, "patch", state.spill)
    if (found := _of_iris(state, deletions, additions)) is not None:
        return found
    sides = [_lines(state.snapshot().names, side, state) for side in (deletions, additions)]
    counts = [_count(side) for side in sides]
    added = np.arange(sum(counts)) >= counts[0]
    return operations(b"\n".join(sides) + b"\n", added, "batch", state.spill)


def _of_iris(state: State, deletions: Any, additions: Any) -> Operations | None:
    """Return the operations of a handful of edges whose ends are full IRIs; None of others, which are parsed."""
    sides = [[] if side is None else side for side in (deletions, additions)]
    if not all(type(side) is list for side in sides) or not 0 < sum(map(len, sides)) <= _HANDFUL:
        return None
    codes: dict[str, int] = {}
    triples = []
    for row in (*sides[0], *sides[1]):
        if type(row) is not tuple or len(row) != 3 or not all(type(text) is str for text in row):
            return None
        subject, predicate, object = row
        if not predicate.startswith("<"):
            predicate = _predicate(state.snapshot().names, predicate)
        iris = _without_brackets(subject), predicate[1:-1], _without_brackets(object)
        if not all(map(_PLAIN_IRI.fullmatch, iris)):
            return None
        triples.append([codes.setdefault(iri, len(codes)) for iri in iris])
    added = np.arange(len(triples)) >= len(sides[0])
    return Operations([*codes], (_NOTHING, _NOTHING, _NOTHING), np.array(triples, np.uint32), added)


def _without_brackets(text: str) -> str:
    return text[1:-1] if text.startswith("<") and text.endswith(">") else text


_STATEMENT = re.compile(rb"^[ \t]*[^\s#][^\n]*", re.MULTILINE)


def _count(lines: bytes) -> int:
    """Return how many lines are neither empty nor comments."""
    return len(_STATEMENT.findall(lines))


_A_LINE = re.compile(r"\s*(?:[AD]\s+)?(?:<[^<>]*>|_:\S+)\s")
"""How a triple or a patch of one line begins, and no path does."""


def _text(given: Any, state: State) -> bytes:
    """Return the bytes of a file, of a file that is open, or of lines."""
    if isinstance(given, (bytes, bytearray, memoryview)):
        return bytes(given)
    if isinstance(given, (str, os.PathLike)):
        if isinstance(given, str) and ("\n" in given or _A_LINE.match(given)):
            return given.encode()
        state.require_files()
        return _contents(find(given, "ntriples"))
    if isinstance(given, io.TextIOBase):
        return given.read().encode()
    if hasattr(given, "read"):
        return _contents([opened(given, "ntriples")])
    lines = list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(line, str) for line in lines):
        raise LoadError(f"a patch is a path, a file that is open, or lines of text, found {type(given).__name__}")
    return "\n".join(lines).encode()


def _contents(files: Sequence[DataFile]) -> bytes:
    """Return the text of files, unpacked."""
    found = []
    for file in files:
        found.append(b"".join(piece for piece, _ in chunks(file)))
    return b"\n".join(found)


def _lines(names: Names, given: Any, state: State) -> bytes:
    """Return one side of a batch as lines of N-Triples."""
    if given is None:
        return b""
    if isinstance(given, (str, bytes, bytearray, memoryview, os.PathLike)) or hasattr(given, "read"):
        return _text(given, state)
    if type(given).__module__.partition(".")[0] == "pandas":
        given = given.reset_index(drop=True)  # an index would be a column
    if not (isinstance(given, Result) or hasattr(given, "__arrow_c_stream__")):
        return _lines_of_rows(names, given)
    table = given.presented() if isinstance(given, Result) else table_of_frame(given)  # vertices as IRIs
    if table.num_columns != 3:
        raise LoadError(f"{_ROWS}, found {table.num_columns}")
    table = table.rename_columns(["s", "p", "o"])
    if any(column.null_count for column in table.columns):
        raise LoadError("a row of a batch has a missing value", hint=_ROWS)
    with state.connection.view("_graphdb_rows", table), state.connection.guard() as raw:
        predicates = [str(name) for (name,) in raw.execute("SELECT DISTINCT p FROM _graphdb_rows").fetchall()]
        iris = table_of({"number": np.arange(len(predicates))})
        iris = iris.append_column("p", strings(predicates))
        iris = iris.append_column("iri", strings([_predicate(names, name) for name in predicates]))
        with state.connection.view("_graphdb_predicates", iris):
            kind = str(raw.sql("SELECT o FROM _graphdb_rows LIMIT 0").types[0])
            sql = (
                f"SELECT concat({_resource('s')}, ' ', iri, ' ', {_object(kind)}, ' .') FROM _graphdb_rows"
                " JOIN _graphdb_predicates USING (p)"
            )
            found = rows_of(raw, sql).column(0)
    return "\n".join(arrow.pylist(found)).encode()


def _lines_of_rows(names: Names, given: Any) -> bytes:
    """Return rows of texts, numbers, booleans, temporal values and vertices as lines of N-Triples."""
    if not isinstance(given, Iterable):
        raise LoadError(f"{_ROWS}, found {type(given).__name__}")
    rows = list(given)
    if any(not isinstance(row, Sized) or len(row) != 3 for row in rows):
        raise LoadError(_ROWS)
    if not rows:
        return b""
    subjects, predicates, objects = ([_written(value) for value in column] for column in zip(*rows, strict=True))
    iris = {name: _predicate(names, name) for name in set(predicates)}
    written = [
        f"{s if s.startswith(('<', '_:')) else f'<{s}>'} {iris[p]} {_term(o)} ."
        for s, p, o in zip(subjects, predicates, objects, strict=True)
    ]
    return "\n".join(written).encode()


def _term(text: str) -> str:
    """Return a text as the object that it stands for: as :func:`_object` does in SQL."""
    if text.startswith(("<", "_:", '"')):
        return text
    return f"<{text}>" if re.match(_IRI, text, re.ASCII) else f'"{text.translate(_ESCAPES)}"'


def _written(value: Any) -> str:
    """Return a value of Python's as a term, or as the text that it is."""
    from datetime import date, datetime
    from decimal import Decimal

    typed = partial('"{}"^^<{}{}>'.format)
    match type(value).__module__.partition(".")[0]:
        case "pyoxigraph":
            return str(value)
        case "rdflib":
            return _of_rdflib(value)
    value, kind = from_numpy(value), type(value)
    match value:
        case str():
            return value
        case Node():
            return value.iri if value.iri.startswith("_:") else f"<{value.iri}>"
        case bool() | int() | float():
            return '"{}"^^<{}>'.format(*literal_of(value) or ())
        case Decimal():
            return typed(f"{value:f}", XSD, "decimal")
        case datetime():
            return typed(value.isoformat(), XSD, "dateTime")
        case date():
            return typed(value.isoformat(), XSD, "date")
    raise LoadError(
        f"a value of type {kind.__name__} is no term", hint="vertices, texts, numbers, booleans and dates are"
    )


def _of_rdflib(term: Any) -> str:
    """Return a term of rdflib's as N-Triples has it: they are texts, and their own form is Turtle's."""
    import pyoxigraph

    match type(term).__name__:
        case "BNode":
            return f"_:{term}"
        case "Literal":
            datatype = None if term.datatype is None else pyoxigraph.NamedNode(str(term.datatype))
            return str(pyoxigraph.Literal(str(term), language=term.language, datatype=datatype))
    return f"<{term}>"


def _predicate(names: Names, name: str) -> str:
    """Return a predicate as N-Triples has it: an IRI, a known one's local name, or a name of the database's own."""
    if name.startswith("<"):
        return name
    if re.match(_IRI, name):
        return f"<{name}>"
    own = default_iri(name)
    known = sorted({label.iri for label in names.edge_labels.values() if local_name(label.iri) == name} - {own})
    if len(known) > 1 and own not in {label.iri for label in names.edge_labels.values()}:
        raise LoadError(f"'{name}' is the name of several predicates", hint=" or ".join(f"<{iri}>" for iri in known))
    if known and own not in {label.iri for label in names.edge_labels.values()}:
        return f"<{known[0]}>"
    return f"<{own}>"


def _resource(column: str) -> str:
    """Return SQL that makes a resource of a text."""
    written = f"starts_with({column}, '<') OR starts_with({column}, '_:')"
    return f"CASE WHEN {written} THEN {column} ELSE '<' || {column} || '>' END"


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
"""What stands for a character within a literal; the backslash, which stands in the others, first."""
_TYPES = {
    "BIGINT": "integer", "INTEGER": "integer", "SMALLINT": "integer", "TINYINT": "integer", "HUGEINT": "integer",
    "UBIGINT": "integer", "UINTEGER": "integer", "USMALLINT": "integer", "UTINYINT": "integer",
    "DOUBLE": "double", "FLOAT": "double", "BOOLEAN": "boolean", "DATE": "date",
}  # fmt: skip
"""Types of DuckDB's, and the datatypes of their values."""


def _object(type: str) -> str:
    """Return SQL that makes an object of a column of some type."""
    if type == "VARCHAR":
        text = "o"
        for found, escape in _ESCAPES.items():
            text = f"replace({text}, {_quoted(chr(found))}, {_quoted(escape)})"
        return (
            "CASE WHEN starts_with(o, '<') OR starts_with(o, '_:') OR starts_with(o, '\"') THEN o"
            f" WHEN regexp_matches(o, {_quoted(_IRI)}) THEN '<' || o || '>' ELSE '\"' || {text} || '\"' END"
        )
    if type.startswith("TIMESTAMP"):
        return f"'\"' || strftime(o, '%Y-%m-%dT%H:%M:%S.%f') || '\"^^<{XSD}dateTime>'"
    datatype = "decimal" if type.startswith("DECIMAL") else _TYPES.get(type)
    if datatype is None:
        raise LoadError(f"objects of type {type} are no terms", hint="texts, numbers, booleans, dates and times are")
    return f"concat('\"', o, '\"^^<{XSD}{datatype}>')"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _refuse_blanks(state: State, resources: arrow.Array | list[str]) -> None:
    """Raise `LoadError` where a blank node is none of the database's."""
    if isinstance(resources, list):  # IRIs
        return
    if resources.data is None or b"_:" not in resources.data.tobytes():
        return
    blanks = taken(resources, beginning_with(b"_:", resources))
    if not len(blanks):
        return
    table = arrow.table({"position": np.arange(len(blanks)), "iri": blanks})
    with state.connection.view("_graphdb_rows", table):
        unknown = state.connection.rows("SELECT iri FROM _graphdb_rows ANTI JOIN _graphdb.resource USING (iri) LIMIT 1")
    if unknown:
        raise LoadError(
            f"the database has no blank node {unknown[0][0]}",
            hint="a batch names those that are there; CREATE and LOAD make new ones",
        )
