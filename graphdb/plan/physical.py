"""The physical plan: frozen steps in matching order, and the same as arrays, which is all that a kernel reads.

A plan binds one *slot* per step: a :class:`VertexStep` binds a pattern vertex to a data vertex, an :class:`EdgeStep`
binds a pattern edge to one of the data edges between its two bound ends.  Slots ``0 … vertices-1`` are the pattern's
vertices, the slots after them its edges.  An edge that has just one directed label needs no step: its code is known.

Executors know this module and storage's arrays, nothing above.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphdb.pattern.graph import Duplicates, PatternGraph
from graphdb.plan.checks import Check, Neighbours, NotBothEqual, Relation, Unequal
from graphdb.storage.graph.data_graph import DataGraph
from graphdb.storage.graph.derived.edge_subset import EdgeSubset
from graphdb.storage.graph.derived.orientation import Oriented
from graphdb.storage.graph.pcsr import Partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphdb.plan.counting.plan import CountingPlan
    from graphdb.plan.counting.tree import TreeCount
    from graphdb.plan.counting.twins import TwinCount

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class VertexStep:
    """Bind ``vertex`` to the intersection of neighbour lists and ``constants``; without any, to ``scan``'s values."""

    vertex: int
    neighbours: tuple[Neighbours, ...]
    scan: Ints | None = field(compare=False)
    constants: NDArray[Any] | None = field(compare=False)
    """A small candidate set, in the vertex id type, intersected like a neighbour list."""
    checks: tuple[Check, ...]
    estimate: float = field(compare=False)
    """Rows expected after this step."""
    shared: int = 0
    """So many of the first ``neighbours`` are intersected when the last of them is bound, and that is
    reused until one of them changes; 0 or at least 2."""
    work: float = field(default=0.0, compare=False)
    """Elements that a search is expected to scan for it."""


@dataclass(frozen=True, slots=True)
class EdgeStep:
    """Bind ``edge`` to each data edge that joins ``vertex`` and ``other`` in ``relation``."""

    edge: int
    relation: Relation
    vertex: int
    other: int
    checks: tuple[Check, ...]
    estimate: float = field(compare=False)


Step: TypeAlias = VertexStep | EdgeStep


class Op(IntEnum):
    """The checks, as kernels number them: from cheap to dear, which is the order to test in."""

    ABOVE = 0
    NEVER = 1
    UNEQUAL = 2
    NOT_BOTH_EQUAL = 3
    EDGES_DIFFER = 4
    CANDIDATE_SEARCH = 5
    CANDIDATE_BIT = 6
    SIGNATURE = 7
    EDGE = 8
    NO_EDGE = 9
    EDGE_COUNT = 10


SCAN, JOIN, EDGES = 0, 1, 2
"""Kinds of steps: through a list of int64, through an intersection, through the codes of a bound pair."""


class StepColumn(IntEnum):
    """What a step's row holds.

    Its lists and checks are the rows ``LISTS … LISTS_END`` and ``ABOVES … CHECKS_END`` of their tables; of the checks,
    those before ``CHECKS`` are restrictions.  ``CAPACITY`` is the entries of the buffer that the step needs, at most
    ``WINDOW``.  An edge step has a partition, the slots of two vertices, and whether codes are flipped.
    """

    SLOT = 0
    KIND = 1
    LISTS = 2
    LISTS_END = 3
    ABOVES = 4
    CHECKS = 5
    CHECKS_END = 6
    CAPACITY = 7
    PARTITION = 8
    VERTEX = 9
    OTHER = 10
    FLIP = 11


