// The search of a pattern's delta plans, depth-first from every changed edge: a warp for each (GAMMA, Qiu et al., ICDE
// 2024, §IV-C, algorithm 1), on the tables of graphdb/incremental/program.py.
//
// A step's shortest list is scanned 32 entries at a time, each looked up in the step's other lists by its lane; what
// passes are the candidates that the search goes on with one after the other.  The last step's are written, or counted,
// at once.  Who counts goes along the tree of steps, and multiplies (graphdb/incremental/search_kernels.py does the same).
//
// Stealing (§V-A): a warp without work waits at a queue.  Others look now and then whether somebody waits there, and
// leave half of what they have left at their shallowest step: the bindings before it, and a range of its list.  So the
// work is shared within blocks and across them.

#include "delta.cuh"

#ifndef RESIDENT
#define RESIDENT 3
#endif

#ifndef CALL
#define CALL __noinline__
#endif

const u32 ROUNDS = 16;  // between two looks for warps that wait
const int MAIL_HEADER = 6;

struct Search {
  const Lists *lists;
  const Change *changes;
  const i64 *order, *starts;  // what sorts them, and where those of each list that they change begin
  i64 first, last;            // of the changes, those searched
  const int *plans, *plan_starts, *plan_numbers, *steps, *legs, *checks, *copies, *values;
  i64 slots, levels, most_legs, columns, table_row;
  i64 limit;   // rows that there is space for; -1: count
  int *rows;   // [limit, 1 + columns]: the version and the outputs
  u64 *state;  // cells of State
  const volatile int *stop;
  u64 *turns;  // of the queue's places: whose turn it is
  int *queue;  // [queue_places, MAIL_HEADER + slots]
  u64 *desk;         // how many pieces of work were taken from the queue, and put there
  i64 queue_places;  // a power of two; 0: no stealing
};
#include "delta_search_layout.cuh"

extern __shared__ i64 shared[];

// A step under way: what its children have counted for the bindings before, and for this one; what is left of its list,
// which leg's list that is, where the candidates begin that are left of its last 32 entries, which they are, and what
// they would be bound to.
struct Level {
  i64 sum, product;
  int at, end, through, base;
  u32 mask;
  int found[WARP];
  int even;
};

// A leg's list: where it begins and ends, and how many of its entries are not in both versions; its bitmap, if it has
// one, and the far ends that this is over; and one more than which of the batch's changed lists it is.
struct Leg {
  int begin, end, mixed, marks, low, reach, group, even;
};

struct Warp {
  const Search &search;
  const Lists &lists;
  Level *levels;
  Leg *spans;
  int *values;
  i64 asked;
  u32 turn, rounds;
  bool over;
  u64 found[2];  // lost and gained, by all lanes together
  // The changed edge under way, its plan in the order chosen, its first step and leg, and the steps that can be divided.
  int record, sign, label, source, target, plan_number;
  const int *plan, *steps;
  int first_leg, depth, divisible;

  __device__ __forceinline__ const int *step(int level) const { return steps + level * STEP_CELLS; }
  __device__ __forceinline__ const int *leg(int number) const { return search.legs + number * LEG_CELLS; }
  __device__ __forceinline__ Leg &span(int number) const { return spans[number - first_leg]; }

  __device__ __forceinline__ bool stopped() {
    u32 stop = 0;
    if (LANE == 0) {
      // One warp asks the host often, and the others seldom: it lies far away.
      const i64 pause = blockIdx.x == 0 && threadIdx.x == 0 ? 1 << 19 : 1 << 26;
      if (clock64() - asked > pause) {
        asked = clock64();
        if (*search.stop) atomicExch(search.state + HALT, 1ull);
      }
      stop = *(volatile u64 *)(search.state + HALT) != 0;
    }
    over = __shfl_sync(FULL, stop, 0) != 0;
    return over;
  }

  // Whether an entry may be bound: it is in both versions, or in the one searched and comes after the changed edge.
  __device__ __forceinline__ bool admits(int code, int near, int far, int late) const {
    if ((code & BOTH) == BOTH) return true;
    return code & sign && follows(code >> KEY_SHIFT, near, far, late);
  }

