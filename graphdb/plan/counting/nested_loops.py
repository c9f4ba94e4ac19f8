"""The loops that count a cyclic core: an order of its vertices, and what is computed once each is bound.

Once a vertex is bound, its neighbours in the pattern range over its neighbour list, a sparse vector.  A vertex that has
just one unbound neighbour left is summed out: its vector is sent along that edge (variable elimination; Dechter,
*Bucket elimination*, 1999).  So no loop is needed where what remains is a forest: the loops bind a feedback vertex set.
Vectors are computed at the outermost level where all they depend on is bound; vertices that stand in the same relation
to all others share them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from graphdb.plan.bits import members
from graphdb.plan.counting.costs import CountingCosts
from graphdb.plan.counting.programs import (
    Accumulate,
    Bundle,
    Closed,
    Instruction,
    Intersect,
    Level,
    Load,
    Local,
    Part,
    Through,
    Total,
    Weight,
)

MOST_ORDERS = 400
"""Bindings that are tried in looking for the cheapest order of loops, beyond those that lead to a first one."""
_PROBE = 8.0
"""What finding one value in a list by search costs, in elements scanned."""
_TRY = 30_000.0
"""What trying one more vertex in an order of loops costs, in elements that sixteen cores go through meanwhile."""
MIRRORED = 0.7
"""What sending to half of the vertices takes of the time for all, as measured: where that ends is searched for."""
_PUSH = 1.2
"""What adding to a neighbour's value costs, in values read."""


def cheapest_loops(
    weights: dict[int, Weight],
    bundles: dict[tuple[int, int], Bundle],
    costs: CountingCosts,
    root: int,
    *,
    multiple: int,
    outside: float,
) -> Part:
    """The cheapest program that counts a core.

    Parameters
    ----------
    weights
        Of the core's vertices.
    bundles
        What joins two of them, seen from the first.
    root
        The vertex that matches are counted by, which is bound first; -1 for none.
    multiple, outside
        How many matches each one found stands for; what computing the weights costs.
    """
    return _Search(weights, bundles, costs, root).best(multiple, outside)


_Draft = tuple[Callable[..., Instruction], tuple[Any, ...]]
"""An instruction that was not made yet: how, and of what."""


@dataclass(slots=True)
class _State:
    """A program in the making.  What it shares with the one that it goes on from is never changed."""

    left: int
    """The vertices that are neither bound nor summed out, as bits."""
    registers: dict[int, int] = field(default_factory=dict)
    """Of unbound vertices: the vector of what they may still be bound to."""
    sizes: list[float] = field(default_factory=list)
    known: dict[tuple[object, ...], int] = field(default_factory=dict)
    bound: tuple[int, ...] = ()
    levels: tuple[list[_Draft], ...] = ()
    loops: tuple[int, ...] = ()
    history: tuple[dict[int, int], ...] = ()
    rows: tuple[float, ...] = ()
    pairs: list[tuple[int, int]] = field(default_factory=list)
    """Per register: which pattern vertices the instruction that made it is about."""
    cost: float = 0.0


