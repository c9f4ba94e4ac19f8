// The vertex-oriented join (SGSI §5): from a table of partial matches to the next, one bound slot at a time.
//
// A row's bindings are found among the elements of its shortest list.  The elements of all rows stand one after the
// other, and threads are assigned to elements, not to rows: TILE elements to a block, whatever the lists they belong to.
// So hubs and short lists need no treatment of their own.  `bounds` finds each row's lists, `mark` keeps one bit per
// element, and `combine` writes the next table where a prefix sum of the bits says.  Nothing is joined twice, and no
// more is allocated than is found.
//
// What a step does stands in its descriptor, an array of 64-bit cells (gpu/code/layout.py says which; descriptor.cuh has them
// as enumerations); a table is [columns][stride] of ID.

#include "checks.cuh"

#ifndef THREADS
#define THREADS 256
#endif
#ifndef ITEMS
#define ITEMS 8
#endif

const int TILE = THREADS * ITEMS;
const int WARPS = THREADS / 32;
const int WORDS = TILE / 32;
const int KEPT_CELLS = 384;
const int MADE_COLUMNS = 8;

#include "descriptor.cuh"

// The bound slots of a row, and the value that is tested for the next.
struct Bindings {
  const i64 *step;
  const ID *table;
  i64 stride, row, value;

  __device__ __forceinline__ i64 at(i64 place, i64 slot) const {
    if (place >= 0) return (i64)table[place * stride + row];  // which may stand in shared memory
    if (place == VALUE) return value;
    return place == ROW ? row : ((const i64 *)step[CONSTANTS])[slot];
  }
  __device__ __forceinline__ i64 operator()(i64 slot) const { return at(step[step[LAYOUT_AT] + slot], slot); }
};

__device__ __forceinline__ const i64 *list_of(const i64 *step, i64 number) {
  return step + step[LISTS_AT] + number * LIST_CELLS;
}

// Element `at` of a step's list.
__device__ __forceinline__ i64 element(const i64 *step, i64 number, i64 at) {
  if (step[KIND] == EDGES) return ((const Partition *)step[PARTITIONS])[step[EDGE_PARTITION]].codes[at] ^ step[FLIP];
  const i64 *list = list_of(step, number);
  return list[LIST_KIND] == RANGE ? at : (i64)__ldg((const ID *)list[ELEMENTS] + at);
}

__device__ __forceinline__ Span span_of(const i64 *step, const i64 *list, const Bindings &values) {
  if (list[LIST_KIND] == NEIGHBOURS) return neighbours_of(((const Partition *)step[PARTITIONS])[list[PARTITION]], values(list[SLOT]));
  if (list[LIST_KIND] == SHARE) {
    const i64 *offsets = (const i64 *)list[OFFSETS] + values(list[SLOT]);
    return {offsets[0], offsets[1]};
  }
  return {0, list[LENGTH]};
}

// The part of a list that the restrictions, and the view's range of values, leave to a row.
__device__ __forceinline__ Span narrowed(const i64 *step, const i64 *list, Span span, const Bindings &values) {
  const ID *elements = (const ID *)list[ELEMENTS];
  i64 least = step[LOW];
  for (i64 i = 0; i < step[ABOVES]; ++i) {
    i64 lower = values.at(step[step[ABOVES_AT] + i], 0) + 1;
    least = lower > least ? lower : least;
  }
  if (least > 0) span.begin = list[LIST_KIND] == RANGE ? least : find(elements, span.begin, span.end, least);
  if (step[HIGH] >= 0) {
    if (list[LIST_KIND] != RANGE)
      span.end = find(elements, span.begin, span.end, step[HIGH]);
    else if (step[HIGH] < span.end)
      span.end = step[HIGH];
  }
  return span;
}

// The descriptor, in shared memory where it fits.
__device__ __forceinline__ const i64 *fetch(const i64 *step, i64 cells, i64 *kept) {
  if (cells > KEPT_CELLS) return step;
  for (int i = threadIdx.x; i < cells; i += blockDim.x) kept[i] = step[i];
  __syncthreads();
  return kept;
}

