// The search of a pattern's delta plans, depth-first from every changed edge: a warp for each (GAMMA, Qiu et al., ICDE
// 2024, §IV-C, algorithm 1), on the tables of graphdb/incremental/program.py.
//
// A step's shortest list is scanned 32 entries at a time, each looked up in the step's other lists by its lane; what
// passes are the candidates that the search goes on with one after the other.  The last step's are written, or counted,
// at once.  Who counts goes along the tree of steps, and multiplies (graphdb/incremental/kernels/search_kernels.py does the same).

#include "delta_stealing.cuh"

#ifndef RESIDENT
#define RESIDENT 3
#endif

extern __shared__ i64 shared[];

struct Warp : Sharing {
  __device__ __forceinline__ void add(i64 count) { found[sign == NEW] += (u64)count * (u64)plan[12]; }

  // Write the matches of some lanes, who have bound `slot` each, with their copies.
  __device__ __forceinline__ void emit(u32 mask, int slot, int value) {
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
  __device__ __forceinline__ i64 count_list(int number) {
    const Level &level = levels[number];
    const int *own = step(number), *of = leg(own[2]);
    const Leg list = span(own[2]);
    const int near = values[of[1]], slot = own[1], late = of[2];
    if (list.begin == list.end) return 0;
    i64 count = 0;
    if (LANE == 0) count = list.end - list.begin - list.mixed;
    if (list.mixed)  // of the entries that are not in both versions, which are those of the batch
      for (i64 i = search.starts[list.group - 1] + LANE; i < search.starts[list.group]; i += WARP) {
        const Change &change = search.changes[i];
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
    const int *own = step(number), twins = own[7];
    if (twins >= 0 && own[3] - own[2] == 1) return max(count_list(number) - twins, (i64)0);
    i64 count = 0;
    int value = 0;
    while (u32 mask = scan(number, value, true)) count += __popc(mask);
    return max(count - max(twins, 0), (i64)0);
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

  // Wait for work that others leave, and do it; false where nobody is at work any more.
  __device__ bool steal() {
    int place = -1;
    if (LANE == 0) {
      u64 *state = search.state;
      const u64 ticket = atomicAdd(search.desk + TICKETS, 1ull);
      if (atomicAdd(state + BUSY, ~0ull) == 1) {  // nor will anybody be: the tickets are void, also for later searches
        *(volatile u64 *)(search.desk + TICKETS) = *(volatile u64 *)(search.desk + GIFTS);
        __threadfence();
        atomicExch(state + HALT, 1ull);
      }
      place = (int)(ticket & (search.queue_places - 1));
      for (u32 round = 1; *(volatile u64 *)(search.turns + place) != ticket + 1; ++round) {
        if (!(round & 3) && *(volatile u64 *)(state + HALT)) {
          place = -1;
          break;
        }
        if (blockIdx.x == 0 && threadIdx.x == 0 && !(round & 255) && *search.stop) atomicExch(state + HALT, 1ull);
        __nanosleep(min(100 * round, 4000u));
      }
      __threadfence();
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
  Warp warp = {{{search, *search.lists, (Level *)own, (Leg *)(own + search.levels * (sizeof(Level) / 8)),
                 (int *)(own + search.levels * (sizeof(Level) / 8) + legs), clock64(), clock64()}}};
  const i64 last = min(search.last, (i64)(u32)*search.left);
  if (LANE == 0) atomicAdd(search.state + BUSY, 1ull);
  while (!warp.over) {
    u64 at = 0;
    if (LANE == 0) at = atomicAdd(search.state + NEXT, 1ull);
    at = __shfl_sync(FULL, at, 0);
    if ((i64)at >= last - search.first) break;
    if (!(++warp.turn & 63) && warp.stopped()) break;
    warp.search_change((int)(search.first + at));
  }
  while (search.queue_places && !warp.over && warp.steal());
  if (LANE == 0) {
    if (warp.found[0]) atomicAdd(search.state + LOST, warp.found[0]);
    if (warp.found[1]) atomicAdd(search.state + GAINED, warp.found[1]);
  }
}
