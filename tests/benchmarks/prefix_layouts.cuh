// What a prefix has in common as GAMMA lays it out and searches it (§6.1, optimisation 3): in place of prefix.cuh.
//
// LAYOUT is 0 (sorted, searched by halves), 1 (32 columns, a bank each; a warp goes through the rows together) or 2 (the
// same columns, each lane searches its own by halves).  Where FILTER is 1, vertices are looked up in a Bloom filter first,
// and those that pass are collected until there is one for each lane (filter, collect, search).  Where LONG is 1, the last
// vertex's list is always what is gone through, as in the paper, else the shorter.

#define ROOM ROWS_ROOM
#define Prefix Sorted
#define merge merge_sorted
#define all_of_merged all_of_sorted
#include "prefix.cuh"
#undef ROOM
#undef Prefix
#undef merge
#undef all_of_merged

const int BITS = 4096, COLUMNS = 32, NEVER = 0x7fffffff;
const int PADDED = (MERGED + COLUMNS - 1) / COLUMNS * COLUMNS;
const int ROOM = PADDED + (FILTER ? BITS / 32 + 2 * WARP : 0);

struct Prefix : Sorted {
  int height;  // of the columns
  __device__ __forceinline__ u32 *bits() const { return (u32 *)ids + PADDED; }
  __device__ __forceinline__ int *waiting() const { return ids + PADDED + BITS / 32; }
  // The entry that is k-th by value.
  __device__ __forceinline__ int at(int k) const { return LAYOUT ? ids[k % height * COLUMNS + k / height] : ids[k]; }
};

__device__ __forceinline__ u32 first_bit(int u) { return (u32)u * 0x9e3779b1u >> 20; }
__device__ __forceinline__ u32 second_bit(int u) { return (u32)u * 0x85ebca77u >> 20; }

__device__ void merge(const Lists &lists, const int *row, int size, Prefix &prefix) {
  merge_sorted(lists, row, size, prefix);
  if (prefix.count > MERGED) return;
  if (FILTER) {
    for (int word = LANE; word < BITS / 32; word += WARP) prefix.bits()[word] = 0;
    __syncwarp();
    for (int k = LANE; k < prefix.count; k += WARP) {
      set_bit(prefix.bits(), (int)first_bit(prefix.ids[k]));
      set_bit(prefix.bits(), (int)second_bit(prefix.ids[k]));
    }
  }
  if (LAYOUT) {
    const int height = (prefix.count + COLUMNS - 1) / COLUMNS;
    int own[PADDED / COLUMNS];
#pragma unroll
    for (int r = 0; r < PADDED / COLUMNS; ++r) {
      const int k = LANE * height + r;
      own[r] = r < height && k < prefix.count ? prefix.ids[k] : NEVER;
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < PADDED / COLUMNS; ++r)
      if (r < height) prefix.ids[r * COLUMNS + LANE] = own[r];
    prefix.height = height;
  }
  __syncwarp();
}

// Called by whole warps; u is negative where a lane has nothing to search.
__device__ __forceinline__ bool is_common(const Prefix &prefix, int u) {
  if (LAYOUT == 0) {
    const int place = u < 0 ? prefix.count : first_at_least(prefix.ids, 0, prefix.count, u);
    return place < prefix.count && prefix.ids[place] == u;
  }
  if (prefix.count == 0) return false;
  int column = 0;
#pragma unroll
  for (int step = COLUMNS / 2; step; step >>= 1)
    if (prefix.ids[column + step] <= u) column += step;
  if (LAYOUT == 2) {
    int begin = 0, end = prefix.height;
    while (begin < end) {
      const int middle = (begin + end) >> 1;
      if (prefix.ids[middle * COLUMNS + column] < u) begin = middle + 1;
      else end = middle;
    }
    return u >= 0 && begin < prefix.height && prefix.ids[begin * COLUMNS + column] == u;
  }
  bool found = false;
  for (int r = 0; r < prefix.height; ++r) {
    const int there = prefix.ids[r * COLUMNS + column];
    found = found || there == u;
    if (__all_sync(FULL, u < 0 || there >= u)) break;
  }
  return found && u >= 0;
}

template <typename Take>
__device__ void all_of_merged(const Lists &lists, const Prefix &prefix, int last, Take take) {
  const i64 end = __ldg(lists.offsets + last + 1);
  const i64 begin = lower_bound(lists.ids, __ldg(lists.offsets + last), end, last + 1);
  int from = 0;
  for (int up = prefix.count; from < up;) {
    const int middle = (from + up) >> 1;
    if (prefix.at(middle) <= last) from = middle + 1;
    else up = middle;
  }
  if (!LONG && end - begin >= prefix.count - from) {
    for (int at = from; at < prefix.count; at += WARP) {
      const int u = at + LANE < prefix.count ? prefix.at(at + LANE) : -1;
      const i64 place = u < 0 ? end : lower_bound(lists.ids, begin, end, u);
      take(u, place < end && __ldg(lists.ids + place) == u);
    }
    return;
  }
  int waiting = 0;
  for (i64 at = begin; at < end; at += WARP) {
    const int u = at + LANE < end ? __ldg(lists.ids + at + LANE) : -1;
    if (!FILTER) {
      take(u, is_common(prefix, u));
      continue;
    }
    const bool on = u >= 0 && bit(prefix.bits(), (int)first_bit(u)) && bit(prefix.bits(), (int)second_bit(u));
    const u32 all = __ballot_sync(FULL, on);
    if (on) prefix.waiting()[waiting + __popc(all & ((1u << LANE) - 1))] = u;
    waiting += __popc(all);
    __syncwarp();
    if (waiting >= WARP) {
      const int first = prefix.waiting()[LANE], next = prefix.waiting()[WARP + LANE];
      take(first, is_common(prefix, first));
      __syncwarp();
      prefix.waiting()[LANE] = next;
      waiting -= WARP;
      __syncwarp();
    }
  }
  if (FILTER && waiting) {
    const int u = LANE < waiting ? prefix.waiting()[LANE] : -1;
    take(u, is_common(prefix, u));
    __syncwarp();
  }
}