class _Search:
    """Finds the cheapest order of loops over one core, by going on with the cheapest program that was begun.

    What is added to a program never makes it cheaper, so the first that comes out whole is the cheapest (Dijkstra).  A
    root is bound first.  Dozens of programs are begun for the one that is chosen, so instructions are made for that one
    alone, and weights and bundles are known by numbers that equal ones share.
    """

    def __init__(
        self, weights: dict[int, Weight], bundles: dict[tuple[int, int], Bundle], costs: CountingCosts, root: int
    ) -> None:
        self._weights, self._bundles, self._costs, self._root = weights, bundles, costs, root
        self._distinct = tuple(dict.fromkeys(w for w in weights.values() if not w.is_one))
        self._weight = {v: -1 if w.is_one else self._distinct.index(w) for v, w in weights.items()}
        self._fraction = {v: self._share(w) for v, w in weights.items()}
        self._kinds = tuple(dict.fromkeys(bundles.values()))
        numbers = {bundle: i for i, bundle in enumerate(self._kinds)}
        self._kind = {pair: numbers[bundle] for pair, bundle in bundles.items()}
        self._near = dict.fromkeys(sorted(weights), 0)
        for a, b in bundles:
            self._near[a] |= 1 << b
        self._lengths: dict[tuple[int, int], float] = {}
        self._closures: dict[int, float] = {}

    def best(self, multiple: int, outside: float) -> Part:
        """The cheapest program as a part; ``outside`` is what its weights cost."""
        state = self._cheapest()
        made = [[make(*values) for make, values in level] for level in state.levels]
        levels, locals = _with_locals(_with_tallies(made), state, self._bundles, self._costs)
        root, cost = state.bound[0], state.cost
        if root != self._root and (mirrored := _mirrored(levels, self._weight[root])) is not None:
            levels, cost = mirrored, MIRRORED * cost
        return Part(
            root=self._weights[root],
            root_bundles=tuple(bundle for (a, _), bundle in self._bundles.items() if a == root),
            levels=tuple(
                Level(v, register, tuple(level))
                for v, register, level in zip(state.bound, state.loops, levels, strict=True)
            ),
            weights=self._distinct,
            registers=len(state.sizes),
            locals=locals,
            multiple=multiple,
            rooted=root == self._root,
            cost=cost + outside,
        )

    def _cheapest(self) -> _State:
        """The cheapest whole program, or one that is cheap enough for what looking on would take."""
        best: _State | None = None
        begun, tried = [(0.0, 0, _State(sum(1 << v for v in self._near)))], 0
        while begun:
            cost, _, state = heappop(begun)
            if best is not None and (best.cost <= cost + _TRY * state.left.bit_count() or tried > MOST_ORDERS):
                break
            if tried > MOST_ORDERS:  # straight on to a first one
                begun.clear()
            self._costs.check()
            for v in self._choices(state):
                tried += 1
                following = self._bound(state, v)
                if best is not None and best.cost <= following.cost:
                    continue
                if following.left:
                    heappush(begun, (following.cost, tried, following))
                else:
                    best = following
        assert best is not None
        return best

    def _choices(self, state: _State) -> list[int]:
        """The vertices that may be bound next: of those that are alike, one."""
        if not state.bound:
            return [self._root] if self._root >= 0 else list(self._near)
        # A vertex without a register would be a product: only the first loop starts from nothing.
        alike: dict[tuple[object, ...], int] = {}
        for v in sorted(state.registers):
            joined = tuple((u, self._kind[v, u]) for u in members(self._near[v] & state.left))
            alike.setdefault((self._weight[v], joined, state.registers[v]), v)
        return list(alike.values())

    def _share(self, weight: Weight) -> float:
        """The share of vertices that a weight's filters let pass."""
        share = 1.0
        for number in weight.filters:
            share = min(share, len(self._costs.filters[number]) / max(self._costs.vertices, 1))
        return share

    def _length(self, kind: int, arrival: int) -> float:
        """How long lists are at a vertex that one comes to by ``arrival``, or (-1) at a root."""
        found = self._lengths.get((kind, arrival))
        if found is None:
            bundle = self._kinds[kind]
            member = bundle.members[0]
            costs = self._costs
            mean = costs.mean(member) if arrival < 0 else costs.biased(member, self._kinds[arrival].members[0])
            found = self._lengths[kind, arrival] = mean * (0.5 if bundle.order else 1.0)
        return found

    def _closure(self, kind: int) -> float:
        """The share of two steps' ends that such an edge joins."""
        if kind not in self._closures:
            self._closures[kind] = self._costs.closure(self._kinds[kind].members)
        return self._closures[kind]

    def _bound(self, before: _State, v: int) -> _State:
        """The program that goes on with a loop over ``v``, and all that can be summed out then."""
        level, arrival, register = len(before.bound), -1, -1
        registers = before.registers.copy()
        if level == 0:
            keys = min(self._costs.keys(b.members[0]) for (a, _), b in self._bundles.items() if a == v)
            rows = keys * self._fraction[v]
        else:
            register = registers.pop(v)
            rows = before.rows[-1] * before.sizes[register]
            arrival = self._kind[before.pairs[register]]
        drafts: list[_Draft] = []
        state = _State(
            before.left & ~(1 << v),
            registers,
            before.sizes.copy(),
            before.known.copy(),
            (*before.bound, v),
            (*before.levels, drafts),
            (*before.loops, register),
            before.history,
            (*before.rows, rows),
            before.pairs.copy(),
            before.cost + rows,
        )
        for u in members(self._near[v] & state.left):
            kind = self._kind[v, u]
            length = self._length(kind, arrival)
            source = registers.get(u, -1)
            key = (level, kind, source, self._weight[u] if source < 0 else -1)
            out = state.known.get(key)
            if out is None:
                bundle = self._bundles[v, u]
                if source < 0:
                    work, size = length, length * self._fraction[u]
                else:
                    work = min(length, _PROBE * state.sizes[source])
                    size = state.sizes[source] * self._closure(kind) * (0.5 if bundle.order else 1.0)
                out = _new(state, key, size, (v, u))
                state.cost += rows * (1.0 + work)
                if source < 0:
                    drafts.append((Load, (out, level, bundle, self._weight[u])))
                else:
                    drafts.append((Intersect, (out, source, level, bundle)))
            registers[u] = out
        while self._eliminate(state):
            pass
        state.history = (*state.history, registers.copy())
        return state

    def _eliminate(self, state: _State) -> bool:
        """Sum one vertex (or several that are alike) out, the cheapest first; False where none can be."""
        registers, rows, drafts = state.registers, state.rows[-1], state.levels[-1]
        hanging = []
        for x in sorted(registers):
            near = self._near[x] & state.left
            if not near:
                register = registers[x]
                group = [v for v in registers if registers[v] == register and not self._near[v] & state.left]
                drafts.append((Total, (register, len(group))))
                state.cost += rows * state.sizes[register]
                _drop(state, group)
                return True
            if not near & (near - 1):
                hanging.append((x, near.bit_length() - 1))
        if not hanging:
            return False
        (work, size), x, y = min((self._through(state, x, y), x, y) for x, y in hanging)
        source, mask, forward = registers[x], registers.get(y, -1), self._kind[x, y]
        group = [u for u, w in hanging if w == y and registers[u] == source and self._kind[u, y] == forward]
        weight = -1 if mask >= 0 else self._weight[y]
        key = (source, mask, forward, weight, len(group))
        out = state.known.get(key)
        if out is None:
            out = _new(state, key, size, (x, y))
            state.cost += rows * (1.0 + work)
            joined = (self._bundles[x, y], self._bundles[y, x])
            drafts.append((Through, (out, source, mask, *joined, weight, len(group))))
        registers[y] = out
        _drop(state, group)
        return True

    def _through(self, state: _State, x: int, y: int) -> tuple[float, float]:
        """(work, size) of sending the vector of ``x`` to ``y``."""
        source, mask = state.registers[x], state.registers.get(y)
        size = state.sizes[source]
        forward, backward = self._kind[x, y], self._kind[y, x]
        push = self._length(forward, self._kind[state.pairs[source]])
        if mask is None:
            return _PUSH * size * push, min(size * push, float(self._costs.vertices)) * self._fraction[y]
        pull = self._length(backward, self._kind[state.pairs[mask]])
        last = state.history[-1] if state.history else {}
        if x in last and y in last and self._kinds[forward].plain:
            # The lists are cut down to what was left one level before.
            closure = self._closure(forward)
            push = min(push, state.sizes[last[y]] * closure)
            pull = min(pull, state.sizes[last[x]] * closure)
        both = self._near[x] & self._near[y]
        if len(state.bound) > 1 and any(both >> b & 1 for b in state.bound):
            pull = min(pull, _PROBE + pull * self._closure(backward))  # closed lists
        return min(_PUSH * size * push, state.sizes[mask] * min(pull, _PROBE * size)), state.sizes[mask]


