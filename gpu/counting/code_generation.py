"""Counting programs as CUDA C++: one kernel per shape of :class:`graphdb.plan.counting.programs.Part`.

What becomes code is the program's structure (which register is made how, of which relation, at which level) and a few
numbers (threads, orders, powers); never a value, a name or an address, which a kernel gets as arguments.  Parts of the
same shape share a kernel, which is compiled once and cached on disk.  What is done with single registers is
written by :mod:`.register_code`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphdb.gpu.card import Limits
from graphdb.gpu.code.launch import VARIANTS
from graphdb.gpu.code.layout import RANKED
from graphdb.gpu.counting.register_code import RegisterCode, walk
from graphdb.gpu.counting.registers import BLOCKS, Register, Unsupported, Values, plain, type_of
from graphdb.plan.checks import Relation
from graphdb.plan.counting.programs import Accumulate, Intersect, Load, Part, Through, Total

VARIANTS["count_nested"] = ({},)


@dataclass(frozen=True, slots=True)
class GeneratedCode:
    """A kernel's text and what its launch needs.

    Attributes
    ----------
    text
        C++, after ``teams.cuh``; the kernel is called ``nested``.  Its ``sums`` is one number, or where the part is
        rooted, one for each rank.
    threads, shared
        Of a block; ``shared`` in bytes.
    scratch
        Bytes of zeros that each block needs, and leaves as zeros.
    warps
        Whether the outer level's team is a warp.
    split
        Whether the work of one root can be split into pieces.
    """

    text: str
    threads: int
    shared: int
    scratch: int
    warps: bool
    split: bool


def generate_code(
    part: Part,
    relations: Mapping[Relation, int],
    degrees: Sequence[int],
    reaches: Sequence[float],
    weights: Sequence[Values],
    vertices: int,
    root_weighted: bool,
    limits: Limits,
) -> GeneratedCode:
    """Write the kernel of a part.

    Parameters
    ----------
    relations
        The number of every relation in the kernel's table.
    degrees
        By relation: its longest list.
    reaches
        By relation: how long the list of an entry of some list is, in the mean.
    weights
        Of the part's weights.
    vertices
        How many ranks there are.
    root_weighted
        Whether the roots have a weight.
    limits
        Of the card.

    Raises
    ------
    Unsupported
        For relations that weigh or come in bundles, and numbers that may not fit.
    """
    if not plain(part):
        raise Unsupported("bundles of relations")
    return _Writer(part, relations, degrees, reaches, weights, vertices, root_weighted, limits).write()


@dataclass(slots=True)
class _Writer(RegisterCode):
    """Writes the levels of a program, and what they sum up."""

    def write(self) -> GeneratedCode:
        """The kernel."""
        self.find_registers()
        threads, shared, scratch = self.place()
        self._kernel(threads)
        return GeneratedCode("\n".join(self.lines) + "\n", threads, shared, scratch, self.outer == "Warp", self.split())

    # --- text

    def _kernel(self, threads: int) -> None:
        say = self.lines.append
        blocks = f", {BLOCKS}" if self.ranged else ""
        say(f'extern "C" __global__ void __launch_bounds__({threads}{blocks})')
        say("nested(const i64 *table, const int *tasks, i64 task_count, const u64 *root_weight, i64 vertices,")
        say("       char *scratch, i64 stride, u64 *sums, double *sizes, u64 *next, const volatile int *stop) {")
        say("extern __shared__ u64 shared_memory[];")
        say("const u32 words = (u32)((vertices + 31) / 32);")
        say(f"typedef {self.outer} T0;")
        say(f"typedef {self.inner} T1;")
        for number in range(len(self.degrees)):
            at = len(RANKED) * number
            cells = ", ".join(f"(const u32 *)__ldg(table + {at + i})" for i in range(3))
            say(f"const Ranked R{number} = {{{cells}, (const int *)__ldg(table + {at + 3})}};")
        for number, weight in enumerate(self.weights):
            kind = "u32" if weight.bits else "u64"
            say(f"const {kind} *W{number} = (const {kind} *)__ldg(table + {len(RANKED) * len(self.degrees) + number});")
        self.declare_storage()
        say("__shared__ u32 cursor;")
        say("u64 own = 0; double size = 0; TaskCounter<T0> tasks_left = {next, stop};")
        say("for (;;) {")
        say("const u64 task = tasks_left.take();")
        say("if (task >= (u64)task_count) break;")
        say("const int x0 = __ldg(tasks + 2 * task);")
        say("const u32 packed = __ldg(tasks + 2 * task + 1), piece = packed >> 16, pieces = packed & 0xffff;")
        say("(void)piece, (void)pieces;")
        say(
            "const u64 m_root = %s; const double e_root = (double)m_root;"
            % ("root_weight[x0]" if self.root_weighted else "1")
        )
        self._level(0)
        if self.part.rooted:
            say("own = warp_sum(own); if (LANE == 0 && own) atomicAdd(sums + x0, own); own = 0;")
        say("}")
        say("own = warp_sum(own); size = warp_sum(size);")
        say("if (LANE == 0 && own) atomicAdd(sums, own);")
        say("if (LANE == 0 && size != 0) atomicAdd(sizes, size);")
        say("}")

    def _level(self, level: int) -> None:
        say, team = self.lines.append, f"T{min(level, 1)}"
        before = "m_root" if level == 0 else f"m{level - 1} * v{level}"
        size = "e_root" if level == 0 else f"e{level - 1} * (double)v{level}"
        say(f"u64 m{level} = {before}; double e{level} = {size};")
        instructions = self.part.levels[level].instructions
        for made in instructions:
            if isinstance(made, Load | Intersect):
                self.load_list(f"{made.out}", made.at, made.bundle)
        needed = [f"N{made.out} == 0" for made in instructions if isinstance(made, Load | Intersect)]
        if needed:
            say(f"if ({' || '.join(needed)}) m{level} = 0;")
        say(f"if (m{level}) {{")
        for at, made in enumerate(instructions):
            linear = self.linear(level, at)
            match made:
                case Load() | Intersect():
                    self.fill(made.out, team)
                case Through():
                    if not self.registers[made.out].asked:
                        self._through(made, level, team, linear)
                case Total(source, power):
                    self._total(
                        level, team, linear, power, lambda s=source: self.scan(s, team, "acc += v; big += (double)v;")
                    )
                case Accumulate():
                    self._total(level, team, linear, made.power, lambda m=made: self._accumulate(m, team))
        if level + 1 < len(self.part.levels):
            self._loop(level + 1)
        elif not (instructions and self.linear(level, len(instructions) - 1)):
            say(f"if ({team}::rank() == 0) {{ own += m{level}; size += e{level}; }}")
        self.clean(level, team)
        say("}")

    def _loop(self, level: int) -> None:
        """The loop over a level's register, the outermost over a piece of it: one binding at a time for each team."""
        say, register = self.lines.append, self.registers[self.part.levels[level].register]
        ids, count = self.entries(register.number)
        x, v = f"x{level}", f"v{level}"
        divided, unordered = level == 1, self.unordered(register.number)
        piece = ("piece", "pieces") if divided and not unordered else ("0", "1")
        say("{")
        if self.outer == "Block" and self.inner == "Warp" and level == 1:
            say("if (threadIdx.x == 0) cursor = 0;")
            say("__syncthreads();")
            say("for (;;) {")
            say("u32 k = 0; if (LANE == 0) k = atomicAdd(&cursor, 1u);")
            say(f"k = __shfl_sync(FULL, k, 0) * {piece[1]} + {piece[0]};")
            say(f"if (k >= {count}) break;")
        else:
            say(f"for (u32 k = {piece[0]}; k < {count}; k += {piece[1]}) {{")
        say(f"const int {x} = {ids}[k];")
        if divided and unordered:
            say(f"if ((u32){x} % pieces != piece) continue;")
        if register.asked:
            self._ask(register, x, v, "T0" if level == 1 and self.inner == self.outer else "T1")
        else:
            say(f"const u64 {v} = {self.value(register.number, x)};")
        say(f"if ({v} == 0) continue;")
        self._level(level)
        say("}")
        say("}")

    def _ask(self, register: Register, x: str, v: str, team: str) -> None:
        """The value of a masked vertex: what its neighbours have together, times what the mask says."""
        say, made = self.lines.append, register.made
        assert isinstance(made, Through)
        say(f"u64 {v} = {self.value(made.mask, x)};")
        say(f"if ({v}) {{ {type_of(register.got)} s = 0;")
        say(f"const List from = list<{made.backward.order}>(R{self.relation(made.backward)}, {x});")
        look = self.look(made.source, "__ldg(from.ids + n)")
        say(f"for (u32 n = {team}::rank(); n < from.count; n += {team}::size()) s += {look};")
        say(f"{v} *= raised((u64){team}::sum(s), {made.power}); }}")

    # --- sums

    def _total(self, level: int, team: str, linear: bool, power: int, body: object) -> None:
        say = self.lines.append
        say("{ u64 acc = 0; double big = 0;")
        body()  # type: ignore[operator]
        self._add(level, team, linear, power)
        say("}")

    def _add(self, level: int, team: str, linear: bool, power: int) -> None:
        """Multiply the matches so far by a sum, of which every thread has a part in ``acc``."""
        say = self.lines.append
        if linear:
            say(f"own += m{level} * acc; size += e{level} * big;")
        else:
            say(f"acc = {team}::sum(acc); big = {team}::sum(big);")
            say(f"m{level} *= raised(acc, {power}); e{level} *= raised(big, {power});")

    def _accumulate(self, made: Accumulate, team: str) -> None:
        say = self.lines.append
        say("{")
        self.load_list("_", made.at, made.bundle)
        say(f"for (u32 k = {team}::rank(); k < N_; k += {team}::size()) {{")
        say(f"const u64 v = {self.look(made.source, '__ldg(L_ + k)')}; acc += v; big += (double)v; }}")
        say("}")

    def _through(self, made: Through, level: int, team: str, linear: bool) -> None:
        if made.mask < 0:
            self._through_all(made, level, team, linear)
        else:
            self._through_mask(made, level, team, linear)

    def _through_all(self, made: Through, level: int, team: str, linear: bool) -> None:
        """Send to all neighbours."""
        say, out = self.lines.append, self.registers[made.out]
        d, kind = f"D{made.out}", out.type
        early = made.weight >= 0 and self.weights[made.weight].bits
        finish = "" if made.weight < 0 or early else f" * __ldg(W{made.weight} + z)"
        take = f"if (!bit(W{made.weight}, z)) return; " if early else ""
        if made.total:
            self._through_total(made, level, team, linear, take, finish)
            return
        if out.listed:
            take += f"if (add_to({d}, z, ({kind})s) == 0) H{made.out}[atomicAdd(C{made.out}, 1u)] = z;"
        else:
            take += f"add_to({d}, z, ({kind})s);"
        self._send_all(made, team, take)
        if finish or made.power > 1:
            if out.listed:
                say(f"{walk(team, f'*C{made.out}')} {{ const int z = H{made.out}[k];")
                say(f"{d}[z] = ({kind})(raised((u64){d}[z], {made.power}){finish}); }}")
                say(f"{team}::sync();")
            else:
                say(f"for (u32 z = {team}::rank(); z < (u32)vertices; z += {team}::size())")
                say(f"if ({d}[z]) {d}[z] = ({kind})(raised((u64){d}[z], {made.power}){finish});")
                say(f"{team}::sync();")

    def _send_all(self, made: Through, team: str, take: str) -> None:
        """Send to all neighbours, or to those of a range: ``sent`` says to how many."""
        say, sent = self.lines.append, f"sent{made.out}"
        source_kind = "u32" if self.registers[made.source].type == "u32" else "u64"
        say(f"u64 {sent} = 0;")
        body = f"List to = {{nullptr, 0}}; if (v) to = {self.sent_to(made)}; {sent} += to.count;\n"
        body += f"{self.each_sent_to(made)}[&](int z, {source_kind} s) {{ {take} }});"
        self.scan(made.source, team, body)
        say(f"{sent} = {team}::sum({sent});")
        say(f"{team}::sync();")

    def _through_total(self, made: Through, level: int, team: str, linear: bool, take: str, finish: str) -> None:
        """Send to all neighbours, or where these are what the root is to them, to those up to it; and add up what
        arrives, which leaves zeros: where shared memory has room for a range of ranks, one range after the other.
        """
        say, out = self.lines.append, self.registers[made.out]
        d, first, last = f"D{made.out}", "low" if out.span else "0", "x0 + 1" if made.mirrored else "(int)vertices"
        count, place = ("(u32)(end - low)", "z - low") if out.span else (f"(u32)({last})", "z")
        both = "(1 + (z < x0)) * " if made.mirrored else ""

        def gain(value: str) -> str:
            exact = f"{both}raised({value}, {made.power}){finish}"
            rough = f"{both}raised((double){value}, {made.power}){finish}"
            return f"acc += {exact}; big += {rough};"

        say("{ u64 acc = 0; double big = 0;")
        if out.span:
            say(f"for (int low = 0; low < {last}; low += {out.span}) {{")
            say(f"const int end = low + min({out.span}, {last} - low);")
        self._send_all(made, team, f"{take}add_to({d}, {place}, ({out.type})s);")
        say(f"if (sent{made.out} > {count} / 2) {{")
        say(f"for (u32 at = {team}::rank(); at < {count}; at += {team}::size()) {{")
        say(f"const u64 s = {d}[at]; const int z = {first} + (int)at; (void)z; if (s) {{ {gain('s')} }} }}")
        say(f"{team}::sync(); wipe<{team}>({d}, {count});")
        say("} else {")
        self.send(made, team, f"const u64 t = take_from({d}, {place}); if (t) {{ {gain('t')} }}")
        say("}")
        if out.span:
            say(f"{team}::sync(); }}")
        self._add(level, team, linear, made.total)
        say(f"{team}::sync(); }}")

    def _through_mask(self, made: Through, level: int, team: str, linear: bool) -> None:
        """The mask's vertices ask their neighbours, or the source's values are sent to those in the mask."""
        say, out = self.lines.append, self.registers[made.out]
        kind = type_of(out.got)
        d = f"D{made.out}"
        give = f"if (on) {d}[y] = ({out.type})(raised((u64)s, {made.power}) * v);"
        if made.total:
            give = f"acc += raised((u64)s, {made.power}) * v; big += raised((double)s, {made.power}) * (double)v;"
        divided = linear and level == 0 and self.split()
        of = f"list<{made.backward.order}>(R{self.relation(made.backward)}, y)"
        look = f"[&](int x) -> {kind} {{ return {self.look(made.source, 'x')}; }}"
        ask = f"List from = {{nullptr, 0}}; if (v) from = {of};\n"
        ask += f"const {kind} s = sum_lists<{kind}>(from.ids, from.count, v != 0, {look});\n"
        ask += give
        say("{ u64 acc = 0; double big = 0; (void)acc, (void)big;")
        if self.must_push(made):
            at = f"{d} + z"
            guard = f"if ({self.look(made.mask, 'z')})"
            if out.form == "places":
                guard = f"const u32 word = D{made.mask}[z >> 5]; if (word >> (z & 31) & 1)"
                at = f"{d} + P{made.mask}[z >> 5] + __popc(word & ((1u << (z & 31)) - 1))"
            self.send(made, team, f"{guard} atomicAdd({at}, ({out.type})s);")
            say(f"{team}::sync();")
            cell = f"{d}[{'k' if out.form == 'places' else 'y'}]"
            clear = f"{cell} = 0; " if made.total else ""
            self.scan(made.mask, team, f"if (v) {{ const u64 s = {cell}; {clear}{give} }}")
        elif self.may_push(made):
            say(f"if ({self.size(made.mask)} <= 2 * {self.size(made.source)}) {{")
            self.scan(made.mask, team, ask)
            say("} else {")
            kind_of_source = out.type
            self.send(made, team, f"if ({self.look(made.mask, 'z')}) atomicAdd({d} + z, ({kind_of_source})s);")
            say(f"{team}::sync();")
            collect = (
                f"if (v) {{ const u64 s = {d}[y]; {d}[y] = 0; {give} }}"
                if made.total
                else f"if (v) {{ const u64 s = {d}[y]; {give} }}"
            )
            self.scan(made.mask, team, collect)
            say("}")
        else:
            self.scan(made.mask, team, ask, divided)
        if made.total:
            self._add(level, team, linear, made.total)
        else:
            say(f"{team}::sync();")
        say("}")
