"""GraphML to node and edge tables, which are read as all tables are.

A node's ``labels`` or ``label`` are its vertex labels (separated by ``;``), an edge's ``type`` or ``label`` is its edge
label, else ``edge``; all other data are properties, of the type that their key declares.  Identifiers and names are
IRIs, or live in the database's own namespace.  What the export marked is read as it was meant: keys whose values are
JSON lists, and what the file tells in RDF.
Nested graphs are read as one; hyperedges and ports are not.

Expat parses, in constant memory; the rows go to Parquet files in the spill directory, some thousand at a time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.parsers import expat

from graphdb.common import arrow
from graphdb.common.errors import LoadError
from graphdb.common.values.terms import VERTEX
from graphdb.storage.file.parquet import ParquetFile
from graphdb.storage.loaders import streams
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import PARQUET
from graphdb.storage.loaders.rdf.depth import DEEPEST
from graphdb.storage.loaders.streams import BadLine, Block, Put, chunks
from graphdb.storage.loaders.tables.headers import Mapping
from graphdb.storage.loaders.tables.reader import ROWS, read_table

OURS = "urn:x-graphdb:list"
"""The namespace of attributes of ours, which the export writes: ``list`` of keys whose data are JSON lists, ``rdf`` of
keys, vertices and edges that the graph's data ``rdf`` tell, and ``vertex`` of vertices that CREATE made."""

RDF = "rdf"
"""The column that says of a row that the graph's data tell it."""

_TYPES = {"boolean": "boolean", "int": "int", "long": "int", "float": "double", "double": "double", "string": "string"}
"""The words of table headers, by GraphML's types."""


_ARROW = {
    "boolean": arrow.BOOL,
    "int": arrow.INT64,
    "double": arrow.FLOAT64,
    "string": arrow.STRING,
    "string[]": arrow.list_of(arrow.STRING),
}
"""Columns' types, by the words of table headers."""

