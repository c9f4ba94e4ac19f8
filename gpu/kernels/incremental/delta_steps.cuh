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
  i64 slots, levels, most_legs, columns, table_row, most_plans;
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
// which leg's list that is, and of its last 32 entries, which are candidates that are left, and what they would be bound to.
struct Level {
  i64 sum, product;
  int at, end, through;
  u32 mask;
  int found[WARP];
};

// A leg's list: where it begins and ends, and how many of its entries are not in both versions; its bitmap, if it has
// one, and the far ends that this is over; and one more than which of the batch's changed lists it is.
struct Leg {
  int begin, end, mixed, marks, low, reach, group, even;
};

// A warp, the changed edge that it searches, and how far it is.
const int ALL = -1, VALUE = -2;  // of `Steps::high`: the step's list, and the vertex or edge `Steps::low`

struct Steps {
  const Search &search;
  const Lists &lists;
  Level *levels;
  Leg *spans;
  int *values;
  i64 asked, looked;  // when the host was asked whether to stop, and the queue whether somebody waits
  bool writes;  // whether matches are written, one by one, not counted
  u32 turn;
  bool over;
  u64 lost, gained;  // matches, by all lanes together
  // The changed edge under way, its plan in the order chosen, its first step and leg, and of its first steps, by bits, those
  // that can be divided.
  int record, sign, label, source, target, plan_number;
  const int *plan, *steps;
  int first_leg, depth;
  u32 divisible;
  // What is searched of it: the step to begin with, and places of its list, or what it is bound to (ALL, VALUE); and how
  // often each of its matches counts.
  int bottom, low, high;
  i64 factor;

  __device__ __forceinline__ const int *step(int level) const { return steps + level * STEP_CELLS; }
  __device__ __forceinline__ int relative(int step) const { return step < 0 ? -1 : step - plan[4]; }
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
#pragma unroll 1
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
#pragma unroll 1
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
#pragma unroll 1
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

  // Open a step; of the first one, what is to be searched of it.
  __device__ __forceinline__ void begin(int number) {
    Level &level = levels[number];
    const bool bound = number == bottom && high == VALUE;
    if (!bound) open(number);
    if (number != bottom || high == ALL) return;
    __syncwarp();
    if (LANE == 0) {
      level.at = bound ? 0 : low, level.end = bound ? 0 : high, level.mask = bound;
      if (bound) level.found[0] = low;
    }
    __syncwarp();
  }

  // Whether an entry of a step's list is in the step's other lists, too, by a far end that is a candidate, and may be bound.
  __device__ __forceinline__ bool listed(const Level &level, const int *own, int at, int far) const {
    const int first = own[2], last = own[3], bit = own[6];
    const Leg scanned = span(level.through);
    const bool once = leg(level.through)[3];  // parallel entries are one
    if (once && at > scanned.begin && lists.neighbours[at - 1] == far) return false;
    if (bit >= 0 && !candidate(bit, far)) return false;
    u64 known = 0;  // of the first 64 legs, those whose bitmap says it all
#pragma unroll 1
    for (int k = first; k < last; ++k) {
      const Leg &other = span(k);
      const u32 offset = far - other.low;
      if (k == level.through || !other.marks || offset >= (u32)other.reach) continue;
      if (!(lists.marks[other.marks + (offset >> 6)] >> (offset & 63) & 1)) return false;
      if (!other.mixed && k - first < 64) known |= 1ull << (k - first);
    }
#pragma unroll 1
    for (int k = first; k < last; ++k) {
      if (k - first < 64 && known >> (k - first) & 1) continue;
      const Leg &other = span(k);
      int there = at, end = once ? other.end : at + 1;
      if (k != level.through) {
        end = other.end, there = lower(lists.neighbours, other.begin, end, far);
        if (there == end || lists.neighbours[there] != far) return false;
      }
      if (other.mixed && !any_admitted(there, end, values[leg(k)[1]], far, leg(k)[2])) return false;
    }
    return true;
  }

  // Whether the entry at a place of a step's list passes, and what the step is bound to by it; by checks up to the last.
  __device__ __forceinline__ bool admitted(const Level &level, const int *own, int last_check, int at, int &value) const {
    bool fits;
    if (own[2] == own[3]) {
      value = at, fits = candidate(own[6], at);
    } else {
      const bool edge = own[0] == EDGE;
      const int far = edge ? values[leg(level.through)[4]] : lists.neighbours[at];
      value = edge ? lists.codes[at] >> KEY_SHIFT : far;
      fits = listed(level, own, at, far);
    }
    return fits && passes(own[4], last_check, own[1], value);
  }

  // Scan a step's list as far as some of 32 entries pass: which, and in `value` what this lane's would be bound to.
  // Where they are only counted, checks of twins are left out.
  __device__ __forceinline__ u32 scan(int number, int &value, bool counted = false) {
    Level &level = levels[number];
    const int *own = step(number), last_check = own[counted ? 8 : 5];
#pragma unroll 1
    for (int at = level.at, end = level.end; at < end; at += WARP) {
      const u32 mask = __ballot_sync(FULL, at + LANE < end && admitted(level, own, last_check, at + LANE, value));
      if (!(++turn & 63) && stopped()) break;
      if (!mask) continue;
      __syncwarp();  // all have read where the list begins
      if (LANE == 0) level.at = min(at + WARP, end);
      __syncwarp();
      return mask;
    }
    __syncwarp();
    if (LANE == 0) level.at = level.end;
    __syncwarp();
    return 0;
  }

  // Which lanes have candidates of a step: those at hand, or the next of its list, which are at hand then, unless all are
  // taken at once.  There `value` is what this lane's is.
  __device__ __forceinline__ u32 candidates(int number, int &value, bool all, bool counted) {
    Level &level = levels[number];
    u32 mask = all ? 0 : level.mask;
    if (mask) return mask;
    mask = scan(number, value, all && counted);
    if (mask && !all) level.found[LANE] = value;
    return mask;
  }

  // Bind a step to the first of its candidates at hand.
  __device__ __forceinline__ void bind(int number, u32 mask) {
    Level &level = levels[number];
    __syncwarp();
    if (LANE == 0) {
      values[step(number)[1]] = level.found[__ffs(mask) - 1];
      level.mask = mask & (mask - 1);
    }
    __syncwarp();
  }
};