  // Whether a changed entry comes after the changed edge under way, or is that edge at a later pattern edge.
  __device__ __forceinline__ bool follows(int key, int near, int far, int late) const {
    const int own = key >> 1, from = key & 1 ? far : near, to = key & 1 ? near : far;
    if (own != label) return own > label;
    if (from != source) return from > source;
    return to > target || (to == target && late);
  }

  // What a slot is bound to; `slot` is bound to `value` by this lane alone.
  __device__ __forceinline__ int value_of(int wanted, int slot, int value) const {
    return wanted == slot ? value : values[wanted];
  }

  __device__ __forceinline__ bool passes(int begin, int end, int slot, int value) const {
    for (int i = begin; i < end; ++i) {
      const int *check = search.checks + i * CHECK_CELLS;
      const int a = value_of(check[1], slot, value);
      if (check[0] == EDGES_DIFFER) {
        const int b = value_of(check[4], slot, value);
        if (a >> 1 != b >> 1) continue;
        const int p = value_of(check[2], slot, value), q = value_of(check[3], slot, value);
        const int r = value_of(check[5], slot, value), s = value_of(check[6], slot, value);
        if ((a & 1 ? q : p) == (b & 1 ? s : r) && (a & 1 ? p : q) == (b & 1 ? r : s)) return false;
      } else if (a == value_of(check[2], slot, value)) {
        if (check[0] == UNEQUAL || value_of(check[3], slot, value) == value_of(check[4], slot, value)) return false;
      }
    }
    return true;
  }

  __device__ __forceinline__ bool candidate(int bit, int vertex) const {
    return lists.table[search.table_row * lists.stride + vertex] >> bit & 1;
  }

  // Whether an entry with this far end may be bound, from a place of the list on.
  __device__ __forceinline__ bool any_admitted(int at, int end, int near, int far, int late) const {
    for (; at < end && lists.neighbours[at] == far; ++at)
      if (admits(lists.codes[at], near, far, late)) return true;
    return false;
  }

  // Find the lists of a step's legs, and have the shortest be scanned; of a step that binds an edge, its entries.
  __device__ CALL void open(int number) {
    Level &level = levels[number];
    const int *own = step(number);
    const int first = own[2], last = own[3];
    __syncwarp();
    if (first == last) {
      if (LANE == 0) level.at = 1, level.end = (int)lists.vertices, level.mask = 0;
      __syncwarp();
      return;
    }
    u64 shortest = ~0ull;
    for (int k = first + LANE; k < last; k += WARP) {
      const int *of = leg(k);
      const Row row = lists.rows[row_of(lists, of[0], values[of[1]])];
      const int begin = row.begin * UNIT;
      const i64 *range = lists.ranges + of[0] * RANGE_CELLS;
      span(k) = {begin, (sign == NEW ? row.after : row.before) > 0 ? begin + row.size : begin, row.size - row.both,
                 row.marks, (int)__ldg(range + 3), (int)__ldg(range + 4), row.group, 0};
      shortest = min(shortest, (u64)row.size << 32 | (u32)k);
    }
    for (int by = WARP / 2; by; by >>= 1) shortest = min(shortest, __shfl_xor_sync(FULL, shortest, by));
    __syncwarp();
    const int through = (int)(u32)shortest;
    int begin = span(through).begin, end = span(through).end;
    if (own[0] == EDGE) {
      const int far = values[leg(first)[4]];
      begin = lower(lists.neighbours, begin, end, far);
      end = lower(lists.neighbours, begin, end, far + 1);
    }
    if (LANE == 0) level.at = begin, level.end = end, level.through = through, level.mask = 0;
    __syncwarp();
  }

