// The search of a pattern's delta plans, depth-first from every changed edge: a warp for each (GAMMA, Qiu et al., ICDE
// 2024, §IV-C, algorithm 1), on the tables of graphdb/incremental/program.py.
//
// A step's shortest list is scanned 32 entries at a time, each looked up in the step's other lists by its lane; what
// passes are the candidates that the search goes on with one after the other.  The last step's are written, or counted,
// at once.  Who counts goes along the tree of steps, and multiplies (graphdb/incremental/kernels/search_kernels.py does the same).

#include "delta_stealing.cuh"

#ifndef LONGEST_NAP
#define LONGEST_NAP 1000u  // nanoseconds
#endif
#ifndef RESIDENT
#define RESIDENT 3
#endif

extern __shared__ i64 shared[];

struct Warp : Sharing {
  __device__ __forceinline__ void add(i64 count) { (sign == NEW ? gained : lost) += (u64)count * (u64)plan[12]; }  // of which each has so many copies

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

  // Find all matches of the steps from `bottom` on.
  __device__ __forceinline__ void enumerate() {
    const int last = depth - 1;
    if (last < 0) return emit(1, -1, 0);
    bool opened = false;
    for (int level = bottom; level >= bottom && !over;) {
      if (!opened) begin(level);
      opened = true;
      int value = 0;
      const u32 mask = candidates(level, value, level == last, false);
      if (!mask) {
        --level;
      } else if (level == last) {
        emit(mask, step(level)[1], value);
      } else {
        bind(level, mask);
        share(level);
        ++level, opened = false;
      }
    }
  }

