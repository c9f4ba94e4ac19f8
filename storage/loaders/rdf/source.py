"""The text of an RDF file as the parser library reads it, and the positions of errors in it."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from xml.parsers import expat

from graphdb.common.errors import LoadError
from graphdb.storage.loaders import streams
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import JSON_LD, RDF_XML, TRIG, TURTLE, mistaken
from graphdb.storage.loaders.rdf.depth import Depth, Unparsed
from graphdb.storage.loaders.rdf.graph_blocks import GraphBlocks
from graphdb.storage.loaders.rdf.open_strings import MESSAGE, OpenStrings
from graphdb.storage.loaders.streams import BadLine, chunks

_REMEMBERED = 1 << 20
"""Bytes of the file that are buffered, to show the line of an error."""

_PLACE = re.compile(
    r"^Parser error (?:at|between) line \d+(?: between columns \d+ and \d+| between .*?| column \d+.*?)?: "
)
_UNCLOSED = {'"': "string", "'": "string", "<": "IRI"}

_BIT = {RDF_XML: re.compile(rb"[^>]*>"), JSON_LD: re.compile(rb"[^][{}:,]*[][{}:,]")}
"""What is read at a time of a format whose errors the library tells no places of: up to a tag's end, or a mark."""


class Source:
    """The text of a file as the library reads it; remembers the last of it, and where it stands.

    With ``closely`` (RDF/XML and JSON-LD) it is read bit by bit, so that an error is in what was read last: the library
    tells no places of these.  With ``skip`` the library goes on behind errors.  ``check`` is called at every read, and
    may raise.
    """

    def __init__(
        self,
        file: DataFile,
        size: int,
        *,
        closely: bool = False,
        skip: bool = False,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self._file = file
        self.check_stop = check
        self._chunks = chunks(file, min(size, 1 << 18))
        self._rest = memoryview(b"")
        self._recent: deque[bytes] = deque()
        self._text: bytes | None = None
        """What is remembered as one, while it is the same; a file may have an error at every mark."""
        self._lines: list[bytes] | None = None
        self._shown: tuple[int, str] = 0, ""
        """The line shown last, and its number: its errors share one text."""
        self._forgotten = self._lines_forgotten = 0
        self._recent_bytes = 0
        self._token = 0
        self.is_xml = file.format is RDF_XML
        self.closely = closely and file.format in _BIT
        self._depth = Depth(file)
        lenient = skip and file.format in (TURTLE, TRIG)
        self.unparsed = Unparsed(self._depth) if lenient else None
        self._strings = OpenStrings() if lenient else None
        self.graphs = GraphBlocks() if lenient and file.format is TRIG else None
        self._outline = _Outline() if self.is_xml and self.closely else None
        self._xml = expat.ParserCreate() if self.is_xml else None
        if self._xml is not None and self._outline is not None:
            self._xml.StartElementHandler = self._outline.enter
            self._xml.EndElementHandler = self._outline.exit
        self._malformed: expat.ExpatError | None = None
        self._ended = self._described = False
        self._seen = 0
        self._bit, self._at = b"", 0
        self._unchecked = bytearray()
        self._again = b""
        self.consumed = 0

    @property
    def line(self) -> int:
        """The number of the line up to which the library has read."""
        return 1 + self._lines_forgotten + sum(chunk.count(b"\n") for chunk in self._recent)

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes."""
        self.check_stop()
        if self._again:
            piece, self._again = self._again[:size], self._again[size:]
            return piece
        while not self._rest:
            chunk, self.consumed = next(self._chunks, (b"", self.consumed))
            if not self.closely or not chunk:
                if self._unchecked:
                    self._check(bytes(self._unchecked))
                self._check(chunk)
            text = chunk if self._strings is None else self._strings.closed(chunk)
            if not chunk and not text:
                return b""
            text = text if self.graphs is None else self.graphs.marked(text)
            if self.unparsed is None:
                self._depth.follow(chunk)
            self._rest = memoryview(text)
            self._recent.append(chunk)
            self._text = self._lines = None
            self._recent_bytes += len(chunk)
            while self._recent_bytes - len(self._recent[0]) > _REMEMBERED:
                gone = self._recent.popleft()
                self._recent_bytes -= len(gone)
                self._forgotten += len(gone)
                self._lines_forgotten += gone.count(b"\n")
            # The library would look through all of a text again with every piece of it.
            tag = chunk.rfind(b"<")
            self._token = self._token + len(chunk) if tag < 0 else len(chunk) - tag
            if self.is_xml and self._token > streams.LONGEST_TOKEN:
                raise streams.too_long("tag or text", streams.LONGEST_TOKEN, self._file, self.line)
        end = len(self._rest) if size < 0 else size
        if self.closely and (found := _BIT[self._file.format].match(self._rest)):
            end = min(end, found.end())
        piece = bytes(self._rest[:end])
        if self.unparsed is not None:
            piece = self.unparsed.hand_on(piece)
        self._rest = self._rest[len(piece) :]
        if self.closely:
            self._at += len(self._bit)
            self._bit = piece
            self._unchecked += piece
            if piece.endswith(b">") or len(self._unchecked) >= 1 << 18:  # of a long tag not at every piece
                self._check(bytes(self._unchecked))
                self._unchecked.clear()
            if self._outline is not None:
                self._outline.add(piece)
        return piece

    def leave(self) -> bool:
        """Go on, for another parser, behind the element within the outermost one; False where none is being read."""
        outline = self._outline
        if outline is None or not outline.inside:
            return False
        while outline.depth > 1 and self._xml is not None and self.read(1 << 16):
            pass
        outline.inside = False
        self._again = outline.head
        return outline.depth == 1 and self._xml is not None

    def _check(self, chunk: bytes) -> None:
        """Let an XML parser see the text too: the library does not mind where a document ends."""
        if self._xml is None:
            return
        try:
            self._xml.Parse(chunk, not chunk)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            if "amplification" in reason:  # entities of entities, which the library would write out
                raise LoadError(reason, source=self._file.name, line=error.lineno, column=error.offset + 1) from None
            at = self._xml.ErrorByteIndex - self._seen
            if 0 <= at < len(chunk) and chunk[at] < 32:  # the library takes control characters for text
                reason = f"U+{chunk[at]:04X} cannot stand in XML"
                raise LoadError(reason, source=self._file.name, line=error.lineno, column=error.offset + 1) from None
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
        if self._strings is not None and error.lineno in self._strings.places and "language code" in message:
            error.offset, message = self._strings.places[error.lineno], MESSAGE
        if self.graphs is not None and error.lineno and error.offset:
            error.offset = self.graphs.column(error.lineno, error.offset)
        message = message[:1].lower() + message[1:] if message[1:2].islower() else message
        line, column = error.lineno, error.offset if error.lineno else None
        if not line and self._malformed is not None:
            line, column = self._malformed.lineno, self._malformed.offset + 1
        elif not line and self.closely and "LoadDocumentCallback" not in error.args[0]:  # which comes late
            line, column = self._place()
        if hint is None and line == 1 and self._recent and not self._lines_forgotten and not self._described:
            hint = mistaken(self._recent[0], self._file.format)
        self._described = True
        text = self._line(line) if line else None
        if text and column and message.lower() == "unexpected end of file":
            begun = _UNCLOSED.get(text[column - 1 : column])
            message = f"the {begun} that begins here is not closed" if begun else message
        return BadLine(self._file.name, line, column, message, hint, text if column else None)

    def _place(self) -> tuple[int, int]:
        """Return the line and column of what was read last, without what is before its tag or value."""
        text = self._remembered()
        tag = self._bit.find(b"<")
        blank = tag if self.is_xml and tag >= 0 else len(self._bit) - len(self._bit.lstrip(b" \t\r\n,"))
        at = self._at + blank - self._forgotten
        start = text.rfind(b"\n", 0, at) + 1
        return 1 + self._lines_forgotten + text.count(b"\n", 0, at), len(text[start:at].decode("utf-8", "replace")) + 1

    def _line(self, number: int) -> str | None:
        """Return a line, if it is still known."""
        if self._lines is None:
            self._lines = self._remembered().split(b"\n")
            self._shown = 0, ""
        at = number - 1 - self._lines_forgotten
        if not 0 <= at < len(self._lines):
            return None
        if self._shown[0] != number:
            self._shown = number, self._lines[at].rstrip(b"\r").decode("utf-8", "replace")
        return self._shown[1]

    def _remembered(self) -> bytes:
        """Return the last of the text that was read."""
        if self._text is None:
            self._text = b"".join(self._recent)
        return self._text


class _Outline:
    """Where in an XML document its reader is.

    Attributes
    ----------
    depth
        Elements that are open.
    head
        The text up to the outermost element, with its tag.
    inside
        Whether anything was read behind that, or since :meth:`Source.leave`, and the document is one of RDF's.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.head = b""
        self.inside = False
        self._is_rdf = self._begun = False

    def enter(self, name: str, attributes: dict[str, str]) -> None:
        """Note that an element begins."""
        self.depth += 1
        if not self._begun and self.depth == 1:
            self._is_rdf = name.endswith("RDF")

    def exit(self, name: str) -> None:
        """Note that an element ends."""
        self.depth -= 1

    def add(self, piece: bytes) -> None:
        """Take what was read, and parsed."""
        if self._begun:
            self.inside = self._is_rdf
        else:
            self.head += piece
            self._begun = self.depth > 0
