// Counting the bindings of rows through two lists, without a table of them: by warps, whose lanes are assigned to elements.

#include "join_lists.cuh"

#include "tiles.cuh"

const int MADE_COLUMNS = 8;

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
  u64 passed;
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
    ++passed;
    return true;
  }
  __device__ __forceinline__ i64 place(i64, u32 lane) const { return lane; }
};

__device__ __forceinline__ void add_of_warp(u64 *sum, u64 found) {
  for (int by = 16; by; by /= 2) found += __shfl_down_sync(~0u, found, by);
  if (threadIdx.x % 32 == 0 && found) atomicAdd(sum, found);
}

// The next number that a warp draws.  One thread asks the host's flag now and then: it lies far away, and many who ask wait
// for one another, a microsecond each.
__device__ __forceinline__ i64 drawn_of_warp(u64 *next, const volatile int *stop, i64 &asked) {
  u64 drawn = 0;
  if (threadIdx.x % 32 == 0) {
    if (blockIdx.x == 0 && threadIdx.x == 0 && clock64() - asked > 1 << 19) {
      asked = clock64();
      if (*stop) atomicMax(next, 1ull << 62);
    }
    drawn = atomicAdd(next, 1ull);
  }
  return (i64)__shfl_sync(~0u, drawn, 0);
}

// Count the bindings of all rows through two lists.  A warp takes 32 rows, far apart so that those of a hub are shared
// out, and its lanes are assigned to the elements of their shorter lists, one list after the other (STMatch §VI).
template <bool CHEAP, typename Rows>
__device__ __forceinline__ void count_rows(const i64 *step, Rows &rows, u64 *sum, u64 *next, const volatile int *stop) {
  const u32 lane = threadIdx.x % 32;
  const i64 all = rows.count(), batches = (all + 31) / 32;
  const i64 *lists[2] = {list_of(step, 0), list_of(step, 1)};
  Cheap cheap(step);
  u64 found = 0;
  i64 asked = clock64();
  while (true) {
    const i64 batch = drawn_of_warp(next, stop, asked);
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

// The same through one list: as many as it has elements, less those that the row excludes.  A lane takes a row.
template <typename Rows>
__device__ __forceinline__ void count_elements(const i64 *step, Rows &rows, u64 *sum, u64 *next, const volatile int *stop) {
  const u32 lane = threadIdx.x % 32;
  const i64 all = rows.count(), batches = (all + 31) / 32;
  const i64 *list = list_of(step, 0), *columns = step + step[DIFFERS_AT];
  const ID *elements = (const ID *)list[ELEMENTS];
  u64 found = 0;
  i64 asked = clock64();
  while (true) {
    const i64 batch = drawn_of_warp(next, stop, asked), row = batch * 32 + lane;
    if (batch >= batches) break;
    if (row >= all || !rows.make(row, lane)) continue;  // a lane reads what it wrote itself
    Bindings values = {step, rows.table, rows.stride, rows.place(row, lane), -1};
    const Span span = narrowed(step, list, span_of(step, list, values), values);
    i64 left = span.end > span.begin ? span.end - span.begin : 0;
    for (i64 i = 0; i < step[DIFFERS] && left; ++i) {
      const ID other = rows.table[columns[i] * rows.stride + values.row];
      bool repeated = false;
      for (i64 j = 0; j < i; ++j) repeated = repeated || rows.table[columns[j] * rows.stride + values.row] == other;
      left -= !repeated && holds(elements, span.begin, span.end, other);
    }
    found += left;
  }
  add_of_warp(sum, found);
}
