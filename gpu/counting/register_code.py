"""Registers of counting programs in CUDA C++: where they are stored, how they are read, filled, scanned and emptied.

A register is a list of vertices, of values by vertex, or both (:mod:`graphdb.gpu.counting.registers`).  In the text, a
list ``r`` is ``L<r>`` with ``N<r>`` entries; values by vertex are ``D<r>``, with ``P<r>`` the ranks of their words, and
``H<r>`` the ``C<r>`` vertices that have one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from graphdb.gpu.counting.registers import Layout
from graphdb.plan.counting.programs import Bundle, Intersect, Load, Through


@dataclass(slots=True)
class RegisterCode(Layout):
    """Writes what a kernel does with single registers to ``lines``."""

    lines: list[str] = field(default_factory=list)

    def declare_storage(self) -> None:
        """Pointers to all that is dense, wiped once: whoever fills it empties it again."""
        say = self.lines.append
        say("u32 *room = (u32 *)shared_memory;")
        for r in self.registers.values():
            if not r.dense or r.where != "shared":
                continue
            team = f"T{min(r.level, 1)}"
            halves = f"(({r.span or 'vertices'} + 1) / 2)"
            size = {"bits": "words", "halves": halves, "numbers": f"({halves} * 2)"}.get(r.form)
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

    def load_list(self, name: str, at: int, bundle: Bundle) -> None:
        """Find the neighbours of a level's vertex."""
        self.lines.append(f"const List l{name} = list<{bundle.order}>(R{self.relation(bundle)}, x{at});")
        self.lines.append(f"const int *L{name} = l{name}.ids; const u32 N{name} = l{name}.count;")

    def entries(self, number: int) -> tuple[str, str]:
        """(the list that a register is scanned by, its length)."""
        made = self.registers[number].made
        if isinstance(made, Load | Intersect):
            return f"L{number}", f"N{number}"
        assert isinstance(made, Through)
        return self.entries(made.mask) if made.mask >= 0 else (f"H{number}", f"*C{number}")

    def unordered(self, number: int) -> bool:
        """Whether a register is scanned by a list that threads append to: its order differs between blocks and runs, so
        that blocks which share a root cannot divide it by places.
        """
        made = self.registers[number].made
        return isinstance(made, Through) and (made.mask < 0 or self.unordered(made.mask))

    def size(self, number: int) -> str:
        """How many values a register has, or more."""
        register = self.registers[number]
        if register.bit:
            return f"K{number}" if register.dense and register.counted else self.entries(number)[1]
        assert isinstance(register.made, Through)
        return self.size(register.made.mask) if register.made.mask >= 0 else f"*C{number}"

    def look(self, number: int, y: str) -> str:
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

    def value(self, number: int, y: str) -> str:
        """The value of a register at a vertex of its own list."""
        made = self.registers[number].made
        match made:
            case Load(weight=weight):
                return self._weight_at(weight, y)
            case Intersect(source=source):
                return self.look(source, y)
            case _:
                return self.look(number, y)

    def _weight_at(self, weight: int, y: str) -> str:
        if weight < 0:
            return "1u"
        return f"(u32)bit(W{weight}, {y})" if self.weights[weight].bits else f"__ldg(W{weight} + {y})"

    def scan(self, number: int, team: str, body: str, divided: bool = False) -> None:
        """Scan a register: ``body`` is run by whole warps, with ``y`` and ``v`` (0 where there is nothing).

        Divided, every piece of the root takes some entries: by their places, or of lists in no order by their vertices.
        """
        say = self.lines.append
        ids, count = self.entries(number)
        by_vertex, divided = divided and self.unordered(number), divided and not self.unordered(number)
        kind = "u32" if self.registers[number].type == "u32" else "u64"
        first, step = f"{team}::warp()", f"{team}::warps()"
        if divided:
            first, step = f"({first} + piece * {step})", f"{step} * pieces"
        say(f"{{ const u32 entries = {count};")
        say(f"const u32 some = share<{team}>({'(entries + pieces - 1) / pieces' if divided else 'entries'});")
        say(f"for (u32 at = {first} * some; at < entries; at += {step} * some) {{")
        say("const u32 k = at + LANE; const bool on = LANE < some && k < entries;")
        taken = "on && (u32)y % pieces == piece" if by_vertex else "on"
        say(f"const int y = on ? {ids}[k] : 0; const {kind} v = {taken} ? {self.value(number, 'y')} : 0;")
        say(body)
        say("} }")

    def fill(self, number: int, team: str) -> None:
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
            self.scan(number, team, f"if (v) set_bit(D{number}, y);")
            say(f"{team}::sync();")
            return
        say(f"u32 K{number} = 0;")
        self.scan(number, team, f"if (v) {{ set_bit(D{number}, y); ++K{number}; }}")
        say(f"{team}::sync();")
        say(f"K{number} = {team}::sum(K{number});")

    def clean(self, level: int, team: str) -> None:
        """Empty all that this level has filled."""
        say = self.lines.append
        made_here = [r for r in self.registers.values() if r.level == level and r.dense]
        if not made_here:
            return
        say(f"{team}::sync();")
        for r in reversed(made_here):
            made = r.made
            if isinstance(made, Load | Intersect):
                ids, count = self.entries(r.number)
                say(f"if ({count} >= words) wipe<{team}>(D{r.number}, words);")
                say(f"else {walk(team, count)} D{r.number}[{ids}[k] >> 5] = 0;")
            elif isinstance(made, Through) and made.mask >= 0:
                ids, count = self.entries(made.mask)
                if made.total == 0:
                    say(f"{walk(team, count)} D{r.number}[{ids}[k]] = 0;")
            elif isinstance(made, Through) and r.listed:
                say(walk(team, f"*C{r.number}"))
                say(f"take_from(D{r.number}, H{r.number}[k]), H{r.number}[k] = 0;")
                say(f"{team}::sync(); if ({team}::rank() == 0) *C{r.number} = 0;")
            elif isinstance(made, Through) and made.total == 0:
                say(f"if (sent{r.number} > (u64)vertices / 2) wipe<{team}>(D{r.number}, (u32)vertices); else {{")
                self.send(made, team, f"take_from(D{r.number}, z);")
                say(f"{team}::sync(); }}")
        say(f"{team}::sync();")

    def sent_to(self, made: Through) -> str:
        """The list along which an entry ``y`` of the source is sent: within a range of ranks, its part from
        ``low`` on, before ``end``.
        """
        of = f"list<{made.forward.order}>(R{self.relation(made.forward)}, y)"
        return f"within({of}, low, end)" if self.registers[made.out].span else of

    def each_sent_to(self, made: Through) -> str:
        """The beginning of a call that goes through such lists."""
        part = made.mirrored and not self.registers[made.out].span
        return f"each_of_lists{'_to(x0, ' if part else '('}to.ids, to.count, v, "

    def send(self, made: Through, team: str, take: str) -> None:
        """``take`` is run for each neighbour ``z`` of each entry of the source, with its value ``s``."""
        of = self.sent_to(made)
        kind = "u32" if self.registers[made.source].type == "u32" else "u64"
        body = f"List to = {{nullptr, 0}}; if (v) to = {of}; sent += to.count;\n"
        body += f"{self.each_sent_to(made)}[&](int z, {kind} s) {{ {take} }});"
        self.lines.append("{ u64 sent = 0;")
        self.scan(made.source, team, body)
        self.lines.append("(void)sent; }")


def walk(team: str, count: str) -> str:
    """The head of a loop in which the threads of a team take turns."""
    return f"for (u32 k = {team}::rank(); k < {count}; k += {team}::size())"