  // Whether the entry at a place of a step's list passes, and what the step is bound to by it.
  __device__ __forceinline__ bool admitted(const Level &level, const int *own, int at, int &value) const {
    const int first = own[2], last = own[3], slot = own[1], bit = own[6];
    if (first == last) {
      value = at;
      return candidate(bit, at) && passes(own[4], own[5], slot, value);
    }
    const int *scanned = leg(level.through);
    const int near = values[scanned[1]];
    if (own[0] == EDGE) {
      const int code = lists.codes[at];
      value = code >> KEY_SHIFT;
      return admits(code, near, values[scanned[4]], scanned[2]) && passes(own[4], own[5], slot, value);
    }
    const Leg list = span(level.through);
    value = lists.neighbours[at];
    if (scanned[3]) {
      if (at > list.begin && lists.neighbours[at - 1] == value) return false;
      if (list.mixed && !any_admitted(at, list.end, near, value, scanned[2])) return false;
    } else if (list.mixed && !admits(lists.codes[at], near, value, scanned[2])) {
      return false;
    }
    if (bit >= 0 && !candidate(bit, value)) return false;
    u64 known = 0;  // of the first 64 legs, those whose bitmap says it all
    for (int k = first; k < last; ++k) {
      const Leg &other = span(k);
      const u32 offset = value - other.low;
      if (k == level.through || !other.marks || offset >= (u32)other.reach) continue;
      if (!(lists.marks[other.marks + (offset >> 6)] >> (offset & 63) & 1)) return false;
      if (!other.mixed && k - first < 64) known |= 1ull << (k - first);
    }
    for (int k = first; k < last; ++k) {
      if (k == level.through || (k - first < 64 && known >> (k - first) & 1)) continue;
      const Leg other = span(k);
      const int there = lower(lists.neighbours, other.begin, other.end, value);
      if (there == other.end || lists.neighbours[there] != value) return false;
      if (other.mixed && !any_admitted(there, other.end, values[leg(k)[1]], value, leg(k)[2])) return false;
    }
    return passes(own[4], own[5], slot, value);
  }

  // Scan a step's list as far as some of 32 entries pass: which, and in `value` what this lane's would be bound to.
  __device__ CALL u32 scan(int number, int &value) {
    Level &level = levels[number];
    const int *own = step(number);
    for (int at = level.at, end = level.end; at < end; at += WARP) {
      const u32 mask = __ballot_sync(FULL, at + LANE < end && admitted(level, own, at + LANE, value));
      if (!(++turn & 63) && stopped()) break;
      if (!mask) continue;
      if (LANE == 0) level.at = at + WARP, level.base = at;
      __syncwarp();
      return mask;
    }
    if (LANE == 0) level.at = level.end;
    __syncwarp();
    return 0;
  }

  // Bind a step to its next candidate; false where there is none.
  __device__ bool next(int number) {
    Level &level = levels[number];
    u32 mask = level.mask;
    if (!mask) {
      int value = 0;
      mask = scan(number, value);
      if (!mask) return false;
      level.found[LANE] = value;
    }
    __syncwarp();
    if (LANE == 0) {
      values[step(number)[1]] = level.found[__ffs(mask) - 1];
      level.mask = mask & (mask - 1);
    }
    __syncwarp();
    return !over;
  }

  __device__ __forceinline__ void add(i64 count) { found[sign == NEW] += (u64)count * (u64)plan[12]; }

  // Write the matches of some lanes, who have bound `slot` each, with their copies.
  __device__ CALL void emit(u32 mask, int slot, int value) {
    const int copies = plan[12], columns = (int)search.columns;
    u64 base = 0;
    if (LANE == 0) base = atomicAdd(search.state + WRITTEN, (u64)__popc(mask) * copies);
    base = __shfl_sync(FULL, base, 0) + (u64)__popc(mask & ((1u << LANE) - 1)) * copies;
    if (!(mask >> LANE & 1) || (i64)base + copies > search.limit) return;
    const int *cell = search.copies + plan[11] * columns * COPY_CELLS;
    int *row = search.rows + base * (columns + 1);
    for (int copy = 0; copy < copies; ++copy) {
      *row++ = sign;
      for (int column = 0; column < columns; ++column, cell += COPY_CELLS) {
        int bound = value_of(cell[0], slot, value);
        if (cell[1] >= 0 && value_of(cell[1], slot, value) != value_of(cell[2], slot, value)) bound ^= 1;
        *row++ = bound;
      }
    }
  }

