"""A plan as the join runs it: levels, each from a table of partial matches to the next, as descriptors for kernels.

A table holds one column per slot that is still needed, and nothing else: what a later level reads, or the result.  A
shared intersection (:mod:`graphdb.plan.passes.code_motion`) is made once per row of the table in which the last of its
vertices is bound.  Later tables know it by that row's number, in a column of its own, so rows with the same prefix are
grouped without being sorted (GAMMA, pattern mining, §6.1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.gpu.code.layout import Cell, Kind, ListCell, ListKind, Place
from graphdb.gpu.data.graph import DeviceGraph, DevicePartition, address, segment_layer
from graphdb.gpu.join.segmented import Segmentation
from graphdb.gpu.search.program import device_program
from graphdb.plan.physical import SHARED_LIST, EdgeStep, Op, PhysicalPlan, StepColumn
from graphdb.storage.graph.pcsr import PARTITION

Ints = NDArray[np.int64]

_OPERANDS: Mapping[int, tuple[int, ...]] = {
    Op.NOT_BOTH_EQUAL: (1, 2, 3, 4),
    Op.EDGES_DIFFER: (1, 2, 3, 4, 5, 6),
    Op.SIGNATURE: (1,),
    Op.EDGE: (2, 3),
    Op.NO_EDGE: (2, 3),
    Op.EDGE_COUNT: (2, 3),
}
"""The cells of a check that are slots."""


@dataclass(frozen=True, slots=True)
class Source:
    """A list that a level scans or asks: of ``partition``'s row for the vertex in ``slot``, or a share's."""

    kind: int
    slot: int = 0
    partition: int = 0
    elements: int = 0
    """The address of its elements; a share's is known once it is made."""
    length: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """A shared intersection of two lists, made per row of table ``level``; ``slot`` stands for it in later tables."""

    slot: int
    level: int
    lists: tuple[Source, Source]


@dataclass(frozen=True, slots=True)
class EdgeLists:
    """An edge step: the codes of the data edges between two bound vertices."""

    partition: int
    vertex: int
    other: int
    flip: int


