"""Formats that are read: by a file's name, by what is stated, or by the first bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from graphdb.common.errors import LoadError, NotSupportedError, nearest


class Family(Enum):
    """Who reads a format."""

    LINES = "lines"
    """Our own reader, see :mod:`.ntriples.reader`."""
    RDF = "rdf"
    """The parser library, see :mod:`.rdf.reader`."""
    TABLE = "table"
    """DuckDB, see :mod:`.tables.reader`."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format: its name, the suffixes of its files, other ways to state it, and who reads it."""

    name: str
    family: Family
    suffixes: tuple[str, ...]
    others: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All ways to state it, in lower case."""
        return (self.name.lower(), *(suffix[1:] for suffix in self.suffixes), *self.others)


N_TRIPLES = Format("N-Triples", Family.LINES, (".nt", ".ntriples"))
N_QUADS = Format("N-Quads", Family.LINES, (".nq", ".nquads"))
TURTLE = Format("Turtle", Family.RDF, (".ttl", ".turtle"))
TRIG = Format("TriG", Family.RDF, (".trig",))
RDF_XML = Format("RDF/XML", Family.RDF, (".rdf", ".owl"), ("rdfxml", "rdf-xml", "xml"))
JSON_LD = Format("JSON-LD", Family.RDF, (".jsonld",))
CSV = Format("CSV", Family.TABLE, (".csv", ".tsv"))
PARQUET = Format("Parquet", Family.TABLE, (".parquet", ".pq"))
EDGE_LIST = Format("edge list", Family.TABLE, (".edges", ".edgelist", ".el"), ("snap", "edge-list", "edge_list"))
GRAPHML = Format("GraphML", Family.TABLE, (".graphml",))
LABELLED = Format("labelled graph", Family.TABLE, (".graph", ".lg"), ("tve", "labelled", "labelled_graph"))

FORMATS = (N_TRIPLES, N_QUADS, TURTLE, TRIG, RDF_XML, JSON_LD, CSV, PARQUET, EDGE_LIST, LABELLED, GRAPHML)

SUFFIXES = {suffix: format for format in FORMATS for suffix in format.suffixes}
NAMES = {name: format for format in FORMATS for name in format.names}
_UNREAD = {".n3": "Notation3", ".hdt": "HDT", ".trix": "TriX", ".gexf": "GEXF"}

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2", ".xz": "xz"}
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}


def stated(name: str) -> Format:
    """Return the format that someone states.

    Raises
    ------
    LoadError
        Where there is none of this name.
    NotSupportedError
        Where there is, but it is not read.
    """
    if name.lower() in NAMES:
        return NAMES[name.lower()]
    for suffix, other in _UNREAD.items():
        if name.lower() in (suffix[1:], other.lower()):
            raise NotSupportedError(f"{other} files cannot be loaded", hint=_CONVERT)
    close = nearest(name, NAMES)
    known = ", ".join(min(format.names, key=len) for format in FORMATS)
    hint = f"did you mean {close[0]}?" if close else f"the formats are {known}"
    raise LoadError(f"unknown format '{name}'", hint=hint)


def by_suffix(suffix: str, path: str) -> Format | None:
    """Return the format that a file's suffix (in lower case) tells, or None where it says nothing."""
    if suffix in _UNREAD:
        raise NotSupportedError(f"{_UNREAD[suffix]} files cannot be loaded: '{path}'", hint=_CONVERT)
    return SUFFIXES.get(suffix)


_CONVERT = "convert it to an RDF format such as N-Triples or Turtle"


def compression(head: bytes) -> str | None:
    """Tell a file's compression by its first bytes."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


_IRI = rb"<[^<>\s]*>"
_TERM = rb"(?:" + _IRI + rb'|_:\S+|"(?:[^"\\]|\\.)*"(?:@[\w-]+|\^\^' + _IRI + rb")?)"
_LINE = re.compile(
    rb"[ \t]*(?:" + _IRI + rb"|_:\S+)[ \t]*" + _IRI + rb"[ \t]*" + _TERM + rb"[ \t]*(<\S+|_:\S+)?[ \t]*\."
)
_DIRECTIVE = re.compile(rb"(?mi)^\s*(?:@prefix|@base|prefix|base)\b")
_GRAPH_BLOCK = re.compile(rb"\{(?!\|)")  # in a text of Turtle, perhaps: all of Turtle is TriG as well
_TRANSACTION = re.compile(rb"t\s+(?:#\s*)?-?\d+")
_PAIR = re.compile(rb"\S+[ \t,]+\S+(?:[ \t,]+\S+)*\s*$")


def sniff(head: bytes) -> Format | None:
    r"""Tell a format by the first bytes of its text, or None.

    >>> sniff(b"@prefix : <a:b> . :x :y :z .").name, sniff(b"# from to\n1\t2\n").name, sniff(b"t # 0\nv 0 1").name
    ('Turtle', 'edge list', 'labelled graph')
    """
    if head.startswith(b"PAR1"):
        return PARQUET
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(b"#")]
    first = lines[0] if lines else b""
    if re.match(rb"(?s)(?:<\?xml.*?\?>\s*|<!--.*?-->\s*|<!DOCTYPE[^>]*>\s*)*<(?:\w+:)?graphml\b", text):
        return GRAPHML
    if text.startswith(b"<?xml") or re.match(rb"<(?:\w+:)?RDF\b|<!DOCTYPE\s", text):
        return RDF_XML if re.search(rb"<(?:\w+:)?RDF\b", text) else None
    if text[:1] in (b"{", b"[") and re.search(rb'"@(?:context|id|graph|type|value)"', text):
        return JSON_LD
    if b":START_ID" in first or b":END_ID" in first or re.search(rb":ID\b", first):
        return CSV
    if _TRANSACTION.match(first) and len(lines) > 1 and lines[1].startswith(b"v "):
        return LABELLED
    line = _LINE.match(first)
    if line:
        return N_QUADS if any(found and found[1] for found in map(_LINE.match, lines)) else N_TRIPLES
    if _DIRECTIVE.search(text):
        return TRIG if _GRAPH_BLOCK.search(text) else TURTLE
    whole = lines[:-1] or lines  # the last line may be cut
    if whole and all(re.match(rb"\d+[ \t,]+\d+", line) and _PAIR.match(line) for line in whole):
        return EDGE_LIST
    return None


def mistaken(head: bytes, format: Format) -> str | None:
    """Return a hint where the first bytes of a text are those of another format than it is read as; else None.

    >>> mistaken(b'<?xml version="1.0"?><rdf:RDF ', N_TRIPLES)
    'this looks like RDF/XML: name the file .rdf, or state FORMAT rdf'
    """
    if re.match(rb"(?i)\s*<(?:!doctype\s+)?html\b", head):
        return "this is a web page; perhaps the server's answer that it has no such file"
    found = sniff(head)
    if found is None or found is format or {found, format} in ({N_TRIPLES, N_QUADS}, {TURTLE, TRIG}):
        return None
    suffix = found.suffixes[0]
    return f"this looks like {found.name}: name the file {suffix}, or state FORMAT {suffix[1:]}"