def _new(state: _State, key: tuple[object, ...], size: float, pair: tuple[int, int]) -> int:
    """A register that nothing has made before."""
    out = state.known[key] = len(state.sizes)
    state.sizes.append(max(size, 1e-3))
    state.pairs.append(pair)
    return out


def _drop(state: _State, summed: list[int]) -> None:
    """Forget vertices that were summed out."""
    for v in summed:
        state.left &= ~(1 << v)
        del state.registers[v]


def _with_tallies(levels: list[list[Instruction]]) -> list[list[Instruction]]:
    """A list that is only added up is never written."""
    reads: dict[int, int] = {}
    for level in levels:
        for instruction in level:
            for register in _sources(instruction):
                reads[register] = reads.get(register, 0) + 1
    fused: list[list[Instruction]] = []
    for level in levels:
        totals = {i.source: i for i in level if isinstance(i, Total)}
        out: list[Instruction] = []
        done = set()
        for instruction in level:
            if isinstance(instruction, Intersect) and reads.get(instruction.out) == 1 and instruction.out in totals:
                done.add(instruction.out)
                power = totals[instruction.out].power
                out.append(Accumulate(instruction.source, instruction.at, instruction.bundle, power))
            elif isinstance(instruction, Through) and reads.get(instruction.out) == 1 and instruction.out in totals:
                done.add(instruction.out)
                out.append(replace(instruction, total=totals[instruction.out].power))
            elif not (isinstance(instruction, Total) and instruction.source in done):
                out.append(instruction)
        fused.append(out)
    return fused