// Per row: its lists (where there are several), which one is the shortest, and where in it the search begins and how
// far it goes once the restrictions have narrowed it.
extern "C" __global__ void bounds(const i64 *step, const ID *table, i64 stride, i64 rows, i64 *begins, u32 *lengths,
                                  unsigned char *which, i64 *first, i64 *counts) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row >= rows) return;
  Bindings values = {step, table, stride, row, -1};
  if (step[KIND] == EDGES) {
    const Partition &partition = ((const Partition *)step[PARTITIONS])[step[EDGE_PARTITION]];
    i64 at = neighbour_at(partition, values(step[EDGE_VERTEX]), values(step[EDGE_OTHER]));
    first[row] = at < 0 ? 0 : partition.code_offsets[at];
    counts[row] = at < 0 ? 0 : partition.code_offsets[at + 1] - partition.code_offsets[at];
    return;
  }
  i64 lists = step[LISTS], shortest = 0;
  Span best = {0, 0};
  for (i64 i = 0; i < lists; ++i) {
    Span span = span_of(step, list_of(step, i), values);
    if (lists > 1) {
      begins[i * rows + row] = span.begin;
      lengths[i * rows + row] = (u32)(span.end - span.begin);
    }
    if (i == 0 || span.end - span.begin < best.end - best.begin) {
      best = span;
      shortest = i;
    }
  }
  best = narrowed(step, list_of(step, shortest), best, values);
  if (lists > 1) which[row] = (unsigned char)shortest;
  first[row] = best.begin;
  counts[row] = best.end > best.begin ? best.end - best.begin : 0;
}

// Counting through one list whose only checks are inequalities: take the values away that the row excludes.
extern "C" __global__ void discount(const i64 *step, const ID *table, i64 stride, i64 rows, const i64 *first,
                                    i64 *counts) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const ID *list = (const ID *)list_of(step, 0)[ELEMENTS];
  const i64 *columns = step + step[DIFFERS_AT];
  i64 begin = first[row], end = begin + counts[row], left = counts[row];
  for (i64 i = 0; i < step[DIFFERS]; ++i) {
    ID other = table[columns[i] * stride + row];
    bool repeated = false;
    for (i64 j = 0; j < i; ++j) repeated = repeated || table[columns[j] * stride + row] == other;
    left -= !repeated && holds(list, begin, end, other);
  }
  counts[row] = left;
}

