"""The loops that count a cyclic core: an order of its vertices, and what is computed once each is bound.

Once a vertex is bound, its neighbours in the pattern range over its neighbour list, a sparse vector.  A vertex that has
just one unbound neighbour left is summed out: its vector is sent along that edge (variable elimination; Dechter,
*Bucket elimination*, 1999).  So no loop is needed where what remains is a forest: the loops bind a feedback vertex set.
Vectors are computed at the outermost level where all they depend on is bound; vertices that stand in the same relation
to all others share them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from graphdb.plan.counting_costs import CountingCosts
from graphdb.plan.loops import (
    Bundle,
    Closed,
    Instruction,
    Level,
    Load,
    Local,
    Meet,
    Part,
    Tally,
    Through,
    Total,
    Weight,
)

MOST_ORDERS = 400
"""Bindings that are tried in looking for the cheapest order of loops, beyond those that lead to a first one."""
_PROBE = 8.0
"""What finding one value in a list by search costs, in elements gone through."""
_TRY = 5_000.0
"""What trying one more vertex in an order of loops costs, in elements gone through meanwhile."""
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


@dataclass(slots=True)
class _State:
    """A program in the making.  ``near`` holds the unbound vertices and their unbound neighbours."""

    near: dict[int, frozenset[int]]
    registers: dict[int, int] = field(default_factory=dict)
    """Of unbound vertices: the vector of what they may still be bound to."""
    sizes: list[float] = field(default_factory=list)
    known: dict[object, int] = field(default_factory=dict)
    bound: list[int] = field(default_factory=list)
    levels: list[list[Instruction]] = field(default_factory=list)
    loops: list[int] = field(default_factory=list)
    history: list[dict[int, int]] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    pairs: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Which pattern vertices an instruction that made a register is about."""
    cost: float = 0.0

    def copy(self) -> _State:
        return replace(
            self,
            near=dict(self.near),
            registers=dict(self.registers),
            sizes=list(self.sizes),
            known=dict(self.known),
            bound=list(self.bound),
            levels=[list(level) for level in self.levels],
            loops=list(self.loops),
            history=list(self.history),
            rows=list(self.rows),
            pairs=dict(self.pairs),
        )