def _mirrored(levels: list[list[Instruction]], root_weight: int) -> list[list[Instruction]] | None:
    """The same where the only loop sends what it loads to vertices that are to its root what the root is to them, and
    have its weight: of two such vertices, one sends to the other.  None where that is not so.
    """
    match levels:
        case [[Load(loaded, 0, near), Through(_, source, -1, _, back, weight, total=1) as last]]:
            alike = source == loaded and back == near and not near.order and weight == root_weight
            return [[levels[0][0], replace(last, mirrored=True)]] if alike else None
    return None


def _sources(instruction: Instruction) -> tuple[int, ...]:
    match instruction:
        case Load():
            return ()
        case Through(_, source, mask):
            return source, mask
        case _:
            return (instruction.source,)


def _with_locals(
    levels: list[list[Instruction]],
    state: _State,
    bundles: dict[tuple[int, int], Bundle],
    costs: CountingCosts,
) -> tuple[list[list[Instruction]], int]:
    """Cut neighbour lists down to what can still be matched where an inner level reads them again and again."""
    numbers: dict[tuple[int, int, int, Bundle], int] = {}
    added: list[list[Instruction]] = [[] for _ in levels]

    def local(bundle: Bundle, p: int, q: int, level: int) -> int:
        """The local lists of ``p``'s values towards ``q``'s, as of ``level``; -1 where they do not pay."""
        while level >= 0 and not (p in state.history[level] and q in state.history[level]):
            level -= 1
        if level < 0 or not bundle.plain:
            return -1
        source, target = state.history[level][p], state.history[level][q]
        while level > 0 and (state.history[level - 1].get(p), state.history[level - 1].get(q)) == (source, target):
            level -= 1
        if state.sizes[target] * costs.closure(bundle.members) > 0.7 * costs.biased(bundle.members[0]):
            return -1  # they would hardly be shorter
        if state.sizes[source] > 4.0 * state.sizes[target]:
            return -1  # most of them would never be read
        key = (level, source, target, bundle)
        if key not in numbers:
            parent = local(bundle, p, q, level - 1)
            numbers[key] = len(numbers)
            added[level].append(Local(numbers[key], source, target, bundle, parent))
        return numbers[key]

    rewritten: list[list[Instruction]] = []
    for m, level in enumerate(levels):
        out: list[Instruction] = []
        for instruction in level:
            if isinstance(instruction, Intersect) and m >= 2:
                p, q = state.pairs[instruction.out]
                instruction = replace(instruction, local=local(instruction.bundle, p, q, m - 2))
            elif isinstance(instruction, Through) and instruction.mask >= 0 and m >= 1:
                x, y = state.pairs[instruction.out]
                same = instruction.source == instruction.mask  # then the mask asks, and nothing is sent
                forward = -1 if same else local(instruction.forward, x, y, m - 1)
                backward = local(instruction.backward, y, x, m - 1)
                certain = any(n == forward and key[2] == instruction.mask for key, n in numbers.items())
                instruction = replace(instruction, local_forward=forward, local_backward=backward, certain=certain)
                asked = state.rows[m] * state.sizes[instruction.mask]
                if backward < 0 and asked > 0.5 * state.rows[0] * costs.mean(instruction.backward.members[0]):
                    instruction = _with_closed(instruction, x, y, state, bundles)
            out.append(instruction)
        rewritten.append(out)
    return [level + more for level, more in zip(rewritten, added, strict=True)], len(numbers)


def _with_closed(
    instruction: Through, x: int, y: int, state: _State, bundles: dict[tuple[int, int], Bundle]
) -> Through:
    """Let the mask's vertices read what they have in common with a bound vertex that both ends are joined to."""
    for level, b in reversed(list(enumerate(state.bound))):
        first, second = bundles.get((b, y)), bundles.get((b, x))
        if first and second and first.plain and second.plain and instruction.backward.plain:
            closed = Closed(Bundle(first.members), Bundle(second.members), instruction.backward)
            return replace(instruction, closed=closed, anchor=level)
    return instruction