  // Find all matches of the steps from `bottom` on, of which that one is open already where it is not 0.
  __device__ void enumerate(int bottom, bool opened) {
    const int last = depth - 1;
    if (last < 0) return emit(1, -1, 0);
    int level = bottom;
    if (!opened) open(level);
    while (level >= bottom && !over) {
      if (level == last) {
        int value = 0;
        while (u32 mask = scan(level, value)) emit(mask, step(level)[1], value);
        --level;
      } else if (next(level)) {
        share(bottom, level);
        open(++level);
      } else {
        --level;
      }
    }
  }

  // How many values an opened step of one leg has, which must differ from others, but not from twins.
  __device__ CALL i64 count_list(int number) {
    const Level &level = levels[number];
    const int *own = step(number), *of = leg(own[2]);
    const Leg list = span(own[2]);
    const int near = values[of[1]], slot = own[1], late = of[2];
    if (list.begin == list.end) return 0;
    i64 count = 0;
    if (LANE == 0) count = list.end - list.begin - list.mixed;
    if (list.mixed)  // of the entries that are not in both versions, which are those of the batch
      for (i64 i = search.starts[list.group - 1] + LANE; i < search.starts[list.group]; i += WARP) {
        const Change &change = search.changes[search.order[i]];
        count += change.versions == sign && follows(change.key, near, change.far, late);
      }
    for (int i = own[4] + LANE; i < own[8]; i += WARP) {
      const int value = values[other_slot(i, slot)];
      bool repeated = false;
      for (int j = own[4]; j < i; ++j) repeated = repeated || values[other_slot(j, slot)] == value;
      if (repeated) continue;
      const int at = lower(lists.neighbours, list.begin, list.end, value);
      if (at < list.end && lists.neighbours[at] == value)
        count -= !list.mixed || admits(lists.codes[at], near, value, late);
    }
    for (int by = WARP / 2; by; by >>= 1) count += __shfl_xor_sync(FULL, count, by);
    return count;
  }

  __device__ __forceinline__ int other_slot(int number, int slot) const {
    const int *check = search.checks + number * CHECK_CELLS;
    return check[1] == slot ? check[2] : check[1];
  }

  // How many bindings an opened step has, one less for each twin before it.
  __device__ i64 count_step(int number) {
    const int twins = step(number)[7];
    if (twins >= 0) return max(count_list(number) - twins, (i64)0);
    i64 count = 0;
    int value = 0;
    while (u32 mask = scan(number, value)) count += __popc(mask);
    return count;
  }

  __device__ __forceinline__ int relative(int step) const { return step < 0 ? -1 : step - plan[4]; }

  // Count all matches of the steps from `bottom` on, as enumerate() finds them.
  __device__ void count(int bottom, bool opened) {
    if (!depth) return add(1);
    i64 root = 1;
    int number = bottom, level = -1;
    if (opened) {
      if (LANE == 0) levels[bottom].sum = 0;
      __syncwarp();
      number = -1, level = bottom;
    }
    while (!over) {
      int counted = -1;
      i64 total = 0;
      if (number >= 0) {
        open(number);
        if (step(number)[10] >= 0) {
          if (LANE == 0) levels[number].sum = 0;
          __syncwarp();
          level = number;
        } else {
          counted = number, total = count_step(number);
        }
      }
      if (counted < 0) {  // on to the level's next binding
        if (next(level)) {
          share(bottom, level);
          if (LANE == 0) levels[level].product = 1;
          __syncwarp();
          number = relative(step(level)[10]);
          continue;
        }
        counted = level, total = levels[level].sum;
      }
      if (opened && counted == bottom) return add(total);
      const int parent = relative(step(counted)[9]);
      number = total > 0 ? relative(step(counted)[11]) : -1;
      total *= parent < 0 ? root : levels[parent].product;
      __syncwarp();
      if (parent < 0)
        root = total;
      else if (LANE == 0)
        levels[parent].product = total;
      __syncwarp();
      if (number >= 0) continue;
      if (parent < 0) return add(total);
      if (LANE == 0) levels[parent].sum += total;
      __syncwarp();
      level = parent;
    }
  }

