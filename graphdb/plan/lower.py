"""Lower the steps of a plan to tables of int64, which is all that kernels read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from graphdb.common.errors import ExecutionError
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.candidates.candidate_bits import bit_set
from graphdb.plan.candidates.space import CandidateSpace
from graphdb.plan.checks import (
    Above,
    Check,
    EdgeCount,
    EdgesDiffer,
    HasEdge,
    HasSignature,
    IsCandidate,
    Neighbours,
    Never,
    NotBothEqual,
    Relation,
    Unequal,
)
from graphdb.plan.physical import (
    CHECK_COLUMNS,
    CONSTANT_LIST,
    DETOUR,
    EDGES,
    JOIN,
    LIST_COLUMNS,
    SCAN,
    SHARE_COLUMNS,
    SHARED_LIST,
    STEP_COLUMNS,
    WINDOW,
    EdgeStep,
    Op,
    Origin,
    PhysicalPlan,
    Program,
    Step,
    StepColumn,
    VertexStep,
    Writing,
)
from graphdb.plan.symmetry import NO_SYMMETRY, Symmetry
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.pcsr import PARTITION, Partition

Ints = NDArray[np.int64]


@dataclass(slots=True)
class Tables:
    """The tables being written, and the arrays that they hold addresses of."""

    pattern: PatternGraph
    graph: DataGraph
    position: dict[int, int]
    """Which step binds a vertex."""
    space: CandidateSpace | None
    lists: list[tuple[int, int, int, int]] = field(default_factory=list)
    shares: dict[tuple[Neighbours, ...], int] = field(default_factory=dict)
    share_rows: list[tuple[int, int, int]] = field(default_factory=list)
    share_capacity: list[int] = field(default_factory=list)
    bits: dict[tuple[int, int], int] = field(default_factory=dict)
    checks: list[tuple[int, ...]] = field(default_factory=list)
    uncertain: list[int] = field(default_factory=list)
    partitions: list[tuple[int, ...]] = field(default_factory=list)
    rows_of: dict[Relation, int] = field(default_factory=dict)
    known: dict[Relation, Partition] = field(default_factory=dict)
    alive: list[object] = field(default_factory=list)
    lists_bytes: int = 0

    def partition(self, relation: Relation) -> int:
        """The row of a relation in the table of partitions."""
        if relation not in self.rows_of:
            partition = self.found(relation)
            self.alive.append(partition)
            self.lists_bytes += partition.nbytes
            self.rows_of[relation] = len(self.partitions)
            self.partitions.append(partition.row)
        return self.rows_of[relation]

    def found(self, relation: Relation) -> Partition:
        """The partition that a relation names."""
        partition = self.known.get(relation)
        if partition is None:
            if relation.pair is None:
                partition = self.graph.partition(relation.labels, relation.direction)
            else:
                assert self.space is not None
                partition = self.space.partition(relation.pair)
            self.known[relation] = partition
        return partition

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
            case Above(vertex, lower):
                return (Op.ABOVE, vertex, lower)
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
            case IsCandidate(vertex, candidates, False):
                return (Op.CANDIDATE_SEARCH, vertex, self.address(candidates), len(candidates))
            case IsCandidate(vertex, candidates, _):
                return (Op.CANDIDATE_BIT, vertex, self.address(bit_set(candidates, self.graph.vertices)))
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

    def longest(self, near: Neighbours) -> int:
        """The most entries that a neighbour list can have."""
        return self.found(near.relation).max_degree

    def share(self, lists: tuple[Neighbours, ...]) -> int:
        """The row of a shared intersection, made of the one without its last list."""
        if lists not in self.shares:
            parent = self.share(lists[:-1]) if len(lists) > 1 else -1
            self.shares[lists] = len(self.share_rows)
            self.share_rows.append((parent, self.partition(lists[-1].relation), lists[-1].of))
            self.share_capacity.append(min(map(self.longest, lists)) if parent >= 0 else 0)
        return self.shares[lists]

    def step(self, step: Step) -> tuple[int, ...]:
        """The row of one step; its lists and checks are appended to their tables."""
        first_list, first_check = len(self.lists), len(self.checks)
        self.checks += sorted(map(self.check, step.checks), key=lambda row: row[0])
        last_check = len(self.checks)
        first_other = first_check + sum(isinstance(check, Above) for check in step.checks)
        bounds = (first_check, first_other, last_check)
        if isinstance(step, EdgeStep):
            partition = self.partition(step.relation)
            flip = int(step.relation.direction == "in")  # codes are those seen from the pattern edge's source
            slot = self.edge_slot(step.edge)
            return (slot, EDGES, first_list, first_list, *bounds, WINDOW, partition, step.vertex, step.other, flip)
        if step.scan is not None:
            return (step.vertex, SCAN, first_list, first_list, *bounds, min(WINDOW, len(step.scan)), 0, 0, 0, 0)
        longest = []
        if step.shared:
            number = self.share(step.neighbours[: step.shared])
            self.lists.append((SHARED_LIST, number, 0, -1))
            longest.append(self.share_capacity[number])
        alone = len(step.neighbours) - step.shared + (step.constants is not None) + (step.shared > 0) == 1
        for near in step.neighbours[step.shared :]:
            partition, bits = self.partition(near.relation), -1
            if not alone and self.position[near.of] < self.position[step.vertex] - 1:
                bits = self.bits.setdefault((partition, near.of), len(self.bits))
            self.lists.append((partition, near.of, 0, bits))
            longest.append(self.longest(near))
        if step.constants is not None:
            self.lists.append((CONSTANT_LIST, self.address(step.constants), len(step.constants), -1))
            longest.append(len(step.constants))
        # A search may scan a list that is up to DETOUR times longer than the shortest, and writes as it goes.
        capacity = min(WINDOW, DETOUR * min(longest)) if not alone or first_other < last_check else 0
        return (step.vertex, JOIN, first_list, len(self.lists), *bounds, capacity, 0, 0, 0, 0)

    def second(self, steps: tuple[Step, ...]) -> int:
        """The partition in which the second step looks up the first one's vertex, or -1."""
        if len(steps) < 3 or not isinstance(steps[0], VertexStep) or not isinstance(steps[1], VertexStep):
            return -1
        relations = [near.relation for near in steps[1].neighbours if near.of == steps[0].vertex]
        return self.partition(relations[0]) if relations else -1