class _Search:
    """Finds the cheapest order of loops over one core: the cheapest next loop first, all others while it may be.

    A root is bound first.
    """

    def __init__(
        self, weights: dict[int, Weight], bundles: dict[tuple[int, int], Bundle], costs: CountingCosts, root: int
    ) -> None:
        self._weights, self._bundles, self._costs, self._root = weights, bundles, costs, root
        self._distinct = tuple(dict.fromkeys(w for w in weights.values() if not w.is_one))
        self._best: _State | None = None
        self._tried = 0

    def best(self, multiple: int, outside: float) -> Part:
        """The cheapest program as a part; ``outside`` is what its weights cost."""
        near = {v: frozenset(b for a, b in self._bundles if a == v) for v in self._weights}
        self._explore(_State(near))
        state = self._best
        assert state is not None
        levels, locals = _with_locals(_with_tallies(state.levels), state, self._bundles, self._costs)
        root = state.bound[0]
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
            cost=state.cost + outside,
        )

    def _explore(self, state: _State) -> None:
        self._costs.check()
        if self._best is not None and (
            self._best.cost <= max(state.cost, self._tried * _TRY) or self._tried > MOST_ORDERS
        ):
            return
        if not state.near:
            self._best = state
            return
        # A vertex without a register would be a product: only the first loop starts from nothing.
        choices = [v for v in sorted(state.near) if not state.bound or v in state.registers]
        if not state.bound and self._root >= 0:
            choices = [self._root]
        tried, longer = set(), []
        for v in choices:
            alike = (
                self._weights[v],
                frozenset((u, self._bundles[v, u]) for u in state.near[v]),
                state.registers.get(v),
            )
            if state.bound and alike in tried:
                continue
            tried.add(alike)
            longer.append(state.copy())
            self._bind(longer[-1], v)
            self._tried += 1
        for following in sorted(longer, key=lambda found: found.cost):
            self._explore(following)

    def _fraction(self, v: int) -> float:
        share = 1.0
        for number in self._weights[v].filters:
            share = min(share, len(self._costs.filters[number]) / max(self._costs.vertices, 1))
        return share

    def _weight(self, v: int) -> int:
        weight = self._weights[v]
        return -1 if weight.is_one else self._distinct.index(weight)

    def _length(self, bundle: Bundle, arrival: Bundle | None) -> float:
        """How long lists are at a vertex that one comes to by ``arrival``, or at a root."""
        member = bundle.members[0]
        length = self._costs.mean(member) if arrival is None else self._costs.biased(member, arrival.members[0])
        return length * (0.5 if bundle.order else 1.0)

    def _arrival(self, state: _State, register: int) -> Bundle:
        """What leads to the vertices in a register."""
        return self._bundles[state.pairs[register]]

    def _bind(self, state: _State, v: int) -> None:
        level, arrival = len(state.bound), None
        if level == 0:
            keys = min(self._costs.keys(b.members[0]) for (a, _), b in self._bundles.items() if a == v)
            rows = keys * self._fraction(v)
            state.loops.append(-1)
        else:
            rows = state.rows[-1] * max(state.sizes[state.registers[v]], 1e-3)
            arrival = self._arrival(state, state.registers[v])
            state.loops.append(state.registers.pop(v))
        state.bound.append(v)
        state.rows.append(rows)
        state.levels.append([])
        neighbours = state.near.pop(v)
        state.cost += rows
        for u in sorted(neighbours):
            state.near[u] -= {v}
            bundle = self._bundles[v, u]
            length = self._length(bundle, arrival)
            weight = self._weight(u)
            source = state.registers.get(u)
            if source is None:
                key: object = ("load", level, bundle, weight)
                work, size = length, length * self._fraction(u)
            else:
                key = ("meet", level, bundle, source)
                work = min(length, _PROBE * state.sizes[source])
                size = state.sizes[source] * self._costs.closure(bundle.members) * (0.5 if bundle.order else 1.0)
            if key not in state.known:
                out = self._new(state, key, size, (v, u))
                state.cost += rows * (1.0 + work)
                if source is None:
                    state.levels[-1].append(Load(out, level, bundle, weight))
                else:
                    state.levels[-1].append(Meet(out, source, level, bundle))
            state.registers[u] = state.known[key]
        while self._eliminate(state):
            pass
        state.history.append(dict(state.registers))

    def _new(self, state: _State, key: object, size: float, pair: tuple[int, int]) -> int:
        state.sizes.append(max(size, 1e-3))
        state.known[key] = len(state.sizes) - 1
        state.pairs[len(state.sizes) - 1] = pair
        return len(state.sizes) - 1

    def _eliminate(self, state: _State) -> bool:
        """Sum one vertex (or several that are alike) out, the cheapest first; False where none can be."""
        alone = [v for v in sorted(state.near) if not state.near[v] and v in state.registers]
        if alone:
            register = state.registers[alone[0]]
            group = [v for v in alone if state.registers[v] == register]
            state.levels[-1].append(Total(register, len(group)))
            state.cost += state.rows[-1] * state.sizes[register]
            for v in group:
                del state.near[v], state.registers[v]
            return True
        options = []
        for x in sorted(state.near):
            if len(state.near[x]) == 1 and x in state.registers:
                (y,) = state.near[x]
                options.append((self._through(state, x, y), x, y))
        if not options:
            return False
        (work, size), x, y = min(options)
        source, forward = state.registers[x], self._bundles[x, y]
        group = [
            u
            for u in sorted(state.near)
            if state.near[u] == {y} and state.registers.get(u) == source and self._bundles[u, y] == forward
        ]
        mask = state.registers.get(y, -1)
        weight = -1 if mask >= 0 else self._weight(y)
        key = ("through", source, mask, forward, weight, len(group))
        if key not in state.known:
            out = self._new(state, key, size, (x, y))
            state.cost += state.rows[-1] * (1.0 + work)
            backward = self._bundles[y, x]
            state.levels[-1].append(Through(out, source, mask, forward, backward, weight, len(group)))
        state.registers[y] = state.known[key]
        for u in group:
            del state.near[u], state.registers[u]
        state.near[y] -= set(group)
        return True

    def _through(self, state: _State, x: int, y: int) -> tuple[float, float]:
        """(work, size) of sending the vector of ``x`` to ``y``."""
        source, mask = state.registers[x], state.registers.get(y)
        size = state.sizes[source]
        forward, backward = self._bundles[x, y], self._bundles[y, x]
        push = self._length(forward, self._arrival(state, source))
        if mask is None:
            return _PUSH * size * push, min(size * push, float(self._costs.vertices)) * self._fraction(y)
        pull = self._length(backward, self._arrival(state, mask))
        if state.history and x in state.history[-1] and y in state.history[-1] and forward.plain:
            # The lists are cut down to what was left one level before.
            closure = self._costs.closure(forward.members)
            push = min(push, state.sizes[state.history[-1][y]] * closure)
            pull = min(pull, state.sizes[state.history[-1][x]] * closure)
        if len(state.bound) > 1 and any((b, x) in self._bundles and (b, y) in self._bundles for b in state.bound):
            pull = min(pull, _PROBE + pull * self._costs.closure(backward.members))  # closed lists
        return min(_PUSH * size * push, state.sizes[mask] * min(pull, _PROBE * size)), state.sizes[mask]


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
            if isinstance(instruction, Meet) and reads.get(instruction.out) == 1 and instruction.out in totals:
                done.add(instruction.out)
                power = totals[instruction.out].power
                out.append(Tally(instruction.source, instruction.at, instruction.bundle, power))
            elif isinstance(instruction, Through) and reads.get(instruction.out) == 1 and instruction.out in totals:
                done.add(instruction.out)
                out.append(replace(instruction, total=totals[instruction.out].power))
            elif not (isinstance(instruction, Total) and instruction.source in done):
                out.append(instruction)
        fused.append(out)
    return fused


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
            if isinstance(instruction, Meet) and m >= 2:
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
