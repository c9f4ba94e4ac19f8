"""RDF formats other than lines, by pyoxigraph: Turtle, TriG, RDF/XML, JSON-LD to blocks of N-Quads text.

The library parses and writes in Rust; what it writes, our own reader numbers.  So Python sees no triple, and every
format gets the same terms.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import Any

from graphdb.common.errors import LoadError
from graphdb.storage.loaders import streams
from graphdb.storage.loaders.files import DataFile
from graphdb.storage.loaders.formats import JSON_LD, RDF_XML, TRIG, TURTLE
from graphdb.storage.loaders.rdf.source import Source
from graphdb.storage.loaders.streams import BLOCK, BadLine, Block, Put

_LIBRARY = {TURTLE: "TURTLE", TRIG: "TRIG", RDF_XML: "RDF_XML", JSON_LD: "JSON_LD"}

_LONGEST = 16 << 20
"""Bytes that the library keeps of what has not ended yet."""

_PASSED = 1 << 33
"""Characters that the library may look through for the columns of a line's errors: all before each, in some seconds."""


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

    source = Source(file, size, closely=skip or file.stream is not None, skip=skip, check=put.check)
    target = _Target(put, source, size)
    format = getattr(pyoxigraph.RdfFormat, _LIBRARY[file.format])
    parse: Any = partial(pyoxigraph.parse, format=format, base_iri=base or file.iri)
    try:
        parser = parse(source)
        quads = _skipping(parser, parse, file, source, target) if skip else parser
        pyoxigraph.serialize(quads, target, pyoxigraph.RdfFormat.N_QUADS)  # type: ignore[arg-type]
        cut = source.cut()
        if cut is not None and not skip:
            raise cut.error()
        target.bad += [cut] if cut is not None else []
    except SyntaxError as error:
        raise _located(error, source, file, parse).error() from None
    except MemoryError:
        raise streams.too_long("token or statement", _LONGEST, file, source.line) from None
    except ValueError as error:
        raise LoadError(str(error), source=file.name) from None
    target.close(dict(parser.prefixes))


def _skipping(parser: Any, parse: Any, file: DataFile, source: Source, target: _Target) -> Iterator[Any]:
    """Yield what can be parsed; what cannot is noted.

    Within an element of XML that it cannot read the library would take all for something else: another parser goes on
    behind the element.
    """
    before: tuple[object, ...] | None = None
    line, passed = 0, 0
    unparsed = source.unparsed
    while True:
        try:
            if unparsed is None:
                yield from parser
                return
            for quad in parser if source.graphs is None else source.graphs.assigned(parser):
                unparsed.yielded = True
                yield quad
            return
        except SyntaxError as error:
            source.check_stop()
            if unparsed is not None and error.lineno and error.offset:
                unparsed.failed(error.lineno)
                passed = error.offset + (passed if error.lineno == line else 0)
                line = error.lineno
                if passed > _PASSED:
                    raise LoadError(
                        "there are too many errors in one line", source=file.name, line=line, column=error.offset
                    ) from None
            if error.args == before and not source.is_xml:  # it does not get any further
                return
            before = error.args
            if source.graphs is not None and source.graphs.expected(error):
                continue
            target.bad.append(source.describe(error))
            if source.is_xml:
                if not source.leave():
                    return
                parser = parse(source)


def _located(error: SyntaxError, source: Source, file: DataFile, parse: Any) -> BadLine:
    """Return an error with its place; where the library tells none, the file is read once more, bit by bit."""
    if error.lineno is None and not source.closely:
        again = Source(file, BLOCK, closely=True)
        try:
            deque(parse(again), maxlen=0)
        except SyntaxError as same:
            return again.describe(same)
    return source.describe(error)


class _Target:
    """Collects what the library writes, and hands it on in blocks of whole lines."""

    def __init__(self, put: Put, source: Source, size: int) -> None:
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
