"""RDF formats other than lines, by pyoxigraph: Turtle, TriG, RDF/XML, JSON-LD to blocks of N-Quads text.

The library parses and writes in Rust; what it writes, our own reader numbers.  So Python sees no triple, and every
format gets the same terms.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import Any
from xml.parsers import expat

from graphdb.errors import LoadError
from graphdb.storage.loaders import streams
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import JSON_LD, RDF_XML, TRIG, TURTLE, mistaken
from graphdb.storage.loaders.streams import BLOCK, BadLine, Block, Put, chunks

_LIBRARY = {TURTLE: "TURTLE", TRIG: "TRIG", RDF_XML: "RDF_XML", JSON_LD: "JSON_LD"}

_LONGEST = 16 << 20
"""Bytes that the library keeps of what has not ended yet."""

_REMEMBERED = 1 << 20
"""Bytes of the file that are kept, to show the line of an error."""

_PLACE = re.compile(r"^Parser error at line \d+(?: between columns \d+ and \d+| between .*?| column \d+)?: ")


def read_rdf(file: DataFile, base: str | None, skip: bool, put: Put, size: int = BLOCK) -> None:
    """Hand on the triples of a file as blocks of N-Quads, at last one with the prefixes that it declares.

    ``base`` is the IRI that relative ones are relative to where the file states none; by default the file's own.
    With ``skip`` the parser goes on behind what it cannot read, as far as the format lets it.

    Raises
    ------
    LoadError
        Where the file cannot be read or, unless ``skip``, breaks the grammar.
    """
    import pyoxigraph

    source = _Source(file, size)
    target = _Target(put, source, size)
    format = getattr(pyoxigraph.RdfFormat, _LIBRARY[file.format])
    try:
        parser: Any = pyoxigraph.parse(source, format, base_iri=base or file.iri)  # type: ignore[arg-type]
        quads = _skipping(parser, source, target) if skip else parser
        pyoxigraph.serialize(quads, target, pyoxigraph.RdfFormat.N_QUADS)  # type: ignore[arg-type]
        cut = source.cut()
        if cut is not None and not skip:
            raise cut.error()
        target.bad += [cut] if cut is not None else []
    except SyntaxError as error:
        raise source.describe(error).error() from None
    except MemoryError:
        raise streams.too_long("token or statement", _LONGEST, file, source.line) from None
    except ValueError as error:
        raise LoadError(str(error), source=file.name) from None
    target.close(dict(parser.prefixes))


def _skipping(parser: Iterator[Any], source: _Source, target: _Target) -> Iterator[Any]:
    """Yield what can be parsed; what cannot is noted."""
    before: tuple[object, ...] | None = None
    while True:
        try:
            yield from parser
            return
        except SyntaxError as error:
            if error.args == before:  # it does not get any further
                return
            before = error.args
            target.bad.append(source.describe(error))


class _Source:
    """The file's text as the library reads it; remembers the last of it, and where it stands."""

    def __init__(self, file: DataFile, size: int) -> None:
        self._file = file
        self._chunks = chunks(file, min(size, 1 << 18))
        self._rest = memoryview(b"")
        self._recent: deque[bytes] = deque()
        self._lines_gone = 0
        self._kept = 0
        self._token = 0
        self._xml = expat.ParserCreate() if file.format is RDF_XML else None
        self._malformed: expat.ExpatError | None = None
        self._ended = False
        self._seen = 0
        self.consumed = 0

    @property
    def line(self) -> int:
        """The number of the line up to which the library has read."""
        return 1 + self._lines_gone + sum(chunk.count(b"\n") for chunk in self._recent)

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes."""
        while not self._rest:
            chunk, self.consumed = next(self._chunks, (b"", self.consumed))
            self._check(chunk)
            if not chunk:
                return b""
            self._rest = memoryview(chunk)
            self._recent.append(chunk)
            self._kept += len(chunk)
            while self._kept - len(self._recent[0]) > _REMEMBERED:
                gone = self._recent.popleft()
                self._kept -= len(gone)
                self._lines_gone += gone.count(b"\n")
            # The library would look through all of a text again with every piece of it.
            tag = chunk.rfind(b"<")
            self._token = self._token + len(chunk) if tag < 0 else len(chunk) - tag
            if self._file.format is RDF_XML and self._token > streams.LONGEST_TOKEN:
                raise streams.too_long("tag or text", streams.LONGEST_TOKEN, self._file, self.line)
        piece = bytes(self._rest if size < 0 else self._rest[:size])
        self._rest = self._rest[len(piece) :]
        return piece

    def _check(self, chunk: bytes) -> None:
        """Let an XML parser see the text too: the library does not mind where a document ends."""
        if self._xml is None:
            return
        try:
            self._xml.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            told = expat.ErrorString(error.code)
            if "amplification" in told:  # entities of entities, which the library would write out
                raise LoadError(told, source=self._file.name, line=error.lineno, column=error.offset + 1) from None
            at = self._xml.ErrorByteIndex - self._seen
            if 0 <= at < len(chunk) and chunk[at] < 32:  # the library takes control characters for text
                told = f"U+{chunk[at]:04X} cannot stand in XML"
                raise LoadError(told, source=self._file.name, line=error.lineno, column=error.offset + 1) from None
            self._malformed, self._ended = error, not chunk
            self._xml = None
        else:
            self._xml = self._xml if chunk else None
        self._seen += len(chunk)

    def cut(self) -> BadLine | None:
        """What to say of an XML document that ends too soon; what is wrong within it is for the library to say."""
        if self._malformed is None or not self._ended:
            return None
        message = f"the document ends before its elements do: {expat.ErrorString(self._malformed.code)}"
        return BadLine(self._file.name, self._malformed.lineno, self._malformed.offset + 1, message, None, None)

    def describe(self, error: SyntaxError) -> BadLine:
        """Return the library's error as a place in the file."""
        message = _PLACE.sub("", str(error.args[0]))
        hint = None
        if "LoadDocumentCallback" in message:
            message = "the file refers to a context elsewhere, and such are not fetched"
            hint = "write the @context into the file"
        elif "No scheme" in message:
            hint = "relative IRIs need a base: state @base in the file, or base=… for the load"
        elif "UTF-8" in message:
            hint = "convert the file to UTF-8"
        message = message[:1].lower() + message[1:] if message[1:2].islower() else message
        line, column = error.lineno, error.offset if error.lineno else None
        if not line and self._malformed is not None:  # of XML, the library does not tell
            line, column = self._malformed.lineno, self._malformed.offset + 1
        if line == 1 and self._recent and not self._lines_gone and "UTF-8" not in message:
            hint = mistaken(self._recent[0], self._file.format) or hint
        text = self._line(line) if line else None
        return BadLine(self._file.name, line, column, message, hint, text if column else None)

    def _line(self, number: int) -> str | None:
        """Return a line, if it is still known."""
        lines = b"".join(self._recent).split(b"\n")
        at = number - 1 - self._lines_gone
        return lines[at].rstrip(b"\r").decode("utf-8", "replace") if 0 <= at < len(lines) else None


class _Target:
    """Collects what the library writes, and hands it on in blocks of whole lines."""

    def __init__(self, put: Put, source: _Source, size: int) -> None:
        self._put = put
        self._source = source
        self._size = size
        self._text = bytearray()
        self.bad: list[BadLine] = []

    def write(self, text: bytes) -> int:
        """Take some text."""
        self._text += text
        if len(self._text) >= self._size or len(self.bad) >= 4096:
            cut = self._text.rfind(b"\n") + 1
            rest = self._text[cut:]
            del self._text[cut:]
            self._hand_on()
            self._text = rest
        return len(text)

    def flush(self) -> None:
        """Nothing to do: blocks are handed on when they are full."""

    def close(self, prefixes: dict[str, str]) -> None:
        """Hand on the rest, and what the file declares."""
        self._hand_on(prefixes)

    def _hand_on(self, prefixes: dict[str, str] | None = None) -> None:
        self._put(Block(bytes(self._text), self._source.consumed, self.bad, prefixes or {}))
        self.bad = []
