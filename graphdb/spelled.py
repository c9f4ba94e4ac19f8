"""Paths of a result: from their columns of ids to :class:`~graphdb.elements.Path`, all that share parts at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.elements import Node, Path, Relationship

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]


def path_type() -> pa.DataType:
    """Return the type of paths in Arrow: see :data:`graphdb.values.PATH`."""
    import pyarrow as pa

    return pa.struct([("vertices", pa.list_(pa.int64())), ("codes", pa.list_(pa.int64()))])


def path_array(starts: Ints, walks: Ints, codes: Ints) -> pa.StructArray:
    """Return paths as a column; ``starts`` says where each begins in ``walks``, one code fewer than vertices each."""
    import pyarrow as pa

    first = starts - np.arange(len(starts))
    lists = [
        pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(items))
        for offsets, items in ((starts, walks), (first, codes))
    ]
    return pa.StructArray.from_arrays(lists, ["vertices", "codes"])


EdgeKey: TypeAlias = tuple[int, int, int, int]
"""An edge: its label, start, end and ordinal."""


class Names(Protocol):
    """Who knows how labels are written, and what edges have of properties."""

    def written(self, labels: set[int]) -> dict[int, str]:
        """Return edge labels as a user would write them."""

    def described(self) -> bool:
        """Whether some edges have properties."""

    def facts(self, edges: set[EdgeKey]) -> dict[EdgeKey, dict[str, object]]:
        """Return the properties of those of some edges that have any."""


class Spelled:
    """A column of paths (null where there is none): lists of vertex ids, and of codes of the edges between them."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        import pyarrow.compute as pc

        flat = column.combine_chunks()
        self._present: list[bool] | None = None
        if flat.null_count:
            self._present = flat.is_valid().to_pylist()
            flat = flat.drop_null()
        lists = flat.field("vertices")
        self._starts = np.append(0, np.cumsum(pc.list_value_length(lists).to_numpy()))
        self._codes = flat.field("codes").flatten().to_numpy()
        self._vertices, self._at = np.unique(lists.flatten().to_numpy(), return_inverse=True)

    @classmethod
    def of(cls, values: list[Any]) -> Spelled:
        """Return the column of paths that are structs in Python already."""
        import pyarrow as pa

        return cls(pa.chunked_array([pa.array(values, path_type())]))

    @property
    def vertices(self) -> list[int]:
        """The vertices of all paths."""
        found: list[int] = self._vertices.tolist()
        return found

    def paths(self, names: Names, nodes: Mapping[int, Node]) -> list[Path | None]:
        """Return the paths; ``nodes`` holds their vertices."""
        all_nodes = [nodes[vertex] for vertex in self._vertices.tolist()]
        spelled = [all_nodes[i] for i in self._at.tolist()]
        edges = self._relationships(names, all_nodes, self._at)
        starts = self._starts.tolist()
        made: list[Path | None] = [
            Path(tuple(spelled[begin:end]), tuple(edges[begin - i : end - i - 1]))
            for i, (begin, end) in enumerate(pairwise(starts))
        ]
        if self._present is None:
            return made
        left = iter(made)
        return [next(left) if present else None for present in self._present]

    def _relationships(self, names: Names, nodes: Sequence[Node], at: Ints) -> list[Relationship]:
        """The edges of all paths, each made once."""
        if not len(self._codes):
            return []
        inner = np.ones(len(at), bool)
        inner[self._starts[1:] - 1] = False  # a path's last vertex has no edge after it
        left = np.flatnonzero(inner)
        before, after = at[left], at[left + 1]
        backwards = (self._codes & 1).astype(bool)
        start, end = np.where(backwards, after, before), np.where(backwards, before, after)
        labels, which = np.unique(self._codes >> 1, return_inverse=True)
        count = len(nodes)
        keys, edge = np.unique((which * count + start) * count + end, return_inverse=True)
        written = names.written(set(labels.tolist()))
        types = [written[label] for label in labels.tolist()]
        parts = [(key // count // count, key // count % count, key % count) for key in keys.tolist()]
        made = [Relationship(types[label], nodes[start].iri, nodes[end].iri) for label, start, end in parts]
        if names.described():  # of paths of parallel edges there is no such column
            ids = self._vertices.tolist()
            known = [(int(labels[label]), ids[start], ids[end], 0) for label, start, end in parts]
            facts = names.facts({*known})
            made = [replace(one, properties=facts.get(key, {})) for one, key in zip(made, known, strict=True)]
        return [made[i] for i in edge.tolist()]
