"""Edges and paths of a result: from columns of ids to elements, all that share parts at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, count, pairwise, repeat, starmap
from operator import sub
from typing import Any, Protocol
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.lazy import lazy
from graphdb.common.values.elements import Path, Relationship, fill, filled, without_collection
from graphdb.common.values.types import CODE_BITS, LABEL_OF
from graphdb.storage.arrays.texts import number_integers

Ints = NDArray[np.int64]

_FEW = 1000
"""Values that are sorted sooner than hashed."""


@dataclass(frozen=True, slots=True)
class Walks:
    """A column of paths: ``starts`` says where each begins in ``vertices``, one code fewer than vertices each.

    All are int64: [paths + 1], [places] and [places - paths].
    """

    starts: Ints
    vertices: Ints
    codes: Ints

    @classmethod
    def of(cls, column: arrow.Array) -> Walks:
        """Return a column without nulls as :meth:`array` made it."""
        starts, vertices = lists(column.field("vertices"))
        return cls(starts, vertices.to_numpy(), lists(column.field("codes"))[1].to_numpy())

    @property
    def edges(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Label, start, end and ordinal of the edges of all paths, one after the other."""
        left, right = self.vertices[:-1], self.vertices[1:]
        if len(self.starts) > 2:  # a path's last vertex has no edge after it
            inner = np.ones(len(left), bool)
            inner[self.starts[1:-1] - 1] = False
            left, right = left[inner], right[inner]
        backwards, kinds = self.codes & 1 == 1, self.codes >> 1
        start, end = np.where(backwards, right, left), np.where(backwards, left, right)
        return kinds & LABEL_OF, start, end, kinds >> (CODE_BITS - 1)

    @property
    def nbytes(self) -> int:
        """Bytes of its arrays."""
        return self.starts.nbytes + self.vertices.nbytes + self.codes.nbytes

    def array(self) -> arrow.Array:
        """Return the column in Arrow: a struct of two lists.

        SQL compares paths by them, so that a self-loop has one direction here, whichever way it was passed.
        """
        first = self.starts - np.arange(len(self.starts))
        vertices = arrow.list_array(self.starts, arrow.numbers(self.vertices))
        loops = np.delete(self.vertices, self.starts[1:] - 1) == np.delete(self.vertices, self.starts[:-1])
        codes = self.codes & ~loops.astype(np.int64) if loops.any() else self.codes
        codes = arrow.list_array(first, arrow.numbers(codes))
        return arrow.struct_array([vertices, codes], ["vertices", "codes"])


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


class MaterializedPaths:
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
        self._starts, self._terms, self._at = starts, terms, at
        self._types, self._which, self._backwards = types, which, backwards
        self.facts: Sequence[dict[str, Any]] | None = None
        self._waiting: list[ref[Path]] = []

    def paths(self) -> list[Path]:
        """Return the paths, whose parts, if they are many, are found when somebody asks for them."""
        if len(self._at) < _FEW:
            made = filled(Path, len(self._starts) - 1)
            self._fill(made, repeat(True))
            return made
        made = filled(Path, len(self._starts) - 1, _parts=repeat(self))
        self._waiting = list(map(ref, made))
        return made

    def materialize(self) -> None:
        """Give the paths that are still there their vertices and edges, all of them at once."""
        with without_collection():
            paths = [path() for path in self._waiting]
            self._fill([path for path in paths if path is not None], [path is not None for path in paths])

    def _fill(self, paths: list[Path], there: Iterable[bool]) -> None:
        """Put vertices and edges into those paths of the column that are there."""
        nodes = tuple(map(self._terms.all.__getitem__, self._at.tolist()))
        edges = self._relationships()
        starts: list[int] = self._starts.tolist()
        first = map(sub, starts, count())
        fill(
            Path,
            paths,
            nodes=compress(map(nodes.__getitem__, map(slice, starts, starts[1:])), there),
            relationships=compress(map(edges.__getitem__, starmap(slice, pairwise(first))), there),
            _parts=repeat(None),
        )

    @property
    def edges(self) -> tuple[Ints, Ints, Ints]:
        """The kinds of all edges, each once, and which of all terms their ends are: int64."""
        count = len(self._terms.ids)
        rest, end = np.divmod(self._keys[0], count)
        return *np.divmod(rest, count), end

    @lazy
    def _keys(self) -> tuple[Ints, Ints]:
        """A number for each different edge, and which of them each edge of the paths is."""
        left, right = self._at[:-1], self._at[1:]
        if len(self._starts) > 2:  # a path's last vertex has no edge after it
            inner = np.ones(len(left), bool)
            inner[self._starts[1:-1] - 1] = False
            left, right = left[inner], right[inner]
        start, end = np.where(self._backwards, right, left), np.where(self._backwards, left, right)
        count = len(self._terms.ids)
        return distinct((self._which * count + start) * count + end)

    def _relationships(self) -> tuple[Relationship, ...]:
        """The edges of all paths, each made once."""
        if not len(self._which):
            return ()
        which, start, end = self.edges
        made = relationships(self._types, which, self._terms.ends, start, end, self.facts)
        return tuple(map(made.__getitem__, self._keys[1].tolist()))


def edge_columns(edges: arrow.Array) -> tuple[Ints, ...]:
    """Return label, start, end and ordinal of a column of edges; of null they mean nothing."""
    parts = (edges.field(part) for part in ("label", "start", "end", "ordinal"))
    return tuple(np.zeros(len(part), np.int64) if part.data is None else part.data for part in parts)


def lists(column: arrow.Array) -> tuple[Ints, arrow.Array]:
    """Return where the lists of a column without nulls begin and end in their items, and those items."""
    offsets = column.offsets
    assert offsets is not None
    return (offsets - offsets[0]).astype(np.int64), column.flatten()


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
        few = np.array(sorted({*values.tolist()}), np.int64)
        return few, np.searchsorted(few, values)
    # Hashing all and sorting few takes a fraction of sorting all.
    found, which = number_integers(values)
    order = np.argsort(found)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return found[order], place[which]


def distinct_edges(edges: Sequence[Ints]) -> tuple[tuple[Ints, ...], Ints]:
    """Return each of some edges once, and for each edge which of them it is."""
    label, start, end, ordinal = edges
    kinds, which = distinct(label | ordinal << (CODE_BITS - 1))
    terms, places = distinct(np.concatenate([start, end]))
    count = max(len(terms), 1)
    keys, at = distinct((which * count + places[: len(start)]) * count + places[len(start) :])
    kind = kinds[keys // count // count]
    return (kind & LABEL_OF, terms[keys // count % count], terms[keys % count], kind >> (CODE_BITS - 1)), at
