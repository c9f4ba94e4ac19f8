"""Graphs of TriG, where the library is to go on behind errors: which graph each statement belongs to.

Behind an error within ``graph { … }`` the library goes on behind the next full stop, as if it were outside, and takes
the closing bracket for an error that lasts to the full stop after it.  So the text that it reads has statements of ours
behind every bracket, two behind each: the first ends an error that the bracket was, the second says that it was passed,
and within which graph.  They name an IRI that no file can know, and are taken out of what the library yields.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from graphdb.storage.loaders.rdf.open_strings import IRIS_AND_COMMENTS, STRINGS

_UP_TO_BRACKET = re.compile(
    rb"(?: [^\"'\#<\\{}|]++ | " + IRIS_AND_COMMENTS + rb" | " + STRINGS + rb""" | \{\| | \|\} | \| | ["'] | \\.? )*+""",
    re.DOTALL | re.VERBOSE,
)
"""Text up to a bracket of a graph; those of annotations have a bar."""

_BEGIN, _END = ("1", "2"), ("3", "4")
"""The objects of our statements behind the brackets that open and close a graph."""

_MOST = 1 << 17
"""Brackets whose places are known: more than there are in what the library reads ahead."""


class GraphBlocks:
    """Marks brackets in a text that comes in pieces of whole tokens, and reads the marks in what was parsed of it."""

    def __init__(self) -> None:
        self._iri = f"urn:uuid:{uuid4()}"
        self._within = False
        self._line, self._column = 1, 1
        self._added: OrderedDict[int, list[tuple[int, int]]] = OrderedDict()
        """By line: the columns in the file before which something was added, and how many characters."""
        self._ends: OrderedDict[tuple[int, int], None] = OrderedDict()
        """Lines and columns of the brackets that close graphs."""
        self._graph: Any = None
        """The graph that is being read; None outside of graphs."""
        self._nameless = self._failed = False
        """Whether the name of the graph could not be read, and whether something else of it could not."""

    # --- before the library

    def marked(self, text: bytes) -> bytes:
        """Return the next part of the text with what the library is to read behind brackets."""
        made: list[bytes] = []
        at = 0
        while at < len(text):
            found = _UP_TO_BRACKET.match(text, at)
            stop = len(text) if found is None else found.end()
            self._pass(text[at : stop + 1])
            made.append(text[at : stop + 1])
            opening = text[stop : stop + 1] == b"{"
            if stop < len(text) and opening != self._within:
                self._within = opening
                mark = "".join(f" <{self._iri}> <{self._iri}> {which} ." for which in (_BEGIN if opening else _END))
                made.append(mark.encode())
                self._added.setdefault(self._line, []).append((self._column, len(mark)))
                if not opening:
                    self._ends[self._line, self._column - 1] = None
                for places in (self._added, self._ends):
                    if len(places) > _MOST:
                        places.popitem(last=False)
            at = stop + 1
        return b"".join(made)

    def _pass(self, text: bytes) -> None:
        lines = text.count(b"\n")
        self._column = (1 if lines else self._column) + len(text[text.rfind(b"\n") + 1 :].decode("utf-8", "replace"))
        self._line += lines

    def column(self, line: int, column: int) -> int:
        """Return the column of the file for one of the text that the library reads; both count characters from 1."""
        for before, length in self._added.get(line, ()):
            if column >= before + length:
                column -= length
            elif column > before:
                column = before
        return column

    # --- behind it

    def assigned(self, quads: Iterator[Any]) -> Iterator[Any]:
        """Yield the file's own quads, each in its graph; those of a graph whose name cannot be read are left out."""
        from pyoxigraph import DefaultGraph, Quad

        outside = DefaultGraph()
        for quad in quads:
            if getattr(quad.predicate, "value", None) == self._iri:
                self._passed(quad)
            elif self._graph is None or quad.graph_name != outside:
                yield quad
            elif not self._nameless:
                yield Quad(quad.subject, quad.predicate, quad.object, self._graph)

    def _passed(self, mark: Any) -> None:
        number = mark.object.value
        if number in _BEGIN:
            self._nameless = number == _BEGIN[1] and self._graph is None
            self._graph = mark.graph_name
        else:
            self._graph, self._nameless, self._failed = None, False, False

    def expected(self, error: SyntaxError) -> bool:
        """Say of an error whether it is only the end of a graph in which there was another."""
        line, column = error.lineno or 0, error.offset or 0
        if (self._failed or self._nameless) and (line, self.column(line, column)) in self._ends:
            return True
        self._failed = self._graph is not None
        return False
