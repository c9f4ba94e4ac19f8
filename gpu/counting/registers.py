"""Layout of a counting program's registers on a device, and the teams of threads that work on them.

A register is a sparse vector.  Its uses decide how it is stored: to be scanned, it needs nothing but
the list that it comes from; to be looked up, a bit per vertex (the value is then that of the weight, or register, that
it comes from); to be sent to, a number per vertex.  Bits lie in shared memory.  Numbers do too while they fit; where
nothing but their sum is wanted, and lists are long enough for that, they are made of one range of ranks after the
other, of which those do; else they lie in scratch memory.  A *team* that works on one binding is a warp or a block, per
level: whatever leaves enough shared memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphdb.gpu.card import Limits
from graphdb.plan.checks import Relation
from graphdb.plan.counting.programs import Accumulate, Bundle, Instruction, Intersect, Load, Part, Through, Total

WARP_BYTES = 10 << 10
"""Bytes of shared memory that a warp may take, beyond which the whole block works as one team; less where a block may
not take as much for each of its warps."""
THREADS, MOST_THREADS = 256, 1024
"""Of a block: usually, and where few blocks fit a processor."""
RANGED = 16.0
"""Numbers that have to be sent along a list, in the mean, for each of the ranges of ranks in which it is looked for: so
many are added in shared memory in about the time that this takes, or that scratch memory takes more."""
BLOCKS, RESERVED = 4, 3 << 9
"""Blocks that go through ranges on one processor; and bytes of shared memory that the device, and a kernel's static
variables, take for each block."""
_NARROW, _WIDE = 1 << 32, 1 << 63
WARP = 32


def range_bytes(limits: Limits) -> int:
    """Bytes of shared memory that a block may take which goes through ranges."""
    return min(limits.shared, limits.processor_shared // BLOCKS - RESERVED)


def threads_of_ranges(limits: Limits) -> int:
    """Threads of a block that goes through ranges: a processor's, divided among as many blocks as fit it."""
    return min(limits.processor_threads // BLOCKS // WARP * WARP, MOST_THREADS)


class Unsupported(Exception):
    """A program that has no kernel; another executor counts it, or a search does."""


class TooWide(Unsupported):
    """Its numbers may not fit 64 bits."""


@dataclass(frozen=True, slots=True)
class Values:
    """What is known of a weight: whether all its values are 0 or 1, the greatest, and the greatest sum over a list."""

    bits: bool
    top: int
    sums: int


@dataclass(slots=True)
class Register:
    """A register: what makes it, at which level, and how it is stored."""

    number: int
    level: int
    made: Instruction
    binary: bool
    """All values are 0 or 1."""
    top: int
    """No value is greater."""
    sums: int
    """No sum of values over a neighbour list is."""
    got: int = 0
    """No sum that arrives, before power and mask, is."""
    looked: bool = False
    """Something asks for single values."""
    iterated: bool = False
    asked: bool = False
    """Its values are found one by one, each when a loop binds its vertex: nothing else reads them."""
    counted: bool = False
    """Somebody wants to know how many there are."""
    pushed: bool = False
    """Values are sent to it."""
    ranked: bool = False
    """Somebody wants to know the place in its list of one that has a bit."""
    form: str = ""
    """How it is stored: as ``bits``; as ``numbers`` per vertex, or ``halves`` (of 16 bits), or a number per ``places``
    of the mask's list."""
    where: str = ""
    """``shared`` or ``scratch``."""
    span: int = 0
    """Where it holds the numbers of so many ranks at a time: its sum is made of one such range after the other."""

    @property
    def bit(self) -> bool:
        """Whether what is dense are bits: who has one has the value of the weight, or register, that it comes from."""
        return isinstance(self.made, Load | Intersect)

    @property
    def dense(self) -> bool:
        """Whether there is a bit or a number per vertex."""
        return (self.looked or self.pushed) and not self.asked

    @property
    def listed(self) -> bool:
        """Whether the vertices that have a value are listed: nothing else knows them."""
        return isinstance(self.made, Through) and self.made.mask < 0 and self.made.total == 0 and self.iterated

    @property
    def type(self) -> str:
        """The type of its values, or of what is sent to it, in C++."""
        added = isinstance(self.made, Through) and self.made.total > 0  # whose powers are nowhere stored
        return type_of(self.got if added else max(self.top, self.got))


def type_of(top: int) -> str:
    """The type, in C++, of numbers up to ``top``; raises :class:`TooWide` where there is none."""
    if top >= _WIDE:
        raise TooWide("numbers that may not fit 64 bits")
    return "u32" if top < _NARROW else "u64"


def plain(part: Part) -> bool:
    """Whether all that joins the core's vertices are single relations that only test."""
    return all(bundle.plain for bundle in _bundles(part))


def _bundles(part: Part) -> list[Bundle]:
    found = []
    for level in part.levels:
        for made in level.instructions:
            found += [getattr(made, name) for name in ("bundle", "forward", "backward") if hasattr(made, name)]
    return found


@dataclass(slots=True)
class Layout:
    """The registers of one part, and the teams of its levels: found by :meth:`find_registers` and :meth:`place`.

    Parameters
    ----------
    relations, degrees, reaches, weights, vertices, root_weighted, limits
        As :func:`graphdb.gpu.counting.code_generation.generate_code` says.
    """

    part: Part
    relations: Mapping[Relation, int]
    degrees: Sequence[int]
    reaches: Sequence[float]
    weights: Sequence[Values]
    vertices: int
    root_weighted: bool
    limits: Limits
    registers: dict[int, Register] = field(default_factory=dict)
    outer: str = "Block"
    inner: str = "Block"

    def find_registers(self) -> None:
        """Find what makes each register, and what is asked of it."""
        reads = self._reads()
        for number, level in enumerate(self.part.levels):
            for made in level.instructions:
                match made:
                    case Load(out, _, _, weight):
                        value = self._weight(weight)
                        self.registers[out] = Register(out, number, made, value.bits, value.top, value.sums)
                    case Intersect(out, source):
                        of = self.registers[source]
                        of.looked = True
                        self.registers[out] = Register(out, number, made, of.binary, of.top, of.sums)
                    case Through(out, source, mask, _, _, weight, power):
                        of = self.registers[source]
                        by = self.registers[mask] if mask >= 0 else self._weight(weight)
                        top, sums = of.sums**power * by.top, of.sums**power * by.sums
                        self.registers[out] = Register(out, number, made, False, top, sums, of.sums)
                        if mask >= 0:
                            of.looked = of.looked or not self.must_push(made)
                            self._iterate(mask)
                            if self.must_push(made):
                                self.registers[out].pushed = True
                                self._iterate(source)
                                self.registers[mask].looked = True
                                self.registers[mask].ranked = made.total > 0 and self._one_list(mask)
                            elif self.may_push(made):
                                self.registers[out].pushed = True
                                self._iterate(source)
                                self.registers[mask].looked = True
                                self.registers[mask].counted = of.counted = True
                        else:
                            self.registers[out].pushed = True
                            self._iterate(source)
                    case Total(source):
                        self._iterate(source)
                    case Accumulate(source):
                        self.registers[source].looked = True
            if number + 1 < len(self.part.levels):
                following = self.registers[self.part.levels[number + 1].register]
                if reads[following.number] == 1 and isinstance(following.made, Through) and following.made.mask >= 0:
                    following.asked = True
                else:
                    self._iterate(following.number)

    def _reads(self) -> Counter[int]:
        """How many instructions and loops read each register."""
        found = Counter(level.register for level in self.part.levels[1:])
        for level in self.part.levels:
            for made in level.instructions:
                found.update(getattr(made, name) for name in ("source", "mask") if hasattr(made, name))
        return found

    def _iterate(self, number: int) -> None:
        """Note that a register is scanned: by its own list, whose values may be another's."""
        register = self.registers[number]
        register.iterated = True
        if isinstance(register.made, Through) and register.made.mask >= 0:
            register.looked = True
            self._iterate(register.made.mask)

    def _weight(self, weight: int) -> Values:
        return Values(True, 1, max(self.degrees)) if weight < 0 else self.weights[weight]

    def relation(self, bundle: Bundle) -> int:
        """The number of the relation that a bundle is."""
        return self.relations[bundle.members[0].relation]

    def must_push(self, made: Through) -> bool:
        """Whether sending is never dearer than asking: what is sent comes from a part of the mask, bound later."""
        source = self.registers[made.source].made
        return isinstance(source, Intersect) and source.source == made.mask

    def _one_list(self, number: int) -> bool:
        """Whether a register is just one list, whose places fit 16 bits."""
        made = self.registers[number].made
        return isinstance(made, Load) and made.weight < 0 and self.degrees[self.relation(made.bundle)] < 1 << 16

    def may_push(self, made: Through) -> bool:
        """Whether sending may be cheaper than asking: not where both ends are lists of the same level."""
        source, mask = self.registers[made.source], self.registers[made.mask]
        return source.level > mask.level or isinstance(source.made, Through)

    def place(self) -> tuple[int, int, int]:
        """Choose teams, and where registers lie: (threads, bytes of shared memory, bytes of scratch per block)."""
        placed = [r for r in self.registers.values() if r.dense]
        for r in placed:
            r.form = "bits" if r.bit else "places" if self._placed(r) else "numbers"
            r.where = "shared" if r.form != "numbers" else "scratch"
        outer, inner = (sum(4 * self._words(r) for r in placed if (r.level > 0) == deep) for deep in (False, True))
        pushed = any(r.level == 0 and isinstance(r.made, Through) and r.made.mask < 0 for r in placed)
        warp_bytes = min(WARP_BYTES, self.limits.shared // (THREADS // WARP))
        if not pushed and outer + inner <= warp_bytes:
            self.outer = self.inner = "Warp"
        elif len(self.part.levels) > 1 and inner <= warp_bytes:
            self.inner = "Warp"
        for r in placed:
            if r.where == "scratch" and self.team(r.level) == "Block" and r.type == "u32":
                r.form = "halves" if self._halved(r) else "numbers"
                fits = self._shared(placed, THREADS) + 4 * self._words(r, True) <= self.limits.shared
                r.span = 0 if fits else self._span(r, placed)
                r.where = "shared" if fits or r.span else "scratch"
                r.form = r.form if r.where == "shared" else "numbers"
        # Few blocks fit a processor where each takes much shared memory: then they are larger.
        threads, limits = THREADS, self.limits
        while not self.ranged and (
            threads < MOST_THREADS
            and limits.processor_threads // threads * self._shared(placed, threads) > 2 * limits.processor_shared
        ):
            if self._shared(placed, 2 * threads) > limits.shared or self.outer == "Warp":
                break
            threads *= 2
        threads = threads_of_ranges(self.limits) if self.ranged else threads
        if self._shared(placed, threads) > limits.shared:
            raise Unsupported("more bits than shared memory holds")
        return threads, self._shared(placed, threads), sum(self._scratch(r, threads) for r in placed)

    def _span(self, register: Register, placed: list[Register]) -> int:
        """How many ranks' numbers fit the rest of shared memory, if to go through all ranks by so many pays; else 0."""
        made = register.made
        if not isinstance(made, Through) or made.mask >= 0 or not made.total:
            return 0
        threads = threads_of_ranges(self.limits)
        words = (range_bytes(self.limits) - self._shared(placed, threads)) // 256 * 64
        span = max(words * (2 if register.form == "halves" else 1), 0)
        reach = self.reaches[self.relation(made.forward)]
        return span if span and RANGED * -(-self.vertices // span) <= reach else 0

    @property
    def ranged(self) -> bool:
        """Whether some register holds one range of ranks after the other."""
        return any(register.span for register in self.registers.values())

    def _placed(self, register: Register) -> bool:
        """Whether sums are stored by their places in the mask's list: it is one list, and only its members get any."""
        made = register.made
        if not isinstance(made, Through) or made.mask < 0 or not made.total or register.got >= _NARROW:
            return False
        return self.registers[made.mask].ranked

    def _halved(self, register: Register) -> bool:
        """Whether 16 bits do for what is sent."""
        made = register.made
        assert isinstance(made, Through)
        counted = made.power == 1 or made.total > 0
        return (
            register.got < 1 << 16 and counted and made.mask < 0 and (made.weight < 0 or self.weights[made.weight].bits)
        )

    def _words(self, register: Register, shared: bool = False) -> int:
        """Words of 32 bits of shared memory that a register takes per team."""
        words = (self.vertices + 31) // 32
        if register.where != "shared" and not shared:
            return 0
        if register.form == "bits":
            return words + (words + 1) // 2 * register.ranked
        if register.form == "places":
            return self.longest_mask(register)
        numbers = register.span or self.vertices
        return (numbers + 1) // 2 * (1 if register.form == "halves" else 2)

    def longest_mask(self, register: Register) -> int:
        """How many places a mask's list has at most."""
        made = register.made
        assert isinstance(made, Through)
        mask = self.registers[made.mask].made
        assert isinstance(mask, Load)
        return self.degrees[self.relation(mask.bundle)]

    def _shared(self, placed: list[Register], threads: int) -> int:
        """Bytes of shared memory that a block takes."""
        return sum(4 * self._words(r) * self._teams(r, threads) for r in placed)

    def _teams(self, register: Register, threads: int) -> int:
        return threads // WARP if self.team(register.level) == "Warp" else 1

    def _scratch(self, register: Register, threads: int) -> int:
        """Bytes of a block's scratch that a register takes."""
        width = 8 if register.type == "u64" else 4
        size = (self.vertices * width + 7) // 8 * 8 if register.where == "scratch" else 0
        size += (self.vertices * 4 + 15) // 8 * 8 if register.listed else 0
        return size * self._teams(register, threads)

    def team(self, level: int) -> str:
        """The team of a level."""
        return self.inner if level else self.outer

    def split(self) -> bool:
        """Whether the outermost loop that can be split into pieces adds up.

        Of a single level that is what asks from a mask for the last factor: nothing else takes only its piece.
        """
        if len(self.part.levels) > 1:
            return True
        last = self.part.levels[0].instructions[-1]
        if not isinstance(last, Through) or last.mask < 0 or self.must_push(last) or self.may_push(last):
            return False
        return self.linear(0, len(self.part.levels[0].instructions) - 1)

    def linear(self, level: int, at: int) -> bool:
        """Whether an instruction's sum is the last factor: then everyone adds his own part of it."""
        instructions = self.part.levels[level].instructions
        if level != len(self.part.levels) - 1 or at != len(instructions) - 1:
            return False
        made = instructions[at]
        return (isinstance(made, Through) and made.total == 1) or (
            isinstance(made, Total | Accumulate) and made.power == 1
        )