// The row that an element belongs to: the last one in [low, high] that begins at it or before.
__device__ __forceinline__ i64 row_of(const i64 *__restrict__ offsets, i64 low, i64 high, i64 at) {
  while (low < high) {
    i64 middle = (low + high + 1) >> 1;
    if (__ldg(offsets + middle) <= at)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// Where a tile keeps the row of its element i, counted from the tile's first row: a word in 32 is left out, so that
// threads that go through eight elements each meet no bank of another's.
const int ROWS = TILE + TILE / 32;
__device__ __forceinline__ int slot_of(int i) { return i + i / 32; }

// The rows of all elements of a tile: each row is written down at its first element, and holds until the next.
__device__ void rows_of_tile(const i64 *__restrict__ offsets, i64 low, i64 high, i64 tile, u32 *rows) {
  __shared__ u32 greatest[WARPS];
  for (int i = threadIdx.x; i < ROWS; i += THREADS) rows[i] = 0;
  __syncthreads();
  for (i64 row = low + 1 + threadIdx.x; row <= high; row += THREADS) {
    i64 at = __ldg(offsets + row);
    if (at >= tile && at < tile + TILE && __ldg(offsets + row + 1) > at) rows[slot_of(at - tile)] = (u32)(row - low);
  }
  __syncthreads();
  int first = threadIdx.x * ITEMS;
  u32 most = 0;
  for (int i = first; i < first + ITEMS; ++i) {
    u32 row = rows[slot_of(i)];
    most = row > most ? row : most;
  }
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int by = 1; by < 32; by *= 2) {
    u32 other = __shfl_up_sync(~0u, most, by);
    if (lane >= by && other > most) most = other;
  }
  if (lane == 31) greatest[warp] = most;
  u32 before = __shfl_up_sync(~0u, most, 1);
  if (lane == 0) before = 0;
  __syncthreads();
  for (u32 i = 0; i < warp; ++i) before = greatest[i] > before ? greatest[i] : before;
  for (int i = first; i < first + ITEMS; ++i) {
    u32 row = rows[slot_of(i)];
    before = row > before ? row : before;
    rows[slot_of(i)] = before;
  }
  __syncthreads();
}

// The rows that the elements from, from + step … belong to, and behind them that of the last one before `to`.
extern "C" __global__ void starts(const i64 *offsets, i64 rows, i64 from, i64 to, i64 step, i64 count, i64 *out) {
  i64 number = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (number >= count) return;
  i64 at = from + number * step;
  out[number] = row_of(offsets, 0, rows - 1, at < to ? at : to - 1);
}

// Whether a short sorted list holds a value: no branch but the loop's, and no 64-bit arithmetic in it.
__device__ __forceinline__ bool among(const ID *__restrict__ list, u32 length, ID value) {
  if (length == 0) return false;
  while (length > 1) {
    u32 half = length >> 1;
    if (__ldg(list + half - 1) < value) list += half;
    length -= half;
  }
  return __ldg(list) == value;
}

// What every value is asked first, since it is one read: whether it is a candidate, and other than the values that it
// must differ from.
struct Cheap {
  const unsigned char *bits;
  const i64 *columns;
  i64 differs;

  __device__ Cheap(const i64 *step)
      : bits((const unsigned char *)step[BITS]), columns(step + step[DIFFERS_AT]), differs(step[DIFFERS]) {}

  __device__ __forceinline__ bool passes(const ID *table, i64 stride, i64 row, ID value) const {
    if (bits && !bit(bits, value)) return false;
    for (i64 i = 0; i < differs; ++i)
      if (table[columns[i] * stride + row] == value) return false;
    return true;
  }
};

// Whether an element of its row's shortest list is in all others, and passes the checks.  Those that are one read come
// before the lists, which are searched, and those that search a partition after them.
__device__ __forceinline__ bool keeps(const i64 *step, const Bindings &values, i64 rows, i64 chosen,
                                      const i64 *__restrict__ begins, const u32 *__restrict__ lengths) {
  Graph graph = {(const Partition *)step[PARTITIONS], (const i64 *)step[UNCERTAIN], step[RESOURCES], step[TYPE_LABEL]};
  const i64 *check = step + step[CHECKS_AT], *last = check + step[CHECKS] * CHECK_COLUMNS;
  for (; check < last && check[0] <= SIGNATURE; check += CHECK_COLUMNS)
    if (!passes(check, graph, values)) return false;
  for (i64 i = 0; i < step[LISTS]; ++i) {
    if (i == chosen) continue;
    const i64 *list = list_of(step, i);
    const ID *elements = (const ID *)list[ELEMENTS] + __ldg(begins + i * rows + values.row);
    if (!among(elements, __ldg(lengths + i * rows + values.row), (ID)values.value)) return false;
  }
  for (; check < last; check += CHECK_COLUMNS)
    if (!passes(check, graph, values)) return false;
  return true;
}

// One bit per element of the tiles of [from, to), and how many are set in each tile; without `bits` only that.  Most of
// the time is spent in steps of one list or two without further checks, and those have kernels of their own: N is how
// many lists there are (0 for all other steps), CHEAP says whether values are asked anything but whether they are listed.
template <int N, bool CHEAP>
__device__ __forceinline__ void mark_tile(const i64 *step, const ID *table, i64 stride, i64 rows, const i64 *begins,
                                          const u32 *lengths, const unsigned char *which, const i64 *first,
                                          const i64 *offsets, const i64 *starts, i64 from, i64 to, u32 *bits,
                                          i64 *counts) {
  __shared__ u32 rows_kept[ROWS];
  __shared__ u32 found[WARPS];
  bool several = step[LISTS] > 1;
  const ID *one = N > 0 ? (const ID *)list_of(step, 0)[ELEMENTS] : 0, *two = N > 1 ? (const ID *)list_of(step, 1)[ELEMENTS] : one;
  Cheap cheap(step);
  i64 low = starts[blockIdx.x];
  i64 tile = from + blockIdx.x * (i64)TILE;
  rows_of_tile(offsets, low, starts[blockIdx.x + 1], tile, rows_kept);
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, mine = 0;
  for (int i = 0; i < ITEMS; ++i) {
    i64 at = tile + i * THREADS + threadIdx.x;
    bool keep = false;
    if (at < to) {
      i64 row = low + rows_kept[slot_of(i * THREADS + threadIdx.x)];
      i64 place = __ldg(first + row) + at - __ldg(offsets + row);
      if (N == 0) {
        i64 chosen = several ? which[row] : 0;
        Bindings values = {step, table, stride, row, element(step, chosen, place)};
        keep = cheap.passes(table, stride, row, (ID)values.value) && keeps(step, values, rows, chosen, begins, lengths);
      } else {
        bool second = N == 2 && __ldg(which + row);
        ID value = __ldg((second ? two : one) + place);
        keep = !CHEAP || cheap.passes(table, stride, row, value);
        if (N == 2 && keep) {
          i64 other = (second ? 0 : rows) + row;
          keep = among((second ? one : two) + __ldg(begins + other), __ldg(lengths + other), value);
        }
      }
    }
    u32 word = __ballot_sync(~0u, keep);
    if (lane == 0) {
      if (bits) bits[blockIdx.x * (i64)WORDS + i * WARPS + warp] = word;
      mine += __popc(word);
    }
  }
  if (lane == 0) found[warp] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    i64 sum = 0;
    for (int i = 0; i < WARPS; ++i) sum += found[i];
    counts[blockIdx.x] = sum;
  }
}