@dataclass(frozen=True, slots=True)
class Level:
    """What binds a slot.

    Attributes
    ----------
    above, differs
        Slots whose values the new one must exceed, and differ from.
    bits
        The address of one bit per vertex, set for candidates; 0 where any will do.
    checks
        int64 [checks, 7], as in :class:`graphdb.plan.physical.Program`: the rarer ones.
    reads
        The slots that all of it reads.
    columns
        The slots that the table after this level holds, in order.
    """

    slot: int
    lists: tuple[Source, ...]
    edges: EdgeLists | None = None
    above: tuple[int, ...] = ()
    differs: tuple[int, ...] = ()
    bits: int = 0
    checks: tuple[tuple[int, ...], ...] = ()
    reads: frozenset[int] = frozenset()
    columns: tuple[int, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether every element of its one list is a binding."""
        return len(self.lists) < 2 and not (self.checks or self.differs or self.bits)

    @property
    def kernel(self) -> str:
        """What marks its bindings: steps of one list or two without rarer checks have a kernel of their own."""
        count = len(self.lists)
        if self.edges is not None or self.checks or count > 2 or self.lists[0].kind == ListKind.RANGE:
            return "mark"
        if count == 1:
            return "mark_one"
        return "mark_two" if self.differs or self.bits else "intersect_two"

    @property
    def counts_rows(self) -> bool:
        """Whether bindings are counted per row: one list, of which inequalities exclude single values."""
        simple = self.edges is None and not self.checks and not self.bits
        return simple and len(self.lists) == 1 and self.lists[0].kind != ListKind.RANGE


@dataclass(frozen=True, slots=True)
class View:
    """What stands on the device now, of a plan whose lists do not all stand there.

    Attributes
    ----------
    table
        The address of the table of partitions; 0 for the plan's own.
    bases
        By row of that table: where its first neighbour would stand, if it is read by segments.
    ranges
        By slot: the least vertex that it is bound to, and the one behind the greatest.
    """

    table: int = 0
    bases: Mapping[int, int] = field(default_factory=dict)
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)


ALL = View()
"""All lists, and all vertices."""


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """A whole plan: ``tables`` are partitions, uncertain edges and constants, ``alive`` is what they lead to."""

    levels: tuple[Level, ...]
    shares: tuple[Share, ...]
    slots: int
    tables: tuple[Any, Any, Any]
    resources: int
    type_label: int
    alive: tuple[Any, ...]
    own_bytes: int = 0
    """Bytes of the partitions that were made for it."""
    row_levels: int = 0
    """So many levels make a row, if not all: later tables know it by its number, in the column of slot ``origin``."""
    outputs: tuple[int, ...] = ()
    rows: Ints = field(default_factory=lambda: np.empty((0, len(PARTITION)), np.int64))
    """The table of partitions in host memory, …"""
    streamed: Mapping[tuple[int, int], int] = field(default_factory=dict)
    """… and by (partition, slot) that is read by segments: its row."""
    roots: Any = None
    """The values of the first level's scan on the device, where they are the table after it: all are bindings."""
    _templates: dict[tuple[str, int], Ints] = field(default_factory=dict)
    """Descriptors without what changes within a run."""

    @property
    def origin(self) -> int:
        """The slot that stands for the number of the row that a match belongs to: the last."""
        return self.slots - 1

    @property
    def output_columns(self) -> Ints:
        """int64 [2 outputs]: where the table of rows has each output, and its slot."""
        places = {slot: column for column, slot in enumerate(self.levels[self.row_levels - 1].columns)}
        return np.array([cell for slot in self.outputs for cell in (places.get(slot, Place.CONSTANT), slot)], np.int64)

    longest: int = 0
    """Elements of the longest list that it reads."""

    @property
    def nbytes(self) -> int:
        """Bytes of its own arrays."""
        return sum(int(table.nbytes) for table in self.tables) + self.own_bytes

    def shares_after(self, level: int) -> tuple[Share, ...]:
        """The shares that are made per row of the table after ``level``."""
        return tuple(share for share in self.shares if share.level == level)

    def rows_at(self, bases: Mapping[tuple[tuple[int, int], str], int]) -> Ints:
        """The table of partitions where segments stand at these bases: by (partition, slot), and the cell of a row."""
        rows = self.rows.copy()
        for (key, cell), base in bases.items():
            rows[self.streamed[key], PARTITION.index(cell)] = base
        return rows

    def descriptor(self, number: int, made: Mapping[int, tuple[int, int]], view: View = ALL) -> Ints:
        """The cells of a level; ``made`` are the (elements', offsets') addresses of shares, by their slot."""
        level = self.levels[number]
        key = ("level", number)
        if key not in self._templates:
            before = self.levels[number - 1].columns if number else ()
            fresh = {share.slot for share in self.shares_after(number - 1)}
            if number == self.row_levels:
                fresh.add(self.origin)
            places = (
                {slot: column for column, slot in enumerate(before)}
                | dict.fromkeys(fresh, Place.ROW)
                | {level.slot: Place.VALUE}
            )
            self._templates[key] = self._cells(level, places)
        return _filled(self._templates[key], level, made, view)

    def share_descriptor(self, share: Share, made: Mapping[int, tuple[int, int]], view: View = ALL) -> Ints:
        """The cells of what makes a share: its two lists, and the one column of values."""
        level, key = Level(share.slot, share.lists, columns=(share.slot,)), ("share", share.slot)
        if key not in self._templates:
            places = {slot: column for column, slot in enumerate(self.levels[share.level].columns)}
            places |= {other.slot: Place.ROW for other in self.shares_after(share.level)} | {share.slot: Place.VALUE}
            self._templates[key] = self._cells(level, places)
        return _filled(self._templates[key], level, made, view)

    def _cells(self, level: Level, places: Mapping[int, int]) -> Ints:
        lists: list[int] = []
        for source in level.lists:
            row = [0] * len(ListCell)
            row[ListCell.LIST_KIND] = source.kind
            row[ListCell.PARTITION] = source.partition
            row[ListCell.SLOT] = source.slot
            row[ListCell.ELEMENTS] = source.elements
            row[ListCell.LENGTH] = source.length
            lists += row
        checks = [cell for check in level.checks for cell in check]
        columns = [cell for slot in level.columns for cell in (places.get(slot, Place.CONSTANT), slot)]
        layout = [places.get(slot, Place.CONSTANT) for slot in range(self.slots)]
        above, differs = ([places[slot] for slot in slots] for slots in (level.above, level.differs))
        sections = (lists, above, differs, checks, columns, layout)
        at = np.cumsum([len(Cell), *map(len, sections)]).tolist()
        edges = level.edges or EdgeLists(0, 0, 0, 0)
        partitions, uncertain, constants = map(address, self.tables)
        header = [0] * len(Cell)
        header[Cell.KIND] = Kind.JOIN if level.edges is None else Kind.EDGES
        header[Cell.LISTS] = len(level.lists)
        header[Cell.ABOVES] = len(above)
        header[Cell.DIFFERS] = len(differs)
        header[Cell.CHECKS] = len(level.checks)
        header[Cell.COLUMNS] = len(level.columns)
        header[Cell.LISTS_AT] = at[0]
        header[Cell.ABOVES_AT] = at[1]
        header[Cell.DIFFERS_AT] = at[2]
        header[Cell.CHECKS_AT] = at[3]
        header[Cell.COLUMNS_AT] = at[4]
        header[Cell.LAYOUT_AT] = at[5]
        header[Cell.BITS] = level.bits
        header[Cell.PARTITIONS] = partitions
        header[Cell.UNCERTAIN] = uncertain
        header[Cell.RESOURCES] = self.resources
        header[Cell.TYPE_LABEL] = self.type_label
        header[Cell.CONSTANTS] = constants
        header[Cell.EDGE_PARTITION] = edges.partition
        header[Cell.EDGE_VERTEX] = edges.vertex
        header[Cell.EDGE_OTHER] = edges.other
        header[Cell.FLIP] = edges.flip
        header[Cell.HIGH] = -1
        return np.array([*header, *(cell for section in sections for cell in section)], np.int64)


def _filled(template: Ints, level: Level, made: Mapping[int, tuple[int, int]], view: View) -> Ints:
    """A descriptor with the addresses of shares, and where lists stand in a view."""
    cells = template.copy()
    for number, source in enumerate(level.lists):
        at = int(template[Cell.LISTS_AT]) + number * len(ListCell)
        if source.kind == ListKind.SHARE:
            cells[at + ListCell.ELEMENTS], cells[at + ListCell.OFFSETS] = made.get(source.slot, (0, 0))
        elif source.kind == ListKind.NEIGHBOURS and source.partition in view.bases:
            cells[at + ListCell.ELEMENTS] = view.bases[source.partition]
    if view.table:
        cells[Cell.PARTITIONS] = view.table
    if level.slot in view.ranges:
        cells[Cell.LOW], cells[Cell.HIGH] = view.ranges[level.slot]
    return cells


Narrow = Callable[[DevicePartition, int], DevicePartition | None]
"""Makes a partition of candidates alone, from the address of their bits; None where that is not worth it."""


def plan_levels(
    plan: PhysicalPlan, graph: DeviceGraph, row_levels: int, narrow: Narrow, segments: Segmentation | None = None
) -> Levels:
    """Copy what a plan reads to the device, and write its steps as levels: ``row_levels`` make rows (0: all).

    With ``segments``, the lists that they name stay where they are.
    """
    streamed = segments.streamed if segments else set()
    program = device_program(plan, graph, None if segments is None else read_whole(plan, streamed))
    slots = len(plan.names)
    position = {int(row[0]): i for i, row in enumerate(program.steps)}
    partitions = _Partitions(list(program.copies), plan, narrow, streamed)
    shares: list[Share] = []
    prefixes: list[Source] = []  # not by recursion: a function that knows itself would keep all this until the next GC
    for number, (parent, partition, slot) in enumerate(program.shares.tolist()):
        own = partitions.list_of(partition, slot)
        if parent >= 0:
            shares.append(Share(slots + number, position[slot], (prefixes[parent], own)))
            own = Source(ListKind.SHARE, slots + number)
        prefixes.append(own)
    levels = []
    for i, row in enumerate(program.steps.tolist()):
        slot, _, first_list, last_list, first_above, first_check, last_check = row[: StepColumn.CAPACITY]
        checks = [tuple(check) for check in program.checks[first_check:last_check].tolist()]
        above = tuple(program.checks[first_above:first_check, 2].tolist())
        differs = tuple(sum(check[1:3]) - slot for check in checks if check[0] == Op.UNEQUAL)
        bits = next((check[2] for check in checks if check[0] == Op.CANDIDATE_BIT), 0)
        rest = tuple(check for check in checks if check[0] not in (Op.UNEQUAL, Op.CANDIDATE_BIT))
        lists: list[Source] = []
        for source, of, length, _ in program.lists[first_list:last_list].tolist():
            if source >= 0:
                lists.append(partitions.list_of(source, of, bits))
            else:
                lists.append(
                    prefixes[of] if source == SHARED_LIST else Source(ListKind.VALUES, elements=of, length=length)
                )
        if any(source.kind == ListKind.NEIGHBOURS and source.partition >= partitions.given for source in lists):
            bits = 0  # a list of candidates alone
        if i in program.scans:
            lists.append(Source(ListKind.VALUES, elements=address(program.scans[i]), length=len(program.scans[i])))
        edges = (
            EdgeLists(*row[StepColumn.PARTITION : StepColumn.FLIP + 1]) if isinstance(plan.steps[i], EdgeStep) else None
        )
        level = Level(slot, tuple(lists), edges, above, differs, bits, rest)
        levels.append(replace(level, reads=_reads(level, program.uncertain) - {slot}))
    constants = np.full(slots + len(program.shares) + 1, -1, np.int64)
    constants[:slots] = plan.program.constants
    upload, p = graph.memory.upload, plan.program
    rows = partitions.table()
    tables = (upload(rows), upload(program.uncertain), upload(constants))
    known = (p.resources, p.type_label, (program, *partitions.copies), partitions.own_bytes, row_levels)
    outputs = tuple(p.outputs.tolist())
    made = Levels(tuple(levels), tuple(shares), len(constants), tables, *known, outputs, rows, partitions.streamed)
    made = _live(replace(made, longest=max((each.max_degree for each in plan.partitions), default=0)))
    first = made.levels[0]
    alike = first.plain and first.edges is None and first.lists[0].kind == ListKind.VALUES and 0 in program.scans
    return replace(made, roots=program.scans[0] if alike and first.columns == (first.slot,) else None)


def read_whole(plan: PhysicalPlan, streamed: Set[tuple[int, int]]) -> frozenset[int]:
    """The rows of partitions whose lists some level reads, but not by segments."""
    program = plan.program
    read = {(row, slot) for row, slot, *_ in program.lists.tolist() if row >= 0}
    read |= {(row, slot) for _, row, slot in program.shares.tolist()}
    return frozenset(row for row, _ in read - streamed)


class _Partitions:
    """The table of partitions: the plan's, those narrowed to candidates, and those read by segments, by slot."""

    def __init__(
        self, copies: list[DevicePartition], plan: PhysicalPlan, narrow: Narrow, streamed: Set[tuple[int, int]]
    ) -> None:
        self.copies, given = copies, plan.partitions if streamed else []
        self.streamed: dict[tuple[int, int], int] = {}
        for row, slot in sorted(streamed):
            self.streamed[row, slot] = len(copies)
            copies.append(replace(copies[row], layer=segment_layer(given[row])))
        self.given = len(copies)
        """So many are not narrowed."""
        self._narrow = narrow
        self._rows: dict[tuple[int, int], int] = {}

    def list_of(self, partition: int, slot: int, bits: int = 0) -> Source:
        """The neighbours of a slot, of candidates alone where bits are given and that is worth it."""
        row = self.streamed.get((partition, slot), partition)
        if row != partition:
            return Source(ListKind.NEIGHBOURS, slot, row)
        if bits:
            key = (partition, bits)
            if key not in self._rows:
                made = self._narrow(self.copies[partition], bits)
                self._rows[key] = partition if made is None else len(self.copies)
                if made is not None:
                    self.copies.append(made)
            row = self._rows[key]
        return Source(ListKind.NEIGHBOURS, slot, row, address(self.copies[row].neighbours))

    def table(self) -> Ints:
        """The rows that kernels read."""
        return np.array([copy.row for copy in self.copies], np.int64).reshape(len(self.copies), len(PARTITION))

    @property
    def own_bytes(self) -> int:
        """Bytes of the narrowed ones."""
        return sum(copy.nbytes + int(copy.neighbours.nbytes) for copy in self.copies[self.given :])


def clique_levels(size: int, oriented: DevicePartition, ranks: int, graph: DeviceGraph) -> Levels:
    """The levels that count cliques of ``size`` vertices over an oriented graph: slot ``i`` binds the i-th rank."""
    neighbours = address(oriented.neighbours)

    def prefix(last: int) -> Source:
        """What the first ``last + 1`` ranks have in common."""
        return Source(ListKind.NEIGHBOURS, 0, 0, neighbours) if last == 0 else Source(ListKind.SHARE, size + last)

    levels = [Level(0, (Source(ListKind.RANGE, length=ranks),))]
    for slot in range(1, size):
        last = (Source(ListKind.NEIGHBOURS, slot - 1, 0, neighbours),)
        lists = (prefix(slot - 2), *last) if slot == size - 1 else (prefix(slot - 1),)
        levels.append(Level(slot, lists, reads=frozenset(source.slot for source in lists)))
    shares = tuple(
        Share(size + last, last, (prefix(last - 1), Source(ListKind.NEIGHBOURS, last, 0, neighbours)))
        for last in range(1, size - 2)
    )
    rows = np.array([oriented.row], np.int64)
    upload = graph.memory.upload
    tables = (upload(rows), upload(np.zeros(1, np.int64)), upload(np.full(2 * size + 1, -1, np.int64)))
    return _live(Levels(tuple(levels), shares, 2 * size + 1, tables, 0, -1, (oriented,)))


def _reads(level: Level, uncertain: Ints) -> frozenset[int]:
    """The slots that a level reads."""
    found = {source.slot for source in level.lists if source.kind in (ListKind.NEIGHBOURS, ListKind.SHARE)}
    found |= {*level.above, *level.differs}
    if level.edges is not None:
        found |= {level.edges.vertex, level.edges.other}
    for check in level.checks:
        found |= {check[cell] for cell in _OPERANDS.get(check[0], ())}
        if check[0] == Op.EDGE_COUNT:
            found |= set(uncertain[check[5] : check[6]].tolist())
    return frozenset(found)


def _live(made: Levels) -> Levels:
    """Give every level the columns of the table after it: what later levels and shares read, and the outputs."""
    bound = {level.slot: i for i, level in enumerate(made.levels)}
    last = len(made.levels) - 1
    tables: list[tuple[int, ...]] = []
    for i in range(last):
        needed = {slot for level in made.levels[i + 1 :] for slot in level.reads}
        if not made.row_levels or i < made.row_levels:
            needed |= set(made.outputs)
        for share in made.shares:
            if share.level >= i:
                needed |= {source.slot for source in share.lists}
        older = {share.slot for share in made.shares if share.level < i}
        if made.row_levels and i >= made.row_levels:
            needed.add(made.origin)
            older.add(made.origin)
        tables.append(tuple(sorted(slot for slot in needed if bound.get(slot, last) <= i or slot in older)))
    tables.append((made.origin,) if made.row_levels else made.outputs)
    levels = tuple(replace(level, columns=columns) for level, columns in zip(made.levels, tables, strict=True))
    return replace(made, levels=levels)
