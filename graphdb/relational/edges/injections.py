"""Injective assignments of pattern edges to the data edges between their vertices, counted for sets that overlap.

Where pattern edges must differ and the sets that they choose from (by labels and conditions) overlap without one being
part of the other, the number of choices is no product.  Two data edges of one pair of vertices are alike if the same
pattern edges admit them: such classes, in each of two directions, are taken one after the other.  A dynamic program
over them knows for each vector of pattern edges that are left, by their kinds, in how many ways the others have theirs:
of *m* data edges *j* pattern edges take m (m - 1) … (m - j + 1), times the ways to choose which *j* of each kind.  It
has as many states as there are such vectors, whatever the number of data edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

from graphdb.execute.counting.crt import Numbers, products
from graphdb.pattern.graph import PatternGraph
from graphdb.plan.injectivity import comparable
from graphdb.relational.edges.edge_classes import Admitted, Conditions, EdgeClasses
from graphdb.relational.snapshot import Snapshot

Ids = NDArray[np.int64]

Kind = tuple[Admitted, int]
"""What a pattern edge admits, and which way it leads between two data vertices: 0 for either."""

_STATES = 4096
"""States that a program may have."""

_ROWS = 4096
"""Rows of different numbers of edges that are counted at a time."""

_FORWARD, _BACKWARD = 1, -1


def are_countable(pattern: PatternGraph, admitted: Sequence[Admitted]) -> bool:
    """Whether the assignments of all edges that may have to differ are counted by programs of bounded size.

    ``admitted`` says what each pattern edge admits.
    """
    for group in _groups(pattern):
        kinds = Counter((admitted[e], pattern.edges[e].directed) for e in group)
        # Directed edges of one kind may lead either way between two data vertices: two kinds, then.
        states = prod((n / 2 + 1) ** 2 if directed else n + 1 for (_, directed), n in kinds.items())
        if states > _STATES:
            return False
    return True


def _groups(pattern: PatternGraph) -> Iterator[list[int]]:
    """The pattern's edges, by their numbers: those that may have to differ together, the others alone."""
    left = set(range(len(pattern.edges)))
    for group in comparable(pattern):
        left.difference_update(group)
        yield group
    yield from ([edge] for edge in sorted(left))


