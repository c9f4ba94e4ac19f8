"""Edges and paths of a result: from columns of ids to elements, all that share parts at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphdb.elements import Node, Path, Relationship, filled, without_collection

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]

_FEW = 1000
"""Values that are sorted sooner than hashed."""


def path_array(starts: Ints, walks: Ints, codes: Ints) -> pa.StructArray:
    """Return paths as a column; ``starts`` says where each begins in ``walks``, one code fewer than vertices each."""
    import pyarrow as pa

    first = starts - np.arange(len(starts))
    lists = [
        pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(items))
        for offsets, items in ((starts, walks), (first, codes))
    ]
    return pa.StructArray.from_arrays(lists, ["vertices", "codes"])


class Terms(Protocol):
    """Terms that are made when they are asked for."""

    @property
    def all(self) -> Sequence[Any]:
        """The terms themselves, vertices as nodes."""

    @property
    def ends(self) -> Sequence[Any]:
        """The terms as ends of edges, vertices as IRIs."""


class Spelled:
    """A column of paths: lists of vertices, and of codes of the edges between them.

    Parameters
    ----------
    starts
        int64 [paths + 1]: where each path begins in ``at``.
    terms, at
        Terms, and which of them each place of a path is: int64.
    types, which, backwards
        All edge labels as they are written; for each edge its label (int64), and whether it is passed backwards (bool).
    facts
        For each edge its properties; None where none has any.
    """

    def __init__(
        self,
        starts: Ints,
        terms: Terms,
        at: Ints,
        types: Sequence[str],
        which: Ints,
        backwards: NDArray[Any],
        facts: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        self._starts: list[int] = starts.tolist()
        self._terms, self._at = terms, at
        self._types, self._which, self._backwards = types, which, backwards
        self._facts = facts
        self._spelled: tuple[tuple[Node, ...], tuple[Relationship, ...]] | None = None

    def paths(self) -> list[Path]:
        """Return the paths, whose parts are found when somebody asks for them."""
        count = len(self._starts) - 1
        return filled(Path, count, _number=range(count), _parts=repeat(self))

    def of(self, number: int) -> tuple[tuple[Node, ...], tuple[Relationship, ...]]:
        """Return the vertices and edges of one path."""
        if self._spelled is None:
            with without_collection():
                nodes = tuple(map(self._terms.all.__getitem__, self._at.tolist()))
                self._spelled = nodes, tuple(self._relationships())
        nodes, edges = self._spelled
        begin, end = self._starts[number : number + 2]
        return nodes[begin:end], edges[begin - number : end - number - 1]

    def _relationships(self) -> list[Relationship]:
        """The edges of all paths, each made once (those of one path are hardly the same)."""
        if not len(self._which):
            return []
        start, end = (self._at[places] for places in ends_of(np.array(self._starts), self._backwards))
        if len(self._starts) == 2 or self._facts is not None:
            return relationships(self._types, self._which, self._terms.ends, start, end, self._facts)
        count = len(self._terms.all)
        keys, edge = distinct((self._which * count + start) * count + end)
        made = relationships(self._types, keys // count // count, self._terms.ends, keys // count % count, keys % count)
        return list(map(made.__getitem__, edge.tolist()))


def ends_of(starts: Ints, backwards: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return where the edges of some paths start and end, among the vertices of all paths."""
    inner = np.ones(starts[-1], bool)
    inner[starts[1:] - 1] = False  # a path's last vertex has no edge after it
    left = np.flatnonzero(inner)
    return left + backwards, left + ~backwards


def lists(column: pa.ListArray) -> tuple[Ints, pa.Array]:
    """Return where the lists of a column without nulls begin and end in their items, and those items."""
    offsets = column.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    return offsets - first, column.values.slice(first, last - first)


def relationships(
    types: Sequence[str],
    which: Ints,
    terms: Sequence[Any],
    starts: Ints,
    ends: Ints,
    facts: Sequence[dict[str, Any]] | None = None,
) -> list[Relationship]:
    """Return edges by their label among ``types``, and their ends among ``terms`` (IRIs, or a literal's value).

    ``facts`` are their properties, where some have any.
    """
    count = len(which)
    return filled(
        Relationship,
        count,
        type=map(types.__getitem__, which.tolist()),
        start=map(terms.__getitem__, starts.tolist()),
        end=map(terms.__getitem__, ends.tolist()),
        properties=[{} for _ in range(count)] if facts is None else facts,
    )


def distinct(values: Ints) -> tuple[Ints, Ints]:
    """Return the values, each once and in order, and for each value which of them it is."""
    if len(values) and (values == values[0]).all():
        return values[:1], np.zeros(len(values), np.int64)
    if len(values) < _FEW:
        return np.unique(values, return_inverse=True)
    import pyarrow as pa

    # Hashing all and sorting few takes a fraction of sorting all.
    encoded = pa.array(values).dictionary_encode()
    found = encoded.dictionary.to_numpy()
    order = np.argsort(found)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return found[order], place[encoded.indices.to_numpy()]