  // Begin with a changed edge, bound by a plan: its tables, and the order that is expected to be the least work.
  __device__ __forceinline__ void take(const int *chosen, int ordered) {
    plan = chosen, plan_number = ordered;
    steps = search.steps + plan[4] * STEP_CELLS;
    depth = plan[5] - plan[4];
    first_leg = depth ? steps[2] : 0;
    divisible = search.limit >= 0 ? depth - 1 : plan[14];
  }

  __device__ __forceinline__ void seed(int at) {
    const Change change = search.changes[at];
    record = at, sign = change.versions, label = change.key >> 1;
    source = change.key & 1 ? change.far : change.near, target = change.key & 1 ? change.near : change.far;
  }

  __device__ __forceinline__ int best_order(int first) const {
    const int orders = search.plans[first * PLAN_CELLS + 9];
    int best = first;
    i64 least = -1;
    for (int order = first; orders > 1 && order < first + orders; ++order) {
      const int *cells = search.plans + order * PLAN_CELLS, *own = search.steps + cells[4] * STEP_CELLS;
      i64 length = own[2] == own[3] ? lists.vertices : 1ll << 40;
      for (int k = own[2]; k < own[3]; ++k)
        length = min(length, (i64)lists.rows[row_of(lists, leg(k)[0], values[leg(k)[1]])].size);
      const i64 work = length * cells[10];
      if (least < 0 || work < least) best = order, least = work;
    }
    return best;
  }

  __device__ __forceinline__ void run(int bottom, bool opened) {
    if (search.limit >= 0)
      enumerate(bottom, opened);
    else
      count(bottom, opened);
  }

  // Search a changed edge by every plan that it fits.
  __device__ void search_change(int at) {
    const Change change = search.changes[at];
    if (change.versions != OLD && change.versions != NEW) return;
    seed(at);
    const u64 *table = lists.table + search.table_row * lists.stride;
    const u64 near = table[change.near], far = table[change.far];
    for (int place = search.plan_starts[change.relation]; place < search.plan_starts[change.relation + 1]; ++place) {
      const int first = search.plan_numbers[place];
      const int *cells = search.plans + first * PLAN_CELLS;
      if (!(near >> cells[1] & far >> cells[2] & 1) || change.key & cells[13]) continue;
      if (cells[1] == cells[2] && change.near != change.far) continue;
      __syncwarp();
      for (int slot = LANE; slot < search.slots; slot += WARP) values[slot] = search.values[slot];
      __syncwarp();
      if (LANE == 0) values[cells[1]] = change.near, values[cells[2]] = change.far, values[cells[3]] = change.key;
      __syncwarp();
      if (!passes(cells[6], cells[7], -1, 0)) continue;
      const int ordered = best_order(first);
      take(search.plans + ordered * PLAN_CELLS, ordered);
      run(0, false);
      __syncwarp();
      if (over) return;
    }
  }

  // If somebody waits for work: leave him half of what is left at the shallowest step, of those from `bottom` to `reached`.
  __device__ CALL void share(int bottom, int reached) {
    if (!search.queue_places || (++rounds & (ROUNDS - 1))) return;
    u32 place = 0, given = 0;
    int low = 0, high = 0, shallow = bottom;
    if (LANE == 0) {
      const u64 waiting = *(volatile u64 *)(search.state + IDLE);
      if (waiting && *(volatile u64 *)(search.desk + TAIL) - *(volatile u64 *)(search.desk + HEAD) < waiting) {
        for (; shallow < divisible && shallow <= reached && !given; ++shallow) {
          Level &level = levels[shallow];
          if (level.at < level.end) {
            low = level.at + (level.end - level.at) / 2, high = level.end;
            level.end = low;
            given = 1;
          } else if (const int more = __popc(level.mask) / 2) {  // of the candidates at hand, the last ones
            u32 rest = level.mask;
            for (int i = __popc(level.mask) - more; i; --i) rest &= rest - 1;
            low = level.base + __ffs(rest) - 1, high = level.end;
            level.mask &= ~rest, level.end = low;
            given = 1;
          }
        }
        --shallow;
      }
      if (given) {
        const u64 ticket = atomicAdd(search.desk + TAIL, 1ull);
        place = (u32)(ticket & (search.queue_places - 1));
        while (*(volatile u64 *)(search.turns + place) != ticket) __nanosleep(100);
        __threadfence();
      }
    }
    given = __shfl_sync(FULL, given, 0);
    if (!given) return;
    place = __shfl_sync(FULL, place, 0);
    int *mail = search.queue + place * (MAIL_HEADER + search.slots);
    if (LANE == 0) mail[0] = record, mail[1] = plan_number, mail[2] = shallow, mail[3] = low, mail[4] = high;
    for (int slot = LANE; slot < search.slots; slot += WARP) mail[MAIL_HEADER + slot] = values[slot];
    __threadfence();
    __syncwarp();
    if (LANE == 0) {
      atomicAdd(search.state + STOLEN, 1ull);
      atomicAdd(search.turns + place, 1ull);
    }
  }

