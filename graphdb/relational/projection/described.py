"""What ``labels(v)`` and ``keys(v)`` list, as a bit for each name: rows are grouped by a number instead of a list.

Vertices have few different sets of labels and of properties.  The bits of each vertex are an array, derived of the
graph once; the list of a set is written for each group.  Of single rows the lists, how long they are, and their first
names are columns that are made of the bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.stopping import checked
from graphdb.common.values.types import INTEGER, STRING, Type, list_of
from graphdb.grammar import syntax as ast
from graphdb.grammar.walk import parts_of
from graphdb.pattern.free import LOCAL, SUBQUERIES
from graphdb.pattern.names import Names
from graphdb.relational.vectors.algebra import Clause, ColumnOf, Constant, Operation, Vector
from graphdb.sql.parameters import Parameters
from graphdb.sql.value import SqlValue
from graphdb.storage.arrays.arrow import values
from graphdb.storage.graph.data_graph import DataGraph

_BITS = 62
"""Names that a number has bits for, at most."""

Aspect = Literal["bits", "list", "size", "first"]
"""What of a vertex's names is asked for: which they are, their list, how many they are, and the first of them."""


@dataclass(frozen=True, slots=True)
class Described:
    """The names that vertices are described by."""

    function: str
    """``labels`` or ``keys``."""
    names: tuple[str, ...]
    """As a user would write them, sorted, each once: a bit each, the first being the lowest."""
    bits: tuple[tuple[int, int], ...]
    """The ids of the labels with the places of their bits."""
    aspect: Aspect = "bits"

    @property
    def type(self) -> Type:
        """The type of what is asked for."""
        return {"list": list_of(STRING), "first": STRING}.get(self.aspect, INTEGER)

    @property
    def arrow_type(self) -> arrow.DataType:
        """The type of the column."""
        return {"list": arrow.list_of(arrow.STRING), "first": arrow.STRING}.get(self.aspect, arrow.INT64)

    @property
    def bytes_each(self) -> int:
        """About how many bytes a value takes."""
        return 8 if self.type == INTEGER else 16 + max(map(len, self.names))

    def describe(self, column: str) -> str:
        """Return in words what is asked of the vertices in a column."""
        each = {"bits": "the {0} of {1}, as bits", "list": "the {0} of {1}", "size": "how many {0} {1} has"}
        return each.get(self.aspect, "the first of the {0} of {1}").format(self.function, column)

    def column(self, bits: arrow.Array) -> arrow.Array:
        """Return what is asked for of rows whose names are those of some bits (int64); null where these are."""
        there = None if bits.null_count == 0 else bits.is_valid()
        found = values(bits) if there is None else np.where(there, values(bits), 0)
        if self.aspect == "size":
            return arrow.numbers(np.bitwise_count(found).astype(np.int64), there)
        names = arrow.strings(self.names)
        if self.aspect == "first":  # a power of two is a float as it is
            some = found != 0
            lowest = np.log2(np.where(some, found & -found, 1)).astype(np.int64)
            return names.take(arrow.numbers(lowest, some))
        return bits if self.aspect == "bits" else lists_of_bits(found, names, there)

    def of_vertices(self, graph: DataGraph) -> NDArray[np.int64]:
        """Return the bits of each resource, by its id: int64 [resources]."""

        def derive() -> NDArray[np.int64]:
            found = np.zeros(graph.resources, np.int64)
            if self.function == "labels":
                self._mark_labels(graph, found)
                return found
            for id, bit in checked(self.bits, 1):
                subjects, objects = graph.source.edges(id)
                found[subjects[objects >= graph.resources]] |= 1 << bit
            return found

        return graph.derived(("described", self.function, self.bits), derive)

    def _mark_labels(self, graph: DataGraph, found: NDArray[np.int64]) -> None:
        """Set the bits of the labels that vertices have: all are read at once."""
        from graphdb.storage.arrays.column_kernels import mark_bits

        if graph.type_label is not None:
            bits = np.zeros(max(id for id, _ in self.bits) + 1, np.int64)
            for id, bit in self.bits:
                bits[id] |= 1 << bit
            subjects, classes = map(np.ascontiguousarray, graph.source.edges(graph.type_label))
            mark_bits(subjects, classes, bits, found)

    def listed(self, bits: str, parameters: Parameters) -> SqlValue:
        """Return the list of the names whose bits are set, which SQL yields; null where that is."""
        each = (
            f"CASE WHEN {bits} & {1 << bit} <> 0 THEN {parameters.add(name, 'VARCHAR')} END"
            for bit, name in enumerate(self.names)
        )
        found = f"list_filter([{', '.join(each)}], lambda name: name IS NOT NULL)"
        return SqlValue(f"CASE WHEN {bits} IS NOT NULL THEN {found} END", list_of(STRING))


