"""Edges with what they cost, where the data alone says both: they are found once for a state of the data.

What a cheapest path goes along often names no parameter: friends who studied together, roads by their lengths.  Another
text with the same pattern and cost, or the same one with other ends, goes along the edges that were found before.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeAlias

from graphdb.functions.table import VOLATILE
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import walk
from graphdb.plan.paths import Weighted

Key: TypeAlias = tuple[ast.PathPattern, object]
"""The pattern of one edge with its ends, and its conditions and cost."""


@dataclass(frozen=True, slots=True)
class DataEdges:
    """What says which edges a path goes along, and what they cost, where no row and no argument does."""

    key: Key
    views: frozenset[str]
    """The steps that find them, and nothing else."""


class CostedEdges:
    """Such edges over one state of the data, the least recently used evicted beyond a budget of bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._bytes = 0
        self._found: OrderedDict[Key, Weighted] = OrderedDict()

    def get(self, key: Key) -> Weighted | None:
        """Return the edges that were found for a key."""
        found = self._found.get(key)
        if found is not None:
            self._found.move_to_end(key)
        return found

    def put(self, key: Key, found: Weighted) -> None:
        """Cache the edges of a key, if the budget allows it."""
        if found.nbytes > self._limit or key in self._found:
            return
        self._found[key] = found
        self._bytes += found.nbytes
        while self._bytes > self._limit:
            self._bytes -= self._found.popitem(last=False)[1].nbytes


def key_of(pattern: ast.PathPattern, where: object, cost: ast.Expression) -> Key | None:
    """Return what edges with costs are found by; None where an argument or a volatile function decides on them."""
    for part in walk((pattern, where, cost)):
        if isinstance(part, ast.Parameter):
            return None
        if isinstance(part, ast.FunctionCall) and part.name.lower() in VOLATILE:
            return None
    return pattern, (where, cost)