#define MARK(NAME, N, CHEAP)                                                                                           \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
      NAME(const i64 *descriptor, i64 cells, const ID *table, i64 stride, i64 rows, const i64 *begins,                 \
           const u32 *lengths, const unsigned char *which, const i64 *first, const i64 *offsets, const i64 *starts,    \
           i64 from, i64 to, u32 *bits, i64 *counts) {                                                                 \
    __shared__ i64 kept[CHEAP ? KEPT_CELLS : 1];                                                                       \
    const i64 *step = CHEAP ? fetch(descriptor, cells, kept) : descriptor;                                             \
    mark_tile<N, CHEAP>(step, table, stride, rows, begins, lengths, which, first, offsets, starts, from, to, bits,     \
                        counts);                                                                                       \
  }
MARK(mark, 0, true)
MARK(mark_one, 1, true)
MARK(mark_two, 2, true)
MARK(intersect_two, 2, false)

// The rows that bindings are counted of: those of a table, …
struct Stored {
  const ID *table;
  i64 stride, rows;

  __device__ __forceinline__ i64 count() const { return rows; }
  __device__ __forceinline__ bool make(i64, u32) { return true; }
  __device__ __forceinline__ i64 place(i64 row, u32) const { return row; }
};

// … or the bindings of the level before, which are never written to memory: a warp makes 32 at a time, in its own part of
// shared memory, and counts those that pass.
struct Made {
  const i64 *step;
  const ID *before;
  i64 before_stride, parents;
  const i64 *begins;
  const u32 *lengths;
  const unsigned char *which;
  const i64 *first, *offsets;
  ID *table;
  Cheap cheap;
  u64 kept;
  static const i64 stride = 32;

  __device__ __forceinline__ i64 count() const { return offsets[parents]; }
  __device__ __forceinline__ bool make(i64 at, u32 lane) {
    i64 row = row_of(offsets, 0, parents - 1, at);
    i64 chosen = step[LISTS] > 1 ? which[row] : 0;
    Bindings values = {step, before, before_stride, row, element(step, chosen, first[row] + at - offsets[row])};
    if (!cheap.passes(before, before_stride, row, (ID)values.value)) return false;
    if (!keeps(step, values, parents, chosen, begins, lengths)) return false;
    const i64 *column = step + step[COLUMNS_AT];
    for (i64 c = 0; c < step[COLUMNS]; ++c, column += 2) table[c * stride + lane] = (ID)values.at(column[0], column[1]);
    ++kept;
    return true;
  }
  __device__ __forceinline__ i64 place(i64, u32 lane) const { return lane; }
};

__device__ __forceinline__ void add_of_warp(u64 *sum, u64 found) {
  for (int by = 16; by; by /= 2) found += __shfl_down_sync(~0u, found, by);
  if (threadIdx.x % 32 == 0 && found) atomicAdd(sum, found);
}