STEP_COLUMNS = len(StepColumn)
CONSTANT_LIST, SHARED_LIST = -1, -2
"""In the place of a list's partition: a list of constants, and a shared intersection."""
LIST_COLUMNS = 4
"""(partition, slot, 0, bits) for the neighbours of a slot, which are worth keeping as bits if ``bits`` (a number for
them) is not -1; (CONSTANT_LIST, address, length, -1); (SHARED_LIST, share, 0, -1)."""
CHECK_COLUMNS = 7
"""(op, six operands)."""
SHARE_COLUMNS = 3
"""(parent share or -1, partition, slot): the parent intersected with the neighbours of a slot; the parent's row comes
first, and its slot is bound earlier."""
WINDOW = 2048
"""Values that an executor holds of a step at a time."""
DETOUR = 4
"""A join may scan a list so many times longer than its shortest, where the shortest is stored as bits."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Program:
    """The plan as int64 tables, and ``alive``: the arrays whose addresses stand in them."""

    steps: Ints
    lists: Ints
    checks: Ints
    uncertain: Ints
    partitions: Ints
    lists_bytes: int
    """Bytes of the partitions."""
    shares: Ints
    share_capacity: Ints
    """The most entries that each share can have."""
    bits: int
    """How many lists are worth keeping as bits, …"""
    bits_bytes: int
    """… and the bytes of each: one bit per vertex, in whole words."""
    worker_bytes: int
    """Memory that each worker needs for windows, shared intersections and lists stored as bits."""
    outputs: Ints
    """The slots whose values are written down for each match."""
    second: int
    """The partition in which the second step looks up the first one's vertex, or -1: its degrees say what work is."""
    constants: Ints
    """The initial value of every slot: the code of an edge that has just one; -1."""
    resources: int
    type_label: int
    """-1 without one."""
    alive: tuple[object, ...]


@dataclass(slots=True, eq=False)
class Writing:
    """A program that is written once, when somebody asks for it."""

    write: Callable[[], Program]
    _written: list[Program] = field(default_factory=list)

    @property
    def program(self) -> Program:
        """The program: to every thread the same one, since its tables' addresses are handed out."""
        if not self._written:
            self._written.append(self.write())
        return self._written[0]


@dataclass(frozen=True, slots=True, eq=False)
class CliqueCount:
    """Instead of the steps: count the cliques of ``size`` vertices over the graph oriented by degree."""

    size: int
    graph: Oriented

    @property
    def cost(self) -> float:
        """Elements of the neighbours' lists that are read, for each further vertex again: cliques, whose vertices are
        stored as bits, take little more.
        """
        return float(self.graph.work[-1]) * (self.size - 2)


