"""Search plans as CUDA C++: the steps of one plan, for ``kernels/search/search.cu``.

What becomes code is the plan's structure: which lists and checks a step has, and of which slots.  Addresses, candidate
sets, constants and codes are read from tables.  Of the values bound so far, a batch keeps those that later steps read.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphdb.gpu.search.reads import FIRST_ROW, Reads, row_of
from graphdb.gpu.search.stealing import carry_text
from graphdb.plan.physical import CHECK_COLUMNS, EDGES, JOIN, SCAN, Op, PhysicalPlan, StepColumn

WARP = 32


@dataclass(frozen=True, slots=True)
class Text:
    """A plan's part of the kernel.

    Attributes
    ----------
    plan
        C++, in the place of ``plan.cuh``.
    cells
        Vertex ids of shared memory per warp.
    shares
        Vertex ids that each warp keeps of shared intersections.
    pooled
        Vertex ids that a row of the pool has.
    levels, carried
        Where work can be stolen: the steps that have a stack, and the vertex ids of a batch that is given away.
    """

    plan: str
    cells: int
    shares: int
    pooled: int
    levels: int = 0
    carried: int = 0


def search_text(
    plan: PhysicalPlan, counting: bool, second: int, motion: bool = True, depth: int = 0, steal: bool = False
) -> Text:
    """Write a plan's steps.

    Parameters
    ----------
    counting
        Matches are counted, not written.
    second
        The partition by whose lists of the first step's vertices work is scheduled; -1: by the vertices.
    motion
        Shared intersections are made when the last of their vertices is bound, and stored (STMatch §VII); else all
        their lists are scanned wherever they are wanted.
    depth
        Batches of this step can be put into a pool, and redistributed in a second launch; 0: none.
    steal
        What is left of a step can be divided while later ones are scanned.  The first two are not where work is
        scheduled by their lists, in pieces that are small already, nor is the last.
    """
    return _Writer(plan, counting, second, motion, depth, steal).write()


class _Writer(Reads):
    """Writes the steps, line by line."""

    def __init__(self, plan: PhysicalPlan, counting: bool, second: int, motion: bool, depth: int, steal: bool) -> None:
        super().__init__(plan, counting, motion, depth)
        self._counting, self._second = counting, second
        self._stolen = range(1 if second < 0 else 2, len(plan.steps) - 1) if steal else range(0)
        entries = [*self._stolen[-1:], *([depth + 1] if depth else [])]
        self._entry = max(entries, default=0)  # the last step that a batch from elsewhere goes on with
        self._lines: list[str] = []

    def write(self) -> Text:
        """All steps, the last first."""
        last = len(self._steps) - 1
        at = 0
        offsets = []
        for k in range(last):
            offsets.append(at)
            at += WARP * len(self._live[k])  # the batch
            if k:
                at += 2 * WARP + 2 * WARP // 4  # what waits for the next batch: values, and owners in bytes
        self._lengths = {}
        self._keeps = {}
        filled = 0
        for share in self._made:
            self._lengths[share] = at
            at += WARP
            self._keeps[share] = filled
            filled += WARP * self._capacity(share)
        self._offsets = offsets
        self._pooled = self._live[self._depth] if self._depth else []
        say = self._lines.append
        say(f"const int ROOM = {at or 1}, SECOND = {max(self._second, 0)};")
        for k in range(last, 0, -1):
            self._extend(k)
        self._start()
        self._resume()
        carried = 0
        if self._stolen:
            carried = self._carry()
        levels = last if self._stolen else 0
        return Text("\n".join(self._lines) + "\n", at or 1, filled, len(self._pooled), levels, carried)

    def _carry(self) -> int:
        """``carry``: what a batch needs where it is gone on with; how many ids in all but intersections."""
        last = len(self._steps) - 1
        rows, lists = {}, {}
        for k in self._stolen:
            rows[k] = [self._offsets[k - 1] + WARP * i for i in range(len(self._live[k - 1]))]
            read = set().union(*(self._shares_read(j) for j in range(k, last + 1)))
            found = [share for share in sorted(read) if self._made[share] < k]
            lists[k] = [(self._lengths[share], self._keeps[share], self._capacity(share)) for share in found]
        text, most = carry_text(rows, lists)
        self._lines.append(text)
        return WARP * most

    def _capacity(self, share: int) -> int:
        return max(int(self._plan.program.share_capacity[share]), 1)

    def _value(self, slot: int, k: int, lane: str, own: str = "x") -> str:
        """What a slot is bound to, where step ``k`` is tested: ``lane`` holds what came before."""
        if slot == self._slots[k]:
            return f"(i64){own}"
        if slot <= FIRST_ROW and self._made[FIRST_ROW - slot] == k - 1:
            return lane
        if slot <= FIRST_ROW or slot in self._slots[:k]:
            return f"(i64)search.room[{self._offsets[k - 1] + WARP * self._live[k - 1].index(slot)} + {lane}]"
        return f"run.constants[{slot}]"

    def _test(self, row: int, k: int, lane: str) -> str:
        """One check as an expression."""
        check = self._checks[row]

        def value(slot: int) -> str:
            return self._value(slot, k, lane)

        match Op(check[0]):
            case Op.ABOVE:
                return f"{value(check[1])} > {value(check[2])}"
            case Op.UNEQUAL:
                return f"{value(check[1])} != {value(check[2])}"
            case Op.NOT_BOTH_EQUAL:
                a, b, c, d = map(value, check[1:5])
                return f"({a} != {b} || {c} != {d})"
            case Op.CANDIDATE_BIT | Op.CANDIDATE_SEARCH:  # the device's table holds bits for both
                return f"bit((const unsigned char *)__ldg(run.checks + {row * CHECK_COLUMNS + 2}), {value(check[1])})"
            case Op.NEVER:
                return "false"
            case _:
                slots = sorted(set(self._slots_of_check(row)))
                cases = " ".join(f"case {slot}: return {value(slot)};" for slot in slots)
                look = f"[&](i64 slot) -> i64 {{ switch (slot) {{ {cases} }} return 0; }}"
                return f"passes(run.checks + {row * CHECK_COLUMNS}, search.graph, {look})"

    def _extend(self, k: int) -> None:
        """``extend_k``: go through what step ``k`` may be bound to, for a batch of the step before."""
        say, step = self._lines.append, self._steps[k]
        above, checks = self._checks_of(k)
        last = k == len(self._steps) - 1
        clipped = k == 1
        clip = ", i64 low, i64 high" if clipped else ""
        say(f"__device__ __forceinline__ void extend_{k}(Search &search, bool on{clip}) {{")
        say("const Run &run = search.run; (void)run;")
        made = [share for share, level in self._made.items() if level == k - 1]
        if k <= self._entry:
            # A batch from elsewhere passes the steps before its own, and brings what they have made.
            say(f"const bool rows = on; on = on && search.step <= {k}; (void)rows;")
            fresh = f" || (search.step == {k} && !search.made)" if k == self._depth + 1 else ""
            say(f"if (search.step < {k}{fresh}) {{")
        else:
            say("{")
        for share in made:
            self._make(share, k)
        say("}")
        if k == self._depth + 1 and k not in self._stolen:
            say(f"if (search.step == {k}) search.step = 0;")
        lists = self._lists_of(k) if step[StepColumn.KIND] == JOIN else []
        codes = step[StepColumn.KIND] == EDGES
        say(f"{'const i64 *' if codes else 'Begin '}ids = {{}}; u32 count = 0;")
        if lists:
            self._open(k, lists, clipped)
        elif step[StepColumn.KIND] == SCAN:
            scan = f"begin_of((const ID *)__ldg(run.scans + {2 * k})), (u32)__ldg(run.scans + {2 * k + 1})"
            say(f"if (on) {{ Elements l0 = {{{scan}}};")
            self._cut(above, k, "l0")
            say("ids = l0.ids; count = l0.count; }")
        else:
            left, right = (
                self._value(step[StepColumn.VERTEX], k, "LANE"),
                self._value(step[StepColumn.OTHER], k, "LANE"),
            )
            say(f"if (on) {{ const Partition &codes = run.partitions[{step[StepColumn.PARTITION]}];")
            say(f"i64 at = neighbour_at(codes, {left}, {right});")
            say("if (at >= 0) { ids = codes.codes + codes.code_offsets[at];")
            say("count = (u32)(codes.code_offsets[at + 1] - codes.code_offsets[at]); } }")
        if last and self._counting and len(lists) == 1 and all(self._checks[c][0] == Op.UNEQUAL for c in checks):
            self._count_list(k, checks)
            say("}")
            return
        say("u32 total; const u32 first = exclusive_sum(count, total);")
        begin = "0"
        if k in self._stolen:
            begin = "begins"
            say("u32 begins = 0;")
            say(f"if (search.step == {k}) {{")
            say("begins = search.low; total = min(total, search.high); search.step = 0; }")
        if last:
            say("for (u32 at = 0, end; at < total; at = end) {")
        else:
            say(f"for (u32 at = {begin}, end, filled = 0;;) {{")
            say("for (; at < total && filled < WARP; at = end) {")
        say("if (search.poll()) return;")
        say("end = round_end(first, at, total);")
        say("const u32 mine = at + LANE; const int owner = owner_of(first, mine);")
        if codes:
            say("const i64 *list = (const i64 *)__shfl_sync(FULL, (u64)ids, owner);")
            value = f"(ID)(__ldg(list + (mine - begin)) ^ {step[StepColumn.FLIP]})"
        else:
            say("const Begin list = from_lane(ids, owner);")
            value = "element(list, mine - begin)"
        say("const u32 begin = __shfl_sync(FULL, first, owner);")
        say("bool ok = mine < end;")
        say(f"const ID x = ok ? {value} : 0; (void)x;")
        for j in range(1, len(lists)):
            say(f"{{ const Begin other = from_lane(l{j}.ids, owner);")
            say(f"const u32 n = __shfl_sync(FULL, l{j}.count, owner); if (ok) ok = holds(other, 0, n, x); }}")
        if checks:
            say(f"if (ok) ok = {' && '.join(self._test(row, k, 'owner') for row in checks)};")
        say("const u32 mask = __ballot_sync(FULL, ok);")
        if last:
            self._leave(k)
            say("}")
        else:
            self._collect(k)
            say("}")
        say("}")
        if not last:
            self._form(k)

    def _shared_list(self, share: int, k: int) -> str:
        """A share's list for the lane's partial match, where step ``k`` is opened."""
        row = self._value(row_of(share), k, "LANE")
        ids = f"search.shares + {self._keeps[share]} + ({row}) * {self._capacity(share)}"
        return f"{{begin_of({ids}), (u32)search.room[{self._lengths[share]} + {row}]}}"

    def _make(self, share: int, k: int) -> None:
        """Intersect two lists of each lane's partial match, and keep that with the batch."""
        say = self._lines.append
        (partition, slot), *others = self._chain(share)
        say("{ Elements a, b;")
        say(f"if (on) {{ a = list_of(run, {partition}, {self._value(slot, k, 'LANE')});")
        if self._parent(share) >= 0:
            say(f"b = {self._shared_list(self._parent(share), k)}; }}")
        else:
            ((partition, slot),) = others
            say(f"b = list_of(run, {partition}, {self._value(slot, k, 'LANE')}); }}")
        say("swap_if(b.count < a.count, a, b);")
        target = f"search.shares + {self._keeps[share]}"
        say(f"const u32 n = intersect(search, a, b, {target}, {self._capacity(share)});")
        say(f"search.room[{self._lengths[share]} + LANE] = (ID)n; __syncwarp(); }}")

    def _cut(self, above: range, k: int, name: str) -> None:
        """Leave out what the restrictions do."""
        if not above:
            return
        bounds = [self._value(self._checks[row][2], k, "LANE") for row in above]
        say = self._lines.append
        say(f"i64 least = {bounds[0]};")
        for bound in bounds[1:]:
            say(f"least = max(least, {bound});")
        say(f"cut({name}, least + 1);")

    def _open(self, k: int, lists: list[tuple[int, int, int]], clipped: bool) -> None:
        """Find the lists of each lane's partial match; the shortest is scanned, the others are asked."""
        say = self._lines.append
        for j in range(len(lists)):
            say(f"Elements l{j};")
        say("if (on) {")
        lead = 0
        for j, (row, partition, slot) in enumerate(lists):
            if partition == -2:
                say(f"l{j} = {self._shared_list(slot, k)};")
            elif partition == -1:
                ids = f"begin_of((const ID *)__ldg(run.lists + {row * 4 + 1}))"
                say(f"l{j} = {{{ids}, (u32)__ldg(run.lists + {row * 4 + 2})}};")
            else:
                say(f"l{j} = list_of(run, {partition}, {self._value(slot, k, 'LANE')});")
                if clipped and partition == self._second and slot == self._slots[0]:
                    lead = j
        above, _ = self._checks_of(k)
        if clipped and self._second >= 0:
            # Work was scheduled by this list: its elements low ... high are this warp's.
            if lead:
                say(f"swap_if(true, l0, l{lead});")
            say("if (high < (i64)l0.count) l0.count = (u32)high;")
            say("if (low > 0) {")
            say("l0.ids = behind(l0.ids, low); l0.count = l0.count > low ? l0.count - (u32)low : 0; }")
        else:
            for j in range(1, len(lists)):
                say(f"swap_if(l{j}.count < l0.count, l0, l{j});")
        self._cut(above, k, "l0")
        say("ids = l0.ids; count = l0.count; }")

    def _count_list(self, k: int, checks: range) -> None:
        """The last step of one list whose values must only differ from some: its length, less those."""
        say = self._lines.append
        say("if (on) {")
        say("u32 n = count;")
        others = []
        for row in checks:
            a, b = self._checks[row][1:3]
            others.append(self._value(b if a == self._slots[k] else a, k, "LANE"))
        for i, other in enumerate(others):
            say(f"const i64 o{i} = {other};")
            fresh = "".join(f" && o{i} != o{j}" for j in range(i))
            within = f"o{i} >= (i64)element(ids, 0) && o{i} <= (i64)element(ids, count - 1){fresh}"
            say(f"if (count && {within} && holds(ids, 0, count, o{i})) --n;")
        say("search.found += n; }")
        self._enough(k)

    def _enough(self, k: int) -> None:
        """With a limit: stop when enough have been found."""
        self._lines.append("if (run.limit >= 0) report(search);")

    def _leave(self, k: int, what: str = "") -> None:
        """Count or write what has passed the last step; ``what`` is given back where the search is over."""
        say = self._lines.append
        if self._counting:
            say("if (LANE == 0) search.found += __popc(mask);")
            self._enough(k)
            return
        say("if (mask) {")
        say("const i64 row = place(search, mask);")
        say("if (row >= 0) {")
        say(
            f"ID *out = run.ring + (row / run.block_rows % run.blocks) * run.block_rows * {max(len(self._outputs), 1)};"
        )
        say("const i64 at_row = row % run.block_rows; (void)out, (void)at_row;")
        for column, slot in enumerate(self._outputs):
            say(f"out[{column} * run.block_rows + at_row] = (ID)({self._value(slot, k, 'owner')});")
        say("}")
        say(f"written(search, row); if (search.over) return {what}; }}")

    def _collect(self, k: int) -> None:
        """Keep what has passed until a batch is full, and extend that."""
        say = self._lines.append
        base = self._offsets[k] + WARP * len(self._live[k])
        say(f"ID *values = search.room + {base}; unsigned char *owners = (unsigned char *)(values + 2 * WARP);")
        say("if (ok) { const u32 to = filled + before(mask); values[to] = x; owners[to] = (unsigned char)owner; }")
        say("filled += __popc(mask); }")
        through = f"search.step > {k}" if k < self._entry else ""
        if through:
            say(f"if ({through}) filled = WARP;")
        say("if (!filled) break;")
        say("const u32 taken = filled < WARP ? filled : WARP;")
        say("__syncwarp();")
        say(f"{f'if (!({through})) ' if through else ''}form_{k}(search, taken);")
        if k in self._stolen:
            say(f"open(search, {k}, at, total, on);")
        pooled = f"run.pool && !run.resumes && {f'!({through}) && ' if through else ''}put_{k}(search, taken)"
        pooled = f"if (!({pooled})) " if k == self._depth else ""
        given = f"{through} ? rows : (u32)LANE < taken" if through else "(u32)LANE < taken"
        say(f"{pooled}extend_{k + 1}(search, {given});")
        say("if (search.over) return;")
        if k in self._stolen:
            say(f"total = close({k});")
        say(f"ID *values = search.room + {base}; unsigned char *owners = (unsigned char *)(values + 2 * WARP);")
        say("__syncwarp();")
        say("const ID moved = values[WARP + LANE]; const unsigned char from = owners[WARP + LANE];")
        say("__syncwarp();")
        say("values[LANE] = moved; owners[LANE] = from;")
        say("__syncwarp();")
        say("filled -= taken;")

    def _form(self, k: int) -> None:
        """``form_k``: make a batch of the first that wait."""
        base = self._offsets[k] + WARP * len(self._live[k])
        text = [f"__device__ __forceinline__ void form_{k}(Search &search, u32 count) {{"]
        text.append(f"const ID *values = search.room + {base};")
        text.append("const unsigned char *owners = (const unsigned char *)(values + 2 * WARP);")
        text.append("if ((u32)LANE < count) { const int owner = owners[LANE]; (void)owner;")
        text.append("const ID x = values[LANE]; (void)x;")
        for i, slot in enumerate(self._live[k]):
            text.append(f"search.room[{self._offsets[k] + WARP * i} + LANE] = (ID)({self._value(slot, k, 'owner')});")
        text.append("} __syncwarp(); }")
        if k == self._depth:
            text.append(f"__device__ __forceinline__ bool put_{k}(Search &search, u32 count) {{")
            text.append("const Run &run = search.run; i64 base = 0;")
            text.append("if (LANE == 0) base = (i64)atomicAdd(run.pooled, (u64)count);")
            text.append("base = __shfl_sync(FULL, base, 0);")
            text.append("if (base + count > run.pool_rows) {")
            text.append("if (LANE == 0 && base <= run.pool_rows) *run.pool_end = (u64)base;")
            text.append("return false; }")
            for i, _ in enumerate(self._pooled):
                cell = f"search.room[{self._offsets[k] + WARP * i} + LANE]"
                text.append(f"if ((u32)LANE < count) run.pool[{i} * run.pool_rows + base + LANE] = {cell};")
            text.append("return true; }")
        at = next(i for i, line in enumerate(self._lines) if f"void extend_{k}(" in line)
        self._lines[at:at] = text

    def _start(self) -> None:
        """``start``: the first step's batch; and ``extend``, all that comes after it."""
        say = self._lines.append
        _, checks = self._checks_of(0)
        say("__device__ __forceinline__ bool start(Search &search, bool on, ID x) {")
        say("const Run &run = search.run; (void)run;")
        if checks:
            say(f"if (on) on = {' && '.join(self._test(row, 0, 'LANE') for row in checks)};")
        if len(self._steps) == 1:
            say("const u32 mask = __ballot_sync(FULL, on); const int owner = LANE; (void)owner;")
            self._leave(0, "false")
        else:
            say("__syncwarp();")
            for i, slot in enumerate(self._live[0]):
                assert slot == self._slots[0]
                say(f"search.room[{self._offsets[0] + WARP * i} + LANE] = x;")
            say("__syncwarp();")
        say("return on; }")
        say("__device__ __forceinline__ void extend(Search &search, bool on, i64 low, i64 high) {")
        if len(self._steps) > 1:
            say("extend_1(search, on, low, high);")
        say("}")

    def _resume(self) -> None:
        """``resume``: take a batch from the pool, for ``extend`` to go on with."""
        say = self._lines.append
        say("__device__ __forceinline__ bool resume(Search &search, i64 begin, u32 count) {")
        say("(void)begin, (void)count;")
        if self._depth:
            say("const Run &run = search.run; __syncwarp();")
            for i, _ in enumerate(self._pooled):
                cell = f"search.room[{self._offsets[self._depth] + WARP * i} + LANE]"
                say(f"if ((u32)LANE < count) {cell} = run.pool[{i} * run.pool_rows + begin + LANE];")
            say(f"__syncwarp(); search.step = {self._depth + 1}; search.made = false;")
            say("search.low = 0; search.high = ~0u;")
        say("return (u32)LANE < count; }")
