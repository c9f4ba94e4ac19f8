"""Counting programs as CUDA C++: one kernel per shape of :class:`graphdb.plan.counting.programs.Part`.

What becomes code is the program's structure (which register is made how, of which relation, at which level) and a few
numbers (threads, orders, powers); never a value, a name or an address, which a kernel gets as arguments.  Parts of the
same shape share a kernel, which is compiled once and cached on disk.  How registers are stored is said in
:mod:`graphdb.gpu.counting.registers`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphdb.gpu.card import Limits
from graphdb.gpu.code.launch import VARIANTS
from graphdb.gpu.code.layout import RANKED
from graphdb.gpu.counting.registers import Layout, Register, Unsupported, Values, plain, type_of
from graphdb.plan.checks import Relation
from graphdb.plan.counting.programs import Accumulate, Bundle, Intersect, Load, Part, Through, Total

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
    return _Writer(part, relations, degrees, weights, vertices, root_weighted, limits).write()


@dataclass(slots=True)
class _Writer(Layout):
    lines: list[str] = field(default_factory=list)

    def write(self) -> GeneratedCode:
        """The kernel."""
        self.find_registers()
        threads, shared, scratch = self.place()
        self._kernel(threads)
        return GeneratedCode("\n".join(self.lines) + "\n", threads, shared, scratch, self.outer == "Warp", self.split())

    # --- text

    def _kernel(self, threads: int) -> None:
        say = self.lines.append
        say(f'extern "C" __global__ void __launch_bounds__({threads})')
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
        self._storage()
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

    def _storage(self) -> None:
        """Pointers to all that is dense, wiped once: whoever fills it empties it again."""
        say = self.lines.append
        say("u32 *room = (u32 *)shared_memory;")
        for r in self.registers.values():
            if not r.dense or r.where != "shared":
                continue
            team = f"T{min(r.level, 1)}"
            size = {"bits": "words", "halves": "((vertices + 1) / 2)", "numbers": "((vertices + 1) / 2 * 2)"}.get(
                r.form
            )
            size = size or str(self.longest_mask(r))
            mine, after = f"{size} * (threadIdx.x / {team}::size())", f"{size} * (blockDim.x / {team}::size())"
            kind = "const Halves D%d = {%s};" if r.form == "halves" else "u32 *D%d = %s;"
            say(kind % (r.number, f"room + {mine}") + f" room += {after};")
            if r.ranked:
                half = "((words + 1) / 2)"
                say(
                    f"unsigned short *P{r.number} = (unsigned short *)(room + {half} * (threadIdx.x / {team}::size()));"
                )
                say(f"room += {half} * (blockDim.x / {team}::size());")
        say("for (u32 *at = (u32 *)shared_memory + threadIdx.x; at < room; at += blockDim.x) *at = 0;")
        say("char *mine = scratch + stride * blockIdx.x;")
        for r in self.registers.values():
            team = f"T{min(r.level, 1)}"
            mine, after = f"(threadIdx.x / {team}::size())", f"(blockDim.x / {team}::size())"
            if r.dense and r.where == "scratch":
                size = f"((vertices * sizeof({r.type}) + 7) / 8 * 8)"
                say(f"{r.type} *D{r.number} = ({r.type} *)(mine + {size} * {mine}); mine += {size} * {after};")
            if r.listed:
                size = "((vertices * 4 + 15) / 8 * 8)"
                say(f"u32 *C{r.number} = (u32 *)(mine + {size} * {mine}); mine += {size} * {after};")
                say(f"int *H{r.number} = (int *)C{r.number} + 2;")
        say("__syncthreads();")

    def _level(self, level: int) -> None:
        say, team = self.lines.append, f"T{min(level, 1)}"
        before = "m_root" if level == 0 else f"m{level - 1} * v{level}"
        size = "e_root" if level == 0 else f"e{level - 1} * (double)v{level}"
        say(f"u64 m{level} = {before}; double e{level} = {size};")
        instructions = self.part.levels[level].instructions
        for made in instructions:
            if isinstance(made, Load | Intersect):
                self._list(f"{made.out}", made.at, made.bundle)
        needed = [f"N{made.out} == 0" for made in instructions if isinstance(made, Load | Intersect)]
        if needed:
            say(f"if ({' || '.join(needed)}) m{level} = 0;")
        say(f"if (m{level}) {{")
        for at, made in enumerate(instructions):
            linear = self.linear(level, at)
            match made:
                case Load() | Intersect():
                    self._fill(made.out, team)
                case Through():
                    if not self.registers[made.out].asked:
                        self._through(made, level, team, linear)
                case Total(source, power):
                    self._total(
                        level, team, linear, power, lambda s=source: self._each(s, team, "acc += v; big += (double)v;")
                    )
                case Accumulate():
                    self._total(level, team, linear, made.power, lambda m=made: self._accumulate(m, team))
        if level + 1 < len(self.part.levels):
            self._loop(level + 1)
        elif not (instructions and self.linear(level, len(instructions) - 1)):
            say(f"if ({team}::rank() == 0) {{ own += m{level}; size += e{level}; }}")
        self._clean(level, team)
        say("}")

    def _list(self, name: str, at: int, bundle: Bundle) -> None:
        self.lines.append(f"const List l{name} = list<{bundle.order}>(R{self.relation(bundle)}, x{at});")
        self.lines.append(f"const int *L{name} = l{name}.ids; const u32 N{name} = l{name}.count;")

    def _loop(self, level: int) -> None:
        """The loop over a level's register: one binding at a time for each team."""
        say, register = self.lines.append, self.registers[self.part.levels[level].register]
        ids, count = self._base(register.number)
        x, v = f"x{level}", f"v{level}"
        piece = ("piece", "pieces") if level == 1 else ("0", "1")
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
        if register.asked:
            self._ask(register, x, v, "T0" if level == 1 and self.inner == self.outer else "T1")
        else:
            say(f"const u64 {v} = {self._value(register.number, x)};")
        say(f"if ({v} == 0) continue;")
        self._level(level)
        say("}")
        say("}")

    def _ask(self, register: Register, x: str, v: str, team: str) -> None:
        """The value of a masked vertex: what its neighbours have together, times what the mask says."""
        say, made = self.lines.append, register.made
        assert isinstance(made, Through)
        say(f"u64 {v} = {self._value(made.mask, x)};")
        say(f"if ({v}) {{ {type_of(register.got)} s = 0;")
        say(f"const List from = list<{made.backward.order}>(R{self.relation(made.backward)}, {x});")
        look = self._look(made.source, "__ldg(from.ids + n)")
        say(f"for (u32 n = {team}::rank(); n < from.count; n += {team}::size()) s += {look};")
        say(f"{v} *= raised((u64){team}::sum(s), {made.power}); }}")

    # --- registers

    def _base(self, number: int) -> tuple[str, str]:
        """(the list that a register is scanned by, its length)."""
        made = self.registers[number].made
        if isinstance(made, Load | Intersect):
            return f"L{number}", f"N{number}"
        assert isinstance(made, Through)
        return self._base(made.mask) if made.mask >= 0 else (f"H{number}", f"*C{number}")

    def _size(self, number: int) -> str:
        """How many values a register has, or more."""
        register = self.registers[number]
        if register.bit:
            return f"K{number}" if register.dense and register.counted else self._base(number)[1]
        assert isinstance(register.made, Through)
        return self._size(register.made.mask) if register.made.mask >= 0 else f"*C{number}"

    def _look(self, number: int, y: str) -> str:
        """The value of a register at a vertex, wherever it is asked."""
        register = self.registers[number]
        if not register.bit:
            return f"D{number}[{y}]"
        if register.binary:
            return f"(u32)bit(D{number}, {y})"
        return f"(bit(D{number}, {y}) ? {self._bare(number, y)} : 0u)"

    def _bare(self, number: int, y: str) -> str:
        """The value of a register at a vertex that certainly has one."""
        register = self.registers[number]
        if register.binary:
            return "1u"
        match register.made:
            case Load(weight=weight):
                return self._weight_at(weight, y)
            case Intersect(source=source):
                return self._bare(source, y)
            case _:
                return f"D{number}[{y}]"

    def _value(self, number: int, y: str) -> str:
        """The value of a register at a vertex of its own list."""
        made = self.registers[number].made
        match made:
            case Load(weight=weight):
                return self._weight_at(weight, y)
            case Intersect(source=source):
                return self._look(source, y)
            case _:
                return self._look(number, y)

    def _weight_at(self, weight: int, y: str) -> str:
        if weight < 0:
            return "1u"
        return f"(u32)bit(W{weight}, {y})" if self.weights[weight].bits else f"__ldg(W{weight} + {y})"

    def _each(self, number: int, team: str, body: str, divided: bool = False) -> None:
        """Go through a register: ``body`` is run by whole warps, with ``y`` and ``v`` (0 where there is nothing)."""
        say = self.lines.append
        ids, count = self._base(number)
        kind = "u32" if self.registers[number].type == "u32" else "u64"
        first, step = f"{team}::warp()", f"{team}::warps()"
        if divided:
            first, step = f"({first} + piece * {step})", f"{step} * pieces"
        say(f"{{ const u32 entries = {count};")
        say(f"const u32 some = share<{team}>({'(entries + pieces - 1) / pieces' if divided else 'entries'});")
        say(f"for (u32 at = {first} * some; at < entries; at += {step} * some) {{")
        say("const u32 k = at + LANE; const bool on = LANE < some && k < entries;")
        say(f"const int y = on ? {ids}[k] : 0; const {kind} v = on ? {self._value(number, 'y')} : 0;")
        say(body)
        say("} }")

    def _fill(self, number: int, team: str) -> None:
        """Make the dense form of a list."""
        register = self.registers[number]
        if not register.dense:
            return
        say = self.lines.append
        if register.ranked:
            say(f"for (u32 k = {team}::rank(); k < N{number}; k += {team}::size()) {{")
            say(f"const int word = L{number}[k] >> 5;")
            say(f"if (k == 0 || L{number}[k - 1] >> 5 != word) P{number}[word] = (unsigned short)k; }}")
        if not register.counted:
            self._each(number, team, f"if (v) set_bit(D{number}, y);")
            say(f"{team}::sync();")
            return
        say(f"u32 K{number} = 0;")
        self._each(number, team, f"if (v) {{ set_bit(D{number}, y); ++K{number}; }}")
        say(f"{team}::sync();")
        say(f"K{number} = {team}::sum(K{number});")

    def _clean(self, level: int, team: str) -> None:
        """Empty all that this level has filled."""
        say = self.lines.append
        made_here = [r for r in self.registers.values() if r.level == level and r.dense]
        if not made_here:
            return
        say(f"{team}::sync();")
        for r in reversed(made_here):
            made = r.made
            if isinstance(made, Load | Intersect):
                ids, count = self._base(r.number)
                say(f"if ({count} >= words) wipe<{team}>(D{r.number}, words);")
                say(f"else {_walk(team, count)} D{r.number}[{ids}[k] >> 5] = 0;")
            elif isinstance(made, Through) and made.mask >= 0:
                ids, count = self._base(made.mask)
                if made.total == 0:
                    say(f"{_walk(team, count)} D{r.number}[{ids}[k]] = 0;")
            elif isinstance(made, Through) and r.listed:
                say(_walk(team, f"*C{r.number}"))
                say(f"take_from(D{r.number}, H{r.number}[k]), H{r.number}[k] = 0;")
                say(f"{team}::sync(); if ({team}::rank() == 0) *C{r.number} = 0;")
            elif isinstance(made, Through) and made.total == 0:
                say(f"if (sent{r.number} > (u64)vertices / 2) wipe<{team}>(D{r.number}, (u32)vertices); else {{")
                self._push(made, team, f"take_from(D{r.number}, z);")
                say(f"{team}::sync(); }}")
        say(f"{team}::sync();")

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
        self._list("_", made.at, made.bundle)
        say(f"for (u32 k = {team}::rank(); k < N_; k += {team}::size()) {{")
        say(f"const u64 v = {self._look(made.source, '__ldg(L_ + k)')}; acc += v; big += (double)v; }}")
        say("}")

    def _push(self, made: Through, team: str, take: str) -> None:
        """``take`` is run for each neighbour ``z`` of each entry of the source, with its value ``s``."""
        of = f"list<{made.forward.order}>(R{self.relation(made.forward)}, y)"
        kind = "u32" if self.registers[made.source].type == "u32" else "u64"
        body = f"List to = {{nullptr, 0}}; if (v) to = {of}; sent += to.count;\n"
        body += f"each_of_lists(to.ids, to.count, v, [&](int z, {kind} s) {{ {take} }});"
        self.lines.append("{ u64 sent = 0;")
        self._each(made.source, team, body)
        self.lines.append("(void)sent; }")

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
        take = f"if (!bit(W{made.weight}, z)) return; " if early else ""
        if out.listed:
            take += f"if (add_to({d}, z, ({kind})s) == 0) H{made.out}[atomicAdd(C{made.out}, 1u)] = z;"
        else:
            take += f"add_to({d}, z, ({kind})s);"
        of = f"list<{made.forward.order}>(R{self.relation(made.forward)}, y)"
        source_kind = "u32" if self.registers[made.source].type == "u32" else "u64"
        say(f"u64 sent{made.out} = 0;")
        body = f"List to = {{nullptr, 0}}; if (v) to = {of}; sent{made.out} += to.count;\n"
        body += f"each_of_lists(to.ids, to.count, v, [&](int z, {source_kind} s) {{ {take} }});"
        self._each(made.source, team, body)
        say(f"sent{made.out} = {team}::sum(sent{made.out});")
        say(f"{team}::sync();")
        finish = "" if made.weight < 0 or early else f" * __ldg(W{made.weight} + z)"

        def gain(value: str) -> str:
            exact, rough = f"raised({value}, {made.power}){finish}", f"raised((double){value}, {made.power}){finish}"
            return f"acc += {exact}; big += {rough};"

        if made.total:
            say("{ u64 acc = 0; double big = 0;")
            say(f"if (sent{made.out} > (u64)vertices / 2) {{")
            say(f"for (u32 z = {team}::rank(); z < (u32)vertices; z += {team}::size()) {{")
            say(f"const u64 s = {d}[z]; if (s) {{ {gain('s')} }} }}")
            say(f"{team}::sync(); wipe<{team}>({d}, (u32)vertices);")
            say("} else {")
            self._push(made, team, f"const u64 t = take_from({d}, z); if (t) {{ {gain('t')} }}")
            say("}")
            self._add(level, team, linear, made.total)
            say(f"{team}::sync(); }}")
        elif finish or made.power > 1:
            if out.listed:
                say(f"{_walk(team, f'*C{made.out}')} {{ const int z = H{made.out}[k];")
                say(f"{d}[z] = ({kind})(raised((u64){d}[z], {made.power}){finish}); }}")
                say(f"{team}::sync();")
            else:
                say(f"for (u32 z = {team}::rank(); z < (u32)vertices; z += {team}::size())")
                say(f"if ({d}[z]) {d}[z] = ({kind})(raised((u64){d}[z], {made.power}){finish});")
                say(f"{team}::sync();")

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
        look = f"[&](int x) -> {kind} {{ return {self._look(made.source, 'x')}; }}"
        ask = f"List from = {{nullptr, 0}}; if (v) from = {of};\n"
        ask += f"const {kind} s = sum_lists<{kind}>(from.ids, from.count, v != 0, {look});\n"
        ask += give
        say("{ u64 acc = 0; double big = 0; (void)acc, (void)big;")
        if self.must_push(made):
            at = f"{d} + z"
            guard = f"if ({self._look(made.mask, 'z')})"
            if out.form == "places":
                guard = f"const u32 word = D{made.mask}[z >> 5]; if (word >> (z & 31) & 1)"
                at = f"{d} + P{made.mask}[z >> 5] + __popc(word & ((1u << (z & 31)) - 1))"
            self._push(made, team, f"{guard} atomicAdd({at}, ({out.type})s);")
            say(f"{team}::sync();")
            cell = f"{d}[{'k' if out.form == 'places' else 'y'}]"
            clear = f"{cell} = 0; " if made.total else ""
            self._each(made.mask, team, f"if (v) {{ const u64 s = {cell}; {clear}{give} }}")
        elif self.may_push(made):
            say(f"if ({self._size(made.mask)} <= 2 * {self._size(made.source)}) {{")
            self._each(made.mask, team, ask)
            say("} else {")
            kind_of_source = out.type
            self._push(made, team, f"if ({self._look(made.mask, 'z')}) atomicAdd({d} + z, ({kind_of_source})s);")
            say(f"{team}::sync();")
            collect = (
                f"if (v) {{ const u64 s = {d}[y]; {d}[y] = 0; {give} }}"
                if made.total
                else f"if (v) {{ const u64 s = {d}[y]; {give} }}"
            )
            self._each(made.mask, team, collect)
            say("}")
        else:
            self._each(made.mask, team, ask, divided)
        if made.total:
            self._add(level, team, linear, made.total)
        else:
            say(f"{team}::sync();")
        say("}")


def _walk(team: str, count: str) -> str:
    """The head of a loop in which the threads of a team take turns."""
    return f"for (u32 k = {team}::rank(); k < {count}; k += {team}::size())"
