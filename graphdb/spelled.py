"""Edges and paths of a result: from columns of ids to elements, all that share parts at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import compress, count, pairwise, repeat, starmap
from operator import sub
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from graphdb.elements import Path, Relationship, fill, filled, without_collection

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
    def ids(self) -> Ints:
        """The ids of all terms."""

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
        All kinds of edges (their labels, of parallel ones several times) as they are written; for each edge its kind
        (int64), and whether it is passed backwards (bool).

    Attributes
    ----------
    facts
        The properties of each of :attr:`edges`; None where none has any.
    """

    def __init__(
        self,
        starts: Ints,
        terms: Terms,
        at: Ints,
        types: Sequence[str],
        which: Ints,
        backwards: NDArray[Any],
    ) -> None:
        self._starts: list[int] = starts.tolist()
        self._terms, self._at = terms, at
        self._types, self._which, self._backwards = types, which, backwards
        self.facts: Sequence[dict[str, Any]] | None = None
        self._waiting: list[ref[Path]] = []

    def paths(self) -> list[Path]:
        """Return the paths, whose parts are found when somebody asks for them."""
        made = filled(Path, len(self._starts) - 1, _parts=repeat(self))
        self._waiting = list(map(ref, made))
        return made

    def spell(self) -> None:
        """Give the paths that are still there their vertices and edges, all of them at once."""
        with without_collection():
            paths = [path() for path in self._waiting]
            there = [path is not None for path in paths]
            nodes = tuple(map(self._terms.all.__getitem__, self._at.tolist()))
            edges = tuple(self._relationships())
            starts, first = self._starts, map(sub, self._starts, count())
            fill(
                Path,
                list(compress(paths, there)),
                nodes=compress(map(nodes.__getitem__, map(slice, starts, starts[1:])), there),
                relationships=compress(map(edges.__getitem__, starmap(slice, pairwise(first))), there),
                _parts=repeat(None),
            )

    @property
    def edges(self) -> tuple[Ints, Ints, Ints]:
        """The kinds of all edges, each once, and which of all terms their ends are: int64."""
        keys, _ = self._keys
        count = len(self._terms.ids)
        return keys // count // count, keys // count % count, keys % count

    @cached_property
    def _keys(self) -> tuple[Ints, Ints]:
        """A number for each different edge, and which of them each edge of the paths is."""
        start, end = (self._at[places] for places in ends_of(np.array(self._starts), self._backwards))
        count = len(self._terms.ids)
        return distinct((self._which * count + start) * count + end)

    def _relationships(self) -> list[Relationship]:
        """The edges of all paths, each made once."""
        if not len(self._which):
            return []
        which, start, end = self.edges
        made = relationships(self._types, which, self._terms.ends, start, end, self.facts)
        return list(map(made.__getitem__, self._keys[1].tolist()))


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