  // Wait for work that others leave, and do it; false where nobody is at work any more.
  __device__ bool steal() {
    int place = -1;
    if (LANE == 0) {
      u64 *state = search.state;
      atomicAdd(state + IDLE, 1ull);
      for (u32 round = 1; place < 0; ++round) {
        const u64 idle = *(volatile u64 *)(state + IDLE), started = *(volatile u64 *)(state + STARTED);
        __threadfence();
        const u64 head = *(volatile u64 *)(search.desk + HEAD);
        if (head < *(volatile u64 *)(search.desk + TAIL)) {
          atomicAdd(state + IDLE, ~0ull);
          if (atomicCAS(search.desk + HEAD, head, head + 1) == head) {
            place = (int)(head & (search.queue_places - 1));
            while (*(volatile u64 *)(search.turns + place) != head + 1) __nanosleep(100);
            __threadfence();
            break;
          }
          atomicAdd(state + IDLE, 1ull);
        } else if (idle == started || *(volatile u64 *)(state + HALT)) {
          break;
        } else if (blockIdx.x == 0 && threadIdx.x == 0 && !(round & 255) && *search.stop) {
          atomicExch(state + HALT, 1ull);
        }
        __nanosleep(500 * min(round, 40u));  // all who wait read the same words
      }
    }
    place = __shfl_sync(FULL, place, 0);
    if (place < 0) return false;
    const volatile int *mail = search.queue + place * (MAIL_HEADER + search.slots);
    const int bottom = mail[2], low = mail[3], high = mail[4], ordered = mail[1];
    seed(mail[0]);
    for (int slot = LANE; slot < search.slots; slot += WARP) values[slot] = mail[MAIL_HEADER + slot];
    __threadfence();
    __syncwarp();
    if (LANE == 0) atomicAdd(search.turns + place, (u64)search.queue_places - 1);
    take(search.plans + ordered * PLAN_CELLS, ordered);
    open(bottom);
    if (LANE == 0) levels[bottom].at = low, levels[bottom].end = high;
    __syncwarp();
    run(bottom, true);
    return true;
  }
};

extern "C" __global__ void __launch_bounds__(256, RESIDENT) search(const Search *given) {
  const Search &search = *given;
  const i64 legs = search.most_legs * (i64)(sizeof(Leg) / 8), slots = (search.slots + 1) / 2;
  i64 *own = shared + threadIdx.x / WARP * (search.levels * (i64)(sizeof(Level) / 8) + legs + slots);
  Warp warp = {search,        *search.lists, (Level *)own, (Leg *)(own + search.levels * (sizeof(Level) / 8)),
               (int *)(own + search.levels * (sizeof(Level) / 8) + legs), clock64()};
  if (LANE == 0) atomicAdd(search.state + STARTED, 1ull);
  while (!warp.over) {
    u64 at = 0;
    if (LANE == 0) at = atomicAdd(search.state + NEXT, 1ull);
    at = __shfl_sync(FULL, at, 0);
    if ((i64)at >= search.last - search.first) break;
    if (!(++warp.turn & 63) && warp.stopped()) break;
    warp.search_change((int)(search.first + at));
  }
  while (search.queue_places && !warp.over && warp.steal());
  if (LANE == 0) {
    if (warp.found[0]) atomicAdd(search.state + LOST, warp.found[0]);
    if (warp.found[1]) atomicAdd(search.state + GAINED, warp.found[1]);
  }
}
