"""Which edges the triples of a match stand for: rows with their choices among parallel edges, or how many these are.

A pattern edge whose own edge matters (a condition asks for its properties, or the query returns it) is *chosen*: a row
comes once for each of its edges.  Of the others only the number of choices matters.  Pattern edges that must differ and
are bound to one triple share its m parallel edges: after i of them have one, the next has m - i left, so that k of them
have m (m - 1) … (m - k + 1) choices.  Rows are never made to be counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphdb.common import arrow
from graphdb.common.arrow import numbers
from graphdb.execute.counting.crt import narrowed, products
from graphdb.pattern.bind import BoundPattern, Choice
from graphdb.pattern.graph import Wanted
from graphdb.plan.executor import Block
from graphdb.plan.physical import EdgeExtension, EdgeScan
from graphdb.relational.snapshot import Snapshot
from graphdb.storage.arrays.texts import is_run
from graphdb.storage.graph.edges import EdgeTable, spread

Ids = NDArray[np.int64]
Triples = tuple[Ids, Ids, Ids]
"""Labels, starts and ends."""

_BLOCK = 1 << 18
"""Edges that are scanned at a time, and rows that are made of a block at a time."""


_LOOKED_AT = 1 << 20
"""Edges that are found, and pairs of them that are compared, between two questions whether to go on."""


@dataclass(frozen=True, slots=True)
class Scanned(Block):
    """Rows of edges one after the other, each of one match; of pattern edges in ``runs``, they follow one another in
    their table.
    """

    runs: Mapping[int, range] = field(default_factory=dict)


class Chooser:
    """Finds the edges of a match's rows, a block at a time.

    Parameters
    ----------
    fulfilled
        Pattern edges whose conditions are fulfilled by all that the match binds them to.

    Attributes
    ----------
    vertices, edges
        The pattern's vertices and edges that must be among the match's outputs.
    cuts
        Whether it drops rows.
    """

    def __init__(self, snapshot: Snapshot, bound: BoundPattern, needs: Wanted, fulfilled: Collection[int] = ()) -> None:
        self._fulfilled = fulfilled
        self._snapshot = snapshot
        self._bound = bound
        self._needs = needs
        self._counts = needs.count_only or needs.duplicates == "count"
        self.edges: tuple[int, ...] = ()
        self.vertices: tuple[int, ...] = ()
        self.cuts = bool(bound.differ)
        self._chosen: list[tuple[int, Choice]] = []
        """Pattern edges of which each parallel edge makes a row, …"""
        self._counted: list[tuple[int, Choice]] = []
        """… and those of which only the number of parallel edges matters."""
        if bound.choices:
            self._sort()

    def _sort(self) -> None:
        """Sort the pattern's edges by what is asked of theirs."""
        bound, needs = self._bound, self._needs
        compared = {number for pair in bound.differ for number in pair}
        for number, choice in bound.choices.items():
            shown = number in needs.facts or (number in needs.edges and bool(choice.parallel or choice.facts))
            if shown or (choice.fulfil is not None and number not in self._fulfilled):
                self._chosen.append((number, choice))
            elif number in compared or (choice.parallel and (self._counts or needs.duplicates == "keep")):
                self._counted.append((number, choice))
        self.edges = tuple(sorted(number for number, _ in (*self._chosen, *self._counted)))
        order = [number for number, _ in (*self._chosen, *self._counted)]
        pairs = {*bound.differ, *((j, i) for i, j in bound.differ)}
        self._before = {
            number: [other for other in order[:at] if (other, number) in pairs] for at, number in enumerate(order)
        }
        """The pattern edges that are resolved before one, and must bind another edge."""
        ends = (end for number in self.edges for end in (bound.edges[number].source, bound.edges[number].target))
        self.vertices = tuple(dict.fromkeys(ends))
        self.cuts |= any(choice.fulfil is not None and number not in self._fulfilled for number, choice in self._chosen)

    def __bool__(self) -> bool:
        return bool(self.edges)

    @property
    def chooses_all(self) -> bool:
        """Whether a row comes for each choice of all edges of the pattern."""
        return len(self._chosen) == len(self._bound.edges)

    def blocks(self, block: Block, check: Callable[[], None]) -> Iterator[Block]:
        """Give the rows with all choices of edges, whose numbers are columns ``#n<edge>`` of int64.

        Where matches are counted, their numbers are int64 if they fit, else Python's integers.  ``check`` is called for
        every piece of some 100,000 rows; what it raises ends the run.
        """
        compared = sum(map(len, self._before.values()))
        size = max(_LOOKED_AT // (1 + len(self.edges) + compared), 1)
        for begin in range(0, block.count, size):
            rows = slice(begin, begin + size)
            columns = {name: column[rows] for name, column in block.columns.items()}
            matches = None if block.matches is None else block.matches[rows]
            yield from self._resolved(Block(columns, min(size, block.count - begin), matches), check)

    def _resolved(self, block: Block, check: Callable[[], None]) -> Iterator[Block]:
        triples = {number: self._triples(block, number) for number in self.edges}
        found = {
            number: self._snapshot.edges.table(choice.labels).find(*triples[number]) for number, choice in self._chosen
        }
        counts = {
            number: self._snapshot.edges.table(choice.labels).parallel(*triples[number])
            for number, choice in self._counted
        }
        if not self._chosen:
            yield from self._counted_block(block, triples, counts, slice(None), {}, check)
            return
        pending: list[tuple[int, Ids, dict[int, Ids]]] = [(0, np.arange(block.count), {})]
        while pending:
            check()
            at, rows, chosen = pending.pop()
            if at == len(self._chosen):
                yield from self._counted_block(block, triples, counts, rows, chosen, check)
                continue
            number, choice = self._chosen[at]
            first, count = (column[rows] for column in found[number])
            if choice.parallel:
                ends = np.cumsum(count)
                if len(rows) > 1 and ends[-1] > _BLOCK:
                    cut = max(int(np.searchsorted(ends, _BLOCK, side="right")), 1)
                    pending.append((at, rows[cut:], _taken(slice(cut, None), chosen)))
                    rows, chosen = rows[:cut], _taken(slice(cut), chosen)
                    first, count, ends = first[:cut], count[:cut], ends[:cut]
                if len(rows) and ends[-1] > len(rows):
                    again, first = spread(first, count, int(ends[-1]))
                    rows, chosen = rows[again], _taken(again, chosen)
            left = self._fulfilling(choice, first)
            for other in self._before[number]:
                apart = ~self._same(number, first, other, chosen[other], triples, rows)
                left = apart if left is None else left & apart
            if left is not None and not left.all():
                rows, chosen, first = rows[left], _taken(left, chosen), first[left]
            pending.append((at + 1, rows, {**chosen, number: first}))

    def _counted_block(
        self,
        block: Block,
        triples: Mapping[int, Triples],
        counts: Mapping[int, tuple[Ids, Ids]],
        rows: Ids | slice,
        chosen: dict[int, Ids],
        check: Callable[[], None],
    ) -> Iterator[Block]:
        """Give rows whose chosen edges are found, with the numbers of choices among the others.

        ``rows`` are those of the block, or all of it; ``counts`` says where its triples have several edges, and how
        many.
        """
        matches: NDArray[np.generic] | None = None if block.matches is None else block.matches[rows]
        for number, _ in self._counted:
            count = self._choices(block, triples, number, counts[number], rows)
            if count is None:  # one for each row
                continue
            if self._before[number] and not (alive := count > 0).all():
                rows = np.flatnonzero(alive) if isinstance(rows, slice) else rows[alive]
                chosen, count = _taken(alive, chosen), count[alive]
                matches = None if matches is None else matches[alive]
            if self._counts or self._needs.duplicates == "keep":
                matches = count if matches is None else products(matches, count)
        if self._counts:
            ones = np.ones(block.count if isinstance(rows, slice) else len(rows), np.int64)
            yield self._block(block, rows, chosen, narrowed(ones if matches is None else matches))
        elif self._needs.duplicates == "drop" or not self._counted or matches is None or (matches == 1).all():
            yield self._block(block, rows, chosen, None)
        else:
            yield from self._repeated(block, rows, chosen, matches, check)

    def _choices(
        self,
        block: Block,
        triples: Mapping[int, Triples],
        number: int,
        parallel: tuple[Ids, Ids],
        rows: Ids | slice,
    ) -> Ids | None:
        """Return how many edges some rows may choose from for a pattern edge: int64 [rows]; None for one each."""
        places, several = parallel
        taken = [at for at in (_equal(triples, number, other, rows) for other in self._before[number]) if len(at)]
        if not (len(places) or taken):
            return None
        every = np.ones(block.count, np.int64)
        every[places] = several
        count: Ids = every[rows]
        for at in taken:
            count[at] -= 1
        return count

    def _repeated(
        self,
        block: Block,
        rows: Ids | slice,
        chosen: dict[int, Ids],
        times: NDArray[np.generic],
        check: Callable[[], None],
    ) -> Iterator[Block]:
        """Give every row so many times, some rows at a time: they may be more than there will ever be time for."""
        if times.dtype == np.int64 and int(times.max()) <= _BLOCK and int(times.sum()) <= 2 * _BLOCK:
            again = np.repeat(np.arange(len(times)), times.astype(np.int64, copy=False))
            yield self._block(block, again if isinstance(rows, slice) else rows[again], _taken(again, chosen), None)
            return
        at, done = 0, 0  # the row that goes on, and how often it was given
        while at < len(times):
            check()
            counts = np.minimum(times[at : at + _BLOCK], _BLOCK).astype(np.int64)
            counts[0] = min(int(times[at]) - done, _BLOCK)
            whole = max(int(np.searchsorted(np.cumsum(counts), _BLOCK, side="right")), 1)
            again = at + np.repeat(np.arange(whole), counts[:whole])
            some = again if isinstance(rows, slice) else rows[again]
            yield self._block(block, some, _taken(again, chosen), None)
            done += int(counts[0])
            if whole > 1 or done == int(times[at]):
                at, done = at + whole, 0

    def _block(
        self, block: Block, rows: Ids | slice, chosen: dict[int, Ids], matches: NDArray[np.int64] | None
    ) -> Block:
        columns, count = block.columns, block.count
        if not isinstance(rows, slice):
            every = len(rows) == count and bool((rows == np.arange(count)).all())
            columns, count = columns if every else {name: each[rows] for name, each in columns.items()}, len(rows)
        return Block(columns | {f"#n{number}": first for number, first in chosen.items()}, count, matches)

    def _fulfilling(self, choice: Choice, first: Ids) -> NDArray[np.bool_] | None:
        """Which edges fulfil the conditions on them alone; None where there are none."""
        if choice.fulfil is None:
            return None
        described = first >= 0
        return np.where(described, choice.fulfil[first], choice.others) if len(choice.fulfil) else described

    def _same(
        self, number: int, first: Ids, other: int, second: Ids, triples: Mapping[int, Triples], rows: Ids
    ) -> NDArray[np.bool_]:
        """Whether two pattern edges are bound to the same edge, for some rows."""
        if self._bound.choices[number].labels == self._bound.choices[other].labels:
            same: NDArray[np.bool_] = first == second
            if bool((first[same] >= 0).all()):
                return same  # edges are numbered, all but those of labels that are not described
        else:  # they are numbered in different tables
            same = self._ordinals(number, first) == self._ordinals(other, second)
        twice = np.zeros(len(first), bool)
        twice[_equal(triples, number, other, rows)] = True
        return same & twice

    def scan(self, scan: EdgeScan) -> Iterator[Block]:
        """Give the rows of a pattern all edges of which are chosen, or the only one: edges one after the other."""
        number, choice = scan.edge, self._bound.choices[scan.edge]
        edge, table = self._bound.edges[number], self._snapshot.edges.table(choice.labels)
        pair = edge.source, edge.target
        masks = [self._mask(candidates) for candidates in (scan.source, scan.target)]
        further = [(step, self._mask(step.target)) for step in scan.further]
        fulfil = self._starting_at(scan, table) if edge.directed else None
        if fulfil is not None:
            masks[0] = None
            fulfil = fulfil if choice.fulfil is None else fulfil[choice.fulfil[fulfil]]
        elif choice.fulfil is not None:
            fulfil = choice.fulfilling()
        count = scan.edges if fulfil is None else len(fulfil)
        loop = edge.source == edge.target
        handed_on = [bool(further) or end in self._needs.vertices for end in pair]
        compared = loop or not edge.directed
        read = [compared or on or mask is not None for on, mask in zip(handed_on, masks, strict=True)]
        every = fulfil is None and not (compared or further) and all(mask is None for mask in masks)
        # Rows that are parts of what is in memory already are all given at once.
        size = count if every and number not in self._needs.edges else _BLOCK
        for at in range(0, count, max(size, 1)):
            end = min(at + size, count)
            some = slice(at, end) if fulfil is None else fulfil[at:end]
            both = zip((table.starts, table.ends), read, strict=True)
            sides: list[Any] = [side[some] if wanted else None for side, wanted in both]
            if every:
                yield self._scanned(_there(pair, sides), {number: range(at, end)}, backwards=False)
                continue
            for backwards in (False,) if edge.directed or loop else (False, True):
                numbers, ends = None if fulfil is None else fulfil[at:end], sides.copy()
                allowed: NDArray[np.bool_] | None = None
                if backwards:
                    ends.reverse()
                if loop or backwards:  # a self loop is one way to go, not two
                    allowed = (ends[0] == ends[1]) == loop
                for side, mask in zip(ends, masks, strict=True):
                    if mask is not None:
                        among = mask[side.astype(np.intp, copy=False)]
                        allowed = among if allowed is None else allowed & among
                ends = [side if on else None for side, on in zip(ends, handed_on, strict=True)]
                if allowed is not None and not allowed.all():
                    left = np.flatnonzero(allowed)  # quicker than to take by truth values
                    numbers = left + at if numbers is None else numbers[left]
                    ends = [None if side is None else side[left] for side in ends]
                elif numbers is None:
                    numbers = np.arange(at, end)
                yield from self._extended(further, _there(pair, ends), {number: numbers}, backwards=backwards)

    @staticmethod
    def _starting_at(scan: EdgeScan, table: EdgeTable) -> Ids | None:
        """Return the edges that start at the candidates, if these are known and have less than half of all edges."""
        if scan.source is None or len(table.labels) > 1:
            return None
        first, count = table.starting_at(scan.source)
        total = int(count.sum())
        return spread(first, count, total)[1] if 2 * total < len(table) else None

    def _mask(self, candidates: Ids | None) -> NDArray[np.bool_] | None:
        if candidates is None:
            return None
        mask = np.zeros(self._snapshot.graph.vertices, bool)
        mask[candidates] = True
        return mask

    def _extended(
        self,
        further: Sequence[tuple[EdgeExtension, NDArray[np.bool_] | None]],
        vertices: dict[int, Ids],
        chosen: dict[int, Ids],
        *,
        backwards: bool,
    ) -> Iterator[Block]:
        """Give rows with all edges that follow; ``backwards`` if the first goes against its direction."""
        if not further:
            yield self._scanned(vertices, chosen, backwards=backwards)
            return
        (step, mask), *rest = further
        edge, choice = self._bound.edges[step.edge], self._bound.choices[step.edge]
        table = self._snapshot.edges.table(choice.labels)
        first, count = table.starting_at(vertices[edge.source])
        ends, begin = np.cumsum(count), 0
        while begin < len(count):
            before = int(ends[begin - 1]) if begin else 0
            until = max(int(np.searchsorted(ends, before + _BLOCK, side="right")), begin + 1)
            rows, numbers = spread(first[begin:until], count[begin:until], int(ends[until - 1]) - before)
            rows, begin = rows + begin, until
            left = np.ones(len(rows), bool) if mask is None else mask[table.ends[numbers]]
            if choice.fulfil is not None:
                left &= choice.fulfil[numbers]
            for other in step.differs:
                left &= chosen[other][rows] != numbers
            if not left.all():
                some = np.flatnonzero(left)
                rows, numbers = rows[some], numbers[some]
            bound = {**_taken(rows, vertices), edge.target: table.ends[numbers]}
            yield from self._extended(rest, bound, {**_taken(rows, chosen), step.edge: numbers}, backwards=backwards)

    def _scanned(self, vertices: Mapping[int, Ids], chosen: Mapping[int, Ids | range], *, backwards: bool) -> Block:
        """Return rows that were found as edges: what is wanted of them."""
        rows = len(next(iter(chosen.values())))
        columns = {self._bound.vertices[v].name: ids for v, ids in vertices.items() if v in self._needs.vertices}
        runs = {}
        for number, edges in chosen.items():
            if isinstance(edges, range):
                runs[number] = edges
            else:
                columns[f"#n{number}"] = edges
            if number in self._needs.edges:
                labels = self._snapshot.edges.table(self._bound.choices[number].labels).labels_of(edges)
                one = labels.strides == (0,) and rows > 1
                codes = (labels[:1] if one else labels) * 2 + backwards
                columns[self._bound.edges[number].name] = np.broadcast_to(codes[0], rows) if one else codes
        once = np.broadcast_to(np.int64(1), rows) if self._counts else None
        return Scanned(columns, rows, once, runs)

    def _triples(self, block: Block, number: int) -> tuple[Ids, Ids, Ids]:
        """Labels, starts and ends of what a pattern edge is bound to."""
        edge, vertices = self._bound.edges[number], self._bound.vertices
        codes = block.columns[edge.name]
        source, target = (block.columns[vertices[v].name] for v in (edge.source, edge.target))
        if not edge.directed:
            forward = codes & 1 == 0
            source, target = np.where(forward, source, target), np.where(forward, target, source)
        return codes >> 1, source, target

    def _ordinals(self, number: int, chosen: Ids) -> Ids:
        ordinals = self._snapshot.edges.table(self._bound.choices[number].labels).ordinals
        if ordinals is None:
            return np.zeros(len(chosen), np.int64)
        found = ordinals[chosen].astype(np.int64)
        found[chosen < 0] = 0
        return found

    def columns(self, block: Block) -> dict[str, arrow.Array]:
        """Return what SQL sees of the chosen edges: their codes (with their provenance, the table of edges), their
        ordinals, and the properties that the query names.
        """
        found: dict[str, arrow.Array] = {}
        for number, choice in self._chosen:
            if number not in (*self._needs.edges, *self._needs.facts) or not (choice.parallel or choice.facts):
                continue
            run = block.runs.get(number) if isinstance(block, Scanned) else None
            chosen: Ids | range = block.columns[f"#n{number}"] if run is None else run
            if number in self._needs.edges:
                table = self._snapshot.edges.table(choice.labels)
                rows = table.numbered(chosen)
                provenance = arrow.Provenance(table, rows)
                found[f"e{number}"] = numbers(block.columns[self._bound.edges[number].name], provenance=provenance)
                if choice.parallel:
                    found[f"o{number}"] = numbers(self._ordinals(number, rows))
            if not isinstance(chosen, range) and is_run(chosen) and chosen[0] >= 0:
                chosen = range(int(chosen[0]), int(chosen[-1]) + 1)
            for key in dict.fromkeys(choice.facts.values()):
                edges = self._snapshot.edges
                if isinstance(chosen, range):
                    value = edges.values(choice.labels, key).slice(chosen.start, len(chosen))
                else:
                    value = edges.values_of(choice.labels, key, chosen)
                found[f"f{number}_{key}"] = value
        return found


def _equal(triples: Mapping[int, Triples], number: int, other: int, rows: Ids | slice) -> Ids:
    """Return the places of those of some rows for which two pattern edges are bound to one triple: int64, sorted."""
    (labels, starts, ends), (other_labels, other_starts, other_ends) = triples[number], triples[other]
    alike = np.flatnonzero(starts[rows] == other_starts[rows])  # mostly few
    at = alike if isinstance(rows, slice) else rows[alike]
    same: NDArray[np.bool_] = (ends[at] == other_ends[at]) & (labels[at] == other_labels[at])
    return alike[same]


def _there(vertices: Sequence[int], ids: Sequence[Ids | None]) -> dict[int, Ids]:
    """Return the ids of those vertices that are asked for."""
    return {vertex: found for vertex, found in zip(vertices, ids, strict=True) if found is not None}


def _taken(at: Ids | NDArray[np.bool_] | slice, chosen: Mapping[int, Ids]) -> dict[int, Ids]:
    """Return some of the rows' chosen edges."""
    return {number: first[at] for number, first in chosen.items()}