@dataclass(frozen=True, slots=True, eq=False)
class EdgeScan:
    """Instead of the steps, where each edge that a row takes is asked for: go through all edges that one pattern edge
    may take, as they are numbered, and from their ends along those that others may.

    The assignment of parallel edges does so (:mod:`graphdb.relational.edges.parallel_edges`), not an executor.
    """

    edges: int
    """How many edges there are to go through."""
    source: Ints | None
    target: Ints | None
    """The candidates of its ends."""
    edge: int = 0
    """The pattern edge that it begins with."""
    further: tuple[EdgeExtension, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class EdgeExtension:
    """A further pattern edge, from a vertex that is bound to one that is not."""

    edge: int
    target: Ints | None
    """The candidates of the latter."""
    differs: tuple[int, ...]
    """The pattern edges before it that must take another data edge."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionalScan:
    """Instead of the steps: go through the edges of one label, and gather each further vertex.

    See :mod:`graphdb.plan.passes.functional`.
    """

    edge: int
    """The pattern edge that it begins with, …"""
    edges: int
    """… how many it may take, …"""
    partition: Partition
    """… which they are, as they lead out, …"""
    directed: bool
    ends: tuple[int, int]
    """… and the pattern vertices at its ends."""
    steps: tuple[FunctionalStep, ...]
    candidates: tuple[Ints | None, ...]
    """Of each pattern vertex; None where all that its edges lead to are."""
    checks: tuple[Unequal | NotBothEqual, ...]
    vertices: tuple[str, ...]
    """The names of the pattern vertices."""
    relations: tuple[int, ...]
    """The labels of the pattern edges."""


@dataclass(frozen=True, slots=True, eq=False)
class FunctionalStep:
    """A further pattern edge, from a vertex that is bound to the only one that it leads to, if there is one."""

    edge: int
    before: int
    after: int
    forward: bool
    """Whether it goes along the edge's direction."""
    partition: Partition


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """What a plan was made of: another process with the same graph makes the same plan of the pattern."""

    pattern: PatternGraph
    graph: DataGraph
    counting: Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class BundledCount:
    """Bindings of the vertices alone, for each of which the choices of edges are multiplied.

    See :mod:`graphdb.relational.edges.bundles`.
    """

    search: PhysicalPlan
    pattern: PatternGraph
    """The pattern whose edges are chosen."""


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class PhysicalPlan:
    """What an executor runs.

    Attributes
    ----------
    steps
        In matching order; the first scans, and is scheduled on the workers.
    names
        The name of every slot; ``outputs`` are the names of the columns, in order.
    output_dtypes
        Vertex columns have the graph's id type, edge columns too (a code is below twice the number of vertices).
        row_steps
        So many of the first steps make a row; those behind only say whether there is a match (``duplicates`` is
        ``drop``), or how many (``count``).  It is the number of steps where every match gives a row.
    count_only, count_last
        Only the number of matches is wanted; and the last step can count its values without enumerating them.
    own_bytes
        Memory that the plan's own arrays take: candidates, constants, its candidate space.
    """

    steps: tuple[Step, ...]
    names: tuple[str, ...]
    conditions: tuple[str, ...]
    outputs: tuple[str, ...]
    dtype: type[np.signedinteger[Any]]
    row_steps: int
    duplicates: Duplicates
    count_only: bool
    count_last: bool
    limit: int | None
    own_bytes: int
    cost: float
    """Expected elements that the search scans."""
    automorphisms: int
    """So many matches each found one stands for: the restrictions leave one of them (:mod:`graphdb.plan.symmetry`)."""
    columns: Ints = field(repr=False)
    """int64 [automorphisms, outputs]: for each of them, which of the program's outputs is which output."""
    text: Writing = field(repr=False)
    """The steps as a program, …"""
    counting: CountingPlan | None = field(default=None, repr=False)
    """How to count without enumerating the matches, where that is cheaper."""
    clique: CliqueCount | None = None
    """What a count without a limit runs instead."""
    twins: TwinCount | None = None
    """What a count without a limit runs before all others: by twins, which are linear."""
    tree: TreeCount | None = field(default=None, repr=False)
    """The same for large patterns, over their candidate space."""
    otherwise: Callable[[], CountingPlan | None] | None = field(default=None, repr=False)
    """Plans, when first asked, sums that count the matches: for who walks along no trees, or counts so often that they
    pay where the search was expected to cost less."""
    doubtful: bool = False
    """Whether a search that is expected to be quick may go through very many matches
    (:func:`graphdb.plan.passes.counting.explosive`): it is stopped after a while, and ``otherwise`` counts."""
    known: bool = False
    """Whether statistics say how many matches there are: as many as its only one stands for."""
    by_label: tuple[NDArray[np.int64], NDArray[np.int64]] | None = field(default=None, repr=False)
    """What statistics say of the only edge, where that is wanted: int64 [labels], and how many matches have each."""
    weighed: CountingPlan | None = field(default=None, repr=False)
    """How to count all parallel edges, of which the steps know one: instead of assigning edges to what a search
    finds."""
    bundled: BundledCount | None = field(default=None, repr=False)
    """What is run instead where several edges join the same vertices, and only the number of their choices matters."""
    scan: EdgeScan | None = field(default=None, repr=False)
    """What is run instead of a search for the rows, and the number, of a pattern of one edge."""
    functional: FunctionalScan | None = field(default=None, repr=False)
    """What is run instead of a search where all further vertices are functions of the edges of one label."""
    fulfilled: frozenset[int] = frozenset()
    """The pattern edges whose conditions all edges fulfil that the search finds: nothing tests them after it."""
    subsets: tuple[EdgeSubset, ...] = field(default=(), repr=False)
    """The subsets of edges whose numbers stand in the place of its edge labels: in memory as long as it is."""
    origin: Origin | None = field(default=None, repr=False)
    """The pattern and the graph, where they are as a planner was given them."""
    cache: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """An executor's cache for this plan, reused between its runs; no answer depends on it."""

    @property
    def partitions(self) -> list[Partition]:
        """The partitions that it reads, in the order of its program's table."""
        found: list[Partition] | None = self.cache.get("partitions")
        if found is None:
            known = {item.row: item for item in self.program.alive if isinstance(item, Partition)}
            found = self.cache["partitions"] = [known[row] for row in map(tuple, self.program.partitions.tolist())]
        return found

    @property
    def sums(self) -> CountingPlan | None:
        """What counts without enumerating the matches, for who cannot stop a doubtful search: sums are planned now."""
        return self.otherwise() if self.doubtful and self.otherwise is not None else self.counting

    @property
    def program(self) -> Program:
        """… which is written when first asked for: counts that go another way than through the matches never do."""
        return self.text.program

    @property
    def worker_bytes(self) -> int:
        """Memory that each worker of a search needs."""
        return self.program.worker_bytes