def lists_of_bits(bits: NDArray[np.int64], names: arrow.Array, there: NDArray[np.bool_] | None) -> arrow.Array:
    """Return for each row the list of those names whose bits are set; null where it is not ``there``."""
    sets, which = np.unique(bits, return_inverse=True)
    chosen = (sets[:, None] >> np.arange(len(names))) & 1
    sizes = chosen.sum(axis=1)
    offsets, (_, items) = np.append(0, np.cumsum(sizes)), np.nonzero(chosen)
    ends = np.append(0, np.cumsum(sizes[which]))
    places = np.arange(ends[-1]) + np.repeat(offsets[which] - ends[:-1], sizes[which])
    return arrow.list_array(ends, names.take(items[places]), there)


def described(function: str, names: Names) -> Described | None:
    """Return the names that ``labels`` or ``keys`` lists; None where there are none, or too many."""
    if function == "labels":
        written = [(names.spellings[id], id) for id in names.vertex_labels if id in names.spellings]
    else:
        written = [(names.spellings[id], id) for id, label in names.edge_labels.items() if label.kinds]
    each = sorted({name for name, _ in written})
    if not 0 < len(each) <= _BITS or (function == "labels" and len(each) < len(written)):  # it lists a name twice
        return None
    return Described(function, tuple(each), tuple((id, each.index(name)) for name, id in sorted(written)))


def asked(expression: ast.Expression) -> tuple[str, str] | None:
    """Return the function and the variable of ``labels(v)`` and ``keys(v)``; None for other expressions."""
    match expression:
        case ast.FunctionCall(name, (ast.Variable(variable),)) if name.lower() in ("labels", "keys"):
            return name.lower(), variable
    return None


def described_in(node: object) -> Iterator[tuple[ast.Expression, Aspect, ast.Expression]]:
    """Yield what a piece of syntax asks of the names of vertices, each as a whole, with the calls that list these."""
    if isinstance(node, SUBQUERIES):
        return
    found = aspect_of(node) if isinstance(node, ast.Expression) else None
    if found is not None:
        yield node, *found  # type: ignore[misc]
    elif isinstance(node, LOCAL):  # its variables may have the names of vertices
        yield from described_in(node.source)
    else:
        for part in node if isinstance(node, tuple) else parts_of(node):
            yield from described_in(part)


def aspect_of(expression: ast.Expression) -> tuple[Aspect, ast.Expression] | None:
    """Return what an expression asks of the names of a vertex, and the call that lists these; None for others."""
    found: tuple[Aspect, ast.Expression] = "list", expression
    match expression:
        case ast.FunctionCall(name, (call,)) if name.lower() in ("size", "head"):
            found = "size" if name.lower() == "size" else "first", call
        case ast.Subscript(call, ast.Literal(0 as place)) if type(place) is int:
            found = "first", call
    return None if asked(found[1]) is None else found


def with_lists(clause: Clause, lists: Mapping[int, Described]) -> Clause:
    """Return the rows of a clause with lists of names in the places of their bits, by the numbers of the columns."""

    def chosen(i: int, name: str) -> Vector:
        if i not in lists:
            return ColumnOf(name)
        return Operation("names", (ColumnOf(name), *map(Constant, lists[i].names)))

    return Clause(clause, (), tuple((name, chosen(i, name)) for i, (name, _) in enumerate(clause.columns)))