_FAULTS = 4096
"""Faults that are collected before they are handed on."""

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def read_graphml(
    file: DataFile, number: int, mapping: Mapping, skip: bool, put: Put, folder: str, memory: int = 1 << 30
) -> None:
    """Hand on the triples of a GraphML file as blocks of N-Triples; see :func:`~.reader.read_table`.

    Raises
    ------
    LoadError
        Where the file cannot be read, is no GraphML or, unless ``skip``, has a value that its key does not allow.
    """
    reader = _Reader(file, mapping, skip, put, Path(folder), memory // 4)
    try:
        reader.read()
        tables = [table for table in (reader.nodes, reader.edges) if table.close()]
        for table in tables:
            made = DataFile(table.path, table.path.stat().st_size, None, PARQUET)
            read_table(made, file.name, number, Mapping(), skip, put, folder, memory)
    finally:
        for table in (reader.nodes, reader.edges):
            table.remove()
    put(Block(b"", file.size))


class _Table:
    """Rows of one sort of element, on their way to a Parquet file."""

    def __init__(self, path: Path, columns: dict[str, str], memory: int) -> None:
        self.path = path
        self.columns = dict(columns)
        self._rows: list[dict[str, Any]] = []
        self._file = ParquetFile(path, memory)
        self._types: dict[str, arrow.DataType] = {}

    def add(self, row: dict[str, Any]) -> None:
        """Take a row; from the first written one on, the columns are as they are."""
        self._rows.append(row)
        if len(self._rows) >= ROWS:
            self._write()

    def close(self) -> bool:
        """Write what is left; return whether there were any rows."""
        if self._rows:
            self._write()
        return self._file.close()

    def remove(self) -> None:
        """Drop what was written."""
        self._file.remove()

    def _write(self) -> None:
        self._types = self._types or {name: _ARROW[type] for name, type in self.columns.items()}
        columns = {name: arrow.array([row.get(name) for row in self._rows], type) for name, type in self._types.items()}
        self._file.add(arrow.table(columns))
        self._rows.clear()


class _Reader:
    """What a GraphML file says, element by element."""

    def __init__(self, file: DataFile, mapping: Mapping, skip: bool, put: Put, folder: Path, memory: int) -> None:
        self._file = file
        self._mapping = mapping
        self._skip = skip
        self._put = put
        self.nodes = _Table(folder / "nodes.parquet", {":ID": "string", ":LABEL": "string[]"}, memory)
        self.edges = _Table(
            folder / "edges.parquet", {":START_ID": "string", ":TYPE": "string", ":END_ID": "string"}, memory
        )
        self._keys: dict[str, tuple[str, str, str]] = {}
        """By identifier: the column, or one of its own role; its type; for which element."""
        self._defaults: dict[str, dict[str, Any]] = {"node": {}, "edge": {}}
        self._open: list[str] = []
        self._rows: list[dict[str, Any]] = []
        self._text: list[str] | None = None
        self._key = ""
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._hear
        self._length = 0
        self._lines: list[str] = []
        self._faults: list[BadLine] = []
        self._shown: tuple[int, int, str] = 0, 0, ""
        """Where the line shown last begins and ends, and its text, which all its faults share."""
        self._chunk, self._before = b"", 0

    def read(self) -> None:
        """Read the file."""
        try:
            read = 0
            for chunk, consumed in chunks(self._file, 1 << 20):
                self._chunk, self._before = chunk, read
                self._parser.Parse(chunk, False)
                read += len(chunk)
                if read - self._parser.CurrentByteIndex > streams.LONGEST_TOKEN:
                    self._too_long()
                self._hand_on(consumed // 2)  # half of the work comes after
            self._parser.Parse(b"", True)
            self._hand_on(0)
        except expat.ExpatError as error:
            message = expat.ErrorString(error.code)
            hint = "is it UTF-8, as XML is that says nothing else?" if "invalid token" in message else None
            raise LoadError(
                message,
                source=self._file.name,
                line=error.lineno,
                column=error.offset + 1,
                text=self._line(self._parser.ErrorByteIndex),
                hint=hint,
            ) from None

    def _hand_on(self, consumed: int) -> None:
        """Hand on what was found."""
        self._put(Block("".join(self._lines).encode(), consumed, self._faults))
        self._lines.clear()
        self._faults = []

    def _hear(self, text: str) -> None:
        """Take a piece of text."""
        if self._text is not None:
            self._text.append(text)
            self._length += len(text)
            if self._length > streams.LONGEST_TOKEN:
                self._too_long()

    def _too_long(self) -> None:
        raise streams.too_long("tag or text", streams.LONGEST_TOKEN, self._file, self._parser.CurrentLineNumber)

    def _bad(self, message: str, hint: str | None = None) -> None:
        """Say what is wrong where the parser is."""
        bad = self._fault(message, hint)
        if not self._skip:
            raise bad.error()
        self._faults.append(bad)
        if len(self._faults) == _FAULTS:
            self._hand_on(0)

    def _fault(self, message: str, hint: str | None = None) -> BadLine:
        """Return what is wrong, with the place where the parser is."""
        place = self._parser.CurrentLineNumber, self._parser.CurrentColumnNumber + 1
        return BadLine(self._file.name, *place, message, hint, self._line(self._parser.CurrentByteIndex))

    def _line(self, at: int) -> str | None:
        """Return the line of a byte of the file, if all of it is at hand."""
        if not self._shown[0] <= at < self._shown[1]:
            place = max(at - self._before, 0)
            start, end = self._chunk.rfind(b"\n", 0, place) + 1, self._chunk.find(b"\n", place)
            if at < self._before or (self._before and not start):
                return None
            end = end if end >= 0 else len(self._chunk)
            line = self._chunk[start:end].rstrip(b"\r").decode("utf-8", "replace")
            self._shown = self._before + start, self._before + end, line
        return self._shown[2]

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        element = name.rpartition(" ")[2]
        if not self._open and element != "graphml":
            self._bad(f"expected the element graphml, found {element}", "is this a GraphML file?")
        self._open.append(element)
        if len(self._open) > DEEPEST:
            raise self._fault(f"elements are nested deeper than {DEEPEST:,}").error()
        match element:
            case "key":
                self._declare(attributes)
            case "node":
                made = {":LABEL": [VERTEX]} if attributes.get(f"{OURS} vertex") == "true" else {}
                self._rows.append({":ID": self._needed(attributes, "id"), RDF: _says_rdf(attributes), **made})
            case "edge":
                ends = (self._needed(attributes, end) for end in ("source", "target"))
                self._rows.append(dict(zip((":START_ID", ":END_ID"), ends, strict=True)) | {RDF: _says_rdf(attributes)})
            case "data":
                self._key, self._text, self._length = attributes.get("key", ""), [], 0
            case "default":
                self._text, self._length = [], 0
            case "hyperedge" | "port":
                self._bad(f"a {element} cannot be loaded", "vertices and edges between two of them can")

    def _needed(self, attributes: dict[str, str], name: str) -> str | None:
        if name not in attributes:
            self._bad(f"this {self._open[-1]} has no {name}")
        return attributes.get(name)

    def _declare(self, attributes: dict[str, str]) -> None:
        """Make a key a column of its table, or of both."""
        self._key = attributes.get("id", "")
        name = attributes.get("attr.name", self._key)
        type = attributes.get("attr.type", "string")
        if type not in _TYPES:
            self._bad(f"there is no type '{type}'", f"the types are {', '.join(_TYPES)}")
        word = "string[]" if attributes.get(f"{OURS} list") == "true" else _TYPES.get(type, "string")
        wanted = RDF if _says_rdf(attributes) else attributes.get("for", "all")
        self._keys[self._key] = (name, word, wanted)
        for element, table in (("node", self.nodes), ("edge", self.edges)):
            if wanted in (element, "all") and not role(element, name):
                table.columns[f"{name}:{word}"] = word

    def _end(self, name: str) -> None:
        element = self._open.pop()
        match element:
            case "default" if self._key in self._keys:
                name, word, wanted = self._keys[self._key]
                for owner in self._defaults:
                    if wanted in (owner, "all"):
                        self._set(self._defaults[owner], owner, name, word)
            case "data" if self._open and self._keys.get(self._key, ("", "", ""))[2] == RDF:
                if self._open[-1] == "graph":
                    self._lines.append("".join(self._text or ()) + "\n")
            case "data" if self._open and self._open[-1] in ("node", "edge"):
                if self._key in self._keys:
                    self._set(self._rows[-1], self._open[-1], *self._keys[self._key][:2])
                else:
                    self._bad(f"no key '{self._key}' is declared", "keys stand before the graph")
            case "node":
                label = [self._mapping.label] if self._mapping.label else []
                self._add(self.nodes, {":LABEL": label, **self._defaults["node"]})
            case "edge":
                self._add(self.edges, {":TYPE": self._mapping.type or "edge", **self._defaults["edge"]})
        if element in ("data", "default"):
            self._text = None

    def _add(self, table: _Table, row: dict[str, Any]) -> None:
        """Take the row of an element that ends; one without identifiers is reported already, one that the RDF part
        states is skipped.
        """
        row |= self._rows.pop()
        if not row.pop(RDF) and None not in (row.get(":ID", ""), row.get(":START_ID", ""), row.get(":END_ID", "")):
            table.add(row)

    def _set(self, row: dict[str, Any], element: str, name: str, word: str) -> None:
        """Put the text that was read where it belongs."""
        text = "".join(self._text or ())
        wanted = role(element, name)
        if wanted == ":LABEL":
            row[wanted] = [*row.get(wanted, ()), *(label for label in text.split(";") if label)]
            return
        if wanted:
            row[wanted] = text
            return
        try:
            row[f"{name}:{word}"] = _value(text, word)
        except (ValueError, RecursionError):  # a list within a thousand others
            self._bad(f"'{text[:100]}' is no {word.removesuffix('[]')}, as the key of '{name}' says")


def _says_rdf(attributes: dict[str, str]) -> bool:
    """Whether RDF tells what has these attributes."""
    return attributes.get(f"{OURS} rdf") == "true"


def role(element: str, name: str) -> str | None:
    """The column of a table's own that a name stands for."""
    if element == "node":
        return ":LABEL" if name in ("labels", "label") else None
    return ":TYPE" if name in ("type", "label") else None


def _value(text: str, word: str) -> Any:
    """A value of a key's type; ValueError where the text is none."""
    match word:
        case "int":
            number = int(text)
            if "_" in text or not -(1 << 63) <= number < 1 << 63:
                raise ValueError(text)
            return number
        case "double":
            if "_" in text:  # which is fine with Python alone
                raise ValueError(text)
            return float(text)
        case "boolean":
            if text.strip().lower() not in _BOOLEANS:
                raise ValueError(text)
            return _BOOLEANS[text.strip().lower()]
        case "string[]":
            found = json.loads(text)
            if not isinstance(found, list):
                raise ValueError(text)
            return [item if isinstance(item, str) else json.dumps(item) for item in found]
    return text