def lower(
    pattern: PatternGraph,
    graph: DataGraph,
    steps: tuple[Step, ...],
    cost: float,
    symmetry: Symmetry = NO_SYMMETRY,
    space: CandidateSpace | None = None,
    origin: Origin | None = None,
) -> PhysicalPlan:
    """Make the physical plan of the given steps: restrictions are those of ``symmetry``, lists may be a ``space``'s.

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
    names = (*(vertex.name for vertex in pattern.vertices), *(edge.name for edge in pattern.edges))
    slots = {name: slot for slot, name in reversed(list(enumerate(names)))}
    wanted, images = np.array([slots[name] for name in pattern.outputs], np.int64), len(symmetry.permutations)
    outputs = columns = wanted
    if len(wanted):
        moved = np.tile(np.arange(len(names)), (images, 1))
        moved[:, : symmetry.permutations.shape[1]] = symmetry.permutations
        outputs, columns = np.unique(moved[:, wanted], return_inverse=True)
    row_steps = _row_steps(pattern, steps, outputs)
    return PhysicalPlan(
        steps=steps,
        names=names,
        conditions=tuple(vertex.condition for vertex in pattern.vertices),
        outputs=pattern.outputs,
        dtype=graph.dtype,
        row_steps=row_steps,
        duplicates=pattern.duplicates,
        count_only=pattern.count_only,
        count_last=(pattern.count_only or (pattern.duplicates == "count" and row_steps < len(steps)))
        and _counts_itself(steps),
        limit=pattern.limit if pattern.duplicates == "keep" or _rows_differ(steps[:row_steps], pattern) else None,
        own_bytes=sum(_own(steps, graph.vertices)) + (0 if space is None else space.bytes),
        cost=cost,
        automorphisms=symmetry.size,
        columns=columns.reshape(images, len(wanted)),
        text=Writing(partial(_write, pattern, graph, steps, outputs, space)),
        origin=origin,
    )


def rewritten(plan: PhysicalPlan, pattern: PatternGraph, graph: DataGraph, steps: tuple[Step, ...]) -> Writing:
    """Return the program of a plan for other constants: ``steps`` that differ from its own in these."""
    return Writing(partial(_write, pattern, graph, steps, plan.program.outputs, None))


def _write(
    pattern: PatternGraph, graph: DataGraph, steps: tuple[Step, ...], outputs: Ints, space: CandidateSpace | None
) -> Program:
    """The steps as tables.  Builds the partitions that they read, where they are missing."""
    position = {s.vertex: i for i, s in enumerate(steps) if isinstance(s, VertexStep)}
    tables = Tables(pattern, graph, position, space)
    step_rows = [tables.step(step) for step in steps]
    constants = np.full(len(pattern.vertices) + len(pattern.edges), -1, np.int64)
    for e, edge in enumerate(pattern.edges):
        if edge.directed and edge.admitted is not None and len(edge.admitted) == 1:
            constants[tables.edge_slot(e)] = edge.admitted[0] * 2
    bits, bits_bytes = len(tables.bits), (graph.vertices + 63) // 64 * 8
    capacity = sum(row[StepColumn.CAPACITY] for row in step_rows) + sum(tables.share_capacity)
    return Program(
        steps=_table(step_rows, STEP_COLUMNS),
        lists=_table(tables.lists, LIST_COLUMNS),
        checks=_table(tables.checks, CHECK_COLUMNS),
        uncertain=np.array(tables.uncertain, np.int64),
        partitions=_table(tables.partitions, len(PARTITION)),
        lists_bytes=tables.lists_bytes,
        shares=_table(tables.share_rows, SHARE_COLUMNS),
        share_capacity=np.array(tables.share_capacity, np.int64),
        bits=bits,
        bits_bytes=bits_bytes,
        worker_bytes=capacity * np.dtype(graph.dtype).itemsize + bits * bits_bytes,
        outputs=outputs,
        second=tables.second(steps),
        constants=constants,
        resources=graph.resources,
        type_label=-1 if graph.type_label is None else graph.type_label,
        alive=tuple(tables.alive),
    )


def _own(steps: tuple[Step, ...], vertices: int) -> Iterator[int]:
    """The bytes of the arrays that steps bring along: candidates, as ids or bits, and constants."""
    for step in steps:
        for check in step.checks:
            if isinstance(check, IsCandidate):
                yield (vertices + 7) // 8 if check.many else check.candidates.nbytes
        if isinstance(step, VertexStep) and step.constants is not None:
            yield step.constants.nbytes


def _row_steps(pattern: PatternGraph, steps: tuple[Step, ...], outputs: Ints) -> int:
    """How many of the first steps make a row: up to the last that binds an output."""
    if pattern.duplicates == "keep":
        return len(steps)
    slots = [step.vertex if isinstance(step, VertexStep) else len(pattern.vertices) + step.edge for step in steps]
    return max((i + 1 for i, slot in enumerate(slots) if slot in outputs), default=len(steps))


def _rows_differ(steps: tuple[Step, ...], pattern: PatternGraph) -> bool:
    """Whether these steps bind nothing but outputs, so that no two rows are equal."""
    vertices = {pattern.vertices[step.vertex].name for step in steps if isinstance(step, VertexStep)}
    edges = {pattern.edges[step.edge].name for step in steps if isinstance(step, EdgeStep)}
    return pattern.duplicates == "drop" and vertices | edges <= set(pattern.outputs)


def _counts_itself(steps: tuple[Step, ...]) -> bool:
    """Whether the last step is counted without enumerating its bindings: at most two lists, and few conditions."""
    last = steps[-1] if len(steps) > 1 else None
    if not isinstance(last, VertexStep) or last.scan is not None:
        return False
    lists = len(last.neighbours) - max(last.shared - 1, 0) + (last.constants is not None)
    return lists <= 2 and all(isinstance(check, Above | Unequal) for check in last.checks)


def _table(rows: Sequence[tuple[int, ...]], columns: int) -> Ints:
    """Rows of int, filled up with zeros to int64 [rows, columns]."""
    cells = chain.from_iterable([(*row, *(0,) * (columns - len(row))) for row in rows])
    return np.fromiter(cells, np.int64, len(rows) * columns).reshape(len(rows), columns)
