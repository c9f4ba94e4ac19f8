"""What ``labels(v)`` and ``keys(v)`` list, as a bit for each name: rows are grouped by a number instead of a list.

Vertices have few different sets of labels and of properties.  The bits of each vertex are an array, derived of the
graph once; the list of a set is written for each group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphdb.common.stopping import checked
from graphdb.common.values.types import STRING, list_of
from graphdb.grammar import syntax as ast
from graphdb.pattern.names import Names
from graphdb.relational.vectors.algebra import Clause, ColumnOf, Constant, Operation, Vector
from graphdb.sql.from_clause import Parameters
from graphdb.sql.value import SqlValue
from graphdb.storage.graph.data_graph import DataGraph

_BITS = 62
"""Names that a number has bits for, at most."""


@dataclass(frozen=True, slots=True)
class Described:
    """The names that vertices are described by."""

    function: str
    """``labels`` or ``keys``."""
    names: tuple[str, ...]
    """As a user would write them, sorted, each once: a bit each, the first being the lowest."""
    bits: tuple[tuple[int, int], ...]
    """The ids of the labels with the places of their bits."""

    def of_vertices(self, graph: DataGraph) -> NDArray[np.int64]:
        """Return the bits of each resource, by its id: int64 [resources]."""

        def derive() -> NDArray[np.int64]:
            found = np.zeros(graph.resources, np.int64)
            for id, bit in checked(self.bits, 1):
                if self.function == "labels":
                    having = graph.members(id)
                else:
                    subjects, objects = graph.source.edges(id)
                    having = subjects[objects >= graph.resources]
                found[having] |= 1 << bit
            return found

        return graph.derived(("described", self.function, self.bits), derive)

    def listed(self, bits: str, parameters: Parameters) -> SqlValue:
        """Return the list of the names whose bits are set, which SQL yields; null where that is."""
        each = (
            f"CASE WHEN {bits} & {1 << bit} <> 0 THEN {parameters.add(name, 'VARCHAR')} END"
            for bit, name in enumerate(self.names)
        )
        found = f"list_filter([{', '.join(each)}], lambda name: name IS NOT NULL)"
        return SqlValue(f"CASE WHEN {bits} IS NOT NULL THEN {found} END", list_of(STRING))


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


def with_lists(clause: Clause, lists: Mapping[int, Described]) -> Clause:
    """Return the rows of a clause with lists of names in the places of their bits, by the numbers of the columns."""

    def chosen(i: int, name: str) -> Vector:
        if i not in lists:
            return ColumnOf(name)
        return Operation("names", (ColumnOf(name), *map(Constant, lists[i].names)))

    return Clause(clause, (), tuple((name, chosen(i, name)) for i, (name, _) in enumerate(clause.columns)))