class Injections:
    """Counts the choices of data edges for all edges of a pattern, given its vertices."""

    def __init__(self, snapshot: Snapshot, pattern: PatternGraph, conditions: Conditions) -> None:
        self._edges = pattern.edges
        self._admitted = conditions.admitted
        self._groups = list(_groups(pattern))
        self._classes = EdgeClasses(snapshot, pattern, conditions)

    def __call__(self, vertices: Sequence[Ids], rows: int, check: Callable[[], None]) -> Numbers:
        """Return int64 or Python's integers [rows]: the number of choices for each binding of the vertices.

        Parameters
        ----------
        vertices
            For each vertex of the pattern int64 [rows], what it is bound to.
        check
            Called between pieces of work; what it raises ends it.
        """
        matches: Numbers = np.ones(rows, np.int64)
        for group in self._groups:
            matches = products(matches, self._of_group(group, vertices, rows, check))
        return matches

    def _of_group(self, group: list[int], vertices: Sequence[Ids], rows: int, check: Callable[[], None]) -> Numbers:
        """The numbers of choices for edges that must differ: bindings whose ends coincide alike, at a time."""
        pairs = list(dict.fromkeys((self._edges[e].source, self._edges[e].target) for e in group))
        bound = [(vertices[a].astype(np.int64), vertices[b].astype(np.int64)) for a, b in pairs]
        low, high = ([side(a, b) for a, b in bound] for side in (np.minimum, np.maximum))
        shape = np.empty((rows, 2 * len(pairs)), np.int16)
        for p, (a, b) in enumerate(bound):
            first = np.full(rows, p, np.int16)
            for q in range(p - 1, -1, -1):
                first[(low[p] == low[q]) & (high[p] == high[q])] = q
            shape[:, 2 * p], shape[:, 2 * p + 1] = first, np.sign(b - a)
        shapes, place = np.unique(shape, axis=0, return_inverse=True)
        matches: Numbers = np.ones(rows, np.int64)
        for number, alike in enumerate(shapes):
            at = np.flatnonzero(place.reshape(-1) == number)
            found: Numbers = np.ones(len(at), np.int64)
            for p in sorted({*alike[::2].tolist()}):
                wanted: Counter[Kind] = Counter()
                for e in group:
                    edge = self._edges[e]
                    of = pairs.index((edge.source, edge.target))
                    if alike[2 * of] == p:
                        wanted[self._admitted[e], int(alike[2 * of + 1]) if edge.directed else 0] += 1
                found = products(found, self._between(wanted, low[p][at], high[p][at], bool(alike[2 * p + 1]), check))
            if found.dtype != matches.dtype:
                matches = matches.astype(object)
                found = found.astype(object)
            matches[at] = found
        return matches

    def _between(self, wanted: Counter[Kind], low: Ids, high: Ids, apart: bool, check: Callable[[], None]) -> Numbers:
        """The numbers of choices for edges that are bound to the same two vertices, or to one that is not ``apart``."""
        sizes: list[Ids] = []
        admitted: list[frozenset[Kind]] = []
        for direction in (_FORWARD, _BACKWARD) if apart else (0,):
            ends = (low, high) if direction != _BACKWARD else (high, low)
            for admitting, between in zip(self._classes.admitted, self._classes(*ends), strict=True):
                fits = frozenset(kind for kind in wanted if kind[0] in admitting and kind[1] in (0, direction))
                if fits:
                    sizes.append(between)
                    admitted.append(fits)
        if not sizes:
            return np.zeros(len(low), np.int64)
        different, place = np.unique(np.stack(sizes, axis=1), axis=0, return_inverse=True)
        pieces: list[Numbers] = []
        for begin in range(0, len(different), _ROWS):
            check()
            pieces.append(assignments(wanted, admitted, list(different[begin : begin + _ROWS].T), check))
        wide = any(piece.dtype == object for piece in pieces)
        counted = np.concatenate([piece.astype(object) if wide else piece for piece in pieces])
        found: Numbers = counted[place.reshape(-1)]
        return found


def assignments(
    wanted: Counter[Kind],
    admitted: Sequence[frozenset[Kind]],
    sizes: Sequence[Ids],
    check: Callable[[], None],
) -> Numbers:
    """Count the ways to give each pattern edge a data edge of its own.

    Parameters
    ----------
    wanted
        How many pattern edges there are of each kind.
    admitted
        For each class of data edges the kinds that admit them.
    sizes
        For each class int64 [rows]: how many data edges it has.

    Returns
    -------
    int64 [rows], or Python's integers where they might not fit.
    """
    kinds = list(wanted)
    rows = len(sizes[0])
    most = 1 + sum(int(size.max(initial=0)) for size in sizes)
    wide = most ** wanted.total() >= 1 << 63
    one = np.ones(rows, object if wide else np.int64)
    states: dict[tuple[int, ...], Numbers] = {tuple(wanted.values()): one}
    for at, (fits, size) in enumerate(zip(admitted, sizes, strict=True)):
        later = frozenset[Kind]().union(*admitted[at + 1 :])
        falling = [one]
        for before in range(min(wanted.total(), int(size.max(initial=0)))):
            falling.append(falling[-1] * np.maximum(size - before, 0))
        reached: dict[tuple[int, ...], Numbers] = {}
        for left, ways in states.items():
            check()
            # What no later class admits must be taken here.
            taking = [
                range(n + 1) if kind in fits and kind in later else range(n, n + 1) if kind in fits else range(1)
                for kind, n in zip(kinds, left, strict=True)
            ]
            for taken in product(*taking):
                total = sum(taken)
                if total >= len(falling):
                    continue
                times = prod(map(comb, left, taken))
                state = tuple(n - t for n, t in zip(left, taken, strict=True))
                more = ways * falling[total] * times
                reached[state] = reached[state] + more if state in reached else more
        states = reached
    return states.get((0,) * len(kinds), one * 0)