// Count the bindings of all rows through two lists.  A warp takes 32 rows, far apart so that those of a hub are shared
// out, and its lanes are assigned to the elements of their shorter lists, one list after the other (STMatch §VI).
// Warps draw from `next`, and one thread asks the host's flag now and then: it lies far away, and many who ask wait for
// one another, a microsecond each.
template <bool CHEAP, typename Rows>
__device__ __forceinline__ void count_rows(const i64 *step, Rows &rows, u64 *sum, u64 *next, const volatile int *stop) {
  const u32 lane = threadIdx.x % 32;
  const i64 all = rows.count(), batches = (all + 31) / 32;
  const i64 *lists[2] = {list_of(step, 0), list_of(step, 1)};
  Cheap cheap(step);
  u64 found = 0;
  i64 asked = clock64();
  while (true) {
    u64 drawn = 0;
    if (lane == 0) {
      if (blockIdx.x == 0 && threadIdx.x == 0 && clock64() - asked > 1 << 19) {
        asked = clock64();
        if (*stop) atomicMax(next, 1ull << 62);
      }
      drawn = atomicAdd(next, 1ull);
    }
    const i64 batch = (i64)__shfl_sync(~0u, drawn, 0);
    if (batch >= batches) break;
    const i64 row = batch + lane * batches;
    const ID *shorter = 0, *longer = 0;
    u32 count = 0, length = 0;
    __syncwarp();  // no lane reads the rows before any more
    const bool there = row < all && rows.make(row, lane);
    __syncwarp();
    if (there) {
      Bindings values = {step, rows.table, rows.stride, rows.place(row, lane), -1};
      Span spans[2] = {span_of(step, lists[0], values), span_of(step, lists[1], values)};
      const int other = spans[1].end - spans[1].begin < spans[0].end - spans[0].begin ? 0 : 1;
      const Span span = narrowed(step, lists[1 - other], spans[1 - other], values);
      shorter = (const ID *)lists[1 - other][ELEMENTS] + span.begin;
      longer = (const ID *)lists[other][ELEMENTS] + spans[other].begin;
      length = (u32)(spans[other].end - spans[other].begin);
      count = span.end > span.begin && length ? (u32)(span.end - span.begin) : 0;
    }
    u32 end = count;
    for (int by = 1; by < 32; by *= 2) {
      u32 before = __shfl_up_sync(~0u, end, by);
      if (lane >= by) end += before;
    }
    const u32 total = __shfl_sync(~0u, end, 31), first = end - count;
    for (u32 from = 0; from < total; from += 32) {
      const u32 at = from + lane;
      int owner = 0;  // the last lane whose elements begin at it or before
      for (int by = 16; by; by /= 2) {
        u32 begin = __shfl_sync(~0u, first, (owner + by) % 32);
        if (owner + by < 32 && begin <= at) owner += by;
      }
      const ID *mine = (const ID *)__shfl_sync(~0u, (u64)shorter, owner);
      const ID *others = (const ID *)__shfl_sync(~0u, (u64)longer, owner);
      const u32 many = __shfl_sync(~0u, length, owner), begin = __shfl_sync(~0u, first, owner);
      if (at >= total) continue;
      const ID value = __ldg(mine + (at - begin));
      if (CHEAP && !cheap.passes(rows.table, rows.stride, rows.place(batch + owner * batches, owner), value)) continue;
      found += among(others, many, value);
    }
  }
  add_of_warp(sum, found);
}

#define COUNT(NAME, CHEAP)                                                                                             \
  extern "C" __global__ void __launch_bounds__(THREADS)                                                                \
      NAME(const i64 *descriptor, i64 cells, const ID *table, i64 stride, i64 rows, u64 *sum, u64 *next,               \
           const volatile int *stop) {                                                                                 \
    __shared__ i64 kept[KEPT_CELLS];                                                                                   \
    Stored stored = {table, stride, rows};                                                                             \
    count_rows<CHEAP>(fetch(descriptor, cells, kept), stored, sum, next, stop);                                        \
  }
COUNT(count_two, false)
COUNT(count_two_others, true)

