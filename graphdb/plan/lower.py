"""Write the steps of a plan down as tables of int64, which is all that kernels read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphdb.errors import ExecutionError
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.physical import (
    CHECK_COLUMNS,
    LIST_COLUMNS,
    STEP_COLUMNS,
    Check,
    EdgeCount,
    EdgesDiffer,
    EdgeStep,
    HasEdge,
    HasSignature,
    IsCandidate,
    Never,
    NotBothEqual,
    Op,
    PhysicalPlan,
    Program,
    Relation,
    Step,
    Unequal,
    VertexStep,
)
from graphdb.storage.graph import DataGraph

Ints = NDArray[np.int64]


@dataclass(slots=True)
class Tables:
    """The tables being written, and the arrays that they hold addresses of."""

    pattern: PatternGraph
    graph: DataGraph
    lists: list[tuple[int, int, int]] = field(default_factory=list)
    checks: list[tuple[int, ...]] = field(default_factory=list)
    uncertain: list[int] = field(default_factory=list)
    partitions: list[tuple[int, ...]] = field(default_factory=list)
    rows_of: dict[Relation, int] = field(default_factory=dict)
    alive: list[object] = field(default_factory=list)

    def partition(self, relation: Relation) -> int:
        """The row of a relation in the table of partitions."""
        if relation not in self.rows_of:
            partition = self.graph.partition(relation.labels, relation.direction)
            self.alive.append(partition)
            self.rows_of[relation] = len(self.partitions)
            self.partitions.append(partition.row)
        return self.rows_of[relation]

    def address(self, array: NDArray[np.generic]) -> int:
        """The address of an array that the program keeps alive."""
        self.alive.append(array)
        return array.ctypes.data

    def edge_slot(self, edge: int) -> int:
        """The slot of a pattern edge."""
        return len(self.pattern.vertices) + edge

    def check(self, check: Check) -> tuple[int, ...]:
        """The row of one check."""
        match check:
            case Never():
                return (Op.NEVER,)
            case Unequal(left, right):
                return (Op.UNEQUAL, left, right)
            case NotBothEqual(a, b, c, d):
                return (Op.NOT_BOTH_EQUAL, a, b, c, d)
            case EdgesDiffer(i, j):
                first, second = self.pattern.edges[i], self.pattern.edges[j]
                ends = (first.source, first.target, self.edge_slot(j), second.source, second.target)
                return (Op.EDGES_DIFFER, self.edge_slot(i), *ends)
            case IsCandidate(vertex, candidates, None):
                return (Op.CANDIDATE_SEARCH, vertex, self.address(candidates), len(candidates))
            case IsCandidate(vertex, _, bits):
                assert bits is not None
                return (Op.CANDIDATE_BIT, vertex, self.address(bits))
            case HasSignature(vertex, relation, required):
                assert relation.labels is not None
                column = self.graph.signature(relation.labels[0], relation.direction)
                return (Op.SIGNATURE, vertex, self.address(column), required)
            case HasEdge(relation, vertex, other, negated):
                return (Op.NO_EDGE if negated else Op.EDGE, self.partition(relation), vertex, other)
            case EdgeCount(vertex, other, expected, uncertain):
                begin = len(self.uncertain)
                self.uncertain += map(self.edge_slot, uncertain)
                row = self.partition(Relation(None, "both"))
                return (Op.EDGE_COUNT, row, vertex, other, expected, begin, len(self.uncertain))

    def step(self, step: Step) -> tuple[int, ...]:
        """The row of one step; its lists and checks are appended to their tables."""
        first_list, first_check = len(self.lists), len(self.checks)
        # Numbered from cheap to dear: that is the order to test in.
        self.checks += sorted(map(self.check, step.checks), key=lambda row: row[0])
        if isinstance(step, EdgeStep):
            partition = self.partition(step.relation)
            flip = int(step.relation.direction == "in")  # codes are told from the pattern edge's source
            slot = self.edge_slot(step.edge)
            rest = (1, 0, partition, step.vertex, step.other, flip)
            return (slot, 1, first_list, first_list, first_check, len(self.checks), *rest)
        longest = []
        for near in step.neighbours:
            self.lists.append((self.partition(near.relation), near.of, 0))
            longest.append(self.graph.partition(near.relation.labels, near.relation.direction).max_degree)
        if step.constants is not None:
            self.lists.append((-1, self.address(step.constants), len(step.constants)))
            longest.append(len(step.constants))
        capacity = min(longest) if len(longest) > 1 else 0
        bounds = (first_list, len(self.lists), first_check, len(self.checks))
        return (step.vertex, 0, *bounds, int(step.scan is not None), capacity, 0, 0, 0, 0)


def lower(pattern: PatternGraph, graph: DataGraph, steps: tuple[Step, ...], cost: float) -> PhysicalPlan:
    """Make the physical plan of the given steps.

    Raises
    ------
    ExecutionError
        If a candidate set holds ids that the data graph does not have.
    """
    for step in steps:
        if isinstance(step, VertexStep):
            for values in (step.scan, step.constants, pattern.vertices[step.vertex].candidates):
                if values is not None and len(values) and not 0 <= values[0] <= values[-1] < graph.vertices:
                    raise ExecutionError("a candidate set holds ids that the data graph does not have")
    tables = Tables(pattern, graph)
    step_rows = [tables.step(step) for step in steps]
    names = (*(vertex.name for vertex in pattern.vertices), *(edge.name for edge in pattern.edges))
    constants = np.full(len(names), -1, np.int64)
    for e, edge in enumerate(pattern.edges):
        if edge.directed and edge.labels is not None and len(edge.labels) == 1:
            constants[tables.edge_slot(e)] = edge.labels[0] * 2
    slots = {name: slot for slot, name in reversed(list(enumerate(names)))}
    program = Program(
        steps=_table(step_rows, STEP_COLUMNS),
        lists=_table(tables.lists, LIST_COLUMNS),
        checks=_table(tables.checks, CHECK_COLUMNS),
        uncertain=np.array(tables.uncertain, np.int64),
        partitions=_table(tables.partitions, 6),
        outputs=np.array([slots[name] for name in pattern.outputs], np.int64),
        constants=constants,
        resources=graph.resources,
        type_label=-1 if graph.type_label is None else graph.type_label,
        most_lists=max((row[3] - row[2] for row in step_rows), default=0),
        alive=tuple(tables.alive),
    )
    capacity = sum(row[7] for row in step_rows)
    return PhysicalPlan(
        steps=steps,
        names=names,
        conditions=tuple(vertex.condition for vertex in pattern.vertices),
        outputs=pattern.outputs,
        dtype=graph.dtype,
        count_only=pattern.count_only,
        count_last=pattern.count_only and _counts_itself(steps),
        limit=pattern.limit,
        worker_bytes=capacity * np.dtype(graph.dtype).itemsize,
        cost=cost,
        program=program,
    )


def _counts_itself(steps: tuple[Step, ...]) -> bool:
    """Whether the last step's values need only be counted: they are checked for nothing but inequality."""
    if not steps:
        return False
    allowed = Unequal if isinstance(steps[-1], VertexStep) else ()
    return all(isinstance(check, allowed) for check in steps[-1].checks)


def _table(rows: list[tuple[int, ...]] | list[tuple[int, int, int]], columns: int) -> Ints:
    """Rows of int, filled up with zeros to int64 [rows, columns]."""
    return np.array([(*row, *(0,) * (columns - len(row))) for row in rows], np.int64).reshape(len(rows), columns)