  // How many values an opened step of one leg has, which must differ from others, but not from twins.
  __device__ __forceinline__ i64 count_list(int number) {
    const int *own = step(number), *of = leg(own[2]);
    const Leg list = span(own[2]);
    const int near = values[of[1]], slot = own[1], late = of[2];
    if (list.begin == list.end) return 0;
    i64 count = 0;
    if (LANE == 0) count = list.end - list.begin - list.mixed;
    if (list.mixed)  // of the entries that are not in both versions, which are those of the batch
#pragma unroll 1
      for (i64 i = search.starts[list.group - 1] + LANE; i < search.starts[list.group]; i += WARP) {
        const Change &change = search.changes[i];
        count += change.versions == sign && follows(change.key, near, change.far, late);
      }
#pragma unroll 1
    for (int i = own[4] + LANE; i < own[8]; i += WARP) {
      const int value = values[other_slot(i, slot)];
      bool repeated = false;
#pragma unroll 1
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

  // Count all matches of the steps from `bottom` on, as enumerate() finds them.
  __device__ __forceinline__ void count() {
    if (!depth) return add(1);
    i64 bindings = 0;  // of a step that no other depends on: one less for each twin before it
    int number = bottom, level = -1;
    while (!over) {
      int counted = -1;
      i64 total = 0;
      if (number >= 0) {
        begin(number);
        const int *own = step(number);
        if (own[10] < 0 && own[7] >= 0 && own[3] - own[2] == 1) {
          counted = number, total = max(count_list(number) - own[7], (i64)0);
        } else {
          if (LANE == 0) levels[number].sum = 0;
          __syncwarp();
          level = number, number = -1, bindings = 0;
        }
      }
      if (counted < 0) {
        const int child = relative(step(level)[10]);
        int value = 0;
        const u32 mask = candidates(level, value, child < 0, true);
        if (mask && child < 0) {
          bindings += __popc(mask);
          continue;
        }
        if (mask) {  // on to its next binding
          bind(level, mask);
          share(level);
          if (LANE == 0) levels[level].product = 1;
          __syncwarp();
          number = child;
          continue;
        }
        counted = level, total = child < 0 ? max(bindings - max(step(level)[7], 0), (i64)0) : levels[level].sum;
      }
      if (high != ALL && counted == bottom) return add(total * factor);
      const int parent = relative(step(counted)[9]);
      number = total > 0 ? relative(step(counted)[11]) : -1;
      total *= parent < 0 ? factor : levels[parent].product;
      __syncwarp();
      if (parent < 0)
        factor = total;
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
    divisible = writes ? (1u << max(min(depth - 1, DIVISIBLE), 0)) - 1 : plan[PLAN_DIVISIBLE];
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
#pragma unroll 1
    for (int order = first; orders > 1 && order < first + orders; ++order) {
      const int *cells = search.plans + order * PLAN_CELLS, *own = search.steps + cells[4] * STEP_CELLS;
      i64 length = own[2] == own[3] ? lists.vertices : 1ll << 40;
#pragma unroll 1
      for (int k = own[2]; k < own[3]; ++k)
        length = min(length, (i64)lists.rows[row_of(lists, leg(k)[0], values[leg(k)[1]])].size);
      const i64 work = length * cells[10];
      if (least < 0 || work < least) best = order, least = work;
    }
    return best;
  }

  // Begin with a changed edge by one of its relation's plans; false where it does not fit that.
  __device__ __forceinline__ bool fits(int at, int nth) {
    const Change change = search.changes[at];
    if (change.versions != OLD && change.versions != NEW) return false;
    const int place = search.plan_starts[change.relation] + nth;
    if (place >= search.plan_starts[change.relation + 1]) return false;
    const int first = search.plan_numbers[place];
    const int *cells = search.plans + first * PLAN_CELLS;
    const u64 *table = lists.table + search.table_row * lists.stride;
    if (!(table[change.near] >> cells[1] & table[change.far] >> cells[2] & 1) || change.key & cells[13]) return false;
    if (cells[1] == cells[2] && change.near != change.far) return false;
    seed(at);
    __syncwarp();
#pragma unroll 1
    for (int slot = LANE; slot < search.slots; slot += WARP) values[slot] = search.values[slot];
    __syncwarp();
    if (LANE == 0) values[cells[1]] = change.near, values[cells[2]] = change.far, values[cells[3]] = change.key;
    __syncwarp();
    if (!passes(cells[6], cells[7], -1, 0)) return false;
    const int ordered = best_order(first);
    take(search.plans + ordered * PLAN_CELLS, ordered);
    bottom = writes ? 0 : plan[PLAN_FIRST], high = ALL, factor = 1;
    return true;
  }

  // Wait for work that others leave; false where nobody is at work any more.
  __device__ __forceinline__ bool steal() {
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
        __nanosleep(min(50 * round, LONGEST_NAP));
      }
      __threadfence();
    }
    place = __shfl_sync(FULL, place, 0);
    if (place < 0) return false;
    const volatile int *mail = search.queue + place * (MAIL_HEADER + search.slots);
    const int ordered = mail[1];
    bottom = mail[2], low = mail[3], high = mail[4];
    factor = (i64)((u64)(u32)mail[6] << 32 | (u32)mail[5]);
    seed(mail[0]);
#pragma unroll 1
    for (int slot = LANE; slot < search.slots; slot += WARP) values[slot] = mail[MAIL_HEADER + slot];
    __threadfence();
    __syncwarp();
    if (LANE == 0) atomicAdd(search.turns + place, (u64)search.queue_places - 1);
    take(search.plans + ordered * PLAN_CELLS, ordered);
    return true;
  }

  // Search all changed edges by all plans, each of which is a piece of work of its own, and what others leave.
  __device__ __forceinline__ void run() {
    const i64 count = min(search.last, (i64)(u32)*search.left) - search.first, all = max(count, (i64)0) * search.most_plans;
    if (LANE == 0) atomicAdd(search.state + BUSY, 1ull);
    for (bool left = true; !over;) {
      if (left) {
        u64 next = 0;
        if (LANE == 0) next = atomicAdd(search.state + NEXT, 1ull);
        next = __shfl_sync(FULL, next, 0);
        left = (i64)next < all;
        if (!left || (!(++turn & 63) && stopped())) continue;
        if (!fits((int)(search.first + next % count), (int)(next / count))) continue;
      } else if (!search.queue_places || !steal()) {
        break;
      }
      if (writes)
        enumerate();
      else
        this->count();
      __syncwarp();
    }
    if (LANE != 0) return;
    if (lost) atomicAdd(search.state + LOST, lost);
    if (gained) atomicAdd(search.state + GAINED, gained);
  }
};

template <typename T>
__device__ __forceinline__ void copy(T &to, const T *from) {
  for (int i = threadIdx.x; i < (int)(sizeof(T) / 8); i += blockDim.x) ((i64 *)&to)[i] = ((const i64 *)from)[i];
}

__device__ __forceinline__ void searched(const Search *given, bool writes) {
  __shared__ Search search;  // what all warps read again and again
  __shared__ Lists lists;
  copy(search, given), copy(lists, given->lists);
  __syncthreads();
  const i64 legs = search.most_legs * (i64)(sizeof(Leg) / 8), slots = (search.slots + 1) / 2;
  i64 *own = shared + threadIdx.x / WARP * (search.levels * (i64)(sizeof(Level) / 8) + legs + slots);
  Level *levels = (Level *)own;
  Leg *spans = (Leg *)(own + search.levels * (sizeof(Level) / 8));
  Warp warp = {{{search, lists, levels, spans, (int *)((i64 *)spans + legs), clock64(), clock64(), writes}}};
  warp.run();
}

// One with both would be too long for the processors' instruction caches.
extern "C" __global__ void __launch_bounds__(256, RESIDENT) count_matches(const Search *given) { searched(given, false); }

extern "C" __global__ void __launch_bounds__(256, RESIDENT) write_matches(const Search *given) { searched(given, true); }