// The same of the bindings that the level before finds, `sum[1]` of them, from what `bounds` found of its rows.
extern "C" __global__ void __launch_bounds__(THREADS)
    count_pairs(const i64 *descriptor, i64 cells, const i64 *before, i64 before_cells, const ID *table, i64 stride,
                i64 rows, const i64 *begins, const u32 *lengths, const unsigned char *which, const i64 *first,
                const i64 *offsets, u64 *sum, u64 *next, const volatile int *stop) {
  __shared__ i64 kept[KEPT_CELLS];
  __shared__ i64 kept_before[KEPT_CELLS];
  __shared__ ID tables[WARPS][MADE_COLUMNS * Made::stride];
  const i64 *step = fetch(before, before_cells, kept_before);
  Made made = {step, table, stride, rows, begins, lengths, which, first, offsets, tables[threadIdx.x / 32], Cheap(step), 0};
  count_rows<true>(fetch(descriptor, cells, kept), made, sum, next, stop);
  add_of_warp(sum + 1, made.kept);
}

// The next table: for each element whose bit is set (without bits: for each), one row, in the order of the elements.
extern "C" __global__ void __launch_bounds__(THREADS)
    combine(const i64 *descriptor, i64 cells, const ID *table, i64 stride, const unsigned char *which, const i64 *first,
            const i64 *offsets, const i64 *starts, i64 from, i64 to, const u32 *bits, const i64 *positions,
            i64 first_tile, ID *out, i64 out_stride) {
  __shared__ i64 kept[KEPT_CELLS];
  __shared__ u32 words[WORDS];
  __shared__ u32 before[WORDS + 1];
  __shared__ u32 rows_kept[ROWS];
  const i64 *step = fetch(descriptor, cells, kept);
  bool several = step[LISTS] > 1;
  i64 number = first_tile + blockIdx.x;
  i64 low = starts[number], high = starts[number + 1];
  i64 tile = from + number * TILE;
  for (int i = threadIdx.x; i < WORDS; i += THREADS) words[i] = bits ? bits[number * WORDS + i] : ~0u;
  __syncthreads();
  if (threadIdx.x < 32) {  // a warp adds up, each lane some words
    const int each = (WORDS + 31) / 32, begin = threadIdx.x * each;
    u32 own = 0;
    for (int i = begin; i < begin + each && i < WORDS; ++i) own += __popc(words[i]);
    u32 sum = own;
    for (int by = 1; by < 32; by *= 2) {
      u32 other = __shfl_up_sync(~0u, sum, by);
      if (threadIdx.x >= by) sum += other;
    }
    if (threadIdx.x == 31) before[WORDS] = sum;
    sum -= own;
    for (int i = begin; i < begin + each && i < WORDS; ++i) {
      before[i] = sum;
      sum += __popc(words[i]);
    }
  }
  __syncthreads();
  if (before[WORDS] == 0) return;
  bool sparse = before[WORDS] < TILE / 8;
  if (!sparse) rows_of_tile(offsets, low, high, tile, rows_kept);
  i64 base = bits ? positions[number] - positions[first_tile] : tile - from - first_tile * TILE;
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = 0; i < ITEMS; ++i) {
    u32 word = words[i * WARPS + warp];
    i64 at = tile + i * THREADS + threadIdx.x;
    if (!(word >> lane & 1) || at >= to) continue;
    i64 row = sparse ? row_of(offsets, low, high, at) : low + rows_kept[slot_of(i * THREADS + threadIdx.x)];
    i64 chosen = several ? which[row] : 0;
    Bindings values = {step, table, stride, row, element(step, chosen, first[row] + at - offsets[row])};
    i64 position = base + before[i * WARPS + warp] + __popc(word & ((1u << lane) - 1));
    const i64 *column = step + step[COLUMNS_AT];
    for (i64 c = 0; c < step[COLUMNS]; ++c, column += 2)
      out[c * out_stride + position] = (ID)values.at(column[0], column[1]);
  }
}

