"""The edges of paths and what they cost, as far as the data alone says it: they are found once for a state of the data.

What a cheapest path goes along often names no parameter: friends who studied together, roads by their lengths.  Another
text with the same pattern and cost, or the same one with other ends, goes along the edges that were found before.
So do paths without costs where some edges are parallel, or a condition leaves some out: the edges, there and back, are
sorted once.  Where a parameter is in the cost, the edges are found once, and sorted for the search, and costs anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.plan.paths import Along, Ends, Weighted
from graphdb.storage.arrays.arrow import values
from graphdb.storage.persisted.store import NOTHING, StateStructures

Key: TypeAlias = tuple[ast.PathPattern, object]
"""The pattern of one edge with its ends, and its conditions and cost, or what else is wanted of the edges."""


@dataclass(frozen=True, slots=True)
class DataEdges:
    """What says which edges a path goes along, and what they cost, where no row and no argument does."""

    key: Key
    views: frozenset[str]
    """The steps that find them, and nothing else."""


class FoundEdges:
    """The bindings of the pattern of one edge, and the same edges as a search reads them.

    Parameters
    ----------
    bindings
        As the step that matches the edges yields them.
    """

    def __init__(self, bindings: arrow.Table) -> None:
        columns = zip(bindings.column_names, bindings.columns, strict=True)
        self.bindings = arrow.table({name: column.combine_chunks() for name, column in columns})
        self._columns = {values(column).ctypes.data for column in self.bindings.columns}
        self._ends: tuple[tuple[int, ...], Ends] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of the bindings, and of the edges once they are sorted."""
        return self.bindings.nbytes + 9 * 8 * len(self.bindings)

    def ends_of(self, columns: Sequence[NDArray[Any]]) -> Ends | None:
        """Return the edges whose ends and codes are these columns of the bindings; None where one is no such column."""
        places = tuple(column.ctypes.data for column in columns)
        if not self._columns.issuperset(places) or any(len(column) != len(self.bindings) for column in columns):
            return None
        if self._ends is None or self._ends[0] != places:
            self._ends = places, Ends.of(columns)
        return self._ends[1]


@dataclass(frozen=True, slots=True)
class FoundAlong:
    """The edges that a path goes along, as a search reads them."""

    along: Along

    @property
    def nbytes(self) -> int:
        """Bytes of the edges, there and back."""
        return self.along.away.nbytes + self.along.back.nbytes


Found: TypeAlias = Weighted | FoundEdges | FoundAlong


class CostedEdges:
    """Such edges over one state of the data, the least recently used evicted beyond a budget of bytes.

    Those with costs are ``persisted``.
    """

    def __init__(self, limit_bytes: int, persisted: StateStructures = NOTHING) -> None:
        self._limit = limit_bytes
        self._persisted = persisted
        self._bytes = 0
        self._found: OrderedDict[Key, Found] = OrderedDict()

    def get(self, key: Key) -> Found | None:
        """Return the edges that were found for a key."""
        found = self._found.get(key)
        if found is not None:
            self._found.move_to_end(key)
        elif isinstance(before := self._persisted.find(_words(key)), Weighted):
            self.put(key, before)
            return before
        return found

    def put(self, key: Key, found: Found) -> None:
        """Cache the edges of a key, if the budget allows it."""
        if found.nbytes > self._limit or key in self._found:
            return
        self._found[key] = found
        if isinstance(found, Weighted) and not self._persisted.has(_words(key)):
            self._persisted.note(_words(key), found)
        self._bytes += found.nbytes
        while self._bytes > self._limit:
            self._bytes -= self._found.popitem(last=False)[1].nbytes


def _words(key: Key) -> tuple[str, str]:
    """Return what edges with costs are persisted by: the syntax tree as text."""
    return "costed", repr(key)


def key_of(pattern: ast.PathPattern, where: object, cost: ast.Expression | None) -> Key | None:
    """Return what edges with costs (None: without) are found by.

    None where an argument or a volatile function decides on them.
    """
    for part in walk((pattern, where, cost)):
        if isinstance(part, ast.Parameter):
            return None
        if isinstance(part, ast.FunctionCall) and part.name.lower() in VOLATILE:
            return None
    return pattern, (where, cost)
