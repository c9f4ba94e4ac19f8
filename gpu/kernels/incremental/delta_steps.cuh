// The steps of a delta plan as a warp takes them: a step's lists are found, the shortest is scanned, 32 entries at a time, each
// looked up in the other lists by its lane, and the step is bound to one after the other of those that pass.

#include "delta.cuh"

struct Search {
  const Lists *lists;
  const Change *changes;
  const i64 *starts;          // where those of each list that they change begin
  const u64 *left;            // how many changes there are, in the lower half
  i64 first, last;            // of the changes, those searched, as far as there are some
  const int *plans, *plan_starts, *plan_numbers, *steps, *legs, *checks, *copies, *values;
  i64 slots, levels, most_legs, columns, table_row;
  i64 limit;   // rows that there is space for; -1: count
  int *rows;   // [limit, 1 + columns]: the version and the outputs
  u64 *state;  // cells of State
  const volatile int *stop;
  u64 *turns;  // of the queue's places: whose turn it is
  int *queue;  // [queue_places, MAIL_HEADER + slots]
  u64 *desk;         // how many warps have waited at the queue, and pieces of work were put there
  i64 queue_places;  // a power of two; 0: no stealing
};
#include "delta_search_layout.cuh"

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

// A warp, the changed edge that it searches, and how far it is.
struct Steps {
  const Search &search;
  const Lists &lists;
  Level *levels;
  Leg *spans;
  int *values;
  i64 asked, looked;  // when the host was asked whether to stop, and the queue whether somebody waits
  u32 turn;
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
      } else if (check[0] == ABOVE) {
        if (a <= value_of(check[2], slot, value)) return false;
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
  __device__ __forceinline__ void open(int number) {
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

  // Whether the entry at a place of a step's list passes, and what the step is bound to by it; by checks up to the last.
  __device__ __forceinline__ bool admitted(const Level &level, const int *own, int last_check, int at, int &value) const {
    const int first = own[2], last = own[3], slot = own[1], bit = own[6];
    if (first == last) {
      value = at;
      return candidate(bit, at) && passes(own[4], last_check, slot, value);
    }
    const int *scanned = leg(level.through);
    const int near = values[scanned[1]];
    if (own[0] == EDGE) {
      const int code = lists.codes[at];
      value = code >> KEY_SHIFT;
      return admits(code, near, values[scanned[4]], scanned[2]) && passes(own[4], last_check, slot, value);
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
    return passes(own[4], last_check, slot, value);
  }

  // Scan a step's list as far as some of 32 entries pass: which, and in `value` what this lane's would be bound to.
  // Where they are only counted, checks of twins are left out.
  __device__ __forceinline__ u32 scan(int number, int &value, bool counted = false) {
    Level &level = levels[number];
    const int *own = step(number), last_check = own[counted ? 8 : 5];
    for (int at = level.at, end = level.end; at < end; at += WARP) {
      const u32 mask = __ballot_sync(FULL, at + LANE < end && admitted(level, own, last_check, at + LANE, value));
      if (!(++turn & 63) && stopped()) break;
      if (!mask) continue;
      __syncwarp();  // all have read where the list begins
      if (LANE == 0) level.at = at + WARP, level.base = at;
      __syncwarp();
      return mask;
    }
    __syncwarp();
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
};