// Where each row's kept elements begin among all kept ones: [rows + 1].
extern "C" __global__ void row_offsets(const i64 *offsets, i64 rows, const u32 *bits, const i64 *positions, i64 *out) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row > rows) return;
  i64 at = offsets[row], tile = at / TILE, sum = positions[tile];
  for (i64 word = tile * WORDS; word < at / 32; ++word) sum += __popc(bits[word]);
  if (at % 32) sum += __popc(bits[at / 32] & ((1u << at % 32) - 1));
  out[row] = sum;
}

// Add numbers to the rows that matches came from.  Those of one row stand side by side: a warp adds each row's sum once,
// or a few rows with all the matches would have every thread wait for every other.  All lanes call it; -1 is no row.
__device__ __forceinline__ void add_to(u64 *matches, i64 origin, u64 number) {
  u32 lane = threadIdx.x % 32;
  u64 sum = number;
  for (int by = 1; by < 32; by *= 2) {
    u64 other = __shfl_up_sync(~0u, sum, by);
    if (lane >= by) sum += other;
  }
  i64 next = __shfl_down_sync(~0u, origin, 1);
  bool last = lane == 31 || next != origin;
  u32 before = __ballot_sync(~0u, last) & ((1u << lane) - 1);
  u64 others = __shfl_sync(~0u, sum, before ? 31 - __clz(before) : 0);
  if (before) sum -= others;
  if (last && origin >= 0 && sum) atomicAdd(matches + origin, sum);
}

// Add up how many matches each row stands for: rows of the last table, by the row they came from.
extern "C" __global__ void add_matches(const ID *origins, i64 rows, i64 *matches) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  add_to((u64 *)matches, row < rows ? (i64)origins[row] : -1, row < rows);
}

// The same where a row has as many matches as it has elements; without `origins`, it is its own.
extern "C" __global__ void add_list_lengths(const i64 *offsets, i64 rows, const ID *origins, i64 *matches) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  bool there = row < rows;
  u64 found = there ? offsets[row + 1] - offsets[row] : 0;
  add_to((u64 *)matches, !there ? -1 : origins ? (i64)origins[row] : row, found);
}

// 1 for each row that stands for some match.
extern "C" __global__ void matched(const i64 *matches, i64 rows, i64 *out) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row < rows) out[row] = matches[row] > 0;
}

// Those rows, with their numbers: columns are (column of the table or CONSTANT, slot).
extern "C" __global__ void keep_rows(const ID *table, i64 stride, i64 rows, const i64 *columns, i64 count,
                                     const i64 *constants, const i64 *matches, const i64 *positions, ID *out,
                                     i64 out_stride, i64 *out_matches) {
  i64 row = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (row >= rows || !matches[row]) return;
  i64 position = positions[row];
  for (i64 c = 0; c < count; ++c)
    out[c * out_stride + position] = columns[2 * c] >= 0 ? table[columns[2 * c] * stride + row]
                                                         : (ID)constants[columns[2 * c + 1]];
  out_matches[position] = matches[row];
}

// A prefix sum of a few values, by one block: [n + 1].
extern "C" __global__ void __launch_bounds__(THREADS) sum_up(const i64 *values, i64 n, i64 *out) {
  __shared__ i64 sums[WARPS];
  u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  i64 before = 0;
  if (threadIdx.x == 0) out[0] = 0;
  for (i64 begin = 0; begin < n; begin += THREADS) {
    i64 at = begin + threadIdx.x, sum = at < n ? values[at] : 0;
    for (int by = 1; by < 32; by *= 2) {
      i64 other = __shfl_up_sync(~0u, sum, by);
      if (lane >= by) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    for (u32 i = 0; i < WARPS; ++i) {
      if (i < warp) sum += sums[i];
    }
    if (at < n) out[at + 1] = before + sum;
    for (u32 i = 0; i < WARPS; ++i) before += sums[i];
    __syncthreads();
  }
}

// The automorphic images of matches, one after the other: out[c][match * images + i] = table[moved[i][c]][match].
extern "C" __global__ void images(const ID *table, i64 stride, i64 matches, const i64 *moved, i64 images, i64 columns,
                                  ID *out) {
  i64 at = blockIdx.x * (i64)blockDim.x + threadIdx.x;
  if (at >= matches * images) return;
  i64 match = at / images, image = at % images;
  for (i64 c = 0; c < columns; ++c) out[c * matches * images + at] = table[moved[image * columns + c] * stride + match];
}
